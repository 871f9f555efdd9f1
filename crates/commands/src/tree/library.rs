//! The trees of a home: making, listing, archiving.

use std::path::{Path, PathBuf};

use loom::plan::NewTree;
use loom::{Mode, Op, Refusal, Role, TreeId, ViewName};
use store::{LIST_PAGE, StoreError, TreeEntry, TreeFilter, all_pages};

use super::first_passages::{self, divide};
use super::telling::{self, count, words_of};
use super::{label, look};
use crate::app::App;
use crate::args::WholeTreeArg;
use crate::args::tree::{List, ModeArg, New, RenameArgs, SplitArg};
use crate::error::CommandError;
use crate::results::tree::{TreeLine, TreeMade, TreeNamed, Trees, word_of};
use crate::results::{CommandOutcome, Told};
use crate::rights::Asker;

/// Makes a tree, with a first text if one is given. What can be wrong with the text is found before the tree is
/// made, so that a refused text leaves none behind.
pub(super) async fn new(app: &App, asker: &Asker, args: New) -> Result<CommandOutcome, CommandError> {
    let mode = match args.mode {
        ModeArg::Document => Mode::Buffer,
        ModeArg::Dialogue => Mode::Dialogue,
    };
    let (text, file) = first_text(app, &args, mode)?.unzip();
    let file = file.flatten();
    let title = match (&args.title, &file) {
        (Some(title), _) => label(app, "title", title)?,
        (None, Some(file)) => label(app, "title", &title_of(text.as_deref().unwrap_or_default(), file))?,
        (None, None) => String::new(),
    };
    let other = of_title(app, asker, &title).await;
    let (mut passages_made, mut undivided) = (0, None);
    let words = text.as_deref().map_or(0, words_of);
    let tree = app.runtime.ids.with(|entropy| entropy.next::<TreeId>(app.now()))?;
    let main = ViewName::default();
    app.change(asker, tree, &main, Op::Create(NewTree { mode, title, origin: None })).await?;
    if let Some(text) = text {
        let role = (mode == Mode::Dialogue).then_some(Role::User);
        let passages = match (mode, &file) {
            (Mode::Buffer, Some(_)) => {
                let how = args.split.unwrap_or(SplitArg::Paragraph);
                let passages = divide(&text, how);
                undivided = (passages.len() == 1).then(|| first_passages::undivided(&text, how)).flatten();
                passages
            }
            _ => vec![text.as_str()],
        };
        let texts = passages.into_iter().map(|passage| asker.text(passage.to_owned(), role)).collect();
        let applied =
            app.change(asker, tree, &main, Op::Reply { to: None, texts, exclude: Vec::new(), part_of: None });
        passages_made = applied.await?.nodes.len() as u64;
    }
    let tip = look(app, asker, tree, &main, |_, tip| Ok(tip)).await?;
    let entry = app.runtime.store.tree(&asker.principal, tree).await?;
    let filled = match passages_made {
        0 => "empty".to_owned(),
        number => {
            format!("{}, {}", count(number, one_of(mode).0, one_of(mode).1), count(words, "word", "words"))
        }
    };
    let named = telling::tree(&entry.short_id, &entry.title);
    if let Some(notice) = undivided {
        app.frontend.note(&notice);
    }
    if other {
        tell_of_other(app, &entry.title, &entry.short_id);
    }
    let sentence = format!("made the {} {named}: {filled}", word_of(mode));
    let result = TreeMade { tree, short_id: entry.short_id, tip };
    Ok(CommandOutcome::TreeMade(Told { result, sentence }))
}

/// That a title is not enough to name a tree.
fn tell_of_other(app: &App, title: &str, short_id: &str) {
    app.frontend.note(&format!(
        "another tree is called “{}”: commands ask which is meant; {short_id} means this one",
        text::terminal::one_line(title)
    ));
}

/// The title of a tree that begins with a file: its first heading, else the name of the file.
fn title_of(text: &str, file: &Path) -> String {
    match text::passages::first_heading(text) {
        Some(heading) => text::title::title(heading),
        None if !file.is_file() => String::new(),
        None => file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default(),
    }
}

/// Whether a tree has this title.
async fn of_title(app: &App, asker: &Asker, title: &str) -> bool {
    if title.is_empty() {
        return false;
    }
    let store = &app.runtime.store;
    match store.resolve(&asker.principal, title).await {
        Ok(tree) => store.tree(&asker.principal, tree).await.is_ok_and(|entry| entry.title == title),
        Err(error) => matches!(error, StoreError::Ambiguous(_)),
    }
}

/// What a tree is made of, one and several.
const fn one_of(mode: Mode) -> (&'static str, &'static str) {
    match mode {
        Mode::Buffer => ("passage", "passages"),
        Mode::Dialogue => ("message", "messages"),
    }
}

/// The text that a tree begins with, and the file it is of: `-` for standard input. None where there is none.
fn first_text(app: &App, args: &New, mode: Mode) -> Result<Option<(String, Option<PathBuf>)>, CommandError> {
    // A byte order mark is none of the text.
    let unmarked = |text: String| text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    let (text, file) = match (&args.text, &args.file) {
        (Some(_), Some(_)) => {
            return Err(CommandError::usage("--text and --file are both given", "choose one of them"));
        }
        (Some(text), None) => (app.text(text)?, None),
        (None, Some(file)) => (unmarked(app.file_text(file)?), Some(file.clone())),
        (None, None) => match app.piped_text()? {
            Some(text) => (unmarked(text), Some(PathBuf::from("-"))),
            None => return Ok(None),
        },
    };
    if text.is_empty() {
        let hint = "leave out --text and --file for an empty tree";
        return Err(CommandError { hint: hint.to_owned(), ..Refusal::Empty.into() });
    }
    // A document's long text becomes several nodes; a turn is one.
    app.fits_node("the text", &text, mode == Mode::Buffer)?;
    Ok(Some((text, file)))
}

pub(super) async fn list(app: &App, asker: &Asker, args: List) -> Result<CommandOutcome, CommandError> {
    let filter = if args.archived { TreeFilter::Archived } else { TreeFilter::Current };
    let store = &app.runtime.store;
    let page = |after| store.trees(&asker.principal, filter, after, LIST_PAGE);
    let trees = all_pages(TreeEntry::place, page).await?;
    let mut lines = Vec::with_capacity(trees.len());
    for entry in trees {
        let passages = app.read(asker, entry.id, |rows| {
            let tip = loom::render::tip(rows, &ViewName::default())?;
            Ok(u64::from(loom::path::position(rows, tip)?.depth))
        });
        lines.push(TreeLine {
            // A tree that cannot be read is listed all the same: the beginning, which holds no text, is no passage.
            passages: passages.await.unwrap_or_else(|_| entry.nodes.saturating_sub(1)),
            tree: entry.id,
            short_id: entry.short_id,
            title: entry.title,
            mode: entry.mode,
            nodes: entry.nodes,
            updated: entry.updated_at.0,
            archived: entry.archived,
        });
    }
    Ok(CommandOutcome::Trees(Trees { trees: lines }))
}

/// Gives a tree another title.
pub(super) async fn rename(
    app: &App,
    asker: &Asker,
    args: RenameArgs,
) -> Result<CommandOutcome, CommandError> {
    let tree = app.tree_named(asker, &args.tree.tree).await?;
    let title = label(app, "title", &args.title)?;
    let before = app.runtime.store.tree(&asker.principal, tree).await?;
    let other = title != before.title && of_title(app, asker, &title).await;
    app.change(asker, tree, &ViewName::default(), Op::Rename(title.clone())).await?;
    if other {
        tell_of_other(app, &title, &before.short_id);
    }
    let old = telling::tree(&before.short_id, &before.title);
    let sentence = match title.as_str() {
        "" => format!("{old} has no title now"),
        title => format!("{old} is called “{title}” now"),
    };
    Ok(CommandOutcome::TreeNamed(Told { result: TreeNamed { tree, short_id: before.short_id }, sentence }))
}

/// Archives a tree, or takes it out of the archive.
pub(super) async fn archive(
    app: &App,
    asker: &Asker,
    arg: &WholeTreeArg,
    archived: bool,
) -> Result<CommandOutcome, CommandError> {
    let tree = match archived {
        true => app.tree_named(asker, &arg.tree).await?,
        false => app.archived_tree(asker, &arg.tree).await?,
    };
    app.change(asker, tree, &ViewName::default(), Op::Archive(archived)).await?;
    let entry = app.runtime.store.tree(&asker.principal, tree).await?;
    let named = telling::tree(&entry.short_id, &entry.title);
    let sentence = match archived {
        true => format!("archived {named}: `drawloom tree undelete {}` brings it back", entry.short_id),
        false => format!("{named} is back from the archive"),
    };
    Ok(CommandOutcome::TreeNamed(Told { result: TreeNamed { tree, short_id: entry.short_id }, sentence }))
}

//! Editing the text of a path as a whole: in an editor, by a file, by words that are replaced.
//!
//! What comes back is one operation: versions of the passages that changed, and what was written at the end as
//! passages below the tip. A passage never moves or parts: what is new between two of them belongs to one of them
//! (spec: loom §2; ADR 0018). Until it is taken in, the edited text lies in a file.

mod align;
mod apply;
mod base;
mod file;
mod folder;
mod forgotten;
mod line_ends;
mod marks;

use std::path::Path;

use agent::on_disk;
use loom::path::ViewOverrides;
use loom::render::window;
use loom::{CellKey, Mode, NodeId, Op, PositionId, Refusal, Slot, TreeId, TreeReader, ViewName};
use workspace::Accept;

pub(super) use self::apply::is_read;
pub(super) use self::base::text_before;
use self::base::{EditBase, HeldBase};
use self::file::{EditFile, remove_applied};
pub use self::folder::edit_files;
pub(super) use self::line_ends::{as_edited, with_break_of, with_line_ends_of};
use self::marks::{Marks, UnknownMark};
use super::telling::{shown_at, tree_argument};
use super::{look, words};
use crate::app::{App, NamedNode};
use crate::args::tree::Edit;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::tree::{Edited, NodeNamed, PathEdited};
use crate::rights::Asker;
use crate::shell::quoted;

/// Edits the path, or the part of it between two passages.
pub(super) async fn edit_path(app: &App, asker: &Asker, args: Edit) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = app.tree(asker, &args.tree).await?;
    if app.read(asker, tree, |rows| Ok(rows.tree()?.mode)).await? == Mode::Dialogue {
        return Err(CommandError::usage(
            "a conversation is edited a message at a time",
            format!("name it: `drawloom tree edit {} NODE`", args.tree_argument()),
        ));
    }
    let mut ends = [None, None];
    for (end, named) in ends.iter_mut().zip([&args.from, &args.to]) {
        if let Some(named) = named {
            *end = Some(app.node_named(asker, Some(tree), named).await?.1);
        }
    }
    let done = match (&args.file, args.replace.as_slice()) {
        (Some(path), _) => edit_by_file(app, asker, (tree, &view), ends, path).await,
        (None, [old, new]) => {
            edit_by_words(app, asker, (tree, &view), ends, (old.as_str(), new.as_str()), args.all).await
        }
        (None, _) => edit_in_editor(app, asker, (tree, &view), ends, args.tree_argument()).await,
    };
    done.map(CommandOutcome::PathEdited)
}

/// The first and the last passage of the part that is edited, where they are named.
type Ends = [Option<PositionId>; 2];

/// The text becomes what a file says.
async fn edit_by_file(
    app: &App,
    asker: &Asker,
    (tree, view): (TreeId, &ViewName),
    ends: Ends,
    path: &Path,
) -> Result<PathEdited, CommandError> {
    let name = crate::app::input::argument_name(path);
    let saved = app.file_bytes(path, Accept::RegularOrPipe)?;
    let file = app.text_of(&name, saved.clone())?;
    if let Some(held) = HeldBase::of_file(app, path, &file)? {
        held.base.require((tree, view), false, path)?;
        if ends != [None, None] {
            return Err(CommandError::usage(
                format!("{} holds the part it was opened with", quoted(&path.to_string_lossy())),
                "leave --from and --to out",
            ));
        }
        return apply_kept(app, asker, (path, &name), saved, held).await;
    }
    let open = OpenText::read(app, asker, (tree, view), ends).await?;
    // Drafts are committed once nothing is left to be refused.
    let texts = open.texts_of(app, &name, saved.clone(), false).await?;
    open.require_fits(app, &texts)?;
    if !open.are_meant(app, &texts) {
        return Err(not_meant("nothing was changed"));
    }
    let mut open = open.committed(app, asker, ends).await?;
    let texts = open.texts_of(app, &name, saved, false).await?;
    open.apply(app, asker, texts, &file).await
}

/// Words of the text become others: those that stand there once, or all of them.
async fn edit_by_words(
    app: &App,
    asker: &Asker,
    (tree, view): (TreeId, &ViewName),
    ends: Ends,
    (old, new): (&str, &str),
    all: bool,
) -> Result<PathEdited, CommandError> {
    let new = app.masked(new);
    let texts = |open: &OpenText| {
        let text = open.text();
        let places = if all { words::all(&text, old) } else { Ok(vec![words::one(&text, old)?]) };
        Ok::<_, CommandError>(align::replace(&open.old(), &places?, &new))
    };
    let open = OpenText::read(app, asker, (tree, view), ends).await?;
    // Drafts are committed once nothing is left to be refused. What is typed counts as a part of the last passage here.
    let typed = |open: &OpenText| open.passages.is_empty() || !open.typed.is_empty();
    if typed(&open) {
        let text = open.text();
        if all { words::all(&text, old).map(drop) } else { words::one(&text, old).map(drop) }?;
    } else {
        open.require_fits(app, &texts(&open)?)?;
    }
    let mut open = open.committed(app, asker, ends).await?;
    let texts = texts(&open)?;
    open.apply(app, asker, texts, "").await
}

/// The text becomes what an editor leaves.
async fn edit_in_editor(
    app: &App,
    asker: &Asker,
    (tree, view): (TreeId, &ViewName),
    ends: Ends,
    tree_argument: String,
) -> Result<PathEdited, CommandError> {
    let open = OpenText::read(app, asker, (tree, view), ends).await?;
    if open.has_drafts {
        file::find_editor(app).await?;
    }
    let mut open = open.committed(app, asker, ends).await?;
    // As they are written, marks are read, whatever the text says then.
    open.mark_end = Some(open.marks().end().to_owned());
    let render = |name: &str| open.as_file(name);
    let mut file = EditFile::make(app, asker, &open.base(), render, tree_argument).await?;
    let Some(saved) = file.edit(app).await? else { return Ok(PathEdited::default()) };
    let text = String::from_utf8_lossy(&saved).into_owned();
    let taken = match open.texts_of(app, &file.name(), saved, true).await {
        Ok(texts) if !open.are_meant(app, &texts) => return Err(not_meant_in_editor(app, &file)),
        Ok(texts) => open.apply(app, asker, texts, &text).await,
        Err(error) => Err(error),
    };
    match taken {
        Ok(mut done) => {
            let is_all = done.collided.is_empty();
            file.set_base(open.base());
            if is_all {
                file.remove(app);
            } else {
                file.keep_rest(app);
            }
            done.file = (!is_all).then(|| file.path());
            Ok(done)
        }
        Err(error) => Err(file.kept(app, error)),
    }
}

/// Takes in what an editor left in a file: as if it had ended now.
async fn apply_kept(
    app: &App,
    asker: &Asker,
    (path, name): (&Path, &str),
    saved: Vec<u8>,
    held: HeldBase,
) -> Result<PathEdited, CommandError> {
    let mut open = OpenText::of_base(app, asker, held.base.clone()).await?;
    let text = String::from_utf8_lossy(&saved).into_owned();
    let forgotten = open.passages.iter().find(|passage| passage.is_forgotten);
    if let Some(forgotten) = forgotten
        && !open.marks().are_whole_in(&text)
    {
        return Err(open.forgotten(
            forgotten,
            &text,
            open.passages.iter().all(|passage| passage.is_forgotten),
        ));
    }
    let texts = open.texts_of(app, name, saved.clone(), true).await?;
    if !open.are_meant(app, &texts) {
        return Err(not_meant("nothing was changed"));
    }
    let mut done = open.apply(app, asker, texts, &text).await?;
    if done.collided.is_empty() {
        if let Some(file) = held.end(app, &saved, &open.base()) {
            let tree = tree_argument(app, asker, open.tree).await?;
            file::note_saved_again(app, &file, &open.base().command(&tree, &file));
        }
        remove_applied(app, path, &saved);
    } else {
        file::keep_rest(app, &held.name, &open.base());
        done.file = Some(path.to_owned());
    }
    Ok(done)
}

/// Whether a text of `what` was to become this one: one that says nothing any more is asked about.
pub(super) fn is_meant(app: &App, old: &str, new: &str, what: &str) -> bool {
    let is_emptied = new.trim().is_empty() && !old.trim().is_empty();
    !is_emptied || app.frontend.confirm(&format!("The edited text is empty: take {what} out?")).is_yes()
}

/// That a text was not to become empty.
pub(super) fn not_meant(what_became: &str) -> CommandError {
    CommandError::usage(
        format!("the edited text is empty: {what_became}"),
        "prune passages with `drawloom tree prune`, or say yes at a terminal",
    )
}

/// [`not_meant`] of a text that an editor left: the file goes, unless it was saved again.
fn not_meant_in_editor(app: &App, file: &EditFile) -> CommandError {
    let what_became = if file.remove(app) { "its file was removed" } else { "its file stays" };
    not_meant(&format!("nothing was changed, and {what_became}"))
}

/// The text of one node as an editor left it; none where it was not changed.
pub(super) async fn edit_text(
    app: &App,
    asker: &Asker,
    named: &NamedNode,
    args: &Edit,
    text: &str,
) -> Result<Option<(String, EditFile)>, CommandError> {
    let (view, position) = (named.view.clone(), named.position);
    let shown = app.read(asker, named.tree, move |rows| shown_at(rows, &view, position)).await?;
    let base = EditBase::of_one(named, &shown.short_id, shown.node.id);
    let mut file = EditFile::make(app, asker, &base, |_| text.to_owned(), args.tree_argument()).await?;
    let Some(saved) = file.edit(app).await? else { return Ok(None) };
    match app.text_of(&file.name(), saved) {
        Ok(saved) => {
            let saved = as_edited(text, &saved);
            if !is_meant(app, text, &saved, &named.short_id) {
                return Err(not_meant_in_editor(app, &file));
            }
            Ok(Some((saved, file)))
        }
        Err(error) => Err(file.kept(app, error)),
    }
}

/// Removes a file of one passage that is in: one that was saved again meanwhile is kept over what stands there now, and
/// named with the command that takes it in.
pub(super) fn remove_passage_file(
    app: &App,
    named: &NamedNode,
    (args, now): (&Edit, &Edited),
    file: PassageFile<'_>,
) {
    let base = EditBase::of_one(named, &now.short_id, now.node);
    match file {
        PassageFile::Edited(mut file) => {
            file.set_base(base);
            file.remove(app);
        }
        PassageFile::Named { path, held, saved } => {
            if let Some(file) = held.end(app, saved, &base) {
                file::note_saved_again(app, &file, &base.command(&args.tree_argument(), &file));
            }
            remove_applied(app, path, saved);
        }
    }
}

/// A file with the text of one passage: that of the editor that was open, or one that was named.
pub(super) enum PassageFile<'a> {
    Edited(EditFile),
    Named { path: &'a Path, held: HeldBase, saved: &'a [u8] },
}

impl Edit {
    /// The tree as it was named, for a command.
    fn tree_argument(&self) -> String {
        quoted(&self.tree.tree)
    }
}

/// The passages that are edited, as they were when the text was opened, with what is typed and not committed yet.
struct OpenText {
    tree: TreeId,
    view: ViewName,
    title: String,
    passages: Vec<OpenPassage>,
    /// Whether the last of them is the tip.
    is_to_the_end: bool,
    has_drafts: bool,
    /// What the working buffer holds, where these passages reach to the end.
    typed: String,
    /// What stands behind the id in each mark of a file that was made before.
    mark_end: Option<String>,
    /// Short ids of what was forgotten on this path: it is not in the text.
    forgotten_ids: Vec<String>,
}

struct OpenPassage {
    position: PositionId,
    node: NodeId,
    short_id: String,
    text: String,
    is_forgotten: bool,
}

impl OpenPassage {
    fn named(&self) -> NodeNamed {
        NodeNamed { node: self.node, short_id: self.short_id.clone() }
    }
}

impl OpenText {
    async fn read(
        app: &App,
        asker: &Asker,
        (tree, view): (TreeId, &ViewName),
        [from, to]: [Option<PositionId>; 2],
    ) -> Result<Self, CommandError> {
        let name = view.clone();
        let (title, passages, tip, drafts, forgotten_ids) = look(app, asker, tree, view, move |rows, tip| {
            let path = ViewOverrides::read(rows, &name, tip)?;
            let mut passages = window(rows, &name, &path, None, usize::MAX)?;
            // What is left out or forgotten is not in the text, and stays as it is.
            let forgotten = passages.iter().filter(|passage| passage.row.purged);
            let forgotten_ids: Vec<String> = forgotten.map(|passage| passage.row.short_id.clone()).collect();
            passages.retain(|passage| {
                passage.position.parent.is_some() && !passage.excluded && !passage.row.purged
            });
            let passages = passages.into_iter().map(|passage| OpenPassage {
                position: passage.position.id,
                node: passage.row.node.id,
                short_id: passage.row.short_id,
                text: passage.text,
                is_forgotten: false,
            });
            let title = rows.cell(&CellKey::Title)?.value.as_text().unwrap_or_default().to_owned();
            Ok((title, passages.collect::<Vec<_>>(), tip, rows.drafts(&name)?, forgotten_ids))
        })
        .await?;
        let place = |at: PositionId| {
            let found = passages.iter().position(|passage| passage.position == at);
            found.ok_or_else(|| CommandError::from(store::StoreError::Refused(Refusal::NotOnPath(at))))
        };
        let first = from.map(place).transpose()?.unwrap_or(0);
        let end = to.map(place).transpose()?.map_or(passages.len(), |last| last + 1);
        if first >= end && (from, to) != (None, None) {
            return Err(CommandError::usage(
                "the last passage stands above the first",
                "swap --from and --to",
            ));
        }
        let is_to_the_end = passages.last().is_none_or(|last| last.position == tip) && end == passages.len();
        let passages = passages.into_iter().take(end).skip(first).collect();
        let has_drafts = !drafts.is_empty();
        let typed = drafts.into_iter().find(|(slot, _)| *slot == Slot::Buffer && is_to_the_end);
        let typed = typed.map_or_else(String::new, |(_, draft)| draft.text);
        Ok(Self {
            tree,
            view: view.clone(),
            title,
            passages,
            is_to_the_end,
            has_drafts,
            typed,
            mark_end: None,
            forgotten_ids,
        })
    }

    /// The text, read again once its drafts were committed.
    async fn committed(
        self,
        app: &App,
        asker: &Asker,
        ends: [Option<PositionId>; 2],
    ) -> Result<Self, CommandError> {
        if !self.has_drafts {
            return Ok(self);
        }
        let applied = app.change(asker, self.tree, &self.view, Op::Commit).await?;
        app.note_committed(&applied.nodes);
        Self::read(app, asker, (self.tree, &self.view), ends).await
    }

    fn old(&self) -> Vec<&str> {
        self.passages.iter().map(|passage| passage.text.as_str()).collect()
    }

    fn text(&self) -> String {
        self.old().concat() + &self.typed
    }

    fn marks(&self) -> Marks {
        let ids = self.passages.iter().map(|passage| passage.short_id.as_str());
        Marks::of(ids, &self.text(), self.mark_end.as_deref())
    }

    /// The text for an editor, in a file of this name.
    fn as_file(&self, name: &str) -> String {
        self.marks().file(&self.title, &self.old(), name)
    }

    /// The texts of the passages out of a file, or that of a document that has none; `is_ours` says that an editor got
    /// the file from here.
    async fn texts_of(
        &self,
        app: &App,
        name: &str,
        saved: Vec<u8>,
        is_ours: bool,
    ) -> Result<Vec<String>, CommandError> {
        let saved = app.text_of(name, saved)?;
        let saved = with_line_ends_of(&self.text(), &saved);
        let marks = self.marks();
        let unknown = |unknown: UnknownMark| {
            let (mark, line) = (unknown.mark(), unknown.line(&saved));
            let of_forgotten = self.forgotten_ids.iter().find(|id| marks.is_of(mark, id));
            if let Some((id, lines)) = of_forgotten.and_then(|id| Some((id, marks.lines_of(id, &saved)?))) {
                return CommandError::new(
                    "forgotten",
                    3,
                    format!("{id} was forgotten, and its mark stands in {lines}"),
                    "take what it said out of the file, with its mark",
                );
            }
            match unknown {
                UnknownMark::Foreign(_) => CommandError::usage(
                    format!("{mark} in line {line} marks no passage of this text"),
                    "take the mark out of the file",
                ),
                UnknownMark::Open(_) => CommandError::usage(
                    format!("{mark} in line {line} is a mark that is not whole"),
                    "make it whole, or take it out of the file",
                ),
            }
        };
        let body = if is_ours || marks.are_in(&saved) {
            marks.body(&saved).map_err(unknown)?
        } else {
            saved.clone()
        };
        if self.passages.is_empty() {
            // Many write behind the empty line that stands there.
            return Ok(vec![body.trim_start_matches(['\r', '\n']).to_owned()]);
        }
        // Comparing takes a while where most of a long text changed.
        let old: Vec<String> = self.passages.iter().map(|passage| passage.text.clone()).collect();
        let of_it = marks.clone();
        let read = move || of_it.read(&old.iter().map(String::as_str).collect::<Vec<_>>(), &body);
        on_disk(read).await.map_err(unknown)
    }

    /// Refuses texts that are too long for their passages.
    fn require_fits(&self, app: &App, texts: &[String]) -> Result<(), CommandError> {
        // What is written at the end becomes passages of its own.
        let grows = |passage: &OpenPassage, text: &str| {
            let is_last = self.passages.last().is_some_and(|last| last.position == passage.position);
            self.is_to_the_end && is_last && text.starts_with(&passage.text)
        };
        let changed = self.passages.iter().zip(texts);
        let changed = changed.filter(|(passage, text)| passage.text != **text && !grows(passage, text));
        for (passage, text) in changed {
            app.fits_node(&format!("the text of {}", passage.short_id), text, false)?;
        }
        Ok(())
    }

    /// Whether the texts say something, or it is meant that they say nothing.
    fn are_meant(&self, app: &App, texts: &[String]) -> bool {
        let what = match self.passages.len() {
            1 => "the only passage".to_owned(),
            count => format!("all {count} passages"),
        };
        is_meant(app, &self.text(), &texts.concat(), &what)
    }
}

/// A version as it is shown now.
pub(super) fn edited(rows: &dyn TreeReader, node: NodeId) -> Result<Edited, loom::RowError> {
    let row = rows.node(node)?.ok_or_else(|| loom::RowError::missing("node", node))?;
    Ok(Edited {
        node: row.node.id,
        position: row.node.position,
        edited_from: row.node.edited_from,
        short_id: row.short_id,
        tail: None,
    })
}

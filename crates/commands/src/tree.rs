//! The `tree` commands: making, reading and changing trees.
//!
//! Every change goes through [`App::change`], so that it is one planned operation, whatever surface asked for it.
//! Every read is a function over rows, run once in one snapshot, and costs what it shows: a page of the path, a
//! page of the log, the texts that are compared (spec: loom §3 *Windowed access*). A command that asks a model,
//! proves something or removes for good has its own module.

mod branch;
mod compact;
mod compare;
mod editing;
mod first_passages;
mod history;
mod library;
mod mark;
mod narration;
mod passages;
mod search;
mod show;
mod siblings;
mod snippet;
mod telling;
mod travel;
mod trust;
mod view;
mod wording;
mod words;
mod write;

use futures_util::future::BoxFuture;
use loom::{PositionId, Role, RowError, TreeId, TreeReader, ViewName};

use crate::app::App;
use crate::args::tree::{StepArgs, TreeCommand};
use crate::error::CommandError;
use crate::file_changes;
use crate::results::CommandOutcome;
use crate::rights::Asker;

pub(crate) use compact::{NOTHING_TO_COMPACT, compact};
pub use editing::edit_files;
pub(crate) use history::step;
pub(crate) use search::search;
pub(crate) use siblings::{NO_CHOICE, sibling_numbers, with_followed};
pub use telling::WordChange;
pub(crate) use telling::{answer_place, first_words, shown_at, tree as tree_named, tree_argument};
pub(crate) use travel::{SiblingChoice, reach};
pub(crate) use trust::{TrustChoice, tainting, trust_in, trust_nodes};

/// Runs a command on trees that needs no model.
///
/// # Errors
/// As each command says; a tree, node or view that is not there is `not_found`.
pub(crate) fn run<'a>(
    app: &'a App,
    asker: &'a Asker,
    command: TreeCommand,
) -> BoxFuture<'a, Result<CommandOutcome, CommandError>> {
    Box::pin(async move {
        match command {
            TreeCommand::New(args) => library::new(app, asker, args).await,
            TreeCommand::List(args) => library::list(app, asker, args).await,
            TreeCommand::Rename(args) => library::rename(app, asker, args).await,
            TreeCommand::Delete(args) => library::archive(app, asker, &args, true).await,
            TreeCommand::Undelete(args) => library::archive(app, asker, &args, false).await,
            TreeCommand::Show(args) => show::show(app, asker, args).await,
            TreeCommand::Text(args) => compare::text(app, asker, args).await,
            TreeCommand::Compare(args) => compare::compare(app, asker, args).await,
            TreeCommand::Append(args) => write::append(app, asker, args).await,
            TreeCommand::Draft(args) if args.text.is_none() => mark::stored_draft(app, asker, args).await,
            TreeCommand::Draft(args) => write::draft(app, asker, args).await,
            TreeCommand::Edit(args) => write::edit(app, asker, args).await,
            TreeCommand::Merge(args) => passages::merge(app, asker, args).await,
            TreeCommand::Split(args) => passages::split(app, asker, args).await,
            TreeCommand::Branch(args) => branch::branch(app, asker, args).await,
            TreeCommand::Siblings(args) => siblings::siblings(app, asker, args).await,
            TreeCommand::Versions(args) => siblings::versions(app, asker, args).await,
            TreeCommand::Bookmarks(args) => siblings::bookmarks(app, asker, args).await,
            TreeCommand::Tokens(args) => branch::tokens(app, asker, args).await,
            TreeCommand::Switch(args) => travel::switch(app, asker, args).await,
            TreeCommand::Go(args) => travel::go(app, asker, args).await,
            TreeCommand::Select(args) => travel::select(app, asker, args).await,
            TreeCommand::Keep(args) => mark::keep(app, asker, args).await,
            TreeCommand::Prune(args) => mark::flag(app, asker, args, loom::Op::Prune).await,
            TreeCommand::Restore(args) => mark::flag(app, asker, args, loom::Op::Restore).await,
            TreeCommand::Exclude(args) => mark::flag(app, asker, args, loom::Op::Exclude).await,
            TreeCommand::Include(args) => mark::flag(app, asker, args, loom::Op::Include).await,
            TreeCommand::Bookmark(args) => mark::bookmark(app, asker, args).await,
            TreeCommand::Tag(args) => mark::tag(app, asker, args).await,
            TreeCommand::Annotate(args) => mark::annotate(app, asker, args).await,
            TreeCommand::Head(args) => mark::head(app, asker, args).await,
            TreeCommand::Note(args) => mark::note(app, asker, args).await,
            TreeCommand::Compact(args) => compact(app, asker, args).await,
            TreeCommand::Undo(StepArgs { tree, files: true }) => {
                file_changes::step(app, asker, app.tree_named(asker, &tree.tree).await?, false).await
            }
            TreeCommand::Redo(StepArgs { tree, files: true }) => {
                file_changes::step(app, asker, app.tree_named(asker, &tree.tree).await?, true).await
            }
            TreeCommand::Undo(args) => history::step_in_tree(app, asker, args, loom::Op::Undo).await,
            TreeCommand::Redo(args) => history::step_in_tree(app, asker, args, loom::Op::Redo).await,
            TreeCommand::Log(args) => history::log(app, asker, args).await,
            TreeCommand::View(args) => view::view(app, asker, args.action).await,
            TreeCommand::Search(args) => search(app, asker, args).await,
            TreeCommand::Generate(_)
            | TreeCommand::Regenerate(_)
            | TreeCommand::Verify(_)
            | TreeCommand::Seal(_)
            | TreeCommand::Trust(_)
            | TreeCommand::Purge(_)
            | TreeCommand::Export(_)
            | TreeCommand::Import(_) => Err(CommandError::usage(
                "this command is not one of these",
                "give it to the table of commands",
            )),
        }
    })
}

/// Reads rows of a tree in one snapshot, with the tip of a view that must exist.
async fn look<T: Send + 'static>(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    view: &ViewName,
    f: impl FnOnce(&dyn TreeReader, PositionId) -> Result<T, RowError> + Send + 'static,
) -> Result<T, CommandError> {
    let name = view.clone();
    let found = app.read(asker, tree, move |rows| match loom::render::tip(rows, &name) {
        Ok(tip) => f(rows, tip).map(Some),
        Err(RowError::Missing { what: "view", .. }) => Ok(None),
        Err(error) => Err(error),
    });
    let hint = "`drawloom tree view list TREE` shows the views of a tree";
    found.await?.ok_or_else(|| CommandError::not_found("view", view.as_str(), hint))
}

/// The role of a text the owner types: theirs in a dialogue, none in a document.
async fn typed_role(app: &App, asker: &Asker, tree: TreeId) -> Result<Option<Role>, CommandError> {
    let mode = app.read(asker, tree, |rows| Ok(rows.tree()?.mode)).await?;
    Ok((mode == loom::Mode::Dialogue).then_some(Role::User))
}

/// Characters a title, bookmark or tag has at most.
const LABEL_CHARS: usize = 1_000;

/// A title, bookmark or tag: one line, known secrets masked.
fn label(app: &App, what: &str, given: &str) -> Result<String, CommandError> {
    if given.chars().any(char::is_control) {
        return Err(CommandError::usage(
            format!("a {what} is one line"),
            "leave out line breaks and controls",
        ));
    }
    if !given.is_empty() && given.trim().is_empty() {
        return Err(CommandError::usage(format!("the {what} is blank"), format!("give the {what} a word")));
    }
    if given.chars().count() > LABEL_CHARS {
        let message = format!("a {what} has at most {LABEL_CHARS} characters");
        return Err(CommandError::new(
            "too_long",
            2,
            message,
            "shorten it; `drawloom tree annotate TREE NODE TEXT` takes longer remarks",
        ));
    }
    Ok(app.masked(given))
}

/// Rows of a page: at least one, at most as many as the limit says (spec: scale §4 `show_all`).
fn page_size(app: &App, limit: usize) -> Result<usize, CommandError> {
    let most = app.settings.limits.show_all;
    match limit {
        0 => Err(CommandError::usage("a page has at least one row", "give --limit a number above 0")),
        limit if limit > most => {
            app.frontend.note(&format!("a page has at most {most} rows (limits.show_all)"));
            Ok(most)
        }
        limit => Ok(limit),
    }
}

//! `cards new`: a card to be filled, in the folder of the repository.

use std::io::Write as _;
use std::path::Path;

use capabilities::{CARD_FOLDER, template};
use loom::Digest;
use text::terminal::explicit;
use workspace::trust::{InventoryItem, ItemKind, TrustAnswer, WorkspaceOrigin};
use workspace::{FileError, FileProblem, RelativePath, Root};

use super::within_reach::repo_of;
use crate::app::App;
use crate::args::cards::NewCardArgs;
use crate::error::CommandError;
use crate::judged_workspace::JudgedWorkspace;
use crate::results::cards::CardWritten;
use crate::results::{CommandOutcome, Told};
use crate::rights::Asker;
use crate::skills::path_shown;
use crate::workspaces::keep;

/// `cards new`.
///
/// # Errors
/// It is no id, there is no workspace, something has the name of the file, or it cannot be written.
pub(super) async fn new(
    app: &App,
    asker: &Asker,
    args: &NewCardArgs,
) -> Result<CommandOutcome, CommandError> {
    let text = template(&args.id, args.description.as_deref()).ok_or_else(|| {
        CommandError::usage(
            format!("{} is no id of a card", explicit(&args.id)),
            "take up to 64 small letters a-z, digits and hyphens, and begin with no hyphen",
        )
    })?;
    let judged = JudgedWorkspace::now(app, asker).await?.ok_or_else(|| {
        CommandError::usage("there is no workspace here", "name one: `drawloom --workspace DIR cards new ID`")
    })?;
    let workspace = judged.looked.root.path();
    let root = Root::open(&repo_of(app, workspace), &app.guard)
        .map_err(|error| CommandError::file_argument(&error))?;
    let folder = RelativePath::parse(CARD_FOLDER);
    let file = folder.and_then(|folder| Ok((folder.join(format!("{}.md", args.id))?, folder)));
    let (file, folder) = file.map_err(|problem| CommandError::usage(problem.to_string(), ""))?;
    write(&root, (&folder, &file), text.as_bytes()).map_err(|error| not_written(app, &root, &error))?;
    accept(app, asker, &judged, (root.path(), &file), text.as_bytes()).await?;
    let path = path_shown(app, &root.path().join(file.as_path()));
    let sentence = format!("{path} is to be filled; `drawloom cards check` says what its readers would miss");
    Ok(CommandOutcome::CardWritten(Told { result: CardWritten { id: args.id.clone(), path }, sentence }))
}

fn write(root: &Root, (folder, file): (&RelativePath, &RelativePath), text: &[u8]) -> Result<(), FileError> {
    root.create_folder(folder)?;
    let mut made = root.create_file(file)?;
    let written = made.write_all(text).and_then(|()| made.sync_all());
    written.map_err(|error| FileError { path: file.as_path().to_owned(), problem: error.into() })
}

fn not_written(app: &App, root: &Root, error: &FileError) -> CommandError {
    let path = path_shown(app, &root.path().join(&error.path));
    match &error.problem {
        FileProblem::Exists => CommandError::refused(
            "exists",
            format!("there is a file {path} already"),
            "change that one, or give the new card another id",
        ),
        problem => CommandError::refused("not_written", format!("{path}: {problem}"), "nothing was written"),
    }
}

/// Counts what was written as seen, where only what its owner saw of the workspace counts.
async fn accept(
    app: &App,
    asker: &Asker,
    judged: &JudgedWorkspace,
    (root, file): (&Path, &RelativePath),
    text: &[u8],
) -> Result<(), CommandError> {
    let JudgedWorkspace { looked, arrival, record, .. } = judged;
    let is_trusted = |record: &&workspace::trust::TrustRecord| {
        record.answer == TrustAnswer::Trust && record.id == looked.id
    };
    let Some(record) = record.as_ref().filter(is_trusted) else { return Ok(()) };
    if *arrival != WorkspaceOrigin::Discovered || looked.root.path() != root {
        return Ok(());
    }
    let mut inventory = record.inventory.clone();
    let path = file.as_path().to_owned();
    inventory.items.retain(|item| item.path != path);
    inventory.items.push(InventoryItem {
        path,
        kind: ItemKind::Card,
        bytes: text.len() as u64,
        sha256: Digest::of(text),
    });
    inventory.items.sort();
    let keeping = (app.runtime.store.as_ref(), app.runtime.masker.as_ref());
    keep(keeping, &asker.principal, (&looked.id, inventory), TrustAnswer::Trust, app.now()).await?;
    Ok(())
}

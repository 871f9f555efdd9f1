//! `handoff` (spec: continuity §1).

use std::path::Path;

use agent::wrap::{ArchivedHandoff, archived_handoffs};
use continuity::handoff::check;
use workspace::{Accept, FileError, Root};

use crate::app::App;
use crate::app::input::argument_name;
use crate::args::handoff::{HandoffCheckArgs, HandoffCommand};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::checks::TextProblem;
use crate::results::handoff::{EarlierHandoff, HandoffChecked, HandoffHistory};

/// `handoff`.
///
/// # Errors
/// The file cannot be read, or is no text; the folder of earlier handoffs cannot be read.
pub(crate) fn command(app: &App, command: &HandoffCommand) -> Result<CommandOutcome, CommandError> {
    match command {
        HandoffCommand::Check(args) => checked(app, args),
        HandoffCommand::History => history(app),
    }
}

fn history(app: &App) -> Result<CommandOutcome, CommandError> {
    let Some(folder) = app.workspace.folder.as_deref().filter(|folder| folder.is_dir()) else {
        return Ok(CommandOutcome::HandoffHistory(HandoffHistory { handoffs: Vec::new() }));
    };
    let failed = |error: FileError| CommandError::file_argument(&error);
    let root = Root::open_again(folder, &app.guard).map_err(failed)?;
    let found = archived_handoffs(&root).map_err(failed)?;
    let shown = |ArchivedHandoff { wrap, session, at, bytes, path }| {
        let path = root.path().join(path);
        EarlierHandoff { wrap, session, at, bytes, path }
    };
    let handoffs = found.into_iter().map(shown).collect();
    Ok(CommandOutcome::HandoffHistory(HandoffHistory { handoffs }))
}

fn checked(app: &App, args: &HandoffCheckArgs) -> Result<CommandOutcome, CommandError> {
    let is_standard_input = args.file == Path::new("-");
    let accept = if is_standard_input { Accept::RegularOrPipe } else { Accept::Regular };
    let bytes = app.file_bytes(&args.file, accept)?;
    let file = app.runtime.masker.mask(&argument_name(&args.file)).text.into_owned();
    let size = bytes.len();
    let text = App::utf8_of(&file, bytes)?;
    let problems: Vec<TextProblem> =
        check(&text).iter().map(|finding| TextProblem::new(&file, finding, &app.runtime.masker)).collect();
    let ok = !problems.iter().any(TextProblem::is_error);
    Ok(CommandOutcome::HandoffChecked(HandoffChecked { ok, bytes: size, problems }))
}

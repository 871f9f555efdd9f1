//! `handoff` (spec: continuity §1).

use std::path::Path;

use continuity::handoff::check;
use workspace::Accept;

use crate::app::App;
use crate::app::input::argument_name;
use crate::args::handoff::{HandoffCheckArgs, HandoffCommand};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::checks::TextProblem;
use crate::results::handoff::HandoffChecked;

/// `handoff`.
///
/// # Errors
/// The file cannot be read, or is no text.
pub(crate) fn command(app: &App, command: &HandoffCommand) -> Result<CommandOutcome, CommandError> {
    match command {
        HandoffCommand::Check(args) => checked(app, args),
    }
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

//! `handoff` (spec: continuity §1).

use std::path::Path;

use continuity::handoff::{Severity, check};
use workspace::Accept;

use crate::app::App;
use crate::app::input::argument_name;
use crate::args::handoff::{HandoffCheckArgs, HandoffCommand};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::handoff::{HandoffChecked, HandoffProblem};

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
    let findings = check(&text);
    let ok = findings.iter().all(|finding| finding.severity != Severity::Error);
    let problems = findings.into_iter().map(|finding| HandoffProblem {
        line: finding.line,
        code: finding.code.to_owned(),
        severity: finding.severity,
        why: finding.why,
    });
    Ok(CommandOutcome::HandoffChecked(HandoffChecked { ok, bytes: size, problems: problems.collect(), file }))
}

//! To be written.
use crate::app::App;
use crate::args;
use crate::error::CommandError;
use crate::results::Outcome;
use crate::rights::Asker;
/// x
pub async fn show(
    _app: &App,
    _asker: &Asker,
    _args: args::context::ShowContext,
) -> Result<Outcome, CommandError> {
    Err(CommandError::usage("not built", ""))
}
/// x
pub async fn diff(_app: &App, _asker: &Asker, _args: args::context::Diff) -> Result<Outcome, CommandError> {
    Err(CommandError::usage("not built", ""))
}
/// x
pub async fn replay(
    _app: &App,
    _asker: &Asker,
    _args: args::context::Replay,
) -> Result<Outcome, CommandError> {
    Err(CommandError::usage("not built", ""))
}

//! To be written.
use crate::app::App;
use crate::args;
use crate::error::CommandError;
use crate::results::Outcome;
use crate::rights::Asker;
/// x
pub async fn run(
    _app: &App,
    _asker: &Asker,
    _args: args::tree::TreeCommand,
) -> Result<Outcome, CommandError> {
    Err(CommandError::usage("not built", ""))
}
/// x
pub async fn search(_app: &App, _asker: &Asker, _args: args::care::Search) -> Result<Outcome, CommandError> {
    Err(CommandError::usage("not built", ""))
}

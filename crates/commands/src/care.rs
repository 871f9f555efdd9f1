//! To be written.
use crate::app::App;
use crate::args;
use crate::error::CommandError;
use crate::results::Outcome;
use crate::rights::Asker;
/// x
pub async fn forget(_app: &App, _asker: &Asker, _args: args::care::Forget) -> Result<Outcome, CommandError> {
    Err(CommandError::usage("not built", ""))
}
/// x
pub async fn backup(_app: &App, _asker: &Asker, _args: args::care::Backup) -> Result<Outcome, CommandError> {
    Err(CommandError::usage("not built", ""))
}
/// x
pub async fn restore(
    _app: &App,
    _asker: &Asker,
    _args: args::care::Restore,
) -> Result<Outcome, CommandError> {
    Err(CommandError::usage("not built", ""))
}
/// x
pub async fn trust(_app: &App, _asker: &Asker, _args: args::TreeArg) -> Result<Outcome, CommandError> {
    Err(CommandError::usage("not built", ""))
}
/// x
pub async fn purge(_app: &App, _asker: &Asker, _args: args::tree::Purge) -> Result<Outcome, CommandError> {
    Err(CommandError::usage("not built", ""))
}
/// x
pub async fn check(_app: &App, _asker: &Asker) -> Result<Outcome, CommandError> {
    Err(CommandError::usage("not built", ""))
}

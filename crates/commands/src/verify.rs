//! To be written.
use crate::app::App;
use crate::args;
use crate::error::CommandError;
use crate::results::Outcome;
use crate::rights::Asker;
/// x
pub async fn verify(_app: &App, _asker: &Asker, _args: args::tree::Verify) -> Result<Outcome, CommandError> {
    Err(CommandError::usage("not built", ""))
}
/// x
pub async fn seal(_app: &App, _asker: &Asker, _args: args::TreeArg) -> Result<Outcome, CommandError> {
    Err(CommandError::usage("not built", ""))
}

//! To be written.
use crate::app::App;
use crate::args;
use crate::error::CommandError;
use crate::results::Outcome;
use crate::rights::Asker;
/// x
pub async fn generate(
    _app: &App,
    _asker: &Asker,
    _args: args::tree::Generate,
) -> Result<Outcome, CommandError> {
    Err(CommandError::usage("not built", ""))
}
/// x
pub async fn regenerate(
    _app: &App,
    _asker: &Asker,
    _args: args::tree::Regenerate,
) -> Result<Outcome, CommandError> {
    Err(CommandError::usage("not built", ""))
}

//! To be written.
use crate::app::App;
use crate::args;
use crate::error::CommandError;
use crate::results::Outcome;
use crate::rights::Asker;
/// x
pub async fn export(_app: &App, _asker: &Asker, _args: args::tree::Export) -> Result<Outcome, CommandError> {
    Err(CommandError::usage("not built", ""))
}
/// x
pub async fn import(_app: &App, _asker: &Asker, _args: args::care::Import) -> Result<Outcome, CommandError> {
    Err(CommandError::usage("not built", ""))
}
/// x
pub(crate) fn verify_file(_app: &App, _file: &std::path::Path) -> Result<loom::verify::Report, CommandError> {
    Err(CommandError::usage("not built", ""))
}

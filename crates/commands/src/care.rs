//! The home as a whole: forget, purge, backup, restore, integrity.

mod archive;
mod backup;
pub mod backups;
mod removal;
mod restore;

pub(crate) use backup::backup;
pub(crate) use removal::{forget, purge};
pub use restore::{RestoreTo, restore};

use crate::app::App;
use crate::error::CommandError;
use crate::results::Outcome;
use crate::results::care::Checked;
use crate::rights::Asker;

/// `store check`.
pub(crate) async fn check(app: &App, asker: &Asker) -> Result<Outcome, CommandError> {
    let problems = app.store.check(&asker.principal).await?;
    Ok(Outcome::Checked(Checked { ok: problems.is_empty(), problems }))
}

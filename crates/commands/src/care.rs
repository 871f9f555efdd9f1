//! The home as a whole: forget, purge, backup, restore, integrity.

mod archive;
mod backup;
mod removal;

pub(crate) use backup::{backup, restore};
pub(crate) use removal::{forget, purge};

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

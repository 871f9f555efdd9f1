//! The home as a whole: forget, purge, backup, restore, integrity.

mod archive;
mod backup;
mod removal;

pub(crate) use backup::{backup, restore};
pub(crate) use removal::{forget, purge};

use crate::app::App;
use crate::args::TreeArg;
use crate::error::CommandError;
use crate::results::Outcome;
use crate::results::care::Checked;
use crate::rights::Asker;

/// `store check`.
pub(crate) async fn check(app: &App, asker: &Asker) -> Result<Outcome, CommandError> {
    let problems = app.store.check(&asker.principal).await?;
    Ok(Outcome::Checked(Checked { ok: problems.is_empty(), problems }))
}

/// `tree trust`: imported authors become trusted.
pub(crate) async fn trust(app: &App, asker: &Asker, args: TreeArg) -> Result<Outcome, CommandError> {
    let (tree, _) = app.tree(asker, &args).await?;
    let outside = app
        .read(asker, tree, |rows| {
            let mut after = None;
            loop {
                let page = rows.nodes_in_order(after, 256)?;
                if page.iter().any(|row| row.node.trust == loom::Trust::Outside) {
                    return Ok(true);
                }
                match page.last() {
                    Some(last) if page.len() == 256 => after = Some((last.seq, last.place)),
                    _ => return Ok(false),
                }
            }
        })
        .await?;
    if outside {
        return Err(CommandError::refused(
            "not_imported",
            "this tree holds text from outside that no import brought in",
            "only an imported tree can be trusted as a whole",
        ));
    }
    Ok(Outcome::TreeNamed(crate::results::tree::TreeNamed { tree }))
}

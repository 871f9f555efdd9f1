//! Moving about: siblings and versions.

use loom::{Op, RowError, resolve};

use super::look;
use crate::app::{App, NamedNode};
use crate::args::NodeArg;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::tree::Moved;
use crate::rights::Asker;

/// Goes to a sibling, and on to where the view last was below it.
pub(super) async fn switch(app: &App, asker: &Asker, args: NodeArg) -> Result<CommandOutcome, CommandError> {
    let named = app.node(asker, &args).await?;
    let op = Op::Switch(named.position);
    moved(app, asker, &named, op).await
}

/// Shows a version of its passage.
pub(super) async fn select(app: &App, asker: &Asker, args: NodeArg) -> Result<CommandOutcome, CommandError> {
    let named = app.node(asker, &args).await?;
    let op = Op::Select { position: named.position, version: named.node };
    moved(app, asker, &named, op).await
}

async fn moved(app: &App, asker: &Asker, named: &NamedNode, op: Op) -> Result<CommandOutcome, CommandError> {
    app.change(asker, named.tree, &named.view, op).await?;
    let view = named.view.clone();
    let found = look(app, asker, named.tree, &named.view, move |rows, tip| {
        let shown = resolve::shown(rows, &view, tip)?;
        Ok((tip, rows.node(shown)?.ok_or_else(|| RowError::missing("node", shown))?.short_id))
    });
    let (tip, short_id) = found.await?;
    Ok(CommandOutcome::Moved(Moved { tip, short_id }))
}

//! Moving about: siblings and versions.

use loom::Op;

use super::look;
use crate::app::{App, Named};
use crate::args::NodeArg;
use crate::error::CommandError;
use crate::results::Outcome;
use crate::results::tree::Moved;
use crate::rights::Asker;

/// Goes to a sibling, and on to where the view last was below it.
pub(super) async fn switch(app: &App, asker: &Asker, args: NodeArg) -> Result<Outcome, CommandError> {
    let named = app.node(asker, &args).await?;
    let op = Op::Switch(named.position);
    moved(app, asker, &named, op).await
}

/// Shows a version of its passage.
pub(super) async fn select(app: &App, asker: &Asker, args: NodeArg) -> Result<Outcome, CommandError> {
    let named = app.node(asker, &args).await?;
    let op = Op::Select { position: named.position, version: named.node };
    moved(app, asker, &named, op).await
}

async fn moved(app: &App, asker: &Asker, named: &Named, op: Op) -> Result<Outcome, CommandError> {
    app.change(asker, named.tree, &named.view, op).await?;
    let tip = look(app, asker, named.tree, &named.view, |_, tip| Ok(tip)).await?;
    Ok(Outcome::Moved(Moved { tip }))
}

//! Views: named cursors on a tree.

use loom::cell::CellScope;
use loom::render::tip;
use loom::{CellKey, Op, TreeId, ViewName};

use super::look;
use super::telling::passage_at;
use crate::app::App;
use crate::args::ViewArg;
use crate::args::tree::ViewAction;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::tree::{ViewLine, Views};
use crate::rights::Asker;

/// Lists, makes or removes views. The result is the list as it is then.
pub(super) async fn view(
    app: &App,
    asker: &Asker,
    action: ViewAction,
) -> Result<CommandOutcome, CommandError> {
    let (tree, sentence) = match action {
        ViewAction::List { tree } => (app.tree_named(asker, &tree).await?, None),
        ViewAction::New { tree, name, view } => {
            let tree = app.tree_named(asker, &tree).await?;
            let (name, from) = (named(app, &name)?, view.name()?);
            let made = Op::NewView { name: name.clone(), agent: asker.author.id.clone() };
            app.change(asker, tree, &from, made).await?;
            let of = name.clone();
            let at = look(app, asker, tree, &name, move |rows, tip| passage_at(rows, &of, tip)).await?;
            (tree, Some(format!("made the view {name}; it stands at {at}")))
        }
        ViewAction::Delete { tree, name } => {
            let tree = app.tree_named(asker, &tree).await?;
            let name = named(app, &name)?;
            app.change(asker, tree, &ViewName::default(), Op::DeleteView(name.clone())).await?;
            (tree, Some(format!("deleted the view {name}")))
        }
    };
    list(app, asker, tree, sentence).await
}

fn named(app: &App, name: &str) -> Result<ViewName, CommandError> {
    ViewArg { view: Some(app.masked(name)) }.name()
}

async fn list(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    sentence: Option<String>,
) -> Result<CommandOutcome, CommandError> {
    let views = app.read(asker, tree, |rows| {
        let mut views = Vec::new();
        for (key, cell) in rows.cells(&CellScope::Views)? {
            if let (CellKey::View { view }, Some(agent)) = (key, cell.value.as_text()) {
                let (name, tip) = (view.to_string(), tip(rows, &view)?);
                let tip_named = passage_at(rows, &view, tip)?;
                views.push(ViewLine { name, tip, tip_named, agent: agent.to_owned() });
            }
        }
        Ok(views)
    });
    Ok(CommandOutcome::Views(Views { views: views.await?, sentence }))
}

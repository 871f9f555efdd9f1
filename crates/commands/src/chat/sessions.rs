//! Sessions, listed and named.

use agent::session::Name;
use agent::{Chosen, stored};
use context::Zone;
use loom::{NodeId, RowError, Rows, ViewName, render, resolve};
use store::{Session, SessionFilter, SessionKind, StoreError};

use crate::app::App;
use crate::args::chat::SessionsCommand;
use crate::error::CommandError;
use crate::results::chat::{SessionShown, Sessions};
use crate::results::{Done, Outcome};
use crate::rights::Asker;

/// Positions looked at upwards for the last request of a session.
const LOOK_UP: usize = 8;

/// `sessions`.
pub(crate) async fn sessions(
    app: &App,
    asker: &Asker,
    command: SessionsCommand,
) -> Result<Outcome, CommandError> {
    match command {
        SessionsCommand::List { archived, all } => {
            let workspace = (!all).then(|| app.workspace.key.clone());
            let filter = SessionFilter { workspace, name: None, archived };
            let mut found = app.store.sessions(&asker.principal, filter).await?;
            found.retain(|session| session.kind != SessionKind::Temporary);
            let mut sessions = Vec::new();
            for session in found {
                sessions.push(shown(app, asker, session).await?);
            }
            Ok(Outcome::Sessions(Sessions { sessions }))
        }
        SessionsCommand::Show { name } => {
            let session = named(app, asker, &name, false).await?;
            Ok(Outcome::Session(shown(app, asker, session).await?))
        }
        SessionsCommand::Rename { name, to } => {
            let session = named(app, asker, &name, false).await?;
            let to = Name::new(&to)?;
            let renamed = app.store.rename_session(&asker.principal, &session.id, to.as_str()).await;
            renamed.map_err(|error| taken(error, to.as_str()))?;
            Ok(Done::outcome())
        }
        SessionsCommand::Archive { name, undo } => {
            let session = named(app, asker, &name, undo).await?;
            let done = app.store.archive_session(&asker.principal, &session.id, !undo).await;
            done.map_err(|error| taken(error, &name))?;
            Ok(Done::outcome())
        }
    }
}

fn taken(error: StoreError, name: &str) -> CommandError {
    match error {
        StoreError::Exists(_) => CommandError::new(
            "exists",
            2,
            format!("there is a session {name} already"),
            "choose another name, or archive that one first",
        ),
        other => other.into(),
    }
}

/// The session of this name; an archived one, if that is asked for.
async fn named(app: &App, asker: &Asker, name: &str, archived: bool) -> Result<Session, CommandError> {
    let chosen =
        Chosen { workspace: app.workspace.key.clone(), name: Name::new(name)?, kind: SessionKind::Main };
    let found = if archived {
        let filter = SessionFilter {
            workspace: Some(chosen.workspace),
            name: Some(chosen.name.to_string()),
            archived: true,
        };
        app.store.sessions(&asker.principal, filter).await?.into_iter().find(|session| session.archived)
    } else {
        app.desk().session(&asker.principal, &chosen).await?
    };
    found.ok_or_else(|| CommandError::not_found("session", name, "`drawloom sessions list` shows them"))
}

async fn shown(app: &App, asker: &Asker, session: Session) -> Result<SessionShown, CommandError> {
    let updated = session.updated_at();
    let trees = session.trees.iter().map(|tree| tree.id).collect();
    let (mut tip, mut zone) = (None, None);
    if let Some(tree) = session.tree() {
        (tip, zone) = app.read(asker, tree, stand).await?;
    }
    let title = session.trees.last().map(|tree| tree.title.clone()).unwrap_or_default();
    Ok(SessionShown {
        tree: session.tree(),
        title,
        tip,
        zone,
        updated,
        trees,
        name: session.name,
        kind: session.kind,
        workspace: session.workspace,
        archived: session.archived,
    })
}

/// Where a session stands, and how full its window was at its last request.
fn stand(rows: &dyn Rows) -> Result<(Option<NodeId>, Option<Zone>), RowError> {
    let view = ViewName::default();
    let at = render::tip(rows, &view)?;
    let tip = resolve::shown(rows, &view, at)?;
    for position in rows.upwards(at, LOOK_UP)? {
        let original = position.id.original();
        let Some(generation) = rows.node(original)?.and_then(|row| row.node.generation) else { continue };
        let Some(generation) = rows.generation(generation)? else { continue };
        let Some(manifest) = stored::manifest(rows, generation.manifest)? else { continue };
        let usage =
            stored::response(rows, original)?.and_then(|said| said.meta.usage.or(said.reparsed.usage));
        let reported =
            usage.map(|usage| usage.input_uncached + usage.cache_read + usage.cache_write + usage.output);
        let used = reported.unwrap_or(manifest.tokens);
        return Ok((Some(tip), Some(Zone::of(used as f64 / manifest.budget.window.max(1) as f64))));
    }
    Ok((Some(tip), None))
}

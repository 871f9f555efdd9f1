//! The tools an agent may call in a session, and what they work in.

use std::sync::Arc;

use ::tools::{SeenFiles, ToolRegistry, ToolScope};
use loom::Trust;
use policy::SessionType;
use store::home::HomeDir;
use workspace::{AllowedRoots, Root};

use crate::app::App;
use crate::error::CommandError;

/// Those that the configuration names for an agent; none where it names none.
///
/// # Errors
/// It names one that there is not.
pub(super) fn of_agent(
    app: &App,
    agent: &str,
    session: SessionType,
) -> Result<Option<Arc<ToolRegistry>>, CommandError> {
    let names = app.settings.agents.get(agent).and_then(|agent| agent.tools.as_ref());
    let Some(names) = names.filter(|names| !names.is_empty()) else { return Ok(None) };
    let registry = ToolRegistry::new(scope(app, session)?, names).map_err(|why| {
        let hint = format!("`drawloom config set agents.{agent}.tools …` with those that there are");
        CommandError::usage(why, hint)
    })?;
    Ok(Some(Arc::new(registry)))
}

/// What the tools of a session work in.
///
/// # Errors
/// The home has no place for locks.
pub(crate) fn scope(app: &App, session: SessionType) -> Result<ToolScope, CommandError> {
    let workspace = &app.workspace;
    // What a folder says that was not trusted is from outside (spec: security §4).
    let (folder, trust) = match &workspace.root {
        Some(root) => (Some(root.path().to_owned()), Trust::Workspace),
        None => (workspace.folder.clone(), Trust::Outside),
    };
    let root = folder.and_then(|folder| match Root::open(&folder, &app.guard) {
        Ok(root) => Some(root),
        Err(error) => {
            app.frontend.note(&format!("tools find no workspace: {error}"));
            None
        }
    });
    let masker = Arc::clone(&app.runtime.masker);
    let locks = app.runtime.home.dir(HomeDir::Locks);
    let locks = locks.map_err(|error| CommandError::new("home", 6, error.to_string(), error.hint()))?;
    Ok(ToolScope {
        roots: AllowedRoots::within(root.into_iter().collect()),
        trust,
        masker,
        policy: app.settings.policy.clone(),
        session,
        locks,
        umask: store::home::former_umask(),
        seen: SeenFiles::default(),
    })
}

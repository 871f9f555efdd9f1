//! Sessions, listed and named.

use std::borrow::Cow;

use agent::SessionChoice;
use agent::session::Name;
use loom::cell::CellScope;
use loom::{CellKey, RowError, TreeId, TreeReader, ViewName};
use store::{LIST_PAGE, Session, SessionFilter, SessionKind, StoreError, TreeEntry, all_pages};

use super::Conversation;
use super::conversation::place;
use super::position::view_position;
use crate::app::App;
use crate::app::naming::nearest;
use crate::args::chat::{SessionArg, SessionsCommand};
use crate::error::CommandError;
use crate::results::chat::{SessionNamed, SessionShown, SessionsShown};
use crate::results::{CommandOutcome, Told};
use crate::rights::Asker;
use crate::shell;

/// `sessions`.
pub(crate) async fn sessions(
    app: &App,
    asker: &Asker,
    command: SessionsCommand,
) -> Result<CommandOutcome, CommandError> {
    match command {
        SessionsCommand::List { archived, all } => {
            let workspace = (!all).then(|| app.workspace.key.clone());
            let is_listed = |session: &Session| all || session.kind == SessionKind::Main;
            let mut sessions = Vec::new();
            let mut found = listed(app, asker, workspace, archived).await?;
            found.retain(|session| is_listed(session) && session.archived == archived);
            for session in found {
                sessions.push(shown(app, asker, session).await?);
            }
            let is_alone = sessions.is_empty() && !all;
            let elsewhere = if is_alone { elsewhere(app, asker, archived).await? } else { Vec::new() };
            Ok(CommandOutcome::Sessions(SessionsShown { sessions, everywhere: all, elsewhere }))
        }
        SessionsCommand::Show { name } => {
            let session = session_named(app, asker, &name, false).await?;
            Ok(CommandOutcome::Session(shown(app, asker, session).await?))
        }
        SessionsCommand::Rename { name, to } => {
            let session = session_named(app, asker, &name, false).await?;
            let to = session_name(app, &to)?;
            let renamed = app.runtime.store.rename_session(&asker.principal, &session.id, to.as_str()).await;
            renamed.map_err(|error| taken(error, to.as_str()))?;
            let sentence = format!("the session {} is called {to} now", session.name);
            Ok(named(to.to_string(), sentence))
        }
        SessionsCommand::Archive { name } => archive(app, asker, &name, true).await,
        SessionsCommand::Restore { name } => archive(app, asker, &name, false).await,
    }
}

/// Archives a session, or restores it from the archive.
async fn archive(
    app: &App,
    asker: &Asker,
    name: &str,
    archived: bool,
) -> Result<CommandOutcome, CommandError> {
    let session = session_named(app, asker, name, !archived).await?;
    let done = app.runtime.store.archive_session(&asker.principal, &session.id, archived).await;
    done.map_err(|error| {
        let mut error = taken(error, name);
        if error.code == "exists" {
            error.hint =
                format!("`drawloom sessions rename {} OTHER` makes room for it", shell::quoted(name));
        }
        error
    })?;
    let name = session.name;
    let sentence = match archived {
        true => {
            let typed = shell::operand(&name);
            format!("archived the session {name}: `drawloom sessions restore {typed}` brings it back")
        }
        false => format!("the session {name} is back from the archive"),
    };
    Ok(named(name, sentence))
}

fn named(name: String, sentence: String) -> CommandOutcome {
    CommandOutcome::SessionNamed(Told { result: SessionNamed { ok: true, name }, sentence })
}

/// Sessions of other workspaces, the one something was last done in first: for one that has none.
pub(super) async fn elsewhere(
    app: &App,
    asker: &Asker,
    archived: bool,
) -> Result<Vec<(String, String)>, CommandError> {
    let mut others = listed(app, asker, None, archived).await?;
    others.retain(|session| {
        let is_elsewhere = session.workspace != app.workspace.key;
        is_elsewhere && session.kind == SessionKind::Main && session.archived == archived
    });
    others.sort_by_key(|session| std::cmp::Reverse(session.updated_at()));
    Ok(others.into_iter().map(|session| (session.name, session.workspace)).collect())
}

impl Conversation {
    /// Which sessions other workspaces have, in a line, where this one has none yet.
    ///
    /// # Errors
    /// As the store says.
    pub async fn others(&self, app: &App, asker: &Asker) -> Result<Option<String>, CommandError> {
        let own = listed(app, asker, Some(app.workspace.key.clone()), false).await?;
        if self.is_temporary() || own.iter().any(|session| session.kind == SessionKind::Main) {
            return Ok(None);
        }
        let others = elsewhere(app, asker, false).await?;
        Ok((!others.is_empty()).then(|| {
            let others = in_a_line(&others);
            format!("no session in this workspace yet; others have {others}: `drawloom sessions list --all`")
        }))
    }
}

/// Sessions of other workspaces that are named in a line.
const NAMED: usize = 3;

/// Sessions of other workspaces, in a line.
pub(super) fn in_a_line(elsewhere: &[(String, String)]) -> String {
    let named = elsewhere.iter().take(NAMED).map(|(name, workspace)| match workspace.as_str() {
        "" => name.clone(),
        workspace => format!("{name} ({workspace})"),
    });
    let more = if elsewhere.len() > NAMED { ", …" } else { "" };
    format!("{}{more}", named.collect::<Vec<_>>().join(", "))
}

/// The sessions of a workspace, or of all, without temporary ones.
pub(super) async fn listed(
    app: &App,
    asker: &Asker,
    workspace: Option<String>,
    archived: bool,
) -> Result<Vec<Session>, CommandError> {
    let filter = SessionFilter { workspace, name: None, archived };
    let store = &app.runtime.store;
    let page = |after| store.sessions(&asker.principal, filter.clone(), after, LIST_PAGE);
    let mut found = all_pages(Session::place, page).await?;
    found.retain(|session| session.kind != SessionKind::Temporary);
    Ok(found)
}

pub(super) fn taken(error: StoreError, name: &str) -> CommandError {
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

/// A name of a session as it was typed; a known secret in it is masked in letters a name may have.
pub(super) fn session_name(app: &App, typed: &str) -> Result<Name, CommandError> {
    Ok(Name::new(&masked_name(app, typed))?)
}

/// A name, or several with colons between, with known secrets masked.
pub(super) fn masked_name<'a>(app: &App, typed: &'a str) -> Cow<'a, str> {
    let masked = app.runtime.masker.mask(typed);
    if masked.spans.is_empty() {
        return Cow::Borrowed(typed);
    }
    app.frontend.note("a known secret was masked in the name");
    let (mut name, mut copied) = (String::new(), 0);
    for span in &masked.spans {
        name.push_str(&masked.text[copied..span.output.start]);
        name.push_str("secret-");
        name.extend(
            span.name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' }),
        );
        copied = span.output.end;
    }
    name.push_str(&masked.text[copied..]);
    Cow::Owned(name)
}

/// The trees of a session that has begun, the oldest first, and the newest of them.
pub(crate) async fn session_trees(
    app: &App,
    asker: &Asker,
    named: &SessionArg,
) -> Result<(Vec<TreeId>, TreeId), CommandError> {
    let named = named.session.as_deref().map(|named| place(app, named)).transpose()?;
    let (name, _) = named.unwrap_or_default();
    let session = session_named(app, asker, name.as_str(), false).await?;
    match session.tree() {
        Some(newest) => Ok((session.trees.iter().map(|tree| tree.id).collect(), newest)),
        None => Err(no_session(app, asker, name.as_str(), false).await?),
    }
}

/// The session of this name; an archived one, if that is asked for.
pub(super) async fn session_named(
    app: &App,
    asker: &Asker,
    name: &str,
    archived: bool,
) -> Result<Session, CommandError> {
    let name = session_name(app, name)?;
    let chosen =
        SessionChoice { workspace: app.workspace.key.clone(), name: name.clone(), kind: SessionKind::Main };
    let found = if archived {
        let filter = SessionFilter {
            workspace: Some(chosen.workspace),
            name: Some(chosen.name.to_string()),
            archived: true,
        };
        app.runtime
            .store
            .sessions(&asker.principal, filter, None, LIST_PAGE)
            .await?
            .into_iter()
            .find(|session| session.archived)
    } else {
        app.runtime.session(&asker.principal, &chosen).await?
    };
    match found {
        Some(found) => Ok(found),
        None => Err(no_session(app, asker, name.as_str(), archived).await?),
    }
}

/// How to get at a session of another workspace. That of the home needs no folder of its own: it is where no other is.
fn goes_to(app: &App, workspace: &str) -> String {
    let own = app.runtime.home.root().join("workspace");
    let folder = match workspace {
        store::OWN_WORKSPACE if !own.is_dir() => {
            return "the home's own workspace has a session of that name: it is that of folders without another, such as \
                    yours (`cd`); or start one here"
                .to_owned();
        }
        store::OWN_WORKSPACE => own.to_string_lossy().into_owned(),
        path => path.to_owned(),
    };
    let folder = shell::quoted(&text::terminal::one_line(&folder));
    format!(
        "another workspace has a session of that name: `--workspace {folder}` goes there; or start one here"
    )
}

/// That this workspace has no session of this name, with the one that may be meant: one that is called nearly so, is
/// archived, or is of another workspace.
pub(super) async fn no_session(
    app: &App,
    asker: &Asker,
    name: &str,
    archived: bool,
) -> Result<CommandError, CommandError> {
    let here = &app.workspace.key;
    let of = |archived| async move {
        let mut found = listed(app, asker, None, archived).await?;
        found.retain(|session| session.kind == SessionKind::Main && session.archived == archived);
        Ok::<_, CommandError>(found)
    };
    let sessions = of(archived).await?;
    let (own, others): (Vec<_>, Vec<_>) =
        sessions.into_iter().partition(|session| session.workspace == *here);
    let is_empty = own.is_empty();
    let other = others.iter().find(|session| session.name == name);
    let list = if archived { "`drawloom sessions list --archived`" } else { "`drawloom sessions list`" };
    let hint = if let Some(near) = nearest(own.into_iter().map(|session| session.name), name) {
        format!("did you mean {near}? {list} shows them")
    } else if let Some(other) = other {
        goes_to(app, &other.workspace)
    } else if !archived
        && of(true).await?.iter().any(|session| session.workspace == *here && session.name == name)
    {
        format!("one of that name is archived: `drawloom sessions restore {name}`")
    } else if is_empty && !others.is_empty() {
        let others = others.into_iter().map(|session| (session.name, session.workspace));
        let others = in_a_line(&others.collect::<Vec<_>>());
        format!("this workspace has none; others have {others}: `drawloom sessions list --all` shows them")
    } else {
        format!("{list} shows them")
    };
    Ok(CommandError::not_found("session", name, hint))
}

/// Says that a session begins where another one, or a tree, may be meant by its name.
pub(super) async fn tell_near(app: &App, asker: &Asker, name: &Name) -> Result<(), CommandError> {
    let mut own = listed(app, asker, Some(app.workspace.key.clone()), false).await?;
    own.retain(|session| session.kind == SessionKind::Main);
    let near = nearest(own.into_iter().map(|session| session.name), name.as_str());
    let meant = match (near, tree_of_short_id(app, asker, name.as_str()).await) {
        (Some(near), _) => format!("did you mean {near}?"),
        (None, Some(tree)) => {
            let named = crate::tree::tree_named(&tree.short_id, &tree.title);
            format!("to read the tree {named}: `drawloom tree show {}`", tree.short_id)
        }
        (None, None) => return Ok(()),
    };
    app.frontend.note(&format!("a new session {name} begins; {meant}"));
    Ok(())
}

/// The tree of this short id; none if there is none, or it cannot be read.
async fn tree_of_short_id(app: &App, asker: &Asker, name: &str) -> Option<TreeEntry> {
    let store = &app.runtime.store;
    let tree = store.resolve(&asker.principal, name).await.ok()?;
    let entry = store.tree(&asker.principal, tree).await.ok()?;
    entry.short_id.eq_ignore_ascii_case(name).then_some(entry)
}

pub(super) async fn shown(app: &App, asker: &Asker, session: Session) -> Result<SessionShown, CommandError> {
    let updated = session.updated_at();
    let trees = session.trees.iter().map(|tree| tree.id).collect();
    let mut named_trees = Vec::new();
    for tree in &session.trees {
        let entry = app.runtime.store.tree(&asker.principal, tree.id).await?;
        named_trees.push(crate::tree::tree_named(&entry.short_id, &entry.title));
    }
    let (mut tip, mut zone, mut forks) = (None, None, Vec::new());
    if let Some(tree) = session.tree() {
        let read = |rows: &dyn TreeReader| Ok((view_position(rows, &ViewName::default())?, forks_of(rows)?));
        let (position, found) = app.read(asker, tree, read).await?;
        (tip, zone, forks) = (Some(position.node), position.last.map(|last| last.zone()), found);
    }
    let title = session.entry().map(|tree| tree.title.clone()).unwrap_or_default();
    Ok(SessionShown {
        tree: session.tree(),
        title,
        tip,
        zone,
        forks,
        updated,
        trees,
        named_trees,
        name: session.name,
        kind: session.kind,
        workspace: session.workspace,
        archived: session.archived,
    })
}

/// The forks of a session: views of its tree besides the main one.
pub(super) fn forks_of(rows: &dyn TreeReader) -> Result<Vec<String>, RowError> {
    let views = rows.cells(&CellScope::Views)?.into_iter().filter_map(|(key, cell)| match key {
        CellKey::View { view } if cell.value.as_text().is_some() => Some(view),
        _ => None,
    });
    Ok(views.filter(|view| *view != ViewName::default()).map(|view| view.to_string()).collect())
}

//! Sessions as rows.

use loom::Millis;

use crate::engine::{Lock, Row, params};

use super::reader::limit_of;
use super::trees::{ENTRY, read_entry, seen};
use crate::db::{Db, get};
use crate::error::StoreError;
use crate::listing::TreeEntry;
use crate::principal::Principal;
use crate::session::{NewSession, Session, SessionFilter, SessionId, SessionKind};

const fn code(kind: SessionKind) -> i64 {
    match kind {
        SessionKind::Main => 0,
        SessionKind::Temporary => 1,
        SessionKind::Isolated => 2,
    }
}

fn kind(code: i64) -> Result<SessionKind, StoreError> {
    match code {
        0 => Ok(SessionKind::Main),
        1 => Ok(SessionKind::Temporary),
        2 => Ok(SessionKind::Isolated),
        other => Err(StoreError::Damaged(format!("a session of kind {other}"))),
    }
}

/// Writes a session that begins.
pub(crate) fn begin(db: &Db<'_>, who: &Principal, new: &NewSession) -> Result<(), StoreError> {
    if !who.sees_all() {
        return Err(StoreError::Denied("sessions"));
    }
    db.engine().lock(Lock::Sessions)?;
    let same = db.one("SELECT 1 FROM sessions WHERE id = ?1", [&new.id.0], |_| Ok(()))?;
    if same.is_some() || taken(db, &new.workspace, &new.name, &new.id)? {
        return Err(StoreError::Exists("session"));
    }
    db.run(
        "INSERT INTO sessions (id, workspace, name, kind, created) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![&new.id.0, &new.workspace, &new.name, code(new.kind), new.at.0],
    )?;
    Ok(())
}

/// Whether another session that is not archived has this name.
fn taken(db: &Db<'_>, workspace: &str, name: &str, but: &SessionId) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM sessions WHERE workspace = ?1 AND name = ?2 AND archived = 0 AND id <> ?3";
    Ok(db.one(sql, (workspace, name, &but.0), |_| Ok(()))?.is_some())
}

/// As [`crate::Store::sessions`].
pub(crate) fn list(
    db: &Db<'_>,
    who: &Principal,
    filter: &SessionFilter,
    after: Option<(Millis, SessionId)>,
    limit: usize,
) -> Result<Vec<Session>, StoreError> {
    let sql = format!(
        "SELECT {SESSION} FROM (SELECT s.*, coalesce((SELECT max(t.updated) FROM trees t
            WHERE t.session = s.id AND t.purged = 0), s.created) AS updated FROM sessions s) s
         WHERE (workspace = ?1 OR ?1 IS NULL) AND (name = ?2 OR ?2 IS NULL) AND (archived = 0 OR ?3 = 1)
            AND (?4 = 1 OR id = ?5) AND (updated < ?6 OR updated = ?6 AND id < ?7)
         ORDER BY updated DESC, id DESC LIMIT ?8"
    );
    let (updated, id) = after.map_or((i64::MAX, String::new()), |(at, id)| (at.0, id.0));
    let (workspace, name) = (filter.workspace.as_deref(), filter.name.as_deref());
    let own = who.session().unwrap_or_default();
    let asked = params![workspace, name, filter.archived, who.sees_all(), own, updated, id, limit_of(limit)];
    let mut found = db.all(&sql, asked, read)?;
    for session in &mut found {
        session.trees = trees(db, who, &session.id)?;
    }
    Ok(found)
}

/// As [`crate::Store::session`].
pub(crate) fn one(db: &Db<'_>, who: &Principal, id: &SessionId) -> Result<Option<Session>, StoreError> {
    if !who.sees_all() && who.session() != Some(id.0.as_str()) {
        return Ok(None);
    }
    let mut found = db.one(&format!("SELECT {SESSION} FROM sessions WHERE id = ?1"), [&id.0], read)?;
    if let Some(session) = &mut found {
        session.trees = trees(db, who, id)?;
    }
    Ok(found)
}

/// The columns of [`read`].
const SESSION: &str = "id, workspace, name, kind, archived, created, settings";

/// A session without its trees.
fn read(row: &Row<'_>) -> Result<Session, StoreError> {
    Ok(Session {
        id: SessionId(get(row, 0)?),
        workspace: get(row, 1)?,
        name: get(row, 2)?,
        kind: kind(get(row, 3)?)?,
        archived: get(row, 4)?,
        created_at: Millis(get(row, 5)?),
        settings: get(row, 6)?,
        trees: Vec::new(),
    })
}

/// The trees of a session that were not purged, the oldest first.
fn trees(db: &Db<'_>, who: &Principal, id: &SessionId) -> Result<Vec<TreeEntry>, StoreError> {
    let (seen, param) = seen(who);
    let sql = format!(
        "SELECT {ENTRY} FROM trees t WHERE t.session = ?2 AND t.purged = 0 AND ({seen}) ORDER BY t.id"
    );
    db.all(&sql, (param, &id.0), read_entry)
}

/// The workspace and name of a session the principal may change.
fn find(db: &Db<'_>, who: &Principal, id: &SessionId) -> Result<(String, String), StoreError> {
    db.engine().lock(Lock::Sessions)?;
    let found = if who.sees_all() {
        let sql = "SELECT workspace, name FROM sessions WHERE id = ?1";
        db.one(sql, [&id.0], |row| Ok((get(row, 0)?, get(row, 1)?)))?
    } else {
        None
    };
    found.ok_or(StoreError::NotFound("session"))
}

/// As [`crate::Store::rename_session`].
pub(crate) fn rename(db: &Db<'_>, who: &Principal, id: &SessionId, name: &str) -> Result<(), StoreError> {
    let (workspace, _) = find(db, who, id)?;
    if taken(db, &workspace, name, id)? {
        return Err(StoreError::Exists("session"));
    }
    db.run("UPDATE sessions SET name = ?2 WHERE id = ?1", (&id.0, name))?;
    Ok(())
}

/// As [`crate::Store::archive_session`].
pub(crate) fn archive(
    db: &Db<'_>,
    who: &Principal,
    id: &SessionId,
    archived: bool,
) -> Result<(), StoreError> {
    let (workspace, name) = find(db, who, id)?;
    if !archived && taken(db, &workspace, &name, id)? {
        return Err(StoreError::Exists("session"));
    }
    db.run("UPDATE sessions SET archived = ?2 WHERE id = ?1", (&id.0, archived))?;
    Ok(())
}

/// As [`crate::Store::set_session_settings`].
pub(crate) fn set_settings(
    db: &Db<'_>,
    who: &Principal,
    id: &SessionId,
    settings: &str,
) -> Result<(), StoreError> {
    find(db, who, id)?;
    db.run("UPDATE sessions SET settings = ?2 WHERE id = ?1", (&id.0, settings))?;
    Ok(())
}

/// As [`crate::Store::remove_session`].
pub(crate) fn remove(db: &Db<'_>, who: &Principal, id: &SessionId) -> Result<(), StoreError> {
    find(db, who, id)?;
    let left = "SELECT 1 FROM trees WHERE session = ?1 AND purged = 0";
    if db.one(left, [&id.0], |_| Ok(()))?.is_some() {
        return Err(StoreError::Exists("tree of the session"));
    }
    db.run("DELETE FROM sessions WHERE id = ?1", [&id.0])?;
    Ok(())
}

/// Takes what `holds` says out of a session's name and settings. A name is replaced by one that says nothing, but for
/// those that this program gives.
pub(crate) fn forget(db: &Db<'_>, id: &SessionId, holds: impl Fn(&str) -> bool) -> Result<(), StoreError> {
    let sql = "SELECT workspace, name, kind, settings FROM sessions WHERE id = ?1";
    let found = db.one(sql, [&id.0], |row| {
        Ok((get::<String>(row, 0)?, get::<String>(row, 1)?, kind(get(row, 2)?)?, get::<String>(row, 3)?))
    })?;
    let Some((workspace, name, kind, settings)) = found else { return Ok(()) };
    if holds(&settings) {
        db.run("UPDATE sessions SET settings = '' WHERE id = ?1", [&id.0])?;
    }
    if kind == SessionKind::Temporary || name == "main" || !holds(&name) {
        return Ok(());
    }
    let numbered = (1..1000).map(|number| format!("session-{number}"));
    let plain = ["x", "y"].into_iter().flat_map(|letter| (1..=64).map(|times| letter.repeat(times)));
    for candidate in numbered.chain(plain) {
        if !holds(&candidate) && !taken(db, &workspace, &candidate, id)? {
            return db.run("UPDATE sessions SET name = ?2 WHERE id = ?1", (&id.0, candidate)).map(drop);
        }
    }
    Err(StoreError::Exists("session"))
}

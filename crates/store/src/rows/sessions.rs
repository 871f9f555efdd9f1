//! Sessions as rows.

use loom::{Millis, TreeId};
use serde_json::{Map, Value};

use crate::engine::{Lock, Params, Row, params};

use super::leases::check_guards;
use super::outcomes;
use super::reader::limit_of;
use super::trees::{ENTRY, read_entry, seen};
use crate::db::{Db, TreeKey, get, optional_id16};
use crate::error::StoreError;
use crate::fence::Guard;
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
    let page = "SELECT * FROM (SELECT s.*, coalesce((SELECT max(t.updated) FROM trees t
            WHERE t.session = s.id AND t.purged = 0), s.created) AS updated FROM sessions s) s
         WHERE (workspace = ?2 OR ?2 IS NULL) AND (name = ?3 OR ?3 IS NULL) AND (archived = 0 OR ?4 = 1)
            AND (?5 = 1 OR id = ?6) AND (updated < ?7 OR updated = ?7 AND id < ?8)
         ORDER BY updated DESC, id DESC LIMIT ?9";
    let (updated, id) = after.map_or((i64::MAX, String::new()), |(at, id)| (at.0, id.0));
    let (workspace, name) = (filter.workspace.as_deref(), filter.name.as_deref());
    let own = who.session().unwrap_or_default();
    let (seen, param) = seen(who);
    let all = who.sees_all();
    let asked = params![param, workspace, name, filter.archived, all, own, updated, id, limit_of(limit)];
    with_trees(db, &selected(page, seen), asked)
}

/// As [`crate::Store::session`].
pub(crate) fn one(db: &Db<'_>, who: &Principal, id: &SessionId) -> Result<Option<Session>, StoreError> {
    if !who.sees_all() && who.session() != Some(id.0.as_str()) {
        return Ok(None);
    }
    let page = "SELECT s.*, s.created AS updated FROM sessions s WHERE id = ?2";
    let (seen, param) = seen(who);
    Ok(with_trees(db, &selected(page, seen), (param, &id.0))?.into_iter().next())
}

/// Selects the sessions of a page, each as often as it has trees that were not purged, or once; the oldest tree first.
fn selected(page: &str, seen: &str) -> String {
    format!(
        "SELECT {ENTRY}, p.id, p.workspace, p.name, p.kind, p.archived, p.created, p.settings,
            CASE WHEN p.tree = t.pk THEN 1 ELSE 0 END FROM ({page}) p
         LEFT JOIN trees t ON t.session = p.id AND t.purged = 0 AND ({seen})
         ORDER BY p.updated DESC, p.id DESC, t.id"
    )
}

/// Where the columns of a session begin, behind those of [`ENTRY`].
const SESSION: usize = 11;

/// Sessions with their trees, of a statement that [`selected`] makes.
fn with_trees(db: &Db<'_>, sql: &str, asked: impl Params) -> Result<Vec<Session>, StoreError> {
    let mut found: Vec<Session> = Vec::new();
    db.scan(sql, asked, |row| {
        let id: String = get(row, SESSION)?;
        if found.last().is_none_or(|last| last.id.0 != id) {
            found.push(read(row)?);
        }
        if let Some(session) = found.last_mut()
            && optional_id16(row, 0)?.is_some()
        {
            let entry = read_entry(row)?;
            if get(row, SESSION + 7)? {
                session.moved_to = Some(entry.id);
            }
            session.trees.push(entry);
        }
        Ok(true)
    })?;
    Ok(found)
}

/// A session without its trees.
fn read(row: &Row<'_>) -> Result<Session, StoreError> {
    Ok(Session {
        id: SessionId(get(row, SESSION)?),
        workspace: get(row, SESSION + 1)?,
        name: get(row, SESSION + 2)?,
        kind: kind(get(row, SESSION + 3)?)?,
        archived: get(row, SESSION + 4)?,
        created_at: Millis(get(row, SESSION + 5)?),
        settings: get(row, SESSION + 6)?,
        trees: Vec::new(),
        moved_to: None,
    })
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

/// Has a session go on in a tree of its own.
pub(super) fn go_on_in(db: &Db<'_>, session: &str, tree: TreeKey) -> Result<(), StoreError> {
    db.run("UPDATE sessions SET tree = ?2 WHERE id = ?1", (session, tree.0)).map(drop)
}

/// As [`crate::Store::move_session`].
pub(crate) fn move_to(
    db: &Db<'_>,
    who: &Principal,
    id: &SessionId,
    tree: TreeId,
    guards: &[Guard],
) -> Result<(), StoreError> {
    find(db, who, id)?;
    check_guards(db, who, guards)?;
    let sql = "SELECT pk FROM trees WHERE id = ?1 AND session = ?2 AND purged = 0 AND archived = 0";
    let pk = db.one(sql, (tree.to_bytes(), &id.0), |row| get(row, 0))?;
    go_on_in(db, &id.0, TreeKey(pk.ok_or(StoreError::NotFound("tree of the session"))?))
}

/// As [`crate::Store::set_session_settings`].
pub(crate) fn set_settings(
    db: &Db<'_>,
    who: &Principal,
    id: &SessionId,
    seen: &str,
    settings: &str,
) -> Result<Option<String>, StoreError> {
    find(db, who, id)?;
    let there =
        db.one("SELECT settings FROM sessions WHERE id = ?1", [&id.0], |row| get::<String>(row, 0))?;
    if let Some(other) = there.filter(|there| there != seen) {
        return Ok(Some(other));
    }
    db.run("UPDATE sessions SET settings = ?2 WHERE id = ?1", (&id.0, settings))?;
    Ok(None)
}

/// As [`crate::Store::remove_session`].
pub(crate) fn remove(db: &Db<'_>, who: &Principal, id: &SessionId) -> Result<(), StoreError> {
    find(db, who, id)?;
    let left = "SELECT 1 FROM trees WHERE session = ?1 AND purged = 0";
    if db.one(left, [&id.0], |_| Ok(()))?.is_some() {
        return Err(StoreError::Exists("tree of the session"));
    }
    outcomes::drop_all(db, id)?;
    db.run("DELETE FROM sessions WHERE id = ?1", [&id.0])?;
    Ok(())
}

/// The settings of a session without what `holds` says, if they have any of it. Each setting goes by itself; the model
/// stays, which another one would be sent the conversation in place of, with where it was and how much it thinks, which
/// are no one's words. What cannot be read, or is no setting that is known, and goes leaves something that cannot be
/// read unless a model is left: no settings would be those of a session without a model of its own.
pub(crate) fn settings_without(settings: &str, holds: impl Fn(&str) -> bool) -> Option<String> {
    if settings.is_empty() {
        return None;
    }
    let Some(before) = read_settings(settings) else {
        return holds(settings).then(|| UNREADABLE.to_owned());
    };
    let holds = |value: &Value| match value {
        Value::String(text) => holds(text),
        other => holds(&other.to_string()),
    };
    let mut left = before.clone();
    if let Some(record) = left.get_mut(SUBAGENT) {
        clear(record, &holds);
    }
    for value in left.values_mut() {
        if let Value::Array(values) = value {
            values.retain(|value| !holds(value));
        }
    }
    left.retain(|key, value| NO_WORDS.contains(&key.as_str()) || !holds(value));
    let gone = before.keys().filter(|key| !left.contains_key(key.as_str()));
    let is_readable = left.contains_key(MODEL) || gone.into_iter().all(|key| WORDS.contains(&key.as_str()));
    (left != before)
        .then(|| if is_readable { Value::Object(left).to_string() } else { UNREADABLE.to_owned() })
}

/// The model that settings name.
pub(crate) fn model_of(settings: &str) -> Option<String> {
    read_settings(settings)?.get(MODEL)?.as_str().map(str::to_owned)
}

const MODEL: &str = "model";
/// Settings that are damaged and say nothing.
const UNREADABLE: &str = "[]";
/// Settings that stay whatever is forgotten.
const NO_WORDS: [&str; 4] = [MODEL, "place", "thinking", SUBAGENT];
/// Of whom a session is the subagent: its texts go, and what tells it from others stays.
const SUBAGENT: &str = "subagent";
const NO_TEXTS: [&str; 3] = ["parent", "owner", "state"];
/// What stands for a text that went.
const GONE: &str = "…";
/// Settings without which the others mean what they meant.
const WORDS: [&str; 6] = ["system", "temperature", "max_tokens", "seed", "preset", "files"];

/// Takes the texts of a record that hold something out of it.
fn clear(record: &mut Value, holds: &impl Fn(&Value) -> bool) {
    match record {
        Value::String(_) if holds(record) => *record = GONE.into(),
        Value::Object(values) => {
            let texts = values.iter_mut().filter(|(key, _)| !NO_TEXTS.contains(&key.as_str()));
            texts.for_each(|(_, value)| clear(value, holds));
        }
        _ => {}
    }
}

fn read_settings(settings: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(settings).ok()
}

/// Takes what `holds` says out of a session's name and settings. A name is replaced by one that says nothing, but for
/// those that this program gives.
pub(crate) fn forget(db: &Db<'_>, id: &SessionId, holds: impl Fn(&str) -> bool) -> Result<(), StoreError> {
    let sql = "SELECT workspace, name, kind, settings FROM sessions WHERE id = ?1";
    let found = db.one(sql, [&id.0], |row| {
        Ok((get::<String>(row, 0)?, get::<String>(row, 1)?, kind(get(row, 2)?)?, get::<String>(row, 3)?))
    })?;
    let Some((workspace, name, kind, settings)) = found else { return Ok(()) };
    if let Some(left) = settings_without(&settings, &holds) {
        db.run("UPDATE sessions SET settings = ?2 WHERE id = ?1", (&id.0, left))?;
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

#[cfg(test)]
mod tests {
    use super::settings_without;

    #[test]
    fn settings_that_are_no_ones_words_stay_whatever_is_forgotten() {
        let settings = r#"{"files":["/remote/high"],"model":"far/high","place":"remote","thinking":"high"}"#;
        for word in ["remote", "high", "far"] {
            let left = settings_without(settings, |text| text.contains(word));
            let kept = r#"{"files":[],"model":"far/high","place":"remote","thinking":"high"}"#;
            assert_eq!(left.as_deref(), (word != "far").then_some(kept), "{word}");
        }
        let other = settings_without(r#"{"model":"m","note":"a secret"}"#, |text| text.contains("secret"));
        assert_eq!(other.as_deref(), Some(r#"{"model":"m"}"#), "the control: what is not known goes");
    }

    #[test]
    fn a_setting_that_is_forgotten_leaves_the_others() {
        for (settings, left) in [
            (r#"{"system":"a secret"}"#, "{}"),
            (r#"{"system":"a secret","temperature":0.5}"#, r#"{"temperature":0.5}"#),
            (r#"{"model":"m","system":"a secret","temperature":0.5}"#, r#"{"model":"m","temperature":0.5}"#),
            (r#"{"files":["a secret"],"preset":"secret","seed":1}"#, r#"{"files":[],"seed":1}"#),
        ] {
            let found = settings_without(settings, |text| text.contains("secret"));
            assert_eq!(found.as_deref(), Some(left), "{settings}");
        }
    }

    #[test]
    fn of_a_subagent_the_texts_go_and_it_stays_whose_it_is() {
        let settings = r#"{"subagent":{"parent":"P","label":"a secret","owner":"O","ended":{"state":"failed","why":"no secret","tokens":1}}}"#;
        let left = settings_without(settings, |text| text.contains("secret"));
        let kept = r#"{"subagent":{"parent":"P","label":"…","owner":"O","ended":{"state":"failed","why":"…","tokens":1}}}"#;
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(left.as_deref().map(value), Some(value(kept)));
        assert_eq!(settings_without(settings, |text| text == "O"), None, "the control");
    }

    #[test]
    fn damaged_settings_that_are_forgotten_stay_damaged() {
        for settings in ["a secret", r#"["a secret"]"#, r#"{"modell":"a secret"}"#] {
            let left = settings_without(settings, |text| text.contains("secret"));
            assert_eq!(left.as_deref(), Some("[]"), "{settings}");
            assert_eq!(settings_without(settings, |_| false), None, "{settings}");
        }
    }
}

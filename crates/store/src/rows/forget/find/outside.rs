//! What stands in no tree: jobs, questions, sessions and what they noted; and names, which stay.

use std::collections::BTreeSet;

use loom::{Author, NodeId, TreeId, ViewName};

use super::super::super::{outcomes, sessions};
use super::Removal;
use crate::db::{Db, TreeKey, get, id16};
use crate::engine::{NONE, Row};
use crate::error::StoreError;
use crate::forget::Target;
use crate::job::JobId;
use crate::session::SessionId;

/// Texts of jobs: a key of their row, whether they are of the tree with id ?1, the texts.
const JOBS: &str =
    "SELECT j.pk, CASE WHEN t.id = ?1 THEN 1 ELSE 0 END, j.payload, j.result, coalesce(j.key, '')
    FROM jobs j LEFT JOIN trees t ON t.pk = j.tree";

/// As [`JOBS`].
const QUESTIONS: &str =
    "SELECT q.id, CASE WHEN t.id = ?1 THEN 1 ELSE 0 END, q.payload, coalesce(q.reason, ''),
        CASE WHEN q.answers = '[]' THEN '' ELSE q.answers END, coalesce(q.word, ''), q.asker,
        coalesce(q.answered_by, '')
    FROM questions q LEFT JOIN trees t ON t.pk = q.tree";

/// Sessions with their names and settings. Names that this program gives, to the first session and to temporary ones,
/// are no one's words.
const SESSIONS: &str =
    "SELECT id, CASE WHEN kind = 1 OR name = 'main' THEN '' ELSE name END, settings FROM sessions";

/// What is to be removed of what stands in no tree, where these nodes go.
pub(in crate::rows::forget) fn find(
    db: &Db<'_>,
    target: &Target,
    nodes: &BTreeSet<(TreeId, NodeId)>,
) -> Result<Vec<(TreeKey, Removal)>, StoreError> {
    let mut found = Vec::new();
    holding(db, target, JOBS, 5, |row| {
        found.push(Removal::Job(JobId(get(row, 0)?)));
        Ok(())
    })?;
    holding(db, target, QUESTIONS, 8, |row| {
        found.push(Removal::Question(id16(row, 0)?));
        Ok(())
    })?;
    db.scan(SESSIONS, NONE, |row| {
        let (name, settings): (String, String) = (get(row, 1)?, get(row, 2)?);
        let holds = |text: &str| target.is_in_bytes(text.as_bytes());
        if holds(&name) || sessions::settings_without(&settings, holds).is_some() {
            found.push(Removal::Session(SessionId(get(row, 0)?)));
        }
        Ok(true)
    })?;
    let noted = outcomes::going(db, target, nodes)?;
    found.extend(noted.into_iter().map(|(session, outcome)| Removal::Outcome(session, outcome)));
    Ok(found.into_iter().map(|removal| (TreeKey(0), removal)).collect())
}

/// Calls `visit` with the rows one of whose texts, in the columns from 2 to before `end`, is to go.
fn holding(
    db: &Db<'_>,
    target: &Target,
    sql: &str,
    end: usize,
    mut visit: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    db.scan(sql, [target.tree.map(TreeId::to_bytes)], |row| {
        let is_whole: bool = get(row, 1)?;
        for column in 2..end {
            let text: String = get(row, column)?;
            if !text.is_empty() && (is_whole || target.is_in_bytes(text.as_bytes())) {
                visit(row)?;
                break;
            }
        }
        Ok(true)
    })
}

/// Names that hold what is searched for and stay: those of views, authors and models, which the hashes of operations
/// and nodes are of, the model that a session was set to, and those of workspaces, which are folders.
pub(in crate::rows::forget) fn names(db: &Db<'_>, target: &Target) -> Result<Vec<String>, StoreError> {
    if target.tree.is_some() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    db.scan("SELECT DISTINCT name FROM names ORDER BY name", NONE, |row| {
        let name: String = get(row, 0)?;
        let is_ours = [ViewName::MAIN, Author::OWNER].contains(&name.as_str());
        if !is_ours && target.is_in_bytes(name.as_bytes()) {
            found.push(name);
        }
        Ok(true)
    })?;
    db.scan("SELECT DISTINCT settings FROM sessions", NONE, |row| {
        found.extend(
            sessions::model_of(&get::<String>(row, 0)?).filter(|name| target.is_in_bytes(name.as_bytes())),
        );
        Ok(true)
    })?;
    db.scan("SELECT DISTINCT workspace FROM sessions", NONE, |row| {
        let workspace: String = get(row, 0)?;
        if target.is_in_bytes(workspace.as_bytes()) {
            found.push(workspace);
        }
        Ok(true)
    })?;
    db.scan("SELECT path, inventory FROM workspaces", NONE, |row| {
        let path: Vec<u8> = get(row, 0)?;
        if target.is_in_bytes(&path) || target.is_in_bytes(get::<String>(row, 1)?.as_bytes()) {
            found.push(String::from_utf8_lossy(&path).into_owned());
        }
        Ok(true)
    })?;
    found.sort();
    found.dedup();
    Ok(found)
}

//! Integrity, copies, identity.

use loom::TreeId;

use super::events;
use super::work::fence_everything;
use crate::db::{Db, bytes_of, id16};
use crate::engine::NONE;
use crate::error::StoreError;
use crate::schema::VERSION;
use crate::store::{Identity, StoreId};

/// Problems listed at most.
const PROBLEMS: usize = 100;

/// As [`crate::Store::check`].
pub(crate) fn check(db: &Db<'_>) -> Result<Vec<String>, StoreError> {
    let mut problems = db.engine().problems()?;
    let questions = [
        (
            "operations are missing in tree",
            "SELECT t.id FROM trees t WHERE t.seq <> (SELECT count(*) FROM operations o WHERE o.tree = t.pk)
                OR t.seq <> coalesce((SELECT max(seq) FROM operations o WHERE o.tree = t.pk), 0)",
        ),
        (
            "nodes are missing in tree",
            "SELECT t.id FROM trees t WHERE t.nodes <>
                (SELECT count(*) FROM nodes n WHERE n.pk > t.pk << 32 AND n.pk < (t.pk + 1) << 32)",
        ),
        (
            "the last operation is another one than was written in tree",
            "SELECT t.id FROM trees t JOIN operations o ON o.tree = t.pk AND o.seq = t.seq WHERE o.hash <> t.head",
        ),
        (
            "the position is missing of node",
            "SELECT n.id FROM nodes n WHERE n.position IS NULL
                AND NOT EXISTS (SELECT 1 FROM positions p WHERE p.pk = n.pk)",
        ),
        (
            "the parent is missing of position",
            "SELECT n.id FROM positions p JOIN nodes n ON n.pk = p.pk WHERE p.parent IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM positions up WHERE up.pk = (p.pk & -4294967296) + p.parent)",
        ),
    ];
    for (problem, sql) in questions {
        problems
            .extend(db.all(sql, NONE, |row| Ok(format!("{problem} {}", TreeId::from_bytes(id16(row, 0)?))))?);
    }
    problems.truncate(PROBLEMS);
    Ok(problems)
}

/// As [`crate::Store::identity`].
pub(crate) fn identity(db: &Db<'_>) -> Result<Identity, StoreError> {
    let store = db.one("SELECT value FROM meta WHERE key = 'store'", NONE, |row| {
        let bytes = bytes_of(row, 0)?.try_into();
        bytes.map(StoreId).map_err(|_| StoreError::Damaged("the store's id cannot be read".to_owned()))
    })?;
    let store = store.ok_or_else(|| StoreError::Damaged("the store has no id".to_owned()))?;
    Ok(Identity { store, version: VERSION, cursor: events::last(db)? })
}

/// As [`crate::Store::renew_identity`].
pub(crate) fn renew(db: &Db<'_>, id: StoreId) -> Result<(), StoreError> {
    db.run("UPDATE meta SET value = ?1 WHERE key = 'store'", [id.0])?;
    fence_everything(db)
}

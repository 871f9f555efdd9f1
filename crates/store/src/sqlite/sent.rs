//! Generations with what they sent and what came back.

use loom::rows::StoredResponse;
use loom::{Digest, GenerationId, GenerationRow, NodeId, TreeId};
use rusqlite::{Row, params};

use super::bytes::{pack, unpack};
use super::db::{Db, bytes_of, digest, get, unsigned};
use super::events;
use super::tree_row::{TreeRef, find_mut, json, seen, to_json};
use crate::compress::Dictionary;
use crate::error::StoreError;
use crate::event::Happening;
use crate::fence::{Fence, Holder, Tenure};
use crate::generation::{
    Generation, GenerationFilter, GenerationState, NewGeneration, Outcome, SpentAfter, SpentRow, Usage,
    UsageRow,
};
use crate::principal::Principal;

pub(crate) const fn state_code(state: GenerationState) -> i64 {
    match state {
        GenerationState::Started => 0,
        GenerationState::Done => 1,
        GenerationState::Cancelled => 2,
    }
}

/// Stands in the table for a price that is not known.
const UNKNOWN_COST: i64 = -1;

fn read_state(code: i64) -> Result<GenerationState, StoreError> {
    match code {
        0 => Ok(GenerationState::Started),
        1 => Ok(GenerationState::Done),
        2 => Ok(GenerationState::Cancelled),
        other => Err(StoreError::Damaged(format!("a generation of an unknown state {other}"))),
    }
}

/// Stores bytes under their digest, once; returns their number. A removed content that is sent again is stored
/// again.
pub(crate) fn keep(db: &Db<'_>, table: &str, digest: Digest, bytes: &[u8]) -> Result<i64, StoreError> {
    let select = format!("SELECT pk FROM {table} WHERE digest = ?1");
    if let Some(pk) = db.one(&select, [digest.0], |row| get(row, 0))? {
        return Ok(pk);
    }
    db.run(&format!("INSERT INTO {table} (digest, bytes) VALUES (?1, ?2)"), (digest.0, pack(bytes, None)?))?;
    Ok(db.inserted())
}

/// Stores a generation that starts, with its manifest.
pub(crate) fn start(db: &Db<'_>, tree: TreeRef, new: &NewGeneration) -> Result<(), StoreError> {
    let row = &new.row;
    if row.tree != tree.id || row.manifest != Digest::of(&new.manifest) {
        return Err(StoreError::Malformed("a generation of another tree or manifest".to_owned()));
    }
    let id = row.id.to_bytes();
    if db.one("SELECT 1 FROM generations WHERE id = ?1", [id], |_| Ok(()))?.is_some() {
        return Err(StoreError::Exists("generation"));
    }
    let manifest = keep(db, "manifests", row.manifest, &new.manifest)?;
    for cited in &new.cited {
        let body = db.one("SELECT pk FROM bodies WHERE digest = ?1", [cited.0], |row| get::<i64>(row, 0))?;
        cite(db, manifest, body.ok_or(StoreError::NotFound("body"))?)?;
    }
    for body in &new.bodies {
        cite(db, manifest, keep(db, "bodies", body.digest, &body.bytes)?)?;
    }
    db.run(
        "INSERT INTO generations (id, tree, manifest, state, owner, fence, row) VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6)",
        params![id, tree.pk, row.manifest.0, new.tenure.owner.0, new.tenure.fence.0 as i64, to_json(row)?],
    )?;
    events::append(db, tree.pk, &Happening::Generation { id: row.id })
}

pub(crate) fn cite(db: &Db<'_>, manifest: i64, body: i64) -> Result<(), StoreError> {
    db.run("INSERT OR IGNORE INTO citations (manifest, body) VALUES (?1, ?2)", (manifest, body))?;
    Ok(())
}

/// Stores the end of a generation, if it still is its reporter's.
pub(crate) fn end(db: &Db<'_>, tree: TreeRef, outcome: &Outcome) -> Result<(), StoreError> {
    let id = outcome.generation;
    let found = db.one(
        "SELECT pk, state, owner, fence FROM generations WHERE id = ?1 AND tree = ?2",
        (id.to_bytes(), tree.pk),
        |row| Ok((get::<i64>(row, 0)?, read_state(get(row, 1)?)?, read_tenure(row, 2)?)),
    )?;
    let (pk, state, tenure) = found.ok_or(StoreError::NotFound("generation"))?;
    if state != GenerationState::Started || tenure != outcome.tenure {
        return Err(StoreError::Fenced { what: format!("generation {id}") });
    }
    db.run("UPDATE generations SET state = ?2 WHERE pk = ?1", (pk, state_code(outcome.state)))?;
    if let Some(received) = &outcome.response {
        db.run(
            "INSERT INTO responses (generation, digest, purged, metadata, bytes) VALUES (?1, ?2, 0, ?3, ?4)
             ON CONFLICT (generation) DO UPDATE SET digest = excluded.digest, purged = 0,
                metadata = excluded.metadata, bytes = excluded.bytes",
            (
                pk,
                received.body.digest.0,
                &received.metadata,
                pack(&received.body.bytes, dictionary(&received.metadata))?,
            ),
        )?;
    }
    if let Some(usage) = &outcome.usage {
        db.run(
            "INSERT INTO usage (generation, tree, at, calls, prompt, completion, cached, cost)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (generation) DO UPDATE SET at = excluded.at, calls = excluded.calls,
                prompt = excluded.prompt, completion = excluded.completion, cached = excluded.cached,
                cost = excluded.cost",
            params![
                pk,
                tree.pk,
                outcome.at.0,
                usage.calls as i64,
                usage.prompt_tokens as i64,
                usage.completion_tokens as i64,
                usage.cached_tokens as i64,
                usage.micro_cost.map_or(UNKNOWN_COST, |cost| cost as i64),
            ],
        )?;
    }
    events::append(db, tree.pk, &Happening::Generation { id })
}

fn read_tenure(row: &Row<'_>, first: usize) -> Result<Tenure, StoreError> {
    Ok(Tenure { owner: Holder(get(row, first)?), fence: Fence(unsigned(row, first + 1)?) })
}

/// As [`crate::Store::generations`].
pub(crate) fn generations(
    db: &Db<'_>,
    who: &Principal,
    filter: &GenerationFilter,
) -> Result<Vec<Generation>, StoreError> {
    let (seen, param) = seen(who);
    let sql = format!(
        "SELECT g.state, g.owner, g.fence, g.row FROM generations g JOIN trees t ON t.pk = g.tree
         WHERE {seen} AND (?2 IS NULL OR t.id = ?2) AND (?3 IS NULL OR g.state = ?3) ORDER BY g.id"
    );
    let tree = filter.tree.map(TreeId::to_bytes);
    db.all(&sql, (param, tree, filter.state.map(state_code)), |row| {
        Ok(Generation {
            state: read_state(get(row, 0)?)?,
            tenure: read_tenure(row, 1)?,
            row: json(&get::<String>(row, 3)?)?,
        })
    })
}

/// As [`crate::Store::take_over`].
pub(crate) fn take_over(
    db: &Db<'_>,
    who: &Principal,
    id: GenerationId,
    from: &Tenure,
    to: &Holder,
) -> Result<Fence, StoreError> {
    let unknown = || StoreError::NotFound("generation");
    let found = db.one(
        "SELECT pk, tree, state, owner, fence FROM generations WHERE id = ?1",
        [id.to_bytes()],
        |row| Ok((get::<i64>(row, 0)?, get::<i64>(row, 1)?, read_state(get(row, 2)?)?, read_tenure(row, 3)?)),
    )?;
    let (pk, tree, state, tenure) = found.ok_or_else(unknown)?;
    find_mut(db, who, db.tree_id(tree)?).map_err(|error| match error {
        StoreError::NotFound(_) => unknown(),
        other => other,
    })?;
    if state != GenerationState::Started || tenure != *from {
        return Err(StoreError::Fenced { what: format!("generation {id}") });
    }
    let fence = from.fence.next();
    db.run("UPDATE generations SET owner = ?2, fence = ?3 WHERE pk = ?1", (pk, &to.0, fence.0 as i64))?;
    events::append(db, tree, &Happening::Generation { id })?;
    Ok(fence)
}

/// As [`crate::Store::usage`].
pub(crate) fn usage(
    db: &Db<'_>,
    who: &Principal,
    tree: Option<TreeId>,
    since: loom::Millis,
) -> Result<Vec<UsageRow>, StoreError> {
    let (seen, param) = seen(who);
    let sql = format!(
        "SELECT g.id, t.id, u.at, u.calls, u.prompt, u.completion, u.cached, u.cost
         FROM usage u JOIN generations g ON g.pk = u.generation JOIN trees t ON t.pk = u.tree
         WHERE {seen} AND u.at >= ?2 AND (?3 IS NULL OR t.id = ?3) ORDER BY u.at, g.id"
    );
    db.all(&sql, (param, since.0, tree.map(TreeId::to_bytes)), usage_row)
}

/// As [`crate::Store::spent`].
pub(crate) fn spent(
    db: &Db<'_>,
    who: &Principal,
    since: loom::Millis,
    after: Option<SpentAfter>,
    limit: usize,
) -> Result<Vec<SpentRow>, StoreError> {
    let (seen, param) = seen(who);
    let sql = format!(
        "SELECT g.id, t.id, u.at, u.calls, u.prompt, u.completion, u.cached, u.cost, g.row,
             CASE WHEN json_valid(r.metadata) THEN json_extract(r.metadata, '$.usage.cache_write') END
         FROM usage u JOIN generations g ON g.pk = u.generation JOIN trees t ON t.pk = u.tree
             LEFT JOIN responses r ON r.generation = g.pk
         WHERE {seen} AND u.at >= ?2 AND (?3 IS NULL OR (u.at, g.id) > (?3, ?4)) ORDER BY u.at, g.id LIMIT ?5"
    );
    let (at, id) = after.map_or((None, None), |(at, id)| (Some(at.0), Some(id.to_bytes())));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    db.all(&sql, (param, since.0, at, id, limit), |row| {
        let generation: GenerationRow = json(&get::<String>(row, 8)?)?;
        let written: Option<i64> = get(row, 9)?;
        Ok(SpentRow {
            row: usage_row(row)?,
            purpose: generation.purpose,
            manifest: generation.manifest,
            cache_write: written.and_then(|written| u64::try_from(written).ok()),
        })
    })
}

/// The first eight columns of a query for usage.
fn usage_row(row: &Row<'_>) -> Result<UsageRow, StoreError> {
    Ok(UsageRow {
        generation: GenerationId::from_bytes(super::db::id16(row, 0)?),
        tree: TreeId::from_bytes(super::db::id16(row, 1)?),
        at: loom::Millis(get(row, 2)?),
        usage: Usage {
            calls: unsigned(row, 3)?,
            prompt_tokens: unsigned(row, 4)?,
            completion_tokens: unsigned(row, 5)?,
            cached_tokens: unsigned(row, 6)?,
            micro_cost: u64::try_from(get::<i64>(row, 7)?).ok(),
        },
    })
}

/// As [`loom::Rows::generations`].
pub(crate) fn of_tree(
    db: &Db<'_>,
    tree: TreeRef,
    after: Option<GenerationId>,
    limit: i64,
) -> Result<Vec<(GenerationRow, Option<Digest>)>, StoreError> {
    let sql = "SELECT g.row, r.digest FROM generations g LEFT JOIN responses r ON r.generation = g.pk
         WHERE g.tree = ?1 AND (?2 IS NULL OR g.id > ?2) ORDER BY g.id LIMIT ?3";
    db.all(sql, (tree.pk, after.map(GenerationId::to_bytes), limit), |row| {
        let response = match row.get_ref(1).map_err(super::db::failure)? {
            rusqlite::types::ValueRef::Null => None,
            _ => Some(digest(row, 1)?),
        };
        Ok((json(&get::<String>(row, 0)?)?, response))
    })
}

/// As [`loom::Rows::answer`].
pub(crate) fn answer(
    db: &Db<'_>,
    who: &Principal,
    tree: TreeRef,
    generation: GenerationId,
) -> Result<StoredResponse, StoreError> {
    let sql = "SELECT r.digest, r.bytes, r.metadata, r.purged FROM generations g
         JOIN responses r ON r.generation = g.pk WHERE g.id = ?1 AND g.tree = ?2";
    let found = db.one(sql, (generation.to_bytes(), tree.pk), read_response)?;
    found.filter(|_| who.sees_context()).ok_or(StoreError::NotFound("response"))
}

fn read_response(row: &Row<'_>) -> Result<StoredResponse, StoreError> {
    let purged: bool = get(row, 3)?;
    let bytes = if purged { Vec::new() } else { unpack(bytes_of(row, 1)?)? };
    Ok(StoredResponse { digest: digest(row, 0)?, bytes, metadata: get(row, 2)?, purged })
}

/// As [`crate::Store::response`].
pub(crate) fn response(db: &Db<'_>, who: &Principal, node: NodeId) -> Result<StoredResponse, StoreError> {
    let (seen, param) = seen(who);
    let sql = format!(
        "SELECT r.digest, r.bytes, r.metadata, r.purged FROM nodes n JOIN trees t ON t.pk = n.tree
         JOIN responses r ON r.generation = n.generation WHERE n.id = ?2 AND {seen}"
    );
    let found = db.one(&sql, (param, node.to_bytes()), read_response)?;
    found.filter(|_| who.sees_context()).ok_or(StoreError::NotFound("response"))
}

/// As [`crate::Store::manifest`].
pub(crate) fn manifest(db: &Db<'_>, who: &Principal, wanted: Digest) -> Result<Vec<u8>, StoreError> {
    let (seen, param) = seen(who);
    let sql = format!(
        "SELECT m.bytes FROM manifests m WHERE m.digest = ?2 AND EXISTS (
            SELECT 1 FROM generations g JOIN trees t ON t.pk = g.tree WHERE g.manifest = m.digest AND {seen})"
    );
    let found = db.one(&sql, (param, wanted.0), |row| unpack(bytes_of(row, 0)?))?;
    found.filter(|_| who.sees_context()).ok_or(StoreError::NotFound("manifest"))
}

/// As [`crate::Store::body`].
pub(crate) fn body(db: &Db<'_>, who: &Principal, wanted: Digest) -> Result<Vec<u8>, StoreError> {
    let (seen, param) = seen(who);
    let sql = format!(
        "SELECT b.bytes FROM bodies b WHERE b.digest = ?2 AND EXISTS (
            SELECT 1 FROM citations c JOIN manifests m ON m.pk = c.manifest
            JOIN generations g ON g.manifest = m.digest JOIN trees t ON t.pk = g.tree
            WHERE c.body = b.pk AND {seen})"
    );
    let found = db.one(&sql, (param, wanted.0), |row| unpack(bytes_of(row, 0)?))?;
    found.filter(|_| who.sees_context()).ok_or(StoreError::NotFound("body"))
}

/// As [`crate::Store::shows_blob`].
pub(crate) fn shows_blob(db: &Db<'_>, who: &Principal, wanted: Digest) -> Result<bool, StoreError> {
    let (seen, param) = seen(who);
    let sql = format!(
        "SELECT 1 FROM blobs b JOIN nodes n ON n.pk = b.node JOIN trees t ON t.pk = n.tree
         WHERE b.digest = ?2 AND {seen}"
    );
    Ok(db.one(&sql, (param, wanted.0), |_| Ok(()))?.is_some())
}

/// As [`crate::Store::blobs`].
pub(crate) fn all_blobs(db: &Db<'_>) -> Result<Vec<Digest>, StoreError> {
    db.all("SELECT DISTINCT digest FROM blobs ORDER BY digest", [], |row| digest(row, 0))
}

/// The dictionary for a response, by the dialect its metadata names.
pub(crate) fn dictionary(metadata: &str) -> Option<Dictionary> {
    let metadata: serde_json::Value = serde_json::from_str(metadata).ok()?;
    Dictionary::for_dialect(metadata.get("dialect")?.as_str()?)
}

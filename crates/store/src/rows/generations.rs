//! Generations with what they sent and what came back.

use crate::engine::{Lock, Row, Value, ValueRef, params};
use loom::reader::StoredResponse;
use loom::{Digest, GenerationId, GenerationRow, NodeId, TreeId};

use super::bytes::{pack, unpack};
use super::events;
use super::trees::{TreeRef, find_mut, json, seen, to_json};
use crate::compress::Dictionary;
use crate::db::{Db, TreeKey, bytes_of, digest, get, signed, unsigned};
use crate::error::StoreError;
use crate::event::EventKind;
use crate::fence::{Claim, Fence, LeaseOwner};
use crate::generation::{
    Generation, GenerationCost, GenerationEnd, GenerationFilter, GenerationState, LimitUse, NewGeneration,
    Reservation, Spending, SpentAfter, SpentRow, UsageRow,
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
pub(super) const UNKNOWN_COST: i64 = -1;

fn read_state(code: i64) -> Result<GenerationState, StoreError> {
    match code {
        0 => Ok(GenerationState::Started),
        1 => Ok(GenerationState::Done),
        2 => Ok(GenerationState::Cancelled),
        other => Err(StoreError::Damaged(format!("a generation of an unknown state {other}"))),
    }
}

/// Stores bytes under their digest, once. A removed content that is sent again is stored again.
pub(crate) fn keep(db: &Db<'_>, table: Sent, digest: Digest, bytes: &[u8]) -> Result<(), StoreError> {
    if is_kept(db, table, digest)? {
        return Ok(());
    }
    let sql = match table {
        Sent::Manifest => "INSERT INTO manifests (digest, bytes) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        Sent::Body => "INSERT INTO bodies (digest, bytes) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
    };
    db.run(sql, (digest.0, pack(bytes, None)?)).map(drop)
}

/// What is stored of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sent {
    Manifest,
    Body,
}

/// Whether bytes with a digest are stored.
pub(crate) fn is_kept(db: &Db<'_>, table: Sent, digest: Digest) -> Result<bool, StoreError> {
    let sql = match table {
        Sent::Manifest => "SELECT 1 FROM manifests WHERE digest = ?1",
        Sent::Body => "SELECT 1 FROM bodies WHERE digest = ?1",
    };
    Ok(db.one(sql, [digest.0], |_| Ok(()))?.is_some())
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
    keep(db, Sent::Manifest, row.manifest, &new.manifest)?;
    for cited in &new.cited {
        if !is_kept(db, Sent::Body, *cited)? {
            return Err(StoreError::NotFound("body"));
        }
        cite(db, row.manifest, *cited)?;
    }
    for body in &new.bodies {
        keep(db, Sent::Body, body.digest, &body.bytes)?;
        cite(db, row.manifest, body.digest)?;
    }
    if let Some(reservation) = &new.reservation {
        // What others begin meanwhile waits, and counts this one.
        db.engine().lock(Lock::Spending)?;
        let spending = spending(db, tree, reservation)?;
        if reservation.beside(&spending).iter().any(LimitUse::is_over) {
            return Err(StoreError::OverBudget);
        }
    }
    let (turn, reserved, tokens) = match &new.reservation {
        Some(kept) => (kept.turn.as_str(), signed(kept.micro_dollars)?, signed(kept.tokens)?),
        None => ("", 0, 0),
    };
    db.run(
        "INSERT INTO generations (id, tree, manifest, state, owner, fence, row, turn, reserved, reserved_tokens)
         VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            id,
            tree.key.0,
            row.manifest.0,
            &new.claim.owner.0,
            new.claim.fence.0 as i64,
            to_json(row)?,
            turn,
            reserved,
            tokens,
        ],
    )?;
    events::append(db, tree.key, &EventKind::Generation { id: row.id })
}

/// As [`crate::Store::spending`]. One statement, so that what ends meanwhile is counted once.
pub(crate) fn spending(
    db: &Db<'_>,
    tree: TreeRef,
    reservation: &Reservation,
) -> Result<Spending, StoreError> {
    let limits = &reservation.limits;
    let sql = "SELECT
        (SELECT CAST(coalesce(sum(u.cost), 0) AS BIGINT) FROM usage u JOIN generations g ON g.id = u.generation
            WHERE g.tree = ?1 AND g.turn = ?2 AND u.cost > 0),
        (SELECT CAST(coalesce(sum(reserved), 0) AS BIGINT) FROM generations
            WHERE tree = ?1 AND turn = ?2 AND state = 0),
        (SELECT CAST(coalesce(sum(cost), 0) AS BIGINT) FROM usage WHERE at >= ?3 AND cost > 0),
        (SELECT CAST(coalesce(sum(cost), 0) AS BIGINT) FROM usage WHERE at >= ?4 AND cost > 0),
        (SELECT CAST(coalesce(sum(prompt + completion), 0) AS BIGINT) FROM usage WHERE at >= ?3 AND cost < 0),
        (SELECT CAST(coalesce(sum(reserved), 0) AS BIGINT) FROM generations WHERE state = 0),
        (SELECT CAST(coalesce(sum(reserved_tokens), 0) AS BIGINT) FROM generations WHERE state = 0)";
    let params = params![tree.key.0, &reservation.turn, limits.day_began.0, limits.month_began.0];
    let found = db.one(sql, params, |row| {
        let number = |index| unsigned(row, index);
        Ok(Spending {
            turn: number(0)? + number(1)?,
            day: number(2)? + number(5)?,
            month: number(3)? + number(5)?,
            tokens: number(4)? + number(6)?,
        })
    })?;
    Ok(found.unwrap_or_default())
}

pub(crate) fn cite(db: &Db<'_>, manifest: Digest, body: Digest) -> Result<(), StoreError> {
    let sql = "INSERT INTO citations (manifest, body) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    db.run(sql, (manifest.0, body.0)).map(drop)
}

/// Stores the end of a generation, if it still is its reporter's.
pub(crate) fn end(db: &Db<'_>, tree: TreeRef, outcome: &GenerationEnd) -> Result<(), StoreError> {
    let (id, claim) = (outcome.generation, &outcome.claim);
    let is_over = outcome.state != GenerationState::Started;
    // One statement: somebody may stop it right now.
    let sql = "UPDATE generations SET state = ?3, reserved = CASE WHEN ?6 = 1 THEN 0 ELSE reserved END,
            reserved_tokens = CASE WHEN ?6 = 1 THEN 0 ELSE reserved_tokens END
        WHERE id = ?1 AND tree = ?2 AND state = 0 AND owner = ?4 AND fence = ?5";
    let params = params![
        id.to_bytes(),
        tree.key.0,
        state_code(outcome.state),
        &claim.owner.0,
        signed(claim.fence.0)?,
        is_over
    ];
    if db.run(sql, params)? == 0 {
        let sql = "SELECT 1 FROM generations WHERE id = ?1 AND tree = ?2";
        return Err(match db.one(sql, (id.to_bytes(), tree.key.0), |_| Ok(()))? {
            Some(()) => fenced(id),
            None => StoreError::NotFound("generation"),
        });
    }
    if let Some(received) = &outcome.response {
        db.run(
            "INSERT INTO responses (generation, digest, purged, metadata, bytes) VALUES (?1, ?2, 0, ?3, ?4)
             ON CONFLICT (generation) DO UPDATE SET digest = excluded.digest, purged = 0,
                metadata = excluded.metadata, bytes = excluded.bytes",
            (id.to_bytes(), received.digest.0, &received.metadata, &*received.packed),
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
                id.to_bytes(),
                tree.key.0,
                outcome.at.0,
                summable(usage.calls),
                summable(usage.prompt_tokens),
                summable(usage.completion_tokens),
                summable(usage.cached_tokens),
                usage.micro_cost.map_or(UNKNOWN_COST, summable),
            ],
        )?;
    }
    events::append(db, tree.key, &EventKind::Generation { id })
}

/// A count that can be summed up: a script may report any.
fn summable(count: u64) -> i64 {
    const MOST: u64 = 1 << 50;
    count.min(MOST) as i64
}

fn fenced(id: GenerationId) -> StoreError {
    StoreError::Fenced { what: format!("generation {id}") }
}

fn read_tenure(row: &Row<'_>, first: usize) -> Result<Claim, StoreError> {
    Ok(Claim { owner: LeaseOwner(get(row, first)?), fence: Fence(unsigned(row, first + 1)?) })
}

/// As [`crate::Store::generations`].
pub(crate) fn generations(
    db: &Db<'_>,
    who: &Principal,
    filter: &GenerationFilter,
    after: Option<GenerationId>,
    limit: usize,
) -> Result<Vec<Generation>, StoreError> {
    let (seen, param) = seen(who);
    // Said only where they narrow: an index is taken for a condition, not for one that may be none.
    let of_tree = if filter.tree.is_some() { "t.id = ?2" } else { "(t.id = ?2 OR ?2 IS NULL)" };
    let in_state =
        filter.state.map_or_else(|| "TRUE".to_owned(), |state| format!("g.state = {}", state_code(state)));
    let sql = format!(
        "SELECT {GENERATION} FROM generations g JOIN trees t ON t.pk = g.tree
         WHERE {seen} AND {of_tree} AND {in_state} AND (g.id > ?3 OR ?3 IS NULL) ORDER BY g.id LIMIT ?4"
    );
    let tree = filter.tree.map(TreeId::to_bytes);
    let after = after.map(GenerationId::to_bytes);
    let asked = (param, tree, after, super::reader::limit_of(limit));
    db.all(&sql, asked, read_generation)
}

/// As [`crate::Store::generation`].
pub(crate) fn generation(db: &Db<'_>, who: &Principal, id: GenerationId) -> Result<Generation, StoreError> {
    let (seen, param) = seen(who);
    let sql = format!(
        "SELECT {GENERATION} FROM generations g JOIN trees t ON t.pk = g.tree WHERE {seen} AND g.id = ?2"
    );
    let found = db.one(&sql, (param, id.to_bytes()), read_generation)?;
    found.ok_or(StoreError::NotFound("generation"))
}

/// The columns of [`read_generation`].
const GENERATION: &str = "g.state, g.owner, g.fence, g.row";

fn read_generation(row: &Row<'_>) -> Result<Generation, StoreError> {
    Ok(Generation {
        state: read_state(get(row, 0)?)?,
        claim: read_tenure(row, 1)?,
        row: json(&get::<String>(row, 3)?)?,
    })
}

/// As [`crate::Store::take_over`].
pub(crate) fn take_over(
    db: &Db<'_>,
    who: &Principal,
    id: GenerationId,
    from: &Claim,
    to: &LeaseOwner,
) -> Result<Fence, StoreError> {
    let tree = tree_of_mut(db, who, id)?;
    let fence = from.fence.next();
    let sql = "UPDATE generations SET owner = ?2, fence = ?3
        WHERE id = ?1 AND state = 0 AND owner = ?4 AND fence = ?5";
    let params = params![id.to_bytes(), &to.0, signed(fence.0)?, &from.owner.0, signed(from.fence.0)?];
    if db.run(sql, params)? == 0 {
        return Err(fenced(id));
    }
    events::append(db, tree, &EventKind::Generation { id })?;
    Ok(fence)
}

/// As [`crate::Store::unbook`].
pub(crate) fn unbook(
    db: &Db<'_>,
    who: &Principal,
    id: GenerationId,
    claim: &Claim,
) -> Result<(), StoreError> {
    tree_of_mut(db, who, id)?;
    let sql = "DELETE FROM usage WHERE generation IN
        (SELECT id FROM generations WHERE id = ?1 AND state = ?2 AND owner = ?3 AND fence = ?4)";
    let stopped = state_code(GenerationState::Cancelled);
    db.run(sql, params![id.to_bytes(), stopped, &claim.owner.0, signed(claim.fence.0)?]).map(drop)
}

/// The tree of a generation, which is to be written.
fn tree_of_mut(db: &Db<'_>, who: &Principal, id: GenerationId) -> Result<TreeKey, StoreError> {
    let unknown = || StoreError::NotFound("generation");
    let sql = "SELECT tree FROM generations WHERE id = ?1";
    let tree = db.one(sql, [id.to_bytes()], |row| Ok(TreeKey(get(row, 0)?)))?.ok_or_else(unknown)?;
    find_mut(db, who, db.tree_id(tree)?).map_err(|error| match error {
        StoreError::NotFound(_) => unknown(),
        other => other,
    })?;
    Ok(tree)
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
        "SELECT g.id, t.id, u.at, u.calls, u.prompt, u.completion, u.cached, u.cost, g.row, r.metadata
         FROM usage u JOIN generations g ON g.id = u.generation JOIN trees t ON t.pk = u.tree
             LEFT JOIN responses r ON r.generation = g.id
         WHERE {seen} AND u.at >= ?2 AND ((u.at, g.id) > (?3, ?4) OR ?3 IS NULL) ORDER BY u.at, g.id LIMIT ?5"
    );
    let (at, id) = after.map_or((None, None), |(at, id)| (Some(at.0), Some(id.to_bytes())));
    let limit = super::reader::limit_of(limit);
    db.all(&sql, (param, since.0, at, id, limit), |row| {
        let generation: GenerationRow = json(&get::<String>(row, 8)?)?;
        let metadata: Option<String> = get(row, 9)?;
        Ok(SpentRow {
            row: usage_row(row)?,
            purpose: generation.purpose,
            manifest: generation.manifest,
            cache_write: metadata.as_deref().map(cache_write).transpose()?.flatten(),
        })
    })
}

/// Tokens written to the provider's cache, as the metadata of a response says.
fn cache_write(metadata: &str) -> Result<Option<u64>, StoreError> {
    // It is gone with the response.
    if metadata.is_empty() {
        return Ok(None);
    }
    let metadata: serde_json::Value = json(metadata)?;
    Ok(metadata.get("usage").and_then(|usage| usage.get("cache_write")?.as_u64()))
}

/// The first eight columns of a query for usage.
fn usage_row(row: &Row<'_>) -> Result<UsageRow, StoreError> {
    Ok(UsageRow {
        generation: GenerationId::from_bytes(crate::db::id16(row, 0)?),
        tree: TreeId::from_bytes(crate::db::id16(row, 1)?),
        at: loom::Millis(get(row, 2)?),
        usage: GenerationCost {
            calls: unsigned(row, 3)?,
            prompt_tokens: unsigned(row, 4)?,
            completion_tokens: unsigned(row, 5)?,
            cached_tokens: unsigned(row, 6)?,
            micro_cost: u64::try_from(get::<i64>(row, 7)?).ok(),
        },
    })
}

/// As [`loom::TreeReader::generations`].
pub(crate) fn of_tree(
    db: &Db<'_>,
    tree: TreeRef,
    after: Option<GenerationId>,
    limit: i64,
) -> Result<Vec<(GenerationRow, Option<Digest>)>, StoreError> {
    let sql = "SELECT g.row, r.digest FROM generations g LEFT JOIN responses r ON r.generation = g.id
         WHERE g.tree = ?1 AND (g.id > ?2 OR ?2 IS NULL) ORDER BY g.id LIMIT ?3";
    db.all(sql, (tree.key.0, after.map(GenerationId::to_bytes), limit), |row| {
        let response = match row.value(1)? {
            ValueRef::Null => None,
            _ => Some(digest(row, 1)?),
        };
        Ok((json(&get::<String>(row, 0)?)?, response))
    })
}

/// As [`loom::TreeReader::answer`].
pub(crate) fn answer(
    db: &Db<'_>,
    who: &Principal,
    tree: TreeRef,
    generation: GenerationId,
) -> Result<StoredResponse, StoreError> {
    let sql = "SELECT r.digest, r.bytes, r.metadata, r.purged FROM generations g
         JOIN responses r ON r.generation = g.id WHERE g.id = ?1 AND g.tree = ?2";
    let found = db.one(sql, (generation.to_bytes(), tree.key.0), read_response)?;
    found.filter(|_| who.sees_context()).ok_or(StoreError::NotFound("response"))
}

/// As [`loom::TreeReader::has_answer`].
pub(crate) fn has_answer(
    db: &Db<'_>,
    who: &Principal,
    tree: TreeRef,
    generation: GenerationId,
) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM generations g
         JOIN responses r ON r.generation = g.id WHERE g.id = ?1 AND g.tree = ?2";
    let found = db.one(sql, (generation.to_bytes(), tree.key.0), |_| Ok(()))?;
    Ok(who.sees_context() && found.is_some())
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
        "SELECT r.digest, r.bytes, r.metadata, r.purged FROM nodes n JOIN trees t ON t.pk = n.pk >> 32
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
    let (sql, param) = body_sql(who, "b.bytes");
    let found = db.one(&sql, (param, wanted.0), |row| unpack(bytes_of(row, 0)?))?;
    found.filter(|_| who.sees_context()).ok_or(StoreError::NotFound("body"))
}

/// As [`loom::TreeReader::has_body`].
pub(crate) fn has_body(db: &Db<'_>, who: &Principal, wanted: Digest) -> Result<bool, StoreError> {
    let (sql, param) = body_sql(who, "1");
    let found = db.one(&sql, (param, wanted.0), |_| Ok(()))?;
    Ok(who.sees_context() && found.is_some())
}

/// What is asked of a body by its digest, with the parameter of who may see it.
fn body_sql(who: &Principal, what: &str) -> (String, Value<'static>) {
    let (seen, param) = seen(who);
    let sql = format!(
        "SELECT {what} FROM bodies b WHERE b.digest = ?2 AND EXISTS (
            SELECT 1 FROM citations c JOIN generations g ON g.manifest = c.manifest
            JOIN trees t ON t.pk = g.tree WHERE c.body = b.digest AND {seen})"
    );
    (sql, param)
}

/// As [`crate::Store::shows_blob`].
pub(crate) fn shows_blob(db: &Db<'_>, who: &Principal, wanted: Digest) -> Result<bool, StoreError> {
    let (seen, param) = seen(who);
    let sql = format!(
        "SELECT 1 FROM blobs b JOIN trees t ON t.pk = b.node >> 32
         WHERE b.digest = ?2 AND {seen}"
    );
    Ok(db.one(&sql, (param, wanted.0), |_| Ok(()))?.is_some())
}

/// As [`crate::Store::blobs`].
pub(crate) fn all_blobs(db: &Db<'_>, after: Option<Digest>, limit: usize) -> Result<Vec<Digest>, StoreError> {
    let sql = "SELECT DISTINCT digest FROM blobs WHERE digest > ?1 ORDER BY digest LIMIT ?2";
    let after = after.map_or_else(Vec::new, |after| after.0.to_vec());
    db.all(sql, (after, super::reader::limit_of(limit)), |row| digest(row, 0))
}

/// The dictionary for a response, by the dialect its metadata names.
pub(crate) fn dictionary(metadata: &str) -> Option<Dictionary> {
    let metadata: serde_json::Value = serde_json::from_str(metadata).ok()?;
    Dictionary::for_dialect(metadata.get("dialect")?.as_str()?)
}

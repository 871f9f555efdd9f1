//! What the requests of one tree came to.

use loom::TreeId;

use super::trees::find;
use crate::db::{Db, unsigned};
use crate::engine::{Row, params};
use crate::error::StoreError;
use crate::generation::KnownCost;
use crate::principal::Principal;

/// As [`crate::Store::spent_in`].
pub(crate) fn spent_in(db: &Db<'_>, who: &Principal, tree: TreeId) -> Result<KnownCost, StoreError> {
    let sql = "SELECT CAST(coalesce(sum(CASE WHEN u.cost > 0 THEN u.cost ELSE 0 END), 0) AS BIGINT),
            CAST(coalesce(sum(CASE WHEN u.cost < 0 THEN u.prompt + u.completion ELSE 0 END), 0) AS BIGINT),
            count(*), CAST(coalesce(sum(u.prompt + u.completion), 0) AS BIGINT)
        FROM generations g LEFT JOIN usage u ON u.generation = g.id WHERE g.tree = ?1";
    let tree = find(db, who, tree)?;
    let number = |row: &Row<'_>, at| Ok(u32::try_from(unsigned(row, at)?).unwrap_or(u32::MAX));
    let found = db.one(sql, params![tree.key.0], |row| {
        Ok(KnownCost {
            micro_dollars: unsigned(row, 0)?,
            unpriced_tokens: unsigned(row, 1)?,
            requests: number(row, 2)?,
            tokens: unsigned(row, 3)?,
            calls: 0,
        })
    })?;
    let sql = "SELECT count(*) FROM calls WHERE node BETWEEN ?1 AND ?2";
    let calls = db.one(sql, params![tree.key.first(), tree.key.last()], |row| number(row, 0))?;
    Ok(KnownCost { calls: calls.unwrap_or_default(), ..found.unwrap_or_default() })
}

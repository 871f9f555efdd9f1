//! Bytes that changes of files keep, and their end (spec: scale §4 `kept_files`). The changes stay, and say what was there
//! without its bytes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use loom::{Digest, Millis};

use super::file_changes::{path, state};
use super::forget::note_blob;
use super::node;
use crate::db::{Db, bytes_of, digest, get};
use crate::engine::NONE;
use crate::error::StoreError;
use crate::file_change::{KeptFile, KeptFiles};
use crate::principal::{Principal, only_owner};
use crate::rows::forget::NOTE;

/// Key in `meta` of the time at which they were looked at last.
const LOOKED: &str = "kept_files";
/// Answers whose changes are looked at in one transaction.
const PORTION: i64 = 200;
const WHAT: &str = "bytes of changed files";

/// As [`crate::Store::kept_files`].
pub(crate) fn list(db: &Db<'_>, who: &Principal) -> Result<KeptFiles, StoreError> {
    only_owner(who, WHAT)?;
    let mut kept = KeptFiles { now: db.now()?, roots: Vec::new(), files: Vec::new() };
    let (mut numbers, mut seen) = (HashMap::new(), HashSet::new());
    let sql = "SELECT c.root, c.at, c.before, c.after FROM file_changes c
         WHERE EXISTS (SELECT 1 FROM blobs b WHERE b.node = c.node) ORDER BY c.at DESC";
    db.each(sql, NONE, |row| {
        let (root, at) = (path(row, 0)?, Millis(get(row, 1)?));
        let number = *numbers.entry(root).or_insert_with_key(|root: &PathBuf| {
            kept.roots.push(root.clone());
            kept.roots.len() - 1
        });
        let blobs = [state(&get::<String>(row, 2)?)?.blob(), state(&get::<String>(row, 3)?)?.blob()];
        let new = blobs.into_iter().flatten().filter(|blob| seen.insert((number, *blob)));
        kept.files.extend(new.map(|blob| KeptFile { root: number, at, blob }));
        Ok(true)
    })?;
    Ok(kept)
}

/// As [`crate::Store::begin_file_expiry`].
pub(crate) fn begin(db: &Db<'_>, who: &Principal, every: Millis) -> Result<bool, StoreError> {
    only_owner(who, WHAT)?;
    let now = db.now()?;
    let sql = "SELECT value FROM meta WHERE key = ?1";
    let looked = db.one(sql, [LOOKED], |row| Ok(bytes_of(row, 0)?.to_vec()))?;
    let looked = looked.and_then(|bytes| bytes.try_into().ok()).map(i64::from_le_bytes);
    // A clock that was set back is no reason to wait.
    if looked.is_some_and(|looked| (looked..looked.saturating_add(every.0)).contains(&now.0)) {
        return Ok(false);
    }
    db.run(NOTE, (LOOKED, now.0.to_le_bytes().to_vec()))?;
    Ok(true)
}

/// As [`crate::Store::expire_files`].
pub(crate) fn expire(
    db: &Db<'_>,
    who: &Principal,
    until: &BTreeMap<PathBuf, Millis>,
    after: Option<i64>,
) -> Result<Option<i64>, StoreError> {
    only_owner(who, WHAT)?;
    let Some(latest) = until.values().map(|until| until.0).max() else { return Ok(None) };
    let sql = "SELECT DISTINCT c.node FROM file_changes c WHERE c.node > ?1 AND c.at <= ?2
         AND EXISTS (SELECT 1 FROM blobs b WHERE b.node = c.node) ORDER BY c.node LIMIT ?3";
    let after = after.unwrap_or(i64::MIN);
    let answers: Vec<i64> = db.all(sql, (after, latest, PORTION), |row| get(row, 0))?;
    answers.iter().try_for_each(|answer| expire_of(db, *answer, until))?;
    Ok(answers.last().copied().filter(|_| answers.len() as i64 == PORTION))
}

/// Drops the bytes that only expired changes of an answer keep: nothing that the answer shows, or a later change keeps.
fn expire_of(db: &Db<'_>, answer: i64, until: &BTreeMap<PathBuf, Millis>) -> Result<(), StoreError> {
    let sql = "SELECT content, flags FROM nodes WHERE pk = ?1";
    let content = db.one(sql, [answer], |row| node::read_content(row, 0, get(row, 1)?))?.unwrap_or_default();
    let mut stay: BTreeSet<Digest> = crate::blobs::shown_in(&content).into_iter().collect();
    let mut expired = BTreeSet::new();
    let sql = "SELECT root, at, before, after FROM file_changes WHERE node = ?1";
    db.each(sql, [answer], |row| {
        let is_expired =
            until.get(&path(row, 0)?).is_some_and(|until| get(row, 1).is_ok_and(|at: i64| at <= until.0));
        let blobs = [state(&get::<String>(row, 2)?)?.blob(), state(&get::<String>(row, 3)?)?.blob()];
        (if is_expired { &mut expired } else { &mut stay }).extend(blobs.into_iter().flatten());
        Ok(true)
    })?;
    let kept: BTreeSet<Digest> = db
        .all("SELECT digest FROM blobs WHERE node = ?1", [answer], |row| digest(row, 0))?
        .into_iter()
        .collect();
    for blob in expired.difference(&stay).filter(|blob| kept.contains(blob)) {
        db.run("DELETE FROM blobs WHERE digest = ?1 AND node = ?2", (blob.0, answer))?;
        note_blob(db, *blob)?;
    }
    Ok(())
}

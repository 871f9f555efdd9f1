//! Files from outside as rows, by the digests of their bytes. They outlive the texts they are from: who forgets a page
//! has not read the file that was made of it.

use std::collections::HashSet;

use loom::{Digest, Millis};

use crate::db::{Db, digest};
use crate::engine::NONE;
use crate::error::StoreError;
use crate::principal::{Principal, only_owner};

/// Digests that are looked up one by one.
const FEW: usize = 32;

const WHAT: &str = "files from outside";

/// Writes down that bytes come from outside.
pub(super) fn keep(db: &Db<'_>, digest: Digest, at: Millis) -> Result<(), StoreError> {
    let sql = "INSERT INTO outside_files (digest, at) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    db.run(sql, (digest.0, at.0)).map(drop)
}

/// As [`crate::Store::keep_outside_files`].
pub(crate) fn add(db: &Db<'_>, who: &Principal, digests: &[Digest]) -> Result<(), StoreError> {
    only_owner(who, WHAT)?;
    let now = db.now()?;
    digests.iter().try_for_each(|digest| keep(db, *digest, now))
}

/// As [`crate::Store::knows_outside_files`].
pub(crate) fn is_any(db: &Db<'_>, who: &Principal) -> Result<bool, StoreError> {
    only_owner(who, WHAT)?;
    Ok(db.one("SELECT 1 FROM outside_files LIMIT 1", NONE, |_| Ok(()))?.is_some())
}

/// As [`crate::Store::outside_files`].
pub(crate) fn among(db: &Db<'_>, who: &Principal, digests: &[Digest]) -> Result<Vec<Digest>, StoreError> {
    only_owner(who, WHAT)?;
    if digests.len() > FEW {
        let known: HashSet<Digest> =
            db.all("SELECT digest FROM outside_files", NONE, |row| digest(row, 0))?.into_iter().collect();
        return Ok(digests.iter().filter(|digest| known.contains(digest)).copied().collect());
    }
    let mut found = Vec::new();
    for one in digests {
        let sql = "SELECT 1 FROM outside_files WHERE digest = ?1";
        if db.one(sql, [one.0], |_| Ok(()))?.is_some() {
            found.push(*one);
        }
    }
    Ok(found)
}

/// As [`crate::Store::accept_files`].
pub(crate) fn accept(db: &Db<'_>, who: &Principal, digests: &[Digest]) -> Result<u64, StoreError> {
    only_owner(who, WHAT)?;
    let mut accepted = 0;
    for digest in digests {
        accepted += db.run("DELETE FROM outside_files WHERE digest = ?1", [digest.0])?;
    }
    Ok(accepted)
}

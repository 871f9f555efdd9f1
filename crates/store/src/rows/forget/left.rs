//! What is left to be done after rows were removed, noted in the transactions that removed them: the engine's files
//! are scrubbed, and the files of blobs are removed. Each note is another one, so that whoever did what an earlier one
//! said leaves a newer one.

use loom::Digest;

use crate::db::{Db, bytes_of, get};
use crate::engine::NONE;
use crate::error::StoreError;
use crate::forget::{ForgottenBlob, UnfinishedRemoval};
use crate::identity::random;

/// The key in `meta` of the note that the engine's files hold what was removed.
const SCRUB: &str = "scrub";

/// What the keys in `meta` of blobs that removed nodes showed begin with.
const BLOB: &str = "blob/";

/// Notes ?2 under the key ?1 of `meta`.
pub(crate) const NOTE: &str =
    "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";

/// Takes the note ?2 back, unless there is a newer one.
pub(crate) const TAKE_BACK: &str = "DELETE FROM meta WHERE key = ?1 AND value = ?2";

pub(super) fn begin_scrub(db: &Db<'_>) -> Result<(), StoreError> {
    db.run(NOTE, (SCRUB, random()?)).map(drop)
}

pub(in crate::rows) fn note_blob(db: &Db<'_>, blob: Digest) -> Result<(), StoreError> {
    db.run(NOTE, (key_of(blob), random()?)).map(drop)
}

fn key_of(blob: Digest) -> String {
    format!("{BLOB}{}", data_encoding::HEXLOWER.encode(&blob.0))
}

/// As [`crate::Store::unfinished_removal`].
pub(crate) fn unfinished(db: &Db<'_>) -> Result<UnfinishedRemoval, StoreError> {
    let mut left = UnfinishedRemoval::default();
    let sql = "SELECT key, value FROM meta WHERE key = 'scrub' OR (key >= 'blob/' AND key < 'blob0')";
    db.each(sql, NONE, |row| {
        let (key, note): (String, _) = (get(row, 0)?, bytes_of(row, 1)?.to_vec());
        match key.strip_prefix(BLOB) {
            None => left.scrub = Some(note),
            Some(name) => {
                let digest = data_encoding::HEXLOWER.decode(name.as_bytes()).ok();
                let digest = digest.and_then(|bytes| bytes.try_into().ok());
                let damaged = || StoreError::Damaged("the name of a blob cannot be read".to_owned());
                left.blobs.push(ForgottenBlob { blob: Digest(digest.ok_or_else(damaged)?), note });
            }
        }
        Ok(true)
    })?;
    Ok(left)
}

/// Notes that the engine's files are scrubbed, unless more was removed meanwhile.
pub(crate) fn end_scrub(db: &Db<'_>, note: &[u8]) -> Result<(), StoreError> {
    end(db, SCRUB, note)
}

/// Notes that the file of a blob is gone, unless another node that showed it was removed meanwhile.
pub(crate) fn blob_removed(db: &Db<'_>, removed: &ForgottenBlob) -> Result<(), StoreError> {
    end(db, &key_of(removed.blob), &removed.note)
}

fn end(db: &Db<'_>, key: &str, note: &[u8]) -> Result<(), StoreError> {
    db.run(TAKE_BACK, (key, note)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[tokio::test]
    async fn a_note_made_meanwhile_stays() {
        let store = Store::in_memory().unwrap();
        let blob = Digest::of(b"picture");
        let note = async || {
            let notes = move |db: &Db<'_>| begin_scrub(db).and_then(|()| note_blob(db, blob));
            store.write(notes).await.unwrap();
            store.read(unfinished).await.unwrap()
        };
        let (first, second) = (note().await, note().await);
        let end = |left: UnfinishedRemoval| {
            store.write(move |db| {
                end_scrub(db, left.scrub.as_deref().unwrap_or_default())?;
                left.blobs.iter().try_for_each(|blob| blob_removed(db, blob))
            })
        };
        end(first).await.unwrap();
        assert_eq!(store.read(unfinished).await.unwrap(), second);
        end(second).await.unwrap();
        assert_eq!(store.read(unfinished).await.unwrap(), UnfinishedRemoval::default());
    }
}

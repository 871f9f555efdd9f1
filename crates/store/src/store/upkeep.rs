//! Removal, checks, backups and the identity of a store.

use std::collections::BTreeSet;
use std::path::Path;

use loom::{GenerationId, Millis, TreeId};

use super::{Engine, Store};
use crate::db::Db;
use crate::engine::Time;
use crate::error::StoreError;
use crate::event::Cursor;
use crate::forget::{Forget, Forgotten, ForgottenBlob, ForgottenPlace, UnfinishedRemoval};
use crate::identity::{Backup, Identity, StoreId};
use crate::principal::{Principal, only_owner};
use crate::rows::forget::Forgetting;
use crate::rows::{attributions, events, forget, maintenance, repair};

impl Store {
    /// Every place [`Store::forget`] would remove something from. Nothing is written, and nobody waits.
    pub async fn forget_preview(
        &self,
        who: &Principal,
        what: &Forget,
    ) -> Result<Vec<ForgottenPlace>, StoreError> {
        Ok(self.begin_forgetting(who, what).await?.places())
    }

    /// Removes a node's content with what quotes it, or every occurrence of a text, for good, in small transactions,
    /// then takes it out of the engine's files. Nodes leave tombstones with their hashes. Answers under way whose
    /// requests held it are stopped; a plan made before is refused from then on.
    ///
    /// # Errors
    /// What ends it before all rows are gone; asked again, it goes on.
    pub async fn forget(&self, who: &Principal, what: &Forget, now: Millis) -> Result<Forgotten, StoreError> {
        let found = self.begin_forgetting(who, what).await?;
        let done = Box::pin(self.remove_forgotten(found, now)).await?;
        Ok(self.finish_forgetting(done).await)
    }

    /// Removes the content of a whole tree, and of what cites it, for good.
    ///
    /// # Errors
    /// As [`Store::forget`].
    pub async fn purge(&self, who: &Principal, tree: TreeId, now: Millis) -> Result<Forgotten, StoreError> {
        let found = self.begin_purge(who, tree).await?;
        let done = Box::pin(self.remove_forgotten(found, now)).await?;
        Ok(self.finish_forgetting(done).await)
    }

    /// Finds what [`Store::forget`] removes.
    pub async fn begin_forgetting(&self, who: &Principal, what: &Forget) -> Result<Forgetting, StoreError> {
        let (who, what) = (who.clone(), what.clone());
        let find = move |db: &Db<'_>| forget::begin(db, &who, &what);
        self.read_within(Time::Unbounded, find).await
    }

    /// Finds what [`Store::purge`] removes.
    pub async fn begin_purge(&self, who: &Principal, tree: TreeId) -> Result<Forgetting, StoreError> {
        let who = who.clone();
        let find = move |db: &Db<'_>| forget::begin_purge(db, &who, tree);
        self.read_within(Time::Unbounded, find).await
    }

    /// Removes the rows of what was found, and of what was written since, until there is nothing of it as of one
    /// moment. Done again, it removes what was written since that moment.
    ///
    /// # Errors
    /// As [`Store::forget`].
    pub async fn remove_forgotten(
        &self,
        mut forgetting: Forgetting,
        now: Millis,
    ) -> Result<Forgetting, StoreError> {
        forgetting.go_on();
        loop {
            while let Some(portion) = forgetting.next_portion() {
                let done = self.write(move |db| forget::remove(db, &portion, now)).await?;
                forgetting.removed(done);
                // Whoever waits to write has a turn.
                tokio::task::yield_now().await;
            }
            let again = move |db: &Db<'_>| forget::look_again(db, forgetting);
            forgetting = self.read_within(Time::Unbounded, again).await?;
            if !forgetting.has_more() {
                forgetting = self.write(move |db| forget::end(db, forgetting.clone(), now)).await?;
                if !forgetting.has_more() {
                    return Ok(forgetting);
                }
            }
        }
    }

    /// Takes what was removed out of the engine's files. Where that fails, as with a full disk, it is left to
    /// [`Store::end_forgetting`], and the outcome says so.
    pub async fn finish_forgetting(&self, done: Forgetting) -> Forgotten {
        let scrubbed = Box::pin(self.end_forgetting()).await;
        if let Err(error) = &scrubbed {
            tracing::warn!(%error, "what was forgotten is not taken out of the store's files yet");
        }
        done.forgotten(scrubbed.is_ok())
    }

    /// What is left to be done where rows were removed.
    pub async fn unfinished_removal(&self, who: &Principal) -> Result<UnfinishedRemoval, StoreError> {
        only_owner(who, "forget")?;
        self.read(forget::unfinished).await
    }

    /// Notes that the files of blobs are gone, or that a node shows them again.
    pub async fn blobs_removed(&self, who: &Principal, blobs: Vec<ForgottenBlob>) -> Result<(), StoreError> {
        only_owner(who, "forget")?;
        self.write(move |db| blobs.iter().try_for_each(|blob| forget::blob_removed(db, blob))).await
    }

    /// Takes what was forgotten out of the engine's files, if that was not done to its end. Whether there was anything.
    pub async fn end_forgetting(&self) -> Result<bool, StoreError> {
        let Some(note) = self.read(forget::unfinished).await?.scrub else { return Ok(false) };
        self.scrub().await?;
        self.write(move |db| forget::end_scrub(db, &note)).await?;
        Ok(true)
    }

    /// Whether something of any tree was removed for good after an event, or may have been.
    pub async fn removed_anywhere_since(&self, cursor: Cursor) -> Result<bool, StoreError> {
        self.read(move |db| events::removed_since(db, None, cursor)).await
    }

    pub async fn cursor(&self) -> Result<Cursor, StoreError> {
        self.read(events::last).await
    }

    /// Stops answers under way: what their owners report of them is refused from then on.
    pub async fn stop(&self, who: &Principal, generations: BTreeSet<GenerationId>) -> Result<(), StoreError> {
        let who = who.clone();
        self.write(move |db| forget::stop_all(db, &who, &generations)).await
    }

    /// Tests the store's integrity. Each problem is one line; none is the good answer.
    pub async fn check(&self, who: &Principal) -> Result<Vec<String>, StoreError> {
        only_owner(who, "check")?;
        self.read_within(Time::Unbounded, maintenance::check).await
    }

    /// Counts anew what was counted by other Unicode tables than this program's, a tree at a time, and drops what is kept
    /// of authors that is damaged or of another version; the number of trees.
    pub async fn repair(&self, who: &Principal) -> Result<u64, StoreError> {
        only_owner(who, "repair")?;
        self.write(attributions::repair).await?;
        let trees = self.read_within(Time::Unbounded, repair::outdated).await?;
        for tree in &trees {
            let tree = *tree;
            self.write(move |db| repair::recount(db, tree)).await?;
        }
        Ok(trees.len() as u64)
    }

    /// Writes a copy of the store, as of one moment, to a new file.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when the file exists; [`StoreError::Server`] on PostgreSQL, naming `pg_dump`.
    pub async fn backup(&self, who: &Principal, to: &Path) -> Result<Backup, StoreError> {
        only_owner(who, "back up")?;
        match &self.engine {
            Engine::Sqlite(database) => database.copy(to).await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => Err(crate::error::ServerError::Unsupported("back up").into()),
        }
    }

    pub async fn identity(&self, _who: &Principal) -> Result<Identity, StoreError> {
        self.read(maintenance::identity).await
    }

    /// Makes this a new store, after a restore: it gets a new id, and everything that was running is fenced.
    pub async fn renew_identity(&self, who: &Principal) -> Result<StoreId, StoreError> {
        only_owner(who, "renew the identity")?;
        let id = StoreId::random()?;
        self.write(move |db| maintenance::renew(db, id)).await?;
        Ok(id)
    }
}

//! Forgetting in a home: what the store holds, and what is received right now and in no row yet.
//!
//! A response stands in its spool as it came, split over deltas: so it is searched in its bytes and in the text read from
//! them. Whoever writes a spool hears from the store that its generation was stopped.

use std::collections::BTreeSet;
use std::fs::File;

use loom::content::plain_text;
use loom::{GenerationId, GenerationRow, TreeId};
use model::{DialectName, reparse};
use store::home::HomeDir;
use store::spool::{SpoolHeader, look};
use store::{
    Forget, Forgotten, ForgottenPlace, Generation, GenerationFilter, GenerationState, LIST_PAGE, Principal,
    SHORTEST_TEXT, StoreError, all_pages,
};
use text::mask::TextFinder;

use crate::error::AgentError;
use crate::runtime::Runtime;

impl Runtime {
    /// Everywhere [`Runtime::forget`] would remove something from. Nothing is written, and nobody waits.
    ///
    /// # Errors
    /// As the store says; when spools cannot be read.
    pub async fn forget_preview(
        &self,
        who: &Principal,
        what: &Forget,
    ) -> Result<Vec<ForgottenPlace>, AgentError> {
        let mut places: BTreeSet<ForgottenPlace> =
            self.store.forget_preview(who, what).await?.into_iter().collect();
        let holding = self.holding(&self.finder(who, what).await?).await?;
        places.extend(holding.into_iter().map(|generation| ForgottenPlace::Running { generation }));
        Ok(places.into_iter().collect())
    }

    /// Forgets in the store, and stops what is being answered with it or says it.
    ///
    /// # Errors
    /// As [`store::Store::forget`]; asked again, it goes on.
    pub async fn forget(&self, who: &Principal, what: &Forget) -> Result<Forgotten, AgentError> {
        let _lock = self.forgetting()?;
        let finder = self.finder(who, what).await?;
        let mut stopped = self.stop_holding(who, &finder).await?;
        let mut forgotten = Box::pin(self.store.forget(who, what, self.now())).await?;
        // What came meanwhile, of an answer to something else.
        stopped.extend(self.stop_holding(who, &finder).await?);
        self.remove_ended_spools(who).await?;
        let mut places: BTreeSet<ForgottenPlace> = forgotten.places.into_iter().collect();
        places.extend(stopped.into_iter().map(|generation| ForgottenPlace::Running { generation }));
        forgotten.places = places.into_iter().collect();
        Ok(forgotten)
    }

    /// Forgets a whole tree, and stops what is being answered in it.
    ///
    /// # Errors
    /// As [`Runtime::forget`].
    pub async fn purge(&self, who: &Principal, tree: TreeId) -> Result<Forgotten, AgentError> {
        let _lock = self.forgetting()?;
        let forgotten = Box::pin(self.store.purge(who, tree, self.now())).await?;
        self.remove_ended_spools(who).await?;
        Ok(forgotten)
    }

    /// Takes what a forgetting that was ended left in the store's files, unless somebody forgets right now.
    ///
    /// # Errors
    /// As the store says; what fails is done again next time.
    pub async fn end_forgetting(&self) -> Result<(), AgentError> {
        if self.store.is_read_only() || !self.store.has_to_scrub().await? {
            return Ok(());
        }
        let lock = self.forget_lock()?;
        if lock.try_lock().is_ok() {
            match Box::pin(self.store.end_forgetting()).await {
                Err(StoreError::Busy) | Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Held shared by whoever forgets.
    fn forget_lock(&self) -> Result<File, AgentError> {
        let dir = self.home.dir(HomeDir::Locks).map_err(|error| AgentError::Home(error.to_string()))?;
        let options = File::options().read(true).write(true).create(true).truncate(false).clone();
        options.open(dir.join("forget.lock")).map_err(|error| AgentError::Home(error.to_string()))
    }

    fn forgetting(&self) -> Result<File, AgentError> {
        let lock = self.forget_lock()?;
        lock.lock_shared().map_err(|error| AgentError::Home(error.to_string()))?;
        Ok(lock)
    }

    async fn finder(&self, who: &Principal, what: &Forget) -> Result<TextFinder, AgentError> {
        let mut finder = TextFinder::default();
        match what {
            Forget::Text(text) => finder.add(text),
            Forget::Node { tree, node } => {
                let node = *node;
                let row = self.read(who, *tree, move |rows| rows.node(node)).await?;
                let row = row.ok_or(StoreError::NotFound("node"))?;
                let text = plain_text(&row.node.content);
                if text.len() >= SHORTEST_TEXT {
                    finder.add(&text);
                }
            }
        }
        Ok(finder)
    }

    async fn stop_holding(
        &self,
        who: &Principal,
        finder: &TextFinder,
    ) -> Result<BTreeSet<GenerationId>, AgentError> {
        let holding = self.holding(finder).await?;
        if !holding.is_empty() {
            self.store.stop(who, holding.clone()).await?;
        }
        Ok(holding)
    }

    /// Generations that run and have received what is looked for.
    async fn holding(&self, finder: &TextFinder) -> Result<BTreeSet<GenerationId>, AgentError> {
        let spools = self.spools()?;
        let running = self.running(&Principal::Owner, None).await?;
        let received = spools.into_iter().filter(|(header, body)| has_received(finder, header, body));
        let names: BTreeSet<String> =
            received.map(|(header, _)| header.generation.as_str().to_owned()).collect();
        Ok(running.into_iter().filter(|id| names.contains(&id.to_string())).collect())
    }

    /// Removes the spools of generations that have ended, which nobody needs any more, whoever writes them still.
    async fn remove_ended_spools(&self, who: &Principal) -> Result<(), AgentError> {
        // In this order: a generation is in the store before its spool is in the folder.
        let spools = self.spools()?;
        let running = self.running(who, None).await?;
        let names: BTreeSet<String> = running.iter().map(ToString::to_string).collect();
        let dir = self.home.dir(HomeDir::Spool).map_err(spool_failed)?;
        for (header, _) in spools {
            let name = header.generation.as_str();
            if names.contains(name) {
                continue;
            }
            match std::fs::remove_file(dir.join(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(spool_failed(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn spools(&self) -> Result<Vec<(SpoolHeader, Vec<u8>)>, AgentError> {
        look(&self.home.dir(HomeDir::Spool).map_err(spool_failed)?).map_err(spool_failed)
    }

    async fn running(
        &self,
        who: &Principal,
        tree: Option<TreeId>,
    ) -> Result<BTreeSet<GenerationId>, AgentError> {
        let filter = GenerationFilter { tree, state: Some(GenerationState::Started) };
        let page = |after| self.store.generations(who, filter.clone(), after, LIST_PAGE);
        let running = all_pages(|running: &Generation| running.row.id, page).await?;
        Ok(running.into_iter().map(|generation| generation.row.id).collect())
    }

    /// Whether a generation is over, whoever ended it.
    pub(crate) async fn has_ended(&self, row: &GenerationRow) -> Result<bool, AgentError> {
        match self.store.generation(&Principal::Owner, row.id).await {
            Ok(found) => Ok(found.state != GenerationState::Started),
            Err(StoreError::NotFound(_)) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends when a generation was stopped or ended by somebody else; never, where that cannot be heard of: what it
    /// reports is refused then.
    pub(crate) async fn is_stopped(&self, row: &GenerationRow) {
        let mut newest = match self.store.newest() {
            Ok(newest) => newest,
            Err(error) => {
                tracing::warn!(%error, "whether an answer is stopped elsewhere is not heard of");
                return std::future::pending().await;
            }
        };
        loop {
            newest.mark_unchanged();
            match self.has_ended(row).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, generation = %row.id, "it is not known whether an answer is stopped");
                }
            }
            if newest.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

/// Whether what was received holds what is looked for, in its bytes or in the text read from them.
fn has_received(finder: &TextFinder, header: &SpoolHeader, body: &[u8]) -> bool {
    if finder.is_empty() || body.is_empty() {
        return false;
    }
    let streamed = header.extra.get("streamed").and_then(serde_json::Value::as_bool).unwrap_or(true);
    let said = |dialect: DialectName| {
        let parsed = reparse(dialect, body, streamed);
        parsed.choices.iter().any(|choice| {
            [choice.text(), choice.thinking(), choice.refusal()]
                .iter()
                .any(|text| finder.occurs_in(text.as_bytes()))
        })
    };
    finder.occurs_in(body) || header.dialect.parse().is_ok_and(said)
}

fn spool_failed(error: impl std::fmt::Display) -> AgentError {
    AgentError::Spool(error.to_string())
}

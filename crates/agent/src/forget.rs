//! Forgetting in a home: what the store holds, and what is received right now and in no row yet.
//!
//! A response stands in its spool as it came, split over deltas: so it is searched in its bytes and in the text read from
//! them. Whoever writes a spool hears from the store that its generation was stopped.

use std::collections::BTreeSet;
use std::fs::File;
use std::time::Duration;

use futures_util::future::BoxFuture;
use loom::content::plain_text;
use loom::{GenerationId, GenerationRow, TreeId};
use model::{DialectName, reparse};
use store::home::HomeDir;
use store::spool::{SeenSpool, SpoolError, SpoolHeader, look};
use store::{
    Forget, Forgetting, ForgottenPlace, Generation, GenerationFilter, GenerationState, LIST_PAGE, Principal,
    SHORTEST_TEXT, StoreError, all_pages,
};
use text::mask::TextFinder;

use crate::error::AgentError;
use crate::runtime::Runtime;

/// Blobs that are removed under one lock, which a call waits for that keeps what it changes.
const BLOB_PORTION: usize = 32;
/// How long the lock is left to others between two portions: more than they take to look for it.
const BETWEEN_PORTIONS: Duration = Duration::from_millis(10);

/// What came of a removal.
#[derive(Debug)]
pub struct RemovalOutcome {
    pub places: Vec<ForgottenPlace>,
    /// Files of blobs that were removed.
    pub blobs: u64,
    /// Why something is left beside the rows, which are gone: the next command that can removes it.
    pub unfinished: Vec<String>,
}

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

    /// Forgets in the store, and stops what is being answered with it or says it; then removes the files of blobs.
    ///
    /// # Errors
    /// As [`store::Store::forget`]; asked again, it goes on.
    pub async fn forget(&self, who: &Principal, what: &Forget) -> Result<RemovalOutcome, AgentError> {
        let _lock = self.forgetting().await?;
        let finder = self.finder(who, what).await?;
        let mut forgetting = self.store.begin_forgetting(who, what).await?;
        let (mut stopped, mut is_first) = (BTreeSet::new(), true);
        // What received it before it was looked for last was stopped then, or has ended, and its rows are looked for
        // after that.
        loop {
            let new = self.stop_holding(who, &finder).await?;
            let is_last = !is_first && new.is_empty();
            stopped.extend(new);
            forgetting = Box::pin(self.store.remove_forgotten(forgetting, self.now())).await?;
            if is_last {
                break;
            }
            is_first = false;
        }
        let mut outcome = self.finish(who, forgetting).await;
        let mut places: BTreeSet<ForgottenPlace> = outcome.places.into_iter().collect();
        places.extend(stopped.into_iter().map(|generation| ForgottenPlace::Running { generation }));
        outcome.places = places.into_iter().collect();
        Ok(outcome)
    }

    /// Forgets a whole tree, and stops what is being answered in it.
    ///
    /// # Errors
    /// As [`Runtime::forget`].
    pub fn purge<'a>(
        &'a self,
        who: &'a Principal,
        tree: TreeId,
    ) -> BoxFuture<'a, Result<RemovalOutcome, AgentError>> {
        Box::pin(async move {
            let _lock = self.forgetting().await?;
            let forgetting = self.store.begin_purge(who, tree).await?;
            let forgetting = Box::pin(self.store.remove_forgotten(forgetting, self.now())).await?;
            Ok(self.finish(who, forgetting).await)
        })
    }

    /// Removes what stands beside the rows, which are gone. What fails does not keep the rest from being removed.
    fn finish<'a>(&'a self, who: &'a Principal, forgetting: Forgetting) -> BoxFuture<'a, RemovalOutcome> {
        Box::pin(async move {
            let mut unfinished = Vec::new();
            let mut note = |error: AgentError| unfinished.push(error.to_string());
            self.remove_ended_spools(who).await.unwrap_or_else(&mut note);
            let blobs = self.remove_forgotten_blobs(who).await.unwrap_or_else(|error| {
                note(error);
                0
            });
            let forgotten = Box::pin(self.store.finish_forgetting(forgetting)).await;
            if !forgotten.is_scrubbed {
                unfinished.push("the store's files are in use or have no room".to_owned());
            }
            RemovalOutcome { places: forgotten.places, blobs, unfinished }
        })
    }

    /// Removes what a forgetting that was ended left in the store's files and blobs, unless somebody forgets right
    /// now.
    ///
    /// # Errors
    /// As the store says; what fails is done again next time.
    pub async fn end_forgetting(&self) -> Result<(), AgentError> {
        let who = Principal::Owner;
        if self.store.is_read_only() {
            return Ok(());
        }
        let left = self.store.unfinished_removal(&who).await?;
        if !left.has_to_scrub() && left.blobs.is_empty() {
            return Ok(());
        }
        let lock = self.forget_lock()?;
        if lock.try_lock().is_ok() {
            let blobs = self.remove_forgotten_blobs(&who).await.map(drop);
            match Box::pin(self.store.end_forgetting()).await {
                Err(StoreError::Busy) | Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            return blobs;
        }
        Ok(())
    }

    /// Removes the files of blobs that removed nodes showed and no other one shows. Returns how many there were.
    async fn remove_forgotten_blobs(&self, who: &Principal) -> Result<u64, AgentError> {
        let left = self.store.unfinished_removal(who).await?.blobs;
        let mut removed = 0;
        for (number, portion) in left.chunks(BLOB_PORTION).enumerate() {
            if number > 0 {
                // Whoever waits for the lock of the blobs has it in between.
                tokio::time::sleep(BETWEEN_PORTIONS).await;
            }
            let blobs: Vec<_> = portion.iter().map(|left| left.blob).collect();
            removed += self.remove_blobs(who, &blobs).await?;
            self.store.blobs_removed(who, portion.to_vec()).await?;
        }
        Ok(removed)
    }

    /// Held shared by whoever forgets.
    fn forget_lock(&self) -> Result<File, AgentError> {
        let dir = self.home.dir(HomeDir::Locks).map_err(lock_failed)?;
        workspace::open_lock_file(&dir.join("forget.lock")).map_err(lock_failed)
    }

    /// Waits for whoever ends a forgetting, which is soon over.
    async fn forgetting(&self) -> Result<File, AgentError> {
        let lock = self.forget_lock()?;
        let locked = tokio::task::spawn_blocking(move || lock.lock_shared().map(|()| lock)).await;
        locked.map_err(lock_failed)?.map_err(lock_failed)
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
        if finder.is_empty() {
            return Ok(BTreeSet::new());
        }
        let finder = finder.clone();
        let received = self.spools(move |spool| {
            let header = spool.header.clone();
            spool.body().is_ok_and(|body| has_received(&finder, &header, &body))
        });
        let received = received.await?;
        let running = self.running(&Principal::Owner, None).await?;
        Ok(running.into_iter().filter(|id| received.contains(&id.to_string())).collect())
    }

    /// Removes the spools of generations that have ended, which nobody needs any more, whoever writes them still.
    async fn remove_ended_spools(&self, who: &Principal) -> Result<(), AgentError> {
        // In this order: a generation is in the store before its spool is in the folder.
        let spools = self.spools(|_| true).await?;
        if spools.is_empty() {
            return Ok(());
        }
        let running = self.running(who, None).await?;
        let running: BTreeSet<String> = running.iter().map(ToString::to_string).collect();
        let dir = self.home.dir(HomeDir::Spool).map_err(spool_failed)?;
        for name in spools.difference(&running) {
            match std::fs::remove_file(dir.join(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(spool_failed(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Generations whose spools are as `is_wanted` says, by name: one spool at a time, where nobody waits for it.
    async fn spools(
        &self,
        mut is_wanted: impl FnMut(SeenSpool) -> bool + Send + 'static,
    ) -> Result<BTreeSet<String>, AgentError> {
        let dir = self.home.dir(HomeDir::Spool).map_err(spool_failed)?;
        let looked = tokio::task::spawn_blocking(move || {
            let named = look(&dir)?.filter_map(|spool| {
                let name = spool.header.generation.as_str().to_owned();
                is_wanted(spool).then_some(name)
            });
            Ok::<_, SpoolError>(named.collect())
        });
        looked.await.map_err(spool_failed)?.map_err(spool_failed)
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
        reparse(dialect, body, streamed).texts().iter().any(|text| finder.occurs_in(text.as_bytes()))
    };
    finder.occurs_in(body) || header.dialect.parse().is_ok_and(said)
}

fn lock_failed(error: impl std::fmt::Display) -> AgentError {
    AgentError::Home(error.to_string())
}

fn spool_failed(error: impl std::fmt::Display) -> AgentError {
    AgentError::Spool(error.to_string())
}

#[cfg(test)]
mod tests {
    use store::instance::InstanceId;
    use store::spool::GenerationName;

    use super::*;

    /// The arguments of a tool call come in pieces, so that a text stands nowhere in the bytes.
    #[test]
    fn a_text_split_over_the_arguments_of_a_tool_call_was_received() {
        let name = GenerationName::try_from("g".to_owned()).unwrap();
        let header =
            SpoolHeader::new(name, InstanceId::generate(1).unwrap(), 1, DialectName::OpenAiChat.as_str(), 0);
        let call = |begin: &str, arguments: &str| {
            let call = format!(r#"{{"index":0{begin},"function":{{"arguments":"{arguments}"}}}}"#);
            format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\n\n")
        };
        let begin = r#","id":"c","type":"function""#;
        let begun = call(begin, "").replace(r#""function":{"#, r#""function":{"name":"look","#);
        let body = [begun, call("", "marzipan cro"), call("", "codile")].concat();
        let mut finder = TextFinder::default();
        finder.add("marzipan crocodile");
        assert!(!finder.occurs_in(body.as_bytes()));
        assert!(has_received(&finder, &header, body.as_bytes()));
        let half = body.split_once("codile").unwrap().0;
        assert!(!has_received(&finder, &header, half.as_bytes()));
    }
}

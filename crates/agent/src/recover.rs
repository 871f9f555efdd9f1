//! Recovery: what a process that died left in its spool becomes an interrupted node, or the kept response of a request
//! that makes none.
//!
//! Only work whose owner's lock is free is taken, under a new fencing number, so that a process that was
//! merely asleep is refused when it wakes (spec: security §7). What such a sleeper had received it keeps itself, in
//! the same way: as a node beside the conversation, which went on without it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use context::Kind;
use futures_util::future::BoxFuture;
use loom::{GenerationId, GenerationRow, SourceKind};
use model::{AnswerSize, DialectName, PARSER_VERSION, ParsedResponse, RequestSize, UsageBounds};
use store::home::HomeDir;
use store::instance::{InstanceId, Instances};
use store::spool::{Recovered, Spooled, TornHeader, recover};
use store::{
    Claim, Generation, GenerationFilter, GenerationState, LIST_PAGE, LeaseOwner, Principal, RunningCall,
    StoreError, all_pages,
};

use crate::call::Call;
use crate::commit::{Origin, ReceivedResponse, agent_author, outcome, store_response};
use crate::error::AgentError;
use crate::event::{EventSink, SessionEvent};
use crate::prepared_request::StartedGeneration;
use crate::reported_usage::ReportedUsage;
use crate::runtime::Runtime;
use crate::stored::{self, ResponseMeta};

/// The longest response read back, in bytes.
const MAX_RESPONSE: u64 = 256 * 1024 * 1024;

/// Who left what is in a spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    ByTheDead,
    /// This one, whose session was taken over.
    Here,
}

impl Left {
    /// Why its answer ended, where that does not say so itself.
    const fn code(self) -> &'static str {
        match self {
            Self::ByTheDead => "process_ended",
            Self::Here => "taken_over",
        }
    }
}

impl Runtime {
    /// Makes interrupted nodes of what dead processes had received. Cheap when there is nothing to do.
    ///
    /// # Errors
    /// When the home or the store fails; what was not recovered is found again next time.
    pub fn recover<'a>(&'a self, events: &'a dyn EventSink) -> BoxFuture<'a, Result<u64, AgentError>> {
        Box::pin(async move {
            let owner = Principal::Owner;
            let dir = self.home.dir(HomeDir::Spool).map_err(failed)?;
            let instances = Instances::of(&self.home).map_err(failed)?;
            let mut recovered = 0;
            // An owner that cannot be asked about counts as alive: nothing living is ever taken.
            for found in recover(&dir, |id| instances.is_alive(id).unwrap_or(true)).map_err(failed)? {
                match found {
                    // One that fails does not keep the others from being recovered.
                    Ok(Recovered::Spooled(spooled)) => {
                        match self.recover_one((&owner, events), spooled, Left::ByTheDead).await {
                            Ok(made) => recovered += u64::from(made),
                            Err(error) => events.emit(SessionEvent::notice(format!(
                                "what a process that died had received is not recovered yet: {error}"
                            ))),
                        }
                    }
                    Ok(Recovered::Torn(torn)) => {
                        events.emit(SessionEvent::notice(format!(
                            "{} holds no answer: {}",
                            torn.path().display(),
                            torn.reason()
                        )));
                        // Without a whole header nothing was received. Anything else may hold an answer, and stays.
                        if matches!(torn.reason(), TornHeader::Cut) {
                            torn.discard().map_err(failed)?;
                        }
                    }
                    Err(error) => {
                        events.emit(SessionEvent::notice(format!("a spool could not be read: {error}")));
                    }
                }
            }
            self.cancel_orphans((&owner, events), &instances, &dir).await?;
            Ok(recovered)
        })
    }

    /// Makes nodes of what this process received for sessions that were taken over. What fails here is found again
    /// when the process has ended.
    pub(crate) async fn recover_own(&self) {
        let spools = match self.home.dir(HomeDir::Spool) {
            Ok(dir) => recover(&dir, |id| id != self.instance).map_err(failed),
            Err(error) => Err(failed(error)),
        };
        let found = match spools {
            Ok(found) => found,
            Err(error) => return tracing::warn!(%error, "what was received is not looked for"),
        };
        for found in found {
            // Others than those nobody here writes any more are locked, and not found.
            let done = match found {
                Ok(Recovered::Spooled(spooled)) => {
                    self.recover_one((&Principal::Owner, &()), spooled, Left::Here).await.map(drop)
                }
                Ok(Recovered::Torn(_)) => Ok(()),
                Err(error) => Err(failed(error)),
            };
            if let Err(error) = done {
                tracing::warn!(%error, "what was received is not a node yet");
            }
        }
    }

    /// Ends what instances that are gone had begun and never heard of, however they went, and removes the files of
    /// those that left nothing.
    async fn cancel_orphans(
        &self,
        (owner, events): (&Principal, &dyn EventSink),
        instances: &Instances,
        spools: &Path,
    ) -> Result<(), AgentError> {
        // An owner that cannot be asked about counts as alive.
        let is_gone = |id: InstanceId| id != self.instance && !instances.is_alive(id).unwrap_or(true);
        let filter =
            GenerationFilter { state: Some(GenerationState::Started), ..GenerationFilter::default() };
        let mut left = BTreeSet::new();
        let page = |after| self.store.generations(owner, filter.clone(), after, LIST_PAGE);
        for generation in all_pages(|running: &Generation| running.row.id, page).await? {
            let Ok(instance) = generation.claim.owner.to_string().parse::<InstanceId>() else { continue };
            if !is_gone(instance) {
                continue;
            }
            if spools.join(generation.row.id.to_string()).exists() {
                left.insert(instance);
                continue;
            }
            let to = LeaseOwner::new(self.instance.to_string());
            let row = generation.row;
            let fence = match self.store.take_over(owner, row.id, &generation.claim, &to).await {
                Ok(fence) => fence,
                // Another process is at it.
                Err(StoreError::Fenced { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let begun = StartedGeneration { row, claim: Claim { owner: to, fence }, guards: Vec::new() };
            let with = outcome(self, &begun, GenerationState::Cancelled, None, None);
            self.apply_rows(owner, begun.row.tree, with).await?;
        }
        let gone = |call: &RunningCall| call.claim.owner.0.parse().is_ok_and(&is_gone);
        let tell = |told| events.emit(SessionEvent::notice(told));
        let lost = self.end_calls(owner, gone, &[], &tell).await?;
        if lost > 0 {
            let calls = if lost == 1 { "call of a tool was" } else { "calls of tools were" };
            tell(format!("{lost} {calls} cut off: what came of it is not known"));
        }
        let dead: BTreeSet<InstanceId> = instances
            .list()
            .map_err(failed)?
            .into_iter()
            .filter(|found| !found.alive)
            .map(|found| found.id)
            .collect();
        if dead.is_empty() {
            return Ok(());
        }
        // Before the files of the dead are gone: those say that there may be a temporary session of theirs.
        let forgotten = self.forget_left(owner, is_gone).await?;
        if forgotten > 0 {
            events.emit(SessionEvent::notice("a temporary conversation that was not closed is forgotten"));
        }
        instances
            .remove_dead(|found| dead.contains(&found.id) && !left.contains(&found.id))
            .map_err(failed)?;
        Ok(())
    }

    /// One spool. Returns whether a node was made of it.
    fn recover_one<'a>(
        &'a self,
        (owner, events): (&'a Principal, &'a dyn EventSink),
        mut spooled: Spooled,
        left: Left,
    ) -> BoxFuture<'a, Result<bool, AgentError>> {
        Box::pin(async move {
            let id = spooled.header().generation.to_string().parse::<GenerationId>().ok();
            let found = match id {
                Some(id) => match self.store.generation(owner, id).await {
                    Err(StoreError::NotFound(_)) => None,
                    found => Some(found?),
                },
                None => None,
            };
            let Some(generation) = found.filter(|found| found.state == GenerationState::Started) else {
                // It ended before its spool could be removed, or never began.
                spooled.committed().map_err(failed)?;
                return Ok(false);
            };
            let to = LeaseOwner::new(self.instance.to_string());
            let row = generation.row;
            let fence = self.store.take_over(owner, row.id, &generation.claim, &to).await?;
            let begun = StartedGeneration { row, claim: Claim { owner: to, fence }, guards: Vec::new() };
            let body = spooled.read(MAX_RESPONSE).map_err(failed)?;
            let dialect: DialectName = spooled.header().dialect.parse().map_err(failed)?;
            let streamed =
                spooled.header().extra.get("streamed").and_then(serde_json::Value::as_bool).unwrap_or(true);
            let agent = spooled.header().extra.get("agent").and_then(serde_json::Value::as_str);
            let agent = agent.unwrap_or(loom::source::DEFAULT_AGENT).to_owned();
            let (ends_at, stops) = (header_value(&spooled, "ends_at"), header_value(&spooled, "stops"));
            let digest = begun.row.manifest;
            let manifest =
                self.read(owner, begun.row.tree, move |rows| stored::manifest(rows, digest)).await?;
            // Those of its configuration; a spool of an earlier version does not name them.
            let prices = header_value::<Option<model::Prices>>(&spooled, "prices").flatten();
            let prices = prices.or_else(|| manifest.as_ref().and_then(prices_of));
            let reading = if body.is_empty() {
                None
            } else {
                let meta = ResponseMeta {
                    status: 200,
                    headers: Vec::new(),
                    removed_headers: Vec::new(),
                    streamed,
                    timings: None,
                    attempt: 1,
                    dialect,
                    parser_version: PARSER_VERSION,
                    usage: None,
                    implausible_usage: None,
                    estimated_usage: None,
                    masked: Vec::new(),
                    interrupted: Some(left.code().to_owned()),
                    model: manifest.as_ref().map(|manifest| manifest.model.name.clone()).unwrap_or_default(),
                    ends_at,
                    stops: stops.unwrap_or_default(),
                };
                let parsed = model::reparse(dialect, &body, streamed);
                let bounds = manifest.as_ref().and_then(|manifest| {
                    usage_bounds(manifest, &parsed, AnswerSize::of(&parsed, dialect, body.len()))
                });
                let reported = ReportedUsage::of(&parsed, bounds.as_ref());
                let held = manifest.as_ref().map(|manifest| manifest.held.clone()).unwrap_or_default();
                let mut reading = ReceivedResponse::new(self, body, parsed, reported, meta, &held)?;
                let made = self.made(owner, &begun.row).await?;
                reading.choices.retain(|(index, ..)| !made.contains(index));
                Some(reading)
            };
            let trust = manifest.as_ref().map_or(loom::Trust::Outside, lowest);
            let (provider, model, kind) = match &manifest {
                Some(manifest) => {
                    (manifest.model.provider.clone(), manifest.model.name.clone(), kind_of(manifest))
                }
                None => ("unknown".to_owned(), "unknown".to_owned(), SourceKind::Remote),
            };
            let origin = Origin {
                provider,
                model,
                kind,
                author: agent_author(&agent, begun.row.profile),
                dialect: dialect.as_str().to_owned(),
                trust,
                inputs: Vec::new(),
                prices,
                sent: manifest.as_ref().map_or(0, |manifest| manifest.tokens),
            };
            // The conversation of a session that was taken over stays where it went.
            let follow = left == Left::ByTheDead;
            let call = Call::owner(Arc::new(()));
            let stored = store_response(self, &call, &begun, origin, reading, None, follow).await?;
            spooled.committed().map_err(failed)?;
            if let Some(node) = stored.nodes.first() {
                events.emit(SessionEvent::notice(format!(
                    "an answer that was cut off is kept as node {}",
                    node.short_id
                )));
            }
            Ok(!stored.nodes.is_empty())
        })
    }
}

impl Runtime {
    /// The choices of a generation that are nodes already: its writer died between two of them.
    async fn made(&self, owner: &Principal, row: &GenerationRow) -> Result<BTreeSet<u32>, AgentError> {
        let reserved = row.reserved.clone();
        let read = self.read(owner, row.tree, move |rows| {
            let mut made = BTreeSet::new();
            for (index, node) in (0..).zip(reserved) {
                if rows.node(node)?.is_some() {
                    made.insert(index);
                }
            }
            Ok(made)
        });
        read.await
    }
}

/// What the header of a spool says under a key; what cannot be read counts as not there: the answer is kept anyway.
fn header_value<T: serde::de::DeserializeOwned>(spooled: &Spooled, key: &str) -> Option<T> {
    let value = spooled.header().extra.get(key)?.clone();
    match serde_json::from_value(value) {
        Ok(value) => Some(value),
        Err(error) => {
            let generation = &spooled.header().generation;
            tracing::warn!(%generation, key, %error, "a value in the header of a spool cannot be read");
            None
        }
    }
}

/// Bounds of the token counts of a response to the request of a manifest; none of a script.
fn usage_bounds(
    manifest: &context::Manifest,
    parsed: &ParsedResponse,
    came: AnswerSize,
) -> Option<UsageBounds> {
    if kind_of(manifest) == SourceKind::Script {
        return None;
    }
    let limit = u32::try_from(manifest.budget.reserved_output).unwrap_or(u32::MAX);
    let choices = u32::try_from(parsed.choices.len()).unwrap_or(u32::MAX);
    Some(UsageBounds::new(size_of(manifest), came, limit, choices))
}

/// Size of the request of a manifest, as far as it says. Of a segment with pictures only the characters are text.
fn size_of(manifest: &context::Manifest) -> RequestSize {
    let mut size = RequestSize::default();
    for segment in &manifest.segments {
        let Some((from, to)) = segment.bytes else { continue };
        size.bytes = size.bytes.max(to);
        if !matches!(segment.kind, Kind::Schemas | Kind::Framing) {
            size.text = size.text.saturating_add(segment.chars.min(to.saturating_sub(from)));
        }
    }
    size
}

/// The lowest trust a manifest sent.
fn lowest(manifest: &context::Manifest) -> loom::Trust {
    let sent = manifest.segments.iter().filter_map(|segment| segment.trust);
    sent.min().unwrap_or(loom::Trust::Agent).min(loom::Trust::Agent)
}

/// What the model of a manifest costs, as far as the catalogue knows.
fn prices_of(manifest: &context::Manifest) -> Option<model::Prices> {
    let asked = &manifest.model;
    match asked.place {
        model::ModelPlace::Local => Some(model::Prices::FREE),
        model::ModelPlace::Remote => model::catalogue::find(&asked.provider, &asked.name)?.entry.prices,
    }
}

fn kind_of(manifest: &context::Manifest) -> SourceKind {
    match (manifest.model.provider.as_str(), manifest.model.place) {
        ("script", _) => SourceKind::Script,
        (_, model::ModelPlace::Local) => SourceKind::Local,
        (_, model::ModelPlace::Remote) => SourceKind::Remote,
    }
}

fn failed(error: impl std::fmt::Display) -> AgentError {
    AgentError::Recovery(error.to_string())
}

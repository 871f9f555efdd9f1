//! Recovery: what a process that died left in its spool becomes an interrupted node.
//!
//! Only work whose owner's lock is free is taken, under a new fencing number, so that a process that was
//! merely asleep is refused when it wakes (spec: security §7).

use std::collections::BTreeSet;
use std::path::Path;

use loom::{Author, AuthorKind, GenerationRow, SourceKind};
use model::{DialectName, PARSER_VERSION};
use store::home::HomeDir;
use store::instance::Instances;
use store::spool::{Recovered, Spooled, TornHeader, recover};
use store::{GenerationFilter, GenerationState, Holder, Principal, StoreError, Tenure};

use crate::desk::Desk;
use crate::error::AgentError;
use crate::request::Begun;
use crate::settle::{Origin, Reading, outcome, store_reading};
use crate::stored::{self, ResponseMeta};

/// The longest response read back, in bytes.
const MAX_RESPONSE: u64 = 256 * 1024 * 1024;

impl Desk {
    /// Makes interrupted nodes of what dead processes had received. Cheap when there is nothing to do.
    ///
    /// # Errors
    /// When the home or the store fails; what was not recovered is found again next time.
    pub async fn recover(&self) -> Result<u64, AgentError> {
        let owner = Principal::Owner;
        let dir = self.home.dir(HomeDir::Spool).map_err(failed)?;
        let instances = Instances::of(&self.home).map_err(failed)?;
        let mut recovered = 0;
        // An owner that cannot be asked about counts as alive: nothing living is ever taken.
        for found in recover(&dir, |id| instances.is_alive(id).unwrap_or(true)).map_err(failed)? {
            match found {
                // One that fails does not keep the others from being recovered.
                Ok(Recovered::Spooled(spooled)) => match self.recover_one(&owner, spooled).await {
                    Ok(made) => recovered += u64::from(made),
                    Err(error) => self.client.note(&format!(
                        "what a process that died had received is not recovered yet: {error}"
                    )),
                },
                Ok(Recovered::Torn(torn)) => {
                    self.client.note(&format!(
                        "{} holds no answer: {}",
                        torn.path().display(),
                        torn.reason()
                    ));
                    // Without a whole header nothing was received. Anything else may hold an answer, and stays.
                    if matches!(torn.reason(), TornHeader::Cut) {
                        torn.discard().map_err(failed)?;
                    }
                }
                Err(error) => self.client.note(&format!("a spool could not be read: {error}")),
            }
        }
        self.bury(&owner, &instances, &dir).await?;
        Ok(recovered)
    }

    /// Ends what dead instances had begun and never heard of, and removes the files of those that left nothing.
    async fn bury(&self, owner: &Principal, instances: &Instances, spools: &Path) -> Result<(), AgentError> {
        let dead: BTreeSet<String> = instances
            .list()
            .map_err(failed)?
            .into_iter()
            .filter(|found| !found.alive)
            .map(|found| found.id.to_string())
            .collect();
        if dead.is_empty() {
            return Ok(());
        }
        let filter =
            GenerationFilter { state: Some(GenerationState::Started), ..GenerationFilter::default() };
        let mut left = BTreeSet::new();
        for generation in self.store.generations(owner, filter).await? {
            let instance = generation.tenure.owner.to_string();
            if !dead.contains(&instance) {
                continue;
            }
            if spools.join(generation.row.id.to_string()).exists() {
                left.insert(instance);
                continue;
            }
            let to = Holder::new(self.instance.to_string());
            let row = generation.row;
            let fence = match self.store.take_over(owner, row.id, &generation.tenure, &to).await {
                Ok(fence) => fence,
                // Another process is at it.
                Err(StoreError::Fenced { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let begun = Begun { row, tenure: Tenure { owner: to, fence }, guards: Vec::new() };
            let with = outcome(self, &begun, GenerationState::Cancelled, None, None);
            self.apply_rows(owner, begun.row.tree, with).await?;
        }
        // Before the files of the dead are gone: those say whose a temporary session was.
        let forgotten = self.forget_left(owner, |id| dead.contains(&id.to_string())).await?;
        if forgotten > 0 {
            self.client.note("a temporary conversation that was not closed is forgotten");
        }
        instances
            .remove_dead(|found| {
                dead.contains(&found.id.to_string()) && !left.contains(&found.id.to_string())
            })
            .map_err(failed)?;
        Ok(())
    }

    /// One spool. Returns whether a node was made of it.
    async fn recover_one(&self, owner: &Principal, mut spooled: Spooled) -> Result<bool, AgentError> {
        let name = spooled.header().generation.to_string();
        let filter =
            GenerationFilter { state: Some(GenerationState::Started), ..GenerationFilter::default() };
        let running = self.store.generations(owner, filter).await?;
        let Some(generation) = running.into_iter().find(|running| running.row.id.to_string() == name) else {
            // It ended before its spool could be removed, or never began.
            spooled.committed().map_err(failed)?;
            return Ok(false);
        };
        let to = Holder::new(self.instance.to_string());
        let row = generation.row;
        let fence = self.store.take_over(owner, row.id, &generation.tenure, &to).await?;
        let begun = Begun { row, tenure: Tenure { owner: to, fence }, guards: Vec::new() };
        let body = spooled.read(MAX_RESPONSE).map_err(failed)?;
        let dialect: DialectName = spooled.header().dialect.parse().map_err(failed)?;
        let streamed =
            spooled.header().extra.get("streamed").and_then(serde_json::Value::as_bool).unwrap_or(true);
        let digest = begun.row.manifest;
        let manifest = self.read(owner, begun.row.tree, move |rows| stored::manifest(rows, digest)).await?;
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
                masked: Vec::new(),
                interrupted: Some("process_ended".to_owned()),
                model: manifest.as_ref().map(|manifest| manifest.model.name.clone()).unwrap_or_default(),
            };
            let held = manifest.as_ref().map(|manifest| manifest.held.clone()).unwrap_or_default();
            let mut reading = Reading::new(self, body, meta, &held)?;
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
            author: Author { kind: AuthorKind::Model, id: "main".to_owned(), profile: None },
            dialect: dialect.as_str().to_owned(),
            trust,
            inputs: Vec::new(),
            prices: manifest.as_ref().and_then(prices_of),
            sent: manifest.as_ref().map_or(0, |manifest| manifest.tokens),
        };
        let nodes = store_reading(self, owner, &begun, origin, reading, None, true).await?;
        spooled.committed().map_err(failed)?;
        if let Some(node) = nodes.first() {
            self.client.note(&format!("an answer that was cut off is kept as node {}", node.short_id));
        }
        Ok(!nodes.is_empty())
    }
}

impl Desk {
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

/// The lowest trust a manifest sent.
fn lowest(manifest: &context::Manifest) -> loom::Trust {
    let sent = manifest.segments.iter().filter_map(|segment| segment.trust);
    sent.min().unwrap_or(loom::Trust::Agent).min(loom::Trust::Agent)
}

/// What the model of a manifest costs, as far as the catalogue knows.
fn prices_of(manifest: &context::Manifest) -> Option<model::Prices> {
    let asked = &manifest.model;
    match asked.place {
        model::Place::Local => Some(model::Prices::FREE),
        model::Place::Remote => model::catalogue::find(&asked.provider, &asked.name)?.entry.prices,
    }
}

fn kind_of(manifest: &context::Manifest) -> SourceKind {
    match (manifest.model.provider.as_str(), manifest.model.place) {
        ("script", _) => SourceKind::Script,
        (_, model::Place::Local) => SourceKind::Local,
        (_, model::Place::Remote) => SourceKind::Remote,
    }
}

fn failed(error: impl std::fmt::Display) -> AgentError {
    AgentError::Recovery(error.to_string())
}

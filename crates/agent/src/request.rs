//! From a place in a tree to a request whose every byte is accounted for, durable before it is sent.

use std::sync::Arc;

use context::body::{self, EarlierRequest};
use context::dialogue::{Dependencies, DialogueRequest, assemble};
use context::document::{DocumentRequest, document};
use context::manifest::{RequestTarget, VERSION};
use context::{
    Assembled, Bootstrap, ContextError, ContinuationForm, Estimator, Manifest, ModelRef, NothingRemembered,
    Prefix, ReplayConstraints, TargetModel, TokenBudget, cover, reuse,
};
use loom::content::NotCanonical;
use loom::{
    Digest, GenerationId, GenerationRow, Millis, Mode, NodeId, Op, PositionId, Purpose, RowError, Seq,
    TreeId, TreeReader, ViewName, render, resolve,
};
use model::{EncodedRequest, Model, ModelPlace, Params, Prompt, Thinking, ThinkingControl};
use store::{
    AttachedWrites, Claim, Cursor, Fence, Guard, HashedBytes, LeaseOwner, NewGeneration, Principal,
    Reservation, StoreError,
};

use crate::calibration;
use crate::call::Call;
use crate::error::AgentError;
use crate::media::StoredMedia;
use crate::previous_request::PreviousRequest;
use crate::runtime::Runtime;
use crate::stored;
use crate::variant::RequestVariant;

/// Characters of a key by which a provider finds its cache.
const CACHE_KEY: usize = 32;

/// What is asked, of whom, where.
#[derive(Clone)]
pub struct GenerationRequest {
    pub tree: TreeId,
    pub view: ViewName,
    /// Where to continue; the view's tip, if none.
    pub from: Option<PositionId>,
    /// Whether the view goes to the first node that is made.
    pub follow: bool,
    /// Whether drafts count as text: for a look ahead.
    pub drafts: bool,
    pub model: Arc<dyn Model>,
    /// As which agent: the author of the answer.
    pub agent: String,
    pub params: Params,
    /// What stands above the cache boundary of a dialogue.
    pub bootstrap: Arc<Bootstrap>,
    /// Nodes sent besides the path, just before the newest turn or the document.
    pub context: Vec<NodeId>,
    /// Nodes sent besides the path, as instructions.
    pub instruction: Vec<NodeId>,
    /// How it departs from plainly going on.
    pub variant: RequestVariant,
    /// The operation that committed the drafts before it.
    pub part_of: Option<Seq>,
    /// Leases the work depends on: nothing is written once one is lost.
    pub guards: Vec<Guard>,
}

/// A request, ready to be made durable and sent.
pub struct PreparedRequest {
    /// The bytes that are sent.
    pub encoded: EncodedRequest,
    /// What they are made of.
    pub manifest: Manifest,
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: Digest,
    pub(crate) assembled: Assembled,
    pub(crate) parent: PositionId,
    parent_node: NodeId,
    middle: Vec<u8>,
    /// What stands above its cache boundary, as it is kept.
    prefix: Option<Vec<u8>>,
    /// Bodies its own rests on, which must be kept as long as it is.
    cited: Vec<Digest>,
    /// The newest event before it was put together.
    at: Cursor,
}

/// A request that is durable.
pub(crate) struct StartedGeneration {
    pub(crate) row: GenerationRow,
    pub(crate) claim: Claim,
    /// Leases its results depend on.
    pub(crate) guards: Vec<Guard>,
}

/// What is read of the tree in one snapshot.
struct Read {
    assembled: Result<Assembled, ContextError>,
    parent: PositionId,
    parent_node: NodeId,
    base: Option<PreviousRequest>,
}

impl GenerationRequest {
    /// Assembles and encodes the request. Nothing is written.
    ///
    /// # Errors
    /// When it does not fit, there is nothing to continue, or the model cannot take it.
    pub async fn prepare(&self, runtime: &Runtime, who: &Principal) -> Result<PreparedRequest, AgentError> {
        self.prepare_within(runtime, who, None).await
    }

    /// The same, for a window that has refused a request of so many tokens by this estimate.
    pub(crate) async fn prepare_within(
        &self,
        runtime: &Runtime,
        who: &Principal,
        refused: Option<u64>,
    ) -> Result<PreparedRequest, AgentError> {
        let info = self.model.info();
        let at = runtime.store.cursor().await?;
        let asked = self.params.max_tokens.map(u64::from);
        let budget = TokenBudget::new(u64::from(info.window), u64::from(info.output_limit), asked);
        let budget = refused.map_or(budget, |tokens| budget.without(tokens));
        let estimator = calibration::known(&runtime.home, info).estimator();
        let (ask, now, fit) = (self.clone(), runtime.now(), estimator.clone());
        let gallery = StoredMedia::of(Arc::clone(&runtime.home));
        let read =
            runtime.read(who, self.tree, move |rows| ask.read(rows, budget, now, (&fit, &gallery))).await?;
        let assembled = read.assembled?;
        let encoded = self.model.encode(&assembled.prompt, &self.asked(&assembled.prompt, budget))?;
        let segments = cover(&encoded, &assembled.pieces, &estimator)?;
        let base = read.base.as_ref().and_then(|earlier| {
            let (chain, body) = earlier.stored.as_ref()?;
            Some(EarlierRequest { manifest: earlier.digest, stored: chain.first()?, body })
        });
        let reused_tokens = base.map(|base| reuse::reused(&encoded, &assembled.pieces, base.body));
        let (stored, middle) = body::store(encoded.body(), base);
        let middle = middle.to_vec();
        let rests_on = if stored.delta.is_some() {
            read.base.and_then(|earlier| earlier.stored).map(|(chain, _)| chain).unwrap_or_default()
        } else {
            Vec::new()
        };
        let prefix = assembled.prefix.as_ref().map(frozen).transpose()?;
        let manifest = Manifest {
            version: VERSION,
            purpose: Purpose::Turn,
            tree: self.tree,
            view: self.view.clone(),
            model: ModelRef {
                provider: info.provider.clone(),
                name: info.name.clone(),
                dialect: encoded.dialect(),
                place: info.place,
            },
            endpoint: RequestTarget {
                path: encoded.path().to_owned(),
                stream: encoded.stream(),
                header_names: self.model.header_names().into_iter().map(str::to_owned).collect(),
            },
            way: assembled.way,
            budget,
            tokens: assembled.tokens,
            fit: estimator.fit,
            tainted_by: assembled.tainted_by,
            held: assembled.held.clone(),
            segments,
            runs: assembled.runs.clone(),
            left: assembled.left.clone(),
            prefix: prefix.as_deref().map(Digest::of),
            reused_tokens,
            body: stored,
        };
        let bytes = manifest.to_bytes()?;
        let digest = Digest::of(&bytes);
        Ok(PreparedRequest {
            encoded,
            manifest,
            bytes,
            digest,
            assembled,
            parent: read.parent,
            parent_node: read.parent_node,
            middle,
            prefix,
            cited: rests_on.into_iter().map(|stored| stored.middle).collect(),
            at,
        })
    }

    /// How it is asked: for no more than was kept for the answer, so that request and answer fit the window together,
    /// and to think where it can be told to. A beginning of the answer that is given leaves no place to think in.
    fn asked(&self, prompt: &Prompt, budget: TokenBudget) -> Params {
        let reserved = u32::try_from(budget.reserved_output).unwrap_or(u32::MAX);
        let begun = matches!(prompt, Prompt::Chat(chat) if chat.prefill.is_some());
        let thinking = self.params.thinking.filter(|_| self.model.info().thinks != ThinkingControl::Untold);
        let thinking = thinking.map(|thinking| if begun { Thinking::Off } else { thinking });
        // What runs here keeps its cache by itself.
        let cache_key = (self.model.info().place == ModelPlace::Remote).then(|| cache_key(self.tree));
        Params { max_tokens: Some(reserved), thinking, cache_key, ..self.params.clone() }
    }

    fn read(
        &self,
        rows: &dyn TreeReader,
        budget: TokenBudget,
        now: Millis,
        (estimator, pictures): (&Estimator, &StoredMedia),
    ) -> Result<Read, RowError> {
        let parent = match self.from {
            Some(from) => from,
            None => render::tip(rows, &self.view)?,
        };
        let parent_node = resolve::shown(rows, &self.view, parent)?;
        let base = PreviousRequest::read(rows, parent)?;
        let (view, from) = (self.view.clone(), self.from);
        let (context, instruction) = (self.context.clone(), self.instruction.clone());
        let target = TargetModel::of(self.model.info());
        let repeated = self.variant.again(rows, &view, parent);
        let repeated = repeated.and_then(|again| Ok((again, self.variant.previous(rows, &target)?)));
        let (again, previous) = match repeated {
            Ok(repeated) => repeated,
            Err(error) => return Ok(Read { assembled: Err(error), parent, parent_node, base }),
        };
        let assembled = match rows.tree()?.mode {
            Mode::Buffer => {
                let (way, drafts) = (ContinuationForm::of(self.model.info()), self.drafts);
                document(
                    rows,
                    &DocumentRequest { view, from, way, budget, drafts, context, instruction, again },
                    estimator,
                )
            }
            Mode::Dialogue => {
                let going_on = || base.as_ref().map(|earlier| earlier.previous(&target, now));
                let previous = previous.or_else(going_on).unwrap_or_default();
                let request = DialogueRequest {
                    from,
                    bootstrap: Arc::clone(&self.bootstrap),
                    previous,
                    strategy: again.as_ref().map_or(self.variant.strategy, ReplayConstraints::strategy),
                    context,
                    instruction,
                    said: self.variant.said.clone(),
                    again,
                    ..DialogueRequest::new(view, target, budget)
                };
                let around = Dependencies { estimator, coverage: &NothingRemembered, pictures };
                assemble(rows, &request, &around)
            }
        };
        Ok(Read { assembled, parent, parent_node, base })
    }
}

/// Names a tree to a provider that routes by it. It is the same for as long as the tree is there, and says neither
/// which tree it is nor when it began.
fn cache_key(tree: TreeId) -> String {
    let mut key = Digest::of(format!("cache key of {tree}").as_bytes()).to_string();
    key.truncate(CACHE_KEY);
    key
}

/// What stands above the cache boundary as it is kept: with the keys of schemas in the order they are sent in.
fn frozen(prefix: &Prefix) -> Result<Vec<u8>, NotCanonical> {
    serde_json::to_vec(prefix).map_err(|error| NotCanonical(error.to_string()))
}

impl PreparedRequest {
    /// A request that was sent before.
    pub(crate) async fn of_recorded(
        runtime: &Runtime,
        who: &Principal,
        encoded: EncodedRequest,
        earlier: &GenerationRow,
        manifest: Manifest,
    ) -> Result<Self, AgentError> {
        let digest = earlier.manifest;
        let tree = earlier.tree;
        let at = runtime.store.cursor().await?;
        let (bytes, middle, prefix, cited) = runtime
            .read(who, tree, {
                let manifest = manifest.clone();
                move |rows| {
                    let chain = stored::chain(rows, &manifest)?.unwrap_or_default();
                    let middle = rows.body(manifest.body.middle)?.unwrap_or_default();
                    let prefix = manifest.prefix.map(|digest| rows.body(digest)).transpose()?.flatten();
                    let cited: Vec<Digest> = chain.iter().skip(1).map(|stored| stored.middle).collect();
                    Ok((rows.manifest(digest)?.unwrap_or_default(), middle, prefix, cited))
                }
            })
            .await?;
        let segments = manifest.segments.iter().filter_map(|segment| segment.trust);
        let assembled = Assembled {
            prompt: Prompt::Raw(Vec::new()),
            pieces: Vec::new(),
            trust: segments.min().unwrap_or(loom::Trust::Agent),
            runs: manifest.runs.clone(),
            left: manifest.left.clone(),
            prefix: None,
            injected: Vec::new(),
            notices: Vec::new(),
            way: manifest.way,
            held: manifest.held.clone(),
            new_start: None,
            inputs: Vec::new(),
            tokens: manifest.tokens,
            tainted_by: manifest.tainted_by,
        };
        Ok(Self {
            encoded,
            bytes,
            digest,
            assembled,
            parent: earlier.parent,
            parent_node: earlier.parent_node,
            middle,
            prefix,
            cited,
            manifest,
            at,
        })
    }

    /// Makes the request durable under a generation of its own, once what it may come to is reserved with it: as a
    /// part of the request's turn, else of the siblings of a `group`.
    ///
    /// # Errors
    /// [`AgentError::Budget`] when it does not fit and nobody says to go on.
    pub(crate) async fn begin_like(
        &self,
        runtime: &Runtime,
        call: &Call,
        ask: &GenerationRequest,
        group: &str,
        like: GenerationRow,
    ) -> Result<StartedGeneration, AgentError> {
        loop {
            let reservation = runtime.spend.admit(runtime, call, ask, self, group).await?;
            let begun = self.durable(runtime, &call.who, like.clone(), &ask.guards, reservation).await;
            match begun {
                // Another request was first.
                Err(AgentError::Store(StoreError::OverBudget)) => {}
                begun => return begun,
            }
        }
    }

    /// Writes manifest and generation row, with ids of its own.
    async fn durable(
        &self,
        runtime: &Runtime,
        who: &Principal,
        like: GenerationRow,
        guards: &[Guard],
        reservation: Option<Reservation>,
    ) -> Result<StartedGeneration, AgentError> {
        let mut row = GenerationRow { id: runtime.new_id::<GenerationId>()?, ..like };
        for node in &mut row.reserved {
            *node = runtime.new_id()?;
        }
        let claim = Claim { owner: LeaseOwner::new(runtime.instance.to_string()), fence: Fence(1) };
        let generation = NewGeneration {
            row: row.clone(),
            claim: claim.clone(),
            manifest: self.bytes.clone(),
            bodies: [Some(&self.middle), self.prefix.as_ref()]
                .into_iter()
                .flatten()
                .cloned()
                .map(HashedBytes::new)
                .collect(),
            cited: self.cited.clone(),
            reservation,
        };
        let guards = guards.to_vec();
        let injections = self.assembled.injected.clone();
        let with = AttachedWrites {
            generations: vec![generation],
            injections,
            guards: guards.clone(),
            prepared_at: Some(self.at),
            ..AttachedWrites::nothing()
        };
        runtime.apply_rows(who, row.tree, with).await?;
        Ok(StartedGeneration { row, claim, guards })
    }

    /// Makes manifest and generation row durable, in one transaction. Nothing is sent before.
    pub(crate) async fn begin(
        &self,
        runtime: &Runtime,
        call: &Call,
        ask: &GenerationRequest,
        group: &str,
    ) -> Result<StartedGeneration, AgentError> {
        if let Some(place) = self.assembled.new_start {
            // What is refused changes nothing.
            runtime.spend.admit(runtime, call, ask, self, group).await?;
            let op = Op::Compact { to: Some(place), by_hand: false };
            let with = AttachedWrites { guards: ask.guards.clone(), ..AttachedWrites::nothing() };
            runtime.change(&call.who, ask.tree, &ask.view, op, with).await?;
        }
        let like = GenerationRow {
            id: runtime.new_id::<GenerationId>()?,
            tree: ask.tree,
            view: ask.view.clone(),
            purpose: Purpose::Turn,
            manifest: self.digest,
            profile: None,
            parent: self.parent,
            parent_node: self.parent_node,
            reserved: vec![self.parent_node; ask.params.n.max(1) as usize],
            runs: self.assembled.loom_runs(),
        };
        let begun = self.begin_like(runtime, call, ask, group, like).await?;
        for notice in &self.assembled.notices {
            call.note(notice);
        }
        Ok(begun)
    }
}

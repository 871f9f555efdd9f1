//! A prepared request: its bytes, what they are made of, and the transaction that makes both durable before anything is
//! sent.

use std::sync::Arc;

use context::body::{self, EarlierRequest};
use context::manifest::{COUNTED, COUNTED_TEXTS, RequestTarget, VERSION};
use context::window_beginning::WindowBeginning;
use context::{
    Assembled, ContextError, Estimator, Manifest, ModelRef, Prefix, StoredBody, TokenBudget, cover, reuse,
};
use loom::content::NotCanonical;
use loom::{
    Digest, GenerationId, GenerationPlace, GenerationRow, NodeId, Op, OriginRole, PositionId, ViewName,
};
use model::{EncodedRequest, ModelError, Prompt, SiblingSlot, Thinking, ThinkingControl};
use store::{
    AttachedWrites, Claim, Cursor, Fence, Guard, HashedBytes, LeaseOwner, NewGeneration, Principal,
    Reservation, StoreError,
};

use crate::calibration;
use crate::call::Call;
use crate::count_sample::{CountSample, MIN_TOKEN_RATIO};
use crate::error::AgentError;
use crate::recent_requests::RecentRequest;
use crate::request::{AssembledRequest, GenerationRequest, RequestSource, WindowNotice};
use crate::runtime::Runtime;
use crate::scoped_counter::{CountingScope, ScopedCounter};
use crate::sent_sampling;
use crate::stored;

/// How often a request is put together anew because its texts were counted, and how often because it was too long as a
/// whole.
const ROUNDS: u32 = 3;

/// A request, ready to be made durable and sent.
pub struct PreparedRequest {
    /// The bytes that are sent.
    pub encoded: EncodedRequest,
    /// What they are made of.
    pub manifest: Manifest,
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: Digest,
    pub(crate) assembled: Assembled,
    /// Whether it may hold texts of a workspace that the owner's record trusted when it was put together.
    pub(crate) trusts_by_record: bool,
    place: Option<GenerationPlace>,
    middle: Vec<u8>,
    /// What stands above its cache boundary, as it is kept.
    prefix: Option<Vec<u8>>,
    /// How the bodies are stored that its own rests on: they must be kept as long as it is.
    rests_on: Vec<StoredBody>,
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

impl PreparedRequest {
    /// Encodes a request, and covers its bytes.
    ///
    /// # Errors
    /// When the model cannot take it.
    pub(crate) fn encode(
        ask: &GenerationRequest,
        AssembledRequest { assembled, place, base, trusts_by_record }: AssembledRequest,
        budget: TokenBudget,
        estimator: &Estimator,
        at: Cursor,
    ) -> Result<Self, AgentError> {
        let info = ask.model.info();
        let encoded = ask.model.encode(&assembled.prompt, &ask.sampling(&assembled.prompt, budget))?;
        let segments = cover(&encoded, &assembled.pieces, estimator)?;
        let earlier = base.as_ref().and_then(|earlier| {
            let (chain, body) = earlier.stored.as_ref()?;
            Some(EarlierRequest { manifest: earlier.digest, stored: chain.first()?, body })
        });
        let reused_tokens = earlier.map(|base| reuse::reused(&encoded, &assembled.pieces, base.body));
        let (stored, middle) = body::store(encoded.body(), earlier);
        let middle = middle.to_vec();
        let rests_on = if stored.delta.is_some() {
            base.and_then(|earlier| earlier.stored).map(|(chain, _)| chain).unwrap_or_default()
        } else {
            Vec::new()
        };
        let prefix = assembled.prefix.as_ref().map(frozen).transpose()?;
        let manifest = Manifest {
            version: VERSION,
            purpose: ask.purpose,
            tree: ask.tree,
            view: place.as_ref().map(|place| place.view.clone()),
            model: ModelRef {
                provider: info.provider.clone(),
                name: info.name.clone(),
                dialect: encoded.dialect(),
                place: info.place,
            },
            endpoint: RequestTarget {
                path: encoded.path().to_owned(),
                stream: encoded.stream(),
                header_names: ask.model.header_names().into_iter().map(str::to_owned).collect(),
            },
            way: assembled.way,
            budget,
            tokens: assembled.tokens,
            fit: estimator.fit.clone(),
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
        Ok(Self {
            encoded,
            manifest,
            digest: Digest::of(&bytes),
            bytes,
            assembled,
            trusts_by_record,
            place,
            middle,
            prefix,
            rests_on,
            at,
        })
    }

    /// Says how its tokens were counted: all of them, or those of its texts.
    fn count(&mut self, tokens: u64, fit: &str, budget: TokenBudget) -> Result<(), NotCanonical> {
        (self.manifest.tokens, self.assembled.tokens) = (tokens, tokens);
        self.manifest.fit = fit.to_owned();
        self.manifest.budget = budget;
        self.bytes = self.manifest.to_bytes()?;
        self.digest = Digest::of(&self.bytes);
        Ok(())
    }

    /// A request that was sent before.
    pub(crate) async fn of_recorded(
        runtime: &Runtime,
        who: &Principal,
        encoded: EncodedRequest,
        earlier: &GenerationRow,
        manifest: Manifest,
        inputs: &[(OriginRole, NodeId)],
    ) -> Result<Self, AgentError> {
        let digest = earlier.manifest;
        let tree = earlier.tree;
        let at = runtime.store.cursor().await?;
        let (bytes, middle, prefix, rests_on) = runtime
            .read(who, tree, {
                let manifest = manifest.clone();
                move |rows| {
                    let chain = stored::chain(rows, &manifest)?.unwrap_or_default();
                    let middle = rows.body(manifest.body.middle)?.unwrap_or_default();
                    let prefix = manifest.prefix.map(|digest| rows.body(digest)).transpose()?.flatten();
                    let rests_on: Vec<StoredBody> = chain.into_iter().skip(1).collect();
                    Ok((rows.manifest(digest)?.unwrap_or_default(), middle, prefix, rests_on))
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
            begins: None,
            inputs: inputs.to_vec(),
            tokens: manifest.tokens,
            tainted_by: manifest.tainted_by,
        };
        Ok(Self {
            encoded,
            bytes,
            digest,
            assembled,
            // Its bytes go once more to the model that had them.
            trusts_by_record: false,
            place: earlier.place.clone(),
            middle,
            prefix,
            rests_on,
            manifest,
            at,
        })
    }

    /// Makes the request durable under a generation of its own, once what it may come to is reserved with it, as a part
    /// of a turn.
    ///
    /// # Errors
    /// [`AgentError::Budget`] when it does not fit and nobody says to go on.
    pub(crate) async fn begin_like(
        &self,
        runtime: &Runtime,
        call: &Call,
        ask: &GenerationRequest,
        turn: &str,
        like: GenerationRow,
    ) -> Result<StartedGeneration, AgentError> {
        loop {
            let reservation = runtime.admit(call, ask, self, turn).await?;
            let begun = self.durable(runtime, &call.who, like.clone(), &ask.guards, reservation).await;
            match begun {
                // Another request was first.
                Err(AgentError::Store(StoreError::OverBudget)) => {}
                begun => return begun,
            }
        }
    }

    /// What it is an answer to, in the view it was read in; none of one that makes no nodes.
    pub(crate) fn parent(&self) -> Option<(&ViewName, PositionId)> {
        self.place.as_ref().map(|place| (&place.view, place.parent))
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
            cited: self.rests_on.iter().map(|stored| stored.middle).collect(),
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
        if let Err(error) = runtime.apply_rows(who, row.tree, with).await {
            // What it rests on may be gone.
            runtime.recent_requests.remove(row.tree);
            return Err(error);
        }
        // One that is sent again has no prefix of its own at hand.
        if self.assembled.prefix.is_some() == self.prefix.is_some() {
            let body = [&self.manifest.body].into_iter().chain(&self.rests_on);
            runtime.recent_requests.keep(RecentRequest {
                tree: row.tree,
                at: self.at,
                digest: self.digest,
                manifest: Arc::new(self.manifest.clone()),
                chain: body.cloned().collect(),
                body: self.encoded.body().clone(),
                prefix: self.assembled.prefix.clone(),
            });
        }
        Ok(StartedGeneration { row, claim, guards })
    }

    /// Characters of the document that stand above its window.
    pub fn chars_above(&self) -> u64 {
        self.assembled.begins.as_ref().map_or(0, |_| self.assembled.left.iter().map(|run| run.chars).sum())
    }

    /// Where the window of a document begins, if something of it is not sent.
    pub fn window_notice(&self, who: &str) -> Option<String> {
        Some(window_notice(who, self.assembled.begins.as_ref()?, self.chars_above()))
    }

    /// Makes manifest and generation row durable, in one transaction. Nothing is sent before.
    pub(crate) async fn begin(
        &self,
        runtime: &Runtime,
        call: &Call,
        ask: &GenerationRequest,
        slot: &SiblingSlot,
    ) -> Result<StartedGeneration, AgentError> {
        let turn = &slot.turn;
        if let (Some(start), Some(place)) = (self.assembled.new_start, &self.place) {
            // What is refused changes nothing.
            runtime.admit(call, ask, self, turn).await?;
            let op = Op::Compact { to: Some(start), by_hand: false };
            let with = AttachedWrites { guards: ask.guards.clone(), ..AttachedWrites::nothing() };
            runtime.change_as(call.writer(), ask.tree, &place.view, op, with).await?;
        }
        let reserved = match (&ask.source, &self.place) {
            (RequestSource::Path(_), Some(place)) => vec![place.parent_node; ask.choices() as usize],
            _ => Vec::<NodeId>::new(),
        };
        let (settings, unsent) = {
            let sampling = ask.sampling(&self.assembled.prompt, self.manifest.budget);
            let always_thinks = ask.model.info().thinks == ThinkingControl::Always;
            // As little as it can.
            let thinking = sampling.thinking.map(|thinking| match thinking {
                Thinking::Off if always_thinks => Thinking::Low,
                thinking => thinking,
            });
            sent_sampling::settings(&ask.params, thinking, &self.encoded)
        };
        let like = GenerationRow {
            id: runtime.new_id::<GenerationId>()?,
            tree: ask.tree,
            place: self.place.clone(),
            purpose: ask.purpose,
            manifest: self.digest,
            profile: ask.profile,
            reserved,
            runs: self.assembled.loom_runs(),
            settings: Some(settings),
        };
        let begun = self.begin_like(runtime, call, ask, turn, like).await?;
        for notice in &self.assembled.notices {
            call.note(notice);
        }
        if !unsent.is_empty() {
            let name = text::terminal::one_line(&ask.model.info().full_name()).into_owned();
            runtime.note_once(call, format!("{name} is asked without {}: it takes none", unsent.join(", ")));
        }
        if let RequestSource::Path(path) = &ask.source
            && let Some(begins) = self.assembled.begins.as_ref().filter(|begins| begins.is_new)
        {
            let name = ask.model.info().full_name();
            let who = match path.window {
                WindowNotice::OfModel if slot.index == 0 => Some("the model"),
                WindowNotice::ByName => Some(name.as_str()),
                WindowNotice::OfModel | WindowNotice::Silent => None,
            };
            who.into_iter().for_each(|who| call.note(window_notice(who, begins, self.chars_above())));
        }
        Ok(begun)
    }
}

/// Where the window of a model begins, by its first words and its chapter, and how many characters above it are not sent.
pub fn window_notice(who: &str, begins: &WindowBeginning, chars_above: u64) -> String {
    let words = text::terminal::one_line(&begins.words);
    let chapter = begins.chapter.as_deref().map(text::terminal::one_line);
    let chapter = chapter.map_or_else(String::new, |chapter| format!(" (in “{chapter}”)"));
    let above = text::number::grouped(chars_above);
    format!("{who} sees from “{words}”{chapter} on; {above} characters above are left out")
}

impl GenerationRequest {
    /// Assembles and encodes the request. Nothing is written.
    ///
    /// # Errors
    /// When it does not fit, there is nothing to continue, or the model cannot take it.
    pub async fn prepare(&self, runtime: &Runtime, who: &Principal) -> Result<PreparedRequest, AgentError> {
        self.prepare_within(runtime, who, None, CountingScope::Process).await
    }

    /// [`Self::prepare`] for somebody who asks how large the request is: a server that counts tokens is asked, as if
    /// it were sent.
    ///
    /// # Errors
    /// As [`GenerationRequest::prepare`]; also when the call is cancelled.
    pub async fn prepare_counted(
        &self,
        runtime: &Runtime,
        call: &Call,
    ) -> Result<PreparedRequest, AgentError> {
        self.prepare_to_send(runtime, call, None).await
    }

    /// [`Self::prepare_counted`] for a window that has refused a request of `refused` tokens, if it has.
    pub(crate) async fn prepare_to_send(
        &self,
        runtime: &Runtime,
        call: &Call,
        refused: Option<u64>,
    ) -> Result<PreparedRequest, AgentError> {
        let mut cancel = call.cancel.clone();
        tokio::select! {
            biased;
            // As one that is cancelled before anything of its answer came.
            () = cancel.cancelled() => Err((&ModelError::Cancelled { response: None, refused: true }).into()),
            prepared = self.prepare_within(runtime, &call.who, refused, CountingScope::Server(call)) => prepared,
        }
    }

    async fn prepare_within(
        &self,
        runtime: &Runtime,
        who: &Principal,
        refused: Option<u64>,
        scope: CountingScope<'_>,
    ) -> Result<PreparedRequest, AgentError> {
        let info = self.model.info();
        let at = runtime.store.cursor().await?;
        let asked = self.params.max_tokens.map(u64::from);
        let budget = TokenBudget::new(u64::from(info.window), u64::from(info.output_limit), asked);
        let budget = refused.map_or(budget, |tokens| budget.without(tokens));
        let mut estimator = calibration::estimator(&runtime.home, self.model.as_ref());
        let Some(counter) = self.model.counter() else {
            let assembled = self.assemble(runtime, who, budget, &estimator).await?;
            return PreparedRequest::encode(self, assembled, budget, &estimator, at);
        };
        let counter = ScopedCounter::new(counter, scope, runtime, info);
        if counter.asks_server() && calibration::has_no_observations(&runtime.home, info) {
            estimator = self.scaled_by_sample(runtime, who, budget, estimator, &counter).await;
        }
        let mut allowed = budget;
        let (mut learned, mut shortened) = (0, 0);
        loop {
            let made = self.assemble(runtime, who, allowed, &estimator).await?;
            let texts = counter.unknown(&made.assembled.prompt);
            if learned < ROUNDS && !texts.is_empty() {
                counter.learn(&texts).await;
                if let Some(scale) = CountSample::of(&texts, &estimator).map(CountSample::scale_of_rest) {
                    // What is known now changes what fits.
                    (learned, estimator) = (learned + 1, estimator.scaled(scale));
                    continue;
                }
            }
            let mut prepared = PreparedRequest::encode(self, made, allowed, &estimator, at)?;
            let counted = counter.request(&prepared.encoded).await;
            let over = counted.map_or(0, |tokens| tokens.saturating_sub(budget.budget));
            if shortened < ROUNDS && over > 0 {
                allowed = TokenBudget { budget: allowed.budget.saturating_sub(over), ..budget };
                shortened += 1;
                continue;
            }
            if let (Some(needed), true) = (counted, over > 0) {
                let what = "the request".to_owned();
                return Err(ContextError::TooLong { what, needed, budget: budget.budget }.into());
            }
            let (tokens, name) = (prepared.manifest.tokens, counter.name());
            match counted {
                Some(tokens) => prepared.count(tokens, &format!("{COUNTED}{name}"), budget)?,
                // What the template adds is still estimated.
                None if texts.is_empty() => {
                    prepared.count(tokens, &format!("{COUNTED_TEXTS}{name}"), budget)?;
                }
                None => {}
            }
            return Ok(prepared);
        }
    }

    /// An estimator scaled by what a server counts of the most that may fit: a prior estimates from above, and what it
    /// leaves out might fit, and would not be counted. Unchanged where too little is counted.
    async fn scaled_by_sample(
        &self,
        runtime: &Runtime,
        who: &Principal,
        budget: TokenBudget,
        estimator: Estimator,
        counter: &ScopedCounter<'_>,
    ) -> Estimator {
        let hopeful = estimator.clone().scaled(MIN_TOKEN_RATIO);
        let Ok(most) = self.assemble(runtime, who, budget, &hopeful).await else { return estimator };
        let texts = counter.unknown(&most.assembled.prompt);
        counter.learn(&texts).await;
        match CountSample::of(&texts, &estimator).and_then(CountSample::ratio_of_all) {
            Some(ratio) => estimator.scaled(ratio),
            None => estimator,
        }
    }
}

/// What stands above the cache boundary as it is kept: with the keys of schemas in the order they are sent in.
fn frozen(prefix: &Prefix) -> Result<Vec<u8>, NotCanonical> {
    serde_json::to_vec(prefix).map_err(|error| NotCanonical(error.to_string()))
}

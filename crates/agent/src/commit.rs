//! From a response to nodes: node, response and usage in one transaction.

use std::sync::Arc;

use context::Features;
use futures_util::future::BoxFuture;
use loom::{Author, AuthorKind, Digest, Finish, ModelSource, NodeId, Op, ResponsePart, Trust};
use model::{
    AnswerSize, FinishReason, ModelError, ModelPlace, Money, ParsedResponse, Prices, RawResponse, ReplyPiece,
    RequestSize, TokenUsage, UsageBounds,
};
use store::spool::Spool;
use store::{AttachedWrites, GenerationEnd, GenerationState, Principal, Received, StoreError};

use crate::calibration;
use crate::call::Call;
use crate::error::AgentError;
use crate::estimated_usage::written_tokens;
use crate::event::{CommittedNode, SessionEvent};
use crate::exchange::ReceivedStream;
use crate::masking::MaskedResponse;
use crate::prepared_request::{PreparedRequest, StartedGeneration};
use crate::reported_usage::ReportedUsage;
use crate::request::GenerationRequest;
use crate::runtime::Runtime;
use crate::stored::{self, ResponseMeta};

/// What came of one request.
#[derive(Debug)]
pub struct GenerationOutcome {
    pub manifest: Digest,
    /// The nodes made, in order of their choices.
    pub nodes: Vec<CommittedNode>,
    /// What a request that makes no node was answered.
    pub reply: Option<TextReply>,
    /// Tokens of its request, estimated.
    pub tokens: u64,
    /// Tokens of the request that a cache could reuse, estimated; none where no request was before it.
    pub reusable: Option<u64>,
    pub usage: Option<TokenUsage>,
    /// What it came to where its whole was not reported, as of an answer that was cut: the input as it was reported until
    /// then, if it was, else estimated; the output estimated.
    pub estimated_usage: TokenUsage,
    /// The model that answered, `PROVIDER/NAME`.
    pub model: String,
    /// What it cost; none where it runs on this machine for nothing, or price or tokens of the request are not known. Of an
    /// answer that was cut the output is estimated.
    pub cost: Option<Money>,
    /// The window of the model that answered, in tokens.
    pub window: u64,
    /// Why it did not end well; what was received is in `nodes` or `reply`.
    pub error: Option<AgentError>,
}

impl GenerationOutcome {
    /// Whether nothing of an answer came.
    pub(crate) const fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.reply.is_none()
    }

    /// Whether the model found the request too long for it.
    pub(crate) fn is_too_long(&self) -> bool {
        matches!(self.error, Some(AgentError::Model { code: "context_too_long", .. }))
    }
}

/// The node that came of a request.
pub(crate) fn node_of(answered: GenerationOutcome) -> Result<NodeId, AgentError> {
    match (answered.nodes.first(), answered.error) {
        (Some(node), _) => Ok(node.id),
        (None, Some(error)) => Err(error),
        (None, None) => Err(AgentError::Empty),
    }
}

/// An answer that is no node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextReply {
    /// Text of the answer alone, with known secrets masked.
    pub text: String,
    pub finish: Finish,
    /// The lowest trust its request sent, and the agent's at most: that of whatever is made of it.
    pub trust: Trust,
}

/// Stores what came of a request, and makes its nodes.
pub(crate) fn commit<'a>(
    runtime: &'a Runtime,
    call: &'a Call,
    ask: &'a GenerationRequest,
    prepared: &'a PreparedRequest,
    begun: StartedGeneration,
    heard: Result<ReceivedStream, AgentError>,
) -> BoxFuture<'a, Result<GenerationOutcome, AgentError>> {
    Box::pin(async move {
        let heard = match heard {
            Ok(heard) => heard,
            Err(error) => return unsent(runtime, &call.who, ask, &begun, error).await,
        };
        let (raw, failure) = match heard.result {
            Ok(raw) => (Some(raw), None),
            Err(mut error) => (error.take_response(), Some(error)),
        };
        let failure = failure.as_ref();
        let received =
            raw.map(|raw| ReceivedResponse::of(runtime, call, raw, failure, prepared, ask)).transpose()?;
        let usage = received.as_ref().and_then(|reading| reading.usage);
        let (kind, sent) = (ask.model.info().kind, prepared.manifest.tokens);
        let estimated_usage = received.as_ref().and_then(|reading| reading.usage_or_estimate(kind, sent));
        let read_usage = received.as_ref().and_then(ReceivedResponse::usage_of_reported_input);
        let source = Source { prepared, ask };
        let StoredAnswer { nodes, reply } = match make_nodes(runtime, call, &begun, &source, received).await {
            Err(AgentError::Store(StoreError::Fenced { .. })) if runtime.has_ended(&begun.row).await? => {
                if let Some(Err(error)) = heard.spool.map(Spool::committed) {
                    tracing::warn!(%error, "a spool could not be removed");
                }
                if matches!(failure, Some(ModelError::Cancelled { refused: true, .. }))
                    && let Err(error) = runtime.store.unbook(&call.who, begun.row.id, &begun.claim).await
                {
                    tracing::warn!(%error, "what a request that was turned away is booked with stays");
                }
                return Err(AgentError::Forgotten);
            }
            made => made?,
        };
        if let Some(spool) = heard.spool
            && let Err(error) = spool.committed()
        {
            // It is found again by recovery, which sees that its generation has ended.
            tracing::warn!(%error, "a spool could not be removed");
        }
        for node in &nodes {
            call.events.emit(SessionEvent::Committed { node: node.clone(), usage });
        }
        let empty = nodes.is_empty() && reply.is_none() && failure.is_none();
        let error = match failure {
            Some(error) => Some(AgentError::from(error).masked(&runtime.masker)),
            None if empty => Some(AgentError::Empty),
            None => None,
        };
        let info = ask.model.info();
        if let Some(features) = Features::of(&prepared.assembled.prompt) {
            match (&read_usage, &error) {
                (_, Some(AgentError::Model { code: "context_too_long", .. })) => {
                    calibration::too_long(&runtime.home, info, &features);
                }
                (Some(usage), _) => calibration::learn(&runtime.home, info, &features, usage),
                (None, _) => {}
            }
        }
        let window = u64::from(info.window);
        let is_paid = |prices: &Prices| info.place == ModelPlace::Remote || *prices != Prices::FREE;
        let prices = info.prices.filter(is_paid);
        let cost = prices.zip(read_usage).map(|(prices, usage)| prices.cost(&usage));
        Ok(GenerationOutcome {
            model: info.full_name(),
            cost,
            manifest: prepared.digest,
            nodes,
            reply,
            tokens: sent,
            reusable: prepared.manifest.reused_tokens,
            usage,
            estimated_usage: estimated_usage.unwrap_or_default(),
            window,
            error,
        })
    })
}

/// Nothing was sent: the generation ends with nothing, for this reason.
pub(crate) async fn unsent<T>(
    runtime: &Runtime,
    who: &Principal,
    ask: &GenerationRequest,
    begun: &StartedGeneration,
    why: AgentError,
) -> Result<T, AgentError> {
    let with = outcome(runtime, begun, GenerationState::Cancelled, None, None);
    runtime.apply_rows(who, ask.tree, with).await?;
    Err(why)
}

pub(crate) struct ReceivedResponse {
    pub(crate) body: Vec<u8>,
    pub(crate) metadata: String,
    pub(crate) usage: Option<TokenUsage>,
    /// Counts of which the input holds: those that came while the answer went on, or count too little of it.
    pub(crate) interim_usage: Option<TokenUsage>,
    /// Pictures and sounds in it.
    pub(crate) media: Vec<bytes::Bytes>,
    /// Estimated tokens of what the model wrote, of what stands behind its end too.
    pub(crate) written: u64,
    /// Blocks and finish of each choice that says something, by index.
    pub(crate) choices: Vec<(u32, Vec<loom::Block>, Finish)>,
}

impl ReceivedResponse {
    fn of(
        runtime: &Runtime,
        call: &Call,
        raw: RawResponse,
        failure: Option<&ModelError>,
        prepared: &PreparedRequest,
        ask: &GenerationRequest,
    ) -> Result<Self, AgentError> {
        let (manifest, info) = (&prepared.manifest, ask.model.info());
        let (sent, limit) = (RequestSize::from(&prepared.encoded), info.output_limit);
        let came = AnswerSize::of(&raw.parsed, raw.dialect, raw.body.len());
        let bounds = UsageBounds::new(sent, came, limit, ask.choices());
        // A script reports what it likes.
        let bounds = Some(&bounds).filter(|_| info.kind != loom::SourceKind::Script);
        let reported = ReportedUsage::of(&raw.parsed, bounds);
        let mut meta = ResponseMeta::of(&raw, &manifest.model.name);
        if reported.implausible.is_some() {
            call.note("the server's count of tokens is not plausible; what it cost is estimated");
        }
        if raw.parsed.choices.iter().any(stored::is_cut) {
            call.note("the answer is longer than a node holds: its end stands in the stored response alone");
        }
        (meta.ends_at, meta.stops) = (ask.params.ends_at, ask.params.stop.clone());
        meta.interrupted = failure.map(|error| error.code().to_owned());
        // Without a copy: nobody else has it.
        Self::new(runtime, raw.body.into(), raw.parsed, reported, meta, &manifest.held)
    }

    /// Reads a body, with known secrets masked in it. What was parsed while it arrived holds where nothing is masked.
    pub(crate) fn new(
        runtime: &Runtime,
        body: Vec<u8>,
        parsed: ParsedResponse,
        reported: ReportedUsage,
        mut meta: ResponseMeta,
        held: &str,
    ) -> Result<Self, AgentError> {
        let MaskedResponse { body, parsed, names } =
            MaskedResponse::of(&runtime.masker, meta.dialect, body, meta.streamed, parsed);
        meta.masked = names.into_iter().collect();
        (meta.usage, meta.implausible_usage) = (reported.whole, reported.implausible);
        for (_, value) in &mut meta.headers {
            *value = runtime.masker.mask_entering(value).text.into_owned();
        }
        // A server that stops there has left it out, and its answer is whole.
        let is_in = |stop: &String| parsed.choices.iter().any(|choice| choice.text().contains(stop));
        meta.stops.retain(|stop| !stop.is_empty() && is_in(stop));
        let interrupted = meta.interrupted.clone();
        let pieces = parsed.choices.iter().flat_map(|choice| &choice.pieces);
        let media = pieces.filter_map(|piece| match piece {
            ReplyPiece::Media(media) => Some(media.data.clone()),
            _ => None,
        });
        let media = media.collect();
        let written = written_tokens(&parsed.choices);
        let end = meta.end();
        let choices = parsed
            .choices
            .into_iter()
            .map(|mut choice| {
                let ended = stored::cut_at(&mut choice, &end);
                let finish = match (&choice.finish, &interrupted) {
                    _ if ended => Finish::Stop,
                    _ if stored::is_cut(&choice) => Finish::Length,
                    (Some(reason), _) => finish(reason),
                    (None, Some(code)) => Finish::Interrupted(code.clone()),
                    (None, None) => Finish::Interrupted("cut".to_owned()),
                };
                (choice.index, stored::blocks(choice, held, &meta), finish)
            })
            .filter(|(_, blocks, _)| !blocks.is_empty())
            .collect();
        let (metadata, usage, interim_usage) = (String::new(), meta.usage, reported.interim);
        let mut response = Self { body, metadata, usage, interim_usage, media, written, choices };
        meta.estimated_usage = response.usage_of_reported_input().filter(|_| usage.is_none());
        response.metadata = meta.to_json().map_err(loom::Refusal::from)?;
        Ok(response)
    }
}

fn finish(reason: &FinishReason) -> Finish {
    match reason {
        FinishReason::Stop | FinishReason::Other(_) => Finish::Stop,
        FinishReason::Length => Finish::Length,
        FinishReason::ToolUse => Finish::ToolUse,
        FinishReason::ContentFilter | FinishReason::Refusal => Finish::Refused,
    }
}

pub(crate) struct Source<'a> {
    pub(crate) prepared: &'a PreparedRequest,
    pub(crate) ask: &'a GenerationRequest,
}

async fn make_nodes(
    runtime: &Runtime,
    call: &Call,
    begun: &StartedGeneration,
    source: &Source<'_>,
    reading: Option<ReceivedResponse>,
) -> Result<StoredAnswer, AgentError> {
    let info = source.ask.model.info();
    let origin = Origin {
        provider: info.provider.clone(),
        model: info.name.clone(),
        kind: info.kind,
        author: agent_author(&source.ask.agent, source.ask.profile),
        dialect: source.prepared.encoded.dialect().as_str().to_owned(),
        trust: source.prepared.assembled.trust.min(Trust::Agent),
        inputs: source.prepared.assembled.inputs.clone(),
        prices: info.prices,
        sent: source.prepared.manifest.tokens,
    };
    let follow = source.ask.follows();
    store_response(runtime, call, begun, origin, reading, source.ask.part_of, follow).await
}

/// A model as the author of what it writes for an agent of this profile.
pub(crate) fn agent_author(agent: &str, profile: Option<Digest>) -> Author {
    Author { kind: AuthorKind::Model, id: agent.to_owned(), profile }
}

/// What became of a response.
#[derive(Debug, Default)]
pub(crate) struct StoredAnswer {
    pub(crate) nodes: Vec<CommittedNode>,
    pub(crate) reply: Option<TextReply>,
}

/// What the hashed record of a model node says of its origin.
pub(crate) struct Origin {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) kind: loom::SourceKind,
    pub(crate) author: Author,
    pub(crate) dialect: String,
    pub(crate) trust: Trust,
    pub(crate) inputs: Vec<(loom::OriginRole, NodeId)>,
    pub(crate) prices: Option<Prices>,
    /// Tokens of the request, estimated.
    pub(crate) sent: u64,
}

impl Origin {
    /// What a request came to. Where a model does not say, it is estimated: what was broken off or cut counts, too.
    fn usage(&self, reading: &ReceivedResponse) -> Option<store::GenerationCost> {
        let usage = reading.usage_or_estimate(self.kind, self.sent)?;
        Some(store::GenerationCost {
            calls: 1,
            prompt_tokens: usage.input(),
            completion_tokens: usage.output,
            cached_tokens: usage.cache_read,
            micro_cost: self.prices.map(|prices| prices.cost(&usage).0.div_ceil(1_000)),
        })
    }
}

/// Bytes of a body from which on packing it takes longer than handing it to another thread.
const LONG_BODY: usize = 64 << 10;

/// A response as its row holds it. One of 128 MiB is compressed for seconds, on a thread that serves nobody.
async fn packed(body: Vec<u8>, metadata: String) -> Result<Received, AgentError> {
    let size = body.len();
    let pack = move || Ok(Received::new(&body, metadata)?);
    if size < LONG_BODY {
        return pack();
    }
    let packed = tokio::task::spawn_blocking(pack).await;
    packed.unwrap_or_else(|failed| Err(AgentError::Home(failed.to_string())))
}

/// Stores a reading with the nodes made of it, if its generation makes any. The view follows the first one, if
/// `follow`.
pub(crate) fn store_response<'a>(
    runtime: &'a Runtime,
    call: &'a Call,
    begun: &'a StartedGeneration,
    origin: Origin,
    reading: Option<ReceivedResponse>,
    part_of: Option<loom::Seq>,
    follow: bool,
) -> BoxFuture<'a, Result<StoredAnswer, AgentError>> {
    Box::pin(async move {
        let (tree, who) = (begun.row.tree, &call.who);
        let Some(reading) = reading else {
            runtime
                .apply_rows(who, tree, outcome(runtime, begun, GenerationState::Cancelled, None, None))
                .await?;
            return Ok(StoredAnswer::default());
        };
        let usage = origin.usage(&reading);
        let received = packed(reading.body, reading.metadata).await?;
        let response = received.digest;
        let mut received = Some(received);
        let place = begun.row.place.as_ref().filter(|_| begun.row.makes_nodes());
        let Some(place) = place.filter(|_| !reading.choices.is_empty()) else {
            runtime
                .apply_rows(who, tree, outcome(runtime, begun, GenerationState::Done, received, usage))
                .await?;
            let choice = reading.choices.into_iter().next();
            let reply = choice.map(|(_, content, finish)| {
                let text = loom::content::plain_text(&content).into_owned();
                TextReply { text, finish, trust: origin.trust }
            });
            return Ok(StoredAnswer { reply, ..StoredAnswer::default() });
        };
        // Not removed by whoever forgets the same ones, before the nodes that show them are there.
        let _keeping = runtime.keep_blobs(reading.media).await?;
        let last = reading.choices.len() - 1;
        let mut nodes = Vec::new();
        for (nth, (index, content, finish)) in reading.choices.into_iter().enumerate() {
            // A server may give more choices than were asked for, or count them from 1.
            let node = match begun.row.reserved.get(index as usize) {
                Some(node) => *node,
                None => runtime.new_id()?,
            };
            let content = Arc::new(content);
            let media = content.iter().filter_map(|block| match block {
                loom::Block::Image { blob, .. } | loom::Block::Audio { blob, .. } => Some(*blob),
                _ => None,
            });
            let media = media.collect();
            let answer = loom::plan::Answer {
                generation: begun.row.clone(),
                node,
                content: Arc::clone(&content),
                author: origin.author.clone(),
                source: ModelSource {
                    provider: origin.provider.clone(),
                    model: origin.model.clone(),
                    dialect: origin.dialect.clone(),
                    kind: origin.kind,
                    manifest: begun.row.manifest,
                    response: Some(response),
                    choice: ResponsePart::Index(index),
                },
                finish: finish.clone(),
                trust: origin.trust,
                inputs: origin.inputs.clone(),
                part_of,
                follow,
            };
            // The response goes with the first node, the end of the generation with the last.
            let state = if nth == last { GenerationState::Done } else { GenerationState::Started };
            let booked = if nth == last { usage } else { None };
            let with = outcome(runtime, begun, state, received.take(), booked);
            let op = Op::Answer(Box::new(answer));
            let applied = runtime.change_as(call.writer(), tree, &place.view, op, with).await?;
            let short_id = applied.nodes.first().map(|(_, short)| short.clone()).unwrap_or_default();
            let text = loom::content::plain_text(&content).into();
            nodes.push(CommittedNode { id: node, short_id, text, media, finish });
        }
        Ok(StoredAnswer { nodes, reply: None })
    })
}

/// The end of a generation as rows of a change.
pub(crate) fn outcome(
    runtime: &Runtime,
    begun: &StartedGeneration,
    state: GenerationState,
    response: Option<Received>,
    usage: Option<store::GenerationCost>,
) -> AttachedWrites {
    let outcome = GenerationEnd {
        generation: begun.row.id,
        claim: begun.claim.clone(),
        state,
        response,
        usage,
        at: runtime.now(),
    };
    AttachedWrites { outcomes: vec![outcome], guards: begun.guards.clone(), ..AttachedWrites::nothing() }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::sync::mpsc;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn a_long_body_is_packed_off_the_threads_that_serve() {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let (go_on, halted) = mpsc::channel::<()>();
            let busy = tokio::task::spawn_blocking(move || halted.recv());
            let mut context = Context::from_waker(Waker::noop());
            let mut short = pin!(packed(vec![b'x'; LONG_BODY - 1], String::new()));
            assert!(short.as_mut().poll(&mut context).is_ready(), "no other thread is needed");
            let mut long = pin!(packed(vec![b'x'; LONG_BODY], String::new()));
            assert!(long.as_mut().poll(&mut context).is_pending(), "the other thread is busy");
            drop(go_on);
            assert!(busy.await.unwrap().is_err());
            assert_eq!(long.await.unwrap().digest, Digest::of(&[b'x'; LONG_BODY]));
        });
    }
}

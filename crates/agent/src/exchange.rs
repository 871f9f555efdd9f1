//! Sending a durable request: every received byte is in the spool before anything looks at it.

use std::io;
use std::path::PathBuf;

use context::FolderInstructions;
use model::{Cancel, Exchange, ModelError, RawResponse, SendPermit, SiblingSlot};
use store::home::HomeDir;
use store::spool::{GenerationName, Spool, SpoolHeader};
use tokio::sync::watch;

use crate::answer_end::AnswerEnd;
use crate::call::Call;
use crate::error::AgentError;
use crate::event::SessionEvent;
use crate::masking::MaskedDeltas;
use crate::prepared_request::{PreparedRequest, StartedGeneration};
use crate::request::GenerationRequest;
use crate::request_permit::RequestPermit;
use crate::runtime::Runtime;
use crate::stop_cutter::StopCutter;

/// Lets the first of several requests go ahead until its first token.
pub enum CacheGate<'a> {
    Opens(&'a watch::Sender<bool>),
    /// This one waits for it.
    Waits(watch::Receiver<bool>),
}

/// Place of a request among its siblings: when it may be sent, and whose answer becomes nodes before its own, so that
/// siblings stand in the order in which they were asked for.
pub struct SiblingGate<'a> {
    pub cache: CacheGate<'a>,
    /// Closed once the sibling before has its nodes, or has failed.
    pub before: Option<watch::Receiver<()>>,
    /// Dropped once this one has its own.
    pub committed: watch::Sender<()>,
}

/// Held by one of several sibling requests once it may be sent. The first's opens the gate for the others when it is
/// dropped, whatever happened; a request without siblings has no gate.
#[derive(Default)]
pub(crate) struct PassedGate<'a> {
    opens: Option<&'a watch::Sender<bool>>,
    before: Option<watch::Receiver<()>>,
}

impl<'a> SiblingGate<'a> {
    /// Waits, if it has to. What is returned beside the gate is dropped once the request has its nodes.
    pub(crate) async fn pass(self) -> (PassedGate<'a>, watch::Sender<()>) {
        let Self { cache, before, committed } = self;
        let opens = match cache {
            CacheGate::Opens(sender) => Some(sender),
            CacheGate::Waits(mut receiver) => {
                // An error means that the first is gone; then nobody is waited for.
                let _ = receiver.wait_for(|open| *open).await;
                None
            }
        };
        (PassedGate { opens, before }, committed)
    }
}

impl PassedGate<'_> {
    /// Waits until the sibling before has its nodes. Cancel-safe.
    pub(crate) async fn in_order(&self) {
        if let Some(mut before) = self.before.clone() {
            // Nothing is ever sent: it ends when the sender is dropped.
            let _ = before.changed().await;
        }
    }

    fn open(&self) {
        if let Some(sender) = self.opens {
            sender.send_replace(true);
        }
    }
}

impl Drop for PassedGate<'_> {
    fn drop(&mut self) {
        self.open();
    }
}

/// Outcome of a request: the response or why there is none, and the spool that still holds its bytes.
pub(crate) struct ReceivedStream {
    pub(crate) result: Result<RawResponse, ModelError>,
    pub(crate) spool: Option<Spool>,
}

/// Sends a request and keeps what comes.
pub(crate) async fn send(
    (runtime, call): (&Runtime, &Call),
    ask: &GenerationRequest,
    prepared: &PreparedRequest,
    begun: &StartedGeneration,
    slot: SiblingSlot,
    gate: &PassedGate<'_>,
) -> Result<ReceivedStream, AgentError> {
    let mut spool = Spooling::create(runtime, ask, prepared, begun)?;
    // A session counts as one over all its trees.
    let session = runtime.store.tree(&call.who, ask.tree).await?.session;
    let session = session.unwrap_or_else(|| ask.tree.to_string());
    let label = call.subagent.as_ref().map(|subagent| subagent.label.clone());
    let to = model::CallOrigin { sibling: Some(slot), label, ..model::CallOrigin::new(session, ask.purpose) };
    let info = ask.model.info();
    for path in
        prepared.assembled.injected.iter().filter_map(|told| FolderInstructions::told_in(&told.source))
    {
        call.events.emit(SessionEvent::notice(format!("the model is told of {path}")));
    }
    call.events.emit(SessionEvent::Started {
        generation: begun.row.id,
        nodes: begun.row.reserved.clone(),
        model: info.full_name(),
        place: info.place,
        manifest: begun.row.manifest,
        tokens: prepared.manifest.tokens,
        counted: prepared.manifest.is_counted(),
    });
    let mut deltas = MaskedDeltas::new(call.events.as_ref(), &runtime.masker, &begun.row.reserved);
    let (stop, cancel) = Cancel::new();
    let mut cutter = StopCutter::new(AnswerEnd::of(&ask.params), ask.choices());
    let mut listener = |event: model::ModelEvent| {
        if matches!(event, model::ModelEvent::Text { .. } | model::ModelEvent::Thinking { .. }) {
            gate.open();
        }
        cutter.event(event, |event| deltas.event(&event));
        if cutter.has_ended() {
            stop.cancel();
        }
    };
    let permit = RequestPermit {
        runtime,
        who: &call.who,
        tree: ask.tree,
        place: begun.row.place.as_ref(),
        runs: &begun.row.runs,
        inputs: &prepared.assembled.inputs,
        trusts_by_record: prepared.trusts_by_record,
    };
    let exchange = Exchange { spool: &mut spool, listener: &mut listener, cancel, permit: Some(&permit) };
    let sending = async {
        // Since it was put together, somebody may have been waited for: an answer about a budget, a server that counts.
        if permit.is_granted().await {
            ask.model.send(&prepared.encoded, &to, exchange).await
        } else {
            Err(ModelError::Withdrawn { response: None })
        }
    };
    let mut cancelled = call.cancel.clone();
    let stopped = async {
        tokio::select! {
            () = cancelled.cancelled() => {}
            () = runtime.is_stopped(&begun.row) => {}
        }
        stop.cancel();
        std::future::pending::<()>().await;
    };
    // Once stopped, it is waited for all the same: what it had received comes with its end.
    let result = tokio::select! {
        result = sending => result,
        () = stopped => return Err(AgentError::Forgotten),
    };
    cutter.finish(|event| deltas.event(&event));
    deltas.finish();
    let result = match result {
        // Whatever its connection did after the last choice had ended, the answer is whole.
        Err(mut error) if cutter.has_ended() => error.take_response().ok_or(error),
        result => result,
    };
    if result.is_err() {
        let (generation, nodes) = (begun.row.id, begun.row.reserved.clone());
        call.events.emit(SessionEvent::RequestFailed { generation, nodes });
    }
    Ok(ReceivedStream { result, spool: spool.finished().await })
}

/// The spool as a model writes to it.
struct Spooling {
    dir: PathBuf,
    header: SpoolHeader,
    spool: Option<Spool>,
}

impl Spooling {
    fn create(
        runtime: &Runtime,
        ask: &GenerationRequest,
        prepared: &PreparedRequest,
        begun: &StartedGeneration,
    ) -> Result<Self, AgentError> {
        let dir = runtime.home.dir(HomeDir::Spool).map_err(spool_failed)?;
        let name = GenerationName::try_from(begun.row.id.to_string()).map_err(spool_failed)?;
        let dialect = prepared.encoded.dialect().as_str();
        let mut header =
            SpoolHeader::new(name, runtime.instance, begun.claim.fence.0, dialect, runtime.now().0);
        header.extra.insert("streamed".to_owned(), prepared.encoded.stream().into());
        header.extra.insert("agent".to_owned(), ask.agent.as_str().into());
        let prices = serde_json::to_value(ask.model.info().prices).map_err(spool_failed)?;
        header.extra.insert("prices".to_owned(), prices);
        if let Some(end) = ask.params.ends_at {
            header.extra.insert("ends_at".to_owned(), serde_json::to_value(end).map_err(spool_failed)?);
        }
        if !ask.params.stop.is_empty() {
            header.extra.insert("stops".to_owned(), ask.params.stop.as_slice().into());
        }
        header.extra.insert("tree".to_owned(), begun.row.tree.to_string().into());
        let spool = Spool::create(&dir, &header).map_err(spool_failed)?;
        Ok(Self { dir, header, spool: Some(spool) })
    }

    /// Brings everything to the device, on a thread that may wait for it. A failure is not fatal: the response is about
    /// to be committed.
    async fn finished(self) -> Option<Spool> {
        let mut spool = self.spool?;
        let synced = tokio::task::spawn_blocking(move || {
            if let Err(error) = spool.finish() {
                tracing::debug!(%error, "the spool could not be synced");
            }
            spool
        });
        synced.await.ok()
    }
}

fn spool_failed(error: impl std::fmt::Display) -> AgentError {
    AgentError::Spool(error.to_string())
}

impl model::ResponseSink for Spooling {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let spool = self.spool.as_mut().ok_or_else(|| io::Error::other("the spool is gone"))?;
        spool.append(bytes).map_err(io::Error::other)
    }

    fn restart(&mut self) -> io::Result<()> {
        if let Some(spool) = self.spool.take() {
            spool.committed().map_err(io::Error::other)?;
        }
        self.spool = Some(Spool::create(&self.dir, &self.header).map_err(io::Error::other)?);
        Ok(())
    }
}

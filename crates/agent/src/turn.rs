//! A turn: what was said is durable, a model is asked, its answer is kept (spec: agent §1).
//!
//! The turn holds its session's lease from before the first write until after the last. What is said to the session
//! meanwhile, by other processes or by whoever sits at this one, is handed to it through one door
//! ([`crate::steering`]) and joins at the next model call: it becomes a node when the call that runs has ended, and
//! the same turn asks again. The door is closed before the lease is given back, so that nothing that was taken in is
//! left lying. A turn that loses its session stops what it asks for as soon as it finds that out.

use std::sync::Arc;

use bytes::Bytes;
use context::{Bootstrap, Strategy, Zone};
use loom::plan::{EditAs, NewText};
use loom::{Digest, NodeId, Op, PositionId, Refusal, Role, Seq, TreeId, ViewName};
use model::{Cancel, Model, Params, Usage};
use store::{Principal, StoreError, With};

use crate::commit::{CommittedNode, GenerationOutcome};
use crate::error::AgentError;
use crate::lease::Held;
use crate::request::GenerationRequest;
use crate::runtime::Runtime;
use crate::session::Entered;
use crate::steering::{InputQueue, InputQueues, RemoteInput};
use crate::variant::RequestVariant;

/// Model calls of one turn (spec: agent §1 *Limits*).
const MAX_CALLS: usize = 40;

/// How a session's turns are asked.
#[derive(Clone)]
pub struct TurnConfig {
    /// Who is asked.
    pub model: Arc<dyn Model>,
    /// As which agent: the author of the answers.
    pub agent: String,
    /// How.
    pub params: Params,
    /// What stands above the cache boundary.
    pub bootstrap: Arc<Bootstrap>,
    /// How a conversation that is too long is cut.
    pub strategy: Strategy,
}

impl TurnConfig {
    /// The request that continues a view of a tree in this config.
    pub fn next(&self, tree: TreeId, view: &ViewName) -> GenerationRequest {
        GenerationRequest {
            tree,
            view: view.clone(),
            from: None,
            follow: true,
            drafts: false,
            model: Arc::clone(&self.model),
            agent: self.agent.clone(),
            params: self.params.clone(),
            bootstrap: Arc::clone(&self.bootstrap),
            context: Vec::new(),
            instruction: Vec::new(),
            variant: RequestVariant { strategy: self.strategy, ..RequestVariant::default() },
            part_of: None,
            guards: Vec::new(),
            cancel: Cancel::never(),
        }
    }
}

/// What a turn begins with.
#[derive(Debug, Clone)]
pub enum Said {
    /// Texts, each a node of its own: the last is what is said, those before it are sent along.
    New {
        /// The texts.
        texts: Vec<NewText>,
        /// The pictures and sounds they show.
        media: Vec<Bytes>,
    },
    /// Something said before, in other words: a sibling of it that is answered anew.
    Instead {
        /// Where it was said.
        of: PositionId,
        /// What is said there now.
        text: String,
    },
}

/// What a turn ended with.
#[derive(Debug)]
pub struct Turned {
    /// The node of what was said.
    pub said: NodeId,
    /// What came of the model call that answered it; an error when nothing could be sent.
    pub reply: Result<Replied, AgentError>,
}

/// What came of one model call.
#[derive(Debug)]
pub struct Replied {
    /// The answer; none if there was none.
    pub answer: Option<CommittedNode>,
    /// Digest of the manifest of its request.
    pub manifest: Digest,
    /// Tokens as reported.
    pub usage: Option<Usage>,
    /// Tokens of the request that a cache could reuse, estimated; none where no request was before it.
    pub reusable: Option<u64>,
    /// The used share of the window, 0 to 1: reported, else estimated.
    pub share: f64,
    /// Whether that share is what the model reported, and not an estimate.
    pub measured: bool,
    /// The zone of that share.
    pub zone: Zone,
    /// Why it did not end well; what was received is in the answer.
    pub error: Option<AgentError>,
}

/// Something said in a turn that is a node, and has no answer yet.
pub struct Kept {
    /// The node of what was said; the last one, if several texts are answered together.
    pub node: NodeId,
    /// The texts that joined the turn, in order; none where it began.
    pub joined: Vec<String>,
    view: ViewName,
    part_of: Option<Seq>,
    /// The message of another process, which waits for the answer.
    handed: Option<RemoteInput>,
}

impl Kept {
    /// Whether another process said it.
    pub fn is_of_another(&self) -> bool {
        self.handed.is_some()
    }
}

/// A turn under way. It has its session until [`Turn::end`], or until it is dropped.
///
/// ```text
/// begin -> Kept, answer it; while next() -> Kept, answer it; end()
/// ```
pub struct Turn {
    runtime: Runtime,
    who: Principal,
    entered: Entered,
    config: TurnConfig,
    held: Held,
    door: InputQueue,
    /// Stops it, by whoever began it.
    cancel: Cancel,
    /// Model calls begun.
    calls: usize,
    /// What was taken in here and not said.
    unsaid: Vec<String>,
}

impl Turn {
    /// Takes a session, and makes what is said there a node.
    ///
    /// # Errors
    /// [`AgentError::Busy`] when a turn is under way elsewhere: nothing was written then.
    pub async fn begin(
        runtime: &Runtime,
        who: &Principal,
        entered: &Entered,
        config: &TurnConfig,
        said: Said,
        inputs: &InputQueues,
        cancel: Cancel,
    ) -> Result<(Self, Kept), AgentError> {
        runtime.require_space()?;
        let held = Held::take(runtime, who, &entered.session, cancel.clone()).await?;
        let door = inputs.open(&entered.session, held.fence());
        let turn = Self {
            runtime: runtime.clone(),
            who: who.clone(),
            entered: entered.clone(),
            config: config.clone(),
            held,
            door,
            cancel,
            calls: 0,
            unsaid: Vec::new(),
        };
        match turn.first(said).await {
            Ok(kept) => Ok((turn, kept)),
            Err(error) => {
                turn.end().await;
                Err(error)
            }
        }
    }

    async fn first(&self, said: Said) -> Result<Kept, AgentError> {
        let view = self.entered.view.clone();
        let (ops, media): (Vec<Op>, Vec<Bytes>) = match said {
            Said::New { texts, media } => (texts.into_iter().map(Op::Append).collect(), media),
            Said::Instead { of, text } => {
                (vec![Op::Edit { position: of, text, edit_as: EditAs::Branch }], Vec::new())
            }
        };
        let keeping = self.runtime.keep_blobs(&media).await?;
        let kept = self.keep_all(&view, ops).await;
        drop(keeping);
        if kept.is_err() {
            let all: Vec<Digest> = media.iter().map(|bytes| Digest::of(bytes)).collect();
            if let Err(error) = self.runtime.remove_blobs(&self.who, &all).await {
                tracing::warn!(%error, "what was not said is still there");
            }
        }
        let (node, part_of) = kept?;
        Ok(Kept { node, joined: Vec::new(), view, part_of, handed: None })
    }

    /// Makes several things nodes, one below the other. Returns the last.
    async fn keep_all(&self, view: &ViewName, ops: Vec<Op>) -> Result<(NodeId, Option<Seq>), AgentError> {
        let mut kept = None;
        for op in ops {
            kept = Some(self.keep(view, op, None).await?);
        }
        Ok(kept.ok_or(Refusal::Empty)?)
    }

    /// Asks the model for the answer to what was said. Another process that said it hears how it went.
    pub async fn answer(&mut self, kept: Kept) -> Turned {
        self.calls += 1;
        let reply = self.ask(&kept.view, kept.part_of).await;
        if let Some(handed) = &kept.handed {
            handed.end(kept.node, &reply).await;
        }
        Turned { said: kept.node, reply }
    }

    /// From now on nobody here hears what is answered: it is other processes that do.
    pub fn unheard(&mut self) {
        self.runtime.client = Arc::new(());
    }

    /// What was said meanwhile and is answered next; none when the turn is at its end, which nothing joins from then
    /// on. What several lines said in this process is answered together; another process waits for an answer of its
    /// own. Of a turn that was stopped, or has asked a model 40 times, what waits is given back unsaid.
    pub async fn next(&mut self) -> Option<Kept> {
        while let Some(handed) = self.door.next() {
            if self.calls >= MAX_CALLS || self.cancel.is_cancelled() {
                self.reject(handed).await;
            } else if handed.is_own() {
                if let Some(kept) = self.keep_own(handed).await {
                    return Some(kept);
                }
            } else if let Some(kept) = self.keep_handed(handed).await {
                return Some(kept);
            }
        }
        None
    }

    /// Gives the session back. What was taken in here and not said is to be said in another turn.
    pub async fn end(mut self) -> Vec<String> {
        // Not before the door is closed: nothing that is taken in is left lying.
        while let Some(handed) = self.door.next() {
            self.reject(handed).await;
        }
        self.held.release().await;
        self.unsaid
    }

    async fn reject(&mut self, handed: RemoteInput) {
        if handed.is_own() {
            self.unsaid.push(handed.text);
        } else {
            handed.reject().await;
        }
    }

    /// Makes what was said here nodes, with all that was said right after it. What cannot be kept is given back:
    /// the turn in which it is said says why.
    async fn keep_own(&mut self, first: RemoteInput) -> Option<Kept> {
        let view = first.view.clone();
        let (mut kept, mut joined, mut next) = (None, Vec::new(), Some(first));
        while let Some(handed) = next {
            match self.keep(&view, said(handed.text.clone()), None).await {
                Ok(done) => {
                    kept = Some(done);
                    joined.push(handed.text);
                }
                Err(error) => {
                    tracing::debug!(%error, "what joined a turn could not be kept");
                    self.unsaid.push(handed.text);
                }
            }
            next = self.door.next_own(&view);
        }
        kept.map(|(node, part_of)| Kept { node, joined, view, part_of, handed: None })
    }

    /// Makes what another process handed over a node.
    async fn keep_handed(&self, handed: RemoteInput) -> Option<Kept> {
        let text = self.runtime.masker.mask(&handed.text).text.into_owned();
        match self.keep(&handed.view, said(text.clone()), Some(&handed)).await {
            Ok((node, part_of)) => {
                handed.kept(node).await;
                let view = handed.view.clone();
                return Some(Kept { node, joined: vec![text], view, part_of, handed: Some(handed) });
            }
            // Nothing is written under this lease any more: whoever said it asks who has the session now.
            Err(AgentError::TakenOver { .. }) => handed.reject().await,
            Err(error) => handed.refuse(&error.to_string()).await,
        }
        None
    }

    /// Makes what was said a node. Of what was handed over its sender hears beforehand which node.
    async fn keep(
        &self,
        view: &ViewName,
        op: Op,
        handed: Option<&RemoteInput>,
    ) -> Result<(NodeId, Option<Seq>), AgentError> {
        let with = With { guards: vec![self.held.guard()], ..With::nothing() };
        let tree = self.entered.tree;
        let applied = match handed {
            None => self.runtime.change(&self.who, tree, view, op, with).await,
            Some(handed) => self.runtime.change_announced(&self.who, (tree, view), op, with, handed).await,
        };
        let applied = self.named(applied).await?;
        let node = applied.nodes.last().map(|(node, _)| *node).ok_or(Refusal::Empty)?;
        Ok((node, applied.seq))
    }

    /// Asks the model once.
    async fn ask(&self, view: &ViewName, part_of: Option<Seq>) -> Result<Replied, AgentError> {
        let answered = self.request(view, part_of).send(&self.runtime, &self.who).await;
        let answered = self.named(answered).await;
        if let Err(AgentError::TakenOver { .. }) = &answered {
            self.runtime.recover_own().await;
        }
        Ok(self.replied(answered?))
    }

    /// What was done, or who took the session over, if that is why it was not.
    async fn named<T>(&self, done: Result<T, AgentError>) -> Result<T, AgentError> {
        match done {
            Err(AgentError::Store(StoreError::Fenced { what })) if what == self.held.guard().lease => {
                let lease = self.runtime.store.lease(&self.who, &what).await.ok().flatten();
                let holder = lease.and_then(|lease| lease.holder);
                let by = holder.map_or_else(|| "another process".to_owned(), |by| self.runtime.name_of(&by));
                Err(AgentError::TakenOver { by })
            }
            done => done,
        }
    }

    fn request(&self, view: &ViewName, part_of: Option<Seq>) -> GenerationRequest {
        GenerationRequest {
            part_of,
            guards: vec![self.held.guard()],
            // Stopped as well when the session is lost: its result would be refused.
            cancel: self.held.cancel(),
            ..self.config.next(self.entered.tree, view)
        }
    }

    fn replied(&self, answered: GenerationOutcome) -> Replied {
        let window = answered.window.max(1);
        let reported = answered
            .usage
            .map(|usage| usage.input_uncached + usage.cache_read + usage.cache_write + usage.output);
        let used = reported.unwrap_or(answered.tokens);
        let share = used as f64 / window as f64;
        Replied {
            answer: answered.nodes.into_iter().next(),
            manifest: answered.manifest,
            usage: answered.usage,
            reusable: answered.reusable,
            share,
            measured: reported.is_some(),
            zone: Zone::of(share),
            error: answered.error,
        }
    }
}

/// What was said, as a node of its own.
fn said(text: String) -> Op {
    Op::Append(NewText::owner(text, Some(Role::User)))
}

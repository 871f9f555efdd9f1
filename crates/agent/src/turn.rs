//! A turn: what was said is durable, a model is asked, its answer is kept (spec: agent §1).
//!
//! The turn holds its session's lease from before the first write until after the last. What others say to the
//! session meanwhile is handed to it ([`crate::handover`]) and joins at the next model call; the door is closed
//! before the lease is given back, so that nothing that was taken in is left lying.

use std::sync::Arc;

use context::{Bootstrap, Zone};
use loom::plan::{EditAs, NewText};
use loom::{Digest, NodeId, Op, PositionId, Refusal, Role, Seq, TreeId, ViewName};
use model::{Cancel, Model, Params, Usage};
use store::{Guard, Principal, StoreError, With};

use crate::desk::Desk;
use crate::error::AgentError;
use crate::handover::{Door, Doors, Handed};
use crate::lease::Held;
use crate::request::Ask;
use crate::session::Entered;
use crate::settle::{Answered, Made};

/// Model calls of one turn (spec: agent §1 *Limits*).
const MAX_CALLS: usize = 40;

/// How a session's turns are asked.
#[derive(Clone)]
pub struct Manner {
    /// Who is asked.
    pub model: Arc<dyn Model>,
    /// As which agent: the author of the answers.
    pub agent: String,
    /// How.
    pub params: Params,
    /// What stands above the cache boundary.
    pub bootstrap: Arc<Bootstrap>,
}

impl Manner {
    /// The request that continues a view of a tree in this manner.
    pub fn next(&self, tree: TreeId, view: &ViewName) -> Ask {
        Ask {
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
    New(Vec<NewText>),
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
    pub answer: Option<Made>,
    /// Digest of the manifest of its request.
    pub manifest: Digest,
    /// Tokens as reported.
    pub usage: Option<Usage>,
    /// Tokens of the request that a cache could reuse, estimated; none where no request was before it.
    pub reusable: Option<u64>,
    /// The used share of the window, 0 to 1: reported, else estimated.
    pub share: f64,
    /// The zone of that share.
    pub zone: Zone,
    /// Why it did not end well; what was received is in the answer.
    pub error: Option<AgentError>,
}

/// Says something in a session and has it answered.
///
/// # Errors
/// [`AgentError::Busy`] when a turn is under way elsewhere: nothing was written then. Once what was said is
/// durable, what goes wrong is in the reply.
pub async fn turn(
    desk: &Desk,
    who: &Principal,
    entered: &Entered,
    manner: &Manner,
    said: Said,
    doors: &Doors,
    cancel: Cancel,
) -> Result<Turned, AgentError> {
    desk.require_space()?;
    let held = Held::take(desk, who, &entered.session).await?;
    let door = doors.open(&entered.session, held.fence());
    let turn = Turn { desk, who, entered, manner, guard: held.guard(), cancel };
    let done = turn.run(said, door).await;
    held.release().await;
    done
}

/// A turn under way.
struct Turn<'a> {
    desk: &'a Desk,
    who: &'a Principal,
    entered: &'a Entered,
    manner: &'a Manner,
    guard: Guard,
    cancel: Cancel,
}

impl Turn<'_> {
    async fn run(&self, said: Said, mut door: Door) -> Result<Turned, AgentError> {
        let view = &self.entered.view;
        let ops = match said {
            Said::New(texts) => texts.into_iter().map(Op::Append).collect(),
            Said::Instead { of, text } => vec![Op::Edit { position: of, text, edit_as: EditAs::Branch }],
        };
        let mut kept = None;
        for op in ops {
            kept = Some(self.keep(view, op, None).await?);
        }
        let (node, seq) = kept.ok_or(Refusal::Empty)?;
        let turned = Turned { said: node, reply: self.ask(view, seq).await };
        // What was handed over is said and answered before the session is free again.
        let mut calls = 1;
        while let Some(handed) = door.next() {
            if calls == MAX_CALLS || self.cancel.is_cancelled() {
                handed.give_back().await;
                continue;
            }
            self.answer(handed).await;
            calls += 1;
        }
        Ok(turned)
    }

    /// Makes what was said a node. Of what was handed over its sender hears beforehand which node.
    async fn keep(
        &self,
        view: &ViewName,
        op: Op,
        handed: Option<&Handed>,
    ) -> Result<(NodeId, Option<Seq>), AgentError> {
        let with = With { guards: vec![self.guard.clone()], ..With::nothing() };
        let tree = self.entered.tree;
        let applied = match handed {
            None => self.desk.change(self.who, tree, view, op, with).await,
            Some(handed) => self.desk.change_announced(self.who, (tree, view), op, with, handed).await,
        };
        let applied = self.named(applied).await?;
        let node = applied.nodes.last().map(|(node, _)| *node).ok_or(Refusal::Empty)?;
        Ok((node, applied.seq))
    }

    /// Asks the model once.
    async fn ask(&self, view: &ViewName, part_of: Option<Seq>) -> Result<Replied, AgentError> {
        let answered = self.request(view, part_of).alone(self.desk, self.who).await;
        Ok(self.replied(self.named(answered).await?))
    }

    /// What was done, or who took the session over, if that is why it was not.
    async fn named<T>(&self, done: Result<T, AgentError>) -> Result<T, AgentError> {
        match done {
            Err(AgentError::Store(StoreError::Fenced { what })) if what == self.guard.lease => {
                let lease = self.desk.store.lease(self.who, &what).await.ok().flatten();
                let holder = lease.and_then(|lease| lease.holder);
                let by = holder.map_or_else(|| "another process".to_owned(), |by| self.desk.name_of(&by));
                Err(AgentError::TakenOver { by })
            }
            done => done,
        }
    }

    fn request(&self, view: &ViewName, part_of: Option<Seq>) -> Ask {
        Ask {
            part_of,
            guards: vec![self.guard.clone()],
            cancel: self.cancel.clone(),
            ..self.manner.next(self.entered.tree, view)
        }
    }

    fn replied(&self, answered: Answered) -> Replied {
        let window = u64::from(self.manner.model.info().window).max(1);
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
            zone: Zone::of(share),
            error: answered.error,
        }
    }

    /// Says and answers what another process handed over; it hears how.
    async fn answer(&self, handed: Handed) {
        let text = self.desk.masker.mask(&handed.text).text.into_owned();
        match self.keep(&handed.view, Op::Append(NewText::owner(text, Some(Role::User))), Some(&handed)).await
        {
            Ok((node, seq)) => {
                handed.kept(node).await;
                let reply = self.ask(&handed.view, seq).await;
                handed.end(node, reply).await;
            }
            // Nothing is written under this lease any more: whoever said it asks who has the session now.
            Err(AgentError::TakenOver { .. }) => handed.give_back().await,
            Err(error) => handed.refuse(&error.to_string()).await,
        }
    }
}

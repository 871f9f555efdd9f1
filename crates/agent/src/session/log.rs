//! The events of a session, numbered from 1 without a gap, to be read from any number on by any number of readers.
//!
//! What is held is the turn under way, and what a reader has not read yet; what is older stands in the tree. Deltas
//! take the bytes of their text and four more, so that any number of them is told again as they came. A reader that is
//! left behind loses events, but never the end of what it waits for: whoever waits for an answer hears of it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use loom::NodeId;
use tokio::sync::watch;

use crate::event::{CommittedNode, EventSink, SayId, SessionEvent};

/// Bytes that are held at most, of whichever turn; the oldest leave first.
const MAX_BYTES: usize = 8 << 20;
/// Bytes of text in one run of deltas: what leaves at once.
const RUN: usize = 64 << 10;
/// Bytes an event is reckoned with besides its text.
const OVERHEAD: usize = 256;

/// An event with its number.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbered {
    pub n: u64,
    pub event: SessionEvent,
}

/// The events of a session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct EventLog(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Number of the next event; none is to come once the sender is gone.
    next: Mutex<Option<watch::Sender<u64>>>,
}

#[derive(Debug)]
struct State {
    held: VecDeque<Held>,
    /// Number of the next event.
    next: u64,
    /// First event of the turn under way.
    turn: u64,
    /// Bytes of all that is held.
    bytes: usize,
    readers: Vec<Weak<Reader>>,
}

#[derive(Debug)]
struct Reader {
    /// Number of the event it reads next.
    next: AtomicU64,
    /// What it waits for the end of.
    say: Option<SayId>,
    /// That end: the reader's own, so that it is read also where the log holds it no more.
    end: OnceLock<Numbered>,
}

/// Events that are held, the first of which has this number.
#[derive(Debug)]
struct Held {
    n: u64,
    events: HeldEvents,
    /// Whether its text is that of an event held before it, with which it is counted.
    is_shared: bool,
}

#[derive(Debug)]
enum HeldEvents {
    One(Box<SessionEvent>),
    /// Deltas of one node, each of which goes on where the one before it ends.
    Run {
        node: NodeId,
        /// Of the node's text in bytes; none for thinking.
        offset: Option<u64>,
        text: String,
        /// Where in `text` each of them ends.
        ends: Vec<u32>,
    },
}

impl Held {
    fn bytes(&self) -> usize {
        match &self.events {
            HeldEvents::One(_) if self.is_shared => OVERHEAD,
            HeldEvents::One(event) => OVERHEAD + event.text_bytes(),
            HeldEvents::Run { text, ends, .. } => OVERHEAD + text.len() + size_of_val(&ends[..]),
        }
    }

    /// Number of the event behind it.
    fn end(&self) -> u64 {
        match &self.events {
            HeldEvents::One(_) => self.n + 1,
            HeldEvents::Run { ends, .. } => self.n + ends.len() as u64,
        }
    }

    fn event(&self, number: u64) -> Option<SessionEvent> {
        match &self.events {
            HeldEvents::One(event) => Some((**event).clone()),
            HeldEvents::Run { node, offset, text, ends } => {
                let place = usize::try_from(number - self.n).ok()?;
                let from =
                    place.checked_sub(1).and_then(|before| ends.get(before)).map_or(0, |end| *end as usize);
                let part = text.get(from..*ends.get(place)? as usize)?.to_owned();
                Some(match offset {
                    Some(offset) => {
                        SessionEvent::Delta { node: *node, offset: offset + from as u64, text: part }
                    }
                    None => SessionEvent::Thinking { node: *node, text: part },
                })
            }
        }
    }

    /// The node it commits.
    fn committed(&self) -> Option<&CommittedNode> {
        match &self.events {
            HeldEvents::One(event) => match &**event {
                SessionEvent::Committed { node, .. } => Some(node),
                _ => None,
            },
            HeldEvents::Run { .. } => None,
        }
    }

    /// The node it answers with.
    fn answer(&self) -> Option<NodeId> {
        match &self.events {
            HeldEvents::One(event) => match &**event {
                SessionEvent::Finished { outcome, .. } => outcome.answer.as_ref().map(|answer| answer.id),
                _ => None,
            },
            HeldEvents::Run { .. } => None,
        }
    }

    /// Takes a delta in that goes on here; else gives it back.
    fn extend(&mut self, event: SessionEvent) -> Option<SessionEvent> {
        let (of, at, more) = match &event {
            SessionEvent::Delta { node, offset, text } => (*node, Some(*offset), text),
            SessionEvent::Thinking { node, text } => (*node, None, text),
            _ => return Some(event),
        };
        match &mut self.events {
            HeldEvents::Run { node, offset, text, ends }
                if *node == of
                    && text.len() < RUN
                    && offset.map(|offset| offset + text.len() as u64) == at
                    && u32::try_from(text.len() + more.len()).is_ok() =>
            {
                text.push_str(more);
                ends.push(text.len() as u32);
                None
            }
            _ => Some(event),
        }
    }
}

impl From<SessionEvent> for HeldEvents {
    fn from(event: SessionEvent) -> Self {
        let (node, offset, text) = match event {
            SessionEvent::Delta { node, offset, text } => (node, Some(offset), text),
            SessionEvent::Thinking { node, text } => (node, None, text),
            event => return Self::One(Box::new(event)),
        };
        match u32::try_from(text.len()) {
            Ok(end) => Self::Run { node, offset, text, ends: vec![end] },
            Err(_) => Self::One(Box::new(match offset {
                Some(offset) => SessionEvent::Delta { node, offset, text },
                None => SessionEvent::Thinking { node, text },
            })),
        }
    }
}

impl Default for EventLog {
    fn default() -> Self {
        let state = State { held: VecDeque::new(), next: 1, turn: 1, bytes: 0, readers: Vec::new() };
        Self(Arc::new(Shared { state: Mutex::new(state), next: Mutex::new(Some(watch::Sender::new(1))) }))
    }
}

impl EventLog {
    pub(crate) fn push(&self, event: SessionEvent) {
        let next = self.state().push(event);
        if let Some(sender) = self.sender().as_ref() {
            sender.send_replace(next);
        }
    }

    /// A turn begins: what was told of earlier ones leaves, unless a reader has yet to read it.
    pub(crate) fn begin_turn(&self) {
        let mut state = self.state();
        state.turn = state.next;
        state.trim();
    }

    /// No event is to come any more: its readers end.
    pub(crate) fn close(&self) {
        self.sender().take();
    }

    /// Number of the next event.
    pub(crate) fn next_number(&self) -> u64 {
        self.state().next
    }

    /// Whether the newest event says that nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state();
        matches!(state.held.back(), Some(Held { events: HeldEvents::One(event), .. }) if **event == SessionEvent::Idle)
    }

    /// The events from a number on, or from the oldest that is held.
    pub fn stream(&self, from: u64) -> EventStream {
        self.read(Some(from), None)
    }

    /// The events from now on. The end of what is about to be said under this key is among them, however slowly they
    /// are read.
    pub(crate) fn stream_of(&self, say: SayId) -> EventStream {
        self.read(None, Some(say))
    }

    fn read(&self, from: Option<u64>, say: Option<SayId>) -> EventStream {
        let newer = self.sender().as_ref().map(watch::Sender::subscribe);
        let mut state = self.state();
        let next = AtomicU64::new(from.unwrap_or(state.next).max(state.first()));
        let reader = Arc::new(Reader { next, say, end: OnceLock::new() });
        state.readers.retain(|reader| reader.strong_count() > 0);
        state.readers.push(Arc::downgrade(&reader));
        EventStream { log: self.clone(), reader, newer }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sender(&self) -> MutexGuard<'_, Option<watch::Sender<u64>>> {
        self.0.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for EventLog {
    fn emit(&self, event: SessionEvent) {
        self.push(event);
    }
}

impl State {
    /// Number of the first event that is held.
    fn first(&self) -> u64 {
        self.held.front().map_or(self.next, |held| held.n)
    }

    /// Takes an event in. Returns the number of the next one.
    fn push(&mut self, mut event: SessionEvent) -> u64 {
        let is_shared = self.share_text(&mut event);
        for reader in self.readers.iter().filter_map(Weak::upgrade) {
            if reader.say.as_ref().is_some_and(|say| event.ends(say)) {
                reader.end.get_or_init(|| Numbered { n: self.next, event: event.clone() });
            }
        }
        let before = self.held.back().map_or(0, Held::bytes);
        let new = match self.held.back_mut() {
            Some(last) => last.extend(event),
            None => Some(event),
        };
        match new {
            None => self.bytes += self.held.back().map_or(0, Held::bytes) - before,
            Some(event) => {
                let held = Held { n: self.next, events: event.into(), is_shared };
                self.bytes += held.bytes();
                self.held.push_back(held);
            }
        }
        self.next += 1;
        if self.bytes > MAX_BYTES {
            self.trim();
        }
        self.next
    }

    /// Has an answer share the text of its node, where that is held. Whether it does.
    fn share_text(&self, event: &mut SessionEvent) -> bool {
        let SessionEvent::Finished { outcome, .. } = event else { return false };
        let Some(answer) = &mut outcome.answer else { return false };
        let nodes = self.held.iter().rev().filter_map(Held::committed);
        let Some(node) = nodes.into_iter().find(|node| node.id == answer.id && node.text == answer.text)
        else {
            return false;
        };
        answer.text = Arc::clone(&node.text);
        true
    }

    /// Lets go the oldest that is held. A text that is shared is counted with the answer from then on.
    fn pop(&mut self) {
        let Some(oldest) = self.held.pop_front() else { return };
        self.bytes -= oldest.bytes();
        let Some(node) = oldest.committed() else { return };
        let mut answers = self.held.iter_mut();
        if let Some(answer) = answers.find(|held| held.is_shared && held.answer() == Some(node.id)) {
            self.bytes -= answer.bytes();
            answer.is_shared = false;
            self.bytes += answer.bytes();
        }
    }

    /// Lets go what is older than the turn under way and was read by every reader; more where there is too much.
    fn trim(&mut self) {
        let read =
            self.readers.iter().filter_map(Weak::upgrade).map(|reader| reader.next.load(Ordering::Relaxed));
        let wanted = read.min().map_or(self.turn, |read| read.min(self.turn));
        while let Some(oldest) = self.held.front()
            && (oldest.end() <= wanted || self.bytes > MAX_BYTES && self.held.len() > 1)
        {
            self.pop();
        }
    }

    fn at(&self, number: u64) -> Option<Numbered> {
        let n = number.max(self.first());
        let place = self.held.partition_point(|held| held.end() <= n);
        Some(Numbered { n, event: self.held.get(place)?.event(n)? })
    }
}

/// Reads events in order, each once.
#[derive(Debug)]
pub struct EventStream {
    log: EventLog,
    reader: Arc<Reader>,
    newer: Option<watch::Receiver<u64>>,
}

impl EventStream {
    /// The next event; waits for it. None once the session's task has ended and all were read. Cancel-safe.
    pub async fn next(&mut self) -> Option<Numbered> {
        loop {
            if let Some(found) = self.next_held() {
                return Some(found);
            }
            let wanted = self.next_number();
            let newer = self.newer.as_mut()?;
            if newer.wait_for(|next| *next > wanted).await.is_err() {
                self.newer = None;
            }
        }
    }

    /// Number of the next event.
    pub(crate) fn next_number(&self) -> u64 {
        self.reader.next.load(Ordering::Relaxed)
    }

    /// The next event, if it is there.
    pub fn next_held(&mut self) -> Option<Numbered> {
        let state = self.log.state();
        let next = self.next_number();
        let gone = next..state.first();
        let found = match self.reader.end.get().filter(|end| gone.contains(&end.n)) {
            Some(end) => end.clone(),
            None => state.at(next)?,
        };
        self.reader.next.store(found.n + 1, Ordering::Relaxed);
        Some(found)
    }
}

#[cfg(test)]
mod tests;

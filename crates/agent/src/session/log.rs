//! The events of a session, numbered from 1 without a gap, to be read from any number on by any number of readers.
//!
//! The text of deltas is let go once their node is committed: they are read again as parts of the node's text. Of a
//! long session the oldest events leave first; what they told stands in the tree.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loom::NodeId;
use tokio::sync::watch;

use crate::event::{EventSink, SessionEvent};

/// Events that are held at most.
const MAX_EVENTS: usize = 1 << 16;

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
    /// Number of the first event that is held.
    first: u64,
    held: VecDeque<Held>,
}

#[derive(Debug)]
enum Held {
    Whole(SessionEvent),
    /// A delta whose text is `length` bytes of the committed text.
    Part {
        node: NodeId,
        offset: u64,
        length: usize,
        text: Arc<str>,
    },
}

impl Held {
    fn event(&self) -> SessionEvent {
        match self {
            Self::Whole(event) => event.clone(),
            Self::Part { node, offset, length, text } => {
                let from = *offset as usize;
                let part = text.get(from..from + length).unwrap_or_default();
                SessionEvent::Delta { node: *node, offset: *offset, text: part.to_owned() }
            }
        }
    }
}

impl Default for EventLog {
    fn default() -> Self {
        let state = Mutex::new(State { first: 1, held: VecDeque::new() });
        Self(Arc::new(Shared { state, next: Mutex::new(Some(watch::Sender::new(1))) }))
    }
}

impl EventLog {
    pub(crate) fn push(&self, event: SessionEvent) {
        let next = {
            let mut state = self.state();
            if let SessionEvent::Committed { node, .. } = &event {
                state.let_go(node.id, &node.text);
            }
            state.held.push_back(Held::Whole(event));
            while state.held.len() > MAX_EVENTS {
                state.held.pop_front();
                state.first += 1;
            }
            state.next()
        };
        if let Some(sender) = self.sender().as_ref() {
            sender.send_replace(next);
        }
    }

    /// No event is to come any more: its readers end.
    pub(crate) fn close(&self) {
        self.sender().take();
    }

    /// Number of the next event.
    pub(crate) fn next_number(&self) -> u64 {
        self.state().next()
    }

    /// The events from a number on, or from the oldest that is held.
    pub fn stream(&self, from: u64) -> EventStream {
        let newer = self.sender().as_ref().map(watch::Sender::subscribe);
        EventStream { log: self.clone(), next: from.max(1), newer }
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
    fn next(&self) -> u64 {
        self.first + self.held.len() as u64
    }

    /// Lets the text of a node's deltas go, where the committed text has it.
    fn let_go(&mut self, of: NodeId, text: &str) {
        let text: Arc<str> = text.into();
        for held in &mut self.held {
            if let Held::Whole(SessionEvent::Delta { node, offset, text: part }) = held
                && *node == of
                && text.get(*offset as usize..).is_some_and(|rest| rest.starts_with(part.as_str()))
            {
                let (offset, length) = (*offset, part.len());
                *held = Held::Part { node: of, offset, length, text: Arc::clone(&text) };
            }
        }
    }

    fn at(&self, number: u64) -> Option<Numbered> {
        let place = number.max(self.first) - self.first;
        let held = self.held.get(usize::try_from(place).ok()?)?;
        Some(Numbered { n: self.first + place, event: held.event() })
    }
}

/// Reads events in order, each once.
#[derive(Debug)]
pub struct EventStream {
    log: EventLog,
    next: u64,
    newer: Option<watch::Receiver<u64>>,
}

impl EventStream {
    /// The next event; waits for it. None once the session's task has ended and all were read. Cancel-safe.
    pub async fn next(&mut self) -> Option<Numbered> {
        loop {
            if let Some(found) = self.next_held() {
                return Some(found);
            }
            let newer = self.newer.as_mut()?;
            let wanted = self.next;
            if newer.wait_for(|next| *next > wanted).await.is_err() {
                self.newer = None;
            }
        }
    }

    /// The next event, if it is there.
    pub fn next_held(&mut self) -> Option<Numbered> {
        let found = self.log.state().at(self.next)?;
        self.next = found.n + 1;
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use loom::Finish;

    use super::*;
    use crate::commit::CommittedNode;

    fn delta(node: NodeId, offset: u64, text: &str) -> SessionEvent {
        SessionEvent::Delta { node, offset, text: text.to_owned() }
    }

    fn committed(id: NodeId, text: &str) -> SessionEvent {
        let node = CommittedNode {
            id,
            short_id: "a".to_owned(),
            text: text.to_owned(),
            media: Vec::new(),
            finish: Finish::Stop,
        };
        SessionEvent::Committed { node, usage: None }
    }

    #[tokio::test]
    async fn events_are_read_from_any_number_as_they_were_also_after_a_commit() {
        let (log, node) = (EventLog::default(), NodeId::from_bytes([1; 16]));
        let all = [
            delta(node, 0, "Grü"),
            delta(node, 4, "ße"),
            SessionEvent::Idle,
            delta(node, 7, "masked away"),
            committed(node, "Grüße***"),
        ];
        all.iter().for_each(|event| log.push(event.clone()));
        log.close();
        for from in 0..=6 {
            let mut stream = log.stream(from);
            let mut read = Vec::new();
            while let Some(Numbered { n, event }) = stream.next().await {
                assert_eq!(event, all[n as usize - 1]);
                read.push(n);
            }
            assert_eq!(read, (from.max(1)..=5).collect::<Vec<_>>());
        }
        assert!(matches!(log.state().held[0], Held::Part { .. }), "its text is held once");
    }

    #[tokio::test]
    async fn the_oldest_leave_first_and_a_late_reader_begins_with_what_is_held() {
        let log = EventLog::default();
        (0..MAX_EVENTS + 10).for_each(|number| log.push(SessionEvent::notice(number.to_string())));
        let first = log.stream(1).next().await.unwrap();
        assert_eq!((first.n, first.event), (11, SessionEvent::notice("10")));
    }
}

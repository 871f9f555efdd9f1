//! The task of a session.

use std::pin::pin;
use std::sync::Arc;

use model::Cancel;
use tokio::sync::mpsc;

use super::inbox::Inbox;
use super::turn::{Turn, TurnConfig};
use super::{Handle, Input, Sessions};
use crate::event::SessionEvent;
use crate::runtime::Runtime;

/// Runs the turns of a session, one after the other, until it is closed. Operations are taken in whatever a turn
/// waits for.
pub(super) async fn run(task: Task, mut inputs: mpsc::Receiver<Input>) {
    let Task { runtime, handle, .. } = &task;
    let (log, inbox) = (&handle.log, Inbox::new(runtime.waiting.messages));
    let mut last: Option<Arc<TurnConfig>> = None;
    while !inbox.is_closing() {
        let Some(input) = inputs.recv().await else { break };
        inbox.take(input, log, runtime);
        let is_idle = inbox.is_empty();
        loop {
            let (stop, cancel) = Cancel::new();
            let Some(first) = inbox.next_turn(|| stop) else { break };
            log.begin_turn();
            let turn = Turn { runtime, session: &handle.id, inbox: &inbox, log, cancel };
            let mut turn = pin!(turn.run(first, last.clone()));
            last = loop {
                tokio::select! {
                    biased;
                    Some(input) = inputs.recv() => inbox.take(input, log, runtime),
                    used = &mut turn => break used,
                }
            };
            while let Ok(input) = inputs.try_recv() {
                inbox.take(input, log, runtime);
            }
        }
        if !is_idle {
            log.push(SessionEvent::Idle);
        }
    }
}

/// What a task works with. However it ends, even if it never ran, its events end and it is taken off the list.
pub(super) struct Task {
    pub(super) runtime: Runtime,
    pub(super) sessions: Sessions,
    pub(super) handle: Handle,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.sessions.remove(&self.handle);
        self.handle.log.close();
    }
}

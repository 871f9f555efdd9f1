//! The task of a session.

use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use model::Cancel;
use tokio::sync::mpsc;

use super::inbox::{Inbox, Pending};
use super::turn::{Turn, TurnConfig, UsedByTurn};
use super::{Handle, Input, Parent, SessionOperation, Sessions};
use crate::event::SessionEvent;
use crate::runtime::Runtime;

/// Runs the turns of a session, one after the other, until it is closed. Operations are taken in whatever a turn
/// waits for.
pub(super) async fn run(task: Task, mut inputs: mpsc::Receiver<Input>) {
    let Task { runtime, handle, .. } = &task;
    let (log, inbox) = (&handle.log, Inbox::new(runtime.waiting.messages));
    let mut last: Option<Arc<TurnConfig>> = None;
    let mut upkeep = Upkeep::default();
    let take = |input: Input| {
        let stops = matches!(&input, Input::Operation(SessionOperation::Stop | SessionOperation::Close));
        if let Input::Subagent(ended) = &input {
            handle.subagents.remove(ended);
        }
        inbox.take(input, log, runtime);
        // Behind the turn, which may be beginning one.
        if stops {
            let stopped = handle.subagents.stop_all();
            if !stopped.is_empty() {
                log.push(SessionEvent::notice(format!("stopped with it: {}", stopped.join(", "))));
            }
        }
    };
    while !inbox.is_closing() {
        let Some(input) = upkeep.beside(inputs.recv()).await else { break };
        let is_end = matches!(input, Input::Subagent(_));
        take(input);
        let is_idle = inbox.is_empty() && !is_end;
        loop {
            let (stop, cancel) = Cancel::new();
            let Some(first) = inbox.next_turn(|| stop) else { break };
            log.begin_turn();
            let turn = Turn { runtime, session: &handle.id, inbox: &inbox, log, cancel, task: &task };
            let mut turn = pin!(turn.run(first, last.clone()));
            let began;
            (last, began) = loop {
                tokio::select! {
                    biased;
                    Some(input) = inputs.recv() => take(input),
                    used = &mut turn => break used,
                    () = upkeep.go_on() => {}
                }
            };
            if let (None, Some(began)) = (&upkeep.running, began) {
                upkeep.running = Some(Box::pin(runtime.expire_kept_files(began)));
            }
            while let Ok(input) = inputs.try_recv() {
                take(input);
            }
        }
        if !is_idle && handle.subagents.count() == 0 {
            log.push(SessionEvent::Idle);
        }
    }
    handle.subagents.stop_all();
    let mut ended = pin!(handle.subagents.ended());
    loop {
        tokio::select! {
            biased;
            () = &mut ended => break,
            Some(input) = inputs.recv() => take(input),
        }
    }
    upkeep.end().await;
}

/// Work that nobody waits for, beside the turns of a session: it ends before the task does.
#[derive(Default)]
struct Upkeep<'r> {
    running: Option<BoxFuture<'r, ()>>,
}

impl Upkeep<'_> {
    /// Does something while the work goes on.
    async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.go_on() => {}
            }
        }
    }

    /// Goes on until the work is done; for ever where there is none. Whoever stops waiting loses nothing of it.
    async fn go_on(&mut self) {
        match &mut self.running {
            Some(running) => running.await,
            None => pending().await,
        }
        self.running = None;
    }

    async fn end(mut self) {
        if let Some(running) = self.running.take() {
            running.await;
        }
    }
}

/// What a task works with. However it ends, even if it never ran, its events end and it is taken off the list.
pub(super) struct Task {
    pub(super) runtime: Runtime,
    pub(super) sessions: Sessions,
    pub(super) handle: Handle,
    /// Whose subagent it works for; none of a session that somebody speaks in.
    pub(super) parent: Option<Parent>,
    /// The turn before; none before the first.
    pub(super) before: Mutex<Option<TurnBefore>>,
}

/// What is kept of a turn for one that goes on with it.
#[derive(Debug, Clone)]
pub(super) struct TurnBefore {
    pub(super) used: UsedByTurn,
    /// Name of the turn in the budgets.
    pub(super) spending: String,
}

impl Task {
    /// The turn that a turn goes on with; none of one that somebody begins.
    pub(super) fn before(&self, first: &Pending) -> Option<TurnBefore> {
        self.before
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .filter(|_| first.result_of.is_some())
    }

    pub(super) fn keep_before(&self, before: TurnBefore) {
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.sessions.remove(&self.handle);
        self.handle.log.close();
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn nobody_waits_for_upkeep_and_it_ends_with_the_task() {
        let (go, waits) = oneshot::channel::<()>();
        let (done, mut is_done) = oneshot::channel();
        let running: BoxFuture<'_, ()> = Box::pin(async move {
            waits.await.unwrap();
            done.send(()).unwrap();
        });
        let mut upkeep = Upkeep { running: Some(running) };
        assert_eq!(upkeep.beside(async { 1 }).await, 1, "it is not waited for");
        assert!(is_done.try_recv().is_err(), "the control");
        go.send(()).unwrap();
        upkeep.beside(async { (&mut is_done).await.unwrap() }).await;
        upkeep.end().await;
        let (done, mut is_done) = oneshot::channel();
        let running: BoxFuture<'_, ()> = Box::pin(async move { done.send(()).unwrap() });
        Upkeep { running: Some(running) }.end().await;
        is_done.try_recv().unwrap();
    }
}

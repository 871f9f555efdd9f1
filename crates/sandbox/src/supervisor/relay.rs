//! Relay of output to a listener, on a thread of its own: one that stalls holds neither the time of a command nor its end.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, channel, sync_channel};
use std::time::{Duration, Instant};
use std::{io, thread};

use crate::output::OutputStream;
use crate::supervisor::OutputSink;

/// Pieces that wait for the listener, of 64 KiB at most each; with more the command is not read from.
const PIECES: usize = 16;
/// How often it is looked whether the listener took something.
pub(super) const LOOK: Duration = Duration::from_millis(10);

type Piece = (OutputStream, Vec<u8>);

pub(super) struct OutputRelay {
    /// None once all was handed over, or the listener is gone.
    sender: Option<SyncSender<Piece>>,
    waiting: VecDeque<Piece>,
    /// Hung up when the listener was told everything.
    told: Receiver<()>,
}

impl OutputRelay {
    pub(super) fn new(mut sink: OutputSink) -> io::Result<Self> {
        let (sender, pieces) = sync_channel::<Piece>(PIECES);
        let (telling, told) = channel();
        let work = move || {
            let _telling = telling;
            for (stream, bytes) in pieces {
                sink(stream, &bytes);
            }
        };
        thread::Builder::new().name("sandbox-output".into()).spawn(work)?;
        Ok(Self { sender: Some(sender), waiting: VecDeque::new(), told })
    }

    pub(super) fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        self.waiting.push_back((stream, bytes.to_vec()));
        self.hand_over();
    }

    /// Whether the listener is behind: nothing is to be read for it meanwhile.
    pub(super) fn is_behind(&mut self) -> bool {
        self.hand_over();
        !self.waiting.is_empty()
    }

    fn hand_over(&mut self) {
        while let (Some(sender), Some(piece)) = (&self.sender, self.waiting.pop_front()) {
            match sender.try_send(piece) {
                Ok(()) => {}
                Err(TrySendError::Full(piece)) => return self.waiting.push_front(piece),
                Err(TrySendError::Disconnected(_)) => self.sender = None,
            }
        }
        if self.sender.is_none() {
            self.waiting.clear();
        }
    }

    /// Waits until the listener was told everything; whether it was, before `gives_up` says that it is enough.
    pub(super) fn finish(&mut self, gives_up: impl Fn(Instant) -> bool) -> bool {
        loop {
            if !self.is_behind() {
                self.sender = None;
            }
            if self.told.try_recv() == Err(TryRecvError::Disconnected) {
                return true;
            }
            if gives_up(Instant::now()) {
                return false;
            }
            thread::sleep(LOOK.min(Duration::from_millis(1)));
        }
    }
}

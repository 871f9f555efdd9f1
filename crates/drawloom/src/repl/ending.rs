//! How a conversation is ended from outside, and in which state it leaves the terminal.

use std::io::{self, Write as _};

use commands::CommandError;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::terminal::mark_pastes;

/// Signals that end a conversation.
pub(super) struct Endings {
    terminate: Signal,
    hangup: Signal,
}

impl Endings {
    /// Listens from now on: the process does not end by them any more.
    ///
    /// # Errors
    /// When the system lets nobody listen.
    pub(super) fn listen() -> Result<Self, CommandError> {
        let of = |kind| signal(kind).map_err(|error| no_signals(&error));
        Ok(Self { terminate: of(SignalKind::terminate())?, hangup: of(SignalKind::hangup())? })
    }

    /// Waits for one. Returns the exit code of a process that it ended. Cancel-safe.
    pub(super) async fn next(&mut self) -> u8 {
        let kind = tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hangup.recv() => SignalKind::hangup(),
        };
        128 + kind.as_raw_value() as u8
    }
}

/// The signal of Ctrl-Z.
pub(super) fn terminal_stop() -> SignalKind {
    SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw())
}

pub(super) fn no_signals(error: &io::Error) -> CommandError {
    CommandError::new("internal", 6, format!("no signals can be heard: {error}"), "free some memory")
}

/// The terminal's modes as they were found; set again on drop, however the conversation ends.
pub(super) struct TerminalModes(Option<Termios>);

impl TerminalModes {
    pub(super) fn remember() -> Self {
        Self(tcgetattr(io::stdin()).ok())
    }
}

impl Drop for TerminalModes {
    /// A signal may have come while a line was edited.
    fn drop(&mut self) {
        mark_pastes(false);
        let Some(found) = &self.0 else { return };
        let edited = tcgetattr(io::stdin()).is_ok_and(|now| now.local_modes != found.local_modes);
        if edited {
            // A terminal that is gone needs nothing.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, found);
            let _ = io::stderr().write_all(b"\r\n");
        }
    }
}

//! Whether a terminal gives what is typed by the line or by the key, and marks what is pasted.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};

use nix::unistd::{getpgrp, getsid};
use rustix::process::{Signal, getpid, kill_process, kill_process_group};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcgetpgrp, tcsetattr,
};

use super::can_redraw;

/// Has the terminal mark where a paste begins and ends (bracketed paste), or not. One that cannot be drawn on is asked
/// for nothing.
pub(crate) fn mark_pastes(marks: bool) {
    if can_redraw() {
        // A terminal that is gone needs nothing.
        let _ = io::stderr().write_all(if marks { b"\x1b[?2004h" } else { b"\x1b[?2004l" });
    }
}

/// What a terminal marks the beginning and the end of a paste with.
pub(crate) const PASTE_BEGINS: &str = "\x1b[200~";
pub(crate) const PASTE_ENDS: &str = "\x1b[201~";

/// Marks of pastes at a terminal that gives what is typed by the line, and was asked for none, until it is dropped.
pub(super) struct PasteMarks(bool);

impl PasteMarks {
    pub(super) fn at(terminal: &File) -> Self {
        let is_by_line =
            tcgetattr(terminal).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON));
        if is_by_line {
            mark_pastes(true);
        }
        Self(is_by_line)
    }
}

impl Drop for PasteMarks {
    fn drop(&mut self) {
        if self.0 {
            mark_pastes(false);
        }
    }
}

const SIGNAL_KEYS: [(SpecialCodeIndex, Signal); 3] = [
    (SpecialCodeIndex::VINTR, Signal::INT),
    (SpecialCodeIndex::VSUSP, Signal::TSTP),
    (SpecialCodeIndex::VQUIT, Signal::QUIT),
];

/// Bytes of keys, and the signals that a terminal sends for them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SignalKeys(Vec<(u8, Signal)>);

impl SignalKeys {
    /// The signal of a byte. A zero is no key (POSIX `_POSIX_VDISABLE`).
    pub(crate) fn signal(&self, byte: u8) -> Option<Signal> {
        self.0.iter().find(|(key, _)| *key == byte && byte != 0).map(|(_, signal)| *signal)
    }

    /// Ctrl-C, Ctrl-Z and Ctrl-\.
    #[cfg(test)]
    pub(crate) fn usual() -> Self {
        Self(vec![(0x03, Signal::INT), (0x1a, Signal::TSTP), (0x1c, Signal::QUIT)])
    }
}

/// Sends the signal of a key as the terminal does: to the group in its foreground. To this process alone where that is
/// another terminal than the one it was started from.
pub(crate) fn send_signal(terminal: &File, signal: Signal) {
    // Who is gone needs none.
    let _ = match tcgetpgrp(terminal) {
        Ok(group) => kill_process_group(group, signal),
        Err(_) => kill_process(getpid(), signal),
    };
}

/// Whether a shell could let this process go on that Ctrl-Z stopped. Where the process is of the group of its session's
/// leader no shell with job control stands in between, and the system would not stop it either (POSIX: an orphaned
/// process group). In a container both may be of processes outside of it, which have the number 0 within: rustix takes
/// that for a fault.
pub(crate) fn has_job_control() -> bool {
    getsid(None).is_ok_and(|session| session != getpgrp())
}

/// Stops this process until it is told to go on. The signal is the calling thread's: one that is sent to the process may
/// be taken by another, and this one would go on meanwhile.
pub(crate) fn stop_process() {
    // Nothing keeps a process from stopping itself.
    let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGSTOP);
}

/// A mode of a terminal, until it is dropped. Where somebody else has set another one meanwhile, that one stays.
pub(crate) struct TerminalMode {
    terminal: OwnedFd,
    before: Termios,
    set: LocalModes,
}

impl TerminalMode {
    /// What is typed is shown by the terminal itself and given by the line; keys send signals. None where it is so already,
    /// or it is no terminal: a process in the background that sets modes is stopped.
    pub(crate) fn lines(terminal: &File) -> Option<Self> {
        if tcgetattr(terminal).ok()?.local_modes.contains(LocalModes::ICANON) {
            return None;
        }
        Self::set(terminal, |modes| {
            modes.local_modes |= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
            modes.input_modes |= InputModes::ICRNL;
        })
    }

    /// What is typed is not shown, and given by the key, also keys that send signals: in a paste they are text. None
    /// where it is no terminal.
    pub(crate) fn keys(terminal: &File) -> Option<Self> {
        Self::set(terminal, |modes| {
            modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
            // The two bytes of a line end that is pasted are one.
            modes.input_modes -= InputModes::ICRNL;
            modes.special_codes[SpecialCodeIndex::VMIN] = 1;
            modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        })
    }

    /// What is typed is not shown, and signals by key are off, so that none of them leaves the terminal mute. What was
    /// typed before counts for nothing. None where it is no terminal.
    pub(crate) fn hidden(terminal: &File) -> Option<Self> {
        let hidden = Self::set(terminal, |modes| {
            modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        })?;
        tcflush(terminal, QueueSelector::IFlush).ok()?;
        Some(hidden)
    }

    /// The keys that sent signals before.
    pub(crate) fn signal_keys(&self) -> SignalKeys {
        let codes = &self.before.special_codes;
        let is_on = self.before.local_modes.contains(LocalModes::ISIG);
        let sends = |(code, signal)| (codes[code], signal);
        SignalKeys(if is_on { SIGNAL_KEYS.map(sends).to_vec() } else { Vec::new() })
    }

    fn set(terminal: &File, change: impl FnOnce(&mut Termios)) -> Option<Self> {
        let terminal = terminal.as_fd().try_clone_to_owned().ok()?;
        let before = tcgetattr(&terminal).ok()?;
        let mut modes = before.clone();
        change(&mut modes);
        tcsetattr(&terminal, OptionalActions::Now, &modes).ok()?;
        Some(Self { terminal, before, set: modes.local_modes })
    }
}

impl Drop for TerminalMode {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        if tcgetattr(&self.terminal).is_ok_and(|now| now.local_modes != self.set) {
            return;
        }
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

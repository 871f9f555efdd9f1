//! Whether a terminal gives what is typed by the line or by the key.

use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcsetattr,
};

/// A mode of a terminal, until it is dropped. Where somebody else has set another one meanwhile, that one stays.
pub(crate) struct TerminalMode {
    terminal: OwnedFd,
    before: Termios,
    set: LocalModes,
}

impl TerminalMode {
    /// What is typed is shown by the terminal itself and given by the line. None where it is so already, or it is no
    /// terminal: a process in the background that sets modes is stopped.
    pub(crate) fn lines(terminal: &File) -> Option<Self> {
        if tcgetattr(terminal).ok()?.local_modes.contains(LocalModes::ICANON) {
            return None;
        }
        Self::set(terminal, |modes| modes.local_modes |= LocalModes::ICANON | LocalModes::ECHO)
    }

    /// What is typed is not shown, and given by the key. None where it is no terminal.
    pub(crate) fn keys(terminal: &File) -> Option<Self> {
        Self::set(terminal, |modes| {
            modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
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

//! Standard input that is waited for: whoever waits is told once of what for.

use std::io::{self, Read};
use std::time::Duration;

use workspace::FileArgument;

/// How long a pipe may give nothing before that is said.
const SILENCE: Duration = Duration::from_secs(1);

/// Whether a pipe or a file at standard input has bytes that nobody read.
pub(super) fn is_left() -> bool {
    FileArgument::is_input_piped() && rustix::io::ioctl_fionread(io::stdin()).is_ok_and(|bytes| bytes > 0)
}

/// A standard input of which it is said that it is waited for.
pub(super) struct ToldInput {
    input: FileArgument,
    patience: Duration,
    /// Bytes that came.
    given: u64,
    /// Whether its text goes along with a message that has one of its own.
    goes_along: bool,
    /// Whether nothing is to be said, or all is.
    is_told: bool,
}

impl ToldInput {
    /// What goes along with a message; `timeout` is how long it may stay silent.
    pub(super) fn along(input: FileArgument, timeout: Duration, quiet: bool) -> Self {
        Self { input, patience: SILENCE.min(timeout), given: 0, goes_along: true, is_told: quiet }
    }

    /// What an argument `-` asks for. Who types it at a terminal knows that it is waited for.
    pub(super) fn asked_for(input: FileArgument, timeout: Duration, quiet: bool) -> Self {
        let is_told = quiet || !FileArgument::is_input_piped();
        Self { goes_along: false, is_told, ..Self::along(input, timeout, quiet) }
    }

    fn told(&self) -> String {
        let given = match self.given {
            0 => "nothing yet".to_owned(),
            1 => "1 byte and has not ended".to_owned(),
            given => format!("{given} bytes and has not ended"),
        };
        if self.goes_along {
            format!(
                "standard input is a pipe that has given {given}, and its text goes along: waiting for it \
                 (`</dev/null` goes on without it)"
            )
        } else {
            format!("standard input is a pipe that has given {given}: waiting for its end")
        }
    }
}

impl Read for ToldInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // What cannot be waited for fails when it is read.
        if !self.is_told && !self.input.is_ready(self.patience).unwrap_or(true) {
            self.is_told = true;
            crate::output::to_stderr(&self.told());
        }
        let read = self.input.read(buffer)?;
        self.given += read as u64;
        Ok(read)
    }
}

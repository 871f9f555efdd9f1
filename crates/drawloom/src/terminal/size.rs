//! What the terminal can show: how wide it is, and whether lines can be taken away again.

use std::io::{self, IsTerminal as _};

use rustix::termios::tcgetwinsize;

/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;

/// Columns of the terminal.
pub(crate) fn columns() -> usize {
    let told = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    if told > 0 { told } else { COLUMNS }
}

/// Whether lines can be taken away again: standard error is a terminal that knows how.
pub(crate) fn can_redraw() -> bool {
    io::stderr().is_terminal() && !is_dumb()
}

/// Whether the environment says of the terminal that it only shows text, or does not say what it is.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty())
}

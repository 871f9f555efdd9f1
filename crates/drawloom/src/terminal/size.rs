//! How wide the terminal is.

use std::io;

use rustix::termios::tcgetwinsize;

/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;

/// Columns of the terminal.
pub(crate) fn columns() -> usize {
    let told = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    if told > 0 { told } else { COLUMNS }
}

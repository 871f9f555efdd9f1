//! A line typed at the terminal that is not shown.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};

use super::TerminalMode;

/// The most bytes of a line.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// Asks for a line at the terminal and reads it without showing it; blanks around it are none of it.
///
/// # Errors
/// When there is no terminal, it ends before the line does, Ctrl-C was pressed, or it has a control
/// character.
pub(crate) fn hidden_line(question: &str) -> io::Result<String> {
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    let _hidden = TerminalMode::hidden(&terminal).ok_or_else(|| io::Error::other("it is no terminal"))?;
    terminal.write_all(question.as_bytes())?;
    let line = typed(&terminal);
    terminal.write_all(b"\n")?;
    line
}

fn typed(mut terminal: &File) -> io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        terminal.read_exact(&mut byte)?;
        match byte[0] {
            b'\n' | b'\r' => break,
            // Ctrl-C and Ctrl-D.
            3 | 4 => return Err(io::Error::new(io::ErrorKind::Interrupted, "it was broken off")),
            // Backspace takes a character back, Ctrl-U all.
            8 | 127 => while line.pop().is_some_and(|byte: u8| byte & 0xc0 == 0x80) {},
            21 => line.clear(),
            _ if line.len() == MAX_LINE_BYTES => return Err(io::ErrorKind::FileTooLarge.into()),
            byte => line.push(byte),
        }
    }
    let wrong = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    let line = String::from_utf8(line).map_err(|_| wrong("it is not UTF-8 text"))?;
    let line = line.trim();
    // As an arrow or a paste in brackets brings along: nobody saw it.
    if line.contains(char::is_control) {
        return Err(wrong("it has a control character"));
    }
    Ok(line.to_owned())
}

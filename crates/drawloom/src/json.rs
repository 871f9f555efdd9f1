//! JSON with every control and bidi character escaped, so that it is safe to look at (spec: cli §1).

use std::io::{self, Write};

use commands::CommandError;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;
use text::terminal::is_unsafe;

/// A value on one line, with its line end.
///
/// # Errors
/// When the value has no form in JSON.
pub(crate) fn line(value: &impl Serialize) -> Result<Vec<u8>, CommandError> {
    let mut out = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut out, Escaping)).map_err(|error| {
        CommandError::new("json", 6, format!("the answer has no JSON form: {error}"), "report this")
    })?;
    out.push(b'\n');
    Ok(out)
}

struct Escaping;

impl Formatter for Escaping {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_unsafe) {
            writer.write_all(&rest.as_bytes()[..at])?;
            let mut after = rest[at..].chars();
            if let Some(c) = after.next() {
                write!(writer, "\\u{:04x}", u32::from(c))?;
            }
            rest = after.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_might_obey_is_escaped_and_reads_back_the_same() {
        let text = "\u{1b}]52;c;x\u{7}\u{7f}\u{9b}2J\u{202e}gpj\u{2066}é漢🎉\n\t\"\\";
        let line = String::from_utf8(line(&text).unwrap()).unwrap();
        assert!(!line.trim_end().contains(is_unsafe), "{line}");
        assert!(line.contains("\\u009b") && line.contains("\\u202e") && line.contains("é漢🎉"));
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }
}

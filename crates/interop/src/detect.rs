//! Format detection by a file's content.

use std::fmt;

/// A format that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Our own: see [`crate::own`].
    Own,
}

impl Format {
    /// Every format, in the order they are named.
    pub const ALL: [Self; 1] = [Self::Own];

    /// Name of the format, as `--as` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own => "drawloom",
        }
    }

    /// The format of that name; `jsonl` is ours, as `tree export` calls it.
    pub fn named(name: &str) -> Option<Self> {
        if name == "jsonl" {
            return Some(Self::Own);
        }
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A file of no known format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// There is nothing in it.
    #[error("the file is empty")]
    Empty,
    #[error("not a Drawloom export (it begins {beginning:?})")]
    Format {
        /// Beginning of the file, made safe to show.
        beginning: String,
    },
}

/// Bytes of the beginning that are enough to tell.
pub const ENOUGH: usize = 4096;

/// Tells the format from the first [`ENOUGH`] bytes of a file, or all of a shorter one.
///
/// # Errors
/// [`Unknown`] when it is none.
pub fn detect(beginning: &[u8]) -> Result<Format, Unknown> {
    if beginning.is_empty() {
        return Err(Unknown::Empty);
    }
    if is_own(beginning) {
        return Ok(Format::Own);
    }
    let shown = String::from_utf8_lossy(&beginning[..beginning.len().min(40)]);
    Err(Unknown::Format { beginning: text::terminal::one_line(&shown).into_owned() })
}

/// Our header names itself in its first fields, which are always written in this order.
fn is_own(beginning: &[u8]) -> bool {
    let prefix = format!("{{\"record\":\"header\",\"format\":\"{}\",", crate::own::FORMAT);
    beginning.starts_with(prefix.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_file_is_named_by_how_it_begins() {
        assert_eq!(detect(b""), Err(Unknown::Empty));
        let error = detect(b"\x1b[31mPK\x03\x04 something").unwrap_err().to_string();
        assert!(error.contains("not a Drawloom export") && !error.contains('\u{1b}'), "{error}");
    }

    #[test]
    fn names_lead_back_to_formats() {
        for format in Format::ALL {
            assert_eq!(Format::named(format.name()), Some(format));
        }
        assert_eq!(Format::named("jsonl"), Some(Format::Own), "the name of an export");
        assert_eq!(Format::named("nothing"), None);
    }
}

//! Patterns of rules: which calls, or which parts of a call, a rule is about.

use std::fmt;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::{Effect, PathUse};
use crate::pattern_parser::{PatternError, parse};

/// Name in a pattern that stands for every tool of a server.
pub(crate) const EVERY_TOOL: &str = "*";

/// Forms of a pattern, as whoever writes one is told them.
pub const PATTERN_FORMS: &str = "`TOOL`, `SERVER:TOOL`, `SERVER:*` or `effect:NAME`, each with `path=GLOB` or `host=NAME` if wanted, or \
                                 `exec WORD… [*]`";

/// Calls that a rule is about, in one of the [`PATTERN_FORMS`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", description = format!("A pattern: {PATTERN_FORMS}, where `*` stands for any further words."))]
pub enum Pattern {
    Tool { server: Option<String>, name: String, limit: Option<Limit> },
    Effect { effect: Effect, limit: Option<Limit> },
    Exec { words: Vec<String>, more: bool },
}

/// Narrowing of a pattern to some paths or to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    Path(PathGlob),
    /// In lower case, without a final dot.
    Host(String),
}

/// Characters that may stand for others in a glob, or quote them.
const WILDCARDS: [char; 6] = ['*', '?', '[', ']', '{', '\\'];

/// Glob over paths below the workspace, or over absolute ones, which are those below a further root; `*` stays within a
/// folder, `**` does not.
#[derive(Clone, Debug)]
pub struct PathGlob {
    text: String,
    exact: GlobMatcher,
    folded: GlobMatcher,
}

impl PathGlob {
    /// # Errors
    /// What is wrong with the glob.
    pub(crate) fn new(text: &str) -> Result<Self, globset::Error> {
        let build = |fold| {
            let mut builder = GlobBuilder::new(text);
            builder.literal_separator(true).case_insensitive(fold).build().map(|glob| glob.compile_matcher())
        };
        Ok(Self { text: text.to_owned(), exact: build(false)?, folded: build(true)? })
    }

    /// Whether a path is meant exactly: one below a further root by an absolute glob alone, and by no `**`.
    pub(crate) fn covers(&self, path: &PathUse) -> bool {
        (path.further_root.is_none() || self.is_absolute()) && self.exact.is_match(path.named())
    }

    /// Whether it means absolute paths and no others.
    pub fn is_absolute(&self) -> bool {
        let choices = self.text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        choices.unwrap_or(&self.text).split(',').all(|choice| choice.starts_with('/'))
    }

    /// Whether a path or a folder above it is meant, whatever the case of its letters: below a further root by its path
    /// there, too.
    pub(crate) fn hits(&self, path: &PathUse) -> bool {
        let named = path.named();
        named.ancestors().chain(path.path.as_path().ancestors()).any(|path| self.folded.is_match(path))
    }

    /// Whether something below a folder may be meant: the folder and the glob's names before its first wildcard lie on one
    /// way.
    pub(crate) fn may_hit_below(&self, folder: &PathUse) -> bool {
        let is_absolute = self.is_absolute();
        let folder = if is_absolute { folder.named() } else { folder.path.as_path().to_owned() };
        if folder.is_absolute() != is_absolute {
            return false;
        }
        let lower = |path: &Path| PathBuf::from(path.to_string_lossy().to_lowercase());
        let (folder, plain) = (lower(&folder), lower(&self.plain_beginning()));
        folder.starts_with(&plain) || plain.starts_with(&folder)
    }

    /// The names before its first wildcard.
    pub fn plain_beginning(&self) -> PathBuf {
        let names = Path::new(&self.text).components();
        names.take_while(|name| !name.as_os_str().to_string_lossy().contains(WILDCARDS)).collect()
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl PartialEq for PathGlob {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for PathGlob {}

/// A host's name as names are compared.
pub(crate) fn host_name(host: &str) -> String {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).map_or(host.clone(), str::to_owned)
}

impl std::str::FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text)
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        parse(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
    }
}

impl Pattern {
    /// Whether it is about tools of a server.
    pub fn is_of_server(&self, name: &str) -> bool {
        matches!(self, Self::Tool { server: Some(server), .. } if server == name)
    }

    /// What narrows it.
    pub fn limit(&self) -> Option<&Limit> {
        match self {
            Self::Tool { limit, .. } | Self::Effect { limit, .. } => limit.as_ref(),
            Self::Exec { .. } => None,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool { server, name, limit } => {
                if let Some(server) = server {
                    write!(f, "{server}:")?;
                }
                f.write_str(name)?;
                write_limit(f, limit.as_ref())
            }
            Self::Effect { effect, limit } => {
                write!(f, "effect:{}", effect.name())?;
                write_limit(f, limit.as_ref())
            }
            Self::Exec { words, more } => {
                f.write_str("exec")?;
                for word in words {
                    write!(f, " {}", quoted(word))?;
                }
                f.write_str(if *more { " *" } else { "" })
            }
        }
    }
}

fn write_limit(f: &mut fmt::Formatter<'_>, limit: Option<&Limit>) -> fmt::Result {
    match limit {
        None => Ok(()),
        Some(Limit::Path(glob)) => write!(f, " path={}", quoted(glob.as_str())),
        Some(Limit::Host(host)) => write!(f, " host={}", quoted(host)),
    }
}

/// A word as [`parse`] reads it back: in quotes if anything in it could mean something else.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:,+@%^~".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

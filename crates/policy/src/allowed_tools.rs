//! Tools that a skill allows while it is followed, as its `allowed-tools` say it (spec: agent §6): a narrowing of what
//! policy decides, which widens nothing.
//!
//! Entries are those of other clients (`Bash(git add:*)`, `Edit(docs/**)`, `WebFetch(domain:example.org)`, `mcp__server__tool`)
//! or patterns of this crate. One that is not understood allows nothing. Reading is left as it is, so that the skill and its
//! files can be read.

use std::fmt;

use crate::call::{CallFacts, Effect, PathUse};
use crate::decision::{Decision, Reason, Repeat, Verdict};
use crate::matching::{CallView, Unlocated, shown};
use crate::pattern::Pattern;
use crate::pattern_parser::parse;

/// Characters that mean more in a shell or a glob than themselves.
const SPECIAL: &[char] =
    &['*', '?', '[', ']', '{', '}', '$', '`', ';', '|', '&', '<', '>', '(', ')', '\\', '"', '\'', '\n'];

/// Characters of a reason: those that repeat what is allowed, and those of a file.
const SHOWN: usize = 200;
const NAMED: usize = 80;

/// Names of other clients for tools that change something, and those here.
const TOOLS: [(&str, &[&str]); 6] = [
    ("Bash", &["exec", "process"]),
    ("Write", &["write", "mkdir"]),
    ("Edit", &["edit", "patch"]),
    ("MultiEdit", &["edit", "patch"]),
    ("WebFetch", &["web_fetch"]),
    ("WebSearch", &["web_search"]),
];

/// Names of other clients for tools that only look: an entry of one allows nothing that was not allowed before.
const READING: [&str; 5] = ["Read", "Glob", "Grep", "LS", "NotebookRead"];

/// Tools that a skill allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedTools {
    entries: Vec<String>,
    patterns: Vec<Pattern>,
}

impl AllowedTools {
    /// By the entries of its `allowed-tools`.
    pub fn new(entries: Vec<String>) -> Self {
        let patterns = entries.iter().flat_map(|entry| patterns(entry.trim())).collect();
        Self { entries, patterns }
    }

    /// Of a skill of which nobody knows what it allows: nothing, for this reason.
    pub fn unknown(why: &str) -> Self {
        Self { entries: vec![why.to_owned()], patterns: Vec::new() }
    }

    /// The refusal of a call of which a part is none that the skill of this name allows. A file that its line writes is judged
    /// by its name, and refused where it is one of `indirect`: by its name it leads to another place.
    pub fn refusal(&self, skill: &str, call: &CallFacts, indirect: &[PathUse]) -> Option<Verdict> {
        let view = CallView::new(call);
        // A line of which not each part is known is a command all the same, and the sandbox its wall.
        let is_any_line = call.command.is_some() && self.patterns.iter().any(is_of_any_line);
        let leads_elsewhere =
            |path: &Result<PathUse, Unlocated>| path.as_ref().is_ok_and(|path| indirect.contains(path));
        let unwritten =
            view.redirected().find(|(_, path)| leads_elsewhere(path) || !self.writes(path.as_ref().ok()));
        if is_any_line || (unwritten.is_none() && view.is_covered_by(&self.patterns)) {
            return None;
        }
        let uncovered = unwritten.map(|(target, path)| {
            let target = shown(target, NAMED);
            match path {
                Err(Unlocated::GoesUp) => format!(
                    "writing {target}, which goes up by `..` from a folder that may be a link: name the file without it"
                ),
                Err(Unlocated::Else) if target.is_empty() => {
                    "writing a file that is known only once the line runs".to_owned()
                }
                Err(Unlocated::Else) => format!("writing {target}, of which is not known which file it is"),
                Ok(_) if leads_elsewhere(&path) => {
                    format!("writing {target}, which is a link, behind one, or a file with another name")
                }
                Ok(_) => format!("writing {target}"),
            }
        });
        let reason = Reason::Skill { skill: skill.to_owned(), allowed: self.to_string() };
        let (repeat, shows_diff) = (Repeat::EachTime, false);
        Some(Verdict { decision: Decision::Deny, reason, repeat, shows_diff, uncovered })
    }

    /// Entries that allow nothing, as they are not understood or name none of these tools. Tools of servers are not known
    /// here, and none of them is named.
    pub fn not_understood<'a>(&'a self, tools: &'a [String]) -> impl Iterator<Item = &'a str> {
        let means = |pattern: &Pattern| match pattern {
            Pattern::Tool { server: None, name, .. } => tools.contains(name),
            _ => true,
        };
        let entries = self.entries.iter().map(|entry| entry.trim());
        entries.filter(move |entry| {
            let name = entry.split('(').next().unwrap_or_default();
            !READING.contains(&name.trim()) && !patterns(entry).iter().any(means)
        })
    }

    /// Whether the tool `write` or `edit` would be allowed to write a file, or any where it is not known.
    fn writes(&self, path: Option<&PathUse>) -> bool {
        ["write", "edit"].into_iter().any(|tool| {
            let paths = path.cloned().into_iter().collect();
            let (tool, effects) = (tool.to_owned(), [Effect::Write].into());
            let call = CallFacts { tool, effects, paths, ..CallFacts::default() };
            CallView::new(&call).is_covered_by(&self.patterns)
        })
    }
}

/// As the reason of a refusal repeats it.
impl fmt::Display for AllowedTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.entries.is_empty() {
            f.write_str("reading")
        } else {
            f.write_str(&shown(&self.entries.join(", "), SHOWN))
        }
    }
}

fn is_of_any_line(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Tool { server: None, name, limit: None } => name == "exec",
        Pattern::Effect { effect: Effect::Exec, limit: None } => true,
        _ => false,
    }
}

/// Patterns that an entry means; none where it is not understood, or means reading alone.
fn patterns(entry: &str) -> Vec<Pattern> {
    let (name, inner) = match entry.strip_suffix(')').and_then(|entry| entry.split_once('(')) {
        Some((name, inner)) => (name.trim(), inner.trim()),
        None => (entry, "*"),
    };
    let Some((_, tools)) = TOOLS.iter().find(|(other, _)| *other == name) else {
        let of_server = tool_of_server(entry);
        return parse(of_server.as_deref().unwrap_or(entry)).into_iter().collect();
    };
    let written = |limit: &str| -> Vec<Pattern> {
        tools.iter().filter_map(|tool| parse(&format!("{tool}{limit}")).ok()).collect()
    };
    match (name, inner) {
        (_, "" | "*") => written(""),
        ("Bash", line) => command(line).into_iter().collect(),
        ("WebFetch", inner) => {
            let host = inner.strip_prefix("domain:").filter(|host| !host.contains(SPECIAL));
            host.map(|host| written(&format!(" host={}", host.trim()))).unwrap_or_default()
        }
        // Paths from the top of a disk mean different places in different clients.
        ("Write" | "Edit" | "MultiEdit", glob) if !glob.contains(char::is_whitespace) => {
            let glob = glob.strip_prefix("./").unwrap_or(glob);
            if glob.starts_with(['/', '~']) || glob.contains(['"', '\'', '\\']) {
                return Vec::new();
            }
            written(&format!(" path={glob}"))
        }
        _ => Vec::new(),
    }
}

/// `WORD…`, with `:*` or ` *` behind it for any further words.
fn command(line: &str) -> Option<Pattern> {
    let (words, more) = match line.strip_suffix(":*").or_else(|| line.strip_suffix(" *")) {
        Some(words) => (words, " *"),
        None => (line, ""),
    };
    (!words.contains(SPECIAL)).then(|| parse(&format!("exec {words}{more}")).ok()).flatten()
}

/// `SERVER:TOOL` of a tool that other clients name `mcp__SERVER__TOOL`.
pub fn tool_of_server(name: &str) -> Option<String> {
    let (server, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
    Some(format!("{server}:{tool}"))
}

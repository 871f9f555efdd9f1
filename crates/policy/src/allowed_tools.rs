//! Tools that a skill allows while it is followed, as its `allowed-tools` say it (spec: agent §6): a narrowing of what
//! policy decides, which widens nothing.
//!
//! Entries are those of other clients (`Bash(git add:*)`, `Edit(docs/**)`, `WebFetch(domain:example.org)`, `mcp__server__tool`)
//! or patterns of this crate. One that is not understood allows nothing. Reading is left as it is, so that the skill and its
//! files can be read.

use std::fmt;

use crate::call::{CallFacts, Effect, PathUse};
use crate::decision::{Decision, Reason, Repeat, Verdict};
use crate::matching::{CallView, shown};
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
    /// by its name where `is_direct` says that this leads to no other place, and refused where it does not.
    pub fn refusal(
        &self,
        skill: &str,
        call: &CallFacts,
        is_direct: impl Fn(&PathUse) -> bool,
    ) -> Option<Verdict> {
        let view = CallView::new(call);
        // A line of which not each part is known is a command all the same, and the sandbox its wall.
        let is_any_line = call.command.is_some() && self.patterns.iter().any(is_of_any_line);
        let unwritten = view.redirected().find(|(_, path)| {
            path.as_ref().is_some_and(|path| !is_direct(path)) || !self.writes(path.as_ref())
        });
        if is_any_line || (unwritten.is_none() && view.is_covered_by(&self.patterns)) {
            return None;
        }
        let uncovered = unwritten.map(|(target, _)| format!("writing {}", shown(target, NAMED)));
        let reason = Reason::Skill { skill: skill.to_owned(), allowed: self.to_string() };
        let (repeat, shows_diff) = (Repeat::EachTime, false);
        Some(Verdict { decision: Decision::Deny, reason, repeat, shows_diff, uncovered })
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
        let of_server = entry.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
        let own = match of_server {
            Some((server, tool)) => parse(&format!("{server}:{tool}")),
            None => parse(entry),
        };
        return own.into_iter().collect();
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

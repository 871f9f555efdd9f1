//! Tags, tokens and markers by which models tell who speaks.

use super::matching::{MatchingCopy, PARAGRAPH, Unit, fold_l, is_markup, is_space};
use super::{DetectionKind, Edit};

/// Names of tags (`<NAME …`) and, without `_` and `-`, of tokens whose end is cut off.
const TAGS: [&str; 52] = [
    "system",
    "systemprompt",
    "systemmessage",
    "systemreminder",
    "systeminstruction",
    "systeminstructions",
    "user",
    "usermessage",
    "human",
    "assistant",
    "assistantmessage",
    "developer",
    "developermessage",
    "tool",
    "toolcall",
    "toolcalls",
    "toolresponse",
    "toolresult",
    "tooloutput",
    "function",
    "functioncall",
    "functioncalls",
    "functionresult",
    "functionresults",
    "invoke",
    "instruction",
    "instructions",
    "sys",
    "inst",
    "imstart",
    "imend",
    "imsep",
    "startofturn",
    "endofturn",
    "startheaderid",
    "endheaderid",
    "beginoftext",
    "endoftext",
    "eotid",
    "eomid",
    "eot",
    "bos",
    "eos",
    "channel",
    "endofsentence",
    "beginofsentence",
    "think",
    "thinking",
    "availableskills",
    "externaluntrustedcontent",
    "endexternaluntrustedcontent",
    "untrustedcontent",
];

/// Tags so short that only the whole of them (`<s>`, `</s>`) is one.
const SHORT_TAG: &str = "s";

/// Names in square brackets.
const BRACKETED: [&str; 8] = [
    "inst",
    "sys",
    "systemprompt",
    "toolcalls",
    "availabletools",
    "toolresults",
    "toolcontent",
    "systeminstruction",
];

/// Roles before a colon.
const ROLES: [&str; 12] = [
    "system",
    "user",
    "human",
    "assistant",
    "ai",
    "developer",
    "tool",
    "function",
    "instruction",
    "instructions",
    "response",
    "systemprompt",
];

/// Most letters of a name that is known.
const LONGEST: usize = 32;

/// What was found: what is done, and where it stands.
pub(super) fn find(copy: &MatchingCopy) -> Vec<(DetectionKind, Edit, (usize, usize))> {
    let units = &copy.units;
    let mut found = Vec::new();
    for (index, unit) in units.iter().enumerate() {
        let end = match unit.c {
            '<' => angle(units, index + 1),
            '[' => square(units, index + 1),
            _ => None,
        };
        if let Some(end) = end {
            let place = (unit.start, units[end - 1].end);
            found.push((DetectionKind::RoleTag, Edit::Disarm(unit.start, unit.end), place));
        }
        let begins_line = index == 0 || matches!(units[index - 1].c, '\n' | PARAGRAPH);
        if begins_line && let Some(place) = marker(units, index) {
            found.push((DetectionKind::RoleMarker, Edit::Bracket(place.0, place.1), place));
        }
    }
    found
}

/// The end of what follows a `<`, if that makes a tag.
fn angle(units: &[Unit], start: usize) -> Option<usize> {
    let start = past(units, start, |c| is_space(c) || is_markup(c) || c == '/');
    if at(units, start) == Some('|') {
        let name = past(units, start + 1, |c| is_space(c) || c == '/');
        let (letters, end) = name_at(units, name);
        let end = past(units, end, is_space);
        let is_closed = at(units, end) == Some('|') && !letters.is_empty();
        return (is_closed || TAGS.contains_folded(&letters)).then_some(if is_closed {
            end + 1
        } else {
            end
        });
    }
    let (first, end) = name_at(units, start);
    let is_whole = at(units, past(units, end, is_space)) == Some('>');
    if TAGS.contains_folded(&first) || first == SHORT_TAG && is_whole {
        return Some(end);
    }
    // A name behind that of a namespace.
    if first.is_empty() || at(units, end) != Some(':') {
        return None;
    }
    let (second, end) = name_at(units, end + 1);
    TAGS.contains_folded(&second).then_some(end)
}

/// The end of what follows a `[`, if that makes a token.
fn square(units: &[Unit], start: usize) -> Option<usize> {
    let start = past(units, start, |c| is_space(c) || c == '/');
    let (letters, end) = name_at(units, start);
    let end = past(units, end, is_space);
    (at(units, end) == Some(']') && BRACKETED.contains_folded(&letters)).then_some(end + 1)
}

/// Where a role with its colon stands in a line that begins here, as an entry of a list, quoted or in a heading too.
fn marker(units: &[Unit], start: usize) -> Option<(usize, usize)> {
    let mut start = start;
    loop {
        let next = past(units, start, |c| matches!(c, ' ' | '>' | '#') || is_markup(c) || is_symbol(c));
        let next = past_list_mark(units, next);
        if next == start {
            break;
        }
        start = next;
    }
    let (letters, end) = name_at(units, start);
    let colon = past(units, end, |c| c == ' ' || is_markup(c));
    // `system::name` and `tool://` are names.
    let is_marker = at(units, colon) == Some(':')
        && !matches!(at(units, colon + 1), Some(':' | '/'))
        && ROLES.contains_folded(&letters);
    is_marker.then(|| (units[start].start, units[colon].end))
}

/// A character that stands before an entry for what it looks like, as an emoji does.
fn is_symbol(c: char) -> bool {
    !c.is_ascii() && !c.is_alphanumeric() && c != PARAGRAPH
}

/// The place behind the mark of a bullet, the number of a step or the box of a task that stands here; else this one. A `*` is
/// markup.
fn past_list_mark(units: &[Unit], start: usize) -> usize {
    let [box_, mark, closes] = [0, 1, 2].map(|further| at(units, start + further));
    if (box_, closes) == (Some('['), Some(']')) && matches!(mark, Some(' ' | 'x')) {
        return start + 3;
    }
    let number = past(units, start, |c| c.is_ascii_digit());
    let end = match at(units, number) {
        Some('-' | '+' | '•') if number == start => start + 1,
        Some('.' | ')') if number > start => number + 1,
        _ => return start,
    };
    if at(units, end) == Some(' ') { end } else { start }
}

fn at(units: &[Unit], index: usize) -> Option<char> {
    units.get(index).map(|unit| unit.c)
}

/// The first place from `start` on whose character is another one.
fn past(units: &[Unit], start: usize, is_one: impl Fn(char) -> bool) -> usize {
    let rest = units.get(start..).unwrap_or_default();
    start + rest.iter().take_while(|unit| is_one(unit.c)).count()
}

/// The letters and digits of the name that stands here, and its end. Of one that is longer than those that are known,
/// nothing but the end.
fn name_at(units: &[Unit], start: usize) -> (String, usize) {
    let end = past(units, start, |c| c.is_alphanumeric() || matches!(c, '-' | '.' | '▁') || is_markup(c));
    let mut letters = String::new();
    for unit in units.get(start..end).unwrap_or_default().iter().filter(|unit| unit.c.is_alphanumeric()) {
        letters.push(unit.c);
        if letters.len() > LONGEST {
            return (String::new(), end);
        }
    }
    (letters, end)
}

trait Names {
    /// Whether a name of the matching copy is one of these.
    fn contains_folded(&self, letters: &str) -> bool;
}

impl Names for [&str] {
    fn contains_folded(&self, letters: &str) -> bool {
        self.iter().any(|name| name.len() == letters.len() && name.chars().map(fold_l).eq(letters.chars()))
    }
}

//! Siblings, versions and bookmarks, and going to one of them.

use commands::results::tree::{FollowedMessage, ListedNodes, Moved, NodeShown};
use loom::Role;

use super::columns::wrapped;
use super::table::blocks;
use super::tree::{author, marks, remark};
use super::tree_view::passage;
use super::{OutputStyle, RenderedOutcome};

/// Characters of a text by which it is known again.
const GLIMPSE: usize = 60;

/// A list, with what siblings of a conversation follow.
pub(super) fn list(found: &ListedNodes, to: OutputStyle) -> RenderedOutcome {
    let after = found.after.as_ref().map(|after| {
        let FollowedMessage { are_answers, short_id, text } = after;
        let what = if *are_answers { "answers to" } else { "messages after" };
        match text {
            Some(text) => format!("{what} {short_id} “{}”:", glimpse(text, to)),
            None => "messages that begin the conversation:".to_owned(),
        }
    });
    let list = listed(found, to);
    if to.terminal {
        let after = after.map(|after| wrapped(&to.dim(&after), "", to)).unwrap_or_default();
        return RenderedOutcome::new(after + &list).or_saying(to, "none is set");
    }
    RenderedOutcome::new(list).noting(after)
}

fn listed(found: &ListedNodes, to: OutputStyle) -> String {
    let row = |(index, node): (usize, &NodeShown)| {
        let number = match found.current {
            Some(current) if current == index => to.paint("1", &format!("{} *", index + 1)),
            Some(_) => (index + 1).to_string(),
            None => String::new(),
        };
        let about = format!("{}{}", author(node, to), to.dim(&marks(node, None)));
        let text = if node.purged { to.dim("(forgotten)") } else { glimpse(&node.text, to) };
        let mut row = vec![node.short_id.clone(), about, text];
        if !number.is_empty() {
            row.insert(0, number);
        }
        row
    };
    if to.columns.is_some() {
        return at_terminal(found, to);
    }
    let rows: Vec<_> = found.nodes.iter().enumerate().map(row).collect();
    let mut out = String::new();
    for (line, node) in blocks(&rows, &[], to).iter().zip(&found.nodes) {
        out += line;
        out.extend(node.annotations.iter().map(|remark| format!("    {}\n", self::remark(remark, to))));
    }
    out
}

/// [`listed`] for a terminal, which may have no room for a line each.
fn at_terminal(found: &ListedNodes, to: OutputStyle) -> String {
    let mut out = String::new();
    for (index, node) in found.nodes.iter().enumerate() {
        let before = match found.current {
            Some(current) if current == index => format!("{} * ", index + 1),
            Some(_) => format!("{}   ", index + 1),
            None => String::new(),
        };
        passage(&mut out, node, None, &before, to);
    }
    out
}

/// In a conversation: the text that stands there now.
pub(super) fn reached(done: &Moved, to: OutputStyle) -> String {
    let Some(sibling) = &done.sibling else { return String::new() };
    let mut head = format!("{} of {} · {}", sibling.number, sibling.of, sibling.short_id);
    if done.short_id != sibling.short_id {
        head += &format!(" · the conversation goes on to {}", done.short_id);
    }
    let mut out = format!("{}\n{}", to.text(&sibling.text).trim_end(), wrapped(&to.dim(&head), "", to));
    if sibling.left > 0 {
        let (stay, other) = match sibling.left {
            1 => ("1 turn stays".to_owned(), "it"),
            turns => (format!("{turns} turns stay"), "them"),
        };
        let what = if sibling.role == Some(Role::User) { "message" } else { "answer" };
        let back = match (sibling.from, sibling.number) {
            (from, number) if from == number + 1 => "/next".to_owned(),
            (from, number) if from + 1 == number => "/prev".to_owned(),
            (from, _) => format!("/next {from}"),
        };
        let line = format!("{stay} at the other {what}; {back} comes back to {other}");
        out += &wrapped(&to.dim(&line), "", to);
    }
    out
}

/// The first words of a text, on one line.
pub(super) fn glimpse(text: &str, to: OutputStyle) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().take(GLIMPSE).collect();
    let more = if cut.len() < line.len() { "…" } else { "" };
    format!("{}{more}", to.line(&cut))
}

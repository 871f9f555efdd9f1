//! A tree as it is drawn: the path, or the whole tree with its branches folded.
//!
//! A passage is a line with its first words, and below it who wrote it and what is worth knowing. The sign of its author
//! stands before it (`H`, `M`, `T`), so that it reads without colours; `▸` marks the active path among others. The passage
//! that goes on stands below the one it follows; those beside it stand between the two, each with what is below it counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use commands::results::tree::{NodeShown, StoredText, TreeShown};
use loom::call_lines::whole_call_lines;
use loom::{AuthorKind, PositionId, PositionKind};
use text::terminal::visible;
use unicode_width::UnicodeWidthStr as _;

use super::authors::letter;
use super::columns::{count, cut, wrapped};
use super::tree::{author, ended, marks, remark};
use super::{OutputStyle, RenderedOutcome, calls};

/// Characters of a text that are shown of it where no terminal says how many it has room for.
const FIRST_WORDS: usize = 200;

/// Levels of branches that are indented; deeper ones stand below each other.
const MAX_INDENT: usize = 8;

pub(super) fn show(found: &TreeShown, to: OutputStyle) -> RenderedOutcome {
    if let ([node], true) = (&found.nodes[..], found.whole) {
        return RenderedOutcome::new(whole(node, to));
    }
    let mut out = String::new();
    aside(&mut out, "head, sent first", found.head.as_ref(), to);
    if found.all {
        TreeRenderer::of(found, to).draw(&mut out);
    } else {
        // The beginning of the tree holds no text.
        let is_shown = |node: &&NodeShown| node.parent.is_some() || node.kind != PositionKind::Path;
        let mut above = None;
        for node in found.nodes.iter().filter(is_shown) {
            seen_from(&mut out, found, node, to);
            passage(&mut out, node, above.replace(node), "", to);
        }
    }
    aside(&mut out, "draft", found.draft.as_ref(), to);
    if let Some(note) = &found.note {
        let depth = count(note.depth.unwrap_or_default(), "paragraph", "paragraphs");
        aside(&mut out, &format!("note, sent {depth} before the end"), Some(note), to);
    }
    let cut = found.cut_at.map(|depth| format!("what is deeper is left out (--depth {depth})"));
    let nothing = if found.all { "the tree holds no text" } else { "the path holds no text" };
    let nothing = (to.terminal && out.is_empty() && cut.is_none()).then(|| nothing.to_owned());
    let more = found.more.iter().map(|command| format!("more: `{}`", to.line(command)));
    RenderedOutcome::new(out).noting(cut.into_iter().chain(nothing).chain(more))
}

/// A node with all that it says: who wrote it and what is worth knowing, its text, its calls, and what stands beside it.
fn whole(node: &NodeShown, to: OutputStyle) -> String {
    let most = mostly_by(node);
    let sign = to.by(most, letter(most));
    let forgotten = if node.purged { to.dim(" · (forgotten)") } else { String::new() };
    let marks = to.dim(&marks(node, None));
    let head = format!("{sign} {}  {}{marks}{forgotten}", node.short_id, author(node, to));
    let mut out = wrapped(&head, "", to);
    if !node.text.is_empty() {
        let _ = write!(out, "\n{}", ended(&node.text, to));
    }
    for call in &node.calls {
        out.push('\n');
        for line in whole_call_lines(&call.tool, &call.arguments) {
            let _ = writeln!(out, "{}", visible(&line));
        }
    }
    let beside = beside(node, to);
    if !beside.is_empty() {
        let _ = writeln!(out, "\n{}", beside.join("\n"));
    }
    out
}

/// Pictures and sounds of a node, and remarks on it.
fn beside(node: &NodeShown, to: OutputStyle) -> Vec<String> {
    let media = node.media.iter().map(|shown| {
        let name = loom::content::blob_name(shown.blob);
        to.dim(&format!("[{} {name}]", to.line(&shown.mime)))
    });
    media.chain(node.annotations.iter().map(|shown| remark(shown, to))).collect()
}

/// A text that stands beside the passages.
fn aside(out: &mut String, what: &str, stored: Option<&StoredText>, to: OutputStyle) {
    let Some(text) = stored.and_then(|stored| stored.text.as_deref()) else { return };
    let words = first_words(text, to);
    // Where there is little room the text has a line of its own.
    let is_narrow = to.columns.is_some_and(|columns| columns < what.width() + ROOM);
    let line =
        if is_narrow { format!("{}\n  {words}", to.dim(what)) } else { format!("{}  {words}", to.dim(what)) };
    line.split('\n').for_each(|line| {
        let _ = writeln!(out, "{}", cut(line, to));
    });
}

/// Columns that words behind a name need.
const ROOM: usize = 20;

/// The line above the passage where what the model sees begins.
fn seen_from(out: &mut String, found: &TreeShown, node: &NodeShown, to: OutputStyle) {
    if found.window == Some(node.position) {
        let from = if found.window_inside { "within the next passage" } else { "here" };
        let _ = writeln!(out, "{}", cut(&to.dim(&format!("┄┄ the model sees from {from} on ┄┄")), to));
    }
}

/// A passage behind `before`: its line, and what is worth knowing below it. Settings that are those of the one `above`
/// are not repeated.
pub(super) fn passage(
    out: &mut String,
    node: &NodeShown,
    above: Option<&NodeShown>,
    before: &str,
    to: OutputStyle,
) {
    let is_blank = node.media.is_empty() && node.text.trim().is_empty();
    let words = match (node.purged, node.role.is_none() && is_blank) {
        (true, _) => to.dim("(forgotten)"),
        (false, true) => to.dim("(empty)"),
        (false, false) if is_blank && !node.calls.is_empty() => to.dim("(only calls)"),
        (false, false) => words_by_author(node, to),
    };
    let most = mostly_by(node);
    let sign = to.by(most, letter(most));
    let _ = writeln!(out, "{}", cut(&format!("{before}{sign} {}  {words}", node.short_id), to));
    // What stands before its first line goes on beside the others.
    let rail = |c| if matches!(c, '├' | '│') { '│' } else { ' ' };
    let rail: String = before.chars().map(rail).collect();
    let about = format!("{}{}", author(node, to), to.dim(&marks(node, above)));
    out.push_str(&wrapped(&about, &format!("{rail}  "), to));
    let show = format!("drawloom tree show TREE --node {}", node.short_id);
    for line in calls::lines(&node.calls, &format!("{rail}  "), &show, to) {
        let _ = writeln!(out, "{line}");
    }
    for line in beside(node, to) {
        let _ = writeln!(out, "{}", cut(&format!("{rail}  {line}"), to));
    }
}

/// What kind of author wrote most of a passage.
fn mostly_by(node: &NodeShown) -> AuthorKind {
    let bytes = |kind| -> usize {
        node.spans.iter().filter(|span| span.kind == kind).map(|span| span.to - span.from).sum()
    };
    let kinds = [AuthorKind::Human, AuthorKind::Model, AuthorKind::Tool].into_iter();
    kinds.filter(|_| !node.spans.is_empty()).max_by_key(|kind| bytes(*kind)).unwrap_or(node.author_kind)
}

/// The first words of a passage, each part in the colour of its author.
fn words_by_author(node: &NodeShown, to: OutputStyle) -> String {
    let words = first_words(&node.text, to);
    if node.spans.is_empty() || !to.color {
        return to.by(node.author_kind, &words);
    }
    let by = |at: usize| {
        let span = node.spans.iter().find(|span| (span.from..span.to).contains(&at));
        span.map_or(node.author_kind, |span| span.kind)
    };
    // The words are those of the text, with one space between two.
    let mut authors = node.text.split_whitespace().flat_map(|word| {
        let from = word.as_ptr() as usize - node.text.as_ptr() as usize;
        word.char_indices().map(move |(at, _)| from + at).chain([from + word.len()])
    });
    let (mut out, mut part, mut kind) = (String::new(), String::new(), node.author_kind);
    for character in words.chars() {
        let next = authors.next().map_or(kind, by);
        // A space stands with the word before it.
        if next != kind && character != ' ' {
            out += &to.by(kind, &std::mem::take(&mut part));
            kind = next;
        }
        part.push(character);
    }
    out + &to.by(kind, &part)
}

/// The first words of a text, on one line; a terminal cuts them to what it has room for.
fn first_words(text: &str, to: OutputStyle) -> String {
    let mut line = String::new();
    let mut words = text.split_whitespace();
    for word in words.by_ref() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.chars().count() >= to.columns.unwrap_or(FIRST_WORDS) {
            break;
        }
    }
    let most = to.columns.unwrap_or(FIRST_WORDS);
    let short: String = line.chars().take(most).collect();
    let more = if short.len() < line.len() || words.next().is_some() { "…" } else { "" };
    format!("{}{more}", to.line(&short))
}

/// Passages by what they follow.
struct TreeRenderer<'a> {
    found: &'a TreeShown,
    to: OutputStyle,
    /// The version shown at each position, else the newest of the page.
    shown: BTreeMap<PositionId, &'a NodeShown>,
    below: BTreeMap<PositionId, Vec<PositionId>>,
    /// Positions that follow none of the page.
    tops: Vec<PositionId>,
}

impl<'a> TreeRenderer<'a> {
    fn of(found: &'a TreeShown, to: OutputStyle) -> Self {
        let mut drawing =
            Self { found, to, shown: BTreeMap::new(), below: BTreeMap::new(), tops: Vec::new() };
        let on_paths = found.nodes.iter().filter(|node| node.kind == PositionKind::Path);
        let there: BTreeSet<PositionId> = on_paths.clone().map(|node| node.position).collect();
        for node in on_paths {
            let is_new = !drawing.shown.contains_key(&node.position);
            if is_new || !drawing.shown[&node.position].shown {
                drawing.shown.insert(node.position, node);
            }
            if is_new {
                match node.parent.filter(|parent| there.contains(parent)) {
                    Some(parent) => drawing.below.entry(parent).or_default().push(node.position),
                    None => drawing.tops.push(node.position),
                }
            }
        }
        drawing
    }

    fn draw(&self, out: &mut String) {
        for top in &self.tops {
            self.line(out, *top, 0);
        }
    }

    /// A passage and what follows it: what goes on stands below, the others between, a level further to the right.
    fn line(&self, out: &mut String, from: PositionId, level: usize) {
        let mut next = Some(from);
        let mut is_last = false;
        while let Some(position) = next {
            let node = self.shown[&position];
            if node.parent.is_some() {
                seen_from(out, self.found, node, self.to);
                let before = match node.active && node.shown {
                    true => "▸ ",
                    false if is_last => "└─",
                    false => "  ",
                };
                // A branch begins beside the passages of its level, and goes on further to the right.
                let before = match level.checked_sub(1).filter(|_| position == from) {
                    Some(above) => format!("{}├─", "│ ".repeat(above)),
                    None => format!("{}{before}", "│ ".repeat(level)),
                };
                passage(out, node, None, &before, self.to);
                if !node.shown {
                    // That one stands on another page.
                    let line = format!("{}  {}", "│ ".repeat(level), self.to.dim("another version is shown"));
                    let _ = writeln!(out, "{}", cut(&line, self.to));
                }
            }
            let children = self.below.get(&position).map(Vec::as_slice).unwrap_or_default();
            let goes_on = children.iter().find(|child| self.shown[child].active).or(children.first());
            for child in children.iter().filter(|child| Some(*child) != goes_on) {
                self.branch(out, *child, level);
            }
            // The path ends above them: what is drawn below the others is one of them.
            let goes = goes_on.is_some_and(|child| self.shown[child].active);
            is_last = node.active && !goes && children.len() > 1;
            next = goes_on.copied();
        }
    }

    /// A passage beside the one that goes on; folded unless the page is of what stands around a passage.
    fn branch(&self, out: &mut String, at: PositionId, level: usize) {
        if self.found.unfolded && level < MAX_INDENT {
            self.line(out, at, level + 1);
            return;
        }
        let before = format!("{}├─", "│ ".repeat(level));
        passage(out, self.shown[&at], None, &before, self.to);
        let below = self.count_below(at);
        if below > 0 {
            let words = format!("… {} below", count(below, "passage", "passages"));
            let line = format!("{}│   {}", "│ ".repeat(level), self.to.dim(&words));
            let _ = writeln!(out, "{}", cut(&line, self.to));
        }
    }

    /// Passages of the page below a position.
    fn count_below(&self, at: PositionId) -> u64 {
        let mut todo = vec![at];
        let mut found = 0;
        while let Some(position) = todo.pop() {
            let children = self.below.get(&position).map(Vec::as_slice).unwrap_or_default();
            found += children.len() as u64;
            todo.extend(children);
        }
        found
    }
}

//! Trees, their nodes and what was done to them.

use std::fmt::Write as _;

use commands::results::tree::{
    AnnotationShown, AnswerPlace, Compacted, Estimate, Generated, NextAnswer, NodeShown, OperationShown,
    Operations, PathEdited, Stepped, StoredText, TreeLine, Trees, Trusted, UsageShown, Verified, ViewLine,
    Views, WordChange, word_of,
};
use loom::verify::Status;
use loom::{AuthorKind, Finish, GenerationSettings, Mode, NodeId, PositionKind, short_id, source};
use model::{ModelPlace, Money};

use super::columns::{count, moment, word, wrapped};
use super::context::about;
use super::siblings::glimpse;
use super::table::{columns, explained};
use super::{LISTED, OutputStyle, RenderedOutcome};

pub(super) fn list(found: &Trees, to: OutputStyle) -> String {
    let row = |tree: &TreeLine| {
        vec![
            tree.short_id.clone(),
            moment(tree.updated),
            word_of(tree.mode).to_owned(),
            match tree.mode {
                Mode::Buffer => count(tree.passages, "passage", "passages"),
                Mode::Dialogue => count(tree.passages, "message", "messages"),
            },
            if tree.title.is_empty() { to.dim("(no title)") } else { to.line(&tree.title).into_owned() },
        ]
    };
    columns(&found.trees.iter().map(row).collect::<Vec<_>>(), &[4], to)
}

/// A remark on one line, with its author.
pub(super) fn remark(remark: &AnnotationShown, to: OutputStyle) -> String {
    let author = source::label(remark.author_kind, &remark.author, None);
    let words = remark.text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{} {}", to.dim(&format!("✎ {} {}:", remark.short_id, to.line(&author))), to.line(&words))
}

/// How a model was asked, in few words.
fn settings(settings: &GenerationSettings) -> Vec<String> {
    settings.words()
}

/// Who wrote a node, in their colour: a model by its name.
pub(super) fn author(node: &NodeShown, to: OutputStyle) -> String {
    let label = source::label(node.author_kind, &node.author, node.model.as_deref());
    to.by(node.author_kind, &to.line(&label))
}

/// What is worth knowing of a node besides its text and author; its settings unless the line `above` has the same.
pub(super) fn marks(node: &NodeShown, above: Option<&NodeShown>) -> String {
    let mut marks = Vec::new();
    marks.extend(node.role.as_ref().map(word));
    if node.kind != PositionKind::Path {
        marks.push(word(&node.kind));
    }
    if let Some(model) = node.model.as_ref().filter(|_| node.author_kind == AuthorKind::Human) {
        let does = if node.edited_from.is_some() { "edits" } else { "from" };
        marks.push(format!("{does} {}", text::terminal::one_line(model)));
    }
    if node.versions > 1 {
        marks.push(format!("{} versions", node.versions));
    }
    if node.siblings > 1 {
        marks.push(format!("{} siblings", node.siblings));
    }
    for (is, mark) in [
        (node.pending, "pending edit"),
        (node.drifted, "drifted"),
        (node.pruned && !node.below_pruned, "pruned"),
        (node.below_pruned, "below a pruned one"),
        (node.excluded, "excluded"),
        (node.trust == loom::Trust::Outside, "from outside"),
    ] {
        marks.extend(is.then(|| mark.to_owned()));
    }
    marks.extend(node.finish.as_ref().filter(|finish| **finish != Finish::Stop).map(finish));
    marks.extend(node.bookmark.as_ref().map(|title| bookmark(title)));
    marks.extend(node.tags.iter().map(|tag| format!("#{}", text::terminal::one_line(tag))));
    let is_new = above.is_none_or(|above| above.settings != node.settings);
    marks.extend(node.settings.iter().filter(|_| is_new).flat_map(settings));
    marks.into_iter().fold(String::new(), |line, mark| line + " · " + &mark)
}

/// A bookmark by its title.
pub(super) fn bookmark(title: &str) -> String {
    format!("★ {}", text::terminal::one_line(title)).trim_end().to_owned()
}

pub(super) fn finish(finish: &Finish) -> String {
    match finish {
        Finish::Stop => "complete".to_owned(),
        Finish::Length => "cut at the limit".to_owned(),
        Finish::ToolUse => "calls tools".to_owned(),
        Finish::Refused => "withheld by the provider".to_owned(),
        Finish::Interrupted(why) => match &**why {
            "cancelled" => "interrupted: stopped".to_owned(),
            why => format!("interrupted: {}", text::terminal::one_line(why).replace('_', " ")),
        },
    }
}

/// A stored text, byte for byte in a pipe.
pub(super) fn stored(found: &StoredText, to: OutputStyle) -> RenderedOutcome {
    let Some(stored) = &found.text else {
        return RenderedOutcome::default().noting(["none is set".to_owned()]);
    };
    let mut text = to.text(stored).into_owned();
    if to.terminal && !text.ends_with('\n') {
        text.push('\n');
    }
    RenderedOutcome::new(text)
}

/// Answers of a model. One is a text to go on with: its name and tokens are notices. Of several each has a line of its own
/// above it, and an empty line stands between two.
pub(super) fn generated(done: &Generated, to: OutputStyle) -> RenderedOutcome {
    let Generated { nodes, place, .. } = done;
    if let [only] = nodes.as_slice() {
        let how =
            if only.finish == Finish::Stop { String::new() } else { format!(", {}", finish(&only.finish)) };
        let about = format!("[{}{how}, {}]", only.short_id, usage(done.usage));
        let body = if only.streamed { String::new() } else { ended(&only.text, to) };
        let at = moved_to(place, (&only.short_id, &only.text), to);
        return RenderedOutcome::new(body).noting([about, at]).behind();
    }
    let mut parts = Vec::new();
    for node in nodes {
        let shown = if node.streamed { ", shown above" } else { "" };
        let head = to.dim(&format!("{}  {}{shown}", node.short_id, finish(&node.finish)));
        let text = if node.streamed { String::new() } else { ended(&node.text, to) };
        parts.push(format!("{head}\n{text}"));
    }
    let mut notices = vec![format!("[{}]", usage(done.usage))];
    notices.extend(nodes.first().map(|first| moved_to(place, (&first.short_id, &first.text), to)));
    notices.extend(place.next.as_ref().map(|next| {
        let NextAnswer { command, number, from, of } = next;
        format!("this is {from} of {of} siblings: `{}` goes to {number}", to.line(command))
    }));
    RenderedOutcome::new(parts.join("\n")).noting(notices).behind()
}

/// A text with an end of its last line.
pub(super) fn ended(text: &str, to: OutputStyle) -> String {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{}{end}", to.text(text))
}

/// Where the view stands once an answer is there: at its first sibling, if it was asked for at the tip; else where it was.
pub(super) fn moved_to(place: &AnswerPlace, (short_id, text): (&str, &str), to: OutputStyle) -> String {
    // A terminal shows a text once.
    let answer =
        if to.terminal { short_id.to_owned() } else { format!("{short_id} “{}”", glimpse(text, to)) };
    let view = to.line(&place.view);
    match &place.go {
        None => format!("{view} moved to {answer}"),
        Some(go) => format!("{view} stays where it is: `{}` goes to {answer}", to.line(go)),
    }
}

fn usage(usage: UsageShown) -> String {
    let UsageShown { input_uncached, cache_read, cache_write, output, reported } = usage;
    if !reported && usage.is_nothing() {
        return "tokens not reported".to_owned();
    }
    let about = about(!reported);
    let input = input_uncached.saturating_add(cache_read).saturating_add(cache_write);
    let cached = if cache_read > 0 { format!(" ({cache_read} from a cache)") } else { String::new() };
    format!("{about}{input} in{cached}, {about}{output} out")
}

pub(super) fn estimate(found: &Estimate, to: OutputStyle) -> String {
    let place = match found.place {
        ModelPlace::Local => "stays on this machine",
        ModelPlace::Remote => "leaves this machine",
    };
    let price =
        found.cost.map_or_else(|| "not known".to_owned(), |cost| Money::from_dollars(cost).to_string());
    let about = about(!found.counted);
    let by = match found.counted_by.as_str() {
        "library" => ", counted with OpenAI's vocabulary",
        "server" => ", texts counted by its server",
        _ => "",
    };
    let mut rows = vec![
        vec!["model".into(), to.line(&found.model).into_owned()],
        vec!["text".into(), place.into()],
        vec!["requests".into(), found.requests.to_string()],
        vec!["input".into(), format!("{about}{} tokens a request{by}", found.input_tokens)],
        vec!["output".into(), format!("at most {} tokens in all", found.output_tokens)],
        vec!["price".into(), price],
    ];
    rows.extend(found.window_start.iter().map(|start| vec!["window".into(), to.line(start).into_owned()]));
    explained(&rows, to)
}

pub(super) fn compacted(done: &Compacted, to: OutputStyle) -> String {
    let start = to.line(&done.start_named);
    let what = format!(
        "{} ({})",
        count(done.leaves + done.returns, "passage", "passages"),
        count(done.chars, "character", "characters")
    );
    let covered = match done.covered_by {
        "nothing" => "; they stay in the tree and are no longer sent".to_owned(),
        by => format!(" (covered by: {by})"),
    };
    let (verb, how) = if done.dry_run { ("would leave", "would start") } else { ("left", "starts") };
    let back = if done.dry_run { "" } else { "; undo brings them back" };
    match (done.leaves, done.returns) {
        (0, 0) if done.moves => format!(
            "nothing {verb} the window, which starts further down for lack of room; with more room it {how} at {start}"
        ),
        (0, 0) => format!("nothing {verb} the window: it starts at {start} already"),
        (0, _) => {
            let verb = if done.dry_run { "would come" } else { "came" };
            format!("{what} {verb} back, as far as there is room; the window {how} at {start}")
        }
        _ => format!("{what} {verb} the window{covered}; the window {how} at {start}{back}"),
    }
}

pub(super) fn path_edited(done: &PathEdited, to: OutputStyle) -> RenderedOutcome {
    let count = |number: usize, what: &str| match number {
        1 => format!("1 passage {what}"),
        number => format!("{number} passages {what}"),
    };
    let mut said = Vec::new();
    for (ids, what) in [
        (done.changed.iter().map(|node| node.short_id.as_str()).collect::<Vec<_>>(), "changed"),
        (done.added.iter().map(|node| node.short_id.as_str()).collect(), "added"),
    ] {
        let more = if ids.len() > LISTED { " …" } else { "" };
        if !ids.is_empty() {
            let first: Vec<_> = ids.iter().take(LISTED).copied().collect();
            said.push(format!("{} ({}{more})", count(ids.len(), what), first.join(" ")));
        }
    }
    let text = if said.is_empty() {
        "nothing was changed".to_owned()
    } else {
        let words = WordChange { came: done.words_added, went: done.words_removed };
        format!("{}{words}", said.join(", "))
    };
    let (off, elsewhere): (Vec<_>, Vec<_>) =
        done.collided.iter().partition(|node| done.off_path.contains(node));
    let left = [(elsewhere, "were changed elsewhere meanwhile"), (off, "are on the path no more")];
    let mut left: Vec<String> = left
        .into_iter()
        .filter(|(nodes, _)| !nodes.is_empty())
        .map(|(nodes, why)| {
            let ids: Vec<&str> = nodes.iter().map(|node| node.short_id.as_str()).collect();
            format!("not changed, because they {why}: {}", ids.join(" "))
        })
        .collect();
    if let (Some(last), Some(file)) = (left.last_mut(), &done.file) {
        let file = to.line(&file.to_string_lossy()).into_owned();
        *last +=
            &format!("; the edited text lies in {file}: edit them again with what it says, then delete it");
    }
    RenderedOutcome::sentence(&text, to).noting(left)
}

pub(super) fn stepped(done: &Stepped, to: OutputStyle) -> RenderedOutcome {
    let did = to.line(done.did.as_deref().unwrap_or("a change of a draft"));
    let not = if done.changed { "" } else { "not " };
    let line = format!("{not}{}: {did}{}", verb(done), done.words);
    RenderedOutcome::sentence(&line, to).noting(left_alone(done))
}

const fn verb(done: &Stepped) -> &'static str {
    if done.redone { "redone" } else { "undone" }
}

/// What a step left as it was.
fn left_alone(done: &Stepped) -> impl Iterator<Item = String> {
    let line = |cell| format!("not {}, because it was changed or forgotten since: {cell}", verb(done));
    done.skipped.iter().map(line)
}

pub(super) fn log(found: &Operations, to: OutputStyle) -> RenderedOutcome {
    let row = |operation: &OperationShown| {
        let view = operation.view.as_deref().unwrap_or("–");
        vec![
            operation.seq.to_string(),
            moment(operation.at),
            to.line(view).into_owned(),
            agent(&operation.agent, to),
            to.line(&operation.did).into_owned(),
        ]
    };
    let rows: Vec<_> = found.operations.iter().map(row).collect();
    RenderedOutcome::new(columns(&rows, &[3, 4], to))
        .noting(found.more.iter().map(|command| format!("more: `{}`", to.line(command))))
}

/// Whoever did something, by the name people read; the default agent by its own, whatever it was called before.
fn agent(name: &str, to: OutputStyle) -> String {
    to.line(&source::label(AuthorKind::Model, name, None)).into_owned()
}

/// Which texts the owner answers for, and what taints all the same.
pub(super) fn trusted(done: &Trusted, to: OutputStyle) -> String {
    let mut out = String::new();
    if !done.changed.is_empty() {
        let names: Vec<&str> = done.changed.iter().map(|node| node.short_id.as_str()).collect();
        let (names, one) = (names.join(" "), names.len() == 1);
        let _ = match (done.on, one) {
            (true, true) => writeln!(out, "{names} taints no more: you answer for what it says"),
            (true, false) => writeln!(out, "{names} taint no more: you answer for what they say"),
            (false, true) => writeln!(out, "{names} is from outside again"),
            (false, false) => writeln!(out, "{names} are from outside again"),
        };
    }
    if done.taints.is_empty() {
        out.push_str("nothing here is from outside\n");
        return out;
    }
    let still = if done.changed.is_empty() || !done.on { "from outside" } else { "still from outside" };
    let _ = writeln!(out, "{still}, with the answers that were made in sight of it:");
    for node in &done.taints {
        let _ = writeln!(out, "  {}", to.line(&node.line()));
    }
    if done.on && !done.changed.is_empty() {
        out.push_str("files that were written in sight of it stay from outside, too: `drawloom workspace accept FILE`\n");
    }
    out
}

pub(super) fn views(found: &Views, to: OutputStyle) -> String {
    let row = |view: &ViewLine| {
        vec![to.line(&view.name).into_owned(), to.line(&view.tip_named).into_owned(), agent(&view.agent, to)]
    };
    columns(&found.views.iter().map(row).collect::<Vec<_>>(), &[2], to)
}

/// Short id of a node of a problem: that of its tree, else the one it would have in a tree of its own.
fn short_id(found: &Verified, node: NodeId) -> String {
    let known = found.short_ids.get(&node).cloned();
    known.unwrap_or_else(|| likely_short_id(node))
}

/// The short id a node has in a tree in which no other has the same.
fn likely_short_id(node: NodeId) -> String {
    short_id::candidates(node.to_bytes()).next().unwrap_or_default()
}

/// A line about nodes that are not here, by their short ids.
pub(super) fn with_short_ids(line: &str) -> String {
    let words = line.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let short = |word: &str| {
        let id = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        match id.parse::<NodeId>() {
            Ok(node) if id.len() == LETTERS_OF_ID => word.replacen(id, &likely_short_id(node), 1),
            _ => word.to_owned(),
        }
    };
    words.map(short).collect()
}

/// Letters and digits of a whole id.
const LETTERS_OF_ID: usize = 26;

pub(super) fn verified(found: &Verified, to: OutputStyle) -> String {
    let status = match found.status {
        Status::Valid => to.paint("32", "valid"),
        Status::Invalid => to.paint("31", "invalid"),
        Status::Incomplete => to.paint("33", "incomplete"),
    };
    let unattested = match found.unattested {
        0 => String::new(),
        without => format!(", {without} without a response"),
    };
    let nodes = count(found.nodes, "node", "nodes");
    let said = format!("{status} ({}), {nodes}{unattested}, head {}", word(&found.assurance), found.head);
    let mut out = wrapped(&said, "", to);
    let rows: Vec<_> = found
        .problems
        .iter()
        .take(LISTED)
        .map(|problem| {
            let place = problem.node.map(|node| short_id(found, node));
            let place = place.or_else(|| problem.seq.map(|seq| format!("operation {seq}")));
            let gap = problem.gap.as_ref().map_or_else(String::new, |gap| format!(" ({})", word(gap)));
            vec![place.unwrap_or_else(|| "tree".to_owned()), to.line(&problem.why).into_owned() + &gap]
        })
        .collect();
    out.push_str(&explained(&rows, to));
    let more = found.problems.len().saturating_sub(LISTED);
    if more > 0 {
        let _ = writeln!(out, "… and {more} more (--json lists them)");
    }
    out
}

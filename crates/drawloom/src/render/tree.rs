//! Trees, their nodes and what was done to them.

use std::fmt::Write as _;

use commands::results::tree::{
    AnnotationShown, Compacted, DraftDone, Estimate, Generated, NodeShown, OperationShown, Operations,
    PathEdited, Stepped, StoredText, TreeLine, Trees, UsageShown, Verified, ViewLine, Views, word_of,
};
use loom::verify::Status;
use loom::{AuthorKind, Finish, GenerationSettings, PositionKind, source};
use model::{ModelPlace, Money};

use super::columns::{columns, count, moment, word};
use super::{LISTED, OutputStyle, RenderedOutcome};

pub(super) fn list(found: &Trees, to: OutputStyle) -> String {
    let row = |tree: &TreeLine| {
        vec![
            tree.short_id.clone(),
            moment(tree.updated),
            word_of(tree.mode).to_owned(),
            count(tree.nodes, "node", "nodes"),
            if tree.title.is_empty() { to.dim("(no title)") } else { to.line(&tree.title).into_owned() },
        ]
    };
    columns(&found.trees.iter().map(row).collect::<Vec<_>>())
}

/// A remark on one line, with its author.
pub(super) fn remark(remark: &AnnotationShown, to: OutputStyle) -> String {
    let author = source::label(remark.author_kind, &remark.author, None);
    let words = remark.text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{} {}", to.dim(&format!("✎ {} {}:", remark.short_id, to.line(&author))), to.line(&words))
}

/// How a model was asked, in few words.
fn settings(settings: &GenerationSettings) -> Vec<String> {
    let GenerationSettings { temperature, top_p, min_p, max_tokens, seed, thinking, preset } = settings;
    let mut words = Vec::new();
    words.extend(preset.as_ref().map(|name| format!("preset {}", text::terminal::one_line(name))));
    for (name, value) in [("temperature", temperature), ("top-p", top_p), ("min-p", min_p)] {
        words.extend(value.as_ref().map(|value| format!("{name} {value}")));
    }
    words.extend(seed.map(|seed| format!("seed {seed}")));
    words.extend(max_tokens.map(|most| format!("at most {most} tokens")));
    words.extend(thinking.as_ref().map(|how| format!("thinking {}", text::terminal::one_line(how))));
    words
}

/// Who wrote a node, in their colour: a model by its name.
pub(super) fn author(node: &NodeShown, to: OutputStyle) -> String {
    let label = source::label(node.author_kind, &node.author, node.model.as_deref());
    to.by(node.author_kind, &to.line(&label))
}

/// What is worth knowing of a node besides its text and author.
pub(super) fn marks(node: &NodeShown) -> String {
    let mut marks = Vec::new();
    marks.extend(node.role.as_ref().map(word));
    if node.kind != PositionKind::Path {
        marks.push(word(&node.kind));
    }
    if let Some(model) = node.model.as_ref().filter(|_| node.author_kind == AuthorKind::Human) {
        marks.push(format!("edits {}", text::terminal::one_line(model)));
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
        (node.pruned, "pruned"),
        (node.excluded, "excluded"),
        (node.trust == loom::Trust::Outside, "from outside"),
    ] {
        marks.extend(is.then(|| mark.to_owned()));
    }
    marks.extend(node.finish.as_ref().filter(|finish| **finish != Finish::Stop).map(finish));
    marks.extend(
        node.bookmark
            .as_ref()
            .map(|title| format!("★ {}", text::terminal::one_line(title)).trim_end().to_owned()),
    );
    marks.extend(node.tags.iter().map(|tag| format!("#{}", text::terminal::one_line(tag))));
    marks.extend(node.settings.iter().flat_map(settings));
    marks.into_iter().fold(String::new(), |line, mark| line + " · " + &mark)
}

fn finish(finish: &Finish) -> String {
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

pub(super) fn draft(done: &DraftDone) -> String {
    match done.revision {
        Some(revision) => format!("draft {} at revision {revision}\n", done.draft),
        None => done.nodes.iter().fold(String::new(), |out, node| out + &node.to_string() + "\n"),
    }
}

pub(super) fn generated(done: &Generated, to: OutputStyle) -> RenderedOutcome {
    let mut out = String::new();
    let mut notices = Vec::new();
    for node in &done.nodes {
        // One answer is a text to go on with; of several each needs its name.
        if let [only] = done.nodes.as_slice() {
            let how = if only.finish == Finish::Stop {
                String::new()
            } else {
                format!(", {}", finish(&only.finish))
            };
            notices.push(format!("[{}{how}, {}]", only.short_id, usage(done.usage)));
        } else {
            let shown = if node.streamed { ", shown above" } else { "" };
            let line = format!("{}  {}{shown}", node.short_id, finish(&node.finish));
            let _ = writeln!(out, "{}", to.dim(&line));
        }
        if node.streamed {
            continue;
        }
        out.push_str(&to.text(&node.text));
        if !node.text.ends_with('\n') {
            out.push('\n');
        }
    }
    if done.nodes.len() > 1 {
        notices.push(format!("[{}]", usage(done.usage)));
    }
    RenderedOutcome::new(out).noting(notices)
}

fn usage(usage: UsageShown) -> String {
    let UsageShown { input_uncached, cache_read, cache_write, output, reported } = usage;
    if !reported {
        return "tokens not reported".to_owned();
    }
    let input = input_uncached.saturating_add(cache_read).saturating_add(cache_write);
    let cached = if cache_read > 0 { format!(" ({cache_read} from a cache)") } else { String::new() };
    format!("{input} in{cached}, {output} out")
}

pub(super) fn estimate(found: &Estimate, to: OutputStyle) -> String {
    let place = match found.place {
        ModelPlace::Local => "stays on this machine",
        ModelPlace::Remote => "leaves this machine",
    };
    let price =
        found.cost.map_or_else(|| "not known".to_owned(), |cost| Money::from_dollars(cost).to_string());
    let about = if found.counted { "" } else { "≈ " };
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
    rows.extend(found.window.iter().map(|window| vec!["window".into(), to.line(window).into_owned()]));
    columns(&rows)
}

pub(super) fn compacted(done: &Compacted) -> String {
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
            "nothing {verb} the window, which starts further down for lack of room; with more room it {how} at {}\n",
            done.start
        ),
        (0, 0) => format!("nothing {verb} the window: it starts at {} already\n", done.start),
        (0, _) => {
            let verb = if done.dry_run { "would come" } else { "came" };
            format!("{what} {verb} back, as far as there is room; the window {how} at {}\n", done.start)
        }
        _ => format!("{what} {verb} the window{covered}; the window {how} at {}{back}\n", done.start),
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
        "nothing was changed\n".to_owned()
    } else {
        let words = format!("{} words came, {} went", done.words_added, done.words_removed);
        format!("{}; {words}\n", said.join(", "))
    };
    let collided: Vec<&str> = done.collided.iter().map(|node| node.short_id.as_str()).collect();
    let file = done
        .file
        .as_ref()
        .map(|file| format!("; the edited text lies in {}", to.line(&file.to_string_lossy())));
    let left = (!collided.is_empty()).then(|| {
        format!(
            "not changed, because they were changed elsewhere meanwhile: {}{}",
            collided.join(" "),
            file.unwrap_or_default()
        )
    });
    RenderedOutcome::new(text).noting(left)
}

pub(super) fn stepped(done: &Stepped, to: OutputStyle) -> RenderedOutcome {
    let what = match &done.kind {
        None => "a change of a draft".to_owned(),
        Some(kind) => word(kind),
    };
    let about = if done.about.is_empty() { String::new() } else { format!(" {}", to.line(&done.about)) };
    let not = if done.changed { "" } else { "not " };
    RenderedOutcome::new(format!("{not}{}: {what}{about}\n", verb(done))).noting(left_alone(done))
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
            word(&operation.kind),
            to.line(view).into_owned(),
            to.line(&operation.agent).into_owned(),
            to.dim(&to.line(&operation.changes.join(", "))),
        ]
    };
    let rows: Vec<_> = found.operations.iter().map(row).collect();
    RenderedOutcome::new(columns(&rows))
        .noting(found.next.iter().map(|next| format!("more: --before {next}")))
}

pub(super) fn views(found: &Views, to: OutputStyle) -> String {
    let row = |view: &ViewLine| {
        vec![to.line(&view.name).into_owned(), view.tip.to_string(), to.line(&view.agent).into_owned()]
    };
    columns(&found.views.iter().map(row).collect::<Vec<_>>())
}

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
    let mut out =
        format!("{status} ({}), {nodes}{unattested}, head {}\n", word(&found.assurance), found.head);
    let rows: Vec<_> = found
        .problems
        .iter()
        .take(LISTED)
        .map(|problem| {
            let place = problem.node.map(|node| node.to_string());
            let place = place.or_else(|| problem.seq.map(|seq| format!("operation {seq}")));
            let gap = problem.gap.as_ref().map_or_else(String::new, |gap| format!(" ({})", word(gap)));
            vec![place.unwrap_or_else(|| "tree".to_owned()), to.line(&problem.why).into_owned() + &gap]
        })
        .collect();
    out.push_str(&columns(&rows));
    let more = found.problems.len().saturating_sub(LISTED);
    if more > 0 {
        let _ = writeln!(out, "… and {more} more (--json lists them)");
    }
    out
}

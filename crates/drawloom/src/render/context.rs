//! What was sent to a model, and how two requests differ.

use std::fmt::Write as _;

use commands::results::context::{ContextDiff, ContextShown, Replayed};
use context::segment::{FRAMING, SegmentOutcome};
use context::{Kind, Segment};
use loom::Finish;

use super::columns::{count, word, wrapped};
use super::table::{blocks, columns};
use super::tree::{ended, finish, moved_to};
use super::{OutputStyle, RenderedOutcome, diff};

/// The sign before a number that is estimated.
pub(super) const fn about(is_estimated: bool) -> &'static str {
    if is_estimated { "≈ " } else { "" }
}

/// The kind of a segment by the word people use for it.
pub(super) fn kind(kind: Kind) -> String {
    match kind {
        Kind::Framing => FRAMING.to_owned(),
        Kind::Buffer => "draft".to_owned(),
        kind => word(&kind),
    }
}

pub(super) fn show(found: &ContextShown, to: OutputStyle) -> String {
    if found.map {
        return super::slash::kinds(found, to, true);
    }
    let about = about(found.estimated);
    let zone = found.zone.as_ref().map_or_else(String::new, |zone| format!(", {zone}"));
    let said = format!(
        "{}  {about}{} of {} tokens, window {}{zone}",
        to.line(&found.model),
        found.used,
        found.budget,
        found.window
    );
    let mut out = wrapped(&said, "", to);
    if let Some(reusable) = found.reusable {
        let read =
            found.cache_read.map_or_else(String::new, |read| format!(", {read} were read from a cache"));
        let said = format!("≈ {reusable} tokens are the same as in the request before{read}");
        out += &wrapped(&said, "", to);
    }
    out += &place(found, to);
    let with_text = found.segments.iter().any(|shown| shown.text.is_some());
    if !with_text {
        // Between two parts the format has often no token: `--text` shows it there.
        let is_told = |segment: &&Segment| segment.kind != Kind::Framing || segment.tokens > 0;
        let segments = found.segments.iter().map(|shown| &shown.segment).filter(is_told);
        let rows: Vec<_> = segments.flat_map(|segment| rows(segment, found.estimated, to)).collect();
        return out + &columns(&rows, &[], to);
    }
    for shown in &found.segments {
        let head = columns(&rows(&shown.segment, found.estimated, to), &[], to);
        head.lines().for_each(|line| out += &format!("{}\n", to.dim(line)));
        for line in shown.text.as_deref().map(|text| to.text(text)).unwrap_or_default().lines() {
            let _ = writeln!(out, "    {line}");
        }
    }
    out
}

/// Lines about the path: from where the model sees it, and text from outside in it.
pub(super) fn place(found: &ContextShown, to: OutputStyle) -> String {
    let start = found.window_start.as_ref().map(|start| wrapped(&to.line(start), "", to));
    let tainted = found.tainted_short.as_ref().map(|node| {
        let line = format!("contains text from outside: {}", to.line(node));
        to.paint("31", &line) + "\n"
    });
    start.into_iter().chain(tainted).collect()
}

/// The row of a segment, and one for each tool that has calls in it.
fn rows(segment: &Segment, is_estimated: bool, to: OutputStyle) -> Vec<Vec<String>> {
    let mut rows = vec![row(segment, is_estimated, to)];
    rows.extend(segment.tools.iter().map(|share| {
        vec![
            format!("  of it {}", to.line(&share.tool)),
            format!("{}{} tokens", about(true), share.tokens),
            count(share.chars, "character", "characters"),
            String::new(),
            count(share.calls, "call with its result", "calls with their results"),
        ]
    }));
    rows
}

fn row(segment: &Segment, is_estimated: bool, to: OutputStyle) -> Vec<String> {
    // What is not sent is counted by nobody.
    let is_left_out = matches!(segment.decision, SegmentOutcome::LeftOut { .. });
    let decision = match &segment.decision {
        SegmentOutcome::Sent => String::new(),
        SegmentOutcome::Trimmed { from, to } => format!("trimmed from {from} to {to}"),
        SegmentOutcome::LeftOut { why } => format!("left out: {}", to.line(why)),
    };
    vec![
        kind(segment.kind),
        format!("{}{} tokens", about(is_estimated || is_left_out), segment.tokens),
        count(segment.chars, "character", "characters"),
        if segment.stable { "stable".to_owned() } else { String::new() },
        to.line(&segment.reason).into_owned(),
        decision,
    ]
}

pub(super) fn differences(found: &ContextDiff, to: OutputStyle) -> String {
    let mut rows = Vec::new();
    let mut add = |sign: &str, segment: &Segment, more: String| {
        let mut cells = vec![sign.to_owned()];
        cells.extend(row(segment, found.estimated, to));
        cells.push(more);
        rows.push(cells);
    };
    found.removed.iter().for_each(|segment| add("-", segment, String::new()));
    found.added.iter().for_each(|segment| add("+", segment, String::new()));
    for changed in &found.changed {
        add("~", &changed.after, format!("same for the first {} bytes", changed.same_prefix));
    }
    let mut out = String::new();
    let changed = found.changed.iter().map(Some);
    let texts = std::iter::repeat_n(None, rows.len() - found.changed.len()).chain(changed);
    for (block, changed) in blocks(&rows, &[], to).iter().zip(texts) {
        out += block;
        out += &changed.map_or_else(String::new, |changed| {
            let is_wire = matches!(changed.after.kind, Kind::Framing | Kind::Schemas);
            let text = |text: &str| if is_wire { spaced(text) } else { text.to_owned() };
            diff::words(&text(&changed.old), &text(&changed.new), to)
        });
    }
    out
}

/// JSON with a blank behind each field and name, at which its words are told apart.
fn spaced(json: &str) -> String {
    json.replace(",\"", ", \"").replace("\":", "\": ")
}

/// The answer to a request that was sent again; of one that was only looked at what it is.
pub(super) fn replayed(done: &Replayed, to: OutputStyle) -> RenderedOutcome {
    let same = match (done.identical, done.anew) {
        (true, _) => "the bytes that were sent".to_owned(),
        (false, true) => format!("encoded for {}", to.line(&done.model)),
        (false, false) => "NOT the bytes that were sent".to_owned(),
    };
    let Some(answer) = &done.answer else {
        return RenderedOutcome::new(format!("{}  {same}\n", done.sha256));
    };
    let how =
        if answer.finish == Finish::Stop { String::new() } else { format!(", {}", finish(&answer.finish)) };
    let about = format!("[{}{how}, {}, {same}]", answer.short_id, to.line(&done.model));
    let at = moved_to(&answer.place, (&answer.short_id, &answer.text), to);
    let body = if answer.streamed { String::new() } else { ended(&answer.text, to) };
    RenderedOutcome::new(body).noting([about, at]).behind()
}

//! Conversations: the answer alone on standard output, what it cost beside it.

use std::fmt::Write as _;

use agent::error::GO_ON;
use agent::session::calls_not_run;
use commands::results::chat::{
    Chatted, Copied, ExchangeShown, Exchanges, MediaShown, SessionShown, SessionsShown, TurnFinish,
};
use commands::results::tree::UsageShown;
use loom::Finish;
use model::Money;
use text::bytes::size;
use text::terminal::one_line;
use unicode_width::UnicodeWidthStr as _;

use super::calls;
use super::columns::{moment, word, wrapped};
use super::context::about;
use super::siblings::glimpse;
use super::table::{columns, field};
use super::tree::{ended, finish};
use super::{OutputStyle, RenderedOutcome};
use crate::cells::{cut_end, cut_start};

pub(super) fn chatted(done: &Chatted, to: OutputStyle) -> RenderedOutcome {
    if let Some(why) = &done.misfit {
        let answer = done.text.lines().map(|line| to.line(line).into_owned());
        let why =
            format!("the answer does not fit the schema: {}; it is kept as {}:", to.line(why), done.short_id);
        return RenderedOutcome::default().noting([why].into_iter().chain(answer));
    }
    match &done.code {
        Some(Some(code)) => {
            let shown = RenderedOutcome::new(if to.terminal { ended(code, to) } else { code.clone() });
            return shown.noting(cut(done));
        }
        Some(None) => {
            let answer = done.text.lines().map(|line| to.line(line).into_owned());
            let why = "no code block is in the answer:".to_owned();
            return RenderedOutcome::default().noting([why].into_iter().chain(answer));
        }
        None => {}
    }
    if !done.answers.is_empty() && !done.streamed {
        let parts: Vec<String> = done.answers.iter().map(|answer| one_of(answer, to)).collect();
        return RenderedOutcome::new(parts.join("\n"));
    }
    let mut body = String::new();
    if !done.streamed {
        body.push_str(&to.text(&done.text));
        let says_nothing = done.text.is_empty() && !done.media.is_empty();
        if !says_nothing && !done.text.ends_with('\n') {
            body.push('\n');
        }
    }
    for medium in &done.media {
        body.push_str(&picture(medium));
        body.push('\n');
    }
    let shown = RenderedOutcome::new(body);
    let below: Vec<String> = if to.terminal {
        footer(done, to.columns.unwrap_or(usize::MAX))
    } else {
        cut(done).into_iter().collect()
    };
    shown.noting(below.into_iter().chain(limit(done)))
}

fn turn_finish(how: &TurnFinish) -> String {
    match how {
        TurnFinish::Answer(how) => finish(how),
        TurnFinish::Limit => "ended by a limit".to_owned(),
    }
}

/// One of several answers, with a line of its own above it.
fn one_of(done: &Chatted, to: OutputStyle) -> String {
    let mut out = format!("{}\n", to.dim(&format!("{}  {}", done.short_id, turn_finish(&done.finish))));
    out += &ended(&done.text, to);
    done.media.iter().for_each(|medium| out += &(picture(medium) + "\n"));
    out
}

/// A picture or a sound in an answer, on one line.
pub(crate) fn picture(medium: &MediaShown) -> String {
    let what = if medium.sound { "sound" } else { "picture" };
    let kind = medium.kind.unwrap_or("of a kind that is not known");
    let measure = match (medium.width, medium.height) {
        (Some(width), Some(height)) => format!(" {width}×{height}"),
        _ => String::new(),
    };
    format!("[{what} {kind}{measure}, {}, saved as {}]", size(medium.bytes), medium.file.display())
}

/// The first words of an answer, by which it is chosen.
pub(crate) fn first_words(answer: &Chatted) -> String {
    glimpse(&answer.text, OutputStyle { terminal: true, ..OutputStyle::default() })
}

/// That an answer is not whole.
fn cut(done: &Chatted) -> Option<String> {
    match &done.finish {
        TurnFinish::Answer(Finish::Length) => Some("the answer was cut at its length limit".to_owned()),
        TurnFinish::Answer(Finish::Interrupted(_)) if done.calls.is_empty() => {
            Some("the answer was cut off: /retry asks again".to_owned())
        }
        TurnFinish::Answer(Finish::Interrupted(_)) => Some(format!("the answer was cut off: {GO_ON}")),
        TurnFinish::Answer(_) | TurnFinish::Limit => None,
    }
}

/// By which limit a turn ended, and what to do.
pub(crate) fn limit(done: &Chatted) -> Option<String> {
    let limit = one_line(done.limit.as_deref()?);
    Some(format!("{limit}: {GO_ON}"))
}

/// What is said of an answer: who gave it, what it took and cost, how full the window is. Where that does not fit in one
/// line the tokens are left out, and the rest is wrapped.
pub(crate) fn footer(done: &Chatted, wide: usize) -> Vec<String> {
    let about = about(!done.measured);
    let window = format!("{about}{:.0} % of the window ({})", done.share * 100.0, done.zone);
    let cut = cut(done);
    let cost = done.cost.map(|cost| Money::from_dollars(cost).to_string());
    let tokens = Some(tokens(&done.usage));
    let model = Some(done.model.clone());
    let all = [model, tokens, cost, Some(window), cut, Some(done.short_id.clone())];
    let kept = |tokens: bool| {
        let pieces = all.iter().enumerate().filter(|(at, _)| tokens || *at != 1);
        pieces.filter_map(|(_, piece)| piece.as_deref()).collect::<Vec<_>>()
    };
    let whole = kept(true).join(" · ");
    if whole.width() <= wide { vec![whole] } else { lines_of(&kept(false), wide) }
}

/// Pieces in as many lines as they need, none parted.
fn lines_of(pieces: &[&str], wide: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces {
        match lines.last_mut() {
            Some(line) if line.width() + 3 + piece.width() <= wide => *line += &format!(" · {piece}"),
            _ => lines.push((*piece).to_owned()),
        }
    }
    lines
}

/// What is said of an answer whose end never came.
const CUT_OFF: &str = " (cut off)";
/// Characters of a question in a recap, at most.
const QUESTION: usize = 200;
/// Lines of an answer in a recap.
const ANSWER: usize = 4;

/// How a conversation stood that is gone on with: the first words of what was said last, the last lines of its answer.
pub(crate) fn recap(last: &ExchangeShown, wide: usize) -> Vec<String> {
    let line = |text: &str| cut_end(&one_line(text), wide);
    let said: String = last.question.split_whitespace().collect::<Vec<_>>().join(" ");
    let said: String = said.chars().take(QUESTION).collect();
    let mut lines = vec![line(&format!("you, {}:", moment(last.at))), line(&format!("  {said}"))];
    let Some(answer) = &last.answer else {
        let hint = if last.calls.is_empty() { "/retry asks again" } else { GO_ON };
        lines.push(line(&format!("(no answer: {hint})")));
        return lines;
    };
    let cut = if last.cut { CUT_OFF } else { "" };
    lines.push(line(&format!("{}{cut}:", last.model.as_deref().unwrap_or("answer"))));
    let all: Vec<&str> = answer.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = &all[all.len().saturating_sub(ANSWER)..];
    if shown.len() < all.len() {
        lines.push("  …".to_owned());
    }
    if let Some((end, above)) = shown.split_last() {
        lines.extend(above.iter().map(|text| line(&format!("  {text}"))));
        lines.push(cut_start(&one_line(&format!("  {end}")), wide));
    }
    lines
}

fn tokens(usage: &UsageShown) -> String {
    if !usage.reported && usage.is_nothing() {
        return "tokens not reported".to_owned();
    }
    let about = about(!usage.reported);
    let input = usage.input_uncached + usage.cache_read + usage.cache_write;
    let cached =
        if usage.cache_read > 0 { format!(" ({} from the cache)", usage.cache_read) } else { String::new() };
    format!("{about}{input} tokens in{cached}, {about}{} out", usage.output)
}

/// Sessions of other workspaces that are named.
const NAMED: usize = 5;

pub(super) fn sessions(found: &SessionsShown, to: OutputStyle) -> String {
    let row = |session: &SessionShown| {
        let zone = session.zone.map(|zone| zone.to_string()).unwrap_or_default();
        let title =
            if session.title.is_empty() { String::new() } else { to.line(&session.title).into_owned() };
        let archived = if session.archived { to.dim("archived") } else { String::new() };
        let mut row =
            vec![to.line(&session.name).into_owned(), moment(session.updated.0), zone, archived, title];
        if found.everywhere {
            row.insert(1, to.line(&session.workspace).into_owned());
        }
        row
    };
    if !found.elsewhere.is_empty() {
        return elsewhere(&found.elsewhere, to);
    }
    let mut rows = Vec::new();
    for session in &found.sessions {
        rows.push(row(session));
        rows.extend(
            session.forks.iter().map(|fork| vec![to.line(&format!("{}:{fork}", session.name)).into_owned()]),
        );
    }
    let free = if found.everywhere { &[1, 5][..] } else { &[4] };
    columns(&rows, free, to)
}

/// Sessions of other workspaces, where this one has none.
fn elsewhere(found: &[(String, String)], to: OutputStyle) -> String {
    let shown = found.iter().take(NAMED);
    let rows = shown.map(|(name, place)| vec![format!("  {}", to.line(name)), to.line(place).into_owned()]);
    let more = found.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("  and {more} more\n") } else { String::new() };
    let said = "no session in this workspace; other workspaces have (`drawloom sessions list --all`):";
    wrapped(said, "", to) + &columns(&rows.collect::<Vec<_>>(), &[1], to) + &more
}

pub(super) fn session(found: &SessionShown, to: OutputStyle) -> RenderedOutcome {
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        out += &field(name, 10, &value, to);
    };
    line("session", to.line(&found.name).into_owned());
    line("type", word(&found.kind));
    line("workspace", to.line(&found.workspace).into_owned());
    line("title", to.line(&found.title).into_owned());
    line("zone", found.zone.map_or_else(|| "no request yet".to_owned(), |zone| zone.to_string()));
    line("updated", moment(found.updated.0));
    for tree in &found.named_trees {
        line("tree", to.line(tree).into_owned());
    }
    let reads =
        "each tree is a conversation, the last the one it goes on in: `drawloom tree show TREE` reads one";
    let several = to.terminal && found.named_trees.len() > 1;
    RenderedOutcome::new(out).noting(several.then(|| reads.to_owned()))
}

pub(super) fn exchanges(found: &Exchanges, to: OutputStyle) -> String {
    if !found.elsewhere.is_empty() {
        return elsewhere(&found.elsewhere, to);
    }
    let mut out = String::new();
    for exchange in &found.exchanges {
        let ExchangeShown { session, short_id, at, question, answer, model, .. } = exchange;
        let mut head = format!("{} · {} · {short_id}", moment(*at), to.line(session));
        if let Some(model) = model {
            let _ = write!(head, " · {}", to.line(model));
        }
        out += &wrapped(&to.dim(&head), "", to);
        for line in to.text(question).lines() {
            let _ = writeln!(out, "> {line}");
        }
        let whole = format!("drawloom tree show {} --around {short_id}", exchange.tree);
        for line in calls::lines(&exchange.calls, "", &whole, to) {
            let _ = writeln!(out, "{line}");
        }
        let answer = answer.as_deref().map_or_else(|| to.dim("(no answer)").into(), |answer| to.text(answer));
        let cut = match &exchange.not_run[..] {
            [] if exchange.cut => to.dim(CUT_OFF),
            [] => String::new(),
            tools => to.dim(&format!(" (cut off; {})", calls_not_run(tools))),
        };
        let _ = writeln!(out, "\n{}{cut}\n", answer.trim_end());
    }
    out
}

/// Where the terminal has a clipboard, it is asked to keep the text (OSC 52); else the text itself.
pub(super) fn copied(done: &Copied, to: OutputStyle) -> RenderedOutcome {
    if !to.terminal || !crate::terminal::can_redraw() {
        let text = if to.terminal { ended(&done.text, to) } else { done.text.clone() };
        return RenderedOutcome::new(text);
    }
    let encoded = data_encoding::BASE64.encode(done.text.as_bytes());
    let count = text::grapheme::count(&done.text);
    RenderedOutcome::new(format!("\x1b]52;c;{encoded}\x07"))
        .noting([format!("{count} characters went to the clipboard, if this terminal lets programs set it")])
}

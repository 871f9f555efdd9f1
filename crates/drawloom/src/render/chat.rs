//! Conversations: the answer alone on standard output, what it cost beside it.

use std::fmt::Write as _;

use commands::results::chat::{
    Chatted, Copied, ExchangeShown, Exchanges, MediaShown, SessionShown, SessionsShown,
};
use commands::results::tree::UsageShown;
use context::Zone;
use loom::Finish;
use text::bytes::size;

use super::columns::{columns, moment, word};
use super::{OutputStyle, RenderedOutcome};

pub(super) fn chatted(done: &Chatted, to: OutputStyle) -> RenderedOutcome {
    match &done.code {
        Some(Some(code)) => return RenderedOutcome::new(to.text(code).into_owned()),
        Some(None) => {
            let answer = done.text.lines().map(|line| to.line(line).into_owned());
            let why = "no code block is in the answer:".to_owned();
            return RenderedOutcome::default().noting([why].into_iter().chain(answer));
        }
        None => {}
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
    if to.terminal { shown.noting([cost(done)]) } else { shown }
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

/// What a turn cost, on one line.
pub(crate) fn cost(done: &Chatted) -> String {
    let mut line = tokens(&done.usage);
    let about = if done.measured { "" } else { "≈ " };
    let _ = write!(line, " · {about}{:.0} % of the window", done.share * 100.0);
    if done.zone != Zone::Green {
        let _ = write!(line, " ({})", done.zone);
    }
    if done.finish == Finish::Length {
        line += " · the answer was cut at its length limit";
    }
    line + &format!(" · {}", done.short_id)
}

fn tokens(usage: &UsageShown) -> String {
    if !usage.reported {
        return "tokens not reported".to_owned();
    }
    let input = usage.input_uncached + usage.cache_read + usage.cache_write;
    let cached =
        if usage.cache_read > 0 { format!(" ({} from the cache)", usage.cache_read) } else { String::new() };
    format!("{input} tokens in{cached}, {} out", usage.output)
}

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
    if found.elsewhere > 0 {
        let one = found.elsewhere == 1;
        let sessions = if one { "1 is".to_owned() } else { format!("{} are", found.elsewhere) };
        return format!(
            "no session in this workspace; {sessions} in others: `drawloom sessions list --all` lists them\n"
        );
    }
    let mut rows = Vec::new();
    for session in &found.sessions {
        rows.push(row(session));
        rows.extend(
            session.forks.iter().map(|fork| vec![to.line(&format!("{}:{fork}", session.name)).into_owned()]),
        );
    }
    columns(&rows)
}

pub(super) fn session(found: &SessionShown, to: OutputStyle) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<10} {value}");
    };
    line("session", to.line(&found.name).into_owned());
    line("type", word(&found.kind));
    line("workspace", to.line(&found.workspace).into_owned());
    line("title", to.line(&found.title).into_owned());
    line("zone", found.zone.map_or_else(|| "no request yet".to_owned(), |zone| zone.to_string()));
    line("updated", moment(found.updated.0));
    for tree in &found.trees {
        line("tree", tree.to_string());
    }
    out
}

pub(super) fn exchanges(found: &Exchanges, to: OutputStyle) -> String {
    let mut out = String::new();
    for exchange in &found.exchanges {
        let ExchangeShown { session, short_id, at, question, answer, .. } = exchange;
        let head = format!("{} · {} · {short_id}", moment(*at), to.line(session));
        let _ = writeln!(out, "{}", to.dim(&head));
        for line in to.text(question).lines() {
            let _ = writeln!(out, "> {line}");
        }
        let answer = answer.as_deref().map_or_else(|| to.dim("(no answer)").into(), |answer| to.text(answer));
        let _ = writeln!(out, "\n{}\n", answer.trim_end());
    }
    out
}

/// Where the terminal has a clipboard, it is asked to keep the text (OSC 52); else the text itself.
pub(super) fn copied(done: &Copied, to: OutputStyle) -> RenderedOutcome {
    if !to.terminal {
        return RenderedOutcome::new(done.text.clone());
    }
    let encoded = data_encoding::BASE64.encode(done.text.as_bytes());
    let count = text::grapheme::count(&done.text);
    RenderedOutcome::new(format!("\x1b]52;c;{encoded}\x07"))
        .noting([format!("{count} characters went to the clipboard, if this terminal lets programs set it")])
}

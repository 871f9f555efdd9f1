//! What slash commands show.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ::context::segment::SegmentOutcome;
use ::context::{Plan, WrapDecision};
use commands::results::context::ContextShown;
use commands::results::slash::{
    ContextForm, ContextStatus, Help, HelpLine, ModelStatus, PlanShown, Reloaded, SamplingShown,
    SessionMoved, SessionStatus, SystemShown, ThinkShown, TipMoved, ToolsShown, ZoneShown,
};
use commands::slash::Section;
use model::{ModelPlace, Thinking};
use unicode_width::UnicodeWidthStr as _;

use super::columns::{filled, word, wrapped};
use super::table::{columns, field};
use super::{OutputStyle, RenderedOutcome, context};
use crate::json;

/// Cells of the longest bar.
const BAR: u64 = 40;

/// Columns from which what a command does stands beside it.
const BESIDE: usize = 60;

/// Columns of a command and its arguments beside which there is room for what it does.
const USAGE: usize = 28;

/// The commands. At a terminal all of them are shown by their names, so that they fit the screen; in a pipe with what
/// they do.
pub(super) fn help(found: &Help, to: OutputStyle) -> String {
    let wide = to.columns;
    let mut out = String::new();
    let of_section = |section: Section| found.commands.iter().filter(move |line| line.section == section);
    for section in Section::ALL {
        if of_section(section).next().is_none() {
            continue;
        }
        if found.commands.len() > 1 {
            let more = if found.is_all { format!(" (/help {})", section.word()) } else { String::new() };
            let _ = writeln!(out, "{}{}", to.paint("1", section.title()), to.dim(&more));
        }
        let usages: Vec<String> = of_section(section).map(usage).collect();
        match wide {
            Some(columns) if found.is_all => {
                let pieces = usages.iter().flat_map(|usage| match 2 + usage.width() > columns {
                    true => parts(usage),
                    false => vec![usage.as_str()],
                });
                out += &filled(pieces, "  ", 2, columns);
            }
            Some(columns) => out += &explained(of_section(section), columns, to),
            None => {
                let rows = of_section(section).map(|line| vec![usage(line), to.dim(&line.help)]);
                out += &columns(&rows.collect::<Vec<_>>(), &[], to);
            }
        }
    }
    if found.commands.is_empty() {
        let text = "no commands of your own: docs/commands.md says how to write one";
        out += &wrapped(text, "", to);
    }
    if found.is_all {
        let text = "/help SECTION says what its commands do, /help COMMAND what one does; // begins a text with a \
                    slash; a backslash at the end of a line continues it in the next line";
        let columns = wide.unwrap_or(usize::MAX);
        filled(text.split(' '), " ", 0, columns).lines().for_each(|line| out += &(to.dim(line) + "\n"));
    }
    out
}

/// A command that is wider than a line, broken before its arguments.
fn parts(usage: &str) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), usage);
    while let Some(at) = rest.find(" [") {
        parts.push(&rest[..at]);
        rest = &rest[at + 1..];
    }
    parts.push(rest);
    parts
}

fn usage(line: &HelpLine) -> String {
    format!("/{} {}", line.name, line.arguments).trim_end().to_owned()
}

/// Commands with what they do, on as many lines as it takes.
fn explained<'a>(lines: impl Iterator<Item = &'a HelpLine>, columns: usize, to: OutputStyle) -> String {
    let lines: Vec<&HelpLine> = lines.collect();
    let widths = lines.iter().map(|line| usage(line).len());
    let widest = widths.filter(|width| *width <= USAGE).max().unwrap_or(0);
    let mut out = String::new();
    for line in lines {
        let name = usage(line);
        let (is_wide, is_beside) = (columns >= BESIDE, columns >= BESIDE && name.len() <= widest);
        let indent = if is_wide { widest + 4 } else { 6 };
        let text = filled(line.help.split(' '), " ", indent, columns);
        let mut rest = text.lines();
        if is_beside {
            let first = rest.next().unwrap_or_default().trim_start();
            let _ = writeln!(out, "  {name:<widest$}  {}", to.dim(first));
        } else {
            let fits = 2 + name.width() <= columns;
            let name_parts = if fits { vec![name.as_str()] } else { parts(&name) };
            out += &filled(name_parts, " ", 2, columns);
        }
        rest.for_each(|line| out += &(to.dim(line) + "\n"));
    }
    out
}

pub(super) fn reloaded(done: &Reloaded, to: OutputStyle) -> String {
    let files = match done.changed.as_slice() {
        [] => "no file has changed".to_owned(),
        changed => format!("read again: {}", to.line(&changed.join(", "))),
    };
    let cost = match (done.tokens, done.reusable, done.reusable_anew) {
        (Some(tokens), Some(reusable), Some(anew)) => format!(
            "of about {tokens} tokens of the next request a cache can reuse about {anew}; without it {reusable}"
        ),
        _ => "nothing was sent yet".to_owned(),
    };
    wrapped(&format!("{files}; {cost}"), "", to)
}

pub(super) fn status(found: &SessionStatus, to: OutputStyle) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        out += &field(name, 10, value, to);
    };
    let forgotten = if found.temporary { ", forgotten when it is closed" } else { "" };
    line("session", &format!("{}{forgotten}", to.line(&found.session)));
    match (&found.tree_short, &found.tip) {
        (Some(tree), Some(tip)) => {
            line("tree", format!("{tree}  {}", to.line(&found.title)).trim_end());
            line("at", tip);
        }
        _ => line("tree", "no message yet"),
    }
    let model = match (&found.model, &found.named) {
        (Some(model), named) => model_line(model, named.as_deref(), to),
        (None, Some(named)) => to.line(named).into_owned(),
        (None, None) => "none is chosen".to_owned(),
    };
    line("model", &model);
    line("thinking", thinking(found.thinking));
    if found.plan {
        line("plan mode", "on: tools change nothing");
    }
    let of = found.model.as_ref().map_or_else(String::new, |model| format!(" of {}", model.window));
    let window = match (found.used, found.share, found.zone, &found.model) {
        (Some(used), Some(share), Some(zone), _) => {
            let how = if found.measured == Some(false) { ", estimated" } else { "" };
            format!("{used}{of} tokens, {:.0} %: {zone}{how}", share * 100.0)
        }
        (.., Some(model)) => format!("{} tokens, no request yet", model.window),
        (.., None) => "no request yet".to_owned(),
    };
    line("window", &window);
    if let Some(cost) = &found.cost {
        line("cost", &cost.to_string());
    }
    if !found.tainting.is_empty() {
        line("tainted by", &to.paint("31", &format!("{}: text from outside", found.tainting.join(", "))));
    }
    let folder = to.line(&found.workspace);
    let workspace = match (found.workspace.is_empty(), found.exists, found.loaded) {
        (true, ..) => "none".to_owned(),
        (_, false, _) => format!("{folder} (not made yet; nothing to load)"),
        (.., true) => format!("{folder} (loaded)"),
        (.., false) => format!("{folder} (not trusted: nothing is loaded)"),
    };
    line("workspace", &workspace);
    for folder in &found.folders {
        line("beside it", &to.line(&commands::further_roots::shown(folder)));
    }
    out
}

pub(super) fn model(found: &ModelStatus, to: OutputStyle) -> RenderedOutcome {
    RenderedOutcome::new(wrapped(&model_line(found, None, to), "", to)).noting(found.notice.clone())
}

pub(super) fn think(found: &ThinkShown, to: OutputStyle) -> RenderedOutcome {
    let until = if found.set { ", in this session (model.think sets it for all)" } else { "" };
    RenderedOutcome::sentence(&format!("thinking: {}{until}", thinking(found.thinking)), to)
        .noting(found.notice.clone())
}

pub(super) fn plan(found: &PlanShown, to: OutputStyle) -> String {
    let (word, what) = match found.plan {
        true => ("on", "tools change nothing"),
        false => ("off", "tools may change things, as policy says"),
    };
    let until = if found.set { ", in this session" } else { "" };
    let mut shown = wrapped(&format!("plan mode: {word}{until} ({what})"), "", to);
    if !found.steps.is_empty() {
        let steps = Plan { steps: found.steps.clone() }.to_string();
        shown += &format!("the plan:\n{}", wrapped(&to.text(&steps), "  ", to));
    }
    shown
}

pub(super) fn tools(found: &ToolsShown, to: OutputStyle) -> String {
    let mut shown = String::new();
    for tool in &found.tools {
        let effects = tool.effects.iter().map(|effect| effect.name()).collect::<Vec<_>>().join(", ");
        let decided = format!("{effects} · {}", word(&tool.policy));
        let _ = writeln!(shown, "{}  {}", to.text(&tool.name), to.dim(&decided));
        shown += &wrapped(&to.text(&tool.description), "    ", to);
    }
    let set = format!("`drawloom config set agents.{}.tools '[\"read\", \"grep\"]'`", to.text(&found.agent));
    if let Some(model) = &found.untaken {
        shown += &wrapped(&format!("no tools are sent: {} takes none", to.text(model)), "", to);
    } else if let Some(window) = found.small_window {
        let why = format!("a window of {window} tokens is too small for tools that are not named");
        shown += &wrapped(&format!("not all tools are sent: {why}: {set} names some"), "", to);
    } else if found.tools.is_empty() {
        let why = match &found.advice {
            _ if found.has_folder => format!(": {set} names some"),
            Some(advice) => format!(" without a workspace: {}", to.text(advice)),
            None => " without a workspace: `--workspace DIR` names one".to_owned(),
        };
        shown += &wrapped(&format!("the model may call no tools{why}"), "", to);
    }
    if !found.others.is_empty() {
        shown += &wrapped(&to.dim(&format!("not given to it: {}", found.others.join(", "))), "", to);
    }
    shown
}

pub(super) fn system(found: &SystemShown, to: OutputStyle) -> String {
    let system = match &found.system {
        Some(text) => to.text(text).into_owned(),
        None => "the built-in one".to_owned(),
    };
    let until = if found.set { " (in this session, from the next request on)" } else { "" };
    let line = format!("system prompt{until}: {system}\n");
    match to.columns {
        // The text is not ours to break.
        Some(columns) if line.lines().next().is_some_and(|line| line.width() > columns) => {
            wrapped(&format!("system prompt{until}:"), "", to) + &system + "\n"
        }
        _ => line,
    }
}

pub(super) fn sampling(found: &SamplingShown, to: OutputStyle) -> String {
    let said = |value: Option<String>| value.unwrap_or_else(|| "as configured".to_owned());
    let until = if found.set { ", in this session" } else { "" };
    let preset = found.preset.as_deref().map_or_else(|| "none".into(), |preset| to.line(preset));
    let pieces = [
        format!("temperature: {}", said(found.temperature.map(|value| value.to_string()))),
        format!("max_tokens: {}", said(found.max_tokens.map(|value| value.to_string()))),
        format!("seed: {}", said(found.seed.map(|value| value.to_string()))),
        format!("preset: {preset}{until}"),
    ];
    filled(pieces.iter().map(String::as_str), " · ", 0, to.columns.unwrap_or(usize::MAX))
}

pub(super) fn zone(found: &ZoneShown, to: OutputStyle) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        out += &field(name, 10, value, to);
    };
    let percent = |tokens: u64| tokens as f64 / found.window.max(1) as f64 * 100.0;
    line("zone", &format!("{}, {:.0} % of the window", found.zone, found.share * 100.0));
    let how = if found.measured { "reported" } else { "estimated" };
    line("window", &format!("{} of {} tokens, {how}", found.used, found.window));
    line(
        "fixed",
        &format!(
            "≈ {} tokens, {:.0} %: sent at the start of every conversation",
            found.fresh,
            percent(found.fresh)
        ),
    );
    for source in &found.sources {
        line("largest", &format!("{}, ≈ {} tokens", to.line(&source.name), source.tokens));
    }
    match found.wrap {
        WrapDecision::No => {}
        WrapDecision::FixedLoad => {
            line("advice", "a new conversation would hardly be less full: the fixed part fills it");
        }
        WrapDecision::Ask | WrapDecision::Do => {
            line("advice", "/new starts a new conversation; this one is kept as a tree");
        }
    }
    out
}

fn thinking(thinking: Option<Thinking>) -> &'static str {
    thinking.map_or("left to the model", Thinking::as_str)
}

/// A model as it is typed: a script, which is stored by the name of its file, by its path where that is known.
fn typed(model: &str, named: Option<&str>) -> String {
    let Some(file) = model.strip_prefix("script/") else { return model.to_owned() };
    let is_it = |named: &&str| {
        let path = named.strip_prefix("script:").map(std::path::Path::new);
        path.and_then(std::path::Path::file_name).is_some_and(|name| name == file)
    };
    named.filter(is_it).map_or_else(|| format!("script:{file}"), str::to_owned)
}

fn model_line(found: &ModelStatus, named: Option<&str>, to: OutputStyle) -> String {
    let place = match found.place {
        ModelPlace::Local => "local",
        ModelPlace::Remote => "remote",
    };
    format!("{} · {place}", to.line(&typed(&found.model, named)))
}

/// Characters of a text that says where one is.
const GLIMPSE: usize = 70;

pub(super) fn stood(done: &TipMoved, to: OutputStyle) -> RenderedOutcome {
    let first = done.text.lines().next().unwrap_or_default();
    let glimpse: String = first.chars().take(GLIMPSE).collect();
    let more = if glimpse.len() < done.text.trim_end().len() { " …" } else { "" };
    let place = if done.text.is_empty() {
        "at the beginning\n".to_owned()
    } else {
        wrapped(&format!("at {}: {}{more}", done.tip, to.line(&glimpse)), "", to)
    };
    let mut shown = super::tree::stepped(&done.stepped, to);
    shown.body.extend_from_slice(place.as_bytes());
    shown
}

pub(super) fn went(found: &SessionMoved, to: OutputStyle) -> String {
    let session = to.line(&found.session);
    match found.tree {
        Some(_) => format!("{session}\n"),
        None => wrapped(&format!("new conversation in {session}; it starts with your next message"), "", to),
    }
}

pub(super) fn standing(found: &ContextStatus, to: OutputStyle) -> String {
    if found.form == ContextForm::Json {
        return json::line(found).ok().and_then(|line| String::from_utf8(line).ok()).unwrap_or_default();
    }
    let mut out = String::new();
    for (name, request) in [("sent last, with the answer", &found.last), ("sent next", &found.next)] {
        let Some(request) = request else {
            let _ = writeln!(out, "{}", to.dim(&format!("{name}: nothing yet")));
            continue;
        };
        let _ = writeln!(out, "{}", to.dim(&format!("{name}:")));
        match found.form {
            ContextForm::Detail => out += &context::show(request, to),
            ContextForm::Map => out += &kinds(request, to, true),
            ContextForm::Summary | ContextForm::Json => out += &kinds(request, to, false),
        }
    }
    out
}

/// Tokens by kind of segment.
pub(super) fn kinds(request: &ContextShown, to: OutputStyle, bars: bool) -> String {
    let share = request.used as f64 / request.window.max(1) as f64 * 100.0;
    let about = context::about(request.estimated);
    let zone = request.zone.as_deref().map_or_else(String::new, |zone| format!(": {zone}"));
    let said = format!("{about}{} of {} tokens, {share:.0} %{zone}", request.used, request.window);
    let mut out = wrapped(&said, "", to);
    out += &context::place(request, to);
    // A map keeps the names in one order; the order of sending is in the detail.
    let mut by_kind: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for shown in request.segments.iter().filter(|shown| !is_left_out(&shown.segment.decision)) {
        let sum = by_kind.entry(context::kind(shown.segment.kind)).or_default();
        *sum = (sum.0 + 1, sum.1 + shown.segment.tokens);
    }
    let most = by_kind.values().map(|(_, tokens)| *tokens).max().unwrap_or(0).max(1);
    // A bar has the room that names and numbers leave.
    let names = by_kind.keys().map(|kind| kind.width()).max().unwrap_or(0);
    let beside = names + format!("{about}{most} tokens").width() + 4;
    let bar = to.columns.map_or(BAR, |columns| (columns.saturating_sub(beside) as u64).clamp(1, BAR));
    let row = |(kind, (count, tokens)): (&String, &(u64, u64))| {
        let mut cells = vec![kind.clone(), format!("{about}{tokens} tokens")];
        if bars {
            let cells_wide = (tokens * bar).div_ceil(most) as usize;
            cells.push(to.paint("34", &"█".repeat(cells_wide)));
        } else {
            cells.push(super::columns::count(*count, "segment", "segments"));
        }
        cells
    };
    out + &columns(&by_kind.iter().map(row).collect::<Vec<_>>(), &[], to)
}

fn is_left_out(decision: &SegmentOutcome) -> bool {
    matches!(decision, SegmentOutcome::LeftOut { .. })
}

#[cfg(test)]
mod tests {
    use super::typed;

    #[test]
    fn a_script_is_shown_as_it_is_typed() {
        assert_eq!(typed("script/b.jsonl", Some("script:a/b.jsonl")), "script:a/b.jsonl");
        assert_eq!(typed("script/b.jsonl", Some("script:a/c.jsonl")), "script:b.jsonl");
        assert_eq!(typed("script/echo", None), "script:echo");
        assert_eq!(typed("openai/gpt-5.1", Some("script:echo")), "openai/gpt-5.1");
    }
}

//! Everything about the home as a whole.

use std::fmt::Write as _;

use commands::results::maintenance::{
    BenchRows, Checked, Exported, Health, Imported, Paths, Removed, Restored, Sandboxed, Setting,
    SettingsShown, Skipped, State,
};

use super::columns::{count, wrapped};
use super::table::{columns, explained, field};
use super::tree::with_short_ids;
use super::{LISTED, OutputStyle, RenderedOutcome};

/// What an export contains was said before it was written; only the export itself is left to print.
pub(super) fn exported(done: &Exported, to: OutputStyle) -> RenderedOutcome {
    let body = match (&done.body, &done.file) {
        // A file keeps its bytes; a terminal would obey them.
        (Some(body), _) if to.terminal => to.text(&String::from_utf8_lossy(body)).into_owned().into_bytes(),
        (Some(body), _) => body.clone(),
        (None, Some(file)) => format!("{}\n", to.line(file)).into_bytes(),
        (None, None) => Vec::new(),
    };
    RenderedOutcome { body, ..RenderedOutcome::default() }
}

pub(super) fn imported(done: &Imported, to: OutputStyle) -> RenderedOutcome {
    let would = if done.dry_run { "would import " } else { "imported " };
    let mut parts = vec![count(done.trees, "tree", "trees")];
    if done.sessions > 0 {
        parts.push(count(done.sessions, "session", "sessions"));
    }
    parts.push(count(done.nodes, "new node", "new nodes"));
    let mut out = format!("{would}{}", parts.join(", "));
    if let Some(tree) = &done.named_tree {
        let _ = write!(out, ": {}", to.line(tree));
    }
    let line = |skipped: &Skipped| {
        let line = format!("skipped {}: {}", to.line(&skipped.at), to.line(&skipped.why));
        with_short_ids(&line)
    };
    let more = done.skipped.len().saturating_sub(LISTED);
    let more = (more > 0).then(|| format!("skipped {more} more (--json lists them)"));
    let partial = done.left_out.map(|lines| match lines {
        0 => "the file was cut or changed: a part of it may be missing in the copy".to_owned(),
        _ => format!("the copy is only a part; left out: {} of the file", count(lines, "line", "lines")),
    });
    RenderedOutcome::sentence(&out, to)
        .noting(done.skipped.iter().take(LISTED).map(line).chain(more).chain(partial))
}

pub(super) fn removed(done: &Removed, to: OutputStyle) -> RenderedOutcome {
    let width = done.removed.iter().map(|place| place.place.len()).max().unwrap_or(0);
    let mut out = String::new();
    for place in &done.removed {
        let _ = writeln!(out, "{:<width$}  {}", to.line(&place.place), place.count);
        place.listed.iter().for_each(|line| out += &wrapped(&to.line(line), "  ", to));
    }
    let mut notices: Vec<_> =
        done.unreachable.iter().map(|place| format!("not reached: {}", to.line(place))).collect();
    notices.extend(done.dry_run.then(|| "nothing was removed yet".to_owned()));
    RenderedOutcome::new(out).noting(notices)
}

pub(super) fn restored(done: &Restored, to: OutputStyle) -> String {
    let state = if done.verified { to.paint("32", "verified") } else { to.paint("31", "not verified") };
    let mut out = format!("{}  {}, {state}\n", to.line(&done.home), count(done.trees, "tree", "trees"));
    out.extend(done.problems.iter().map(|problem| format!("  {}\n", to.line(problem))));
    out
}

pub(super) fn checked(found: &Checked, to: OutputStyle) -> String {
    let repaired = match found.repaired {
        Some(1) => "1 tree was recomputed\n".to_owned(),
        Some(trees) => format!("{trees} trees were recomputed\n"),
        None => String::new(),
    };
    if found.ok {
        return format!("{repaired}{}\n", to.paint("32", "ok"));
    }
    let problems = found.problems.iter().map(|problem| format!("{}\n", to.line(problem)));
    std::iter::once(repaired).chain(problems).collect()
}

fn value(value: &serde_json::Value, to: OutputStyle) -> String {
    match value {
        serde_json::Value::Null => "(not set)".to_owned(),
        serde_json::Value::String(text) => to.line(text).into_owned(),
        other => to.line(&other.to_string()).into_owned(),
    }
}

pub(super) fn setting(found: &Setting, to: OutputStyle) -> String {
    if let Some(said) = &found.said {
        return wrapped(said, "", to);
    }
    format!("{}  {}\n", value(&found.value, to), to.dim(&format!("({})", found.source)))
}

pub(super) fn settings(found: &SettingsShown, to: OutputStyle) -> String {
    let row = |setting: &commands::results::maintenance::SettingShown| {
        vec![setting.key.clone(), value(&setting.value, to), setting.source.clone(), to.dim(&setting.doc)]
    };
    explained(&found.settings.iter().map(row).collect::<Vec<_>>(), to)
}

pub(super) fn paths(found: &Paths, to: OutputStyle) -> String {
    let rows = [
        ("home", &found.home),
        ("config", &found.config),
        ("workspace", &found.workspace),
        ("because", &found.why),
    ];
    rows.iter().map(|(name, value)| field(name, 10, &to.line(value), to)).collect()
}

pub(super) fn health(found: &Health, to: OutputStyle) -> String {
    let rows = found.checks.iter().map(|check| {
        let state = match check.state {
            State::Ok => to.paint("32", "ok"),
            State::Warn => to.paint("33", "warn"),
            State::Fail => to.paint("31", "FAIL"),
        };
        let fix = if check.fix.is_empty() { String::new() } else { format!(": {}", to.line(&check.fix)) };
        vec![state, check.name.clone(), format!("{}{fix}", to.line(&check.why))]
    });
    explained(&rows.collect::<Vec<_>>(), to)
}

/// What the command printed was shown as it came; these are the notices.
pub(super) fn sandboxed(done: &Sandboxed, to: OutputStyle) -> Vec<String> {
    let protected = done.protected.iter().map(|change| match &change.moved_to {
        Some(moved) => format!("moved {}, which is protected, to {}", to.line(&change.path), to.line(moved)),
        None => format!("gave {}, which is protected, back as it was", to.line(&change.path)),
    });
    protected.chain(done.notices.iter().map(|notice| to.line(notice).into_owned())).collect()
}

pub(super) fn rows(found: &BenchRows, to: OutputStyle) -> String {
    let rows = found.rows.iter().map(|row| {
        let budget = row.budget.map_or_else(String::new, |budget| {
            let (least, missed, how) = match row.is_rate() {
                true => ("at least ", row.value < budget, ", under"),
                false => ("", row.value > budget, ", over"),
            };
            let line = format!("of {least}{budget} {}", row.unit);
            if missed { to.paint("31", &(line + how)) } else { to.dim(&line) }
        });
        vec![row.name.clone(), format!("{:.3}", row.value), row.unit.clone(), budget]
    });
    columns(&rows.collect::<Vec<_>>(), &[], to)
}

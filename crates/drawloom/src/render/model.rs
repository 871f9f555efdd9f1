//! Models, and what `init` found.

use std::fmt::Write as _;
use std::path::Path;

use commands::results::model::{ModelShown, ModelsShown, SetupReport, StepState, Tested};
use model::ModelPlace;

use super::OutputStyle;
use super::columns::wrapped;
use super::table::{explained, field};

fn place(place: ModelPlace, embedded: bool) -> &'static str {
    match place {
        ModelPlace::Local if embedded => "in this program",
        ModelPlace::Local => "on your machine",
        ModelPlace::Remote => "remote",
    }
}

pub(super) fn models(found: &ModelsShown, to: OutputStyle) -> String {
    if let (Some(file), [chosen]) = (&found.kept_in, &found.models[..]) {
        return wrapped(&now_default(chosen, file, to), "", to);
    }
    let row = |shown: &ModelShown| {
        let mut about = shown.from.clone();
        if shown.installed == Some(false) {
            about += ", not downloaded";
        }
        if shown.default {
            about += ", the default";
        }
        vec![
            to.line(&shown.name).into_owned(),
            place(shown.place, shown.embedded).to_owned(),
            window(shown),
            shown.price.clone().unwrap_or_else(|| "price not known".to_owned()),
            shown.abilities.join(" "),
            to.line(&about).into_owned(),
            shown.about.clone().unwrap_or_default(),
        ]
    };
    let rows: Vec<Vec<String>> = found.models.iter().map(row).collect();
    explained(&rows, to)
}

fn window(shown: &ModelShown) -> String {
    match shown.window {
        Some(window) if shown.window_assumed => format!("{window} tokens assumed"),
        Some(window) => format!("{window} tokens"),
        None => String::new(),
    }
}

/// That a model is asked from now on where none is named.
fn now_default(chosen: &ModelShown, file: &Path, to: OutputStyle) -> String {
    let window = chosen.window.map(|_| format!(", {}", window(chosen))).unwrap_or_default();
    let name = to.line(&chosen.name);
    let about = chosen.about.as_ref().filter(|_| !chosen.embedded);
    let about = about.map(|about| format!(". {}", to.line(about))).unwrap_or_default();
    format!(
        "{name} ({}{window}) is asked from now on where no model is named, kept in {}{about}",
        place(chosen.place, chosen.embedded),
        to.line(&file.display().to_string()),
    )
}

pub(super) fn tested(found: &Tested, to: OutputStyle) -> String {
    let mut out = String::new();
    let head = format!("{}  {}", to.line(&found.name), place(found.place, found.embedded));
    out += &wrapped(&head, "", to);
    out += &field("answer", 11, &to.line(&found.text), to);
    let first = found.first_text_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"));
    out += &field("first text", 11, &first, to);
    out += &field("total", 11, &format!("{} ms", found.total_ms), to);
    let rate = match (found.output, found.tokens_per_second) {
        (Some(tokens), Some(rate)) => format!("{tokens} tokens, {rate} a second"),
        (Some(tokens), None) => format!("{tokens} tokens"),
        (None, _) => "not reported".to_owned(),
    };
    out += &field("usage", 11, &rate, to);
    out
}

pub(super) fn setup(found: &SetupReport, to: OutputStyle) -> String {
    let mut out = String::new();
    for step in &found.steps {
        let mark = match step.state {
            StepState::Done => "ok",
            StepState::Open => "to do",
            StepState::None => "-",
        };
        out += &field(&format!("{:<10} {mark}", step.name), 17, &to.line(&step.what), to);
        out += &wrapped(&to.line(&step.next), &" ".repeat(18), to);
    }
    let model = found.model.as_deref().unwrap_or("none yet");
    let _ = writeln!(out, "model: {}\nworkspace: {}", to.line(model), to.line(&found.workspace));
    out
}

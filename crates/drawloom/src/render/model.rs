//! Models, and what `init` found.

use std::fmt::Write as _;

use commands::results::model::{ModelShown, ModelsShown, SetupReport, StepState, Tested};
use model::ModelPlace;

use super::OutputStyle;
use super::columns::columns;

fn place(place: ModelPlace, embedded: bool) -> &'static str {
    match place {
        ModelPlace::Local if embedded => "in this program",
        ModelPlace::Local => "on your machine",
        ModelPlace::Remote => "remote",
    }
}

pub(super) fn models(found: &ModelsShown, to: OutputStyle) -> String {
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
            match shown.window {
                Some(window) => format!("{window} tokens"),
                None if shown.window_assumed => "window not known".to_owned(),
                None => String::new(),
            },
            shown.price.clone().unwrap_or_else(|| "price not known".to_owned()),
            shown.abilities.join(" "),
            to.line(&about).into_owned(),
            shown.about.clone().unwrap_or_default(),
        ]
    };
    let rows: Vec<Vec<String>> = found.models.iter().map(row).collect();
    columns(&rows)
}

pub(super) fn tested(found: &Tested, to: OutputStyle) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}  {}", to.line(&found.name), place(found.place, found.embedded));
    let _ = writeln!(out, "answer      {}", to.line(&found.text));
    let first = found.first_text_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"));
    let _ = writeln!(out, "first text  {first}");
    let _ = writeln!(out, "total       {} ms", found.total_ms);
    let rate = match (found.output, found.tokens_per_second) {
        (Some(tokens), Some(rate)) => format!("{tokens} tokens, {rate} a second"),
        (Some(tokens), None) => format!("{tokens} tokens"),
        (None, _) => "not reported".to_owned(),
    };
    let _ = writeln!(out, "usage       {rate}");
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
        let _ = writeln!(out, "{:<10} {mark:<6} {}", step.name, to.line(&step.what));
        if !step.next.is_empty() {
            let _ = writeln!(out, "{:<18}{}", "", to.line(&step.next));
        }
    }
    let model = found.model.as_deref().unwrap_or("none yet");
    let _ = writeln!(out, "model: {}\nworkspace: {}", to.line(model), to.line(&found.workspace));
    out
}

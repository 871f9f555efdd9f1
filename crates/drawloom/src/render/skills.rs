//! Skills: which are offered.

use std::fmt::Write as _;

use commands::results::skills::{
    NO_ROOM, SkillRemoved, SkillShown, SkillTextShown, SkillsExported, SkillsShown,
};

use super::columns::{count, wrapped};
use super::{OutputStyle, RenderedOutcome, table};

pub(super) fn list(found: &SkillsShown, to: OutputStyle) -> RenderedOutcome {
    let row = |skill: &SkillShown| -> Vec<String> {
        let cells = [&skill.name, &skill.path, &state(skill)];
        cells.map(|cell| to.line(cell).into_owned()).into()
    };
    let rows: Vec<Vec<String>> = found.skills.iter().map(row).collect();
    let refused = found.refused.iter().map(|place| {
        to.line(&format!("{}: not looked at: {}", place.path.display(), place.why)).into_owned()
    });
    let shortened = found.shortened_to.map(|most| match most {
        _ if found.left_out => format!("{NO_ROOM}: `drawloom skills disable NAME` makes some"),
        0 => "there is room for the names alone: descriptions are not sent".to_owned(),
        most => format!(
            "descriptions of more than {most} characters are shortened to as many, and further in small windows: `drawloom \
             context show --next` says to how many"
        ),
    });
    let changed = found.skills.iter().filter_map(|skill| skill.notice.clone());
    RenderedOutcome::new(table::explained(&rows, to))
        .noting(refused.chain(changed).chain(shortened))
        .or_saying(to, "no skills: docs/skills.md says how to write one")
}

fn state(skill: &SkillShown) -> String {
    if let Some(why) = &skill.why {
        return format!("not offered: {why}");
    }
    if let Some(path) = &skill.shadowed_by {
        return format!("not offered: {path} goes before it");
    }
    match (&skill.missing[..], skill.for_model) {
        ([], true) if skill.stands_in_for.is_some() => "offered as you accepted it".to_owned(),
        ([], true) => "offered".to_owned(),
        ([], false) => "offered to you alone".to_owned(),
        (missing, _) => format!("not offered: missing {}", missing.join(", ")),
    }
}

pub(super) fn show(found: &SkillTextShown, to: OutputStyle) -> String {
    let SkillTextShown { skill, text, difference } = found;
    let mut out = String::new();
    for line in [format!("{}  {}", skill.name, state(skill)), skill.path.clone(), skill.description.clone()] {
        out += &wrapped(&to.line(&line), "", to);
    }
    let _ = write!(out, "\n{}", to.text(text));
    if !out.ends_with('\n') {
        out.push('\n');
    }
    if let Some(difference) = difference {
        let told = "How it differs by now, which `drawloom workspace trust` accepts:";
        let _ = write!(out, "\n{}\n{}", wrapped(told, "", to), to.text(difference));
    }
    out
}

pub(super) fn exported(done: &SkillsExported, to: OutputStyle) -> String {
    let SkillsExported { folder, written, unchanged } = done;
    let mut out = String::new();
    for path in written {
        out += &wrapped(&to.line(path), "", to);
    }
    let there = match unchanged.len() {
        0 => String::new(),
        number => format!(", {number} there already"),
    };
    let _ = writeln!(
        out,
        "{} written to {}{there}",
        count(written.len() as u64, "skill", "skills"),
        to.line(folder)
    );
    out
}

pub(super) fn removed(SkillRemoved { name, path }: &SkillRemoved, to: OutputStyle) -> String {
    wrapped(&to.line(&format!("removed {name}, which stood in {path}")), "", to)
}

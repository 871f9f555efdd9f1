//! Skills: those within reach of a call, and `skills` (spec: agent §6).

mod check;
mod within_reach;

use std::path::Path;

use loom::Trust;
use skills::{Catalog, RefusedPlace, Skill};

use crate::app::{App, naming::nearest};
use crate::args::skills::SkillsCommand;
use crate::custom_commands::Expansion;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::skills::{SkillShown, SkillTextShown, SkillsShown};
use crate::rights::Asker;

pub(crate) use within_reach::{SkillsOfSession, outside_texts, refusal, why_outside};

/// `skills`.
///
/// # Errors
/// There is no skill of that name; what is to be checked cannot be read.
pub(crate) async fn command(
    app: &App,
    asker: &Asker,
    command: SkillsCommand,
) -> Result<CommandOutcome, CommandError> {
    match command {
        SkillsCommand::Check(args) => check::check(app, &args),
        SkillsCommand::List => {
            let Catalog { skills, refused } = within_reach::as_judged_now(app, asker).await?;
            let index = within_reach::index(app, &skills);
            let shown = SkillsShown {
                shortened_to: index.and_then(|index| index.listed(|_| true).most_characters()),
                skills: skills.iter().map(|skill| shown(app, skill)).collect(),
                refused: refused.iter().map(|place| place_shown(app, place)).collect(),
            };
            Ok(CommandOutcome::Skills(shown))
        }
        SkillsCommand::Show(named) => {
            let found = within_reach::as_judged_now(app, asker).await?.skills;
            let skill = of_name(app, &found, &named.name)?;
            let text = text_of(app, skill);
            Ok(CommandOutcome::Skill(SkillTextShown { skill: shown(app, skill), text }))
        }
    }
}

/// What is said so that a model follows a skill for what this text says, which may be empty.
///
/// # Errors
/// There is no skill of that name, or it is not offered.
pub(crate) async fn expansion(
    app: &App,
    asker: &Asker,
    name: &str,
    text: &str,
) -> Result<Expansion, CommandError> {
    let found = within_reach::as_judged_now(app, asker).await?.skills;
    let skill = of_name(app, &found, name)?;
    let offered = shown(app, skill);
    if !offered.eligible {
        let missing =
            (!offered.missing.is_empty()).then(|| format!("missing {}", offered.missing.join(", ")));
        let why = offered.why.or(missing).unwrap_or_default();
        let message = format!("the skill {} is not offered: {why}", offered.name);
        return Err(CommandError::refused(
            "skill_not_offered",
            message,
            "nothing was sent; `drawloom skills list` says what each needs",
        ));
    }
    let folder = skill.path.parent().map(|folder| path_shown(app, folder)).unwrap_or_default();
    let body = text_of(app, skill);
    let said =
        format!("Follow the skill {} (its folder is {folder}):\n\n{}\n\n{text}", offered.name, body.trim());
    let trust = if skill.source.is_of_workspace() { Trust::Workspace } else { Trust::Owner };
    Ok(Expansion { text: said.trim_end().to_owned(), trust })
}

/// The skill of a name: the one that is offered, else the first.
fn of_name<'s>(app: &App, skills: &'s [Skill], name: &str) -> Result<&'s Skill, CommandError> {
    let of_name = || skills.iter().filter(|skill| skill.file.name.eq_ignore_ascii_case(name));
    of_name().find(|skill| skill.is_eligible()).or_else(|| of_name().next()).ok_or_else(|| {
        let near = nearest(skills.iter().map(|skill| masked(app, &skill.file.name)), name);
        let hint = near.map_or_else(
            || "`drawloom skills list` names all".to_owned(),
            |near| format!("did you mean {near}?"),
        );
        CommandError::not_found("skill", name, hint)
    })
}

/// The text of a skill behind its frontmatter.
fn text_of(app: &App, skill: &Skill) -> String {
    app.runtime.masker.mask_entering(&skill.file.body).text.into_owned()
}

fn shown(app: &App, skill: &Skill) -> SkillShown {
    let off = || skill.is_disabled.then(|| "skills.disabled names it".to_owned());
    SkillShown {
        name: masked(app, &skill.file.name),
        path: path_shown(app, &skill.path),
        source: skill.source,
        eligible: skill.is_eligible(),
        missing: skill.missing.iter().map(|missing| masked(app, missing)).collect(),
        shadowed_by: skill.shadowed_by.as_ref().map(|path| path_shown(app, path)),
        why: skill.refusal.as_ref().map(|why| masked(app, why)).or_else(off),
        for_model: skill.file.for_model,
        description: app.runtime.masker.mask_entering(&skill.file.description).text.into_owned(),
    }
}

/// A text of a skill without the values that are known.
fn masked(app: &App, text: &str) -> String {
    app.runtime.masker.mask(text).text.into_owned()
}

pub(crate) fn path_shown(app: &App, path: &Path) -> String {
    masked(app, &path.to_string_lossy())
}

fn place_shown(app: &App, RefusedPlace { path, why }: &RefusedPlace) -> RefusedPlace {
    RefusedPlace { path: path_shown(app, path).into(), why: masked(app, why) }
}

//! Skills: those within reach of a call, and `skills` (spec: agent §6).

mod check;
mod within_reach;

use std::path::Path;

use skills::{Catalog, RefusedPlace, Skill};

use crate::app::{App, naming::nearest};
use crate::args::skills::SkillsCommand;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::skills::{SkillShown, SkillTextShown, SkillsShown};
use crate::rights::Asker;

pub(crate) use within_reach::SkillsOfSession;

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
            let of_name = || found.iter().filter(|skill| skill.file.name.eq_ignore_ascii_case(&named.name));
            let Some(skill) = of_name().find(|skill| skill.is_eligible()).or_else(|| of_name().next()) else {
                let near = nearest(found.iter().map(|skill| masked(app, &skill.file.name)), &named.name);
                let hint = near.map_or_else(
                    || "`drawloom skills list` names all".to_owned(),
                    |near| format!("did you mean {near}?"),
                );
                return Err(CommandError::not_found("skill", &named.name, hint));
            };
            let text = app.runtime.masker.mask_entering(&skill.file.body).text.into_owned();
            Ok(CommandOutcome::Skill(SkillTextShown { skill: shown(app, skill), text }))
        }
    }
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

fn path_shown(app: &App, path: &Path) -> String {
    masked(app, &path.to_string_lossy())
}

fn place_shown(app: &App, RefusedPlace { path, why }: &RefusedPlace) -> RefusedPlace {
    RefusedPlace { path: path_shown(app, path).into(), why: masked(app, why) }
}

//! Skills: those within reach of a call, and `skills` (spec: agent §6).

mod accepted_texts;
mod adding;
mod built_in;
mod check;
mod exporting;
mod finder;
mod removing;
mod within_reach;

use std::path::Path;

use context::SkillListing;
use loom::plan::NewText;
use loom::{Role, Trust};
use skills::{Catalog, RefusedPlace, Skill};
use tools::SessionSkill;
use workspace::trust::Accepted;
use workspace::{ReadRules, RelativePath, Root};

use crate::app::{App, naming::nearest};
use crate::args::skills::SkillsCommand;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::skills::{SkillShown, SkillTextShown, SkillsShown};
use crate::rights::Asker;
use crate::workspaces::difference_of;

pub use accepted_texts::text_in_place;
pub use built_in::write_below as write_built_in;
pub(crate) use finder::SkillFinder;
pub use within_reach::{SkillSources, index, refusal};
pub(crate) use within_reach::{SkillsOfSession, names_within_reach, outside_texts, why_outside};
use within_reach::{as_judged_now, changed_since, judged_now};

/// Folder of skills below the home.
const FOLDER: &str = "skills";

/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";

/// Most skills that one message names.
const MOST_NAMED: usize = 8;

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
            let Catalog { skills, refused } = as_judged_now(app, asker).await?;
            let listing = index(&app.runtime.masker, &skills).map(|index| index.listed(|_| true));
            let shown = SkillsShown {
                shortened_to: listing.and_then(SkillListing::most_characters),
                left_out: listing == Some(SkillListing::Nothing),
                skills: skills.iter().map(|skill| shown(app, skill)).collect(),
                refused: refused.iter().map(|place| place_shown(app, place)).collect(),
            };
            Ok(CommandOutcome::Skills(shown))
        }
        SkillsCommand::Show(named) => {
            let (found, workspace) = judged_now(app, asker).await?;
            let skill = of_name(app, &found.skills, &named.name)?;
            let difference = workspace.and_then(|workspace| difference(app, &workspace, skill));
            Ok(CommandOutcome::Skill(SkillTextShown { difference, ..skill_shown(app, skill) }))
        }
        SkillsCommand::New(args) => adding::new(app, asker, &args).await,
        SkillsCommand::Add(args) => adding::add(app, asker, &args).await,
        SkillsCommand::Remove(args) => removing::remove(app, asker, &args).await,
        SkillsCommand::Export(args) => exporting::export(app, &args),
        SkillsCommand::Run(_) => {
            Err(CommandError::usage("a skill is followed in a conversation", "say `/skills run NAME`"))
        }
        SkillsCommand::Enable(_) | SkillsCommand::Disable(_) => {
            Err(CommandError::usage("this changes the configuration", "run it from the command line"))
        }
    }
}

/// A skill that the owner names.
pub(crate) struct NamedSkill {
    /// What is said so that a model follows it.
    pub(crate) text: NewText,
    /// The skill as it was read with that text.
    pub(crate) skill: SessionSkill,
}

/// The skill of this name, as it is named.
///
/// # Errors
/// There is no skill of that name, or it is not offered.
pub(crate) async fn named(app: &App, asker: &Asker, name: &str) -> Result<NamedSkill, CommandError> {
    let found = as_judged_now(app, asker).await?.skills;
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
    Ok(to_follow(app, asker, skill))
}

fn to_follow(app: &App, asker: &Asker, skill: &Skill) -> NamedSkill {
    let folder = folder_shown(app, skill);
    let (name, body) = (masked(app, &skill.file.name), text_of(app, skill));
    let trust = if skill.source.is_of_workspace() { Trust::Workspace } else { Trust::Owner };
    let text = SessionSkill::instruction(&name, &folder, &body);
    let text = asker.clone().trusted_at_most(trust).text(text, Some(Role::User));
    let text = NewText { author: SessionSkill::author(&name), ..text };
    NamedSkill { text, skill: SkillFinder::of(app).followed(skill) }
}

/// The folder of a skill, as a text that says to follow it names it.
fn folder_shown(app: &App, skill: &Skill) -> String {
    skill.path.parent().map(|folder| path_shown(app, folder)).unwrap_or_default()
}

/// Whether a message of the owner names a skill by `$NAME` that could go with it; of others that it names is said why they do
/// not.
pub(crate) async fn are_named_in(app: &App, text: &str) -> bool {
    let (offered, others) = of_names_in(app, text).await;
    if offered.is_empty() {
        tell_not_offered(app, &others);
    }
    !offered.is_empty()
}

/// The skills that a message of the owner names by `$NAME`.
pub(crate) async fn named_in(app: &App, asker: &Asker, text: &str) -> Vec<NamedSkill> {
    let (offered, others) = of_names_in(app, text).await;
    tell_not_offered(app, &others);
    if let Some(skill) = offered.get(MOST_NAMED) {
        let name = masked(app, &skill.file.name);
        app.frontend.note(&format!("a message names {MOST_NAMED} skills at most: ${name} is left out"));
    }
    let mut named = Vec::new();
    for skill in offered.iter().take(MOST_NAMED) {
        let name = masked(app, &skill.file.name);
        app.frontend.note(&format!("the text of the skill {name} goes with the message"));
        named.push(to_follow(app, asker, skill));
    }
    named
}

/// Says which skills a text names that replaces an earlier one, and that it does not follow: those whose texts do not stand
/// above it.
pub(crate) async fn tell_unfollowed_in(app: &App, text: &str, above: &[String]) {
    for skill in of_names_in(app, text).await.0 {
        let name = masked(app, &skill.file.name);
        if !above.contains(&name) {
            app.frontend.note(&format!(
                "the skill {name} is not followed: a text that takes the place of another one brings none; say it as a message \
                 of its own"
            ));
        }
    }
}

/// The skills that a message names by `$NAME`: those that are offered, and the names of others that there are.
async fn of_names_in(app: &App, text: &str) -> (Vec<Skill>, Vec<String>) {
    let (mut offered, mut others) = (Vec::new(), Vec::new());
    let names = names_in(text);
    if names.is_empty() {
        return (offered, others);
    }
    let found = within_reach::of_session(app).await.skills;
    for name in names {
        let mut of_name = found.iter().filter(|skill| skill.file.name == name);
        match of_name.clone().find(|skill| skill.is_eligible()) {
            Some(skill) => offered.push(skill.clone()),
            None => others.extend(of_name.next().map(|_| name.to_owned())),
        }
    }
    (offered, others)
}

fn tell_not_offered(app: &App, names: &[String]) {
    for name in names {
        let name = masked(app, name);
        app.frontend.note(&format!("the skill {name} is not offered: `drawloom skills list` says why"));
    }
}

/// Whether a character may stand in the name of a skill behind a `$`.
pub(crate) fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_')
}

/// Words behind a `$` that may be names of skills, each once.
fn names_in(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (at, _) in text.match_indices('$') {
        let is_in_word =
            text[..at].chars().next_back().is_some_and(|c| is_of_name(c) || matches!(c, '$' | '\\'));
        let rest = &text[at + 1..];
        let name = &rest[..rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())];
        let name = name.trim_end_matches('-');
        if !is_in_word && !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The skill of a name: the one that is offered, else the first.
fn of_name<'s>(app: &App, skills: &'s [Skill], name: &str) -> Result<&'s Skill, CommandError> {
    let of_name = || skills.iter().filter(|skill| skill.file.name.eq_ignore_ascii_case(name));
    let found = of_name().find(|skill| skill.is_eligible()).or_else(|| of_name().next());
    found.ok_or_else(|| unknown(skills.iter().map(|skill| masked(app, &skill.file.name)), name))
}

/// The error of a name that no skill has, among the names of those that there are.
pub fn unknown(names: impl Iterator<Item = String>, name: &str) -> CommandError {
    let hint = nearest(names, name).map_or_else(
        || "`drawloom skills list` names all".to_owned(),
        |near| format!("did you mean {near}?"),
    );
    CommandError::not_found("skill", name, hint)
}

fn skill_shown(app: &App, skill: &Skill) -> SkillTextShown {
    SkillTextShown { skill: shown(app, skill), text: text_of(app, skill), difference: None }
}

/// How the file that a skill stands in for differs from its accepted text.
fn difference(app: &App, (root, accepted): &(Root, Accepted), skill: &Skill) -> Option<String> {
    let path = skill.stands_in_for.as_ref()?;
    let now =
        root.read(&RelativePath::from_components(path).ok()?, &ReadRules::at_most(skills::MAX_BYTES)).ok()?;
    let before = accepted.before(path, now.digest())?;
    Some(difference_of(path, Some(before), &String::from_utf8_lossy(&now.bytes), &app.runtime.masker))
}

/// The text of a skill behind its frontmatter.
fn text_of(app: &App, skill: &Skill) -> String {
    app.runtime.masker.mask_entering(&skill.file.body).text.into_owned()
}

fn shown(app: &App, skill: &Skill) -> SkillShown {
    let off = || skill.is_disabled.then(|| "skills.disabled names it".to_owned());
    let stands_in_for = skill.stands_in_for.as_ref();
    SkillShown {
        name: masked(app, &skill.file.name),
        path: path_shown(app, &skill.path),
        source: skill.source,
        eligible: skill.is_eligible(),
        missing: skill.missing.iter().map(|missing| masked(app, missing)).collect(),
        stands_in_for: stands_in_for.map(|path| path_shown(app, path)),
        notice: stands_in_for.map(|path| changed_since(app, skill, path)),
        shadowed_by: skill.shadowed_by.as_ref().map(|path| path_shown(app, path)),
        why: off().or_else(|| skill.refusal.as_ref().map(|why| masked(app, why))),
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

#[cfg(test)]
mod tests {
    use super::names_in;

    #[test]
    fn a_name_of_a_skill_stands_behind_a_dollar_that_begins_a_word() {
        for (text, names) in [
            ("$pdf, then $release-notes.", &["pdf", "release-notes"][..]),
            ("($pdf) $pdf", &["pdf"]),
            ("costs 5$ or $ 5, a$pdf, $$pdf, \\$pdf", &[]),
            ("$ä_1- $", &["ä_1"]),
        ] {
            assert_eq!(names_in(text), names, "{text}");
        }
    }
}

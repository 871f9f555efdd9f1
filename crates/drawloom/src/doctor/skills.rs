//! Skills: how many are offered, and what keeps others from it (spec: agent §6).

use commands::CommandError;
use commands::results::maintenance::{Check, State};
use commands::results::skills::NO_ROOM;
use commands::skills::{SkillSources, index, refusal, text_in_place};
use context::SkillListing;
use skills::{AcceptedText, Skill, SkillText};
use text::terminal::one_line;
use workspace::Root;
use workspace::trust::Accepted;

use super::{check, ok};
use crate::config::Config;
use crate::paths::InvocationPaths;
use crate::secrets;

/// Names of skills that are told one by one.
const NAMED: usize = 5;

/// Looks at the skills of the owner, and at those of a workspace whose texts count; none where there are none.
///
/// # Errors
/// A key that is set cannot be masked.
pub(super) fn checks(
    paths: &InvocationPaths,
    config: &Config,
    workspace: Option<&(Root, Accepted)>,
) -> Result<Option<Check>, CommandError> {
    let (masker, _) = secrets::masker(config, &paths.home)?;
    let Ok(guard) = paths.guard() else { return Ok(None) };
    let settings = config.skills.of_commands();
    let accepted_text = |text: SkillText<'_>| {
        let (_, accepted) = workspace?;
        Some(AcceptedText { path: text.path.to_owned(), text: text_in_place(accepted, text)? })
    };
    let sources = SkillSources {
        home: &paths.home,
        settings: &settings,
        guard: &guard,
        masker: &masker,
        accepted: &accepted_text,
    };
    let found = match workspace {
        Some((root, accepted)) => {
            sources.read(Some(root), &|text| refusal(&paths.home, Some(root), accepted, text))
        }
        None => sources.read(None, &|_| None),
    };
    if found.skills.is_empty() && found.refused.is_empty() {
        return Ok(None);
    }
    let offered = found.skills.iter().filter(|skill| skill.is_eligible()).count();
    let listed = index(&masker, &found.skills).map(|index| index.listed(|_| true));
    let shortened = listed.and_then(SkillListing::most_characters);
    let is_left_out = |skill: &&Skill| skill.refusal.is_some() && !skill.is_disabled;
    let left_out: Vec<&Skill> = found.skills.iter().filter(is_left_out).collect();
    let changed: Vec<&Skill> = found.skills.iter().filter(|skill| skill.stands_in_for.is_some()).collect();
    let named = |skills: &[&Skill]| {
        let names = skills.iter().take(NAMED);
        let names = names.map(|skill| masker.mask(&one_line(&skill.file.name)).text.into_owned());
        let more = skills.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", names.collect::<Vec<_>>().join(", "))
    };
    let mut told = vec![format!("{offered} of {} offered", found.skills.len())];
    if !left_out.is_empty() {
        told.push(format!("left out: {}", named(&left_out)));
    }
    if !changed.is_empty() {
        told.push(format!(
            "changed since you accepted them, whose accepted texts are used: {}",
            named(&changed)
        ));
    }
    if !found.refused.is_empty() {
        told.push(format!("{} folders or links are not looked at", found.refused.len()));
    }
    match shortened {
        _ if listed == Some(SkillListing::Nothing) => told.push(NO_ROOM.to_owned()),
        Some(0) => told.push("there is room for their names alone".to_owned()),
        Some(most) => told.push(format!(
            "descriptions of more than {most} characters are shortened, and further in small windows"
        )),
        None => {}
    }
    let told = told.join("; ");
    if left_out.is_empty() && changed.is_empty() && found.refused.is_empty() && shortened.is_none() {
        return Ok(Some(ok("skills", told)));
    }
    let fix = "`drawloom skills list` says why of each; `drawloom skills disable NAME` switches one off";
    Ok(Some(check("skills", State::Warn, told, fix)))
}

//! The tool by which a model finds the skills that it may follow, also where its list of them is shortened or has no room (spec:
//! agent §3 *Awareness*, §6).

use context::skills::names_file;
use loom::{ToolStatus, Trust};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::session_skills::SessionSkill;
use crate::tool::{CallScope, Tool, ToolOutput, bounded, spec};

/// Name of the tool.
pub const LIST_SKILLS: &str = "list_skills";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// Words of the name or description.
    query: Option<String>,
}

pub(crate) fn tool() -> Tool {
    let spec = spec::<ListArguments>(LIST_SKILLS, "List skills by name, file and whole description.");
    Tool::reading_no_files(spec, list).beside_the_core()
}

fn list(call: &CallScope<'_>, arguments: Value) -> ToolOutput {
    let query = match serde_json::from_value::<ListArguments>(arguments) {
        Ok(ListArguments { query }) => query.unwrap_or_default().to_lowercase(),
        Err(error) => return ToolOutput::error(error.to_string()),
    };
    let words: Vec<&str> = query.split_whitespace().collect();
    let told: Vec<SessionSkill> =
        call.session_skills.in_reach().followable.into_iter().filter(|skill| skill.for_model).collect();
    let is_meant = |skill: &&SessionSkill| {
        let text = format!("{} {}", skill.name, skill.description).to_lowercase();
        words.iter().all(|word| text.contains(word))
    };
    let meant: Vec<&SessionSkill> = told.iter().filter(is_meant).collect();
    if meant.is_empty() {
        let said = format!("no skill of {} has these words", told.len());
        let said = if told.is_empty() { "there are no skills".to_owned() } else { said };
        return ToolOutput::said(ToolStatus::Ok, said, Trust::Owner);
    }
    let line = |skill: &&SessionSkill| {
        let SessionSkill { name, file, description, .. } = *skill;
        let followed = if call.skills.holds(file) { " [followed]" } else { "" };
        let is_missing = call.place.skills_list.as_ref().is_some_and(|list| !names_file(list, file));
        let new = if is_missing { " [not in your list]" } else { "" };
        format!("- {name} ({file}){followed}{new}: {description}")
    };
    let lines: Vec<String> = meant.iter().map(line).collect();
    let is_of_workspace = meant.iter().any(|skill| skill.is_of_workspace);
    let trust = if is_of_workspace { Trust::Workspace } else { Trust::Owner };
    ToolOutput::said(ToolStatus::Ok, bounded(call.place.masked(&lines.join("\n"))), trust)
}

//! `skills enable` and `skills disable`: the list of those that are switched off.

use commands::CommandError;
use commands::args::maintenance::ConfigCommand;
use commands::settings::SkillSettings;
use commands::skills::{SkillSources, unknown};
use commands::workspaces::InspectedFolder;
use skills::own;
use text::terminal::one_line;

use crate::config::Config;
use crate::paths::InvocationPaths;
use crate::secrets;

/// The setting that switches a skill off, or on again.
///
/// # Errors
/// There is no such skill, or it is so already: nothing is written.
pub(crate) fn switch(
    name: &str,
    is_off: bool,
    paths: &InvocationPaths,
    config: &Config,
) -> Result<ConfigCommand, CommandError> {
    let settings = config.skills.of_commands();
    let is_named = |other: &String| other.to_lowercase() == name.to_lowercase();
    let was_off = settings.disabled.iter().any(is_named);
    let mut disabled = settings.disabled.clone();
    if is_off || !was_off {
        let found = name_of_skill(name, paths, config, &settings)?;
        disabled.push(found);
    } else {
        disabled.retain(|other| !is_named(other));
    }
    if was_off == is_off {
        let so = if is_off { "off" } else { "on" };
        return Err(CommandError::refused(
            "no_change",
            format!("{} is switched {so} already", one_line(name)),
            "`drawloom skills list` shows all",
        ));
    }
    let value = toml::Value::from(disabled).to_string();
    Ok(ConfigCommand::Set { key: "skills.disabled".to_owned(), value: Some(value) })
}

/// The name of a skill as its file says it, for one that was typed.
///
/// # Errors
/// There is no such skill.
fn name_of_skill(
    name: &str,
    paths: &InvocationPaths,
    config: &Config,
    settings: &SkillSettings,
) -> Result<String, CommandError> {
    let (masker, _) = secrets::masker(config, &paths.home)?;
    let guard = paths.guard()?;
    let sources =
        SkillSources { home: &paths.home, settings, guard: &guard, masker: &masker, accepted: &|_| None };
    let workspace = paths.workspace().ok();
    let workspace = workspace
        .and_then(|chosen| InspectedFolder::at(&chosen.folder, &guard).ok())
        .map(|looked| looked.root);
    let found = sources.read(workspace.as_ref(), &|_| None).skills;
    // The home has the built-in ones once they were looked for.
    let built_in = own::built_in().map(|own| own.name.to_owned());
    let names: Vec<String> = found.into_iter().map(|skill| skill.file.name).chain(built_in).collect();
    if let Some(found) = names.iter().find(|other| other.to_lowercase() == name.to_lowercase()) {
        return Ok(found.clone());
    }
    Err(unknown(names.iter().map(|other| masker.mask(other).text.into_owned()), name))
}

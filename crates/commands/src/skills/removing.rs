//! `skills remove`: a skill of the owner's goes from the home.

use std::fs;
use std::path::Path;

use loom::Digest;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use skills::{Skill, SkillSourceKind, own};
use store::home::HomeDir;
use text::terminal::one_line;
use workspace::{RelativePath, Root};

use super::adding::{AddedFile, collect, file_lines, synced};
use super::built_in::{is_as_written, write_below};
use super::{FOLDER, as_judged_now, masked, path_shown, unknown};
use crate::app::App;
use crate::args::skills::RemoveSkillArgs;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::skills::SkillRemoved;
use crate::rights::Asker;

/// `skills remove`.
///
/// # Errors
/// There is no skill of that name in the home, it is one of Drawloom's own, or the owner said no.
pub(super) async fn remove(
    app: &App,
    asker: &Asker,
    args: &RemoveSkillArgs,
) -> Result<CommandOutcome, CommandError> {
    let RemoveSkillArgs { name, yes } = args;
    let found = as_judged_now(app, asker).await?.skills;
    let of_name: Vec<&Skill> =
        found.iter().filter(|skill| skill.file.name.eq_ignore_ascii_case(name)).collect();
    let home = app.runtime.home.root();
    let is_of_home = |skill: &&&Skill| {
        skill.source == SkillSourceKind::Home
            || (is_built_in(skill) && !is_as_written(home, &skill.file.name))
    };
    let Some(skill) = of_name.iter().find(is_of_home) else {
        return Err(not_of_home(app, &found, of_name.first().copied(), name));
    };
    let (name, folder) = (masked(app, &skill.file.name), &skill.folder);
    let skills = home.join(FOLDER);
    if !folder.canonicalize().is_ok_and(|whole| whole == *folder && whole.starts_with(&skills)) {
        return Err(elsewhere(app, &name, folder));
    }
    let before = files(app, folder)?;
    let lines = file_lines(&before);
    let what = if is_built_in(skill) { "your text of the skill" } else { "the skill" };
    let question = format!("Remove {what} {name}, with all that stands in {}?", path_shown(app, folder));
    if !yes && !app.frontend.confirm_shown(&lines, &question) {
        return Err(CommandError::refused(
            "not_accepted",
            format!("{name} was not removed"),
            "say y where it asks at a terminal, or give --yes",
        ));
    }
    take_away(app, &name, folder, &before)?;
    if is_built_in(skill) {
        write_below(home, &|line| app.frontend.note(line));
        app.frontend.note(&format!("the skill {name} has the text again that comes with Drawloom"));
    }
    if app.settings.skills.variables.contains_key(&skill.file.name) {
        app.frontend.note(&format!(
            "another skill of that name would get its variables: `drawloom config unset skills.env.{name}` takes them out"
        ));
    }
    Ok(CommandOutcome::SkillRemoved(SkillRemoved { path: path_shown(app, folder), name }))
}

/// Whether a skill stands where one of Drawloom's own does, with whatever text.
fn is_built_in(skill: &Skill) -> bool {
    skill.source == SkillSourceKind::BuiltIn
}

/// Why a skill that does not stand in the home is not removed.
fn not_of_home(app: &App, found: &[Skill], skill: Option<&Skill>, name: &str) -> CommandError {
    let Some(skill) = skill else {
        return unknown(found.iter().map(|skill| masked(app, &skill.file.name)), name);
    };
    let shown = masked(app, &skill.file.name);
    if own::is_built_in(&skill.file.name) {
        return CommandError::refused(
            "built_in",
            format!("{shown} comes with Drawloom, which would write it anew"),
            format!("`drawloom skills disable {shown}` switches it off"),
        );
    }
    elsewhere(app, &shown, &skill.folder)
}

fn elsewhere(app: &App, name: &str, folder: &Path) -> CommandError {
    CommandError::refused(
        "not_in_home",
        format!(
            "{name} stands in {}, and not in the home's skills/ itself",
            one_line(&path_shown(app, folder))
        ),
        format!("remove it there; `drawloom skills disable {name}` switches it off"),
    )
}

fn files(app: &App, folder: &Path) -> Result<Vec<AddedFile>, CommandError> {
    let root = Root::open(folder, &app.guard).map_err(|error| CommandError::file_argument(&error))?;
    let (mut files, mut bytes) = (Vec::new(), 0);
    collect(&root, &RelativePath::root(), (&mut files, &mut bytes))?;
    Ok(files)
}

/// Takes a folder away, unless something in it is not as it was shown.
fn take_away(app: &App, name: &str, folder: &Path, shown: &[AddedFile]) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| CommandError::file("cannot remove", folder, &error);
    let cache = app.runtime.home.dir(HomeDir::Cache);
    let cache = cache.map_err(|error| CommandError::new("home", 6, error.to_string(), error.hint()))?;
    let staged = tempfile::Builder::new().prefix("skill-").tempdir_in(&cache).map_err(failed)?;
    let place = staged.path().join("removed");
    let rename = |from: &Path, to: &Path| {
        renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(|error| failed(error.into()))
    };
    rename(folder, &place)?;
    let digests = |files: &[AddedFile]| -> Vec<(RelativePath, Digest)> {
        files.iter().map(|file| (file.path.clone(), Digest::of(&file.bytes))).collect()
    };
    let is_as_shown = files(app, &place).is_ok_and(|now| digests(&now) == digests(shown));
    if !is_as_shown {
        if let Err(error) = rename(&place, folder) {
            let _ = staged.keep();
            return Err(error);
        }
        return Err(CommandError::refused(
            "changed",
            format!("the skill {name} was changed while it was asked about: nothing was removed"),
            "look at it, and try again",
        ));
    }
    fs::remove_dir_all(&place).map_err(failed)?;
    folder.parent().map_or(Ok(()), synced)
}

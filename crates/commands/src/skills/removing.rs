//! `skills remove`: a skill of the owner's goes from the home.

use std::fs;
use std::path::Path;

use loom::Digest;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use skills::{Skill, SkillSourceKind, own};
use store::home::HomeDir;
use text::terminal::one_line;
use workspace::{RelativePath, Root};

use super::adding::{FolderContents, Uncollected, file_lines, path_in_skill, synced};
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
    let before = contents(app, &name, folder)?;
    let other = |path: &RelativePath| format!("{}  no file: it goes unread", path_in_skill(path));
    let mut lines = file_lines(&before.files);
    lines.extend(before.others.iter().map(other));
    let what = if is_built_in(skill) { "your text of the skill" } else { "the skill" };
    let question = format!("Remove {what} {name}, with all that stands in {}?", path_shown(app, folder));
    if !yes {
        let confirmed = app.frontend.confirm_shown(&lines, &question);
        let hint = "say y where it asks at a terminal, or give --yes";
        confirmed.require("not_accepted", format!("{name} was not removed"), hint)?;
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

fn contents(app: &App, name: &str, folder: &Path) -> Result<FolderContents, CommandError> {
    let root = Root::open(folder, &app.guard).map_err(|error| CommandError::file_argument(&error))?;
    FolderContents::of(&root).map_err(|error| match error {
        Uncollected::File(error) => CommandError::file_argument(&error),
        Uncollected::TooMuch(path, why) => {
            let why =
                format!("what would be removed with {name} cannot be shown: {}: {why}", path_in_skill(&path));
            let hint = format!("look at {}, and remove it yourself", one_line(&path_shown(app, folder)));
            CommandError::refused("too_much", why, hint)
        }
    })
}

/// Takes a folder away, unless something in it is not as it was shown.
fn take_away(app: &App, name: &str, folder: &Path, shown: &FolderContents) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| CommandError::file("cannot remove", folder, &error);
    let cache = app.runtime.home.dir(HomeDir::Cache);
    let cache = cache.map_err(|error| CommandError::new("home", 6, error.to_string(), error.hint()))?;
    let staged = tempfile::Builder::new().prefix("skill-").tempdir_in(&cache).map_err(failed)?;
    let place = staged.path().join("removed");
    rename(folder, &place).map_err(failed)?;
    let is_as_shown = contents(app, name, &place).is_ok_and(|now| is_same(&now, shown));
    if !is_as_shown {
        if let Err(error) = rename(&place, folder) {
            let _ = staged.keep();
            return Err(not_put_back(name, (&place, folder), &error));
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

/// Moves a folder to where nothing stands.
fn rename(from: &Path, to: &Path) -> std::io::Result<()> {
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

/// Whether the same things stand in two folders.
fn is_same(one: &FolderContents, other: &FolderContents) -> bool {
    let digests = |contents: &FolderContents| -> Vec<(RelativePath, Digest)> {
        contents.files.iter().map(|file| (file.path.clone(), Digest::of(&file.bytes))).collect()
    };
    digests(one) == digests(other) && one.others == other.others
}

/// A skill that was changed while it was asked about, and lies at a `place` beside its folder.
fn not_put_back(name: &str, (place, folder): (&Path, &Path), error: &std::io::Error) -> CommandError {
    let [place, folder] = [place, folder].map(|path| one_line(&path.to_string_lossy()).into_owned());
    CommandError::new(
        "changed",
        6,
        format!(
            "the skill {name} was changed while it was asked about, and could not be put back to {folder} ({error}): it lies \
             in {place}"
        ),
        format!("look at both, and move what is to stay to {folder}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_skill_that_cannot_be_put_back_it_is_said_where_it_lies() {
        let world = tempfile::tempdir().unwrap();
        let [place, folder] = ["removed", "weave"].map(|name| world.path().join(name));
        fs::create_dir(&place).unwrap();
        rename(&place, &folder).unwrap();
        fs::create_dir(&place).unwrap();
        let taken = rename(&place, &folder).unwrap_err();
        let error = not_put_back("weave", (&place, &folder), &taken).to_string();
        assert!(error.contains(&format!("it lies in {}", place.display())), "{error}");
    }
}

//! `skills check`: files of skills by either profile, whoever trusts them.

use std::path::Path;

use policy::AllowedTools;
use skills::{FoundFile, KEYS, PLACEHOLDER_FINDING, RefusedPlace, SkillFile, files_below, strict};
use text::finding::Finding;
use workspace::{Accept, Root, canonical};

use super::within_reach::{link_targets, source_folders};
use super::{FOLDER, path_shown};
use crate::app::{App, nearest};
use crate::args::skills::SkillsCheckArgs;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::checks::TextProblem;
use crate::results::skills::SkillsChecked;
use crate::tool_names;

/// `skills check`.
///
/// # Errors
/// What was named cannot be read, or holds no skill.
pub(super) fn check(app: &App, args: &SkillsCheckArgs) -> Result<CommandOutcome, CommandError> {
    let mut checked = SkillsChecked { ok: true, skills: 0, problems: Vec::new() };
    match &args.path {
        Some(path) if !path.is_dir() => {
            let bytes = app.file_bytes(path, Accept::Regular)?;
            let whole = canonical(path);
            let folder = whole.parent().unwrap_or(Path::new("/"));
            checked.file(app, path, folder, (Ok(&bytes), args.strict));
        }
        Some(path) => {
            checked.folder(app, path, args.strict)?;
            if checked.skills == 0 && checked.problems.is_empty() {
                let name = path.to_string_lossy();
                return Err(CommandError::not_found("skill in", &name, "name a folder with a SKILL.md"));
            }
        }
        None => {
            for folder in source_folders(app).into_iter().filter(|folder| folder.is_dir()) {
                checked.folder(app, &folder, args.strict)?;
            }
        }
    }
    checked.ok = !checked.problems.iter().any(TextProblem::is_error);
    Ok(CommandOutcome::SkillsChecked(checked))
}

impl SkillsChecked {
    fn folder(&mut self, app: &App, folder: &Path, strict: bool) -> Result<(), CommandError> {
        let root = Root::open(folder, &app.guard).map_err(|error| CommandError::file_argument(&error))?;
        let (files, refused) = files_below(&root, &link_targets(&app.settings.skills), &app.guard);
        for FoundFile { folder, path, content, .. } in files {
            let content = content.map_err(|error| error.problem.to_string());
            let bytes = content.as_ref().map(|content| content.bytes.as_slice()).map_err(String::as_str);
            self.file(app, &path, &folder, (bytes, strict));
        }
        for RefusedPlace { path, why } in refused {
            self.add(app, &path, &[Finding::warning("not_looked_at", why)]);
        }
        Ok(())
    }

    fn file(&mut self, app: &App, path: &Path, folder: &Path, (bytes, strict): (Result<&[u8], &str>, bool)) {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_of_built_in = folder.parent() == Some(&*app.runtime.home.root().join(FOLDER));
        let read = match bytes {
            Ok(bytes) if is_of_built_in => SkillFile::read_built_in(bytes, &name),
            Ok(bytes) => SkillFile::read(bytes, &name),
            Err(why) => SkillFile::unread(&name, why.to_owned()),
        };
        let mut findings: Vec<Finding> = match bytes {
            Ok(bytes) if strict => {
                // One that says nothing yet is offered to nobody.
                let begun = read.findings.into_iter().filter(|finding| finding.code == PLACEHOLDER_FINDING);
                begun.chain(strict::check(bytes, &name)).collect()
            }
            _ => read.unknown_keys.iter().filter_map(|key| misspelt(key)).chain(read.findings).collect(),
        };
        findings.extend(read.allowed_tools.map(|entries| not_understood(app, entries)).unwrap_or_default());
        self.skills += 1;
        self.add(app, path, &findings);
    }

    fn add(&mut self, app: &App, path: &Path, findings: &[Finding]) {
        let (file, masker) = (path_shown(app, path), &app.runtime.masker);
        self.problems.extend(findings.iter().map(|finding| TextProblem::new(&file, finding, masker)));
    }
}

/// A warning of a key that is not read, where it is nearly one that is.
fn misspelt(key: &str) -> Option<Finding> {
    let near = nearest(KEYS.iter().map(|&known| known.to_owned()), key)?;
    Some(Finding::warning("misspelt_key", format!("`{key}` is not read: did you mean `{near}`?")))
}

/// Warnings of entries of `allowed-tools` that allow nothing.
fn not_understood(app: &App, entries: Vec<String>) -> Vec<Finding> {
    let tools = tool_names(app.settings.tools.keys());
    let warning = |entry: &str| {
        let why = format!("`allowed-tools`: {entry} is not understood, and allows nothing");
        Finding::warning("unknown_tool", why)
    };
    AllowedTools::new(entries).not_understood(&tools).map(warning).collect()
}

//! `mkdir`: a folder, with those on the way to it.

use policy::{PathAccess, PathUse};
use schemars::JsonSchema;
use serde::Deserialize;
use workspace::{FileKind, FileProblem, LinkPolicy, RootedPath};

use super::place;
use crate::changes::{MissingFolders, line_name};
use crate::tool::{CallScope, ToolScope};

pub(super) const DESCRIPTION: &str = "Make a folder, with those on the way to it.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Path in the workspace.
    path: String,
}

pub(super) fn paths(scope: &ToolScope, asked: &Arguments) -> Vec<PathUse> {
    scope.path_use(&asked.path, PathAccess::Write).into_iter().collect()
}

/// The folders to be made; none where the folder is there.
fn planned<'s>(scope: &'s ToolScope, asked: &Arguments) -> Result<Option<MissingFolders<'s>>, String> {
    let RootedPath { root, path } = place(scope, &asked.path)?;
    match root.stat(&path, LinkPolicy::Refuse) {
        Err(error) if matches!(error.problem, FileProblem::NotFound) => {
            MissingFolders::down_to(root, &path).map(Some)
        }
        Err(error) => Err(error.to_string()),
        Ok(there) if there.kind == FileKind::Folder => Ok(None),
        Ok(there) => Err(format!("{} is there already: it is a {}", asked.path, there.kind)),
    }
}

pub(super) fn preview(scope: &ToolScope, asked: &Arguments) -> Result<String, String> {
    let folders = planned(scope, asked)?.ok_or_else(|| format!("{} is there already", asked.path))?;
    let line = |path: String| format!("new folder {}\n", line_name(&path));
    Ok(folders.shown().map(|path| line(path.display().to_string())).collect())
}

pub(super) fn run(call: &CallScope<'_>, asked: &Arguments) -> Result<String, String> {
    let Some(folders) = planned(call.scope, asked)? else {
        return Ok(format!("{} is there already", asked.path));
    };
    if call.cancel.is_cancelled() {
        return Err("it was stopped: nothing was changed".to_owned());
    }
    let umask = call.scope.umask;
    let planned: Vec<_> = folders.planned(umask).collect();
    call.changes.record(&planned)?;
    if let Err(why) = folders.make(umask) {
        folders.remove();
        call.changes.take_back();
        return Err(why);
    }
    Ok(format!("made {}", asked.path))
}

//! `delete`: a file, a link or a folder with all it holds goes. Its bytes are kept, so that it can be given back.

use model::Cancel;
use policy::{PathAccess, PathUse};
use schemars::JsonSchema;
use serde::Deserialize;

use super::place;
use super::relocation::{paths_used, require_seen};
use crate::changes::{EntryKind, Subtree, SubtreeChange};
use crate::tool::{CallScope, ToolScope};

pub(super) const DESCRIPTION: &str =
    "Delete a file or a folder with all it holds. The owner can take it back.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Path in the workspace.
    path: String,
}

pub(super) fn paths(scope: &ToolScope, asked: &Arguments) -> Vec<PathUse> {
    paths_used(scope, &asked.path, None, &[PathAccess::Remove])
}

fn planned<'s>(scope: &'s ToolScope, asked: &Arguments, cancel: &Cancel) -> Result<Subtree<'s>, String> {
    let place = place(scope, &asked.path)?;
    if place.path.is_root() {
        return Err("the top of a root is not deleted: name something in it".to_owned());
    }
    let subtree = Subtree::read(&place, cancel)?;
    for entry in &subtree.entries {
        // Documents are removed by the same rule.
        if matches!(entry.kind, EntryKind::File { names, .. } if names > 1) {
            return Err(format!("{} has a second name, which would go on showing it", entry.path));
        }
    }
    require_seen(scope, &subtree)?;
    Ok(subtree)
}

pub(super) fn preview(scope: &ToolScope, asked: &Arguments) -> Result<String, String> {
    SubtreeChange::Delete.difference(&planned(scope, asked, &Cancel::never())?)
}

pub(super) fn run(call: &CallScope<'_>, asked: &Arguments) -> Result<String, String> {
    let subtree = planned(call.scope, asked, call.cancel)?;
    SubtreeChange::Delete.apply(call, &subtree)?;
    let files = match subtree.top() {
        EntryKind::Folder { .. } => format!(" (files: {})", subtree.files()),
        _ => String::new(),
    };
    Ok(format!("deleted {}{files}", asked.path))
}

//! `copy`: a file or folder stands at another path as well.

use policy::PathUse;

use super::relocation::{self, Arguments, RelocationKind};
use crate::tool::{CallScope, ToolScope};

pub(super) const DESCRIPTION: &str =
    "Copy a file or a folder. Folders on the way are made; a link is copied as a link.";

pub(super) fn paths(scope: &ToolScope, asked: &Arguments) -> Vec<PathUse> {
    relocation::paths(scope, asked, RelocationKind::Copy)
}

pub(super) fn preview(scope: &ToolScope, asked: &Arguments) -> Result<String, String> {
    relocation::preview(scope, asked, RelocationKind::Copy)
}

pub(super) fn run(call: &CallScope<'_>, asked: &Arguments) -> Result<String, String> {
    relocation::run(call, asked, RelocationKind::Copy)
}

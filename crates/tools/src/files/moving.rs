//! `move`: a file or folder gets another path.

use policy::PathUse;

use super::relocation::{self, Arguments, RelocationKind};
use crate::tool::{CallScope, ToolScope};

pub(super) const DESCRIPTION: &str =
    "Move or rename a file or a folder. Folders on the way are made; a link is moved as a link.";

pub(super) fn paths(scope: &ToolScope, asked: &Arguments) -> Vec<PathUse> {
    relocation::paths(scope, asked, RelocationKind::Move)
}

pub(super) fn preview(scope: &ToolScope, asked: &Arguments) -> Result<String, String> {
    relocation::preview(scope, asked, RelocationKind::Move)
}

pub(super) fn run(call: &CallScope<'_>, asked: &Arguments) -> Result<String, String> {
    relocation::run(call, asked, RelocationKind::Move)
}

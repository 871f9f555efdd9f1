//! `list`: the names in a folder.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{failed, place, sign};
use crate::changes::line_name;
use crate::tool::CallScope;

pub(super) const DESCRIPTION: &str = "List a folder. Folders end in /, links in @.";

/// Names that are shown at most.
const MOST: usize = 1_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Folder to list; the workspace without it.
    path: Option<String>,
}

pub(super) fn run(call: &CallScope<'_>, asked: &Arguments) -> Result<String, String> {
    let scope = call.scope;
    let place = place(scope, asked.path.as_deref().unwrap_or("."))?;
    let listing = place.root.list(&place.path, MOST).map_err(|error| failed(&error))?;
    if listing.entries.is_empty() && !listing.incomplete {
        return Ok("[The folder is empty.]".to_owned());
    }
    let mut out = String::new();
    for entry in &listing.entries {
        let _ = writeln!(out, "{}{}", line_name(&entry.name.to_string_lossy()), sign(entry.kind));
    }
    if listing.incomplete {
        let _ = writeln!(
            out,
            "[There are more than these {}; glob finds names by a pattern.]",
            listing.entries.len()
        );
    }
    Ok(out)
}

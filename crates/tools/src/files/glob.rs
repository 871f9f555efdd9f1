//! `glob`: files by a pattern of their names.

use std::fmt::Write as _;
use std::time::Instant;

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;

use super::place;
use super::walk::Walk;
use crate::changes::line_name;
use crate::tool::CallScope;

pub(super) const DESCRIPTION: &str = "Find files by name: src/**/*.rs, *.{md,txt}. A pattern without / matches in every \
                                      folder. Files that git ignores are left out.";

/// Names that are shown at most.
const MOST: usize = 1_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    pattern: String,
    /// Folder to look in; the workspace without it.
    path: Option<String>,
    /// Find files that git ignores, too.
    #[serde(default)]
    ignored: bool,
}

/// A pattern of paths below a folder.
pub(super) fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    let anywhere = if pattern.contains('/') { String::new() } else { "**/".to_owned() };
    let whole = anywhere + pattern.trim_start_matches("./");
    let glob = GlobBuilder::new(&whole).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|error| format!("{pattern:?} is no pattern: {}", error.kind()))
}

pub(super) fn run(call: &CallScope<'_>, asked: &Arguments) -> Result<String, String> {
    let CallScope { scope, cancel, .. } = *call;
    let matcher = matcher(&asked.pattern)?;
    let place = place(scope, asked.path.as_deref().unwrap_or("."))?;
    let root = place.root;
    let walk = Walk { place, ignored: asked.ignored, cancel, until: Instant::now() + scope.search_time };
    let (mut out, mut number) = (String::new(), 0);
    let walked = walk.files(|found| {
        if matcher.is_match(found.below) {
            number += 1;
            if number > MOST {
                return false;
            }
            let _ = writeln!(out, "{}", line_name(&root.shown(found.path).to_string_lossy()));
        }
        true
    })?;
    if number == 0 {
        out.push_str("[No file matches.]\n");
    } else if number > MOST {
        let _ = writeln!(out, "[More than {MOST} files match; these are the first.]");
    }
    Ok(out + &walked.note())
}

//! `read`: a page of a text file, with the numbers of its lines.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use text::bytes::size;
use workspace::{FileKind, LinkPolicy};

use super::{MAX_BYTES, failed, place, text_of};
use crate::tool::CallScope;

pub(super) const DESCRIPTION: &str = "Read a text file, with line numbers. A long file comes in pages: the last line \
                                      says how to go on.";

/// Lines of a page, unless fewer are asked for.
const LINES: usize = 2_000;
/// Characters of a page; at least one line is shown.
const PAGE: usize = 50_000;
/// Characters that are shown of one line.
const LINE: usize = 2_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Path in the workspace.
    path: String,
    /// First line, from 1.
    #[schemars(range(min = 1))]
    offset: Option<usize>,
    /// Lines to show at most.
    #[schemars(range(min = 1, max = 2_000))]
    limit: Option<usize>,
}

pub(super) fn run(call: &CallScope<'_>, asked: &Arguments) -> Result<String, String> {
    let scope = call.scope;
    let place = place(scope, &asked.path)?;
    let found = place.root.stat(&place.path, LinkPolicy::Follow).map_err(|error| failed(&error))?;
    if found.kind == FileKind::Folder {
        return Err(format!("{} is a folder: list shows what is in it", asked.path));
    }
    if found.bytes > MAX_BYTES {
        let (long, most) = (size(found.bytes), size(MAX_BYTES));
        return Err(format!("{} has {long}: more than {most} is neither read nor searched", asked.path));
    }
    let (text, digest) = text_of(scope, place.root, &place.path, LinkPolicy::Follow)?;
    let page = page(asked, &text)?;
    scope.seen.see(place.root, &place.path, digest);
    call.has_read(vec![digest]);
    Ok(page)
}

fn page(asked: &Arguments, text: &str) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return Ok("[The file is empty.]".to_owned());
    }
    let first = asked.offset.unwrap_or(1);
    if first > lines.len() {
        return Err(format!("{} has {} lines: offset {first} is behind its end", asked.path, lines.len()));
    }
    let (mut page, mut chars, mut last) = (String::new(), 0, first - 1);
    let wanted = asked.limit.unwrap_or(LINES);
    for (number, line) in (1..).zip(&lines).skip(first - 1).take(wanted) {
        let long = line.chars().count();
        let shown: String = line.chars().take(LINE).collect();
        chars += shown.chars().count();
        if chars > PAGE && last >= first {
            break;
        }
        let cut = if long > LINE { format!(" [{} more characters]", long - LINE) } else { String::new() };
        let _ = writeln!(page, "{number:>6}\t{shown}{cut}");
        last = number;
    }
    if first > 1 || last < lines.len() {
        let more = if last < lines.len() { format!("; offset {} goes on", last + 1) } else { String::new() };
        let _ = writeln!(page, "[Lines {first} to {last} of {}{more}.]", lines.len());
    }
    Ok(page)
}

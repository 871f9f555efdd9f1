//! `grep`: lines of files by a regular expression, in time that grows with their length alone.

use std::fmt::Write as _;

use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use workspace::LinkPolicy;

use super::walk::{Found, STOPPED, Walk};
use super::{glob, place, text_of};
use crate::tool::CallScope;

pub(super) const DESCRIPTION: &str = "Search the lines of files by a regular expression (no look-around, no \
                                      back-references). Files that git ignores and files that are no text are left out.";

/// Lines that match and are shown, unless another number is asked for.
const MATCHES: usize = 200;
/// Characters of what is shown.
const OUTPUT: usize = 50_000;
/// Characters that are shown of one line.
const LINE: usize = 400;
/// Bytes that a compiled expression may take.
const EXPRESSION: usize = 4 << 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Regular expression.
    pattern: String,
    /// File or folder to look in; the workspace, if it is left out.
    path: Option<String>,
    /// Only files whose names match, as *.rs.
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    /// Lines shown before and after each match.
    #[serde(default)]
    #[schemars(range(min = 0, max = 20))]
    context: usize,
    /// Matching lines shown at most.
    #[schemars(range(min = 1, max = 1_000))]
    limit: Option<usize>,
    /// Whether files that git ignores are searched as well.
    #[serde(default)]
    ignored: bool,
}

pub(super) fn run(call: &CallScope<'_>, asked: &Arguments) -> Result<String, String> {
    let CallScope { scope, cancel, .. } = *call;
    let expression = RegexBuilder::new(&asked.pattern)
        .case_insensitive(asked.ignore_case)
        .size_limit(EXPRESSION)
        .build()
        .map_err(|error| format!("{:?} cannot be searched for: {error}", asked.pattern))?;
    let names = asked.glob.as_deref().map(glob::matcher).transpose()?;
    let place = place(scope, asked.path.as_deref().unwrap_or("."))?;
    let (root, named) = (place.root, place.path.clone());
    let walk = Walk { place, ignored: asked.ignored, cancel };
    let most = asked.limit.unwrap_or(MATCHES);
    let mut found_all =
        Matches { expression, context: asked.context, left: most, out: String::new(), files: 0 };
    let (mut unread, mut why, mut read) = (0, None, Vec::new());
    let walked = walk.files(|found| {
        if names.as_ref().is_none_or(|names| names.is_match(found.below)) {
            match text_of(scope, root, found.path, LinkPolicy::Refuse) {
                Ok((text, digest)) => {
                    let before = found_all.files;
                    found_all.look(found, &text);
                    read.extend((found_all.files > before).then_some(digest));
                }
                Err(error) => {
                    unread += 1;
                    why = Some(error).filter(|_| *found.path == named);
                }
            }
        }
        !found_all.is_full() && !cancel.is_cancelled()
    })?;
    // The one that was named.
    if let Some(why) = why {
        return Err(why);
    }
    call.has_read(read);
    let is_full = found_all.is_full();
    let Matches { mut out, files, .. } = found_all;
    if files == 0 {
        out.push_str("[No line matches.]\n");
    } else if is_full {
        out.push_str("[There may be more: name a folder or a longer expression.]\n");
    }
    if unread > 0 {
        let _ = writeln!(out, "[Not searched, as they are no text, too long or cannot be read: {unread}.]");
    }
    let note = if cancel.is_cancelled() { STOPPED.to_owned() } else { walked.note() };
    Ok(out + &note)
}

/// Lines that were found.
struct Matches {
    expression: Regex,
    context: usize,
    /// Lines that may still be found.
    left: usize,
    out: String,
    /// Files in which something was found.
    files: usize,
}

impl Matches {
    fn is_full(&self) -> bool {
        self.left == 0 || self.out.len() >= OUTPUT
    }

    fn look(&mut self, found: &Found<'_>, text: &str) {
        let path = found.path.as_path().display();
        let lines: Vec<&str> = text.lines().collect();
        // The first line that was not shown yet.
        let mut next = 0;
        for (at, line) in lines.iter().enumerate() {
            if self.is_full() {
                return;
            }
            if !self.expression.is_match(line) {
                continue;
            }
            self.files += usize::from(next == 0);
            self.left -= 1;
            let from = at.saturating_sub(self.context).max(next);
            if next > 0 && from > next && self.context > 0 {
                self.out.push_str("--\n");
            }
            let to = (at + self.context + 1).min(lines.len());
            for (number, line) in lines.iter().enumerate().take(to).skip(from) {
                let sign = if self.expression.is_match(line) { ':' } else { '-' };
                let shown: String = line.chars().take(LINE).collect();
                let cut = if shown.len() < line.len() { "…" } else { "" };
                let _ = writeln!(self.out, "{path}{sign}{}{sign}{shown}{cut}", number + 1);
            }
            next = to.max(next);
        }
    }
}

//! `grep`: lines of files by a regular expression, in time that grows with their length alone.

mod expression;
mod matches;
#[cfg(test)]
mod tests;
mod workers;

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use schemars::JsonSchema;
use serde::Deserialize;
use workspace::LinkPolicy;

use self::expression::Expression;
use self::matches::{AllMatches, FileMatches, Search};
use self::workers::{Candidate, Job, Outcome, Workers};
use super::walk::{STOPPED, TIMED_OUT, Walk, Walked};
use super::{glob, place, text_of};
use crate::tool::CallScope;

pub(super) const DESCRIPTION: &str = "Search the lines of files by a regular expression (no look-around, no \
                                      back-references). Files that git ignores and files that are no text are left out.";

/// Threads that search at most, whatever the number of cores: each holds folders open.
const THREADS: usize = 16;
/// Lines that match and are shown, unless another number is asked for.
const MATCHES: usize = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Regular expression.
    pattern: String,
    /// File or folder to look in; the workspace without it.
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
    /// Search files that git ignores, too.
    #[serde(default)]
    ignored: bool,
}

pub(super) fn run(call: &CallScope<'_>, asked: &Arguments) -> Result<String, String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    run_by(call, asked, cores.min(THREADS))
}

/// Searches by as many threads as are given.
fn run_by(call: &CallScope<'_>, asked: &Arguments, threads: usize) -> Result<String, String> {
    let CallScope { scope, cancel, .. } = *call;
    let expression = Expression::new(&asked.pattern, asked.ignore_case)
        .map_err(|error| format!("{:?} cannot be searched for: {error}", asked.pattern))?;
    let names = asked.glob.as_deref().map(glob::matcher).transpose()?;
    let place = place(scope, asked.path.as_deref().unwrap_or("."))?;
    let root = place.root;
    let until = Instant::now() + scope.search_time;
    let walk = Walk { place, ignored: asked.ignored, cancel, until };
    let most = asked.limit.unwrap_or(MATCHES);
    let search = Search { expression, context: asked.context, most };
    let mut all = AllMatches::new(most);
    let (mut unread, mut ended) = (0, None);
    let mut take = |outcome| {
        match outcome {
            Outcome::Unread => unread += 1,
            Outcome::Matches(FileMatches { digest, shown, passed_over }) => {
                all.add(digest, &shown);
                ended = all.is_full().then(|| Walked::enough(passed_over));
            }
        }
        ended.is_none()
    };
    let (is_enough, is_late, mut named) = (AtomicBool::new(false), AtomicBool::new(false), None);
    let job = Job { scope, root, search: &search, cancel, threads, until, is_late: &is_late };
    let walked = std::thread::scope(|threads| {
        let mut workers = Workers::new(threads, job, &is_enough);
        let walked = walk.files(|found| {
            if names.as_ref().is_some_and(|names| !names.is_match(found.below)) {
                return true;
            }
            let path = found.path.clone();
            let Some((folder, entry)) = found.entry else {
                named = Some(path);
                return false;
            };
            let (folder, passed_over) = (Arc::clone(folder), found.passed_over);
            workers.add(Candidate { path, folder, entry, passed_over }, &mut take) && !cancel.is_cancelled()
        });
        workers.finish(&mut take);
        walked
    })?;
    if let Some(path) = named {
        let (text, digest) = text_of(scope, root, &path, LinkPolicy::Refuse)?;
        if let Some(shown) = search.look(&root.shown(&path), &text) {
            all.add(digest, &shown);
        }
    }
    let walked = ended.unwrap_or(walked);
    let (is_full, is_none) = (all.is_full(), all.files.is_empty());
    call.has_read(all.files);
    let mut out = all.out;
    if is_none {
        out.push_str("[No line matches.]\n");
    } else if is_full {
        out.push_str("[There may be more: name a folder or a longer expression.]\n");
    }
    if unread > 0 {
        let _ = writeln!(out, "[Not searched, as they are no text, too long or cannot be read: {unread}.]");
    }
    let note = if cancel.is_cancelled() {
        STOPPED.to_owned()
    } else if !is_full && is_late.into_inner() {
        TIMED_OUT.to_owned()
    } else {
        walked.note()
    };
    Ok(out + &note)
}

//! The text of a document (PDF, DOCX, EPUB), by page. It is extracted by a worker of the sandbox: what parses a stranger's file
//! can open nothing, reach nothing, and takes nobody along when it breaks down.

use std::fmt::Write as _;

use extract::{ExtractError, Extracted, WORKER_ARGUMENT};
use sandbox::{Sandbox, WorkerError, WorkerLimits};
use text::terminal::one_line;

use super::read::{Arguments, PAGE};
use crate::tool::{CallScope, ToolScope};

/// Characters that are shown of a title.
const TITLE: usize = 200;
/// Characters that are shown of why there is no text.
const WHY: usize = 500;
/// Headings that are listed of a document.
const HEADINGS: usize = 500;

/// Pages of a document, as many as a result takes or are asked for.
pub(super) fn read(call: &CallScope<'_>, asked: &Arguments, bytes: &[u8]) -> Result<String, String> {
    let document = extracted(call, bytes).map_err(|why| format!("{}: {why}", asked.path))?;
    match (asked.outline, asked.offset, asked.limit) {
        (false, ..) => pages(call.scope, asked, &document),
        (true, None, None) => Ok(outline(call.scope, &document)),
        (true, ..) => Err("an outline is of the whole file: it takes neither offset nor limit".to_owned()),
    }
}

fn extracted(call: &CallScope<'_>, bytes: &[u8]) -> Result<Extracted, String> {
    let sandbox = Sandbox::of_this_program().map_err(WorkerError::Start);
    let is_cancelled = || call.cancel.is_cancelled();
    let answer = sandbox
        .and_then(|sandbox| sandbox.work(&[WORKER_ARGUMENT], bytes, &WorkerLimits::default(), &is_cancelled));
    let answer = answer.map_err(|error| match error {
        WorkerError::Time(_) | WorkerError::Broken { .. } | WorkerError::Output(_) => {
            format!(
                "no text could be extracted from it: {error}. It may be damaged, or made to break readers"
            )
        }
        error => format!("no text could be extracted from it: {error}"),
    })?;
    let answer: Result<Extracted, ExtractError> = serde_json::from_slice(&answer)
        .map_err(|error| format!("no text could be extracted from it: its answer is none ({error})"))?;
    // It may quote the file.
    answer.map_err(|error| one_line(&error.to_string()).chars().take(WHY).collect())
}

/// What stands above the pages.
fn head(scope: &ToolScope, document: &Extracted) -> String {
    let title = document.title.as_deref().map(|title| scope.masker.mask_entering(title).text.into_owned());
    let title = title.map(|title| one_line(&title).chars().take(TITLE).collect::<String>());
    let title = title.map_or_else(String::new, |title| format!(" {title:?}"));
    format!("{}{title}", document.format)
}

fn pages(scope: &ToolScope, asked: &Arguments, document: &Extracted) -> Result<String, String> {
    let all = document.pages.len();
    let first = asked.offset.unwrap_or(1);
    if first > all {
        return Err(format!("{}: offset {first} is behind its last page, {all}", asked.path));
    }
    let (mut shown, mut chars, mut last) = (String::new(), 0, first - 1);
    for (number, page) in (1..).zip(&document.pages).skip(first - 1).take(asked.limit.unwrap_or(all)) {
        // Masked before it is cut: a part of a secret is none that is found.
        let text = scope.masker.mask_entering(page.trim()).text;
        let long = text.chars().count();
        chars += long.min(PAGE);
        if chars > PAGE && last >= first {
            break;
        }
        let _ = writeln!(shown, "--- page {number} of {all} ---");
        match long {
            0 => shown += "[No text.]\n",
            _ => {
                shown.extend(text.chars().take(PAGE));
                shown.push('\n');
            }
        }
        if long > PAGE {
            let _ = writeln!(shown, "[{} more characters of this page are not shown]", long - PAGE);
        }
        last = number;
    }
    let more = if last < all { format!("; offset {} goes on", last + 1) } else { String::new() };
    Ok(format!("[{}: pages {first} to {last} of {all}{more}.]\n{shown}", head(scope, document)))
}

/// The headings of a document with their pages.
fn outline(scope: &ToolScope, document: &Extracted) -> String {
    let all = document.pages.len();
    let mut found = String::new();
    let headings = (1..).zip(&document.pages).flat_map(|(number, page)| {
        page.lines().filter(|line| super::outline::is_heading(line)).map(move |line| (number, line))
    });
    for (number, heading) in headings.clone().take(HEADINGS) {
        let shown: String = heading.chars().take(TITLE).collect();
        let _ = writeln!(found, "{number:>6}\t{shown}");
    }
    let more = headings.count().saturating_sub(HEADINGS);
    let more = if more > 0 { format!("{more} more of them are not shown. ") } else { String::new() };
    let found = scope.masker.mask_entering(&found).text;
    let none = if found.is_empty() { "No headings were found. " } else { "" };
    let pages = if all == 1 { "page" } else { "pages" };
    format!("{found}[{}: {all} {pages}. {none}{more}offset and limit show pages.]\n", head(scope, document))
}

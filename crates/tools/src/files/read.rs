//! `read`: a part of a text file, with the numbers of its lines, pages of a document, or a picture.

use std::fmt::Write as _;

use media::PictureError;
use memchr::memchr;
use schemars::JsonSchema;
use serde::Deserialize;
use text::bytes::size;
use workspace::{FileKind, LinkPolicy};

use super::outline::outline;
use super::{MAX_BYTES, MAX_DOCUMENT, content_of, document, failed, masked, place};
use crate::tool::CallScope;

pub(super) const DESCRIPTION: &str = "Read a text file, with line numbers, or a PDF, DOCX or EPUB by pages, or look at a \
                                      picture. A long one comes in parts: it says how to go on.";

/// Lines of a page, unless fewer are asked for.
const LINES: usize = 2_000;
/// Characters of a page; at least one line is shown.
pub(super) const PAGE: usize = 50_000;
/// Characters that are shown of one line.
const LINE: usize = 2_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Path in the workspace.
    pub(super) path: String,
    /// First line or page, from 1.
    #[schemars(range(min = 1))]
    pub(super) offset: Option<usize>,
    /// Lines or pages at most.
    #[schemars(range(min = 1, max = 2_000))]
    pub(super) limit: Option<usize>,
    /// Show only its headings and definitions, with their lines.
    #[serde(default)]
    pub(super) outline: bool,
}

pub(super) fn run(call: &CallScope<'_>, asked: &Arguments) -> Result<String, String> {
    let scope = call.scope;
    let place = place(scope, &asked.path)?;
    let found = place.root.stat(&place.path, LinkPolicy::Follow).map_err(|error| failed(&error))?;
    if found.kind == FileKind::Folder {
        return Err(format!("{} is a folder: list shows what is in it", asked.path));
    }
    let too_long = |what: &str, most: u64| {
        let (long, most) = (size(found.bytes), size(most));
        format!("{} has {long}: {what}no more than {most} are read or searched", asked.path)
    };
    if found.bytes > MAX_DOCUMENT {
        return Err(too_long("", MAX_DOCUMENT));
    }
    let content = content_of(scope, place.root, &place.path, (LinkPolicy::Follow, MAX_DOCUMENT))?;
    let is_long = content.bytes.len() as u64 > MAX_BYTES;
    let read = match media::detect(&content.bytes) {
        // A text may begin as one does.
        Some(kind) if !kind.is_sound() && memchr(0, &content.bytes).is_some() => {
            picture(call, &content.bytes)
        }
        _ if extract::detect(&content.bytes).is_some() => document::read(call, asked, &content.bytes),
        _ if is_long => return Err(too_long("of a text ", MAX_BYTES)),
        _ => {
            masked(scope, &place.root.shown(&place.path), &content.bytes).and_then(|text| page(asked, &text))
        }
    };
    let digest = content.digest();
    // Why it is not shown may quote it.
    call.has_read(vec![digest]);
    let read = read?;
    // Who saw an outline has not read the file.
    if !asked.outline {
        scope.seen.see(place.root, &place.path, (digest, Some(&content.bytes)));
    }
    Ok(read)
}

/// Shows a picture, scaled to what models take. Returns what is said of it.
fn picture(call: &CallScope<'_>, bytes: &[u8]) -> Result<String, String> {
    let why = |error: PictureError| match error {
        PictureError::TooLarge { .. } => {
            format!(
                "it is a picture that is not shown: {error}, where limits.picture allows {}",
                call.scope.max_pixels
            )
        }
        error => format!("it is a picture that is not shown: {error}"),
    };
    let (kind, dimensions) = media::dimensions(bytes).map_err(why)?;
    let shown = media::import_picture(bytes, call.scope.max_pixels).map_err(why)?;
    let scaled = match shown.dimensions {
        same if same == dimensions => String::new(),
        smaller => format!(", shown as {smaller}"),
    };
    call.pictures.borrow_mut().push(shown);
    Ok(format!("This is a picture ({}, {dimensions}{scaled}).\n", kind.name()))
}

fn page(asked: &Arguments, text: &str) -> Result<String, String> {
    if asked.outline {
        return match (asked.offset, asked.limit) {
            (None, None) => Ok(outline(&asked.path, text)),
            _ => Err("an outline is of the whole file: it takes neither offset nor limit".to_owned()),
        };
    }
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

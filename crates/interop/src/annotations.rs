//! Markdown Annotations 0.1: a view's text with a block at its end that says who wrote which clusters.
//!
//! The block's ranges are `start,length` in grapheme clusters of the whole text. That is not the sum of the
//! clusters of its passages: a mark at the head of one passage joins the last cluster of the one before. So
//! clusters are counted over the whole text here, and one that two authors share belongs to the first. A model is an
//! author for each way in which it was asked.
//!
//! Some Markdown tools show the block as text; [`block`] alone can be written beside the file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use loom::attribution::attribute;
use loom::{AuthorKind, Digest, GenerationSettings, TreeReader, ViewName, source};

use crate::ExportError;
use crate::passages::Passages;

/// Writes a view's text with its annotation block. Holds the text, which the block counts over as a whole.
///
/// # Errors
/// [`ExportError`] when the tree cannot be read or the text not written.
pub fn export(rows: &dyn TreeReader, view: &ViewName, out: &mut dyn Write) -> Result<(), ExportError> {
    let (text, block) = block(rows, view)?;
    out.write_all(text.as_bytes())?;
    // The text's own last line end is inside the hashed range; an empty line always stands before the block.
    out.write_all(if text.is_empty() { b"" } else { b"\n\n" })?;
    out.write_all(block.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// A stretch of the text by one author, in bytes.
struct Stretch {
    to: usize,
    key: String,
}

/// A view's text and its annotation block.
///
/// # Errors
/// [`ExportError::Rows`] when the tree cannot be read.
pub fn block(rows: &dyn TreeReader, view: &ViewName) -> Result<(String, String), ExportError> {
    let mut text = String::new();
    let mut stretches: Vec<Stretch> = Vec::new();
    for passage in Passages::new(rows, view)? {
        let passage = passage?;
        let start = text.len();
        text.push_str(&passage.text);
        for span in attribute(rows, passage.row.node.id)? {
            let origin = source::origin_of_span(rows, &passage.row.node, &span)?;
            let model = origin.as_ref().map(|origin| origin.model.as_str());
            let mut label = source::label(span.kind, &span.author, model);
            let settings = origin.map(|origin| origin.settings(rows)).transpose()?.flatten();
            for words in settings.iter().flat_map(GenerationSettings::words) {
                label = label + " · " + &words;
            }
            stretches.push(Stretch { to: start + span.to, key: key(span.kind, &label) });
        }
    }
    let (ranges, clusters) = ranges(&text, &stretches);
    let digest = Digest::of(text.as_bytes()).to_string();
    let mut block = format!("---\nAnnotations: 0,{clusters} SHA-256 {}  \n", &digest[..32]);
    for (key, list) in ranges {
        block.push_str(&key);
        block.push(':');
        for (start, len) in list {
            // The length is left out where it is 1.
            let range = if len == 1 { format!(" {start}") } else { format!(" {start},{len}") };
            block.push_str(&range);
        }
        block.push_str("  \n");
    }
    block.push_str("...\n");
    Ok((text, block))
}

type Ranges = BTreeMap<String, Vec<(usize, usize)>>;

/// The cluster ranges of each author, and the number of clusters.
fn ranges(text: &str, stretches: &[Stretch]) -> (Ranges, usize) {
    let mut ranges = Ranges::new();
    let (mut at, mut clusters) = (0, 0);
    let mut here = stretches.iter().peekable();
    for cluster in text::grapheme::clusters(text) {
        while here.peek().is_some_and(|stretch| stretch.to <= at) {
            here.next();
        }
        if let Some(stretch) = here.peek() {
            let list = ranges.entry(stretch.key.clone()).or_default();
            match list.last_mut() {
                Some((start, len)) if *start + *len == clusters => *len += 1,
                _ => list.push((clusters, 1)),
            }
        }
        at += cluster.len();
        clusters += 1;
    }
    (ranges, clusters)
}

/// The key of an author: `@` for people, `&` for all others; colons and line ends cannot stand in it.
fn key(kind: AuthorKind, name: &str) -> String {
    let mut key = String::from(if kind == AuthorKind::Human { "@" } else { "&" });
    for c in text::terminal::one_line(name).chars() {
        match c {
            ':' => key.push_str("\\:"),
            '<' | '>' => drop(write!(key, "\\{c}")),
            other => key.push(other),
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_line_and_holds_no_bare_colon() {
        assert_eq!(key(AuthorKind::Human, "owner"), "@owner");
        let hostile = key(AuthorKind::Model, "a:b\n...\n@Human: 0,9");
        assert!(!hostile.contains('\n') && !hostile.replace("\\:", "").contains(':'), "{hostile}");
    }

    #[test]
    fn a_cluster_of_two_authors_is_counted_once() {
        let text = "ae\u{301}b";
        let stretches = [Stretch { to: 2, key: "@a".into() }, Stretch { to: text.len(), key: "&b".into() }];
        let (ranges, clusters) = ranges(text, &stretches);
        assert_eq!(clusters, 3);
        assert_eq!(ranges["@a"], [(0, 2)]);
        assert_eq!(ranges["&b"], [(2, 1)]);
    }
}

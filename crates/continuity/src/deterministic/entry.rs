//! Texts as lines of a handoff: one line, without marks of its own, cut at a sentence or a grapheme cluster, quoted where
//! they come from outside.

use text::cut::sentence_ends;
use text::frame::plain_name;
use text::grapheme;
use text::sanitiser::sanitise;

use crate::handoff::bracketed::bracketed_text;

/// Most characters of a quotation of what is of trust `outside`, with its origin.
pub(super) const MAX_QUOTATION_CHARS: usize = 160;

/// Most characters of an entry of the overflow.
pub(super) const MAX_OVERFLOW_CHARS: usize = 600;

/// Most characters of the origin of a quotation.
const MAX_ORIGIN_CHARS: usize = 40;

/// Bytes of a text that are read.
const MOST_READ: usize = 64 * 1024;

/// A text as one line that the sanitiser leaves as it is, and that begins with no mark of a heading, list or quotation.
pub(super) fn clean(text: &str) -> String {
    let text = &text[..grapheme::floor(text, MOST_READ)];
    let sanitised = sanitise(text).text;
    let mut line = sanitised.split_whitespace().collect::<Vec<_>>().join(" ");
    // A comment that opens here would hide the next lines, and the mark of a wrap is one.
    line = line.replace("<!--", "(!--");
    sanitise(without_marks(&line)).text.trim().to_owned()
}

fn without_marks(line: &str) -> &str {
    let mut rest = line;
    loop {
        let behind = rest.trim_start_matches(['#', '>', '-', '*', '+', '•']);
        let is_mark =
            behind.len() < rest.len() && (behind.is_empty() || behind.starts_with(char::is_whitespace));
        if !is_mark {
            return rest;
        }
        rest = behind.trim_start();
    }
}

/// Sentences of a text as lines, without code blocks. A line ends a sentence, and none is without a letter.
pub(super) fn sentences(text: &str) -> Vec<String> {
    let text = sanitise(&text[..grapheme::floor(text, MOST_READ)]).text;
    let mut found = Vec::new();
    let mut is_code = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") || line.starts_with("~~~") {
            is_code = !is_code;
            continue;
        }
        if is_code {
            continue;
        }
        let mut from = 0;
        for end in sentence_ends(line).chain([line.len()]) {
            if line[from..end].contains(char::is_alphabetic) {
                let sentence = clean(&line[from..end]);
                found.extend((!sentence.is_empty()).then_some(sentence));
                from = end;
            }
        }
    }
    found
}

/// A line with at most so many characters: cut behind a sentence if that leaves half of it, else at a word or a cluster and
/// marked with `…`.
pub(super) fn shortened(line: &str, most: usize) -> String {
    let Some((limit, _)) = line.char_indices().nth(most) else { return line.to_owned() };
    if let Some(end) = sentence_ends(line).take_while(|end| *end <= limit).last()
        && end * 2 >= limit
    {
        return line[..end].to_owned();
    }
    let limit = line.char_indices().nth(most.saturating_sub(1)).map_or(0, |(at, _)| at);
    let cluster = grapheme::floor(line, limit);
    let word = line[..cluster].rfind(char::is_whitespace).filter(|word| word * 2 >= cluster);
    format!("{}…", line[..word.unwrap_or(cluster)].trim_end())
}

/// What is of trust `outside`, in at most so many characters.
pub(super) fn quotation(origin: &str, line: &str, most: usize) -> String {
    let origin = match &*clean(&plain_name(origin)) {
        "" => "outside".to_owned(),
        origin => shortened(origin, MAX_ORIGIN_CHARS),
    };
    let most = most.saturating_sub(origin.chars().count() + " says: \"\"".len()).max(1);
    format!("{origin} says: \"{}\"", shortened(&line.replace(['"', '“', '”', '«', '»'], "'"), most))
}

/// A line, in brackets where it speaks to a model.
pub(super) fn within_brackets(line: &str) -> String {
    bracketed_text(line).unwrap_or_else(|| line.to_owned())
}

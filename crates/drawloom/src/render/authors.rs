//! The text of a view, with who wrote what: in colours, else by a sign before each line.
//!
//! Without colours each stretch of one author begins a row of its own: the sign of its author, then `│` where the row
//! begins a line of the text, or `┆` where it goes on with the line above. Without signs and bars, rows with `┆` put
//! behind the row above, it is the text again.

use std::fmt::Write as _;

use commands::results::tree::{SpanShown, TextShown};
use loom::{AuthorKind, GenerationSettings, source};

use super::table::columns;
use super::{OutputStyle, RenderedOutcome};

pub(super) fn text(found: &TextShown, to: OutputStyle) -> RenderedOutcome {
    let stretches = stretches(found);
    let mut out = if found.with_authors && !to.color {
        signed(&stretches, to)
    } else if to.color {
        painted(&apart(&stretches, found), to)
    } else {
        apart(&stretches, found).iter().map(|stretch| to.text(stretch.text)).collect()
    };
    // A file gets the text byte for byte; a prompt must not stand behind it.
    if to.terminal && !found.with_spans && !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    let legend = found.with_authors.then(|| legend(&stretches, to)).into_iter().flatten();
    if found.with_spans {
        let gap = if out.is_empty() || out.ends_with('\n') { "\n" } else { "\n\n" };
        out += &format!("{gap}{}", listed(&found.spans, to));
    }
    RenderedOutcome::new(out).noting(legend)
}

/// The spans as a table, those of one author in one node that follow each other as one.
fn listed(spans: &[SpanShown], to: OutputStyle) -> String {
    let mut joined: Vec<SpanShown> = Vec::new();
    let key = |shown: &SpanShown| (shown.span.node, shown.span.kind, shown.span.author.clone());
    for shown in spans {
        match joined.last_mut() {
            Some(last) if last.span.end == shown.span.start && key(last) == key(shown) => {
                last.span.end = shown.span.end;
            }
            _ => joined.push(shown.clone()),
        }
    }
    let row = |shown: &SpanShown| {
        let SpanShown { span, .. } = shown;
        let node = shown.short_id.clone().unwrap_or_else(|| "draft".to_owned());
        let settings = shown.settings.iter().flat_map(GenerationSettings::words);
        let about = settings.fold(String::new(), |about, words| about + " · " + &words);
        let author = to.by(span.kind, &to.line(&label(shown))) + &to.dim(&to.line(&about));
        vec![format!("{}–{}", span.start, span.end), node, author]
    };
    columns(&joined.iter().map(row).collect::<Vec<_>>(), &[2], to)
}

fn label(shown: &SpanShown) -> String {
    source::label(shown.span.kind, &shown.span.author, shown.model.as_deref())
}

/// The kind of an author, and the name people read.
type Author = (AuthorKind, String);

/// A part of the text by one author; none where nobody is known.
struct Stretch<'a> {
    text: &'a str,
    author: Option<Author>,
}

/// The text in parts of one author each, whatever nodes they stand in. Spans count grapheme clusters.
fn stretches(found: &TextShown) -> Vec<Stretch<'_>> {
    let mut starts: Vec<usize> = text::grapheme::clusters(&found.text).map(|cluster| cluster.start).collect();
    starts.push(found.text.len());
    let at = |cluster: u64| {
        let cluster = usize::try_from(cluster).unwrap_or(usize::MAX);
        starts.get(cluster).copied().unwrap_or(found.text.len())
    };
    let mut parts: Vec<(std::ops::Range<usize>, Option<Author>)> = Vec::new();
    let mut add = |range: std::ops::Range<usize>, author: Option<Author>| match parts.last_mut() {
        _ if range.is_empty() => {}
        Some((last, of)) if *of == author && last.end == range.start => last.end = range.end,
        _ => parts.push((range, author)),
    };
    let mut done = 0;
    for shown in &found.spans {
        let start = at(shown.span.start).max(done);
        let end = at(shown.span.end).max(start);
        add(done..start, None);
        add(start..end, Some((shown.span.kind, label(shown))));
        done = end;
    }
    add(done..found.text.len(), None);
    parts.into_iter().map(|(range, author)| Stretch { text: &found.text[range], author }).collect()
}

/// `stretches` with an empty line between the messages of a dialogue. Spans count the text without these lines.
fn apart<'a>(stretches: &[Stretch<'a>], found: &TextShown) -> Vec<Stretch<'a>> {
    let mut ends = found.ends.iter().copied().filter(|end| !found.with_spans && *end > 0).peekable();
    let (mut parts, mut at) = (Vec::new(), 0);
    for Stretch { text, author } in stretches {
        let mut rest = *text;
        while let Some(end) = ends.next_if(|end| *end <= at + rest.len()) {
            let (before, behind) = rest.split_at(end - at);
            let gap = match &found.text[..end] {
                _ if end == found.text.len() => "",
                whole if whole.ends_with("\n\n") => "",
                whole if whole.ends_with('\n') => "\n",
                _ => "\n\n",
            };
            parts.push(Stretch { text: before, author: author.clone() });
            parts.push(Stretch { text: gap, author: None });
            (rest, at) = (behind, end);
        }
        at += rest.len();
        parts.push(Stretch { text: rest, author: author.clone() });
    }
    parts
}

/// The text with each part in the colour of its author.
fn painted(stretches: &[Stretch<'_>], to: OutputStyle) -> String {
    let mut out = String::new();
    let authors = authors(stretches);
    for Stretch { text, author } in stretches {
        let (color, _) = author.as_ref().map_or(PLAIN, |author| color(author, &authors));
        // Line by line, so that a pager that shows half of it shows the right colours.
        for line in text.split_inclusive('\n') {
            let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
            out.push_str(&to.paint(color, &to.text(line)));
            out.push_str(end);
        }
    }
    out
}

/// A colour by its number and by its name.
type Color = (&'static str, &'static str);

const PLAIN: Color = ("", "plain");
/// Of models in the order they first appear; those of more come round again.
const MODELS: [Color; 10] = [
    ("34", "blue"),
    ("35", "magenta"),
    ("32", "green"),
    ("33", "yellow"),
    ("31", "red"),
    ("94", "bright blue"),
    ("95", "bright magenta"),
    ("92", "bright green"),
    ("93", "bright yellow"),
    ("91", "bright red"),
];

/// The colour of one of the authors.
fn color(author: &Author, authors: &[&Author]) -> Color {
    match author.0 {
        AuthorKind::Human => PLAIN,
        AuthorKind::Tool => ("36", "cyan"),
        AuthorKind::Model => MODELS[number(author, authors) % MODELS.len()],
    }
}

/// How many of its kind come before it.
fn number(author: &Author, authors: &[&Author]) -> usize {
    authors.iter().filter(|other| other.0 == author.0).take_while(|other| **other != author).count()
}

/// The text with the sign of its author before each line of each part.
fn signed(stretches: &[Stretch<'_>], to: OutputStyle) -> String {
    let signs = signs(stretches);
    let wide = signs.iter().map(|(_, sign)| sign.chars().count()).max().unwrap_or(1);
    let mut out = String::new();
    let mut begins_line = true;
    for Stretch { text, author } in stretches {
        let mut sign = author.as_ref().and_then(|author| signs.iter().find(|(of, _)| *of == author));
        for line in text.split_inclusive('\n') {
            let (line, ended) = line.strip_suffix('\n').map_or((line, false), |line| (line, true));
            // Said once a part.
            let said = sign.take().map_or("", |(_, sign)| sign.as_str());
            let bar = if begins_line { "│" } else { "┆" };
            let _ = writeln!(out, "{said:<wide$}{bar}{}", to.text(line));
            begins_line = ended;
        }
    }
    out
}

/// The authors in the order they first appear.
fn authors<'a>(stretches: &'a [Stretch<'_>]) -> Vec<&'a Author> {
    let mut authors: Vec<&Author> = Vec::new();
    for author in stretches.iter().filter_map(|stretch| stretch.author.as_ref()) {
        if !authors.contains(&author) {
            authors.push(author);
        }
    }
    authors
}

/// The authors, each with a sign: a letter of its kind, and a number where several of a kind wrote.
fn signs<'a>(stretches: &'a [Stretch<'_>]) -> Vec<(&'a Author, String)> {
    let authors = authors(stretches);
    let sign = |author: &&'a Author| {
        let letter = letter(author.0);
        let is_alone = authors.iter().filter(|other| other.0 == author.0).count() == 1;
        let number = number(author, &authors) + 1;
        (*author, if is_alone { letter.to_owned() } else { format!("{letter}{number}") })
    };
    authors.iter().map(sign).collect()
}

/// The sign of a kind of author.
pub(super) const fn letter(kind: AuthorKind) -> &'static str {
    match kind {
        AuthorKind::Human => "H",
        AuthorKind::Model => "M",
        AuthorKind::Tool => "T",
    }
}

/// Who the signs or colours stand for.
fn legend(stretches: &[Stretch<'_>], to: OutputStyle) -> Vec<String> {
    let signs = signs(stretches);
    let authors: Vec<&Author> = signs.iter().map(|(author, _)| *author).collect();
    let line = |(author, sign): &(&Author, String)| {
        let name = to.line(&author.1);
        if to.color { format!("{}: {name}", color(author, &authors).1) } else { format!("{sign} {name}") }
    };
    signs.iter().map(line).collect()
}

//! What was found, compared and weighed: hits of a search, two paths, the tokens of a passage.

use std::fmt::Write as _;

use commands::results::maintenance::{DRAFT, HitShown, HitsShown};
use commands::results::tree::{Compared, TokenShown, TokensShown};
use loom::PositionKind;

use super::columns::{count, cut, word, wrapped};
use super::table::explained;
use super::tree::remark;
use super::{OutputStyle, RenderedOutcome, diff};

pub(super) fn hits(found: &HitsShown, to: OutputStyle) -> RenderedOutcome {
    let mut out = String::new();
    for hit in &found.hits {
        let mut head = format!("{}  {}", hit.short_id, to.dim(&title(hit, to)));
        let draft = (hit.source == DRAFT).then(|| "draft".to_owned());
        let kind = (hit.kind != PositionKind::Path).then(|| word(&hit.kind));
        let old = hit.old.then(|| "old version".to_owned());
        let bookmark = hit.bookmark.as_ref().map(|title| super::tree::bookmark(title));
        let tags = hit.tags.iter().map(|tag| format!("#{}", to.line(tag)));
        for mark in draft.into_iter().chain(kind).chain(old).chain(bookmark).chain(tags) {
            head += &to.dim(&format!(" · {mark}"));
        }
        let _ = writeln!(out, "{}", cut(&head, to));
        out += &wrapped(&highlighted(hit, to), "    ", to);
        if let Some(on) = &hit.on {
            let line = format!("    on {} {}", on.short_id, to.dim(&format!("“{}”", to.line(&on.text))));
            let _ = writeln!(out, "{}", cut(&line, to));
        }
        for shown in &hit.annotations {
            let _ = writeln!(out, "{}", cut(&format!("    {}", remark(shown, to)), to));
        }
    }
    let partial = found.partial.then(|| format!("only the newest {} matches were ranked", found.ranked));
    let none = found.hits.is_empty().then(|| "nothing found".to_owned());
    RenderedOutcome::new(out).noting(partial.into_iter().chain(none))
}

fn title(hit: &HitShown, to: OutputStyle) -> String {
    if hit.title.is_empty() { hit.tree_short.clone() } else { to.line(&hit.title).into_owned() }
}

/// The passage around a hit, on one line: it is a hint, not the text.
fn highlighted(hit: &HitShown, to: OutputStyle) -> String {
    let (mut out, mut done) = (String::new(), 0);
    for met in &hit.matches {
        let (Some(before), Some(words)) = (hit.snippet.get(done..met.start), hit.snippet.get(met.clone()))
        else {
            continue;
        };
        out += &to.line(before);
        out += &to.paint("1", &to.line(words));
        done = met.end;
    }
    out += &to.line(hit.snippet.get(done..).unwrap_or_default());
    out.replace('\n', " ")
}

pub(super) fn compared(found: &Compared, to: OutputStyle) -> String {
    let same = format!("the same: {} above", count(found.common.chars, "character", "characters"));
    let mut out = format!("{}\n", cut(&to.dim(&same), to));
    if found.only_a == found.only_b {
        out.push_str("no word differs\n");
        return out;
    }
    out + &diff::words(&found.only_a, &found.only_b, to)
}

pub(super) fn tokens(found: &TokensShown, to: OutputStyle) -> String {
    let rows: Vec<_> = found.tokens.iter().map(|token| row(token, to)).collect();
    explained(&rows, to).replace(NO_BREAK, " ")
}

/// A blank at which no line is broken.
const NO_BREAK: char = '\u{a0}';

/// A token with its place, its probability, how surprising it is, and the alternatives by their ranks.
fn row(token: &TokenShown, to: OutputStyle) -> Vec<String> {
    let quoted = |text: &str| to.line(&format!("{text:?}")).into_owned();
    let others = token.alternatives.iter().map(|other| {
        let text = format!("{} {} {}", other.rank, quoted(&other.text), percent(other.logprob));
        let text = text.replace(' ', &NO_BREAK.to_string());
        if other.text == token.text { to.dim(&text) } else { text }
    });
    let bits = token.logprob.map(surprise);
    vec![
        token.at.to_string(),
        to.paint(color(bits), &quoted(&token.text)),
        token.logprob.map_or_else(|| "?".to_owned(), percent),
        bits.map_or_else(String::new, |bits| format!("{bits:.1} bits")),
        others.collect::<Vec<_>>().join(&format!("{NO_BREAK} ")),
    ]
}

/// Surprise in bits.
fn surprise(logprob: f64) -> f64 {
    -logprob / std::f64::consts::LN_2
}

fn percent(logprob: f64) -> String {
    format!("{:.1} %", logprob.exp() * 100.0)
}

/// Green for what was to be expected, yellow from one bit on, red from three and a third on: one in ten.
fn color(bits: Option<f64>) -> &'static str {
    match bits {
        Some(bits) if bits < 1.0 => "32",
        Some(bits) if bits < 3.3 => "33",
        Some(_) => "31",
        None => "0",
    }
}

#[cfg(test)]
mod tests {
    use commands::results::tree::AlternativeShown;
    use loom::{NodeId, TreeId};

    use super::*;

    #[test]
    fn surprise_is_a_number_without_colours_and_a_colour_with_them() {
        let other = |rank, text: &str, logprob| AlternativeShown { rank, text: text.to_owned(), logprob };
        let token = TokenShown {
            index: 0,
            at: 4,
            text: " sea".to_owned(),
            logprob: Some(0.25_f64.ln()),
            alternatives: vec![other(0, " hill", 0.5_f64.ln()), other(1, " sea", 0.25_f64.ln())],
        };
        let found = TokensShown {
            tree: TreeId::from_bytes([1; 16]),
            node: NodeId::from_bytes([2; 16]),
            short_id: "n".to_owned(),
            tokens: vec![token],
        };
        let plain = tokens(&found, OutputStyle::default());
        assert_eq!(plain, "4  \" sea\"  25.0 %  2.0 bits  0 \" hill\" 50.0 %  1 \" sea\" 25.0 %\n");
        let painted = tokens(&found, OutputStyle { color: true, ..OutputStyle::default() });
        assert!(painted.contains("\x1b[33m\" sea\"\x1b[0m"), "{painted:?}");
        let narrow = tokens(&found, OutputStyle { columns: Some(20), ..OutputStyle::default() });
        assert_eq!(
            narrow, "4  \" sea\"  25.0 %\n    2.0 bits\n    0 \" hill\" 50.0 %\n    1 \" sea\" 25.0 %\n",
            "every rank can be read"
        );
    }
}

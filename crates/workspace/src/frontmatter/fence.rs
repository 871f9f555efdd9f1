//! Finding the block: encoding, fences, body.

use super::{FrontmatterError, FrontmatterProblem, Irregularity, MAX_BYTES, Warning};

/// A file in its parts.
pub(super) struct Split {
    /// Text between the fences, from line 2 on, with `\n` alone.
    pub(super) block: Option<String>,
    pub(super) body: String,
    pub(super) warnings: Vec<Warning>,
}

/// Kind of a line at the edge of a block.
enum Line<'a> {
    Fence { spaced: bool },
    Engine(&'a str),
    Lookalike(&'a str),
    Other,
}

pub(super) fn split(file: &[u8]) -> Result<Split, FrontmatterError> {
    let text = decode(file)?;
    let mut warnings = Vec::new();
    let none = |body: &str| Split { block: None, body: unix(body), warnings: Vec::new() };
    let (first, rest) = cut_line(text);
    if first.trim().is_empty() {
        let line = 1 + text.lines().take_while(|line| line.trim().is_empty()).count();
        let next = text.lines().nth(line - 1).unwrap_or("");
        return if matches!(classify(next), Line::Other) {
            Ok(none(text))
        } else {
            Err(FrontmatterProblem::NotFirst.at(line))
        };
    }
    match classify(first) {
        Line::Fence { spaced } => {
            if spaced {
                warnings.push(Warning { line: 1, what: Irregularity::FenceSpace });
            }
        }
        Line::Engine(name) => return Err(FrontmatterProblem::Engine(name.to_owned()).at(1)),
        Line::Lookalike(fence) => return Err(FrontmatterProblem::Fence(fence.to_owned()).at(1)),
        // A file that separates its lines by carriage returns alone is one line to everybody else.
        Line::Other if first.starts_with("---\r") => return Err(FrontmatterProblem::LoneCarriageReturn.at(1)),
        Line::Other => return Ok(none(text)),
    }
    let last = 1 + text.matches('\n').count();
    let (block, body, lines) =
        close(rest, &mut warnings).ok_or_else(|| FrontmatterProblem::NotClosed.at(last))?;
    if block.len() > MAX_BYTES {
        return Err(FrontmatterProblem::TooLarge.at(2));
    }
    let block = unix(block);
    if let Some(at) = block.find('\r') {
        return Err(FrontmatterProblem::LoneCarriageReturn.at(2 + block[..at].matches('\n').count()));
    }
    if matches!(classify(cut_line(body).0), Line::Fence { .. }) {
        warnings.push(Warning { line: lines + 1, what: Irregularity::SecondBlock });
    }
    Ok(Split { block: Some(block), body: unix(body), warnings })
}

/// Block, body, and the line of the closing fence; none without one.
fn close<'a>(rest: &'a str, warnings: &mut Vec<Warning>) -> Option<(&'a str, &'a str, usize)> {
    let mut at = 0;
    let mut number = 2;
    while at < rest.len() {
        let (line, after) = cut_line(&rest[at..]);
        if let Line::Fence { spaced } = classify(line) {
            if spaced {
                warnings.push(Warning { line: number, what: Irregularity::FenceSpace });
            }
            return Some((&rest[..at], after, number));
        }
        at = rest.len() - after.len();
        number += 1;
    }
    None
}

fn decode(file: &[u8]) -> Result<&str, FrontmatterError> {
    let wide = file.starts_with(&[0xff, 0xfe])
        || file.starts_with(&[0xfe, 0xff])
        || file.iter().take(4).any(|byte| *byte == 0);
    if wide {
        return Err(FrontmatterProblem::WideEncoding.at(1));
    }
    match std::str::from_utf8(file) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let good = &file[..error.valid_up_to()];
            Err(FrontmatterProblem::NotUtf8.at(1 + good.iter().filter(|byte| **byte == b'\n').count()))
        }
    }
}

/// The first line without its end, and what follows it.
fn cut_line(text: &str) -> (&str, &str) {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    (line.strip_suffix('\r').unwrap_or(line), rest)
}

fn classify(line: &str) -> Line<'_> {
    let trimmed = line.trim_end_matches([' ', '\t']);
    if let Some(after) = trimmed.strip_prefix("---") {
        let word = after.trim_start_matches([' ', '\t']);
        return match word.chars().next() {
            None => Line::Fence { spaced: line.len() != trimmed.len() },
            Some('-') => Line::Lookalike(trimmed),
            Some(c) if c.is_ascii_alphabetic() && word.chars().all(|c| c.is_ascii_alphanumeric()) => {
                Line::Engine(word)
            }
            Some(_) => Line::Other,
        };
    }
    if trimmed == "+++" || trimmed == ";;;" { Line::Lookalike(trimmed) } else { Line::Other }
}

fn unix(text: &str) -> String {
    text.replace("\r\n", "\n")
}

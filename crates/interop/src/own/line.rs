//! Lines and nesting with bounds: what is checked before a line is parsed.

use std::io::{BufRead, Read as _};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    pub line: usize,
    pub depth: usize,
    /// Bytes of a node's content.
    pub node: u64,
    /// Problems that are listed; further ones are counted.
    pub problems: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { line: 64 << 20, depth: 64, node: loom::plan::MAX_NODE_BYTES, problems: 200 }
    }
}

/// A line, without its line end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Complete line, with its line end.
    Whole(&'a [u8]),
    /// The file ends in it.
    Cut(&'a [u8]),
    /// Line longer than the limit, skipped without being kept.
    TooLong,
}

/// Reads one line into `buffer`; none at the end.
pub(super) fn next_line<'a>(
    input: &mut dyn BufRead,
    buffer: &'a mut Vec<u8>,
    limit: usize,
) -> std::io::Result<Option<Line<'a>>> {
    buffer.clear();
    let most = limit as u64 + 1;
    (&mut *input).take(most).read_until(b'\n', buffer)?;
    match buffer.pop() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(Line::Whole(buffer))),
        Some(_) if buffer.len() == limit => {
            pass_over(input)?;
            buffer.clear();
            buffer.shrink_to(1 << 16);
            Ok(Some(Line::TooLong))
        }
        Some(last) => {
            buffer.push(last);
            Ok(Some(Line::Cut(buffer)))
        }
    }
}

/// Reads to the next line without keeping anything.
fn pass_over(input: &mut dyn BufRead) -> std::io::Result<()> {
    loop {
        let held = input.fill_buf()?;
        if held.is_empty() {
            return Ok(());
        }
        let end = held.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(held.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}

/// Nesting depth of a JSON text, computed without recursion. Brackets in strings do not count.
pub(super) fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut string, mut escaped) = (0_usize, 0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if string => escaped = true,
            b'"' => string = !string,
            _ if string => {}
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_beyond_the_limit_is_passed_over_and_the_next_is_read() {
        let mut input: &[u8] = b"12345\n123456\nlast";
        let mut buffer = Vec::new();
        assert_eq!(next_line(&mut input, &mut buffer, 5).unwrap(), Some(Line::Whole(b"12345")));
        assert_eq!(next_line(&mut input, &mut buffer, 5).unwrap(), Some(Line::TooLong));
        assert_eq!(next_line(&mut input, &mut buffer, 5).unwrap(), Some(Line::Cut(b"last")));
        assert_eq!(next_line(&mut input, &mut buffer, 5).unwrap(), None);
    }

    #[test]
    fn brackets_in_strings_do_not_nest() {
        assert_eq!(depth(br#"{"a":["[[[\"[[",{}]}"#), 3);
        assert_eq!(depth(&b"[".repeat(1_000_000)), 1_000_000);
    }
}

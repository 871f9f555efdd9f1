//! Code blocks of Markdown (CommonMark 0.31 §4.5).

use std::ops::Range;

/// The text of the first fenced code block; without an end it goes to the end of the text. None where there is none.
pub fn first_block(markdown: &str) -> Option<String> {
    let mut open: Option<(Fence, String)> = None;
    for line in markdown.split_inclusive('\n') {
        match &mut open {
            None => open = Fence::opening(line).map(|fence| (fence, String::new())),
            Some((fence, _)) if fence.is_closed_by(line) => break,
            Some((fence, block)) => block.push_str(fence.unindented(line)),
        }
    }
    open.map(|(_, block)| block)
}

/// Places of the fenced blocks of a text in bytes, with their fences; one without an end goes to the end of the text.
pub(crate) fn blocks(markdown: &str) -> Vec<Range<usize>> {
    let (mut blocks, mut start): (Vec<Range<usize>>, usize) = (Vec::new(), 0);
    let mut open: Option<(Fence, usize)> = None;
    for line in markdown.split_inclusive('\n') {
        let end = start + line.len();
        open = match open {
            None => Fence::opening(line).map(|fence| (fence, start)),
            Some((fence, first)) if fence.is_closed_by(line) => {
                blocks.push(first..end);
                None
            }
            open => open,
        };
        start = end;
    }
    blocks.extend(open.map(|(_, first)| first..start));
    blocks
}

/// Line that opens a block of code.
pub(crate) struct Fence {
    mark: char,
    /// How many marks it has.
    length: usize,
    /// Spaces before it.
    indent: usize,
}

impl Fence {
    pub(crate) fn opening(line: &str) -> Option<Self> {
        let (indent, rest) = fence_line(line)?;
        let mark = rest.chars().next().filter(|mark| ['`', '~'].contains(mark))?;
        let length = rest.chars().take_while(|c| *c == mark).count();
        let info = &rest[length..];
        (length >= 3 && !(mark == '`' && info.contains('`'))).then_some(Self { mark, length, indent })
    }

    pub(crate) fn is_closed_by(&self, line: &str) -> bool {
        let Some((_, rest)) = fence_line(line) else { return false };
        let rest = rest.trim_end();
        rest.chars().count() >= self.length && rest.chars().all(|c| c == self.mark)
    }

    /// A line of the block, without the spaces that stand before the fence.
    fn unindented<'a>(&self, line: &'a str) -> &'a str {
        let spaces = line.bytes().take(self.indent).take_while(|byte| *byte == b' ').count();
        &line[spaces..]
    }
}

/// Spaces before a line and what follows them; none for one that is indented code.
fn fence_line(line: &str) -> Option<(usize, &str)> {
    let rest = line.trim_start_matches(' ');
    let indent = line.len() - rest.len();
    (indent < 4).then_some((indent, rest))
}

#[cfg(test)]
mod tests {
    use super::first_block;

    #[test]
    fn the_first_fenced_block_is_found_and_nothing_else() {
        let found = |text: &str| first_block(text);
        assert_eq!(found("Say:\n```rust\nfn a() {}\n```\nand\n```\nb\n```"), Some("fn a() {}\n".into()));
        assert_eq!(
            found("~~~\n```\nx\n```\n~~~\n"),
            Some("```\nx\n```\n".into()),
            "another mark ends nothing"
        );
        assert_eq!(found("````\n```\n````"), Some("```\n".into()), "a shorter fence ends nothing");
        assert_eq!(found("  ```\n    x\n  y\n  ```"), Some("  x\ny\n".into()), "its indent is taken away");
        assert_eq!(found("```\nno end"), Some("no end".into()));
        assert_eq!(found("```\r\nx\r\n```\r\n"), Some("x\r\n".into()));
        assert_eq!(found("```\n```"), Some(String::new()));
        for none in ["", "text", "``\nx\n``", "    ```\n    x\n", "```a`b\nx", "`code`"] {
            assert_eq!(found(none), None, "{none:?}");
        }
    }
}

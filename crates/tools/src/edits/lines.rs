//! A text as lines, whatever ends them.

/// The mark some editors write at the start of a file.
pub(crate) const BOM: char = '\u{feff}';

/// How a line ends. A carriage return alone ends none: it is part of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Lf,
    CrLf,
    /// The last line of a text without a final newline.
    Missing,
}

impl Ending {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
            Self::Missing => "",
        }
    }
}

/// One line: its content, and what ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'t> {
    pub(super) content: &'t str,
    pub(super) ending: Ending,
}

/// The lines of a text. A text that ends with a newline has no empty line behind it; an empty text has none.
pub(super) fn lines(text: &str) -> Vec<Line<'_>> {
    let line = |piece: &'_ str| -> (usize, Ending) {
        match piece.strip_suffix('\n') {
            Some(rest) if rest.ends_with('\r') => (rest.len() - 1, Ending::CrLf),
            Some(rest) => (rest.len(), Ending::Lf),
            None => (piece.len(), Ending::Missing),
        }
    };
    text.split_inclusive('\n')
        .map(|piece| {
            let (length, ending) = line(piece);
            Line { content: &piece[..length], ending }
        })
        .collect()
}

/// The ending that a new line gets at index `at`: that of the line before it, else that of the one behind it, else that
/// of the first line.
pub(super) fn ending_at(lines: &[Line<'_>], at: usize) -> Ending {
    let around = [at.checked_sub(1), Some(at), Some(0)];
    let mut known = around.into_iter().flatten().filter_map(|at| lines.get(at).map(|line| line.ending));
    known.find(|ending| *ending != Ending::Missing).unwrap_or(Ending::Lf)
}

/// A line without the byte order mark before it.
pub(super) fn without_bom(content: &str) -> &str {
    content.strip_prefix(BOM).unwrap_or(content)
}

/// A text with every CR LF as LF, and the places in it that had a CR before them.
pub(super) struct LfText {
    pub(super) text: String,
    /// Byte offsets, in `text`, of the LF that stood behind a CR; in order.
    crs: Vec<usize>,
}

impl LfText {
    pub(super) fn new(text: &str) -> Self {
        let (mut lf, mut crs) = (String::with_capacity(text.len()), Vec::new());
        for line in lines(text) {
            lf.push_str(line.content);
            if line.ending == Ending::CrLf {
                crs.push(lf.len());
            }
            if line.ending != Ending::Missing {
                lf.push('\n');
            }
        }
        Self { text: lf, crs }
    }

    /// The byte offset, in the text as it was, of byte `offset` here; before the CR, where that was one.
    pub(super) fn original(&self, offset: usize) -> usize {
        offset + self.crs.partition_point(|cr| *cr < offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_carriage_return_ends_no_line() {
        let line = |content, ending| Line { content, ending };
        assert_eq!(
            lines("a\r\n\rb\n\r\r\nc"),
            [
                line("a", Ending::CrLf),
                line("\rb", Ending::Lf),
                line("\r", Ending::CrLf),
                line("c", Ending::Missing)
            ]
        );
        assert_eq!((lines("").len(), lines("\n").len()), (0, 1));
    }

    #[test]
    fn offsets_go_back_to_the_text_as_it_was() {
        let text = "a\r\nb\nc\r\n";
        let lf = LfText::new(text);
        assert_eq!(lf.text, "a\nb\nc\n");
        let places: Vec<usize> = (0..=lf.text.len()).map(|at| lf.original(at)).collect();
        assert_eq!(places, [0, 1, 3, 4, 5, 6, 8]);
    }
}

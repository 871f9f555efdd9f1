//! Texts measured and cut by the cells that a terminal gives them; our own colour sequences take none.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Cells a terminal gives a text; our own colour sequences take none.
pub(crate) fn width(cell: &str) -> usize {
    measured(cell, UnicodeWidthStr::width)
}

/// The most cells a terminal gives a text: not each one joins characters as Unicode says, or knows each mark.
pub(crate) fn most_width(cell: &str) -> usize {
    measured(cell, |text| text.width().max(text.chars().map(most_cells).sum()))
}

/// The most cells a terminal gives a character (measured: tmux 3.3a).
fn most_cells(c: char) -> usize {
    match c {
        // Tone marks of Hangul, a filler, reading marks of Vietnamese, and circled numbers of East Asia.
        '\u{302e}' | '\u{302f}' | '\u{3164}' | '\u{3248}'..='\u{324f}' | '\u{16ff0}' | '\u{16ff1}' => 2,
        // Blocks of marks that stand above and below each script alike, joiners and selectors of a form.
        '\u{300}'..='\u{36f}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{200b}'..='\u{200f}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{fe20}'..='\u{fe2f}'
        | '\u{e0100}'..='\u{e01ef}' => c.width().unwrap_or(0),
        // Vowel signs of Bengali, Tamil or Kannada stand beside their letter.
        _ if !c.is_ascii() => c.width().unwrap_or(0).max(1),
        _ => c.width().unwrap_or(0),
    }
}

fn measured(cell: &str, of: fn(&str) -> usize) -> usize {
    let mut wide = 0;
    let mut rest = cell;
    while let Some(start) = rest.find("\x1b[") {
        wide += of(&rest[..start]);
        rest = &rest[start + sequence(&rest[start..]).unwrap_or(2)..];
    }
    wide + of(rest)
}

/// A line whose end is cut where it is wider than this, with a sign.
pub(crate) fn cut_end(line: &str, room: usize) -> String {
    if width(line) <= room {
        return line.to_owned();
    }
    let (mut out, mut taken) = (String::new(), 0);
    let mut rest = line;
    while !rest.is_empty() {
        if let Some(end) = sequence(rest) {
            out.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        let end = text::grapheme::clusters(rest).next().map_or(rest.len(), |cluster| cluster.end);
        let wide = rest[..end].width();
        // One cell is for the sign; sequences behind it still end colours.
        if taken + wide < room {
            out.push_str(&rest[..end]);
            taken += wide;
        } else if taken < room {
            out.push('…');
            taken = room;
        }
        rest = &rest[end..];
    }
    out
}

/// A line whose beginning is cut where it is wider than this, with a sign.
pub(crate) fn cut_start(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let mut room = columns.saturating_sub(1);
    let fits = |c: &char| {
        let left = room.checked_sub(c.width().unwrap_or(0));
        room = left.unwrap_or(room);
        left.is_some()
    };
    let kept: Vec<char> = line.chars().rev().take_while(fits).collect();
    format!("…{}", kept.into_iter().rev().collect::<String>())
}

/// Bytes of the colour sequence of ours that a text begins with. One that is not ours ends nowhere: it was made
/// visible, or goes to a pipe as it is.
pub(crate) fn sequence(text: &str) -> Option<usize> {
    let after = text.strip_prefix("\x1b[")?;
    after.find('m').filter(|end| *end <= 4).map(|end| end + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_counts_as_many_cells_as_any_terminal_gives_it() {
        for (characters, cells) in [
            // Wider at a terminal than Unicode says: a vowel sign or length mark of ten scripts, a number sign of Arabic.
            (
                "\u{9be}\u{b3e}\u{bbe}\u{cc0}\u{cd5}\u{d3e}\u{dcf}\u{1b35}\u{a9c0}\u{11930}\u{605}\u{ad}\u{ffa0}",
                1,
            ),
            ("\u{302e}\u{302f}\u{3164}\u{3248}\u{324f}\u{16ff0}\u{16ff1}", 2),
            ("\u{300}\u{36f}\u{200d}\u{fe0f}\u{20d0}", 0),
            ("aéжא字", 1),
        ] {
            for c in characters.chars() {
                let cells = if c == '字' { 2 } else { cells };
                assert_eq!(most_width(&c.to_string()), cells, "{c:?}");
            }
        }
        assert_eq!(most_width(&"\u{b95}\u{bbe}".repeat(39)), 78);
    }

    #[test]
    fn lines_are_cut_by_cells() {
        assert_eq!(cut_end("漢字漢字", 5), "漢字…");
        assert_eq!(cut_start("ab漢字", 4), "…字");
        assert_eq!(cut_start("漢字", 4), "漢字");
        assert_eq!(
            (width("\x1b[34m漢\x1b[0m"), cut_end("\x1b[34m漢字\x1b[0m", 3)),
            (2, "\x1b[34m漢…\x1b[0m".to_owned())
        );
    }
}

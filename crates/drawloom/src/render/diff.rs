//! Two texts as one, with what of them differs: in colours, else `[-taken away-]{+added+}`.

use similar::{ChangeTag, TextDiff};

use super::OutputStyle;
use super::columns::wrapped;

/// Words of what is the same on each side of a change.
const AROUND: usize = 6;

/// Words of a text that are compared one by one; a longer one is shown as changed whole, where it differs.
const MAX_WORDS: usize = 20_000;

#[derive(Debug, Default)]
struct Change {
    /// What stands before it in both.
    same: String,
    old: String,
    new: String,
}

/// The words that changed with a few around them, indented.
pub(super) fn words(old: &str, new: &str, to: OutputStyle) -> String {
    let changes = changes(old, new);
    let last = changes.len().saturating_sub(1);
    let mut out = String::new();
    for (index, change) in changes.iter().enumerate() {
        let is_end = index == last && change.old.is_empty() && change.new.is_empty();
        out.push_str(&to.text(&shortened(&change.same, index > 0, !is_end)));
        for (text, color, signs) in [(&change.old, "31", ["[-", "-]"]), (&change.new, "32", ["{+", "+}"])] {
            if text.is_empty() {
                continue;
            }
            let text = to.text(text);
            if to.color {
                // Line by line: each line is indented by itself.
                let lines: Vec<String> = text.split('\n').map(|line| to.paint(color, line)).collect();
                out.push_str(&lines.join("\n"));
            } else {
                out.extend([signs[0], &*text, signs[1]]);
            }
        }
    }
    wrapped(&out, "    ", to)
}

/// The changes in order, each with what is the same before it. The last may change nothing.
fn changes(old: &str, new: &str) -> Vec<Change> {
    let words = |text: &str| text.split_whitespace().take(MAX_WORDS + 1).count();
    if words(old) > MAX_WORDS || words(new) > MAX_WORDS {
        let same = old.char_indices().zip(new.chars()).take_while(|((_, a), b)| a == b).last();
        let same = same.map_or(0, |((at, c), _)| at + c.len_utf8());
        let [same, old, new] = [&old[..same], &old[same..], &new[same..]].map(str::to_owned);
        return vec![Change { same, old, new }];
    }
    let mut changes = vec![Change::default()];
    for change in TextDiff::from_words(old, new).iter_all_changes() {
        let Some(last) = changes.last_mut() else { continue };
        let is_changed = !last.old.is_empty() || !last.new.is_empty();
        match change.tag() {
            ChangeTag::Delete => last.old.push_str(change.value()),
            ChangeTag::Insert => last.new.push_str(change.value()),
            ChangeTag::Equal if is_changed => {
                changes.push(Change { same: change.value().to_owned(), ..Change::default() });
            }
            ChangeTag::Equal => last.same.push_str(change.value()),
        }
    }
    // Changed words with nothing but a space between them are one change.
    let mut joined: Vec<Change> = Vec::new();
    for change in changes {
        let is_changed = !change.old.is_empty() || !change.new.is_empty();
        match joined.last_mut() {
            Some(last) if is_changed && change.same.trim().is_empty() && !change.same.contains('\n') => {
                last.old += &(change.same.clone() + &change.old);
                last.new += &(change.same + &change.new);
            }
            _ => joined.push(change),
        }
    }
    joined
}

/// What is the same, without what stands far from a change before it or behind it.
fn shortened(same: &str, after_change: bool, before_change: bool) -> String {
    let words: Vec<&str> = same.split_inclusive(char::is_whitespace).collect();
    let (head, tail) = (if after_change { AROUND } else { 0 }, if before_change { AROUND } else { 0 });
    if words.len() <= head + tail + 1 {
        return same.to_owned();
    }
    let begin = words[..head].concat();
    let end = words[words.len() - tail..].concat();
    format!("{begin}… {end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: OutputStyle = OutputStyle { terminal: false, color: false, columns: None };

    #[test]
    fn only_changed_words_stand_with_a_few_around_them() {
        let before = "one two three four five six seven eight nine ten, the grey heron stood there. ";
        let behind = "a b c d e f g h i j k";
        let old = format!("{before}It rained. {behind}");
        let new = format!("{before}It snowed. {behind}");
        let shown = words(&old, &new, PLAIN);
        assert_eq!(shown, "    … the grey heron stood there. It [-rained.-]{+snowed.+} a b c d e …\n");
    }

    #[test]
    fn a_colour_takes_the_place_of_the_signs() {
        let shown = words("It rained.", "It snowed.", OutputStyle { color: true, ..PLAIN });
        assert_eq!(shown, "    It \x1b[31mrained.\x1b[0m\x1b[32msnowed.\x1b[0m\n");
    }

    #[test]
    fn changes_with_a_space_between_are_one_and_nothing_is_lost() {
        assert_eq!(words("a b c", "x y c", PLAIN), "    [-a b-]{+x y+} c\n");
        assert_eq!(words("", "new", PLAIN), "    {+new+}\n");
        assert_eq!(words("same", "same", PLAIN), "    same\n");
        let long = "word ".repeat(MAX_WORDS + 1);
        let shown = words(&long, &(long.clone() + "end"), PLAIN);
        assert!(shown.contains("{+end+}"), "the control");
    }
}

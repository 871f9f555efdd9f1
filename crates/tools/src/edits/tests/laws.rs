//! Laws that hold for any text.

use std::fmt::Write as _;

use proptest::prelude::*;
use similar::{ChangeTag, TextDiff};

use super::super::{Patch, replace};
use super::apply;

/// Lines that look like parts of a patch, stand often, or are of more than ASCII.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(vec![
            "a", "b", "", " ", "\t", "c d", "-- x", "++ y", "@@ -1 +1 @@", "@@", "\\ No newline", "*** End Patch",
            "*** End of File", "```", "é👩\u{200D}💻", "diff --git a/x b/x", "-", "+", "\u{feff}",
        ]).prop_map(str::to_owned),
        1 => "[a-z ]{0,4}",
        1 => "[^\r\n]{0,4}",
    ]
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(line(), 0..24)
}

/// A text in LF, CR LF or both, with or without a byte order mark and a final newline.
fn text() -> impl Strategy<Value = String> {
    let endings = prop::collection::vec(any::<bool>(), 24);
    (lines(), endings, 0..3_usize, any::<bool>(), any::<bool>()).prop_map(|(lines, crs, mode, bom, last)| {
        let mut text = if bom { "\u{feff}".to_owned() } else { String::new() };
        for (line, cr) in lines.iter().zip(crs) {
            text.push_str(line);
            text.push_str(if mode == 1 || (mode == 2 && cr) { "\r\n" } else { "\n" });
        }
        if !last && text.ends_with('\n') {
            text.truncate(text.trim_end_matches(['\r', '\n']).len());
        }
        text
    })
}

/// A text, and another made of it by a few changes of lines.
fn pair() -> impl Strategy<Value = (String, String)> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), 0..3_usize, line()), 0..5);
    let changed = (text(), changes).prop_map(|(text, changes)| {
        let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        for (at, change, line) in changes {
            let at = at.index(lines.len() + 1);
            match change {
                0 => lines.insert(at, line + "\n"),
                1 if at < lines.len() => lines[at] = line + "\r\n",
                _ if at < lines.len() => drop(lines.remove(at)),
                _ => {}
            }
        }
        (text, lines.concat())
    });
    prop_oneof![1 => (text(), text()), 2 => changed]
}

/// A patch of the other form, written naively: the hunks of a difference, or all lines as one hunk where the old
/// lines of one stand in several places.
fn begin_patch(old: &[&str], new: &[&str], context: usize) -> String {
    let diff = TextDiff::from_slices(old, new);
    let (mut hunks, mut from, mut is_unique) = (String::new(), 0, true);
    for group in diff.grouped_ops(context) {
        let (first, last) = (group[0].old_range(), group[group.len() - 1].old_range());
        let here = &old[first.start..last.end];
        let ends = last.end == old.len();
        is_unique &= ends || old[from..].windows(here.len()).filter(|window| *window == here).count() == 1;
        from = last.end;
        hunks.push_str("@@\n");
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let _ = writeln!(hunks, "{}{}", sign(change.tag()), change.value());
        }
        hunks.push_str(if ends { "*** End of File\n" } else { "" });
    }
    if !is_unique {
        let changes = diff.iter_all_changes();
        hunks = changes.map(|change| format!("{}{}\n", sign(change.tag()), change.value())).collect();
    }
    format!("*** Begin Patch\n*** Update File: f\n{hunks}*** End Patch\n")
}

const fn sign(tag: ChangeTag) -> char {
    match tag {
        ChangeTag::Equal => ' ',
        ChangeTag::Delete => '-',
        ChangeTag::Insert => '+',
    }
}

/// Places at which a text stands, overlapping ones too.
fn count(text: &str, old: &str) -> usize {
    (0..text.len()).filter(|at| text.is_char_boundary(*at) && text[*at..].starts_with(old)).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_unified_diff_makes_the_second_text_of_the_first((old, new) in pair(), context in 1..5_usize) {
        if old == new {
            return Ok(());
        }
        let diff = TextDiff::from_lines(&old, &new);
        let patch = diff.unified_diff().context_radius(context).header("a/f", "b/f").to_string();
        prop_assert_eq!(apply(&patch, &old), Ok(new), "{}", patch);
    }

    #[test]
    fn a_begin_patch_makes_the_second_text_of_the_first(
        (old, new) in (lines(), lines()), context in 1..4_usize, crlf: bool, bom: bool, last: bool,
    ) {
        // A mark at the start of a first line is that of the file.
        let marked = |lines: &Vec<String>| lines.first().is_some_and(|line| line.starts_with('\u{feff}'));
        if old == new || old.is_empty() || marked(&old) || marked(&new) {
            return Ok(());
        }
        // Without a final newline an empty last line is none.
        let has_last = |lines: &[String]| lines.last().is_some_and(|line| !line.is_empty());
        let last = last || !has_last(&old) || !has_last(&new);
        // One line without a newline is neither.
        let ending = if crlf && (last || old.len() > 1) { "\r\n" } else { "\n" };
        let text = |lines: &[String]| {
            let end = if last && !lines.is_empty() { ending } else { "" };
            format!("{}{}{end}", if bom { "\u{feff}" } else { "" }, lines.join(ending))
        };
        let [old_lines, new_lines]: [Vec<&str>; 2] =
            [&old, &new].map(|lines| lines.iter().map(String::as_str).collect());
        let patch = begin_patch(&old_lines, &new_lines, context);
        prop_assert_eq!(apply(&patch, &text(&old)), Ok(text(&new)), "{}", patch);
    }

    #[test]
    fn replacing_is_what_a_naive_model_does(
        lines in prop::collection::vec("[ab]{0,2}", 0..8), old in "[ab\n]{0,4}", new in "[ab\n]{0,4}", all: bool, crlf: bool,
        bom: bool,
    ) {
        let lf = lines.join("\n");
        let as_file = |text: &str| {
            let text = if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
            if bom { format!("\u{feff}{text}") } else { text }
        };
        let found = count(&lf, &old);
        let is_made = !old.is_empty() && old != new && (found == 1 || (all && found > 0));
        let replaced = replace(&as_file(&lf), &old, &new, all);
        prop_assert_eq!(replaced.is_ok(), is_made);
        // Lines of a file that has no newline get LF.
        if let Ok(replaced) = replaced && (!crlf || lf.contains('\n')) {
            prop_assert_eq!(replaced.text, as_file(&lf.replace(&old, &new)));
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text: String, lines in prop::collection::vec(piece(), 0..20), file in text()) {
        let _ = Patch::parse(&text);
        if let Ok(patch) = Patch::parse(&lines.join("\n")) {
            for change in patch.files {
                let _ = change.apply(&file).map_err(|miss| miss.to_string());
            }
        }
    }

    #[test]
    fn no_replacement_panics(file in text(), old in text(), new in text(), all: bool) {
        let _ = replace(&file, &old, &new, all).map_err(|miss| miss.to_string());
    }

    #[test]
    fn one_hunk_that_misses_is_a_miss_of_all(stale in prop::collection::btree_set(0..60_usize, 1..20), at: prop::sample::Index) {
        let line = |at: usize| format!("line {at}\n");
        let old: String = (0..60).map(line).collect();
        let new: String = (0..60).map(|at| if stale.contains(&at) { format!("new {at}\n") } else { line(at) }).collect();
        let diff = TextDiff::from_lines(&old, &new);
        let patch = diff.unified_diff().context_radius(2).header("a/f", "b/f").to_string();
        prop_assert_eq!(apply(&patch, &old), Ok(new));
        let changed = *at.get(&stale.iter().copied().collect::<Vec<_>>());
        let other = old.replace(&line(changed), &format!("line {changed}, changed by another\n"));
        let miss = apply(&patch, &other).unwrap_err();
        prop_assert_eq!(super::nearest(&miss).difference.line, changed + 1);
    }
}

/// Pieces of patches.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "*** Begin Patch", "*** End Patch", "*** Update File: f", "*** Add File: f", "*** Delete File: f",
            "*** Move to: g", "*** End of File", "@@", "@@ a", "@@ -1,2 +1,2 @@", "@@ -0,0 +1 @@",
            "@@ -99999999999999999999 +1 @@", "--- a/f", "+++ b/f", "--- /dev/null", "+++ /dev/null",
            "diff --git a/f b/f", "rename from f", "rename to g", "new file mode 100644", "\\ No newline at end of file",
            " a", "-a", "+b", "-", "+", "", "\r", "--- \"a/\\303", "```",
        ]).prop_map(str::to_owned),
        1 => line(),
    ]
}

//! A table of misses of every real kind: each names the first line that differs, which the table computes itself.

use serde_json::json;

use super::super::{DifferenceKind, Miss, MissReason, replace};
use super::{apply, nearest};
use crate::files::fixture::Fixture;

/// A file as programs are: lines of their own, and those that stand everywhere.
fn file() -> Vec<String> {
    (0..90)
        .map(|at| match at % 9 {
            5 => "    }".to_owned(),
            6 => String::new(),
            7 => "        return None;".to_owned(),
            _ => format!("    let field_{at} = self.read_{}({}, \"key {at}\")?;", at % 7, at * 37 % 101),
        })
        .collect()
}

/// One way to be wrong about a file.
struct Case {
    name: &'static str,
    /// Lines of the old text, and which of them is the first that differs.
    old: Vec<String>,
    wrong: usize,
    /// Line of the file, from 0, at which the old text would begin.
    start: usize,
    kind: DifferenceKind,
}

fn cases() -> Vec<Case> {
    let file = file();
    let mut cases = Vec::new();
    for (start, length) in [(0, 6), (3, 9), (11, 4), (20, 12), (31, 7), (45, 20), (61, 8), (72, 18)] {
        for wrong in [0, 1, length / 2, length - 1] {
            let old = file[start..start + length].to_vec();
            let mut push = |name, kind, change: &dyn Fn(&mut Vec<String>)| {
                let mut old = old.clone();
                change(&mut old);
                cases.push(Case { name, old, wrong, start, kind });
            };
            let space = DifferenceKind::WhiteSpace;
            push("tab for spaces", space, &|old| old[wrong] = format!("\t{}", old[wrong].trim_start()));
            push("deeper", space, &|old| old[wrong].insert_str(0, "  "));
            push("space behind", space, &|old| old[wrong].push(' '));
            push("no-break space", space, &|old| old[wrong].push('\u{a0}'));
            push("stale word", DifferenceKind::Text, &|old| old[wrong] = format!("  {} // old", old[wrong]));
            push("another line", DifferenceKind::Text, &|old| {
                old[wrong] = "    whole.other(line);".to_owned();
            });
            push("two wrong", DifferenceKind::Text, &|old| {
                let last = old.len() - 1;
                old[last] = "    the.last(too);".to_owned();
                old[wrong] = "    whole.other(line);".to_owned();
            });
            if wrong > 0 {
                push("line that is not there", DifferenceKind::Text, &|old| {
                    old.insert(wrong, "    let more = added();".to_owned());
                });
            }
        }
    }
    cases
}

/// Patches of both forms that ask for the edit of a case.
fn patches(case: &Case) -> [String; 2] {
    let signed: String = case.old.iter().map(|line| format!("-{line}\n")).collect();
    let count = case.old.len();
    [
        format!("--- a/f\n+++ b/f\n@@ -{},{count} +1,1 @@\n{signed}+new\n", case.start + 1),
        format!("*** Begin Patch\n*** Update File: f\n@@\n{signed}+new\n*** End Patch\n"),
    ]
}

/// The same old text as each of the three that ask for an edit, in a file with this ending.
fn misses(case: &Case, text: &str) -> [Miss; 3] {
    let [unified, begin] = patches(case);
    [
        replace(text, &case.old.join("\n"), "new", false).expect_err(case.name),
        apply(&unified, text).expect_err(case.name),
        apply(&begin, text).expect_err(case.name),
    ]
}

/// Each case with the file that it misses: with and without carriage returns, a mark of the order of bytes, and a final
/// newline.
fn missed() -> Vec<(Case, String)> {
    let file = file();
    let forms = [("", "\n", "\n"), ("", "\r\n", "\r\n"), ("\u{feff}", "\n", ""), ("", "\r\n", "")];
    let text = |(before, ending, last): (&str, &str, &str)| format!("{before}{}{last}", file.join(ending));
    cases().into_iter().zip(forms.into_iter().map(text).cycle()).collect()
}

#[test]
fn every_miss_is_told_by_the_tools_which_change_no_file() {
    let (fixture, mut count) = (Fixture::new(), 0);
    for (case, text) in missed() {
        fixture.put("f", &text);
        fixture.put("g", "one\n");
        let [unified, begin] = patches(&case);
        let other = "--- a/g\n+++ b/g\n@@ -1 +1 @@\n-one\n+ONE\n";
        let with_other = begin.replacen("*** Update", "*** Update File: g\n@@\n-one\n+ONE\n*** Update", 1);
        for (tool, arguments) in [
            ("edit", json!({"path": "f", "old": case.old.join("\n"), "new": "new"})),
            ("patch", json!({"patch": format!("{other}{unified}")})),
            ("patch", json!({"patch": format!("{unified}{other}")})),
            ("patch", json!({"patch": with_other})),
        ] {
            let (line, wanted) = (case.start + case.wrong + 1, case.wrong + 1);
            let named = format!("The first line that differs is line {line} (line {wanted} of the old text)");
            let told = fixture.call(tool, &arguments).expect_err(case.name);
            assert!(told.contains(&named), "{}: {named}: {told}", case.name);
            assert_eq!(fixture.text("f").as_deref(), Some(text.as_str()), "{tool}, {}", case.name);
            assert_eq!(fixture.text("g").as_deref(), Some("one\n"), "{tool}, {}", case.name);
            count += 1;
        }
    }
    assert_eq!(fixture.names(), ["f", "g"]);
    assert!(fixture.recorded.kept.rows.lock().unwrap().is_empty(), "nor was any change written down");
    // The control: the other file's part alone applies.
    fixture.call("patch", &json!({"patch": "--- a/g\n+++ b/g\n@@ -1 +1 @@\n-one\n+ONE\n"})).unwrap();
    assert!(count >= 800, "{count}");
}

#[test]
fn every_miss_names_the_first_line_that_differs() {
    let (file, mut count) = (file(), 0);
    for (case, text) in &missed() {
        for miss in misses(case, text) {
            let nearest = nearest(&miss);
            let found = &nearest.difference;
            let line = case.start + case.wrong + 1;
            let context = format!("{} at {line}:\n{miss}", case.name);
            assert_eq!(
                (found.line, found.wanted_line, found.kind),
                (line, case.wrong + 1, case.kind),
                "{context}"
            );
            assert_eq!(nearest.lines.0, case.start + 1, "{context}");
            assert_eq!(nearest.around.len(), 5, "{context}");
            assert!(nearest.around.contains(&(line, file[line - 1].clone())), "{context}");
            assert_eq!(nearest.only_white_space, case.kind == DifferenceKind::WhiteSpace, "{context}");
            assert!(found.found.as_ref() != Some(&found.wanted), "{context}");
            count += 1;
        }
    }
    assert!(count >= 600, "{count}");
}

#[test]
fn a_line_left_out_is_named_where_it_stands() {
    let file = file();
    let text = file.join("\n") + "\n";
    for start in 0..70 {
        for left_out in [1, 4, 7] {
            let mut old = file[start..start + 12].to_vec();
            // An empty first line stands at the end of every line.
            if old[0].is_empty() {
                continue;
            }
            old.remove(left_out);
            let miss = replace(&text, &old.join("\n"), "", false).unwrap_err();
            assert_eq!(nearest(&miss).difference.line, start + left_out + 1, "{miss}");
        }
    }
}

#[test]
fn two_places_are_both_named() {
    let file = file();
    for start in (0..60).step_by(7) {
        let (mut twice, old) = (file.clone(), &file[start..start + 5]);
        twice.extend_from_slice(old);
        let case = Case { name: "twice", old: old.to_vec(), wrong: 0, start: 88, kind: DifferenceKind::Text };
        for ending in ["\n", "\r\n"] {
            for miss in misses(&case, &(twice.join(ending) + ending)) {
                let lines = vec![start + 1, file.len() + 1];
                assert_eq!(miss.reason, MissReason::Several { lines, more: false });
            }
        }
    }
}

#[test]
fn a_final_newline_that_is_not_there_is_named() {
    let file = file();
    for (length, ending) in (1..20).flat_map(|length| [(length, "\n"), (length, "\r\n")]) {
        let old = file[file.len() - length..].join("\n") + "\n";
        let miss = replace(&file.join(ending), &old, "", false).unwrap_err();
        let found = &nearest(&miss).difference;
        assert_eq!((found.line, found.wanted_line), (file.len(), length), "{miss}");
        assert_eq!(found.kind, DifferenceKind::FinalNewline);
    }
}

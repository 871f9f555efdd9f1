//! Every case of docs/cases.md has tests that exist, or names the part of the product that owes them (spec: security §29).
//!
//! A case is a row of a table whose head is `| Case | What it is | Tests |`. Its last cell names tests as `test_names` has
//! them, or ends in `owed by:` and parts, or both where a part still owes a piece.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;

#[path = "support/test_names.rs"]
mod test_names;

use test_names::{named_in, root, tests};

/// The cases there are: what their numbers begin with, and what follows.
const CASES: [(&str, RangeInclusive<u8>); 13] = [
    ("F", 1..=16),
    ("V", 1..=5),
    ("V", 7..=7),
    ("M", 2..=2),
    ("M", 5..=5),
    ("M", 7..=8),
    ("M", 10..=10),
    ("X", 1..=30),
    ("1.", 1..=16),
    ("2.", 1..=27),
    ("3.", 1..=22),
    ("4.", 1..=22),
    ("L", 1..=24),
];

/// Rows of the laundering matrix (spec: security §3, and what carries text beside them), with the case that each is and the
/// part that owes it; a row without a part is tried in [`MATRIX`].
const LAUNDERING: [(&str, &str, Option<&str>); 15] = [
    ("next turn", "L1", None),
    ("notes file", "L2", None),
    ("fork", "L3", None),
    ("export that is imported", "L4", None),
    ("killed, and the next one", "L5", None),
    ("instructions of a folder below", "L14", None),
    ("a fact", "L15", Some("memory")),
    ("an observation", "L16", Some("memory")),
    ("an outcome", "L17", None),
    ("a card", "L18", Some("cards")),
    ("a wrap, and a new session", "L19", None),
    ("a reminder", "L20", Some("scheduler")),
    ("a subagent", "L21", None),
    ("a hook", "L22", None),
    ("question of a server", "L23", None),
];

/// Tests in which text is carried and then judged, where nobody is asked and where somebody is: a module of them, and the one
/// of what only a person carries.
const MATRIX: [&str; 2] = [
    "drawloom::cli::laundering_matrix::",
    "drawloom::cli::elicitation::s3_a_question_of_a_server_and_its_answer_taint_and_name_no_address",
];

/// Parts that may owe tests, as they are not there yet.
const PARTS: [&str; 8] =
    ["cards", "handoff", "import", "memory", "messages", "scheduler", "server", "skills"];

const OWED: &str = "owed by:";

/// One row of the document.
struct Row {
    case: String,
    what: String,
    tests: Vec<String>,
    owed_by: Vec<String>,
}

fn cases() -> Vec<String> {
    let numbered = |(begin, numbers): &(&str, RangeInclusive<u8>)| {
        let numbers = numbers.clone().map(|number| format!("{begin}{number}"));
        numbers.collect::<Vec<_>>()
    };
    CASES.iter().flat_map(numbered).collect()
}

fn rows(document: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut within = false;
    for line in document.lines() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        match cells.as_slice() {
            ["Case", "What it is", "Tests"] => within = true,
            [rule, ..] if rule.starts_with("---") => {}
            [case, what, tests] if within && line.starts_with('|') && !what.is_empty() => {
                let (tests, parts) = tests.split_once(OWED).unwrap_or((tests, ""));
                let parts = parts.split(',').map(str::trim).filter(|part| !part.is_empty());
                let owed_by = parts.map(str::to_owned).collect();
                let (case, what) = ((*case).to_owned(), (*what).to_owned());
                rows.push(Row { case, what, tests: named_in(tests), owed_by });
            }
            _ => within = false,
        }
    }
    rows
}

/// What is wrong with a document.
fn gaps(document: &str, tests: &BTreeSet<String>) -> Vec<String> {
    let (rows, cases) = (rows(document), cases());
    let mut gaps = Vec::new();
    for case in &cases {
        match rows.iter().filter(|row| row.case == *case).count() {
            0 => gaps.push(format!("{case}: no row")),
            1 => {}
            _ => gaps.push(format!("{case}: more than one row")),
        }
    }
    for Row { case, tests: named, owed_by, .. } in &rows {
        if !cases.contains(case) {
            gaps.push(format!("{case}: no such case"));
        }
        if named.is_empty() && owed_by.is_empty() {
            gaps.push(format!("{case}: neither a test nor a part that owes it"));
        }
        let missing = named.iter().filter(|name| !tests.contains(*name));
        gaps.extend(missing.map(|name| format!("{case}: no such test: {name}")));
        let unknown = owed_by.iter().filter(|part| !PARTS.contains(&part.as_str()));
        gaps.extend(unknown.map(|part| format!("{case}: no such part: {part}")));
    }
    gaps
}

/// Rows of the laundering matrix that are neither tried nor owed by the part that brings them.
fn untried(document: &str) -> Vec<&'static str> {
    let rows = rows(document);
    let is_held = |(name, case, part): &(&str, &str, Option<&str>)| {
        let row = rows.iter().find(|row| row.case == *case && row.what.contains(name));
        row.is_some_and(|row| match part {
            Some(part) => row.owed_by.iter().any(|owing| owing == part),
            None => row.tests.iter().any(|test| MATRIX.iter().any(|of_matrix| test.starts_with(of_matrix))),
        })
    };
    LAUNDERING.iter().filter(|row| !is_held(row)).map(|(name, ..)| *name).collect()
}

/// Cases of the first page, none of whose tests has the number in its name: `x11_…`, or one of `f12_to_f16_…`.
fn unnumbered(document: &str) -> Vec<String> {
    let number = |word: &str| -> Option<(char, u8)> {
        let kind = word.chars().next().filter(|kind| "fvmx".contains(*kind))?;
        Some((kind, word[1..].parse().ok()?))
    };
    let has = |test: &str, case: (char, u8)| {
        let words: Vec<&str> = test.rsplit("::").next().unwrap_or_default().split('_').collect();
        let is_within = |three: &[&str]| match (number(three[0]), three[1], number(three[2])) {
            (Some(first), "to", Some(last)) => (first..=last).contains(&case),
            _ => false,
        };
        words.iter().any(|word| number(word) == Some(case)) || words.windows(3).any(is_within)
    };
    let of_page = rows(document).into_iter().filter_map(|row| Some((number(&row.case.to_lowercase())?, row)));
    let without =
        of_page.filter(|(case, row)| !row.tests.is_empty() && !row.tests.iter().any(|test| has(test, *case)));
    without.map(|(_, row)| row.case).collect()
}

fn document() -> String {
    fs::read_to_string(root().join("docs/cases.md")).expect("docs/cases.md")
}

#[test]
fn every_case_has_tests_or_a_part_that_owes_them() {
    assert_eq!(gaps(&document(), &tests()), Vec::<String>::new());
}

#[test]
fn every_case_of_the_first_page_is_found_by_its_number() {
    assert_eq!(unnumbered(&document()), Vec::<String>::new());
    let without = document().replace("x11_", "").replace("v1_to_v5", "v2_to_v5");
    assert_eq!(unnumbered(&without), ["V1", "X11"], "the control");
}

/// A part that came takes its rows out of those owed here, and names their tests.
#[test]
fn s3_every_row_of_the_laundering_matrix_is_tried_or_owed_by_its_part() {
    assert_eq!(untried(&document()), Vec::<&str>::new());
    let without = |line: &str| untried(&document().replace(line, ""));
    assert_eq!(without("| L20 | a reminder | owed by: scheduler |\n"), ["a reminder"], "the control");
    assert_eq!(
        untried(&document().replace("a reminder | owed by: scheduler", "a reminder | owed by: cards")),
        ["a reminder"]
    );
    assert_eq!(untried(&document().replace("matrix::s3_a_fork", "other::s3_a_fork")), ["fork"]);
}

#[test]
fn a_part_that_owes_nothing_any_more_is_not_in_the_list() {
    let owing: BTreeSet<String> = rows(&document()).into_iter().flat_map(|row| row.owed_by).collect();
    assert_eq!(PARTS.iter().filter(|part| !owing.contains(**part)).collect::<Vec<_>>(), Vec::<&&str>::new());
}

const REAL: &str = "xtask::cases::control_each_kind_of_gap_is_found";

/// A document in which every case has the same row.
fn sample() -> String {
    let rows: String = cases().iter().map(|case| format!("| {case} | something | `{REAL}` |\n")).collect();
    format!("# Cases\n\n| Case | What it is | Tests |\n|---|---|---|\n{rows}")
}

#[test]
fn control_each_kind_of_gap_is_found() {
    let (sample, tests) = (sample(), tests());
    assert_eq!(gaps(&sample, &tests), Vec::<String>::new());
    let row = format!("| F3 | something | `{REAL}` |\n");
    let changed_to = |by: &str| gaps(&sample.replace(&row, by), &tests);
    assert_eq!(changed_to(""), ["F3: no row"]);
    assert_eq!(changed_to(&row.repeat(2)), ["F3: more than one row"]);
    assert_eq!(changed_to("| F3 | something | by hand |\n"), ["F3: neither a test nor a part that owes it"]);
    assert_eq!(changed_to("| F3 | something | owed by: |\n"), ["F3: neither a test nor a part that owes it"]);
    assert_eq!(changed_to("| F3 | something | owed by: cards, nobody |\n"), ["F3: no such part: nobody"]);
    assert_eq!(changed_to("| F3 | something | owed by: cards, memory |\n"), Vec::<String>::new());
    assert_eq!(
        changed_to("| F3 | something | `xtask::cases::gaps`; owed by: cards |\n"),
        ["F3: no such test: xtask::cases::gaps"]
    );
    assert_eq!(changed_to(&format!("{row}| F17 | something | `{REAL}` |\n")), ["F17: no such case"]);
    let whole_table_is_lost = gaps(&sample.replace("What it is", "What"), &tests);
    assert_eq!(whole_table_is_lost.len(), cases().len());
}

#[test]
fn control_the_list_of_cases_is_whole() {
    let cases = cases();
    assert_eq!(cases.len(), 16 + 6 + 5 + 30 + 16 + 27 + 22 + 22 + 24);
    assert_eq!(cases.iter().collect::<BTreeSet<_>>().len(), cases.len());
}

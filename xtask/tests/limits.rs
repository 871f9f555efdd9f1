//! Every key of `[limits]` has tests that meet it (spec: scale §4), named in docs/cases.md by rows under
//! `| Limit | What happens | Tests |`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeSet;
use std::fs;

#[path = "support/test_names.rs"]
mod test_names;

use test_names::{named_in, root, tests};

/// Rows of the table below a line, as their cells.
fn rows<'d>(document: &'d str, heading: &str) -> Vec<Vec<&'d str>> {
    let below = document.lines().skip_while(|line| *line != heading).skip(1);
    let section = below.take_while(|line| !line.starts_with("## "));
    let table = section.filter(|line| line.starts_with("| `"));
    table.map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// Keys without a row, with more than one, or whose row names no test that exists; and rows of no key.
fn gaps(cases: &str, configuration: &str, tests: &BTreeSet<String>) -> Vec<String> {
    let keys: Vec<&str> = rows(configuration, "## `[limits]`").iter().map(|row| row[0]).collect();
    let rows = rows(cases, "## Limits");
    let met = |key: &&&str| {
        let rows: Vec<_> = rows.iter().filter(|row| row[0] == **key).collect();
        let [row] = &rows[..] else { return false };
        let named = named_in(row[2]);
        !named.is_empty() && named.iter().all(|name| tests.contains(name))
    };
    let unmet = keys.iter().filter(|key| !met(key)).map(|key| (*key).to_owned());
    let strange = rows.iter().map(|row| row[0]).filter(|limit| !keys.contains(limit)).map(str::to_owned);
    unmet.chain(strange).collect()
}

#[test]
fn every_limit_has_tests_that_meet_it() {
    let read = |name: &str| fs::read_to_string(root().join("docs").join(name)).expect(name);
    let (cases, configuration) = (read("cases.md"), read("configuration.md"));
    let tests = tests();
    assert_eq!(gaps(&cases, &configuration, &tests), Vec::<String>::new());
    assert_eq!(gaps(&cases.replace("| `wal` |", "| `log` |"), &configuration, &tests), ["`wal`", "`log`"]);
    let gone = cases.replace("a_long_log_of_the_store", "another");
    assert_eq!(gaps(&gone, &configuration, &tests), ["`wal`"], "the control");
}

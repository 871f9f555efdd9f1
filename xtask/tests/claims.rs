//! Every claim of SECURITY.md names tests, and each of them exists (spec: security §30).
//!
//! A claim is a row of a table whose head is `| Claim | Tests |`, its tests written as `test_names` has them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

#[path = "support/test_names.rs"]
mod test_names;

use test_names::{named_in, root, tests};

/// The sections there must be, in this order.
const SECTIONS: [&str; 4] = ["Reporting", "Assets", "Adversaries", "What is not promised"];

/// The adversaries that must be answered, each by a section of its own.
const ADVERSARIES: [&str; 9] = [
    "The author of a page or file a model reads",
    "The author of a repository",
    "An MCP server",
    "The author of a package",
    "A process of the same user",
    "Another user of the machine",
    "The local network",
    "The holder of a scoped token",
    "The thief of a disk",
];

/// The claims of a document, each with its tests.
fn claims(document: &str) -> BTreeMap<String, Vec<String>> {
    let mut claims = BTreeMap::new();
    let mut within = false;
    for line in document.lines() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        match cells.as_slice() {
            ["Claim", "Tests"] => within = true,
            [rule, ..] if rule.starts_with("---") => {}
            [claim, tests] if within && line.starts_with('|') => {
                claims.insert((*claim).to_owned(), named_in(tests));
            }
            _ => within = false,
        }
    }
    claims
}

/// Every claim without a test, and every test that does not exist.
fn broken(document: &str, tests: &BTreeSet<String>) -> Vec<String> {
    let mut broken = Vec::new();
    for (claim, named) in claims(document) {
        if named.is_empty() {
            broken.push(format!("no test: {claim}"));
        }
        let missing = named.iter().filter(|name| !tests.contains(*name));
        broken.extend(missing.map(|name| format!("no such test: {name}")));
    }
    broken
}

/// The parts that are missing of what SECURITY.md must say.
fn missing_sections(document: &str) -> Vec<String> {
    let headings = |mark: &str| -> Vec<String> {
        document.lines().filter_map(|line| line.strip_prefix(mark)).map(str::to_owned).collect()
    };
    let (sections, adversaries) = (headings("## "), headings("### "));
    let mut missing: Vec<String> = SECTIONS
        .iter()
        .filter(|name| !sections.iter().any(|held| held == *name))
        .map(ToString::to_string)
        .collect();
    missing.extend(
        ADVERSARIES
            .iter()
            .filter(|name| !adversaries.iter().any(|held| held == *name))
            .map(ToString::to_string),
    );
    // Each adversary is told what does not hold, too.
    for part in document.split("\n### ").skip(1) {
        let name = part.lines().next().unwrap_or_default();
        let own = part.split("\n## ").next().unwrap_or_default();
        if !own.contains("Does not hold:") {
            missing.push(format!("what does not hold against {name}"));
        }
    }
    missing
}

fn document() -> String {
    fs::read_to_string(root().join("SECURITY.md")).expect("SECURITY.md")
}

#[test]
fn every_claim_names_tests_that_exist() {
    let claims = claims(&document());
    assert!(claims.len() >= 20, "the claims were found: {}", claims.len());
    assert_eq!(broken(&document(), &tests()), Vec::<String>::new());
}

#[test]
fn every_adversary_is_told_what_holds_and_what_does_not() {
    assert_eq!(missing_sections(&document()), Vec::<String>::new());
}

#[test]
fn control_a_wrong_name_and_a_claim_without_a_test_are_found() {
    let real = "xtask::claims::control_a_wrong_name_and_a_claim_without_a_test_are_found";
    let sample = format!(
        "| Claim | Tests |\n|---|---|\n| True | `{real}` |\n| Misspelt | `{real}_`, `{real}` |\n| Helper | `xtask::claims::broken` |\n| Bare | by inspection |\n"
    );
    assert_eq!(
        broken(&sample, &tests()),
        [
            "no test: Bare".to_owned(),
            "no such test: xtask::claims::broken".to_owned(),
            format!("no such test: {real}_"),
        ]
    );
}

#[test]
fn control_a_section_that_is_missing_is_found() {
    let without = document().replace("## Assets", "## Else").replace("### An MCP server", "### Nobody");
    assert_eq!(missing_sections(&without), ["Assets", "An MCP server"]);
    let silent = document().replacen("Does not hold:", "Holds:", 1);
    assert_eq!(missing_sections(&silent).len(), 1);
}

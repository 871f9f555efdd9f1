//! A doc comment begins with the thing that it describes, by its term: no pronoun stands before a noun.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::path::{Path, PathBuf};

/// First words of a comment whose reader does not know what it is about.
const PRONOUNS: [&str; 9] = ["It", "Its", "They", "Their", "Them", "Those", "These", "Both", "The same"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            if !["tests", "target"].contains(&entry.file_name().to_str().unwrap()) {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Lines at which a comment begins with a pronoun, from 1.
fn pronouns(source: &str) -> Vec<usize> {
    let mut before = "";
    let mut found = Vec::new();
    for (index, line) in source.lines().map(str::trim_start).enumerate() {
        let is_doc = |line: &str| line.starts_with("///") || line.starts_with("//!");
        let words = line.get(4..).unwrap_or_default();
        let is_first = |pronoun: &&str| {
            words.strip_prefix(*pronoun).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        };
        if is_doc(line) && !is_doc(before) && PRONOUNS.iter().any(is_first) {
            found.push(index + 1);
        }
        before = line;
    }
    found
}

#[test]
fn a_doc_comment_begins_with_no_pronoun() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for folder in ["crates", "fuzz/fuzz_targets", "xtask"] {
        sources(&root.join(folder), &mut files);
    }
    assert!(files.len() > 500, "{}", files.len());
    let mut found = Vec::new();
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(root).unwrap().display().to_string();
        found.extend(pronouns(&source).into_iter().map(|line| format!("{name}:{line}")));
    }
    assert!(found.is_empty(), "begin these comments with what they describe: {}", found.join(", "));
}

#[test]
fn what_goes_on_is_no_beginning() {
    let source = "/// The tree of a session.\n/// Its tip is there.\nfn a() {}\n\n/// Its tip.\nfn b() {}\n//! Those.\n/// Italics.\n";
    assert_eq!(pronouns(source), [5, 7]);
}

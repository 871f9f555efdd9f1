//! What only Linux has stands in few places: another system's form would stand beside it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::path::{Path, PathBuf};

/// Sources that may name files of `/proc`: the way to an open descriptor, and measurements of processes. The sandbox is
/// of Linux as a whole.
const LINUX_ALONE: &[&str] = &[
    "crates/drawloom/src/bench/metrics.rs",
    "crates/drawloom/src/interrupt.rs",
    "crates/workspace/src/descriptor.rs",
    "xtask/src/soak/sample.rs",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs")
            && !path.to_string_lossy().ends_with("tests.rs")
        {
            found.push(path);
        }
    }
}

#[test]
fn files_of_proc_are_named_in_few_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut all = Vec::new();
    for krate in root.join("crates").read_dir().unwrap() {
        sources(&krate.unwrap().path().join("src"), &mut all);
    }
    sources(&root.join("xtask/src"), &mut all);
    let names_proc = |path: &&PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        text.split("#[cfg(test)]").next().unwrap_or_default().contains("/proc/")
    };
    let mut found: Vec<_> = all
        .iter()
        .filter(names_proc)
        .map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap())
        .filter(|path| !path.starts_with("crates/sandbox/src/"))
        .collect();
    found.sort_unstable();
    assert_eq!(found, LINUX_ALONE);
}

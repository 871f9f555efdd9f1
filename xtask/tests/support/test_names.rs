//! The names of all tests of the repository, as documents write them: `crate::path::test_name`, the crate without
//! `drawloom-`, then the path of the file in `src` or `tests`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The tests of every crate.
pub(crate) fn tests() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut crates = vec![("xtask".to_owned(), root().join("xtask"))];
    for entry in fs::read_dir(root().join("crates")).expect("crates") {
        let path = entry.expect("an entry").path();
        crates.push((path.file_name().unwrap().to_string_lossy().into_owned(), path));
    }
    for (name, path) in crates {
        for part in ["src", "tests"] {
            collect(&path.join(part), &name, &mut found);
        }
    }
    found
}

/// The tests that a cell of a table names.
pub(crate) fn named_in(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn collect(folder: &Path, module: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            collect(&path, &format!("{module}::{stem}"), found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let here = if ["main", "lib"].contains(&stem.as_str()) {
                module.to_owned()
            } else {
                format!("{module}::{stem}")
            };
            let source = fs::read_to_string(&path).expect("a source");
            found.extend(tests_of(&source).into_iter().map(|test| format!("{here}::{test}")));
        }
    }
}

/// Names of the functions of a source that are tests.
fn tests_of(source: &str) -> Vec<String> {
    let mut marked = false;
    let mut names = Vec::new();
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if let Some(after) = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn "))
            && std::mem::take(&mut marked)
        {
            names.extend(after.split('(').next().map(str::to_owned));
        }
    }
    names
}

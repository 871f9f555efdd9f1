//! The floor rule: a crate uses only crates on lower floors (ARCHITECTURE.md).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;
use std::process::Command;

/// Crates by floor, as ARCHITECTURE.md lays them out. Crates of one floor do not know each other.
const FLOORS: &[(&str, u32)] = &[
    ("drawloom-text", 0),
    ("drawloom-loom", 0),
    ("drawloom-gguf", 0),
    ("drawloom-media", 0),
    ("drawloom-egress", 0),
    ("drawloom-extract", 0),
    ("drawloom-store", 1),
    ("drawloom-model", 1),
    ("drawloom-weights", 1),
    ("drawloom-workspace", 1),
    ("drawloom-context", 2),
    ("drawloom-policy", 2),
    ("drawloom-sandbox", 2),
    ("drawloom-skills", 2),
    ("drawloom-capabilities", 3),
    ("drawloom-continuity", 3),
    ("drawloom-interop", 3),
    ("drawloom-mcp", 3),
    ("drawloom-tools", 3),
    ("drawloom-agent", 4),
    ("drawloom-commands", 5),
    ("drawloom", 7),
];

/// Crates that are no part of the program.
const OUTSIDE: [&str; 3] = ["xtask", "drawloom-paths", "drawloom-loom-testing"];

/// The only edges within a floor: on the lowest one the tree counts and folds text.
const WITHIN: &[(&str, &str)] = &[("drawloom-loom", "drawloom-text")];

/// Every broken rule among the normal dependencies of some packages.
fn broken(packages: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let floors: BTreeMap<&str, u32> = FLOORS.iter().copied().collect();
    let mut broken = Vec::new();
    for (name, dependencies) in packages {
        let Some(floor) = floors.get(name.as_str()) else {
            broken.push(format!("{name} stands on no floor"));
            continue;
        };
        for dependency in dependencies.iter().filter(|dependency| dependency.starts_with("drawloom")) {
            let below = floors.get(dependency.as_str()).is_some_and(|other| other < floor);
            if !below && !WITHIN.contains(&(name.as_str(), dependency.as_str())) {
                broken.push(format!("{name} (floor {floor}) uses {dependency}"));
            }
        }
    }
    broken
}

fn workspace() -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .filter(|package| !OUTSIDE.iter().any(|name| package["name"] == *name))
        .map(|package| {
            let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
            // Development dependencies are free: they have the kind "dev".
            let normal = dependencies.filter(|dependency| dependency["kind"].is_null());
            let names = normal.filter_map(|dependency| dependency["name"].as_str().map(str::to_owned));
            (package["name"].as_str().expect("name").to_owned(), names.collect())
        })
        .collect()
}

#[test]
fn every_crate_uses_only_lower_floors() {
    assert_eq!(broken(&workspace()), Vec::<String>::new());
}

#[test]
fn an_edge_upwards_or_sideways_is_found() {
    let mut packages = workspace();
    packages.get_mut("drawloom-model").expect("exists").push("drawloom-store".into());
    packages.get_mut("drawloom-loom").expect("exists").push("drawloom-context".into());
    packages.insert("drawloom-stray".into(), Vec::new());
    assert_eq!(broken(&packages).len(), 3);
}

/// Words that only code with I/O, a clock or a scheduler has.
const IMPURE: [&str; 8] =
    ["std::fs", "std::time", "std::net", "std::thread", "std::env", "std::process", "std::io", "tokio"];

/// Lines of a crate's sources that are not pure. Comments count too: there is no reason to name these there.
fn impure(source: &str) -> Vec<String> {
    let lines = source.lines().filter(|line| IMPURE.iter().any(|word| line.contains(word)));
    lines.map(str::to_owned).collect()
}

fn sources(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_lowest_floor_does_no_io_reads_no_clock_and_waits_for_nothing() {
    for name in ["text", "loom"] {
        let mut files = Vec::new();
        sources(
            &std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates").join(name).join("src"),
            &mut files,
        );
        assert!(files.len() > 5, "the sources of {name} were found");
        for file in files {
            let source = std::fs::read_to_string(&file).expect("a source");
            assert_eq!(impure(&source), Vec::<String>::new(), "{}", file.display());
        }
    }
}

#[test]
fn an_impure_line_is_found() {
    assert_eq!(impure("use std::fmt;\nlet now = std::time::Instant::now();").len(), 1);
}

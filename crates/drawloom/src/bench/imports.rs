//! How fast a tree arrives: reading, checking and verifying its file, and writing it whole; and a text that becomes one.

use std::time::Instant;

use commands::args::maintenance::ImportArgs;
use commands::args::tree::{Export, FormatArg, ModeArg, New, TreeCommand};
use commands::args::{TreeArg, ViewArg};
use commands::{Command, CommandError, CommandOutcome};

use super::corpus::{Corpus, PASSAGE};
use super::fixtures::{TreeShape, build_tree};
use super::harness::{Harness, failed};
use super::report::Report;
use super::scratch::Scratch;

/// Nodes that have to come in each second.
const BUDGET: f64 = 20_000.0;

/// The largest trees that are imported, by how many nodes an operation of theirs made: as written by people, and
/// as written by programs.
const SHAPES: [(u64, usize); 2] = [(20_000, 1), (100_000, 1_000)];

/// Bytes of the text that becomes a document, about.
const DOCUMENT: usize = 2_000_000;

/// How long a text may take to become a document, a passage a paragraph.
const DOCUMENT_BUDGET: f64 = 2.0;

/// Measures how long `tree new --file` takes with a long text.
pub(super) async fn measure_document(report: &mut Report<'_>, scratch: &Scratch) -> Result<(), CommandError> {
    report.note("making a document of a text of 2 MB");
    let file = scratch.at("novel.md");
    let mut corpus = Corpus::new(3);
    let mut text = String::with_capacity(DOCUMENT + PASSAGE * 8);
    while text.len() < DOCUMENT {
        for _ in 0..corpus.below(4) + 1 {
            text.push_str(&corpus.passage());
        }
        text.push_str("\n\n");
    }
    std::fs::write(&file, text).map_err(|error| CommandError::file("cannot write", &file, &error))?;
    let harness = Harness::open(&scratch.at("written"))?;
    let new = New { mode: ModeArg::Document, title: None, text: None, file: Some(file.clone()), split: None };
    let start = Instant::now();
    harness.app.run(&harness.asker, Command::Tree(TreeCommand::New(new))).await?;
    let taken = start.elapsed().as_secs_f64();
    report.row("make a document of a text of 2 MB, a passage a paragraph", taken, "s", Some(DOCUMENT_BUDGET));
    drop(harness);
    std::fs::remove_file(&file).map_err(|error| CommandError::file("cannot remove", &file, &error))?;
    scratch.remove("written")
}

/// Measures imports of trees of at most so many nodes.
pub(super) async fn measure(
    report: &mut Report<'_>,
    scratch: &Scratch,
    nodes: u64,
) -> Result<(), CommandError> {
    for (most, per_operation) in SHAPES {
        let nodes = nodes.min(most);
        report.note(&format!("importing a tree of {nodes} nodes, {per_operation} an operation"));
        let file = scratch.at("exported.jsonl");
        let harness = Harness::open(&scratch.at("from"))?;
        let shape = TreeShape { nodes, branched: true, per_operation, answered: 0 };
        let fixture = build_tree(&harness, &mut Corpus::new(2), shape).await?;
        let tree = TreeArg { tree: fixture.tree.to_string(), view: ViewArg::default() };
        let export = Export {
            tree,
            format: Some(FormatArg::Jsonl),
            share: false,
            with_context: false,
            output: Some(file.clone()),
        };
        harness.app.run(&harness.asker, Command::Tree(TreeCommand::Export(export))).await?;
        drop(harness);
        let harness = Harness::open(&scratch.at("to"))?;
        let import = ImportArgs { path: file.clone(), format: None, dry_run: false, copy: false };
        let start = Instant::now();
        let taken = match harness.app.run(&harness.asker, Command::Import(import)).await? {
            CommandOutcome::Imported(done) if done.skipped.is_empty() => done.nodes,
            _ => return Err(failed("import a tree", "not all of it came in")),
        };
        let rate = taken as f64 / start.elapsed().as_secs_f64();
        let name = format!("import a tree of {nodes} nodes, {per_operation} an operation");
        report.row(&name, rate, "nodes/s", Some(BUDGET));
        drop(harness);
        std::fs::remove_file(&file).map_err(|error| CommandError::file("cannot remove", &file, &error))?;
        scratch.remove("from")?;
        scratch.remove("to")?;
    }
    Ok(())
}

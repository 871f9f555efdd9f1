//! What grows with a tree, and what must not: opening it, its screen, changes, search, the file.

use std::time::{Duration, Instant};

use commands::CommandError;
use loom::plan::{EditAs, NewText};
use loom::{NodeId, Op, PositionId, TreeId};
use store::{Principal, SearchScope};

use super::corpus::{Corpus, PASSAGE};
use super::fixtures::{FixtureTree, TreeShape, build_tree};
use super::harness::{Harness, SCREEN, failed};
use super::metrics::{Processor, Times, exponent, memory};
use super::report::Report;
use super::scratch::{Probe, Scratch};

/// How often a store is opened.
const OPENINGS: usize = 20;

/// Changes of each kind: the slowest hundredth are twenty of them.
const CHANGES: usize = 2_000;

const SEARCHES: usize = 100;

/// Nodes of the tree whose every node is an operation of its own.
const SMALL: u64 = 20_000;

/// Measures trees of these sizes, in ascending order.
pub(super) async fn measure(
    report: &mut Report<'_>,
    scratch: &Scratch,
    sizes: &[u64],
) -> Result<(), CommandError> {
    let mut screens = Vec::new();
    let mut changes: Vec<Vec<(f64, f64)>> = vec![Vec::new(); KINDS.len()];
    for (at, nodes) in sizes.iter().enumerate() {
        let largest = at + 1 == sizes.len();
        report.note(&format!("a tree of {nodes} nodes: making it"));
        let mut corpus = Corpus::new(*nodes);
        let shape = TreeShape { nodes: *nodes, branched: true, per_operation: 1_000, answered: 1_000 };
        let harness = Harness::open(&scratch.at("tree"))?;
        let start = Instant::now();
        let fixture = build_tree(&harness, &mut corpus, shape).await?;
        let time = start.elapsed();
        if largest {
            let rate = *nodes as f64 / time.as_secs_f64();
            report.row("nodes written, 1,000 an operation", rate, "nodes/s", None);
        }
        if at == 0 {
            harness.verify(fixture.tree).await?;
        }
        drop(harness);
        report.note(&format!("a tree of {nodes} nodes: opening and changing it"));
        let before = memory("VmRSS");
        let screen = open_and_show(scratch, fixture.tree).await?;
        let name = format!("open a tree of {nodes} nodes and show its tip");
        report.row(&name, screen.median(), "ms, median", Some(10.0));
        report.row(&name, screen.percentile(0.99), "ms, p99", None);
        screens.push((*nodes as f64, screen.median()));
        let harness = Harness::open(&scratch.at("tree"))?;
        harness.screen(fixture.tree).await?;
        if let (true, Some(before), Some(after)) = (largest, before, memory("VmRSS")) {
            let name = format!("resident memory that opening a tree of {nodes} nodes adds");
            report.row(&name, after - before, "MiB", None);
            // What was freed before may be taken again without a trace above: the whole tells the bound.
            let name = format!("resident memory of all with a tree of {nodes} nodes open");
            report.row(&name, after, "MiB", None);
        }
        let warm = repeat(OPENINGS, async || harness.screen(fixture.tree).await).await?;
        report.row(
            &format!("show the tip of an open tree of {nodes} nodes"),
            warm.median(),
            "ms, median",
            None,
        );
        let measured = change(&harness, scratch, &mut corpus, &fixture).await?;
        for (kind, times) in measured.kinds.iter().enumerate() {
            changes[kind].push((*nodes as f64, times.median()));
        }
        if largest {
            report_changes(report, *nodes, &measured);
            search(report, &harness, &mut corpus, *nodes).await?;
        }
        drop(harness);
        if largest {
            let ratio = bytes_of(scratch, "tree")? / fixture.bytes as f64;
            report.row("store size by text, 1,000 nodes an operation", ratio, "× the text", Some(2.2));
        }
        scratch.remove("tree")?;
    }
    report.row("growth of opening and showing with nodes", exponent(&screens), "exponent", None);
    for (kind, points) in KINDS.iter().zip(changes) {
        report.row(&format!("growth of {kind} with nodes"), exponent(&points), "exponent", None);
    }
    Ok(())
}

/// A tree written as people write it, one node an operation: what it takes on the disk, and how fast it verifies.
pub(super) async fn measure_written(
    report: &mut Report<'_>,
    scratch: &Scratch,
    nodes: u64,
) -> Result<(), CommandError> {
    let nodes = nodes.min(SMALL);
    report.note(&format!("a tree of {nodes} nodes, one an operation"));
    let harness = Harness::open(&scratch.at("written"))?;
    let shape = TreeShape { nodes, branched: true, per_operation: 1, answered: 0 };
    let fixture = build_tree(&harness, &mut Corpus::new(1), shape).await?;
    let start = Instant::now();
    let found = harness.verify(fixture.tree).await;
    let taken = start.elapsed().as_secs_f64();
    let name = format!("verify a tree of {nodes} nodes");
    match found {
        Ok(found) => report.row(&name, found.nodes as f64 / taken, "nodes/s", None),
        // A read has 5 s.
        Err(error) if error.code == "too_long" => report.row(&name, taken, "s, not done by then", None),
        Err(error) => return Err(error),
    }
    drop(harness);
    let bytes = bytes_of(scratch, "written")?;
    let name = format!("store size by text, one node of {PASSAGE} bytes an operation, {nodes} nodes");
    report.row(&name, bytes / fixture.bytes as f64, "× the text", Some(2.6));
    scratch.remove("written")
}

/// Opens the store and shows the tip's screen, again and again.
async fn open_and_show(scratch: &Scratch, tree: TreeId) -> Result<Times, CommandError> {
    repeat(OPENINGS, async || {
        let harness = Harness::open(&scratch.at("tree"))?;
        let shown = harness.screen(tree).await?;
        if shown.nodes.len() != SCREEN {
            return Err(failed("show a screen", format!("{} passages came", shown.nodes.len())));
        }
        Ok(harness)
    })
    .await
}

/// How long something takes, often; what it returns is dropped outside of the time.
pub(super) async fn repeat<T>(
    times: usize,
    mut work: impl AsyncFnMut() -> Result<T, CommandError>,
) -> Result<Times, CommandError> {
    let mut taken = Vec::with_capacity(times);
    for _ in 0..times {
        let start = Instant::now();
        let done = work().await?;
        taken.push(start.elapsed());
        drop(done);
    }
    Ok(taken.into_iter().collect())
}

/// What is changed, in the order it is measured.
const KINDS: [&str; 5] = ["append", "edit", "switch", "select", "undo"];

/// Times of changes, and of syncing a small file in between.
struct Changes {
    kinds: Vec<Times>,
    /// Processor time of the store's writing thread.
    writing: Vec<Times>,
    /// Steps of the database for one change, reading and writing.
    steps: Vec<f64>,
    sync: Times,
}

/// Makes changes of each kind.
async fn change(
    harness: &Harness,
    scratch: &Scratch,
    corpus: &mut Corpus,
    fixture: &FixtureTree,
) -> Result<Changes, CommandError> {
    let probe_name = format!("probe-{}", fixture.tree);
    let mut probe = Probe::new(&scratch.at(&probe_name))?;
    let writer = Processor::of_thread("store-write");
    let (mut syncs, mut kinds, mut writing, mut steps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut edited: Vec<(PositionId, NodeId)> = Vec::new();
    let middle = fixture.trunk.len().saturating_sub(CHANGES) / 2;
    for kind in KINDS {
        let mut times: Vec<Duration> = Vec::with_capacity(CHANGES);
        let mut spent: Vec<Duration> = Vec::with_capacity(CHANGES);
        let steps_before = harness.app.runtime.store.statement_counts().steps;
        for at in 0..CHANGES {
            let op = match kind {
                "append" => Op::Append(NewText::owner(corpus.passage(), None)),
                "edit" => {
                    let position = fixture.trunk[(middle + at) % fixture.trunk.len()];
                    Op::Edit { position, text: corpus.passage(), edit_as: EditAs::Version }
                }
                "switch" => Op::Switch(fixture.branches[at % fixture.branches.len()]),
                "select" => {
                    let (position, version) = edited[at / 2 % edited.len()];
                    let version = if at % 2 == 0 { position.original() } else { version };
                    Op::Select { position, version }
                }
                _ => Op::Undo,
            };
            let position = if let Op::Edit { position, .. } = &op { Some(*position) } else { None };
            syncs.push(probe.sync()?);
            let (before, start) = (writer.spent(), Instant::now());
            let applied = harness.change(fixture.tree, op).await?;
            times.push(start.elapsed());
            spent.push(writer.spent().saturating_sub(before));
            if let (Some(position), Some((version, _))) = (position, applied.nodes.first()) {
                edited.push((position, *version));
            }
        }
        kinds.push(times.into_iter().collect());
        writing.push(spent.into_iter().collect());
        let stepped = harness.app.runtime.store.statement_counts().steps - steps_before;
        steps.push(stepped as f64 / CHANGES as f64);
    }
    Ok(Changes { kinds, writing, steps, sync: syncs.into_iter().collect() })
}

fn report_changes(report: &mut Report<'_>, nodes: u64, changes: &Changes) {
    let sync = &changes.sync;
    report.row("sync of a small file on the same disk", sync.median(), "ms, median", None);
    report.row("sync of a small file on the same disk", sync.percentile(0.99), "ms, p99", None);
    let measured = changes.kinds.iter().zip(&changes.writing).zip(&changes.steps);
    for (kind, ((times, writing), steps)) in KINDS.iter().zip(measured) {
        let name = format!("{kind} in a tree of {nodes} nodes");
        report.row(&name, times.median(), "ms, median", None);
        report.row(&name, times.percentile(0.99), "ms, p99", Some(2.0 + sync.percentile(0.99)));
        let own = times.median() - sync.median();
        report.row(&format!("{name}, less the sync"), own, "ms, median", None);
        let own = times.percentile(0.99) - sync.percentile(0.99);
        report.row(&format!("{name}, less the sync"), own, "ms, p99", Some(2.0));
        let name = format!("{name}, processor time of the writing thread");
        report.row(&name, writing.median(), "ms, median", None);
        report.row(&name, writing.percentile(0.99), "ms, p99", Some(2.0));
        report.row(&name, writing.percentile(1.0), "ms, the slowest", None);
        report.row(&format!("{kind} in a tree of {nodes} nodes"), *steps, "steps of SQLite", None);
    }
}

async fn search(
    report: &mut Report<'_>,
    harness: &Harness,
    corpus: &mut Corpus,
    nodes: u64,
) -> Result<(), CommandError> {
    report.note("searching it");
    let mut queries: Vec<(&str, Option<f64>, Vec<String>)> = Vec::new();
    let rare = |corpus: &mut Corpus, words: usize| {
        let words: Vec<String> = (0..words).map(|_| corpus.rare_word().to_owned()).collect();
        words.join(" ")
    };
    queries.push(("2 rare words", Some(50.0), (0..SEARCHES).map(|_| rare(corpus, 2)).collect()));
    queries.push(("3 rare words", Some(50.0), (0..SEARCHES).map(|_| rare(corpus, 3)).collect()));
    queries.push(("a Chinese word", None, (0..SEARCHES / 5).map(|_| corpus.chinese_word()).collect()));
    queries.push(("the commonest word", None, vec![corpus.common_word().to_owned(); 5]));
    for (what, budget, queries) in queries {
        let mut asked = queries.iter();
        let times = repeat(queries.len(), async || {
            let query = asked.next().map_or("", String::as_str);
            Ok(harness.app.runtime.store.search(&Principal::Owner, query, SearchScope::All, 20).await?)
        });
        let times = times.await?;
        let name = format!("search for {what} in {nodes} nodes");
        report.row(&name, times.median(), "ms, median", None);
        report.row(&name, times.percentile(0.95), "ms, p95", budget);
    }
    Ok(())
}

/// Bytes of a closed store.
fn bytes_of(scratch: &Scratch, home: &str) -> Result<f64, CommandError> {
    let path = scratch.at(home).join(store::home::DATABASE);
    let file = std::fs::metadata(&path).map_err(|error| CommandError::file("cannot read", &path, &error))?;
    Ok(file.len() as f64)
}

//! What must not cost more for what stands elsewhere: choices off the path, versions not shown, a removal, spools.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use commands::CommandError;
use loom::attribution::Attributions;
use loom::operation::TimelineEffect;
use loom::plan::{EditAs, NewText};
use loom::{
    Author, CellChange, CellKey, CellValue, NodeId, Op, OpKind, OpTarget, Operation, Plan, PositionId,
    RowError, ViewName,
};
use store::instance::InstanceId;
use store::spool::{GenerationName, Spool, SpoolHeader};
use store::{AttachedWrites, Forget, Principal};

use super::corpus::Corpus;
use super::fixtures::{FixtureTree, TreeShape, build_tree};
use super::harness::{Harness, failed};
use super::metrics::Times;
use super::report::Report;
use super::scratch::Scratch;
use super::sizes::repeat;

/// How often each is measured.
const TIMES: usize = 100;

/// Positions pruned, and as many selected, off the path.
const ELSEWHERE: usize = 10_000;

/// Cells of an operation that prunes and selects.
const CELLS: usize = 1_000;

const VERSIONS: usize = 400;

const SPOOLS: usize = 1_000;

/// Measures all that, in a tree of so many nodes.
pub(super) async fn measure(
    report: &mut Report<'_>,
    scratch: &Scratch,
    nodes: u64,
) -> Result<(), CommandError> {
    report.note(&format!("a tree of {nodes} nodes: choices, versions and a removal beside what is read"));
    let mut corpus = Corpus::new(nodes);
    let harness = Harness::open(&scratch.at("crowded"))?;
    let shape = TreeShape { nodes, branched: true, per_operation: 1_000, answered: 0 };
    let fixture = build_tree(&harness, &mut corpus, shape).await?;
    screen_and_append(report, &harness, &mut corpus, &fixture, "nothing pruned or selected").await?;
    let chosen = choose_elsewhere(&harness, &fixture).await?;
    let what = format!("{chosen} pruned and {chosen} selected elsewhere");
    screen_and_append(report, &harness, &mut corpus, &fixture, &what).await?;
    versions(report, &harness, &mut corpus, &fixture).await?;
    forget(report, &harness, &mut corpus, &fixture, nodes).await?;
    drop(harness);
    scratch.remove("crowded")?;
    spools(report, scratch)
}

async fn screen_and_append(
    report: &mut Report<'_>,
    harness: &Harness,
    corpus: &mut Corpus,
    fixture: &FixtureTree,
    what: &str,
) -> Result<(), CommandError> {
    // First, so that every screen is one of passages appended here, whatever the tree was made of.
    let append = repeat(TIMES, async || {
        harness.change(fixture.tree, Op::Append(NewText::owner(corpus.passage(), None))).await
    });
    let append = append.await?.median();
    let store = &harness.app.runtime.store;
    let before = store.statement_counts().steps;
    let screen = repeat(TIMES, async || harness.screen(fixture.tree).await).await?;
    let steps = (store.statement_counts().steps - before) as f64 / TIMES as f64;
    report.row(&format!("show the tip with {what}"), screen.median(), "ms, median", None);
    report.row(&format!("show the tip with {what}"), steps, "steps of SQLite", None);
    report.row(&format!("append with {what}"), append, "ms, median", None);
    Ok(())
}

/// Prunes positions off the path and selects at others; how many of each.
async fn choose_elsewhere(harness: &Harness, fixture: &FixtureTree) -> Result<usize, CommandError> {
    let wanted = 2 * ELSEWHERE;
    let view = ViewName::default();
    let elsewhere = harness.read(fixture.tree, move |rows| {
        let path = rows.upwards(loom::render::tip(rows, &view)?, usize::MAX)?;
        let path: HashSet<PositionId> = path.into_iter().map(|position| position.id).collect();
        let (mut found, mut after) = (Vec::new(), None);
        while found.len() < wanted {
            let page = rows.nodes_in_order(after, CELLS)?;
            let Some(last) = page.last() else { break };
            after = Some((last.seq, last.place));
            let originals = page.iter().filter(|row| row.node.is_original() && !row.node.origins.is_empty());
            found.extend(originals.map(|row| row.node.position).filter(|at| !path.contains(at)));
        }
        Ok(found)
    });
    let mut elsewhere = elsewhere.await?;
    elsewhere.truncate(wanted);
    let view = ViewName::default();
    let cells: Vec<CellChange> = elsewhere
        .iter()
        .enumerate()
        .map(|(index, at)| match index % 2 {
            0 => (CellKey::Pruned { target: OpTarget::Position(*at) }, CellValue::Set),
            _ => (CellKey::Selected { view: view.clone(), position: *at }, CellValue::Node(at.original())),
        })
        .map(|(key, new)| CellChange { key, old: CellValue::None, new })
        .collect();
    for cells in cells.chunks(CELLS) {
        let op = Operation {
            tree: fixture.tree,
            agent: Author::OWNER.to_owned(),
            view: Some(view.clone()),
            kind: OpKind::Prune,
            at: harness.app.now(),
            cells: cells.to_vec(),
            nodes: Vec::new(),
            skipped: Vec::new(),
            timeline: TimelineEffect::Push,
        };
        let plan = Plan { op: Some(op), ..Plan::default() };
        harness
            .app
            .runtime
            .store
            .apply(&Principal::Owner, fixture.tree, plan, AttachedWrites::nothing())
            .await?;
    }
    Ok(elsewhere.len() / 2)
}

async fn versions(
    report: &mut Report<'_>,
    harness: &Harness,
    corpus: &mut Corpus,
    fixture: &FixtureTree,
) -> Result<(), CommandError> {
    let position = fixture.trunk[fixture.trunk.len() - 1];
    for _ in 0..VERSIONS {
        let edit = Op::Edit { position, text: corpus.passage(), edit_as: EditAs::Version };
        harness.change(fixture.tree, edit).await?;
    }
    let screen = repeat(TIMES, async || harness.screen(fixture.tree).await).await?;
    let name = format!("show the tip with {VERSIONS} versions of a node");
    report.row(&name, screen.median(), "ms, median", None);
    let edit = repeat(20, async || {
        let edit = Op::Edit { position, text: corpus.passage(), edit_as: EditAs::Version };
        harness.change(fixture.tree, edit).await
    });
    let name = format!("edit with {VERSIONS} versions of a node");
    report.row(&name, edit.await?.median(), "ms, median", None);
    let told = harness.app.runtime.store.cursor().await?;
    let attributed = async || {
        let attributed = harness.read(fixture.tree, move |rows| {
            let shown = loom::resolve::shown(rows, &ViewName::default(), position)?;
            let row = rows.node(shown)?.ok_or_else(|| RowError::missing("node", shown))?;
            let mut authors = Attributions::new(rows);
            authors.of(&row)?;
            Ok(authors.into_computed())
        });
        attributed.await
    };
    let name = format!("authors of a node of {VERSIONS} versions");
    report.row(&name, repeat(5, attributed).await?.median(), "ms, median", None);
    let store = &harness.app.runtime.store;
    store.keep_attributions(&Principal::Owner, fixture.tree, attributed().await?, told).await?;
    report.row(&format!("{name}, kept"), repeat(20, attributed).await?.median(), "ms, median", None);
    Ok(())
}

/// Forgets a node while another one writes.
async fn forget(
    report: &mut Report<'_>,
    harness: &Harness,
    corpus: &mut Corpus,
    fixture: &FixtureTree,
    nodes: u64,
) -> Result<(), CommandError> {
    let store = &harness.app.runtime.store;
    let node: NodeId = fixture.trunk[fixture.trunk.len() / 2].original();
    let what = Forget::Node { tree: fixture.tree, node };
    let done = std::cell::Cell::new(false);
    let removal = async {
        let start = Instant::now();
        let forgotten = store.forget(&Principal::Owner, &what, harness.app.now()).await;
        done.set(true);
        forgotten.map(|_| start.elapsed())
    };
    let mut longest = Duration::ZERO;
    let writer = async {
        while !done.get() {
            let start = Instant::now();
            harness.change(fixture.tree, Op::Append(NewText::owner(corpus.passage(), None))).await?;
            longest = longest.max(start.elapsed());
        }
        Ok::<_, CommandError>(())
    };
    let (taken, written) = tokio::join!(removal, writer);
    written?;
    let name = format!("forget a node in a tree of {nodes} nodes");
    report.row(&name, super::metrics::ms(taken?), "ms", Some(1_000.0));
    let name = format!("longest wait of a writer while a node of {nodes} is forgotten");
    report.row(&name, super::metrics::ms(longest), "ms", Some(100.0));
    Ok(())
}

/// Spools that all receive and are brought to the device; as many as files may be open.
fn spools(report: &mut Report<'_>, scratch: &Scratch) -> Result<(), CommandError> {
    report.note("many spools");
    let folder = scratch.at("spools");
    std::fs::create_dir(&folder).map_err(|error| CommandError::file("cannot make", &folder, &error))?;
    let instance = InstanceId::generate(1).map_err(|error| failed("name this run", error))?;
    let mut spools = Vec::new();
    for number in 0..SPOOLS {
        let name =
            GenerationName::try_from(format!("g{number}")).map_err(|error| failed("name a spool", error))?;
        let header = SpoolHeader::new(name, instance, 1, "bench", 1);
        let Ok(spool) = Spool::create(&folder, &header) else { break };
        spools.push(spool);
    }
    let mut taken = Vec::new();
    let start = Instant::now();
    // Long enough that each is synced several times.
    while start.elapsed() < Duration::from_secs(2) {
        for spool in &mut spools {
            let start = Instant::now();
            spool.append(&[0x61; 100]).map_err(|error| failed("write a spool", error))?;
            taken.push(start.elapsed());
        }
    }
    let (times, count): (Times, usize) = (taken.into_iter().collect(), spools.len());
    report.row(&format!("append to one of {count} spools that sync"), times.median(), "ms, median", None);
    report.row(
        &format!("append to one of {count} spools that sync"),
        times.percentile(0.99),
        "ms, p99",
        None,
    );
    drop(spools);
    scratch.remove("spools")
}

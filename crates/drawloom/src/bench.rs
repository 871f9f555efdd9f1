//! `drawloom bench`: what the tree and its store cost on this machine, beside the budgets they are to keep.
//!
//! Everything is made in a temporary folder and measured through what every surface uses: a home, its store,
//! [`commands::App`]. Times of changes contain a sync of the disk, which is measured in between on the same disk,
//! so that the program's own part can be told from it. Growth is told as the exponent that fits the sizes best
//! (spec: scale §1).

mod agent_turns;
mod corpus;
mod crowded;
mod fixtures;
mod harness;
mod imports;
mod metrics;
mod model_server;
mod paths;
mod report;
mod routing;
mod scratch;
mod scripted;
mod sizes;
mod starts;
mod tools;
mod turns;
mod wire;

use std::pin::Pin;

use commands::CommandError;
use commands::args::maintenance::{Bench, BenchArg};
use commands::results::maintenance::BenchRows;

use report::Report;
use scratch::Scratch;

/// The longest path that is measured.
const LONGEST_PATH: u64 = 100_000;

/// The smallest tree that says anything.
const FEWEST: u64 = 1_000;

/// The smallest workspace that says anything.
const FEWEST_FILES: u64 = 100;

/// Measures everything; tells `progress` what it is at. Runs a runtime of its own, so that it is not to be called
/// within one. A million nodes take minutes and most of a gigabyte of disk for the time.
///
/// # Errors
/// A size that is too small, a disk that is full, or a tree that does not verify.
pub(crate) fn run(args: &Bench, progress: &mut dyn FnMut(&str)) -> Result<BenchRows, CommandError> {
    if args.what == BenchArg::Turn {
        let mut report = Report::new(progress);
        let scratch = Scratch::new()?;
        turns::measure(&mut report, &scratch)?;
        agent_turns::measure(&mut report, &scratch, longest_turn(args))?;
        return Ok(report.finish());
    }
    if args.what == BenchArg::Routing {
        let data = args.data.as_deref().ok_or_else(|| {
            CommandError::usage("routing is measured on labelled requests", "give their folder: --data DIR")
        })?;
        let mut report = Report::new(progress);
        routing::measure(&mut report, &Scratch::new()?, data)?;
        return Ok(report.finish());
    }
    if matches!(args.what, BenchArg::Tools | BenchArg::All) && args.files < FEWEST_FILES {
        let message = format!("a workspace of {} files says nothing about large ones", args.files);
        return Err(CommandError::usage(message, format!("give --files at least {FEWEST_FILES}")));
    }
    if args.what == BenchArg::Tools {
        let mut report = Report::new(progress);
        tools::measure(&mut report, &Scratch::new()?, args.files)?;
        return Ok(report.finish());
    }
    if args.nodes < FEWEST {
        let message = format!("a tree of {} nodes says nothing about large ones", args.nodes);
        return Err(CommandError::usage(message, format!("give --nodes at least {FEWEST}")));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| harness::failed("start a runtime", error))?;
    let scratch = Scratch::new()?;
    let mut report = Report::new(progress);
    starts::measure(&mut report, &scratch);
    if args.what == BenchArg::All {
        turns::measure(&mut report, &scratch)?;
        agent_turns::measure(&mut report, &scratch, longest_turn(args))?;
        tools::measure(&mut report, &scratch, args.files)?;
    }
    let measured: Pin<Box<dyn Future<Output = Result<(), CommandError>> + '_>> = Box::pin(async {
        sizes::measure(&mut report, &scratch, &powers(1_000, args.nodes)).await?;
        sizes::measure_written(&mut report, &scratch, args.nodes).await?;
        crowded::measure(&mut report, &scratch, args.nodes).await?;
        imports::measure(&mut report, &scratch, args.nodes).await?;
        imports::measure_document(&mut report, &scratch).await?;
        paths::measure(&mut report, &scratch, &powers(100, args.nodes.min(LONGEST_PATH))).await
    });
    runtime.block_on(measured)?;
    wire::measure(&mut report)?;
    if let Some(peak) = metrics::memory("VmHWM") {
        report.row("resident memory of this benchmark at its peak", peak, "MiB", None);
    }
    Ok(report.finish())
}

/// Calls of the longest turn: each makes two nodes of a path of at most 10⁴.
fn longest_turn(args: &Bench) -> usize {
    usize::try_from(args.nodes.min(10_000) / 2).unwrap_or_default()
}

/// Sizes to measure: `first` and its multiples by ten up to `last`, which is always among them. At least two where
/// growth is to be told.
fn powers(first: u64, last: u64) -> Vec<u64> {
    let mut sizes: Vec<u64> = std::iter::successors(Some(first), |size| size.checked_mul(10))
        .take_while(|size| *size < last)
        .collect();
    if sizes.is_empty() {
        sizes.push((last / 2).max(1));
    }
    sizes.push(last);
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_end_with_the_one_asked_for_and_tell_growth() {
        assert_eq!(powers(1_000, 1_000_000), [1_000, 10_000, 100_000, 1_000_000]);
        assert_eq!(powers(1_000, 25_000), [1_000, 10_000, 25_000]);
        assert_eq!(powers(1_000, 1_000), [500, 1_000]);
    }

    #[test]
    fn a_tree_too_small_to_tell_anything_is_refused() {
        let args = Bench { what: BenchArg::Loom, nodes: 10, files: 100, data: None };
        assert_eq!(run(&args, &mut |_| {}).unwrap_err().exit, 2);
        let args = Bench { what: BenchArg::Tools, nodes: 1_000, files: 99, data: None };
        assert_eq!(run(&args, &mut |_| {}).unwrap_err().exit, 2);
    }

    /// No time is asserted: a busy machine does not decide.
    #[test]
    fn every_row_is_there_and_is_a_number() {
        let mut said = 0;
        let args = Bench { what: BenchArg::Loom, nodes: 1_000, files: 100, data: None };
        let rows = run(&args, &mut |_| said += 1).unwrap().rows;
        for row in &rows {
            assert!(row.value.is_finite(), "{row:?}");
        }
        let expected = [
            "start, `drawloom --version`",
            "start, `drawloom doctor --quick`",
            "open a tree of 1000 nodes and show its tip",
            "append in a tree of 1000 nodes, less the sync",
            "edit in a tree of 1000 nodes, less the sync",
            "switch in a tree of 1000 nodes, less the sync",
            "select in a tree of 1000 nodes, less the sync",
            "undo in a tree of 1000 nodes, less the sync",
            "search for 2 rare words in 1000 nodes",
            "search for the commonest word in 1000 nodes",
            "store size by text, one node of 200 bytes an operation, 1000 nodes",
            "verify a tree of 1000 nodes",
            "import a tree of 1000 nodes, 1 an operation",
            "import a tree of 1000 nodes, 1000 an operation",
            "make a document of a text of 2 MB, a passage a paragraph",
            "append with nothing pruned or selected",
            "authors of a node of 400 versions",
            "authors of a node of 400 versions, kept",
            "longest wait of a writer while a node of 1000 is forgotten",
            "render a path of 1000",
            "render a path of 1000, with authors",
            "last screen of a path of 1000, drift marks included",
            "edit in the middle of a path of 1000",
            "put a request together at the end of a path of 1000",
            "growth of opening and showing with nodes",
            "growth of append with nodes",
            "growth of rendering all with the path",
            "responses on disk, openai_chat",
        ];
        for name in expected {
            assert!(rows.iter().any(|row| row.name == name), "no row {name:?} in {rows:#?}");
        }
        assert!(said > 5);
    }
}

//! What grows with the length of a path: rendering all of it, and nothing else.

use commands::CommandError;
use context::manifest::ContinuationForm;
use context::{Estimator, TokenBudget, document::DocumentRequest};
use loom::plan::EditAs;
use loom::render::{Show, render};
use loom::{Op, ViewName};

use super::corpus::Corpus;
use super::fixtures::{TreeShape, build_tree};
use super::harness::{Harness, failed};
use super::metrics::exponent;
use super::report::Report;
use super::scratch::Scratch;
use super::sizes::repeat;

const TIMES: usize = 40;

/// How often a whole path is rendered.
const RENDERS: usize = 5;

/// Tokens of the model a request is made for.
const WINDOW: u64 = 32_768;

/// Measures documents that are one path of these lengths, in ascending order.
pub(super) async fn measure(
    report: &mut Report<'_>,
    scratch: &Scratch,
    lengths: &[u64],
) -> Result<(), CommandError> {
    let harness = Harness::open(&scratch.at("paths"))?;
    let mut growth = [const { Vec::new() }; 4];
    for (at, length) in lengths.iter().enumerate() {
        let largest = at + 1 == lengths.len();
        report.note(&format!("a path of {length} positions"));
        let mut corpus = Corpus::new(*length);
        let shape = TreeShape { nodes: *length, branched: false, per_operation: 1_000, answered: 200 };
        let fixture = build_tree(&harness, &mut corpus, shape).await?;
        let tree = fixture.tree;

        // Before the screen, so that what it shows has drifted.
        let mut middle = (fixture.trunk.len() / 2..fixture.trunk.len()).chain(0..fixture.trunk.len());
        let edit = repeat(TIMES, async || {
            let position = fixture.trunk[middle.next().unwrap_or_default()];
            harness
                .change(tree, Op::Edit { position, text: corpus.passage(), edit_as: EditAs::Version })
                .await
        });
        let edit = edit.await?;
        let whole = repeat(RENDERS, async || {
            let show = Show { drafts: true, spans: false };
            let text =
                harness.read(tree, move |rows| Ok(render(rows, &ViewName::default(), show)?.text.len()));
            let length = text.await?;
            if length == 0 { Err(failed("render a path", "it is empty")) } else { Ok(()) }
        });
        let whole = match whole.await {
            Err(error) if error.code == "too_long" => None,
            whole => Some(whole?),
        };
        let authors = repeat(1, async || {
            let show = Show { drafts: true, spans: true };
            let spans =
                harness.read(tree, move |rows| Ok(render(rows, &ViewName::default(), show)?.spans.len()));
            spans.await
        });
        let authors = match authors.await {
            Err(error) if error.code == "too_long" => 5_000.0,
            authors => authors?.median(),
        };
        let screen = repeat(TIMES, async || {
            let shown = harness.screen(tree).await?;
            // The edits stand above the last answers, unless the path is hardly longer than the screen.
            if shown.nodes.iter().any(|node| node.drifted) {
                Ok(())
            } else {
                Err(failed("find drift", "none is marked"))
            }
        });
        let screen = screen.await?;
        let request = repeat(TIMES, async || {
            let asked = DocumentRequest {
                view: ViewName::default(),
                from: None,
                way: ContinuationForm::Raw,
                budget: TokenBudget::new(WINDOW, 1_024, None),
                drafts: false,
                system: None,
                context: Vec::new(),
                instruction: Vec::new(),
                again: None,
                before: None,
            };
            let made = harness
                .read(tree, move |rows| Ok(context::document::document(rows, &asked, &Estimator::default())))
                .await?;
            Ok(made?)
        });
        let request = request.await?;

        let all_budget = largest.then_some(250.0);
        let all = format!("render a path of {length}");
        match &whole {
            Some(whole) => report.row(&all, whole.median(), "ms, median", all_budget),
            // A read has 5 s.
            None => report.row(&all, 5_000.0, "ms, not done by then", all_budget),
        }
        report.row(&format!("{all}, with authors"), authors, "ms, 5,000: not done by then", None);
        let last = format!("last screen of a path of {length}, drift marks included");
        report.row(&last, screen.median(), "ms, median", Some(5.0));
        report.row(&last, screen.percentile(0.99), "ms, p99", None);
        let edited = format!("edit in the middle of a path of {length}");
        report.row(&edited, edit.median(), "ms, median", None);
        report.row(&edited, edit.percentile(0.99), "ms, p99", None);
        let assembled = format!("put a request together at the end of a path of {length}");
        report.row(&assembled, request.median(), "ms, median", None);
        for (points, times) in growth.iter_mut().zip([whole, Some(screen), Some(edit), Some(request)]) {
            points.extend(times.map(|times| (*length as f64, times.median())));
        }
    }
    let kinds = ["rendering all", "the last screen", "an edit in the middle", "putting a request together"];
    for (kind, points) in kinds.iter().zip(growth) {
        let name = format!("growth of {kind} with the path");
        report.row(&name, exponent(&points), "exponent", None);
    }
    drop(harness);
    scratch.remove("paths")
}

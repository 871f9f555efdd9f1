//! Drift over stored rows: when a choice was taken back counts as well (spec: loom §3).

use loom::drift::is_drifted;
use loom::path::{ViewOverrides, position};
use loom::render::tip;
use loom::{Mode, NodeId, Op, OpTarget, PositionId, Run, ViewName};
use store::read;

use super::both::each;
use super::generations::{answer, begin, generation};
use super::home::{OWNER, Page};

/// The run of the path between two positions, as a request made now would send it.
async fn run(page: &Page, from: PositionId, to: PositionId) -> Run {
    let run = read(&page.home.store, OWNER, page.tree, move |rows| {
        let view = ViewName::default();
        let path = ViewOverrides::read(rows, &view, tip(rows, &view)?)?;
        let digest = path.digest(&position(rows, from)?, &position(rows, to)?);
        Ok(Run { from, to, digest })
    });
    run.await.unwrap()
}

async fn drifts(page: &Page, node: NodeId) -> bool {
    let drifts = read(&page.home.store, OWNER, page.tree, move |rows| {
        let view = ViewName::default();
        let path = ViewOverrides::read(rows, &view, tip(rows, &view)?)?;
        let row = rows.node(node)?.unwrap();
        is_drifted(rows, &path, &position(rows, row.node.position)?, &row)
    });
    drifts.await.unwrap()
}

#[test]
fn an_answer_to_what_had_something_left_out_drifts_once_it_is_taken_in_again() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let first = page.append("It rained.").await.as_position();
        let left_out = page.append(" It poured.").await.as_position();
        page.change(Op::Exclude(OpTarget::Position(left_out))).await;
        let mut asked = generation(&page, "It rained.").await;
        asked.row.runs = vec![run(&page, first, left_out).await];
        begin(&page, &asked).await;
        let node = answer(&page, &asked, " Then it stopped.").await;
        assert!(!drifts(&page, node).await);
        page.change(Op::Include(OpTarget::Position(left_out))).await;
        assert!(drifts(&page, node).await, "nothing is left out any more, but when that changed is known");
        page.change(Op::Exclude(OpTarget::Position(left_out))).await;
        assert!(!drifts(&page, node).await);
    });
}

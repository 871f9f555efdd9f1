//! Plans made from stale slices either apply unchanged or conflict (spec: loom §10.9).

use drawloom_loom::plan::NewText;
use drawloom_loom::verify::Status;
use drawloom_loom::{Digest, Op, OpRecord, Seq, Timeline, TreeReader};
use proptest::prelude::*;

use crate::support::cases;
use crate::support::pair::{Action, Pair, actions};
use loom_testing::{ApplyError, Fixture, WriteRows, main_view};

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn a_stale_plan_applies_unchanged_or_conflicts(
        actions in actions(20),
        mine in actions(2),
        theirs in actions(6),
        view in 0..3_usize,
    ) {
        let mut pair = Pair::new();
        for action in &actions {
            pair.act(action);
        }
        let (of, act) = pair.meant(&mine[0]);
        let name = pair.view(of);
        let op = pair.op(&act);
        let Ok(plan) = pair.desk.plan_in(&name, op) else { return Ok(()) };
        for action in &theirs {
            pair.act(&Action { view, ..action.clone() });
        }
        let before = format!("{:?}", pair.desk.tree);
        match pair.desk.tree.apply(plan.clone()) {
            Ok(_) => {
                for node in &plan.nodes {
                    prop_assert_eq!(&pair.desk.tree.node(node.id).unwrap().unwrap().node, node);
                }
                for change in plan.op.iter().flat_map(|op| &op.cells) {
                    let now = pair.desk.tree.cell(&change.key).unwrap().value;
                    let is_row = !matches!(change.key, drawloom_loom::CellKey::Draft { .. });
                    prop_assert!(!is_row || now == change.new);
                }
            }
            Err(ApplyError::Conflict(_)) => prop_assert_eq!(format!("{:?}", pair.desk.tree), before),
            Err(other) => prop_assert!(false, "{other}"),
        }
        let report = pair.desk.verify();
        prop_assert_eq!(report.status, Status::Valid, "{:?}", report.problems);
        let numbers: Vec<u64> =
            pair.desk.tree.operations(Seq(0), usize::MAX).unwrap().iter().map(|record| record.seq.0).collect();
        prop_assert_eq!(&numbers[..], (1..=numbers.len() as u64).collect::<Vec<_>>());
    }
}

#[test]
fn two_appends_from_one_slice_are_a_conflict() {
    let mut desk = Fixture::buffer();
    let append = |text: &str| Op::Append(NewText::owner(text, None));
    let late = desk.plan_in(&main_view(), append("late")).unwrap();
    desk.run(append("first")).unwrap();
    assert!(matches!(desk.tree.apply(late), Err(ApplyError::Conflict(_))));
    assert_eq!(desk.text(), "first");
}

#[test]
fn typing_meanwhile_is_a_conflict_for_a_commit() {
    let mut desk = Fixture::buffer();
    desk.typed("a");
    let commit = desk.plan_in(&main_view(), Op::Commit).unwrap();
    desk.typed("ab");
    assert!(matches!(desk.tree.apply(commit), Err(ApplyError::Conflict(_))));
    assert_eq!(desk.text(), "ab");
}

#[test]
fn control_a_store_that_does_not_compare_breaks_the_log() {
    let mut desk = Fixture::buffer();
    let append = |text: &str| Op::Append(NewText::owner(text, None));
    let late = desk.plan_in(&main_view(), append("late")).unwrap();
    desk.run(append("first")).unwrap();
    // The double: what a store would do that takes every plan as it comes.
    let operations = desk.tree.operations(Seq(0), usize::MAX).unwrap();
    let prev = operations.last().map_or(Digest::ZERO, |record| record.hash);
    let seq = Seq(operations.len() as u64 + 1);
    let before: Timeline = desk.tree.timeline(&main_view()).unwrap();
    let record = OpRecord::bind(late.op.unwrap(), seq, prev, before).unwrap();
    for position in late.positions {
        desk.tree.restore_position(position);
    }
    for (place, node) in late.nodes.into_iter().enumerate() {
        let short_id = format!("late{place}");
        let place = place as u32;
        desk.tree.restore_node(drawloom_loom::NodeRow { node, seq, place, short_id, purged: false });
    }
    desk.tree.restore_operation(record);
    assert_eq!(desk.verify().status, Status::Invalid);
}

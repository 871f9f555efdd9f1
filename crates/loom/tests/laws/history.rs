//! Undo and redo (spec: loom §10.5): back through everything and forward again, keystrokes included; with a
//! second writer in between only cells still owned change, and the rest is named.

use drawloom_loom::operation::TimelineEffect;
use drawloom_loom::plan::{EditAs, NewText};
use drawloom_loom::verify::Status;
use drawloom_loom::{CellChange, CellKey, Op, OpTarget, Refusal, Slot, TreeReader, ViewName};
use proptest::prelude::*;

use crate::support::cases;
use crate::support::model_ops::Do;
use crate::support::pair::{Kind, Pair, actions};
use loom_testing::{Fixture, main_view};

/// Renderings on the way, the first and the last included.
fn all_the_way(pair: &mut Pair, op: &Op) -> Vec<String> {
    let mut seen = vec![pair.desk.text()];
    while pair.desk.run(op.clone()).is_ok() {
        seen.push(pair.desk.text());
    }
    seen
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn redo_passes_every_rendering_undo_passed(actions in actions(30)) {
        let mut pair = Pair::new();
        for action in actions.iter().filter(|action| action.kind != Kind::NewView) {
            pair.act(action);
        }
        while pair.desk.run(Op::Redo).is_ok() {}
        let back = all_the_way(&mut pair, &Op::Undo);
        prop_assert_eq!(&back[back.len() - 1], "", "a tree that is taken back to its beginning is empty");
        let mut forward = all_the_way(&mut pair, &Op::Redo);
        forward.reverse();
        prop_assert_eq!(back, forward);
        pair.nothing_lost();
        prop_assert_eq!(pair.desk.verify().status, Status::Valid);
    }

    #[test]
    fn undo_passes_every_rendering_there_was(actions in actions(30)) {
        // Without typing each operation is one step, so that every rendering comes back in turn.
        let mut pair = Pair::new();
        let mut seen = vec![pair.desk.text()];
        for action in &actions {
            if matches!(action.kind, Kind::TypeBuffer | Kind::TypeEdit | Kind::Undo | Kind::Redo | Kind::NewView) {
                continue;
            }
            let before = pair.desk.tree.timeline(&main_view()).unwrap().depth;
            pair.act(action);
            if pair.desk.tree.timeline(&main_view()).unwrap().depth > before {
                seen.push(pair.desk.text());
            }
        }
        let mut back = all_the_way(&mut pair, &Op::Undo);
        back.reverse();
        prop_assert_eq!(back, seen);
    }

    #[test]
    fn undo_changes_what_it_still_owns_and_names_the_rest(mine in actions(12), theirs in actions(12)) {
        let mut pair = Pair::new();
        pair.perform(0, &Do::NewView);
        for action in &mine {
            pair.act(&crate::support::pair::Action { view: 0, ..action.clone() });
        }
        for action in &theirs {
            pair.act(&crate::support::pair::Action { view: 1, ..action.clone() });
        }
        loop {
            let before = pair.desk.tree.clone();
            let Ok(plan) = pair.desk.run(Op::Undo) else { break };
            let Some(op) = plan.op else { continue };
            let TimelineEffect::Undo { of, .. } = &op.timeline else { panic!("{op:?}") };
            let undone: Vec<_> = of.iter().filter_map(|seq| before.operation(*seq).unwrap()).collect();
            // Each cell of what was undone was either changed or named; what was named was another's by then.
            for key in undone.iter().flat_map(|record| &record.op.cells).map(|change| &change.key) {
                let changed = op.cells.iter().any(|change| change.key == *key);
                prop_assert!(changed != op.skipped.contains(key), "{key} was neither changed nor named");
                // Newest first: an answer stands before the commit it belongs to.
                let wrote = undone.iter().flat_map(|record| &record.op.cells).find(|c| c.key == *key).unwrap();
                let held = before.cell(key).unwrap().value;
                if changed && !matches!(key, CellKey::Draft { .. }) {
                    prop_assert_eq!(held, wrote.new.clone());
                } else if !matches!(key, CellKey::Draft { .. } | CellKey::Tip { .. } | CellKey::Pruned { .. }) {
                    prop_assert_ne!(held, wrote.new.clone());
                }
            }
        }
        prop_assert_eq!(pair.desk.verify().status, Status::Valid);
        pair.nothing_lost();
    }
}

fn other(desk: &mut Fixture) -> ViewName {
    let name: ViewName = "other".parse().unwrap();
    desk.run(Op::NewView { name: name.clone(), agent: "reader".into() }).unwrap();
    name
}

#[test]
fn a_buffer_followed_by_append_gets_a_plan() {
    let mut desk = Fixture::buffer();
    desk.typed("a ");
    desk.append("b");
    assert_eq!(desk.text(), "a b");
}

#[test]
fn undo_of_prune_goes_back_to_where_the_view_was() {
    let mut desk = Fixture::buffer();
    let first = desk.append("a");
    desk.append("b");
    desk.run(Op::Prune(OpTarget::Position(first))).unwrap();
    assert_eq!(desk.text(), "");
    desk.run(Op::Undo).unwrap();
    assert_eq!(desk.text(), "ab");
}

#[test]
fn redo_of_prune_takes_along_a_view_that_came_there_meanwhile() {
    let mut desk = Fixture::buffer();
    let first = desk.append("a");
    let reader = other(&mut desk);
    desk.run(Op::Prune(OpTarget::Position(first))).unwrap();
    desk.run(Op::Undo).unwrap();
    desk.run_in(&reader, Op::Append(NewText::owner("b", None))).unwrap();
    desk.run(Op::Redo).unwrap();
    assert_eq!(desk.text_of(&reader), "");
    assert_eq!(desk.tip_of(&reader), desk.root());
    desk.run(Op::Undo).unwrap();
    assert_eq!(desk.text_of(&reader), "ab");
}

#[test]
fn undo_never_hides_the_last_visible_version() {
    let mut desk = Fixture::buffer();
    let at = desk.append("a");
    let b = desk.edit(at, "b").unwrap();
    desk.run(Op::Prune(OpTarget::Version(b))).unwrap();
    desk.run(Op::Restore(OpTarget::Version(b))).unwrap();
    let reader = other(&mut desk);
    desk.run_in(&reader, Op::Prune(OpTarget::Version(at.original()))).unwrap();
    let plan = desk.run(Op::Undo).unwrap();
    assert_eq!(plan.op.unwrap().skipped, [CellKey::Pruned { target: OpTarget::Version(b) }]);
    assert_eq!(desk.text(), "b");
}

#[test]
fn undo_goes_over_versions_that_were_forgotten() {
    let mut desk = Fixture::buffer();
    let at = desk.append("one");
    let two = desk.edit(at, "two").unwrap();
    desk.append(" and");
    desk.edit(at, "three").unwrap();
    let forget = |desk: &mut Fixture, node| loom_testing::purge(desk.tree.nodes.get_mut(&node).unwrap());
    forget(&mut desk, two);
    desk.run(Op::Undo).unwrap();
    assert_eq!(desk.text(), "one and");
    desk.run(Op::Redo).unwrap();
    assert_eq!(desk.text(), "three and");
    forget(&mut desk, at.original());
    let plan = desk.run(Op::Undo).unwrap();
    let shown = CellKey::Selected { view: main_view(), position: at };
    assert_eq!(plan.op.unwrap().skipped, [shown], "nothing is left to show, which is named");
    assert_eq!(desk.text(), "three and");
}

/// However many choices one operation made: they are looked for together, or a plan would ask for rows too often.
#[test]
fn undo_looks_back_over_sixteen_operations_in_rounds_that_do_not_grow() {
    let looked_back = |positions: usize, forgotten: usize| {
        let mut desk = Fixture::buffer();
        let passages: Vec<_> = (0..positions).map(|_| desk.append("one ")).collect();
        let edit = |desk: &mut Fixture, text: &str| {
            for at in &passages {
                desk.typed_in(&main_view(), Slot::Edit(*at), text);
            }
            desk.made(Op::Commit)
        };
        let made: Vec<_> = (0..forgotten).flat_map(|number| edit(&mut desk, &format!("{number} "))).collect();
        edit(&mut desk, "last ");
        for node in made {
            loom_testing::purge(desk.tree.nodes.get_mut(&node).unwrap());
        }
        let tree = std::mem::take(&mut desk.tree);
        let (plan, rounds) = desk.plan_over(&tree, &main_view(), Op::Undo).unwrap();
        let back =
            |change: &CellChange| matches!(change.key, CellKey::Selected { .. }) && change.new.is_none();
        (plan.op.unwrap().cells.into_iter().filter(back).count(), rounds)
    };
    let (one, rounds) = looked_back(1, 16);
    assert!(one == 1 && rounds < 48, "{rounds}");
    assert_eq!(looked_back(4, 16), (4, rounds));
    assert_eq!([1, 4].map(|positions| looked_back(positions, 17).0), [0, 0]);
}

#[test]
fn keystrokes_in_several_drafts_are_done_again_in_their_order() {
    let mut desk = Fixture::buffer();
    let at = desk.append("x");
    desk.typed("1");
    desk.typed_in(&main_view(), Slot::Edit(at), "y");
    desk.typed("12");
    let seen: Vec<_> = (0..3)
        .map(|_| {
            desk.run(Op::Undo).unwrap();
            desk.text()
        })
        .collect();
    assert_eq!(seen, ["y1", "x1", "x"]);
    let seen: Vec<_> = (0..3)
        .map(|_| {
            desk.run(Op::Redo).unwrap();
            desk.text()
        })
        .collect();
    assert_eq!(seen, ["x1", "y1", "y12"]);
}

#[test]
fn typing_elsewhere_ends_what_could_be_done_again() {
    let mut desk = Fixture::buffer();
    let at = desk.append("x");
    desk.typed_in(&main_view(), Slot::Edit(at), "y");
    desk.run(Op::Undo).unwrap();
    desk.typed("1");
    assert_eq!(desk.run(Op::Redo), Err(Refusal::NothingToRedo));
}

#[test]
fn an_operation_ends_what_could_be_done_again() {
    let mut desk = Fixture::buffer();
    let at = desk.append("x");
    desk.typed("1");
    desk.run(Op::Undo).unwrap();
    desk.run(Op::Exclude(OpTarget::Position(at))).unwrap();
    desk.run(Op::Undo).unwrap();
    desk.run(Op::Redo).unwrap();
    assert_eq!(desk.text(), "", "the exclusion is done again, not the keystroke before it");
}

#[test]
fn keystrokes_undone_before_an_undone_commit_come_back() {
    let mut desk = Fixture::buffer();
    desk.typed("a");
    desk.run(Op::Commit).unwrap();
    desk.typed("b");
    for expected in ["a", "a", ""] {
        desk.run(Op::Undo).unwrap();
        assert_eq!(desk.text(), expected);
    }
    for expected in ["a", "a", "ab"] {
        desk.run(Op::Redo).unwrap();
        assert_eq!(desk.text(), expected);
    }
}

#[test]
fn a_pending_edit_taken_back_is_not_shown_over_a_choice() {
    let mut desk = Fixture::buffer();
    let at = desk.append("one");
    desk.run(Op::Edit { position: at, text: "two".into(), edit_as: EditAs::Version }).unwrap();
    desk.typed_in(&main_view(), Slot::Edit(at), "two!");
    desk.run(Op::Undo).unwrap();
    desk.run(Op::Undo).unwrap();
    assert_eq!(desk.text(), "one");
    desk.run(Op::Redo).unwrap();
    desk.run(Op::Redo).unwrap();
    assert_eq!(desk.text(), "two!");
}

#[test]
fn a_keystroke_after_an_edit_that_took_another_draft_is_done_again() {
    let mut desk = Fixture::buffer();
    let at = desk.append("a");
    desk.typed_in(&main_view(), Slot::Edit(at), "b");
    desk.edit(at, "c");
    desk.typed_in(&main_view(), Slot::Edit(at), "d");
    let mut seen = Vec::new();
    for op in [Op::Undo, Op::Undo, Op::Undo, Op::Redo, Op::Redo, Op::Redo] {
        desk.run(op).unwrap();
        seen.push(desk.text());
    }
    assert_eq!(seen, ["c", "b", "a", "b", "c", "d"]);
}

#[test]
fn a_keystroke_waits_while_another_draft_of_its_position_comes_and_goes() {
    let mut desk = Fixture::buffer();
    let at = desk.append("a");
    desk.typed_in(&main_view(), Slot::Edit(at), "b");
    desk.append("c");
    desk.run(Op::Select { position: at, version: at.original() }).unwrap();
    desk.typed_in(&main_view(), Slot::Edit(at), "d");
    let mut seen = Vec::new();
    for op in [Op::Undo, Op::Undo, Op::Undo, Op::Undo, Op::Redo, Op::Redo, Op::Redo, Op::Redo] {
        desk.run(op).unwrap();
        seen.push(desk.text());
    }
    assert_eq!(seen, ["ac", "bc", "b", "a", "b", "bc", "ac", "dc"]);
}

#[test]
fn undo_of_an_operation_by_another_view_is_not_offered() {
    let mut desk = Fixture::buffer();
    let reader = other(&mut desk);
    desk.append("a");
    assert_eq!(desk.run_in(&reader, Op::Undo), Err(Refusal::NothingToUndo));
}

#[test]
fn a_draft_being_typed_is_not_overwritten_by_undo() {
    let mut desk = Fixture::buffer();
    desk.typed("a");
    desk.run(Op::Commit).unwrap();
    // More keystrokes than a draft keeps: the oldest cannot be taken back one by one.
    let mut text = String::new();
    for _ in 0..300 {
        text.push('b');
        desk.typed(&text);
    }
    let skipped =
        std::iter::repeat_with(|| desk.run(Op::Undo).unwrap()).find_map(|plan| plan.op).unwrap().skipped;
    assert_eq!(skipped, [CellKey::Draft { view: main_view(), slot: Slot::Buffer }]);
    assert!(desk.text().starts_with("bbb"), "what was typed since stays");
}

#[test]
fn a_draft_given_back_keeps_its_base_though_that_is_pruned() {
    let mut desk = Fixture::buffer();
    let at = desk.generate(&["0"])[0].as_position();
    desk.typed_in(&main_view(), Slot::Edit(at), "");
    desk.run(Op::Move(desk.root())).unwrap();
    desk.run(Op::Undo).unwrap();
    desk.run(Op::Prune(OpTarget::Version(at.original()))).unwrap();
    desk.run(Op::Commit).unwrap();
    while desk.run(Op::Undo).is_ok() {}
    for expected in ["0", "", "", ""] {
        desk.run(Op::Redo).unwrap();
        assert_eq!(desk.text(), expected);
    }
    assert_eq!(desk.run(Op::Redo), Err(Refusal::NothingToRedo));
}

/// A turn of an agent may have hundreds of calls.
#[test]
fn a_turn_of_many_operations_is_one_step() {
    let mut desk = Fixture::new(drawloom_loom::Mode::Dialogue);
    desk.append("before");
    let before = desk.text();
    desk.append("asked");
    let part_of = desk.tree.timeline(&main_view()).unwrap().undo;
    for number in 0..600 {
        let texts = vec![NewText::owner(format!("result {number}"), desk.role())];
        desk.run(Op::Reply { to: None, texts, exclude: Vec::new(), part_of }).unwrap();
    }
    let after = desk.text();
    desk.run(Op::Undo).unwrap();
    assert_eq!(desk.text(), before);
    desk.run(Op::Redo).unwrap();
    assert_eq!(desk.text(), after);
}

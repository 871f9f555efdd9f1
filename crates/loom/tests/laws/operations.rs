//! The rules of each operation, one test each (spec: loom §2).

use drawloom_loom::plan::{EditAs, NewText};
use drawloom_loom::{
    Block, CellKey, Mode, NodeId, Op, OpKind, OpRecord, OpTarget, Refusal, Role, Seq, ShownPassage, Slot,
    TreeReader, ViewName,
};

use loom_testing::{Fixture, main_view, purge};

fn last(desk: &Fixture) -> OpRecord {
    desk.tree.operations(Seq(0), usize::MAX).unwrap().pop().unwrap()
}

fn node(id: NodeId) -> drawloom_loom::PositionId {
    id.as_position()
}

#[test]
fn an_empty_version_is_made_and_an_empty_original_never() {
    let mut desk = Fixture::buffer();
    let at = desk.append("a");
    assert!(desk.edit(at, "").is_some());
    assert_eq!(desk.text(), "");
    let empty = |desk: &mut Fixture, op| assert_eq!(desk.run(op), Err(Refusal::Empty));
    empty(&mut desk, Op::Append(NewText::owner("", None)));
    let two = vec![Block::text(""), Block::text("")];
    empty(&mut desk, Op::Append(NewText { content: two, ..NewText::owner("", None) }));
    desk.edit(at, "b");
    empty(&mut desk, Op::Edit { position: at, text: String::new(), edit_as: EditAs::Branch });
    let (row, part_of, _) = desk.asked(&main_view(), 1);
    let answer = desk.answer(&row, 0, "", part_of, true);
    empty(&mut desk, answer);
}

#[test]
fn an_edit_equal_to_what_is_shown_is_dropped() {
    let mut desk = Fixture::buffer();
    let at = desk.append("a");
    assert!(
        desk.run(Op::Edit { position: at, text: "a".into(), edit_as: EditAs::Version }).unwrap().is_empty()
    );
    assert!(
        desk.run(Op::Edit { position: at, text: "a".into(), edit_as: EditAs::Branch }).unwrap().is_empty()
    );
    desk.typed_in(&main_view(), Slot::Edit(at), "b");
    desk.typed_in(&main_view(), Slot::Edit(at), "a");
    assert!(desk.run(Op::Commit).unwrap().op.is_none());
}

#[test]
fn an_edit_equal_to_another_version_selects_it_again() {
    let mut desk = Fixture::buffer();
    let at = desk.append("a");
    let b = desk.edit(at, "b").unwrap();
    assert_eq!(desk.edit(at, "a"), None);
    assert_eq!(desk.shown(&main_view(), at), at.original());
    assert_eq!(desk.edit(at, "b"), None);
    assert_eq!(desk.shown(&main_view(), at), b);
    assert_eq!(desk.tree.count_versions(at).unwrap(), 2);
}

#[test]
fn an_edit_back_to_an_original_with_more_than_text_selects_it_again() {
    let mut desk = Fixture::buffer();
    let thinking = Block::Thinking { text: "hm".into(), opaque: Some(1.into()) };
    let content = vec![thinking, Block::text("a")];
    let at = node(desk.made(Op::Append(NewText { content, ..NewText::owner("", None) }))[0]);
    let edited = desk.edit(at, "b").unwrap();
    let kept = desk.tree.node(edited).unwrap().unwrap().node.content;
    assert_eq!(
        kept[0],
        Block::Thinking { text: "hm".into(), opaque: None },
        "opaque does not outlive an edit"
    );
    assert_eq!(desk.edit(at, "a"), None);
    assert_eq!(desk.shown(&main_view(), at), at.original());
}

#[test]
fn an_edit_back_to_a_forgotten_text_writes_it_anew() {
    let mut desk = Fixture::buffer();
    let at = desk.append("a");
    let b = desk.edit(at, "b").unwrap();
    desk.edit(at, "c");
    purge(desk.tree.nodes.get_mut(&b).unwrap());
    assert!(desk.edit(at, "b").is_some_and(|new| new != b));
    assert_eq!(desk.text(), "b");
}

#[test]
fn white_space_is_kept_byte_for_byte() {
    let mut desk = Fixture::buffer();
    let text = " \t\r\n\u{a0} a \n\n";
    desk.typed(text);
    desk.generate(&["  b \n "]);
    assert_eq!(desk.text(), format!("{text}  b \n "));
}

#[test]
fn commit_makes_versions_from_the_root_and_then_the_buffer_in_one_operation() {
    let mut desk = Fixture::buffer();
    let (first, second) = (desk.append("a"), desk.append("b"));
    desk.typed("c");
    desk.typed_in(&main_view(), Slot::Edit(second), "B");
    desk.typed_in(&main_view(), Slot::Edit(first), "A");
    let before = last(&desk).seq;
    let made = desk.run(Op::Commit).unwrap().nodes;
    assert_eq!(made.iter().map(|node| node.text().into_owned()).collect::<Vec<_>>(), ["A", "B", "c"]);
    assert_eq!(last(&desk).seq.0, before.0 + 1);
    assert_eq!(desk.committed(), "ABc");
}

#[test]
fn an_edit_of_a_dialogue_is_a_branch_with_the_same_role() {
    let mut desk = Fixture::new(Mode::Dialogue);
    let first = desk.append("hello");
    desk.append("more");
    let made = desk.made(Op::Edit { position: first, text: "hi".into(), edit_as: EditAs::Default });
    let new = desk.tree.node(made[0]).unwrap().unwrap().node;
    assert!(new.is_original());
    assert_eq!((new.role, new.edited_from), (Some(Role::User), Some(first.original())));
    assert_eq!(desk.text(), "hi");
    desk.run(Op::Switch(first)).unwrap();
    assert_eq!(desk.text(), "hellomore", "what was below stays on the old sibling");
}

#[test]
fn a_branch_inside_keeps_the_text_before_and_switch_comes_back() {
    let mut desk = Fixture::buffer();
    let at = desk.append("one two");
    desk.append(" three");
    desk.run(Op::BranchAt { node: at.original(), at: 3, token: None }).unwrap();
    assert_eq!(desk.text(), "one");
    desk.run(Op::Switch(at)).unwrap();
    assert_eq!(desk.text(), "one two three");
    let inside = Op::BranchAt { node: desk.append("é").original(), at: 1, token: None };
    assert_eq!(desk.run(inside), Err(Refusal::Offset { at: 1, len: 2 }));
}

#[test]
fn a_branch_at_the_end_of_a_version_not_shown_holds_that_version() {
    let mut desk = Fixture::buffer();
    let at = desk.append("a");
    desk.edit(at, "bb");
    desk.run(Op::BranchAt { node: at.original(), at: 1, token: None }).unwrap();
    assert_eq!(desk.text(), "a");
}

#[test]
fn a_view_is_never_moved_to_a_hidden_place() {
    let mut desk = Fixture::buffer();
    let first = desk.append("a");
    let second = desk.append("b");
    desk.run(Op::Prune(OpTarget::Position(first))).unwrap();
    let hidden = |place| Err(Refusal::Pruned(OpTarget::Position(place)));
    let below = |at, pruned| Err(Refusal::BelowPruned { at, pruned });
    assert_eq!(desk.run(Op::Move(second)), below(second, first));
    assert_eq!(desk.run(Op::Switch(second)), below(second, first));
    assert_eq!(desk.run(Op::Move(first)), hidden(first));
    let branch = Op::Edit { position: second, text: "c".into(), edit_as: EditAs::Branch };
    assert_eq!(desk.run(branch), hidden(first));
    assert_eq!(desk.run(Op::BranchAt { node: second.original(), at: 0, token: None }), hidden(first));
    desk.run(Op::Prune(OpTarget::Position(second))).unwrap();
    assert_eq!(desk.run(Op::Move(second)), hidden(second), "itself before what stands above");
    desk.run(Op::Restore(OpTarget::Position(second))).unwrap();
    assert_eq!(desk.run(Op::Move(second)), below(second, first));
}

#[test]
fn an_edit_of_a_text_that_was_read_is_refused_over_another() {
    let mut desk = Fixture::buffer();
    let at = desk.append("a");
    let edit = |shown: &str, text: &str, edit_as| Op::EditShown {
        position: at,
        shown: shown.into(),
        text: text.into(),
        edit_as,
    };
    desk.run(edit("a", "b", EditAs::Default)).unwrap();
    for edit_as in [EditAs::Version, EditAs::Branch] {
        assert_eq!(desk.run(edit("a", "c", edit_as)), Err(Refusal::ChangedMeanwhile(at)));
    }
    assert!(desk.run(edit("a", "b", EditAs::Version)).unwrap().is_empty(), "somebody wrote the same");
    assert_eq!(desk.text(), "b");
}

/// Passages as `main` shows them.
fn shown(desk: &Fixture, at: &[drawloom_loom::PositionId]) -> Vec<ShownPassage> {
    let shown = |position: &drawloom_loom::PositionId| ShownPassage {
        position: *position,
        node: desk.shown(&main_view(), *position),
    };
    at.iter().map(shown).collect()
}

#[test]
fn a_passage_merges_into_the_one_above_and_splits_where_the_tail_has_a_place() {
    let mut desk = Fixture::buffer();
    let [one, two, three] = ["a", "b", "c"].map(|text| desk.append(text));
    let merge = |desk: &Fixture, at: &[_]| Op::Merge { passages: shown(desk, at), keep: false };
    let split = |desk: &Fixture, at: &[_], cut| Op::Split { passages: shown(desk, at), at: cut, keep: false };
    let before = last(&desk).seq;
    desk.run(merge(&desk, &[one, two])).unwrap();
    assert_eq!(last(&desk).seq.0, before.0 + 1, "one operation");
    let both = desk.tree.node(desk.shown(&main_view(), one)).unwrap().unwrap().node;
    assert_eq!((both.text().as_ref(), both.edited_from), ("ab", Some(one.original())));
    assert_eq!(desk.text(), "abc");
    // Over the empty passage that is left.
    desk.run(merge(&desk, &[one, two, three])).unwrap();
    assert_eq!(desk.tree.node(desk.shown(&main_view(), one)).unwrap().unwrap().node.text(), "abc");
    desk.run(split(&desk, &[one, two], 1)).unwrap();
    desk.run(split(&desk, &[two, three], 1)).unwrap();
    assert_eq!(desk.text(), "abc");
    desk.run(merge(&desk, &[two, three])).unwrap();
    desk.run(Op::Move(two)).unwrap();
    let made = desk.run(split(&desk, &[two], 1)).unwrap();
    assert_eq!(made.positions[0].parent, Some(two), "below the tip the tail is a passage of its own");
    assert_eq!((desk.tip(), desk.text().as_str()), (made.positions[0].id, "abc"));
}

#[test]
fn passages_merge_only_where_the_text_of_the_path_stays() {
    let mut desk = Fixture::buffer();
    let [one, two, three] = ["a", "bb", "c"].map(|text| desk.append(text));
    let merge = |desk: &Fixture, at: &[_]| Op::Merge { passages: shown(desk, at), keep: false };
    let over_a_text = merge(&desk, &[one, two, three]);
    assert_eq!(desk.run(over_a_text), Err(Refusal::ChangedMeanwhile(two)));
    let apart = merge(&desk, &[one, three]);
    assert_eq!(desk.run(apart), Err(Refusal::NotOnPath(three)));
    let earlier = merge(&desk, &[one, two]);
    let into_a_text = Op::Split { passages: shown(&desk, &[two, three]), at: 1, keep: false };
    assert_eq!(desk.run(into_a_text), Err(Refusal::ChangedMeanwhile(three)));
    let above_the_tip = Op::Split { passages: shown(&desk, &[two]), at: 1, keep: false };
    assert_eq!(desk.run(above_the_tip), Err(Refusal::ChangedMeanwhile(two)));
    desk.edit(two, "b");
    assert_eq!(desk.run(earlier), Err(Refusal::ChangedMeanwhile(two)));
    desk.run(Op::Exclude(OpTarget::Position(one))).unwrap();
    let left_out = merge(&desk, &[one, two]);
    assert_eq!(desk.run(left_out), Err(Refusal::LeftOut(one)));
    desk.run(Op::Move(one)).unwrap();
    let elsewhere = merge(&desk, &[two, three]);
    assert_eq!(desk.run(elsewhere), Err(Refusal::NotOnPath(three)));
    let mut talk = Fixture::new(Mode::Dialogue);
    let said = [talk.append("a"), talk.append("b")];
    let messages = merge(&talk, &said);
    assert_eq!(talk.run(messages), Err(Refusal::NoDocument));
}

#[test]
fn prune_moves_the_tips_of_all_views_to_the_parent() {
    let mut desk = Fixture::buffer();
    let first = desk.append("a");
    let second = desk.append("b");
    let reader: ViewName = "reader".parse().unwrap();
    desk.run(Op::NewView { name: reader.clone(), agent: "reader".into() }).unwrap();
    desk.append("c");
    desk.run(Op::Prune(OpTarget::Position(second))).unwrap();
    assert_eq!((desk.tip(), desk.tip_of(&reader)), (first, first));
    assert!(desk.tree.node(second.original()).unwrap().is_some(), "nothing is deleted");
}

#[test]
fn the_last_visible_version_is_not_pruned() {
    let mut desk = Fixture::buffer();
    let at = desk.append("a");
    let only = at.original();
    assert_eq!(desk.run(Op::Prune(OpTarget::Version(only))), Err(Refusal::LastVersion(only)));
    let b = desk.edit(at, "b").unwrap();
    desk.run(Op::Prune(OpTarget::Version(only))).unwrap();
    assert_eq!(desk.run(Op::Prune(OpTarget::Version(b))), Err(Refusal::LastVersion(b)));
}

#[test]
fn undo_of_generate_gives_back_the_buffer_and_keeps_the_siblings() {
    let mut desk = Fixture::buffer();
    desk.append("Once ");
    desk.typed("upon ");
    let answers = desk.generate(&["a time", "a hill"]);
    assert_eq!(desk.text(), "Once upon a time");
    desk.run(Op::Undo).unwrap();
    assert_eq!((desk.text().as_str(), desk.committed().as_str()), ("Once upon ", "Once "));
    assert!(answers.iter().all(|answer| desk.tree.node(*answer).unwrap().is_some()));
    desk.run(Op::Redo).unwrap();
    assert_eq!(desk.committed(), "Once upon a time");
}

#[test]
fn an_append_by_command_takes_no_draft_and_leaves_none() {
    let mut desk = Fixture::buffer();
    desk.append("a");
    desk.run(Op::Undo).unwrap();
    assert_eq!((desk.text().as_str(), desk.tree.drafts(&main_view()).unwrap().len()), ("", 0));
}

#[test]
fn an_answer_whose_view_went_elsewhere_does_not_move_it() {
    let mut desk = Fixture::buffer();
    desk.append("a");
    let (row, part_of, _) = desk.asked(&main_view(), 1);
    desk.append("b");
    let answer = desk.answer(&row, 0, "late", part_of, true);
    desk.run(answer).unwrap();
    assert_eq!(desk.text(), "ab");
    assert_eq!(desk.tree.count_children(row.place.as_ref().unwrap().parent).unwrap(), 2);
}

#[test]
fn bookmarks_tags_titles_and_remarks_are_no_steps_of_the_timeline() {
    let mut desk = Fixture::buffer();
    let at = desk.append("a");
    desk.run(Op::Bookmark { position: at, title: Some("here".into()) }).unwrap();
    desk.run(Op::Tag { position: at, tag: "good".into(), on: true }).unwrap();
    desk.run(Op::Rename("title".into())).unwrap();
    desk.run(Op::Annotate { position: at, text: NewText::owner("why?", None) }).unwrap();
    desk.run(Op::Undo).unwrap();
    assert_eq!(desk.text(), "");
    let bookmark = desk.tree.cell(&CellKey::Bookmark { position: at }).unwrap();
    assert_eq!(bookmark.value.as_text(), Some("here"));
}

#[test]
fn a_tool_takes_no_draft_and_what_it_changes_is_undone_with_its_turn() {
    let mut desk = Fixture::buffer();
    let at = desk.append("a");
    desk.append("b");
    let turn = desk.tree.timeline(&main_view()).unwrap().undo;
    let by_tool = |part_of, text: &str| Op::ByTool {
        part_of,
        op: Box::new(Op::Edit { position: at, text: text.into(), edit_as: EditAs::Version }),
    };
    desk.typed_in(&main_view(), Slot::Buffer, "c");
    assert_eq!(desk.run(by_tool(turn, "x")), Err(Refusal::DraftHeld));
    assert_eq!(desk.run(Op::ByTool { part_of: turn, op: Box::new(Op::Commit) }), Err(Refusal::DraftHeld));
    desk.typed_in(&main_view(), Slot::Buffer, "");
    desk.run(by_tool(turn, "x")).unwrap();
    desk.run(by_tool(turn, "y")).unwrap();
    assert_eq!(desk.text(), "yb");
    desk.run(Op::Undo).unwrap();
    assert_eq!(desk.text(), "a", "with what began the turn");
    desk.run(Op::Redo).unwrap();
    assert_eq!(desk.text(), "yb");
    desk.run(by_tool(None, "z")).unwrap();
    desk.run(Op::Undo).unwrap();
    assert_eq!(desk.text(), "yb", "by itself");
}

#[test]
fn the_window_starts_only_on_the_path() {
    let mut desk = Fixture::buffer();
    let first = desk.append("a");
    desk.run(Op::Move(desk.root())).unwrap();
    desk.append("b");
    assert_eq!(desk.run(by_hand(first)), Err(Refusal::NotOnPath(first)));
    assert_eq!(desk.run(by_hand(desk.root())), Err(Refusal::Genesis));
    desk.run(by_hand(desk.tip())).unwrap();
    assert_eq!(last(&desk).op.kind, OpKind::Compact);
}

#[test]
fn the_genesis_is_never_touched() {
    let mut desk = Fixture::buffer();
    let root = desk.root();
    for op in [
        Op::Edit { position: root, text: "x".into(), edit_as: EditAs::Version },
        Op::Edit { position: root, text: "x".into(), edit_as: EditAs::Branch },
        Op::Prune(OpTarget::Position(root)),
        Op::Exclude(OpTarget::Position(root)),
        Op::Select { position: root, version: root.original() },
        Op::BranchAt { node: root.original(), at: 0, token: None },
    ] {
        assert_eq!(desk.run(op), Err(Refusal::Genesis));
    }
}

fn by_hand(position: drawloom_loom::PositionId) -> Op {
    Op::Compact { to: Some(drawloom_loom::TextOffset { position, at: 0 }), by_hand: true }
}

//! Which version is shown, what a view copies, when drift shows (spec: loom §3), and what a seal finds (§6).

use drawloom_loom::drift::is_drifted;
use drawloom_loom::memory::MemoryTree;
use drawloom_loom::seal::sign;
use drawloom_loom::verify::{Assurance, Status};
use drawloom_loom::{
    AuthorKind, KeepScope, Millis, NodeId, Op, OpTarget, PositionId, Seq, SourceKind, TreeReader, ViewName,
};

use loom_testing::{Fixture, TREE, main_view};

fn drifts(desk: &Fixture, node: NodeId) -> bool {
    let row = desk.tree.node(node).unwrap().unwrap();
    let at = desk.tree.position(row.node.position).unwrap().unwrap();
    is_drifted(&desk.tree, &desk.path(&main_view()), &at, &row).unwrap()
}

fn select(position: PositionId, version: NodeId) -> Op {
    Op::Select { position, version }
}

#[test]
fn adjacent_edits_combine_in_every_way() {
    let mut desk = Fixture::buffer();
    let (five, six) = (desk.append("5"), desk.append("6"));
    let (five_, six_) = (desk.edit(five, "5'").unwrap(), desk.edit(six, "6'").unwrap());
    let mut seen = Vec::new();
    for above in [five.original(), five_] {
        for below in [six.original(), six_] {
            desk.run(select(five, above)).unwrap();
            desk.run(select(six, below)).unwrap();
            seen.push(desk.text());
        }
    }
    assert_eq!(seen, ["56", "56'", "5'6", "5'6'"]);
}

#[test]
fn a_child_is_seen_from_every_version_and_remembers_the_one_it_followed() {
    let mut desk = Fixture::buffer();
    let five = desk.append("5");
    let five_ = desk.edit(five, "5'").unwrap();
    let child = desk.append("6");
    assert_eq!(desk.tree.node(child.original()).unwrap().unwrap().node.origins[0].node, five_);
    let third = desk.edit(five, "5''").unwrap();
    for (version, text) in [(five.original(), "56"), (five_, "5'6"), (third, "5''6")] {
        desk.run(select(five, version)).unwrap();
        assert_eq!(desk.text(), text);
    }
}

#[test]
fn a_selection_that_is_pruned_resolves_to_the_newest_visible_version() {
    let mut desk = Fixture::buffer();
    let at = desk.append("a");
    let b = desk.edit(at, "b").unwrap();
    let c = desk.edit(at, "c").unwrap();
    desk.run(select(at, b)).unwrap();
    desk.run(Op::Prune(OpTarget::Version(b))).unwrap();
    assert_eq!(desk.shown(&main_view(), at), c);
    assert!(desk.run(select(at, b)).is_err(), "a pruned version is not selected");
    desk.run(Op::Prune(OpTarget::Version(c))).unwrap();
    assert_eq!(desk.shown(&main_view(), at), at.original());
}

#[test]
fn selecting_what_is_shown_for_another_writes_the_choice_down() {
    let mut desk = Fixture::buffer();
    let at = desk.append("a");
    let b = desk.edit(at, "b").unwrap();
    desk.run(select(at, at.original())).unwrap();
    desk.run(Op::Prune(OpTarget::Version(at.original()))).unwrap();
    assert_eq!(desk.shown(&main_view(), at), b);
    desk.run(select(at, b)).unwrap();
    desk.run(Op::Restore(OpTarget::Version(at.original()))).unwrap();
    assert_eq!(desk.shown(&main_view(), at), b);
}

#[test]
fn versions_of_another_view_are_offered_and_not_shown() {
    let mut desk = Fixture::buffer();
    let at = desk.append("a");
    let reader: ViewName = "reader".parse().unwrap();
    desk.run(Op::NewView { name: reader.clone(), agent: "reader".into() }).unwrap();
    desk.edit(at, "b");
    assert_eq!(desk.text_of(&reader), "a");
    assert_eq!(desk.tree.count_versions(at).unwrap(), 2);
}

#[test]
fn a_new_view_copies_selections_and_then_goes_its_own_way() {
    let mut desk = Fixture::buffer();
    let at = desk.append("a");
    desk.edit(at, "b");
    let reader: ViewName = "reader".parse().unwrap();
    desk.run(Op::NewView { name: reader.clone(), agent: "reader".into() }).unwrap();
    assert_eq!(desk.text_of(&reader), "b");
    desk.run(select(at, at.original())).unwrap();
    assert_eq!((desk.text_of(&reader).as_str(), desk.text().as_str()), ("b", "a"));
}

#[test]
fn an_edit_that_changes_the_words_drifts_what_was_written_below() {
    let mut desk = Fixture::buffer();
    let at = desk.append("The rain");
    let answer = desk.generate(&[" fell"])[0];
    desk.edit(at, "the  RAIN\n");
    assert!(!drifts(&desk, answer), "white space and case do not count");
    desk.edit(at, "The snow");
    assert!(drifts(&desk, answer));
    desk.run(select(at, at.original())).unwrap();
    assert!(!drifts(&desk, answer), "back to its basis");
}

#[test]
fn keep_clears_drift_here_or_below_until_the_next_choice() {
    let mut desk = Fixture::buffer();
    let at = desk.append("a");
    let first = desk.generate(&["b"])[0];
    let second = desk.generate(&["c"])[0];
    desk.edit(at, "x");
    assert!(drifts(&desk, first) && drifts(&desk, second));
    desk.run(Op::Keep { position: first.as_position(), scope: KeepScope::Here }).unwrap();
    assert!(!drifts(&desk, first) && drifts(&desk, second));
    desk.run(Op::Keep { position: first.as_position(), scope: KeepScope::Below }).unwrap();
    assert!(!drifts(&desk, first) && !drifts(&desk, second));
    desk.edit(at, "y");
    assert!(drifts(&desk, first) && drifts(&desk, second), "a newer choice counts again");
}

/// A sealed document, and the same without its seal.
fn sealed() -> (Fixture, Fixture) {
    let build = || {
        let mut desk = Fixture::buffer();
        desk.append("a");
        desk.generate(&["b"]);
        desk
    };
    let (mut desk, plain) = (build(), build());
    let report = desk.verify();
    let seq = Seq(desk.tree.operations(Seq(0), usize::MAX).unwrap().len() as u64);
    desk.tree.add_seal(sign(&[5; 32], TREE, seq, report.head, Millis(1)));
    assert_eq!((desk.verify().status, desk.verify().assurance), (Status::Valid, Assurance::Sealed));
    (desk, plain)
}

/// Rewrites the newest node and every hash that names it, as someone who can write the database would.
fn forge(desk: &mut Fixture, change: impl FnOnce(&mut drawloom_loom::Node)) {
    let MemoryTree { nodes, operations, .. } = &mut desk.tree;
    let record = operations.last_mut().unwrap();
    let node = &mut nodes.get_mut(&record.op.nodes[0].0).unwrap().node;
    change(node);
    node.chain_hash =
        drawloom_loom::record::chain_hash(node, drawloom_loom::record::Links::default()).unwrap();
    record.op.nodes[0].1 = node.chain_hash;
    record.hash = record.compute_hash().unwrap();
}

#[test]
fn a_rewritten_whole_is_found_by_a_seal_and_by_nothing_else() {
    let (mut desk, mut plain) = sealed();
    let pretend = |node: &mut drawloom_loom::Node| node.source.as_mut().unwrap().kind = SourceKind::Remote;
    forge(&mut desk, pretend);
    forge(&mut plain, pretend);
    assert_eq!(desk.verify().status, Status::Invalid);
    assert_eq!((plain.verify().status, plain.verify().assurance), (Status::Valid, Assurance::Internal));
}

#[test]
fn a_removed_newest_leaf_is_found_in_a_sealed_tree() {
    let (mut desk, _) = sealed();
    let MemoryTree { nodes, positions, operations, .. } = &mut desk.tree;
    let id = operations.pop().unwrap().op.nodes[0].0;
    nodes.remove(&id);
    positions.remove(&id.as_position());
    assert_eq!(desk.verify().status, Status::Invalid);
}

#[test]
fn what_comes_after_a_seal_is_internal_again() {
    let (mut desk, _) = sealed();
    let last = desk.append("c");
    assert_eq!((desk.verify().status, desk.verify().assurance), (Status::Valid, Assurance::Internal));
    assert_eq!(desk.tree.node(last.original()).unwrap().unwrap().node.author.kind, AuthorKind::Human);
}

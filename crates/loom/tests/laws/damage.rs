//! Whatever is changed in what is stored, `verify` finds it (spec: loom §10.3): every leaf of every stored row is
//! changed in turn, rows are taken away, and rows are added that no operation made.

use drawloom_loom::memory::MemoryTree;
use drawloom_loom::verify::{Gap, Status, verify};
use drawloom_loom::{Block, Digest, NodeId, Op, Slot, TreeReader};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use loom_testing::{Fixture, main_view, purge};

/// A tree with some of everything: versions, branches with quotes, answers, flags, views, undo.
fn rich() -> Fixture {
    let mut desk = Fixture::buffer();
    desk.typed("One day ");
    let answers = desk.generate(&["the rain fell.", "the sun rose."]);
    desk.append(" Then");
    let edited = desk.edit(answers[0].as_position(), "the snow fell.").unwrap();
    desk.run(Op::BranchAt { node: edited, at: 8, token: None }).unwrap();
    desk.run(Op::Switch(answers[1].as_position())).unwrap();
    desk.typed_in(&main_view(), Slot::Edit(answers[1].as_position()), "");
    desk.run(Op::Commit).unwrap();
    desk.run(Op::Undo).unwrap();
    desk.run(Op::NewView { name: "reader".parse().unwrap(), agent: "reader".into() }).unwrap();
    desk.run(Op::Prune(drawloom_loom::OpTarget::Version(edited))).unwrap();
    desk.run(Op::PinHead(drawloom_loom::plan::NewText::owner("Style: plain.", None))).unwrap();
    desk
}

/// Everything a value becomes when one leaf of it is changed.
fn damaged(value: &Value, path: &str, out: &mut Vec<(String, Value)>) {
    match value {
        Value::Null => {}
        Value::Bool(on) => out.push((path.to_owned(), Value::Bool(!on))),
        Value::Number(number) => {
            if let Some(number) = number.as_u64() {
                out.push((path.to_owned(), (number ^ 1).into()));
            }
        }
        Value::String(text) => {
            let mut chars: Vec<char> = text.chars().collect();
            if let Some(last) = chars.last_mut() {
                *last = if *last == '0' { '1' } else { '0' };
                out.push((path.to_owned(), chars.into_iter().collect::<String>().into()));
            }
            let words =
                ["human", "tool", "user", "path", "note", "set", "none", "push", "keep", "remote", "parent"];
            out.extend(
                words.iter().filter(|word| *word != text).map(|word| (path.to_owned(), Value::from(*word))),
            );
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let mut inner = Vec::new();
                damaged(item, &format!("{path}[{index}]"), &mut inner);
                out.extend(inner.into_iter().map(|(path, item)| {
                    let mut items = items.clone();
                    items[index] = item;
                    (path, items.into())
                }));
            }
            if !items.is_empty() {
                out.push((format!("{path}[-]"), items[1..].to_vec().into()));
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let mut inner = Vec::new();
                damaged(field, &format!("{path}.{name}"), &mut inner);
                out.extend(inner.into_iter().map(|(path, field)| {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), field);
                    (path, fields.into())
                }));
            }
        }
    }
}

/// Rows that differ from `row` in one leaf, with the leaf's name.
fn variants<R: Serialize + DeserializeOwned + PartialEq>(row: &R) -> Vec<(String, R)> {
    let mut out = Vec::new();
    damaged(&serde_json::to_value(row).unwrap(), "", &mut out);
    out.into_iter()
        .filter_map(|(path, value)| Some((path, serde_json::from_value::<R>(value).ok()?)))
        .filter(|(_, changed)| changed != row)
        .collect()
}

fn status(desk: &Fixture, tree: &MemoryTree) -> Status {
    verify(tree, &desk.evidence).unwrap().status
}

/// Damages a copy of the tree and asks that it shows.
fn shows(desk: &Fixture, what: &str, damage: impl FnOnce(&mut MemoryTree)) {
    let mut tree = desk.tree.clone();
    damage(&mut tree);
    assert_eq!(status(desk, &tree), Status::Invalid, "{what}");
}

#[test]
fn the_tree_is_valid_before_it_is_damaged() {
    let desk = rich();
    assert_eq!(desk.verify().problems, []);
    assert!(desk.tree.operations(drawloom_loom::Seq(0), 100).unwrap().len() > 10);
}

#[test]
fn every_leaf_of_every_node_is_covered() {
    let desk = rich();
    // Outside the hash by contract: how far it is believed, how it ended, which row asked for it, its short id.
    let outside = [".node.trust", ".node.finish", ".node.generation", ".short_id"];
    let mut seen = 0;
    for row in desk.tree.nodes_in_order(None, 100).unwrap() {
        for (leaf, changed) in variants(&row) {
            if outside.iter().any(|name| leaf.starts_with(name)) {
                continue;
            }
            seen += 1;
            shows(&desk, &format!("{leaf} of {row:?}"), |tree| {
                tree.nodes.insert(row.node.id, changed);
            });
        }
    }
    assert!(seen > 200, "{seen}");
}

#[test]
fn every_leaf_of_every_position_is_covered() {
    let mut desk = rich();
    for id in desk.tree.clone().positions.keys().copied().collect::<Vec<_>>() {
        let row = desk.tree.position(id).unwrap().unwrap();
        for (leaf, changed) in variants(&row) {
            shows(&desk, &format!("{leaf} of {row:?}"), |tree| {
                tree.positions.insert(id, changed);
            });
        }
        let other = desk.root();
        if row.parent.is_some_and(|parent| parent != other) {
            shows(&desk, "another parent", |tree| {
                tree.positions.get_mut(&id).unwrap().parent = Some(other);
            });
        }
        shows(&desk, "no position", |tree| assert!(tree.positions.remove(&id).is_some()));
    }
    let root = desk.tip();
    let mut row = desk.tree.tree().unwrap();
    row.root = root;
    desk.tree.restore_tree(row);
    assert_eq!(desk.verify().status, Status::Invalid, "another root");
}

#[test]
fn every_leaf_of_every_operation_is_covered() {
    let desk = rich();
    let count = desk.tree.operations(drawloom_loom::Seq(0), 100).unwrap().len();
    for index in 0..count {
        let row = desk.tree.clone().operations[index].clone();
        for (leaf, changed) in variants(&row) {
            shows(&desk, &format!("{leaf} of {row:?}"), |tree| tree.operations[index] = changed);
        }
        shows(&desk, "no operation", |tree| drop(tree.operations.remove(index)));
    }
}

#[test]
fn a_missing_node_is_found() {
    let desk = rich();
    for row in desk.tree.nodes_in_order(None, 100).unwrap() {
        shows(&desk, "no node", |tree| drop(tree.nodes.remove(&row.node.id)));
    }
}

#[test]
fn a_node_that_no_operation_made_is_found() {
    let desk = rich();
    let mut row = desk.tree.nodes_in_order(None, 100).unwrap().pop().unwrap();
    row.node.id = NodeId::from_bytes([9; 16]);
    row.place += 1;
    shows(&desk, "a node from nowhere", |tree| tree.restore_node(row));
}

#[test]
fn a_changed_response_or_manifest_is_found_and_a_missing_one_is_named() {
    let desk = rich();
    let (response, manifest) =
        (*desk.evidence.responses.keys().next().unwrap(), *desk.evidence.manifests.keys().next().unwrap());
    let with = |change: &dyn Fn(&mut loom_testing::Stored)| {
        let mut evidence = desk.evidence.clone();
        change(&mut evidence);
        verify(&desk.tree, &evidence).unwrap()
    };
    let changed = with(&|stored| drop(stored.responses.insert(response, vec![Block::text("no")])));
    assert_eq!(changed.status, Status::Invalid);
    let changed = with(&|stored| stored.manifests.get_mut(&manifest).unwrap()[0] ^= 1);
    assert_eq!(changed.status, Status::Invalid);
    for missing in [
        with(&|stored| drop(stored.responses.remove(&response))),
        with(&|stored| drop(stored.manifests.remove(&manifest))),
    ] {
        assert_eq!(missing.status, Status::Incomplete);
        assert!(missing.problems.iter().all(|problem| problem.gap == Some(Gap::Missing)));
    }
}

/// The manifest says which white space at the beginning of the answer stood in the document already.
#[test]
fn without_its_manifest_a_response_may_begin_with_more_white_space_than_its_node() {
    let verified = |said: &str, held: &str, has_manifest: bool| {
        let mut desk = Fixture::buffer();
        desk.typed("Once upon a time ");
        let (row, part_of, _) = desk.asked(&main_view(), 1);
        let Op::Answer(mut answer) = desk.answer(&row, 0, said, part_of, true) else { unreachable!() };
        answer.content = vec![Block::text(held)].into();
        desk.run_in(&main_view(), Op::Answer(answer)).unwrap();
        if !has_manifest {
            desk.evidence.manifests.clear();
        }
        desk.verify().status
    };
    assert_eq!(verified(" there was", "there was", false), Status::Incomplete);
    assert_eq!(verified("\n\n there was", "there was", false), Status::Incomplete);
    assert_eq!(verified("there was", "there was", false), Status::Incomplete);
    assert_eq!(verified(" there was", "there was", true), Status::Invalid);
    assert_eq!(verified(" there was", "there is", false), Status::Invalid);
    assert_eq!(verified("here there was", "there was", false), Status::Invalid, "a word is lacking");
    assert_eq!(verified("there was", " there was", false), Status::Invalid, "white space was added");
}

#[test]
fn a_tombstone_is_incomplete_and_the_rest_stays_checkable() {
    let desk = rich();
    let mut tree = desk.tree.clone();
    let id = desk.tip().original();
    purge(tree.nodes.get_mut(&id).unwrap());
    assert_eq!(status(&desk, &tree), Status::Incomplete);
    tree.nodes.get_mut(&id).unwrap().node.kept_hash = Some(Digest::ZERO);
    assert_eq!(status(&desk, &tree), Status::Invalid, "its hashes are still checked");
}

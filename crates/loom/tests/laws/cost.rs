//! What an operation costs (spec: loom §10.4): rows written and rounds asked do not depend on what stands above or
//! below; reads grow with the logarithm of the depth, and with the overrides of the path.

use drawloom_loom::drift::is_drifted;
use drawloom_loom::path::{ViewOverrides, ancestor_at, common_ancestor};
use drawloom_loom::plan::{EditAs, NewText};
use drawloom_loom::render::window;
use drawloom_loom::{Op, OpTarget, PassageEdit, PositionId, ShownPassage, Slot, resolve};

use crate::support::counted::Counted;
use loom_testing::{Fixture, main_view};

const DEPTHS: [usize; 4] = [10, 100, 1_000, 10_000];

/// A document of many passages, and its places from the top.
fn long(depth: usize) -> (Fixture, Vec<PositionId>) {
    let mut desk = Fixture::buffer();
    let places = (0..depth).map(|index| desk.append(if index % 2 == 0 { "a" } else { "b" })).collect();
    (desk, places)
}

/// Rows written, rounds and reads of one operation that is planned but not applied.
fn cost(desk: &mut Fixture, op: Op) -> (usize, usize, u64) {
    let tree = std::mem::take(&mut desk.tree);
    let rows = Counted::new(&tree);
    let (plan, rounds) = desk.plan_over(&rows, &main_view(), op).unwrap();
    let reads = rows.reads();
    desk.tree = tree;
    let cells = plan.op.map_or(0, |op| op.cells.len());
    (plan.positions.len() + plan.nodes.len() + plan.drafts.len() + cells, rounds, reads)
}

fn edit(position: PositionId) -> Op {
    Op::Edit { position, text: "changed".into(), edit_as: EditAs::Version }
}

type Make = fn(&mut Fixture, &[PositionId]) -> Op;

/// One of each kind, at a place in the middle.
const OPERATIONS: [(&str, Make); 10] = [
    ("edit", |_, at| edit(at[at.len() / 2])),
    ("edit at the top", |_, at| edit(at[0])),
    ("append", |_, _| Op::Append(NewText::owner("new", None))),
    ("reply", |_, at| Op::Reply {
        to: Some(at[at.len() / 2]),
        texts: vec![NewText::owner("new", None)],
        exclude: Vec::new(),
        part_of: None,
    }),
    ("branch", |_, at| Op::BranchAt { node: at[at.len() / 2].original(), at: 1, token: None }),
    ("select", |desk, at| {
        let version = desk.edit(at[1], "other").unwrap();
        desk.run(Op::Undo).unwrap();
        Op::Select { position: at[1], version }
    }),
    ("switch", |desk, at| {
        let tip = desk.tip();
        desk.run(Op::Move(at[0])).unwrap();
        let sibling = desk.append("beside");
        desk.run(Op::Move(tip)).unwrap();
        Op::Switch(sibling)
    }),
    ("prune", |_, at| Op::Prune(OpTarget::Position(at[at.len() / 2]))),
    ("commit", |desk, at| {
        desk.typed("text");
        desk.typed_in(&main_view(), Slot::Edit(at[3]), "edited");
        Op::Commit
    }),
    ("undo", |desk, at| {
        desk.run(edit(at[2])).unwrap();
        desk.run(Op::Prune(OpTarget::Position(at[4]))).unwrap();
        Op::Undo
    }),
];

#[test]
fn an_operation_costs_the_same_on_any_path() {
    let mut first: Vec<(usize, usize, u64)> = Vec::new();
    for depth in DEPTHS {
        let (mut desk, at) = long(depth);
        for (index, (name, make)) in OPERATIONS.iter().enumerate() {
            let tree = desk.tree.clone();
            let op = make(&mut desk, &at);
            let (written, rounds, reads) = cost(&mut desk, op);
            desk.tree = tree;
            match first.get(index) {
                None => first.push((written, rounds, reads)),
                Some(small) => {
                    assert_eq!((written, rounds), (small.0, small.1), "{name} at depth {depth}");
                    // A skip in the jump pointers costs two reads a step, two steps a level, at most.
                    let more = 24 * (depth as u64).ilog2() as u64;
                    assert!(reads <= small.2 + more, "{name} at depth {depth}: {reads} reads, {small:?}");
                }
            }
            assert!(written <= 9, "{name} writes {written} rows");
        }
    }
}

#[test]
fn rounds_do_not_grow_with_pending_edits_selections_or_views() {
    let rounds = |count: usize| {
        let (mut desk, at) = long(60);
        for place in &at[..count] {
            desk.edit(*place, "version").unwrap();
        }
        let copy = cost(&mut desk, Op::NewView { name: "copy".parse().unwrap(), agent: "a".into() }).1;
        for index in 0..count {
            let name = format!("view {index}").parse().unwrap();
            desk.run(Op::NewView { name, agent: "reader".into() }).unwrap();
        }
        let prune = cost(&mut desk, Op::Prune(OpTarget::Position(at[50]))).1;
        for place in &at[..count] {
            desk.typed_in(&main_view(), Slot::Edit(*place), "pending");
        }
        let commit = cost(&mut desk, Op::Commit).1;
        desk.run(Op::Commit).unwrap();
        let edits = at[..count].iter().map(|place| {
            let from = resolve::shown(&desk.tree, &main_view(), *place).unwrap();
            PassageEdit { position: *place, from, text: "edited".into(), moved: None, moved_to: None }
        });
        let edits = Op::EditPath { edits: edits.collect(), texts: Vec::new(), behind: None };
        let edits = cost(&mut desk, edits).1;
        let shown = [at[0], at[1]].map(|position| {
            let node = resolve::shown(&desk.tree, &main_view(), position).unwrap();
            ShownPassage { position, node }
        });
        let merge = cost(&mut desk, Op::Merge { passages: shown.to_vec(), keep: true }).1;
        let undo = cost(&mut desk, Op::Undo).1;
        [
            ("new view", copy),
            ("prune", prune),
            ("commit", commit),
            ("edits", edits),
            ("merge", merge),
            ("undo", undo),
        ]
    };
    assert_eq!(rounds(2), rounds(40));
}

#[test]
fn reads_grow_with_the_logarithm_of_the_depth() {
    for depth in DEPTHS {
        let (mut desk, at) = long(depth);
        let log = u64::from((depth as u32).ilog2()) + 1;
        for place in at.iter().step_by(depth / 10) {
            desk.edit(*place, "xyz").unwrap();
        }
        let overrides = 10;
        let tip = desk.tip();
        let path = desk.path(&main_view());
        let counted = |read: &dyn Fn(&Counted<'_>)| {
            let rows = Counted::new(&desk.tree);
            read(&rows);
            rows.reads()
        };
        for (name, reads, most) in [
            ("ancestor", counted(&|rows| assert!(ancestor_at(rows, tip, 1).unwrap().is_some())), 6 * log),
            (
                "common ancestor",
                counted(&|rows| assert_eq!(common_ancestor(rows, tip, at[0]).unwrap().id, at[0])),
                12 * log,
            ),
            (
                "overrides",
                counted(&|rows| {
                    assert_eq!(ViewOverrides::read(rows, &main_view(), tip).unwrap().tip.id, tip);
                }),
                overrides * (6 * log + 6) + 8,
            ),
            (
                "locate",
                counted(&|rows| assert!(path.locate(rows, depth as u64 / 2).unwrap().is_some())),
                (log + 1) * 6 * log,
            ),
            (
                "window",
                counted(&|rows| assert_eq!(window(rows, &main_view(), &path, None, 5).unwrap().len(), 5)),
                14,
            ),
        ] {
            assert!(reads <= most, "{name} at depth {depth}: {reads} reads, at most {most}");
        }
    }
}

/// Reads of the last screen with its marks, of a document whose last twenty passages are answers to all above.
fn screen_reads(depth: usize, edited: impl Iterator<Item = usize>) -> u64 {
    const SCREEN: usize = 20;
    let (mut desk, at) = long(depth);
    for _ in 0..SCREEN {
        desk.generate(&["answer"]);
    }
    let edits = edited.map(|index| desk.edit(at[index], "xyz")).filter(Option::is_some).count();
    let rows = Counted::new(&desk.tree);
    let path = ViewOverrides::read(&rows, &main_view(), desk.tip()).unwrap();
    let screen = window(&rows, &main_view(), &path, None, SCREEN).unwrap();
    for passage in &screen {
        let drifted = is_drifted(&rows, &path, &passage.position, &passage.row).unwrap();
        assert_eq!((passage.row.node.text().as_ref(), drifted), ("answer", edits > 0));
    }
    rows.reads()
}

#[test]
fn a_screen_with_its_marks_reads_each_row_once() {
    for depth in [100, 1_000, 10_000] {
        let log = u64::from((depth as u32).ilog2()) + 1;
        // Position, version and generation of a passage; the walk to where the runs begin; what is of the view.
        let plain = screen_reads(depth, 0..0);
        assert!(plain <= 3 * 20 + 2 * log + 8, "{plain} reads at depth {depth}");
        for edits in [10, 40] {
            // An edit is its cell, its position and its version; the walk to the lowest of them is one.
            let start = depth / 2;
            let together = screen_reads(depth, start..start + edits);
            let most = plain + 3 * edits as u64 + 3 * log;
            assert!(together <= most, "{together} reads at depth {depth}, at most {most}");
            // Edits far from each other need a walk from one to the next, as long as the gap says.
            let gap = depth / edits;
            let apart = screen_reads(depth, (0..edits).map(|edit| edit * gap));
            let most = plain + edits as u64 * (3 + 3 * u64::from(gap.ilog2())) + 3 * log;
            assert!(apart <= most, "{apart} reads at depth {depth}, at most {most}");
        }
    }
}

#[test]
fn what_is_pruned_or_selected_elsewhere_costs_nothing() {
    let costs = |elsewhere: usize| {
        let (mut desk, at) = long(100);
        let tip = desk.tip();
        desk.run(Op::Move(at[10])).unwrap();
        let beside: Vec<PositionId> = (0..200).map(|_| desk.append("beside")).collect();
        for place in &beside[..elsewhere] {
            desk.edit(*place, "another").unwrap();
            desk.run(Op::Prune(OpTarget::Position(*place))).unwrap();
            desk.run(Op::Exclude(OpTarget::Position(*place))).unwrap();
        }
        desk.run(Op::Move(tip)).unwrap();
        let mut costs = Vec::new();
        for (_, make) in &OPERATIONS {
            let tree = desk.tree.clone();
            let op = make(&mut desk, &at);
            costs.push(cost(&mut desk, op).2);
            desk.tree = tree;
        }
        let rows = Counted::new(&desk.tree);
        let path = ViewOverrides::read(&rows, &main_view(), tip).unwrap();
        window(&rows, &main_view(), &path, None, 20).unwrap();
        costs.push(rows.reads());
        costs
    };
    assert_eq!(costs(0), costs(200));
}

#[test]
fn control_a_walk_reads_every_row() {
    let (desk, _) = long(100);
    let rows = Counted::new(&desk.tree);
    let mut here = Some(desk.tip());
    while let Some(id) = here {
        here = drawloom_loom::path::position(&rows, id).unwrap().parent;
    }
    assert_eq!(rows.reads(), 101);
}

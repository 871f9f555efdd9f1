//! The tree and the naive model side by side: one action after another is done to both.

use std::fmt;

use drawloom_loom::plan::{EditAs, NewText};
use drawloom_loom::{
    CellKey, KeepScope, NodeId, NodeRow, Op, OpTarget, PassageEdit, Plan, PositionId, Refusal, ShownPassage,
    Slot, TreeReader, ViewName,
};
use proptest::prelude::*;

use super::model::{Choice, DraftAt, Model, Place, Step, View};
use super::model_ops::Do;
use loom_testing::Fixture;

/// An action before it is known what there is to act on: numbers are taken modulo what is there.
#[derive(Clone)]
pub(crate) struct Action {
    pub(crate) view: usize,
    pub(crate) kind: Kind,
    pub(crate) place: usize,
    pub(crate) other: usize,
    pub(crate) text: String,
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { view, kind, place, other, text } = self;
        write!(f, "({view}, {kind:?}, {place}, {other}, {text:?})")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Append,
    Reply,
    TypeBuffer,
    TypeEdit,
    Commit,
    EditVersion,
    EditBranch,
    EditPath,
    Merge,
    Split,
    BranchAt,
    Generate,
    Late,
    Switch,
    Select,
    Keep,
    Prune,
    Restore,
    LeaveOut,
    TakeIn,
    Move,
    Compact,
    Head,
    Note,
    NewView,
    Undo,
    Redo,
}

/// Texts with white space, clusters of several characters and clusters that words would split.
pub(crate) const TEXT: &str = "[ab \n\u{e01}\u{e33}e\u{301}🦀]{0,5}";

pub(crate) fn actions(most: usize) -> impl Strategy<Value = Vec<Action>> {
    use Kind::*;
    let kind = prop_oneof![
        4 => Just(Append), 2 => Just(Reply), 4 => Just(TypeBuffer), 4 => Just(TypeEdit), 3 => Just(Commit),
        3 => Just(EditVersion), 2 => Just(EditBranch), 2 => Just(EditPath), 3 => Just(Merge), 3 => Just(Split),
        2 => Just(BranchAt),
        2 => Just(Generate), 1 => Just(Late), 2 => Just(Switch), 2 => Just(Select), 1 => Just(Keep), 2 => Just(Prune),
        1 => Just(Restore), 1 => Just(LeaveOut), 1 => Just(TakeIn), 2 => Just(Move), 1 => Just(Compact),
        1 => Just(Head), 1 => Just(Note), 1 => Just(NewView), 6 => Just(Undo), 4 => Just(Redo),
    ];
    // Mostly the first view, so that its timeline grows long.
    let view = prop_oneof![3 => Just(0_usize), 1 => 0..3_usize];
    let action = (view, kind, 0..64_usize, 0..64_usize, TEXT)
        .prop_map(|(view, kind, place, other, text)| Action { view, kind, place, other, text });
    prop::collection::vec(action, 1..most)
}

pub(crate) struct Pair {
    pub(crate) desk: Fixture,
    pub(crate) model: Model,
    /// The ids of each place and its versions.
    pub(crate) ids: Vec<Vec<NodeId>>,
    /// Every node ever stored, as it was.
    pub(crate) stored: Vec<NodeRow>,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let desk = Fixture::buffer();
        let ids = vec![vec![desk.root().original()]];
        Self { desk, model: Model::new(), ids, stored: Vec::new() }
    }

    pub(crate) fn view(&self, view: View) -> ViewName {
        if view == 0 { ViewName::default() } else { format!("view {view}").parse().unwrap() }
    }

    pub(crate) fn position(&self, place: Place) -> PositionId {
        self.ids[place][0].as_position()
    }

    fn slot(&self, at: DraftAt) -> Slot {
        at.map_or(Slot::Buffer, |place| Slot::Edit(self.position(place)))
    }

    /// What an action means for what is there now.
    pub(crate) fn meant(&self, action: &Action) -> (View, Do) {
        let model = &self.model;
        let view = action.view % model.steps.len();
        let path = model.path(view);
        let any = action.place % model.spots.len();
        let version = action.other % model.spots[any].texts.len();
        let target = action.other.is_multiple_of(3).then_some(version);
        let text = action.text.clone();
        let act = match action.kind {
            Kind::Append => Do::Append(text),
            Kind::Reply => Do::Reply(any, text),
            Kind::TypeBuffer => Do::Type(None, text),
            Kind::TypeEdit if path.len() > 1 => {
                Do::Type(Some(path[1 + action.place % (path.len() - 1)]), text)
            }
            Kind::NewView if model.steps.len() < 3 => Do::NewView,
            Kind::EditVersion => Do::EditVersion(any, text),
            Kind::EditBranch => Do::EditBranch(any, text),
            Kind::EditPath => {
                // Every few passages of the path, now and then from a version that is not shown.
                let few = path.iter().skip(1).step_by(1 + action.other % 3);
                let edits = few.enumerate().map(|(n, place)| {
                    let versions = model.spots[*place].texts.len();
                    let from = if action.other % 5 == n { n % versions } else { model.shown(view, *place) };
                    (*place, from, if n == 1 { String::new() } else { format!("{text}{n}") })
                });
                let texts = (0..action.other % 3).map(|n| format!("{text}{n}!")).collect();
                Do::EditPath(edits.collect(), texts)
            }
            Kind::Merge if path.len() > 2 => {
                let last = 2 + action.place % (path.len() - 2);
                Do::Merge(self.above(view, last), action.other.is_multiple_of(2))
            }
            Kind::Split if path.len() > 1 => {
                let first = 1 + action.place % (path.len() - 1);
                let text = model.shown_text(view, path[first]);
                let bounds: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
                let cut = bounds[action.other / 2 % bounds.len()];
                Do::Split(self.below(view, first), cut, action.other.is_multiple_of(2))
            }
            Kind::TypeEdit | Kind::Commit | Kind::NewView | Kind::Merge | Kind::Split => Do::Commit,
            Kind::BranchAt => {
                let cut = &model.spots[any].texts[version];
                let bounds: Vec<usize> = (0..=cut.len()).filter(|at| cut.is_char_boundary(*at)).collect();
                Do::BranchAt(any, version, bounds[action.other / 7 % bounds.len()])
            }
            Kind::Generate | Kind::Late => {
                let texts = (0..=action.other % 3).map(|n| format!("{text}{n}")).collect();
                Do::Generate(texts, action.kind == Kind::Generate)
            }
            Kind::Switch => Do::Switch(any),
            Kind::Select => Do::Select(any, version),
            Kind::Keep => Do::Keep(any, action.other.is_multiple_of(2)),
            Kind::Prune if target.is_some_and(|version| self.in_use(any, version)) => Do::Commit,
            Kind::Prune | Kind::Restore => Do::Prune(any, target, action.kind == Kind::Prune),
            Kind::LeaveOut | Kind::TakeIn => Do::LeaveOut(any, target, action.kind == Kind::LeaveOut),
            Kind::Move => Do::Move(any),
            Kind::Compact => Do::Compact((!action.other.is_multiple_of(4)).then_some(any)),
            Kind::Head => Do::Pin(Choice::Head, text),
            Kind::Note => Do::Pin(Choice::Note, text),
            Kind::Undo => Do::Undo,
            Kind::Redo => Do::Redo,
        };
        (view, act)
    }

    fn seen(&self, view: View, places: &[Place]) -> Vec<(Place, usize)> {
        places.iter().map(|place| (*place, self.model.shown(view, *place))).collect()
    }

    /// The passage of the path at this depth, and those above it up to the first that says something.
    pub(crate) fn above(&self, view: View, last: usize) -> Vec<(Place, usize)> {
        let path = self.model.path(view);
        let says = |depth: &usize| !self.model.shown_text(view, path[*depth]).is_empty();
        let first = (1..last).rev().find(says).unwrap_or(last - 1);
        self.seen(view, &path[first..=last])
    }

    /// The passage of the path at this depth, and the first below it, if that is empty.
    fn below(&self, view: View, first: usize) -> Vec<(Place, usize)> {
        let path = self.model.path(view);
        let below = path.get(first + 1).filter(|below| self.model.shown_text(view, **below).is_empty());
        self.seen(view, &path[first..first + 1 + usize::from(below.is_some())])
    }

    /// Whether a view shows a version or edits its place. Pruned under the hand of a view, a version gives way to
    /// the newest one, which after an undo is another than before; that has tests of its own.
    fn in_use(&self, place: Place, version: usize) -> bool {
        let model = &self.model;
        (0..model.steps.len()).any(|view| {
            let mut steps = model.steps[view].done.iter().chain(&model.steps[view].undone);
            model.shown(view, place) == version
                || model.drafts.contains_key(&(view, Some(place)))
                || steps.any(|step| matches!(step, Step::Key { at: Some(at), .. } if *at == place))
        })
    }

    /// Does an action to both, and compares what came of it.
    pub(crate) fn act(&mut self, action: &Action) -> (View, Do) {
        let (view, act) = self.meant(action);
        self.perform(view, &act);
        (view, act)
    }

    pub(crate) fn perform(&mut self, view: View, act: &Do) {
        let name = self.view(view);
        let spots_before: Vec<usize> = self.model.spots.iter().map(|spot| spot.texts.len()).collect();
        let expected = self.model.act(view, act);
        let plans = match act {
            Do::Type(at, text) => {
                let slot = self.slot(*at);
                self.desk.typed_in(&name, slot, text);
                Ok(Vec::new())
            }
            Do::Generate(texts, follow) => {
                let (row, part_of, plan) = self.desk.asked(&name, texts.len());
                let mut plans = vec![plan];
                for (choice, text) in texts.iter().enumerate() {
                    let op = self.desk.answer(&row, choice, text, part_of, *follow);
                    plans.push(self.desk.run_in(&name, op).unwrap());
                }
                Ok(plans)
            }
            other => {
                let op = self.op(other);
                self.desk.run_in(&name, op).map(|plan| vec![plan])
            }
        };
        match (plans, expected) {
            (Ok(plans), Ok(())) => self.learn(&plans, &spots_before, act),
            (Err(_), Err(_)) => {}
            (found, wanted) => {
                let found: Result<(), Refusal> = found.map(drop);
                panic!("{act:?} in view {view}: {found:?}, but {wanted:?} in the model");
            }
        }
    }

    /// Learns the ids of what was made; as many rows are made as the model made.
    fn learn(&mut self, plans: &[Plan], before: &[usize], act: &Do) {
        let mut made: Vec<_> = plans.iter().flat_map(|plan| &plan.nodes).collect();
        for (place, spot) in self.model.spots.iter().enumerate() {
            for text in &spot.texts[before.get(place).copied().unwrap_or(0)..] {
                let here = |position: PositionId| {
                    self.ids.get(place).is_some_and(|ids| ids[0].as_position() == position)
                };
                let known = place < self.ids.len();
                let found = made.iter().position(|node| {
                    node.text() == *text && if known { here(node.position) } else { node.is_original() }
                });
                let found = found.unwrap_or_else(|| panic!("{act:?} did not make {text:?}"));
                let node = made.remove(found);
                if known {
                    self.ids[place].push(node.id);
                } else {
                    self.ids.push(vec![node.id]);
                }
            }
        }
        assert!(made.is_empty(), "{act:?} made more than it should: {made:?}");
        for node in plans.iter().flat_map(|plan| &plan.nodes) {
            self.stored.push(self.desk.tree.node(node.id).unwrap().unwrap());
        }
    }

    fn target(&self, place: Place, version: Option<usize>) -> OpTarget {
        match version {
            None => OpTarget::Position(self.position(place)),
            Some(version) => OpTarget::Version(self.ids[place][version]),
        }
    }

    fn passages(&self, passages: &[(Place, usize)]) -> Vec<ShownPassage> {
        let shown = passages.iter().map(|(place, version)| ShownPassage {
            position: self.position(*place),
            node: self.ids[*place][*version],
        });
        shown.collect()
    }

    pub(crate) fn op(&self, act: &Do) -> Op {
        let at = |place: &Place| self.position(*place);
        let edit = |place: &Place, text: &String, edit_as| Op::Edit {
            position: self.position(*place),
            text: text.clone(),
            edit_as,
        };
        match act {
            Do::Append(text) => Op::Append(NewText::owner(text, None)),
            Do::Reply(place, text) => Op::Reply {
                to: Some(at(place)),
                texts: vec![NewText::owner(text, None)],
                exclude: Vec::new(),
                part_of: None,
            },
            Do::Commit | Do::Type(..) | Do::Generate(..) => Op::Commit,
            Do::EditVersion(place, text) => edit(place, text, EditAs::Version),
            Do::EditBranch(place, text) => edit(place, text, EditAs::Branch),
            Do::EditPath(edits, texts) => Op::EditPath {
                edits: edits
                    .iter()
                    .map(|(place, from, text)| PassageEdit {
                        position: at(place),
                        from: self.ids[*place][*from],
                        text: text.clone(),
                        moved: None,
                        moved_to: None,
                    })
                    .collect(),
                texts: texts.iter().map(|text| NewText::owner(text, None)).collect(),
                behind: None,
            },
            Do::Merge(passages, keep) => Op::Merge { passages: self.passages(passages), keep: *keep },
            Do::Split(passages, cut, keep) => {
                Op::Split { passages: self.passages(passages), at: *cut as u64, keep: *keep }
            }
            Do::BranchAt(place, version, cut) => {
                Op::BranchAt { node: self.ids[*place][*version], at: *cut as u64, token: None }
            }
            Do::Switch(place) => Op::Switch(at(place)),
            Do::Select(place, version) => {
                Op::Select { position: at(place), version: self.ids[*place][*version] }
            }
            Do::Keep(place, below) => Op::Keep {
                position: at(place),
                scope: if *below { KeepScope::Below } else { KeepScope::Here },
            },
            Do::Prune(place, version, true) => Op::Prune(self.target(*place, *version)),
            Do::Prune(place, version, false) => Op::Restore(self.target(*place, *version)),
            Do::LeaveOut(place, version, true) => Op::Exclude(self.target(*place, *version)),
            Do::LeaveOut(place, version, false) => Op::Include(self.target(*place, *version)),
            Do::Move(place) => Op::Move(at(place)),
            Do::Compact(to) => {
                let to = to.as_ref().map(|to| drawloom_loom::TextOffset { position: at(to), at: 0 });
                Op::Compact { to, by_hand: true }
            }
            Do::Pin(Choice::Head, text) => Op::PinHead(NewText::owner(text, None)),
            Do::Pin(_, text) => Op::PinNote { text: NewText::owner(text, None), depth: None },
            Do::NewView => {
                Op::NewView { name: self.view(self.model.steps.len() - 1), agent: "reader".into() }
            }
            Do::Undo => Op::Undo,
            Do::Redo => Op::Redo,
        }
    }

    /// The tree says what the model says, in every view.
    pub(crate) fn agree(&self) {
        for view in 0..self.model.steps.len() {
            let name = self.view(view);
            assert_eq!(self.desk.text_of(&name), self.model.render(view, true), "view {view}");
            assert_eq!(self.desk.tip_of(&name), self.position(self.model.tip(view)), "tip of view {view}");
            let window = self.desk.tree.cell(&CellKey::WindowStart { view: name }).unwrap();
            let expected = self.model.get(Choice::Window(view)).map(|place| self.position(place));
            assert_eq!(
                window.value.as_place().map(|place| place.position),
                expected,
                "window of view {view}"
            );
        }
    }

    /// Nothing that was ever stored has changed.
    pub(crate) fn nothing_lost(&self) {
        for row in &self.stored {
            assert_eq!(self.desk.tree.node(row.node.id).unwrap().as_ref(), Some(row));
        }
    }
}

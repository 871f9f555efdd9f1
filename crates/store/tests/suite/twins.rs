//! The same plans leave the same rows in a store and in plain maps, which share no rule with it.

use std::sync::{Arc, Mutex};

use loom::cell::{CellScope, TextOffset};
use loom::memory::MemoryTree;
use loom::plan::{DraftChange, EditAs, plan};
use loom::{
    CellKey, KeepScope, Mode, NodeId, NodeRow, Op, OpTarget, Plan, PlanError, PositionId, ReadSet, RowError,
    Seq, Slot, TreeReader, ViewName,
};
use loom_testing::WriteRows;
use proptest::prelude::*;
use store::{AttachedWrites, DraftEdit, DraftName, Store, read};

use super::both::{block_on, one_case_in_eight};
use super::home::{Home, OWNER, owner_text};

/// What the test does next; numbers choose among what there is.
#[derive(Debug, Clone)]
enum Step {
    Append(String),
    Type(String),
    TypeOver(usize, String),
    Commit,
    Edit(usize, String, bool),
    BranchAt(usize, usize),
    Switch(usize),
    Move(usize),
    Select(usize),
    Keep(usize, bool),
    Prune(usize, bool),
    Restore(usize, bool),
    Exclude(usize, bool),
    Compact(usize),
    Bookmark(usize, Option<String>),
    Tag(usize, String, bool),
    Annotate(usize, String),
    Head(String),
    Note(String),
    View(usize),
    Rename(String),
    Archive(bool),
    Undo,
    Redo,
}

fn step() -> impl Strategy<Value = Step> {
    let text = "[a-cé字 \n]{0,8}";
    let at = 0_usize..100;
    prop_oneof![
        4 => "[a-cé字 \n]{1,8}".prop_map(Step::Append),
        3 => text.prop_map(Step::Type),
        2 => (at.clone(), text).prop_map(|(at, text)| Step::TypeOver(at, text)),
        2 => Just(Step::Commit),
        3 => (at.clone(), text, any::<bool>()).prop_map(|(at, text, branch)| Step::Edit(at, text, branch)),
        2 => (at.clone(), 0_usize..8).prop_map(|(node, at)| Step::BranchAt(node, at)),
        2 => at.clone().prop_map(Step::Switch),
        2 => at.clone().prop_map(Step::Move),
        2 => at.clone().prop_map(Step::Select),
        1 => (at.clone(), any::<bool>()).prop_map(|(at, below)| Step::Keep(at, below)),
        2 => (at.clone(), any::<bool>()).prop_map(|(at, version)| Step::Prune(at, version)),
        2 => (at.clone(), any::<bool>()).prop_map(|(at, version)| Step::Restore(at, version)),
        1 => (at.clone(), any::<bool>()).prop_map(|(at, version)| Step::Exclude(at, version)),
        1 => at.clone().prop_map(Step::Compact),
        1 => (at.clone(), proptest::option::of("[a-c]{1,3}")).prop_map(|(at, title)| Step::Bookmark(at, title)),
        1 => (at.clone(), "[ab]", any::<bool>()).prop_map(|(at, tag, on)| Step::Tag(at, tag, on)),
        1 => (at.clone(), "[a-c]{1,4}").prop_map(|(at, text)| Step::Annotate(at, text)),
        1 => "[a-c]{1,4}".prop_map(Step::Head),
        1 => "[a-c]{1,4}".prop_map(Step::Note),
        1 => at.prop_map(Step::View),
        1 => "[a-c]{0,4}".prop_map(Step::Rename),
        1 => any::<bool>().prop_map(Step::Archive),
        4 => Just(Step::Undo),
        3 => Just(Step::Redo),
    ]
}

/// Which of the nodes there are a step is about.
const fn choice(step: &Step) -> usize {
    match step {
        Step::Edit(at, ..)
        | Step::BranchAt(at, _)
        | Step::Switch(at)
        | Step::Move(at)
        | Step::Select(at)
        | Step::Keep(at, _)
        | Step::Prune(at, _)
        | Step::Restore(at, _)
        | Step::Exclude(at, _)
        | Step::Compact(at)
        | Step::Bookmark(at, _)
        | Step::Tag(at, ..)
        | Step::Annotate(at, _)
        | Step::TypeOver(at, _) => *at,
        _ => 0,
    }
}

/// A step as a change of the tree; none for typing.
fn op(step: Step, node: NodeId, position: PositionId) -> Option<Op> {
    let target = |version| if version { OpTarget::Version(node) } else { OpTarget::Position(position) };
    Some(match step {
        Step::Append(text) => Op::Append(owner_text(&text)),
        Step::Commit => Op::Commit,
        Step::Edit(_, text, branch) => {
            Op::Edit { position, text, edit_as: if branch { EditAs::Branch } else { EditAs::Version } }
        }
        Step::BranchAt(_, at) => Op::BranchAt { node, at: at as u64, token: None },
        Step::Switch(_) => Op::Switch(position),
        Step::Move(_) => Op::Move(position),
        Step::Select(_) => Op::Select { position, version: node },
        Step::Keep(_, below) => {
            Op::Keep { position, scope: if below { KeepScope::Below } else { KeepScope::Here } }
        }
        Step::Prune(_, version) => Op::Prune(target(version)),
        Step::Restore(_, version) => Op::Restore(target(version)),
        Step::Exclude(_, version) => Op::Exclude(target(version)),
        Step::Compact(at) => {
            Op::Compact { to: Some(TextOffset { position, at: (at % 3) as u64 }), by_hand: at % 2 == 0 }
        }
        Step::Bookmark(_, title) => Op::Bookmark { position, title },
        Step::Tag(_, tag, on) => Op::Tag { position, tag, on },
        Step::Annotate(_, text) => Op::Annotate { position, text: owner_text(&text) },
        Step::Head(text) => Op::PinHead(owner_text(&text)),
        Step::Note(text) => Op::PinNote { depth: Some(text.len() as u64), text: owner_text(&text) },
        Step::View(number) => {
            Op::NewView { name: format!("v{}", number % 3).parse().unwrap(), agent: "owner".into() }
        }
        Step::Rename(title) => Op::Rename(title),
        Step::Archive(on) => Op::Archive(on),
        Step::Undo => Op::Undo,
        Step::Redo => Op::Redo,
        Step::Type(_) | Step::TypeOver(..) => return None,
    })
}

/// Every answer of a tree's rows, as text.
fn everything(rows: &dyn TreeReader) -> Result<Vec<String>, RowError> {
    let main = ViewName::default();
    let mut all = vec![format!("{:?}", rows.tree()?)];
    let nodes = rows.nodes_in_order(None, usize::MAX)?;
    all.extend(nodes.iter().map(|row| format!("{row:?}")));
    for row in &nodes {
        let (id, order) = (row.node.id, (row.seq, row.place));
        assert_eq!(rows.node(id)?.as_ref(), Some(row));
        assert_eq!(rows.nodes(&[id, nodes[0].node.id])?[0], *row);
        all.push(format!("{:?}", rows.nodes_in_order(Some(order), 2)?));
        let content = row.node.content_hash().unwrap();
        all.push(format!("{:?}", rows.version_with_content(row.node.position, content)?));
        for key in [
            CellKey::Selected { view: main.clone(), position: row.node.position },
            CellKey::LastTip { view: main.clone(), position: row.node.position },
            CellKey::Keep { view: main.clone(), position: row.node.position },
            CellKey::Pruned { target: OpTarget::Version(id) },
        ] {
            all.push(format!("{key} {:?}", rows.cell(&key)?));
        }
        let here = id.as_position();
        let Some(position) = rows.position(here)? else { continue };
        all.push(format!("{position:?} {} {}", rows.count_versions(here)?, rows.count_children(here)?));
        for before in [None, Some(order), Some((Seq(order.0.0 + 1), 0)), Some((Seq(999), 9))] {
            all.push(format!("{:?}", rows.versions(here, before, 2)?));
            all.push(format!("{:?}", rows.children(here, before, 2)?));
        }
        all.push(format!("{:?}", rows.upwards(here, 3)?));
        all.push(format!("{:?}", rows.original_texts(here)?));
        assert_eq!(rows.upwards(here, usize::MAX)?.len() as u32, position.depth + 1);
        for view in [None, Some(&main)] {
            let mut choices = rows.choices(view, here)?;
            choices.sort_by(|a, b| a.0.cmp(&b.0));
            all.push(format!("{choices:?}"));
        }
    }
    for scope in [
        CellScope::Views,
        CellScope::Selected(main.clone()),
        CellScope::Keeps(main.clone()),
        CellScope::Pruned,
        CellScope::Excluded,
        CellScope::Bookmarks,
        CellScope::AllTags,
        CellScope::Tags(nodes[nodes.len() / 2].node.position),
    ] {
        all.push(format!("{:?}", rows.cells(&scope)?));
    }
    let views = [main, "v0".parse().unwrap(), "v1".parse().unwrap()];
    for view in views {
        for key in [CellKey::Tip { view: view.clone() }, CellKey::WindowStart { view: view.clone() }] {
            all.push(format!("{key} {:?}", rows.cell(&key)?));
        }
        all.push(format!("{:?} {:?}", rows.timeline(&view)?, rows.drafts(&view)?));
    }
    for key in [CellKey::Title, CellKey::Archived, CellKey::Head, CellKey::Note, CellKey::NoteDepth] {
        all.push(format!("{key} {:?}", rows.cell(&key)?));
    }
    let records = rows.operations(Seq(0), usize::MAX)?;
    for record in &records {
        assert_eq!(rows.operation(record.seq)?.as_ref(), Some(record));
        assert_eq!(record.compute_hash().unwrap(), record.hash);
    }
    all.extend(records.iter().map(|record| format!("{record:?}")));
    Ok(all)
}

/// A store and the naive model, given the same plans.
struct Twins {
    model: Mutex<MemoryTree>,
    home: Home,
    tree: loom::TreeId,
}

impl Twins {
    async fn apply(&self, plan: Plan) {
        let seq = self.model.lock().unwrap().apply(plan.clone()).unwrap();
        let applied = self.home.store.apply(OWNER, self.tree, plan, AttachedWrites::nothing()).await.unwrap();
        assert_eq!(applied.seq, seq);
    }

    async fn plan(&self, op: Op) -> Option<Plan> {
        let request = self.home.request(self.tree, op);
        if matches!(request.op, Op::Create(_)) {
            return self.home.ids.with(|entropy| plan(&request, &ReadSet::default(), entropy)).unwrap().ok();
        }
        let ids = self.home.ids.clone();
        let planned = read(&self.home.store, OWNER, self.tree, move |rows| {
            let mut slice = ReadSet::default();
            loop {
                match ids.with(|entropy| plan(&request, &slice, entropy)).unwrap() {
                    Ok(plan) => return Ok(Some(plan)),
                    Err(PlanError::Needs(needs)) => slice.load(&needs, rows)?,
                    Err(PlanError::Refused(_)) => return Ok(None),
                }
            }
        });
        planned.await.unwrap()
    }

    async fn type_text(&self, slot: Slot, base: Option<NodeId>, text: &str) {
        let view = ViewName::default();
        let name = DraftName { tree: self.tree, view: view.clone(), slot };
        let now = self.model.lock().unwrap().draft(&view, slot).unwrap();
        let expected = now.as_ref().map(|draft| draft.revision);
        let edit = DraftEdit::Set { base, text: text.to_owned() };
        let draft = self.home.store.edit_draft(OWNER, name, expected, edit).await.unwrap();
        if now.as_ref() != Some(&draft) {
            let change = DraftChange { view, slot, expected, new: Some(draft) };
            self.model.lock().unwrap().set_draft(change).unwrap();
        }
    }

    async fn take(&self, step: Step) {
        let rows = self.model.lock().unwrap().nodes_in_order(None, usize::MAX).unwrap();
        let nodes: Vec<_> = rows.iter().map(|row| (row.node.id, row.node.position)).collect();
        let (node, position) = nodes[choice(&step) % nodes.len()];
        match &step {
            Step::Type(text) => self.type_text(Slot::Buffer, None, text).await,
            // The genesis is never edited.
            Step::TypeOver(_, _) if node == nodes[0].0 => {}
            Step::TypeOver(_, text) => self.type_text(Slot::Edit(position), Some(node), text).await,
            _ => {
                if let Some(op) = op(step, node, position)
                    && let Some(plan) = self.plan(op).await
                {
                    self.apply(plan).await;
                }
            }
        }
    }

    async fn compare(&self) {
        let model = everything(&*self.model.lock().unwrap()).unwrap();
        let stored = read(&self.home.store, OWNER, self.tree, everything).await.unwrap();
        for (model, stored) in model.iter().zip(&stored) {
            assert_eq!(model, stored);
        }
        assert_eq!(model.len(), stored.len());
        let rows = self.model.lock().unwrap().nodes_in_order(None, usize::MAX).unwrap();
        let last = self.model.lock().unwrap().operations(Seq(0), usize::MAX).unwrap().pop().unwrap();
        let entry = self.home.store.tree(OWNER, self.tree).await.unwrap();
        assert_eq!((entry.nodes, entry.seq, entry.updated_at), (rows.len() as u64, last.seq, last.op.at));
        self.compare_search(&rows).await;
    }

    /// Searches for one word and for one Chinese character, and reads every text for them.
    async fn compare_search(&self, rows: &[NodeRow]) {
        for query in ["a", "字", "é"] {
            let holds = |row: &&NodeRow| {
                let text = row.node.text().replace('é', "e");
                let folded = query.replace('é', "e");
                text.split(|c: char| !c.is_alphanumeric() || c == '字').any(|word| word == folded)
                    || (query == "字" && text.contains(query))
            };
            let mut expected: Vec<_> = rows.iter().filter(holds).map(|row| row.node.id).collect();
            let found = self.home.store.search(OWNER, query, store::SearchScope::All, 9999).await.unwrap();
            let by_text = found.hits.into_iter().filter(|hit| !hit.labelled);
            let mut hits: Vec<_> = by_text.map(|hit| hit.node).collect();
            expected.sort();
            hits.sort();
            assert_eq!(hits, expected, "{query}");
        }
    }
}

/// Takes steps in a store and in the model, and compares all their rows.
fn run(store: Store, mode: Mode, steps: Vec<Step>) {
    let home = Home::new(Arc::new(store));
    block_on(async {
        let tree = home.ids.with(|entropy| entropy.next(loom::Millis(1_700_000_000_000))).unwrap();
        let twins = Twins { model: Mutex::default(), home, tree };
        let new = loom::plan::NewTree { mode, title: "t".into(), origin: None };
        let created = twins.plan(Op::Create(new)).await.unwrap();
        twins.apply(created).await;
        for step in steps {
            twins.take(step).await;
        }
        twins.compare().await;
        assert_eq!(twins.home.store.check(OWNER).await.unwrap(), Vec::<String>::new());
    });
}

/// A number from the environment: `PROPTEST_CASES` and `DRAWLOOM_LAW_STEPS` ask for more and longer cases.
fn asked(name: &str, usual: u32) -> u32 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

/// The same steps in memory, and on a server where that is asked for; `DRAWLOOM_LAW_ENGINE` names one alone.
fn run_on_engines(steps: Vec<Step>, on_server: bool) {
    let alone = std::env::var("DRAWLOOM_LAW_ENGINE").ok();
    let wanted = |engine: &str, usual: bool| alone.as_deref().map_or(usual, |alone| alone == engine);
    if wanted("sqlite", true) {
        run(Store::in_memory().unwrap(), Mode::Buffer, steps.clone());
    }
    #[cfg(feature = "postgres")]
    if wanted("postgres", on_server)
        && let Some(schema) = super::server::Schema::new()
    {
        run(schema.open(), Mode::Buffer, steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: asked("PROPTEST_CASES", 8), ..ProptestConfig::default() })]

    #[test]
    fn the_same_plans_leave_the_same_rows(
        steps in prop::collection::vec(step(), 1..asked("DRAWLOOM_LAW_STEPS", 40) as usize),
        on_server in one_case_in_eight(),
    ) {
        run_on_engines(steps, on_server);
    }
}

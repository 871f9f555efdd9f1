//! Authors of nodes are told once and kept by node: what is kept is what is told anew, and goes with what it came from.

use loom::attribution::Attributions;
use loom::plan::EditAs;
use loom::reader::Attribution;
use loom::{Author, AuthorKind, Mode, NodeId, Op, RowError, Seq, TreeReader};
use proptest::prelude::*;
use store::{AttachedWrites, Cursor, Forget, StoreError, change, read};

use super::both::{block_on, each, one_case_in_eight};
use super::home::{Home, OWNER, Page};

/// The authors of all nodes: by what is kept, anew, and those that were not kept.
type Told = (Vec<Attribution>, Vec<Attribution>, Vec<Attribution>);

fn all(rows: &dyn TreeReader) -> Result<Told, RowError> {
    let (mut kept, mut anew) = (Attributions::new(rows), Attributions::anew(rows));
    let (mut by_kept, mut by_versions) = (Vec::new(), Vec::new());
    for row in rows.nodes_in_order(None, usize::MAX)? {
        let node = row.node.id;
        by_kept.push(Attribution { node, spans: kept.of(&row)? });
        by_versions.push(Attribution { node, spans: anew.of(&row)? });
    }
    Ok((by_kept, by_versions, kept.into_computed()))
}

async fn told(page: &Page) -> Told {
    read(&page.home.store, OWNER, page.tree, all).await.unwrap()
}

async fn keep(page: &Page, found: Vec<Attribution>, told: Cursor) {
    page.home.store.keep_attributions(OWNER, page.tree, found, told).await.unwrap();
}

async fn cursor(page: &Page) -> Cursor {
    page.home.store.cursor().await.unwrap()
}

/// Edits the node as somebody; returns the new one, if it is one.
async fn edit_by(page: &Page, node: NodeId, who: usize, text: &str, edit_as: EditAs) -> Option<NodeId> {
    let position = read(&page.home.store, OWNER, page.tree, move |rows| {
        Ok(rows.node(node)?.ok_or_else(|| RowError::missing("node", node))?.node.position)
    });
    let op = Op::Edit { position: position.await.unwrap(), text: text.to_owned(), edit_as };
    let mut request = page.home.request(page.tree, op);
    if who > 0 {
        request.author = Author { kind: AuthorKind::Tool, id: format!("tool{who}"), profile: None };
    }
    match change(&page.home.store, OWNER, request, AttachedWrites::nothing(), &page.home.ids).await {
        Ok(applied) => applied.nodes.first().map(|(node, _)| *node),
        Err(StoreError::Refused(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

#[derive(Debug, Clone)]
enum Step {
    Append(String),
    Edit(usize, usize, String, bool),
    /// A branch inside of a node, which quotes it.
    Quote(usize, usize),
    Keep(usize),
    Forget(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let (text, at) = ("[ab \u{e9}e\u{301}\u{5b57}.]{1,12}", 0..64_usize);
    prop_oneof![
        2 => text.prop_map(Step::Append),
        8 => (at.clone(), 0..3_usize, text, any::<bool>()).prop_map(|(at, who, text, branch)| Step::Edit(at, who, text, branch)),
        2 => (at.clone(), 0..12_usize).prop_map(|(at, inside)| Step::Quote(at, inside)),
        3 => at.clone().prop_map(Step::Keep),
        1 => at.prop_map(Step::Forget),
    ]
}

async fn take(page: &Page, nodes: &mut Vec<NodeId>, step: Step) {
    match step {
        Step::Append(text) => nodes.push(page.append(&text).await),
        Step::Edit(at, who, text, branch) => {
            let edit_as = if branch { EditAs::Branch } else { EditAs::Version };
            nodes.extend(edit_by(page, nodes[at % nodes.len()], who, &text, edit_as).await);
        }
        Step::Quote(at, inside) => {
            let op = Op::BranchAt { node: nodes[at % nodes.len()], at: inside as u64, token: None };
            if let Ok(applied) = page.change_as(OWNER, op, AttachedWrites::nothing()).await {
                nodes.extend(applied.nodes.first().map(|(node, _)| *node));
            }
        }
        Step::Keep(some) => {
            let told_at = cursor(page).await;
            let computed = told(page).await.2;
            let some = computed.into_iter().enumerate().filter(|(at, _)| at % 3 == some % 3);
            keep(page, some.map(|(_, one)| one).collect(), told_at).await;
        }
        Step::Forget(at) => {
            let what = Forget::Node { tree: page.tree, node: nodes[at % nodes.len()] };
            page.home.store.forget(OWNER, &what, loom::Millis(1_700_000_000_000)).await.unwrap();
        }
    }
}

fn run(home: &Home, steps: Vec<Step>) {
    block_on(async {
        let page = home.create(Mode::Buffer, "").await;
        let mut nodes = vec![page.append("It rained. ").await];
        for step in steps {
            take(&page, &mut nodes, step).await;
            let (kept, anew, _) = told(&page).await;
            assert_eq!(kept, anew);
        }
        let told_at = cursor(&page).await;
        let (_, anew, computed) = told(&page).await;
        keep(&page, computed, told_at).await;
        let (kept, _, computed) = told(&page).await;
        assert_eq!((kept, computed), (anew, vec![]));
        assert_eq!(page.home.store.check(OWNER).await.unwrap(), Vec::<String>::new());
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn kept_authors_are_those_told_anew(
        steps in prop::collection::vec(step(), 1..24),
        on_server in one_case_in_eight(),
    ) {
        run(&Home::new(std::sync::Arc::new(store::Store::in_memory().unwrap())), steps.clone());
        if on_server {
            #[cfg(feature = "postgres")]
            if let Some(schema) = super::server::Schema::new() {
                run(&Home::new(std::sync::Arc::new(schema.open())), steps);
            }
        }
    }
}

/// A node of many versions, each by somebody else.
async fn edited(home: &Home, versions: usize) -> (Page, NodeId) {
    let page = home.create(Mode::Buffer, "").await;
    let mut node = page.append("It rained.").await;
    for number in 0..versions {
        let text = format!("It rained {}.", "again ".repeat(number + 1));
        node = edit_by(&page, node, number % 3, &text, EditAs::Version).await.unwrap();
    }
    (page, node)
}

/// The statements it takes to tell the authors of a node, and whether they were told anew.
async fn cost(page: &Page, node: NodeId) -> (u64, bool) {
    let before = page.home.store.statement_counts().statements;
    let computed = read(&page.home.store, OWNER, page.tree, move |rows| {
        let mut authors = Attributions::new(rows);
        authors.of(&rows.node(node)?.ok_or_else(|| RowError::missing("node", node))?)?;
        Ok(!authors.into_computed().is_empty())
    });
    let computed = computed.await.unwrap();
    (page.home.store.statement_counts().statements - before, computed)
}

#[test]
fn many_versions_cost_once() {
    each(|home| async move {
        let (page, node) = edited(&home, 40).await;
        let told_at = cursor(&page).await;
        assert!(cost(&page, node).await.1);
        keep(&page, told(&page).await.2, told_at).await;
        let (statements, computed) = cost(&page, node).await;
        assert!(!computed);
        // The authors that brought a stretch are read by their numbers, names among them.
        assert!(statements <= 3 * 41, "{statements}");
        // One version more costs one step of the chain.
        let next = edit_by(&page, node, 0, "It rained again and again.", EditAs::Version).await.unwrap();
        assert!(cost(&page, next).await.1);
    });
}

#[test]
fn kept_authors_go_with_what_they_were_told_from() {
    each(|home| async move {
        let (page, node) = edited(&home, 4).await;
        let told_at = cursor(&page).await;
        let computed = told(&page).await.2;
        keep(&page, computed.clone(), told_at).await;
        assert!(!cost(&page, node).await.1, "control: they are kept");
        let first = read(&home.store, OWNER, page.tree, |rows| {
            Ok(rows.operations(Seq(1), 1)?[0].op.nodes.first().map(|made| made.0))
        });
        let first = first.await.unwrap().unwrap();
        let what = Forget::Node { tree: page.tree, node: first };
        home.store.forget(OWNER, &what, loom::Millis(1_700_000_000_000)).await.unwrap();
        let kept = move |rows: &dyn TreeReader| rows.attributions(&[node]);
        assert_eq!(read(&home.store, OWNER, page.tree, kept).await.unwrap(), []);
        // What was told before is not kept after.
        keep(&page, computed, told_at).await;
        assert_eq!(read(&home.store, OWNER, page.tree, kept).await.unwrap(), []);
        let (by_kept, anew, _) = told(&page).await;
        assert_eq!(by_kept, anew);
        home.store.purge(OWNER, page.tree, loom::Millis(1_700_000_000_000)).await.unwrap();
        assert_eq!(read(&home.store, OWNER, page.tree, kept).await.unwrap(), []);
    });
}

#[test]
fn authors_are_kept_for_who_may_write_and_of_nodes_of_the_tree() {
    each(|home| async move {
        let (page, _) = edited(&home, 2).await;
        let other = home.create(Mode::Buffer, "").await;
        let (told_at, computed) = (cursor(&page).await, told(&page).await.2);
        let reader = store::Principal::Token {
            name: "reader".to_owned(),
            scope: store::Scope::ReadTree { tree: page.tree, with_context: true },
        };
        let refused = home.store.keep_attributions(&reader, page.tree, computed.clone(), told_at).await;
        assert!(matches!(refused, Err(StoreError::Denied(_))), "{refused:?}");
        let refused = home.store.keep_attributions(OWNER, other.tree, computed, told_at).await;
        assert!(matches!(refused, Err(StoreError::NotFound(_))), "{refused:?}");
    });
}

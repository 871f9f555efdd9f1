//! Operations that make very many nodes: what they cost grows with their nodes, not with the square of them.
//!
//! Nothing here is timed. Were each node to read its operation, as it did, 20,000 times 20,000 nodes would be read,
//! and the test would not end while anybody waits.

use std::collections::HashSet;
use std::sync::Arc;

use loom::content::content_hash;
use loom::operation::TimelineEffect;
use loom::record::{Links, chain_hash};
use loom::verify::{Report, Status, verify};
use loom::{Block, Counts, Mode, NodeId, OpKind, Operation, PathDigest, Plan, Seq};
use loom_testing::NoEvidence;
use store::{AttachedWrites, Forget, Store, read};

use crate::both::block_on;
use crate::home::{Home, OWNER, Page};

const NODES: usize = 20_000;

/// One operation that makes versions of a position.
async fn versions(page: &Page, of: NodeId, count: usize) -> Plan {
    let original =
        read(&page.home.store, OWNER, page.tree, move |rows| rows.node(of)).await.unwrap().unwrap().node;
    let mut nodes = Vec::with_capacity(count);
    for number in 0..count {
        let id = page.home.ids.with(|entropy| entropy.next(original.created_at)).unwrap();
        let text = format!("version {number}");
        let mut node = original.clone();
        (node.id, node.edited_from) = (id, Some(of));
        (node.counts, node.term) = (Counts::of(&text), PathDigest::term(node.position, &text));
        node.content = vec![Block::text(text)].into();
        node.kept_hash = Some(content_hash(&node.content).unwrap());
        let chain = Some(original.chain_hash);
        node.chain_hash = chain_hash(&node, Links { position: chain, edited_from: chain }).unwrap();
        nodes.push(node);
    }
    let op = Operation {
        tree: page.tree,
        agent: "owner".to_owned(),
        view: None,
        kind: OpKind::Commit,
        at: original.created_at,
        cells: Vec::new(),
        nodes: nodes.iter().map(|node| (node.id, node.chain_hash)).collect(),
        skipped: Vec::new(),
        timeline: TimelineEffect::None,
    };
    Plan { nodes, op: Some(op), ..Plan::default() }
}

async fn verified(page: &Page) -> Report {
    page.home.store.read_whole(OWNER, page.tree, |rows| verify(rows, &NoEvidence)).await.unwrap()
}

#[test]
fn an_operation_of_20_000_nodes_is_applied_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    block_on(async {
        let home = Home::new(Arc::new(Store::open(&path).unwrap()));
        let page = home.create(Mode::Buffer, "").await;
        let original = page.append("original").await;
        let plan = versions(&page, original, NODES).await;
        let applied = home.store.apply(OWNER, page.tree, plan, AttachedWrites::nothing()).await.unwrap();
        assert_eq!((applied.seq, applied.nodes.len()), (Some(Seq(3)), NODES));
        assert_eq!(applied.nodes.iter().map(|(id, _)| id).collect::<HashSet<_>>().len(), NODES);
        let report = verified(&page).await;
        assert_eq!((report.status, report.nodes), (Status::Valid, NODES as u64 + 2), "{:?}", report.problems);
    });
}

#[test]
fn a_node_that_no_operation_names_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    let open = || Home::new(Arc::new(Store::open(&path).unwrap()));
    let tree = block_on(async {
        let page = open().create(Mode::Buffer, "").await;
        let original = page.append("original").await;
        let plan = versions(&page, original, 3).await;
        page.home.store.apply(OWNER, page.tree, plan, AttachedWrites::nothing()).await.unwrap();
        page.tree
    });
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute("UPDATE nodes SET place = 3 WHERE pk = (SELECT max(pk) FROM nodes)", []).unwrap();
    drop(conn);
    let report = block_on(async { verified(&Page { home: open(), tree }).await });
    assert_eq!(report.status, Status::Invalid);
    assert!(report.problems.iter().any(|problem| problem.why == "no operation made this node"));
}

/// How long a writer waits at most beside a large forgetting, printed: by hand, as what it takes depends on the machine.
/// `DRAWLOOM_TEST_NODES` says of how many nodes.
#[test]
#[ignore = "prints a figure"]
fn the_longest_wait_of_a_writer_beside_a_forgetting() {
    let nodes = std::env::var("DRAWLOOM_TEST_NODES").ok().and_then(|nodes| nodes.parse().ok());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    block_on(async {
        let home = Home::new(Arc::new(Store::open(&path).unwrap()));
        let page = home.create(Mode::Buffer, "").await;
        let original = page.append("original").await;
        for _ in 0..nodes.unwrap_or(NODES) / NODES {
            let plan = versions(&page, original, NODES).await;
            home.store.apply(OWNER, page.tree, plan, AttachedWrites::nothing()).await.unwrap();
        }
        let one = page.append("one canary among them").await;
        let other = home.create(Mode::Buffer, "").await;
        for (name, text) in [("one node", "one canary"), ("every tenth node", "7")] {
            let what = Forget::Text(text.to_owned());
            let forgetting = home.store.forget(OWNER, &what, loom::Millis(1));
            let (mut longest, mut writes) = (std::time::Duration::ZERO, 0_u32);
            let writing = async {
                loop {
                    let start = std::time::Instant::now();
                    other.append("plain").await;
                    longest = longest.max(start.elapsed());
                    writes += 1;
                }
            };
            let start = std::time::Instant::now();
            let places = tokio::select! {
                done = forgetting => done.unwrap().places.len(),
                () = writing => unreachable!(),
            };
            println!(
                "{name} ({places} places): {:?}, {writes} writes beside it, the longest {longest:?}; {one}",
                start.elapsed()
            );
        }
    });
}

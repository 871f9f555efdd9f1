//! Several processes on one store.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use loom::{Mode, Seq, TreeId};
use store::{Cursor, EventKind, Store, follow, read};

use crate::both::block_on;
use crate::home::{Home, OWNER, Page};

/// Set in a child: where the store is, and what it writes to.
const STORE: &str = "DRAWLOOM_TEST_STORE";
const TREE: &str = "DRAWLOOM_TEST_TREE";
const NAME: &str = "DRAWLOOM_TEST_NAME";

const LINES: usize = 25;

fn open(at: &str, tree: TreeId) -> Page {
    Page { home: home(at), tree }
}

/// The store in a file, or in a database.
fn home(at: &str) -> Home {
    #[cfg(feature = "postgres")]
    if at.starts_with("postgres") {
        let options = store::ServerOptions::new(at, crate::server::STORE);
        return Home::new(Arc::new(Store::connect(&options).unwrap()));
    }
    Home::new(Arc::new(Store::open(Path::new(at)).unwrap()))
}

/// Runs a test with a new store of each kind that several processes can have open.
fn each(test: impl Fn(&str)) {
    let folder = tempfile::tempdir().unwrap();
    test(folder.path().join("loom.db").to_str().unwrap());
    #[cfg(feature = "postgres")]
    if let Some(schema) = crate::server::Schema::new() {
        test(&schema.url());
    }
}

/// Not a test of its own: what a child process does.
#[test]
fn child() {
    let Ok(path) = std::env::var(STORE) else { return };
    let tree = std::env::var(TREE).unwrap().parse().unwrap();
    let name = std::env::var(NAME).unwrap();
    block_on(async {
        let page = open(&path, tree);
        for line in 0..LINES {
            page.append(&format!("{name}.{line};")).await;
        }
    });
}

fn spawn(path: &str, tree: TreeId, name: &str) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["processes::child", "--exact", "--nocapture"])
        .env(STORE, path)
        .env(TREE, tree.to_string())
        .env(NAME, name)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn two_processes_and_this_one_write_one_tree_without_gap_or_loss() {
    each(|path| {
        block_on(async {
            let home = home(path);
            let page = home.create(Mode::Buffer, "").await;
            let mut children = [spawn(path, page.tree, "a"), spawn(path, page.tree, "b")];
            for line in 0..LINES {
                page.append(&format!("here.{line};")).await;
            }
            for child in &mut children {
                assert!(child.wait().unwrap().success());
            }
            let records =
                read(&home.store, OWNER, page.tree, |rows| rows.operations(Seq(0), 9999)).await.unwrap();
            let seqs: Vec<u64> = records.iter().map(|record| record.seq.0).collect();
            assert_eq!(seqs, (1..=1 + 3 * LINES as u64).collect::<Vec<_>>());
            assert!(records.windows(2).all(|pair| pair[1].prev == pair[0].hash));
            let text = page.text().await;
            for writer in ["a", "b", "here"] {
                let mut at = 0;
                for line in 0..LINES {
                    let wanted = format!("{writer}.{line};");
                    at += text[at..]
                        .find(&wanted)
                        .unwrap_or_else(|| panic!("{wanted} is lost or out of order"));
                }
            }
            let events = home.store.events_after(OWNER, Cursor(0), 9999).await.unwrap();
            let seen: Vec<u64> = events
                .events
                .iter()
                .filter_map(|event| match &event.what {
                    EventKind::Operation { seq, .. } => Some(seq.0),
                    _ => None,
                })
                .collect();
            assert_eq!(seen, seqs, "followers see every write once, in order");
            assert_eq!(home.store.check(OWNER).await.unwrap(), Vec::<String>::new());
        });
    });
}

#[test]
fn a_follower_sees_what_another_process_writes_once_and_in_order() {
    each(|path| {
        block_on(async {
            let home = home(path);
            let page = home.create(Mode::Buffer, "").await;
            let start = home.store.identity(OWNER).await.unwrap().cursor;
            let mut follower = follow(Arc::clone(&home.store), OWNER.clone(), start).unwrap();
            let mut child = spawn(path, page.tree, "there");
            let mut seen = Vec::new();
            while seen.len() < LINES {
                // This process writes nothing: only the other one can wake it.
                let next = tokio::time::timeout(Duration::from_secs(60), follower.next()).await;
                for event in next.unwrap().unwrap().events {
                    if let EventKind::Operation { seq, .. } = event.what {
                        seen.push(seq.0);
                    }
                }
            }
            assert_eq!(seen, (2..2 + LINES as u64).collect::<Vec<_>>());
            assert!(child.wait().unwrap().success());
        });
    });
}

#[test]
fn two_stores_of_one_process_see_each_others_writes() {
    each(|path| {
        block_on(async {
            let home = home(path);
            let page = home.create(Mode::Buffer, "").await;
            let other = open(path, page.tree);
            page.append("one ").await;
            other.append("two ").await;
            page.append("three").await;
            assert_eq!(page.text().await, "one two three");
            assert_eq!(other.text().await, "one two three");
        });
    });
}

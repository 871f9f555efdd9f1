//! A row that is damaged, whichever and however: an error by name, soon; and the check finds what a reader can meet.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use loom::path::{ViewOverrides, common_ancestor, newest_leaf};
use loom::render::{Show, render, tip, window};
use loom::{KeepScope, Mode, Op, OpTarget, RowError, Seq, TreeId, TreeReader, ViewName};
use rusqlite::Connection;
use rusqlite::types::Value;
use store::{SearchScope, Store, StoreError, TreeFilter, read};

use super::both::block_on;
use super::home::{Home, OWNER};

/// What a reader waits at most.
const SOON: Duration = Duration::from_secs(2);

/// A small store with something of everything that a tree has.
async fn made(path: &Path) -> TreeId {
    let home = Home::new(Arc::new(Store::open(path).unwrap()));
    let page = home.create(Mode::Buffer, "Tale").await;
    let mut at = Vec::new();
    for text in ["It rained. ", "Snow fell. ", "The ferry left. "] {
        at.push(page.append(text).await.as_position());
    }
    for text in ["It rained softly. ", "It rained, softly. "] {
        page.edit(at[0], text).await;
    }
    page.change(Op::BranchAt { node: at[1].original(), at: 4, token: None }).await;
    let beside = page.append("Another way. ").await.as_position();
    page.change(Op::Prune(OpTarget::Position(beside))).await;
    page.change(Op::Switch(at[2])).await;
    page.change(Op::Exclude(OpTarget::Position(at[1]))).await;
    page.change(Op::Bookmark { position: at[0], title: Some("here".to_owned()) }).await;
    page.change(Op::Keep { position: at[2], scope: KeepScope::Below }).await;
    let generation = super::generations::start(&page, "sent").await;
    super::generations::answer(&page, &generation, "An answer.").await;
    page.tree
}

/// What readers ask of a tree; the answers as text.
fn asked(rows: &dyn TreeReader) -> Result<Vec<String>, RowError> {
    let view = ViewName::default();
    let end = tip(rows, &view)?;
    let mut all = vec![render(rows, &view, Show { drafts: true, spans: true })?.text];
    all.push(render(rows, &view, Show { drafts: false, spans: false })?.text);
    let path = ViewOverrides::read(rows, &view, end)?;
    for passage in window(rows, &view, &path, None, 50)? {
        let at = passage.position.id;
        all.push(format!("{} {}", passage.text, rows.count_versions(at)? + rows.count_children(at)?));
        all.push(format!("{:?}", loom::drift::is_drifted(rows, &path, &passage.position, &passage.row)?));
        all.push(format!("{:?} {:?}", rows.versions(at, None, 9)?.len(), rows.children(at, None, 9)?.len()));
        all.push(format!("{}", common_ancestor(rows, at, end)?.id));
    }
    all.push(format!("{:?}", path.locate(rows, 5)?.map(|(at, offset)| (at.id, offset))));
    all.push(format!("{:?}", newest_leaf(rows, rows.tree()?.root)?));
    let nodes = rows.nodes_in_order(None, 99)?;
    for row in &nodes {
        all.push(format!("{} {:?}", row.node.text(), loom::attribution::attribute(rows, row.node.id)?));
        all.push(format!("{}", loom::path::is_hidden(rows, row.node.position)?));
    }
    all.push(format!("{:?} {:?}", rows.timeline(&view)?, rows.drafts(&view)?));
    all.push(rows.operations(Seq(0), 99)?.iter().map(|record| record.hash.to_string()).collect());
    Ok(all)
}

/// Reads all that; every answer is there soon, and none is a panic.
async fn read_all(
    store: &Store,
    tree: TreeId,
    what: &str,
    unkept: &mut Vec<String>,
) -> Result<Vec<String>, StoreError> {
    let begun = Instant::now();
    let answer = read(store, OWNER, tree, asked).await;
    let found = store.search(OWNER, "rained", SearchScope::All, 5).await.map(|hits| hits.hits.len());
    let listed = store.trees(OWNER, TreeFilter::All).await.map(|trees| trees.len());
    if begun.elapsed() >= SOON {
        unkept.push(format!("{what}: {:?}", begun.elapsed()));
    }
    for failed in [answer.as_ref().err(), found.as_ref().err(), listed.as_ref().err()].into_iter().flatten() {
        if matches!(failed, StoreError::Panicked | StoreError::Closed) {
            unkept.push(format!("{what}: {failed}"));
        }
    }
    answer
}

/// Other values for a column.
fn damaged(value: &Value) -> Vec<Value> {
    match value {
        Value::Integer(number) => {
            let others = [number + 1, number + 2, number - 1, 0, -1, 1 << 40].into_iter();
            others.filter(|other| other != number).map(Value::Integer).collect()
        }
        Value::Blob(bytes) => {
            let mut flipped = bytes.clone();
            let Some(byte) = bytes.len().checked_sub(1).map(|last| &mut flipped[last / 2]) else {
                return vec![];
            };
            *byte ^= 4;
            vec![Value::Blob(flipped), Value::Blob(bytes[..bytes.len() / 2].to_vec())]
        }
        Value::Text(text) if !text.is_empty() => vec![Value::Text(format!("{text}x"))],
        _ => vec![Value::Integer(1)],
    }
}

/// Columns that no hash binds and nothing else tells, so that another value is as good as the one before.
const UNBOUND: [&str; 18] = [
    "trees.tables",
    "trees.created",
    "trees.updated",
    "trees.session",
    "trees.origin",
    "trees.mode",
    "trees.purged",
    "nodes.flags",
    "nodes.extra",
    "timelines.undo",
    "timelines.redo",
    "timelines.depth",
    "timelines.tick",
    "cells.seq",
    "generations.row",
    "generations.tree",
    "drafts.text",
    "nodes.generation",
];

#[test]
fn damage_of_any_row_is_an_error_by_name_soon_and_the_check_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    let tree = block_on(made(&path));
    let intact = block_on(async {
        let store = Store::open(&path).unwrap();
        assert_eq!(store.check(OWNER).await.unwrap(), Vec::<String>::new());
        read_all(&store, tree, "intact", &mut Vec::new()).await.unwrap()
    });
    let (mut tried, mut unkept) = (0, Vec::new());
    let tables = [
        "names",
        "authors",
        "trees",
        "nodes",
        "positions",
        "operations",
        "cells",
        "timelines",
        "generations",
    ];
    for table in tables {
        let conn = Connection::open(&path).unwrap();
        let columns: Vec<(String, bool)> = conn
            .prepare(&format!("SELECT name, pk > 0 FROM pragma_table_info('{table}')"))
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let keys: Vec<&str> = columns.iter().filter(|(_, key)| *key).map(|(name, _)| name.as_str()).collect();
        let key = keys.join(", ");
        for (column, _) in columns.iter().filter(|(_, key)| !key) {
            let sql = format!("SELECT {column}, {key} FROM {table}");
            let rows: Vec<Vec<Value>> = conn
                .prepare(&sql)
                .unwrap()
                .query_map([], |row| (0..=keys.len()).map(|index| row.get(index)).collect())
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            for row in rows.iter().take(4).chain(rows.iter().skip(4).step_by(5)) {
                let places: Vec<String> =
                    keys.iter().enumerate().map(|(at, key)| format!("{key} = ?{}", at + 2)).collect();
                let set = format!("UPDATE {table} SET {column} = ?1 WHERE {}", places.join(" AND "));
                for value in damaged(&row[0]) {
                    let change = |value: &Value| {
                        let values = std::iter::once(value).chain(&row[1..]);
                        conn.execute(&set, rusqlite::params_from_iter(values))
                    };
                    // What the schema itself refuses cannot come about so.
                    if change(&value).is_err() {
                        continue;
                    }
                    tried += 1;
                    let what = format!("{table}.{column} {:?} from {:?} to {value:?}", &row[1..], row[0]);
                    block_on(async {
                        let store = Store::open(&path).unwrap();
                        let answer = read_all(&store, tree, &what, &mut unkept).await;
                        let begun = Instant::now();
                        let problems = store.check(OWNER).await.unwrap();
                        if begun.elapsed() >= SOON {
                            unkept.push(format!("{what}: the check took {:?}", begun.elapsed()));
                        }
                        let met = answer.as_ref().ok() != Some(&intact);
                        let bound = !UNBOUND.contains(&format!("{table}.{column}").as_str());
                        let by_name = answer.is_err();
                        if met && problems.is_empty() && (bound || by_name) {
                            unkept.push(format!(
                                "{what}: met by a reader, not by the check: {:?}",
                                answer.err()
                            ));
                        }
                    });
                    change(&row[0]).unwrap();
                }
            }
        }
    }
    eprintln!("{tried} damages");
    assert!(unkept.is_empty(), "{}", unkept.join("\n"));
    assert!(tried > 300, "{tried}");
    let store = Store::open(&path).unwrap();
    assert_eq!(block_on(read_all(&store, tree, "whole again", &mut Vec::new())).unwrap(), intact);
}

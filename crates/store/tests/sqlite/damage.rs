//! A row that is damaged, whichever and however: an error by name, soon; and the check finds what a reader can meet.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use loom::render::{Show, render};
use loom::{Millis, Mode, NodeId, Op, ViewName};
use rusqlite::Connection;
use rusqlite::types::Value;
use store::{Forget, ForgottenPlace, Store, read};

use super::both::block_on;
use super::damaged::{SOON, TABLES, made, read_all, taken_for_a_lack, unfound};
use super::home::{Home, OWNER};

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
        Value::Text(text) if !text.is_empty() => vec![Value::Text(format!("{text}~"))],
        _ => vec![Value::Integer(1)],
    }
}

/// Damages every column of some tables of a store in turn, in every row that `chosen` takes by its place, and mends it
/// again after `visit` was called with what was done, table and column; how often.
fn each_damage(
    path: &Path,
    tables: &[&str],
    chosen: impl Fn(usize) -> bool,
    mut visit: impl FnMut(&str, &str, &str),
) -> usize {
    let mut tried = 0;
    for table in tables {
        let conn = Connection::open(path).unwrap();
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
            let sql = format!("SELECT {column}, {key} FROM {table} ORDER BY {key}");
            let rows: Vec<Vec<Value>> = conn
                .prepare(&sql)
                .unwrap()
                .query_map([], |row| (0..=keys.len()).map(|index| row.get(index)).collect())
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            for (_, row) in rows.iter().enumerate().filter(|(place, _)| chosen(*place)) {
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
                    visit(&what, table, &format!("{table}.{column}"));
                    change(&row[0]).unwrap();
                }
            }
        }
    }
    tried
}

#[test]
fn damage_of_any_row_is_an_error_by_name_soon_and_the_check_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    let tree = block_on(made(Store::open(&path).unwrap()));
    let intact = block_on(async {
        let store = Store::open(&path).unwrap();
        assert_eq!(store.check(OWNER).await.unwrap(), Vec::<String>::new());
        read_all(&store, tree, "intact", &mut Vec::new()).await.unwrap()
    });
    let mut unkept = Vec::new();
    // Tables of the index are SQLite's own, and the structure of its file is no row.
    let tables = [&TABLES[..], &["search_data", "search_idx", "search_config"]].concat();
    let chosen = |place| place < 3 || (place - 3) % 7 == 0;
    let tried = each_damage(&path, &tables, chosen, |what, table, column| {
        block_on(async {
            let store = Store::open(&path).unwrap();
            let answer = read_all(&store, tree, what, &mut unkept).await;
            unkept.extend(taken_for_a_lack(&store, tree, (what, table), &answer).await);
            let begun = Instant::now();
            let problems = store.check(OWNER).await.unwrap();
            if begun.elapsed() >= SOON {
                unkept.push(format!("{what}: the check took {:?}", begun.elapsed()));
            }
            unkept.extend(unfound(what, column, &answer, &intact, &problems));
        });
    });
    eprintln!("{tried} damages");
    assert!(unkept.is_empty(), "{}", unkept.join("\n"));
    assert!(tried > 300, "{tried}");
    let store = Store::open(&path).unwrap();
    assert_eq!(block_on(read_all(&store, tree, "whole again", &mut Vec::new())).unwrap(), intact);
}

/// Whatever is damaged in one tree, a text of another one is forgotten, and the tree itself can be purged.
#[test]
fn damage_keeps_nothing_from_being_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    let tree = block_on(made(Store::open(&path).unwrap()));
    let said = block_on(async {
        let other = Home::new(Arc::new(Store::open(&path).unwrap())).create(Mode::Buffer, "").await;
        other.append("It hailed a secret.").await
    });
    let sql = "SELECT pk FROM nodes WHERE id = ?1";
    let said: i64 =
        Connection::open(&path).unwrap().query_row(sql, [said.to_bytes()], |row| row.get(0)).unwrap();
    let said = ["content", "flags"].map(|column| format!("nodes.{column} [Integer({said})]"));
    let mut unkept = Vec::new();
    let tables =
        TABLES.iter().filter(|table| !["trees", "names"].contains(table)).copied().collect::<Vec<_>>();
    let chosen = |place| place % 6 == 1;
    let tried = each_damage(&path, &tables, chosen, |what, _, column| {
        let copy = folder.path().join("copy.db");
        Connection::open(&path).unwrap().execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
        block_on(async {
            let store = Store::open(&copy).unwrap();
            let secret = Forget::Text("hailed a secret".to_owned());
            let forgotten = store.forget(OWNER, &secret, Millis(9)).await;
            let is_gone = forgotten.as_ref().is_ok_and(|done| {
                done.places.iter().any(|place| matches!(place, ForgottenPlace::Node { .. }))
            });
            // Where its own content is damaged, the text is not there.
            if !is_gone && !said.iter().any(|own| what.starts_with(own)) {
                unkept.push(format!("{what}: {forgotten:?}"));
            }
            // Of a content that is read in another form other words would be taken out of the index.
            let is_other_form = column == "nodes.flags";
            if let Err(error) = store.purge(OWNER, tree, Millis(9)).await
                && !(is_other_form && error.to_string().contains("malformed"))
            {
                unkept.push(format!("{what}: the tree cannot be purged: {error}"));
            }
        });
        for end in ["", "-wal", "-shm"] {
            drop(std::fs::remove_file(folder.path().join(format!("copy.db{end}"))));
        }
    });
    eprintln!("{tried} damages");
    assert!(unkept.is_empty(), "{}", unkept.join("\n"));
    assert!(tried > 50, "{tried}");
}

/// Another branch of the same length and depth would be read as easily.
#[test]
fn a_path_that_leads_elsewhere_is_an_error_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    let (tip, fork, page) = block_on(async {
        let page = Home::new(Arc::new(Store::open(&path).unwrap())).create(Mode::Buffer, "").await;
        let fork = page.append("one. ").await;
        page.append("two. ").await;
        page.change(Op::Move(fork.as_position())).await;
        page.append("TWO. ").await;
        (page.append("tri. ").await, fork, page)
    });
    let read = || {
        block_on(async {
            let rendered = read(&page.home.store, OWNER, page.tree, |rows| {
                render(rows, &ViewName::default(), Show { drafts: true, spans: false })
            });
            let walked = read(&page.home.store, OWNER, page.tree, move |rows| {
                rows.upwards(tip.as_position(), usize::MAX)
            });
            let short =
                read(&page.home.store, OWNER, page.tree, move |rows| rows.upwards(tip.as_position(), 1));
            (rendered.await.map(|rendering| rendering.text), walked.await, short.await)
        })
    };
    assert_eq!(read().0.unwrap(), "one. TWO. tri. ");
    let conn = Connection::open(&path).unwrap();
    let number = |node: NodeId| -> i64 {
        let sql = "SELECT pk & 4294967295 FROM nodes WHERE id = ?1";
        conn.query_row(sql, [node.to_bytes()], |row| row.get(0)).unwrap()
    };
    let (tip, two) = (number(tip), number(fork) + 1);
    for (column, value) in [("parent", two), ("depth", 0)] {
        let at = format!("FROM positions WHERE pk & 4294967295 = {tip}");
        let was: i64 = conn.query_row(&format!("SELECT {column} {at}"), [], |row| row.get(0)).unwrap();
        let set = format!("UPDATE positions SET {column} = ?1 WHERE pk & 4294967295 = {tip}");
        assert_ne!(was, value);
        conn.execute(&set, [value]).unwrap();
        let (rendered, walked, short) = read();
        assert!(rendered.is_err() && walked.is_err(), "{column}: {rendered:?}, {walked:?}");
        assert_eq!(short.is_err(), column == "depth", "one position alone leads nowhere: {short:?}");
        conn.execute(&set, [was]).unwrap();
    }
    assert_eq!(read().0.unwrap(), "one. TWO. tri. ");
}

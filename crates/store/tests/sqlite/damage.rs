//! A row that is damaged, whichever and however: an error by name, soon; and the check finds what a reader can meet.

use std::sync::Arc;
use std::time::Instant;

use loom::render::{Show, render};
use loom::{Mode, NodeId, Op, ViewName};
use rusqlite::Connection;
use rusqlite::types::Value;
use store::{Store, read};

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
    let (mut tried, mut unkept) = (0, Vec::new());
    // Tables of the index are SQLite's own, and the structure of its file is no row.
    let index = ["search_data", "search_idx", "search_config"];
    for table in TABLES.into_iter().chain(index) {
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
            for row in rows.iter().take(3).chain(rows.iter().skip(3).step_by(7)) {
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
                        unkept.extend(taken_for_a_lack(&store, tree, (&what, table), &answer).await);
                        let begun = Instant::now();
                        let problems = store.check(OWNER).await.unwrap();
                        if begun.elapsed() >= SOON {
                            unkept.push(format!("{what}: the check took {:?}", begun.elapsed()));
                        }
                        let column = format!("{table}.{column}");
                        unkept.extend(unfound(&what, &column, &answer, &intact, &problems));
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

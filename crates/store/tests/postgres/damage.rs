//! As on SQLite: a row that is damaged is an error by name, and the check finds what a reader can meet.

use std::time::Instant;

use super::both::block_on;
use super::damaged::{SOON, TABLES, made, read_all, taken_for_a_lack, unfound};
use super::home::OWNER;
use super::server::Schema;

/// Other values of a column, by its type.
fn damages(column: &str, kind: &str) -> Vec<String> {
    match kind {
        "bigint" => vec![format!("{column} + 1"), "-1".to_owned()],
        "bytea" => vec![
            format!("set_byte({column}, length({column}) / 2, get_byte({column}, length({column}) / 2) # 4)"),
            format!("substr({column}, 1, length({column}) / 2)"),
        ],
        "text" => vec![format!("{column} || '~'")],
        "tsvector" => vec![format!("ts_delete({column}, (tsvector_to_array({column}))[1])")],
        _ => Vec::new(),
    }
}

/// What may be damaged of a column: something is there that can be changed.
fn filled(column: &str, kind: &str) -> String {
    match kind {
        "text" => format!("{column} <> ''"),
        "bytea" | "tsvector" => format!("length({column}) > 0"),
        _ => format!("{column} IS NOT NULL"),
    }
}

#[test]
fn damage_of_a_row_on_a_server_is_found_as_well() {
    let Some(schema) = Schema::new() else { return };
    let tree = block_on(made(schema.open()));
    let intact = block_on(async {
        let store = schema.open();
        assert_eq!(store.check(OWNER).await.unwrap(), Vec::<String>::new());
        read_all(&store, tree, "intact", &mut Vec::new()).await.unwrap()
    });
    let (mut tried, mut unkept) = (0, Vec::new());
    for table in TABLES.into_iter().chain(["search"]) {
        schema.batch_within(&format!("CREATE TABLE kept_rows AS SELECT * FROM {table}"));
        for (column, kind) in schema.columns(table) {
            for value in damages(&column, &kind) {
                // The newest row: what stands there is mostly there for the reader.
                let change = format!(
                    "UPDATE {table} SET {column} = {value} WHERE ctid =
                        (SELECT ctid FROM {table} WHERE {} ORDER BY ctid DESC LIMIT 1)",
                    filled(&column, &kind)
                );
                // What the schema itself refuses cannot come about so.
                if !schema.try_batch_within(&change) {
                    continue;
                }
                tried += 1;
                let what = format!("{table}.{column} to {value}");
                block_on(async {
                    let store = schema.open();
                    let answer = read_all(&store, tree, &what, &mut unkept).await;
                    unkept.extend(taken_for_a_lack(&store, tree, (&what, table), &answer).await);
                    let begun = Instant::now();
                    let problems = store.check(OWNER).await.unwrap();
                    if begun.elapsed() >= SOON {
                        unkept.push(format!("{what}: the check took {:?}", begun.elapsed()));
                    }
                    unkept.extend(unfound(&what, &format!("{table}.{column}"), &answer, &intact, &problems));
                });
                schema.batch_within(&format!(
                    "DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept_rows"
                ));
            }
        }
        schema.batch_within("DROP TABLE kept_rows");
    }
    eprintln!("{tried} damages");
    assert!(unkept.is_empty(), "{}", unkept.join("\n"));
    assert!(tried > 100, "{tried}");
    let whole = block_on(read_all(&schema.open(), tree, "whole again", &mut Vec::new())).unwrap();
    assert_eq!(whole, intact);
}

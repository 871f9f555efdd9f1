//! From version 3, which was released with two sets of columns: each row is copied with the columns it has, and what
//! the earlier set lacks is told from the others or takes the value of a row nobody filled.

use rusqlite::Connection;

use super::aside::{
    columns, drop_old, name_own_workspace, number_lanes, number_lanes_of_choices, old_tables, set_aside,
};
use super::batch;
use crate::error::StoreError;
use crate::schema::TABLES;

/// Columns that a row of the earlier set takes another value in, and that value.
const TOLD: [(&str, &str, &str); 3] = [
    ("trees", "tables", "0"),
    // Of an original that is there it is the content's.
    ("nodes", "content_hash", "iif(position IS NULL AND flags & 4 = 0, NULL, content_hash)"),
    ("positions", "lane", "pk & 4294967295"),
];

pub(super) fn migrate(conn: &Connection) -> Result<(), StoreError> {
    set_aside(conn)?;
    batch(conn, TABLES)?;
    let had_lanes = columns(conn, "old_positions")?.iter().any(|column| column == "lane");
    for old in old_tables(conn)? {
        let table = old.trim_start_matches("old_");
        let (had, have) = (columns(conn, &old)?, columns(conn, table)?);
        // The earlier set has questions by session, which nothing asked.
        if table == "questions" && !had.iter().any(|column| column == "tree") {
            continue;
        }
        let told = |column: &str| TOLD.iter().find(|told| !had_lanes && (told.0, told.1) == (table, column));
        let copied: Vec<(&str, &str)> = have
            .iter()
            .filter_map(|column| match told(column) {
                Some((_, _, value)) => Some((column.as_str(), *value)),
                None => had.contains(column).then_some((column.as_str(), column.as_str())),
            })
            .collect();
        let (into, from): (Vec<&str>, Vec<&str>) = copied.into_iter().unzip();
        let (into, from) = (into.join(", "), from.join(", "));
        batch(conn, &format!("INSERT INTO {table} ({into}) SELECT {from} FROM {old}"))?;
    }
    if !had_lanes {
        number_lanes(conn)?;
        number_lanes_of_choices(conn)?;
    }
    name_own_workspace(conn)?;
    drop_old(conn)
}

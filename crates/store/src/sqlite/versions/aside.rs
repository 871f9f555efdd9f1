//! What the steps share: the old tables set aside while new ones are filled from them, and lanes told from positions.

use std::collections::HashMap;

use rusqlite::Connection;

use super::batch;
use crate::db::number_of;
use crate::error::StoreError;
use crate::session::OWN_WORKSPACE;
use crate::sqlite::connection::failure;

/// Names the old tables `old_…`, and drops their indexes, whose names are needed. The search index stays.
pub(super) fn set_aside(conn: &Connection) -> Result<(), StoreError> {
    for index in strings(conn, "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")? {
        batch(conn, &format!("DROP INDEX {index}"))?;
    }
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'meta'
        AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'search%'";
    for table in strings(conn, tables)? {
        batch(conn, &format!("ALTER TABLE {table} RENAME TO old_{table}"))?;
    }
    Ok(())
}

/// Drops the tables that were set aside.
pub(super) fn drop_old(conn: &Connection) -> Result<(), StoreError> {
    old_tables(conn)?.iter().try_for_each(|table| batch(conn, &format!("DROP TABLE {table}")))
}

/// The tables that were set aside, by the names they have now.
pub(super) fn old_tables(conn: &Connection) -> Result<Vec<String>, StoreError> {
    strings(conn, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'old\\_%' ESCAPE '\\'")
}

/// The columns of a table; none if there is no such table.
pub(super) fn columns(conn: &Connection, table: &str) -> Result<Vec<String>, StoreError> {
    strings(conn, &format!("SELECT name FROM pragma_table_info('{table}') ORDER BY cid"))
}

fn strings(conn: &Connection, sql: &str) -> Result<Vec<String>, StoreError> {
    let mut statement = conn.prepare(sql).map_err(failure)?;
    let rows = statement.query_map([], |row| row.get(0)).map_err(failure)?;
    rows.collect::<Result<_, _>>().map_err(failure)
}

/// Gives each position its lane: the child that the longest path goes on from goes on with its parent's. Each has one
/// of its own before.
pub(super) fn number_lanes(conn: &Connection) -> Result<(), StoreError> {
    let sql = "SELECT pk, (pk & -4294967296) + parent FROM positions
        WHERE kind = 0 AND parent IS NOT NULL ORDER BY pk";
    let children: Vec<(i64, i64)> = {
        let mut statement = conn.prepare(sql).map_err(failure)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failure)?;
        rows.collect::<Result<_, _>>().map_err(failure)?
    };
    // By position: how many stand below it on its longest path, and the child that path begins with.
    let mut heirs: HashMap<i64, (u32, i64)> = HashMap::new();
    for (child, parent) in children.iter().rev() {
        let below = heirs.get(child).map_or(0, |(below, _)| below + 1);
        let heir = heirs.entry(*parent).or_insert((below, *child));
        if below >= heir.0 {
            *heir = (below, *child);
        }
    }
    let mut lanes: HashMap<i64, i64> = HashMap::new();
    let mut set = conn.prepare("UPDATE positions SET lane = ?2 WHERE pk = ?1").map_err(failure)?;
    for (child, parent) in &children {
        if heirs.get(parent).is_some_and(|(_, heir)| heir == child) {
            let lane = lanes.get(parent).copied().unwrap_or(number_of(*parent));
            lanes.insert(*child, lane);
            set.execute((child, lane)).map_err(failure)?;
        }
    }
    Ok(())
}

/// Gives choices (what is selected, kept, pruned, left out) the lane and depth of their positions.
pub(super) fn number_lanes_of_choices(conn: &Connection) -> Result<(), StoreError> {
    batch(
        conn,
        "UPDATE cells SET (lane, depth) = (SELECT p.lane, p.depth FROM nodes n
            JOIN positions p ON p.pk = (cells.tree << 32) + coalesce(n.position, cells.target >> 1)
            WHERE n.pk = (cells.tree << 32) + (cells.target >> 1)) WHERE kind IN (8, 10, 11, 12)",
    )
}

/// Names the home's own workspace, which was known by its path until version 3, here and in a home that was moved.
pub(super) fn name_own_workspace(conn: &Connection) -> Result<(), StoreError> {
    let file = conn.path().map(std::path::Path::new).and_then(|file| file.canonicalize().ok());
    let own = file.as_deref().and_then(std::path::Path::parent).map(|home| home.join("workspace"));
    let own = own.map(|own| own.to_string_lossy().into_owned()).unwrap_or_default();
    let sql = "UPDATE OR IGNORE sessions SET workspace = ?1
        WHERE workspace = ?2 OR workspace LIKE '%/.drawloom/workspace'";
    conn.execute(sql, (OWN_WORKSPACE, own)).map(drop).map_err(failure)
}

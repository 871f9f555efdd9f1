//! From version 2: nodes are numbered within their tree, names stand once a tree, and what was sent is named by digest
//! and id.
//!
//! Everything is copied from the old tables within the transaction of all steps; the search index is made anew.

mod transcode;

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, Params};

use super::aside::{drop_old, name_own_workspace, number_lanes, number_lanes_of_choices, set_aside};
use super::{SEARCH, batch};
use crate::db::TreeKey;
use crate::engine::{Row, StatementCounter, Transaction as _};
use crate::error::StoreError;
use crate::rows::node::read_content;
use crate::schema::TABLES;
use crate::sqlite::connection::{SqliteTransaction, failure};
use transcode::Transcoder;

/// Tables whose rows stay as they are, and the columns they had.
const UNCHANGED: [(&str, &str); 4] = [
    ("sessions", "id, workspace, name, kind, archived, created"),
    ("workspaces", "path, device, inode, trusted, inventory, at"),
    ("leases", "name, holder, fence, expires"),
    ("jobs", "pk, kind, key, tree, payload, due, state, owner, fence, result"),
];

pub(super) fn migrate(conn: &Connection) -> Result<(), StoreError> {
    batch(conn, "DROP TABLE search")?;
    set_aside(conn)?;
    batch(conn, TABLES)?;
    batch(conn, SEARCH)?;
    for (table, columns) in UNCHANGED {
        batch(conn, &format!("INSERT INTO {table} ({columns}) SELECT {columns} FROM old_{table}"))?;
    }
    // When they ended was not written down: they are kept for as long from now on.
    batch(conn, "UPDATE jobs SET ended = CAST(unixepoch('subsec') * 1000 AS INTEGER) WHERE state >= 2")?;
    let step = Step { conn, names: HashMap::new() };
    step.run()?;
    batch(conn, "DROP TABLE temp.numbers; DROP TABLE temp.author_numbers;")?;
    name_own_workspace(conn)?;
    drop_old(conn)
}

struct Step<'c> {
    conn: &'c Connection,
    /// Numbers of names in trees, by tree and number in the old table.
    names: HashMap<(i64, i64), i64>,
}

impl Step<'_> {
    fn run(mut self) -> Result<(), StoreError> {
        batch(self.conn, COPY_TREES)?;
        self.authors()?;
        batch(self.conn, COPY_NODES)?;
        number_lanes(self.conn)?;
        self.extras()?;
        self.operations()?;
        self.cells()?;
        self.views("timelines", "undo, redo, depth, tick", COPY_TIMELINE)?;
        self.views("drafts", "slot, base, revision, text, base_text, splices, undone", COPY_DRAFT)?;
        self.search()
    }

    fn run_one(&self, sql: &str, params: impl Params) -> Result<(), StoreError> {
        self.conn.prepare_cached(sql).and_then(|mut run| run.execute(params)).map(drop).map_err(failure)
    }

    /// The number of an old name in a tree, made if need be.
    fn name(&mut self, tree: i64, old: i64) -> Result<i64, StoreError> {
        if let Some(number) = self.names.get(&(tree, old)) {
            return Ok(*number);
        }
        let number = self.names.keys().filter(|(of, _)| *of == tree).count() as i64 + 1;
        self.run_one(
            "INSERT INTO names (tree, n, name) SELECT ?1, ?2, name FROM old_names WHERE pk = ?3",
            (tree, number, old),
        )?;
        self.names.insert((tree, old), number);
        Ok(number)
    }

    /// The number in its tree of the node with an old number.
    fn number(&self, old: i64) -> Result<i64, StoreError> {
        let mut find =
            self.conn.prepare_cached("SELECT n FROM temp.numbers WHERE old = ?1").map_err(failure)?;
        let number = find.query_row([old], |row| row.get(0)).optional().map_err(failure)?;
        number.ok_or_else(|| StoreError::Damaged(format!("node number {old} is missing")))
    }

    fn rows<const N: usize>(&self, sql: &str) -> Result<Vec<[i64; N]>, StoreError> {
        let mut statement = self.conn.prepare(sql).map_err(failure)?;
        let rows = statement.query_map([], |row| {
            let mut columns = [0; N];
            for (index, column) in columns.iter_mut().enumerate() {
                *column = row.get(index)?;
            }
            Ok(columns)
        });
        rows.map_err(failure)?.collect::<Result<_, _>>().map_err(failure)
    }

    fn authors(&mut self) -> Result<(), StoreError> {
        let used = self.rows::<3>(
            "SELECT DISTINCT n.tree, n.author, a.name FROM old_nodes n JOIN old_authors a ON a.pk = n.author
             ORDER BY n.tree, n.author",
        )?;
        let mut last = (0, 0);
        for [tree, old, name] in used {
            last = if last.0 == tree { (tree, last.1 + 1) } else { (tree, 1) };
            let name = self.name(tree, name)?;
            self.run_one(
                "INSERT INTO authors (tree, n, kind, name, profile)
                 SELECT ?1, ?2, kind, ?3, profile FROM old_authors WHERE pk = ?4",
                (tree, last.1, name, old),
            )?;
            self.run_one("INSERT INTO temp.author_numbers VALUES (?1, ?2, ?3)", (tree, old, last.1))?;
        }
        Ok(())
    }

    /// What nodes have besides their columns names providers and models.
    fn extras(&mut self) -> Result<(), StoreError> {
        let keys = self.rows::<1>("SELECT pk FROM nodes WHERE extra IS NOT NULL")?;
        for [key] in keys {
            let sql = "SELECT extra FROM nodes WHERE pk = ?1";
            let extra: Vec<u8> = self.conn.query_row(sql, [key], |row| row.get(0)).map_err(failure)?;
            let tree = TreeKey::of(key).0;
            let (extra, generation) = Transcoder::new(&extra).extra(&mut |old| self.name(tree, old))?;
            self.run_one(
                "UPDATE nodes SET extra = ?2, generation = coalesce(generation, ?3) WHERE pk = ?1",
                (key, extra, generation),
            )?;
        }
        Ok(())
    }

    fn operations(&mut self) -> Result<(), StoreError> {
        let keys = self.rows::<4>("SELECT tree, seq, first, count FROM old_operations ORDER BY tree, seq")?;
        let mut next = (0, 1);
        for [tree, seq, old_first, count] in keys {
            let first = if next.0 == tree { next.1 } else { 1 };
            next = (tree, first + count);
            let sql = "SELECT body FROM old_operations WHERE tree = ?1 AND seq = ?2";
            let body: Vec<u8> = self.conn.query_row(sql, [tree, seq], |row| row.get(0)).map_err(failure)?;
            let step = std::cell::RefCell::new(&mut *self);
            let body = Transcoder::new(&body)
                .operation(&mut |old| step.borrow_mut().name(tree, old), &mut |back| {
                    Ok(first - step.borrow().number(old_first - back)?)
                })?;
            self.run_one(
                "INSERT INTO operations (tree, seq, first, count, hash, purged, body)
                 SELECT tree, seq, ?3, count, hash, purged, ?4 FROM old_operations WHERE tree = ?1 AND seq = ?2",
                (tree, seq, first, body),
            )?;
        }
        Ok(())
    }

    fn cells(&mut self) -> Result<(), StoreError> {
        // Forms 2, 3 and 7 hold a node.
        let rows =
            self.rows::<6>("SELECT rowid, tree, view, target, form, number FROM old_cells_numbered")?;
        for [row, tree, view, target, form, number] in rows {
            let view = if view == 0 { 0 } else { self.name(tree, view)? };
            let target = if target == 0 { 0 } else { self.number(target >> 1)? << 1 | (target & 1) };
            let number = if matches!(form, 2 | 3 | 7) { self.number(number)? } else { number };
            self.run_one(
                "INSERT INTO cells (tree, kind, view, target, tag, form, number, text, seq)
                 SELECT tree, kind, ?2, ?3, tag, form, ?4, text, seq FROM old_cells_numbered WHERE rowid = ?1",
                (row, view, target, number),
            )?;
        }
        number_lanes_of_choices(self.conn)
    }

    /// Copies rows that belong to a view.
    fn views(&mut self, table: &str, columns: &str, copy: &str) -> Result<(), StoreError> {
        let names = self.rows::<2>(&format!("SELECT DISTINCT tree, view FROM old_{table}"))?;
        for [tree, view] in names {
            let number = self.name(tree, view)?;
            let sql = copy.replace("{columns}", columns);
            self.run_one(&sql, (tree, view, number))?;
        }
        Ok(())
    }

    fn search(&self) -> Result<(), StoreError> {
        let mut nodes = self.conn.prepare("SELECT pk, content, flags FROM nodes WHERE content IS NOT NULL");
        let nodes =
            nodes.as_mut().map_err(|_| StoreError::Damaged("the new tables cannot be read".to_owned()))?;
        let mut rows = nodes.query([]).map_err(failure)?;
        let counter = StatementCounter::default();
        let index = SqliteTransaction::reading(self.conn, &counter);
        while let Some(row) = rows.next().map_err(failure)? {
            let (key, flags) = (row.get(0).map_err(failure)?, row.get(2).map_err(failure)?);
            let content = read_content(&Row::Sqlite(row), 1, flags)?;
            let text = text::bigrams::index_text(&crate::search::searched_text(&content)).into_owned();
            if !text.is_empty() {
                index.index(key, &text)?;
            }
        }
        Ok(())
    }
}

const COPY_TREES: &str = "
CREATE TEMP TABLE numbers (old INTEGER PRIMARY KEY, tree INTEGER NOT NULL, n INTEGER NOT NULL);
INSERT INTO temp.numbers SELECT pk, tree, row_number() OVER (PARTITION BY tree ORDER BY pk) FROM old_nodes;
CREATE TEMP TABLE author_numbers (tree INTEGER, old INTEGER, n INTEGER, PRIMARY KEY (tree, old)) WITHOUT ROWID;
CREATE TABLE old_cells_numbered AS SELECT * FROM old_cells;
INSERT INTO trees (pk, id, short, mode, root, created, origin, session, purged, title, archived, seq, head, nodes, updated, tables)
    SELECT pk, id, short, mode, root, created, origin, session, purged, title, archived, seq, head, nodes, updated, 0
    FROM old_trees;
";

const COPY_NODES: &str = "
INSERT INTO nodes (pk, id, position, seq, place, short, author, flags, created, bytes, chars, graphemes, content,
        content_hash, chain_hash, term, origin, edited_from, generation, extra)
    SELECT o.tree << 32 | m.n, o.id, p.n, o.seq, o.place, o.short, a.n, o.flags, o.created, o.bytes, o.chars,
        o.graphemes, CAST(o.content AS BLOB), iif(o.position IS NULL AND o.flags & 4 = 0, NULL, o.content_hash), o.chain_hash, o.term, f.n, e.n, g.id, o.extra
    FROM temp.numbers m JOIN old_nodes o ON o.pk = m.old
        JOIN temp.author_numbers a ON a.tree = o.tree AND a.old = o.author
        LEFT JOIN temp.numbers p ON p.old = o.position LEFT JOIN temp.numbers f ON f.old = o.origin
        LEFT JOIN temp.numbers e ON e.old = o.edited_from LEFT JOIN old_generations g ON g.pk = o.generation
    ORDER BY m.tree, m.n;
INSERT INTO positions (pk, parent, kind, depth, jump, bytes, chars, graphemes, digest, lane)
    SELECT m.tree << 32 | m.n, up.n, o.kind, o.depth, j.n, o.bytes, o.chars, o.graphemes, o.digest, m.n
    FROM temp.numbers m JOIN old_positions o ON o.pk = m.old
        LEFT JOIN temp.numbers up ON up.old = o.parent LEFT JOIN temp.numbers j ON j.old = o.jump
    ORDER BY m.tree, m.n;
INSERT INTO seals (tree, n, seal)
    SELECT tree, row_number() OVER (PARTITION BY tree ORDER BY pk), seal FROM old_seals;
INSERT INTO imports (tree, n, file, at, first, last)
    SELECT tree, row_number() OVER (PARTITION BY tree ORDER BY pk), file, at, first, last FROM old_imports;
INSERT INTO injections (tree, node, ordinal, source, trust, text)
    SELECT i.tree, m.n, i.ordinal, i.source, i.trust, i.text FROM old_injections i JOIN temp.numbers m ON m.old = i.node;
INSERT INTO generations (id, tree, manifest, state, owner, fence, row)
    SELECT id, tree, manifest, state, owner, fence, row FROM old_generations ORDER BY pk;
INSERT INTO manifests (digest, bytes) SELECT digest, bytes FROM old_manifests ORDER BY pk;
INSERT INTO bodies (digest, bytes) SELECT digest, bytes FROM old_bodies ORDER BY pk;
INSERT INTO citations (manifest, body)
    SELECT m.digest, b.digest FROM old_citations c JOIN old_manifests m ON m.pk = c.manifest
        JOIN old_bodies b ON b.pk = c.body;
INSERT INTO responses (generation, digest, purged, metadata, bytes)
    SELECT g.id, r.digest, r.purged, r.metadata, r.bytes FROM old_responses r JOIN old_generations g ON g.pk = r.generation;
INSERT INTO usage (generation, tree, at, calls, prompt, completion, cached, cost)
    SELECT g.id, u.tree, u.at, u.calls, u.prompt, u.completion, u.cached, u.cost
    FROM old_usage u JOIN old_generations g ON g.pk = u.generation;
INSERT INTO blobs (digest, node)
    SELECT b.digest, m.tree << 32 | m.n FROM old_blobs b JOIN temp.numbers m ON m.old = b.node;
-- Followers read anew: what was removed is the one event that says so.
INSERT INTO events (pk, tree, what)
    SELECT pk + 1, tree, x'04' FROM old_events WHERE pk = (SELECT max(pk) FROM old_events);
";

const COPY_TIMELINE: &str = "
INSERT INTO timelines (tree, view, {columns}) SELECT tree, ?3, {columns} FROM old_timelines WHERE tree = ?1 AND view = ?2";

const COPY_DRAFT: &str = "
INSERT INTO drafts (tree, view, {columns})
    SELECT d.tree, ?3, coalesce(s.n, 0), b.n, d.revision, d.text, d.base_text, d.splices, d.undone
    FROM old_drafts d LEFT JOIN temp.numbers s ON s.old = d.slot LEFT JOIN temp.numbers b ON b.old = d.base
    WHERE d.tree = ?1 AND d.view = ?2";

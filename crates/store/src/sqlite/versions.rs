//! The tables in SQLite, and the steps that lead to them from older files.

mod aside;
mod from_2;
mod from_3;

use rusqlite::Connection;

use super::connection::failure;
use crate::error::StoreError;
use crate::schema::{TABLES, VERSION};

/// Marks the file as ours (`DrLm`).
pub(super) const APPLICATION_ID: i32 = 0x4472_4c6d;

#[derive(Clone, Copy)]
pub(super) struct Step {
    /// The version it is taken from.
    pub(super) from: u32,
    /// The version it leads to.
    pub(super) to: u32,
    /// The oldest program that may read the result, by the version it writes.
    pub(super) min_reader: u32,
    /// The oldest program that may write it.
    pub(super) min_writer: u32,
    pub(super) run: Run,
}

/// What a step does, within the transaction of all steps.
pub(super) type Run = fn(&Connection) -> Result<(), StoreError>;

/// The steps. Where one leads is never changed once it was released; it may be replaced by one that leads further.
pub(super) const STEPS: &[Step] = &[
    Step { from: 1, to: 2, min_reader: 1, min_writer: 2, run: |conn| batch(conn, INJECTIONS) },
    Step { from: 2, to: VERSION, min_reader: 4, min_writer: 8, run: from_2::migrate },
    Step { from: 3, to: VERSION, min_reader: 4, min_writer: 8, run: from_3::migrate },
    Step { from: 4, to: 5, min_reader: 4, min_writer: 5, run: |conn| batch(conn, CALLS) },
    Step { from: 5, to: 6, min_reader: 4, min_writer: 6, run: |conn| batch(conn, FILE_CHANGES) },
    Step { from: 6, to: 7, min_reader: 4, min_writer: 7, run: |conn| batch(conn, OUTSIDE_FILES) },
    Step { from: 7, to: VERSION, min_reader: 4, min_writer: 8, run: |conn| batch(conn, OUTCOMES) },
];

/// Makes the newest tables in an empty file.
pub(super) fn create(conn: &Connection) -> Result<(), StoreError> {
    batch(conn, META)?;
    batch(conn, TABLES)?;
    batch(conn, SEARCH)
}

pub(super) fn batch(conn: &Connection, sql: &str) -> Result<(), StoreError> {
    conn.execute_batch(sql).map_err(failure)
}

const META: &str = "CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;";

/// Of version 2.
const INJECTIONS: &str = "
-- What was shown to a model with a node, and is sent with it again.
CREATE TABLE injections (
    tree INTEGER NOT NULL, node INTEGER NOT NULL, ordinal INTEGER NOT NULL, source TEXT NOT NULL,
    trust INTEGER NOT NULL, text BLOB NOT NULL,
    PRIMARY KEY (tree, node, ordinal)
) WITHOUT ROWID;
";

/// Of version 5.
const CALLS: &str = "
CREATE INDEX nodes_answers ON nodes (pk) WHERE generation IS NOT NULL AND position IS NULL;
CREATE TABLE calls (
    node INTEGER NOT NULL, n INTEGER NOT NULL, state INTEGER NOT NULL, owner TEXT NOT NULL, fence INTEGER NOT NULL,
    PRIMARY KEY (node, n)
) WITHOUT ROWID;
CREATE INDEX calls_running ON calls (node, n) WHERE state = 0;
";

/// Of version 6.
const FILE_CHANGES: &str = "
CREATE TABLE file_changes (
    node INTEGER NOT NULL, call INTEGER NOT NULL, n INTEGER NOT NULL,
    root BLOB NOT NULL, path BLOB NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,
    at INTEGER NOT NULL, taken_back INTEGER NOT NULL, PRIMARY KEY (node, call, n)
) WITHOUT ROWID;
";

/// Of version 7. An older program would write files without saying where they come from.
const OUTSIDE_FILES: &str =
    "CREATE TABLE outside_files (digest BLOB PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;";

/// Of version 8. An older program would forget a text and leave it in what was noted.
const OUTCOMES: &str = "
ALTER TABLE sessions ADD COLUMN tree INTEGER;
CREATE TABLE outcomes (
    pk INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, tree INTEGER NOT NULL, node INTEGER,
    kind INTEGER NOT NULL, trust INTEGER NOT NULL, text TEXT NOT NULL, corrects INTEGER, at INTEGER NOT NULL
);
CREATE INDEX outcomes_session ON outcomes (session, pk);
CREATE INDEX outcomes_corrects ON outcomes (corrects) WHERE corrects IS NOT NULL;
";

/// The search index. The text of a node stands once, in its row: the index holds no copy and no places of words.
pub(super) const SEARCH: &str = r#"
CREATE VIRTUAL TABLE search USING fts5(
    text, content='', detail=none, columnsize=0, tokenize="unicode61 remove_diacritics 2 categories 'L* M* N* Co'"
);
INSERT INTO search (search, rank) VALUES ('secure-delete', 1);
-- Merges are the writer's: by itself the index does them in heaps, within the commits they happen to fall on.
INSERT INTO search (search, rank) VALUES ('automerge', 0);
INSERT INTO search (search, rank) VALUES ('usermerge', 16);
INSERT INTO search (search, rank) VALUES ('crisismerge', 256);
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_splits_words_as_the_text_crate_says() {
        assert!(SEARCH.contains(text::bigrams::FTS5_TOKENIZER));
    }

    #[test]
    fn the_last_step_leads_to_the_version_this_program_writes() {
        assert_eq!(STEPS.last().map(|step| step.to), Some(VERSION));
    }
}

//! The schema, as the steps that lead to it.
//!
//! What decides it is size: a node of 200 bytes costs less than 3.2 times its text, index included (spec: scale
//! §1). So rows refer to each other by integers, not by their 16-byte ids; what can be told from another column
//! is not stored again (an original's position is itself, an origin's chain hash is its node's, an operation's
//! `prev` is the hash of the one before); the text of a node stands once, as plain text, and the index is
//! contentless and keeps no places of words: phrases are looked up in the text. Node numbers grow in the order of commits, so that "newest" is a walk down the primary key.

use super::migrate::Step;

/// Marks the file as ours (`DrLm`).
pub(crate) const APPLICATION_ID: i32 = 0x4472_4c6d;

/// The version of the schema this program writes.
pub(crate) const VERSION: u32 = 2;

/// The steps, each from the version before it. A step that was released is never changed.
pub(crate) const STEPS: &[Step] = &[
    Step { to: 1, min_reader: 1, min_writer: 1, sql: FIRST },
    // A program that does not know of them would not forget them.
    Step { to: 2, min_reader: 1, min_writer: 2, sql: INJECTIONS },
];

const INJECTIONS: &str = "
-- What was shown to a model with a node, and is sent with it again.
CREATE TABLE injections (
    tree INTEGER NOT NULL, node INTEGER NOT NULL, ordinal INTEGER NOT NULL, source TEXT NOT NULL,
    trust INTEGER NOT NULL, text BLOB NOT NULL,
    PRIMARY KEY (tree, node, ordinal)
) WITHOUT ROWID;
";

const FIRST: &str = r#"
CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;

-- Views, agents, providers, models: each name once.
CREATE TABLE names (pk INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE authors (
    pk INTEGER PRIMARY KEY, kind INTEGER NOT NULL, name INTEGER NOT NULL, profile BLOB NOT NULL,
    UNIQUE (kind, name, profile)
);

CREATE TABLE trees (
    pk INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, short TEXT NOT NULL UNIQUE,
    mode INTEGER NOT NULL, root BLOB NOT NULL, created INTEGER NOT NULL, origin TEXT, session TEXT,
    purged INTEGER NOT NULL DEFAULT 0,
    -- Told from operations and cells, kept for lists.
    title TEXT NOT NULL DEFAULT '', archived INTEGER NOT NULL DEFAULT 0,
    seq INTEGER NOT NULL DEFAULT 0, head BLOB NOT NULL DEFAULT x'', nodes INTEGER NOT NULL DEFAULT 0,
    updated INTEGER NOT NULL
);
CREATE INDEX trees_title ON trees (title) WHERE title <> '';
CREATE INDEX trees_session ON trees (session) WHERE session IS NOT NULL;

CREATE TABLE nodes (
    pk INTEGER PRIMARY KEY,
    tree INTEGER NOT NULL,
    id BLOB NOT NULL,
    position INTEGER,                       -- its original; NULL: it is the original
    seq INTEGER NOT NULL, place INTEGER NOT NULL, short TEXT NOT NULL,
    author INTEGER NOT NULL,
    flags INTEGER NOT NULL,                 -- form of content, purged, role, trust
    created INTEGER NOT NULL,               -- ms after the time in its id
    bytes INTEGER, chars INTEGER, graphemes INTEGER,  -- NULL: as the content's length, as bytes, as chars
    content TEXT,
    content_hash BLOB NOT NULL, chain_hash BLOB NOT NULL, term BLOB NOT NULL,
    origin INTEGER,                         -- the one origin, a parent; others stand in extra
    edited_from INTEGER, generation INTEGER, extra BLOB
);
CREATE UNIQUE INDEX nodes_id ON nodes (id);
CREATE UNIQUE INDEX nodes_short ON nodes (tree, short);
CREATE INDEX nodes_version ON nodes (position) WHERE position IS NOT NULL;
CREATE INDEX nodes_generation ON nodes (generation) WHERE generation IS NOT NULL;

CREATE TABLE positions (
    pk INTEGER PRIMARY KEY,                 -- its original
    parent INTEGER, kind INTEGER NOT NULL, depth INTEGER NOT NULL, jump INTEGER NOT NULL,
    -- Sums over the originals above: bytes, bytes less chars, chars less graphemes.
    bytes INTEGER NOT NULL, chars INTEGER NOT NULL, graphemes INTEGER NOT NULL, digest BLOB NOT NULL
);
CREATE INDEX positions_parent ON positions (parent) WHERE parent IS NOT NULL;
CREATE INDEX positions_aside ON positions (parent) WHERE kind <> 0;

CREATE TABLE operations (
    tree INTEGER NOT NULL, seq INTEGER NOT NULL,
    first INTEGER NOT NULL,                 -- the number its first node has, or would have
    count INTEGER NOT NULL, hash BLOB NOT NULL, purged INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (tree, seq)
) WITHOUT ROWID;

CREATE TABLE cells (
    tree INTEGER NOT NULL, kind INTEGER NOT NULL, view INTEGER NOT NULL, target INTEGER NOT NULL, tag TEXT NOT NULL,
    form INTEGER NOT NULL, number INTEGER NOT NULL, text TEXT, seq INTEGER NOT NULL,
    PRIMARY KEY (tree, kind, view, target, tag)
) WITHOUT ROWID;

CREATE TABLE timelines (
    tree INTEGER NOT NULL, view INTEGER NOT NULL,
    undo INTEGER, redo INTEGER, depth INTEGER NOT NULL, tick INTEGER NOT NULL,
    PRIMARY KEY (tree, view)
) WITHOUT ROWID;

CREATE TABLE drafts (
    pk INTEGER PRIMARY KEY, tree INTEGER NOT NULL, view INTEGER NOT NULL, slot INTEGER NOT NULL,
    base INTEGER, revision INTEGER NOT NULL, text TEXT NOT NULL, base_text TEXT NOT NULL,
    splices TEXT NOT NULL, undone TEXT NOT NULL,
    UNIQUE (tree, view, slot)
);

CREATE TABLE seals (pk INTEGER PRIMARY KEY, tree INTEGER NOT NULL, seal TEXT NOT NULL);
CREATE INDEX seals_tree ON seals (tree);

-- Which operations of a tree came from a file; that is no part of the tree.
CREATE TABLE imports (
    pk INTEGER PRIMARY KEY, tree INTEGER NOT NULL, file BLOB NOT NULL, at INTEGER NOT NULL,
    first INTEGER NOT NULL, last INTEGER NOT NULL
);
CREATE INDEX imports_tree ON imports (tree);

CREATE TABLE generations (
    pk INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, tree INTEGER NOT NULL, manifest BLOB NOT NULL,
    state INTEGER NOT NULL, owner TEXT NOT NULL, fence INTEGER NOT NULL, row TEXT NOT NULL
);
CREATE INDEX generations_tree ON generations (tree);
CREATE INDEX generations_started ON generations (state) WHERE state = 0;
CREATE INDEX generations_manifest ON generations (manifest);
CREATE TABLE manifests (pk INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, bytes BLOB NOT NULL);
CREATE TABLE bodies (pk INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, bytes BLOB NOT NULL);
CREATE TABLE citations (
    manifest INTEGER NOT NULL, body INTEGER NOT NULL, PRIMARY KEY (manifest, body)
) WITHOUT ROWID;
CREATE INDEX citations_body ON citations (body);
CREATE TABLE responses (
    generation INTEGER PRIMARY KEY, digest BLOB NOT NULL, purged INTEGER NOT NULL,
    metadata TEXT NOT NULL, bytes BLOB NOT NULL
);
CREATE TABLE usage (
    generation INTEGER PRIMARY KEY, tree INTEGER NOT NULL, at INTEGER NOT NULL, calls INTEGER NOT NULL,
    prompt INTEGER NOT NULL, completion INTEGER NOT NULL, cached INTEGER NOT NULL, cost INTEGER NOT NULL
);
CREATE INDEX usage_at ON usage (at);

CREATE TABLE blobs (digest BLOB NOT NULL, node INTEGER NOT NULL, PRIMARY KEY (digest, node)) WITHOUT ROWID;
CREATE INDEX blobs_node ON blobs (node);

CREATE TABLE events (pk INTEGER PRIMARY KEY, tree INTEGER NOT NULL, what BLOB NOT NULL);

-- Conversations by name; their trees name them in trees.session.
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, workspace TEXT NOT NULL, name TEXT NOT NULL, kind INTEGER NOT NULL,
    archived INTEGER NOT NULL DEFAULT 0, created INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX sessions_name ON sessions (workspace, name) WHERE archived = 0;

-- What the owner said about folders.
CREATE TABLE workspaces (
    path BLOB PRIMARY KEY, device INTEGER NOT NULL, inode INTEGER NOT NULL, trusted INTEGER NOT NULL,
    inventory TEXT NOT NULL, at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE leases (
    name TEXT PRIMARY KEY, holder TEXT, fence INTEGER NOT NULL, expires INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE jobs (
    pk INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, key TEXT UNIQUE, tree INTEGER,
    payload TEXT NOT NULL, due INTEGER NOT NULL, state INTEGER NOT NULL, owner TEXT NOT NULL,
    fence INTEGER NOT NULL, result TEXT NOT NULL
);
CREATE INDEX jobs_open ON jobs (state, due) WHERE state < 2;

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
        assert!(FIRST.contains(text::bigrams::FTS5_TOKENIZER));
    }

    #[test]
    fn the_last_step_leads_to_the_version_this_program_writes() {
        assert_eq!(STEPS.last().map(|step| step.to), Some(VERSION));
    }
}

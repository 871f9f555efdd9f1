//! The tables, as every engine has them.
//!
//! What decides them is size (spec: scale §1) and that nothing names a row by a number in the order of commits, so
//! that two trees can be written at once. A tree has a number, and its nodes have theirs in the order of the tree:
//! the key of a node's row is `tree << 32 | number`, and within a tree rows name nodes by number alone. Names of
//! views, agents and models stand once a tree. What can be told from another column is not stored again (an
//! original's position is itself, an origin's chain hash is its node's, an operation's `prev` is the hash of the one
//! before). What was sent is named by its digest, generations by their id.

/// The version of the tables this program writes.
pub(crate) const VERSION: u32 = 8;

/// Tables and indexes. `BLOB`, `INTEGER`, `WITHOUT ROWID` and `INTEGER PRIMARY KEY` (a number that the engine gives
/// where none is said) are SQLite's words.
pub(crate) const TABLES: &str = "
CREATE TABLE names (
    tree INTEGER NOT NULL, n INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (tree, n)
) WITHOUT ROWID;
CREATE UNIQUE INDEX names_name ON names (tree, name);
CREATE TABLE authors (
    tree INTEGER NOT NULL, n INTEGER NOT NULL, kind INTEGER NOT NULL, name INTEGER NOT NULL, profile BLOB NOT NULL,
    PRIMARY KEY (tree, n)
) WITHOUT ROWID;

CREATE TABLE trees (
    pk INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, short TEXT NOT NULL UNIQUE,
    mode INTEGER NOT NULL, root BLOB NOT NULL, created INTEGER NOT NULL, origin TEXT, session TEXT,
    purged INTEGER NOT NULL DEFAULT 0,
    -- Told from operations and cells, kept for lists.
    title TEXT NOT NULL DEFAULT '', archived INTEGER NOT NULL DEFAULT 0,
    seq INTEGER NOT NULL DEFAULT 0, head BLOB, nodes INTEGER NOT NULL DEFAULT 0,
    updated INTEGER NOT NULL,
    tables INTEGER NOT NULL                 -- the version of the Unicode tables its derived numbers are from; 0: unknown
);
CREATE INDEX trees_title ON trees (title) WHERE title <> '';
CREATE INDEX trees_session ON trees (session) WHERE session IS NOT NULL;

CREATE TABLE nodes (
    pk INTEGER PRIMARY KEY,                 -- tree << 32 | number
    id BLOB NOT NULL,
    position INTEGER,                       -- its original; NULL: it is the original
    seq INTEGER NOT NULL, place INTEGER NOT NULL, short TEXT NOT NULL,
    author INTEGER NOT NULL,
    flags INTEGER NOT NULL,                 -- form of content, purged, role, trust
    created INTEGER NOT NULL,               -- ms after the time in its id
    bytes INTEGER, chars INTEGER, graphemes INTEGER,  -- NULL: as the content's length, as bytes, as chars
    content BLOB,
    content_hash BLOB,                      -- NULL: as the content's, of an original that is there
    chain_hash BLOB NOT NULL, term BLOB NOT NULL,
    origin INTEGER,                         -- the one origin, a parent; others stand in extra
    edited_from INTEGER, generation BLOB, extra BLOB
);
CREATE UNIQUE INDEX nodes_id ON nodes (id);
CREATE INDEX nodes_short ON nodes (short);
CREATE INDEX nodes_version ON nodes (position) WHERE position IS NOT NULL;
CREATE INDEX nodes_generation ON nodes (generation) WHERE generation IS NOT NULL;
CREATE INDEX nodes_answers ON nodes (pk) WHERE generation IS NOT NULL AND position IS NULL;

CREATE TABLE positions (
    pk INTEGER PRIMARY KEY,                 -- its original
    parent INTEGER, kind INTEGER NOT NULL, depth INTEGER NOT NULL, jump INTEGER NOT NULL,
    -- Sums over the originals above: bytes, bytes less chars, chars less graphemes.
    bytes INTEGER NOT NULL, chars INTEGER NOT NULL, graphemes INTEGER NOT NULL, digest BLOB NOT NULL,
    lane INTEGER NOT NULL                   -- the position its lane begins with
);
-- A child that comes right behind its parent is found by its number.
CREATE INDEX positions_parent ON positions (parent) WHERE parent <> (pk & 4294967295) - 1;
CREATE INDEX positions_aside ON positions (parent) WHERE kind <> 0;

-- Who wrote which bytes of a node that was edited or quotes: told from its versions, and told again where it is gone.
CREATE TABLE attributions (
    node INTEGER PRIMARY KEY,               -- its key
    version INTEGER NOT NULL,               -- of what it was told by
    spans BLOB NOT NULL,                    -- lengths, and numbers of the nodes that brought them; no text
    digest BLOB NOT NULL                    -- of the columns before
);

CREATE TABLE operations (
    tree INTEGER NOT NULL, seq INTEGER NOT NULL,
    first INTEGER NOT NULL,                 -- the number its first node has, or would have
    count INTEGER NOT NULL, hash BLOB NOT NULL, purged INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (tree, seq)
) WITHOUT ROWID;

CREATE TABLE cells (
    tree INTEGER NOT NULL, kind INTEGER NOT NULL, view INTEGER NOT NULL, target INTEGER NOT NULL, tag TEXT NOT NULL,
    form INTEGER NOT NULL, number INTEGER NOT NULL, text TEXT, seq INTEGER NOT NULL,
    lane INTEGER, depth INTEGER,            -- of a choice: of the position it was made at
    PRIMARY KEY (tree, kind, view, target, tag)
) WITHOUT ROWID;
CREATE INDEX cells_lane ON cells (tree, lane, depth) WHERE lane IS NOT NULL;

CREATE TABLE timelines (
    tree INTEGER NOT NULL, view INTEGER NOT NULL,
    undo INTEGER, redo INTEGER, depth INTEGER NOT NULL, tick INTEGER NOT NULL,
    PRIMARY KEY (tree, view)
) WITHOUT ROWID;

CREATE TABLE drafts (
    tree INTEGER NOT NULL, view INTEGER NOT NULL, slot INTEGER NOT NULL,
    base INTEGER, revision INTEGER NOT NULL, text TEXT NOT NULL, base_text TEXT NOT NULL,
    splices TEXT NOT NULL, undone TEXT NOT NULL,
    PRIMARY KEY (tree, view, slot)
);

CREATE TABLE seals (
    tree INTEGER NOT NULL, n INTEGER NOT NULL, seal TEXT NOT NULL, PRIMARY KEY (tree, n)
) WITHOUT ROWID;

-- Which operations of a tree came from a file; that is no part of the tree.
CREATE TABLE imports (
    tree INTEGER NOT NULL, n INTEGER NOT NULL, file BLOB NOT NULL, at INTEGER NOT NULL,
    first INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (tree, n)
) WITHOUT ROWID;

-- What was shown to a model with a node, and is sent with it again.
CREATE TABLE injections (
    tree INTEGER NOT NULL, node INTEGER NOT NULL, ordinal INTEGER NOT NULL, source TEXT NOT NULL,
    trust INTEGER NOT NULL, text BLOB NOT NULL,
    PRIMARY KEY (tree, node, ordinal)
) WITHOUT ROWID;

CREATE TABLE generations (
    id BLOB PRIMARY KEY, tree INTEGER NOT NULL, manifest BLOB NOT NULL,
    state INTEGER NOT NULL, owner TEXT NOT NULL, fence INTEGER NOT NULL, row TEXT NOT NULL,
    turn TEXT NOT NULL DEFAULT '',          -- names the turn whose budget it counts against, within its tree
    -- What it may come to, while it runs: micro-dollars, and tokens whose price is not known.
    reserved INTEGER NOT NULL DEFAULT 0, reserved_tokens INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX generations_tree ON generations (tree, turn);
CREATE INDEX generations_started ON generations (state) WHERE state = 0;
CREATE INDEX generations_manifest ON generations (manifest);
CREATE TABLE manifests (digest BLOB PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE bodies (digest BLOB PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE citations (
    manifest BLOB NOT NULL, body BLOB NOT NULL, PRIMARY KEY (manifest, body)
) WITHOUT ROWID;
CREATE INDEX citations_body ON citations (body);
CREATE TABLE responses (
    generation BLOB PRIMARY KEY, digest BLOB NOT NULL, purged INTEGER NOT NULL,
    metadata TEXT NOT NULL, bytes BLOB NOT NULL
);
CREATE TABLE usage (
    generation BLOB PRIMARY KEY, tree INTEGER NOT NULL, at INTEGER NOT NULL, calls INTEGER NOT NULL,
    prompt INTEGER NOT NULL, completion INTEGER NOT NULL, cached INTEGER NOT NULL, cost INTEGER NOT NULL
) WITHOUT ROWID;
-- What a budget is compared with is read from it alone.
CREATE INDEX usage_at ON usage (at, cost, prompt, completion);

-- Calls of tools that were started: what stands here without a result has an unknown outcome, what does not never ran.
CREATE TABLE calls (
    node INTEGER NOT NULL,                  -- the key of the answer that makes it
    n INTEGER NOT NULL,                     -- which of its calls, from 0
    state INTEGER NOT NULL,                 -- 0 runs, 1 has a result
    owner TEXT NOT NULL, fence INTEGER NOT NULL,
    PRIMARY KEY (node, n)
) WITHOUT ROWID;
CREATE INDEX calls_running ON calls (node, n) WHERE state = 0;

-- What tools changed in files: written down before it happens. What stands at a path is JSON, its bytes are a blob.
CREATE TABLE file_changes (
    node INTEGER NOT NULL,                  -- the key of the answer whose call it is
    call INTEGER NOT NULL, n INTEGER NOT NULL,
    root BLOB NOT NULL, path BLOB NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,
    at INTEGER NOT NULL, taken_back INTEGER NOT NULL,   -- constants of rows/file_changes.rs, or a time in ms
    PRIMARY KEY (node, call, n)
) WITHOUT ROWID;

-- Files that a model wrote which had read something from outside, by the digest of their bytes (spec: security §3).
CREATE TABLE outside_files (digest BLOB PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE blobs (digest BLOB NOT NULL, node INTEGER NOT NULL, PRIMARY KEY (digest, node)) WITHOUT ROWID;
CREATE INDEX blobs_node ON blobs (node);

CREATE TABLE events (pk INTEGER PRIMARY KEY, tree INTEGER NOT NULL, what BLOB NOT NULL);

-- Conversations by name; their trees name them in trees.session.
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, workspace TEXT NOT NULL, name TEXT NOT NULL, kind INTEGER NOT NULL,
    archived INTEGER NOT NULL DEFAULT 0, created INTEGER NOT NULL,
    settings TEXT NOT NULL DEFAULT '',      -- model, thinking and waiting files, as JSON
    tree INTEGER                            -- the number of the tree it goes on in; NULL: its newest
) WITHOUT ROWID;
CREATE UNIQUE INDEX sessions_name ON sessions (workspace, name) WHERE archived = 0;

-- What a session notes for the one after it: appended alone, numbered in the order of commits.
CREATE TABLE outcomes (
    pk INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, tree INTEGER NOT NULL,
    node INTEGER,                           -- the number of the node it was said in
    kind INTEGER NOT NULL, trust INTEGER NOT NULL,
    text TEXT NOT NULL,                     -- '': forgotten
    corrects INTEGER,                       -- another one of its session, which it strikes
    at INTEGER NOT NULL
);
CREATE INDEX outcomes_session ON outcomes (session, pk);
CREATE INDEX outcomes_corrects ON outcomes (corrects) WHERE corrects IS NOT NULL;

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
    fence INTEGER NOT NULL, result TEXT NOT NULL,
    ended INTEGER                           -- by the engine's clock
);
CREATE INDEX jobs_open ON jobs (state, due) WHERE state < 2;
CREATE INDEX jobs_ended ON jobs (ended) WHERE ended IS NOT NULL;

-- What running work asks a person: answered once, or denied when it expires.
CREATE TABLE questions (
    id BLOB PRIMARY KEY, tree INTEGER NOT NULL, kind TEXT NOT NULL, asker TEXT NOT NULL, payload TEXT NOT NULL,
    answers TEXT NOT NULL,                  -- words that approve, as JSON
    created INTEGER NOT NULL, expires INTEGER NOT NULL, owner TEXT NOT NULL, fence INTEGER NOT NULL,
    decision INTEGER,                       -- 1 approved, 0 denied
    word TEXT, reason TEXT, answered_by TEXT, answered INTEGER
) WITHOUT ROWID;
CREATE INDEX questions_open ON questions (created) WHERE decision IS NULL;
CREATE INDEX questions_answered ON questions (answered) WHERE answered IS NOT NULL;
";

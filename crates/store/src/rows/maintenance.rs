//! Integrity, copies, identity.

use loom::verify::{self, Evidence, Gap, Reread};
use loom::{Digest, ModelSource, NodeRow, RowError, TreeId, TreeReader as _, short_id};

use super::cell::kind;
use super::leases::fence_everything;
use super::reader::StoredTree;
use super::trees::{self, TreeRef};
use super::{attributions, check, events, generations};
use crate::db::{Db, bytes_of, get, id16, number_of};
use crate::engine::{NONE, Row};
use crate::error::StoreError;
use crate::identity::{Identity, StoreId};
use crate::principal::Principal;
use crate::schema::VERSION;

const PROBLEMS: usize = 100;

/// Generations read at a time.
const PAGE: usize = 256;

/// As [`crate::Store::check`].
pub(crate) fn check(db: &Db<'_>) -> Result<Vec<String>, StoreError> {
    let mut problems = Vec::new();
    found(&mut problems, "the file", db.engine().problems());
    for (problem, sql) in QUESTIONS {
        let line = |row: &Row<'_>| Ok(format!("{problem} {}", TreeId::from_bytes(id16(row, 0)?)));
        found(&mut problems, problem, db.all(sql, NONE, line));
    }
    found(&mut problems, "what the store says of itself", missing_notes(db));
    let strays = db.all(STRAY_IMPORTS, NONE, |row| {
        Ok(format!("an import is of no tree: number {}", get::<i64>(row, 0)?))
    });
    found(&mut problems, "imports", strays);
    let strays = db.all(STRAY_OUTCOMES, NONE, |row| {
        Ok(format!("what a session noted is of no tree: number {}", get::<i64>(row, 0)?))
    });
    found(&mut problems, "session ledgers", strays);
    found(&mut problems, "short ids", short_ids(db));
    found(&mut problems, "kept authors", kept_authors(db));
    found(&mut problems, "what was sent", check::sent(db));
    found(&mut problems, "the search index", check::unfound(db, PROBLEMS));
    match trees::all(db) {
        Err(error) => problems.push(format!("trees cannot be listed: {error}")),
        Ok(trees) => {
            for tree in trees {
                let verified = verify_tree(db, tree);
                found(&mut problems, &format!("tree {}", tree.id), verified);
                found(&mut problems, &format!("tree {}", tree.id), check::beside(db, tree));
            }
        }
    }
    problems.truncate(PROBLEMS);
    Ok(problems)
}

/// Adds what was found; what kept it from being found is a problem as well.
fn found(problems: &mut Vec<String>, of: &str, lines: Result<Vec<String>, StoreError>) {
    match lines {
        Ok(lines) => problems.extend(lines),
        Err(error) => problems.push(format!("{of}: {error}")),
    }
}

/// What of a tree disagrees with its hashes, and of its generations.
fn verify_tree(db: &Db<'_>, tree: TreeRef) -> Result<Vec<String>, StoreError> {
    let rows = StoredTree::new(db, tree, &Principal::Owner);
    let report = verify::verify(&rows, &DigestEvidence(db))?;
    let wrong = report.problems.into_iter().filter(|problem| problem.gap.is_none());
    let mut lines: Vec<String> = wrong
        .map(|problem| match problem.node {
            Some(node) => format!("tree {}, node {node}: {}", tree.id, problem.why),
            None => format!("tree {}: {}", tree.id, problem.why),
        })
        .collect();
    let mut last = None;
    loop {
        let page = rows.generations(last, PAGE)?;
        last = page.last().map(|(row, _)| row.id);
        for (row, digest) in &page {
            let answer = rows.answer(row.id)?;
            if answer.is_some_and(|answer| {
                !answer.purged
                    && (Some(answer.digest) != *digest
                        || Digest::of(&answer.bytes) != answer.digest
                        || serde_json::from_str::<serde_json::Map<_, _>>(&answer.metadata).is_err())
            }) {
                lines.push(format!("tree {}: the response of generation {} is damaged", tree.id, row.id));
            }
        }
        if page.len() < PAGE {
            return Ok(lines);
        }
    }
}

/// Manifests and responses by their digests alone: what a response says is read again by `tree verify`.
struct DigestEvidence<'a, 'c>(&'a Db<'c>);

impl Evidence for DigestEvidence<'_, '_> {
    fn manifest(&self, digest: Digest) -> Result<Result<Digest, Gap>, RowError> {
        match generations::manifest(self.0, &Principal::Owner, digest) {
            Ok(bytes) => Ok(Ok(Digest::of(&bytes))),
            Err(StoreError::NotFound(_)) => Ok(Err(Gap::Missing)),
            Err(error) => Err(error.into()),
        }
    }

    fn reread(&self, node: &NodeRow, _: &ModelSource) -> Result<Reread, RowError> {
        let gap = |digest, gap| Ok(Reread::Gap { digest, gap });
        match generations::response(self.0, &Principal::Owner, node.node.id) {
            Ok(response) if response.purged => gap(None, Gap::Purged),
            Ok(response) => gap(Some(Digest::of(&response.bytes)), Gap::Parser),
            Err(StoreError::NotFound(_)) => gap(None, Gap::Missing),
            Err(error) => Err(error.into()),
        }
    }

    fn has_checked_records(&self) -> bool {
        false
    }
}

/// Notes that every store has, and this one does not. Which programs may open it is a matter of SQLite's file.
fn missing_notes(db: &Db<'_>) -> Result<Vec<String>, StoreError> {
    let mut missing = Vec::new();
    let keys: &[&str] =
        if db.engine().is_remote() { &["store"] } else { &["store", "min_reader", "min_writer"] };
    for key in keys {
        if db.one("SELECT 1 FROM meta WHERE key = ?1", [*key], |_| Ok(()))?.is_none() {
            missing.push(format!("the store's {key} is missing"));
        }
    }
    Ok(missing)
}

/// Short ids that do not come from the id they stand beside.
fn short_ids(db: &Db<'_>) -> Result<Vec<String>, StoreError> {
    let mut wrong = Vec::new();
    for sql in ["SELECT id, short FROM trees", "SELECT id, short FROM nodes"] {
        db.scan(sql, NONE, |row| {
            let (id, short): ([u8; 16], String) = (id16(row, 0)?, get(row, 1)?);
            let longest = short_id::candidates(id).last().unwrap_or_default();
            if short.len() < short_id::SHORTEST || !longest.starts_with(&short) {
                wrong.push(format!("the short id {short} is not that of {}", TreeId::from_bytes(id)));
            }
            Ok(wrong.len() < PROBLEMS)
        })?;
    }
    Ok(wrong)
}

/// Nodes whose kept authors are not as they were written: `store check --repair` tells them anew.
fn kept_authors(db: &Db<'_>) -> Result<Vec<String>, StoreError> {
    let of = |key: i64| {
        format!("the kept authors of node {} in tree number {} are damaged", number_of(key), key >> 32)
    };
    Ok(attributions::faulty(db)?.into_iter().take(PROBLEMS).map(of).collect())
}

/// What is wrong, with a statement that finds the ids of trees and nodes of which it is.
const QUESTIONS: [(&str, &str); 20] = [
    (
        "operations are missing in tree",
        "SELECT t.id FROM trees t WHERE t.seq <> (SELECT count(*) FROM operations o WHERE o.tree = t.pk)
            OR t.seq <> coalesce((SELECT max(seq) FROM operations o WHERE o.tree = t.pk), 0)",
    ),
    (
        "nodes are missing in tree",
        "SELECT t.id FROM trees t WHERE t.nodes <>
            (SELECT count(*) FROM nodes n WHERE n.pk > t.pk << 32 AND n.pk < (t.pk + 1) << 32)",
    ),
    (
        "the last operation is another one than was written in tree",
        "SELECT t.id FROM trees t JOIN operations o ON o.tree = t.pk AND o.seq = t.seq
            WHERE o.hash IS DISTINCT FROM t.head",
    ),
    (
        "the title or the mark of an archive is another one than was written in tree",
        "SELECT t.id FROM trees t LEFT JOIN cells c ON c.tree = t.pk AND c.kind = 0
            LEFT JOIN cells a ON a.tree = t.pk AND a.kind = 1
            WHERE t.title <> coalesce(c.text, '') OR t.archived <> CASE WHEN a.form = 1 THEN 1 ELSE 0 END",
    ),
    (
        "the position is missing of node",
        "SELECT n.id FROM nodes n WHERE n.position IS NULL
            AND NOT EXISTS (SELECT 1 FROM positions p WHERE p.pk = n.pk)",
    ),
    (
        "no position is where this version says: node",
        "SELECT n.id FROM nodes n WHERE n.position = (n.pk & 4294967295) OR n.position IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM positions p WHERE p.pk = (n.pk & -4294967296) + n.position)",
    ),
    (
        "the parent is missing of position",
        "SELECT n.id FROM positions p JOIN nodes n ON n.pk = p.pk WHERE p.parent IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM positions up WHERE up.pk = (p.pk & -4294967296) + p.parent)",
    ),
    (
        "the lane does not go on with the one above at position",
        "SELECT n.id FROM positions p JOIN nodes n ON n.pk = p.pk WHERE p.lane <> (p.pk & 4294967295)
            AND (p.kind <> 0 OR NOT EXISTS (SELECT 1 FROM positions up
                WHERE up.pk = (p.pk & -4294967296) + p.parent AND up.lane = p.lane))",
    ),
    (
        "two positions are at one place of a lane, one of them",
        "SELECT n.id FROM (SELECT max(pk) AS pk FROM positions GROUP BY pk >> 32, lane, depth HAVING count(*) > 1) twice
            JOIN nodes n ON n.pk = twice.pk",
    ),
    (
        "a choice does not name the lane of its position in tree",
        concat!(
            "SELECT t.id FROM cells c JOIN trees t ON t.pk = c.tree
            LEFT JOIN nodes n ON n.pk = (c.tree << 32) + (c.target >> 1)
            LEFT JOIN positions p ON p.pk = (c.tree << 32) + coalesce(n.position, c.target >> 1)
            WHERE (c.kind IN (",
            kind::choices!(),
            ") AND (c.lane IS DISTINCT FROM p.lane OR c.depth IS DISTINCT FROM p.depth))
                OR (c.kind NOT IN (",
            kind::choices!(),
            ") AND c.lane IS NOT NULL)"
        ),
    ),
    (
        "a view's place in its timeline is damaged in tree",
        "SELECT t.id FROM timelines l JOIN trees t ON t.pk = l.tree
            WHERE l.depth < 0 OR l.depth > 4294967295 OR l.tick < 0",
    ),
    (
        "an import names operations that are not there, or no file, in tree",
        "SELECT t.id FROM imports i JOIN trees t ON t.pk = i.tree
            WHERE i.first < 1 OR i.last < i.first OR i.last > t.seq OR octet_length(i.file) <> 32",
    ),
    (
        "the tree is missing of node",
        "SELECT n.id FROM nodes n WHERE NOT EXISTS (SELECT 1 FROM trees t WHERE t.pk = n.pk >> 32)",
    ),
    (
        "the position is missing of a pending edit in tree",
        "SELECT t.id FROM drafts d JOIN trees t ON t.pk = d.tree WHERE d.slot <> 0
            AND NOT EXISTS (SELECT 1 FROM positions p WHERE p.pk = (d.tree << 32) + d.slot)",
    ),
    (
        "the session is of no known kind of tree",
        "SELECT t.id FROM trees t JOIN sessions s ON s.id = t.session WHERE s.kind NOT IN (0, 1, 2)",
    ),
    (
        "a session goes on in a tree of another one, which is",
        "SELECT t.id FROM sessions s JOIN trees t ON t.pk = s.tree WHERE t.session IS DISTINCT FROM s.id",
    ),
    (
        "what a session noted names another session, or what is not there, in tree",
        "SELECT DISTINCT t.id FROM outcomes o JOIN trees t ON t.pk = o.tree
            WHERE t.session IS DISTINCT FROM o.session OR o.kind NOT BETWEEN 0 AND 4 OR o.trust NOT BETWEEN 0 AND 3
            OR o.node IS NOT NULL AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.pk = (o.tree << 32) + o.node)
            OR o.corrects IS NOT NULL AND NOT EXISTS
                (SELECT 1 FROM outcomes c WHERE c.pk = o.corrects AND c.pk < o.pk AND c.session = o.session)",
    ),
    (
        "what was shown goes with a node that is missing in tree",
        "SELECT t.id FROM injections i JOIN trees t ON t.pk = i.tree WHERE i.ordinal < 0
            OR NOT EXISTS (SELECT 1 FROM nodes n WHERE n.pk = (i.tree << 32) + i.node)",
    ),
    (
        "a cost is booked to another tree than its generation's, or is no number of tokens: tree",
        "SELECT t.id FROM usage u JOIN generations g ON g.id = u.generation JOIN trees t ON t.pk = g.tree
            WHERE u.tree <> g.tree OR u.calls < 0 OR u.prompt < 0 OR u.completion < 0 OR u.cached < 0 OR u.cost < -1",
    ),
    (
        "the generation is missing of node",
        "SELECT n.id FROM nodes n WHERE n.generation IS NOT NULL AND NOT EXISTS
            (SELECT 1 FROM generations g WHERE g.id = n.generation AND g.tree = n.pk >> 32)
            AND NOT EXISTS (SELECT 1 FROM imports i WHERE i.tree = n.pk >> 32 AND n.seq BETWEEN i.first AND i.last)",
    ),
];

/// Imports that name no tree.
const STRAY_IMPORTS: &str =
    "SELECT i.tree FROM imports i WHERE NOT EXISTS (SELECT 1 FROM trees t WHERE t.pk = i.tree)";

/// Entries of session ledgers that name no tree.
const STRAY_OUTCOMES: &str =
    "SELECT o.pk FROM outcomes o WHERE NOT EXISTS (SELECT 1 FROM trees t WHERE t.pk = o.tree)";

/// As [`crate::Store::identity`].
pub(crate) fn identity(db: &Db<'_>) -> Result<Identity, StoreError> {
    let store = db.one("SELECT value FROM meta WHERE key = 'store'", NONE, |row| {
        let bytes = bytes_of(row, 0)?.try_into();
        bytes.map(StoreId).map_err(|_| StoreError::Damaged("the store's id cannot be read".to_owned()))
    })?;
    let store = store.ok_or_else(|| StoreError::Damaged("the store has no id".to_owned()))?;
    Ok(Identity { store, version: VERSION, cursor: events::last(db)? })
}

/// As [`crate::Store::renew_identity`].
pub(crate) fn renew(db: &Db<'_>, id: StoreId) -> Result<(), StoreError> {
    db.run("UPDATE meta SET value = ?1 WHERE key = 'store'", [id.0])?;
    fence_everything(db)
}

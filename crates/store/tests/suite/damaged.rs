//! A small store with something of everything that a tree has, and everything that readers ask of it: for tests that
//! damage its rows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use loom::attribution::Attributions;
use loom::path::{ViewOverrides, common_ancestor, newest_leaf};
use loom::reader::Injection;
use loom::render::{Show, render, tip, window};
use loom::{Digest, Millis, Slot, Trust};
use loom::{KeepScope, Mode, Op, OpTarget, RowError, Seq, TreeId, TreeReader, ViewName};
use store::{
    AttachedWrites, DraftEdit, DraftName, ImportNote, NewOutcome, NewSession, OutcomeKind, SearchScope,
    SessionId, SessionKind, Store, StoreError, TreeFilter, read,
};

use super::home::{Home, OWNER, owner_text};

/// What a reader waits at most.
pub(crate) const SOON: Duration = Duration::from_secs(2);

/// The session of the tree.
fn ledger_of() -> SessionId {
    SessionId("tale".to_owned())
}

/// Fills a store.
pub(crate) async fn made(store: Store) -> TreeId {
    let home = Home::new(Arc::new(store));
    let session = NewSession {
        id: ledger_of(),
        workspace: "w".to_owned(),
        name: "tale".to_owned(),
        kind: SessionKind::Main,
        at: Millis(5),
    };
    let with = AttachedWrites { begins: Some(session), ..AttachedWrites::nothing() };
    let page = home.create_with(OWNER, Mode::Buffer, "Tale", with).await.unwrap();
    let mut at = Vec::new();
    for text in ["It rained. ", "Snow fell. ", "The ferry left. "] {
        at.push(page.append(text).await.as_position());
    }
    for text in ["It rained softly. ", "It rained, softly. "] {
        page.edit(at[0], text).await;
    }
    page.change(Op::BranchAt { node: at[1].original(), at: 4, token: None }).await;
    let beside = page.append("Another way. ").await.as_position();
    page.change(Op::Prune(OpTarget::Position(beside))).await;
    page.change(Op::Switch(at[2])).await;
    page.change(Op::Exclude(OpTarget::Position(at[1]))).await;
    page.change(Op::Bookmark { position: at[0], title: Some("here".to_owned()) }).await;
    page.change(Op::Keep { position: at[2], scope: KeepScope::Below }).await;
    let generation = super::generations::start(&page, "sent").await;
    let answer = super::generations::answer(&page, &generation, "An answer.").await;
    stand_beside(&home, &page, answer).await;
    page.tree
}

/// What stands beside the nodes: drafts, what was shown, an import, a picture, a seal, kept authors.
async fn stand_beside(home: &Home, page: &super::home::Page, answer: loom::NodeId) {
    let store = &home.store;
    let shown = |ordinal, text: &str| Injection {
        node: answer,
        ordinal,
        source: "zone#red".into(),
        trust: Trust::Workspace,
        text: text.to_owned(),
    };
    let with = AttachedWrites {
        injections: vec![shown(0, "short"), shown(1, &"long enough to be packed ".repeat(20))],
        imported: Some(ImportNote { file: Digest::of(b"file"), at: Millis(5) }),
        ..AttachedWrites::default()
    };
    let mut pictured = owner_text("a picture");
    pictured.content.push(loom::Block::Image { blob: Digest::of(b"picture"), mime: "image/png".into() });
    page.change_as(OWNER, Op::Append(pictured), with).await.unwrap();
    let view = ViewName::default();
    let slots = [(Slot::Buffer, None), (Slot::Edit(answer.as_position()), Some(answer))];
    for (slot, base) in slots {
        let name = DraftName { tree: page.tree, view: view.clone(), slot };
        let set = |text: &str| DraftEdit::Set { base, text: text.to_owned() };
        let draft = store.edit_draft(OWNER, name.clone(), None, set("It is typed")).await.unwrap();
        store.edit_draft(OWNER, name, Some(draft.revision), set("It is typed on")).await.unwrap();
    }
    let begun = read(store, OWNER, page.tree, |rows| Ok(rows.operations(Seq(0), 1)?.remove(0)));
    let head = loom::seal::next_head(loom::seal::first_head(page.tree), begun.await.unwrap().hash);
    let seal = loom::seal::sign(&[7; 32], page.tree, Seq(1), head, Millis(5));
    store.add_seal(OWNER, page.tree, seal).await.unwrap();
    let note = NewOutcome {
        session: ledger_of(),
        tree: page.tree,
        node: Some(answer),
        kind: OutcomeKind::Decision,
        trust: Trust::Agent,
        text: "The ferry left.".to_owned(),
        corrects: None,
        guards: Vec::new(),
    };
    let noted = store.note_outcome(OWNER, note.clone()).await.unwrap();
    store.note_outcome(OWNER, NewOutcome { corrects: Some(noted), ..note }).await.unwrap();
    let told = store.cursor().await.unwrap();
    let authors = read(store, OWNER, page.tree, |rows| {
        let mut authors = Attributions::new(rows);
        for row in rows.nodes_in_order(None, 99)? {
            authors.of(&row)?;
        }
        Ok(authors.into_computed())
    });
    store.keep_attributions(OWNER, page.tree, authors.await.unwrap(), told).await.unwrap();
}

/// What readers ask of a tree; the answers as text.
fn asked(rows: &dyn TreeReader) -> Result<Vec<String>, RowError> {
    let view = ViewName::default();
    let end = tip(rows, &view)?;
    let mut all = vec![render(rows, &view, Show { drafts: true, spans: true })?.text];
    all.push(render(rows, &view, Show { drafts: false, spans: false })?.text);
    let path = ViewOverrides::read(rows, &view, end)?;
    for passage in window(rows, &view, &path, None, 50)? {
        let at = passage.position.id;
        all.push(format!("{} {}", passage.text, rows.count_versions(at)? + rows.count_children(at)?));
        all.push(format!("{:?}", loom::drift::is_drifted(rows, &path, &passage.position, &passage.row)?));
        all.push(format!("{:?} {:?}", rows.versions(at, None, 9)?.len(), rows.children(at, None, 9)?.len()));
        all.push(format!("{}", common_ancestor(rows, at, end)?.id));
    }
    all.push(format!("{:?}", path.locate(rows, 5)?.map(|(at, offset)| (at.id, offset))));
    all.push(format!("{:?}", newest_leaf(rows, rows.tree()?.root)?));
    let nodes = rows.nodes_in_order(None, 99)?;
    for row in &nodes {
        all.push(format!("{} {:?}", row.node.text(), loom::attribution::attribute(rows, row.node.id)?));
        all.push(format!("{}", loom::path::is_hidden(rows, row.node.position)?));
    }
    all.push(format!("{:?} {:?}", rows.timeline(&view)?, rows.drafts(&view)?));
    for (slot, draft) in rows.drafts(&view)? {
        all.push(format!("{slot:?} {draft:?}"));
    }
    all.push(format!("{:?} {:?}", rows.seals()?, rows.injections(nodes[0].node.id, None)?));
    for (row, digest) in rows.generations(None, 99)? {
        let answer = rows.answer(row.id)?;
        if let Some(answer) = answer.as_ref().filter(|answer| !answer.purged) {
            serde_json::from_str::<serde_json::Map<_, _>>(&answer.metadata)
                .map_err(|error| RowError::Store(Box::new(error)))?;
        }
        all.push(format!("{row:?} {digest:?} {answer:?}"));
        all.push(format!("{:?}", rows.manifest(row.manifest)?));
        all.push(format!("{:?}", rows.body(Digest::of(b"body of sent"))?));
    }
    all.push(rows.operations(Seq(0), 99)?.iter().map(|record| record.hash.to_string()).collect());
    Ok(all)
}

/// Reads all that; every answer is there soon, and none is a panic.
pub(crate) async fn read_all(
    store: &Store,
    tree: TreeId,
    what: &str,
    unkept: &mut Vec<String>,
) -> Result<Vec<String>, StoreError> {
    let begun = Instant::now();
    let mut answer = read(store, OWNER, tree, asked).await;
    let mut more = Vec::new();
    for word in ["rained", "softly", "ferry", "answer", "picture"] {
        let hits = store.search(OWNER, word, SearchScope::All, 9).await;
        more.push(hits.map(|hits| hits.hits.iter().map(|hit| hit.node.to_string()).collect()));
    }
    let listed = store.trees(OWNER, TreeFilter::All, None, 9_999).await;
    more.push(listed.map(|trees| format!("{trees:?}")));
    more.push(store.imports(OWNER, tree).await.map(|imports| format!("{imports:?}")));
    more.push(store.spent(OWNER, Millis(0), None, 9).await.map(|spent| format!("{spent:?}")));
    let noted = store.outcomes(OWNER, &ledger_of(), None, 9).await;
    more.push(noted.map(|noted| format!("{noted:?}")));
    more.push(store.blobs(OWNER, None, 9).await.map(|blobs| format!("{blobs:?}")));
    if begun.elapsed() >= SOON {
        unkept.push(format!("{what}: {:?}", begun.elapsed()));
    }
    for one in more {
        match (one, &mut answer) {
            (Ok(one), Ok(all)) => all.push(one),
            (Err(error), Ok(_)) => answer = Err(error),
            _ => {}
        }
    }
    if let Err(failed @ (StoreError::Panicked | StoreError::Closed)) = &answer {
        unkept.push(format!("{what}: {failed}"));
    }
    answer
}

/// A change of the tree, planned and not made.
async fn planned(store: &Store, tree: TreeId) -> Result<(), StoreError> {
    let request = loom::plan::Request {
        tree,
        view: ViewName::default(),
        author: loom::Author::owner(),
        trust: Trust::Owner,
        now: Millis(9),
        op: Op::Append(owner_text("And on.")),
    };
    store::prepare(store, OWNER, request, &store::Ids::new()).await.map(drop)
}

/// That damage of a cell was answered, to a reader or a writer, as if the tree's main view were not there.
pub(crate) async fn taken_for_a_lack(
    store: &Store,
    tree: TreeId,
    (what, table): (&str, &str),
    read: &Result<Vec<String>, StoreError>,
) -> Option<String> {
    if table != "cells" {
        return None;
    }
    let planned = planned(store, tree).await;
    let is_lack = is_not_found(read) || is_not_found(&planned);
    is_lack.then(|| format!("{what}: damage is no lack: {:?}, {planned:?}", read.as_ref().err()))
}

fn is_not_found<T>(answer: &Result<T, StoreError>) -> bool {
    use loom::Refusal::{NoNode, NoPosition, NoView};
    match answer {
        Err(StoreError::NotFound(_) | StoreError::Rows(RowError::Missing { what: "view", .. })) => true,
        Err(StoreError::Refused(refusal)) => {
            matches!(refusal, NoView(_) | NoPosition(_) | NoNode(_))
        }
        _ => false,
    }
}

/// Tables that readers meet, those of the search index apart: each engine has its own.
pub(crate) const TABLES: [&str; 19] = [
    "names",
    "authors",
    "trees",
    "nodes",
    "positions",
    "operations",
    "cells",
    "timelines",
    "generations",
    "drafts",
    "seals",
    "imports",
    "injections",
    "manifests",
    "bodies",
    "responses",
    "usage",
    "attributions",
    "outcomes",
];

/// Columns that no hash binds and nothing else tells, so that another value is as good as the one before, and why.
const UNBOUND: [(&str, &str); 48] = [
    ("trees.tables", "says which version counted; any is possible"),
    ("trees.created", "in no record of the log"),
    ("trees.updated", "for the order of lists"),
    ("trees.session", "which conversation it is of is no part of the tree"),
    ("trees.origin", "where it came from is no part of the tree"),
    ("trees.mode", "in no record of the log"),
    ("trees.purged", "says that only tombstones are to be left"),
    (
        "nodes.flags",
        "trust may be set; the mark of a purge and the form of content are bound by the content's hash",
    ),
    ("nodes.extra", "names by number, of which several may be alike"),
    ("nodes.generation", "which request made it is told from the source as well"),
    ("timelines.undo", "where a view stands in its timeline is no part of the tree"),
    ("timelines.redo", "as undo"),
    ("timelines.depth", "as undo"),
    ("timelines.tick", "as undo"),
    ("cells.seq", "told from the log, which drift alone asks for"),
    ("generations.row", "what was asked for is in the manifest; the rest is a note"),
    ("generations.tree", "the tree of a manifest is in no hash"),
    ("generations.manifest", "another manifest that is there is as good a one"),
    ("generations.state", "work under way"),
    ("generations.owner", "work under way"),
    ("generations.fence", "work under way"),
    ("generations.turn", "names a budget"),
    ("generations.reserved", "money under way"),
    ("generations.reserved_tokens", "money under way"),
    ("drafts.revision", "counts keystrokes"),
    ("drafts.base", "another node that is there is as good a base"),
    (
        "drafts.splices",
        "what can be undone; its texts are bound to base and text, its depths and ticks are not",
    ),
    ("drafts.undone", "what can be redone"),
    ("imports.at", "a time"),
    ("imports.file", "the digest of a file that is not here"),
    ("imports.first", "another operation that is there"),
    ("imports.last", "another operation that is there"),
    ("injections.source", "bound by the manifests of requests that sent it, which the check does not read"),
    ("injections.trust", "as source"),
    ("injections.text", "as source; what is packed is found where it cannot be unpacked"),
    ("responses.metadata", "status and times, in no hash; what cannot be read is found"),
    ("responses.purged", "says that the bytes are gone"),
    ("usage.at", "a time"),
    ("usage.calls", "told from metadata"),
    ("usage.prompt", "told from metadata, as are completion, cached and cost"),
    ("usage.cost", "a price of its day"),
    ("outcomes.tree", "another tree of its session is as good a one"),
    ("outcomes.node", "another node that is there is as good a one"),
    ("outcomes.kind", "in no hash; a kind that is none is found"),
    ("outcomes.trust", "as kind"),
    ("outcomes.text", "in no hash"),
    ("outcomes.corrects", "an earlier one of its session is as good a one"),
    ("outcomes.at", "a time"),
];

/// Whether something binds a column.
pub(crate) fn is_bound(column: &str) -> bool {
    let beside = ["usage.completion", "usage.cached"];
    !UNBOUND.iter().any(|(unbound, _)| *unbound == column) && !beside.contains(&column)
}

/// What a damage of a column led to, if it is not as it should be.
pub(crate) fn unfound(
    what: &str,
    column: &str,
    answer: &Result<Vec<String>, StoreError>,
    intact: &Vec<String>,
    problems: &[String],
) -> Option<String> {
    let is_met = answer.as_ref().ok() != Some(intact);
    let is_missed = is_met && problems.is_empty() && (is_bound(column) || answer.is_err());
    is_missed.then(|| format!("{what}: met by a reader, not by the check: {:?}", answer.as_ref().err()))
}

//! Taking in a tree as it is: whole or not at all, as history, and trusted only where an import brought it in.

use std::collections::BTreeMap;

use loom::reader::StoredResponse;
use loom::{Digest, GenerationId, Millis, Mode, NodeId, Op, Seq, Trust, ViewName};
use store::{
    AttachedWrites, GenerationFilter, GenerationState, HashedBytes, Import, ImportNote, ImportedGeneration,
    ImportedManifest, ImportedTree, Principal, Scope, StoreError, TreeFilter, prepare, read,
};

use super::both::each;
use super::generations::{answer, start};
use super::home::{Home, OWNER, Page, owner_text};

const NOTE: ImportNote = ImportNote { file: Digest([7; 32]), at: Millis(1_700_000_500_000) };

/// A tree of a store as another would take it in.
async fn taken(page: &Page, bodies: BTreeMap<Digest, Vec<u8>>) -> ImportedTree {
    read(&page.home.store, OWNER, page.tree, move |rows| {
        let nodes = rows.nodes_in_order(None, 1000)?;
        let originals = nodes.iter().filter(|row| row.node.is_original());
        let positions = originals.map(|row| rows.position(row.node.position).map(Option::unwrap));
        let generations = rows.generations(None, 100)?;
        let mut manifests = Vec::new();
        for (row, _) in &generations {
            if let Some(bytes) = rows.manifest(row.manifest)? {
                let manifest = HashedBytes { digest: row.manifest, bytes };
                manifests.push(ImportedManifest { manifest, bodies: bodies.keys().copied().collect() });
            }
        }
        let answered = generations
            .into_iter()
            .map(|(row, _)| Ok(ImportedGeneration { response: rows.answer(row.id)?, row }));
        Ok(ImportedTree {
            injections: rows.injections(rows.tree()?.root.original(), None)?,
            tree: rows.tree()?,
            positions: positions.collect::<Result<_, _>>()?,
            operations: rows.operations(Seq(0), 1000)?,
            seals: rows.seals()?,
            generations: answered.collect::<Result<_, loom::RowError>>()?,
            manifests,
            bodies: bodies.into_iter().map(|(digest, bytes)| HashedBytes { digest, bytes }).collect(),
            imported: NOTE,
            nodes,
        })
    })
    .await
    .unwrap()
}

/// A tree with an answer and a version, in a store of its own.
async fn elsewhere() -> (Page, NodeId, ImportedTree) {
    let page =
        Home::new(std::sync::Arc::new(store::Store::in_memory().unwrap())).create(Mode::Buffer, "Rain").await;
    page.append("It rained. ").await;
    let generation = start(&page, "It rained.").await;
    let node = answer(&page, &generation, "Then it stopped.").await;
    page.edit(node.as_position(), "Then it poured.").await;
    let body = &generation.bodies[0];
    let mut imported = taken(&page, BTreeMap::from([(body.digest, body.bytes.clone())])).await;
    for row in &mut imported.nodes {
        row.node.trust = Trust::Outside;
    }
    (page, node, imported)
}

/// What is shared or cut has nodes without the generations that made them.
#[test]
fn an_imported_tree_without_its_generations_is_no_damage() {
    each(|home| async move {
        let (_, _, mut imported) = elsewhere().await;
        imported.generations.clear();
        imported.manifests.clear();
        imported.bodies.clear();
        home.store.import_tree(OWNER, imported).await.unwrap();
        assert_eq!(home.store.check(OWNER).await.unwrap(), Vec::<String>::new());
    });
}

#[test]
fn an_imported_tree_is_the_one_that_was_read() {
    each(|home| async move {
        let (there, node, imported) = elsewhere().await;
        let before = home.create(Mode::Buffer, "Another").await;
        before.append("here before").await;
        home.store.import_tree(OWNER, imported.clone()).await.unwrap();
        let page = Page { home: home.clone(), tree: there.tree };
        assert_eq!(page.text().await, there.text().await);
        let bodies: BTreeMap<_, _> =
            imported.bodies.iter().map(|body| (body.digest, body.bytes.clone())).collect();
        assert_eq!(taken(&page, bodies).await, imported);
        assert_eq!(
            home.store.body(OWNER, imported.bodies[0].digest).await.unwrap(),
            imported.bodies[0].bytes
        );
        let response: StoredResponse = home.store.response(OWNER, node).await.unwrap();
        assert_eq!(response, there.home.store.response(OWNER, node).await.unwrap());
        let entry = home.store.tree(OWNER, there.tree).await.unwrap();
        let other = there.home.store.tree(OWNER, there.tree).await.unwrap();
        assert_eq!((&entry.title, entry.nodes, entry.seq), (&other.title, other.nodes, other.seq));
        // The log goes on, and the tree can be found.
        page.append(" And on.").await;
        assert_eq!(home.store.tree(OWNER, there.tree).await.unwrap().seq, Seq(other.seq.0 + 1));
        let hits = home.store.search(OWNER, "poured", store::SearchScope::default(), 5).await.unwrap();
        assert_eq!(hits.hits.len(), 1);
    });
}

#[test]
fn nothing_that_is_imported_runs_or_can_be_undone() {
    each(|home| async move {
        let (there, _, imported) = elsewhere().await;
        home.store.import_tree(OWNER, imported).await.unwrap();
        let all = home.store.generations(OWNER, GenerationFilter::default(), None, 999).await.unwrap();
        assert!(all.iter().all(|one| one.state == GenerationState::Done) && !all.is_empty());
        let timeline = read(&home.store, OWNER, there.tree, |rows| rows.timeline(&ViewName::default()));
        assert_eq!(timeline.await.unwrap(), loom::Timeline::default());
        let page = Page { home, tree: there.tree };
        assert!(matches!(
            page.change_as(OWNER, Op::Undo, AttachedWrites::nothing()).await,
            Err(StoreError::Refused(loom::Refusal::NothingToUndo))
        ));
    });
}

#[test]
fn what_is_here_is_not_imported_again_and_what_does_not_fit_is_refused_whole() {
    each(|home| async move {
        let (_, _, imported) = elsewhere().await;
        let changed: [fn(&mut ImportedTree); 9] = [
            |imported| drop(imported.nodes.pop()),
            |imported| drop(imported.operations.remove(1)),
            |imported| {
                imported.positions.pop();
            },
            |imported| imported.operations[2].undo_prev = Some(Seq(900)),
            |imported| imported.nodes[1].short_id = imported.nodes[0].short_id.clone(),
            |imported| imported.manifests[0].manifest.bytes.push(b' '),
            |imported| imported.bodies[0].bytes.push(b' '),
            |imported| imported.generations[0].row.tree = loom::TreeId::from_bytes([9; 16]),
            |imported| {
                let seal = loom::seal::sign(&[3; 32], imported.tree.id, Seq(1), Digest::ZERO, Millis(1));
                imported.seals.push(loom::seal::Seal { at: Millis(2), ..seal });
            },
        ];
        for change in changed {
            let mut other = imported.clone();
            change(&mut other);
            assert!(matches!(home.store.import_tree(OWNER, other).await, Err(StoreError::Malformed(_))));
        }
        let token = Principal::Token { name: "t".into(), scope: Scope::ChatSession("s".into()) };
        assert!(matches!(home.store.import_tree(&token, imported.clone()).await, Err(StoreError::Denied(_))));
        assert!(home.store.trees(OWNER, TreeFilter::All, None, 9_999).await.unwrap().is_empty());
        home.store.import_tree(OWNER, imported.clone()).await.unwrap();
        assert!(matches!(home.store.import_tree(OWNER, imported).await, Err(StoreError::Exists(_))));
    });
}

#[test]
fn a_file_cannot_name_its_way_to_what_another_tree_sent() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "Mine").await;
        let secret = start(&page, "a secret").await;
        let (there, _, mut imported) = elsewhere().await;
        let mut strange = imported.generations[0].clone();
        strange.row.id = GenerationId::from_bytes([5; 16]);
        strange.row.manifest = secret.row.manifest;
        imported.generations.push(strange);
        imported.manifests[0].bodies.push(secret.bodies[0].digest);
        home.store.import_tree(OWNER, imported).await.unwrap();
        let scope = Scope::ReadTree { tree: there.tree, with_context: true };
        let reader = Principal::Token { name: "t".into(), scope };
        assert!(home.store.manifest(&reader, secret.row.manifest).await.is_err());
        assert!(home.store.body(&reader, secret.bodies[0].digest).await.is_err());
    });
}

#[test]
fn only_imported_nodes_are_trusted_later() {
    each(|home| async move {
        let (there, node, imported) = elsewhere().await;
        let last = imported.operations.last().unwrap().seq;
        home.store.import_tree(OWNER, imported).await.unwrap();
        let imports = home.store.imports(OWNER, there.tree).await.unwrap();
        assert_eq!(imports, [Import { note: NOTE, from: Seq(1), to: last }]);
        let page = Page { home: home.clone(), tree: there.tree };
        let tool = loom::plan::NewText { trust: Trust::Outside, ..owner_text("from the web") };
        let web = page.change(Op::Append(tool)).await.nodes[0].0;
        let both = vec![(node, Trust::Agent), (web, Trust::Owner)];
        let refused = home.store.set_trust(OWNER, there.tree, both).await;
        assert!(matches!(refused, Err(StoreError::Malformed(_))));
        let trust = |id: NodeId| {
            let home = home.clone();
            let tree = there.tree;
            async move {
                read(&home.store, OWNER, tree, move |rows| Ok(rows.node(id)?.unwrap().node.trust))
                    .await
                    .unwrap()
            }
        };
        assert_eq!((trust(node).await, trust(web).await), (Trust::Outside, Trust::Outside));
        assert_eq!(home.store.set_trust(OWNER, there.tree, vec![(node, Trust::Agent)]).await.unwrap(), 1);
        // It is raised once: later words change nothing.
        assert_eq!(home.store.set_trust(OWNER, there.tree, vec![(node, Trust::Owner)]).await.unwrap(), 0);
        assert_eq!((trust(node).await, trust(web).await), (Trust::Agent, Trust::Outside));
        let mine = home.create(Mode::Buffer, "Mine").await;
        assert!(home.store.imports(OWNER, mine.tree).await.unwrap().is_empty());
    });
}

#[test]
fn a_plan_may_bring_imported_nodes_without_their_text() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "Mine").await;
        let request = home.request(page.tree, Op::Append(owner_text("gone")));
        let mut plan = prepare(&home.store, OWNER, request, &home.ids).await.unwrap().plan;
        let node = plan.nodes[0].id;
        let counts = plan.nodes[0].counts;
        plan.nodes[0].kept_hash = Some(plan.nodes[0].content_hash().unwrap());
        plan.nodes[0].content = Default::default();
        let with = AttachedWrites { imported: Some(NOTE), absent: vec![node], ..AttachedWrites::default() };
        home.store.apply(OWNER, page.tree, plan, with).await.unwrap();
        let row = read(&home.store, OWNER, page.tree, move |rows| rows.node(node)).await.unwrap().unwrap();
        assert!(row.purged && row.node.content.is_empty());
        assert_eq!(row.node.counts, counts);
        let imports = home.store.imports(OWNER, page.tree).await.unwrap();
        assert_eq!(imports, [Import { note: NOTE, from: Seq(2), to: Seq(2) }]);
    });
}

//! Generations: manifest and row together, node and response and cost together, owners and numbers.

use loom::plan::Answer;
use loom::{
    Author, AuthorKind, Digest, Finish, GenerationPlace, GenerationRow, Millis, Mode, ModelSource, NodeId,
    Op, Purpose, ResponsePart, SourceKind, Trust, ViewName,
};
use store::{
    Applied, AttachedWrites, Claim, Fence, GenerationCost, GenerationEnd, GenerationFilter, GenerationState,
    HashedBytes, LeaseOwner, NewGeneration, Received, StoreError, read,
};

use super::both::each;
use super::home::{OWNER, Page, owner_text};

/// Starts a generation at the tip of a tree, with a manifest that says `sent`.
pub(crate) async fn start(page: &Page, sent: &str) -> NewGeneration {
    let generation = generation(page, sent).await;
    begin(page, &generation).await;
    generation
}

/// Starts a generation that was prepared.
pub(crate) async fn begin(page: &Page, generation: &NewGeneration) {
    let with = AttachedWrites { generations: vec![generation.clone()], ..AttachedWrites::default() };
    page.home.store.apply(OWNER, page.tree, loom::Plan::default(), with).await.unwrap();
}

pub(crate) async fn generation(page: &Page, sent: &str) -> NewGeneration {
    let tip = read(&page.home.store, OWNER, page.tree, |rows| {
        let key = loom::CellKey::Tip { view: ViewName::default() };
        Ok(rows.cell(&key)?.value.as_position().unwrap())
    });
    let tip = tip.await.unwrap();
    let (id, node) =
        page.home.ids.with(|entropy| (entropy.next(Millis(5)), entropy.next(Millis(5)))).unwrap();
    let manifest = format!("{{\"sent\":\"{sent}\"}}").into_bytes();
    let row = GenerationRow {
        id,
        tree: page.tree,
        purpose: Purpose::Turn,
        manifest: Digest::of(&manifest),
        profile: None,
        place: Some(GenerationPlace { view: ViewName::default(), parent: tip, parent_node: tip.original() }),
        reserved: vec![node],
        runs: Vec::new(),
        settings: None,
    };
    let claim = Claim { owner: LeaseOwner::new("one"), fence: Fence(1) };
    NewGeneration {
        row,
        claim,
        manifest,
        bodies: vec![HashedBytes::new(format!("body of {sent}"))],
        cited: Vec::new(),
        reservation: None,
    }
}

fn outcome(generation: &NewGeneration, text: &str) -> GenerationEnd {
    GenerationEnd {
        generation: generation.row.id,
        claim: generation.claim.clone(),
        state: GenerationState::Done,
        response: Some(Received::new(format!("wire: {text}").as_bytes(), "{\"status\":200}".into()).unwrap()),
        usage: Some(GenerationCost {
            calls: 1,
            prompt_tokens: 10,
            completion_tokens: 4,
            cached_tokens: 2,
            micro_cost: Some(7),
        }),
        at: Millis(9_000),
    }
}

pub(crate) async fn try_answer(
    page: &Page,
    generation: &NewGeneration,
    text: &str,
) -> Result<Applied, StoreError> {
    let outcome = outcome(generation, text);
    let source = ModelSource {
        provider: "script".into(),
        model: "m".into(),
        dialect: "script".into(),
        kind: SourceKind::Script,
        manifest: generation.row.manifest,
        response: outcome.response.as_ref().map(|received| received.digest),
        choice: ResponsePart::Index(0),
    };
    let answer = Answer {
        generation: generation.row.clone(),
        node: generation.row.reserved[0],
        content: vec![loom::Block::text(text)].into(),
        author: Author { kind: AuthorKind::Model, id: "main".into(), profile: Some(Digest::of(b"profile")) },
        source,
        finish: Finish::Stop,
        trust: Trust::Agent,
        inputs: Vec::new(),
        part_of: None,
        follow: true,
    };
    let with = AttachedWrites { outcomes: vec![outcome], ..AttachedWrites::default() };
    page.change_as(OWNER, Op::Answer(Box::new(answer)), with).await
}

/// Ends a generation with a node, a response and a cost.
pub(crate) async fn answer(page: &Page, generation: &NewGeneration, text: &str) -> NodeId {
    try_answer(page, generation, text).await.unwrap().nodes[0].0
}

#[test]
fn a_generation_leaves_manifest_response_node_and_cost() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        page.append("It rained. ").await;
        let generation = start(&page, "It rained.").await;
        let store = &home.store;
        assert_eq!(store.manifest(OWNER, generation.row.manifest).await.unwrap(), generation.manifest);
        assert_eq!(store.body(OWNER, generation.bodies[0].digest).await.unwrap(), generation.bodies[0].bytes);
        let started =
            GenerationFilter { state: Some(GenerationState::Started), ..GenerationFilter::default() };
        let running = store.generations(OWNER, started.clone(), None, 999).await.unwrap();
        assert_eq!((&running[0].row, &running[0].claim), (&generation.row, &generation.claim));
        let node = answer(&page, &generation, "Then it stopped.").await;
        assert_eq!(page.text().await, "It rained. Then it stopped.");
        let response = store.response(OWNER, node).await.unwrap();
        assert_eq!(
            (&response.bytes[..], response.metadata.as_str()),
            (&b"wire: Then it stopped."[..], "{\"status\":200}")
        );
        assert_eq!(response.digest, Digest::of(&response.bytes));
        assert!(store.generations(OWNER, started, None, 999).await.unwrap().is_empty());
        let spent = store.spent(OWNER, Millis(9_000), None, 10).await.unwrap();
        assert_eq!((spent.len(), spent[0].row.tree, spent[0].row.usage.completion_tokens), (1, page.tree, 4));
        let (manifest, purpose) = (generation.row.manifest, generation.row.purpose);
        assert_eq!((spent[0].manifest, spent[0].purpose, spent[0].cache_write), (manifest, purpose, None));
        assert!(store.spent(OWNER, Millis(9_001), None, 10).await.unwrap().is_empty());
        let row = read(store, OWNER, page.tree, move |rows| rows.node(node)).await.unwrap().unwrap();
        assert_eq!(row.node.generation, Some(generation.row.id));
        let id = generation.row.id;
        let found = read(store, OWNER, page.tree, move |rows| rows.generation(id)).await.unwrap();
        assert_eq!(found, Some(generation.row.clone()));
        let through_rows = read(store, OWNER, page.tree, move |rows| rows.response(node)).await.unwrap();
        assert_eq!(through_rows, Some(response));
    });
}

#[test]
fn a_refused_part_refuses_the_whole() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let mut wrong = generation(&page, "x").await;
        wrong.manifest.push(b' ');
        let with = AttachedWrites { generations: vec![wrong], ..AttachedWrites::default() };
        let refused = page.change_as(OWNER, Op::Append(owner_text("text")), with).await;
        assert!(matches!(refused, Err(StoreError::Malformed(_))));
        let mut citing = generation(&page, "y").await;
        citing.cited.push(Digest::of(b"not stored"));
        let with = AttachedWrites { generations: vec![citing], ..AttachedWrites::default() };
        let refused = page.change_as(OWNER, Op::Append(owner_text("text")), with).await;
        assert!(matches!(refused, Err(StoreError::NotFound("body"))));
        assert_eq!(page.text().await, "");
        assert!(
            home.store.generations(OWNER, GenerationFilter::default(), None, 999).await.unwrap().is_empty()
        );
    });
}

#[test]
fn a_generation_taken_over_refuses_its_old_owners_answer() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let generation = start(&page, "x").await;
        let id = generation.row.id;
        let other = LeaseOwner::new("two");
        let wrong = Claim { owner: other.clone(), fence: Fence(1) };
        let refused = home.store.take_over(OWNER, id, &wrong, &other).await;
        assert!(matches!(refused, Err(StoreError::Fenced { .. })));
        let fence = home.store.take_over(OWNER, id, &generation.claim, &other).await.unwrap();
        assert!(fence > generation.claim.fence);
        let late = try_answer(&page, &generation, "late").await;
        assert!(matches!(late, Err(StoreError::Fenced { .. })));
        assert_eq!(page.text().await, "");
        let taken = NewGeneration { claim: Claim { owner: other, fence }, ..generation };
        answer(&page, &taken, "recovered").await;
        assert_eq!(page.text().await, "recovered");
        let again = try_answer(&page, &taken, "twice").await;
        assert!(again.is_err());
    });
}

#[test]
fn bodies_and_manifests_are_stored_once() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let first = start(&page, "same").await;
        let second = start(&page, "same").await;
        assert_eq!(first.row.manifest, second.row.manifest);
        let mut third = generation(&page, "other").await;
        third.cited = vec![first.bodies[0].digest];
        third.bodies.clear();
        let with = AttachedWrites { generations: vec![third.clone()], ..AttachedWrites::default() };
        home.store.apply(OWNER, page.tree, loom::Plan::default(), with).await.unwrap();
        home.store.body(OWNER, first.bodies[0].digest).await.unwrap();
        assert_eq!(
            home.store.generations(OWNER, GenerationFilter::default(), None, 999).await.unwrap().len(),
            3
        );
    });
}

#[test]
fn usage_is_read_a_page_at_a_time() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        page.append("It rained. ").await;
        for text in ["one", "two", "three"] {
            let generation = start(&page, text).await;
            answer(&page, &generation, text).await;
        }
        let all = home.store.spent(OWNER, Millis(0), None, 10).await.unwrap();
        assert_eq!(all.len(), 3);
        let mut read = Vec::new();
        loop {
            let after = read.last().map(|last: &store::SpentRow| (last.row.at, last.row.generation));
            let next = home.store.spent(OWNER, Millis(0), after, 2).await.unwrap();
            if next.is_empty() {
                break;
            }
            assert!(next.len() <= 2);
            read.extend(next);
        }
        assert_eq!(read, all, "each once, in the same order");
    });
}

/// A request of a prompt: no place, no node; everything else as with any other.
async fn observation(page: &Page, sent: &str) -> NewGeneration {
    let mut new = generation(page, sent).await;
    new.row = GenerationRow { place: None, reserved: Vec::new(), purpose: Purpose::Observe, ..new.row };
    begin(page, &new).await;
    new
}

async fn end(page: &Page, generation: &NewGeneration, text: &str) -> Result<Applied, StoreError> {
    let with = AttachedWrites { outcomes: vec![outcome(generation, text)], ..AttachedWrites::default() };
    page.home.store.apply(OWNER, page.tree, loom::Plan::default(), with).await
}

#[test]
fn a_generation_without_a_place_is_kept_booked_found_and_ended_like_any_other() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        page.append("It rained. ").await;
        let turn = start(&page, "It rained.").await;
        let node = answer(&page, &turn, "Then it stopped.").await;
        let observed = observation(&page, "rain").await;
        let store = &home.store;
        let found = store.generation(OWNER, observed.row.id).await.unwrap();
        assert_eq!((&found.row, found.state), (&observed.row, GenerationState::Started));
        let elsewhere = GenerationFilter { tree: Some(loom::TreeId::from_bytes([9; 16])), state: None };
        assert!(store.generations(OWNER, elsewhere, None, 9).await.unwrap().is_empty());
        end(&page, &observed, "it is wet").await.unwrap();
        assert!(matches!(end(&page, &observed, "twice").await, Err(StoreError::Fenced { .. })));
        assert_eq!(store.generation(OWNER, observed.row.id).await.unwrap().state, GenerationState::Done);
        let spent = store.spent(OWNER, Millis(0), None, 10).await.unwrap();
        let purposes: std::collections::BTreeSet<_> = spent.iter().map(|row| row.purpose.as_str()).collect();
        assert_eq!(purposes.into_iter().collect::<Vec<_>>(), ["observe", "turn"]);
        let id = observed.row.id;
        let kept = read(store, OWNER, page.tree, move |rows| rows.answer(id)).await.unwrap().unwrap();
        assert_eq!(kept.bytes, b"wire: it is wet");
        let rows = read(store, OWNER, page.tree, |rows| rows.generations(None, 10)).await.unwrap();
        assert!(rows.contains(&(observed.row.clone(), Some(kept.digest))));
        assert_eq!(page.text().await, "It rained. Then it stopped.");
        // The whole is what `store check` looks at; both bodies and the response are found by what they hold.
        assert!(store.check(OWNER).await.unwrap().is_empty());
        let done = store.forget(OWNER, &store::Forget::Text("it is wet".into()), Millis(1)).await.unwrap();
        assert_eq!(done.places, [store::ForgottenPlace::Response { generation: id }]);
        let done = store.forget(OWNER, &store::Forget::Text("body of rain".into()), Millis(2)).await.unwrap();
        assert_eq!(done.places, [store::ForgottenPlace::Body { digest: observed.bodies[0].digest }]);
        assert!(!store.response(OWNER, node).await.unwrap().purged, "that of the turn stays");
    });
}

#[test]
fn an_answer_to_a_generation_without_a_place_is_no_node() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let mut observed = observation(&page, "x").await;
        observed.row.reserved = home.ids.with(|entropy| vec![entropy.next(Millis(5))]).unwrap();
        let refused = try_answer(&page, &observed, "text").await;
        assert!(matches!(refused, Err(StoreError::Refused(loom::Refusal::NoPlace(_)))), "{refused:?}");
        assert_eq!(page.text().await, "");
    });
}

#[test]
fn what_a_dead_process_asked_without_a_place_is_taken_over_under_a_new_number() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let observed = observation(&page, "x").await;
        let other = LeaseOwner::new("two");
        let fence = home.store.take_over(OWNER, observed.row.id, &observed.claim, &other).await.unwrap();
        assert!(matches!(end(&page, &observed, "late").await, Err(StoreError::Fenced { .. })));
        let taken = NewGeneration { claim: Claim { owner: other, fence }, ..observed };
        end(&page, &taken, "recovered").await.unwrap();
    });
}

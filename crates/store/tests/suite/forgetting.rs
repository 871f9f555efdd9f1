//! Forget and purge: the text is gone from every place, the hashes stay.

use loom::{CellKey, Mode, NodeId, Op, Seq, Slot, ViewName};
use store::{
    AttachedWrites, Decision, DraftEdit, DraftName, EventKind, Forget, ForgottenPlace, JobFilter, NewAnswer,
    NewJob, NewQuestion, NewSession, QuotedAs, SearchScope, SessionFilter, SessionId, SessionKind,
    StoreError, TreeFilter, prepare, read,
};

use super::both::each;
use super::generations::{answer, generation, start, try_answer};
use super::home::{OWNER, Page, owner_text};
use super::questions::{answer as answer_of, question};
use super::showing::show;

const CANARY: &str = "canary sentence nobody else writes";

/// A tree with the canary in every place there is; returns the node that says it.
async fn with_canary(page: &Page) -> NodeId {
    let node = page.append(CANARY).await;
    let generation = start(page, CANARY).await;
    answer(page, &generation, &format!("answering {CANARY}")).await;
    show(page, node, &format!("shown {CANARY}")).await;
    page.change(Op::Bookmark { position: node.as_position(), title: Some(format!("about {CANARY}")) }).await;
    page.change(Op::Tag { position: node.as_position(), tag: CANARY.into(), on: true }).await;
    page.change(Op::Rename(format!("Title {CANARY}"))).await;
    let name = DraftName { tree: page.tree, view: ViewName::default(), slot: Slot::Buffer };
    let text = format!("typing {CANARY} here");
    page.home.store.edit_draft(OWNER, name, None, DraftEdit::Set { base: None, text }).await.unwrap();
    let job = NewJob {
        kind: "k".into(),
        key: None,
        tree: Some(page.tree),
        payload: format!("{{\"text\":\"{CANARY}\"}}"),
        due: loom::Millis(0),
    };
    page.home.store.enqueue(OWNER, job).await.unwrap();
    node
}

#[test]
fn a_forgotten_text_is_in_no_row() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let kept = page.append("kept words").await;
        let node = with_canary(&page).await;
        let before = read(&home.store, OWNER, page.tree, move |rows| rows.node(node)).await.unwrap().unwrap();
        let preview = home.store.forget_preview(OWNER, &Forget::Text(CANARY.into())).await.unwrap();
        assert!(
            read(&home.store, OWNER, page.tree, move |rows| rows.node(node)).await.unwrap().unwrap()
                == before
        );
        let done = home.store.forget(OWNER, &Forget::Text(CANARY.into()), loom::Millis(77)).await.unwrap();
        assert_eq!(preview, done.places);
        for wanted in ["Node", "Draft", "Label", "Operation", "Response", "Manifest", "Body", "Job", "Shown"]
        {
            assert!(done.places.iter().any(|place| format!("{place:?}").starts_with(wanted)), "{wanted}");
        }
        let after = read(&home.store, OWNER, page.tree, move |rows| rows.node(node)).await.unwrap().unwrap();
        assert!(after.purged && after.node.content.is_empty());
        assert_eq!(
            (after.node.content_hash(), after.node.chain_hash),
            (before.node.content_hash(), before.node.chain_hash)
        );
        assert_eq!((after.node.counts, after.node.term), (before.node.counts, before.node.term));
        let position =
            read(&home.store, OWNER, page.tree, move |rows| rows.position(node.as_position())).await;
        assert_eq!(position.unwrap().unwrap().own.counts, before.node.counts);
        let dump = read(&home.store, OWNER, page.tree, |rows| {
            let mut all = format!("{:?}", rows.operations(Seq(0), 1000)?);
            all += &format!("{:?}", rows.nodes_in_order(None, 1000)?);
            all += &format!("{:?}", rows.drafts(&ViewName::default())?);
            all += &format!("{:?}", rows.cells(&loom::cell::CellScope::AllTags)?);
            all += &format!("{:?}", rows.cells(&loom::cell::CellScope::Bookmarks)?);
            all += &format!("{:?}", rows.cell(&CellKey::Title)?);
            all += &format!("{:?}", rows.injections(rows.tree()?.root.original(), None)?);
            Ok(all)
        });
        let dump = dump.await.unwrap();
        assert!(!dump.contains(CANARY), "{dump}");
        assert!(dump.contains("kept words") && dump.contains("typing  here"));
        assert_eq!(home.store.search(OWNER, "canary", SearchScope::All, 9).await.unwrap().hits, []);
        assert_eq!(home.store.search(OWNER, "kept", SearchScope::All, 9).await.unwrap().hits[0].node, kept);
        let records =
            read(&home.store, OWNER, page.tree, |rows| rows.operations(Seq(0), 1000)).await.unwrap();
        let purged = records.iter().filter(|record| record.purged).count();
        assert_eq!(purged, 3, "bookmark, tag and title");
        assert!(records.windows(2).all(|pair| pair[1].prev == pair[0].hash));
        assert_eq!(records.last().unwrap().op.kind, loom::OpKind::Forget);
        let again = home.store.forget(OWNER, &Forget::Text(CANARY.into()), loom::Millis(78)).await.unwrap();
        assert_eq!(again.places, []);
    });
}

/// Texts stand in records behind their lengths, which as bytes look like the beginning of a coded character.
#[test]
fn a_coded_text_is_found_whatever_its_length_is() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let coded = "abcd%20efgh%20ijkl%20mnop";
        let titles = (coded.len()..=130).map(|length| format!("{coded}{}", ".".repeat(length - coded.len())));
        for title in titles {
            page.change(Op::Rename(title)).await;
        }
        let text = Forget::Text("abcd efgh ijkl mnop".into());
        home.store.forget(OWNER, &text, loom::Millis(77)).await.unwrap();
        let records = read(&home.store, OWNER, page.tree, |rows| rows.operations(Seq(0), 1_000)).await;
        let records = records.unwrap();
        assert!(records.len() > 100);
        let holding = records.iter().filter(|record| format!("{record:?}").contains("efgh"));
        assert_eq!(holding.map(|record| record.seq).collect::<Vec<_>>(), []);
    });
}

#[test]
fn a_forgotten_node_takes_its_response_and_what_names_it() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let first = page.append("yes").await;
        page.append("yes").await;
        let generation = start(&page, &first.to_string()).await;
        let node = answer(&page, &generation, "an answer of some length").await;
        let done = home
            .store
            .forget(OWNER, &Forget::Node { tree: page.tree, node: first }, loom::Millis(1))
            .await
            .unwrap();
        let manifest = generation.row.manifest;
        assert!(done.places.contains(&ForgottenPlace::Manifest { digest: manifest }), "it names the node");
        assert!(done.places.contains(&ForgottenPlace::Node { tree: page.tree, node: first }));
        assert_eq!(
            page.text().await,
            "yesan answer of some length",
            "the other node that says the same stays"
        );
        assert!(!home.store.response(OWNER, node).await.unwrap().purged);
        home.store.forget(OWNER, &Forget::Node { tree: page.tree, node }, loom::Millis(2)).await.unwrap();
        let response = home.store.response(OWNER, node).await.unwrap();
        assert!(response.purged && response.bytes.is_empty() && response.metadata.is_empty());
        let nowhere = Forget::Node { tree: page.tree, node: NodeId::from_bytes([1; 16]) };
        let missing = home.store.forget(OWNER, &nowhere, loom::Millis(3)).await;
        assert!(matches!(missing, Err(StoreError::NotFound("node"))));
        assert!(home.store.forget(OWNER, &Forget::Text(String::new()), loom::Millis(3)).await.is_err());
    });
}

#[test]
fn a_title_made_of_the_first_text_goes_with_it() {
    each(|home| async move {
        let long = "words ".repeat(40);
        for text in
            ["First words of it\nand others", "\tA tab and some words", "  blanks before words ", &long]
        {
            let title = text::title::title(text);
            let page = home.create(Mode::Buffer, &title).await;
            let other = home.create(Mode::Buffer, &title).await;
            let texts = vec![owner_text("a file that is sent along"), owner_text(text)];
            let node = page.change(Op::Reply { to: None, texts }).await.nodes[1].0;
            let records = async || {
                let records =
                    read(&home.store, OWNER, page.tree, |rows| rows.operations(Seq(0), 1_000)).await;
                format!("{:?}", records.unwrap())
            };
            assert!(records().await.contains("words"), "the control: the title is in the record of the tree");
            home.store.forget(OWNER, &Forget::Node { tree: page.tree, node }, loom::Millis(1)).await.unwrap();
            assert_eq!(home.store.tree(OWNER, page.tree).await.unwrap().title, "");
            assert!(!records().await.contains("words"));
            assert_eq!(home.store.tree(OWNER, other.tree).await.unwrap().title, title, "of another tree");
        }
    });
}

#[test]
fn a_title_given_by_hand_outlives_a_later_text_that_begins_with_it() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "Chapter One").await;
        page.append("It has not begun yet.").await;
        let node = page.append("Chapter One\nand all that came of it").await;
        home.store.forget(OWNER, &Forget::Node { tree: page.tree, node }, loom::Millis(1)).await.unwrap();
        assert_eq!(home.store.tree(OWNER, page.tree).await.unwrap().title, "Chapter One");
    });
}

#[test]
fn a_pending_edit_of_a_forgotten_node_goes_with_it() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let node = page.append("first words").await;
        let slot = Slot::Edit(node.as_position());
        let name = DraftName { tree: page.tree, view: ViewName::default(), slot };
        let edit = DraftEdit::Set { base: Some(node), text: "other words".into() };
        home.store.edit_draft(OWNER, name, None, edit).await.unwrap();
        home.store.forget(OWNER, &Forget::Node { tree: page.tree, node }, loom::Millis(1)).await.unwrap();
        let left =
            read(&home.store, OWNER, page.tree, |rows| rows.drafts(&ViewName::default())).await.unwrap();
        assert!(left.is_empty());
    });
}

#[test]
fn what_names_the_picture_of_a_forgotten_node_goes_too() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let blob = loom::Digest::of(b"picture");
        let mut pictured = owner_text("see");
        pictured.content.push(loom::Block::Image { blob, mime: "image/png".into() });
        let applied = page.change_as(OWNER, Op::Append(pictured), AttachedWrites::nothing()).await.unwrap();
        let node = applied.nodes[0].0;
        let other = home.create(Mode::Buffer, "other").await;
        other.append("words that stay").await;
        let named = start(&other, &format!("[picture {}, made]", loom::content::blob_name(blob))).await;
        let plain = start(&other, "no picture at all").await;
        let done =
            home.store.forget(OWNER, &Forget::Node { tree: page.tree, node }, loom::Millis(1)).await.unwrap();
        assert_eq!(done.blobs, [blob]);
        assert!(done.is_scrubbed);
        // Until its file is gone: whoever removed the rows may have died since.
        let left = home.store.unfinished_removal(OWNER).await.unwrap();
        assert!(!left.has_to_scrub() && left.blobs.iter().map(|left| left.blob).eq([blob]), "{left:?}");
        home.store.blobs_removed(OWNER, left.blobs).await.unwrap();
        assert_eq!(home.store.unfinished_removal(OWNER).await.unwrap(), Default::default());
        let gone = |digest| done.places.contains(&ForgottenPlace::Manifest { digest });
        assert!(gone(named.row.manifest) && !gone(plain.row.manifest));
    });
}

#[test]
fn a_purged_tree_leaves_tombstones_and_nothing_else() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let other = home.create(Mode::Buffer, "other title").await;
        let node = with_canary(&page).await;
        page.change(Op::Commit).await;
        let blob = loom::Digest::of(b"picture");
        let mut pictured = owner_text("a picture");
        pictured.content.push(loom::Block::Image { blob, mime: "image/png".into() });
        page.change_as(OWNER, Op::Append(pictured), AttachedWrites::nothing()).await.unwrap();
        other.append("words that stay").await;
        let mixed = start(&other, &format!("quoting {CANARY}")).await;
        assert_eq!(home.store.blobs(OWNER, None, 99).await.unwrap(), [blob]);
        let done = home.store.purge(OWNER, page.tree, loom::Millis(9)).await.unwrap();
        assert_eq!(done.blobs, [blob]);
        assert!(home.store.blobs(OWNER, None, 99).await.unwrap().is_empty());
        assert!(
            done.places.contains(&ForgottenPlace::Manifest { digest: mixed.row.manifest }),
            "a manifest of another tree"
        );
        let rows = read(&home.store, OWNER, page.tree, |rows| rows.nodes_in_order(None, 100)).await.unwrap();
        assert!(rows.len() > 3 && rows.iter().all(|row| row.node.content.is_empty()));
        assert!(rows.iter().any(|row| row.node.id == node && row.purged));
        let entry = home.store.tree(OWNER, page.tree).await.unwrap();
        assert!(entry.purged && entry.title.is_empty());
        let listed = async |filter| {
            let trees = home.store.trees(OWNER, filter, None, 9_999).await.unwrap();
            trees.into_iter().filter(|entry| entry.id == page.tree).count()
        };
        assert_eq!((listed(TreeFilter::Current).await, listed(TreeFilter::All).await), (0, 1));
        assert!(home.store.search(OWNER, "canary", SearchScope::All, 9).await.unwrap().hits.is_empty());
        assert!(home.store.search(OWNER, "typing", SearchScope::All, 9).await.unwrap().hits.is_empty());
        assert_eq!(other.text().await, "words that stay");
        assert_eq!(home.store.tree(OWNER, other.tree).await.unwrap().title, "other title");
        page.append("begun again").await;
        assert_eq!(listed(TreeFilter::Current).await, 1, "what is written there later is found");
    });
}

/// What quotes a node, and what does not.
#[test]
fn what_quotes_a_node_goes_with_it_and_the_rest_stays() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let node = page.append("The spare key lies under the third stone.").await;
        let position = node.as_position();
        let kept_words = page.edit(position, "The spare key lies under the third stone, they say.").await;
        let of_the_edit = page.edit(position, "Once the spare key lies under the th").await;
        let rewritten = page.edit(position, "Nothing to be seen here.").await;
        let branched = page.change(Op::BranchAt { node, at: 9, token: None }).await.nodes[0].0;
        let other = home.create(Mode::Buffer, "").await;
        let copied = other.append("He said: \"The spare key lies under the third stone.\"").await;
        let in_json = other.append(r#"{"said": "The spare key lies under the thi\u0072d stone."}"#).await;
        let unlike = other.append("The spare key lies under the fourth stone.").await;
        let what = Forget::Node { tree: page.tree, node };
        let preview = home.store.forget_preview(OWNER, &what).await.unwrap();
        let done = home.store.forget(OWNER, &what, loom::Millis(1)).await.unwrap();
        assert_eq!(preview, done.places);
        let quote = |tree, node, how| done.places.contains(&ForgottenPlace::Quote { tree, node, how });
        assert!(quote(page.tree, kept_words, QuotedAs::Version));
        assert!(quote(page.tree, of_the_edit, QuotedAs::Version), "{:?}", done.places);
        assert!(quote(page.tree, branched, QuotedAs::Branch));
        assert!(quote(other.tree, copied, QuotedAs::Copy) && quote(other.tree, in_json, QuotedAs::Copy));
        for (tree, gone, stays) in [
            (page.tree, vec![node, kept_words, of_the_edit, branched], vec![rewritten]),
            (other.tree, vec![copied, in_json], vec![unlike]),
        ] {
            for (nodes, purged) in [(gone, true), (stays, false)] {
                for node in nodes {
                    let row = read(&home.store, OWNER, tree, move |rows| rows.node(node)).await;
                    assert_eq!(row.unwrap().unwrap().purged, purged, "{node}");
                }
            }
        }
    });
}

/// Plans that hold a forgotten text, or give it back, and were made before.
#[test]
fn a_plan_made_before_cannot_bring_a_text_back() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        page.append("plain words").await;
        let name = DraftName { tree: page.tree, view: ViewName::default(), slot: Slot::Buffer };
        let edit = DraftEdit::Set { base: None, text: CANARY.into() };
        home.store.edit_draft(OWNER, name, None, edit).await.unwrap();
        let node = page.change(Op::Commit).await.nodes[0].0;
        let mut plans = Vec::new();
        for op in [Op::BranchAt { node, at: 20, token: None }, Op::Undo] {
            let request = home.request(page.tree, op);
            plans.push(prepare(&home.store, OWNER, request, &home.ids).await.unwrap());
        }
        assert!(format!("{plans:?}").matches("canary sentence").count() > 1, "both hold it");
        home.store.forget(OWNER, &Forget::Text(CANARY.into()), loom::Millis(1)).await.unwrap();
        for prepared in plans {
            let with =
                AttachedWrites { preconditions: Some(prepared.preconditions), ..AttachedWrites::nothing() };
            let refused = home.store.apply(OWNER, page.tree, prepared.plan, with).await;
            assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
        }
        // Undo goes back over it, and names what it does not give back.
        let undone = page.change(Op::Undo).await;
        let draft = CellKey::Draft { view: ViewName::default(), slot: Slot::Buffer };
        assert_eq!(undone.skipped, [draft]);
        assert_eq!(page.text().await, "plain words");
        page.change(Op::Redo).await;
        page.change(Op::Undo).await;
        page.change(Op::Undo).await;
        assert_eq!(page.text().await, "");
        assert_eq!(home.store.search(OWNER, "canary", SearchScope::All, 9).await.unwrap().hits, []);
    });
}

#[test]
fn an_answer_under_way_whose_request_held_a_text_is_stopped() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        page.append(CANARY).await;
        let at = home.store.cursor().await.unwrap();
        let prepared = generation(&page, &format!("prepared {CANARY}")).await;
        let running = start(&page, CANARY).await;
        let other = start(&page, "something else").await;
        let done = home.store.forget(OWNER, &Forget::Text(CANARY.into()), loom::Millis(1)).await.unwrap();
        assert!(done.places.contains(&ForgottenPlace::Running { generation: running.row.id }));
        assert!(!done.places.contains(&ForgottenPlace::Running { generation: other.row.id }));
        let refused = try_answer(&page, &running, "it comes too late").await;
        assert!(matches!(refused, Err(StoreError::Fenced { .. })), "{refused:?}");
        try_answer(&page, &other, "in time").await.unwrap();
        let with = AttachedWrites {
            generations: vec![prepared],
            prepared_at: Some(at),
            ..AttachedWrites::nothing()
        };
        let refused = home.store.apply(OWNER, page.tree, loom::Plan::default(), with).await;
        assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    });
}

/// However much is forgotten, a transaction removes little, and whoever writes has a turn between two.
#[test]
fn others_write_between_the_portions_of_a_large_forgetting() {
    const NODES: usize = 600;
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let other = home.create(Mode::Buffer, "").await;
        for number in 0..NODES {
            page.append(&format!("{CANARY} {number}")).await;
        }
        let before = home.store.cursor().await.unwrap();
        let what = Forget::Text(CANARY.into());
        let forgetting = home.store.forget(OWNER, &what, loom::Millis(1));
        let writing = async {
            // What is written while it is looked for goes with it.
            other.append(&format!("late {CANARY}")).await;
            loop {
                other.append("plain").await;
                tokio::task::yield_now().await;
                if home.store.tree(OWNER, page.tree).await.is_err() {
                    break;
                }
            }
        };
        let done = tokio::select! {
            done = forgetting => done.unwrap(),
            () = writing => unreachable!(),
        };
        let gone = done.places.iter().filter(|place| matches!(place, ForgottenPlace::Node { .. })).count();
        assert_eq!(gone, NODES + 1);
        let events = home.store.events_after(OWNER, before, usize::MAX).await.unwrap().events;
        let removals =
            events.iter().filter(|event| event.what == EventKind::Removed && event.tree == page.tree);
        assert!(removals.count() >= NODES / 32, "no transaction removes more than a few rows");
        let first = events.iter().position(|event| event.what == EventKind::Removed).unwrap();
        let last = events.iter().rposition(|event| event.what == EventKind::Removed).unwrap();
        let between = events[first..last].iter().filter(|event| event.tree == other.tree).count();
        assert!(between >= NODES / 32 / 2, "{between} writes between the first and the last removal");
    });
}

#[test]
fn what_is_named_and_asked_outside_of_trees_is_forgotten() {
    each(|home| async move {
        let named = |id: &str, name: &str, kind| NewSession {
            id: SessionId(id.into()),
            workspace: "w".into(),
            name: name.into(),
            kind,
            at: loom::Millis(7),
        };
        let sessions = [
            named("a", "about-marzipan", SessionKind::Main),
            named("b", "session-1", SessionKind::Main),
            named("c", "temp-marzipan", SessionKind::Temporary),
            named("d", "main", SessionKind::Main),
        ];
        let mut pages = Vec::new();
        for session in sessions {
            let with = AttachedWrites { begins: Some(session), ..AttachedWrites::nothing() };
            pages.push(home.create_with(OWNER, Mode::Dialogue, "", with).await.unwrap());
        }
        let settings = r#"{"files":["/home/marzipan.txt"]}"#;
        home.store.set_session_settings(OWNER, &SessionId("d".into()), "", settings).await.unwrap();
        let ask = |change: fn(&mut NewQuestion)| {
            let mut new = question(&pages[0], std::time::Duration::from_secs(600));
            change(&mut new);
            home.store.ask(OWNER, new)
        };
        let asked = ask(|new| new.answers.push("marzipan".into())).await.unwrap().id;
        let by = ask(|new| new.asker = "marzipan".into()).await.unwrap().id;
        let answered = ask(|_| ()).await.unwrap().id;
        let kept = ask(|_| ()).await.unwrap();
        let reason = Some("for the marzipan".to_owned());
        let denied = NewAnswer { reason, ..answer_of(Decision::Denied, "me") };
        home.store.answer_question(OWNER, answered, denied).await.unwrap();
        let job = NewJob {
            kind: "k".into(),
            key: Some("marzipan".into()),
            tree: None,
            payload: "{}".into(),
            due: loom::Millis(0),
        };
        home.store.enqueue(OWNER, job).await.unwrap();
        let view: ViewName = "marzipan view".parse().unwrap();
        pages[0].change(Op::NewView { name: view.clone(), agent: "main".into() }).await;

        let what = Forget::Text("marzipan".into());
        let preview = home.store.forget_preview(OWNER, &what).await.unwrap();
        let done = home.store.forget(OWNER, &what, loom::Millis(8)).await.unwrap();
        assert_eq!(preview, done.places);
        let (stays, gone): (Vec<_>, Vec<_>) = done.places.into_iter().partition(ForgottenPlace::stays);
        assert_eq!(stays, [ForgottenPlace::Name { name: view.to_string() }]);
        assert_eq!(gone.len(), 6, "{gone:?}");
        let all = home.store.sessions(OWNER, SessionFilter::default(), None, 99).await.unwrap();
        let mut names: Vec<_> = all.iter().map(|one| (one.id.0.as_str(), one.name.as_str())).collect();
        names.sort_unstable();
        assert_eq!(names, [("a", "session-2"), ("b", "session-1"), ("c", "temp-marzipan"), ("d", "main")]);
        assert!(all.iter().all(|one| one.settings.is_empty()));
        assert_eq!(home.store.open_questions(OWNER, None, 99).await.unwrap(), [kept]);
        for id in [asked, by, answered] {
            let left = home.store.question(OWNER, id).await.unwrap();
            assert_eq!(left.answer.as_ref().unwrap().decision, Decision::Denied);
            assert!(!format!("{left:?}").contains("marzipan"), "{left:?}");
        }
        let jobs = home.store.jobs(OWNER, JobFilter::All, None, 99).await.unwrap();
        assert_eq!((jobs[0].job.key.as_deref(), jobs[0].job.payload.as_str()), (None, ""));
        let again = home.store.forget(OWNER, &what, loom::Millis(9)).await.unwrap();
        assert_eq!(again.places, stays);
    });
}

/// A node that quotes a forgotten one is found by its text, which is nowhere any more.
#[test]
fn what_is_written_after_the_rows_were_removed_is_found_when_it_is_gone_on() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let node = page.append(CANARY).await;
        let what = Forget::Node { tree: page.tree, node };
        let found = home.store.begin_forgetting(OWNER, &what).await.unwrap();
        let removed = home.store.remove_forgotten(found, loom::Millis(1)).await.unwrap();
        let late = page.append(&format!("late: {CANARY}")).await;
        let removed = home.store.remove_forgotten(removed, loom::Millis(2)).await.unwrap();
        let place = ForgottenPlace::Quote { tree: page.tree, node: late, how: QuotedAs::Copy };
        assert!(removed.places().contains(&place));
        let row = read(&home.store, OWNER, page.tree, move |rows| rows.node(late)).await.unwrap();
        assert!(row.unwrap().purged);
        assert!(home.store.finish_forgetting(removed).await.is_scrubbed);
    });
}

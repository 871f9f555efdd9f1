//! Law 6: what was exported comes back byte for byte, and renders the same.

use super::home::{TestHome, field, word};

#[tokio::test]
async fn an_export_comes_back_byte_for_byte() {
    let here = TestHome::new();
    let tree = here.rich().await;
    assert_eq!(here.verify(&tree).await, "valid");
    let there = TestHome::new();
    for more in [&[][..], &["--with-context"]] {
        let file = here.exported(&[&[tree.as_str()], more].concat()).await;
        let home = TestHome::new();
        let done = home.import(&file, &[]).await.unwrap();
        assert_eq!(field(&done, "tree"), tree);
        assert_eq!((done["trees"].as_u64(), done["skipped"].as_array().unwrap().len()), (Some(1), 0));
        let again = home.exported(&[&[tree.as_str()], more].concat()).await;
        assert!(file == again, "the export differs");
        assert_eq!(home.verify(&tree).await, "valid");
        for view in ["main", "second"] {
            assert_eq!(home.text(&tree, view).await, here.text(&tree, view).await);
        }
        assert!(home.app.runtime.store.check(&store::Principal::Owner).await.unwrap().is_empty());
    }
    // The log goes on at its last number.
    let file = here.exported(&[&tree]).await;
    there.import(&file, &[]).await.unwrap();
    let before = field(&there.ok(&["tree", "text", &tree]).await, "text");
    there.ok(&["tree", "append", &tree, " More."]).await;
    assert_eq!(there.text(&tree, "main").await, format!("{before} More."));
    assert_eq!(there.verify(&tree).await, "valid");
    there.ok(&["tree", "generate", &tree]).await;
    assert_eq!(there.verify(&tree).await, "valid");
}

#[tokio::test]
async fn an_answer_keeps_what_was_sent_and_what_came_back() {
    let here = TestHome::new();
    let tree = here.tree("The rain fell. ").await;
    let made = here.ok(&["tree", "generate", &tree]).await;
    let node = field(&made["nodes"][0], "id");
    let there = TestHome::new();
    there.import(&here.exported(&[&tree, "--with-context"]).await, &[]).await.unwrap();
    let words = ["context", "show", &node];
    assert_eq!(there.ok(&words).await, here.ok(&words).await);
    let id = node.parse::<loom::NodeId>().unwrap();
    let owner = store::Principal::Owner;
    let (a, b) = (
        here.app.runtime.store.response(&owner, id).await,
        there.app.runtime.store.response(&owner, id).await,
    );
    assert_eq!(a.unwrap(), b.unwrap());
    assert_eq!(there.verify(&tree).await, "valid");
}

#[tokio::test]
async fn a_forgotten_text_comes_back_as_forgotten() {
    let here = TestHome::new();
    let tree = here.rich().await;
    here.ok(&["tree", "append", &tree, "My dearest wish."]).await;
    here.ok(&["forget", "--text", "dearest wish", "--yes", "--yes"]).await;
    let file = here.exported(&[&tree]).await;
    assert!(!String::from_utf8_lossy(&file).contains("dearest"));
    let there = TestHome::new();
    there.import(&file, &[]).await.unwrap();
    assert!(file == there.exported(&[&tree]).await, "the export differs");
    assert_eq!(there.verify(&tree).await, here.verify(&tree).await);
}

#[tokio::test]
async fn a_file_verifies_by_itself() {
    let here = TestHome::new();
    let tree = here.rich().await;
    let file = here.exported(&[&tree]).await;
    let path = here.write(&file);
    let found = here.ok(&["tree", "verify", "--file", word(&path)]).await;
    assert_eq!((field(&found, "status"), field(&found, "assurance")), ("valid".into(), "sealed".into()));
    let shared = here.write(&here.exported(&[&tree, "--share"]).await);
    let found = here.ok(&["tree", "verify", "--file", word(&shared)]).await;
    assert_eq!(field(&found, "status"), "incomplete");
    let gaps: Vec<_> =
        found["problems"].as_array().unwrap().iter().map(|found| found["gap"].clone()).collect();
    assert!(gaps.iter().all(|gap| gap == "shared"), "{gaps:?}");
    // A bit of a text.
    let mut flipped = file.clone();
    let at = flipped.windows(8).position(|bytes| bytes == b"The rain").unwrap();
    flipped[at] ^= 1;
    let found = here.ok(&["tree", "verify", "--file", word(&here.write(&flipped))]).await;
    assert_eq!(field(&found, "status"), "invalid");
}

#[tokio::test]
async fn a_picture_travels_with_its_node() {
    let here = TestHome::new();
    let tree = here.tree("Look: ").await;
    let bytes = [0x89, b'P', b'N', b'G', 0xff, 0];
    let kept = |home: &TestHome| {
        let dir = home.app.runtime.home.dir(store::home::HomeDir::Blobs).unwrap();
        store::blobs::Blobs::open(&dir, 1 << 20).unwrap()
    };
    let blob = kept(&here).put(&bytes).unwrap();
    let picture = loom::plan::NewText {
        content: vec![loom::Block::Image { blob, mime: "image/png".into() }],
        ..loom::plan::NewText::owner("", None)
    };
    let owner = drawloom_commands::Asker::owner();
    let (id, main) = (tree.parse().unwrap(), loom::ViewName::default());
    here.app.change(&owner, id, &main, loom::Op::Append(picture)).await.unwrap();
    let file = here.exported(&[&tree]).await;
    let there = TestHome::new();
    there.import(&file, &[]).await.unwrap();
    assert_eq!(kept(&there).get(blob).unwrap(), bytes);
    assert!(file == there.exported(&[&tree]).await, "the export differs");
}

#[tokio::test]
async fn requests_that_rest_on_one_another_come_along_whole() {
    let here = TestHome::new();
    let tree = here.tree(&"The rain fell, and fell. ".repeat(40)).await;
    for _ in 0..3 {
        let made = here.ok(&["tree", "generate", &tree]).await;
        let node = field(&made["nodes"][0], "id");
        here.ok(&["tree", "switch", &tree, &node]).await;
    }
    let file = here.exported(&[&tree, "--with-context"]).await;
    assert!(String::from_utf8_lossy(&file).contains("\\\"hops\\\":2"), "no request rests on another");
    let there = TestHome::new();
    there.import(&file, &[]).await.unwrap();
    let all = there.ok(&["tree", "show", &tree, "--all"]).await;
    let answers = all["nodes"].as_array().unwrap().iter().filter(|node| node["author_kind"] == "model");
    let mut replayed = 0;
    for node in answers {
        let words = ["context", "replay", node["id"].as_str().unwrap(), "--dry-run"];
        assert_eq!(there.ok(&words).await, here.ok(&words).await);
        replayed += 1;
    }
    assert_eq!(replayed, 3);
    // The tree can be added to from there, with what was sent.
    let last = there.ok(&["tree", "generate", &tree]).await;
    let node = field(&last["nodes"][0], "id");
    let back = there.exported(&[&tree, "--with-context"]).await;
    here.import(&back, &[]).await.unwrap();
    assert_eq!(here.verify(&tree).await, "valid");
    let words = ["context", "replay", node.as_str(), "--dry-run"];
    assert_eq!(here.ok(&words).await, there.ok(&words).await);
}

#[tokio::test]
async fn what_was_shown_with_a_node_comes_along() {
    let here = TestHome::new();
    let tree = here.tree("The rain fell. ").await;
    let made = here.ok(&["tree", "append", &tree, "It stopped. "]).await;
    let id: loom::TreeId = tree.parse().unwrap();
    let node: loom::NodeId = field(&made, "node").parse().unwrap();
    let shown = |ordinal: u32, text: &str| loom::reader::Injection {
        node,
        ordinal,
        source: format!("zone#{ordinal}"),
        trust: loom::Trust::Owner,
        text: text.to_owned(),
    };
    let injections = vec![shown(0, "[The window fills.]"), shown(1, "[It is \"full\".]")];
    let with = store::AttachedWrites { injections: injections.clone(), ..store::AttachedWrites::nothing() };
    let owner = store::Principal::Owner;
    here.app.runtime.store.apply(&owner, id, loom::Plan::default(), with).await.unwrap();
    let file = here.exported(&[&tree]).await;
    assert_eq!(String::from_utf8_lossy(&file).matches("\"record\":\"injection\"").count(), 2);
    let shared = here.exported(&[&tree, "--share"]).await;
    assert!(!String::from_utf8_lossy(&shared).contains("window fills"), "what is shared holds no requests");

    let there = TestHome::new();
    there.import(&file, &[]).await.unwrap();
    assert!(file == there.exported(&[&tree]).await, "the export differs");
    let read = async |home: &TestHome| {
        let rows = store::read(&home.app.runtime.store, &store::Principal::Owner, id, move |rows| {
            rows.injections(rows.tree()?.root.original(), None)
        });
        rows.await.unwrap()
    };
    let outside = |shown: &loom::reader::Injection| loom::reader::Injection {
        trust: loom::Trust::Outside,
        ..shown.clone()
    };
    assert_eq!(
        read(&there).await,
        injections.iter().map(outside).collect::<Vec<_>>(),
        "believed as the text is"
    );
    there.ok(&["tree", "trust", &tree]).await;
    let trusted = read(&there).await;
    assert!(trusted.iter().all(|shown| shown.trust == loom::Trust::Workspace), "nobody's word: {trusted:?}");

    // What is added to a tree that is here brings what was shown with it.
    let new = there.ok(&["tree", "append", &tree, "Then again. "]).await;
    let added = loom::reader::Injection { node: field(&new, "node").parse().unwrap(), ..shown(0, "[More.]") };
    let with = store::AttachedWrites { injections: vec![added.clone()], ..store::AttachedWrites::nothing() };
    there.app.runtime.store.apply(&owner, id, loom::Plan::default(), with).await.unwrap();
    here.import(&there.exported(&[&tree]).await, &[]).await.unwrap();
    assert_eq!(read(&here).await, [&injections[..], &[outside(&added)]].concat());
}

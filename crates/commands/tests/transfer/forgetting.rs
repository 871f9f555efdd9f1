//! Forgetting in random trees: it is never undone, nothing else is lost by it, and what is left can be checked, exported
//! and imported.

use super::home::{TestHome, field};

const OWNER: &store::Principal = &store::Principal::Owner;

/// Random sequences, and steps in each.
const SEQUENCES: u64 = 24;
const STEPS: usize = 14;

/// Words that are forgotten; none of them stands in another one, or in a name of this product.
const WORDS: [&str; 4] =
    ["quagmire of zanzibar", "xylophone at midnight", "velvet umbrella stand", "marzipan crocodile"];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// A tree that random commands were run on, and the words that were forgotten in it.
async fn written(home: &TestHome, random: &mut Random) -> (String, Vec<&'static str>) {
    let tree = home.tree("It begins here. ").await;
    let mut forgotten: Vec<&str> = Vec::new();
    for _ in 0..STEPS {
        let word = WORDS[random.below(WORDS.len())];
        let text =
            if forgotten.contains(&word) { "Something else.".to_owned() } else { format!("A {word}. ") };
        let all = home.ok(&["tree", "show", &tree, "--all"]).await;
        let nodes = all["nodes"].as_array().unwrap();
        let node = field(&nodes[random.below(nodes.len())], "id");
        let step: &[&str] = match random.below(12) {
            0..=2 => &["tree", "append", &tree, &text],
            3 => &["tree", "edit", &tree, &node, "--text", &text, "--as", "version"],
            4 => &["tree", "edit", &tree, &node, "--text", &text, "--as", "branch"],
            5 => &["tree", "branch", &tree, &node, "--at", "8"],
            6 => &["tree", "bookmark", &tree, &node, &text],
            7 => &["tree", "tag", &tree, &node, &text],
            8 => &["tree", "undo", &tree],
            9 => &["tree", "switch", &tree, &node],
            10 => &["forget", &node, "--yes", "--yes"],
            _ => {
                forgotten.push(word);
                &["forget", "--text", word, "--yes", "--yes"]
            }
        };
        if let Err(error) = home.run(step).await {
            assert!(error.exit < 6, "{step:?}: {error:?}");
        }
        let verified = home.ok(&["tree", "verify", &tree]).await;
        assert_ne!(verified["status"], "invalid", "{step:?}: {verified}");
    }
    (tree, forgotten)
}

/// Runs a command until it is refused; how often it was done.
async fn as_often_as_possible(home: &TestHome, words: &[&str]) -> usize {
    for times in 0..10 * STEPS {
        if let Err(error) = home.run(words).await {
            assert!(error.exit < 6, "{words:?}: {error:?}");
            return times;
        }
    }
    panic!("{words:?} without end")
}

#[tokio::test]
async fn what_was_forgotten_is_never_undone_and_the_rest_can_be_checked_and_carried_over() {
    for seed in 0..SEQUENCES {
        let mut random = Random(seed * 7919 + 1);
        let here = TestHome::new();
        let (tree, forgotten) = Box::pin(written(&here, &mut random)).await;
        as_often_as_possible(&here, &["tree", "undo", &tree]).await;
        assert_ne!(here.verify(&tree).await, "invalid", "{seed}");
        as_often_as_possible(&here, &["tree", "redo", &tree]).await;
        let verified = here.verify(&tree).await;
        assert_ne!(verified, "invalid", "{seed}");
        for more in [&[][..], &["--with-context"]] {
            let file = here.exported(&[&[tree.as_str()], more].concat()).await;
            let said = String::from_utf8_lossy(&file);
            assert!(forgotten.iter().all(|word| !said.contains(word)), "{seed}: {forgotten:?}");
            let there = TestHome::new();
            there.import(&file, &[]).await.unwrap();
            assert!(
                file == there.exported(&[&[tree.as_str()], more].concat()).await,
                "{seed}: the export differs"
            );
            assert_eq!(there.verify(&tree).await, verified, "{seed}");
        }
        assert!(here.app.runtime.store.check(&store::Principal::Owner).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_copy_that_a_killed_backup_left_is_named_and_swept() {
    let home = TestHome::new();
    home.tree("The marzipan crocodile. ").await;
    let root = home.app.runtime.home.root().to_owned();
    let run = home.app.runtime.home.dir(store::home::HomeDir::Run).unwrap();
    let copy = root.join(format!(".backup-{:032x}", 0x0123));
    let (part, kept) = (root.join("loom.db.v2.bak.part"), root.join("loom.db.v2.bak"));
    let stage = run.join("restore-4711-1700000000000");
    std::fs::create_dir(&stage).unwrap();
    let left = [copy.clone(), part.clone(), kept.clone(), stage.join("loom.db")];
    for file in &left {
        std::fs::write(file, "the marzipan crocodile").unwrap();
    }
    let named = |found: &serde_json::Value| {
        let unreachable = found["unreachable"].as_array().unwrap();
        let is_named = |path: &std::path::Path| {
            unreachable.iter().any(|line| line.as_str().unwrap().contains(path.to_str().unwrap()))
        };
        [&copy, &part, &kept, &stage].map(|path| is_named(path))
    };
    let what = ["forget", "--text", "marzipan"];
    let preview = home.ok(&[&what[..], &["--dry-run"]].concat()).await;
    assert_eq!(named(&preview), [true; 4]);
    assert!(left.iter().all(|file| file.exists()), "a preview removes nothing");
    // What a backup that runs is at is left to it.
    let lock = home.app.runtime.home.dir(store::home::HomeDir::Locks).unwrap().join("copies.lock");
    let running = std::fs::File::options().create(true).append(true).open(&lock).unwrap();
    running.lock_shared().unwrap();
    home.app.recover().await.unwrap();
    assert!(left.iter().all(|file| file.exists()));
    drop(running);
    home.app.recover().await.unwrap();
    assert!(!copy.exists() && !part.exists() && !stage.exists());
    let done = home.ok(&[&what[..], &["--yes", "--yes"]].concat()).await;
    assert_eq!(named(&done), [false, false, true, false], "the copy a migration keeps is named");
}

/// As if the process was killed between the rows and the files.
#[tokio::test]
async fn what_a_killed_forgetting_left_is_removed_by_the_next_command_that_can() {
    let home = TestHome::new();
    let tree = home.tree("It begins here. ").await;
    let runtime = &home.app.runtime;
    let picture = b"a picture of a crocodile";
    let held = runtime.keep_blobs(vec![picture]).await.unwrap();
    let blob = loom::Digest::of(picture);
    let mut text = loom::plan::NewText::owner("the crocodile", None);
    text.content.push(loom::Block::Image { blob, mime: "image/png".into() });
    let request = loom::plan::Request {
        tree: home.app.runtime.store.trees(OWNER, store::TreeFilter::All, None, 9).await.unwrap()[0].id,
        view: loom::ViewName::default(),
        author: loom::Author::owner(),
        trust: loom::Trust::Owner,
        now: loom::Millis(1_760_000_000_000),
        op: loom::Op::Append(text),
    };
    let with = store::AttachedWrites::nothing();
    store::change(&runtime.store, OWNER, request, with, &store::Ids::new()).await.unwrap();
    drop(held);
    let path = runtime.shown(blob).unwrap().path;
    let what = store::Forget::Text("crocodile".to_owned());
    runtime.store.forget(OWNER, &what, loom::Millis(1)).await.unwrap();
    // What fails here does not keep a command from going on.
    let blobs = runtime.home.root().join("blobs");
    let aside = blobs.with_extension("aside");
    std::fs::rename(&blobs, &aside).unwrap();
    std::fs::write(&blobs, "no folder").unwrap();
    home.app.recover().await.unwrap();
    std::fs::remove_file(&blobs).unwrap();
    std::fs::rename(&aside, &blobs).unwrap();
    assert!(path.exists());
    home.app.recover().await.unwrap();
    assert!(!path.exists());
    assert!(runtime.store.unfinished_removal(OWNER).await.unwrap().blobs.is_empty());
    home.ok(&["tree", "text", &tree]).await;
}

#[tokio::test]
async fn an_answer_below_a_forgotten_text_that_ended_with_a_space_is_not_taken_for_a_changed_one() {
    let home = TestHome::new();
    let tree = home.tree("Once upon a time ").await;
    home.ok(&["tree", "generate", &tree]).await;
    assert_eq!(home.ok(&["tree", "verify", &tree]).await["status"], "valid");
    let shown = home.ok(&["tree", "show", &tree]).await;
    let nodes = shown["nodes"].as_array().unwrap();
    let first = nodes.iter().find(|node| node["text"] == "Once upon a time ").unwrap();
    home.ok(&["forget", &field(first, "id"), "--yes", "--yes"]).await;
    let verified = home.ok(&["tree", "verify", &tree]).await;
    assert_eq!(verified["status"], "incomplete", "{verified}");
}

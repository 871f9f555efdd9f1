//! Files that arrive: refused whole, taken in part, added, copied; never obeyed.

use super::home::{TestHome, field, word};

/// A known tree, its file from another home where it went on, and the texts here.
async fn went_on() -> (TestHome, String, Vec<u8>) {
    let here = TestHome::new();
    let tree = here.rich().await;
    let there = TestHome::new();
    there.import(&here.exported(&[&tree]).await, &[]).await.unwrap();
    there.ok(&["tree", "append", &tree, " Much later."]).await;
    there.ok(&["tree", "generate", &tree]).await;
    let nodes = there.ok(&["tree", "show", &tree]).await;
    let first =
        nodes["nodes"].as_array().unwrap().iter().find(|node| node["text"] == "The rain fell. ").unwrap();
    let first = field(first, "id");
    there.ok(&["tree", "edit", &tree, &first, "--text", "The snow fell. ", "--as", "version"]).await;
    assert!(there.text(&tree, "main").await.starts_with("The snow fell."));
    let file = there.exported(&[&tree]).await;
    (here, tree, file)
}

#[tokio::test]
async fn what_is_added_to_a_known_tree_changes_no_view() {
    let (here, tree, file) = went_on().await;
    let before = [here.text(&tree, "main").await, here.text(&tree, "second").await];
    let tried = here.import(&file, &["--dry-run"]).await.unwrap();
    assert_eq!((tried["nodes"].as_u64(), tried["dry_run"].as_bool()), (Some(3), Some(true)));
    let done = here.import(&file, &[]).await.unwrap();
    assert_eq!((done["nodes"].as_u64(), done["trees"].as_u64()), (Some(3), Some(0)));
    assert_eq!(before, [here.text(&tree, "main").await, here.text(&tree, "second").await]);
    assert_eq!(here.verify(&tree).await, "valid");
    let again = here.import(&file, &[]).await.unwrap();
    assert_eq!(again["nodes"], 0);
    // A person may select it.
    let all = here.ok(&["tree", "show", &tree, "--all"]).await;
    let snow =
        all["nodes"].as_array().unwrap().iter().find(|node| node["text"] == "The snow fell. ").unwrap();
    assert_eq!(field(snow, "trust"), "outside");
    here.ok(&["tree", "select", &tree, &field(snow, "id")]).await;
    assert!(here.text(&tree, "main").await.starts_with("The snow fell."));
}

#[tokio::test]
async fn a_record_that_differs_refuses_the_whole_file() {
    let (here, tree, file) = went_on().await;
    let before = here.exported(&[&tree]).await;
    // Another text in a stored node, with its line's own hash left as it was.
    let mut other = String::from_utf8(file).unwrap();
    other = other.replacen("The rain fell. ", "The hail fell. ", 1);
    let error = here.import(other.as_bytes(), &[]).await.unwrap_err();
    assert_eq!((error.code.as_ref(), error.exit), ("refused", 2));
    assert!(error.message.contains("line "), "{}", error.message);
    assert!(before == here.exported(&[&tree]).await);
}

#[tokio::test]
async fn a_flipped_byte_is_named_by_its_line() {
    let here = TestHome::new();
    let tree = here.rich().await;
    let file = here.exported(&[&tree]).await;
    let lines: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
    let at = |kind: &str| {
        lines.iter().position(|line| line.starts_with(format!("{{\"record\":\"{kind}\"").as_bytes())).unwrap()
    };
    let flipped = |index: usize| {
        let mut lines: Vec<Vec<u8>> = lines.iter().map(|line| line.to_vec()).collect();
        let middle = lines[index].len() - 30;
        lines[index][middle] ^= 1;
        lines.concat()
    };
    for kind in ["node", "operation"] {
        let line = at(kind);
        let error = TestHome::new().import(&flipped(line), &[]).await.unwrap_err();
        assert!(error.message.contains(&format!("line {}", line + 1)), "{}", error.message);
        assert_eq!(error.exit, 2);
    }
    // What hangs on the tree is skipped alone, and missed by verify.
    let line = at("response");
    let home = TestHome::new();
    let done = home.import(&flipped(line), &[]).await.unwrap();
    let skipped: Vec<String> =
        done["skipped"].as_array().unwrap().iter().map(|one| field(one, "at")).collect();
    assert!(skipped.contains(&format!("line {}", line + 1)), "{skipped:?}");
    assert_eq!(home.verify(&tree).await, "incomplete");
}

#[tokio::test]
async fn a_copy_has_ids_of_its_own() {
    let here = TestHome::new();
    let tree = here.rich().await;
    let file = here.exported(&[&tree]).await;
    let done = here.import(&file, &["--copy"]).await.unwrap();
    let copy = field(&done, "tree");
    assert_ne!(copy, tree);
    assert_eq!(here.text(&copy, "main").await, here.text(&tree, "main").await);
    assert!(here.notes().iter().any(|note| note.contains("unattested")));
    let found = here.ok(&["tree", "verify", &copy]).await;
    assert_eq!((field(&found, "status"), found["unattested"].as_u64()), ("valid".into(), Some(2)));
    let other = here.import(&file, &["--copy"]).await.unwrap();
    assert_ne!(field(&other, "tree"), copy);
    let row = store::read(
        here.app.runtime.store.as_ref(),
        &store::Principal::Owner,
        copy.parse().unwrap(),
        |rows: &dyn loom::TreeReader| rows.tree(),
    );
    assert_eq!(row.await.unwrap().origin.unwrap().tree.to_string(), tree);
}

#[tokio::test]
async fn a_shared_file_arrives_without_what_it_left_out() {
    let here = TestHome::new();
    let tree = here.rich().await;
    let file = here.exported(&[&tree, "--share"]).await;
    let there = TestHome::new();
    there.import(&file, &[]).await.unwrap();
    assert_eq!(there.text(&tree, "main").await, here.text(&tree, "main").await);
    assert_eq!(there.verify(&tree).await, "incomplete");
}

#[tokio::test]
async fn what_a_known_tree_lacks_and_does_not_get_is_said() {
    let here = TestHome::new();
    let tree = here.rich().await;
    let (shared, plain) = (here.exported(&[&tree, "--share"]).await, here.exported(&[&tree]).await);
    let full = here.exported(&[&tree, "--with-context"]).await;
    let told = async |home: &TestHome, file: &[u8]| {
        home.notes();
        assert_eq!(home.import(file, &[]).await.unwrap()["nodes"], 0);
        home.notes().join("\n")
    };
    let there = TestHome::new();
    there.import(&shared, &[]).await.unwrap();
    let notes = told(&there, &plain).await;
    assert!(notes.contains("1 texts of the file are not added: in this home they were forgotten"), "{notes}");
    assert!(notes.contains("requests and responses of the file are not added"), "{notes}");
    let there = TestHome::new();
    there.import(&plain, &[]).await.unwrap();
    let notes = told(&there, &plain).await;
    assert!(notes.contains("already in this home") && !notes.contains("not added"), "the control: {notes}");
    let notes = told(&there, &full).await;
    assert!(notes.contains("requests and responses of the file are not added"), "the bodies: {notes}");
    there.ok(&["tree", "purge", &tree, "--yes", "--yes"]).await;
    let notes = told(&there, &plain).await;
    assert!(notes.contains("texts of the file are not added: in this home they were forgotten"), "{notes}");
}

#[tokio::test]
async fn a_file_of_another_kind_is_refused_and_named() {
    let here = TestHome::new();
    for bytes in [
        &b"PK\x03\x04 a zip"[..],
        b"",
        b"{\"mapping\":{}}\n",
        b"{\"record\":\"header\",\"format\":\"drawloom\",\"version\":99}\n",
    ] {
        let error = here.import(bytes, &[]).await.unwrap_err();
        assert_eq!(error.exit, 2, "{error:?}");
        assert!(!error.message.contains('\u{3}'));
    }
    let path = here.write(b"PK");
    let error = here.err(&["tree", "verify", "--file", word(&path)]).await;
    assert_eq!((error.code.as_ref(), error.exit), ("unknown_format", 2));
    assert_eq!(here.err(&["import", word(&path), "--as", "pyloom"]).await.code, "usage");
    assert_eq!(here.err(&["import", word(&here.path("missing"))]).await.code, "not_found");
    assert_eq!(here.err(&["import", word(here.dir.path())]).await.code, "usage");
}

#[tokio::test]
async fn a_huge_line_is_passed_over() {
    let here = TestHome::new();
    let tree = here.rich().await;
    let file = here.exported(&[&tree]).await;
    let huge = || std::iter::repeat_n(b'x', 65 << 20);
    // Behind the tree: skipped.
    let end = file[..file.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let mut behind = file[..end].to_vec();
    behind.extend(huge());
    behind.push(b'\n');
    behind.extend(&file[end..]);
    let home = TestHome::new();
    let done = home.import(&behind, &[]).await.unwrap();
    assert!(!done["skipped"].as_array().unwrap().is_empty());
    assert_eq!(home.text(&tree, "main").await, here.text(&tree, "main").await);
    // Within it: refused.
    let first = file.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut within = file[..first].to_vec();
    within.extend(huge());
    within.push(b'\n');
    within.extend(&file[first..]);
    let error = TestHome::new().import(&within, &[]).await.unwrap_err();
    assert!(error.message.contains("line 2"), "{}", error.message);
}

#[tokio::test]
async fn nothing_of_a_file_runs_or_can_be_undone() {
    let here = TestHome::new();
    let tree = here.rich().await;
    let there = TestHome::new();
    there.import(&here.exported(&[&tree]).await, &[]).await.unwrap();
    let started = store::GenerationFilter {
        state: Some(store::GenerationState::Started),
        ..store::GenerationFilter::default()
    };
    assert!(
        there
            .app
            .runtime
            .store
            .generations(&store::Principal::Owner, started, None, 999)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(there.app.recover().await.unwrap(), 0);
    assert_eq!(there.run(&["tree", "undo", &tree]).await.unwrap_err().code, "nothing_to_undo");
    there.ok(&["tree", "append", &tree, " x"]).await;
    there.ok(&["tree", "undo", &tree]).await;
    assert_eq!(there.text(&tree, "main").await, here.text(&tree, "main").await);
    assert_eq!(there.verify(&tree).await, "valid");
}

#[tokio::test]
async fn a_text_without_its_words_can_be_added() {
    let (here, tree, file) = went_on().await;
    let there = TestHome::new();
    there.import(&file, &[]).await.unwrap();
    there.ok(&["forget", "--text", "Much later", "--yes", "--yes"]).await;
    let before = here.text(&tree, "main").await;
    let done = here.import(&there.exported(&[&tree]).await, &[]).await.unwrap();
    assert_eq!(done["nodes"], 3);
    assert_eq!(here.text(&tree, "main").await, before);
    assert_eq!(here.verify(&tree).await, "incomplete");
}

#[tokio::test]
async fn a_known_secret_in_a_file_is_named() {
    let here = TestHome::new();
    let tree = here.tree("The key is ").await;
    let op = loom::Op::Append(loom::plan::NewText::owner(super::home::SECRET, None));
    let owner = drawloom_commands::Asker::owner();
    here.app.change(&owner, tree.parse().unwrap(), &loom::ViewName::default(), op).await.unwrap();
    let there = TestHome::new();
    there.import(&here.exported(&[&tree]).await, &[]).await.unwrap();
    let notes = there.notes();
    assert!(notes.iter().any(|note| note.contains("known secret") && !note.contains(super::home::SECRET)));
}

#[tokio::test]
async fn a_file_that_contradicts_itself_under_right_hashes_is_refused() {
    let here = TestHome::new();
    let tree = here.tree("The rain fell.").await;
    here.ok(&["tree", "append", &tree, " It stopped."]).await;
    let file = String::from_utf8(here.exported(&[&tree]).await).unwrap();
    // The last operation says that it found another tip than the log left, and is hashed anew.
    let lies: String = file
        .lines()
        .map(|line| {
            let Some(rest) = line.strip_prefix("{\"record\":\"operation\",") else {
                return format!("{line}\n");
            };
            let mut record: loom::OpRecord = serde_json::from_str(&format!("{{{rest}")).unwrap();
            if let Some(change) =
                record.op.cells.iter_mut().find(|change| matches!(change.key, loom::CellKey::Tip { .. }))
                && record.seq.0 == 3
            {
                change.old = change.new.clone();
            }
            record.hash = record.compute_hash().unwrap();
            let json = serde_json::to_string(&record).unwrap();
            format!("{{\"record\":\"operation\",{}\n", &json[1..])
        })
        .collect();
    let home = TestHome::new();
    let error = home.import(lies.as_bytes(), &[]).await.unwrap_err();
    assert!(error.exit == 2 && error.message.contains("operation 3"), "{error:?}");
    assert_eq!(home.ok(&["tree", "list"]).await["trees"].as_array().unwrap().len(), 0);
}

#[tokio::test]
async fn what_a_file_says_cannot_steer_a_terminal() {
    let here = TestHome::new();
    let tree = here.tree("The rain fell.").await;
    let file = String::from_utf8(here.exported(&[&tree]).await).unwrap();
    let hostile = "{\"record\":\"node\",\"\\u001b[31mfield\":1}\n";
    let first = file.find('\n').unwrap() + 1;
    let bytes = [&file[..first], hostile, &file[first..]].concat();
    let error = TestHome::new().import(bytes.as_bytes(), &[]).await.unwrap_err();
    assert!(error.message.contains("line 2") && !error.message.contains('\u{1b}'), "{error:?}");
    let end = file.rfind("{\"record\":\"end\"").unwrap();
    let bytes = [&file[..end], &hostile.replace("node", "blob"), &file[end..]].concat();
    let done = TestHome::new().import(bytes.as_bytes(), &[]).await.unwrap();
    let skipped = done["skipped"].as_array().unwrap();
    assert!(!skipped.is_empty() && skipped.iter().all(|one| !field(one, "why").contains('\u{1b}')));
}

#[tokio::test]
async fn a_byte_order_mark_in_front_is_passed_over() {
    let (from, tree, _) = went_on().await;
    let bytes = from.exported(&[&tree]).await;
    let marked = [b"\xef\xbb\xbf", bytes.as_slice()].concat();
    let here = TestHome::new();
    let path = here.write(&marked);
    let report = here.ok(&["tree", "verify", "--file", path.to_str().unwrap()]).await;
    assert_eq!(report["status"], "valid", "{report}");
    here.import(&marked, &[]).await.unwrap();
    assert_eq!(here.exported(&[&tree]).await, bytes);
}

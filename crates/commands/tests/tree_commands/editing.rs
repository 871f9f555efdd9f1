//! The round trip of an editor's text: what was saved is what stands there, in one step, and the rest stays.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use model::ScriptModel;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use crate::home::{TestHome, field};

/// A change somebody makes in an editor, at places given as shares of the text in 1/256.
#[derive(Debug, Clone)]
enum Change {
    Insert(u8, String),
    Delete(u8, u8),
    /// A stretch, and where it goes.
    Move(u8, u8, u8),
    Copy(u8, u8, u8),
    /// Takes all marks out.
    Unmark,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let text = prop_oneof!["[A é🦀.\n]{1,12}", Just("\n\nA new paragraph.\n\n".to_owned())];
    let change = prop_oneof![
        4 => (any::<u8>(), text).prop_map(|(at, text)| Change::Insert(at, text)),
        3 => (any::<u8>(), 0_u8..64).prop_map(|(at, size)| Change::Delete(at, size)),
        2 => (any::<u8>(), 0_u8..64, any::<u8>()).prop_map(|(at, size, to)| Change::Move(at, size, to)),
        1 => (any::<u8>(), 0_u8..64, any::<u8>()).prop_map(|(at, size, to)| Change::Copy(at, size, to)),
        1 => Just(Change::Unmark),
    ];
    prop::collection::vec(change, 1..6)
}

fn place(text: &str, share: u8) -> usize {
    let at = text.len() * usize::from(share) / 256;
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

fn made(text: &mut String, change: &Change, marks: &[String]) {
    let stretch = |text: &str, at: u8, size: u8| place(text, at)..place(text, at.saturating_add(size));
    match change {
        Change::Insert(at, new) => text.insert_str(place(text, *at), new),
        Change::Delete(at, size) => text.replace_range(stretch(text, *at, *size), ""),
        Change::Move(at, size, to) => {
            let range = stretch(text, *at, *size);
            let taken = text[range.clone()].to_owned();
            text.replace_range(range, "");
            text.insert_str(place(text, *to), &taken);
        }
        Change::Copy(at, size, to) => {
            let taken = text[stretch(text, *at, *size)].to_owned();
            text.insert_str(place(text, *to), &taken);
        }
        Change::Unmark => *text = unmarked(text, marks),
    }
}

fn unmarked(text: &str, marks: &[String]) -> String {
    let (mut left, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        match marks.iter().find(|mark| rest.starts_with(mark.as_str())) {
            Some(mark) => rest = &rest[mark.len()..],
            None => {
                left.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    left
}

/// Position, node and text of each passage of the path.
fn passages(shown: &[Value]) -> Vec<[String; 3]> {
    shown.iter().skip(1).map(|node| ["position", "id", "text"].map(|name| field(node, name))).collect()
}

/// Cases of this process, by `PROPTEST_CASES`.
fn run<T: Debug>(strategy: impl Strategy<Value = T>, test: impl Fn(T) -> Result<(), TestCaseError>) {
    let cases = Config { cases: Config::default().cases / 8, ..Config::default() };
    TestRunner::new(Config { failure_persistence: None, ..cases }).run(&strategy, test).unwrap();
}

#[test]
fn what_was_saved_is_what_stands_there_and_the_rest_stays() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let home = TestHome::on_disk();
    home.models.set(ScriptModel::echo(model::script::ScriptOptions::default()));
    run(prop::collection::vec(changes(), 1..4), |rounds| {
        runtime.block_on(async {
            let tree = home.tree("document", "One is here.\n\nTwo is there.\n\n🦀 And é three.").await;
            home.ok(&["tree", "generate", &tree]).await;
            home.ok(&["tree", "generate", &tree]).await;
            for changes in rounds {
                Box::pin(round(&home, &tree, changes)).await?;
            }
            let verified = home.ok(&["tree", "verify", &tree]).await;
            prop_assert_eq!(&verified["status"], "valid");
            Ok(())
        })
    });
}

async fn round(home: &TestHome, tree: &str, changes: Vec<Change>) -> Result<(), TestCaseError> {
    let before = home.nodes(tree, &[]).await;
    let marks: Vec<String> =
        before.iter().skip(1).map(|node| format!("⟦{}⟧", field(node, "short_id"))).collect();
    let text = home.text(tree).await;
    let saved = Arc::new(Mutex::new(String::new()));
    let (seen, of) = (Arc::clone(&saved), marks.clone());
    *home.talk.editor.lock().unwrap() = Some(Box::new(move |file| {
        let (header, rest) = file.split_once('\n').unwrap();
        let mut body = rest.strip_suffix('\n').unwrap().to_owned();
        changes.iter().for_each(|change| made(&mut body, change, &of));
        seen.lock().unwrap().clone_from(&body);
        format!("{header}\n{body}\n")
    }));
    let expected = || unmarked(&saved.lock().unwrap(), &marks);
    match home.run_as(&drawloom_commands::Asker::owner(), &["tree", "edit", tree]).await {
        Ok(_) => {}
        Err(error) => {
            // A mark that was torn and names nothing, or a text that is gone: nothing was changed.
            prop_assert!(
                error.message.contains("marks no passage") || expected().trim().is_empty(),
                "{error:?}"
            );
            prop_assert_eq!(home.text(tree).await, text);
            return Ok(());
        }
    }
    prop_assert_eq!(home.text(tree).await, expected());
    let (old, new) = (passages(&before), passages(&home.nodes(tree, &[]).await));
    prop_assert!(new.len() >= old.len(), "no passage left the path");
    for (old, new) in old.iter().zip(&new) {
        prop_assert_eq!(&old[0], &new[0], "the path goes on through the same positions");
        prop_assert_eq!(old[1] == new[1], old[2] == new[2], "what says the same is the same node");
    }
    if expected() != text {
        home.ok(&["tree", "undo", tree]).await;
        prop_assert_eq!(home.text(tree).await, text, "one step back");
        home.ok(&["tree", "redo", tree]).await;
        prop_assert_eq!(home.text(tree).await, expected(), "and forth");
    }
    Ok(())
}

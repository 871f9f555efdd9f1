//! The round trip of an editor's text: what was saved is what stands there, in one step, and the rest stays.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use drawloom_commands::{Asker, CommandOutcome};
use model::ScriptModel;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use crate::home::{TestHome, field, homes};

/// A change somebody makes in an editor, at places given as shares of the text in 1/256, or by numbers of marks and of
/// empty lines, taken modulo those there are.
#[derive(Debug, Clone)]
enum Change {
    Insert(u8, String),
    Delete(u8, u8),
    /// A stretch, and where it goes.
    Move(u8, u8, u8),
    Copy(u8, u8, u8),
    /// A break into the middle of a passage.
    Part(u8),
    /// Takes a break out.
    Join(u8),
    /// A passage with its mark: gone, before another mark, or there as well.
    DeletePassage(u8),
    MovePassage(u8, u8),
    DoublePassage(u8, u8),
    /// A mark alone.
    MoveMark(u8, u8),
    DoubleMark(u8, u8),
    /// Takes all marks out.
    Unmark,
    /// Ends every line as other systems do.
    Crlf,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    use Change::*;
    let text = prop_oneof![
        4 => "[A é🦀.\n]{1,12}",
        2 => Just("\n\nA new paragraph.\n\n".to_owned()),
        1 => Just("⟦not a mark⟧ ⟦".to_owned()),
    ];
    let at = any::<u8>;
    let change = prop_oneof![
        4 => (at(), text).prop_map(|(at, text)| Insert(at, text)),
        3 => (at(), 0_u8..64).prop_map(|(at, size)| Delete(at, size)),
        2 => (at(), 0_u8..64, at()).prop_map(|(at, size, to)| Move(at, size, to)),
        1 => (at(), 0_u8..64, at()).prop_map(|(at, size, to)| Copy(at, size, to)),
        2 => at().prop_map(Part),
        2 => at().prop_map(Join),
        1 => at().prop_map(DeletePassage),
        1 => (at(), at()).prop_map(|(at, to)| MovePassage(at, to)),
        1 => (at(), at()).prop_map(|(at, to)| DoublePassage(at, to)),
        1 => (at(), at()).prop_map(|(at, to)| MoveMark(at, to)),
        1 => (at(), at()).prop_map(|(at, to)| DoubleMark(at, to)),
        1 => Just(Unmark),
        1 => Just(Crlf),
    ];
    prop::collection::vec(change, 1..6)
}

/// Where marks begin, in order.
fn places(text: &str, marks: &[String]) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> =
        marks.iter().flat_map(|mark| text.match_indices(mark).map(|(at, _)| (at, mark.len()))).collect();
    found.sort_unstable();
    found
}

fn place(text: &str, share: u8) -> usize {
    let at = text.len() * usize::from(share) / 256;
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

fn made(text: &mut String, change: &Change, marks: &[String]) {
    let stretch = |text: &str, at: u8, size: u8| place(text, at)..place(text, at.saturating_add(size));
    let found = places(text, marks);
    let mark = |number: u8| found.get(usize::from(number) % found.len().max(1)).copied();
    // From a mark to the next one.
    let passage = |number: u8| {
        let (start, _) = mark(number)?;
        let next = found.iter().find(|(at, _)| *at > start).map_or(text.len(), |(at, _)| *at);
        Some(start..next)
    };
    let carry = |range: std::ops::Range<usize>, to: usize, stays: bool| {
        let taken = text[range.clone()].to_owned();
        let mut new = text.clone();
        if stays {
            new.insert_str(to, &taken);
            return new;
        }
        new.replace_range(range.clone(), "");
        let to = if to >= range.end { to - range.len() } else { to.min(range.start) };
        new.insert_str(to, &taken);
        new
    };
    let new = match change {
        Change::Insert(at, new) => {
            let at = place(text, *at);
            Some(format!("{}{new}{}", &text[..at], &text[at..]))
        }
        Change::Delete(at, size) => {
            let range = stretch(text, *at, *size);
            Some(format!("{}{}", &text[..range.start], &text[range.end..]))
        }
        Change::Move(at, size, to) => Some(carry(stretch(text, *at, *size), place(text, *to), false)),
        Change::Copy(at, size, to) => Some(carry(stretch(text, *at, *size), place(text, *to), true)),
        Change::Part(at) => {
            let at = place(text, *at);
            Some(format!("{}\n\n{}", &text[..at], &text[at..]))
        }
        Change::Join(number) => {
            let breaks: Vec<usize> = text.match_indices("\n\n").map(|(at, _)| at).collect();
            let at = breaks.get(usize::from(*number) % breaks.len().max(1));
            at.map(|at| format!("{} {}", &text[..*at], &text[at + 2..]))
        }
        Change::DeletePassage(number) => {
            passage(*number).map(|range| format!("{}{}", &text[..range.start], &text[range.end..]))
        }
        Change::MovePassage(number, to) => {
            passage(*number).zip(mark(*to)).map(|(range, (to, _))| carry(range, to, false))
        }
        Change::DoublePassage(number, to) => {
            passage(*number).zip(mark(*to)).map(|(range, (to, _))| carry(range, to, true))
        }
        Change::MoveMark(number, to) => {
            mark(*number).map(|(at, size)| carry(at..at + size, place(text, *to), false))
        }
        Change::DoubleMark(number, to) => {
            mark(*number).map(|(at, size)| carry(at..at + size, place(text, *to), true))
        }
        Change::Unmark => Some(unmarked(text, marks)),
        Change::Crlf => None,
    };
    if let Some(new) = new {
        *text = new;
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

/// The clusters of each passage of the path, each with the version that introduced it, by position.
async fn authors(home: &TestHome, tree: &str) -> BTreeMap<String, Vec<(String, String)>> {
    let shown = home.ok(&["tree", "text", tree, "--spans"]).await;
    let nodes = home.nodes(tree, &[]).await;
    let mut found = BTreeMap::new();
    for [position, _, text] in passages(&nodes) {
        let spans = shown["spans"].as_array().unwrap().iter();
        let own = spans.filter(|span| span["position"] == position.as_str());
        let introduced = own.flat_map(|span| {
            let size = span["end"].as_u64().unwrap() - span["start"].as_u64().unwrap();
            std::iter::repeat_n(field(span, "introduced_by"), usize::try_from(size).unwrap())
        });
        let clusters = text::grapheme::clusters(&text).map(|cluster| text[cluster].to_owned());
        let clusters: Vec<(String, String)> = clusters.zip(introduced).collect();
        assert_eq!(clusters.len(), text::grapheme::count(&text), "every cluster has its author");
        found.insert(position, clusters);
    }
    found
}

/// Clusters that two texts share at the beginning, and at the end behind that, up to the words that were changed: of
/// those each letter may be the editor's.
fn shared(old: &[(String, String)], new: &[(String, String)]) -> (usize, usize) {
    let head = old.iter().zip(new).take_while(|(old, new)| old.0 == new.0).count();
    let rest = old[head..].iter().rev().zip(new[head..].iter().rev());
    let tail = rest.take_while(|(old, new)| old.0 == new.0).count();
    let is_space = |cluster: &&(String, String)| cluster.0.trim().is_empty();
    let of_changed =
        |text: &mut dyn Iterator<Item = &(String, String)>| text.take_while(|c| !is_space(c)).count();
    if head == old.len() && head == new.len() {
        return (head, tail);
    }
    let begun = of_changed(&mut new[..head].iter().rev());
    let ended = of_changed(&mut new[new.len() - tail..].iter());
    (head - begun, tail - ended)
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
            let tree = document(&home).await;
            for changes in rounds {
                Box::pin(round(&home, &tree, changes)).await?;
            }
            let verified = home.ok(&["tree", "verify", &tree]).await;
            prop_assert_eq!(&verified["status"], "valid");
            Ok(())
        })
    });
}

/// A document by its owner and a model, passages of both in turn and one in which both wrote, with branches beside and
/// below it, and with marks in its text: one that names no passage, and that of its first.
async fn document(home: &TestHome) -> String {
    let tree = home.tree("document", "One is here.\n\nTwo is there.\n\n🦀 And é three.").await;
    home.ok(&["tree", "generate", &tree, "-n", "2"]).await;
    let first = field(&home.nodes(&tree, &[]).await[1], "short_id");
    home.append(&tree, &format!("\n\n⟦zzzz⟧ is in the text, ⟦{first}⟧ too.\n\n")).await;
    let made = home.ok(&["tree", "generate", &tree]).await;
    let (node, text) = (field(&made["nodes"][0], "id"), field(&made["nodes"][0], "text"));
    home.ok(&["tree", "edit", &tree, &node, "--text", &format!("{text} By both, é🦀.\n\n")]).await;
    home.ok(&["tree", "branch", &tree, &node, "--at", "2"]).await;
    home.append(&tree, "Below a branch.").await;
    home.ok(&["tree", "switch", &tree, &node]).await;
    home.append(&tree, "The end is the owner's.").await;
    tree
}

/// What nodes are and where they stand, by their ids.
async fn every(home: &TestHome, tree: &str) -> BTreeMap<String, [Value; 4]> {
    let nodes = home.nodes(tree, &["--all"]).await;
    let says = ["position", "parent", "text", "pruned"];
    nodes.iter().map(|node| (field(node, "id"), says.map(|name| node[name].clone()))).collect()
}

/// The marks an editor gets: a number is added until none of them stands in the text.
fn marks_of(nodes: &[Value], text: &str) -> Vec<String> {
    let of = |end: &str| -> Vec<String> {
        nodes.iter().skip(1).map(|node| format!("⟦{}{end}⟧", field(node, "short_id"))).collect()
    };
    let ends = std::iter::once(String::new()).chain((2..).map(|number| format!("·{number}")));
    let mut marks = ends.map(|end| of(&end));
    marks.find(|marks| !marks.iter().any(|mark| text.contains(mark.as_str()))).unwrap()
}

async fn round(home: &TestHome, tree: &str, changes: Vec<Change>) -> Result<(), TestCaseError> {
    let before = home.nodes(tree, &[]).await;
    let (all_before, authors_before) = (every(home, tree).await, authors(home, tree).await);
    let text = home.text(tree).await;
    let marks = marks_of(&before, &text);
    let saved = Arc::new(Mutex::new(String::new()));
    let (seen, of) = (Arc::clone(&saved), marks.clone());
    *home.talk.editor.lock().unwrap() = Some(Box::new(move |file| {
        let (header, rest) = file.split_once('\n').unwrap();
        let mut body = rest.strip_suffix('\n').unwrap().to_owned();
        assert!(of.iter().all(|mark| body.contains(mark.as_str())), "{of:?}: {body}");
        changes.iter().for_each(|change| made(&mut body, change, &of));
        seen.lock().unwrap().clone_from(&body);
        let file = format!("{header}\n{body}\n");
        let is_crlf = changes.iter().any(|change| matches!(change, Change::Crlf));
        if is_crlf { file.replace('\n', "\r\n") } else { file }
    }));
    let expected = || unmarked(&saved.lock().unwrap(), &marks);
    match home.run_as(&Asker::owner(), &["tree", "edit", tree]).await {
        Ok(_) => {}
        Err(error) => {
            // A mark that was torn and names nothing, or a text that is gone: nothing was changed.
            let is_torn = ["marks no passage", "is not whole"].iter().any(|why| error.message.contains(why));
            prop_assert!(is_torn || expected().trim().is_empty(), "{error:?}");
            prop_assert_eq!(home.text(tree).await, text);
            return Ok(());
        }
    }
    prop_assert_eq!(home.text(tree).await, expected());
    let after = home.nodes(tree, &[]).await;
    let (old, new) = (passages(&before), passages(&after));
    prop_assert!(new.len() >= old.len(), "no passage left the path");
    let authors_after = authors(home, tree).await;
    let gone =
        old.iter().zip(&new).filter(|(old, new)| new[2].trim().is_empty() && !old[2].trim().is_empty());
    let moved: Vec<String> = gone.map(|(old, _)| old[2].trim().to_owned()).collect();
    for (at, (old, new)) in old.iter().zip(&new).enumerate() {
        prop_assert_eq!(&old[0], &new[0], "the path goes on through the same positions");
        prop_assert_eq!(old[1] == new[1], old[2] == new[2], "what says the same is the same node");
        let (was, is) = (&authors_before[&old[0]], &authors_after[&new[0]]);
        // A text that was there before has its own authors. Where one came from another passage and says the same as what
        // stood here, neither end tells which of the two it is.
        let came = moved.iter().any(|text| new[2].contains(text.as_str()));
        if !came && (old[1] == new[1] || after[at + 1]["edited_from"] == old[1].as_str()) {
            let (head, tail) = shared(was, is);
            prop_assert_eq!(&is[..head], &was[..head], "{:?} -> {:?}", old, new);
            prop_assert_eq!(&is[is.len() - tail..], &was[was.len() - tail..], "{:?} -> {:?}", old, new);
        }
    }
    let all_after = every(home, tree).await;
    for (node, was) in &all_before {
        prop_assert_eq!(all_after.get(node), Some(was), "versions, siblings and branches stay as they were");
    }
    if expected() != text {
        home.ok(&["tree", "undo", tree]).await;
        prop_assert_eq!(home.text(tree).await, text, "one step back");
        prop_assert_eq!(&authors(home, tree).await, &authors_before);
        home.ok(&["tree", "redo", tree]).await;
        prop_assert_eq!(home.text(tree).await, expected(), "and forth");
    }
    // A branch beside the path is still gone to, and back from.
    let beside = before.iter().position(|node| node["siblings"] == 2).unwrap();
    home.ok(&["tree", "switch", tree, "--next", &field(&before[beside], "id")]).await;
    let there = home.nodes(tree, &[]).await;
    prop_assert!(there.len() > beside && there[beside]["position"] != before[beside]["position"]);
    home.ok(&["tree", "switch", tree, "--prev", &field(&there[beside], "id")]).await;
    prop_assert_eq!(home.text(tree).await, expected());
    Ok(())
}

/// Nobody goes to what stands below a pruned passage: what is pruned is shown again first.
#[tokio::test]
async fn an_edit_below_what_is_pruned_names_the_way_that_works() {
    for home in homes() {
        let tree = home.tree("buffer", "It rained.").await;
        let pruned = home.append(&tree, " Nobody came.").await;
        let below = home.append(&tree, " It snowed.").await;
        let short = field(&home.node(&tree, &pruned).await, "short_id");
        for (at, text, is_restored) in
            [(&below, " Fog.", true), (&pruned, " Many came.", true), (&below, " Stars.", false)]
        {
            home.ok(&["tree", if is_restored { "prune" } else { "restore" }, &tree, &pruned]).await;
            let done = home.run_as(&Asker::owner(), &["tree", "edit", &tree, at, "--text", text]).await;
            let CommandOutcome::Edited(told) = done.unwrap() else { panic!() };
            let command = told.sentence.split('`').nth(1).unwrap().strip_prefix("drawloom ").unwrap();
            let words: Vec<_> = command.split(' ').collect();
            assert_eq!(words[1] == "restore", is_restored, "{}", told.sentence);
            assert_eq!(
                told.sentence.contains(&format!("as {short} is pruned")),
                is_restored,
                "{}",
                told.sentence
            );
            home.ok(&words).await;
        }
        assert_eq!(home.text(&tree).await, "It rained. Many came. Stars.");
    }
}

/// A file may have other line ends than the passage, and a byte order mark: neither is a change, as in an editor.
#[tokio::test]
async fn a_file_for_a_passage_has_its_line_ends_and_no_mark_of_byte_order() {
    for home in homes() {
        let file = home.dir.path().join("new.txt");
        for (mode, text, saved, expected) in [
            ("buffer", "Nobody came.\n\n", "New words.\n", "New words.\n\n"),
            ("buffer", "Nobody came.\n\n", "New words.\r\n", "New words.\n\n"),
            ("buffer", "Nobody came.\n\n", "\u{feff}New words.\n", "New words.\n\n"),
            ("buffer", "Nobody came.\r\n\r\n", "New words.\n", "New words.\r\n\r\n"),
            ("buffer", "\u{feff}Nobody came.", "\u{feff}New words.", "\u{feff}New words."),
            ("dialogue", "Nobody came.", "\u{feff}New\r\nwords.\r\n", "New\nwords.\n"),
        ] {
            let tree = home.tree(mode, text).await;
            let node = field(&home.nodes(&tree, &[]).await[1], "id");
            std::fs::write(&file, saved).unwrap();
            let edited = ["tree", "edit", &tree, &node, "--file", file.to_str().unwrap()];
            let made = field(&home.ok(&edited).await, "node");
            assert_eq!(home.node(&tree, &made).await["text"], expected, "{text:?} by {saved:?}");
        }
    }
}

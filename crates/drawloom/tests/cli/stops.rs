//! Answers that end with a sentence or a paragraph, written on one after another.

use serde_json::json;

use crate::world::{World, text};

/// A script that answers each call with more than a sentence, in small pieces.
fn model(world: &World, answer: &str) -> String {
    let file = world.path("long.jsonl");
    let pieces: Vec<String> = answer.chars().map(String::from).collect();
    std::fs::write(&file, json!({"deltas": pieces}).to_string()).unwrap();
    format!("script:{}", text(&file))
}

/// Writes on in `tree` some times, and checks that each call adds the same text and nothing else.
fn goes_on(stop: &str, answer: &str, new: &str, times: usize) {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Rain", "--text", "It rained. "]);
    let model = model(&world, answer);
    let mut expected = "It rained. ".to_owned();
    for time in 0..times {
        let run = world.run(&["--model", &model, "tree", "generate", "Rain", "--stop", stop]);
        assert_eq!(run.code, Some(0), "call {time}: {}", run.err);
        // White space that stands in the document already is not written twice.
        expected.push_str(new);
        let shown = world.ok(&["tree", "text", "Rain"]);
        assert_eq!(shown.trim_end(), expected.trim_end(), "call {time}");
    }
    let verified = world.ok(&["tree", "verify", "Rain"]);
    assert!(verified.contains("valid") && !verified.contains("invalid"), "{verified}");
}

#[test]
fn twenty_sentences_go_on() {
    let answer = " Dr. Boatman counted 3.5 stones, e.g. flints… slowly. “Why?” he asked. Then";
    goes_on("sentence", answer, "Dr. Boatman counted 3.5 stones, e.g. flints… slowly. ", 20);
}

#[test]
fn sentences_without_spaces_go_on() {
    goes_on("sentence", "彼は来た。彼女は行った。", "彼は来た。", 3);
}

#[test]
fn paragraphs_keep_their_blank_line() {
    goes_on("paragraph", "One. Two.\n\nThree. Four.", "One. Two.\n\n", 5);
}

#[test]
fn answers_that_are_no_longer_than_a_sentence_are_whole() {
    goes_on("sentence", " One sentence. ", "One sentence. ", 3);
}

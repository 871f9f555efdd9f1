//! Where answers that were asked for stand, and how several are told apart.

use std::fs;

use crate::speaking::{short, tale};
use crate::terminal::Terminal;

#[test]
fn an_answer_asked_for_at_the_tip_moves_it_and_one_asked_for_elsewhere_names_the_way_there() {
    let world = tale();
    let tip = || {
        world.json(&["tree", "show", "Tale"]).1["nodes"].as_array().unwrap().last().unwrap()["short_id"]
            .clone()
    };
    let run = world.run(&["tree", "generate", "Tale"]);
    let answer = tip().as_str().unwrap().to_owned();
    assert!(run.err.contains(&format!("main moved to {answer} “echo 1”")), "{run:?}");
    let second = short(&world, 2);
    let (_, shown) = world.json(&["tree", "show", "Tale"]);
    let id = shown["nodes"][3]["id"].as_str().unwrap();
    for words in [
        vec!["tree", "generate", "Tale", "--from", &second],
        vec!["tree", "regenerate", "Tale", &answer],
        vec!["context", "replay", id, "--model", "script:echo"],
    ] {
        world.ok(&["tree", "go", "Tale", &answer]);
        let run = world.run(&words);
        assert_eq!((run.code, run.out.as_str()), (Some(0), " echo 1\n"), "piped text stays clean: {run:?}");
        assert_eq!(tip(), answer, "{words:?}: it stays");
        let line = run.err.lines().find(|line| line.starts_with("main stays where it is: `")).unwrap();
        let command = line.split('`').nth(1).unwrap();
        let named: Vec<&str> = command.split(' ').collect();
        assert_eq!(named[..4], ["drawloom", "tree", "go", "Tale"], "{command}");
        assert_ne!(named[4], answer);
        world.ok(&named[1..]);
        assert_eq!(tip(), named[4], "{words:?}: the command goes there");
    }
}

#[test]
fn several_answers_in_a_pipe_have_a_line_above_each_and_an_empty_one_between() {
    let world = tale();
    let run = world.run(&["tree", "generate", "Tale", "-n", "3"]);
    let parts: Vec<&str> = run.out.split("\n\n").collect();
    assert_eq!(parts.len(), 3, "{run:?}");
    for (index, part) in parts.iter().enumerate() {
        let (head, text) = part.split_once('\n').unwrap();
        assert!(head.len() >= 4 && head[4..].trim() == "complete", "{run:?}");
        assert_eq!(text.trim_end(), format!(" echo {}", index + 1), "{run:?}");
    }
    let seen = Terminal::of_width(world.command(&["tree", "generate", "Tale", "-n", "3"]), 80).written();
    for text in ["echo 1", "echo 2", "echo 3"] {
        let shown = seen.lines().filter(|line| line.trim() == text).count();
        assert_eq!(shown, 1, "a terminal shows each once: {seen}");
    }
}

#[test]
fn the_tip_moves_to_the_first_sibling_whichever_answer_is_there_first() {
    let world = tale();
    let script = world.path("answers.jsonl");
    let slow = r#"{"deltas":[" It"," was"," slow."],"delta_delay_ms":150}"#;
    fs::write(&script, format!("{slow}\n{{\"text\":\" It was fast.\"}}\n")).unwrap();
    let model = format!("script:{}", script.display());
    let (_, made) = world.json(&["--model", &model, "tree", "generate", "Tale", "-n", "2"]);
    assert_eq!(made["nodes"][0]["text"], " It was slow.", "{made}");
    assert_eq!(made["tip"], made["nodes"][0]["id"]);
    assert!(world.ok(&["tree", "text", "Tale"]).ends_with(" It was slow."));
    // Where the first one fails the view goes to the one that came.
    fs::write(&script, "{\"fault\":\"500\"}\n{\"text\":\" It came.\"}\n").unwrap();
    let (code, made) = world.json(&["--model", &model, "tree", "generate", "Tale", "-n", "2"]);
    assert_eq!((code, &made["tip"]), (Some(0), &made["nodes"][0]["id"]), "{made}");
}

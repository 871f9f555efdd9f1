//! Several processes on one store: none loses another's work, none takes what a living one holds (spec: security §7).

use std::process::Child;
use std::thread;

use serde_json::json;

use crate::support::{Home, ended, resume, streamed_text, suspend, until};

/// A generation that is suspended in the middle of its stream, with all it will say.
fn suspended(home: &Home) -> (Child, String) {
    let deltas: Vec<String> = (1..=30).map(|number| format!(" word{number}")).collect();
    let model = home.script(&[json!({"deltas": deltas, "delta_delay_ms": 15})]);
    let child = home.command(&["--model", &model, "tree", "generate", "Tale"]).spawn().unwrap();
    until("the first words", || home.spools().values().any(|spool| !streamed_text(spool).0.is_empty()));
    suspend(&child);
    let (said, finished) = streamed_text(home.spools().values().next().unwrap());
    assert!(!said.is_empty() && !finished, "it was suspended in the middle");
    (child, deltas.concat())
}

#[test]
fn two_writers_lose_and_double_nothing_while_a_third_stands_still() {
    let home = Home::with_tale("0");
    let (third, whole) = suspended(&home);
    thread::scope(|scope| {
        for writer in ["a", "b"] {
            let home = &home;
            scope.spawn(move || {
                for number in 0..12 {
                    home.ok(&["tree", "append", "Tale", &format!(" {writer}{number}")]);
                }
            });
        }
    });
    let text = home.text();
    let words: Vec<&str> = text.split(' ').collect();
    assert_eq!(words.len(), 25, "{text}");
    for writer in ["a", "b"] {
        let own: Vec<String> =
            words.iter().filter(|word| word.starts_with(writer)).map(ToString::to_string).collect();
        assert_eq!(own, (0..12).map(|number| format!("{writer}{number}")).collect::<Vec<_>>(), "{text}");
    }
    assert_eq!(home.answers(), [], "what a living process holds was taken");
    assert_eq!(home.spools().len(), 1);

    resume(&third);
    let third = ended(third);
    assert_eq!(third.status.code(), Some(0), "{third:?}");
    assert_eq!(home.answers(), [(whole, json!("stop"))]);
    assert_eq!(home.text(), text, "the view stays with the writers");
    assert!(home.spools().is_empty());
    home.is_sound();
}

#[test]
fn of_two_that_race_one_recovers_what_a_dead_process_had_received() {
    let home = Home::with_tale("0");
    for round in 1..=4 {
        let (mut dead, whole) = suspended(&home);
        let (received, _) = streamed_text(home.spools().values().next().unwrap());
        dead.kill().unwrap();
        ended(dead);
        let racing: Vec<Child> =
            (0..2).map(|_| home.command(&["tree", "show", "Tale", "--all"]).spawn().unwrap()).collect();
        for command in racing.into_iter().map(ended) {
            assert_eq!(command.status.code(), Some(0), "{command:?}");
        }
        let answers = home.answers();
        assert_eq!(answers.len(), round, "{answers:?}");
        let (text, finish) = answers.last().unwrap();
        assert_eq!(*text, received);
        assert!(whole.starts_with(text.as_str()) && finish["interrupted"].is_string(), "{finish}");
        assert!(home.spools().is_empty());
        home.is_sound();
    }
}

#[test]
fn commands_that_come_and_are_killed_leave_a_stream_alone() {
    let home = Home::with_tale("0");
    let (streaming, whole) = suspended(&home);
    resume(&streaming);
    for number in 0..6 {
        let mut killed = home.command(&["tree", "append", "Tale", &format!(" {number}")]).spawn().unwrap();
        if number % 2 == 0 {
            killed.kill().unwrap();
        }
        ended(killed);
    }
    let streaming = ended(streaming);
    assert_eq!(streaming.status.code(), Some(0), "{streaming:?}");
    assert_eq!(home.answers(), [(whole, json!("stop"))]);
    home.is_sound();
}

#[test]
fn a_store_in_which_another_process_writes_on_and_on_is_busy_and_names_who_has_it_open() {
    let home = Home::with_tale("0");
    let (third, _) = suspended(&home);
    let writer = rusqlite::Connection::open(home.database()).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = home.run(&["tree", "append", "Tale", " 1"]);
    refused.refused(6, &["busy", &format!("process {} (drawloom tree generate)", third.id()), "try again"]);
    // Reading goes on meanwhile.
    assert_eq!(home.text(), "0");
    writer.execute_batch("ROLLBACK").unwrap();
    resume(&third);
    ended(third);
    let generated = home.text();
    home.ok(&["tree", "append", "Tale", " 1"]);
    assert_eq!(home.text(), format!("{generated} 1"));
    home.is_sound();
}

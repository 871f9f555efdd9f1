//! Turns of a conversation, killed at any moment (spec: agent §1 *Crash*, loom §10.7).

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::mock::{Mock, answer_to, text_of};
use crate::support::{Home, Seeded, ended, until};

/// Kills of each test: a quarter of all that are asked for.
fn kills() -> u64 {
    (crate::kill::kills() / 4).max(20)
}

/// What a conversation holds: who said it, what, and how it ended. Its first words are `Tale`, so that its tree is
/// called that.
pub(crate) fn conversation(home: &Home) -> Vec<(String, String, Value)> {
    let shown = home.json(&["tree", "show", "Tale", "--limit", "1000"]);
    let nodes = shown["nodes"].as_array().unwrap();
    let of = |node: &Value| {
        let text = node["text"].as_str().unwrap().to_owned();
        (node["author_kind"].as_str().unwrap().to_owned(), text, node["finish"].clone())
    };
    nodes.iter().map(of).filter(|(_, text, _)| !text.is_empty()).collect()
}

/// How often each thing was said by a person.
fn said(home: &Home) -> BTreeMap<String, usize> {
    let mut said = BTreeMap::new();
    for node in home.nodes().iter().filter(|node| node["author_kind"] == "human") {
        *said.entry(node["text"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    said.remove("");
    said
}

/// Sockets that lie in the home.
pub(crate) fn sockets(home: &Home) -> usize {
    let run = std::fs::read_dir(home.path().join("run")).unwrap().flatten();
    run.filter(|entry| entry.path().extension().is_some_and(|end| end == "sock")).count()
}

/// A spool without its header.
fn body(spool: &[u8]) -> &[u8] {
    let header = spool.iter().position(|byte| *byte == b'\n').map_or(spool.len(), |end| end + 1);
    &spool[header..]
}

#[test]
fn every_byte_of_an_answer_that_was_received_outlives_a_kill_and_is_part_of_what_follows() {
    let mock = Mock::start(Duration::from_millis(4), || {});
    let home = Home::new();
    home.ok(&["tree", "list"]);
    let model = mock.model(&home);
    assert_eq!(home.ok(&["--model", model, "chat", "-m", "Tale"]), format!("{}\n", answer_to("Tale")));
    let words: String = (1..=12).map(|number| format!(" word{number}")).collect();
    let whole = text_of(&mock.exchanges()[0].sent).0.len();
    assert_eq!(whole, answer_to("Tale").len());
    let mut seeded = Seeded::new(17);
    let (mut partial, mut before) = (0, conversation(&home));
    for number in 0..kills() {
        let question = format!("{number}:{words}");
        let mut child = home.command(&["--model", model, "chat", "-m", &question]).spawn().unwrap();
        let known = mock.exchanges().len();
        // By what has arrived, so that the kill falls evenly over the stream, before it and past its end.
        let target = seeded.below(1_600) as usize;
        until("the stream", || {
            let arrived: usize = home.spools().values().map(|spool| body(spool).len()).sum();
            arrived >= target || child.try_wait().unwrap().is_some()
        });
        child.kill().unwrap();
        let ran = ended(child);
        // Nobody has recovered anything yet.
        let spools: Vec<Vec<u8>> = home.spools().values().map(|spool| body(spool).to_vec()).collect();
        assert!(spools.len() <= 1);
        let received = spools.first().map(|spool| text_of(spool));
        if let Some(spool) = spools.first() {
            let sent = mock.exchanges().get(known).map(|exchange| exchange.sent.clone()).unwrap_or_default();
            assert!(sent.starts_with(spool), "kill {number}: the spool is not what was sent");
        }

        let now = conversation(&home);
        assert!(now.starts_with(&before), "kill {number}: what was there is there no more");
        assert!(home.spools().is_empty(), "kill {number}: a spool is left");
        let new = &now[before.len()..];
        match new {
            [] => assert!(!ran.status.success() && received.is_none_or(|(text, _)| text.is_empty())),
            [(kind, text, _), answer @ ..] => {
                assert_eq!((kind.as_str(), text), ("human", &question), "kill {number}");
                assert!(answer.len() <= 1, "kill {number}: {answer:?}");
                let whole = answer_to(&question);
                let (text, finish) =
                    answer.first().map_or((String::new(), Value::Null), |(kind, text, finish)| {
                        assert_eq!(kind, "model");
                        (text.clone(), finish.clone())
                    });
                if let Some((received, finished)) = received.filter(|(text, _)| !text.is_empty()) {
                    assert_eq!(text, received, "kill {number}");
                    assert_eq!(finish == "stop", finished, "kill {number}: {finish}");
                    partial += usize::from(!finished);
                } else {
                    // It was committed, or nothing had come.
                    assert!(text == whole && finish == "stop" || text.is_empty(), "kill {number}: {text}");
                }
                assert!(
                    finish == "stop" || finish.is_null() || finish["interrupted"].is_string(),
                    "{finish}"
                );
                assert!(!ran.status.success() || text == whole, "kill {number}: {ran:?}");
            }
        }
        before = now;
    }
    assert!(partial > 0, "no kill fell into a stream");
    assert!(said(&home).values().all(|times| *times == 1), "{:?}", said(&home));

    let last = home.ok(&["--model", model, "chat", "-m", "Good bye"]);
    assert_eq!(last, format!("{}\n", answer_to("Good bye")));
    let asked = mock.exchanges().last().unwrap().asked.to_string();
    // As far back as the window of any model reaches.
    for (_, text, _) in before.iter().rev().take(20) {
        assert!(asked.contains(text.as_str()), "the model does not know of {text:?}");
    }
    home.is_sound();
    assert_eq!((home.instances(), sockets(&home)), (0, 0), "the dead are not buried");
}

/// The process that took a message in is killed: whoever said it says it again or is told that it is kept, and it is
/// there once.
#[test]
fn what_was_handed_to_a_process_that_is_killed_is_said_once() {
    let mock = Mock::start(Duration::from_millis(6), || {});
    let home = Home::new();
    home.ok(&["tree", "list"]);
    let model = mock.model(&home);
    home.ok(&["--model", model, "chat", "-m", "Tale"]);
    let mut seeded = Seeded::new(19);
    let (mut kept, mut again) = (0, 0);
    for number in 0..kills() {
        let known = mock.exchanges().len();
        let mut owner =
            home.command(&["--model", model, "chat", "-m", &format!("owner {number}")]).spawn().unwrap();
        until("the owner's request", || mock.exchanges().len() > known);
        let other = format!("other {number}");
        let sender = home.command(&["--model", model, "chat", "-m", &other]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(seeded.below(160)));
        owner.kill().unwrap();
        ended(owner);
        let sender = ended(sender);
        match sender.status.code() {
            Some(0) => {
                assert_eq!(sender.stdout, format!("{}\n", answer_to(&other)));
                again += 1;
            }
            Some(5) => {
                assert!(sender.stderr.contains("your message is kept as node"), "{sender:?}");
                kept += 1;
            }
            _ => panic!("kill {number}: {sender:?}"),
        }
        assert_eq!(said(&home).get(&other), Some(&1), "kill {number}: {sender:?}");
    }
    assert_eq!(kept + again, kills());
    assert!(again > 0);
    home.is_sound();
    assert!(home.spools().is_empty());
    assert_eq!((home.instances(), sockets(&home)), (0, 0), "the dead are not buried");
}

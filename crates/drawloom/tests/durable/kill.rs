//! `kill -9` at any moment (spec: loom §10.7).

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::servers::Server;
use crate::support::{Home, Seeded, ended, streamed_text, until};

/// Kills in all, of both tests together: `DRAWLOOM_KILLS`.
pub(crate) fn kills() -> u64 {
    std::env::var("DRAWLOOM_KILLS").ok().map_or(50, |kills| kills.parse().unwrap())
}

/// What was acknowledged is there once and in order; what was not is there whole or not at all.
#[test]
fn what_was_acknowledged_outlives_a_kill() {
    let home = Home::with_tale("0.");
    let began = Instant::now();
    home.ok(&["tree", "append", "Tale", " 1."]);
    // The kill falls anywhere from before `main` to after the answer.
    let longest = began.elapsed().as_micros() as u64 * 5 / 4;
    // What is committed, and the draft behind it.
    let (mut committed, mut draft) = ("0. 1.".to_owned(), String::new());
    let mut seeded = Seeded::new(7);
    for number in 2..2 + kills() / 2 {
        let text = format!(" {number}.");
        let is_draft = number % 3 == 0;
        let command = if is_draft { "draft" } else { "append" };
        let mut child = home.command(&["tree", command, "Tale", &text]).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(seeded.below(longest)));
        child.kill().unwrap();
        let ran = ended(child);
        let acknowledged = ran.status.success() || ran.stdout.ends_with('\n');
        let (before, after) = if is_draft {
            ((committed.clone(), draft.clone()), (committed.clone(), text.clone()))
        } else {
            ((committed.clone(), draft.clone()), (format!("{committed}{draft}{text}"), String::new()))
        };
        let found = home.text();
        let done = found == format!("{}{}", after.0, after.1);
        assert!(done || found == format!("{}{}", before.0, before.1), "kill {number}: {found}");
        assert!(done || !acknowledged, "kill {number}: {text} was acknowledged and is gone: {found}");
        (committed, draft) = if done { after } else { before };
    }
    home.is_sound();
    assert_eq!(home.json(&["tree", "text", "Tale", "--committed"])["text"], committed.as_str());
    let check = home.json(&["store", "check"]);
    assert_eq!(check["ok"], true, "{check}");
}

/// Every byte that was received is in a node after the next start, of whichever of the siblings.
#[test]
fn every_byte_that_was_received_outlives_a_kill() {
    let home = Home::with_tale("It rained");
    let word = |sibling: &str, number: u64| format!(" {sibling}{number}");
    let words = |sibling: &str| (1..=14).map(|number| word(sibling, number)).collect::<Vec<_>>();
    let siblings = ["a", "b", "c"].map(words);
    let model = home.script(&siblings.clone().map(|deltas| json!({"deltas": deltas, "delta_delay_ms": 12})));
    let whole = siblings.map(|deltas| deltas.concat());
    let mut seeded = Seeded::new(11);
    let (mut known, mut cut, mut partial) = (0, 0, 0);
    for number in 0..kills() - kills() / 2 {
        let generate = ["--model", &model, "tree", "generate", "Tale", "-n", "3"];
        let mut child = home.command(&generate).spawn().unwrap();
        // By what has arrived, so that the kill falls evenly over the stream: past its end, too.
        let target = seeded.below(9000) as usize;
        until("the stream", || {
            let arrived: usize = home.spools().values().map(|spool| streamed_body(spool).len()).sum();
            arrived >= target || child.try_wait().unwrap().is_some()
        });
        child.kill().unwrap();
        let ran = ended(child);
        // Nobody has recovered anything yet: this is what had been received.
        let mut expected: Vec<(String, bool)> =
            home.spools().values().map(|spool| streamed_text(streamed_body(spool))).collect();
        expected.retain(|(text, _)| !text.is_empty());
        cut += expected.len();

        let answers = home.answers();
        assert!(home.spools().is_empty(), "kill {number}: a spool is left");
        let made = &answers[known..];
        for (text, finished) in &expected {
            // A spool may outlive its commit: then its node is there already, and no second one is made.
            let same: Vec<_> = made.iter().filter(|(made, _)| made == text).collect();
            let [(_, finish)] = same.as_slice() else { panic!("kill {number}: {text:?} in {made:?}") };
            assert_eq!(finish == "stop", *finished, "kill {number}: {finish}");
            assert!(*finished || finish["interrupted"].is_string(), "kill {number}: {finish}");
            partial += usize::from(!finished);
        }
        for (text, finish) in made {
            let is_whole = whole.contains(text);
            assert!(whole.iter().any(|whole| whole.starts_with(text.as_str())), "kill {number}: {text:?}");
            assert_eq!(is_whole && finish == "stop", finish == "stop", "kill {number}: {text:?} {finish}");
            let received = expected.iter().any(|(expected, _)| expected == text);
            assert!(received || is_whole, "kill {number}: {text:?} came from nowhere");
        }
        assert!(made.len() <= 3, "kill {number}: {made:?}");
        assert!(!ran.status.success() || made.len() == 3, "kill {number}: {ran:?}");
        known = answers.len();
    }
    home.is_sound();
    assert_eq!(home.instances(), 0, "the dead are not buried");
    assert!(cut > 0 && partial > 0, "no kill fell into a stream: {cut}, {partial}");
}

/// One answer with several choices makes several nodes, one commit each: a kill between two of them loses none and
/// doubles none.
#[test]
fn a_kill_between_the_choices_of_one_answer_loses_and_doubles_none() {
    const CHOICES: u64 = 6;
    let home = Home::with_tale("It rained");
    let choice =
        |index: u64| json!({"index": index, "text": format!(" all day {index}"), "finish_reason": "stop"});
    let body = json!({"choices": (0..CHOICES).map(choice).collect::<Vec<_>>()});
    let (said, heard) = mpsc::channel();
    let server = Server::start(move |stream| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let _ = stream.write_all(format!("{head}data: {body}\n\ndata: [DONE]\n\n").as_bytes());
        let _ = said.send(());
    });
    let base = format!("http://127.0.0.1:{}/v1", server.port);
    home.ok(&["config", "set", "providers.many.base_url", &base]);
    home.ok(&["config", "set", "providers.many.honours_n", "true"]);
    let generate = ["--model", "many/m", "tree", "generate", "Tale", "-n", &CHOICES.to_string()];
    let began = Instant::now();
    home.ok(&generate);
    heard.recv().unwrap();
    let longest = began.elapsed().as_micros() as u64;
    let mut seeded = Seeded::new(13);
    let mut known = home.answers().len();
    assert_eq!(known, CHOICES as usize);
    for number in 0..kills() / 4 {
        let mut child = home.command(&generate).spawn().unwrap();
        heard.recv().unwrap();
        std::thread::sleep(Duration::from_micros(seeded.below(longest / 2)));
        child.kill().unwrap();
        ended(child);
        let received = home.spools().values().any(|spool| spool.ends_with(b"[DONE]\n\n"));
        let shown = home.run(&["tree", "show", "Tale", "--all"]);
        assert!(!shown.stderr.contains("not recovered"), "kill {number}: {shown:?}");
        let answers = home.answers();
        let made: BTreeSet<&str> = answers[known..].iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(made.len(), answers.len() - known, "kill {number}: a choice is there twice: {made:?}");
        let all = made.len() == CHOICES as usize;
        assert!(all || made.is_empty() && !received, "kill {number}: {made:?}, received {received}");
        assert!(home.spools().is_empty());
        known = answers.len();
    }
    home.is_sound();
}

/// A spool without its header.
fn streamed_body(spool: &[u8]) -> &[u8] {
    let header = spool.iter().position(|byte| *byte == b'\n').map_or(spool.len(), |end| end + 1);
    &spool[header..]
}

//! Several processes in one conversation (spec: security §7).

use std::process::Child;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

use crate::mock::{Mock, answer_to, text_of};
use crate::support::{Home, ended, resume, suspend, until};
use crate::turns::{conversation, sockets};

/// A home with a conversation that begins with `Tale`, and its model.
fn begun(mock: &Mock) -> (Home, &'static str) {
    let home = Home::new();
    home.ok(&["tree", "list"]);
    let model = mock.model(&home);
    home.ok(&["--model", model, "chat", "-m", "Tale"]);
    (home, model)
}

/// Says all of these at once, each in a process of its own, and asserts that each got its own answer and that they
/// stand in some order, one after the other.
fn all_at_once(count: usize) {
    let mock = Mock::start(Duration::from_millis(5), || {});
    let (home, model) = begun(&mock);
    let texts: Vec<String> = (1..=count).map(|number| format!("question {number}?")).collect();
    let say = |text: &String| home.command(&["--model", model, "chat", "-m", text]).spawn().unwrap();
    let children: Vec<Child> = texts.iter().map(say).collect();
    for (text, child) in texts.iter().zip(children) {
        let ran = ended(child);
        assert_eq!(ran.status.code(), Some(0), "{ran:?}");
        assert_eq!(ran.stdout, format!("{}\n", answer_to(text)));
    }
    let path = conversation(&home);
    assert_eq!(path.len(), 2 * count + 2, "{path:?}");
    let mut said: Vec<&String> = Vec::new();
    for pair in path.chunks(2) {
        let [(human, text, _), (machine, answer, finish)] = pair else { panic!("{path:?}") };
        assert_eq!((human.as_str(), machine.as_str(), finish), ("human", "model", &json!("stop")));
        assert_eq!(*answer, answer_to(text));
        said.push(text);
    }
    said.sort_unstable();
    said.dedup();
    assert_eq!(said.len(), count + 1, "{said:?}");
    home.is_sound();
    assert!(home.spools().is_empty());
    assert_eq!((home.instances(), sockets(&home)), (0, 0));
}

#[test]
fn two_at_once_in_one_conversation_each_get_their_answer() {
    all_at_once(2);
}

#[test]
fn ten_at_once_in_one_conversation_each_get_their_answer() {
    all_at_once(10);
}

#[test]
fn two_that_begin_a_conversation_at_once_begin_one() {
    let mock = Mock::start(Duration::from_millis(2), || {});
    let home = Home::new();
    home.ok(&["tree", "list"]);
    let model = mock.model(&home);
    let say = |text: &str| home.command(&["--model", model, "chat", "-m", text]).spawn().unwrap();
    for child in ["Tale", "Tale"].map(say) {
        let ran = ended(child);
        assert_eq!((ran.status.code(), ran.stdout.as_str()), (Some(0), "You said: Tale\n"), "{ran:?}");
    }
    let sessions = home.json(&["sessions", "list"]);
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "{sessions}");
    assert_eq!(conversation(&home).len(), 4);
    home.is_sound();
}

#[test]
fn a_sleeper_keeps_the_session_until_its_lease_is_past_and_is_refused_when_it_wakes() {
    let mock = Mock::start(Duration::from_millis(15), || {});
    let (home, model) = begun(&mock);
    let words: String = (1..=30).map(|number| format!(" word{number}")).collect();
    let sleeper = home.command(&["--model", model, "chat", "-m", &words]).spawn().unwrap();
    let heard = || home.spools().values().map(|spool| text_of(spool).0).next().unwrap_or_default();
    until("the first words", || !heard().is_empty());
    suspend(&sleeper);
    let before = conversation(&home);

    let refused = home.run(&["--model", model, "chat", "-m", "anybody there?"]);
    refused.refused(6, &["busy", &format!("process {} (drawloom chat)", sleeper.id()), "nothing was sent"]);
    assert_eq!(conversation(&home), before);
    assert_eq!(home.spools().len(), 1, "what a living process holds was taken");

    // Half a minute goes by.
    let store = rusqlite::Connection::open(home.database()).unwrap();
    let expired = store.execute("UPDATE leases SET expires = 0", []).unwrap();
    assert!(expired >= 1);
    drop(store);
    assert_eq!(home.ok(&["--model", model, "chat", "-m", "and now?"]), "You said: and now?\n");
    let after = conversation(&home);
    assert_eq!(after.len(), before.len() + 2);

    resume(&sleeper);
    let woken = ended(sleeper);
    woken.refused(6, &["took the session over", "is refused", "kept"]);
    assert_eq!(conversation(&home), after, "the conversation stays where it went");
    let answers = home.answers();
    let kept: Vec<&(String, Value)> = answers.iter().filter(|(text, _)| *text == answer_to(&words)).collect();
    assert_eq!(kept.len(), 1, "what it had received is not kept: {answers:?}");
    assert!(home.spools().is_empty());
    home.is_sound();
}

#[test]
fn fifty_commands_that_come_and_go_leave_a_turn_alone() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let mock = Mock::start(Duration::from_millis(1), move || {
        // The first answer, and the end of the test, are waited for by nobody.
        let _ = wait.lock().unwrap().recv();
    });
    let home = Home::new();
    home.ok(&["tree", "list"]);
    let model = mock.model(&home);
    go.send(()).unwrap();
    home.ok(&["--model", model, "chat", "-m", "Tale"]);
    let turn = home.command(&["--model", model, "chat", "-m", "How are you?"]).spawn().unwrap();
    until("the middle of the answer", || {
        home.spools().values().any(|spool| text_of(spool).0.contains("are"))
    });
    let commands: [&[&str]; 4] =
        [&["tree", "list"], &["sessions", "list"], &["tree", "verify", "Tale"], &["search", "Tale"]];
    for number in 0..50 {
        let mut command = home.command(commands[number % commands.len()]).spawn().unwrap();
        let is_killed = number % 3 == 0;
        if is_killed {
            std::thread::sleep(Duration::from_millis(number as u64 % 20));
            command.kill().unwrap();
        }
        let ran = ended(command);
        assert!(is_killed || ran.status.success(), "{ran:?}");
    }
    assert_eq!(home.spools().len(), 1, "what a living process holds was taken");
    go.send(()).unwrap();
    let turn = ended(turn);
    assert_eq!((turn.status.code(), turn.stdout.as_str()), (Some(0), "You said: How are you?\n"), "{turn:?}");
    assert_eq!(home.answers(), ["Tale", "How are you?"].map(|text| (answer_to(text), json!("stop"))));
    assert_eq!(conversation(&home).len(), 4);
    home.is_sound();
}

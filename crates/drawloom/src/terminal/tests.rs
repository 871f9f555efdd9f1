use std::io::Read as _;
use std::os::fd::OwnedFd;

use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Action, tcflow};

use commands::frontend::TypedAnswer;

use super::asking::{AT_ONCE, YES_OR_NO, answer_of, ask, choices, is_yes};
use super::*;

struct Terminal {
    person: File,
    program: File,
}

fn terminal() -> Terminal {
    let person: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap();
    let program = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    Terminal { person: person.into(), program: program.into() }
}

/// What the program shows up to its prompt.
fn shown(person: &mut File) -> String {
    let mut shown = Vec::new();
    while !shown.ends_with(b"[y/N] ") {
        let mut byte = [0];
        person.read_exact(&mut byte).unwrap();
        shown.push(byte[0]);
    }
    String::from_utf8(shown).unwrap()
}

/// Asks, with `ahead` typed before and `after` typed once the question can be read.
fn answer(ahead: &str, after: &str) -> (bool, String) {
    let Terminal { mut person, program } = terminal();
    person.write_all(ahead.as_bytes()).unwrap();
    if !ahead.is_empty() {
        // The terminal takes input over in its own time: wait until a reader would see it.
        let mut ready = [PollFd::new(&program, PollFlags::IN)];
        poll(&mut ready, None).unwrap();
    }
    let asked = std::thread::spawn(move || {
        let line = ask(&program, ("delete \u{1b}[2Jit\u{202e}?", YES_OR_NO), &|| false).unwrap();
        (is_yes(&line.unwrap_or_default()), program)
    });
    let seen = shown(&mut person);
    person.write_all(after.as_bytes()).unwrap();
    (asked.join().unwrap().0, seen)
}

#[test]
fn s26_what_is_typed_while_a_question_cannot_be_shown_is_no_answer() {
    let Terminal { mut person, program } = terminal();
    tcflow(&program, Action::OOff).unwrap();
    let resumes = program.try_clone().unwrap();
    let asked = std::thread::spawn(move || ask(&program, ("delete it?", YES_OR_NO), &|| false).unwrap());
    // Longer than a question takes to be shown.
    let begins = Instant::now();
    while begins.elapsed() < 2 * AT_ONCE {
        person.write_all(b"y\n").unwrap();
        let pause = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        poll(&mut [PollFd::new(&person, PollFlags::PRI)], Some(&pause)).unwrap();
    }
    tcflow(&resumes, Action::OOn).unwrap();
    let mut seen = shown(&mut person);
    seen += &shown(&mut person);
    assert_eq!(seen.matches("delete it?").count(), 2, "{seen}");
    person.write_all(b"n\n").unwrap();
    assert_eq!(asked.join().unwrap().as_deref(), Some("n\n"));
}

#[test]
fn s26_what_was_typed_ahead_is_no_answer() {
    assert!(!answer("y\n", "n\n").0);
}

#[test]
fn only_yes_is_yes() {
    assert!(answer("", "y\n").0 && answer("", "YES\n").0 && answer("", "/approve\n").0);
    assert!(!answer("", "\n").0 && !answer("", "/deny\n").0 && !answer("", "yesterday\n").0);
}

#[test]
fn what_is_neither_yes_nor_no_decides_nothing() {
    // The id of a question, none of whose characters is a digit.
    let answer = |line| answer_of(line, &["yes".to_owned()], &|word| word == "kbvq");
    assert_eq!(answer("Yes\n"), Some(TypedAnswer::yes(None)));
    for (no, reason) in [
        ("\n", None),
        ("n\n", None),
        ("NO\n", None),
        ("no not today\n", Some("not today")),
        ("/deny\n", None),
        ("/deny not today\n", Some("not today")),
        ("/deny kbvx\n", Some("kbvx")),
    ] {
        assert_eq!(answer(no), Some(TypedAnswer::no(reason.map(str::to_owned))), "{no:?}");
    }
    for neither in [
        "/status\n",
        "hmm\n",
        "nono\n",
        // It is about no call of a tool.
        "s\n",
        "always\n",
        "yesterday\n",
        "/deny k3vq not today\n",
        "/deny kbvq not today\n",
        "/deny kbvq\n",
    ] {
        assert_eq!(answer(neither), None, "{neither:?}");
    }
}

#[test]
fn an_answer_holds_as_long_as_the_question_lets_it() {
    let words = |lasting: &[&str]| -> Vec<String> {
        [&["once"], lasting].concat().into_iter().map(str::to_owned).collect()
    };
    let all = words(&["session", "always"]);
    assert_eq!(choices(&all), "[y once, s session, a always, N no, or n and why] ");
    for (line, word) in [("s\n", "session"), ("Always\n", "always"), ("/approve session\n", "session")] {
        assert_eq!(answer_of(line, &all, &|_| false).and_then(|answer| answer.word), Some(word), "{line:?}");
    }
    assert_eq!(answer_of("y\n", &all, &|_| false), Some(TypedAnswer::yes(None)));
    let some = words(&["session"]);
    assert_eq!(choices(&some), "[y once, s session, N no, or n and why] ");
    assert_eq!(answer_of("a\n", &some, &|_| false), None);
    assert_eq!(choices(&words(&[])), "[y/N, or n and why] ");
}

#[test]
fn a_question_hides_nothing_and_moves_nothing() {
    let (_, seen) = answer("", "n\n");
    assert!(seen.ends_with("delete ␛[2Jit\\u{202e}? [y/N] "), "{seen:?}");
}

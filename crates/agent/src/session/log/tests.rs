use loom::Finish;
use model::TokenUsage;

use super::*;
use crate::event::{CommittedNode, TurnOutcome};

fn delta(node: NodeId, offset: u64, text: &str) -> SessionEvent {
    SessionEvent::Delta { node, offset, text: text.to_owned() }
}

fn thinking(node: NodeId, text: &str) -> SessionEvent {
    SessionEvent::Thinking { node, text: text.to_owned() }
}

fn committed(id: NodeId, text: &str) -> SessionEvent {
    let node = CommittedNode {
        id,
        short_id: "a".to_owned(),
        text: text.into(),
        media: Vec::new(),
        finish: Finish::Stop,
    };
    SessionEvent::Committed { node, usage: None }
}

fn held(log: &EventLog, from: u64) -> Vec<Numbered> {
    let mut stream = log.stream(from);
    std::iter::from_fn(|| stream.next_held()).collect()
}

#[tokio::test]
async fn events_are_read_from_any_number_as_they_were() {
    let log = EventLog::default();
    let (node, other) = (NodeId::from_bytes([1; 16]), NodeId::from_bytes([2; 16]));
    let all = [
        thinking(node, "hm"),
        thinking(node, ", yes"),
        delta(node, 0, "Grü"),
        delta(node, 4, "ße"),
        delta(other, 0, "beside"),
        delta(node, 7, "!"),
        SessionEvent::Idle,
        // Not where the one before it ended.
        delta(node, 9, "?"),
        committed(node, "Grüße!"),
    ];
    all.iter().for_each(|event| log.push(event.clone()));
    log.close();
    for from in 0..=10 {
        let mut stream = log.stream(from);
        let mut read = Vec::new();
        while let Some(Numbered { n, event }) = stream.next().await {
            assert_eq!(event, all[n as usize - 1]);
            read.push(n);
        }
        assert_eq!(read, (from.max(1)..=9).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_held_is_the_turn_under_way_and_what_a_reader_has_not_read() {
    let log = EventLog::default();
    let mut slow = log.stream(1);
    let turn = |text: &str| {
        log.begin_turn();
        (0..10).for_each(|number| log.push(SessionEvent::notice(format!("{text} {number}"))));
    };
    turn("one");
    turn("two");
    assert_eq!(held(&log, 1).len(), 20, "one of its readers has read nothing");
    for n in 1..=15 {
        assert_eq!(slow.next_held().unwrap().n, n);
    }
    turn("three");
    assert_eq!(held(&log, 1).iter().map(|held| held.n).collect::<Vec<_>>(), (16..=30).collect::<Vec<_>>());
    drop(slow);
    turn("four");
    let told = held(&log, 1);
    assert_eq!((told[0].n, told.len()), (31, 10), "older turns stand in the tree");
    assert_eq!(told[0].event, SessionEvent::notice("four 0"));
}

/// A session of days, in which nobody reads, and one turn that never ends.
#[test]
fn what_is_held_is_bounded_whatever_is_said() {
    let (log, node) = (EventLog::default(), NodeId::from_bytes([1; 16]));
    for _ in 0..1_000 {
        log.begin_turn();
        (0..100).for_each(|at| log.push(delta(node, at * 4, "word")));
        log.push(SessionEvent::Idle);
    }
    assert!(log.state().bytes < 4_096, "{}", log.state().bytes);
    let _stuck = log.stream(1);
    let word = "word".repeat(1 << 10);
    for at in 0..3 * MAX_BYTES / word.len() {
        log.push(delta(node, (at * word.len()) as u64, &word));
    }
    let state = log.state();
    assert!(state.bytes <= MAX_BYTES, "{}", state.bytes);
    assert!(state.bytes > MAX_BYTES / 2, "no more than has to");
    assert_eq!(state.bytes, state.held.iter().map(Held::bytes).sum::<usize>());
    let runs: usize = state.held.iter().map(|held| (held.end() - held.n) as usize).sum();
    drop(state);
    assert_eq!(held(&log, 0).len(), runs);
}

#[test]
fn a_delta_takes_little_more_than_its_text() {
    let (log, node) = (EventLog::default(), NodeId::from_bytes([1; 16]));
    (0..1_000_000).for_each(|at| log.push(delta(node, at, "a")));
    assert!(log.state().bytes < 6_000_000, "{}", log.state().bytes);
    assert_eq!(held(&log, 999_990).len(), 11);
}

fn finished(key: &SayId, id: NodeId, text: &str) -> SessionEvent {
    let SessionEvent::Committed { node, .. } = committed(id, text) else { panic!("committed") };
    let outcome = TurnOutcome {
        said: id,
        tree: loom::TreeId::from_bytes([1; 16]),
        answer: Some(node),
        manifest: None,
        usage: None,
        estimated_usage: TokenUsage::default(),
        model: String::new(),
        cost: None,
        reusable: None,
        share: 0.0,
        measured: false,
        error: None,
        elsewhere: false,
    };
    SessionEvent::Finished { says: vec![key.clone()], outcome: Box::new(outcome) }
}

#[test]
fn who_waits_for_an_answer_hears_of_it_however_long_it_is() {
    let (log, node) = (EventLog::default(), NodeId::from_bytes([1; 16]));
    let key = SayId::from(ulid::Ulid::from_bytes([1; 16]));
    let (mut waits, mut looks_on) = (log.stream_of(key.clone()), log.stream(1));
    let text = "x".repeat(9 << 20);
    log.push(committed(node, &text));
    log.push(finished(&key, node, &text));
    log.push(SessionEvent::Idle);
    let numbers = |stream: &mut EventStream| {
        std::iter::from_fn(|| stream.next_held()).map(|found| found.n).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&mut looks_on), [3], "the control: it is left behind");
    assert_eq!(numbers(&mut waits), [2, 3]);
    // Who keeps up hears of it once.
    let mut keeps_up = log.stream_of(key.clone());
    let rejected = SessionEvent::Rejected { say: key, error: crate::error::AgentError::Closed.into() };
    log.push(rejected);
    assert_eq!(numbers(&mut keeps_up), [4]);
}

#[test]
fn the_text_of_an_answer_is_counted_once_and_for_as_long_as_it_is_held() {
    let (log, node) = (EventLog::default(), NodeId::from_bytes([1; 16]));
    let key = SayId::from(ulid::Ulid::from_bytes([1; 16]));
    let _stuck = log.stream(1);
    let text = "x".repeat(MAX_BYTES * 3 / 4);
    log.push(committed(node, &text));
    log.push(finished(&key, node, &text));
    assert_eq!(held(&log, 1).len(), 2, "one text");
    let long = "y".repeat(MAX_BYTES / 2);
    log.push(SessionEvent::notice(long));
    assert_eq!(held(&log, 1).iter().map(|held| held.n).collect::<Vec<_>>(), [3]);
    let state = log.state();
    assert_eq!(state.bytes, state.held.iter().map(Held::bytes).sum::<usize>());
}

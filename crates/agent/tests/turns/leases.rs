//! One turn of a session at a time, whichever process it is in.

use std::time::Duration;

use drawloom_agent::session::TurnInput;
use drawloom_agent::{AgentError, LEASE};
use loom::{Finish, Role};
use store::{Fence, GenerationState, LeaseOwner, StoreError};

use crate::support::{FIRST, Gated, House, REST, WHO, config, script};

const PAST: i64 = LEASE.as_millis() as i64 + 1;

/// By the clock of the runtime: the session is waited for a while.
#[tokio::test(start_paused = true)]
async fn a_session_that_a_living_process_holds_is_busy_and_says_whose_it_is() {
    let house = House::new();
    let (holder, other) = (house.process("up"), house.process("chat"));
    let (model, mut requests) = Gated::gated();
    let (turned, ()) = tokio::join!(holder.say(&model, "hello"), async {
        let asked = requests.recv().await.unwrap();
        let refused = other.say(&script(r#"{"text": "no"}"#), "me too").await;
        let refused = refused.unwrap_err();
        let AgentError::Busy { instance, by } = refused.as_ref() else { panic!("{refused:?}") };
        assert_eq!(*instance, Some(holder.runtime.instance));
        assert_eq!(*by, format!("process {} (drawloom up)", std::process::id()));
        assert_eq!(other.texts().await, ["hello"], "nothing was written");
        drop(asked);
    });
    assert!(turned.is_ok());
    let turned = other.say(&script(r#"{"text": "yes"}"#), "me too").await.unwrap();
    assert!(turned.reply.unwrap().error.is_none());
    assert_eq!(other.texts().await, ["hello", "one two three", "me too", "yes"]);
}

/// By the clock of the runtime, as above.
#[tokio::test(start_paused = true)]
async fn a_session_whose_process_is_dead_is_free_at_once() {
    let house = House::new();
    let (dead, other) = (house.process("chat"), house.process("chat"));
    let entered = other.enter().await;
    let holder = LeaseOwner::new(format!("{}/1", dead.runtime.instance));
    let lease = entered.session.lease();
    dead.runtime.store.acquire_lease(&WHO, &lease, &holder, LEASE).await.unwrap();
    let model = script("{\"text\": \"yes\"}\n{\"text\": \"yes\"}");
    let refused = other.say(&model, "hello").await.unwrap_err();
    assert!(matches!(refused.as_ref(), AgentError::Busy { .. }), "{refused:?}");
    dead.die();
    assert!(other.say(&model, "hello").await.unwrap().reply.unwrap().error.is_none());
}

#[tokio::test]
async fn a_sleeper_is_refused_when_it_wakes_and_what_it_had_received_becomes_a_node_beside() {
    let house = House::new();
    let (sleeper, other) = (house.process("chat"), house.process("chat"));
    let (model, mut requests) = Gated::gated();
    let (turned, ()) = tokio::join!(sleeper.say(&model, "hello"), async {
        let asked = requests.recv().await.unwrap();
        // It is not heard of for longer than its lease lasts.
        house.pass(PAST);
        let turned = other.say(&script(r#"{"text": "I am here"}"#), "anybody?").await.unwrap();
        assert!(turned.reply.unwrap().error.is_none());
        assert_eq!(other.spools(), 1);
        assert_eq!(other.runtime.recover(&()).await.unwrap(), 0, "nothing is taken while it lives");
        drop(asked);
    });
    let refused = turned.unwrap().reply;
    let Some(AgentError::TakenOver { by }) = refused.as_ref().err().map(AsRef::as_ref) else {
        panic!("{refused:?}")
    };
    assert!(!by.is_empty());
    let path = ["hello", "anybody?", "I am here"];
    assert_eq!(other.texts().await, path, "the tip stays where the conversation went");
    let reserved = sleeper.generations().await.first().unwrap().row.reserved.clone();
    let (text, _) = other.node(*reserved.first().unwrap()).await.unwrap();
    assert_eq!(text, format!("{FIRST}{REST}"));
    assert_eq!(other.spools(), 0);
    sleeper.die();
    assert_eq!(other.runtime.recover(&()).await.unwrap(), 0, "once");
}

/// By both clocks: when a sleeper wakes, its renewal is due at once.
#[tokio::test(start_paused = true)]
async fn who_lost_the_session_stops_what_they_asked_for_and_keeps_what_came_beside() {
    let house = House::new();
    let (sleeper, other) = (house.process("chat"), house.process("chat"));
    let (model, mut requests) = Gated::gated();
    let (turned, held) = tokio::join!(sleeper.say(&model, "hello"), async {
        let asked = requests.recv().await.unwrap();
        house.pass(PAST);
        let turned = other.say(&script(r#"{"text": "I am here"}"#), "anybody?").await.unwrap();
        assert!(turned.reply.unwrap().error.is_none());
        // The model never goes on by itself.
        asked
    });
    let error = turned.unwrap().reply.unwrap_err();
    assert!(matches!(error.as_ref(), AgentError::TakenOver { .. }), "{error:?}");
    assert_eq!(other.texts().await, ["hello", "anybody?", "I am here"]);
    let reserved = sleeper.generations().await.first().unwrap().row.reserved.clone();
    let (text, finish) = other.node(*reserved.first().unwrap()).await.unwrap();
    assert_eq!((text.as_str(), finish), (FIRST, Some(Finish::Interrupted("taken_over".to_owned()))));
    assert_eq!(other.spools(), 0);
    drop(held);
}

/// A process may leave between the row of a request and its spool, for one by a second Ctrl-C.
#[tokio::test]
async fn a_request_that_was_never_sent_is_ended_even_if_its_process_left_in_order() {
    let house = House::new();
    let (left, other) = (house.process("chat"), house.process("chat"));
    let (model, mut requests) = Gated::gated();
    let talk = left.talk(config(&model), TurnInput::text("hello")).await;
    let asked = requests.recv().await;
    talk.dies().await;
    std::mem::forget(asked);
    left.forget_spools();
    assert_eq!(other.runtime.recover(&()).await.unwrap(), 0);
    let states = async || other.generations().await.into_iter().map(|found| found.state).collect::<Vec<_>>();
    assert_eq!(states().await, [GenerationState::Started], "the control: its process lives");
    // It leaves nothing that says that it was there.
    left.die();
    assert_eq!(other.runtime.recover(&()).await.unwrap(), 0);
    assert_eq!(states().await, [GenerationState::Cancelled]);
    assert_eq!(other.texts().await, ["hello"], "no node is made of nothing");
}

#[tokio::test]
async fn what_a_turn_that_is_dropped_had_received_is_recovered_where_it_was_asked() {
    let house = House::new();
    let (dropped, other) = (house.process("chat"), house.process("chat"));
    let (model, mut requests) = Gated::gated();
    let talk = dropped.talk(config(&model), TurnInput::text("hello")).await;
    let asked = requests.recv().await;
    talk.dies().await;
    std::mem::forget(asked);
    dropped.die();
    assert_eq!(other.runtime.recover(&()).await.unwrap(), 1);
    let path = other.path().await;
    let [(_, _, _), (role, text, finish)] = path.as_slice() else { panic!("{path:?}") };
    assert_eq!((role, text.as_str()), (&Role::Assistant, FIRST));
    assert!(matches!(finish, Some(Finish::Interrupted(_))), "{finish:?}");
    assert_eq!(other.runtime.recover(&()).await.unwrap(), 0, "once");
}

#[tokio::test]
async fn a_turn_that_is_dropped_gives_its_session_back() {
    let house = House::new();
    let process = house.process("chat");
    let (model, mut requests) = Gated::gated();
    let talk = process.talk(config(&model), TurnInput::text("hello")).await;
    let asked = requests.recv().await;
    talk.dies().await;
    std::mem::forget(asked);
    let lease = process.enter().await.session.lease();
    let held = async || process.runtime.store.lease(&WHO, &lease).await.unwrap().unwrap().holder.is_some();
    while held().await {
        tokio::task::yield_now().await;
    }
    assert!(process.say(&script(r#"{"text": "yes"}"#), "again").await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn turns_of_one_process_never_overlap() {
    let house = House::new();
    let process = std::sync::Arc::new(house.process("up"));
    process.enter().await;
    let lines: Vec<String> = (0..40).map(|n| format!(r#"{{"text": "answer {n}"}}"#)).collect();
    let model = script(&lines.join("\n"));
    let mut turns = tokio::task::JoinSet::new();
    for number in 0..8 {
        let (process, model) = (std::sync::Arc::clone(&process), model.clone());
        turns.spawn(async move {
            let talk = process.talk(config(&model), TurnInput::text(format!("question {number}"))).await;
            assert!(talk.finished().await.unwrap().reply.unwrap().error.is_none());
        });
    }
    turns.join_all().await;
    let path = process.path().await;
    assert_eq!(path.len(), 16);
    for pair in path.chunks(2) {
        let [(Role::User, question, _), (Role::Assistant, answer, _)] = pair else { panic!("{path:?}") };
        assert!(question.starts_with("question") && answer.starts_with("answer"), "{pair:?}");
    }
}

/// By both clocks: the runtime's, by which it is renewed, and the wall's, by which it ends.
#[tokio::test(start_paused = true)]
async fn a_turn_that_takes_long_keeps_its_session() {
    let house = House::new();
    let (holder, other) = (house.process("chat"), house.process("chat"));
    let (model, mut requests) = Gated::gated();
    let entered = holder.enter().await;
    let store = &holder.runtime.store;
    let expires = async || store.lease(&WHO, &entered.session.lease()).await.unwrap().unwrap().expires;
    let (turned, ()) = tokio::join!(holder.say(&model, "hello"), async {
        let asked = requests.recv().await.unwrap();
        for _ in 0..20 {
            let before = expires().await;
            house.pass(10_000);
            tokio::time::sleep(Duration::from_millis(10_001)).await;
            assert!(expires().await > before, "it was not renewed");
        }
        let refused = other.say(&script(r#"{"text": "no"}"#), "me too").await;
        let refused = refused.unwrap_err();
        assert!(matches!(refused.as_ref(), AgentError::Busy { .. }), "{refused:?}");
        drop(asked);
    });
    assert!(turned.unwrap().reply.unwrap().error.is_none());
}

/// The control: without the guard, the lease alone keeps nobody from writing.
#[tokio::test]
async fn a_write_under_a_lease_that_is_past_is_fenced_by_its_number_alone() {
    let house = House::new();
    let process = house.process("chat");
    let entered = process.enter().await;
    let name = entered.session.lease();
    let store = &process.runtime.store;
    let take = async |who: &str| store.acquire_lease(&WHO, &name, &LeaseOwner::new(who), LEASE).await;
    let first = take("a").await.unwrap();
    assert!(matches!(take("b").await, Err(StoreError::Held { .. })));
    house.pass(PAST);
    let with = |fence| store::AttachedWrites {
        guards: vec![store::Guard { lease: name.clone(), fence }],
        ..store::AttachedWrites::nothing()
    };
    // Nobody took it: the one who slept goes on.
    assert!(process.runtime.apply_rows(&WHO, entered.tree, with(first)).await.is_ok());
    let second = take("b").await.unwrap();
    let refused = process.runtime.apply_rows(&WHO, entered.tree, with(first)).await;
    assert!(matches!(refused, Err(AgentError::Store(StoreError::Fenced { .. }))), "{refused:?}");
    assert!(process.runtime.apply_rows(&WHO, entered.tree, with(second)).await.is_ok());
    assert!(process.runtime.apply_rows(&WHO, entered.tree, store::AttachedWrites::nothing()).await.is_ok());
}

/// A full disk takes no lease back: what the process keeps of itself keeps it from nothing.
#[tokio::test(start_paused = true)]
async fn a_lease_that_the_store_did_not_take_back_is_given_back_by_the_next_turn() {
    let house = House::new();
    let process = house.process("chat");
    let runtime = &process.runtime;
    let lease = process.enter().await.session.lease();
    let holder = LeaseOwner::new(format!("{}/1", runtime.instance));
    let fence = runtime.store.acquire_lease(&WHO, &lease, &holder, LEASE).await.unwrap();
    let model = script("{\"text\": \"yes\"}\n{\"text\": \"yes\"}");
    let refused = process.say(&model, "hello").await.unwrap_err();
    assert!(matches!(refused.as_ref(), AgentError::Busy { .. }), "the control: {refused:?}");
    runtime.unreleased.lock().unwrap().push((lease, fence));
    assert!(process.say(&model, "hello").await.unwrap().reply.unwrap().error.is_none());
    assert!(runtime.unreleased.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_there_any_more_is_given_back() {
    let house = House::new();
    let process = house.process("chat");
    let lease = process.enter().await.session.lease();
    let unreleased = || process.runtime.unreleased.lock().unwrap();
    unreleased().push((lease, Fence(1)));
    let model = script(r#"{"text": "yes"}"#);
    assert!(process.say(&model, "hello").await.unwrap().reply.unwrap().error.is_none());
    assert!(unreleased().is_empty());
}

//! What is said in this process while a turn runs: it joins the same turn (spec: agent §1 *Steering*).

use std::sync::Arc;

use drawloom_agent::session::{SessionOperation, TreeChoice, TurnInput, spawn};
use drawloom_agent::{AgentError, SessionEvent};
use loom::Finish;
use model::Cancel;

use crate::support::{FIRST, Gated, House, WHO, config, script};

/// By the clock of the runtime: another process waits a while for the session.
#[tokio::test(start_paused = true)]
async fn what_is_said_in_mid_turn_is_answered_by_the_next_call_of_the_same_turn() {
    let house = House::new();
    let (process, other) = (house.process("chat"), house.process("chat"));
    let entered = process.enter().await;
    let (model, mut requests) = Gated::gated();
    let lease = async || process.runtime.store.lease(&WHO, &entered.session.lease()).await.unwrap().unwrap();
    let talk = process.talk(config(&model), TurnInput::text("one")).await;
    let asked = requests.recv().await.unwrap();
    for text in ["two", "three"] {
        talk.steer(text).await;
    }
    assert_eq!(process.texts().await, ["one"], "not before the call that runs has ended");
    let fence = lease().await.fence;
    drop(asked);
    let asked = requests.recv().await.unwrap();
    assert!(asked.body.contains("two") && asked.body.contains("three"), "{}", asked.body);
    let refused = other.say(&script(r#"{"text": "no"}"#), "between").await.unwrap_err();
    assert!(matches!(refused.as_ref(), AgentError::Busy { .. }), "one lease over all: {refused:?}");
    assert_eq!(lease().await.fence, fence);
    drop(asked);
    let ended = talk.until_it_ends(Cancel::never()).await;
    assert!(ended.iter().all(|(_, turned)| turned.as_ref().unwrap().reply.as_ref().unwrap().error.is_none()));
    let texts: Vec<_> = ended.into_iter().map(|(texts, _)| texts).collect();
    assert_eq!(texts, [vec!["one"], vec!["two", "three"]], "lines are answered together");
    assert_eq!(process.texts().await, ["one", "one two three", "two", "three", "one two three"]);
}

#[tokio::test]
async fn what_joined_a_turn_that_is_stopped_is_said_in_the_next_one_and_what_came_is_kept() {
    let house = House::new();
    let process = house.process("chat");
    let (model, mut requests) = Gated::gated();
    let talk = process.talk(config(&model), TurnInput::text("one")).await;
    let held = requests.recv().await.unwrap();
    talk.steer("two").await;
    talk.session.send(SessionOperation::Stop).await.unwrap();
    drop(requests.recv().await.unwrap());
    drop(held);
    let ended = talk.until_it_ends(Cancel::never()).await;
    let [(_, first), (texts, second)] = ended.try_into().unwrap();
    assert!(first.unwrap().reply.unwrap().error.is_some());
    assert_eq!(texts, ["two"]);
    assert!(second.unwrap().reply.unwrap().error.is_none(), "the stop was for the turn before");
    let path = process.path().await;
    let [(_, _, None), (_, text, Some(Finish::Interrupted(_))), _, _] = path.as_slice() else {
        panic!("{path:?}")
    };
    assert_eq!(text, FIRST);
}

#[tokio::test]
async fn one_message_too_many_is_rejected_and_names_the_limit() {
    for most in [3, drawloom_agent::WaitingBounds::default().messages] {
        one_too_many_is_rejected(most).await;
    }
}

async fn one_too_many_is_rejected(most: usize) {
    let house = House::new();
    let mut process = house.process("chat");
    process.runtime.waiting.messages = most;
    let (model, mut requests) = Gated::gated();
    let talk = process.talk(config(&model), TurnInput::text("one")).await;
    let asked = requests.recv().await.unwrap();
    for number in 0..=most {
        talk.steer(&number.to_string()).await;
    }
    // The task takes them in while its model waits.
    let mut events = talk.session.events(1);
    let rejected = loop {
        if let SessionEvent::Rejected { error, .. } = events.next().await.unwrap().event {
            break error;
        }
    };
    let why = format!("{most} messages wait for this session already (limits.steering)");
    assert!(rejected.to_string().contains(&why), "{rejected}");
    drop(asked);
    drop(requests.recv().await.unwrap());
    let ended = talk.until_it_ends(Cancel::never()).await;
    assert_eq!(ended.last().unwrap().0.len(), most);
}

#[tokio::test]
async fn a_turn_asks_a_model_forty_times_and_the_rest_is_another_turn() {
    let house = House::new();
    let process = house.process("chat");
    let entered = process.enter().await;
    let (model, mut requests) = Gated::gated();
    let fence =
        async || process.runtime.store.lease(&WHO, &entered.session.lease()).await.unwrap().unwrap().fence;
    let talk = process.talk(config(&model), TurnInput::text("0")).await;
    let mut fences = Vec::new();
    for number in 1..=40 {
        let asked = requests.recv().await.unwrap();
        fences.push(fence().await);
        talk.steer(&number.to_string()).await;
        drop(asked);
    }
    let asked = requests.recv().await.unwrap();
    assert!(fences.iter().all(|of_call| *of_call == fences[0]));
    assert_ne!(fence().await, fences[0], "the forty-first call is under a lease of its own");
    drop(asked);
    assert_eq!(talk.until_it_ends(Cancel::never()).await.len(), 41);
}

#[tokio::test]
async fn a_task_that_is_dropped_gives_its_session_back_and_ends_its_events() {
    let house = House::new();
    let process = house.process("chat");
    let entered = process.enter().await;
    let (gated, mut requests) = Gated::gated();
    let talk = process.talk(config(&gated), TurnInput::text("one")).await;
    let held = requests.recv().await.unwrap();
    talk.steer("two").await;
    let mut events = talk.session.events(1);
    talk.session.abort();
    while events.next().await.is_some() {}
    drop(held);
    let lease = async || process.runtime.store.lease(&WHO, &entered.session.lease()).await.unwrap();
    while lease().await.is_some_and(|lease| lease.holder.is_some()) {
        tokio::task::yield_now().await;
    }
    let model = script(r#"{"text": "yes", "loop": true}"#);
    assert!(process.say(&model, "four").await.is_ok(), "a new task");
}

#[tokio::test]
async fn what_is_said_twice_under_one_key_is_said_once() {
    let house = House::new();
    let process = house.process("chat");
    let model = script(r#"{"text": "yes", "loop": true}"#);
    let entered = process.enter().await;
    let session = spawn(&process.runtime, &process.sessions, &entered.session);
    let key: drawloom_agent::SayId = process.runtime.new_id().unwrap();
    let mut events = session.events(1);
    for _ in 0..2 {
        let say = crate::support::said(key.clone(), Arc::new(config(&model)), TurnInput::text("once"));
        session.send(SessionOperation::Say(Box::new(say))).await.unwrap();
    }
    session.close().await;
    let mut accepted = 0;
    while let Some(event) = events.next().await {
        accepted += usize::from(matches!(event.event, SessionEvent::Accepted { .. }));
    }
    assert_eq!(accepted, 1);
    assert_eq!(process.texts().await, ["once", "yes"]);
}

#[tokio::test]
async fn what_names_its_tree_is_said_there_wherever_the_session_goes_on() {
    let house = House::new();
    let process = house.process("chat");
    let model = script(r#"{"text": "yes", "loop": true}"#);
    let entered = process.enter().await;
    let session = spawn(&process.runtime, &process.sessions, &entered.session);
    let mut trees = Vec::new();
    for tree in [TreeChoice::New { title: "another's".to_owned() }, TreeChoice::Named(entered.tree)] {
        let key: drawloom_agent::SayId = process.runtime.new_id().unwrap();
        let mut events = session.events_of(key.clone());
        let say = crate::support::said(key, Arc::new(config(&model)), TurnInput::text("mine"));
        let say = drawloom_agent::session::Say { tree, ..say };
        session.send(SessionOperation::Say(Box::new(say))).await.unwrap();
        let tree = loop {
            if let SessionEvent::Finished { outcome, .. } = events.next().await.unwrap().event {
                break outcome.tree;
            }
        };
        trees.push(tree);
    }
    assert_ne!(trees[0], entered.tree);
    assert_eq!(trees[1], entered.tree);
}

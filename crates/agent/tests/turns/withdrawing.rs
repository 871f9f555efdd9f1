//! What waits for a session that another process holds: given back where a turn ends with its answer, or withdrawn.

use std::sync::Arc;

use drawloom_agent::session::{EventLog, Say, SessionOperation, TurnInput};
use drawloom_agent::steering::{HandedOver, OutgoingSay, hand_over};
use drawloom_agent::{AgentError, SayId, SessionEvent};
use loom::plan::NewText;
use loom::{NodeId, Role};
use model::Cancel;
use serde_json::json;

use crate::handing::{Fake, Said, outgoing, take, tell};
use crate::support::{Gated, House, WHO, config, follow_up, said};

/// A call that ends with its own answer does not answer others: what they said they say themselves.
#[tokio::test]
async fn a_turn_that_hands_back_answers_nobody_else() {
    let house = House::new();
    let (owner, other) = (house.process("chat"), house.process("chat"));
    let _listener = owner.listen();
    let (model, mut requests) = Gated::gated();
    let entered = owner.enter().await;
    let session = drawloom_agent::session::spawn(&owner.runtime, &owner.sessions, &entered.session);
    // The control: a turn of a conversation takes in what others say.
    for (hands_back, answers) in [(true, &other), (false, &owner)] {
        let mut events = session.events(session.next_event());
        let key: SayId = owner.runtime.new_id().unwrap();
        let say = Say { hands_back, ..said(key, Arc::new(config(&model)), TurnInput::text("one?")) };
        session.send(SessionOperation::Say(Box::new(say))).await.unwrap();
        let asked = requests.recv().await.unwrap();
        let (answered, ()) = tokio::join!(other.say(&model, "two?"), async {
            while !matches!(events.next().await.unwrap().event, SessionEvent::Queued { .. }) {}
            drop(asked);
            let asked = requests.recv().await.unwrap();
            let lease = owner.runtime.store.lease(&WHO, &entered.session.lease()).await.unwrap().unwrap();
            let holder = lease.holder.unwrap().to_string();
            assert!(holder.starts_with(&answers.runtime.instance.to_string()), "{hands_back}: {holder}");
            drop(asked);
        });
        assert!(answered.unwrap().reply.unwrap().error.is_none());
    }
    let turn = ["one?", "one two three", "two?", "one two three"];
    assert_eq!(owner.texts().await, [turn, turn].concat());
}

#[tokio::test]
async fn what_waits_for_another_process_is_withdrawn_and_is_not_said() {
    let house = House::new();
    let (owner, other) = (house.process("chat"), house.process("chat"));
    let _listener = owner.listen();
    let (model, mut requests) = Gated::gated();
    owner.enter().await;
    let (stop, cancel) = Cancel::new();
    let (turned, withdrawn) = tokio::join!(owner.say(&model, "one?"), async {
        let asked = requests.recv().await.unwrap();
        let session = other.enter().await.session;
        let waiting = drawloom_agent::session::spawn(&other.runtime, &other.sessions, &session);
        let mut events = waiting.events(waiting.next_event());
        let withdrawn = tokio::join!(other.say_until(&model, "two?", cancel), async {
            // Once it is told for whom it waits.
            let notice = loop {
                if let SessionEvent::Notice { text } = events.next().await.unwrap().event {
                    break text;
                }
            };
            assert!(notice.starts_with("waiting for process "), "{notice}");
            stop.cancel();
        });
        drop(asked);
        withdrawn.0
    });
    assert!(turned.is_ok());
    assert!(matches!(withdrawn.unwrap_err().as_ref(), AgentError::Withdrawn { .. }));
    assert_eq!(owner.texts().await, ["one?", "one two three"]);
    assert_eq!(other.heard.notes.lock().unwrap().len(), 1, "it is told once");
}

/// The session becomes free between two looks at it.
#[tokio::test]
async fn what_was_withdrawn_is_not_said_once_the_session_is_free() {
    let house = House::new();
    let other = house.process("chat");
    // It listens to nobody.
    let owner = Fake::new(&house, &other).await;
    let (model, _requests) = Gated::gated();
    let (stop, cancel) = Cancel::new();
    let waiting = drawloom_agent::session::spawn(&other.runtime, &other.sessions, &owner.entered.session);
    let mut events = waiting.events(waiting.next_event());
    let (withdrawn, ()) = tokio::join!(other.say_until(&model, "private", cancel), async {
        while !matches!(events.next().await.unwrap().event, SessionEvent::Notice { .. }) {}
        stop.cancel();
        owner.dies();
    });
    assert!(matches!(withdrawn.unwrap_err().as_ref(), AgentError::Withdrawn { .. }));
    assert!(other.texts().await.is_empty());
}

#[tokio::test]
async fn a_line_that_was_read_is_heard_before_anybody_stops_to_wait() {
    let house = House::new();
    let other = house.process("chat");
    let owner = Fake::new(&house, &other).await;
    let listener = owner.bind();
    let (log, (stop, cancel)) = (EventLog::default(), Cancel::new());
    let mut heard = log.stream(1);
    let (key, node) = (other.runtime.new_id::<SayId>().unwrap(), NodeId::from_bytes([7; 16]));
    let texts = [NewText::owner("hello", Some(Role::User))];
    let (model, _) = Gated::gated();
    let entered = owner.entered.clone();
    let place = (&entered.session, &entered.view, config(&model).identity(entered.tree));
    let say = OutgoingSay { stop: cancel, ..outgoing(&key, &texts) };
    let (handed, _stream) = tokio::join!(hand_over(&other.runtime, &WHO, place, say, &log), async {
        let (mut stream, _) = tokio::task::spawn_blocking(move || take(&listener)).await.unwrap();
        tell(
            &mut stream,
            &json!({"reply": "happened", "n": 1, "event": "accepted", "say": key, "node": node,
                "text": "hello", "remote": true}),
        );
        while !matches!(heard.next().await.unwrap().event, SessionEvent::Accepted { .. }) {}
        tell(&mut stream, &json!({"reply": "happened", "n": 2, "event": "notice", "text": "the last"}));
        stop.cancel();
        stream
    });
    assert_eq!(handed.unwrap(), HandedOver::Left { said: Some(node) });
    let last = std::iter::from_fn(|| heard.next_held()).last().map(|heard| heard.event);
    assert_eq!(last, Some(SessionEvent::notice("the last".to_owned())));
}

/// What is a node already is kept, and whoever stops to wait is told which it is. One who is gone has not withdrawn it.
#[tokio::test]
async fn what_is_withdrawn_too_late_or_by_nobody_is_said() {
    let house = House::new();
    let (owner, other) = (house.process("chat"), house.process("chat"));
    let _listener = owner.listen();
    let (model, mut requests) = Gated::gated();
    let entered = owner.enter().await;
    let (stop, cancel) = Cancel::new();
    let (turned, kept) = tokio::join!(owner.say(&model, "one?"), async {
        let asked = requests.recv().await.unwrap();
        drop(Said::by_hand(&owner, &entered, "two?").await);
        let session = drawloom_agent::session::spawn(&owner.runtime, &owner.sessions, &entered.session);
        let mut events = session.events(session.next_event());
        let kept = tokio::join!(other.say_until(&model, "three?", cancel), async {
            while !matches!(events.next().await.unwrap().event, SessionEvent::Queued { .. }) {}
            drop(asked);
            drop(requests.recv().await.unwrap());
            let asked = requests.recv().await.unwrap();
            assert!(asked.body.contains("three?"), "{}", asked.body);
            stop.cancel();
            asked
        });
        drop(kept.1);
        kept.0
    });
    assert!(turned.is_ok());
    let error = kept.unwrap_err();
    let AgentError::LeftThere { said, .. } = error.as_ref() else { panic!("{error}") };
    assert_eq!(owner.node(*said).await.unwrap().0, "three?");
    assert!(owner.texts().await.contains(&"two?".to_owned()));
}

#[tokio::test]
async fn what_was_given_back_may_come_again_for_a_later_turn() {
    let house = House::new();
    let (owner, other) = (house.process("chat"), house.process("chat"));
    let _listener = owner.listen();
    let (model, mut requests) = Gated::gated();
    let entered = owner.enter().await;
    let session = drawloom_agent::session::spawn(&owner.runtime, &owner.sessions, &entered.session);
    let mut events = session.events(session.next_event());
    let talk = owner.talk(config(&model), TurnInput::text("one?")).await;
    let asked = requests.recv().await.unwrap();
    let (answered, _talk) = tokio::join!(other.say(&model, "two?"), async {
        while !matches!(events.next().await.unwrap().event, SessionEvent::Queued { .. }) {}
        // It begins as soon as the first is stopped, before anybody else can.
        let three: SayId = owner.runtime.new_id().unwrap();
        let text = follow_up(three.clone(), "three?");
        talk.session.send(SessionOperation::Queue(text)).await.unwrap();
        talk.session.send(SessionOperation::Stop).await.unwrap();
        let next = requests.recv().await.unwrap();
        assert!(next.body.contains("three?"), "{}", next.body);
        let is_two = |event| matches!(event, SessionEvent::Queued { say, .. } if say != three);
        while !is_two(events.next().await.unwrap().event) {}
        drop((asked, next));
        drop(requests.recv().await.unwrap());
        talk
    });
    assert!(answered.unwrap().reply.unwrap().error.is_none());
}

//! Author and trust of what is written come from who asks, whichever way it comes (spec: security §17).

use std::sync::Arc;

use drawloom_agent::session::{EventLog, FollowUp, Say, SessionOperation, TurnInput, spawn};
use drawloom_agent::steering::{HandedOver, OutgoingSay, hand_over};
use drawloom_agent::{SayId, SessionEvent, TurnConfig};
use loom::plan::NewText;
use loom::{Author, AuthorKind, Role, Trust};
use model::Model;
use store::Principal;

use crate::handing::outgoing;
use crate::support::{FIRST, Gated, House, Process, WHO, config, follow_up, said, script};

/// Who asks through a token.
fn token() -> Principal {
    Principal::Token { name: "t".to_owned(), scope: store::Scope::Full }
}

/// Author and trust of every text of the conversation.
async fn written(process: &Process) -> Vec<(String, Author, Trust)> {
    let tree = process.enter().await.tree;
    let rows = process.runtime.read(&WHO, tree, |rows| rows.nodes_in_order(None, 100)).await.unwrap();
    let text = rows.into_iter().filter(|row| !row.node.text().is_empty());
    text.map(|row| (row.node.text().into_owned(), row.node.author, row.node.trust)).collect()
}

fn key(process: &Process) -> SayId {
    process.runtime.new_id().unwrap()
}

#[tokio::test]
async fn what_is_said_and_steered_is_by_whoever_says_it() {
    let house = House::new();
    let process = house.process("chat");
    let (model, mut asked) = Gated::gated();
    let by = token();
    let session = spawn(&process.runtime, &process.sessions, &process.enter().await.session);
    let mut events = session.events(session.next_event());
    // The input says that the owner typed it: it is who asks that counts.
    let input = TurnInput::text("one");
    let say = said(key(&process), Arc::new(config(&model)), input);
    let say = Say { author: by.author(), trust: by.trust(), ..say };
    session.send(SessionOperation::Say(Box::new(say))).await.unwrap();
    let held = asked.recv().await.unwrap();
    let steered = follow_up(key(&process), "two");
    let control = SessionOperation::Steer(steered.clone());
    session.send(control).await.unwrap();
    let steered = FollowUp { key: key(&process), text: "three".to_owned(), ..steered };
    let steered = FollowUp { author: by.author(), trust: by.trust(), ..steered };
    session.send(SessionOperation::Steer(steered)).await.unwrap();
    let mut queued = 0;
    while queued < 2 {
        queued += usize::from(matches!(events.next().await.unwrap().event, SessionEvent::Queued { .. }));
    }
    drop(held);
    drop(asked.recv().await.unwrap());
    while !matches!(events.next().await.unwrap().event, SessionEvent::Idle) {}
    let agent = Author { kind: AuthorKind::Model, id: "main".to_owned(), profile: None };
    let answer = format!("{FIRST}{}", crate::support::REST);
    let expected = [
        ("one", by.author(), Trust::Outside),
        (&answer, agent.clone(), Trust::Outside),
        ("two", Author::owner(), Trust::Owner),
        ("three", by.author(), Trust::Outside),
        (&answer, agent, Trust::Outside),
    ];
    assert_eq!(written(&process).await, expected.map(|(text, by, trust)| (text.to_owned(), by, trust)));
}

#[tokio::test]
async fn what_another_process_says_is_by_whoever_said_it_there() {
    let house = House::new();
    let (owner, other) = (house.process("chat"), house.process("chat"));
    let _listener = owner.listen();
    let (model, mut asked) = Gated::gated();
    let (turned, handed) = tokio::join!(owner.say(&model, "one"), async {
        let held = asked.recv().await.unwrap();
        let entered = other.enter().await;
        let (by, key, log) = (token().author(), key(&other), EventLog::default());
        let place = (&entered.session, &entered.view, config(&model).identity(entered.tree));
        let texts = [NewText::owner("two", Some(Role::User))];
        let say = OutgoingSay { author: by, trust: Trust::Outside, ..outgoing(&key, &texts) };
        let mut heard = log.stream(1);
        let handing = hand_over(&other.runtime, &WHO, place, say, &log);
        let letting_go = async {
            while !matches!(heard.next().await.unwrap().event, SessionEvent::Accepted { .. }) {}
            drop(asked.recv().await.unwrap());
        };
        let session = spawn(&owner.runtime, &owner.sessions, &entered.session);
        let mut events = session.events(session.next_event());
        let waiting = async {
            while !matches!(events.next().await.unwrap().event, SessionEvent::Queued { .. }) {}
            drop(held);
        };
        tokio::join!(handing, letting_go, waiting).0
    });
    assert!(turned.is_ok());
    assert_eq!(handed.unwrap(), HandedOver::Answered);
    let texts = written(&owner).await;
    let two = texts.into_iter().find(|(text, ..)| text == "two").unwrap();
    assert_eq!((two.1, two.2), (token().author(), Trust::Outside));
}

#[tokio::test]
async fn what_a_dead_process_had_received_is_by_the_agent_that_was_asked() {
    let house = House::new();
    let (dead, next) = (house.process("chat"), house.process("chat"));
    let (model, mut asked) = Gated::gated();
    let config = TurnConfig { agent: "helper".to_owned(), ..config(&model) };
    let talk = dead.talk(config, TurnInput::text("hello")).await;
    let held = asked.recv().await.unwrap();
    talk.dies().await;
    drop(held);
    dead.die();
    assert_eq!(next.runtime.recover(&()).await.unwrap(), 1);
    let texts = written(&next).await;
    let (_, author, trust) = texts.into_iter().find(|(text, ..)| text == FIRST).unwrap();
    assert_eq!((author.kind, author.id.as_str(), trust), (AuthorKind::Model, "helper", Trust::Agent));
}

/// The log of the tree names who asked for the answer, and the node the agent.
#[tokio::test]
async fn an_operation_is_of_whoever_asked_for_it() {
    let process = House::new().process("chat");
    let by = token();
    let model: Arc<dyn Model> = script(r#"{"text": "Yes."}"#);
    let session = spawn(&process.runtime, &process.sessions, &process.enter().await.session);
    let mut events = session.events(session.next_event());
    let say = said(key(&process), Arc::new(config(&model)), TurnInput::text("one"));
    let say = Say { author: by.author(), trust: by.trust(), ..say };
    session.send(SessionOperation::Say(Box::new(say))).await.unwrap();
    while !matches!(events.next().await.unwrap().event, SessionEvent::Idle) {}
    let tree = process.enter().await.tree;
    let log = process.runtime.read(&WHO, tree, |rows| rows.operations(loom::Seq(0), 100)).await.unwrap();
    let agents: Vec<&str> = log.iter().map(|record| record.op.agent.as_str()).collect();
    assert_eq!(agents.last_chunk(), Some(&["token/t", "token/t"]), "{agents:?}");
}

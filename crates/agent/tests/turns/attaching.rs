//! Clients that come late, from another process: they hear the turn under way from any number, and say what they say
//! with files and under any position.

use std::sync::Arc;
use std::time::Duration;

use drawloom_agent::questions::{AnswerText, Decision};
use drawloom_agent::session::{EventLog, Handle, Numbered, SessionOperation, TurnInput, spawn};
use drawloom_agent::steering::{AttachedEvents, HandedOver, OutgoingSay, attach, hand_over};
use drawloom_agent::{AgentError, Budget, OpenedSession, SayId, SessionEvent, SpendLimiter};
use loom::path::ViewOverrides;
use loom::plan::NewText;
use loom::render::{tip, window};
use loom::{Block, Digest, NodeId, PositionId, Role, Trust, ViewName};
use model::{Cancel, Money};
use serde_json::json;
use store::MAX_OPEN_QUESTIONS;

use crate::handing::{Fake, outgoing, take, tell};
use crate::support::{FIRST, Gated, House, Process, REST, WHO, config, said};

async fn attached(process: &Process, entered: &OpenedSession, from: u64) -> AttachedEvents {
    attach(&process.runtime, &WHO, &entered.session, (None, from)).await.unwrap().unwrap()
}

/// Everything until nothing is under way.
async fn all(mut events: AttachedEvents) -> Vec<Numbered> {
    let mut heard = Vec::new();
    while let Some(event) = events.next().await {
        heard.push(event);
    }
    heard
}

fn told(session: &Handle) -> Vec<Numbered> {
    let mut stream = session.events(1);
    std::iter::from_fn(|| stream.next_held()).collect()
}

#[tokio::test]
async fn a_client_that_comes_late_hears_the_turn_under_way_from_any_number() {
    let house = House::new();
    let (owner, other) = (house.process("chat"), house.process("sessions"));
    let _listener = owner.listen();
    let (model, mut requests) = Gated::gated();
    let entered = owner.enter().await;
    let talk = owner.talk(config(&model), TurnInput::text("one")).await;
    let asked = requests.recv().await.unwrap();
    let mut late = attached(&other, &entered, 1).await;
    let task = late.task();
    let mut heard = Vec::new();
    while heard.len() < 3 {
        heard.push(late.next().await.unwrap());
    }
    assert!(matches!(&heard[0].event, SessionEvent::Accepted { text, .. } if text == "one"), "{heard:?}");
    assert!(matches!(&heard[1].event, SessionEvent::Started { .. }));
    assert!(matches!(&heard[2].event, SessionEvent::Delta { offset: 0, text, .. } if text == FIRST));
    // It goes away in the middle, and comes again where it was.
    drop(late);
    let next = heard.last().unwrap().n + 1;
    let wish = (Some(task), next);
    let again = attach(&other.runtime, &WHO, &entered.session, wish).await.unwrap().unwrap();
    assert_eq!(again.from(), next);
    let whole = attached(&other, &entered, 0).await;
    drop(asked);
    heard.extend(all(again).await);
    let numbers: Vec<u64> = heard.iter().map(|heard| heard.n).collect();
    assert_eq!(numbers, (1..=heard.len() as u64).collect::<Vec<_>>());
    assert!(matches!(&heard[3].event, SessionEvent::Delta { text, .. } if text == REST), "{heard:?}");
    assert_eq!(heard.last().unwrap().event, SessionEvent::Idle);
    let session = talk.session.clone();
    talk.until_it_ends(Cancel::never()).await;
    assert_eq!(heard, told(&session), "the same as in the process that answers");
    assert_eq!(all(whole).await, heard);
    // Nothing is under way: there is nobody to ask.
    assert!(attach(&other.runtime, &WHO, &entered.session, (None, 1)).await.unwrap().is_none());
}

/// The numbers of another task are others.
#[tokio::test]
async fn events_of_a_task_that_has_ended_are_not_told_as_those_of_the_next() {
    let house = House::new();
    let (owner, other) = (house.process("chat"), house.process("sessions"));
    let _listener = owner.listen();
    let entered = owner.enter().await;
    let mut tasks = Vec::new();
    for _ in 0..2 {
        let (model, mut requests) = Gated::gated();
        let talk = owner.talk(config(&model), TurnInput::text("one")).await;
        let asked = requests.recv().await.unwrap();
        tasks.push(attached(&other, &entered, 1).await.task());
        let wish = (Some(tasks[0]), 1);
        let first = attach(&other.runtime, &WHO, &entered.session, wish).await.unwrap();
        assert_eq!(first.is_some(), tasks.len() == 1);
        drop(asked);
        let session = talk.session.clone();
        talk.until_it_ends(Cancel::never()).await;
        session.close().await;
    }
    assert_ne!(tasks[0], tasks[1]);
}

/// The process that answers gave up writing to one that did not read for a while.
#[tokio::test]
async fn what_is_handed_over_is_heard_to_its_end_though_the_connection_breaks() {
    let house = House::new();
    let other = house.process("chat");
    let owner = Fake::new(&house, &other).await;
    let listener = owner.bind();
    let entered = owner.entered.clone();
    let (node, answer) = (NodeId::from_bytes([7; 16]), NodeId::from_bytes([8; 16]));
    let tree = entered.tree;
    let played = std::thread::spawn(move || {
        let (mut stream, message) = take(&listener);
        let key = message["key"].clone();
        let happened = |n: u64, event: serde_json::Value| {
            let mut line = event;
            line["reply"] = "happened".into();
            line["n"] = n.into();
            line
        };
        tell(&mut stream, &json!({"reply": "attached", "task": 4, "from": 3}));
        tell(&mut stream, &json!({"reply": "waits"}));
        let accepted =
            json!({"event": "accepted", "say": key, "node": node, "text": "hello", "remote": true});
        tell(&mut stream, &happened(3, accepted));
        let delta =
            |at: u64, text: &str| json!({"event": "delta", "node": answer, "offset": at, "text": text});
        tell(&mut stream, &happened(4, delta(0, "one")));
        drop(stream);
        let (mut stream, wish) = take(&listener);
        tell(&mut stream, &json!({"reply": "attached", "task": 4, "from": 5}));
        tell(&mut stream, &happened(5, delta(3, " two")));
        let outcome = json!({
            "said": node, "tree": tree, "answer": null, "manifest": null, "usage": null, "reusable": null,
            "share": 0.0, "measured": false, "error": null,
        });
        tell(&mut stream, &happened(6, json!({"event": "finished", "says": [key], "outcome": outcome})));
        wish
    });
    let log = EventLog::default();
    let mut heard = log.stream(1);
    let (model, _) = Gated::gated();
    let key: SayId = other.runtime.new_id().unwrap();
    let texts = [NewText::owner("hello", Some(Role::User))];
    let place = (&entered.session, &entered.view, config(&model).identity(tree));
    let handed = hand_over(&other.runtime, &WHO, place, outgoing(&key, &texts), &log).await;
    assert_eq!(handed.unwrap(), HandedOver::Answered);
    let wish = played.join().unwrap();
    assert_eq!(wish, json!({"ask": "follow", "session": entered.session, "task": 4, "from": 5}));
    let mut text = String::new();
    let kinds: Vec<&str> = std::iter::from_fn(|| heard.next_held())
        .map(|heard| match heard.event {
            SessionEvent::Accepted { .. } => "accepted",
            SessionEvent::Delta { text: more, .. } => {
                text.push_str(&more);
                "delta"
            }
            SessionEvent::Finished { .. } => "finished",
            _ => "another",
        })
        .collect();
    assert_eq!(kinds, ["accepted", "delta", "delta", "finished"]);
    assert_eq!(text, "one two");
}

/// Everything on the path: text, trust and what is shown.
async fn path(process: &Process) -> Vec<(String, Trust, Vec<Block>, PositionId)> {
    let tree = process.enter().await.tree;
    let read = process.runtime.read(&WHO, tree, |rows| {
        let view = ViewName::default();
        let path = ViewOverrides::read(rows, &view, tip(rows, &view)?)?;
        window(rows, &view, &path, None, 1_000)
    });
    let passages = read.await.unwrap().into_iter();
    let all = passages.filter(|passage| !passage.text.is_empty());
    all.map(|passage| {
        let node = passage.row.node;
        let blocks = node.content.iter().filter(|block| !matches!(block, Block::Text { .. }));
        (passage.text, node.trust, blocks.cloned().collect(), node.position)
    })
    .collect()
}

/// What is handed over, while a turn runs in `owner`: what comes of it.
async fn handed_in_mid_turn(
    (owner, other): (&Process, &Process),
    texts: &[NewText],
    reply_to: Option<PositionId>,
) -> Result<HandedOver, AgentError> {
    let _listener = owner.listen();
    let (model, mut requests) = Gated::gated();
    let entered = owner.enter().await;
    let talk = owner.talk(config(&model), TurnInput::text("one")).await;
    let asked = requests.recv().await.unwrap();
    let mut events = talk.session.events(talk.session.next_event());
    let (session, key): (_, SayId) = (talk.session.clone(), other.runtime.new_id().unwrap());
    let place = (&entered.session, &entered.view, config(&model).identity(entered.tree));
    let log = EventLog::default();
    let say = OutgoingSay { reply_to, ..outgoing(&key, texts) };
    let (handed, ()) = tokio::join!(hand_over(&other.runtime, &WHO, place, say, &log), async {
        while !matches!(events.next().await.unwrap().event, SessionEvent::Queued { .. }) {}
        drop(asked);
        // What is refused asks no model.
        loop {
            tokio::select! {
                asked = requests.recv() => drop(asked),
                event = events.next() => if event.unwrap().event == SessionEvent::Idle {
                    return;
                },
            }
        }
    });
    session.close().await;
    handed
}

#[tokio::test]
async fn files_and_pictures_are_handed_over_with_their_trust_as_one_step() {
    let house = House::new();
    let (owner, other) = (house.process("chat"), house.process("chat"));
    let bytes = b"the bytes of a picture".to_vec();
    let picture = Block::Image { blob: Digest::of(&bytes), mime: "image/png".to_owned() };
    drop(other.runtime.keep_blobs(vec![bytes.clone()]).await.unwrap());
    let file = |content| NewText { content, trust: Trust::Outside, ..NewText::owner("", Some(Role::User)) };
    let texts = [
        file(vec![Block::text("File a.txt:")]),
        file(vec![Block::text("Picture b.png:"), picture.clone()]),
        NewText::owner("what is this?", Some(Role::User)),
    ];
    let handed = handed_in_mid_turn((&owner, &other), &texts, None).await.unwrap();
    assert_eq!(handed, HandedOver::Answered);
    let said: Vec<_> =
        path(&owner).await.into_iter().map(|(text, trust, shows, _)| (text, trust, shows)).collect();
    let whole = format!("{FIRST}{REST}");
    let expected = [
        ("one".to_owned(), Trust::Owner, vec![]),
        (whole.clone(), Trust::Agent, vec![]),
        ("File a.txt:".to_owned(), Trust::Outside, vec![]),
        ("Picture b.png:".to_owned(), Trust::Outside, vec![picture]),
        ("what is this?".to_owned(), Trust::Owner, vec![]),
    ];
    assert_eq!(said[..5], expected);
    // What was sent along is taken back with what was said and answered.
    let entered = owner.enter().await;
    let undo = loom::Op::Undo;
    let with = store::AttachedWrites::nothing();
    owner.runtime.change(&WHO, entered.tree, &entered.view, undo, with).await.unwrap();
    assert_eq!(owner.texts().await, ["one", &whole]);
}

#[tokio::test]
async fn a_picture_that_is_not_there_any_more_is_not_shown_by_a_node() {
    let house = House::new();
    let (owner, other) = (house.process("chat"), house.process("chat"));
    let picture = Block::Image { blob: Digest::of(b"removed"), mime: "image/png".to_owned() };
    let texts = [NewText { content: vec![picture], ..NewText::owner("", Some(Role::User)) }];
    let handed = handed_in_mid_turn((&owner, &other), &texts, None).await;
    assert!(
        matches!(&handed, Err(AgentError::Remote(error)) if error.message.contains("removed meanwhile")),
        "{handed:?}"
    );
    assert_eq!(owner.texts().await.len(), 2, "nothing of it is said");
}

#[tokio::test]
async fn a_refusal_over_the_socket_is_the_one_that_is_given_here() {
    let house = House::new();
    let (owner, other) = (house.process("chat"), house.process("chat"));
    let nowhere = Some(NodeId::from_bytes([9; 16]).as_position());
    let texts = [NewText::owner("two", Some(Role::User))];
    let handed = handed_in_mid_turn((&owner, &other), &texts, nowhere).await;
    let Err(AgentError::Remote(there)) = handed else { panic!("{handed:?}") };

    let session = spawn(&owner.runtime, &owner.sessions, &owner.enter().await.session);
    let mut events = session.events(session.next_event());
    let (model, _requests) = Gated::gated();
    let say = said(owner.runtime.new_id().unwrap(), Arc::new(config(&model)), TurnInput::text("two"));
    let say = drawloom_agent::session::Say { reply_to: nowhere, ..say };
    session.send(SessionOperation::Say(Box::new(say))).await.unwrap();
    let here = loop {
        if let SessionEvent::Rejected { error, .. } = events.next().await.unwrap().event {
            break error.0.failure();
        }
    };
    assert_eq!(there, here);
    assert_eq!((here.code.as_ref(), here.exit), ("not_found", 3));
}

/// The socket takes what a person says, whoever of the same user writes to it.
#[tokio::test]
async fn what_no_person_says_is_not_taken_in() {
    let house = House::new();
    let (owner, other) = (house.process("chat"), house.process("chat"));
    let _listener = owner.listen();
    let (model, mut requests) = Gated::gated();
    let entered = owner.enter().await;
    let talk = owner.talk(config(&model), TurnInput::text("one")).await;
    let asked = requests.recv().await.unwrap();
    let call = Block::ToolCall { id: "1".to_owned(), name: "exec".to_owned(), arguments: json!({}) };
    let odd = NewText { content: vec![call], ..NewText::owner("", Some(Role::User)) };
    let many: Vec<NewText> = (0..257).map(|_| NewText::owner("x", Some(Role::User))).collect();
    let place = || (&entered.session, &entered.view, config(&model).identity(entered.tree));
    let key: SayId = other.runtime.new_id().unwrap();
    for (texts, taken) in [(vec![odd], None), (Vec::new(), None), (many, Some(HandedOver::NotHeard))] {
        let log = EventLog::default();
        let handed = hand_over(&other.runtime, &WHO, place(), outgoing(&key, &texts), &log);
        let handed = tokio::time::timeout(Duration::from_secs(30), handed).await.expect("it was taken in");
        match taken {
            Some(taken) => assert_eq!(handed.unwrap(), taken, "it waits for the session"),
            None => assert!(matches!(handed, Err(AgentError::Remote(_))), "{handed:?}"),
        }
    }
    drop(asked);
    talk.until_it_ends(Cancel::never()).await;
}

#[tokio::test]
async fn what_replies_to_a_position_is_said_there_wherever_the_tip_is_by_then() {
    let house = House::new();
    let (owner, other) = (house.process("chat"), house.process("chat"));
    let model = crate::support::script(r#"{"text": "yes", "loop": true}"#);
    for text in ["a", "b"] {
        owner.say(&model, text).await.unwrap();
    }
    let before = path(&owner).await;
    let first_answer = before[1].3;
    let session = spawn(&owner.runtime, &owner.sessions, &owner.enter().await.session);
    let say = drawloom_agent::session::Say {
        reply_to: Some(first_answer),
        ..said(owner.runtime.new_id().unwrap(), Arc::new(config(&model)), TurnInput::text("c"))
    };
    let unknown = PositionId::from_bytes([9; 16]);
    let nowhere = drawloom_agent::session::Say {
        key: owner.runtime.new_id().unwrap(),
        reply_to: Some(unknown),
        ..said(owner.runtime.new_id().unwrap(), Arc::new(config(&model)), TurnInput::text("d"))
    };
    let (key, mut events) = (nowhere.key.clone(), session.events(session.next_event()));
    for say in [say, nowhere] {
        session.send(SessionOperation::Say(Box::new(say))).await.unwrap();
    }
    session.close().await;
    let mut rejected = Vec::new();
    while let Some(event) = events.next().await {
        if let SessionEvent::Rejected { say, .. } = event.event {
            rejected.push(say);
        }
    }
    assert_eq!(rejected, [key], "a position that is not there");
    assert_eq!(
        owner.texts().await,
        ["a", "yes", "c", "yes"],
        "a branch; what was said after it stays beside"
    );
    // Over the socket too, and from the branch back to the line it left.
    let texts = [NewText::owner("e", Some(Role::User))];
    let handed = handed_in_mid_turn((&owner, &other), &texts, Some(before[3].3)).await.unwrap();
    assert_eq!(handed, HandedOver::Answered);
    let whole = format!("{FIRST}{REST}");
    assert_eq!(owner.texts().await, ["a", "yes", "b", "yes", "e", &whole]);
}

/// An answer is written to the question's row; whoever is attached hears of both.
#[tokio::test]
async fn a_client_that_is_attached_hears_of_a_question_and_of_its_answer() {
    let house = House::new();
    let (mut owner, other) = (house.process("chat"), house.process("approve"));
    let [turn, day, month] = [600.0, 1.0, 600.0].map(Money::from_dollars);
    owner.runtime.spend = Arc::new(SpendLimiter::new(Budget { turn, day, month }));
    let _listener = owner.listen();
    let (model, mut requests) = Gated::dear();
    let entered = owner.enter().await;
    let session = spawn(&owner.runtime, &owner.sessions, &entered.session);
    let say = said(owner.runtime.new_id().unwrap(), Arc::new(config(&model)), TurnInput::text("one"));
    let say =
        drawloom_agent::session::Say { answer_within: Some(drawloom_agent::questions::DEADLINE), ..say };
    let mut own = session.events(1);
    session.send(SessionOperation::Say(Box::new(say))).await.unwrap();
    while !matches!(own.next().await.unwrap().event, SessionEvent::Question { .. }) {}
    let mut late = attached(&other, &entered, 1).await;
    let question = loop {
        if let SessionEvent::Question { question } = late.next().await.unwrap().event {
            break question;
        }
    };
    let yes = Decision::Approved;
    other.runtime.answer_question(&WHO, question.id, yes, AnswerText::default()).await.unwrap();
    let answered = late.next().await.unwrap().event;
    assert!(
        matches!(answered, SessionEvent::Answered { question: id, decision, .. } if id == question.id && decision == yes),
        "{answered:?}"
    );
    drop(requests.recv().await.unwrap());
    assert!(all(late).await.len() > 2, "it goes on");
    session.close().await;
}

#[tokio::test]
async fn one_question_too_many_of_a_session_ends_the_turn_and_names_the_limit() {
    let house = House::new();
    let mut owner = house.process("chat");
    let [turn, day, month] = [600.0, 1.0, 600.0].map(Money::from_dollars);
    owner.runtime.spend = Arc::new(SpendLimiter::new(Budget { turn, day, month }));
    let entered = owner.enter().await;
    let claim = store::Claim {
        owner: store::LeaseOwner::new(owner.runtime.instance.to_string()),
        fence: store::Fence(1),
    };
    for _ in 0..MAX_OPEN_QUESTIONS {
        let question = store::NewQuestion {
            id: owner.runtime.new_id().unwrap(),
            tree: entered.tree,
            kind: "budget".to_owned(),
            asker: "a test".to_owned(),
            payload: "go on?".to_owned(),
            answers: vec!["yes".to_owned()],
            form: None,
            ttl: Duration::from_secs(600),
            claim: claim.clone(),
            guards: Vec::new(),
            most: MAX_OPEN_QUESTIONS,
        };
        owner.runtime.store.ask(&WHO, question).await.unwrap();
    }
    let (model, _requests) = Gated::dear();
    let session = spawn(&owner.runtime, &owner.sessions, &entered.session);
    let say = said(owner.runtime.new_id().unwrap(), Arc::new(config(&model)), TurnInput::text("one"));
    let say =
        drawloom_agent::session::Say { answer_within: Some(drawloom_agent::questions::DEADLINE), ..say };
    let mut events = session.events(1);
    session.send(SessionOperation::Say(Box::new(say))).await.unwrap();
    let mut error = None;
    while let Some(event) = events.next().await {
        match event.event {
            SessionEvent::Idle => break,
            SessionEvent::Finished { outcome, .. } => error = outcome.error,
            SessionEvent::Question { .. } => panic!("it was asked"),
            _ => {}
        }
    }
    let error = error.unwrap().0;
    assert!(matches!(error.as_ref(), AgentError::Limit(_)), "{error:?}");
    let why = "20 questions of this session wait for an answer already (limits.questions)";
    assert!(error.to_string().contains(why), "{error}");
}

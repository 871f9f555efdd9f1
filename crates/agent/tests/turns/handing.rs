//! What is said to a session that another process holds: once, in order, whoever dies or sleeps.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drawloom_agent::questions::{AnswerText, Decision};
use drawloom_agent::session::{EventLog, TurnIdentity};
use drawloom_agent::steering::{HandedOver, OutgoingSay, hand_over};
use drawloom_agent::{
    AgentError, Budget, LEASE, OpenedSession, SayId, SessionEvent, SpendLimiter, TurnConfig,
};
use loom::plan::NewText;
use loom::{Author, NodeId, Op, Role, Trust};
use model::{Cancel, Money};
use serde_json::{Value, json};
use store::home::HomeDir;
use store::{AttachedWrites, Fence, LeaseOwner};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};

use crate::support::{Gated, House, Process, WHO, config, script};

const PAST: i64 = LEASE.as_millis() as i64 + 1;

#[tokio::test]
async fn what_is_said_in_the_middle_of_a_turn_is_answered_after_it_in_order() {
    let house = House::new();
    let owner = house.process("chat");
    let _listener = owner.listen();
    let (model, mut requests) = Gated::gated();
    let entered = owner.enter().await;
    let (turned, ()) = tokio::join!(owner.say(&model, "0?"), async {
        let asked = requests.recv().await.unwrap();
        let mut said = Vec::new();
        for number in 1..=10 {
            said.push(Said::by_hand(&owner, &entered, &format!("{number}?")).await);
        }
        drop(asked);
        for said in &mut said {
            // It waits behind those before it.
            drop(requests.recv().await.unwrap());
            let node = said.hears("keeping").await["node"].clone();
            assert_eq!(said.happens("accepted").await["node"], node);
            said.happens("started").await;
            for text in ["one two", " three"] {
                assert_eq!(said.happens("delta").await["text"], text);
            }
            let answer = said.happens("committed").await["node"]["id"].clone();
            let outcome = said.happens("finished").await["outcome"].clone();
            assert_eq!((&outcome["said"], &outcome["answer"]["text"]), (&node, &json!("one two three")));
            assert_eq!(outcome["answer"]["id"], answer);
        }
    });
    assert!(turned.unwrap().reply.unwrap().error.is_none());
    let texts = owner.texts().await;
    let expected: Vec<String> =
        (0..=10).flat_map(|number| [format!("{number}?"), "one two three".to_owned()]).collect();
    assert_eq!(texts, expected);
}

#[tokio::test]
async fn what_waits_when_the_turn_is_stopped_is_given_back_unsaid() {
    let house = House::new();
    let owner = house.process("chat");
    let _listener = owner.listen();
    let (model, mut requests) = Gated::gated();
    let entered = owner.enter().await;
    let (stop, cancel) = Cancel::new();
    let (turned, mut said) = tokio::join!(owner.say_until(&model, "one?", cancel), async {
        let asked = requests.recv().await.unwrap();
        let said = Said::by_hand(&owner, &entered, "two?").await;
        stop.cancel();
        (said, asked)
    });
    assert!(turned.is_ok());
    said.0.hears("closed").await;
    assert!(!owner.texts().await.contains(&"two?".to_owned()));
}

/// Another process says the same text by its own model, or with other settings: it is for no turn of this kind.
#[tokio::test]
async fn what_is_meant_for_another_model_tree_or_settings_is_not_taken_in() {
    let house = House::new();
    let (owner, other) = (house.process("chat"), house.process("chat"));
    let _listener = owner.listen();
    let (model, mut requests) = Gated::gated();
    let entered = owner.enter().await;
    let (turned, ()) = tokio::join!(owner.say(&model, "one?"), async {
        let asked = requests.recv().await.unwrap();
        let mine = config(&model).identity(entered.tree);
        let near = script(r#"{"text": "near"}"#);
        let warmer = TurnConfig {
            params: model::Params { temperature: Some(0.1), ..config(&model).params },
            ..config(&model)
        };
        let thoughtful = TurnConfig {
            params: model::Params { thinking: Some(model::Thinking::High), ..config(&model).params },
            ..config(&model)
        };
        let elsewhere = TurnIdentity { tree: loom::TreeId::from_bytes([9; 16]), ..mine.clone() };
        let remote = TurnIdentity { place: model::ModelPlace::Remote, ..mine.clone() };
        for differs in [
            config(&near).identity(entered.tree),
            warmer.identity(entered.tree),
            thoughtful.identity(entered.tree),
            elsewhere,
            remote,
        ] {
            let handed = handed_as(&other, &entered, differs, "two?");
            let handed =
                tokio::time::timeout(Duration::from_secs(30), handed).await.expect("it was taken in");
            assert_eq!(handed.unwrap(), HandedOver::Differs);
        }
        let session = drawloom_agent::session::spawn(&owner.runtime, &owner.sessions, &entered.session);
        let mut events = session.events(session.next_event());
        let control = tokio::spawn({
            let (runtime, entered) = (other.runtime.clone(), entered.clone());
            async move {
                let key: SayId = runtime.new_id().unwrap();
                let log = EventLog::default();
                let place = (&entered.session, &entered.view, mine);
                let texts = [NewText::owner("two?", Some(Role::User))];
                hand_over(&runtime, &WHO, place, outgoing(&key, &texts), &log).await
            }
        });
        while !matches!(events.next().await.unwrap().event, SessionEvent::Queued { .. }) {}
        drop(asked);
        drop(requests.recv().await.unwrap());
        assert_eq!(control.await.unwrap().unwrap(), HandedOver::Answered);
    });
    assert!(turned.is_ok());
    assert_eq!(owner.texts().await, ["one?", "one two three", "two?", "one two three"]);
}

/// The process that answers has nobody who could decide; the one that spoke has.
#[tokio::test]
async fn a_question_is_asked_and_answered_where_something_was_said() {
    for decision in [Decision::Approved, Decision::Denied] {
        let house = House::new();
        let (mut owner, other) = (house.process("chat"), house.process("chat"));
        // A request is reckoned with more than $4 and books far less: one fits beside nothing else.
        let [turn, day, month] = [600.0, 4.1, 600.0].map(Money::from_dollars);
        owner.runtime.spend = Arc::new(SpendLimiter::new(Budget { turn, day, month }));
        let _listener = owner.listen();
        let (model, mut requests) = Gated::dear();
        let entered = owner.enter().await;
        let mine = config(&model).identity(entered.tree);
        let (turned, ()) = tokio::join!(owner.say(&model, "one?"), async {
            let asked = requests.recv().await.unwrap();
            let mut session = {
                let session =
                    drawloom_agent::session::spawn(&owner.runtime, &owner.sessions, &entered.session);
                session.events(session.next_event())
            };
            let log = EventLog::default();
            let mut heard = log.stream(1);
            let spoken = tokio::spawn({
                let (runtime, entered, log) = (other.runtime.clone(), entered.clone(), log.clone());
                async move {
                    let key: SayId = runtime.new_id().unwrap();
                    let place = (&entered.session, &entered.view, mine);
                    let texts = [NewText::owner("two?", Some(Role::User))];
                    let say = OutgoingSay {
                        answer_within: Some(drawloom_agent::questions::DEADLINE),
                        ..outgoing(&key, &texts)
                    };
                    hand_over(&runtime, &WHO, place, say, &log).await
                }
            });
            while !matches!(session.next().await.unwrap().event, SessionEvent::Queued { .. }) {}
            drop(asked);
            let question = loop {
                if let SessionEvent::Question { question } = heard.next().await.unwrap().event {
                    break question;
                }
            };
            assert!(question.text.contains("the limit of a day is"), "{}", question.text);
            let answer =
                other.runtime.answer_question(&WHO, question.id, decision, AnswerText::default()).await;
            answer.unwrap();
            if decision == Decision::Approved {
                drop(requests.recv().await.unwrap());
            }
            assert_eq!(spoken.await.unwrap().unwrap(), HandedOver::Answered);
            let told = std::iter::from_fn(|| heard.next_held()).find_map(|heard| match heard.event {
                SessionEvent::Answered { question: id, decision, .. } => Some((id, decision)),
                _ => None,
            });
            assert_eq!(told, Some((question.id, decision)));
        });
        assert!(turned.is_ok());
        let answers = if decision == Decision::Approved { 2 } else { 1 };
        assert_eq!(owner.generations().await.len(), answers);
    }
}

#[tokio::test]
async fn what_is_longer_than_a_node_may_be_is_not_sent() {
    let house = House::new();
    let process = house.process("chat");
    let entered = process.enter().await;
    let refused = handed(&process, &entered, &"x".repeat(17 * 1024 * 1024)).await;
    assert!(matches!(refused, Err(AgentError::Refused(why)) if why.contains("16 MiB")));
}

/// By the clock of the runtime: a process that stands still takes connections, as the system does that for it.
#[tokio::test(start_paused = true)]
async fn a_process_that_does_not_greet_is_sent_nothing() {
    let house = House::new();
    let other = house.process("chat");
    let owner = Fake::new(&house, &other).await;
    let listener = owner.bind();
    let handed = handed(&other, &owner.entered, "hello").await.unwrap();
    assert_eq!(handed, HandedOver::NotHeard);
    let (stream, _) = listener.accept().unwrap();
    let mut heard = String::new();
    BufReader::new(stream).read_line(&mut heard).unwrap();
    assert_eq!(heard, "", "it would act on it when it wakes");
}

#[tokio::test]
async fn a_process_that_dies_before_it_wrote_what_it_took_in_has_not_said_it() {
    let house = House::new();
    let other = house.process("chat");
    let owner = Fake::new(&house, &other).await;
    let listener = owner.bind();
    let never = NodeId::from_bytes([7; 16]);
    let played = std::thread::spawn(move || {
        let (mut stream, message) = take(&listener);
        tell(&mut stream, &json!({"reply": "waits"}));
        tell(&mut stream, &json!({"reply": "keeping", "node": never}));
        message
    });
    let entered = owner.entered.clone();
    let (handed, ()) = tokio::join!(handed(&other, &entered, "hello"), owner.dies_after(&other, played));
    assert_eq!(handed.unwrap(), HandedOver::NotTaken);
}

#[tokio::test]
async fn a_process_that_dies_before_it_could_say_what_it_wrote_has_said_it() {
    let house = House::new();
    let other = house.process("chat");
    let owner = Fake::new(&house, &other).await;
    let listener = owner.bind();
    let said = owner.says(&other, "hello").await;
    let played = std::thread::spawn(move || {
        let (mut stream, message) = take(&listener);
        tell(&mut stream, &json!({"reply": "waits"}));
        // A try that something else was before, then the one that was written; never that it was.
        tell(&mut stream, &json!({"reply": "keeping", "node": NodeId::from_bytes([7; 16])}));
        tell(&mut stream, &json!({"reply": "keeping", "node": said}));
        message
    });
    let entered = owner.entered.clone();
    let (handed, ()) = tokio::join!(handed(&other, &entered, "hello"), owner.dies_after(&other, played));
    assert_eq!(handed.unwrap(), HandedOver::Cut { said });
    assert_eq!(other.texts().await, ["hello"], "it is not said twice");
}

#[tokio::test]
async fn a_message_to_one_who_then_sleeps_is_not_said_once_its_lease_is_past() {
    let house = House::new();
    let other = house.process("chat");
    let owner = Fake::new(&house, &other).await;
    let listener = owner.bind();
    let entered = owner.entered.clone();
    let (handed, stream) = tokio::join!(handed(&other, &entered, "hello"), async {
        let taken = tokio::task::spawn_blocking(move || take(&listener)).await.unwrap();
        // It took it in, and stands still with the connection open.
        house.pass(PAST);
        taken.0
    });
    assert_eq!(handed.unwrap(), HandedOver::NotTaken);
    // When it wakes, its number is past.
    let with = AttachedWrites {
        guards: vec![store::Guard { lease: entered.session.lease(), fence: owner.fence }],
        ..AttachedWrites::nothing()
    };
    let said = Op::Append(NewText::owner("hello", Some(Role::User)));
    let late = owner.process.runtime.change(&WHO, entered.tree, &entered.view, said, with).await;
    assert!(late.is_err(), "it was said after it was given up");
    drop(stream);
}

/// What another process says by the letter of the protocol, to hear each line of it.
pub(crate) struct Said(tokio::io::Lines<tokio::io::BufReader<tokio::net::UnixStream>>);

impl Said {
    /// Says something to the turn that runs, and waits until it is taken in.
    pub(crate) async fn by_hand(owner: &Process, entered: &OpenedSession, text: &str) -> Self {
        let lease = owner.runtime.store.lease(&WHO, &entered.session.lease()).await.unwrap().unwrap();
        let run = owner.runtime.home.dir(HomeDir::Run).unwrap();
        let socket = run.join(format!("{}.sock", owner.runtime.instance));
        let stream = tokio::net::UnixStream::connect(socket).await.unwrap();
        let mut said = Self(tokio::io::BufReader::new(stream).lines());
        said.hears("ready").await;
        let (model, _) = Gated::gated();
        let key: SayId = owner.runtime.new_id().unwrap();
        let message = json!({
            "ask": "say", "session": entered.session, "view": entered.view, "fence": lease.fence.0, "key": key,
            "identity": config(&model).identity(entered.tree),
            "texts": [{"content": [{"type": "text", "text": text}], "trust": "owner"}],
            "author": Author::owner(), "trust": "owner",
        });
        said.0.get_mut().write_all(format!("{message}\n").as_bytes()).await.unwrap();
        said.hears("attached").await;
        said.hears("waits").await;
        said
    }

    /// The next event, which is of this kind.
    async fn happens(&mut self, event: &str) -> Value {
        let line = self.hears("happened").await;
        assert_eq!(line["event"], event, "{line}");
        line
    }

    /// The next line, which is of this kind.
    async fn hears(&mut self, reply: &str) -> Value {
        let line: Value = serde_json::from_str(&self.0.next_line().await.unwrap().unwrap()).unwrap();
        assert_eq!(line["reply"], reply, "{line}");
        line
    }
}

/// Hands a text to the process that holds the session, for a turn of a gated model.
async fn handed(process: &Process, entered: &OpenedSession, text: &str) -> Result<HandedOver, AgentError> {
    let (model, _) = Gated::gated();
    handed_as(process, entered, config(&model).identity(entered.tree), text).await
}

async fn handed_as(
    process: &Process,
    entered: &OpenedSession,
    identity: TurnIdentity,
    text: &str,
) -> Result<HandedOver, AgentError> {
    let key: SayId = process.runtime.new_id().unwrap();
    let place = (&entered.session, &entered.view, identity);
    let texts = [NewText::owner(text, Some(Role::User))];
    hand_over(&process.runtime, &WHO, place, outgoing(&key, &texts), &EventLog::default()).await
}

/// Something that is said alone.
pub(crate) fn outgoing<'a>(key: &'a SayId, texts: &'a [NewText]) -> OutgoingSay<'a> {
    OutgoingSay {
        key,
        texts,
        waiting: &[],
        reply_to: None,
        author: Author::owner(),
        trust: Trust::Owner,
        answer_within: None,
        stop: Cancel::never(),
        notice: None,
    }
}

/// A process that holds the session and whose side of the protocol the test plays.
pub(crate) struct Fake {
    process: Process,
    pub(crate) entered: OpenedSession,
    fence: Fence,
}

impl Fake {
    pub(crate) async fn new(house: &House, other: &Process) -> Self {
        let process = house.process("chat");
        let entered = other.enter().await;
        let holder = LeaseOwner::new(format!("{}/1", process.runtime.instance));
        let name = entered.session.lease();
        let fence = process.runtime.store.acquire_lease(&WHO, &name, &holder, LEASE).await.unwrap();
        Self { process, entered, fence }
    }

    pub(crate) fn bind(&self) -> UnixListener {
        let run: PathBuf = self.process.runtime.home.dir(HomeDir::Run).unwrap();
        UnixListener::bind(run.join(format!("{}.sock", self.process.runtime.instance))).unwrap()
    }

    /// Writes a node as the turn would.
    async fn says(&self, other: &Process, text: &str) -> NodeId {
        let said = Op::Append(NewText::owner(text, Some(Role::User)));
        let (tree, view) = (self.entered.tree, &self.entered.view);
        let applied = other.runtime.change(&WHO, tree, view, said, AttachedWrites::nothing()).await.unwrap();
        applied.nodes.first().unwrap().0
    }

    pub(crate) fn dies(self) {
        self.process.die();
    }

    /// Dies once it has played its part, which was to hear `hello` for its turn.
    async fn dies_after(self, _: &Process, played: std::thread::JoinHandle<Value>) {
        let message = tokio::task::spawn_blocking(move || played.join().unwrap()).await.unwrap();
        assert_eq!(message["texts"][0]["content"][0]["text"], "hello");
        assert_eq!(message["fence"], self.fence.0);
        self.process.die();
    }
}

/// Greets whoever connects, and reads what they say.
pub(crate) fn take(listener: &UnixListener) -> (UnixStream, Value) {
    let (mut stream, _) = listener.accept().unwrap();
    tell(&mut stream, &json!({"reply": "ready", "version": 6}));
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).unwrap();
    (stream, serde_json::from_str(&line).unwrap())
}

pub(crate) fn tell(stream: &mut UnixStream, reply: &Value) {
    stream.write_all(format!("{reply}\n").as_bytes()).unwrap();
}

//! What is said to a session that another process holds: once, in order, whoever dies or sleeps.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use drawloom_agent::steering::{HandedOver, hand_over};
use drawloom_agent::{AgentError, Entered, LEASE};
use loom::plan::NewText;
use loom::{NodeId, Op, Role};
use model::Cancel;
use serde_json::{Value, json};
use store::home::HomeDir;
use store::{Fence, Holder, With};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};

use crate::support::{Gated, House, Process, WHO};

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
            assert_eq!(said.hears("kept").await["node"], node);
            let answer = said.hears("answered").await;
            assert_eq!((&answer["said"], &answer["node"][2]), (&node, &json!("one two three")));
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
    let (owner, other) = (house.process("chat"), house.process("chat"));
    let _listener = owner.listen();
    let (model, mut requests) = Gated::gated();
    let entered = owner.enter().await;
    let (stop, cancel) = Cancel::new();
    let (turned, handed, ()) = tokio::join!(
        owner.say_until(&model, "one?", cancel),
        async {
            until_held(&owner, &entered).await;
            hand_over(&other.runtime, &WHO, &entered, "two?").await
        },
        async {
            let asked = requests.recv().await.unwrap();
            stop.cancel();
            drop(asked);
        }
    );
    assert!(turned.is_ok());
    // Taken in or too late for that: it is not said, and its sender knows.
    assert_eq!(handed.unwrap(), HandedOver::NotTaken);
    assert!(!owner.texts().await.contains(&"two?".to_owned()));
}

#[tokio::test]
async fn what_is_longer_than_a_node_may_be_is_not_sent() {
    let house = House::new();
    let process = house.process("chat");
    let entered = process.enter().await;
    let refused = hand_over(&process.runtime, &WHO, &entered, &"x".repeat(17 * 1024 * 1024)).await;
    assert!(matches!(refused, Err(AgentError::Refused(why)) if why.contains("16 MiB")));
}

/// By the clock of the runtime: a process that stands still takes connections, as the system does that for it.
#[tokio::test(start_paused = true)]
async fn a_process_that_does_not_greet_is_sent_nothing() {
    let house = House::new();
    let other = house.process("chat");
    let owner = Fake::new(&house, &other).await;
    let listener = owner.bind();
    let handed = hand_over(&other.runtime, &WHO, &owner.entered, "hello").await.unwrap();
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
    let (handed, ()) =
        tokio::join!(hand_over(&other.runtime, &WHO, &entered, "hello"), owner.dies_after(&other, played));
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
    let (handed, ()) =
        tokio::join!(hand_over(&other.runtime, &WHO, &entered, "hello"), owner.dies_after(&other, played));
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
    let (handed, stream) = tokio::join!(hand_over(&other.runtime, &WHO, &entered, "hello"), async {
        let taken = tokio::task::spawn_blocking(move || take(&listener)).await.unwrap();
        // It took it in, and stands still with the connection open.
        house.pass(PAST);
        taken.0
    });
    assert_eq!(handed.unwrap(), HandedOver::NotTaken);
    // When it wakes, its number is past.
    let with = With {
        guards: vec![store::Guard { lease: entered.session.lease(), fence: owner.fence }],
        ..With::nothing()
    };
    let said = Op::Append(NewText::owner("hello", Some(Role::User)));
    let late = owner.process.runtime.change(&WHO, entered.tree, &entered.view, said, with).await;
    assert!(late.is_err(), "it was said after it was given up");
    drop(stream);
}

/// What another process says by the letter of the protocol, to hear each line of it.
struct Said(tokio::io::Lines<tokio::io::BufReader<tokio::net::UnixStream>>);

impl Said {
    /// Says something to the turn that runs, and waits until it is taken in.
    async fn by_hand(owner: &Process, entered: &Entered, text: &str) -> Self {
        let lease = owner.runtime.store.lease(&WHO, &entered.session.lease()).await.unwrap().unwrap();
        let run = owner.runtime.home.dir(HomeDir::Run).unwrap();
        let socket = run.join(format!("{}.sock", owner.runtime.instance));
        let stream = tokio::net::UnixStream::connect(socket).await.unwrap();
        let mut said = Self(tokio::io::BufReader::new(stream).lines());
        said.hears("ready").await;
        let message = json!({"session": entered.session, "fence": lease.fence.0, "text": text});
        said.0.get_mut().write_all(format!("{message}\n").as_bytes()).await.unwrap();
        said.hears("waits").await;
        said
    }

    /// The next line, which is of this kind.
    async fn hears(&mut self, reply: &str) -> Value {
        let line: Value = serde_json::from_str(&self.0.next_line().await.unwrap().unwrap()).unwrap();
        assert_eq!(line["reply"], reply, "{line}");
        line
    }
}

/// Waits until a turn has the session.
async fn until_held(process: &Process, entered: &Entered) {
    let name = entered.session.lease();
    loop {
        let lease = process.runtime.store.lease(&WHO, &name).await.unwrap();
        if lease.is_some_and(|lease| lease.holder.is_some()) && !process.texts().await.is_empty() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// A process that holds the session and whose side of the protocol the test plays.
struct Fake {
    process: Process,
    entered: Entered,
    fence: Fence,
}

impl Fake {
    async fn new(house: &House, other: &Process) -> Self {
        let process = house.process("chat");
        let entered = other.enter().await;
        let holder = Holder::new(format!("{}/1", process.runtime.instance));
        let name = entered.session.lease();
        let now = process.runtime.now();
        let fence = process.runtime.store.acquire_lease(&WHO, &name, &holder, LEASE, now).await.unwrap();
        Self { process, entered, fence }
    }

    fn bind(&self) -> UnixListener {
        let run: PathBuf = self.process.runtime.home.dir(HomeDir::Run).unwrap();
        UnixListener::bind(run.join(format!("{}.sock", self.process.runtime.instance))).unwrap()
    }

    /// Writes a node as the turn would.
    async fn says(&self, other: &Process, text: &str) -> NodeId {
        let said = Op::Append(NewText::owner(text, Some(Role::User)));
        let (tree, view) = (self.entered.tree, &self.entered.view);
        let applied = other.runtime.change(&WHO, tree, view, said, With::nothing()).await.unwrap();
        applied.nodes.first().unwrap().0
    }

    /// Dies once it has played its part, which was to hear `hello` for its turn.
    async fn dies_after(self, _: &Process, played: std::thread::JoinHandle<Value>) {
        let message = tokio::task::spawn_blocking(move || played.join().unwrap()).await.unwrap();
        assert_eq!(message["text"], "hello");
        assert_eq!(message["fence"], self.fence.0);
        self.process.die();
    }
}

/// Greets whoever connects, and reads what they say.
fn take(listener: &UnixListener) -> (UnixStream, Value) {
    let (mut stream, _) = listener.accept().unwrap();
    tell(&mut stream, &json!({"reply": "ready"}));
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).unwrap();
    (stream, serde_json::from_str(&line).unwrap())
}

fn tell(stream: &mut UnixStream, reply: &Value) {
    stream.write_all(format!("{reply}\n").as_bytes()).unwrap();
}

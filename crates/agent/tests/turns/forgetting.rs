//! Answers that come while something is forgotten.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use drawloom_agent::session::TurnInput;
use drawloom_agent::{AgentError, stored};
use loom::plan::{NewText, Request};
use loom::{Author, Millis, Op, Role, Trust, ViewName};
use model::script::ScriptOptions;
use model::{Clock, Model, ScriptModel};
use store::{AttachedWrites, Forget, ForgottenPlace, GenerationState, Ids};

use crate::support::{FIRST, Gated, House, REST, WHO, config};

/// The model never goes on by itself: what is not stopped never ends.
async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.unwrap()
}

/// Whichever process it comes in: it is stopped there, and nothing of it is kept.
#[tokio::test]
async fn an_answer_whose_request_held_what_is_forgotten_is_stopped_elsewhere_too() {
    let house = House::new();
    let (answering, forgetting) = (house.process("chat"), house.process("forget"));
    let (model, mut requests) = Gated::gated();
    let said = within(answering.say(&model, "the marzipan crocodile"));
    let (turned, held) = tokio::join!(said, async {
        let asked = requests.recv().await.unwrap();
        let what = Forget::Text("marzipan".to_owned());
        let preview = forgetting.runtime.forget_preview(&WHO, &what).await.unwrap();
        assert!(preview.iter().any(|place| matches!(place, ForgottenPlace::Running { .. })), "{preview:?}");
        assert_eq!(forgetting.spools(), 1, "a preview removes nothing");
        forgetting.runtime.forget(&WHO, &what).await.unwrap();
        assert_eq!(forgetting.spools(), 0, "what was received is gone when it is done");
        asked
    });
    drop(held);
    let error = turned.unwrap().reply.unwrap_err();
    assert!(matches!(error.as_ref(), AgentError::Forgotten), "{error:?}");
    assert_eq!(answering.generations().await[0].state, GenerationState::Cancelled);
    assert!(forgetting.texts().await.concat().is_empty(), "nothing became of it");
    assert_eq!(answering.spools(), 0);
    answering.die();
    assert_eq!(forgetting.runtime.recover(&()).await.unwrap(), 0);
}

/// The text is split over deltas, so that it stands nowhere in the bytes.
#[tokio::test]
async fn an_answer_that_says_what_is_forgotten_is_stopped() {
    let house = House::new();
    let (answering, forgetting) = (house.process("chat"), house.process("forget"));
    let (model, mut requests) = Gated::gated();
    let what = Forget::Text(FIRST.to_owned());
    let (turned, held) = tokio::join!(within(answering.say(&model, "hello")), async {
        let asked = requests.recv().await.unwrap();
        let elsewhere = Forget::Text("words nobody says".to_owned());
        assert!(forgetting.runtime.forget(&WHO, &elsewhere).await.unwrap().places.is_empty());
        assert_eq!(forgetting.spools(), 1);
        let done = forgetting.runtime.forget(&WHO, &what).await.unwrap();
        assert!(matches!(done.places[..], [ForgottenPlace::Running { .. }]), "{done:?}");
        asked
    });
    drop(held);
    let error = turned.unwrap().reply.unwrap_err();
    assert!(matches!(error.as_ref(), AgentError::Forgotten), "{error:?}");
    assert_eq!(forgetting.texts().await, ["hello"]);
    assert!(!forgetting.texts().await.concat().contains(REST));
}

/// What ends between two looks at what is being received is in no spool and in no running answer, but in rows that
/// were looked for before. The clock is asked right before rows are looked for.
#[tokio::test]
async fn what_is_written_between_two_looks_is_looked_for_again() {
    let house = House::new();
    let writing = house.process("chat");
    let tree = writing.enter().await.tree;
    let store = Arc::clone(&writing.runtime.store);
    let append = move || {
        let op = Op::Append(NewText::owner("the marzipan crocodile", Some(Role::User)));
        let (view, author, trust) = (ViewName::default(), Author::owner(), Trust::Owner);
        let request = Request { tree, view, author, trust, now: Millis(1_760_000_000_000), op };
        let (store, ids) = (Arc::clone(&store), Ids::new());
        let write = async move {
            store::change(&store, &WHO, request, AttachedWrites::nothing(), &ids).await.unwrap();
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        std::thread::spawn(move || runtime.block_on(write)).join().unwrap();
    };
    append();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let clock = Clock::new(move || {
        if count.fetch_add(1, Ordering::SeqCst) == 1 {
            append();
        }
        1_760_000_000_000
    });
    let forgetting = house.process_by("forget", clock);
    let what = Forget::Text("marzipan".to_owned());
    let done = forgetting.runtime.forget(&WHO, &what).await.unwrap();
    let nodes = done.places.iter().filter(|place| matches!(place, ForgottenPlace::Node { .. })).count();
    assert_eq!((asked.load(Ordering::SeqCst), nodes), (2, 2));
    assert!(done.unfinished.is_empty(), "{done:?}");
    assert!(forgetting.runtime.forget_preview(&WHO, &what).await.unwrap().is_empty());
}

/// A process goes on from the request it made last without reading it again: not from one that held what is forgotten.
#[tokio::test]
async fn a_request_rests_on_none_that_was_forgotten_since() {
    let house = House::new();
    let (talking, forgetting) = (house.process("chat"), house.process("forget"));
    let lines = "{\"text\":\"Yes.\"}\n".repeat(3);
    let model: Arc<dyn Model> =
        Arc::new(ScriptModel::from_text("script", &lines, ScriptOptions::default()).unwrap());
    for said in ["Tell me of the sea and its tides.".repeat(20), "the marzipan crocodile".to_owned()] {
        assert!(within(talking.say(&model, &said)).await.unwrap().reply.unwrap().error.is_none());
    }
    forgetting.runtime.forget(&WHO, &Forget::Text("marzipan".to_owned())).await.unwrap();
    let reply = within(talking.say(&model, "And now?")).await.unwrap().reply.unwrap();
    assert!(reply.error.is_none(), "{:?}", reply.error);
    let read = move |rows: &dyn loom::TreeReader| {
        let manifest = stored::manifest(rows, reply.manifest)?.unwrap();
        stored::body(rows, &manifest)
    };
    let body = talking.runtime.read(&WHO, talking.enter().await.tree, read).await.unwrap();
    let body = String::from_utf8(body.expect("all parts of it are there")).unwrap();
    assert!(body.contains("And now?") && !body.contains("marzipan"), "{body}");
}

/// What stood above the boundary is in no node: a file that said it is another one by now.
#[tokio::test]
async fn what_was_only_sent_and_is_forgotten_is_not_sent_again() {
    let house = House::new();
    let (talking, forgetting) = (house.process("chat"), house.process("forget"));
    let lines = "{\"text\":\"Yes.\"}\n".repeat(3);
    let model: Arc<dyn Model> =
        Arc::new(ScriptModel::from_text("script", &lines, ScriptOptions::default()).unwrap());
    let file = |text: &str| {
        let (name, digest) = ("AGENTS.md".to_owned(), loom::Digest::of(text.as_bytes()));
        let file = context::BootFile { name, text: text.to_owned(), digest, trust: Trust::Workspace };
        let bootstrap = context::Bootstrap { files: vec![file], ..context::Bootstrap::default() };
        drawloom_agent::TurnConfig { bootstrap: Arc::new(bootstrap), ..config(&model) }
    };
    let long = format!("{}\nthe marzipan crocodile\n", "Be kind. ".repeat(60));
    for (text, said) in [(long.as_str(), "Hello"), (long.as_str(), "Go on"), ("Be kind.\n", "And now?")] {
        if said == "And now?" {
            forgetting.runtime.forget(&WHO, &Forget::Text("marzipan".to_owned())).await.unwrap();
        }
        let talk = talking.talk(file(text), TurnInput::text(said)).await;
        let reply = within(talk.finished()).await.unwrap().reply.unwrap();
        assert!(reply.error.is_none(), "{said}: {:?}", reply.error);
        let read = move |rows: &dyn loom::TreeReader| {
            stored::body(rows, &stored::manifest(rows, reply.manifest)?.unwrap())
        };
        let body = talking.runtime.read(&WHO, talking.enter().await.tree, read).await.unwrap();
        let body = String::from_utf8(body.expect("all parts of it are there")).unwrap();
        assert!(body.contains(said) && body.contains("marzipan") == (said != "And now?"), "{said}: {body}");
    }
}

//! One turn: what it keeps, whatever the model does.

use std::sync::Arc;
use std::time::Duration;

use context::segment::{SegmentOutcome, Source};
use context::{Manifest, Zone};
use drawloom_agent::session::TurnInput;
use drawloom_agent::{AgentError, TurnConfig, bootstrap};
use loom::{Finish, Role};
use model::Cancel;
use store::{GenerationState, SessionKind};
use text::mask::Masker;
use workspace::trust::Accepted;
use workspace::{Root, StoreGuard};

use crate::support::{Gated, House, WHO, config, script};

#[tokio::test]
async fn what_was_said_and_the_request_are_durable_before_a_model_is_asked() {
    let house = House::new();
    let process = house.process("chat");
    let (model, mut requests) = Gated::gated();
    let (turned, ()) = tokio::join!(process.say(&model, "Is it raining?"), async {
        let asked = requests.recv().await.unwrap();
        assert_eq!(process.texts().await, ["Is it raining?"]);
        assert!(asked.body.contains("Is it raining?"));
        let [generation] = process.generations().await.try_into().unwrap();
        assert_eq!(generation.state, GenerationState::Started);
        let digest = generation.row.manifest;
        let tree = generation.row.tree;
        let manifest = process.runtime.read(&WHO, tree, move |rows| rows.manifest(digest)).await.unwrap();
        assert!(Manifest::from_bytes(&manifest.unwrap()).is_ok());
        assert_eq!(process.spools(), 1);
        drop(asked);
    });
    let reply = turned.unwrap().reply.unwrap();
    assert_eq!(reply.answer.unwrap().finish, Finish::Stop);
    assert_eq!(process.texts().await, ["Is it raining?", "one two three"]);
    assert_eq!(process.spools(), 0);
}

#[tokio::test]
async fn an_empty_answer_makes_no_node_and_its_response_is_kept() {
    let house = House::new();
    let process = house.process("chat");
    let turned = process.say(&script(r#"{"text": ""}"#), "Is it raining?").await.unwrap();
    let reply = turned.reply.unwrap();
    assert!(reply.answer.is_none());
    assert!(matches!(reply.error.as_deref(), Some(AgentError::Empty)), "{:?}", reply.error);
    assert_eq!(process.texts().await, ["Is it raining?"]);
    let [generation] = process.generations().await.try_into().unwrap();
    assert_eq!(generation.state, GenerationState::Done);
    assert_eq!(process.spools(), 0, "its response is in the store");
}

#[tokio::test]
async fn a_model_that_fails_leaves_what_was_said_and_the_error_is_named() {
    let house = House::new();
    let process = house.process("chat");
    let turned = process.say(&script(r#"{"fault": "context_too_long"}"#), "Is it raining?").await.unwrap();
    let reply = turned.reply.unwrap();
    assert!(reply.answer.is_none());
    let Some(AgentError::Model { code, message, hint, .. }) = reply.error.as_deref() else {
        panic!("{:?}", reply.error)
    };
    assert_eq!(*code, "context_too_long");
    assert!(!message.is_empty() && !hint.is_empty());
    assert_eq!(process.path().await, [(Role::User, "Is it raining?".to_owned(), None)]);
    // The session is free, and goes on.
    let turned = process.say(&script(r#"{"text": "Yes."}"#), "And now?").await.unwrap();
    assert!(turned.reply.unwrap().error.is_none());
    assert_eq!(process.texts().await, ["Is it raining?", "And now?", "Yes."]);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_kept_as_far_as_it_came() {
    let house = House::new();
    let process = house.process("chat");
    let model = script(r#"{"deltas": ["It rains", " and"], "fault": "cut"}"#);
    let reply = process.say(&model, "Is it raining?").await.unwrap().reply.unwrap();
    let made = reply.answer.unwrap();
    assert_eq!(&*made.text, "It rains and");
    assert!(matches!(made.finish, Finish::Interrupted(_)), "{:?}", made.finish);
    assert!(matches!(reply.error.as_deref(), Some(AgentError::Model { .. })));
    assert_eq!(process.texts().await, ["Is it raining?", "It rains and"]);
}

/// By the clock of the runtime, which moves only while nothing can be done: no timer is waited for.
#[tokio::test(start_paused = true)]
async fn stopping_keeps_what_came_and_takes_less_than_a_tenth_of_a_second() {
    let house = House::new();
    let process = house.process("chat");
    let model = script(r#"{"deltas": ["one", " two"], "fault": "hang"}"#);
    let (stop, cancel) = Cancel::new();
    let (turned, stopped) = tokio::join!(process.say_until(&model, "Count.", cancel), async {
        while !process.heard.text.lock().unwrap().ends_with("two") {
            tokio::task::yield_now().await;
        }
        stop.cancel();
        tokio::time::Instant::now()
    });
    assert!(stopped.elapsed() < Duration::from_millis(100), "{:?}", stopped.elapsed());
    let reply = turned.unwrap().reply.unwrap();
    let made = reply.answer.unwrap();
    assert_eq!(&*made.text, "one two");
    assert!(matches!(made.finish, Finish::Interrupted(_)), "{:?}", made.finish);
    assert!(matches!(reply.error.as_deref(), Some(AgentError::Model { .. })));
    assert_eq!(process.spools(), 0);
}

#[tokio::test]
async fn the_share_of_the_window_is_what_was_reported_and_has_its_zone() {
    let house = House::new();
    let process = house.process("chat");
    for (input, output, zone) in
        [(1_000, 10, Zone::Green), (40_000, 5_000, Zone::Yellow), (70_000, 1, Zone::Red)]
    {
        let line = format!(r#"{{"text": "Yes.", "usage": {{"input": {input}, "output": {output}}}}}"#);
        let reply = process.say(&script(&line), "Is it raining?").await.unwrap().reply.unwrap();
        assert_eq!(reply.zone, zone);
        assert!((reply.share - f64::from(input + output) / 128_000.0).abs() < 1e-9, "{}", reply.share);
    }
}

#[tokio::test]
async fn boot_files_stand_above_the_boundary_within_their_caps_and_those_left_out_are_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("AGENTS.md"), "Be brief. ".repeat(3_000)).unwrap();
    std::fs::write(folder.path().join("SOUL.md"), "You are calm.").unwrap();
    std::fs::write(folder.path().join("USER.md"), b"\xff\xfe").unwrap();
    let root = Root::open(folder.path(), &StoreGuard::new()).unwrap();
    let masker = Masker::new(&[]).unwrap();
    let bootstrap = bootstrap::bootstrap(Some(&root), &Accepted::All, (SessionKind::Main, None), &masker);
    let house = House::new();
    let process = house.process("chat");
    let asked = TurnConfig { bootstrap: Arc::new(bootstrap), ..config(&script(r#"{"text": "Yes."}"#)) };
    let entered = process.enter().await;
    let talk = process.talk(asked, TurnInput::text("Is it raining?")).await;
    let turned = talk.until_it_ends(Cancel::never()).await.remove(0).1.unwrap();
    let digest = turned.reply.unwrap().manifest;
    let bytes =
        process.runtime.read(&WHO, entered.tree, move |rows| rows.manifest(digest)).await.unwrap().unwrap();
    let manifest = Manifest::from_bytes(&bytes).unwrap();
    let of = |name: &str| {
        let named = |source: &Source| match source {
            Source::File { path, .. } => path == name,
            Source::Product { name: product } => product == name,
            _ => false,
        };
        manifest.segments.iter().find(|segment| named(&segment.source)).unwrap()
    };
    assert!(of("AGENTS.md").stable && of("SOUL.md").stable);
    assert!(of("AGENTS.md").chars <= 20_100, "{}", of("AGENTS.md").chars);
    assert!(matches!(of("AGENTS.md").decision, SegmentOutcome::Trimmed { from: 30_000, .. }));
    let SegmentOutcome::LeftOut { why } = &of("USER.md").decision else { panic!("{:?}", of("USER.md")) };
    assert!(why.contains("UTF-8"), "{why}");
    let sent = manifest.segments.iter().filter(|segment| segment.bytes.is_some() && segment.trust.is_some());
    let stable: Vec<bool> = sent.map(|segment| segment.stable).collect();
    assert_eq!(
        stable,
        [true, true, true, false],
        "above the boundary stand who it is and the files, below it what was said"
    );
}

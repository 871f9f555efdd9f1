//! Processes that come late to a turn of another one: they hear all of it, and hand over what they say with files
//! (spec: agent §1, security §7).

use std::io::Read as _;
use std::sync::Arc;

use agent::session::Numbered;
use agent::steering::{AttachedEvents, attach};
use agent::{Runtime, SessionEvent};
use model::Clock;
use serde_json::{Value, json};
use store::home::{Home, HomeOptions};
use store::instance::InstanceId;
use store::{Principal, SessionFilter, SessionId, Store};
use text::mask::Masker;

use crate::sharing::{Running, script, slowly, until_streaming};
use crate::terminal::Terminal;
use crate::world::{Run, World, piped};

const WHO: Principal = Principal::Owner;

/// This process, as another one of a home.
fn runtime(world: &World) -> Runtime {
    let home = Home::open(&world.home(), HomeOptions::default()).unwrap();
    let store = Store::open(&home.database()).unwrap();
    let (now, masker) = (1_760_000_000_000, Masker::new(&[]).unwrap());
    let id = InstanceId::generate(now as u64).unwrap();
    Runtime::new(Arc::new(store), Arc::new(home), id, Clock::new(move || now), Arc::new(masker))
}

async fn session(runtime: &Runtime) -> SessionId {
    let sessions = runtime.store.sessions(&WHO, SessionFilter::default(), None, 99).await.unwrap();
    sessions.into_iter().next().unwrap().id
}

/// The next events, at most so many; those until nothing is under way, if there are fewer.
async fn some(events: &mut AttachedEvents, most: usize) -> Vec<Numbered> {
    let mut heard = Vec::new();
    while heard.len() < most
        && let Some(event) = events.next().await
    {
        heard.push(event);
    }
    heard
}

#[test]
fn a_process_that_comes_late_hears_the_running_answer_of_another_one_from_any_number() {
    let world = World::new();
    let model = script(&world, &[slowly(150)]);
    let mut first = Running(piped(&mut world.command(&["--model", &model, "chat", "-m", "tale"])));
    until_streaming(&world);
    let tasks = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let heard = tasks.block_on(async {
        let runtime = runtime(&world);
        let session = session(&runtime).await;
        let mut events = attach(&runtime, &WHO, &session, (None, 1)).await.unwrap().unwrap();
        let task = events.task();
        let mut heard = some(&mut events, 20).await;
        // It goes away, and comes again where it was, as often as it likes.
        for most in [1, 10, usize::MAX] {
            drop(events);
            let next = heard.last().unwrap().n + 1;
            events = attach(&runtime, &WHO, &session, (Some(task), next)).await.unwrap().unwrap();
            heard.extend(some(&mut events, most).await);
        }
        heard
    });
    let numbers: Vec<u64> = heard.iter().map(|heard| heard.n).collect();
    assert_eq!(numbers, (1..=heard.len() as u64).collect::<Vec<_>>());
    assert!(
        matches!(&heard[0].event, SessionEvent::Accepted { text, .. } if text == "tale"),
        "{:?}",
        heard[0]
    );
    assert_eq!(heard.last().unwrap().event, SessionEvent::Idle);
    let mut written = String::new();
    for Numbered { event, .. } in &heard {
        match event {
            SessionEvent::Delta { offset, text, .. } => {
                assert_eq!(*offset, written.len() as u64);
                written.push_str(text);
            }
            SessionEvent::Committed { node, .. } => assert_eq!(*node.text, written),
            _ => {}
        }
    }
    let mut printed = String::new();
    first.0.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert_eq!(printed.trim_end(), written.trim_end());
    assert!(written.ends_with("w149 "), "{written}");
}

/// The answer that comes takes longer than another process waits for a session.
#[test]
fn what_is_said_with_a_file_joins_the_turn_of_another_process() {
    let world = World::new();
    let model = script(&world, &[slowly(320), json!({"text": "a note"})]);
    std::fs::write(world.path("here").join("note.txt"), "the note itself").unwrap();
    let mut first = Terminal::start(world.command(&["--model", &model, "chat", "--color", "never"]));
    first.at_prompt();
    first.types("tale\r");
    until_streaming(&world);
    let said = ["--model", &model, "chat", "--file", "note.txt", "-m", "what is this?"];
    let second = piped(&mut world.command(&said));
    first.shows("a note");
    let Run { code, out, err } = second.wait_with_output().unwrap().into();
    assert_eq!((code, out.as_str()), (Some(0), "a note\n"), "{err}");
    let (_, shown) = world.json(&["tree", "show", "tale"]);
    let nodes: Vec<&Value> =
        shown["nodes"].as_array().unwrap().iter().filter(|node| node["text"] != "").collect();
    assert_eq!(nodes.len(), 5, "{nodes:?}");
    let of = |node: &Value| (node["author_kind"].clone(), node["trust"].clone());
    assert_eq!(of(nodes[2]), ("human".into(), "outside".into()));
    assert!(nodes[2]["text"].as_str().unwrap().contains("the note itself"), "{}", nodes[2]);
    assert_eq!(of(nodes[3]), ("human".into(), "owner".into()));
    assert_eq!((&nodes[3]["text"], &nodes[4]["text"]), (&"what is this?".into(), &"a note".into()));
}

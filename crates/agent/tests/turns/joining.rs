//! What is said in this process while a turn runs: it joins the same turn, through the same door (spec: agent §1
//! *Steering*).

use std::sync::Arc;

use drawloom_agent::steering::MAX_WAITING;
use drawloom_agent::turn::Said;
use drawloom_agent::{AgentError, Entered, Turn, Turned};
use loom::plan::NewText;
use loom::{Finish, Role, ViewName};
use model::{Cancel, Model};

use crate::support::{FIRST, Gated, House, Process, WHO, manner, script};

async fn run(
    process: &Process,
    model: &Arc<dyn Model>,
    text: &str,
    cancel: Cancel,
) -> (Turned, Vec<(Vec<String>, Turned)>, Vec<String>) {
    let said = vec![NewText::owner(text, Some(Role::User))];
    process.run(&manner(model), Said::New { texts: said, media: Vec::new() }, cancel).await.unwrap()
}

fn join(process: &Process, entered: &Entered, text: &str) -> Result<(), String> {
    process.runtime.inputs.join(&entered.session, &ViewName::default(), text.to_owned())
}

#[tokio::test]
async fn what_is_said_in_mid_turn_is_answered_by_the_next_call_of_the_same_turn() {
    let house = House::new();
    let (process, other) = (house.process("chat"), house.process("chat"));
    let entered = process.enter().await;
    assert!(join(&process, &entered, "too early").is_err(), "no turn runs");
    let (model, mut requests) = Gated::gated();
    let lease = async || process.runtime.store.lease(&WHO, &entered.session.lease()).await.unwrap().unwrap();
    let ((first, further, unsaid), fences) =
        tokio::join!(run(&process, &model, "one", Cancel::never()), async {
            let asked = requests.recv().await.unwrap();
            for text in ["two", "three"] {
                join(&process, &entered, text).unwrap();
            }
            assert_eq!(process.texts().await, ["one"], "not before the call that runs has ended");
            let fence = lease().await.fence;
            drop(asked);
            let asked = requests.recv().await.unwrap();
            assert!(asked.body.contains("two") && asked.body.contains("three"), "{}", asked.body);
            let refused = other.say(&script(r#"{"text": "no"}"#), "between").await;
            assert!(matches!(refused, Err(AgentError::Busy { .. })), "one lease over all: {refused:?}");
            let again = lease().await.fence;
            drop(asked);
            (fence, again)
        });
    assert_eq!(fences.0, fences.1);
    assert!(first.reply.unwrap().error.is_none());
    let [(joined, turned)] = further.try_into().unwrap();
    assert_eq!(joined, ["two", "three"], "lines are answered together");
    assert!(turned.reply.unwrap().error.is_none());
    assert!(unsaid.is_empty());
    assert_eq!(process.texts().await, ["one", "one two three", "two", "three", "one two three"]);
    assert!(join(&process, &entered, "too late").is_err());
}

#[tokio::test]
async fn what_joined_a_turn_that_is_stopped_is_given_back_unsaid_and_what_came_is_kept() {
    let house = House::new();
    let process = house.process("chat");
    let entered = process.enter().await;
    let (model, mut requests) = Gated::gated();
    let (stop, cancel) = Cancel::new();
    let ((first, further, unsaid), held) = tokio::join!(run(&process, &model, "one", cancel), async {
        let asked = requests.recv().await.unwrap();
        join(&process, &entered, "two").unwrap();
        stop.cancel();
        asked
    });
    drop(held);
    assert!(first.reply.unwrap().error.is_some());
    assert!(further.is_empty());
    assert_eq!(unsaid, ["two"]);
    let path = process.path().await;
    let [(_, _, None), (_, text, Some(Finish::Interrupted(_)))] = path.as_slice() else { panic!("{path:?}") };
    assert_eq!(text, FIRST);
}

#[tokio::test]
async fn the_sixty_fifth_waits_outside() {
    let house = House::new();
    let process = house.process("chat");
    let entered = process.enter().await;
    let (model, mut requests) = Gated::gated();
    let ((_, further, _), ()) = tokio::join!(run(&process, &model, "one", Cancel::never()), async {
        let asked = requests.recv().await.unwrap();
        for number in 0..MAX_WAITING {
            join(&process, &entered, &number.to_string()).unwrap();
        }
        assert_eq!(join(&process, &entered, "too many"), Err("too many".to_owned()));
        drop(asked);
        drop(requests.recv().await.unwrap());
    });
    assert_eq!(further[0].0.len(), MAX_WAITING);
}

#[tokio::test]
async fn a_turn_asks_a_model_forty_times_and_gives_back_the_rest() {
    let house = House::new();
    let process = house.process("chat");
    let entered = process.enter().await;
    let (model, mut requests) = Gated::gated();
    let ((_, further, unsaid), ()) = tokio::join!(run(&process, &model, "0", Cancel::never()), async {
        for number in 1..=40 {
            let asked = requests.recv().await.unwrap();
            join(&process, &entered, &number.to_string()).unwrap();
            drop(asked);
        }
    });
    assert_eq!(further.len(), 39);
    assert_eq!(unsaid, ["40"]);
}

#[tokio::test]
async fn a_turn_that_is_dropped_between_two_calls_gives_its_session_back() {
    let house = House::new();
    let process = house.process("chat");
    let entered = process.enter().await;
    let model = script(r#"{"text": "yes", "loop": true}"#);
    let said = Said::New { texts: vec![NewText::owner("one", Some(Role::User))], media: Vec::new() };
    let (asked, never) = (manner(&model), Cancel::never());
    let begun = Turn::begin(&process.runtime, &WHO, &entered, &asked, said, &process.runtime.inputs, never);
    let (mut turn, kept) = begun.await.unwrap();
    turn.answer(kept).await;
    join(&process, &entered, "two").unwrap();
    drop(turn);
    assert!(join(&process, &entered, "three").is_err(), "its door is closed");
    let lease = async || process.runtime.store.lease(&WHO, &entered.session.lease()).await.unwrap();
    while lease().await.is_some_and(|lease| lease.holder.is_some()) {
        tokio::task::yield_now().await;
    }
    assert!(process.say(&model, "four").await.is_ok());
}

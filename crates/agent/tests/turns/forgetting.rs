//! Answers that come while something is forgotten.

use std::time::Duration;

use drawloom_agent::AgentError;
use store::{Forget, ForgottenPlace, GenerationState};

use crate::support::{FIRST, Gated, House, REST, WHO};

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

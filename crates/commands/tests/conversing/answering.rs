//! Questions of running work, answered in a conversation.

use std::time::Duration;

use drawloom_commands::Asker;
use drawloom_commands::chat::SteeringOutcome;
use store::{Claim, Decision, Fence, LeaseOwner, NewQuestion, Principal, QuestionId};

use crate::Talk;
use crate::home::{TestHome, field, homes};

/// A question that stands in the session of a conversation.
async fn asks(home: &TestHome, tree: &str) -> QuestionId {
    let runtime = &home.app.runtime;
    let question = NewQuestion {
        id: runtime.new_id().unwrap(),
        tree: tree.parse().unwrap(),
        kind: "budget".to_owned(),
        asker: "a test".to_owned(),
        payload: "go on?".to_owned(),
        answers: vec!["yes".to_owned()],
        ttl: Duration::from_secs(600),
        claim: Claim { owner: LeaseOwner::new(runtime.instance.to_string()), fence: Fence(1) },
        guards: Vec::new(),
    };
    runtime.store.ask(&Principal::Owner, question).await.unwrap().id
}

async fn decided(home: &TestHome, id: QuestionId) -> Option<(Decision, Option<String>)> {
    let question = home.app.runtime.store.question(&Principal::Owner, id).await.unwrap();
    question.answer.map(|answer| (answer.decision, answer.reason))
}

#[tokio::test]
async fn a_question_is_answered_in_the_conversation_also_while_a_turn_waits_for_it() {
    for home in homes() {
        let mut talk = Talk::new(&home).await;
        assert_eq!(talk.err("/approve").await.code, "not_found", "there is no session yet");
        talk.ok("one").await;
        let tree = field(&talk.ok("/status").await, "tree");
        let (first, second) = (asks(&home, &tree).await, asks(&home, &tree).await);
        assert_eq!(talk.err("/approve").await.code, "ambiguous");
        assert_eq!(talk.err("/approve nobody").await.code, "not_found");
        // A line that is typed in mid-turn: the turn waits for the answer, so the answer does not wait for the turn.
        let mut steering = talk.conversation.steering(false);
        let line = format!("/deny {} not today", first.short());
        let refused = steering.take(&home.app, &Asker::agent("assistant"), &line).await.unwrap_err();
        assert_eq!((refused.code.as_ref(), decided(&home, first).await), ("denied", None));
        let done = steering.take(&home.app, &Asker::owner(), &line).await.unwrap();
        assert_eq!(done, SteeringOutcome::Answered);
        let no = Some("not today".to_owned());
        assert_eq!(decided(&home, first).await, Some((Decision::Denied, no)));
        talk.ok("/approve").await;
        assert_eq!(decided(&home, second).await, Some((Decision::Approved, None)));
        let third = asks(&home, &tree).await;
        let unknown = talk.err("/deny k3vq8m2p not today").await;
        assert_eq!((unknown.code.as_ref(), decided(&home, third).await), ("not_found", None));
        talk.ok("/deny too dear by far").await;
        let no = Some("too dear by far".to_owned());
        assert_eq!(decided(&home, third).await, Some((Decision::Denied, no)));
    }
}

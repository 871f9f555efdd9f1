//! Questions of running work, answered in a conversation.

use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::event::AskedQuestion;
use agent::{Budget, SpendLimiter};
use drawloom_commands::args::approvals::{Approve, Holds};
use drawloom_commands::chat::SteeringOutcome;
use drawloom_commands::frontend::{Frontend, TypedAnswer};
use drawloom_commands::{Asker, Command};
use model::script::ScriptOptions;
use model::{ModelInfo, Money, Prices, Rates, ScriptModel};
use store::{Claim, Decision, Fence, LeaseOwner, NewQuestion, Principal, QuestionId};
use workspace::{FileError, StoreGuard};

use crate::home::{TestHome, field, homes};
use crate::{Far, Talk};

/// A question that stands in the session of a conversation.
async fn asks(home: &TestHome, tree: &str) -> QuestionId {
    asks_for(home, tree, &["yes"]).await
}

/// The same, with the words that it takes.
async fn asks_for(home: &TestHome, tree: &str, answers: &[&str]) -> QuestionId {
    let runtime = &home.app.runtime;
    let question = NewQuestion {
        id: runtime.new_id().unwrap(),
        tree: tree.parse().unwrap(),
        kind: "budget".to_owned(),
        asker: "a test".to_owned(),
        payload: "go on?".to_owned(),
        answers: answers.iter().map(|&word| word.to_owned()).collect(),
        form: None,
        ttl: Duration::from_secs(600),
        claim: Claim { owner: LeaseOwner::new(runtime.instance.to_string()), fence: Fence(1) },
        guards: Vec::new(),
        most: store::MAX_OPEN_QUESTIONS,
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

#[tokio::test]
async fn an_answer_for_good_needs_the_right_to_change_rules() {
    for home in homes() {
        let mut talk = Talk::new(&home).await;
        talk.ok("one").await;
        let tree = field(&talk.ok("/status").await, "tree");
        let words = ["once", "session", "always"];
        let approve = async |asker: &Asker, id: QuestionId, holds: Option<Holds>, answer: Option<&str>| {
            let answer = answer.map(str::to_owned);
            let command = Command::Approve(Approve { id: id.to_string(), answer, holds, fields: Vec::new() });
            home.app.run(asker, command).await.map(drop).map_err(|error| error.code.into_owned())
        };
        let word = async |id: QuestionId| {
            let question = home.app.runtime.store.question(&Principal::Owner, id).await.unwrap();
            question.answer.and_then(|answer| answer.word)
        };
        let token = Asker::token("t", store::Scope::Full, true, false);
        let id = asks_for(&home, &tree, &words).await;
        for (holds, answer) in [(Some(Holds::Always), None), (None, Some("always"))] {
            assert_eq!(approve(&token, id, holds, answer).await.unwrap_err(), "denied");
            assert_eq!(word(id).await, None);
        }
        approve(&token, id, Some(Holds::Session), None).await.unwrap();
        assert_eq!(word(id).await.as_deref(), Some("session"));
        for (line, said) in
            [("/approve", "once"), ("/approve session", "session"), ("/approve Always", "always")]
        {
            let id = asks_for(&home, &tree, &words).await;
            talk.ok(line).await;
            assert_eq!(word(id).await.as_deref(), Some(said), "{line}");
        }
        let id = asks_for(&home, &tree, &words).await;
        talk.ok(&format!("/approve {} session", id.short())).await;
        assert_eq!(word(id).await.as_deref(), Some("session"));
        // Where it is not offered it is no answer.
        let id = asks_for(&home, &tree, &["once"]).await;
        assert_eq!(talk.err("/approve session").await.code, "usage");
        assert_eq!(word(id).await, None);
    }
}

/// A person who says no, and looks which words name questions.
#[derive(Default)]
struct Denying(Mutex<Vec<bool>>);

impl Frontend for Denying {
    fn note(&self, _: &str) {}

    fn delta(&self, _: loom::NodeId, _: &str) {}

    fn is_attended(&self) -> bool {
        true
    }

    fn decide(&self, question: &AskedQuestion, names: &dyn Fn(&str) -> bool) -> Option<TypedAnswer> {
        let words = [question.id.short(), question.id.to_string(), "because".to_owned()];
        self.0.lock().unwrap().extend(words.iter().map(|word| names(word)));
        Some(TypedAnswer::no(None))
    }

    fn input(&self, _: &StoreGuard, _: Duration) -> Result<Box<dyn Read + Send>, FileError> {
        Ok(Box::new(std::io::empty()))
    }
}

#[tokio::test]
async fn whoever_is_asked_can_tell_the_name_of_a_question_from_a_reason() {
    for mut home in homes() {
        let echo = ScriptModel::echo(ScriptOptions::default());
        let prices = Some(Prices::flat(Rates { output: 1_000_000_000, ..Rates::FREE }));
        let info = ModelInfo { prices, ..Far::new().info };
        home.models.set(Far { echo, info });
        let budget = Budget { turn: Money::from_dollars(0.01), ..Budget::default() };
        home.app.runtime.spend = Arc::new(SpendLimiter::new(budget));
        let person = Arc::<Denying>::default();
        home.app.frontend = Arc::clone(&person) as Arc<dyn Frontend>;
        let mut talk = Talk::as_set(&home).await;
        assert_eq!(talk.err("hello").await.code, "budget_spent");
        assert_eq!(*person.0.lock().unwrap(), [true, true, false]);
    }
}

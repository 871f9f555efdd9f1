//! What may be spent, and who answers when a model does not (spec: agent §1 *Budgets*, §2; security §10).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use drawloom_agent::questions::{AnswerText, Decision};
use drawloom_agent::session::{Name, Say, SessionOperation, TurnInput, spawn};
use drawloom_agent::{
    AgentError, Budget, Limit, ListedModels, OpenedSession, SessionChoice, SessionEvent, SpendLimiter,
};
use model::retry::RetryPolicy;
use model::script::ScriptOptions;
use model::{
    CallOrigin, Cancel, EncodeError, EncodedRequest, Exchange, Model, ModelError, ModelInfo, ModelPlace,
    Money, Params, Prices, Prompt, Rates, RawResponse, ScriptModel, SourceKind,
};
use store::{Forget, Principal, SessionKind, UsageRow};

use crate::support::{Gated, House, Process, WHO, config, said};

const ANSWERS: &str = r#"{"text":"far","usage":{"input":1000,"output":1000},"loop":true}"#;

/// A script on another machine, which counts what it is asked.
struct Far {
    script: ScriptModel,
    info: ModelInfo,
    asked: AtomicUsize,
}

impl Far {
    fn new(name: &str, lines: &str, prices: Option<Prices>) -> Arc<Self> {
        Self::patient(name, lines, prices, RetryPolicy::never())
    }

    fn patient(name: &str, lines: &str, prices: Option<Prices>, retry: RetryPolicy) -> Arc<Self> {
        let options = ScriptOptions { retry, ..ScriptOptions::default() };
        let script = ScriptModel::from_text(name, lines, options).unwrap();
        let info = ModelInfo {
            provider: "far".to_owned(),
            place: ModelPlace::Remote,
            kind: SourceKind::Remote,
            prices,
            host: Some("far.test".to_owned()),
            ..script.info().clone()
        };
        Arc::new(Self { script, info, asked: AtomicUsize::new(0) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Model for Far {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn encode(&self, prompt: &Prompt, params: &Params) -> Result<EncodedRequest, EncodeError> {
        self.script.encode(prompt, params)
    }

    async fn send(
        &self,
        request: &EncodedRequest,
        call: &CallOrigin,
        exchange: Exchange<'_>,
    ) -> Result<RawResponse, ModelError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.script.send(request, call, exchange).await
    }
}

fn dollars(dollars: f64) -> Money {
    Money::from_dollars(dollars)
}

/// A dollar for a thousand tokens of output.
fn dear() -> Option<Prices> {
    Some(Prices::flat(Rates { output: 1_000_000_000, ..Rates::FREE }))
}

fn with_budget(process: &mut Process, turn: f64, day: f64) {
    let budget = Budget { turn: dollars(turn), day: dollars(day), ..Budget::default() };
    process.runtime.spend = Arc::new(SpendLimiter::new(budget));
}

fn with_fallbacks(process: &mut Process, models: Vec<Arc<dyn Model>>, remote: bool) {
    let found =
        move || models.iter().map(|model| (model.info().full_name(), Ok(Arc::clone(model)))).collect();
    process.runtime.fallbacks = ListedModels::new(found, remote);
}

async fn usage(process: &Process) -> Vec<UsageRow> {
    process
        .runtime
        .store
        .spent(&Principal::Owner, loom::Millis(0), None, 999)
        .await
        .unwrap()
        .into_iter()
        .map(|spent| spent.row)
        .collect()
}

/// A local model that is not there any more.
fn local(lines: &str) -> Arc<dyn Model> {
    let options = ScriptOptions { retry: RetryPolicy::never(), ..ScriptOptions::default() };
    Arc::new(ScriptModel::from_text("near", lines, options).unwrap())
}

const DOWN: &str = r#"{"fault":"500","loop":true}"#;
const REFUSES: &str = r#"{"fault":"context_too_long","loop":true}"#;

#[tokio::test]
async fn what_was_spent_counts_against_the_day_and_the_refusal_names_the_key() {
    let house = House::new();
    let mut process = house.process("test");
    with_budget(&mut process, 10.0, 5.0);
    let far = Far::new("dear", ANSWERS, dear());
    let model: Arc<dyn Model> = far.clone();
    // Each is reckoned with at most $4.10 beforehand, and comes to a dollar.
    let turned = process.say(&model, "one").await.unwrap();
    assert!(turned.reply.unwrap().error.is_none());
    assert_eq!(usage(&process).await[0].usage.micro_cost, Some(1_000_000));
    let refused = process.say(&model, "two").await.unwrap().reply.unwrap_err();
    assert!(matches!(refused.as_ref(), AgentError::Budget { limit: Limit::Day, .. }), "{refused}");
    assert!(refused.to_string().contains("$5.00"), "{refused}");
    assert_eq!(far.asked(), 1, "nothing was sent");
    assert_eq!(process.generations().await.len(), 1);
    // Control: the next day it may be asked again.
    house.pass(86_400_000);
    assert!(process.say(&model, "three").await.unwrap().reply.is_ok());
}

#[tokio::test]
async fn what_is_forgotten_while_it_waits_to_be_sent_again_is_free() {
    let house = House::new();
    let (mut answering, forgetting) = (house.process("chat"), house.process("forget"));
    with_budget(&mut answering, 10.0, 50.0);
    let what = Forget::Text("marzipan".to_owned());
    let (waits, mut waiting) = tokio::sync::mpsc::unbounded_channel();
    // Asked right before it waits.
    let jitter = Arc::new(move || waits.send(()).map_or(0.0, |()| 1.0));
    let retry = RetryPolicy { base: Duration::from_secs(60), jitter, ..RetryPolicy::patient() };
    let refuses: Arc<dyn Model> = Far::patient("refuses", r#"{"fault":"429","loop":true}"#, dear(), retry);
    let (turned, ()) = tokio::join!(answering.say(&refuses, "the marzipan crocodile"), async {
        waiting.recv().await.unwrap();
        assert_eq!(usage(&answering).await, []);
        forgetting.runtime.forget(&WHO, &what).await.unwrap();
    });
    let error = turned.unwrap().reply.unwrap_err();
    assert!(matches!(error.as_ref(), AgentError::Forgotten), "{error:?}");
    assert_eq!(usage(&answering).await, []);

    // Control: one that was cut off before it was turned away may be billed.
    let (waits, mut waiting) = tokio::sync::mpsc::unbounded_channel();
    let jitter = Arc::new(move || waits.send(()).map_or(0.0, |()| 1.0));
    // It is turned away again and again, each time after a longer wait, until it is forgotten in one of them.
    let retry = RetryPolicy { most: 16, base: Duration::from_millis(1), jitter, ..RetryPolicy::patient() };
    let turned_away = vec![r#"{"fault":"429"}"#; 16];
    let lines = [&[r#"{"fault":"cut"}"#][..], &turned_away].concat().join("\n");
    let cut: Arc<dyn Model> = Far::patient("cut", &lines, dear(), retry);
    let (turned, ()) = tokio::join!(answering.say(&cut, "the marzipan crocodile"), async {
        for _ in 0..2 {
            waiting.recv().await.unwrap();
        }
        forgetting.runtime.forget(&WHO, &what).await.unwrap();
    });
    let error = turned.unwrap().reply.unwrap_err();
    assert!(matches!(error.as_ref(), AgentError::Forgotten), "{error:?}");
    let cut = usage(&answering).await;
    assert!(cut.len() == 1 && cut[0].usage.micro_cost > Some(1_000_000), "{cut:?}");

    // And one that is answered.
    let (model, mut requests) = Gated::dear();
    let (turned, held) = tokio::join!(answering.say(&model, "the marzipan crocodile"), async {
        let held = requests.recv().await.unwrap();
        forgetting.runtime.forget(&WHO, &what).await.unwrap();
        held
    });
    drop(held);
    assert!(turned.unwrap().reply.is_err());
    let booked = usage(&answering).await;
    assert!(booked.len() == 2 && booked[1].usage.micro_cost > Some(1_000_000), "{booked:?}");
}

#[tokio::test]
async fn a_turn_has_a_budget_of_its_own_and_a_local_model_none() {
    let house = House::new();
    let mut process = house.process("test");
    with_budget(&mut process, 1.0, 500.0);
    let far = Far::new("dear", ANSWERS, dear());
    let model: Arc<dyn Model> = far.clone();
    let refused = process.say(&model, "one").await.unwrap().reply.unwrap_err();
    assert!(matches!(refused.as_ref(), AgentError::Budget { limit: Limit::Turn, .. }), "{refused}");
    assert_eq!(far.asked(), 0);
    let near = local(ANSWERS);
    assert!(process.say(&near, "two").await.unwrap().reply.is_ok(), "control");
    assert_eq!(usage(&process).await[0].usage.micro_cost, Some(0));
}

#[tokio::test]
async fn what_joins_a_turn_shares_its_budget() {
    let house = House::new();
    let mut process = house.process("test");
    // Each request is reckoned with $4.096 beforehand, and comes to less than a cent.
    with_budget(&mut process, 4.097, 500.0);
    let (model, mut requests) = Gated::dear();
    let talk = process.talk(config(&model), TurnInput::text("one")).await;
    let asked = requests.recv().await.unwrap();
    talk.steer("two").await;
    drop(asked);
    // Whoever types a line is there to be asked.
    let mut events = talk.session.events(1);
    let question = loop {
        let event = tokio::select! {
            event = events.next() => event.unwrap().event,
            _ = requests.recv() => panic!("it is sent, and nobody was asked"),
        };
        if let SessionEvent::Question { question } = event {
            break question;
        }
    };
    assert!(question.text.contains("the limit of one turn is $4.10, of which"), "{}", question.text);
    let no = Decision::Denied;
    process.runtime.answer_question(&WHO, question.id, no, AnswerText::default()).await.unwrap();
    let ended = talk.until_it_ends(Cancel::never()).await;
    let [(_, first), (texts, second)] = ended.try_into().unwrap();
    assert!(first.unwrap().reply.unwrap().error.is_none());
    assert_eq!(texts, ["two"]);
    let refused = second.unwrap().reply.unwrap_err();
    assert!(matches!(refused.as_ref(), AgentError::Budget { limit: Limit::Turn, .. }), "{refused}");
    // Control: a turn of its own has the whole budget.
    let talk = process.talk(config(&model), TurnInput::text("three")).await;
    drop(requests.recv().await.unwrap());
    assert!(talk.until_it_ends(Cancel::never()).await.remove(0).1.unwrap().reply.is_ok());
}

/// Says something where somebody answers every question with yes. Returns the questions.
async fn say_and_allow(process: &Process, entered: &OpenedSession, model: &Arc<dyn Model>) -> Vec<String> {
    let session = spawn(&process.runtime, &process.sessions, &entered.session);
    let mut events = session.events(session.next_event());
    let key = process.runtime.new_id().unwrap();
    let say = Say {
        answer_within: Some(drawloom_agent::questions::DEADLINE),
        ..said(key, Arc::new(config(model)), TurnInput::text("go on"))
    };
    session.send(SessionOperation::Say(Box::new(say))).await.unwrap();
    let mut questions = Vec::new();
    loop {
        match events.next().await.unwrap().event {
            SessionEvent::Question { question } => {
                let yes = (Decision::Approved, AnswerText::default());
                process.runtime.answer_question(&WHO, question.id, yes.0, yes.1).await.unwrap();
                questions.push(question.text);
            }
            SessionEvent::Finished { outcome, .. } => assert!(outcome.error.is_none(), "{outcome:?}"),
            SessionEvent::Idle => return questions,
            _ => {}
        }
    }
}

/// The session `main` and another one.
async fn two_sessions(process: &Process) -> [OpenedSession; 2] {
    let name = Name::new("other").unwrap();
    let chosen = SessionChoice { workspace: String::new(), name, kind: SessionKind::Main };
    [process.enter().await, process.runtime.enter(&WHO, &chosen, "hello").await.unwrap()]
}

#[tokio::test]
async fn a_yes_to_a_turns_budget_holds_for_no_other_turn() {
    let house = House::new();
    let mut process = house.process("test");
    let model: Arc<dyn Model> = Far::new("dear", ANSWERS, dear());
    with_budget(&mut process, 4.0, 500.0);
    let [main, other] = two_sessions(&process).await;
    for session in [&main, &main, &other] {
        let asked = say_and_allow(&process, session, &model).await;
        assert!(matches!(asked.as_slice(), [one] if one.contains("$4.00 more in this turn")), "{asked:?}");
    }
}

#[tokio::test]
async fn a_yes_to_a_days_budget_holds_in_its_session_until_the_day_ends() {
    let house = House::new();
    let mut process = house.process("test");
    let model: Arc<dyn Model> = Far::new("dear", ANSWERS, dear());
    // Each is reckoned with $4.10 beforehand, and comes to a dollar.
    with_budget(&mut process, 10.0, 6.0);
    let [main, other] = two_sessions(&process).await;
    for expected in [0, 0, 1, 0] {
        let asked = say_and_allow(&process, &main, &model).await;
        assert_eq!(asked.len(), expected, "{asked:?}");
        assert!(asked.iter().all(|asked| asked.contains("$6.00 more in this tree today")), "{asked:?}");
    }
    assert_eq!(say_and_allow(&process, &other, &model).await.len(), 1, "not in another session");
    house.pass(86_400_000);
    for expected in [0, 0, 1] {
        let asked = say_and_allow(&process, &main, &model).await;
        assert_eq!(asked.len(), expected, "what was allowed yesterday is over: {asked:?}");
    }
}

#[tokio::test]
async fn a_price_that_is_not_known_is_kept_as_such() {
    let house = House::new();
    let process = house.process("test");
    let model: Arc<dyn Model> = Far::new("secretive", ANSWERS, None);
    assert!(process.say(&model, "one").await.unwrap().reply.is_ok());
    assert_eq!(usage(&process).await[0].usage.micro_cost, None);
}

#[tokio::test]
async fn s10_a_cut_local_model_makes_no_request_at_a_remote_one() {
    for (allowed, expected) in [(false, 0), (true, 1)] {
        let house = House::new();
        let mut process = house.process("test");
        let far = Far::new("far", ANSWERS, Some(Prices::FREE));
        with_fallbacks(&mut process, vec![far.clone()], allowed);
        let reply = process.say(&local(DOWN), "private").await.unwrap().reply.unwrap();
        // The second is the control: the owner allowed it in so many words.
        assert_eq!(far.asked(), expected);
        assert_eq!(reply.error.is_none(), allowed);
        let notes = process.heard.notes.lock().unwrap().join("\n");
        let said = if allowed { "text goes to far.test (far)" } else { "model.fallback_remote" };
        assert!(notes.contains(said), "{notes}");
    }
}

#[tokio::test]
async fn the_next_model_answers_with_a_generation_of_its_own() {
    let house = House::new();
    let mut process = house.process("test");
    let down = Far::new("down", DOWN, Some(Prices::FREE));
    let other = Far::new("other", ANSWERS, Some(Prices::FREE));
    with_fallbacks(&mut process, vec![down.clone(), other.clone()], false);
    let model: Arc<dyn Model> = down.clone();
    let reply = process.say(&model, "hello").await.unwrap().reply.unwrap();
    assert_eq!(&*reply.answer.unwrap().text, "far");
    assert_eq!((down.asked(), other.asked()), (1, 1), "the one that failed is not asked again");
    let generations = process.generations().await;
    assert_eq!(generations.len(), 2);
    assert_ne!(generations[0].row.manifest, generations[1].row.manifest);
    let notes = process.heard.notes.lock().unwrap().join("\n");
    assert!(
        notes.contains("far/down did not answer") && notes.contains("far/other is asked instead"),
        "{notes}"
    );
}

#[tokio::test]
async fn what_is_wrong_with_the_request_is_not_asked_elsewhere() {
    for (lines, expected) in [(REFUSES, 0), (DOWN, 1)] {
        let house = House::new();
        let mut process = house.process("test");
        let other = Far::new("other", ANSWERS, Some(Prices::FREE));
        with_fallbacks(&mut process, vec![other.clone()], false);
        let model: Arc<dyn Model> = Far::new("first", lines, Some(Prices::FREE));
        let _ = process.say(&model, "hello").await.unwrap();
        assert_eq!(other.asked(), expected);
    }
}

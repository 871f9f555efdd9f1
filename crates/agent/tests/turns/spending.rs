//! What may be spent, and who answers when a model does not (spec: agent §1 *Budgets*, §2; security §10).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use drawloom_agent::{AgentError, Budget, Fallbacks, Limit, SpendLimiter};
use model::retry::RetryPolicy;
use model::script::ScriptOptions;
use model::{
    CallOrigin, EncodeError, EncodedRequest, Exchange, Model, ModelError, ModelInfo, ModelPlace, Money,
    Params, Prices, Prompt, Rates, RawResponse, ScriptModel, SourceKind,
};
use store::{Principal, UsageRow};

use crate::support::{House, Process};

const ANSWERS: &str = r#"{"text":"far","usage":{"input":1000,"output":1000},"loop":true}"#;

/// A script on another machine, which counts what it is asked.
struct Far {
    script: ScriptModel,
    info: ModelInfo,
    asked: AtomicUsize,
}

impl Far {
    fn new(name: &str, lines: &str, prices: Option<Prices>) -> Arc<Self> {
        let options = ScriptOptions { retry: RetryPolicy::never(), ..ScriptOptions::default() };
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
    process.runtime.fallbacks = Fallbacks::new(found, remote);
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

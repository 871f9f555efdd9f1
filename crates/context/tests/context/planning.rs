//! The plan that a model keeps stays in sight, whatever leaves the window.

use std::sync::Arc;

use drawloom_context::dialogue::{DialogueRequest, dialogue};
use drawloom_context::plan::{PLAN, Plan, PlanStep, StepState, standing};
use drawloom_context::{Assembled, Bootstrap, Estimator, Previous, TokenBudget};
use loom::path::ViewOverrides;
use loom::plan::NewText;
use loom::render::tip;
use loom::{Block, Mode, NodeId, Op, Role, TextOffset, ToolStatus, ViewName};
use loom_testing::WriteRows;
use model::{Model, Params};
use proptest::prelude::*;
use serde_json::{json, to_value};

use crate::fixed::{target, tool};
use crate::support::{Desk, echo};

/// A session in a window of 20,000 tokens whose model keeps a plan.
struct Planning {
    desk: Desk,
    request: DialogueRequest,
    said: Vec<NodeId>,
    calls: usize,
    trims: usize,
    shown_again: usize,
}

fn plan(step: &str) -> Plan {
    let state = StepState::Active;
    Plan { steps: vec![PlanStep { step: step.to_owned(), state }] }
}

impl Planning {
    fn new() -> Self {
        let bootstrap = Bootstrap { tools: vec![tool(PLAN, 10, true)], ..Bootstrap::default() };
        let budget = TokenBudget::new(20_000, 4_096, None);
        let request = DialogueRequest {
            bootstrap: Arc::new(bootstrap),
            ..DialogueRequest::new(ViewName::default(), target(), budget)
        };
        Self { desk: Desk::of(Mode::Dialogue), request, said: Vec::new(), calls: 0, trims: 0, shown_again: 0 }
    }

    fn say(&mut self, words: usize) {
        let said = self.desk.say(Role::User, vec![Block::text("Weave on. ".repeat(words))]);
        self.said.push(said);
    }

    /// Has the window begin with the message said last but some.
    fn compact(&mut self, before_last: usize) {
        let at = self.said.len().saturating_sub(before_last + 1);
        let to = Some(TextOffset { position: self.said[at].as_position(), at: 0 });
        self.desk.run(Op::Compact { to, by_hand: true });
    }

    /// A call with its result. Returns the node of the call.
    fn call(&mut self, name: &str, arguments: serde_json::Value, said: String, status: ToolStatus) -> NodeId {
        let id = format!("c{}", self.calls);
        self.calls += 1;
        let call = Block::ToolCall { id: id.clone(), name: name.to_owned(), arguments };
        let node = self.desk.say(Role::Assistant, vec![call]);
        let result = Block::ToolResult { call_id: id, status, blocks: vec![Block::text(said)] };
        self.desk.say(Role::Tool, vec![result]);
        node
    }

    fn set(&mut self, step: &str, status: ToolStatus) -> NodeId {
        self.call(PLAN, to_value(plan(step)).unwrap(), "1 step".to_owned(), status)
    }

    /// The next request, as bytes.
    fn ask(&mut self) -> String {
        let assembled: Assembled = dialogue(&self.desk.tree, &self.request, &Estimator::default()).unwrap();
        assert!(assembled.tokens <= self.request.budget.budget);
        for shown in &assembled.injected {
            self.shown_again += usize::from(shown.source.starts_with("steps#"));
            self.desk.tree.add_injection(shown.clone());
        }
        if assembled.new_start.is_some() {
            self.trims += 1;
            self.desk.run(Op::Compact { to: assembled.new_start, by_hand: false });
        }
        self.request.previous = Previous {
            prefix: assembled.prefix.clone(),
            calls: assembled.runs.iter().flat_map(|run| run.calls.clone()).collect(),
            used: Some(assembled.tokens),
            ..Previous::default()
        };
        let encoded = echo().encode(&assembled.prompt, &Params::default()).unwrap();
        String::from_utf8(encoded.body().to_vec()).unwrap()
    }

    fn standing(&self) -> Option<Plan> {
        let (rows, view) = (&self.desk.tree, ViewName::default());
        let path = ViewOverrides::read(rows, &view, tip(rows, &view).unwrap()).unwrap();
        let depth = path.tip.depth;
        standing(rows, &view, &path, 0..=depth).unwrap().map(|standing| standing.plan)
    }
}

#[derive(Debug, Clone)]
enum Step {
    Say(usize),
    Read(usize),
    Plan(bool),
    Compact(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..600_usize).prop_map(Step::Say),
        5 => (1..900_usize).prop_map(Step::Read),
        1 => prop::bool::weighted(0.8).prop_map(Step::Plan),
        1 => (0..3_usize).prop_map(Step::Compact),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.min(64), ..Default::default() })]

    #[test]
    fn the_newest_plan_stands_in_every_request(steps in prop::collection::vec(step(), 1..60)) {
        let mut session = Planning::new();
        session.say(1);
        let mut newest = None;
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Say(words) => {
                    session.desk.say(Role::Assistant, vec![Block::text("Woven.")]);
                    session.say(words);
                }
                Step::Read(words) => {
                    let said = "warp weft ".repeat(words);
                    session.call("read", json!({"path": "loom"}), said, ToolStatus::Ok);
                }
                Step::Compact(before_last) => session.compact(before_last),
                Step::Plan(answered) => {
                    let name = format!("step number {number} of this");
                    session.set(&name, if answered { ToolStatus::Ok } else { ToolStatus::Denied });
                    newest = if answered { Some(name) } else { newest };
                }
            }
            let sent = session.ask();
            if let Some(newest) = &newest {
                prop_assert!(sent.contains(newest.as_str()), "{newest} is not in sight");
            }
            prop_assert_eq!(session.standing(), newest.as_deref().map(plan));
        }
    }
}

#[test]
fn a_plan_is_shown_again_once_a_trim_and_never_where_none_was_set() {
    let mut session = Planning::new();
    session.say(1);
    session.set("dress the loom", ToolStatus::Ok);
    for _ in 0..200 {
        session.ask();
        session.desk.say(Role::Assistant, vec![Block::text("Woven.")]);
        session.say(300);
    }
    assert!(session.trims > 2, "control: {} trims", session.trims);
    assert!((1..=session.trims).contains(&session.shown_again), "{} times", session.shown_again);
    // What is over is not shown again.
    session.call(PLAN, json!({"steps": []}), "nothing is planned".to_owned(), ToolStatus::Ok);
    let (trims, shown_again) = (session.trims, session.shown_again);
    for _ in 0..100 {
        session.ask();
        session.desk.say(Role::Assistant, vec![Block::text("Woven.")]);
        session.say(300);
    }
    assert!(session.trims > trims);
    assert_eq!(session.shown_again, shown_again);
}

#[test]
fn a_plan_of_any_words_is_read_back_as_it_was_shown() {
    let mut session = Planning::new();
    session.say(1);
    let odd = Plan {
        steps: vec![
            PlanStep { step: "2. done: not]\n[yet".to_owned(), state: StepState::Pending },
            PlanStep { step: "x".to_owned(), state: StepState::Done },
        ],
    };
    let node = session.call(PLAN, to_value(&odd).unwrap(), String::new(), ToolStatus::Ok);
    let shown = format!("[The plan, as you set it last:\n{}]", session.standing().unwrap());
    let standing = session.standing();
    session.say(1);
    let last = tip(&session.desk.tree, &ViewName::default()).unwrap().original();
    session.desk.shown(last, &format!("steps#{node}"), &shown);
    assert_eq!(session.standing(), standing);
    assert_eq!(standing.unwrap().steps[0].step, "2. done: not] [yet");
}

#[test]
fn a_plan_stands_as_far_above_as_the_path_goes() {
    let mut session = Planning::new();
    session.say(1);
    session.set("weave", ToolStatus::Ok);
    let answers = (0..5_000).map(|_| NewText::owner("woven", Some(Role::Assistant))).collect();
    session.desk.run(Op::Reply { to: None, texts: answers, exclude: Vec::new(), part_of: None }).unwrap();
    assert_eq!(session.standing(), Some(plan("weave")));
}

//! Whole sessions: no request over its budget, nothing orphaned, and each the one before it and more.

use std::sync::Arc;

use drawloom_context::dialogue::{DialogueRequest, dialogue};
use drawloom_context::{
    Assembled, Bootstrap, ContextError, Estimator, Previous, Strategy, TokenBudget, Zone, cover, reuse,
};
use loom::{Block, Mode, Op, Role, ToolStatus, ViewName};
use loom_testing::WriteRows;
use model::{ChatPart, Model, Params, Prompt};
use proptest::prelude::*;
use serde_json::json;

use crate::dialogue::counted;
use crate::fixed::{full, target};
use crate::sending::drawn;
use crate::support::{Desk, echo, prompt_text};

/// A session, and what is known of its last request.
struct Session {
    desk: Desk,
    request: DialogueRequest,
    body: Option<Vec<u8>>,
    calls: usize,
    user: String,
    requests: u64,
    trims: u64,
    reused: u64,
    tokens: u64,
}

impl Session {
    fn new(window: u64, bootstrap: Bootstrap) -> Self {
        let budget = TokenBudget::new(window, 4_096, None);
        let request = DialogueRequest {
            bootstrap: Arc::new(bootstrap),
            ..DialogueRequest::new(ViewName::default(), target(), budget)
        };
        let desk = Desk::of(Mode::Dialogue);
        let user = String::new();
        Self { desk, request, body: None, calls: 0, user, requests: 0, trims: 0, reused: 0, tokens: 0 }
    }

    fn say(&mut self, text: &str) {
        self.user = text.to_owned();
        self.desk.say(Role::User, vec![Block::text(text)]);
    }

    /// An answer that makes calls, each with its result; every fifth result is lost.
    fn call(&mut self, results: &[String]) {
        let first = self.calls;
        self.calls += results.len();
        let call = |n: usize| Block::ToolCall {
            id: format!("c{n}"),
            name: "read".into(),
            arguments: json!({"path": format!("file-{n}")}),
        };
        self.desk.say(Role::Assistant, (first..self.calls).map(call).collect());
        for (n, text) in (first..).zip(results) {
            let blocks = vec![Block::text(text)];
            if n % 5 != 4 {
                let result = Block::ToolResult { call_id: format!("c{n}"), status: ToolStatus::Ok, blocks };
                self.desk.say(Role::Tool, vec![result]);
            }
        }
    }

    fn try_ask(&mut self) -> Result<Assembled, ContextError> {
        let estimator = Estimator::default();
        let assembled = dialogue(&self.desk.tree, &self.request, &estimator)?;
        let encoded = echo().encode(&assembled.prompt, &Params::default()).unwrap();
        cover(&encoded, &assembled.pieces, &estimator).unwrap();
        counted(&assembled);
        assert!(assembled.tokens <= self.request.budget.budget, "{} is over budget", assembled.tokens);
        assert!(prompt_text(&assembled.prompt).contains(&self.user), "what the user said is lost");
        let Prompt::Chat(chat) = &assembled.prompt else { panic!("a dialogue is a chat") };
        let first = chat.messages.get(chat.stable);
        assert!(matches!(first, Some(ChatPart::User(_))), "it begins with {first:?}");
        if let Some(before) = &self.body {
            self.reused += reuse::reused(&encoded, &assembled.pieces, before);
        }
        self.tokens += assembled.tokens;
        self.requests += 1;
        self.body = Some(encoded.body().to_vec());
        for shown in &assembled.injected {
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
        Ok(assembled)
    }

    fn ask(&mut self) -> Assembled {
        self.try_ask().unwrap()
    }
}

fn words(count: usize, seed: usize) -> String {
    (0..count).map(|n| ["rain ", "and ", "the ", "tide "][(n + seed) % 4]).collect()
}

/// Sizes of turns from a number, the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most.max(1)
    }
}

/// Two hundred turns, of up to `rounds` rounds of calls each, that fill a window several times over.
fn two_hundred_turns(window: u64, rounds: usize) {
    let mut session = Session::new(window, full());
    let mut dice = Dice(window);
    let most = window as usize / 40;
    for turn in 0..200 {
        session.say(&format!("question {turn} {}", words(dice.below(most), turn)));
        session.ask();
        for _ in 0..dice.below(rounds + 1) {
            let results: Vec<String> = (0..=dice.below(8)).map(|n| words(1 + dice.below(most), n)).collect();
            session.call(&results);
            session.ask();
        }
        session.desk.say(Role::Assistant, vec![Block::text(words(1 + dice.below(most), turn))]);
    }
    assert!(session.trims > 0, "the window of {window} was never full");
}

#[test]
fn two_hundred_turns_in_4k_never_send_a_request_over_its_budget() {
    two_hundred_turns(4_000, 2);
}

#[test]
fn two_hundred_turns_in_8k_never_send_a_request_over_its_budget() {
    two_hundred_turns(8_000, 2);
}

#[test]
fn two_hundred_turns_in_32k_never_send_a_request_over_its_budget() {
    two_hundred_turns(32_000, 2);
}

#[test]
fn two_hundred_turns_in_200k_never_send_a_request_over_its_budget() {
    two_hundred_turns(200_000, 1);
}

#[test]
fn two_hundred_turns_in_1m_never_send_a_request_over_its_budget() {
    two_hundred_turns(1_000_000, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.min(24), ..Default::default() })]

    #[test]
    fn any_session_fits_or_is_refused_with_figures(
        turns in prop::collection::vec((0_usize..400, prop::collection::vec(prop::collection::vec(0_usize..900, 0..5), 0..4)), 1..12),
    ) {
        let mut session = Session::new(6_000, Bootstrap::default());
        for (turn, (said, rounds)) in turns.into_iter().enumerate() {
            session.say(&format!("question {turn} {}", words(said, turn)));
            for results in [vec![]].into_iter().chain(rounds) {
                if !results.is_empty() {
                    let results: Vec<String> = results.iter().map(|size| words(*size, turn)).collect();
                    session.call(&results);
                }
                if let Err(error) = session.try_ask() {
                    let figures = matches!(error, ContextError::TooLong { needed, budget, .. } if needed > budget);
                    prop_assert!(figures, "{error}");
                }
            }
        }
    }
}

#[test]
fn a_long_session_with_tools_reuses_nearly_everything() {
    let mut session = Session::new(24_000, full());
    let mut dice = Dice(7);
    for turn in 0..60 {
        session.say(&format!("question {turn}: {}", words(30, turn)));
        session.ask();
        for call in 0..3 + dice.below(6) {
            session.call(&[words(1 + dice.below(60), call)]);
            session.ask();
        }
        session.desk.say(Role::Assistant, vec![Block::text(words(40, turn))]);
    }
    let share = session.reused as f64 / session.tokens as f64;
    println!(
        "{} requests, {} tokens, {} trims, {:.2} % reusable",
        session.requests,
        session.tokens,
        session.trims,
        share * 100.0
    );
    assert!(session.trims > 0 && share >= 0.95, "{share}");
}

#[test]
fn a_turn_that_grows_too_long_gives_up_its_oldest_results_and_they_stay_gone() {
    let mut session = Session::new(8_000, Bootstrap::default());
    session.say("read everything");
    let mut cut = Vec::new();
    for n in 0..30 {
        session.call(&[format!("result {n}: {}", words(300, n))]);
        let assembled = session.ask();
        let now: Vec<_> = assembled.runs[0].calls.iter().map(|cut| (cut.answer, cut.call)).collect();
        assert!(cut.iter().all(|before| now.contains(before)), "what was cut is back");
        assert!(assembled.new_start.is_none(), "the turn stays");
        cut = now;
    }
    let drawn = drawn(&session.ask());
    assert_eq!(drawn[0], "user read everything");
    assert!(drawn.iter().any(|line| line.contains("characters of this result are left out here; the whole of it is node")));
    assert!(drawn.len() < 31, "whole pairs have left");
    let newest = drawn[drawn.len() - 4..].join("\n");
    assert!(newest.contains("result 28: ") && newest.contains("c29 Denied"), "{newest}");
}

#[test]
fn each_zone_is_told_of_once() {
    let mut session = Session::new(16_000, Bootstrap::default());
    let mut told = Vec::new();
    for turn in 0..40 {
        session.say(&format!("question {turn} {}", words(100, turn)));
        let assembled = session.ask();
        told.extend(assembled.injected.iter().map(|shown| shown.source.clone()));
        session.desk.say(Role::Assistant, vec![Block::text(words(100, turn))]);
        if Zone::of(assembled.tokens as f64 / 16_000.0) == Zone::Red {
            break;
        }
    }
    session.say("one more");
    told.extend(session.ask().injected.iter().map(|shown| shown.source.clone()));
    assert_eq!(told, ["zone#yellow", "zone#orange", "zone#red"]);
}

#[test]
fn a_trim_activates_what_has_changed_above() {
    let mut session = Session::new(8_000, full());
    for turn in 0..40 {
        session.say(&format!("question {turn} {}", words(400, turn)));
        let mut boot = full();
        let text = format!("version {turn}\n{}", "AGENTS.md says: be careful.\n".repeat(19));
        boot.files[0] = crate::fixed::file("AGENTS.md", &text);
        session.request.bootstrap = Arc::new(boot);
        let before = session.request.previous.prefix.clone();
        let assembled = session.ask();
        let same = before.is_none() || before == assembled.prefix;
        assert_eq!(!same, assembled.new_start.is_some(), "turn {turn}");
        session.desk.say(Role::Assistant, vec![Block::text(words(400, turn))]);
        if session.trims == 2 {
            return;
        }
    }
    panic!("nothing was trimmed");
}

#[test]
fn the_first_turn_stays_where_the_middle_is_cut_and_nothing_leaves_where_that_is_the_limit() {
    let mut session = Session::new(8_000, Bootstrap::default());
    session.request.strategy = Strategy::TruncateMiddle;
    for turn in 0..40 {
        session.say(&format!("question {turn} {}", words(200, turn)));
        let assembled = session.ask();
        let drawn = drawn(&assembled);
        assert!(drawn[0].starts_with("user question 0 "), "{}", drawn[0]);
        assert_eq!(session.trims > 0, drawn.iter().any(|line| line.starts_with("shown [Turns between")));
        assert_eq!(assembled.left.len(), usize::from(session.trims > 0));
        session.desk.say(Role::Assistant, vec![Block::text(words(200, turn))]);
    }
    assert!(session.trims > 0);
    session.request.strategy = Strategy::StopAtLimit;
    session.say(&words(8_000, 0));
    assert!(matches!(session.try_ask(), Err(ContextError::TooLong { .. })));
}

#[test]
fn what_left_the_window_is_named_with_what_covers_it() {
    let mut session = Session::new(8_000, Bootstrap::default());
    let mut last = None;
    for turn in 0..30 {
        session.say(&format!("question {turn} {}", words(200, turn)));
        last = Some(session.ask());
        session.desk.say(Role::Assistant, vec![Block::text(words(200, turn))]);
    }
    let last = last.unwrap();
    assert_eq!(last.left.len(), 1);
    assert_eq!(
        last.left[0].count + last.runs[0].count,
        59,
        "without the genesis, every node is in one of them"
    );
    let said =
        last.pieces.iter().find(|piece| matches!(piece.source, drawloom_context::Source::Left { left: 0 }));
    let why = format!("{:?}", said.unwrap().decision);
    assert!(why.contains("not covered"), "{why}");
}

/// The case X24: a cut in the middle of a turn.
#[test]
fn x24_a_window_set_inside_a_turn_begins_with_a_turn() {
    let mut session = Session::new(32_000, Bootstrap::default());
    session.say("first");
    session.call(&["one".into(), "two".into()]);
    let middle = session.desk.say(Role::Assistant, vec![Block::text("it is so")]);
    session.say("second");
    let place = loom::TextOffset { position: middle.as_position(), at: 0 };
    session.desk.run(Op::Compact { to: Some(place), by_hand: true });
    assert_eq!(drawn(&session.ask()), ["user second"]);
    let answer = session.desk.say(Role::Assistant, vec![Block::text("and so")]);
    let place = loom::TextOffset { position: answer.as_position(), at: 0 };
    session.desk.run(Op::Compact { to: Some(place), by_hand: true });
    assert_eq!(drawn(&session.ask()), ["user second", "assistant and so"], "the newest turn is whole");
}

/// The case X25: a window of 32,000 with much above leaves the history what is left, not what it wants.
#[test]
fn x25_history_gets_what_the_budget_leaves() {
    let mut boot = Bootstrap { tools: vec![crate::fixed::tool("big", 400, true)], ..Bootstrap::default() };
    boot.identity = words(2_000, 0);
    let mut session = Session::new(32_000, boot);
    for turn in 0..100 {
        session.desk.say(Role::User, vec![Block::text(format!("q{turn} {}", words(150, turn)))]);
        session.desk.say(Role::Assistant, vec![Block::text(words(150, turn))]);
    }
    session.say("now");
    let assembled = session.ask();
    let fixed: u64 = assembled.pieces.iter().filter(|piece| piece.stable).map(|piece| piece.tokens).sum();
    let history = assembled.runs[0].tokens;
    let left = 32_000 - 4_096 - 1_024 - fixed;
    assert!(history <= left * 6 / 10 && history > left / 3, "{history} of {left}");
}

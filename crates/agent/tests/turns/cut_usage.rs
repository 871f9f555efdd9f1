//! Tokens of answers that break off: what was reported until then is learned from, if it can be true.

use std::sync::Arc;

use async_trait::async_trait;
use drawloom_agent::session::TurnInput;
use drawloom_agent::{AgentError, Call, GenerationOutcome, stored};
use loom::plan::{NewText, NewTree};
use loom::{Mode, Op, Role, TreeId, ViewName};
use model::{
    CallOrigin, Connection, DialectName, EncodeError, EncodedRequest, Exchange, HttpModel, Model, ModelError,
    ModelInfo, ModelPlace, PARSER_VERSION, Params, Prices, Prompt, Quirks, Rates, RawResponse, SourceKind,
    Timings, TokenUsage,
};
use serde_json::{Value, json};
use store::home::HomeDir;
use store::{AttachedWrites, Principal, UsageRow};
use text::cut::Boundary;
use tokio::sync::mpsc;

use crate::support::{House, Process, WHO, config};

/// A distant model whose answer breaks off, or never goes on.
struct BreaksOff {
    http: HttpModel,
    body: Vec<u8>,
    /// Told that the answer does not go on.
    halted: Option<mpsc::UnboundedSender<()>>,
}

impl BreaksOff {
    /// One that has reported `input` tokens before; none if it reports nothing. What comes is the first `events` of its
    /// stream, of which the third holds text.
    fn model(input: Option<u64>, events: usize, halted: Option<mpsc::UnboundedSender<()>>) -> Arc<dyn Model> {
        let usage = input.map(|input| json!({"input_tokens": input, "output_tokens": 1}));
        let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [],
            "usage": usage});
        let block = json!({"type": "text", "text": ""});
        let delta = json!({"type": "text_delta", "text": "It rains."});
        let all = [
            json!({"type": "message_start", "message": message}),
            json!({"type": "content_block_start", "index": 0, "content_block": block}),
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        ];
        let came = all.iter().take(events);
        Self::of(&came.cloned().collect::<Vec<_>>(), halted)
    }

    /// One of which these events come.
    fn of(events: &[Value], halted: Option<mpsc::UnboundedSender<()>>) -> Arc<dyn Model> {
        let body = events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>().into_bytes();
        // A dollar for a thousand tokens of input.
        let prices = Some(Prices::flat(Rates { input: 1_000_000_000, ..Rates::FREE }));
        let info = ModelInfo {
            dialect: DialectName::AnthropicMessages,
            completion_endpoint: false,
            place: ModelPlace::Remote,
            kind: SourceKind::Remote,
            prices,
            ..ModelInfo::local("far", "m", 32_768, 1_024)
        };
        let http = HttpModel::new(info, Quirks::default(), Connection::new("http://127.0.0.1:9/v1")).unwrap();
        Arc::new(Self { http, body, halted })
    }
}

#[async_trait]
impl Model for BreaksOff {
    fn info(&self) -> &ModelInfo {
        self.http.info()
    }

    fn encode(&self, prompt: &Prompt, params: &Params) -> Result<EncodedRequest, EncodeError> {
        self.http.encode(prompt, params)
    }

    async fn send(
        &self,
        request: &EncodedRequest,
        _: &CallOrigin,
        exchange: Exchange<'_>,
    ) -> Result<RawResponse, ModelError> {
        exchange.spool.append(&self.body).unwrap();
        if let Some(halted) = &self.halted {
            halted.send(()).unwrap();
            std::future::pending::<()>().await;
        }
        let response = RawResponse {
            status: 200,
            headers: Vec::new(),
            removed_headers: Vec::new(),
            body: self.body.clone().into(),
            streamed: true,
            timings: Timings { started_at: 0, head_ms: 0, first_byte_ms: Some(0), total_ms: 0 },
            attempt: 1,
            dialect: request.dialect(),
            parser_version: PARSER_VERSION,
            parsed: model::reparse(request.dialect(), &self.body, true),
            source: SourceKind::Remote,
        };
        Err(ModelError::Cut { why: "it broke".to_owned(), response: Some(Box::new(response)) })
    }
}

fn question() -> String {
    "The rain is in the hand of the weaver. ".repeat(70)
}

async fn asked(process: &Process, input: Option<u64>) -> (TreeId, GenerationOutcome) {
    let (tree, outcome) = asked_of(process, &BreaksOff::model(input, 3, None), None).await;
    (tree, outcome.unwrap())
}

async fn asked_of(
    process: &Process,
    model: &Arc<dyn Model>,
    ends_at: Option<Boundary>,
) -> (TreeId, Result<GenerationOutcome, AgentError>) {
    let tree = process.runtime.new_id::<TreeId>().unwrap();
    let view = ViewName::default();
    let title = "rain".to_owned();
    let create = Op::Create(NewTree { mode: Mode::Dialogue, title, origin: None });
    let append = Op::Append(NewText::owner(question(), Some(Role::User)));
    for op in [create, append] {
        process.runtime.change(&WHO, tree, &view, op, AttachedWrites::nothing()).await.unwrap();
    }
    let mut ask = config(model).request(tree, &view);
    ask.params.ends_at = ends_at;
    (tree, ask.send(&process.runtime, &Call::owner(Arc::new(()))).await)
}

/// Whether anything was learned of a tokenizer.
fn has_learned(process: &Process) -> bool {
    let estimates = process.runtime.home.dir(HomeDir::Cache).unwrap().join("estimates");
    std::fs::read_dir(estimates).is_ok_and(|files| files.count() > 0)
}

async fn kept_estimate(process: &Process, tree: TreeId, outcome: &GenerationOutcome) -> Option<TokenUsage> {
    let node = outcome.nodes[0].id;
    let read = process.runtime.read(&WHO, tree, move |rows| stored::response(rows, node)).await;
    read.unwrap().unwrap().meta.estimated_usage
}

async fn booked(process: &Process) -> UsageRow {
    let spent = process.runtime.store.spent(&Principal::Owner, loom::Millis(0), None, 9).await.unwrap();
    assert_eq!(spent.len(), 1);
    spent[0].row
}

#[tokio::test]
async fn what_was_reported_of_the_input_counts_where_the_answer_breaks_off() {
    let house = House::new();
    let process = house.process("generate");
    let (tree, cut) = asked(&process, Some(700)).await;
    assert!(cut.usage.is_none() && cut.error.is_some());
    assert_eq!(cut.cost.unwrap().dollars(), 0.7);
    let usage = TokenUsage { input_uncached: 700, output: 4, ..TokenUsage::default() };
    assert_eq!(cut.estimated_usage, usage);
    assert_eq!(kept_estimate(&process, tree, &cut).await, Some(usage));
    assert!(has_learned(&process));
    assert_eq!(booked(&process).await.usage.prompt_tokens, 700);
}

#[tokio::test]
async fn the_share_of_the_window_is_that_of_the_reported_input() {
    for (input, reported) in [(Some(700), true), (None, false)] {
        let house = House::new();
        let process = house.process("chat");
        let turned = process.say(&BreaksOff::model(input, 3, None), &question()).await.unwrap();
        let tokens = turned.reply.unwrap().share * 32_768.0;
        assert_eq!((tokens - 704.0).abs() < 0.001, reported, "{tokens}");
        assert!((500.0..1_500.0).contains(&tokens), "{tokens}");
    }
}

#[tokio::test]
async fn nothing_is_learned_where_nothing_was_reported_or_what_cannot_be() {
    for input in [None, Some(0), Some(1), Some(1 << 40)] {
        let house = House::new();
        let process = house.process("generate");
        let (tree, cut) = asked(&process, input).await;
        assert_eq!((cut.usage, cut.cost, cut.nodes.len()), (None, None, 1), "{input:?}");
        assert!((500..1_500).contains(&cut.tokens), "{input:?}: {}", cut.tokens);
        assert_eq!(cut.estimated_usage.input(), cut.tokens, "{input:?}");
        assert_eq!(kept_estimate(&process, tree, &cut).await, None, "{input:?}");
        assert!(!has_learned(&process), "{input:?}");
        assert_eq!(booked(&process).await.usage.prompt_tokens, cut.tokens, "{input:?}");
    }
}

#[tokio::test]
async fn what_a_dead_process_was_told_of_the_input_is_booked_if_it_can_be() {
    for (input, plausible) in [(700, true), (1, false), (1 << 40, false)] {
        let house = House::new();
        let (dead, next) = (house.process("chat"), house.process("chat"));
        let (halted, mut halts) = mpsc::unbounded_channel();
        let model = BreaksOff::model(Some(input), 3, Some(halted));
        let talk = dead.talk(config(&model), TurnInput::text(question())).await;
        halts.recv().await.unwrap();
        talk.dies().await;
        dead.die();
        assert_eq!(next.runtime.recover(&()).await.unwrap(), 1);
        let usage = booked(&next).await.usage;
        assert_eq!(usage.prompt_tokens == input, plausible, "{usage:?}");
        assert!((500..1_500).contains(&usage.prompt_tokens), "{usage:?}");
    }
}

#[tokio::test]
async fn what_came_behind_the_end_of_an_answer_is_booked() {
    let text = "It rains. ".repeat(1_200);
    let message = json!({"id": "m", "usage": {"input_tokens": 700, "output_tokens": 1}});
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}}),
    ];
    for ends_at in [Some(Boundary::Sentence), None] {
        let house = House::new();
        let process = house.process("generate");
        let (_, cut) = asked_of(&process, &BreaksOff::of(&events, None), ends_at).await;
        let written = if ends_at.is_some() { "It rains." } else { text.as_str() };
        assert_eq!(cut.unwrap().nodes[0].text.trim_end(), written.trim_end());
        assert_eq!(booked(&process).await.usage.completion_tokens, 4_340, "{ends_at:?}");
    }
}

#[tokio::test]
async fn what_a_dead_process_was_told_of_the_output_is_booked_if_it_can_be() {
    for (output, booked_output) in [(Some(0), 4_340), (None, 4_340), (Some(3_500), 3_500)] {
        let house = House::new();
        let (dead, next) = (house.process("chat"), house.process("chat"));
        let (halted, mut halts) = mpsc::unbounded_channel();
        let usage = json!({"input_tokens": 700, "output_tokens": 0});
        let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [],
            "usage": usage});
        let delta = json!({"type": "text_delta", "text": "It rains. ".repeat(1_200)});
        let usage = json!({"output_tokens": output});
        let events = [
            json!({"type": "message_start", "message": message}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
        ];
        let model = BreaksOff::of(&events, Some(halted));
        let talk = dead.talk(config(&model), TurnInput::text(question())).await;
        halts.recv().await.unwrap();
        talk.dies().await;
        dead.die();
        assert_eq!(next.runtime.recover(&()).await.unwrap(), 1);
        let usage = booked(&next).await.usage;
        assert_eq!((usage.prompt_tokens, usage.completion_tokens), (700, booked_output), "{output:?}");
    }
}

#[tokio::test]
async fn what_was_reported_of_the_input_is_booked_though_nothing_followed() {
    for (input, events) in [(700, 1), (700, 2), (0, 1), (0, 2)] {
        let house = House::new();
        let process = house.process("generate");
        let cut = asked_of(&process, &BreaksOff::model(Some(input), events, None), None).await.1.unwrap();
        assert!(cut.nodes.is_empty() && cut.error.is_some(), "{input} {events}");
        let spent = process.runtime.store.spent(&Principal::Owner, loom::Millis(0), None, 9).await.unwrap();
        let booked: Vec<u64> = spent.iter().map(|spent| spent.row.usage.prompt_tokens).collect();
        let expected: &[u64] = if input > 0 { &[700] } else { &[] };
        assert_eq!(booked, expected, "{input} {events}");
        assert_eq!(cut.cost.map(model::Money::dollars), (input > 0).then_some(0.7), "{input} {events}");
    }
}

#[tokio::test]
async fn what_a_dead_process_was_told_before_the_first_block_is_booked() {
    for input in [700, 0] {
        let house = House::new();
        let (dead, next) = (house.process("chat"), house.process("chat"));
        let (halted, mut halts) = mpsc::unbounded_channel();
        let model = BreaksOff::model(Some(input), 1, Some(halted));
        let talk = dead.talk(config(&model), TurnInput::text(question())).await;
        halts.recv().await.unwrap();
        talk.dies().await;
        dead.die();
        assert_eq!(next.runtime.recover(&()).await.unwrap(), 0, "no node");
        let spent = next.runtime.store.spent(&Principal::Owner, loom::Millis(0), None, 9).await.unwrap();
        let booked: Vec<u64> = spent.iter().map(|spent| spent.row.usage.prompt_tokens).collect();
        assert_eq!(booked, if input > 0 { vec![700] } else { vec![] });
    }
}

//! What comes of answers that are not as they were asked for: choices nobody wanted, counts nobody can believe.

use std::sync::Arc;

use async_trait::async_trait;
use context::Estimator;
use model::openai_chat::OpenAiChat;
use model::{
    CallOrigin, Dialect, EncodeError, EncodedRequest, Exchange, Model, ModelError, ModelInfo, ModelPlace,
    PARSER_VERSION, Params, Prices, Prompt, Rates, RawResponse, SourceKind, Timings, reparse,
};

use store::GenerationState;

use crate::support::{House, Process, WHO};

/// A remote model that always gives the same body.
struct Fixed {
    info: ModelInfo,
    body: String,
}

impl Fixed {
    /// A dollar for a million tokens of input, ten for as many of output.
    fn model(body: String) -> Arc<dyn Model> {
        let rates = Rates { input: 1_000_000, output: 10_000_000, ..Rates::FREE };
        let info = ModelInfo {
            place: ModelPlace::Remote,
            kind: SourceKind::Remote,
            prices: Some(Prices::flat(rates)),
            completion_endpoint: false,
            prefill: false,
            ..ModelInfo::local("far", "fixed", 128_000, 8_192)
        };
        Arc::new(Self { info, body })
    }
}

#[async_trait]
impl Model for Fixed {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn encode(&self, prompt: &Prompt, params: &Params) -> Result<EncodedRequest, EncodeError> {
        OpenAiChat::default().encode(prompt, params, &self.info.name)
    }

    async fn send(
        &self,
        request: &EncodedRequest,
        _: &CallOrigin,
        exchange: Exchange<'_>,
    ) -> Result<RawResponse, ModelError> {
        exchange.spool.append(self.body.as_bytes()).unwrap();
        Ok(RawResponse {
            status: 200,
            headers: Vec::new(),
            removed_headers: Vec::new(),
            body: self.body.clone().into(),
            streamed: false,
            timings: Timings { started_at: 0, head_ms: 0, first_byte_ms: Some(0), total_ms: 0 },
            attempt: 1,
            dialect: request.dialect(),
            parser_version: PARSER_VERSION,
            parsed: reparse(request.dialect(), self.body.as_bytes(), false),
            source: SourceKind::Remote,
        })
    }
}

fn body(choices: &[(u32, &str)], usage: &str) -> String {
    let choices = choices.iter().map(|(index, text)| {
        format!(r#"{{"index":{index},"message":{{"content":"{text}"}},"finish_reason":"stop"}}"#)
    });
    format!(r#"{{"id":"r","choices":[{}],"usage":{usage}}}"#, choices.collect::<Vec<_>>().join(","))
}

async fn booked(process: &Process) -> Vec<(u64, Option<u64>)> {
    let rows = process.runtime.store.spent(&WHO, loom::Millis(0), None, 999).await.unwrap();
    rows.into_iter().map(|spent| (spent.row.usage.completion_tokens, spent.row.usage.micro_cost)).collect()
}

const USAGE: &str = r#"{"prompt_tokens":100,"completion_tokens":10}"#;

#[tokio::test]
async fn choices_nobody_asked_for_are_kept_and_booked() {
    for choices in [&[(1, "counted from one")][..], &[(0, "asked for"), (7, "more")][..]] {
        let house = House::new();
        let process = house.process("test");
        let turned = process.say(&Fixed::model(body(choices, USAGE)), "hello").await.unwrap();
        let reply = turned.reply.unwrap();
        assert!(reply.error.is_none(), "{:?}", reply.error);
        assert_eq!(process.texts().await, ["hello", choices[0].1]);
        let generation = process.generations().await.remove(0);
        assert_eq!(generation.state, GenerationState::Done);
        let parent = generation.row.place.as_ref().unwrap().parent;
        let below = process.runtime.read(&WHO, generation.row.tree, move |rows| rows.count_children(parent));
        assert_eq!(below.await.unwrap(), choices.len() as u64);
        assert_eq!(booked(&process).await, [(10, Some(200))]);
    }
}

#[tokio::test]
async fn counts_that_cannot_be_are_said_so_and_estimated() {
    let huge = r#"{"prompt_tokens":9223372036854775808,"completion_tokens":9223372036854775808}"#;
    let house = House::new();
    let process = house.process("test");
    let turned = process.say(&Fixed::model(body(&[(0, "a short answer")], huge)), "hello").await.unwrap();
    turned.reply.unwrap();
    let booked = booked(&process).await;
    assert_eq!(booked[0].0, 5, "a third of the characters");
    assert!(booked[0].1.is_some_and(|cost| cost < 1_000), "{booked:?}");
    let notes = process.heard.notes.lock().unwrap().join("\n");
    assert!(notes.contains("not plausible"), "{notes}");
    // Control: counts that can be are believed.
    let process = house.process("test");
    process.say(&Fixed::model(body(&[(0, "a short answer")], USAGE)), "hello").await.unwrap().reply.unwrap();
    assert!(!process.heard.notes.lock().unwrap().join("\n").contains("not plausible"));
}

#[tokio::test]
async fn an_output_too_small_for_its_answer_is_estimated_and_the_input_stays() {
    let answer = "word and more of it. ".repeat(600);
    let estimated = Estimator::default().of(&answer);
    assert!((4_200..4_500).contains(&estimated), "{estimated}");
    for (output, booked_output, is_said) in [
        (r#","completion_tokens":0"#, estimated, true),
        (r#","completion_tokens":1"#, estimated, true),
        (r#","completion_tokens":null"#, estimated, false),
        ("", estimated, false),
        (r#","completion_tokens":196"#, 196, false),
        (r#","completion_tokens":3000"#, 3_000, false),
        // All of it was thinking, they say.
        (
            r#","completion_tokens":3000,"completion_tokens_details":{"reasoning_tokens":3000}"#,
            estimated,
            true,
        ),
    ] {
        let usage = format!(r#"{{"prompt_tokens":100{output}}}"#);
        let house = House::new();
        let process = house.process("test");
        let turned = process.say(&Fixed::model(body(&[(0, &answer)], &usage)), "hello").await.unwrap();
        turned.reply.unwrap();
        // $1 for a million of input, and $10 of output.
        let cost = 100 + 10 * booked_output;
        assert_eq!(booked(&process).await, [(booked_output, Some(cost))], "{usage}");
        let notes = process.heard.notes.lock().unwrap().join("\n");
        assert_eq!(notes.contains("not plausible"), is_said, "{usage}: {notes}");
    }
}

#[tokio::test]
async fn a_text_that_is_said_to_have_no_tokens_is_booked_as_estimated() {
    let long = "The rain is in the hand of the weaver. ".repeat(70);
    for (text, tokens) in [("hello", 0), (long.as_str(), 0), (long.as_str(), 1)] {
        let usage = format!(r#"{{"prompt_tokens":{tokens},"completion_tokens":0}}"#);
        let house = House::new();
        let process = house.process("test");
        let turned = process.say(&Fixed::model(body(&[(0, "a short answer")], &usage)), text).await.unwrap();
        turned.reply.unwrap();
        assert_eq!(booked(&process).await[0].0, 5, "a third of the characters of the answer");
        let spent = process.runtime.store.spent(&WHO, loom::Millis(0), None, 9).await.unwrap();
        let input = spent[0].row.usage.prompt_tokens;
        assert!(input > tokens && input > text.len() as u64 / 8, "{input} for {tokens}");
        let notes = process.heard.notes.lock().unwrap().join("\n");
        assert!(notes.contains("not plausible"), "{notes}");
    }
}

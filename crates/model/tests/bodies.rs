//! Bodies of many conversations in every dialect, by digest: equal prompts give equal bytes, release after release,
//! because the prompt caches of providers are met by bytes. A digest that changes is a change of what is sent.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use bytes::Bytes;
use drawloom_model::anthropic::Anthropic;
use drawloom_model::gemini::Gemini;
use drawloom_model::openai_chat::OpenAiChat;
use drawloom_model::openai_completions::OpenAiCompletions;
use drawloom_model::openai_responses::OpenAiResponses;
use drawloom_model::prompt::ToolStatus;
use drawloom_model::quirks::{
    CacheForm, CallIds, InstructionRole, LeastEffort, LimitField, PrefillForm, Quirks, SchemaForm,
    ThinkingBack, ThinkingForm, ThinkingOff,
};
use drawloom_model::{
    Chat, ChatPart, Dialect, Media, MediaPart, OpaquePart, OutputSchema, Params, PartId, Prompt, TextPart,
    Thinking, ToolCall, ToolChoice, ToolExchange, ToolResult, ToolSchema,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Prompts of each digest.
const PROMPTS: u64 = 3_000;

/// Numbers of a fixed order (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    fn maybe<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        self.one_in(3).then(|| self.of(all))
    }
}

struct Prompts {
    numbers: Numbers,
    parts: u32,
}

impl Prompts {
    fn id(&mut self) -> PartId {
        self.parts += 1;
        PartId(self.parts)
    }

    fn words(&mut self) -> String {
        let words = [
            "",
            " ",
            "\n",
            "plain words",
            "\"quoted\" and \\ slashed",
            "tab\t, line\nand \u{1}\u{7f}",
            "中文 — äöü 😀",
            "{\"path\":\"a\"}",
            "ends with space ",
            "</s>\u{2028}x",
        ];
        (0..=self.numbers.below(3)).map(|_| self.numbers.of(&words)).collect()
    }

    fn text(&mut self) -> TextPart {
        TextPart::new(self.id(), self.words())
    }

    fn media(&mut self) -> Media {
        let mimes = ["image/png", "image/jpeg", "audio/wav", "audio/mpeg", "application/pdf"];
        // Most are pictures: each dialect refuses some of the others.
        let mime = if self.numbers.one_in(12) { self.numbers.of(&mimes) } else { "image/png" };
        let length = self.numbers.below(7);
        Media { mime: mime.to_owned(), data: Bytes::from(vec![0xA7; length]) }
    }

    fn opaque(&mut self) -> OpaquePart {
        let all: [(Option<&str>, Value); 11] = [
            (Some("thought \"so\"\n"), json!("reasoning_content")),
            (None, json!("reasoning_content")),
            (
                Some("shown"),
                json!([{"type": "reasoning.text", "text": "é\n", "index": 0}, {"type": "x", "n": 1.5}]),
            ),
            (None, json!([])),
            (None, json!([{"type": "reasoning.encrypted", "data": "AA=="}])),
            (Some("t"), json!({"type": "thinking", "thinking": "t", "signature": "s\"1"})),
            (None, json!({"type": "redacted_thinking", "data": "x"})),
            (None, json!({"type": "server_tool_use", "id": "srv", "name": "web", "input": {"q": "z"}})),
            (None, json!({"thoughtSignature": "sig=="})),
            (Some("idea"), json!({"thoughtSignature": "sig2"})),
            (None, json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "zz"})),
        ];
        let (thinking, json) = self.numbers.of(&all);
        OpaquePart { id: self.id(), thinking: thinking.map(str::to_owned), json }
    }

    fn exchange(&mut self) -> ToolExchange {
        let ids = ["call_1", "", "abcdefghi", "call:strange/1", "toolu_x"];
        let arguments =
            ["{\"path\":\"a\",\"n\":1.50}", "", " {} ", "\"{\\\"a\\\":1}\"", "no json", "[1]", "null"];
        let before = (0..self.numbers.below(3)).map(|_| self.opaque()).collect();
        let call = ToolCall {
            id: self.numbers.of(&ids).to_owned(),
            name: self.numbers.of(&["read", "wr\"ite"]).to_owned(),
            arguments: self.numbers.of(&arguments).to_owned(),
        };
        let media = (0..self.numbers.below(6).saturating_sub(3)).map(|_| self.media()).collect();
        let status = self.numbers.of(&[ToolStatus::Ok, ToolStatus::Error, ToolStatus::Denied]);
        let result = ToolResult { status, text: self.words(), media };
        ToolExchange { before, call_part: self.id(), call, result_part: self.id(), result }
    }

    fn part(&mut self) -> ChatPart {
        match self.numbers.below(10) {
            0 => ChatPart::System(self.text()),
            1..=3 => ChatPart::User(self.text()),
            4 => ChatPart::Injected(self.text()),
            5 => ChatPart::Media(MediaPart { id: self.id(), media: self.media() }),
            6 | 7 => ChatPart::Assistant(self.text()),
            8 => ChatPart::Opaque(self.opaque()),
            _ => ChatPart::ToolRound((0..self.numbers.below(4)).map(|_| self.exchange()).collect()),
        }
    }

    fn tool(&mut self) -> ToolSchema {
        ToolSchema {
            id: self.id(),
            name: "read".to_owned(),
            description: self.words(),
            parameters: json!({"type": "object", "z": 1, "a": {"type": "string"}}),
        }
    }

    fn chat(&mut self) -> Prompt {
        self.parts = 0;
        let tools = (0..self.numbers.below(3)).map(|_| self.tool()).collect();
        let messages: Vec<ChatPart> = (0..self.numbers.below(9)).map(|_| self.part()).collect();
        let stable = self.numbers.below(messages.len() + 1);
        let prefill = self.numbers.one_in(6).then(|| self.text());
        Prompt::Chat(Chat { tools, messages, prefill, stable })
    }

    fn raw(&mut self) -> Prompt {
        Prompt::Raw((0..self.numbers.below(5)).map(|_| self.text()).collect())
    }

    fn params(&mut self) -> Params {
        let numbers = &mut self.numbers;
        let schema = OutputSchema {
            name: "form".to_owned(),
            schema: json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}),
        };
        Params {
            temperature: numbers.maybe(&[0.0, 0.7, 1.0]),
            top_p: numbers.maybe(&[0.9, 1.0]),
            min_p: numbers.one_in(8).then_some(0.05),
            max_tokens: numbers.maybe(&[64, 4_096, 50_000]),
            stop: (0..numbers.below(9).saturating_sub(6)).map(|at| format!("\n{at}")).collect(),
            ends_at: None,
            seed: numbers.one_in(8).then_some(-3),
            logprobs: numbers.one_in(8).then_some(4),
            n: if numbers.one_in(10) { 2 } else { 1 },
            stream: !numbers.one_in(3),
            tool_choice: numbers.of(&[
                ToolChoice::Auto,
                ToolChoice::Auto,
                ToolChoice::None,
                ToolChoice::Required,
                ToolChoice::Tool("read".to_owned()),
            ]),
            schema: numbers.one_in(7).then_some(schema),
            thinking: numbers.maybe(&[Thinking::Off, Thinking::Low, Thinking::High]),
            cache_key: numbers.maybe(&["key".to_owned()]),
            provider: serde_json::Map::new(),
            preset: None,
        }
    }

    fn quirks(&mut self) -> Quirks {
        use ThinkingForm::*;
        let numbers = &mut self.numbers;
        let forms = [None, Effort, ReasoningObject, TemplateSwitch, Budget, Level, SwitchAndEffort];
        let flag = [true, false];
        Quirks {
            limit: numbers.of(&[LimitField::MaxTokens, LimitField::MaxCompletionTokens]),
            prefill: numbers.of(&[
                PrefillForm::Trailing,
                PrefillForm::ContinueFinalMessage,
                PrefillForm::PrefixFlag,
            ]),
            instructions: numbers.of(&[InstructionRole::System, InstructionRole::Developer]),
            thinking: numbers.of(&forms),
            thinking_off: numbers.of(&[
                ThinkingOff::Disabled,
                ThinkingOff::BetweenTools,
                ThinkingOff::Unsaid,
            ]),
            thinking_back: numbers.of(&[ThinkingBack::Nothing, ThinkingBack::Content, ThinkingBack::Details]),
            schema: numbers.of(&[SchemaForm::Schema, SchemaForm::Object]),
            cache: numbers.of(&[CacheForm::Implicit, CacheForm::Key, CacheForm::Marks]),
            call_ids: numbers.of(&[CallIds::Any, CallIds::Nine]),
            min_p: numbers.of(&flag),
            seed: numbers.of(&flag),
            sampling: numbers.of(&flag),
            prompt_progress: false,
            stream_options: numbers.of(&flag),
            thinking_always: numbers.of(&flag),
            thinking_bound: numbers.of(&flag),
            instructions_inside: numbers.of(&flag),
            chat_beside: false,
            least_effort: numbers.of(&[
                LeastEffort::Low,
                LeastEffort::Minimal,
                LeastEffort::None,
                LeastEffort::High,
            ]),
            item_ids: numbers.of(&flag),
            signature_stand_in: numbers.of(&flag),
            media_in_results: numbers.of(&flag),
        }
    }
}

/// The digest of all requests, and how many of them were refused.
fn digest(dialect: impl Fn(Quirks) -> Box<dyn Dialect>, raw: bool) -> String {
    let mut prompts = Prompts { numbers: Numbers(0x9E37_79B9_7F4A_7C15), parts: 0 };
    let (mut hash, mut refused) = (Sha256::new(), 0);
    for _ in 0..PROMPTS {
        let prompt = if raw { prompts.raw() } else { prompts.chat() };
        let (params, quirks) = (prompts.params(), prompts.quirks());
        match dialect(quirks).encode(&prompt, &params, "maker/model \"1\"") {
            Ok(request) => {
                hash.update(request.path());
                hash.update(request.body());
                for range in request.ranges() {
                    hash.update(format!("{} {:?} {:?};", range.part.0, range.kind, range.bytes));
                }
                let _: Value = serde_json::from_slice(request.body()).unwrap();
            }
            Err(error) => {
                refused += 1;
                hash.update(error.to_string());
            }
        }
    }
    format!("{} {refused}", data_encoding::HEXLOWER.encode(&hash.finalize()[..16]))
}

#[test]
fn equal_prompts_give_the_bytes_they_always_gave() {
    let digests = [
        digest(|_| Box::new(OpenAiCompletions::default()), true),
        digest(|quirks| Box::new(OpenAiChat { quirks }), false),
        digest(|quirks| Box::new(OpenAiResponses { quirks }), false),
        digest(|quirks| Box::new(Anthropic { quirks }), false),
        digest(|quirks| Box::new(Gemini { quirks }), false),
    ];
    let expected = [
        "1ecb847b4949e06a8ea24957cb6e2976 602",
        "afdef190d95893657898e53dcddccc98 330",
        "25c8626e8245ec25b8efd9571725a0b4 1883",
        "5478bfe2d15b7037e9631f6062c2db95 2086",
        "fa25d7766947091158def24a4aaa6c9f 1328",
    ];
    assert_eq!(digests, expected);
}

//! What a request asks for and what it holds fit the window together, in every dialect.

use std::sync::Arc;

use drawloom_agent::GenerationRequest;
use loom::plan::{NewText, NewTree};
use loom::{Mode, Op, Role, TreeId, ViewName};
use model::quirks::{LimitField, ThinkingForm};
use model::{Connection, DialectName, EncodedRequest, HttpModel, Model, ModelInfo, Quirks, Thinking};
use serde_json::Value;
use store::AttachedWrites;

use crate::support::{House, Process, WHO, config};

/// A model of a server that is never asked.
fn model(dialect: DialectName, window: u32, output_limit: u32, quirks: Quirks) -> Arc<dyn Model> {
    let info = ModelInfo {
        dialect,
        completion_endpoint: false,
        ..ModelInfo::local("box", "m", window, output_limit)
    };
    Arc::new(HttpModel::new(info, quirks, Connection::new("http://127.0.0.1:9/v1")).unwrap())
}

/// The limit a body asks for.
fn limit(encoded: &EncodedRequest) -> u64 {
    let body: Value = serde_json::from_slice(encoded.body()).unwrap();
    let fields =
        ["/max_tokens", "/max_completion_tokens", "/max_output_tokens", "/generationConfig/maxOutputTokens"];
    fields
        .iter()
        .find_map(|field| body.pointer(field)?.as_u64())
        .unwrap_or_else(|| panic!("no limit: {body}"))
}

/// A tree with more in it than any window here holds.
pub(crate) async fn long(process: &Process, mode: Mode) -> TreeId {
    let tree = process.runtime.new_id::<TreeId>().unwrap();
    let view = ViewName::default();
    let op = Op::Create(NewTree { mode, title: "long".to_owned(), origin: None });
    process.runtime.change(&WHO, tree, &view, op, AttachedWrites::nothing()).await.unwrap();
    for turn in 0..60 {
        let role =
            (mode == Mode::Dialogue).then_some(if turn % 2 == 0 { Role::User } else { Role::Assistant });
        let text =
            NewText::owner(format!("{turn}. {}\n\n", "A tide came in and went out again. ".repeat(40)), role);
        process.runtime.change(&WHO, tree, &view, Op::Append(text), AttachedWrites::nothing()).await.unwrap();
    }
    let last = NewText::owner("And then?".to_owned(), (mode == Mode::Dialogue).then_some(Role::User));
    process.runtime.change(&WHO, tree, &view, Op::Append(last), AttachedWrites::nothing()).await.unwrap();
    tree
}

pub(crate) fn ask(
    model: &Arc<dyn Model>,
    tree: TreeId,
    max_tokens: Option<u32>,
    thinking: Option<Thinking>,
) -> GenerationRequest {
    let mut ask = config(model).request(tree, &ViewName::default());
    (ask.params.max_tokens, ask.params.thinking) = (max_tokens, thinking);
    ask
}

#[tokio::test]
async fn no_answer_can_grow_beyond_the_window_in_any_dialect() {
    let process = House::new().process("chat");
    let dialogue = long(&process, Mode::Dialogue).await;
    let form = |thinking| Quirks { thinking, ..Quirks::default() };
    let newer = Quirks { limit: LimitField::MaxCompletionTokens, ..form(ThinkingForm::Effort) };
    for (dialect, quirks) in [
        (DialectName::OpenAiChat, Quirks::default()),
        (DialectName::OpenAiChat, newer),
        (DialectName::OpenAiResponses, form(ThinkingForm::Effort)),
        (DialectName::AnthropicMessages, form(ThinkingForm::Budget)),
        (DialectName::AnthropicMessages, form(ThinkingForm::Level)),
        (DialectName::Gemini, form(ThinkingForm::Budget)),
    ] {
        for (window, output, asked, kept) in [
            (8_192, 100_000, None, 2_048),
            (32_768, 4_096, None, 4_096),
            (32_768, 4_096, Some(1_200), 1_200),
            (8_192, 8_192, Some(1_000_000), 2_048),
        ] {
            let model = model(dialect, window, output, quirks);
            for thinking in [None, Some(Thinking::High)] {
                let prepared =
                    ask(&model, dialogue, asked, thinking).prepare(&process.runtime, &WHO).await.unwrap();
                assert_eq!(limit(&prepared.encoded), kept, "{dialect} {window} {asked:?} {thinking:?}");
                let (tokens, window) = (prepared.manifest.tokens, u64::from(window));
                assert!(tokens * 2 > window / 2, "the window is in use: {tokens} of {window}");
                assert!(tokens + kept <= window, "{dialect}: {tokens} and {kept} of {window}");
            }
        }
    }
}

#[tokio::test]
async fn a_document_asks_for_what_was_kept_as_well() {
    let process = House::new().process("generate");
    let document = long(&process, Mode::Buffer).await;
    let info = ModelInfo::local("box", "m", 8_192, 4_096);
    let raw: Arc<dyn Model> =
        Arc::new(HttpModel::new(info, Quirks::default(), Connection::new("http://127.0.0.1:9/v1")).unwrap());
    for (model, asked, kept) in [
        (Arc::clone(&raw), None, 2_048),
        (raw, Some(96), 96),
        (model(DialectName::AnthropicMessages, 8_192, 4_096, Quirks::default()), None, 2_048),
    ] {
        let prepared = ask(&model, document, asked, None).prepare(&process.runtime, &WHO).await.unwrap();
        assert_eq!(limit(&prepared.encoded), kept);
        assert!(prepared.manifest.tokens + kept <= 8_192);
    }
}

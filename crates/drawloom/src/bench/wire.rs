//! What responses take on the disk: streams as servers of two dialects send them, compressed as the store does.

use commands::CommandError;
use serde_json::{Value, json};
use store::compress::{Dictionary, compress};

use super::corpus::Corpus;
use super::harness::failed;
use super::report::Report;

const RESPONSES: usize = 20;

/// Tokens of short and of long answers.
const LENGTHS: [usize; 2] = [45, 400];

/// Measures the share of their wire bytes that stored responses take.
pub(super) fn measure(report: &mut Report<'_>) -> Result<(), CommandError> {
    let mut corpus = Corpus::new(45);
    let dialects =
        [("openai_chat", Dictionary::OpenAiChat), ("openai_completions", Dictionary::OpenAiCompletions)];
    for (dialect, dictionary) in dialects {
        let (mut wire, mut stored) = (0, 0);
        for length in LENGTHS {
            for _ in 0..RESPONSES {
                let body = stream(&mut corpus, dictionary == Dictionary::OpenAiChat, length);
                wire += body.len();
                let packed = compress(body.as_bytes(), Some(dictionary));
                stored += packed.map_err(|error| failed("compress a response", error))?.len();
            }
        }
        let share = stored as f64 / wire as f64 * 100.0;
        report.row(&format!("responses on disk, {dialect}"), share, "% of their wire bytes", Some(8.0));
    }
    Ok(())
}

/// A streamed answer of so many tokens, an event each.
fn stream(corpus: &mut Corpus, chat: bool, tokens: usize) -> String {
    let id = format!("{}-{:016x}", if chat { "chatcmpl" } else { "cmpl" }, corpus.random());
    let mut out = String::new();
    let mut event = |choice: Value| {
        let event = json!({
            "id": id,
            "object": if chat { "chat.completion.chunk" } else { "text_completion" },
            "created": 1_760_000_000,
            "model": "generated",
            "choices": [choice],
        });
        out.push_str(&format!("data: {event}\n\n"));
    };
    if chat {
        event(json!({"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}));
    }
    for _ in 0..tokens {
        let token = corpus.token();
        event(if chat {
            json!({"index": 0, "delta": {"content": token}, "finish_reason": null})
        } else {
            json!({"text": token, "index": 0, "logprobs": null, "finish_reason": null})
        });
    }
    event(if chat {
        json!({"index": 0, "delta": {}, "finish_reason": "stop"})
    } else {
        json!({"text": "", "index": 0, "logprobs": null, "finish_reason": "stop"})
    });
    out.push_str("data: [DONE]\n\n");
    out
}

//! The engine beside llama.cpp, on the same file.
//!
//! Not part of the ordinary tests: it needs a real model and what llama.cpp makes of it, which
//! `parity/expected.py` writes.
//!
//! ```sh
//! python crates/gguf/parity/expected.py MODEL.gguf EXPECTED.json [CHAT]
//! RAYON_NUM_THREADS=1 DRAWLOOM_PARITY_MODEL=MODEL.gguf DRAWLOOM_PARITY_EXPECTED=EXPECTED.json \
//!     cargo test --release -p drawloom-gguf --test parity -- --ignored --nocapture
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and this one reports"
)]

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Instant;

use gguf::{
    ChatMessage, ChatRole, Engine, EngineJob, EngineOptions, JobEvent, PromptPiece, SamplingParams, Token,
};
use serde_json::Value;

/// How far answers may lie from llama.cpp's.
struct Margins {
    /// Where the two likeliest tokens are closer than this, either may be taken.
    choice: f64,
    /// Of log-probabilities, on average.
    average: f64,
    /// Of log-probabilities, at most.
    worst: f64,
}

/// With the same weights in 32-bit floats, where neither engine rounds activations.
const EXACT: Margins = Margins { choice: 0.01, average: 0.001, worst: 0.01 };
/// With 8-bit blocks, where llama.cpp rounds activations to 8 bits and the engine does not. llama.cpp is as far
/// from itself when it computes its attention in another order.
const ROUNDED: Margins = Margins { choice: 0.5, average: 0.05, worst: 0.5 };

struct Answer {
    tokens: Vec<Token>,
    prompt_tokens: u32,
    prompt_seconds: f64,
    seconds: f64,
}

fn answer(engine: &Engine, text: &str, max_tokens: u32, logprobs: Option<u8>) -> Answer {
    let prompt = vec![PromptPiece::Text(text.to_owned())];
    let job =
        EngineJob { prompt, sampling: SamplingParams::default(), max_tokens, stop: Vec::new(), logprobs };
    let (sender, updates) = channel();
    let begun = Instant::now();
    let _handle =
        engine.run(job, Box::new(move |update| drop(sender.send((Instant::now(), update))))).unwrap();
    let mut answer = Answer { tokens: Vec::new(), prompt_tokens: 0, prompt_seconds: 0.0, seconds: 0.0 };
    for (at, update) in updates {
        match update {
            JobEvent::Started(begun) => answer.prompt_tokens = begun.prompt_tokens - begun.cached_tokens,
            JobEvent::Read(_) => {}
            JobEvent::Text { tokens, .. } => {
                if answer.tokens.is_empty() {
                    answer.prompt_seconds = at.duration_since(begun).as_secs_f64();
                }
                answer.tokens.extend(tokens);
            }
            JobEvent::Ended(end) => {
                end.unwrap();
                answer.seconds = at.duration_since(begun).as_secs_f64() - answer.prompt_seconds;
            }
        }
    }
    answer
}

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Compares greedy answers; gives what is further off than it may be.
fn compare(engine: &Engine, expected: &[Value], margins: &Margins, what: &str) -> Vec<String> {
    let (mut same, mut compared, mut worst, mut sum, mut wrong) = (0, 0, 0.0_f64, 0.0_f64, Vec::new());
    for answer in expected {
        let theirs = answer["tokens"].as_array().unwrap();
        let text = answer["text"].as_str().unwrap();
        let ours = self::answer(engine, text, u32::try_from(theirs.len()).unwrap(), Some(5)).tokens;
        let mut whole = true;
        for (at, token) in ours.iter().enumerate() {
            if Some(u64::from(token.id)) != theirs[at].as_u64() {
                let top = &answer["top"][at];
                let logprob = |rank: usize| top[rank][1].as_f64();
                let margin = logprob(0).zip(logprob(1)).map_or(0.0, |(first, second)| first - second);
                if margin >= margins.choice {
                    wrong.push(format!("{what}: {text:?} at {at}: margin {margin:.4}"));
                }
                whole = false;
                break;
            }
            let Some(theirs) = answer["logprobs"][at].as_f64() else { continue };
            let difference = (token.logprob.unwrap() - theirs).abs();
            (worst, sum, compared) = (worst.max(difference), sum + difference, compared + 1);
        }
        same += usize::from(whole);
    }
    let average = sum / f64::from(compared);
    println!("{what}: {same} of {} answers are the same to the end; {compared} tokens", expected.len());
    println!("{what}: log-probabilities differ by {worst:.5} at most, {average:.5} on average");
    if worst > margins.worst || average > margins.average {
        wrong.push(format!("{what}: log-probabilities differ by {worst} at most, {average} on average"));
    }
    wrong
}

#[test]
#[ignore = "needs a real model and llama.cpp's answers"]
fn answers_are_those_of_llama_cpp() {
    let path = |name| std::env::var(name).unwrap_or_else(|_| panic!("{name} names a file"));
    let text = std::fs::read_to_string(path("DRAWLOOM_PARITY_EXPECTED")).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    let list = |name: &str| expected[name].as_array().unwrap().as_slice();
    let engine = Engine::load(Path::new(&path("DRAWLOOM_PARITY_MODEL")), &EngineOptions::default()).unwrap();
    let mut wrong = Vec::new();

    let mut tokens = |what: &str, prompt: &[PromptPiece], theirs: &Value| {
        let theirs: Vec<u64> = theirs.as_array().unwrap().iter().filter_map(Value::as_u64).collect();
        let ours: Vec<u64> = engine.tokens(prompt).unwrap_or_default().into_iter().map(u64::from).collect();
        if ours != theirs {
            wrong.push(format!("{what}: {ours:?} and not {theirs:?}"));
        }
    };
    for text in list("texts") {
        let said = text["text"].as_str().unwrap();
        tokens(&format!("{said:?}"), &[PromptPiece::Text(said.to_owned())], &text["tokens"]);
    }
    for chat in list("chats") {
        let message = |message: &Value| {
            let role = match message["role"].as_str().unwrap() {
                "system" => ChatRole::System,
                "user" => ChatRole::User,
                _ => ChatRole::Assistant,
            };
            ChatMessage { role, text: message["content"].as_str().unwrap().to_owned() }
        };
        let messages: Vec<ChatMessage> = chat["messages"].as_array().unwrap().iter().map(message).collect();
        tokens(&format!("{messages:?}"), &engine.chat_prompt(&messages).unwrap(), &chat["tokens"]);
    }
    let (texts, chats) = (list("texts").len(), list("chats").len());
    println!("{} of {texts} texts and {chats} chats have other tokens", wrong.len());

    wrong.extend(compare(&engine, list("answers"), &EXACT, "exact"));
    if !list("rounded").is_empty() {
        wrong.extend(compare(&engine, list("rounded"), &ROUNDED, "rounded"));
    }

    let speed = &expected["speed"];
    let ours = answer(&engine, speed["text"].as_str().unwrap(), 64, Some(5));
    let prompt = f64::from(ours.prompt_tokens) / ours.prompt_seconds;
    let generation = (ours.tokens.len() - 1) as f64 / ours.seconds;
    let (their_prompt, their_generation) =
        (speed["prompt"].as_f64().unwrap(), speed["generation"].as_f64().unwrap());
    println!("{} threads, {} prompt tokens", gguf::threads(), ours.prompt_tokens);
    println!("prompt {prompt:.1} tokens/s beside {their_prompt:.1}: {:.2}", prompt / their_prompt);
    println!(
        "generation {generation:.1} tokens/s beside {their_generation:.1}: {:.2}",
        generation / their_generation
    );
    println!("resident {} kB beside {} kB", resident_kb(), speed["resident_kb"]);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

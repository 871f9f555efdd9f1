//! The engine beside llama.cpp, on the same file.
//!
//! Not part of the ordinary tests: it needs a real model and what llama.cpp makes of it, which
//! `parity/expected.py` writes.
//!
//! ```sh
//! python crates/gguf/parity/expected.py MODEL.gguf EXPECTED.json
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

use gguf::{Engine, Job, Options, Piece, Sampling, Token, Update};
use serde_json::Value;

/// Where the two likeliest tokens are closer than this, either may be taken. With 8-bit weights both engines
/// round activations, each in its own way, and need more: `DRAWLOOM_PARITY_MARGIN=0.5`.
fn margin() -> f64 {
    std::env::var("DRAWLOOM_PARITY_MARGIN").map_or(0.05, |margin| margin.parse().unwrap())
}

struct Answer {
    tokens: Vec<Token>,
    prompt_tokens: u32,
    prompt_seconds: f64,
    seconds: f64,
}

fn answer(engine: &Engine, text: &str, max_tokens: u32, logprobs: Option<u8>) -> Answer {
    let prompt = vec![Piece::Text(text.to_owned())];
    let job = Job { prompt, sampling: Sampling::default(), max_tokens, stop: Vec::new(), logprobs };
    let (sender, updates) = channel();
    let begun = Instant::now();
    let _handle =
        engine.run(job, Box::new(move |update| drop(sender.send((Instant::now(), update))))).unwrap();
    let mut answer = Answer { tokens: Vec::new(), prompt_tokens: 0, prompt_seconds: 0.0, seconds: 0.0 };
    for (at, update) in updates {
        match update {
            Update::Begun(begun) => answer.prompt_tokens = begun.prompt_tokens - begun.cached_tokens,
            Update::Text { tokens, .. } => {
                if answer.tokens.is_empty() {
                    answer.prompt_seconds = at.duration_since(begun).as_secs_f64();
                }
                answer.tokens.extend(tokens);
            }
            Update::Ended(end) => {
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

#[test]
#[ignore = "needs a real model and llama.cpp's answers"]
fn answers_are_those_of_llama_cpp() {
    let path = |name| std::env::var(name).unwrap_or_else(|_| panic!("{name} names a file"));
    let text = std::fs::read_to_string(path("DRAWLOOM_PARITY_EXPECTED")).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    let engine = Engine::load(Path::new(&path("DRAWLOOM_PARITY_MODEL")), &Options::default()).unwrap();

    let texts = expected["texts"].as_array().unwrap();
    let mut other = Vec::new();
    for text in texts {
        let said = text["text"].as_str().unwrap();
        let tokens: Vec<u64> = text["tokens"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
        let own = engine.tokens(&[Piece::Text(said.to_owned())]).unwrap_or_default();
        let own: Vec<u64> = own.into_iter().map(u64::from).collect();
        if own != tokens {
            other.push(format!("{said:?}: {own:?} and not {tokens:?}"));
        }
    }
    println!("{} of {} texts have the same tokens", texts.len() - other.len(), texts.len());

    let (mut same, mut compared, mut worst, mut sum, mut wrong) = (0, 0, 0.0_f64, 0.0_f64, Vec::new());
    let prompts = expected["prompts"].as_array().unwrap();
    for prompt in prompts {
        let theirs = prompt["tokens"].as_array().unwrap();
        let text = prompt["text"].as_str().unwrap();
        let ours = answer(&engine, text, u32::try_from(theirs.len()).unwrap(), Some(5)).tokens;
        let mut whole = true;
        for (at, token) in ours.iter().enumerate() {
            if Some(u64::from(token.id)) != theirs[at].as_u64() {
                let top = &prompt["top"][at];
                let logprob = |rank: usize| top[rank][1].as_f64();
                let margin = logprob(0).zip(logprob(1)).map_or(0.0, |(first, second)| first - second);
                if margin >= self::margin() {
                    wrong.push(format!("{text:?} at {at}: margin {margin:.4}"));
                }
                whole = false;
                break;
            }
            let Some(theirs) = prompt["logprobs"][at].as_f64() else { continue };
            let difference = (token.logprob.unwrap() - theirs).abs();
            (worst, sum, compared) = (worst.max(difference), sum + difference, compared + 1);
        }
        same += usize::from(whole);
    }
    println!("{same} of {} answers are the same to the end; {compared} tokens compared", prompts.len());
    println!("log-probabilities differ by {worst:.5} at most, {:.5} on average", sum / f64::from(compared));

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
    assert!(other.is_empty(), "{other:#?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

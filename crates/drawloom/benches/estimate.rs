//! How near the estimate is to real tokenizers, in sessions that grow and are trimmed. Without texts of one's own the law
//! is tested by `cargo nextest run -p drawloom-context estimate`.
//!
//! `DRAWLOOM_TEXTS` names a folder with the folders `en`, `zh`, `code` and `json`, each with text files of yours;
//! `DRAWLOOM_GGUF` a model file whose tokenizer is asked besides OpenAI's. Without texts there is nothing to
//! measure, and it says so. Prints one row a kind of text and tokenizer.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement: it ends with what is wrong")]

use std::path::{Path, PathBuf};

use context::{Calibration, Estimator, Features};
use model::{Chat, ChatPart, PartId, Prompt, TextPart};

/// Requests of one session.
const REQUESTS: usize = 60;
/// Sessions of each kind.
const SESSIONS: usize = 20;
/// Messages of a session stay below this many characters in sum, then the oldest half leaves.
const WINDOW: usize = 40_000;

type Count = Box<dyn Fn(&str) -> u64>;

fn main() {
    let Some(texts) = std::env::var_os("DRAWLOOM_TEXTS").map(PathBuf::from) else {
        println!("not measured: DRAWLOOM_TEXTS names no folder of texts");
        return;
    };
    let kinds = ["en", "zh", "code", "json"].map(|kind| (kind, read(&texts.join(kind))));
    println!("| tokenizer | texts | ≥ true | estimate/true p50 | p95 after 20 | prior p50 |");
    println!("|---|---|---|---|---|---|");
    for (name, family, count, overhead) in tokenizers() {
        for (kind, text) in &kinds {
            row(name, kind, family, &|turn, session| piece(text, turn, session), &count, overhead);
        }
        let mixed = |turn: usize, session: usize| piece(&kinds[(turn / 5 + session) % 4].1, turn, session);
        row(name, "mixed", family, &mixed, &count, overhead);
    }
}

fn tokenizers() -> Vec<(&'static str, &'static str, Count, u64)> {
    let o200k = tiktoken_rs::o200k_base().unwrap();
    let cl100k = tiktoken_rs::cl100k_base().unwrap();
    let mut all: Vec<(&'static str, &'static str, Count, u64)> = vec![
        ("o200k", "openai_o200k", Box::new(move |text| o200k.encode_ordinary(text).len() as u64), 4),
        ("cl100k", "openai_cl100k", Box::new(move |text| cl100k.encode_ordinary(text).len() as u64), 4),
    ];
    if let Some(path) = std::env::var_os("DRAWLOOM_GGUF") {
        let engine = gguf::Engine::load(Path::new(&path), &gguf::EngineOptions::default()).unwrap();
        let count = move |text: &str| {
            // In slices: one text may not be longer than the model's window. What it has no token for counts by
            // the byte.
            let chars: Vec<char> = text.chars().collect();
            let slices = chars.chunks(512).map(|slice| slice.iter().collect::<String>());
            let tokens = slices.map(|slice| {
                let bytes = slice.len() as u64;
                engine.tokens(&[gguf::PromptPiece::Text(slice)]).map_or(bytes, |tokens| tokens.len() as u64)
            });
            tokens.sum()
        };
        all.push(("the file's", "smollm", Box::new(count), 5));
    } else {
        println!("the embedded model's tokenizer is not asked: DRAWLOOM_GGUF names no file");
    }
    all
}

/// All text of a folder.
fn read(folder: &Path) -> String {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect()
}

/// A piece of 40 to 4,000 characters, the same for the same turn and session.
fn piece(text: &str, turn: usize, session: usize) -> String {
    let turn = (turn as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut state = turn ^ (session as u64 + 1).wrapping_mul(0xD1B5_4A32_D192_ED03);
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let length = 40 + (draw() % 63).pow(2) as usize;
    let start = (draw() % text.len() as u64) as usize;
    let start = (start..).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text[start..].chars().take(length).collect()
}

fn row(
    name: &str,
    kind: &str,
    family: &str,
    text: &dyn Fn(usize, usize) -> String,
    count: &Count,
    overhead: u64,
) {
    let (mut all, mut late, mut prior) = (Vec::new(), Vec::new(), Vec::new());
    for session in 0..SESSIONS {
        let mut fit = Calibration::new(family);
        let mut said: Vec<(String, u64)> = Vec::new();
        for request in 0..REQUESTS {
            for _ in 0..2 {
                let piece = text(said.len() + request * 7, session);
                let tokens = count(&piece) + overhead;
                said.push((piece, tokens));
            }
            if said.iter().map(|(piece, _)| piece.len()).sum::<usize>() > WINDOW {
                said.drain(..said.len() / 2);
            }
            let messages =
                said.iter().map(|(piece, _)| ChatPart::User(TextPart::new(PartId(0), piece.as_str())));
            let prompt = Prompt::Chat(Chat { messages: messages.collect(), ..Chat::default() });
            let features = Features::of(&prompt).unwrap();
            let reported = said.iter().map(|(_, tokens)| tokens).sum::<u64>() + 3;
            let ratio = fit.estimator().of_features(&features) as f64 / reported as f64;
            all.push(ratio);
            if request >= 20 {
                late.push(ratio);
            }
            prior.push(Estimator::prior(family).of_features(&features) as f64 / reported as f64);
            fit.observe(&features, reported);
        }
    }
    let above = all.iter().filter(|ratio| **ratio >= 1.0).count() as f64 / all.len() as f64;
    println!(
        "| {name} | {kind} | {:.2} % | {:.3} | {:.3} | {:.3} |",
        above * 100.0,
        quantile(&mut all, 0.5),
        quantile(&mut late, 0.95),
        quantile(&mut prior, 0.5)
    );
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share) as usize]
}

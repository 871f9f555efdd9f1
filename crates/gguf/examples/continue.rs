//! Continues a text with a model: `continue MODEL TEXT [TOKENS]`.
//!
//! Prints the continuation and how fast it came. The model is used as it is; `requantise` first makes it fast.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Instant;

use gguf::{Engine, EngineJob, EngineOptions, JobEvent, PromptPiece, SamplingParams};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, text, rest @ ..] = arguments.as_slice() else {
        return Err("continue MODEL TEXT [TOKENS]".into());
    };
    let begun = Instant::now();
    let engine = Engine::load(Path::new(path), &EngineOptions::default())?;
    println!("{:?}\nloaded in {:?}, {} threads", engine.info(), begun.elapsed(), gguf::threads());
    let job = EngineJob {
        prompt: vec![PromptPiece::Text(text.clone())],
        sampling: SamplingParams::default(),
        max_tokens: rest.first().map_or(Ok(64), |count| count.parse())?,
        stop: Vec::new(),
        logprobs: None,
    };
    for _ in 0..2 {
        let (sender, updates) = channel();
        let mut mark = Instant::now();
        let _handle = engine.run(job.clone(), Box::new(move |update| drop(sender.send(update))))?;
        let (mut answer, mut first) = (String::new(), None);
        for update in updates {
            match update {
                JobEvent::Started(begun) => println!("{begun:?}"),
                JobEvent::Read(_) => {}
                JobEvent::Text { text, .. } => {
                    if first.is_none() {
                        first = Some(mark.elapsed());
                        mark = Instant::now();
                    }
                    answer.push_str(&text);
                }
                JobEvent::Ended(end) => {
                    let seconds = mark.elapsed().as_secs_f64();
                    let finished = end?;
                    println!(
                        "{answer}\n{finished:?}; prompt {first:?}, {:.1} tokens/s",
                        f64::from(finished.tokens) / seconds
                    );
                    break;
                }
            }
        }
    }
    Ok(())
}

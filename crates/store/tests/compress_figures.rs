//! What the dictionaries are worth: the figures of the size budget, on bodies of other seeds than the
//! training's.

#![allow(clippy::unwrap_used, reason = "a test reports by failing")]

use std::time::Instant;

use drawloom_store::compress::{Dictionary, compress, decompress};
use wire::{Server, Shape, Voice, Wire};

#[path = "../examples/train/wire.rs"]
mod wire;

const OTHER_SEEDS: u64 = 0xBEEF_0000_0000;
const BODIES: u64 = 20;

struct Figure {
    wire: usize,
    stored: usize,
    plain: usize,
}

impl Figure {
    fn share(&self) -> f64 {
        self.stored as f64 / self.wire as f64
    }
}

/// The mean over bodies of one shape.
fn figure(server: Server, shape: Shape, tokens: usize, voice: Voice, dictionary: Dictionary) -> Figure {
    let mut sum = Figure { wire: 0, stored: 0, plain: 0 };
    for seed in 0..BODIES {
        let body = Wire::from_server(OTHER_SEEDS + seed, voice, server).body(shape, tokens);
        let frame = compress(&body, Some(dictionary)).unwrap();
        assert_eq!(decompress(&frame, 1 << 20).unwrap(), body);
        sum.wire += body.len();
        sum.stored += frame.len();
        sum.plain += compress(&body, None).unwrap().len();
    }
    let n = usize::try_from(BODIES).unwrap();
    Figure { wire: sum.wire / n, stored: sum.stored / n, plain: sum.plain / n }
}

#[test]
fn streams_stay_under_eight_percent_of_their_wire_bytes() {
    let mut missed = Vec::new();
    for (server, shape, dictionary) in [
        (Server::OpenAi, Shape::ChatStream, Dictionary::OpenAiChat),
        (Server::LlamaCpp, Shape::ChatStream, Dictionary::OpenAiChat),
        (Server::OpenAi, Shape::CompletionsStream, Dictionary::OpenAiCompletions),
    ] {
        for (tokens, voice) in
            [(45, Voice::Plain), (45, Voice::Invented), (400, Voice::Plain), (400, Voice::Invented)]
        {
            let f = figure(server, shape, tokens, voice, dictionary);
            println!(
                "{server:?} {shape:?}, {tokens} tokens, {voice:?}: {} wire, {} stored ({:.1} %), {} without",
                f.wire,
                f.stored,
                f.share() * 100.0,
                f.plain
            );
            if f.share() >= 0.08 {
                missed.push((server, shape, tokens, voice, f.share()));
            }
            assert!(f.stored < f.plain, "the dictionary gains nothing for {server:?} {shape:?}");
        }
    }
    assert!(missed.is_empty(), "over the budget: {missed:?}");
}

#[test]
fn whole_bodies_gain_from_their_dictionary() {
    for (shape, dictionary) in [
        (Shape::ChatWhole, Dictionary::OpenAiChat),
        (Shape::ChatRequest, Dictionary::OpenAiChat),
        (Shape::CompletionsWhole, Dictionary::OpenAiCompletions),
        (Shape::CompletionsRequest, Dictionary::OpenAiCompletions),
    ] {
        let f = figure(Server::OpenAi, shape, 60, Voice::Invented, dictionary);
        println!(
            "{shape:?}: {} wire, {} stored ({:.1} %), {} without dictionary",
            f.wire,
            f.stored,
            f.share() * 100.0,
            f.plain
        );
        assert!(f.stored * 10 < f.plain * 9, "{shape:?} saves less than a tenth");
    }
}

/// Printed, not asserted: a shared machine's clock is no law.
#[test]
fn the_time_it_takes_is_printed() {
    let body = Wire::from_server(OTHER_SEEDS, Voice::Plain, Server::OpenAi).body(Shape::ChatStream, 45);
    let frame = compress(&body, Some(Dictionary::OpenAiChat)).unwrap();
    let start = Instant::now();
    for _ in 0..200 {
        compress(&body, Some(Dictionary::OpenAiChat)).unwrap();
    }
    let compressing = start.elapsed() / 200;
    let start = Instant::now();
    for _ in 0..200 {
        decompress(&frame, 1 << 20).unwrap();
    }
    println!("{} bytes: {compressing:?} to compress, {:?} to read", body.len(), start.elapsed() / 200);
}

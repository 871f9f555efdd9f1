//! Trains the compression dictionaries: `cargo run -p drawloom-store --example train -- crates/store/dict`.
//!
//! Everything it learns from is generated in [`wire`], with seeds of its own: nothing that anyone said or any
//! provider sent is in a dictionary. A dictionary that was published is never written again; a better one
//! gets the next version here and in `compress`.

mod wire;

use std::path::Path;

use wire::{Shape, Voice, Wire};

/// A larger dictionary would hold the samples' words rather than the dialects' shapes.
const MAX_BYTES: usize = 12 << 10;
const SEED: u64 = 0x0D0A_0001;
const SAMPLES_A_SHAPE: u64 = 220;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("give the folder to write to: crates/store/dict")?;
    let dialects: [(&str, u32, &[Shape]); 2] = [
        ("openai_chat.1.zdict", 40_101, &[Shape::ChatStream, Shape::ChatWhole, Shape::ChatRequest]),
        (
            "openai_completions.1.zdict",
            40_201,
            &[Shape::CompletionsStream, Shape::CompletionsWhole, Shape::CompletionsRequest],
        ),
    ];
    for (name, id, shapes) in dialects {
        let path = Path::new(&folder).join(name);
        std::fs::write(&path, train(id, shapes)?)?;
    }
    Ok(())
}

fn train(id: u32, shapes: &[Shape]) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut samples = Vec::new();
    for (index, shape) in (0u64..).zip(shapes) {
        for sample in 0..SAMPLES_A_SHAPE {
            // Short: what a dictionary can give is the first occurrence of each thing.
            let tokens = 4 + usize::try_from(sample % 24)?;
            let mut wire = Wire::new(SEED + (index << 32) + sample, Voice::Plain);
            samples.push(wire.body(*shape, tokens));
        }
    }
    let mut dictionary = zstd::dict::from_samples(&samples, MAX_BYTES)?;
    // The trainer derives an id from the contents; ours are assigned. It follows the magic number.
    dictionary.get_mut(4..8).ok_or("the trainer returned no dictionary")?.copy_from_slice(&id.to_le_bytes());
    Ok(dictionary)
}

//! Writes a tiny random model of a family: `tiny FAMILY TYPE TARGET`, TYPE 0 for 32-bit floats, 8 for blocks.
//!
//! llama.cpp reads it too, so that a family can be compared with it number by number (`parity/`).

#[path = "../tests/support/tiny.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod tiny;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [family, kind, target] = arguments.as_slice() else { return Err("tiny FAMILY TYPE TARGET".into()) };
    let family = ["llama", "qwen2", "qwen3"].into_iter().find(|known| known == family);
    let family = family.ok_or("the families are llama, qwen2 and qwen3")?;
    let tiny = tiny::Tiny { family, kind: kind.parse()?, context: 2_048, seed: 7 };
    Ok(std::fs::write(target, tiny.file().bytes())?)
}

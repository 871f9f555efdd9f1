//! Makes a model fast here: `requantise SOURCE TARGET`.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, target] = arguments.as_slice() else { return Err("requantise SOURCE TARGET".into()) };
    let begun = Instant::now();
    let result = gguf::requantise(Path::new(source), Path::new(target), |_| {})?;
    println!("{result:?} in {:?}", begun.elapsed());
    Ok(())
}

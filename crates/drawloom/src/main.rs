//! drawloom

mod bench;

use std::io::Write;

use commands::args::care::{Bench, BenchArg};

fn main() -> std::process::ExitCode {
    let nodes = std::env::args().nth(2).and_then(|nodes| nodes.parse().ok()).unwrap_or(1_000_000);
    match std::env::args().nth(1).as_deref() {
        Some("bench") => {}
        _ => return std::process::ExitCode::SUCCESS,
    }
    let mut err = std::io::stderr();
    let start = std::time::Instant::now();
    let mut progress = |line: &str| {
        let _ = writeln!(err, "{:7.1} {line}", start.elapsed().as_secs_f64());
    };
    let args = Bench { what: BenchArg::Loom, nodes };
    match bench::run(&args, &mut progress) {
        Ok(table) => {
            for row in table.rows {
                let budget = row.budget.map_or(String::new(), |budget| format!("{budget:.3}"));
                let missed = row.budget.is_some_and(|budget| row.value > budget);
                let mark = if missed { "  <== over" } else { "" };
                let _ = writeln!(
                    std::io::stdout(),
                    "{:75} {:12.3} {:24} {budget}{mark}",
                    row.name,
                    row.value,
                    row.unit
                );
            }
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error:?}");
            std::process::ExitCode::FAILURE
        }
    }
}

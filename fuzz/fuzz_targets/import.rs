//! A file to be imported, from its first byte: told or not told, read or refused. What was read may be planned,
//! verified, exported and read again.
#![no_main]

use drawloom_fuzz::desk::START;
use interop::detect::{ENOUGH, Format, detect};
use interop::import::plan_import;
use interop::own::{ExportOptions, ReadLimits, Unparsed, export, read};
use libfuzzer_sys::fuzz_target;
use loom::{Millis, Trust, ViewName};

const LIMITS: ReadLimits = ReadLimits { line: 4096, depth: 16, node: 2048, problems: 8 };

fuzz_target!(|file: &[u8]| {
    let told = detect(&file[..file.len().min(ENOUGH)]);
    if let Err(unknown) = &told {
        assert!(!unknown.to_string().contains(text::terminal::is_unsafe));
    }
    let Ok(read_once) = read(&mut &*file, LIMITS) else { return };
    assert!(read_once.problems.len() <= LIMITS.problems + 1, "problems are bounded");
    let report = read_once.verify(&Unparsed).expect("rows in memory");
    assert!(read_once.problems.is_empty() || report.status != loom::verify::Status::Valid);
    let planned = plan_import(&read_once, None, "owner", Millis(START));
    assert_eq!(planned.is_err(), read_once.broken().is_some());
    if planned.is_err() {
        return;
    }
    let _ = told.map(|format| assert_eq!(format, Format::Own));
    for row in loom::TreeReader::nodes_in_order(&read_once.tree, None, 100).expect("rows in memory") {
        assert_eq!(row.node.trust, Trust::Outside, "a file does not speak as the owner");
    }
    let (main, mut out) = (ViewName::default(), Vec::new());
    for write in [interop::plain::export, interop::markdown::export, interop::html::export] {
        write(&read_once.tree, &main, &mut out).expect("an export of what stands");
    }
    let mut again = Vec::new();
    export(&read_once, ExportOptions::default(), &mut again).expect("an export of what stands");
    read(&mut again.as_slice(), ReadLimits::default()).expect("what was written is read");
});

//! Files that lie, are damaged, or want to cost too much: named, in bounded time.

use std::time::Instant;

use interop::own::{ExportVariant, ImportedFile, ReadError, ReadLimits, read};
use loom::memory::MemoryTree;
use loom::verify::Status;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::driver::*;

fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8(bytes.to_vec()).unwrap().lines().map(str::to_owned).collect()
}

fn joined(lines: &[String]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

/// A file with one line changed.
fn with(at: usize, change: impl FnOnce(&mut Value)) -> ImportedFile {
    let mut all = lines(&rich().export(ExportVariant::Full));
    let mut value: Value = serde_json::from_str(&all[at]).unwrap();
    change(&mut value);
    all[at] = value.to_string();
    read_all(&joined(&all))
}

fn line_of(kind: &str, nth: usize) -> usize {
    let all = lines(&rich().export(ExportVariant::Full));
    let prefix = format!("{{\"record\":\"{kind}\"");
    all.iter().enumerate().filter(|(_, line)| line.starts_with(&prefix)).nth(nth).unwrap().0
}

fn broken(file: &ImportedFile) -> (u64, String) {
    let problem = file.broken().expect("a problem that breaks the tree");
    (problem.line, problem.why.clone())
}

#[test]
fn every_flipped_byte_is_found() {
    let mut home = Home::new(loom::Mode::Buffer);
    home.say("One é.");
    home.answer(" Two.");
    home.run(loom::Op::Edit {
        position: home.tip(),
        text: " Too.".into(),
        edit_as: loom::plan::EditAs::Version,
    })
    .unwrap();
    seal(&mut home);
    let bytes = home.export(ExportVariant::WithContext);
    let whole = read_all(&bytes);
    assert_eq!((whole.problems.len(), whole.verify(&JsonText).unwrap().status), (0, Status::Valid));
    // Every seventh byte, so that all places of a line are met over the lines.
    for at in (0..bytes.len()).step_by(7) {
        // A low bit, and the case of letters.
        for bit in [0x01, 0x20] {
            let mut flipped = bytes.clone();
            flipped[at] ^= bit;
            let mut input = flipped.as_slice();
            let Ok(file) = read(&mut input, ReadLimits::default()) else { continue };
            let here = String::from_utf8_lossy(&flipped[at.saturating_sub(30)..(at + 10).min(flipped.len())])
                .into_owned();
            assert!(!file.problems.is_empty(), "byte {at}: …{here}");
            // Checking a signature costs; some bytes stand for all.
            if at % 49 == 0 {
                assert_eq!(file.verify(&JsonText).unwrap().status, Status::Invalid, "byte {at}");
            }
        }
    }
}

#[test]
fn a_changed_text_with_a_mended_last_line_is_still_found() {
    // Whoever edits a text and the digest of the file leaves the hashes of the node.
    let at = line_of("node", 1);
    let file = with(at, |node| node["content"][0]["text"] = json!("The snow "));
    let (line, why) = broken(&file);
    assert_eq!(line, at as u64 + 1);
    assert!(why.contains("its content does not fit its hash"), "{why}");
}

#[test]
fn what_a_node_says_about_itself_is_checked() {
    let node = line_of("node", 2);
    for (field, value, says) in [
        ("position", json!("01ARZ3NDEKTSV4RRFFQ69G5FAV"), "is not in the lines before"),
        ("role", json!("user"), "its role is not that of its position"),
        ("short_id", json!("zzzz"), "short id"),
        ("origins", json!([]), "origin"),
        ("created_at", json!(4_070_908_800_000_i64), "chain hash"),
        ("edited_from", json!("01ARZ3NDEKTSV4RRFFQ69G5FAV"), "is not in the lines before"),
        ("was", json!([{"bytes": 1, "chars": u64::MAX, "graphemes": 0}, "00"]), "absent"),
        ("seq", json!(1), "out of order"),
    ] {
        let (_, why) = broken(&with(node, |record| record[field] = value));
        assert!(why.contains(says), "{field}: {why}");
    }
}

#[test]
fn a_tombstone_cannot_lie_about_its_size() {
    let node = line_of("node", 1);
    let file = with(node, |record| {
        record["content"] = json!([]);
        record["absent"] = json!("purged");
        record["was"] = json!([{"bytes": 3, "chars": u64::MAX, "graphemes": 0}, "00"]);
    });
    assert!(broken(&file).1.contains("contradicts itself"));
}

#[test]
fn parents_that_are_missing_or_go_round_are_named() {
    let position = line_of("position", 2);
    let own =
        serde_json::from_str::<Value>(&lines(&rich().export(ExportVariant::Full))[position]).unwrap()["id"]
            .clone();
    for parent in [json!("01ARZ3NDEKTSV4RRFFQ69G5FAV"), own, json!(null)] {
        let file = with(position, |record| record["parent"] = parent.clone());
        let (line, why) = broken(&file);
        assert_eq!(line, position as u64 + 1, "{why}");
        assert!(why.contains("position"), "{why}");
    }
}

#[test]
fn a_record_twice_is_named() {
    for kind in ["position", "node"] {
        let at = line_of(kind, 1);
        let mut all = lines(&rich().export(ExportVariant::Full));
        let again = [all[at].clone(), all[at + 1].clone()];
        let end = line_of("operation", 0);
        all.splice(end..end, again);
        let file = read_all(&joined(&all));
        assert!(file.broken().is_some(), "{kind}");
    }
    let mut all = lines(&rich().export(ExportVariant::Full));
    let at = line_of("position", 1);
    let pair = [all[at].clone(), all[at + 1].clone()];
    all.splice(at + 2..at + 2, pair);
    assert!(broken(&read_all(&joined(&all))).1.contains("twice"));
}

#[test]
fn records_of_another_tree_are_named() {
    let at = line_of("operation", 1);
    let file = with(at, |record| record["tree"] = json!("01ARZ3NDEKTSV4RRFFQ69G5FAV"));
    assert!(broken(&file).1.starts_with("operation 2: "));
    // A header with another tree: no chain hash fits.
    let file = with(0, |record| record["tree"]["id"] = json!("01ARZ3NDEKTSV4RRFFQ69G5FAV"));
    assert!(broken(&file).1.contains("chain hash"));
}

#[test]
fn a_cell_cannot_lead_out_of_the_tree_even_with_mended_hashes() {
    let mut home = Home::new(loom::Mode::Buffer);
    home.say("One.");
    let (first, text) = (home.newest(), home.tip());
    home.say("Two.");
    let remark = loom::plan::NewText::owner("a remark", None);
    home.run(loom::Op::Annotate { position: text, text: remark }).unwrap();
    let remark = home.newest();
    home.run(loom::Op::Edit {
        position: home.tip(),
        text: "2.".into(),
        edit_as: loom::plan::EditAs::Version,
    })
    .unwrap();
    let all: Vec<Value> = lines(&home.export(ExportVariant::Full))
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = all.iter().rposition(|line| line["record"] == "operation").unwrap();
    let forged = |lie: Value| {
        let mut all = all.clone();
        all[last]["cells"].as_array_mut().unwrap().push(lie);
        mend(&mut all);
        read_all(&all.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect::<Vec<_>>())
    };
    let cell = |key: Value, new: Value| json!({"key": key, "old": "none", "new": new});
    // Control: an honest cell passes.
    let honest = forged(cell(json!({"cell": "bookmark", "position": text}), json!({"text": "here"})));
    assert!(honest.broken().is_none(), "{:?}", honest.problems);
    let nowhere = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let tip = json!({"cell": "tip", "view": "main"});
    for (lie, says) in [
        (cell(tip.clone(), json!({"position": nowhere})), "is not in the lines before"),
        (cell(tip, json!({"position": remark})), "off every path"),
        (
            cell(
                json!({"cell": "window_start", "view": "main"}),
                json!({"place": {"position": nowhere, "at": 0}}),
            ),
            "is not in the lines before",
        ),
        (
            cell(json!({"cell": "pruned", "target": {"version": nowhere}}), json!("set")),
            "is not in the lines before",
        ),
        (
            cell(json!({"cell": "selected", "view": "main", "position": home.tip()}), json!({"node": first})),
            "another position",
        ),
    ] {
        let (line, why) = broken(&forged(lie));
        assert_eq!(line, last as u64 + 1);
        assert!(why.contains(says), "{why}");
    }
}

#[test]
fn a_missing_node_or_operation_is_named() {
    for kind in ["node", "operation"] {
        let mut all = lines(&rich().export(ExportVariant::Full));
        all.remove(line_of(kind, 3));
        assert!(read_all(&joined(&all)).broken().is_some(), "{kind}");
    }
}

#[test]
fn damaged_bytes_are_skipped_alone() {
    for (kind, field) in [("manifest", "data"), ("response", "data"), ("blob", "data")] {
        let at = line_of(kind, 0);
        let file = with(at, |record| record[field] = json!({"utf8": "something else"}));
        assert!(file.broken().is_none(), "{kind}");
        let named =
            file.problems.iter().any(|problem| problem.line == at as u64 + 1 && problem.why.contains(kind));
        assert!(named, "{:?}", file.problems);
    }
}

#[test]
fn a_cut_file_says_so() {
    let bytes = rich().export(ExportVariant::Full);
    let cut = read_all(&bytes[..bytes.len() - 40]);
    assert!(cut.problems.iter().any(|problem| problem.why.contains("ends within")), "{:?}", cut.problems);
    let all = lines(&bytes);
    let without = read_all(&joined(&all[..all.len() - 1]));
    assert!(broken(&without).1.contains("cut"));
    let structure = read_all(&joined(&all[..line_of("operation", 0)]));
    assert!(structure.broken().is_some());
    let no_line_end = read_all(&bytes[..bytes.len() - 1]);
    assert!(no_line_end.problems.is_empty(), "{:?}", no_line_end.problems);
}

#[test]
fn a_last_operation_that_is_gone_is_missed_by_the_last_line() {
    let mut home = Home::new(loom::Mode::Buffer);
    home.say("a b");
    home.run(loom::Op::Undo).unwrap();
    home.run(loom::Op::Redo).unwrap();
    let mut all = lines(&home.export(ExportVariant::Full));
    let newest = all.iter().rposition(|line| line.starts_with("{\"record\":\"operation\"")).unwrap();
    all.remove(newest);
    assert!(broken(&read_all(&joined(&all))).1.contains("counts other records"));
    all.pop();
    assert!(broken(&read_all(&joined(&all))).1.contains("cut"));
}

#[test]
fn bombs_are_named_and_cheap() {
    let good = rich().export(ExportVariant::Full);
    let header = lines(&good)[0].clone();
    let small = ReadLimits { line: 1 << 20, problems: 5, ..ReadLimits::default() };
    let bombs: Vec<(&str, Vec<u8>)> = vec![
        ("nests", b"[".repeat(900_000)),
        ("nests", b"{\"a\":".repeat(180_000)),
        ("longer than", vec![b' '; 5 << 20]),
        ("no record", vec![0xff; 100_000]),
        ("no record", b"\n".repeat(500_000)),
        ("no record", format!("{{\"record\":\"blob\",\"digest\":\"{}\"}}", "0".repeat(900_000)).into_bytes()),
    ];
    for (says, bomb) in bombs {
        let started = Instant::now();
        let file = [header.as_bytes(), b"\n", &bomb, b"\n"].concat();
        let file = read(&mut file.as_slice(), small).unwrap();
        assert!(
            file.problems.iter().any(|problem| problem.why.contains(says)),
            "{says}: {:?}",
            file.problems.first()
        );
        assert!(file.problems.len() <= 7, "{}", file.problems.len());
        assert!(started.elapsed().as_secs() < 5, "{says}");
    }
}

#[test]
fn a_node_over_the_limit_is_named() {
    let bytes = rich().export(ExportVariant::Full);
    let limits = ReadLimits { node: 4, ..ReadLimits::default() };
    let file = read(&mut bytes.as_slice(), limits).unwrap();
    assert!(broken(&file).1.contains("at most 4"));
}

#[test]
fn other_files_and_later_versions_are_refused() {
    for bytes in
        [&b""[..], b"PK\x03\x04", b"{}\n", b"{\"record\":\"header\",\"format\":\"other\",\"version\":1}\n"]
    {
        let mut input = bytes;
        assert!(matches!(read(&mut input, ReadLimits::default()), Err(ReadError::NotOurs)));
    }
    let later = b"{\"record\":\"header\",\"format\":\"drawloom\",\"version\":9,\"new\":[]}\n";
    assert!(matches!(read(&mut &later[..], ReadLimits::default()), Err(ReadError::Version(9))));
}

#[test]
fn a_quote_outside_its_texts_is_named_even_with_mended_hashes() {
    // Spans are computed from quotes: one inside a character would cut it.
    let forged = |change: fn(&mut loom::Quote)| {
        let mut home = Home::new(loom::Mode::Buffer);
        home.say("é and more");
        home.run(loom::Op::BranchAt { node: home.newest(), at: 5, token: None }).unwrap();
        let MemoryTree { nodes, operations, .. } = &mut home.file.tree;
        let row = nodes.values_mut().find(|row| row.node.quote.is_some()).expect("branches quote");
        change(row.node.quote.as_mut().unwrap());
        row.node.chain_hash = loom::record::chain_hash(&row.node, loom::record::Links::default()).unwrap();
        let (id, chain) = (row.node.id, row.node.chain_hash);
        let record = operations.last_mut().unwrap();
        record.op.nodes.iter_mut().filter(|(made, _)| *made == id).for_each(|made| made.1 = chain);
        record.hash = record.compute_hash().unwrap();
        read_all(&home.export(ExportVariant::Full))
    };
    let whole = forged(|_| {});
    assert!(whole.broken().is_none(), "{:?}", whole.problems);
    let lies: [fn(&mut loom::Quote); 5] = [
        |quote| quote.from = 1,
        |quote| quote.at = 1,
        |quote| quote.to = u64::MAX,
        |quote| (quote.from, quote.to) = (5, 2),
        |quote| (quote.from, quote.at) = (2, 0),
    ];
    for (n, lie) in lies.into_iter().enumerate() {
        assert!(broken(&forged(lie)).1.contains("what it quotes"), "lie {n}");
    }
}

#[test]
fn what_stands_behind_the_end_is_skipped() {
    let bytes = rich().export(ExportVariant::Full);
    let twice = read_all(&[bytes.clone(), bytes.clone()].concat());
    assert!(twice.broken().is_none());
    assert!(twice.problems.iter().all(|problem| problem.why.contains("follows the end")));
    assert!(!twice.problems.is_empty());
}

/// All places of a JSON value that hold no further values.
fn leaves<'a>(value: &'a mut Value, found: &mut Vec<&'a mut Value>) {
    match value {
        Value::Object(map) => map.values_mut().for_each(|inner| leaves(inner, found)),
        Value::Array(list) => list.iter_mut().for_each(|inner| leaves(inner, found)),
        leaf => found.push(leaf),
    }
}

/// Hashes the log of a file anew.
fn mend(all: &mut [Value]) {
    let mut prev = loom::Digest::ZERO;
    for line in all.iter_mut().filter(|line| line["record"] == "operation") {
        line["prev"] = json!(prev);
        if let Ok(mut record) = serde_json::from_value::<loom::OpRecord>(line.clone()) {
            record.hash = record.compute_hash().unwrap_or(record.hash);
            line["hash"] = json!(record.hash);
            prev = record.hash;
        }
    }
}

/// Changes values of a file and mends the hashes of its log, as a forger would.
fn forged(home: &Home, lies: &[(usize, usize, usize)]) -> Vec<u8> {
    let mut all: Vec<Value> = lines(&home.export(ExportVariant::Full))
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ids: Vec<Value> = home.nodes.iter().map(|id| json!(id.to_string())).collect();
    let extremes =
        [json!(u64::MAX), json!(0), json!(i64::MIN), json!(null), json!(""), json!("none"), json!([])];
    for (line, leaf, lie) in lies {
        // The header stays readable.
        let at = 1 + line % (all.len() - 1);
        let mut found = Vec::new();
        leaves(&mut all[at], &mut found);
        let pick = leaf % found.len();
        let value = ids.iter().chain(&extremes).nth(lie % (ids.len() + extremes.len())).unwrap();
        *found[pick] = value.clone();
    }
    mend(&mut all);
    all.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn no_lie_in_a_file_brings_a_reader_down(
        home in home(),
        lies in prop::collection::vec((any::<usize>(), any::<usize>(), any::<usize>()), 1..4),
    ) {
        let file = read_all(&forged(&home, &lies));
        drop(file.verify(&JsonText).unwrap());
        let view = loom::ViewName::default();
        // What was taken is closed: whatever it shows is there.
        let show = loom::render::Show { drafts: true, spans: true };
        if file.broken().is_none() {
            prop_assert!(loom::render::render(&file.tree, &view, show).is_ok());
            prop_assert!(interop::html::export(&file.tree, &view, &mut Vec::new()).is_ok());
        }
        drop(loom::render::render(&file.tree, &view, show));
        drop(interop::html::export(&file.tree, &view, &mut Vec::new()));
        drop(interop::import::plan_import(&file, Some(home.tree()), "owner", loom::Millis(START)));
        let mut ids = loom::IdSource::default();
        let mut entropy = loom::id::Entropy { ids: &mut ids, random: 1 };
        drop(interop::import::plan_copy(&file, "owner", loom::Millis(START), &mut entropy));
    }
}

#[test]
fn what_was_shown_with_no_node_or_out_of_order_is_skipped_and_named() {
    let at = line_of("injection", 0);
    let missing = with(at, |line| line["node"] = json!("01M3250VZ80005GMFM5N69AZZZ"));
    assert!(
        missing.problems.iter().any(|problem| problem.why.contains("has no node")),
        "{:?}",
        missing.problems
    );
    assert!(missing.broken().is_none(), "the tree stands without it");
    let mut all = lines(&rich().export(ExportVariant::Full));
    let count = all.iter().filter(|line| line.starts_with("{\"record\":\"injection\"")).count();
    all.insert(at, all[at].clone());
    let twice = read_all(&joined(&all));
    assert!(
        twice.problems.iter().any(|problem| problem.why.contains("out of order")),
        "{:?}",
        twice.problems
    );
    assert_eq!(twice.injections.len(), count, "once");
    assert!(twice.injections.iter().all(|shown| shown.trust == loom::Trust::Outside));
}

#[test]
fn a_file_in_which_nothing_was_shown_does_not_speak_of_it() {
    let mut home = Home::new(loom::Mode::Buffer);
    home.say("One.");
    assert!(!String::from_utf8(home.export(ExportVariant::Full)).unwrap().contains("injection"));
}

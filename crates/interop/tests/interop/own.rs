//! The own format: what goes out comes back.

use interop::own::{ExportPart, ExportVariant, ReadLimits, Record, Unparsed, survey};
use loom::memory::MemoryTree;
use loom::verify::{Assurance, Gap, Status};
use loom::*;
use loom_testing::{WriteRows, purge};
use proptest::prelude::*;

use crate::driver::*;

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn export_import_export_is_byte_identical_and_renders_the_same(home in home()) {
        for variant in [ExportVariant::Full, ExportVariant::WithContext] {
            let first = home.export(variant);
            let file = read_all(&first);
            prop_assert_eq!(&file.problems, &vec![]);
            prop_assert_eq!(String::from_utf8(exported(&file, variant)), String::from_utf8(first));
            prop_assert_eq!(rendered(&file.tree), home.text());
            let report = file.verify(&JsonText).unwrap();
            prop_assert_eq!(report.status, Status::Valid, "{:?}", report.problems);
        }
    }

    #[test]
    fn a_shared_file_is_incomplete_and_never_invalid(home in home()) {
        for annotations in [false, true] {
            let variant = ExportVariant::Shared { annotations };
            let first = home.export(variant);
            let file = read_all(&first);
            prop_assert_eq!(&file.problems, &vec![]);
            let report = file.verify(&JsonText).unwrap();
            prop_assert_eq!(report.status, Status::Incomplete, "{:?}", report.problems);
            prop_assert!(report.problems.iter().all(|problem| problem.gap == Some(Gap::Shared)), "{:?}", report.problems);
        }
    }
}

#[test]
fn a_sealed_tree_is_sealed_in_its_file() {
    let mut home = rich();
    seal(&mut home);
    let file = read_all(&home.export(ExportVariant::Full));
    let report = file.verify(&JsonText).unwrap();
    assert_eq!(
        (report.status, report.assurance),
        (Status::Valid, Assurance::Sealed),
        "{:?}",
        report.problems
    );
}

#[test]
fn metadata_of_equal_responses_stays_with_its_generation() {
    let mut home = rich();
    let (id, held) = home.file.generations.iter_mut().next().unwrap();
    let (id, metadata) = (*id, r#"{"status":200,"ends_at":"sentence"}"#.to_owned());
    held.metadata = Some(metadata.clone());
    let bytes = home.export(ExportVariant::Full);
    let file = read_all(&bytes);
    let received = file.received(&file.generations[&id]).unwrap();
    assert_eq!(received.metadata, metadata);
    assert_ne!(file.materials.responses[&file.generations[&id].response.unwrap()].metadata, metadata);
    assert_eq!(exported(&file, ExportVariant::Full), bytes);
}

#[test]
fn without_a_parser_responses_are_checked_by_digest_alone() {
    let report = read_all(&rich().export(ExportVariant::Full)).verify(&Unparsed).unwrap();
    assert_eq!(report.status, Status::Incomplete);
    assert!(report.problems.iter().all(|problem| problem.gap == Some(Gap::Parser)));
}

#[test]
fn a_file_first_says_what_it_contains() {
    let home = rich();
    let bytes = home.export(ExportVariant::Full);
    let first: Record = serde_json::from_slice(bytes.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
    let Record::Header(header) = first else { panic!("{first:?}") };
    assert!(
        header.contains.contains(&ExportPart::Responses) && header.left_out.contains(&ExportPart::FileBodies)
    );
    let told = survey(&home.file, ExportVariant::WithContext).unwrap();
    assert!(told.bodies.iter().all(|body| body.name == "MEMORY.md") && told.bodies.len() == 2);
    assert!(survey(&home.file, ExportVariant::Full).unwrap().bodies.is_empty());
}

#[test]
fn our_files_are_told_by_their_content() {
    let bytes = rich().export(ExportVariant::Shared { annotations: false });
    assert_eq!(interop::detect::detect(&bytes), Ok(interop::detect::Format::Own));
}

#[test]
fn a_file_that_lacks_its_last_line_end_is_whole() {
    let bytes = rich().export(ExportVariant::Full);
    let file = read_all(bytes.strip_suffix(b"\n").unwrap());
    assert_eq!(file.problems, []);
    assert_eq!(file.verify(&JsonText).unwrap().status, read_all(&bytes).verify(&JsonText).unwrap().status);
}

#[test]
fn empty_lines_after_the_last_one_are_nothing() {
    let mut bytes = rich().export(ExportVariant::Full);
    bytes.extend_from_slice(b"\n\r\n \t\n\n");
    let file = read_all(&bytes);
    assert_eq!((file.problems.as_slice(), file.lines_left_out), (&[][..], 0));
    bytes.extend_from_slice(b"{}\n");
    assert_eq!(read_all(&bytes).lines_left_out, 1, "the control: what is something is named");
}

#[test]
fn lines_with_problems_are_counted_however_many_they_are() {
    let mut bytes = rich().export(ExportVariant::Full);
    let bad = b"{}\n".repeat(ReadLimits::default().problems + 50);
    let end = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    bytes.splice(end..end, bad);
    let file = read_all(&bytes);
    assert_eq!(file.lines_left_out, 250);
    assert!(file.problems.len() < 250 && file.further > 0);
}

#[test]
fn bodies_go_along_only_with_context() {
    let home = rich();
    let has = |variant| String::from_utf8(home.export(variant)).unwrap().contains("body of fell softly");
    assert!(!has(ExportVariant::Full));
    assert!(has(ExportVariant::WithContext));
}

#[test]
fn a_shared_file_holds_no_tool_output_remark_tag_or_response() {
    let home = rich();
    let full = String::from_utf8(home.export(ExportVariant::Full)).unwrap();
    let shared = String::from_utf8(home.export(ExportVariant::Shared { annotations: false })).unwrap();
    let named = String::from_utf8(home.export(ExportVariant::Shared { annotations: true })).unwrap();
    for secret in ["a file, whole", "a remark", "weather", "the turn", "\\\"status\\\":200", "{\\\"n\\\":"] {
        assert!(full.contains(secret), "{secret}");
        assert!(!shared.contains(secret), "{secret}");
    }
    assert!(shared.contains("fell hard") && shared.contains("\"owner\""));
    assert!(named.contains("a remark") && named.contains("weather") && !named.contains("a file, whole"));
}

#[test]
fn a_known_secret_stops_a_shared_export_only() {
    let mut home = Home::new(Mode::Buffer);
    home.say("the key is sk-4f9a8b7c6d5e4f3a2b1c, keep it");
    let secret = text::mask::Secret::new("KEY", "sk-4f9a8b7c6d5e4f3a2b1c").unwrap();
    let masker = text::mask::Masker::new(&[secret]).unwrap();
    let write = |variant| {
        let options = interop::own::ExportOptions { variant, secrets: Some(&masker) };
        interop::own::export(&home.file, options, &mut Vec::new())
    };
    let shared = write(ExportVariant::Shared { annotations: false }).unwrap_err();
    assert!(shared.to_string().starts_with("node "), "{shared}");
    assert!(write(ExportVariant::Full).is_ok());
}

#[test]
fn drafts_and_trust_are_not_in_a_file() {
    let mut home = rich();
    let draft = Draft::new(None, "not said yet");
    let change =
        plan::DraftChange { view: ViewName::default(), slot: Slot::Buffer, expected: None, new: Some(draft) };
    home.file.tree.set_draft(change).unwrap();
    let bytes = home.export(ExportVariant::WithContext);
    let json = String::from_utf8(bytes.clone()).unwrap();
    assert!(!json.contains("not said yet") && !json.contains("\"trust\":"));
    for row in read_all(&bytes).tree.nodes_in_order(None, usize::MAX).unwrap() {
        assert_eq!(row.node.trust, Trust::Outside);
    }
}

#[test]
fn a_forgotten_node_stays_forgotten_and_the_rest_checkable() {
    let mut home = rich();
    let MemoryTree { nodes, .. } = &mut home.file.tree;
    purge(nodes.values_mut().find(|row| row.node.text() == "on the roof.").unwrap());
    let bytes = home.export(ExportVariant::Full);
    let file = read_all(&bytes);
    assert_eq!(file.problems, []);
    assert_eq!(exported(&file, ExportVariant::Full), bytes);
    let report = file.verify(&JsonText).unwrap();
    assert_eq!(report.status, Status::Incomplete);
    assert!(report.problems.iter().all(|problem| problem.gap == Some(Gap::Purged)));
}

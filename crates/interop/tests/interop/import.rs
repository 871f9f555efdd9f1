//! What an import does to a home, and what it must never do.

use interop::import::{ImportChange, ImportRefusal, Provenance, plan_copy, plan_import};
use interop::own::{ExportVariant, ImportedFile};
use loom::id::Entropy;
use loom::memory::MemoryTree;
use loom::plan::EditAs;
use loom::verify::Status;
use loom::*;
use loom_testing::{WriteRows, purge};
use proptest::prelude::*;

use crate::driver::*;

const NOW: Millis = Millis(START + 1_000_000);

fn applied(here: &MemoryTree, file: &ImportedFile) -> MemoryTree {
    let mut tree = here.clone();
    match plan_import(file, Some(here), "owner", NOW).unwrap().change {
        ImportChange::Added(plan) => drop(tree.apply(*plan).unwrap()),
        ImportChange::Nothing => {}
        ImportChange::Whole => panic!("the tree is known"),
    }
    tree
}

/// A tree and the same tree gone on elsewhere.
fn forked(steps: &[Step], more: &[Step]) -> (Home, Home) {
    let mut here = Home::new(Mode::Buffer);
    here.say("Begin. ");
    steps.iter().for_each(|step| take(&mut here, step.clone()));
    let mut there = here.clone();
    more.iter().for_each(|step| take(&mut there, step.clone()));
    (here, there)
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn importing_into_a_known_tree_leaves_every_rendering_unchanged(
        steps in prop::collection::vec(step(), 0..12),
        more in prop::collection::vec(step(), 0..12),
    ) {
        let (here, there) = forked(&steps, &more);
        let file = read_all(&there.export(ExportVariant::Full));
        let after = applied(here.tree(), &file);
        for (key, _) in here.tree().cells(&cell::CellScope::Views).unwrap() {
            let CellKey::View { view } = key else { continue };
            let show = render::Show { drafts: true, spans: true };
            let old = render::render(here.tree(), &view, show);
            let new = render::render(&after, &view, show);
            match (old, new) {
                (Ok(old), Ok(new)) => prop_assert_eq!(old, new),
                (old, new) => prop_assert_eq!(old.is_ok(), new.is_ok()),
            }
        }
        // All of it is here now, and it agrees with itself.
        for row in there.tree().nodes_in_order(None, usize::MAX).unwrap() {
            prop_assert!(after.node(row.node.id).unwrap().is_some());
        }
        let mut whole = there.file.clone();
        whole.tree = after;
        let report = read_all(&exported(&whole, ExportVariant::Full)).verify(&JsonText).unwrap();
        prop_assert_eq!(report.status, Status::Valid, "{:?}", report.problems);
    }

    #[test]
    fn a_copy_renders_the_same_and_is_valid_but_unattested(home in home()) {
        let file = read_all(&home.export(ExportVariant::Full));
        let mut ids = IdSource::default();
        let mut entropy = Entropy { ids: &mut ids, random: 99 };
        let copied = plan_copy(&file, "owner", NOW, &mut entropy).unwrap();
        let mut tree = MemoryTree::default();
        for plan in copied.plans {
            tree.apply(plan).unwrap();
        }
        let text = |rows: &dyn TreeReader| render::render(rows, &ViewName::default(), render::Show { drafts: false, spans: true }).unwrap();
        let (old, new) = (text(&file.tree), text(&tree));
        prop_assert_eq!(&old.text, &new.text);
        prop_assert_eq!(old.spans.len(), new.spans.len());
        let mut whole = home.file.clone();
        whole.header.tree = tree.tree().unwrap();
        whole.tree = tree;
        whole.generations.clear();
        whole.injections.clear();
        let read = read_all(&exported(&whole, ExportVariant::Full));
        let report = read.verify(&JsonText).unwrap();
        prop_assert_eq!(report.status, Status::Valid, "{:?}", report.problems);
        let models = read.tree.nodes_in_order(None, usize::MAX).unwrap();
        let models = models.iter().filter(|row| row.node.source.is_some()).count();
        prop_assert_eq!(report.unattested, models as u64);
        prop_assert_eq!(whole.header.tree.origin.unwrap().tree, loom_testing::TREE);
        prop_assert!(copied.ids.iter().all(|(old, new)| old != new));
    }
}

#[test]
fn an_unknown_tree_is_taken_whole_and_the_same_file_again_adds_nothing() {
    let home = rich();
    let file = read_all(&home.export(ExportVariant::Full));
    assert_eq!(plan_import(&file, None, "owner", NOW).unwrap().change, ImportChange::Whole);
    let again = plan_import(&file, Some(&file.tree), "owner", NOW).unwrap();
    assert_eq!((again.change, again.history), (ImportChange::Nothing, 0));
    assert!(again.skipped > 8);
}

#[test]
fn a_version_dated_2099_is_flagged_and_not_shown() {
    let mut here = Home::new(Mode::Buffer);
    here.say("The owner's text.");
    let place = here.newest().as_position();
    let mut there = here.clone();
    let edit = Op::Edit { position: place, text: "Somebody else's text.".into(), edit_as: EditAs::Version };
    there.run(edit).unwrap();
    // The forger dates the version and mends every hash over it.
    let forged = there.newest();
    let dated = Millis(4_070_908_800_000);
    let MemoryTree { nodes, operations, .. } = &mut there.file.tree;
    let original = nodes[&place.original()].node.chain_hash;
    let row = nodes.get_mut(&forged).unwrap();
    row.node.created_at = dated;
    let links = record::Links { position: Some(original), edited_from: Some(original) };
    row.node.chain_hash = record::chain_hash(&row.node, links).unwrap();
    let last = operations.last_mut().unwrap();
    last.op.nodes[0].1 = row.node.chain_hash;
    last.hash = last.compute_hash().unwrap();
    let file = read_all(&there.export(ExportVariant::Full));
    assert_eq!(file.problems, []);
    let plan = plan_import(&file, Some(here.tree()), "owner", NOW).unwrap();
    assert_eq!(plan.odd_times.iter().map(|odd| (odd.node, odd.at)).collect::<Vec<_>>(), [(forged, dated)]);
    let after = applied(here.tree(), &file);
    assert_eq!(rendered(&after), "The owner's text.");
    assert_eq!(after.node(forged).unwrap().unwrap().node.trust, Trust::Outside);
    // Control: the file itself shows the other text.
    assert_eq!(rendered(&file.tree), "Somebody else's text.");
}

#[test]
fn a_version_that_arrives_where_the_newest_is_shown_arrives_pruned() {
    let mut here = Home::new(Mode::Buffer);
    here.say("First.");
    let place = here.newest().as_position();
    here.run(Op::NewView { name: "other".parse().unwrap(), agent: "owner".into() }).unwrap();
    here.run(Op::Edit { position: place, text: "Second.".into(), edit_as: EditAs::Version }).unwrap();
    here.run(Op::Prune(OpTarget::Version(place.original()))).unwrap();
    // The view `other` selected nothing: it shows the newest visible version.
    let other: ViewName = "other".parse().unwrap();
    let shown = |rows: &dyn TreeReader| {
        render::render(rows, &other, render::Show { drafts: false, spans: false }).unwrap().text
    };
    assert_eq!(shown(here.tree()), "Second.");
    let mut there = here.clone();
    there.run(Op::Edit { position: place, text: "Third.".into(), edit_as: EditAs::Version }).unwrap();
    assert_eq!(shown(there.tree()), "Third.");
    let file = read_all(&there.export(ExportVariant::Full));
    assert_eq!(shown(&applied(here.tree(), &file)), "Second.");
    // Control: without the cells of the plan the stranger's version would be shown.
    let ImportChange::Added(mut plan) = plan_import(&file, Some(here.tree()), "owner", NOW).unwrap().change
    else {
        panic!()
    };
    plan.op.as_mut().unwrap().cells.clear();
    let mut open = here.tree().clone();
    open.apply(*plan).unwrap();
    assert_eq!(shown(&open), "Third.");
}

#[test]
fn a_version_that_arrives_where_the_selected_one_is_pruned_is_not_shown() {
    let mut here = Home::new(Mode::Buffer);
    here.say("First.");
    let place = here.newest().as_position();
    here.run(Op::Edit { position: place, text: "Second.".into(), edit_as: EditAs::Version }).unwrap();
    here.run(Op::Prune(OpTarget::Version(here.newest()))).unwrap();
    let shown = |rows: &dyn TreeReader| {
        render::render(rows, &"main".parse().unwrap(), render::Show { drafts: false, spans: false })
            .unwrap()
            .text
    };
    assert_eq!(shown(here.tree()), "First.");
    let mut there = here.clone();
    there.run(Op::Edit { position: place, text: "Third.".into(), edit_as: EditAs::Version }).unwrap();
    assert_eq!(shown(there.tree()), "Third.");
    let file = read_all(&there.export(ExportVariant::Full));
    assert_eq!(shown(&applied(here.tree(), &file)), "First.");
}

#[test]
fn a_differing_record_refuses_the_whole_file_by_name() {
    let mut here = Home::new(Mode::Buffer);
    here.say("One.");
    let mut there = here.clone();
    let id = there.newest();
    // The same id, another text, all hashes mended.
    let MemoryTree { nodes, positions, operations, .. } = &mut there.file.tree;
    let row = nodes.get_mut(&id).unwrap();
    row.node.content = vec![Block::text("Two.")].into();
    row.node.kept_hash = None;
    row.node.term = PathDigest::term(row.node.position, "Two.");
    row.node.chain_hash = record::chain_hash(&row.node, record::Links::default()).unwrap();
    positions.get_mut(&id.as_position()).unwrap().own.digest = row.node.term;
    let last = operations.last_mut().unwrap();
    last.op.nodes[0].1 = row.node.chain_hash;
    last.hash = last.compute_hash().unwrap();
    let file = read_all(&there.export(ExportVariant::Full));
    assert_eq!(file.problems, []);
    let refused = plan_import(&file, Some(here.tree()), "owner", NOW).unwrap_err();
    assert!(
        refused.to_string().contains(&id.to_string()) && matches!(refused, ImportRefusal::Differs { .. }),
        "{refused}"
    );
}

#[test]
fn what_was_forgotten_here_stays_forgotten() {
    let mut here = rich();
    let whole = read_all(&here.export(ExportVariant::Full));
    let MemoryTree { nodes, .. } = &mut here.file.tree;
    purge(nodes.values_mut().find(|row| row.node.text() == "on the roof.").unwrap());
    let plan = plan_import(&whole, Some(here.tree()), "owner", NOW).unwrap();
    assert_eq!(plan.change, ImportChange::Nothing);
}

#[test]
fn a_broken_file_is_refused_and_a_copy_takes_what_stands() {
    let home = rich();
    let json =
        String::from_utf8(home.export(ExportVariant::Full)).unwrap().replace("and stopped.", "and began.");
    let file = read_all(json.as_bytes());
    let refused = plan_import(&file, None, "owner", NOW).unwrap_err();
    assert!(matches!(refused, ImportRefusal::Broken { line, .. } if line > 1), "{refused}");
    let mut ids = IdSource::default();
    let copied = plan_copy(&file, "owner", NOW, &mut Entropy { ids: &mut ids, random: 5 }).unwrap();
    let mut tree = MemoryTree::default();
    for plan in copied.plans {
        tree.apply(plan).unwrap();
    }
    let texts: Vec<_> =
        tree.nodes_in_order(None, 99).unwrap().iter().map(|row| row.node.text().into_owned()).collect();
    assert!(
        texts.iter().any(|text| text == "fell hard ") && !texts.iter().any(|text| text.contains("began")),
        "{texts:?}"
    );
}

#[test]
fn an_imported_author_cannot_pass_for_the_owner() {
    let shown = Provenance { file: Digest::of(b"file") }.author(&Author::owner());
    assert!(shown.starts_with("import:") && shown.ends_with("/owner"), "{shown}");
    assert_eq!(Provenance::TRUST, Trust::Outside);
}

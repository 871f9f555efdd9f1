//! A person saves, or the process dies, before any call.

use std::fs;

use super::*;

#[test]
fn a_text_that_was_seen_is_replaced() {
    for abilities in ABILITIES {
        let desk = desk();
        let outcome = replace(&desk, &Seam::new(abilities), &ours()).unwrap();
        let saved = Saved { digest: Digest::of(OURS.as_bytes()), changed: true };
        assert_eq!(outcome, ReplaceOutcome::Saved(saved));
        assert_eq!(desk.texts(), [("HANDOFF.md".into(), OURS.into())]);
    }
}

#[test]
fn s18_a_person_may_save_before_any_call_and_both_texts_remain() {
    for abilities in ABILITIES {
        for kind in ["in place", "by rename"] {
            for at in 1.. {
                let desk = desk();
                let file = desk.file("HANDOFF.md");
                let mut seam = Seam::new(abilities);
                seam.saves.push((at, Box::new(move || save(kind, &file))));
                let outcome = replace(&desk, &seam, &ours()).unwrap();
                if seam.made() < at {
                    break;
                }
                let place = format!("{abilities:?}, {kind}, before call {at} ({})", seam.last());
                assert!(desk.holds(THEIRS), "theirs is lost: {place}: {:?}", desk.texts());
                assert_eq!(desk.text("HANDOFF.md"), THEIRS, "{place}");
                // Between finding our file for the last look and reading it, a save by rename is
                // a save that came after ours.
                let after_the_end = seam.made() == at && seam.last() == "load";
                if !(after_the_end && matches!(outcome, ReplaceOutcome::Saved(_))) {
                    assert!(desk.holds(OURS), "ours is lost: {place}: {:?}", desk.texts());
                    assert!(matches!(outcome, ReplaceOutcome::Conflict { .. }), "{place}");
                }
                assert_eq!(desk.working_files(), 0, "{place}: {:?}", desk.texts());
            }
        }
    }
}

// The control: looking first and renaming afterwards, as tools commonly do, loses the save.
#[test]
fn s18_control_check_then_rename_loses_a_save() {
    let desk = desk();
    assert_eq!(desk.text("HANDOFF.md"), OLD);
    fs::write(desk.file("new"), OURS).unwrap();
    save("by rename", &desk.file("HANDOFF.md"));
    fs::rename(desk.file("new"), desk.file("HANDOFF.md")).unwrap();
    assert!(!desk.holds(THEIRS));
}

#[test]
fn s18_two_saves_in_a_row_leave_the_newest_in_the_file() {
    const EXCHANGE: usize = 9;
    for later in 1.. {
        let desk = desk();
        let (file, other) = (desk.file("HANDOFF.md"), desk.file("HANDOFF.md"));
        let mut seam = Seam::new(Abilities::All);
        seam.saves.push((EXCHANGE, Box::new(move || save("by rename", &file))));
        let newest = move || fs::write(&other, "an even later save").unwrap();
        seam.saves.push((EXCHANGE + later, Box::new(newest)));
        let outcome = replace(&desk, &seam, &ours()).unwrap();
        if seam.made() < EXCHANGE + later {
            assert!(later > 5, "the second save never fell into the way back");
            break;
        }
        assert!(matches!(outcome, ReplaceOutcome::Conflict { .. }));
        assert_eq!(desk.text("HANDOFF.md"), "an even later save", "{later}: {:?}", desk.texts());
        assert!(desk.holds(OURS), "{later}: {:?}", desk.texts());
        let exchanges = seam.calls.borrow().iter().filter(|call| **call == "exchange").count();
        assert!(exchanges <= 3, "{later}: it did not see that the newest save was in its place");
        assert_eq!(desk.working_files(), 0);
    }
}

#[test]
fn s18_a_document_removed_meanwhile_stays_removed_and_ours_is_kept() {
    for abilities in ABILITIES {
        for at in 1.. {
            let desk = desk();
            let file = desk.file("HANDOFF.md");
            let mut seam = Seam::new(abilities);
            seam.saves.push((at, Box::new(move || save("removed", &file))));
            let outcome = replace(&desk, &seam, &ours()).unwrap();
            if seam.made() < at {
                break;
            }
            if matches!(outcome, ReplaceOutcome::Conflict { .. }) {
                assert!(desk.holds(OURS), "{abilities:?} {at}: {:?}", desk.texts());
            }
            assert_eq!(desk.working_files(), 0, "{abilities:?} {at}: {:?}", desk.texts());
        }
    }
}

#[test]
fn s18_killed_before_any_call_a_start_leaves_every_text_in_its_place() {
    for abilities in ABILITIES {
        for saving in [false, true] {
            for at in 1.. {
                let desk = desk();
                let file = desk.file("HANDOFF.md");
                let mut seam = Seam::new(abilities);
                seam.crash_before = Some(at);
                if saving {
                    seam.saves.push((at, Box::new(move || save("by rename", &file))));
                }
                let outcome = replace(&desk, &seam, &ours());
                if outcome.is_ok() && seam.made() < at {
                    break;
                }
                let place = format!("{abilities:?}, saving {saving}, before call {at}");
                let stamp = Stamp::new("later").unwrap();
                desk.documents().recover(&RelativePath::root(), &known(), &stamp).unwrap();
                let now = desk.text("HANDOFF.md");
                assert!([OLD, OURS, THEIRS].contains(&now.as_str()), "{place}");
                if saving {
                    assert!(desk.holds(THEIRS), "{place}: {:?}", desk.texts());
                }
                assert!(desk.holds(OLD) || desk.holds(OURS) || desk.holds(THEIRS), "{place}");
                assert_eq!(desk.working_files(), 0, "{place}: {:?}", desk.texts());
            }
        }
    }
}

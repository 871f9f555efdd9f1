use super::*;

fn stamp() -> Stamp {
    Stamp::new("20261121T224200Z").unwrap()
}

fn remove(desk: &Desk, seam: &Seam, of: &str) -> Result<RemoveOutcome, DocumentError> {
    let documents = Documents::with_calls(&desk.root, &desk.lock, seam).unwrap();
    documents.remove(&path("HANDOFF.md"), Digest::of(of.as_bytes()), &stamp())
}

#[test]
fn a_text_that_is_expected_goes_and_another_stays() {
    let desk = desk();
    let seam = Seam::new(Abilities::All);
    let other = remove(&desk, &seam, OURS).unwrap();
    let found = Some(Digest::of(OLD.as_bytes()));
    assert_eq!(other, RemoveOutcome::Conflict { found, others: Vec::new() });
    assert_eq!(desk.text("HANDOFF.md"), OLD);
    assert_eq!(remove(&desk, &seam, OLD).unwrap(), RemoveOutcome::Removed);
    assert_eq!(desk.texts(), []);
    let gone = remove(&desk, &seam, OLD).unwrap();
    assert_eq!(gone, RemoveOutcome::Conflict { found: None, others: Vec::new() });
}

/// A save before each call in turn, of each kind, on each file system.
#[test]
fn a_save_at_any_moment_is_not_lost() {
    for abilities in ABILITIES {
        for kind in ["in place", "by rename"] {
            let all = {
                let (desk, seam) = (desk(), Seam::new(abilities));
                assert_eq!(remove(&desk, &seam, OLD).unwrap(), RemoveOutcome::Removed);
                seam.made()
            };
            for at in 1..=all {
                let desk = desk();
                let mut seam = Seam::new(abilities);
                let file = desk.file("HANDOFF.md");
                seam.saves.push((at, Box::new(move || save(kind, &file))));
                let done = remove(&desk, &seam, OLD);
                assert!(desk.holds(THEIRS), "{abilities:?}, {kind}, before call {at}: {done:?}");
                assert_eq!(desk.working_files(), 0, "{abilities:?}, {kind}, before call {at}");
            }
        }
    }
}

#[test]
fn a_crash_at_any_moment_leaves_it_there_or_gone() {
    for abilities in ABILITIES {
        let all = {
            let (desk, seam) = (desk(), Seam::new(abilities));
            assert_eq!(remove(&desk, &seam, OLD).unwrap(), RemoveOutcome::Removed);
            seam.made()
        };
        for at in 1..=all {
            let desk = desk();
            let mut seam = Seam::new(abilities);
            seam.crash_before = Some(at);
            assert!(remove(&desk, &seam, OLD).is_err());
            desk.documents().recover(&RelativePath::root(), &known(), &stamp()).unwrap();
            let left = desk.texts();
            let back = [("HANDOFF.md".to_owned(), OLD.to_owned())];
            let unlinked = seam.calls.borrow().iter().filter(|call| **call == "unlink").count();
            let is_gone = left.is_empty() && unlinked > 0;
            assert!(is_gone || left == back, "{abilities:?}, before call {at}: {left:?}");
        }
    }
}

#[test]
fn a_link_is_refused_where_links_are() {
    let desk = desk();
    std::os::unix::fs::symlink("HANDOFF.md", desk.file("notes.md")).unwrap();
    let documents = desk.documents().refuse_links();
    let replaced = documents.replace(&path("notes.md"), &ours()).unwrap_err();
    let removed = documents.remove(&path("notes.md"), Digest::of(OLD.as_bytes()), &stamp()).unwrap_err();
    for refused in [replaced, removed] {
        assert!(matches!(refused, DocumentError::File(FileError { problem: FileProblem::Symlink, .. })));
    }
    assert_eq!(desk.text("HANDOFF.md"), OLD);
    let followed = desk.documents().replace(&path("notes.md"), &ours()).unwrap();
    assert!(matches!(followed, ReplaceOutcome::Saved(_)), "control: they are followed else");
    assert_eq!(desk.text("HANDOFF.md"), OURS);
}

#[test]
fn a_link_is_removed_as_it_was_seen_and_what_it_leads_to_stays() {
    let desk = desk();
    std::os::unix::fs::symlink("HANDOFF.md", desk.file("link")).unwrap();
    let documents = Documents::new(&desk.root, &desk.lock).unwrap();
    let stamp = Stamp::new("1").unwrap();
    let path = |text: &str| RelativePath::parse(text).unwrap();
    let other = documents.remove_link(&path("link"), b"elsewhere", &stamp).unwrap();
    assert!(matches!(other, RemoveOutcome::Conflict { .. }) && desk.file("link").is_symlink());
    let file = documents.remove_link(&path("HANDOFF.md"), b"HANDOFF.md", &stamp).unwrap();
    assert!(matches!(file, RemoveOutcome::Conflict { .. }));
    assert_eq!(documents.remove_link(&path("link"), b"HANDOFF.md", &stamp).unwrap(), RemoveOutcome::Removed);
    assert!(!desk.file("link").is_symlink());
    assert_eq!(desk.text("HANDOFF.md"), OLD);
}

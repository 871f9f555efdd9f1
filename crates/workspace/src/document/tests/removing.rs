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
fn a_removal_by_its_stamp_that_was_cut_off_at_any_moment_is_finished() {
    let digest = |stamp: &FileStamp| Digest::of(format!("{stamp:?}").as_bytes());
    let begin = |desk: &Desk, seam: &Seam| {
        let (_, stamp_of_it) = desk.root.stamp(&path("HANDOFF.md")).unwrap();
        let documents = Documents::with_calls(&desk.root, &desk.lock, seam).unwrap();
        let expected = (stamp_of_it, digest(&stamp_of_it));
        let done = documents.remove_stamped(&path("HANDOFF.md"), expected, &stamp());
        (done, KnownTexts::from([("HANDOFF.md".into(), vec![digest(&stamp_of_it)])]))
    };
    let (all, seam) = (desk(), Seam::new(Abilities::All));
    assert_eq!(begin(&all, &seam).0.unwrap(), RemoveOutcome::Removed);
    let mut aside = 0;
    for at in 1..=seam.made() {
        let desk = desk();
        let mut seam = Seam::new(Abilities::All);
        seam.crash_before = Some(at);
        let (done, known) = begin(&desk, &seam);
        assert!(!matches!(done, Ok(RemoveOutcome::Removed)));
        let (documents, root) = (desk.documents(), RelativePath::root());
        let is_aside = desk.working_files() == 1;
        assert_eq!(documents.recover(&root, &known, &stamp()).unwrap(), [], "the control, before call {at}");
        if is_aside {
            aside += 1;
            let nothing = KnownTexts::new();
            assert_eq!(documents.finish_removals(&root, &nothing, &stamp(), digest).unwrap(), []);
        }
        documents.finish_removals(&root, &known, &stamp(), digest).unwrap();
        let left = desk.texts();
        let is_whole = left == [("HANDOFF.md".to_owned(), OLD.to_owned())];
        assert!(is_whole || left.is_empty(), "before call {at}: {left:?}");
        assert!(!is_aside || left.is_empty(), "before call {at}: {left:?}");
    }
    assert!(aside > 0);
}

#[test]
fn a_document_with_the_longest_name_is_replaced_kept_recovered_and_removed() {
    let desk = desk();
    let long = "ä".repeat(127) + "x";
    fs::write(desk.file(&long), OLD).unwrap();
    let documents = desk.documents();
    let saved = documents.replace(&path(&long), &ours()).unwrap();
    assert!(matches!(saved, ReplaceOutcome::Saved(_)), "{saved:?}");
    fs::write(desk.file(&long), THEIRS).unwrap();
    let ReplaceOutcome::Conflict { ours, .. } = documents.replace(&path(&long), &ours()).unwrap() else {
        panic!("it is another text by now");
    };
    assert!(ours.as_path().to_str().unwrap().starts_with("ääää"), "{ours}");
    let text = Digest::of(THEIRS.as_bytes());
    let aside = WorkName::fresh(long.as_ref(), text, Purpose::Old).unwrap();
    fs::rename(desk.file(&long), desk.root.path().join(&aside)).unwrap();
    let known = KnownTexts::from([(long.clone().into(), vec![text])]);
    let done = documents.recover(&RelativePath::root(), &known, &stamp()).unwrap();
    assert_eq!(done, [RecoveredDocument::Restored(path(&long))]);
    assert_eq!(documents.remove(&path(&long), text, &stamp()).unwrap(), RemoveOutcome::Removed);
}

#[test]
fn what_is_another_file_by_now_than_was_to_be_removed_is_kept() {
    let digest = |stamp: &FileStamp| Digest::of(format!("{stamp:?}").as_bytes());
    let (desk, seam) = (desk(), Seam::new(Abilities::All));
    let (_, was) = desk.root.stamp(&path("HANDOFF.md")).unwrap();
    let name = WorkName::fresh_stamped("HANDOFF.md".as_ref(), &was, digest(&was)).unwrap();
    fs::write(desk.file("HANDOFF.md"), THEIRS).unwrap();
    fs::rename(desk.file("HANDOFF.md"), desk.root.path().join(&name)).unwrap();
    let known = KnownTexts::from([("HANDOFF.md".into(), vec![digest(&was)])]);
    let documents = Documents::with_calls(&desk.root, &desk.lock, &seam).unwrap();
    let done = documents.finish_removals(&RelativePath::root(), &known, &stamp(), digest).unwrap();
    assert!(matches!(done.as_slice(), [RecoveredDocument::Kept(_)]), "{done:?}");
    assert!(desk.holds(THEIRS));
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

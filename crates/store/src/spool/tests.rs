use std::fs::{self, OpenOptions};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::disk::faults::Faulty;
use crate::instance::InstanceId;

fn header(generation: &str) -> SpoolHeader {
    let name = GenerationName::try_from(generation.to_owned()).unwrap();
    SpoolHeader::new(name, InstanceId::generate(1).unwrap(), 7, "openai_chat", 1)
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn create(dir: &TempDir, generation: &str) -> Spool {
    Spool::create(dir.path(), &header(generation)).unwrap()
}

fn on(disk: Faulty, dir: &TempDir) -> (Arc<Faulty>, Spool) {
    let disk = Arc::new(disk);
    let spool = Spool::create_on(disk.clone(), dir.path(), &header("g")).unwrap();
    (disk, spool)
}

fn found(dir: &TempDir) -> Vec<Recovered> {
    recover(dir.path(), |_| false).unwrap().map(Result::unwrap).collect()
}

fn only_body(dir: &TempDir) -> Vec<u8> {
    match found(dir).pop() {
        Some(Recovered::Spooled(mut spooled)) => spooled.read(1 << 20).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_spool_is_recovered_only_when_its_writer_is_gone() {
    let dir = folder();
    let mut spool = create(&dir, "g");
    spool.append(b"data: 1\n\n").unwrap();
    assert!(found(&dir).is_empty(), "its lock is held");
    drop(spool);
    let [Recovered::Spooled(spooled)] = &mut found(&dir)[..] else { panic!("one spool") };
    assert_eq!(spooled.header().fence, 7);
    assert_eq!(spooled.read(100).unwrap(), b"data: 1\n\n");
    assert!(found(&dir).is_empty(), "it is being recovered");
}

#[test]
fn a_living_owners_spool_is_left_though_its_lock_is_free() {
    let dir = folder();
    let spool = create(&dir, "g");
    drop(spool);
    assert_eq!(recover(dir.path(), |_| true).unwrap().count(), 0);
    assert_eq!(recover(dir.path(), |_| false).unwrap().count(), 1);
}

#[test]
fn a_spool_stays_until_the_caller_says_that_it_is_committed() {
    let dir = folder();
    let mut spool = create(&dir, "a");
    spool.finish().unwrap();
    assert!(dir.path().join("a").exists());
    spool.committed().unwrap();
    drop(create(&dir, "b"));
    drop(found(&dir));
    let Some(Recovered::Spooled(spooled)) = found(&dir).pop() else { panic!("still there") };
    assert!(spooled.is_empty());
    spooled.committed().unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_generation_has_one_writer() {
    let dir = folder();
    let mut first = create(&dir, "g");
    first.append(b"x").unwrap();
    let second = Spool::create(dir.path(), &header("g"));
    assert!(matches!(second, Err(SpoolError::Exists { .. })));
    drop(first);
    assert_eq!(only_body(&dir), b"x");
}

#[test]
fn bytes_are_synced_though_nothing_follows_them() {
    let dir = folder();
    let (disk, mut spool) = on(Faulty::default(), &dir);
    let syncs = || disk.syncs.load(Ordering::Relaxed);
    let until = |count| {
        let start = Instant::now();
        while syncs() < count && start.elapsed() < Duration::from_secs(30) {
            std::thread::yield_now();
        }
        assert_eq!(syncs(), count);
        start.elapsed()
    };
    spool.append(b"a").unwrap();
    spool.append(b"b").unwrap();
    until(2);
    spool.append(b"c").unwrap();
    let waited = until(3);
    assert!(waited > SYNC_EVERY / 2, "what comes close together is synced together: {waited:?}");
    spool.finish().unwrap();
    assert_eq!(syncs(), 3, "there was nothing to bring");
    spool.append(b"d").unwrap();
    spool.finish().unwrap();
    assert_eq!(syncs(), 4);
}

#[test]
fn a_sync_that_fails_between_two_bytes_refuses_the_next_one() {
    let dir = folder();
    let (disk, mut spool) = on(Faulty::sync_fails_at(1), &dir);
    spool.append(b"a").unwrap();
    let start = Instant::now();
    while disk.syncs.load(Ordering::Relaxed) == 0 || !spool.synced.has_failed() {
        assert!(start.elapsed() < Duration::from_secs(30));
        std::thread::yield_now();
    }
    assert!(matches!(spool.append(b"b"), Err(SpoolError::Failed { .. })));
    assert!(matches!(spool.finish(), Err(SpoolError::Failed { .. })));
}

#[test]
fn a_full_disk_keeps_what_was_written_and_the_rest_can_follow() {
    let dir = folder();
    let header_bytes = header("g").to_line().unwrap().len();
    let (disk, mut spool) = on(Faulty::full_after(header_bytes + 5), &dir);
    let chunk = b"0123456789";
    let Err(SpoolError::Full { written, .. }) = spool.append(chunk) else { panic!("it was full") };
    assert_eq!((written, spool.received()), (5, 5));
    assert!(matches!(spool.append(&chunk[5..]), Err(SpoolError::Full { written: 0, .. })));
    *disk.room.lock().unwrap() = None;
    spool.append(&chunk[written..]).unwrap();
    drop(spool);
    assert_eq!(only_body(&dir), chunk);
}

#[test]
fn a_spool_that_cannot_be_created_on_a_full_disk_leaves_nothing() {
    let dir = folder();
    let disk = Arc::new(Faulty::full_after(3));
    let created = Spool::create_on(disk, dir.path(), &header("g"));
    assert!(matches!(created, Err(SpoolError::Full { .. })));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_failed_sync_is_never_reported_as_saved_nor_tried_again() {
    for failing in [1, 2] {
        let dir = folder();
        let (disk, mut spool) = on(Faulty::sync_fails_at(failing), &dir);
        spool.append(b"x").unwrap();
        // The thread may have been first.
        assert!(matches!(spool.finish(), Err(SpoolError::Io { .. } | SpoolError::Failed { .. })));
        *disk.failing_sync.lock().unwrap() = None;
        assert!(matches!(spool.finish(), Err(SpoolError::Failed { .. })), "sync {failing}");
        assert!(matches!(spool.append(b"y"), Err(SpoolError::Failed { .. })));
        drop(spool);
        assert_eq!(only_body(&dir), b"x", "the process's own death loses nothing");
    }
}

#[test]
fn a_torn_header_is_reported_with_its_reason_and_stays_until_discarded() {
    let dir = folder();
    let good = header("good").to_line().unwrap();
    let newer = String::from_utf8(header("newer").to_line().unwrap()).unwrap().replace(":1,", ":9,");
    fs::write(dir.path().join("cut"), &good[..good.len() - 1]).unwrap();
    fs::write(dir.path().join("empty"), b"").unwrap();
    fs::write(dir.path().join("long"), vec![b'{'; 200_000]).unwrap();
    fs::write(dir.path().join("newer"), newer).unwrap();
    fs::write(dir.path().join("noise"), b"\xFF\x00\n data").unwrap();
    fs::write(dir.path().join("other"), &good).unwrap();
    let reasons = || -> Vec<(String, TornHeader)> {
        found(&dir)
            .iter()
            .map(|found| match found {
                Recovered::Torn(torn) => {
                    (torn.path().file_name().unwrap().to_str().unwrap().to_owned(), torn.reason().clone())
                }
                Recovered::Spooled(spooled) => panic!("{spooled:?}"),
            })
            .collect()
    };
    let generation = GenerationName::try_from("good".to_owned()).unwrap();
    let expected = [
        ("cut", TornHeader::Cut),
        ("empty", TornHeader::Cut),
        ("long", TornHeader::Cut),
        ("newer", TornHeader::Newer { version: 9 }),
        ("noise", TornHeader::Unreadable),
        ("other", TornHeader::OtherName { generation }),
    ];
    assert_eq!(reasons(), expected.map(|(name, reason)| (name.to_owned(), reason)));
    for torn in found(&dir) {
        let Recovered::Torn(torn) = torn else { panic!("torn") };
        torn.discard().unwrap();
    }
    assert_eq!(reasons(), []);
}

#[test]
fn keys_of_later_versions_are_kept() {
    let dir = folder();
    let mut header = header("g");
    header.extra.insert("manifest".to_owned(), "ab12".into());
    drop(Spool::create(dir.path(), &header).unwrap());
    let Some(Recovered::Spooled(spooled)) = found(&dir).pop() else { panic!("one spool") };
    assert_eq!(spooled.header(), &header);
}

#[test]
fn a_header_that_would_not_be_read_again_is_refused() {
    let mut header = header("g");
    header.extra.insert("note".to_owned(), "x".repeat(70_000).into());
    let created = Spool::create(folder().path(), &header);
    assert!(matches!(created, Err(SpoolError::Header { .. })));
}

#[test]
fn a_name_is_never_a_path() {
    for bad in ["", "..", "a/b", ".hidden", "a b", "é", &"x".repeat(65)] {
        assert_eq!(GenerationName::try_from(bad.to_owned()), Err(BadGenerationName), "{bad}");
    }
}

#[test]
fn links_and_pipes_in_the_folder_are_errors_and_the_rest_is_recovered() {
    let dir = folder();
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("a")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("b"), rustix::fs::Mode::RWXU).unwrap();
    drop(create(&dir, "c"));
    let results: Vec<_> = recover(dir.path(), |_| false).unwrap().collect();
    assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn a_body_over_the_limit_is_refused_and_a_missing_folder_holds_none() {
    let dir = folder();
    let mut spool = create(&dir, "g");
    spool.append(b"12345").unwrap();
    drop(spool);
    let Some(Recovered::Spooled(mut spooled)) = found(&dir).pop() else { panic!("one spool") };
    assert!(matches!(spooled.read(4), Err(SpoolError::TooLong { bytes: 5, max: 4, .. })));
    assert_eq!(spooled.read(5).unwrap(), b"12345");
    assert_eq!(recover(&dir.path().join("none"), |_| false).unwrap().count(), 0);
}

proptest! {
    #[test]
    fn what_was_appended_is_what_is_recovered(chunks in vec(vec(any::<u8>(), 0..300), 0..12)) {
        let dir = folder();
        let mut spool = create(&dir, "g");
        for chunk in &chunks {
            spool.append(chunk).unwrap();
        }
        prop_assert_eq!(spool.received(), chunks.concat().len() as u64);
        drop(spool);
        prop_assert_eq!(only_body(&dir), chunks.concat());
    }

    /// Power loss may cut the file anywhere: what is left of the body is a prefix, a cut header is torn.
    #[test]
    fn x11_a_cut_file_is_a_prefix_or_torn(body in vec(any::<u8>(), 0..200), cut in any::<prop::sample::Index>()) {
        let dir = folder();
        let mut spool = create(&dir, "g");
        spool.append(&body).unwrap();
        drop(spool);
        let path = dir.path().join("g");
        let length = fs::metadata(&path).unwrap().len();
        let kept = cut.index(usize::try_from(length).unwrap() + 1) as u64;
        OpenOptions::new().write(true).open(&path).unwrap().set_len(kept).unwrap();
        match found(&dir).pop() {
            Some(Recovered::Spooled(mut spooled)) => {
                let rest = spooled.read(1 << 20).unwrap();
                prop_assert_eq!(&rest[..], &body[..rest.len()]);
                prop_assert_eq!(rest.len() as u64 + length, kept + body.len() as u64);
            }
            Some(Recovered::Torn(_)) => prop_assert!(kept + body.len() as u64 <= length),
            None => prop_assert!(false, "it vanished"),
        }
    }
}

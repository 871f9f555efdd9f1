use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::disk::faults::Faulty;

const MAX: u64 = 1 << 20;

fn blobs() -> (TempDir, Blobs) {
    let tmp = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(tmp.path(), MAX).unwrap();
    (tmp, blobs)
}

fn on(disk: Faulty) -> (TempDir, Arc<Faulty>, Blobs) {
    let (tmp, disk) = (tempfile::tempdir().unwrap(), Arc::new(disk));
    let blobs = Blobs::open_on(disk.clone(), tmp.path(), MAX).unwrap();
    (tmp, disk, blobs)
}

fn ids(blobs: &Blobs) -> Vec<Digest> {
    blobs.ids().map(Result::unwrap).collect()
}

/// Everything below the folder that is a file, hidden ones too.
fn files(blobs: &Blobs) -> usize {
    fs::read_dir(&blobs.path).unwrap().map(|shard| fs::read_dir(shard.unwrap().path()).unwrap().count()).sum()
}

#[test]
fn a_blob_lies_where_its_hash_says() {
    let (tmp, blobs) = blobs();
    let id = blobs.put(b"abc").unwrap();
    assert_eq!(id.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    let path = tmp.path().join("ba/7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(blobs.path_of(id), path);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(fs::metadata(tmp.path().join("ba")).unwrap().permissions().mode() & 0o7777, 0o700);
    assert_eq!(blobs.get(id).unwrap(), b"abc");
    assert_eq!((blobs.size(id).unwrap(), blobs.size(Digest::of(b"abd")).unwrap()), (Some(3), None));
}

#[test]
fn damage_is_found_on_reading_and_healed_by_putting_again() {
    let (_tmp, blobs) = blobs();
    let id = blobs.put(b"abc").unwrap();
    fs::write(blobs.path_of(id), b"abd").unwrap();
    assert!(matches!(blobs.get(id), Err(BlobError::Damaged { .. })));
    assert!(matches!(blobs.check(id), Err(BlobError::Damaged { found, .. }) if found == Digest::of(b"abd")));
    assert_eq!(blobs.put(b"abc").unwrap(), id);
    assert_eq!(blobs.get(id).unwrap(), b"abc");
    assert_eq!(files(&blobs), 1);
}

#[test]
fn sizes_are_bounded_both_ways() {
    let tmp = tempfile::tempdir().unwrap();
    let small = Blobs::open(tmp.path(), 3).unwrap();
    assert!(matches!(small.put(b"1234"), Err(BlobError::TooLarge { bytes: 4, max: 3 })));
    small.put(b"123").unwrap();
    let id = Blobs::open(tmp.path(), MAX).unwrap().put(b"12345").unwrap();
    assert!(matches!(small.get(id), Err(BlobError::TooLarge { bytes: 5, max: 3 })));
    small.check(id).unwrap();
    assert!(matches!(small.check(Digest::of(b"none")), Err(BlobError::Missing { .. })));
}

#[test]
fn links_are_neither_read_nor_written_nor_removed_through() {
    let (tmp, blobs) = blobs();
    let outside = tmp.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let victim = outside.join("victim");
    fs::write(&victim, b"abc").unwrap();
    let id = Digest::of(b"abc");
    fs::create_dir(tmp.path().join("ba")).unwrap();
    symlink(&victim, blobs.path_of(id)).unwrap();
    assert!(matches!(blobs.get(id), Err(BlobError::NotAFile { .. })));
    assert!(matches!(blobs.put(b"abc"), Err(BlobError::NotAFile { .. })));
    assert!(matches!(blobs.remove(id), Err(BlobError::NotAFile { .. })));

    let other = Digest::of(b"other");
    symlink(&outside, tmp.path().join(shard_name(other.0[0]))).unwrap();
    assert!(matches!(blobs.put(b"other"), Err(BlobError::NotAFile { .. })));
    assert_eq!(fs::read(&victim).unwrap(), b"abc");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);

    symlink(&outside, tmp.path().join("link")).unwrap();
    assert!(matches!(Blobs::open(&tmp.path().join("link"), MAX), Err(BlobError::NotAFile { .. })));
}

#[test]
fn a_removed_blob_was_overwritten_first() {
    let (tmp, blobs) = blobs();
    let body = vec![b'x'; 100_000];
    let id = blobs.put(&body).unwrap();
    let still_open = File::open(blobs.path_of(id)).unwrap();
    assert_eq!(blobs.remove(id).unwrap(), Removal::Overwritten);
    let mut left = Vec::new();
    (&still_open).read_to_end(&mut left).unwrap();
    assert_eq!(left, vec![0; 100_000], "the bytes behind the name are gone too");
    assert!(matches!(blobs.get(id), Err(BlobError::Missing { .. })));
    assert!(matches!(blobs.remove(id), Err(BlobError::Missing { .. })));
    assert!(!blobs.contains(id).unwrap());

    let id = blobs.put(b"kept elsewhere").unwrap();
    let backup = tmp.path().join("backup");
    fs::hard_link(blobs.path_of(id), &backup).unwrap();
    assert_eq!(blobs.remove(id).unwrap(), Removal::OtherNames { left: 1 });
    assert_eq!(fs::read(&backup).unwrap(), b"kept elsewhere");
}

#[test]
fn a_full_disk_saves_nothing_and_says_so() {
    let (_tmp, disk, blobs) = on(Faulty::full_after(2));
    assert!(matches!(blobs.put(b"abc"), Err(BlobError::Full { .. })));
    assert_eq!(files(&blobs), 0, "nothing half written is left");
    *disk.room.lock().unwrap() = None;
    assert_eq!(blobs.get(blobs.put(b"abc").unwrap()).unwrap(), b"abc");
}

#[test]
fn a_put_is_never_reported_saved_when_any_sync_failed() {
    let (_tmp, disk, blobs) = on(Faulty::default());
    blobs.put(b"abc").unwrap();
    let needed = disk.syncs.load(Ordering::Relaxed);
    assert_eq!(needed, 4, "the file, its folder, that folder's entry, the entry of the folder of all");
    for call in 1..=needed {
        let (_tmp, _, blobs) = on(Faulty::sync_fails_at(call));
        assert!(matches!(blobs.put(b"abc"), Err(BlobError::Io { .. })), "sync {call}");
        // Trying again on the same broken disk does not make it saved either.
        assert!(matches!(blobs.put(b"abc"), Err(BlobError::Io { .. })), "sync {call}, again");
    }
}

#[test]
fn removal_is_not_reported_when_overwriting_failed() {
    let (tmp, blobs) = blobs();
    let id = blobs.put(b"secret").unwrap();
    let broken = Blobs::open_on(Arc::new(Faulty::sync_fails_at(1)), tmp.path(), MAX).unwrap();
    assert!(matches!(broken.remove(id), Err(BlobError::Io { .. })));
    assert!(blobs.contains(id).unwrap(), "so that it can be tried again");
    assert_eq!(blobs.remove(id).unwrap(), Removal::Overwritten);
}

#[test]
fn what_a_crash_left_is_swept_and_a_living_put_is_not() {
    let (_tmp, blobs) = blobs();
    let id = blobs.put(b"abc").unwrap();
    let shard = blobs.shard(id, false).unwrap();
    fs::write(blobs.path.join("ba/.orphan.0123456789abcdef"), b"half").unwrap();
    fs::write(blobs.path.join("ba/.somebodys"), b"text").unwrap();
    let (_, _living) = disk::create_hidden(fd(&shard), "living").unwrap();
    assert_eq!(ids(&blobs), [id], "temporaries are no blobs");
    assert_eq!(blobs.sweep().unwrap(), 1);
    assert_eq!(files(&blobs), 3);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.min(64), ..ProptestConfig::default() })]

    #[test]
    fn what_was_put_is_what_is_got_once_each(bodies in vec(vec(any::<u8>(), 0..400), 1..6)) {
        let (_tmp, blobs) = blobs();
        let mut put: Vec<_> = bodies.iter().map(|body| blobs.put(body).unwrap()).collect();
        for (id, body) in put.iter().zip(&bodies) {
            prop_assert_eq!(&blobs.get(*id).unwrap(), body);
            prop_assert_eq!(blobs.put(body).unwrap(), *id);
        }
        put.sort_unstable();
        put.dedup();
        prop_assert_eq!(ids(&blobs), put.clone());
        prop_assert_eq!(files(&blobs), put.len());
    }
}

use image::{ImageFormat, RgbImage};
use store::home::HomeOptions;

use super::*;

fn home() -> (tempfile::TempDir, Arc<Home>) {
    let folder = tempfile::tempdir().unwrap();
    let options = HomeOptions { allow_network_fs: true };
    let home = Home::open(&folder.path().join("home"), options).unwrap();
    (folder, Arc::new(home))
}

fn put(home: &Home, bytes: &[u8]) -> Digest {
    blobs(home).unwrap().put(bytes).unwrap();
    Digest::of(bytes)
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    RgbImage::new(width, height).write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

#[test]
fn what_fits_is_sent_as_it_is_kept_and_under_the_type_its_first_bytes_say() {
    let (_folder, home) = home();
    let picture = png(20, 10);
    let blob = put(&home, &picture);
    let stored = StoredMedia::of(home);
    assert_eq!(stored.size(blob), Some(picture.len() as u64));
    let media = stored.media(blob).unwrap();
    assert_eq!((media.mime.as_str(), &media.data[..]), ("image/png", &picture[..]));
}

#[test]
fn what_was_never_taken_in_is_scaled_when_it_is_sent() {
    let (_folder, home) = home();
    let blob = put(&home, &png(4_000, 1_000));
    let media = StoredMedia::of(home).media(blob).unwrap();
    let (_, measure) = media::dimensions(&media.data).unwrap();
    assert_eq!((measure.width, measure.height), (1_568, 392));
}

#[test]
fn what_is_missing_damaged_or_no_picture_is_not_there() {
    let (_folder, home) = home();
    let text = put(&home, b"<html>not a picture</html>");
    let cut = put(&home, &png(2_000, 2_000)[..200]);
    let damaged = put(&home, &png(4, 4));
    let path = blobs(&home).unwrap().path_of(damaged);
    std::fs::write(path, b"other bytes").unwrap();
    let stored = StoredMedia::of(home);
    for blob in [text, cut, damaged, Digest::of(b"never kept")] {
        assert_eq!(stored.media(blob), None, "{blob}");
    }
}

#[test]
fn what_a_killed_process_left_goes_with_what_is_removed() {
    let (_folder, home) = home();
    let blob = put(&home, b"a picture");
    let blobs = blobs(&home).unwrap();
    let left = blobs.path_of(blob).with_file_name(".orphan.0123456789abcdef");
    std::fs::write(&left, b"half a picture").unwrap();
    assert_eq!(remove_all(&blobs, vec![blob]).unwrap(), 1);
    assert!(!left.exists());
}

#[test]
fn what_cannot_be_removed_keeps_nothing_else_from_being_removed() {
    let (_folder, home) = home();
    let [bad, good] = [b"bad", b"god"].map(|bytes| put(&home, bytes));
    let blobs = blobs(&home).unwrap();
    let path = blobs.path_of(bad);
    std::fs::create_dir(path.with_file_name(".orphan.0123456789abcdef")).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(remove_all(&blobs, vec![bad, good]).is_err(), "it is still there");
    assert!(!blobs.path_of(good).exists());
    let again = put(&home, b"god");
    assert_eq!(remove_all(&blobs, vec![again]).unwrap(), 1, "what is hidden there is nobody's");
}

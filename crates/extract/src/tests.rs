use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::{CompressionMethod, ZipArchiveWriter};

use super::*;

/// An archive of these members, packed as office programs do.
pub(crate) fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut archive = ZipArchiveWriter::new(&mut out);
    for (name, bytes) in members {
        let file = archive.new_file(*name).compression_method(CompressionMethod::DEFLATE);
        let (mut entry, config) = file.start().unwrap();
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::best()));
        writer.write_all(bytes).unwrap();
        let (encoder, descriptor) = writer.finish().unwrap();
        encoder.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap();
    out
}

#[test]
fn a_document_is_told_by_its_first_bytes() {
    assert_eq!(detect(b"%PDF-1.7\n"), Some(Container::Pdf));
    assert_eq!(detect(&archive(&[("a", b"b")])), Some(Container::Zip));
    assert_eq!(detect(b"PK is no archive"), None);
    let old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and more";
    assert_eq!(extract(old), Err(ExtractError::CompoundFile));
    assert_eq!(extract(b"text"), Err(ExtractError::NoDocument));
    assert_eq!(extract(&archive(&[("a.txt", b"b")])), Err(ExtractError::OtherArchive));
}

#[test]
fn a_damaged_archive_says_so() {
    let whole = archive(&[("_rels/.rels", b"<a/>"), ("word/document.xml", b"<a/>")]);
    for cut in [5, whole.len() / 2, whole.len() - 1] {
        let error = extract(&whole[..cut]).unwrap_err();
        assert!(matches!(error, ExtractError::Damaged(_)), "{cut}: {error}");
    }
}

#[test]
fn what_is_unpacked_is_bounded_whatever_the_archive_says_of_it() {
    // 160 MiB of zeros in some 160 KiB.
    let bomb = archive(&[("_rels/.rels", &vec![0; 160 << 20])]);
    assert!(bomb.len() < 1 << 20);
    assert_eq!(extract(&bomb), Err(ExtractError::TooLarge(UNPACKED >> 20)));
    // An archive in an archive is a member like others: nothing of it is unpacked.
    let nested = (0..100).fold(archive(&[("a", b"a")]), |inner, _| archive(&[("inner.zip", &inner)]));
    assert_eq!(extract(&nested), Err(ExtractError::OtherArchive));
}

#[test]
fn long_pages_stand_in_parts_that_end_with_lines() {
    let lines = "a line of text\n".repeat(2_000);
    let parts = in_parts(vec![lines.clone(), "short".to_owned()]);
    assert!(parts.len() > 3 && parts.iter().all(|part| part.chars().count() <= PAGE), "{}", parts.len());
    assert!(parts[0].ends_with("text\n"));
    assert_eq!(parts.concat(), format!("{lines}short"));
    let one = "é".repeat(PAGE * 2 + 1);
    let parts = in_parts(vec![one.clone()]);
    assert_eq!((parts.len(), parts.concat()), (3, one));
}

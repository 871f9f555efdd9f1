//! Wheels made by a test.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// An archive of these members, packed as wheels are; names are taken as they are.
pub(crate) fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut archive = rawzip::ZipArchiveWriter::new(&mut out);
    for (name, bytes) in members {
        // Under a harmless name of the same length: the writer mends names a test wants unmended.
        let harmless = "x".repeat(name.len());
        let file = archive.new_file(harmless.as_str()).compression_method(rawzip::CompressionMethod::DEFLATE);
        let (mut entry, config) = file.start().unwrap();
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::fast()));
        writer.write_all(bytes).unwrap();
        let (encoder, descriptor) = writer.finish().unwrap();
        encoder.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap();
    for signature in [&b"PK\x03\x04"[..], b"PK\x01\x02"] {
        let header = if signature == b"PK\x03\x04" { 30 } else { 46 };
        let mut at = 0;
        for (name, _) in members {
            at += find(&out[at..], signature);
            out[at + header..at + header + name.len()].copy_from_slice(name.as_bytes());
            at += header;
        }
    }
    out
}

/// The same, with another size declared for its first member.
#[allow(dead_code, reason = "not every suite lies about sizes")]
pub(crate) fn declaring(mut archive: Vec<u8>, bytes: u32) -> Vec<u8> {
    let at = find(&archive, b"PK\x01\x02");
    archive[at + 24..at + 28].copy_from_slice(&bytes.to_le_bytes());
    archive
}

fn find(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).position(|window| window == wanted).unwrap()
}

//! Documents: their text within a bound or a named refusal, whatever the bytes. The first byte says what the others are: a whole
//! file, the body of a DOCX, a chapter of an EPUB, or what a page of a PDF is drawn with.
#![no_main]

use std::io::Write as _;

use libfuzzer_sys::{Corpus, fuzz_target};
use rawzip::ZipArchiveWriter;

fuzz_target!(|input: &[u8]| -> Corpus {
    let Some((kind, bytes)) = input.split_first() else { return Corpus::Reject };
    let file = match kind {
        b'd' => docx(bytes),
        b'e' => epub(bytes),
        b'p' => pdf(bytes),
        _ => Some(bytes.to_vec()),
    };
    let Some(file) = file else { return Corpus::Reject };
    if let Ok(extracted) = extract::extract(&file) {
        assert!(!extracted.pages.is_empty());
        let made: usize = extracted.pages.iter().map(String::len).sum();
        assert!(made <= 32 << 20, "{made} bytes of {}", file.len());
        assert!(extracted.title.is_none_or(|title| !title.is_empty()));
    }
    Corpus::Keep
});

fn archive(members: &[(&str, &[u8])]) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut archive = ZipArchiveWriter::new(&mut out);
    for (name, bytes) in members {
        let (mut entry, config) = archive.new_file(*name).start().map_err(std::io::Error::other)?;
        let mut writer = config.wrap(&mut entry);
        writer.write_all(bytes)?;
        let (_, descriptor) = writer.finish().map_err(std::io::Error::other)?;
        entry.finish(descriptor).map_err(std::io::Error::other)?;
    }
    archive.finish().map_err(std::io::Error::other)?;
    Ok(out)
}

fn docx(body: &[u8]) -> Option<Vec<u8>> {
    let relations = b"<r><r Type='/officeDocument' Target='word/document.xml'/></r>";
    archive(&[("_rels/.rels", relations), ("word/document.xml", body), ("word/styles.xml", body)]).ok()
}

fn epub(chapter: &[u8]) -> Option<Vec<u8>> {
    let container = b"<c><rootfile full-path='book.opf'/></c>";
    let book = b"<p><item id='a' href='a.xhtml'/><itemref idref='a'/></p>";
    archive(&[("META-INF/container.xml", container), ("book.opf", book), ("a.xhtml", chapter)]).ok()
}

/// A PDF without a table of its objects: a page drawn with the bytes, which are the map of its font as well.
fn pdf(drawn: &[u8]) -> Option<Vec<u8>> {
    let mut out = b"%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj\n\
        3 0 obj <</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>> endobj\n\
        5 0 obj <</Type/Font/Subtype/Type1/ToUnicode 4 0 R>> endobj\n"
        .to_vec();
    write!(out, "4 0 obj <</Length {}>> stream\n", drawn.len()).ok()?;
    out.extend_from_slice(drawn);
    out.extend_from_slice(b"\nendstream endobj\ntrailer <</Root 1 0 R>>\n");
    Some(out)
}

//! `read` on documents: their text by page, extracted in a process with walls of its own.

use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::{Value, json};

use crate::tools::{calls, chat, nodes, writing};
use crate::world::World;

/// An archive of these members.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut archive = rawzip::ZipArchiveWriter::new(&mut out);
    for (name, text) in members {
        let file = archive.new_file(*name).compression_method(rawzip::CompressionMethod::DEFLATE);
        let (mut entry, config) = file.start().unwrap();
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::fast()));
        writer.write_all(text).unwrap();
        let (encoder, descriptor) = writer.finish().unwrap();
        encoder.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap();
    out
}

/// A DOCX of this body.
fn docx_of(body: &[u8]) -> Vec<u8> {
    let relations = b"<Relationships><Relationship Type='http://x/officeDocument' Target='word/document.xml'/></Relationships>";
    let core = b"<c:core><dc:title>Of looms</dc:title></c:core>";
    archive(&[("_rels/.rels", relations), ("word/document.xml", body), ("docProps/core.xml", core)])
}

/// A DOCX of these pages.
fn docx(pages: &[&str]) -> Vec<u8> {
    let pages: Vec<String> = pages.iter().map(|page| format!("<w:r><w:t>{page}</w:t></w:r>")).collect();
    let body = pages.join("</w:p><w:p><w:r><w:br w:type='page'/></w:r>");
    docx_of(format!("<w:document xmlns:w='w'><w:p>{body}</w:p></w:document>").as_bytes())
}

fn reading(arguments: &[Value]) -> World {
    let reads: Vec<Value> =
        arguments.iter().map(|arguments| json!({"name": "read", "arguments": arguments})).collect();
    writing(&[calls(&json!(reads)), json!({"text": "Read."})], "")
}

/// What each call of `read` said, in their order.
fn results(world: &World) -> Vec<String> {
    let (code, said) = chat(world, "Read them.");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Read.")), "{said}");
    let nodes = nodes(world);
    let tools = nodes.iter().filter(|node| node["author"] == "read");
    tools.map(|node| node["text"].as_str().unwrap().to_owned()).collect()
}

/// The one result of a file of these bytes, whatever its name says.
fn read(bytes: &[u8]) -> String {
    let world = reading(&[json!({"path": "paper.txt"})]);
    fs::write(world.path("project/paper.txt"), bytes).unwrap();
    results(&world).remove(0)
}

#[test]
fn a_document_is_read_by_pages() {
    let world = reading(&[json!({"path": "a"}), json!({"path": "a", "offset": 2, "limit": 1})]);
    fs::write(world.path("project/a"), docx(&["warp", "weft &amp; more", "end"])).unwrap();
    let mut results = results(&world);
    results.sort();
    assert_eq!(
        results,
        [
            "[DOCX \"Of looms\": pages 1 to 3 of 3.]\n--- page 1 of 3 ---\nwarp\n--- page 2 of 3 ---\nweft & more\n\
             --- page 3 of 3 ---\nend\n",
            "[DOCX \"Of looms\": pages 2 to 2 of 3; offset 3 goes on.]\n--- page 2 of 3 ---\nweft & more\n",
        ]
    );
}

#[test]
fn what_has_no_text_says_what_to_do() {
    for (bytes, told) in [
        (archive(&[("a", b"b")]), "paper.txt: it is a ZIP archive, and neither DOCX nor EPUB"),
        (docx(&["warp"])[..200].to_vec(), "it is damaged"),
        (docx(&[""]), "ocrmypdf"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec(), "save it as DOCX without a password"),
    ] {
        let said = read(&bytes);
        assert!(said.contains(told), "{said}");
    }
}

/// Written by hand, without a table of its objects.
const PDF: &str = "%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj\n\
    3 0 obj <</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>> endobj\n\
    4 0 obj <</Length 30>> stream\nBT /F1 12 Tf (warp beam) Tj ET\nendstream endobj\n\
    5 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>> endobj\ntrailer <</Root 1 0 R>>\n";

/// A book of one chapter.
fn epub(chapter: &str) -> Vec<u8> {
    let book = b"<p><dc:title>Of looms</dc:title><item id='a' href='a.xhtml'/><itemref idref='a'/></p>";
    let container = b"<c><rootfile full-path='book.opf'/></c>";
    archive(&[("META-INF/container.xml", container), ("book.opf", book), ("a.xhtml", chapter.as_bytes())])
}

#[test]
fn each_kind_of_document_is_told_by_its_first_bytes() {
    assert_eq!(read(PDF.as_bytes()), "[PDF: pages 1 to 1 of 1.]\n--- page 1 of 1 ---\nwarp beam\n");
    let book = epub("<html><head><title/></head><body><h1>One</h1><p>weft</p></body></html>");
    assert_eq!(read(&book), "[EPUB \"Of looms\": pages 1 to 1 of 1.]\n--- page 1 of 1 ---\n# One\n\nweft\n");
}

#[test]
fn a_document_with_large_pictures_is_read_and_a_text_as_large_is_not() {
    let spaces = " ".repeat(11 << 20);
    let picture = format!("6 0 obj <</Length {}>> stream\n{spaces}\nendstream endobj\ntrailer", spaces.len());
    let large = PDF.replace("trailer", &picture);
    assert_eq!(read(large.as_bytes()), "[PDF: pages 1 to 1 of 1.]\n--- page 1 of 1 ---\nwarp beam\n");
    let text = read(large.replacen('%', "#", 1).as_bytes());
    assert_eq!(text, "paper.txt has 11 MiB: of a text no more than 10 MiB are read or searched");
    let longer = read(format!("{large}{}", " ".repeat(60 << 20)).as_bytes());
    assert_eq!(longer, "paper.txt has 71 MiB: no more than 64 MiB are read or searched");
}

#[test]
fn an_outline_names_the_pages_of_headings() {
    let world = reading(&[json!({"path": "a", "outline": true})]);
    fs::write(world.path("project/a"), epub("<h1>One</h1><p>weft</p><h2>Two</h2>")).unwrap();
    let told = results(&world).remove(0);
    assert!(told.starts_with("     1\t# One\n     1\t## Two\n[EPUB \"Of looms\": 1 page."), "{told}");
}

#[test]
fn a_document_that_breaks_its_reader_down_is_an_error_of_the_call() {
    // Each byte is made three when it is decoded: more than the reader may have.
    let bomb = docx_of(&vec![0xff; 127 << 20]);
    assert!(bomb.len() < 1 << 20);
    let world = reading(&[json!({"path": "a"}), json!({"path": "b"})]);
    fs::write(world.path("project/a"), &bomb).unwrap();
    fs::write(world.path("project/b"), docx(&["warp"])).unwrap();
    let mut results = results(&world);
    results.sort();
    assert!(results[0].starts_with("[DOCX") && results[0].ends_with("warp\n"), "{results:?}");
    let why = "a: no text could be extracted from it: ";
    assert!(results[1].starts_with(why) && results[1].contains("made to break readers"), "{results:?}");
}

#[test]
fn a_secret_in_a_document_is_masked() {
    let (before, after) = crate::secrets::SECRET.split_at(10);
    let body =
        format!("<w:d><w:p><w:r><w:t>a {before}</w:t></w:r><w:r><w:t>{after} b</w:t></w:r></w:p></w:d>");
    let world = reading(&[json!({"path": "a"})]);
    fs::write(world.path("project/a"), docx_of(body.as_bytes())).unwrap();
    let project = world.path("project");
    let mut command = world.command(&["--workspace", project.to_str().unwrap(), "chat", "-m", "Read."]);
    let run: crate::world::Run =
        command.env("OPENAI_API_KEY", crate::secrets::SECRET).output().unwrap().into();
    assert_eq!(run.code, Some(0), "{run:?}");
    let nodes = nodes(&world);
    let told = nodes.iter().find(|node| node["author"] == "read").unwrap()["text"].as_str().unwrap();
    assert!(told.contains("a ⟦secret:OPENAI_API_KEY⟧ b"), "{told}");
}

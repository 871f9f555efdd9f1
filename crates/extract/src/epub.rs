//! The text of an EPUB: its chapters as Markdown, in the order in which they are read.

use std::collections::{BTreeMap, BTreeSet};

use encoding_rs::UTF_8;
use percent_encoding::percent_decode_str;
use url::Url;

use crate::archive::Archive;
use crate::html::of_xhtml;
use crate::xml::{Part, attribute, text_of, walk};
use crate::{ExtractError, Extracted, Format, MOST, in_parts};

/// Member that says where the description of the book is.
pub(crate) const CONTAINER: &str = "META-INF/container.xml";
/// Member that says what is encrypted.
const ENCRYPTION: &str = "META-INF/encryption.xml";

pub(crate) fn extract(archive: &mut Archive<'_>) -> Result<Extracted, ExtractError> {
    let root = root();
    let book = attributes(&archive.read(CONTAINER)?, CONTAINER, "rootfile", "full-path")?.into_iter().next();
    let book = book.and_then(|path| root.as_ref()?.join(&path).ok());
    let book = book.ok_or_else(|| ExtractError::Damaged(format!("{CONTAINER} names no book")))?;
    let package = archive.read(&member(&book))?;
    let encrypted: BTreeSet<String> = match archive.has(ENCRYPTION) {
        false => BTreeSet::new(),
        true => attributes(&archive.read(ENCRYPTION)?, ENCRYPTION, "CipherReference", "URI")?
            .iter()
            .filter_map(|path| root.as_ref()?.join(path).ok())
            .map(|place| member(&place))
            .collect(),
    };
    let (mut pages, mut made) = (Vec::new(), 0);
    for chapter in chapters(&package)? {
        let Ok(place) = book.join(&chapter) else { continue };
        let name = member(&place);
        if encrypted.contains(&name) {
            return Err(ExtractError::Encrypted);
        }
        let bytes = archive.read(&name)?;
        // As its byte order mark says, else UTF-8: there is nothing else in an EPUB.
        let text = of_xhtml(&UTF_8.decode(&bytes).0, &place).text;
        made += text.len();
        if made > MOST {
            return Err(ExtractError::TooLarge(MOST >> 20));
        }
        // A cover, or a picture.
        if !text.is_empty() {
            pages.push(text);
        }
    }
    Ok(Extracted { format: Format::Epub, title: text_of(&package, "title"), pages: in_parts(pages) })
}

/// The archive as an address, so that paths in it are joined as its rules say. It is none of the web: a link within the book
/// is not shown as one.
fn root() -> Option<Url> {
    Url::parse("epub:///").ok()
}

/// Name of the member at an address.
fn member(place: &Url) -> String {
    percent_decode_str(place.path().trim_start_matches('/')).decode_utf8_lossy().into_owned()
}

/// The values of an attribute of all elements of a name.
fn attributes(bytes: &[u8], name: &str, element: &str, of: &str) -> Result<Vec<String>, ExtractError> {
    let mut found = Vec::new();
    walk(bytes, name, |part| {
        if let Part::Start(tag) = part
            && tag.local_name().as_ref() == element
        {
            found.extend(attribute(tag, of));
        }
        Ok(())
    })?;
    Ok(found)
}

/// Where the chapters are, in the order in which they are read, each once.
fn chapters(package: &[u8]) -> Result<Vec<String>, ExtractError> {
    let (mut places, mut order) = (BTreeMap::new(), Vec::new());
    walk(package, "the description of the book", |part| {
        let Part::Start(tag) = part else { return Ok(()) };
        match tag.local_name().as_ref() {
            "item" => places.extend(attribute(tag, "id").zip(attribute(tag, "href"))),
            "itemref" => order.extend(attribute(tag, "idref")),
            _ => {}
        }
        Ok(())
    })?;
    let chapters: Vec<String> = order.iter().filter_map(|id| places.remove(id)).collect();
    match chapters.is_empty() {
        true => Err(ExtractError::Damaged("it names no chapters".to_owned())),
        false => Ok(chapters),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::archive;

    const CONTAINER_XML: &str =
        "<container><rootfiles><rootfile full-path='OEBPS/the%20book.opf'/></rootfiles></container>";

    fn book(spine: &str, others: &[(&str, &str)]) -> Result<Extracted, ExtractError> {
        let package = format!(
            "<package><metadata><dc:title>The  Loom</dc:title></metadata><manifest>\
             <item id='b' href='text/two.xhtml'/><item id='a' href='text/one%20.xhtml#x'/><item id='c' href='../cover.xhtml'/>\
             </manifest><spine>{spine}</spine></package>"
        );
        let mut members = vec![(CONTAINER, CONTAINER_XML), ("OEBPS/the book.opf", &package)];
        members.extend_from_slice(others);
        let members: Vec<_> = members.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
        crate::extract(&archive(&members))
    }

    const CHAPTERS: [(&str, &str); 3] = [
        (
            "OEBPS/text/one .xhtml",
            "<?xml version='1.0'?><html><head><title/><script src='x'/></head><body><h1>One<a id='p'/></h1><p>warp &amp; \
             <a href='two.xhtml'>weft</a> <a href='https://example.org/'>out</a></p></body></html>",
        ),
        ("OEBPS/text/two.xhtml", "\u{feff}<html><body><p>shuttle</p></body></html>"),
        ("cover.xhtml", "<html><body><img src='cover.jpg'/></body></html>"),
    ];

    #[test]
    fn chapters_are_read_in_the_order_of_the_book() {
        let spine = "<itemref idref='c'/><itemref idref='a'/><itemref idref='b'/><itemref idref='a'/>";
        let extracted = book(spine, &CHAPTERS).unwrap();
        assert_eq!((extracted.format, extracted.title.as_deref()), (Format::Epub, Some("The Loom")));
        assert_eq!(extracted.pages, ["# One\n\nwarp & weft [out](https://example.org/)", "shuttle"]);
    }

    #[test]
    fn what_is_encrypted_damaged_or_empty_says_so() {
        let encryption = "<encryption><CipherReference URI='OEBPS/text/two.xhtml'/></encryption>";
        let fonts = "<encryption><CipherReference URI='OEBPS/font.otf'/></encryption>";
        let with = |encryption| [CHAPTERS.as_slice(), &[(ENCRYPTION, encryption)]].concat();
        assert_eq!(book("<itemref idref='b'/>", &with(encryption)), Err(ExtractError::Encrypted));
        assert!(book("<itemref idref='b'/>", &with(fonts)).is_ok());
        for (spine, chapters, why) in
            [("", &CHAPTERS[..], "no chapters"), ("<itemref idref='b'/>", &[], "two.xhtml")]
        {
            let error = book(spine, chapters).unwrap_err();
            assert!(matches!(&error, ExtractError::Damaged(said) if said.contains(why)), "{error}");
        }
        assert_eq!(book("<itemref idref='c'/>", &CHAPTERS), Err(ExtractError::NoText(0)));
    }
}

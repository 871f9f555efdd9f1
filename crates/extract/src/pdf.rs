//! The text of a PDF, page by page, as its pages show it.
//!
//! `lopdf` reads the objects, unpacks streams within a bound and takes away an empty password; which text a page shows, and
//! where its words and lines end, is found here ([`page`], [`font`]).

mod font;
mod page;
mod to_unicode;

use lopdf::{Dictionary, Document, Error, LoadOptions, Object};

use crate::{ExtractError, Extracted, Format, MOST, UNPACKED};
use page::Reader;

/// Bytes that one stream may be unpacked to.
const STREAM: usize = 32 << 20;

pub(crate) fn extract(bytes: &[u8]) -> Result<Extracted, ExtractError> {
    let options = LoadOptions { max_decompressed_size: Some(STREAM), ..LoadOptions::default() };
    let document = match Document::load_mem_with_options(bytes, options) {
        Ok(document) => document,
        Err(Error::InvalidPassword | Error::Decryption(_) | Error::UnsupportedSecurityHandler(_)) => {
            return Err(ExtractError::Encrypted);
        }
        Err(error) => return Err(ExtractError::Damaged(error.to_string())),
    };
    if document.is_encrypted() && !document.was_encrypted() {
        return Err(ExtractError::Encrypted);
    }
    let mut reader = Reader::of(&document, UNPACKED);
    let (mut pages, mut made) = (Vec::new(), 0);
    for page in document.page_iter() {
        let text = reader.text(page)?;
        made += text.len();
        if made > MOST {
            return Err(ExtractError::TooLarge(MOST >> 20));
        }
        pages.push(text);
    }
    if pages.is_empty() {
        return Err(ExtractError::Damaged("it has no pages".to_owned()));
    }
    Ok(Extracted { format: Format::Pdf, title: title(&document), pages })
}

fn title(document: &Document) -> Option<String> {
    let (_, information) = document.dereference(document.trailer.get(b"Info").ok()?).ok()?;
    let title = value(document, information.as_dict().ok()?, b"Title")?;
    let title = lopdf::decode_text_string(title).ok()?;
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    (!title.is_empty()).then_some(title)
}

/// A value of a dictionary, behind the reference to it.
fn value<'a>(document: &'a Document, of: &'a Dictionary, key: &[u8]) -> Option<&'a Object> {
    of.get_deref(key, document).ok()
}

fn dictionary_at<'a>(document: &'a Document, of: &'a Dictionary, key: &[u8]) -> Option<&'a Dictionary> {
    value(document, of, key)?.as_dict().ok()
}

fn number(object: &Object) -> f32 {
    object.as_float().ok().filter(|number| number.is_finite()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests;

//! Which text the codes of a font stand for, and how far each goes.

use std::collections::BTreeMap;

use lopdf::{Dictionary, Document, Object, dictionary};

use super::to_unicode::ToUnicode;
use super::{STREAM, dictionary_at, number, value};

/// Width of a code of which nothing is said, in thousandths of the font's size.
const WIDTH: f32 = 500.0;

/// Codes of a composite font.
const CODES: u32 = 1 << 16;

pub(super) struct Font {
    to_unicode: Option<ToUnicode>,
    codes: Codes,
    widths: BTreeMap<u32, f32>,
    default_width: f32,
}

enum Codes {
    /// One byte each; what they stand for where the map says nothing.
    Bytes(Vec<Option<String>>),
    /// Two bytes each; whether they are UTF-16.
    Pairs { are_text: bool },
}

/// What one code shows.
pub(super) struct Glyph {
    pub(super) text: String,
    /// In thousandths of the font's size.
    pub(super) width: f32,
    /// Whether it is the code that the spacing of words applies to.
    pub(super) is_space: bool,
}

impl Font {
    /// One of whose description nothing is known.
    pub(super) fn unknown() -> Self {
        let codes = Codes::Bytes(table(b"StandardEncoding"));
        Self { to_unicode: None, codes, widths: BTreeMap::new(), default_width: WIDTH }
    }

    pub(super) fn of(document: &Document, font: &Dictionary) -> Self {
        let map = value(document, font, b"ToUnicode").and_then(|map| map.as_stream().ok());
        let map = map.and_then(|map| map.decompressed_content_with_limit(STREAM).ok());
        let to_unicode = map.map(|bytes| ToUnicode::parse(&bytes));
        let subtype = value(document, font, b"Subtype").and_then(|name| name.as_name().ok());
        if subtype == Some(b"Type0") {
            let name = value(document, font, b"Encoding").and_then(|name| name.as_name().ok());
            let name = String::from_utf8_lossy(name.unwrap_or_default());
            let are_text = name.contains("UCS2") || name.contains("UTF16");
            let (widths, default_width) = widths_of_pairs(document, font);
            return Self { to_unicode, codes: Codes::Pairs { are_text }, widths, default_width };
        }
        let base: &[u8] = if subtype == Some(b"TrueType") { b"WinAnsiEncoding" } else { b"StandardEncoding" };
        let (widths, default_width) = widths_of_bytes(document, font);
        Self { to_unicode, codes: Codes::Bytes(encoding(document, font, base)), widths, default_width }
    }

    /// What the codes of a string show.
    pub(super) fn glyphs<'a>(&'a self, string: &'a [u8]) -> impl Iterator<Item = Glyph> + 'a {
        let length = if matches!(self.codes, Codes::Bytes(_)) { 1 } else { 2 };
        string.chunks(length).map(move |bytes| {
            let code = bytes.iter().fold(0, |code, byte| code << 8 | u32::from(*byte));
            let mapped = self.to_unicode.as_ref().and_then(|map| map.text(code));
            let text = mapped.or_else(|| match &self.codes {
                Codes::Bytes(table) => table.get(code as usize)?.clone(),
                Codes::Pairs { are_text: true } => Some(String::from_utf16_lossy(&[code as u16])),
                Codes::Pairs { are_text: false } => Some("\u{fffd}".to_owned()),
            });
            Glyph {
                text: text.unwrap_or_default(),
                width: self.widths.get(&code).copied().unwrap_or(self.default_width),
                is_space: length == 1 && code == 32,
            }
        })
    }
}

/// The text of each byte: of the encoding that is named, with what differs from it.
fn encoding(document: &Document, font: &Dictionary, base: &[u8]) -> Vec<Option<String>> {
    let Some(encoding) = value(document, font, b"Encoding") else { return table(base) };
    if let Ok(name) = encoding.as_name() {
        return table(name);
    }
    let Ok(encoding) = encoding.as_dict() else { return table(base) };
    let named = value(document, encoding, b"BaseEncoding").and_then(|name| name.as_name().ok());
    let mut table = table(named.unwrap_or(base));
    let differences = value(document, encoding, b"Differences").and_then(|list| list.as_array().ok());
    let mut code = 0;
    for difference in differences.into_iter().flatten() {
        match difference {
            Object::Integer(first) => code = usize::try_from(*first).unwrap_or(usize::MAX),
            Object::Name(name) => {
                if let Some(place) = table.get_mut(code) {
                    *place = glyph_text(name);
                }
                code = code.saturating_add(1);
            }
            _ => {}
        }
    }
    table
}

/// The text of each byte in an encoding by its name.
fn table(name: &[u8]) -> Vec<Option<String>> {
    let font = dictionary! { "Type" => "Font", "Encoding" => Object::Name(name.to_vec()) };
    let nothing = Document::new();
    let Ok(encoding) = font.get_font_encoding(&nothing) else { return vec![None; 256] };
    let text = |byte| encoding.bytes_to_string(&[byte]).ok().filter(|text| !text.is_empty());
    (0..=u8::MAX).map(text).collect()
}

/// The text of a glyph by its name: of the library's list, or the number in it (`uni20AC`, `u1F600`).
fn glyph_text(name: &[u8]) -> Option<String> {
    // A variant is the same text.
    let name = name.split(|byte| *byte == b'.').next().unwrap_or_default();
    let font = dictionary! {
        "Type" => "Font",
        "Encoding" => dictionary! { "Differences" => vec![Object::Integer(0), Object::Name(name.to_vec())] },
    };
    let nothing = Document::new();
    if let Ok(encoding @ lopdf::Encoding::Differences(_)) = font.get_font_encoding(&nothing) {
        return encoding.bytes_to_string(&[0]).ok();
    }
    let name = str::from_utf8(name).ok()?;
    let number = name.strip_prefix("uni").or_else(|| name.strip_prefix('u'))?;
    let digits = number.get(..number.len().min(6))?;
    u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).map(String::from)
}

fn widths_of_bytes(document: &Document, font: &Dictionary) -> (BTreeMap<u32, f32>, f32) {
    let first = value(document, font, b"FirstChar").and_then(|first| first.as_i64().ok()).unwrap_or(0);
    let first = u32::try_from(first).unwrap_or(0);
    let listed = value(document, font, b"Widths").and_then(|list| list.as_array().ok());
    let widths = (first..).zip(listed.into_iter().flatten().take(256)).map(|(code, width)| {
        let width = document.dereference(width).map_or(width, |(_, width)| width);
        (code, number(width))
    });
    let descriptor = dictionary_at(document, font, b"FontDescriptor");
    let missing = descriptor.and_then(|about| value(document, about, b"MissingWidth")).map(number);
    (widths.collect(), missing.filter(|width| *width > 0.0).unwrap_or(WIDTH))
}

fn widths_of_pairs(document: &Document, font: &Dictionary) -> (BTreeMap<u32, f32>, f32) {
    let mut widths = BTreeMap::new();
    let below = value(document, font, b"DescendantFonts").and_then(|list| list.as_array().ok());
    let below = below.and_then(|list| document.dereference(list.first()?).ok()?.1.as_dict().ok());
    let Some(below) = below else { return (widths, WIDTH * 2.0) };
    let default = value(document, below, b"DW").map_or(WIDTH * 2.0, number);
    let listed = value(document, below, b"W").and_then(|list| list.as_array().ok());
    let mut listed =
        listed.into_iter().flatten().map(|item| document.dereference(item).map_or(item, |it| it.1));
    let code = |object: &Object| object.as_i64().ok().and_then(|code| u32::try_from(code).ok());
    // A font may name a code again, but not without end.
    let mut left = 4 * CODES as usize;
    while let (Some(first), Some(second)) = (listed.next().map(code), listed.next()) {
        let Some(first) = first else { break };
        match second {
            Object::Array(each) => {
                left = left.saturating_sub(each.len());
                widths.extend((first..CODES).zip(each.iter().map(number)));
            }
            last => {
                let (Some(last), Some(width)) = (code(last), listed.next()) else { break };
                let codes = first..=last.min(CODES);
                left = left.saturating_sub(codes.clone().count());
                widths.extend(codes.map(|code| (code, number(width))));
            }
        }
        if left == 0 {
            break;
        }
    }
    (widths, default)
}

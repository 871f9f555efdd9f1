//! XML as a row of tags and texts. Nothing is expanded but the five references every XML has and numbers of characters, and
//! nothing is fetched.

use encoding_rs::UTF_8;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::ExtractError;

#[derive(Clone, Copy)]
pub(crate) enum Part<'a> {
    Start(&'a BytesStart<'a>),
    /// Name of what ends, without its prefix. A tag that is both has its end, too.
    End(&'a str),
    Text(&'a str),
}

/// Tells the parts of an XML in order.
///
/// # Errors
/// It is none, or the listener refuses.
pub(crate) fn walk(
    bytes: &[u8],
    name: &str,
    mut part: impl FnMut(Part<'_>) -> Result<(), ExtractError>,
) -> Result<(), ExtractError> {
    // As its byte order mark says, else UTF-8.
    let (text, _, _) = UTF_8.decode(bytes);
    let mut reader = Reader::from_str(&text);
    let config = reader.config_mut();
    config.expand_empty_elements = true;
    config.allow_dangling_amp = true;
    loop {
        let event = reader.read_event();
        match event.map_err(|error| ExtractError::Damaged(format!("{name}: {error}")))? {
            Event::Start(tag) => part(Part::Start(&tag))?,
            Event::End(tag) => part(Part::End(tag.local_name().as_ref()))?,
            Event::Text(text) => part(Part::Text(&text.xml10_content()))?,
            Event::CData(text) => part(Part::Text(&text.xml10_content()))?,
            Event::GeneralRef(reference) => {
                let named = quick_xml::escape::resolve_predefined_entity(&reference.xml10_content());
                let char = reference.resolve_char_ref().ok().flatten().map(String::from);
                part(Part::Text(char.as_deref().or(named).unwrap_or("\u{fffd}")))?;
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// The value of an attribute by its name without prefix.
pub(crate) fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = tag.attributes();
    let found =
        attributes.with_checks(false).flatten().find(|found| found.key.local_name().as_ref() == name)?;
    found.normalized_value(XmlVersion::Implicit1_0).ok().map(std::borrow::Cow::into_owned)
}

/// The text of the first element of a name, its white space folded; nothing where it has none.
pub(crate) fn text_of(bytes: &[u8], element: &str) -> Option<String> {
    let (mut text, mut inside, mut ended) = (String::new(), false, false);
    let walked = walk(bytes, element, |part| {
        match part {
            Part::Start(tag) if tag.local_name().as_ref() == element => inside = !ended,
            Part::End(name) if name == element => (inside, ended) = (false, true),
            Part::Text(more) if inside => text += more,
            _ => {}
        }
        Ok(())
    });
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (walked.is_ok() && !text.is_empty()).then_some(text)
}

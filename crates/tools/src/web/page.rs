//! What a server answered, as text: a page of HTML as Markdown, any other text as it is, of all else its kind and size.

use egress::Fetched;
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use extract::html::markdown;

/// Bytes of a page in which it may say how it is encoded.
const HEAD: usize = 1024;

/// The text of an answer.
///
/// # Errors
/// It is none: its kind and size, for the model.
pub(crate) fn text(fetched: &Fetched) -> Result<String, String> {
    let Fetched { url, content_type, encoding, body, .. } = fetched;
    if let Some(encoding) = encoding {
        let size = text::bytes::size(body.len() as u64);
        return Err(format!("it is packed with {encoding}, {size}: nothing of it is shown"));
    }
    let whole = content_type.as_deref().unwrap_or_default();
    let kind = whole.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_html = matches!(kind.as_str(), "text/html" | "application/xhtml+xml");
    if !(is_html || is_text(&kind) || kind.is_empty() && !body.contains(&0)) {
        let kind = if kind.is_empty() { "of no named type" } else { &kind };
        let size = text::bytes::size(body.len() as u64);
        return Err(format!("it is {kind}, {size}: this is no text, and nothing of it is shown"));
    }
    let text = decoded(body, whole, is_html);
    Ok(if is_html || looks_like_html(&kind, &text) { markdown(&text, url).with_title() } else { text })
}

/// Whether a type of content is text.
fn is_text(kind: &str) -> bool {
    const TEXTS: [&str; 9] = [
        "application/json",
        "application/xml",
        "application/javascript",
        "application/ecmascript",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/x-ndjson",
        "application/x-sh",
    ];
    let ends = [("application/", "+json"), ("application/", "+xml"), ("application/", "+yaml")];
    kind.starts_with("text/")
        || TEXTS.contains(&kind)
        || ends.iter().any(|(begins, ends)| kind.starts_with(begins) && kind.ends_with(ends))
}

fn looks_like_html(kind: &str, text: &str) -> bool {
    let begins = text.trim_start().get(..14).unwrap_or_default().to_ascii_lowercase();
    kind.is_empty() && (begins.starts_with("<!doctype html") || begins.starts_with("<html"))
}

/// Text of bytes: as a mark at their beginning says, as the answer says, as the page says, else as UTF-8 if they are
/// that, and as western European if they are not.
fn decoded(body: &[u8], content_type: &str, is_html: bool) -> String {
    let named = |text: &str| {
        let (_, after) = text.split_once("charset=")?;
        let label = after.trim_start_matches(['"', '\'']);
        let end = label.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c)));
        Encoding::for_label(&label.as_bytes()[..end.unwrap_or(label.len())])
    };
    let head = || String::from_utf8_lossy(&body[..body.len().min(HEAD)]).to_ascii_lowercase();
    let encoding = Encoding::for_bom(body)
        .map(|(encoding, _)| encoding)
        .or_else(|| named(&content_type.to_ascii_lowercase()))
        .or_else(|| named(&head()).filter(|_| is_html))
        .unwrap_or(if std::str::from_utf8(body).is_ok() { UTF_8 } else { WINDOWS_1252 });
    encoding.decode(body).0.into_owned()
}

#[cfg(test)]
mod tests {
    use egress::{StatusCode, Url};

    use super::*;

    fn told(content_type: &str, body: &[u8]) -> Result<String, String> {
        text(&Fetched {
            url: Url::parse("https://example.org/").unwrap(),
            redirected_from: Vec::new(),
            status: StatusCode::OK,
            content_type: (!content_type.is_empty()).then(|| content_type.to_owned()),
            encoding: None,
            body: body.to_owned(),
        })
    }

    #[test]
    fn text_is_decoded_as_it_says_it_is() {
        for (content_type, body) in [
            ("text/plain; charset=utf-8", "Grüße".as_bytes()),
            ("text/plain", "Grüße".as_bytes()),
            ("text/plain; charset=\"ISO-8859-1\"", b"Gr\xfc\xdfe"),
            ("text/plain", b"Gr\xfc\xdfe"),
            ("text/html", b"<meta charset='windows-1252'>Gr\xfc\xdfe"),
            ("text/html", b"<meta http-equiv=content-type content='text/html; charset=latin1'>Gr\xfc\xdfe"),
            ("text/plain; charset=utf-16le", b"G\0r\0\xfc\0\xdf\0e\0"),
            ("text/plain; charset=latin1", b"\xef\xbb\xbfGr\xc3\xbc\xc3\x9fe"),
            ("", b"<!DOCTYPE html><p>Gr&uuml;&szlig;e"),
        ] {
            assert_eq!(told(content_type, body).unwrap(), "Grüße", "{content_type}");
        }
        assert_eq!(told("application/json", br#"{"a": 1}"#).unwrap(), r#"{"a": 1}"#);
        assert_eq!(
            told("image/svg+xml", b"<svg/>").unwrap_err().split(',').next(),
            Some("it is image/svg+xml")
        );
    }

    #[test]
    fn of_what_is_no_text_its_kind_and_size_are_told() {
        let error = told("image/png", &[0; 2048]).unwrap_err();
        assert!(error.starts_with("it is image/png, 2") && error.contains("no text"), "{error}");
        assert!(told("", &[1, 0, 2]).unwrap_err().contains("of no named type"));
        assert!(told("application/octet-stream", b"abc").is_err());
    }
}

//! Pictures and sounds in chat completions: blocks of content going out, data URLs coming in.

use bytes::Bytes;
use data_encoding::BASE64;

use crate::encoded::{BodyWriter, EncodeError, PartKind};
use crate::prompt::{Media, PartId};

/// Writes a block that holds a picture or a sound.
///
/// # Errors
/// When the dialect has no block for its type.
pub(crate) fn block(body: &mut BodyWriter, part: PartId, media: &Media) -> Result<(), EncodeError> {
    let mime = media.mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let format = match mime.as_str() {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        picture if is_picture(picture) => {
            body.frame("{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:");
            body.frame(picture);
            body.frame(";base64,");
            body.string(PartKind::Media, part, &BASE64.encode(&media.data));
            body.frame("\"}}");
            return Ok(());
        }
        sound if sound.starts_with("audio/") => {
            return Err(EncodeError::Unsupported { what: "a sound that is neither wav nor mp3" });
        }
        _ => return Err(EncodeError::Unsupported { what: "a file that is neither picture nor sound" }),
    };
    body.frame("{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"");
    body.string(PartKind::Media, part, &BASE64.encode(&media.data));
    body.frame("\",\"format\":\"");
    body.frame(format);
    body.frame("\"}}");
    Ok(())
}

/// The type stands in a URL within a JSON string: only what needs no escape in either is let in.
fn is_picture(mime: &str) -> bool {
    mime.strip_prefix("image/").is_some_and(|kind| {
        !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    })
}

/// What a data URL holds. `None` for any other address: nothing is fetched.
pub(crate) fn from_data_url(url: &str) -> Option<Media> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let mime = head.strip_suffix(";base64")?.split(';').next()?;
    let data = BASE64.decode(data.trim().as_bytes()).ok()?;
    Some(Media { mime: mime.to_owned(), data: Bytes::from(data) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_data_urls_are_read() {
        let media = from_data_url("data:image/png;base64,iVBORw==").unwrap();
        assert_eq!((media.mime.as_str(), media.data.as_ref()), ("image/png", b"\x89PNG".as_slice()));
        for url in ["https://host/a.png", "data:image/png,abc", "data:image/png;base64,?", "data:image/png"] {
            assert_eq!(from_data_url(url), None, "{url}");
        }
    }

    #[test]
    fn a_type_that_would_break_out_of_its_place_is_refused() {
        let media = Media { mime: "image/\"},{".to_owned(), data: Bytes::new() };
        let refused = block(&mut BodyWriter::default(), PartId(1), &media);
        assert_eq!(refused.unwrap_err().code(), "unsupported");
    }
}

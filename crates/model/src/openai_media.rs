//! Blocks of content in chat completions: texts, pictures and sounds going out, data URLs coming in.

use bytes::Bytes;
use data_encoding::BASE64;
use serde::Serialize;

use crate::encoded::EncodeError;
use crate::parts::Parts;
use crate::prompt::{Media, PartId};

/// A block of a message's content.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Block {
    Text {
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: Url,
    },
    InputAudio {
        input_audio: Sound,
    },
}

/// A mark up to which a provider caches the request.
#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum CacheControl {
    Ephemeral,
}

impl CacheControl {
    pub(crate) fn of(marked: bool) -> Option<Self> {
        marked.then_some(Self::Ephemeral)
    }
}

#[derive(Serialize)]
pub(crate) struct Url {
    url: String,
}

#[derive(Serialize)]
pub(crate) struct Sound {
    data: String,
    format: &'static str,
}

impl Block {
    pub(crate) fn text(text: String, marked: bool) -> Self {
        Self::Text { text, cache_control: CacheControl::of(marked) }
    }
}

/// The block of a picture or a sound.
///
/// # Errors
/// When the dialect has no block for its type.
pub(crate) fn block<'a>(parts: &mut Parts<'a>, part: PartId, media: &'a Media) -> Result<Block, EncodeError> {
    let mime = media.mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let format = match mime.as_str() {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        picture if is_picture(picture) => {
            let url = format!("data:{picture};base64,{}", parts.media(part, media));
            return Ok(Block::ImageUrl { image_url: Url { url } });
        }
        sound if sound.starts_with("audio/") => {
            return Err(EncodeError::Unsupported { what: "a sound that is neither wav nor mp3" });
        }
        _ => return Err(EncodeError::Unsupported { what: "a file that is neither picture nor sound" }),
    };
    Ok(Block::InputAudio { input_audio: Sound { data: parts.media(part, media), format } })
}

/// The type stands in a URL within a JSON string: only what needs no escape in either is let in.
pub(crate) fn is_picture(mime: &str) -> bool {
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
        let refused = block(&mut Parts::new().unwrap(), PartId(1), &media);
        assert_eq!(refused.err().unwrap().code(), "unsupported");
    }
}

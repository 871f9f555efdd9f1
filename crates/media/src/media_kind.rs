//! Kind of a file by its first bytes.

use image::ImageFormat;

/// A kind of picture or sound that is sent to models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaKind {
    Png,
    Jpeg,
    Gif,
    Webp,
    /// A sound in a WAV file.
    Wav,
    /// A sound in an MP3 file.
    Mp3,
}

impl MediaKind {
    /// Media type, as models are told it.
    pub const fn mime(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
            Self::Wav => "audio/wav",
            Self::Mp3 => "audio/mpeg",
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Gif => "GIF",
            Self::Webp => "WebP",
            Self::Wav => "WAV",
            Self::Mp3 => "MP3",
        }
    }

    /// Whether it is a sound.
    pub const fn is_sound(self) -> bool {
        matches!(self, Self::Wav | Self::Mp3)
    }
}

/// Kind of a file; none if they are neither picture nor sound of a kind that is sent. The first 12
/// bytes are enough.
pub fn detect(bytes: &[u8]) -> Option<MediaKind> {
    match image::guess_format(bytes) {
        Ok(ImageFormat::Png) => Some(MediaKind::Png),
        Ok(ImageFormat::Jpeg) => Some(MediaKind::Jpeg),
        Ok(ImageFormat::Gif) => Some(MediaKind::Gif),
        Ok(ImageFormat::WebP) => Some(MediaKind::Webp),
        _ if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WAVE") => Some(MediaKind::Wav),
        _ => is_mp3(bytes).then_some(MediaKind::Mp3),
    }
}

/// Whether it begins with a tag of a version there is, or with the header of a frame of layer III.
fn is_mp3(bytes: &[u8]) -> bool {
    if let [b'I', b'D', b'3', version, ..] = bytes {
        return (2..=4).contains(version);
    }
    let [0xff, second, third, ..] = bytes else { return false };
    let synchronised = second & 0xe0 == 0xe0;
    let version_is_known = second & 0x18 != 0x08;
    let is_layer_three = second & 0x06 == 0x02;
    let has_rates = third & 0xf0 != 0xf0 && third & 0x0c != 0x0c;
    synchronised && version_is_known && is_layer_three && has_rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_what_it_is() {
        for (bytes, kind) in [
            (&b"\x89PNG\r\n\x1a\n...."[..], MediaKind::Png),
            (b"\xff\xd8\xff\xe0", MediaKind::Jpeg),
            (b"GIF89a", MediaKind::Gif),
            (b"RIFF\x01\x02\x03\x04WEBPVP8 ", MediaKind::Webp),
            (b"RIFF\x01\x02\x03\x04WAVEfmt ", MediaKind::Wav),
            (b"ID3\x04\x00", MediaKind::Mp3),
            (b"\xff\xfb\x90\x00", MediaKind::Mp3),
        ] {
            assert_eq!(detect(bytes), Some(kind));
        }
    }

    #[test]
    fn what_is_neither_picture_nor_sound_is_none() {
        for bytes in [
            &b""[..],
            b"\x89PNG",
            b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>",
            b"RIFF\x01\x02\x03\x04AVI ",
            b"ID3 is how tags begin",
            b"\xff\xfe\x00\x00",
            b"%PDF-1.7",
            b"plain text",
        ] {
            assert_eq!(detect(bytes), None, "{bytes:?}");
        }
    }
}

//! Pictures and sounds that go to models or come from them (spec: agent §2 *Media*, scale §4 `picture`).
//!
//! Whoever hands a file over may lie about it, and decoders are what such lies break. So a file is
//! what its first bytes say, never what its name says ([`detect`]); how large a picture is stands in its header and is
//! compared with a limit before a pixel is decoded; and what is kept of a picture is its pixels alone, encoded anew
//! ([`import_picture`]): where and with what it was taken, what a second program hid behind its end and whatever else the
//! file held stays outside.
//!
//! A picture is scaled once, when it is imported. [`MAX_SIDE`] and [`MAX_AREA`] are the size to which
//! the provider with the smallest pictures scales them itself, so that none of them scales again, and that what is
//! kept is, byte for byte, what was sent.

mod media_kind;
mod picture;

pub use media_kind::{MediaKind, detect};
pub use picture::{Dimensions, Picture, PictureError, dimensions, import_picture, is_sendable};

/// Longest side of a picture that is sent, in pixels. Anthropic scales down what is longer, the others take more.
pub const MAX_SIDE: u32 = 1_568;
/// Largest picture that is sent, in pixels: Anthropic scales down what makes more than 1,600 tokens of 750 pixels.
pub const MAX_AREA: u64 = 1_200_000;
/// Largest picture that is sent, in bytes: Anthropic takes 5 MB of base64, the others more.
pub const MAX_BYTES: usize = 3_750_000;
/// Largest picture that is decoded, in pixels, where nothing else is said (spec: scale §4 `picture`).
pub const MAX_PIXELS: u64 = 50_000_000;
/// Largest sound that is sent, in bytes: Gemini takes 20 MB of base64 in a request.
pub const MAX_SOUND_BYTES: usize = 14_000_000;

//! Import of pictures: measured, decoded within limits, scaled, encoded anew.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::imageops::FilterType as Resampling;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, Rgb, RgbImage};

use crate::media_kind::{MediaKind, detect};
use crate::{MAX_AREA, MAX_BYTES, MAX_SIDE};

/// Quality of a JPEG that is encoded anew, of 100.
const QUALITY: u8 = 90;
/// Bytes a decoder may take for each pixel of the limit: two for each of four channels, and as much again to work in.
const BYTES_A_PIXEL: u64 = 16;

/// Size of a picture in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimensions {
    pub width: u32,
    pub height: u32,
}

impl Dimensions {
    const fn area(self) -> u64 {
        self.width as u64 * self.height as u64
    }

    /// Whether a picture of this size is sent without scaling.
    const fn is_sendable(self) -> bool {
        self.width <= MAX_SIDE && self.height <= MAX_SIDE && self.area() <= MAX_AREA
    }

    /// Largest size of this shape that is sent, never larger than this one.
    fn scaled(self) -> Self {
        let by_side = f64::from(MAX_SIDE) / f64::from(self.width.max(self.height).max(1));
        let by_area = (MAX_AREA as f64 / self.area().max(1) as f64).sqrt();
        let factor = by_side.min(by_area).min(1.0);
        let scaled = |side: u32| ((f64::from(side) * factor) as u32).max(1);
        Self { width: scaled(self.width), height: scaled(self.height) }
    }
}

impl std::fmt::Display for Dimensions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}×{}", self.width, self.height)
    }
}

/// A picture as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// PNG or JPEG, which every model takes.
    pub kind: MediaKind,
    pub dimensions: Dimensions,
    pub bytes: Vec<u8>,
}

/// Errors of importing a picture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PictureError {
    #[error("it is no PNG, JPEG, GIF or WebP")]
    NoPicture,
    #[error("it is {dimensions} pixels, {} megapixels", .dimensions.area().div_ceil(1_000_000))]
    TooLarge { dimensions: Dimensions },
    #[error("it is a damaged {}: {}", .kind.name(), .why)]
    Damaged {
        /// What its first bytes say.
        kind: MediaKind,
        why: String,
    },
}

/// Kind and size of a picture, from its header alone.
///
/// # Errors
/// [`PictureError::NoPicture`], [`PictureError::Damaged`].
pub fn dimensions(bytes: &[u8]) -> Result<(MediaKind, Dimensions), PictureError> {
    let (kind, format) = format(bytes)?;
    let (width, height) = reader(bytes, format, MAX_AREA).into_dimensions().map_err(damaged(kind))?;
    Ok((kind, Dimensions { width, height }))
}

/// Whether a picture can be sent as it is: of a kind models take, no larger than is sent.
pub fn is_sendable(bytes: &[u8]) -> bool {
    // GIF is not taken by all of them.
    let measured = dimensions(bytes).ok().filter(|(kind, _)| *kind != MediaKind::Gif);
    bytes.len() <= MAX_BYTES && measured.is_some_and(|(_, dimensions)| dimensions.is_sendable())
}

/// Imports a picture: the first frame, if it moves; scaled to what is sent, never enlarged; encoded anew as PNG, as
/// JPEG where it was one or would be larger than [`MAX_BYTES`]. The same file gives the same bytes.
///
/// # Errors
/// [`PictureError`]. One whose header says more than `max_pixels` is not decoded.
pub fn import_picture(bytes: &[u8], max_pixels: u64) -> Result<Picture, PictureError> {
    let (kind, dimensions) = dimensions(bytes)?;
    if dimensions.area() > max_pixels {
        return Err(PictureError::TooLarge { dimensions });
    }
    let image = decode(bytes, max_pixels)?;
    let dimensions = Dimensions { width: image.width(), height: image.height() };
    let image = if dimensions.is_sendable() {
        image
    } else {
        let Dimensions { width, height } = dimensions.scaled();
        image.resize_exact(width, height, Resampling::CatmullRom)
    };
    encode(&image, kind)
}

fn decode(bytes: &[u8], max_pixels: u64) -> Result<DynamicImage, PictureError> {
    let (kind, format) = format(bytes)?;
    // The decoder makes grey of what is missing at the end of a JPEG.
    if kind == MediaKind::Jpeg && !jpeg_has_an_end(bytes) {
        return Err(PictureError::Damaged { kind, why: "its end is missing".to_owned() });
    }
    let mut decoder = reader(bytes, format, max_pixels).into_decoder().map_err(damaged(kind))?;
    // Cameras write the picture as the sensor lay, and beside it how it is to be turned.
    let turned = decoder.orientation().map_err(damaged(kind))?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(damaged(kind))?;
    image.apply_orientation(turned);
    Ok(image)
}

fn format(bytes: &[u8]) -> Result<(MediaKind, ImageFormat), PictureError> {
    match detect(bytes) {
        Some(MediaKind::Png) => Ok((MediaKind::Png, ImageFormat::Png)),
        Some(MediaKind::Jpeg) => Ok((MediaKind::Jpeg, ImageFormat::Jpeg)),
        Some(MediaKind::Gif) => Ok((MediaKind::Gif, ImageFormat::Gif)),
        Some(MediaKind::Webp) => Ok((MediaKind::Webp, ImageFormat::WebP)),
        Some(MediaKind::Wav | MediaKind::Mp3) | None => Err(PictureError::NoPicture),
    }
}

fn reader(bytes: &[u8], format: ImageFormat, max_pixels: u64) -> ImageReader<Cursor<&[u8]>> {
    let mut limits = Limits::default();
    limits.max_alloc = Some(max_pixels.saturating_mul(BYTES_A_PIXEL));
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits);
    reader
}

/// Whether a JPEG's marker of the end stands where its segments and scans end.
fn jpeg_has_an_end(bytes: &[u8]) -> bool {
    const START: u8 = 0xd8;
    const END: u8 = 0xd9;
    const SCAN: u8 = 0xda;
    let mut at = 0;
    while let Some(&[before, marker]) = bytes.get(at..at + 2) {
        at += 2;
        match (before, marker) {
            (0xff, END) => return true,
            // Fill bytes may stand before a marker.
            (0xff, 0xff) => at -= 1,
            (0xff, START | 0x01 | 0xd0..=0xd7) => {}
            (0xff, _) => {
                let Some(&[high, low]) = bytes.get(at..at + 2) else { return false };
                at += usize::from(u16::from_be_bytes([high, low]));
                if marker == SCAN {
                    at = scan_end(bytes, at);
                }
            }
            // What stands between segments is no part of the picture.
            _ => at -= 1,
        }
    }
    false
}

/// Where the data of a scan that begins at `at` end: at the next marker that stands for itself.
fn scan_end(bytes: &[u8], at: usize) -> usize {
    let data = bytes.get(at..).unwrap_or_default();
    let stands = |pair: &[u8]| matches!(pair, [0xff, marker] if !matches!(marker, 0x00 | 0xd0..=0xd7 | 0xff));
    data.windows(2).position(stands).map_or(bytes.len(), |found| at + found)
}

fn encode(image: &DynamicImage, kind: MediaKind) -> Result<Picture, PictureError> {
    let dimensions = Dimensions { width: image.width(), height: image.height() };
    if kind != MediaKind::Jpeg {
        let mut bytes = Vec::new();
        let encoder =
            PngEncoder::new_with_quality(&mut bytes, CompressionType::Default, FilterType::Adaptive);
        // More than eight bits a channel are seen by no model.
        let written = if image.color().has_alpha() {
            image.to_rgba8().write_with_encoder(encoder)
        } else {
            image.to_rgb8().write_with_encoder(encoder)
        };
        written.map_err(damaged(kind))?;
        if bytes.len() <= MAX_BYTES {
            return Ok(Picture { kind: MediaKind::Png, dimensions, bytes });
        }
    }
    let mut bytes = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut bytes, QUALITY);
    on_white(image).write_with_encoder(encoder).map_err(damaged(kind))?;
    Ok(Picture { kind: MediaKind::Jpeg, dimensions, bytes })
}

/// Without transparency, which a JPEG has not.
fn on_white(image: &DynamicImage) -> RgbImage {
    if !image.color().has_alpha() {
        return image.to_rgb8();
    }
    let image = image.to_rgba8();
    RgbImage::from_fn(image.width(), image.height(), |x, y| {
        let [red, green, blue, alpha] = image.get_pixel(x, y).0;
        let alpha = u16::from(alpha);
        let mixed = |colour: u8| ((u16::from(colour) * alpha + 255 * (255 - alpha)) / 255) as u8;
        Rgb([mixed(red), mixed(green), mixed(blue)])
    })
}

fn damaged<E: std::fmt::Display>(kind: MediaKind) -> impl FnOnce(E) -> PictureError {
    move |error| PictureError::Damaged { kind, why: error.to_string() }
}

#[cfg(test)]
mod tests;

use image::codecs::gif::GifEncoder;
use image::codecs::png::PngEncoder;
use image::codecs::webp::WebPEncoder;
use image::{ExtendedColorType, Frame, GrayImage, ImageEncoder, Luma, RgbaImage};
use proptest::prelude::*;

use super::*;

const LIMIT: u64 = 50_000_000;

/// A picture with something to see in it.
fn drawn(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| Rgb([(x * 7) as u8, (y * 5) as u8, (x ^ y) as u8]))
}

fn png(image: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    image.write_with_encoder(PngEncoder::new(&mut bytes)).unwrap();
    bytes
}

fn jpeg(image: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    image.write_with_encoder(JpegEncoder::new(&mut bytes)).unwrap();
    bytes
}

fn webp(image: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    image.write_with_encoder(WebPEncoder::new_lossless(&mut bytes)).unwrap();
    bytes
}

fn gif(frames: &[RgbaImage]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new(&mut bytes);
    encoder.encode_frames(frames.iter().cloned().map(Frame::new)).unwrap();
    drop(encoder);
    bytes
}

/// A PNG whose header says this size, with no pixel behind it.
fn header_of(width: u32, height: u32) -> Vec<u8> {
    let mut png = png(&drawn(1, 1));
    png[16..20].copy_from_slice(&width.to_be_bytes());
    png[20..24].copy_from_slice(&height.to_be_bytes());
    let crc = crc32(&png[12..29]);
    png[29..33].copy_from_slice(&crc.to_be_bytes());
    png
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

fn decoded(picture: &Picture) -> DynamicImage {
    image::load_from_memory(&picture.bytes).unwrap()
}

#[test]
fn each_kind_is_taken_in_as_what_every_model_takes() {
    let image = drawn(40, 30);
    let still = DynamicImage::ImageRgb8(image.clone()).to_rgba8();
    for (bytes, kind) in [
        (png(&image), MediaKind::Png),
        (jpeg(&image), MediaKind::Jpeg),
        (webp(&image), MediaKind::Png),
        (gif(&[still]), MediaKind::Png),
    ] {
        let picture = import_picture(&bytes, LIMIT).unwrap();
        assert_eq!((picture.kind, picture.dimensions), (kind, Dimensions { width: 40, height: 30 }));
        assert_eq!(detect(&picture.bytes), Some(kind));
        assert!(is_sendable(&picture.bytes));
        assert_eq!(import_picture(&bytes, LIMIT).unwrap(), picture, "the same file gives the same bytes");
    }
    assert_eq!(
        decoded(&import_picture(&png(&image), LIMIT).unwrap()).to_rgb8(),
        image,
        "no pixel is another one"
    );
}

#[test]
fn of_a_moving_picture_the_first_is_taken() {
    let one = |colour: [u8; 4]| RgbaImage::from_pixel(8, 8, image::Rgba(colour));
    let picture = import_picture(&gif(&[one([255, 0, 0, 255]), one([0, 0, 255, 255])]), LIMIT).unwrap();
    assert_eq!(decoded(&picture).to_rgba8().get_pixel(3, 3).0, [255, 0, 0, 255]);
}

#[test]
fn what_is_too_large_to_be_sent_is_scaled_and_nothing_is_enlarged() {
    for (width, height, sent) in [
        (3_136, 200, (1_568, 100)),
        (200, 3_136, (100, 1_568)),
        (2_000, 2_000, (1_095, 1_095)),
        (5_000, 1, (1_568, 1)),
        (3, 2, (3, 2)),
    ] {
        let picture = import_picture(&png(&drawn(width, height)), LIMIT).unwrap();
        assert_eq!((picture.dimensions.width, picture.dimensions.height), sent, "{width}×{height}");
        assert!(is_sendable(&picture.bytes));
    }
}

#[test]
fn one_over_the_limit_is_refused_before_it_is_decoded() {
    let Err(PictureError::TooLarge { dimensions }) = import_picture(&header_of(60_000, 60_000), LIMIT) else {
        panic!()
    };
    assert_eq!(dimensions, Dimensions { width: 60_000, height: 60_000 });
    assert_eq!(
        PictureError::TooLarge { dimensions }.to_string(),
        "it is 60000×60000 pixels, 3600 megapixels"
    );
}

#[test]
fn the_control_without_the_check_one_over_the_limit_is_decoded() {
    let wide = GrayImage::from_pixel(1_200, 1_000, Luma([9]));
    let mut bytes = Vec::new();
    let encoder = PngEncoder::new(&mut bytes);
    encoder.write_image(&wide, 1_200, 1_000, ExtendedColorType::L8).unwrap();
    assert!(matches!(import_picture(&bytes, 1_199_999), Err(PictureError::TooLarge { .. })));
    assert!(import_picture(&bytes, 1_200_000).is_ok(), "the limit itself is no more than the limit");
    assert!(decode(&bytes, 1_199_999).is_ok(), "nothing but the check refuses it");
}

#[test]
fn what_is_cut_off_anywhere_is_refused() {
    let image = drawn(64, 48);
    let still = DynamicImage::ImageRgb8(image.clone()).to_rgba8();
    for whole in [png(&image), jpeg(&image), webp(&image), gif(&[still])] {
        // The last bytes of some formats say nothing but that it ends.
        for left in (0..10).map(|tenth| whole.len() * tenth / 10) {
            let cut = import_picture(&whole[..left], LIMIT);
            assert!(cut.is_err(), "{left} of {} bytes", whole.len());
        }
    }
}

#[test]
fn nothing_of_a_file_but_its_pixels_is_kept() {
    const HIDDEN: &[u8] = b"PK\x03\x04 <script>steal()</script> 52.5200 N 13.4050 E";
    let image = drawn(20, 20);
    let mut behind = png(&image);
    behind.extend_from_slice(HIDDEN);
    let mut comment = jpeg(&image);
    let mut segment = vec![0xff, 0xfe];
    segment.extend_from_slice(&(HIDDEN.len() as u16 + 2).to_be_bytes());
    segment.extend_from_slice(HIDDEN);
    comment.splice(2..2, segment);
    for bytes in [behind, comment] {
        assert!(bytes.windows(HIDDEN.len()).any(|window| window == HIDDEN));
        let picture = import_picture(&bytes, LIMIT).unwrap();
        assert!(!picture.bytes.windows(8).any(|window| window == &HIDDEN[..8]));
    }
}

#[test]
fn text_that_begins_like_a_picture_is_damaged_and_other_text_is_none() {
    let script = b"GIF89a/*\x01\x00*/=1;alert(1)//";
    assert!(matches!(import_picture(script, LIMIT), Err(PictureError::Damaged { kind: MediaKind::Gif, .. })));
    let vector = b"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"/>";
    assert_eq!(import_picture(vector, LIMIT), Err(PictureError::NoPicture));
    assert_eq!(import_picture(b"RIFF\0\0\0\0WAVEfmt ", LIMIT), Err(PictureError::NoPicture));
}

#[test]
fn one_that_stays_too_many_bytes_as_png_becomes_a_jpeg_on_white() {
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let image = RgbaImage::from_fn(1_095, 1_095, |x, _| {
        image::Rgba([noise(), noise(), noise(), if x < 8 { 0 } else { 255 }])
    });
    let mut bytes = Vec::new();
    image.write_with_encoder(PngEncoder::new(&mut bytes)).unwrap();
    let picture = import_picture(&bytes, LIMIT).unwrap();
    assert_eq!(picture.kind, MediaKind::Jpeg);
    assert!(picture.bytes.len() <= MAX_BYTES);
    let corner = decoded(&picture).to_rgb8().get_pixel(1, 1).0;
    assert!(corner.iter().all(|colour| *colour > 240), "{corner:?}");
}

proptest! {
    #[test]
    fn no_bytes_bring_it_down(
        head in prop::sample::select(vec![
            &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], b"\xff\xd8\xff\xc0\0\x11\x08", b"GIF89a", b"RIFF\xff\0\0\0WEBPVP8L",
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = import_picture(&[head, &rest].concat(), 10_000);
    }

    #[test]
    fn no_flipped_byte_brings_it_down(at in any::<prop::sample::Index>(), to in any::<u8>(), kind in 0..3) {
        let image = drawn(24, 16);
        let mut bytes = match kind { 0 => png(&image), 1 => jpeg(&image), _ => webp(&image) };
        let at = at.index(bytes.len());
        bytes[at] = to;
        let _ = import_picture(&bytes, 10_000);
    }
}

//! Conversion between the blocks of GGUF tensors and single precision.
//!
//! A tensor is a row of blocks; each holds 32 or 256 numbers of a few bits, and the scales that they are multiplied
//! with. The layouts are those of ggml; `blocks/tests.rs` compares every one with its reference implementation.
//! Slices that end inside a block are converted up to it: lengths were checked where the file was read.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::tensor_type::TensorType;

/// Numbers of a block of the older types.
const SMALL: usize = 32;
/// Numbers of a block of the types whose scales are packed themselves.
const LARGE: usize = 256;
/// Largest number of an 8-bit block.
const Q8_MOST: f32 = 127.0;

/// Converts the blocks in `bytes` to the numbers they stand for.
#[inline(always)]
pub(crate) fn dequantise(kind: TensorType, bytes: &[u8], numbers: &mut [f32]) {
    match kind {
        TensorType::F32 => {
            for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks().0) {
                *number = f32::from_le_bytes(*bytes);
            }
        }
        TensorType::F16 => halves(bytes, numbers),
        TensorType::BF16 => {
            for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks().0) {
                *number = bf16::from_le_bytes(*bytes).to_f32();
            }
        }
        TensorType::Q4_0 => each::<18, SMALL>(bytes, numbers, q4_0),
        TensorType::Q4_1 => each::<20, SMALL>(bytes, numbers, q4_1),
        TensorType::Q5_0 => each::<22, SMALL>(bytes, numbers, q5_0),
        TensorType::Q5_1 => each::<24, SMALL>(bytes, numbers, q5_1),
        TensorType::Q8_0 => each::<34, SMALL>(bytes, numbers, q8_0),
        TensorType::Q2K => each::<84, LARGE>(bytes, numbers, q2k),
        TensorType::Q3K => each::<110, LARGE>(bytes, numbers, q3k),
        TensorType::Q4K => each::<144, LARGE>(bytes, numbers, q4k),
        TensorType::Q5K => each::<176, LARGE>(bytes, numbers, q5k),
        TensorType::Q6K => each::<210, LARGE>(bytes, numbers, q6k),
    }
}

/// Converts numbers to 8-bit blocks; the last ones stay out where they do not fill a block.
pub(crate) fn quantise_q8_0(numbers: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(numbers.len() / SMALL * (2 + SMALL));
    for block in numbers.as_chunks::<SMALL>().0 {
        let largest = block.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        let scale = largest / Q8_MOST;
        let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
        bytes.extend(f16::from_f32(scale).to_le_bytes());
        bytes.extend(block.iter().map(|number| rounded(number * inverse).cast_unsigned()));
    }
    bytes
}

#[expect(clippy::cast_possible_truncation, reason = "at most 127 either way, and saturating")]
fn rounded(number: f32) -> i8 {
    number.round() as i8
}

#[inline(always)]
fn each<const BYTES: usize, const NUMBERS: usize>(
    bytes: &[u8],
    numbers: &mut [f32],
    block: impl Fn(&[u8; BYTES], &mut [f32; NUMBERS]),
) {
    for (bytes, numbers) in bytes.as_chunks().0.iter().zip(numbers.as_chunks_mut().0) {
        block(bytes, numbers);
    }
}

#[inline(always)]
fn halves(bytes: &[u8], numbers: &mut [f32]) {
    const STEP: usize = 64;
    let mut halves = [f16::ZERO; STEP];
    for (bytes, numbers) in bytes.chunks(2 * STEP).zip(numbers.chunks_mut(STEP)) {
        for (half, bytes) in halves.iter_mut().zip(bytes.as_chunks().0) {
            *half = f16::from_le_bytes(*bytes);
        }
        halves[..numbers.len()].convert_to_f32_slice(numbers);
    }
}

#[inline(always)]
fn half(bytes: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
}

#[inline(always)]
fn q4_0(block: &[u8; 18], numbers: &mut [f32; SMALL]) {
    let scale = half(block, 0);
    for place in 0..16 {
        let pair = block[2 + place];
        numbers[place] = (f32::from(pair & 15) - 8.0) * scale;
        numbers[place + 16] = (f32::from(pair >> 4) - 8.0) * scale;
    }
}

#[inline(always)]
fn q4_1(block: &[u8; 20], numbers: &mut [f32; SMALL]) {
    let (scale, least) = (half(block, 0), half(block, 2));
    for place in 0..16 {
        let pair = block[4 + place];
        numbers[place] = f32::from(pair & 15) * scale + least;
        numbers[place + 16] = f32::from(pair >> 4) * scale + least;
    }
}

/// The fifth bits of the two numbers at a place.
#[inline(always)]
fn fifth_bits(bits: u32, place: usize) -> (u8, u8) {
    (u8::from(bits >> place & 1 == 1) << 4, u8::from(bits >> (place + 16) & 1 == 1) << 4)
}

#[inline(always)]
fn q5_0(block: &[u8; 22], numbers: &mut [f32; SMALL]) {
    let scale = half(block, 0);
    let bits = u32::from_le_bytes([block[2], block[3], block[4], block[5]]);
    for place in 0..16 {
        let (pair, (low, high)) = (block[6 + place], fifth_bits(bits, place));
        numbers[place] = (f32::from(pair & 15 | low) - 16.0) * scale;
        numbers[place + 16] = (f32::from(pair >> 4 | high) - 16.0) * scale;
    }
}

#[inline(always)]
fn q5_1(block: &[u8; 24], numbers: &mut [f32; SMALL]) {
    let (scale, least) = (half(block, 0), half(block, 2));
    let bits = u32::from_le_bytes([block[4], block[5], block[6], block[7]]);
    for place in 0..16 {
        let (pair, (low, high)) = (block[8 + place], fifth_bits(bits, place));
        numbers[place] = f32::from(pair & 15 | low) * scale + least;
        numbers[place + 16] = f32::from(pair >> 4 | high) * scale + least;
    }
}

#[inline(always)]
fn q8_0(block: &[u8; 34], numbers: &mut [f32; SMALL]) {
    let scale = half(block, 0);
    for place in 0..SMALL {
        numbers[place] = f32::from(block[2 + place].cast_signed()) * scale;
    }
}

#[inline(always)]
fn q2k(block: &[u8; 84], numbers: &mut [f32; LARGE]) {
    let (scale, least) = (half(block, 80), half(block, 82));
    for (part, numbers) in numbers.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let (both, shift) = (block[part], part % 8 / 2 * 2);
        let (scale, least) = (scale * f32::from(both & 15), least * f32::from(both >> 4));
        let from = 16 + part / 8 * 32 + part % 2 * 16;
        for place in 0..16 {
            numbers[place] = scale * f32::from(block[from + place] >> shift & 3) - least;
        }
    }
}

#[inline(always)]
fn q3k(block: &[u8; 110], numbers: &mut [f32; LARGE]) {
    let scale = half(block, 108);
    let packed = &block[96..108];
    for (part, numbers) in numbers.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let low = packed[part % 8] >> (part / 8 * 4) & 15;
        let high = packed[8 + part % 4] >> (part / 4 * 2) & 3;
        let scale = scale * (f32::from(low | high << 4) - 32.0);
        let (half, shift) = (part % 2 * 16, part % 8 / 2 * 2);
        let from = 32 + part / 8 * 32 + half;
        for place in 0..16 {
            let third = block[half + place] >> (part / 2) & 1;
            let number = block[from + place] >> shift & 3 | third << 2;
            numbers[place] = scale * (f32::from(number) - 4.0);
        }
    }
}

/// The scale and the minimum of 32 numbers, packed to six bits each.
#[inline(always)]
fn scale_and_least(packed: &[u8], part: usize) -> (f32, f32) {
    let (scale, least) = if part < 4 {
        (packed[part] & 63, packed[part + 4] & 63)
    } else {
        let low = packed[part + 4];
        (low & 15 | packed[part - 4] >> 6 << 4, low >> 4 | packed[part] >> 6 << 4)
    };
    (f32::from(scale), f32::from(least))
}

#[inline(always)]
fn q4k(block: &[u8; 144], numbers: &mut [f32; LARGE]) {
    let (scale, least) = (half(block, 0), half(block, 2));
    for (part, numbers) in numbers.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (one_scale, one_least) = scale_and_least(&block[4..16], part);
        let (scale, least) = (scale * one_scale, least * one_least);
        let (from, shift) = (16 + part / 2 * 32, part % 2 * 4);
        for place in 0..32 {
            numbers[place] = scale * f32::from(block[from + place] >> shift & 15) - least;
        }
    }
}

#[inline(always)]
fn q5k(block: &[u8; 176], numbers: &mut [f32; LARGE]) {
    let (scale, least) = (half(block, 0), half(block, 2));
    for (part, numbers) in numbers.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (one_scale, one_least) = scale_and_least(&block[4..16], part);
        let (scale, least) = (scale * one_scale, least * one_least);
        let (from, shift) = (48 + part / 2 * 32, part % 2 * 4);
        for place in 0..32 {
            let number = block[from + place] >> shift & 15 | (block[16 + place] >> part & 1) << 4;
            numbers[place] = scale * f32::from(number) - least;
        }
    }
}

#[inline(always)]
fn q6k(block: &[u8; 210], numbers: &mut [f32; LARGE]) {
    let scale = half(block, 208);
    for (part, numbers) in numbers.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let scale = scale * f32::from(block[192 + part].cast_signed());
        let (upper, quarter, half) = (part / 8, part % 8 / 2, part % 2 * 16);
        let low = upper * 64 + quarter % 2 * 32 + half;
        let high = 128 + upper * 32 + half;
        for place in 0..16 {
            let number = block[low + place] >> (quarter / 2 * 4) & 15
                | (block[high + place] >> (quarter * 2) & 3) << 4;
            numbers[place] = scale * (f32::from(number) - 32.0);
        }
    }
}

#[cfg(test)]
mod tests;

//! Matrix multiplication: products of rows with a matrix of 8-bit blocks.
//!
//! The matrix is unpacked to single precision piece by piece, in the cache nearest to the processor, and
//! multiplied there. Rows are not rounded to 8 bits first, as other engines do it: that costs more of a
//! model's precision than the 8-bit weights themselves, and is no faster where a piece serves many rows.
//!
//! Each number of a product is summed block by block along the inner dimension, by itself. So it has the same bits
//! whatever rows are multiplied with it, on however many threads and however wide the processor's vectors are.

use std::ops::Range;

use half::slice::HalfFloatSliceExt;
use pulp::{Arch, Simd, WithSimd};

use crate::packed_rows::{BLOCK, COLUMNS, PackedRows};

/// Places of the inner dimension unpacked at a time: 16 KiB.
const STEP: usize = 8 * BLOCK;
/// Most rows that share each number loaded of a matrix.
const MOST_ROWS: usize = 12;
/// Blocks at a time for a single row.
const ABREAST: usize = 4;

/// Kernel for this processor: its instructions, and how many rows share a load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatmulKernel {
    pub(crate) arch: Arch,
    group: usize,
}

impl MatmulKernel {
    pub(crate) fn new() -> Self {
        struct Group;
        impl WithSimd for Group {
            type Output = usize;

            #[inline(always)]
            fn with_simd<S: Simd>(self, _: S) -> usize {
                // Sums of a group stay in registers, beside a row of the tile and a number of a row.
                let vectors = COLUMNS / S::F32_LANES;
                (S::REGISTER_COUNT.saturating_sub(1 + vectors) / vectors).clamp(1, MOST_ROWS)
            }
        }
        let arch = Arch::new();
        Self { arch, group: arch.dispatch(Group) }
    }

    /// Rows of numbers laid out in groups: in each, place after place, one number of every row.
    pub(crate) fn grouped(self, numbers: &[f32], width: usize) -> Vec<f32> {
        let mut grouped = vec![0.0; numbers.len()];
        let size = (self.group * width).max(1);
        for (group, rows) in grouped.chunks_mut(size).zip(numbers.chunks(size)) {
            let count = rows.len() / width.max(1);
            for (at, row) in rows.chunks_exact(width).enumerate() {
                for (place, number) in group.chunks_exact_mut(count).zip(row) {
                    place[at] = *number;
                }
            }
        }
        grouped
    }

    /// The products of `count` rows, grouped, with a matrix: row after row.
    pub(crate) fn product(self, grouped: &[f32], count: usize, packed: &PackedRows) -> Vec<f32> {
        in_parts(count, packed.rows(), COLUMNS * ABREAST, |columns| {
            let (tiles, width) = (columns.start / COLUMNS..columns.end.div_ceil(COLUMNS), columns.len());
            let mut product = vec![0.0; count * width];
            let task =
                ColumnTask { packed, grouped, count, group: self.group, tiles, product: &mut product, width };
            self.arch.dispatch(task);
            product
        })
    }
}

/// Computes a product of `count` rows and `columns` columns, a share of the columns on each thread; `part` gives
/// the rows of its columns. Shares are multiples of `unit`, but the last.
pub(crate) fn in_parts(
    count: usize,
    columns: usize,
    unit: usize,
    part: impl Fn(Range<usize>) -> Vec<f32> + Sync,
) -> Vec<f32> {
    let threads = rayon_core::current_num_threads();
    if threads == 1 {
        return part(0..columns);
    }
    let share = columns.div_ceil(threads).next_multiple_of(unit);
    let parts = rayon_core::broadcast(|thread| {
        let from = (thread.index() * share).min(columns);
        let range = from..(from + share).min(columns);
        if range.is_empty() { (range, Vec::new()) } else { (range.clone(), part(range)) }
    });
    let mut product = vec![0.0; count * columns];
    for (range, part) in parts.into_iter().filter(|(range, _)| !range.is_empty()) {
        let rows = product.chunks_exact_mut(columns);
        for (row, part) in rows.zip(part.chunks_exact(range.len())) {
            row[range.clone()].copy_from_slice(part);
        }
    }
    product
}

/// Task of one thread: some columns of a product.
struct ColumnTask<'a> {
    packed: &'a PackedRows,
    grouped: &'a [f32],
    count: usize,
    /// Rows of a group, but the last.
    group: usize,
    tiles: Range<usize>,
    /// Row after row, `width` numbers each.
    product: &'a mut [f32],
    width: usize,
}

impl WithSimd for ColumnTask<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match S::F32_LANES {
            16 => self.columns::<S, 1>(simd),
            8 => self.columns::<S, 2>(simd),
            4 => self.columns::<S, 4>(simd),
            _ => self.columns::<S, COLUMNS>(simd),
        }
    }
}

impl ColumnTask<'_> {
    #[inline(always)]
    fn columns<S: Simd, const VECTORS: usize>(self, simd: S) {
        let inner = self.packed.inner();
        let mut weights = [0.0; STEP * COLUMNS];
        let mut scales = vec![0.0; inner / BLOCK * COLUMNS];
        let mut sums = vec![0.0; self.count * COLUMNS];
        for (number, tile) in self.tiles.enumerate() {
            self.packed.scales(tile).convert_to_f32_slice(&mut scales);
            sums.fill(0.0);
            let steps = self.packed.numbers(tile).chunks(STEP * COLUMNS);
            let scales = scales.chunks(STEP / BLOCK * COLUMNS);
            for ((step, scales), from) in steps.zip(scales).zip((0..inner).step_by(STEP)) {
                let weights = &mut weights[..step.len()];
                for (weight, number) in weights.iter_mut().zip(step) {
                    *weight = f32::from(*number);
                }
                let to = from + step.len() / COLUMNS;
                let groups = self.grouped.chunks(self.group * inner);
                for (rows, sums) in groups.zip(sums.chunks_mut(self.group * COLUMNS)) {
                    let count = sums.len() / COLUMNS;
                    let rows = &rows[from * count..to * count];
                    group::<S, VECTORS>(simd, weights, scales, rows, count, sums);
                }
            }
            let at = number * COLUMNS;
            let columns = COLUMNS.min(self.width - at);
            for (product, sums) in self.product.chunks_exact_mut(self.width).zip(sums.chunks_exact(COLUMNS)) {
                product[at..at + columns].copy_from_slice(&sums[..columns]);
            }
        }
    }
}

/// Adds the products of a group's rows to their sums.
#[inline(always)]
fn group<S: Simd, const VECTORS: usize>(
    simd: S,
    weights: &[f32],
    scales: &[f32],
    rows: &[f32],
    count: usize,
    sums: &mut [f32],
) {
    macro_rules! by_count {
        ($($count:literal)*) => {
            match count {
                1 => few::<S, VECTORS>(simd, weights, scales, rows, sums),
                $($count => blocks::<S, VECTORS, $count, 1>(simd, weights, scales, rows, sums),)*
                _ => {}
            }
        };
    }
    by_count!(2 3 4 5 6 7 8 9 10 11 12);
}

/// A single row: several blocks at a time, so that the processor has other sums to work on while one is under
/// way.
#[inline(always)]
fn few<S: Simd, const VECTORS: usize>(
    simd: S,
    weights: &[f32],
    scales: &[f32],
    row: &[f32],
    sums: &mut [f32],
) {
    let abreast = row.len() / (ABREAST * BLOCK) * ABREAST * BLOCK;
    let (row, rest) = row.split_at(abreast);
    let (weights, other_weights) = weights.split_at(abreast * COLUMNS);
    let (scales, other_scales) = scales.split_at(abreast / BLOCK * COLUMNS);
    blocks::<S, VECTORS, 1, ABREAST>(simd, weights, scales, row, sums);
    blocks::<S, VECTORS, 1, 1>(simd, other_weights, other_scales, rest, sums);
}

/// Adds the products of `ROWS` rows to their sums, block by block, `ABREAST` blocks at a time. What is under way
/// stays in registers: `VECTORS` of them for each row and block.
#[inline(always)]
fn blocks<S: Simd, const VECTORS: usize, const ROWS: usize, const ABREAST: usize>(
    simd: S,
    weights: &[f32],
    scales: &[f32],
    rows: &[f32],
    sums: &mut [f32],
) {
    let weights = S::as_simd_f32s(weights).0.as_chunks::<VECTORS>().0.as_chunks::<BLOCK>().0;
    let scales = S::as_simd_f32s(scales).0.as_chunks::<VECTORS>().0;
    let rows = rows.as_chunks::<ROWS>().0.as_chunks::<BLOCK>().0;
    let Some(sums) = S::as_mut_simd_f32s(sums).0.as_chunks_mut::<VECTORS>().0.first_chunk_mut::<ROWS>()
    else {
        return;
    };
    let zero = simd.splat_f32s(0.0);
    let blocks = weights.as_chunks::<ABREAST>().0.iter().zip(rows.as_chunks::<ABREAST>().0);
    for ((weights, rows), scales) in blocks.zip(scales.as_chunks::<ABREAST>().0) {
        let mut begun = [[[zero; VECTORS]; ROWS]; ABREAST];
        for place in 0..BLOCK {
            for block in 0..ABREAST {
                let weights = &weights[block][place];
                for (begun, number) in begun[block].iter_mut().zip(&rows[block][place]) {
                    let number = simd.splat_f32s(*number);
                    for (begun, weight) in begun.iter_mut().zip(weights) {
                        *begun = simd.mul_add_e_f32s(number, *weight, *begun);
                    }
                }
            }
        }
        for (begun, scales) in begun.iter().zip(scales) {
            for (sums, begun) in sums.iter_mut().zip(begun) {
                for ((sum, begun), scale) in sums.iter_mut().zip(begun).zip(scales) {
                    *sum = simd.mul_add_e_f32s(*begun, *scale, *sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from -1 to 1.
    fn random(count: usize, seed: u64) -> Vec<f32> {
        let mut state = seed;
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f32 / (1_u64 << 23) as f32) - 1.0
        };
        (0..count).map(next).collect()
    }

    /// A matrix of the file's form, and its numbers row after row.
    fn matrix(inner: usize, rows: usize) -> (PackedRows, Vec<f32>) {
        let (mut bytes, mut plain) = (Vec::new(), Vec::new());
        for (block, numbers) in random(inner * rows, 3).chunks(BLOCK).enumerate() {
            // Powers of two, as 16-bit floating point: from 2^-9 to 2^-6.
            let exponent = block % 4;
            bytes.extend(((6 + exponent as u16) << 10).to_le_bytes());
            let scale = 2.0_f32.powi(exponent as i32 - 9);
            for number in numbers {
                let rounded = (number * 127.0).round();
                bytes.push((rounded as i8).cast_unsigned());
                plain.push(rounded * scale);
            }
        }
        (PackedRows::new(&bytes, inner, rows), plain)
    }

    fn product(kernel: MatmulKernel, rows: &[f32], packed: &PackedRows) -> Vec<f32> {
        let inner = packed.inner();
        kernel.product(&kernel.grouped(rows, inner), rows.len() / inner, packed)
    }

    #[test]
    fn products_are_those_of_plain_arithmetic() {
        for (inner, columns, count) in [(32, 16, 1), (96, 37, 5), (576, 33, 29), (160, 1, 13)] {
            let (packed, plain) = matrix(inner, columns);
            let rows = random(inner * count, 5);
            let found = product(MatmulKernel::new(), &rows, &packed);
            assert_eq!(found.len(), count * columns);
            let expected = rows.chunks(inner).flat_map(|row| {
                plain.chunks(inner).map(move |column| {
                    row.iter().zip(column).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
                })
            });
            for (found, expected) in found.into_iter().zip(expected) {
                assert!((f64::from(found) - expected).abs() < 2e-6 * inner as f64, "{found} {expected}");
            }
        }
    }

    #[test]
    fn rows_of_the_matrix_are_given_back() {
        let (packed, plain) = matrix(96, 37);
        for (number, row) in plain.chunks(96).enumerate() {
            assert_eq!(packed.row(number).collect::<Vec<_>>(), row);
        }
    }

    #[test]
    fn a_row_has_the_same_bits_in_any_company() {
        let (inner, kernel) = (224, MatmulKernel::new());
        let (packed, _) = matrix(inner, 50);
        let rows = random(inner * 31, 7);
        let together = product(kernel, &rows, &packed);
        for (row, expected) in rows.chunks(inner).zip(together.chunks(50)) {
            assert_eq!(product(kernel, row, &packed), expected);
        }
        for count in 2..14 {
            assert_eq!(product(kernel, &rows[..count * inner], &packed), together[..count * 50]);
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_row_has_the_same_bits_whatever_the_width_of_vectors() {
        let (inner, kernel) = (224, MatmulKernel::new());
        let (packed, _) = matrix(inner, 50);
        let rows = random(inner * 31, 7);
        let expected = product(kernel, &rows, &packed);
        if let Some(narrower) = pulp::x86::V3::try_new() {
            let kernel = MatmulKernel { arch: Arch::V3(narrower), group: 6 };
            assert_eq!(product(kernel, &rows, &packed), expected);
        }
        // Without fused multiplication only nearly.
        let plain = product(MatmulKernel { arch: Arch::Scalar, group: 1 }, &rows, &packed);
        assert!(plain.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-4));
    }
}

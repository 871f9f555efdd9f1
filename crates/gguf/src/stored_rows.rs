//! Matrices of any type but 8-bit blocks, kept as the file has them.
//!
//! A few rows at a time are converted to single precision, in the cache nearest to the processor, and multiplied
//! there with every row of activations. Activations are not rounded. Each number of a product is summed over the same
//! 16 lanes whatever is computed beside it, so it has the same bits in any company and on however many threads.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use crate::blocks::dequantise;
use crate::matmul::{MatmulKernel, in_parts};
use crate::tensor_type::TensorType;

/// Rows converted at a time, whose sums are under way together.
const ROWS: usize = 4;
/// Lanes of a sum.
const LANES: usize = 16;

/// A matrix as it is stored.
pub(crate) struct StoredRows {
    kind: TensorType,
    bytes: Vec<u8>,
    row_bytes: usize,
    inner: usize,
    rows: usize,
}

impl StoredRows {
    /// `bytes` are `rows` rows of `inner` numbers, which are whole blocks.
    pub(crate) fn new(kind: TensorType, bytes: Vec<u8>, inner: usize, rows: usize) -> Self {
        let row_bytes = bytes.len() / rows.max(1);
        Self { kind, bytes, row_bytes, inner, rows }
    }

    /// The row with this number; zeros if there is none.
    pub(crate) fn row(&self, number: usize) -> Vec<f32> {
        let mut row = vec![0.0; self.inner];
        self.convert(number, &mut row);
        row
    }

    #[inline(always)]
    fn convert(&self, number: usize, row: &mut [f32]) {
        let at = number * self.row_bytes;
        dequantise(self.kind, self.bytes.get(at..at + self.row_bytes).unwrap_or_default(), row);
    }

    /// The products of rows of activations with this matrix, one after the other.
    pub(crate) fn product(&self, kernel: MatmulKernel, activations: &[f32]) -> Vec<f32> {
        let count = activations.len() / self.inner.max(1);
        in_parts(count, self.rows, ROWS, |rows| {
            let mut product = vec![0.0; count * rows.len()];
            kernel.arch.dispatch(RowTask { matrix: self, activations, rows, product: &mut product });
            product
        })
    }
}

/// Task of one thread: the products with some rows of a matrix.
struct RowTask<'a> {
    matrix: &'a StoredRows,
    activations: &'a [f32],
    rows: Range<usize>,
    /// For each row of activations, as many numbers as there are `rows`.
    product: &'a mut [f32],
}

impl WithSimd for RowTask<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match S::F32_LANES {
            16 => self.rows::<S, 1>(simd),
            8 => self.rows::<S, 2>(simd),
            4 => self.rows::<S, 4>(simd),
            _ => self.rows::<S, LANES>(simd),
        }
    }
}

impl RowTask<'_> {
    #[inline(always)]
    fn rows<S: Simd, const VECTORS: usize>(self, simd: S) {
        let (inner, width) = (self.matrix.inner, self.rows.len());
        let mut weights = vec![0.0; ROWS * inner];
        for from in (0..width).step_by(ROWS) {
            let rows = ROWS.min(width - from);
            for (at, row) in weights.chunks_exact_mut(inner).take(rows).enumerate() {
                self.matrix.convert(self.rows.start + from + at, row);
            }
            let products = self.product.chunks_exact_mut(width);
            for (activations, product) in self.activations.chunks_exact(inner).zip(products) {
                let sums = dots::<S, VECTORS>(simd, &weights, activations);
                product[from..from + rows].copy_from_slice(&sums[..rows]);
            }
        }
    }
}

/// The products of rows of weights with one row of activations.
#[inline(always)]
fn dots<S: Simd, const VECTORS: usize>(simd: S, weights: &[f32], activations: &[f32]) -> [f32; ROWS] {
    let inner = activations.len();
    let whole = inner / LANES * LANES;
    let (a, b) = weights.split_at(2 * inner);
    let ((a, b), (c, d)) = (a.split_at(inner), b.split_at(inner));
    let rows = [a, b, c, d];
    let vectors = rows.map(|row| S::as_simd_f32s(&row[..whole]).0.as_chunks::<VECTORS>().0);
    let others = S::as_simd_f32s(&activations[..whole]).0.as_chunks::<VECTORS>().0;
    let mut sums = [[simd.splat_f32s(0.0); VECTORS]; ROWS];
    for ((((other, a), b), c), d) in
        others.iter().zip(vectors[0]).zip(vectors[1]).zip(vectors[2]).zip(vectors[3])
    {
        for (sums, row) in sums.iter_mut().zip([a, b, c, d]) {
            for ((sum, weight), other) in sums.iter_mut().zip(row).zip(other) {
                *sum = simd.mul_add_e_f32s(*weight, *other, *sum);
            }
        }
    }
    let mut found = [0.0; ROWS];
    for ((found, sums), row) in found.iter_mut().zip(&sums).zip(rows) {
        let mut lanes = [0.0; LANES];
        let (parts, _) = S::as_mut_simd_f32s(&mut lanes);
        for (part, sum) in parts.iter_mut().zip(sums) {
            *part = *sum;
        }
        let tail = row[whole..].iter().zip(&activations[whole..]).map(|(a, b)| a * b).sum::<f32>();
        *found = lanes.iter().sum::<f32>() + tail;
    }
    found
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

    fn matrix(inner: usize, rows: usize) -> StoredRows {
        let bytes = random(inner * rows, 3).into_iter().flat_map(f32::to_le_bytes).collect();
        StoredRows::new(TensorType::F32, bytes, inner, rows)
    }

    #[test]
    fn products_are_those_of_plain_arithmetic() {
        for (inner, rows, count) in [(32, 16, 1), (100, 37, 5), (7, 3, 2), (576, 33, 29), (160, 1, 13)] {
            let matrix = matrix(inner, rows);
            let activations = random(inner * count, 5);
            let found = matrix.product(MatmulKernel::new(), &activations);
            assert_eq!(found.len(), count * rows);
            for (at, found) in found.into_iter().enumerate() {
                let (row, weights) = (&activations[at / rows * inner..][..inner], matrix.row(at % rows));
                let expected: f64 =
                    row.iter().zip(&weights).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                assert!((f64::from(found) - expected).abs() < 2e-6 * inner as f64, "{found} {expected}");
            }
        }
    }

    #[test]
    fn a_row_has_the_same_bits_in_any_company() {
        let (matrix, kernel, activations) = (matrix(224, 50), MatmulKernel::new(), random(224 * 31, 7));
        let together = matrix.product(kernel, &activations);
        for (row, expected) in activations.chunks(224).zip(together.chunks(50)) {
            assert_eq!(matrix.product(kernel, row), expected);
        }
    }
}

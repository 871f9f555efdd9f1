//! Arithmetic over slices, written so that the compiler turns it into the widest instructions the processor
//! has. [`pulp`] picks them at run time; the code itself stays plain and safe.
//!
//! Sums run over lanes in a fixed order, so a row gives the same bits however many rows are computed with it.

use pulp::Arch;

const LANES: usize = 16;

/// Runs `work` with the processor's widest instructions. `work` must be inlined into it to gain anything.
#[inline]
pub(crate) fn wide<R>(arch: Arch, work: impl FnOnce() -> R) -> R {
    arch.dispatch(work)
}

#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let tail: f32 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    lanes.iter().sum::<f32>() + tail
}

/// `sum += share * row`
#[inline(always)]
pub(crate) fn add_scaled(sum: &mut [f32], share: f32, row: &[f32]) {
    for (sum, value) in sum.iter_mut().zip(row) {
        *sum += share * value;
    }
}

/// `e^x`, to a few units in the last place; below -87 it is 0.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the exponent is within -126 and 127 here")]
fn exp(x: f32) -> f32 {
    let bounded = x.clamp(-87.0, 88.0);
    // Rounding by adding and taking away a number whose last place is 1.
    const ROUND: f32 = 12_582_912.0;
    let whole = (bounded * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let rest = bounded - whole * 0.693_359_4 + whole * 2.121_944_4e-4;
    let mut power = 1.987_569_1e-4_f32;
    for coefficient in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        power = power * rest + coefficient;
    }
    let power = power * rest * rest + rest + 1.0;
    let scaled = power * f32::from_bits(((whole as i32 + 127) << 23).cast_unsigned());
    if x < -87.0 { 0.0 } else { scaled }
}

/// Softmax: turns scores into shares that sum to 1.
#[inline(always)]
pub(crate) fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for score in scores.iter_mut() {
        *score = exp(*score - most);
    }
    let mut lanes = [0.0_f32; LANES];
    let chunks = scores.chunks_exact(LANES);
    let tail: f32 = chunks.remainder().iter().sum();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] += chunk[lane];
        }
    }
    let sum = lanes.iter().sum::<f32>() + tail;
    for score in scores.iter_mut() {
        *score /= sum;
    }
}

/// `gate = silu(gate) * up`
#[inline(always)]
pub(crate) fn gated(gate: &mut [f32], up: &[f32]) {
    for (gate, up) in gate.iter_mut().zip(up) {
        *gate = *gate / (1.0 + exp(-*gate)) * up;
    }
}

/// RMS norm: rows scaled to a mean square of 1, then by the weights.
#[inline(always)]
pub(crate) fn normalise(rows: &mut [f32], weights: &[f32], epsilon: f32) {
    for row in rows.chunks_exact_mut(weights.len()) {
        let mean = dot(row, row) / weights.len() as f32;
        let scale = 1.0 / (mean + epsilon).sqrt();
        for (value, weight) in row.iter_mut().zip(weights) {
            *value = *value * scale * weight;
        }
    }
}

/// `sum += row`, row by row; a shorter `row` is repeated.
#[inline(always)]
pub(crate) fn add(sum: &mut [f32], row: &[f32]) {
    for part in sum.chunks_mut(row.len().max(1)) {
        for (sum, value) in part.iter_mut().zip(row) {
            *sum += value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_those_of_the_library() {
        for step in -870..880 {
            let x = step as f32 / 10.0;
            let (found, expected) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((found - expected).abs() <= expected * 4e-7, "{x}: {found} {expected}");
        }
        assert_eq!((exp(-1e9), exp(f32::NEG_INFINITY)), (0.0, 0.0));
    }

    #[test]
    fn shares_sum_to_one_and_keep_their_order() {
        let mut scores: Vec<f32> = (0..37).map(|n| n as f32 / 3.0).collect();
        softmax(&mut scores);
        assert!((scores.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert!(scores.is_sorted());
    }

    #[test]
    fn a_product_takes_the_tail_in() {
        let ones = vec![1.0; 37];
        assert_eq!(dot(&ones, &ones), 37.0);
    }
}

//! Blocks beside the numbers that ggml's reference implementation in Python (PyPI `gguf`, `quants.dequantize`) makes of
//! the same bytes.
#![allow(clippy::excessive_precision, clippy::unreadable_literal, reason = "written by the reference")]

use super::*;

/// 256 numbers of a type as bytes of no order; `halves` are the places of 16-bit scales in a block, kept small.
fn bytes(kind: TensorType, halves: &[usize]) -> Vec<u8> {
    let block = kind.block_bytes() as usize;
    let mut state = u64::from(kind.number()) + 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let mut bytes: Vec<u8> = (0..256 / kind.block() as usize * block).map(next).collect();
    for block in bytes.chunks_exact_mut(block) {
        for half in halves {
            block[half + 1] = block[half + 1] & 0x83 | 0x2c;
        }
        if let ([.., last], true) = (block, halves.is_empty()) {
            *last = *last & 0x80 | 0x3d;
        }
    }
    bytes
}

#[test]
#[rustfmt::skip]
fn every_type_is_read_as_the_reference_reads_it() {
    // Type, scales, sum of all numbers each times its place from 1, every 37th number from the 5th.
    let expected: [(TensorType, &[usize], f64, [f32; 7]); 13] = [
        (TensorType::F16, &[], -4147.8173828125, [-1.4638671875, 1.275390625, 1.3486328125, 1.451171875, -1.2919921875, -1.3896484375, -1.2841796875]),
        (TensorType::BF16, &[], 289.3818359375, [-0.03857421875, -0.038330078125, 0.0888671875, -0.050537109375, -0.076171875, -0.038330078125, -0.044189453125]),
        (TensorType::F32, &[], -90.58486535772681, [-0.06883785873651505, -0.05414796620607376, -0.10721667855978012, -0.03363946080207825, -0.058908767998218536, 0.04214000701904297, 0.07665541768074036]),
        (TensorType::Q4_0, &[0], -456.68048095703125, [0.333251953125, 0.340087890625, -0.39154052734375, 0.51116943359375, -0.26568603515625, -0.1556396484375, -0.0]),
        (TensorType::Q4_1, &[0, 2], 8346.676513671875, [-0.34454345703125, -0.35009765625, 1.15435791015625, 0.7635498046875, 1.46868896484375, 0.6058349609375, -0.9813232421875]),
        (TensorType::Q5_0, &[0], -3605.742431640625, [-1.0528564453125, 0.4765625, -1.310791015625, 1.4005126953125, -1.2080078125, 0.9755859375, -1.382080078125]),
        (TensorType::Q5_1, &[0, 2], 29915.713439941406, [2.46380615234375, 1.44720458984375, -0.13018798828125, 3.58050537109375, -0.370849609375, 0.67437744140625, 2.47088623046875]),
        (TensorType::Q8_0, &[0], 31172.737915039062, [5.4224853515625, 10.3753662109375, 8.79071044921875, 5.7744140625, -0.4801025390625, 7.409423828125, -13.60986328125]),
        (TensorType::Q2K, &[80, 82], 23578.318237304688, [-0.81488037109375, 0.74493408203125, -0.8775634765625, 2.2974853515625, 0.01715087890625, -0.18804931640625, 0.7099609375]),
        (TensorType::Q3K, &[108], 21377.259033203125, [2.6279296875, 2.919921875, 0.43798828125, -0.0, -0.8759765625, 3.50390625, 7.2998046875]),
        (TensorType::Q4K, &[0, 2], 638066.1396484375, [83.6314697265625, 0.4033203125, -1.9365234375, 6.5086669921875, 38.0335693359375, 52.1099853515625, 6.777587890625]),
        (TensorType::Q5K, &[0, 2], -2003592.4252929688, [-130.5596923828125, -187.130859375, -225.60015869140625, -6.6708984375, -19.16949462890625, -79.3843994140625, -86.4735107421875]),
        (TensorType::Q6K, &[208], -304654.8828125, [-3.759765625, -396.279296875, 81.533203125, -97.96875, -14.1796875, 30.29296875, -306.796875]),
    ];
    for (kind, halves, sum, some) in expected {
        let mut numbers = [0.0; 256];
        dequantise(kind, &bytes(kind, halves), &mut numbers);
        let found: Vec<f32> = numbers.iter().copied().skip(5).step_by(37).collect();
        assert!(found.iter().zip(some).all(|(a, b)| (a - b).abs() <= b.abs() * 3e-7), "{kind:?} {found:?}");
        let found: f64 = numbers.iter().zip(1..).map(|(number, at)| f64::from(*number) * f64::from(at)).sum();
        let size: f64 = numbers.iter().zip(1..).map(|(number, at)| f64::from(number.abs()) * f64::from(at)).sum();
        assert!((found - sum).abs() <= size * 1e-6, "{kind:?} {found} {sum}");
    }
}

#[test]
fn eight_bit_blocks_are_the_nearest_ones() {
    let mut numbers = [0.0; 64];
    dequantise(TensorType::Q4_1, &bytes(TensorType::Q4_1, &[0, 2]), &mut numbers);
    numbers[32..].fill(0.0);
    let bytes = quantise_q8_0(&numbers);
    assert_eq!(bytes.len(), 68);
    assert!(bytes[34..].iter().all(|byte| *byte == 0), "zeros have the scale zero");
    let mut found = [1.0; 64];
    dequantise(TensorType::Q8_0, &bytes, &mut found);
    let largest = numbers.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    assert!(numbers.iter().zip(found).all(|(a, b)| (a - b).abs() <= largest / 127.0 * 0.57));
    assert!(bytes[2..34].iter().any(|byte| byte.cast_signed().unsigned_abs() == 127));
}

#[test]
fn bytes_that_end_inside_a_block_leave_its_numbers() {
    let mut numbers = [7.0; 256];
    dequantise(TensorType::Q6K, &[0; 209], &mut numbers);
    assert_eq!(numbers, [7.0; 256]);
}

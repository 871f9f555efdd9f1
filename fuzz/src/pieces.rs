//! Cutting bytes and texts into pieces.

/// `bytes` in pieces of 1 to 16 bytes, whose sizes follow from `seed`; in one piece for seed 0.
pub fn pieces(bytes: &[u8], seed: u8) -> Vec<&[u8]> {
    if seed == 0 {
        return vec![bytes];
    }
    let (mut rest, mut state, mut out) = (bytes, u64::from(seed), Vec::new());
    while !rest.is_empty() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (piece, after) = rest.split_at((1 + (state >> 33) as usize % 16).min(rest.len()));
        out.push(piece);
        rest = after;
    }
    out
}

/// As [`pieces`], cut where characters begin.
pub fn text_pieces(text: &str, seed: u8) -> Vec<&str> {
    let mut at = 0;
    let mut out = Vec::new();
    for piece in pieces(text.as_bytes(), seed) {
        let end =
            (at + piece.len()..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
        // A cut inside a character moves behind it; a piece that lay within one is gone.
        let from = out.iter().map(|piece: &&str| piece.len()).sum::<usize>();
        if from < end {
            out.push(&text[from..end]);
        }
        at += piece.len();
    }
    out
}

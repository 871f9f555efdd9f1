//! What of a request a provider's cache can reuse: its beginning, as far as it is that of the request before (spec:
//! context §6).

use std::collections::HashMap;

use model::{Encoded, PartId, PartKind, PartRange};

use crate::piece::Piece;

/// Bytes of form that may stand between two parts.
const FORM: usize = 512;

/// Tokens at the beginning of a request that stand, part for part, at the beginning of the request before, estimated.
/// Providers see tools first, wherever a dialect writes them. The form between parts is not compared: marks and
/// commas move, and cost nothing.
pub fn reused(encoded: &Encoded, pieces: &[Piece], before: &[u8]) -> u64 {
    let mut size: HashMap<usize, u64> = HashMap::new();
    let mut owner: HashMap<PartId, usize> = HashMap::new();
    for (index, piece) in pieces.iter().enumerate() {
        owner.extend(piece.parts.iter().map(|part| (*part, index)));
    }
    let piece_of = |range: &PartRange| owner.get(&range.part).copied();
    for range in encoded.ranges() {
        *size.entry(piece_of(range).unwrap_or(usize::MAX)).or_default() += range.bytes.len() as u64;
    }
    let mut reused: HashMap<usize, u64> = HashMap::new();
    let mut whole = true;
    for schemas in [true, false] {
        let mut at = None;
        for range in encoded.ranges().iter().filter(|range| (range.kind == PartKind::Schema) == schemas) {
            let bytes = encoded.body().get(range.bytes.clone()).unwrap_or_default();
            let same = if whole { shared(bytes, before, &mut at) } else { 0 };
            whole &= same == bytes.len();
            *reused.entry(piece_of(range).unwrap_or(usize::MAX)).or_default() += same as u64;
        }
    }
    let share = |(piece, bytes): (usize, u64)| {
        let tokens = pieces.get(piece).map_or(0, |piece| piece.tokens);
        tokens * bytes / size.get(&piece).copied().unwrap_or(1).max(1)
    };
    reused.into_iter().map(share).sum()
}

/// How many bytes of a part stand in `before` behind `at`, which moves behind them.
fn shared(part: &[u8], before: &[u8], at: &mut Option<usize>) -> usize {
    let from = at.unwrap_or(0);
    let Some(rest) = before.get(from..) else { return 0 };
    // The first part of all may stand behind form of any length.
    let form = if at.is_some() { FORM } else { rest.len() };
    let within = &rest[..rest.len().min(form + part.len())];
    if let Some(found) = find(within, part) {
        *at = Some(from + found + part.len());
        return part.len();
    }
    // It may go on where the one before ended.
    let begin = &part[..part.len().min(16)];
    let found = find(&rest[..rest.len().min(form)], begin).unwrap_or(rest.len());
    part.iter().zip(&rest[found..]).take_while(|(a, b)| a == b).count()
}

fn find(within: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(within, part)
}

//! What of a request a provider's cache can reuse: its beginning, as far as it is that of the request before (spec:
//! context §6).

use std::ops::Range;

use memchr::memmem;
use model::{EncodedRequest, PartKind, PartRange};

use crate::piece::{Owners, RequestPiece};

/// Bytes of form that may stand between two parts.
const FORM: usize = 512;

/// Tokens at the beginning of a request that stand, part for part, at the beginning of the request before, estimated.
/// Providers see tools first, wherever a dialect writes them. The form between parts is not compared: marks and
/// commas move, and cost nothing.
pub fn reused(encoded: &EncodedRequest, pieces: &[RequestPiece], before: &[u8]) -> u64 {
    let owners = Owners::of(pieces);
    // Behind the last piece: what belongs to none.
    let mut size = vec![0_u64; pieces.len() + 1];
    let mut same = vec![0_u64; pieces.len() + 1];
    let place = |range: &PartRange| owners.piece(range.part).unwrap_or(pieces.len());
    for range in encoded.ranges() {
        size[place(range)] += range.bytes.len() as u64;
    }
    let mut whole = true;
    for schemas in [true, false] {
        let mut at = None;
        for range in encoded.ranges().iter().filter(|range| (range.kind == PartKind::Schema) == schemas) {
            if !whole {
                break;
            }
            let found = shared(encoded.body(), &range.bytes, before, &mut at);
            whole = found == range.bytes.len();
            same[place(range)] += found as u64;
        }
    }
    let share = |((piece, same), size): ((&RequestPiece, u64), u64)| piece.tokens * same / size.max(1);
    pieces.iter().zip(same).zip(size).map(share).sum()
}

/// Where the part before ended: here, and in the request before.
type Ends = (usize, usize);

/// How many bytes of a part stand in `before` behind the part before it, which it then is.
fn shared(body: &[u8], range: &Range<usize>, before: &[u8], ends: &mut Option<Ends>) -> usize {
    let Some(part) = body.get(range.clone()) else { return 0 };
    let Some(rest) = before.get(ends.map_or(0, |(_, there)| there)..) else { return 0 };
    // As a rule there is the same form between two parts, or none.
    let gap = range.start - ends.map_or(0, |(here, _)| here).min(range.start);
    let as_a_rule = rest.get(gap..).is_some_and(|rest| rest.starts_with(part)).then_some(gap);
    // The first part of all may stand behind form of any length.
    let form = if ends.is_some() { FORM } else { rest.len() };
    let found = as_a_rule.or_else(|| memmem::find(&rest[..rest.len().min(form + part.len())], part));
    let Some(found) = found else {
        // It may have been longer, or ended earlier.
        let begin = &part[..part.len().min(16)];
        let found = memmem::find(&rest[..rest.len().min(form)], begin).unwrap_or(rest.len());
        return part.iter().zip(&rest[found..]).take_while(|(a, b)| a == b).count();
    };
    *ends = Some((range.end, before.len() - rest.len() + found + part.len()));
    part.len()
}

//! From pieces and encoded bytes to segments that cover the body.

use model::EncodedRequest;

use crate::estimate::Estimator;
use crate::piece::{ContextError, Owners, RequestPiece};
use crate::segment::{Kind, Segment, SegmentOutcome, Source};

/// The segments of an encoded request: every byte of the body in exactly one, pieces in the order they stand,
/// the form between them named as framing, and behind them what was left out.
///
/// # Errors
/// [`ContextError::Uncovered`] when a part of the body belongs to no piece, or two pieces overlap. Nothing may
/// be sent then.
pub fn cover(
    encoded: &EncodedRequest,
    pieces: &[RequestPiece],
    estimator: &Estimator,
) -> Result<Vec<Segment>, ContextError> {
    let owners = Owners::of(pieces);
    // From the first to the last byte of each piece; what lies between two of its parts is its own form.
    let mut spans: Vec<(usize, u64, u64)> = Vec::new();
    for range in encoded.ranges() {
        let (from, to) = (range.bytes.start as u64, range.bytes.end as u64);
        let piece = owners.piece(range.part).ok_or(ContextError::Uncovered { from, to })?;
        if let Some(last) = spans.last_mut().filter(|last| last.0 == piece) {
            last.2 = to;
        } else if spans.iter().any(|span| span.0 == piece) {
            return Err(ContextError::Uncovered { from, to });
        } else {
            spans.push((piece, from, to));
        }
    }
    let mut segments = Vec::new();
    let mut at = 0;
    for (piece, from, to) in spans {
        if from > at {
            segments.push(framing(encoded, at, from, estimator));
        }
        segments.push(segment(&pieces[piece], Some((from, to))));
        at = to;
    }
    let len = encoded.body().len() as u64;
    if len > at {
        segments.push(framing(encoded, at, len, estimator));
    }
    let unsent = pieces.iter().filter(|piece| matches!(piece.decision, SegmentOutcome::LeftOut { .. }));
    segments.extend(unsent.map(|piece| segment(piece, None)));
    check(&segments, len)?;
    Ok(segments)
}

/// No gap and no overlap from the first byte to the last.
fn check(segments: &[Segment], len: u64) -> Result<(), ContextError> {
    let mut at = 0;
    for (from, to) in segments.iter().filter_map(|segment| segment.bytes) {
        if from != at || to < from {
            return Err(ContextError::Uncovered { from: at.min(from), to: at.max(from) });
        }
        at = to;
    }
    if at == len { Ok(()) } else { Err(ContextError::Uncovered { from: at, to: len }) }
}

fn segment(piece: &RequestPiece, bytes: Option<(u64, u64)>) -> Segment {
    Segment {
        kind: piece.kind,
        source: piece.source.clone(),
        reason: piece.reason.clone(),
        chars: piece.chars,
        tokens: piece.tokens,
        bytes,
        stable: piece.stable,
        trust: piece.trust,
        decision: piece.decision.clone(),
        tools: piece.tools.clone(),
    }
}

fn framing(encoded: &EncodedRequest, from: u64, to: u64, estimator: &Estimator) -> Segment {
    let bytes = &encoded.body()[from as usize..to as usize];
    let text = String::from_utf8_lossy(bytes);
    Segment {
        kind: Kind::Framing,
        source: Source::Dialect,
        reason: "the form of the dialect".to_owned(),
        chars: text.chars().count() as u64,
        // What a server makes of JSON syntax and parameters costs next to nothing; messages are counted apart.
        tokens: estimator.of_messages(0),
        bytes: Some((from, to)),
        stable: from == 0,
        trust: None,
        decision: SegmentOutcome::Sent,
        tools: Vec::new(),
    }
}

//! Where an answer ends though its model would write on.

use model::Params;
use text::cut::{Boundary, BoundaryScan};

/// The end of the first sentence or paragraph, and the beginnings of texts that stop an answer: whichever comes first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AnswerEnd {
    boundary: Option<Boundary>,
    /// None of them is empty.
    stops: Vec<String>,
}

impl AnswerEnd {
    pub(crate) fn new(boundary: Option<Boundary>, stops: &[String]) -> Self {
        let stops = stops.iter().filter(|stop| !stop.is_empty()).cloned().collect();
        Self { boundary, stops }
    }

    pub(crate) fn of(params: &Params) -> Self {
        Self::new(params.ends_at, &params.stop)
    }

    /// Whether an answer ends where its model ends it.
    pub(crate) const fn is_none(&self) -> bool {
        self.boundary.is_none() && self.stops.is_empty()
    }

    /// The offset at which a whole text is cut; none if it ends by itself.
    pub(crate) fn find(&self, text: &str) -> Option<usize> {
        self.find_arriving(text, 0, &mut BoundaryScan::default())
    }

    /// The offset at which a text that arrives is cut; none if it goes on. No stop begins before `clear`. `scan` was used
    /// for this text alone.
    ///
    /// However a text arrives, it is cut at the same place, if what stands behind [`Self::open_from`] waits.
    pub(crate) fn find_arriving(&self, text: &str, clear: usize, scan: &mut BoundaryScan) -> Option<usize> {
        let rest = &text[clear..];
        let stop = self.stops.iter().filter_map(|stop| rest.find(stop)).min().map(|at| clear + at);
        let boundary = self.boundary.filter(|_| !Boundary::is_too_long(&text[..clear]));
        boundary.and_then(|boundary| scan.first_end(boundary, text)).into_iter().chain(stop).min()
    }

    /// The offset from which the end of a text may be the beginning of a stop; the length of the text, if it is none. No
    /// stop begins before `clear`.
    pub(crate) fn open_from(&self, text: &str, clear: usize) -> usize {
        let rest = &text[clear..];
        let begun = |stop: &String| {
            let lengths = stop.char_indices().map(|(at, _)| at).rev();
            lengths.take_while(|length| *length > 0).find(|length| rest.ends_with(&stop[..*length]))
        };
        text.len() - self.stops.iter().filter_map(begun).max().unwrap_or_default()
    }
}

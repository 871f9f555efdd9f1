//! The text of a card as it is sent: sanitised, cut, and framed so that nothing in it closes the frame (spec:
//! capabilities §4–5).

use text::cut::beginning;
use text::frame::TextFrame;
use text::sanitiser::sanitise;

use crate::card::Card;
use crate::selection::label;

/// Mark of a text that was cut; its characters count.
const CUT: &str = "\n[…]";

/// Characters of a hash in a frame.
const SHOWN_OF_HASH: usize = 12;

/// Body of a card without what speaks in another's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SanitisedBody {
    pub text: String,
    /// Whether its end was cut off.
    pub is_cut: bool,
}

/// The body of a card, sanitised and of at most as many characters as the card allows. Empty where nothing of it fits.
#[must_use]
pub fn sanitised_body(card: &Card) -> SanitisedBody {
    let text = sanitise(card.body.trim()).text;
    if text.chars().count() <= card.max_chars {
        return SanitisedBody { text: text.into_owned(), is_cut: false };
    }
    let kept = beginning(&text, card.max_chars.saturating_sub(CUT.chars().count()));
    // A cut may divide what was one line, so that its parts are looked at again.
    let kept = sanitise(kept).text;
    let text = if kept.trim().is_empty() { String::new() } else { [&kept, CUT].concat() };
    SanitisedBody { text, is_cut: true }
}

/// A body in the frame of its card.
pub(crate) fn framed(card: &Card, body: &str) -> String {
    let hash = card.digest.to_string();
    let hash = hash.get(..SHOWN_OF_HASH).unwrap_or(&hash);
    TextFrame::around(&format!("{} {} {hash}", label(card.source), card.id), body).wrap(body)
}

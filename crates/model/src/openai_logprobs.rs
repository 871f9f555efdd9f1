//! Log-probabilities in OpenAI's two forms: the lists of completions and the objects of chat.

use crate::event::{TokenLogprob, TopToken};
use crate::openai_wire::{WireLogprobs, WireText, WireToken};

/// The tokens of one chunk; several servers answer completions in the form of chat.
pub(crate) fn tokens(wire: WireLogprobs) -> Vec<TokenLogprob> {
    let mut tokens: Vec<TokenLogprob> =
        wire.content.into_iter().chain(wire.refusal).flatten().map(chat_token).collect();
    let mut logprobs = wire.token_logprobs.unwrap_or_default().into_iter();
    let mut tops = wire.top_logprobs.unwrap_or_default().into_iter();
    for token in wire.tokens.unwrap_or_default() {
        let (token, bytes) = spelled(token);
        let top = tops.next().flatten().unwrap_or_default().0.into_iter().map(|(token, logprob)| {
            let (token, bytes) = spelled(token);
            TopToken { token, bytes, logprob }
        });
        let logprob = logprobs.next().flatten();
        tokens.push(TokenLogprob { token, bytes, logprob, top: likeliest_first(top.collect()) });
    }
    tokens
}

fn chat_token(wire: WireToken) -> TokenLogprob {
    let (token, bytes) = named(wire.token, wire.bytes);
    let top = wire.top_logprobs.unwrap_or_default().into_iter().filter_map(|wire| {
        let (token, bytes) = named(wire.token, wire.bytes);
        wire.logprob.map(|logprob| TopToken { token, bytes, logprob })
    });
    TokenLogprob { token, bytes, logprob: wire.logprob, top: likeliest_first(top.collect()) }
}

/// Tokens spelled alike keep the server's order.
fn likeliest_first(mut top: Vec<TopToken>) -> Vec<TopToken> {
    top.sort_by(|a, b| b.logprob.total_cmp(&a.logprob));
    top
}

fn named(token: WireText, bytes: Option<Vec<u8>>) -> (String, Vec<u8>) {
    match bytes {
        Some(bytes) => (String::from_utf8_lossy(&bytes).into_owned(), bytes),
        None => (String::from_utf8_lossy(&token.0).into_owned(), token.0),
    }
}

/// Completions name a token that is no text by its bytes: `bytes:\xe4\xb8`.
fn spelled(token: WireText) -> (String, Vec<u8>) {
    let bytes = token.0.strip_prefix(b"bytes:").and_then(escaped_bytes).unwrap_or(token.0);
    (String::from_utf8_lossy(&bytes).into_owned(), bytes)
}

fn escaped_bytes(escapes: &[u8]) -> Option<Vec<u8>> {
    if escapes.is_empty() || !escapes.len().is_multiple_of(4) {
        return None;
    }
    escapes
        .chunks(4)
        .map(|escape| {
            let digits = std::str::from_utf8(escape.strip_prefix(b"\\x")?).ok()?;
            u8::from_str_radix(digits, 16).ok()
        })
        .collect()
}

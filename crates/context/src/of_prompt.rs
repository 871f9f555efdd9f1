//! The request of a prompt that was put together elsewhere: what an observer, a wrap or a router asks (spec: context §1).

use std::collections::HashMap;

use loom::{NodeId, Trust};
use model::Prompt;

use crate::budget::TokenBudget;
use crate::estimate::Estimator;
use crate::piece::{Assembled, ContextError, RequestPiece};
use crate::segment::Source;

/// A request of a prompt and the pieces its parts belong to. Sizes of pieces of text are counted here; others keep those
/// they have.
///
/// # Errors
/// [`ContextError::Empty`] when there is no part at all, [`ContextError::TooLong`] when it does not fit: nothing of a
/// prompt may leave.
pub fn of_prompt(
    mut prompt: Prompt,
    mut pieces: Vec<RequestPiece>,
    budget: TokenBudget,
    estimator: &Estimator,
) -> Result<Assembled, ContextError> {
    let texts: HashMap<_, _> = prompt
        .texts_mut()
        .into_iter()
        .map(|(part, text)| (part, (text.chars().count() as u64, estimator.of(text))))
        .collect();
    for piece in &mut pieces {
        let counted: Vec<_> = piece.parts.iter().filter_map(|part| texts.get(part)).collect();
        if !counted.is_empty() {
            piece.chars = counted.iter().map(|(chars, _)| chars).sum();
            piece.tokens = counted.iter().map(|(_, tokens)| tokens).sum();
        }
    }
    if pieces.iter().all(|piece| piece.parts.is_empty()) {
        return Err(ContextError::Empty);
    }
    let messages = estimator.of_messages(messages(&prompt));
    let tokens = pieces.iter().map(|piece| piece.tokens).sum::<u64>() + messages;
    if tokens > budget.budget {
        let what = "the prompt".to_owned();
        return Err(ContextError::TooLong { what, needed: tokens, budget: budget.budget });
    }
    Ok(Assembled {
        tokens,
        trust: pieces.iter().filter_map(|piece| piece.trust).min().unwrap_or(Trust::Owner),
        tainted_by: pieces.iter().find_map(tainting),
        prompt,
        pieces,
        runs: Vec::new(),
        left: Vec::new(),
        prefix: None,
        injected: Vec::new(),
        notices: Vec::new(),
        way: None,
        held: String::new(),
        new_start: None,
        begins: None,
        inputs: Vec::new(),
    })
}

/// Messages of a prompt that its model's template puts something around. Raw text has none.
pub(crate) fn messages(prompt: &Prompt) -> usize {
    match prompt {
        Prompt::Raw(_) => 0,
        Prompt::Chat(chat) => chat.messages.len() + usize::from(chat.prefill.is_some()),
    }
}

/// The node of trust `outside` that a piece is, if it is one.
fn tainting(piece: &RequestPiece) -> Option<NodeId> {
    match (&piece.source, piece.trust) {
        (Source::Node { node, .. } | Source::Injection { node, .. }, Some(Trust::Outside)) => Some(*node),
        _ => None,
    }
}

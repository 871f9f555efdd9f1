//! Handoffs: what a wrap did, and earlier ones.

use commands::results::Told;
use commands::results::handoff::{EarlierHandoff, HandoffHistory, WrapShown, WrapUndone};

use super::columns::moment;
use super::table::columns;
use super::{OutputStyle, RenderedOutcome, done};

pub(super) fn wrapped(told: &Told<WrapShown>, to: OutputStyle) -> RenderedOutcome {
    let said = done(&told.result.wrap, &to.line(&told.sentence), to);
    with_difference(said, told.result.difference.as_deref(), to)
}

pub(super) fn undone(told: &Told<WrapUndone>, to: OutputStyle) -> RenderedOutcome {
    let said = done(&told.result.wrap, &to.line(&told.sentence), to);
    with_difference(said, told.result.difference.as_deref(), to)
}

/// With the difference to a text that stays.
fn with_difference(mut said: RenderedOutcome, difference: Option<&str>, to: OutputStyle) -> RenderedOutcome {
    let lines = difference.unwrap_or_default().lines();
    said.notices.extend(lines.map(|line| to.text(line).into_owned()));
    said.behind()
}

pub(super) fn history(found: &HandoffHistory, to: OutputStyle) -> String {
    let row = |one: &EarlierHandoff| {
        vec![
            one.wrap.clone(),
            to.line(&one.session).into_owned(),
            moment(one.at.0),
            text::bytes::size(one.bytes),
            to.line(&one.path.to_string_lossy()).into_owned(),
        ]
    };
    columns(&found.handoffs.iter().map(row).collect::<Vec<_>>(), &[4], to)
}

//! Subagents of a conversation: how they stand, and what they came to.

use commands::results::subagents::{SubagentShown, SubagentsShown};
use text::number::grouped;

use super::columns::count;
use super::{OutputStyle, RenderedOutcome, table};

pub(super) fn list(found: &SubagentsShown, to: OutputStyle) -> RenderedOutcome {
    let row = |one: &SubagentShown| -> Vec<String> {
        let why = if one.why.is_empty() { String::new() } else { format!(": {}", one.why) };
        let [asked, called] = [one.model_calls, one.tool_calls].map(u64::from);
        let asked = count(asked, "request", "requests");
        let denied = (one.denied_calls > 0).then(|| format!(", {} denied", one.denied_calls));
        let calls = format!("{asked}, {}{}", count(called, "call", "calls"), denied.unwrap_or_default());
        let on = one.model.iter().map(|model| format!(" on {model}")).collect::<String>();
        let tokens = format!("{} tokens", grouped(one.tokens));
        let cost = model::Money::from_dollars(one.cost).to_string();
        let cells = [
            one.session.clone(),
            format!("{}{on}", one.label),
            format!("{}{why}", one.state),
            calls,
            tokens,
            cost,
        ];
        cells.map(|cell| to.line(&cell).into_owned()).into()
    };
    let rows: Vec<Vec<String>> = found.subagents.iter().map(row).collect();
    RenderedOutcome::new(table::explained(&rows, to)).or_saying(to, "no subagents in this session")
}

//! Ledger of a session.

use commands::results::outcomes::{OutcomeShown, OutcomesShown};
use loom::Trust;

use super::{OutputStyle, table};

pub(super) fn list(found: &OutcomesShown, to: OutputStyle) -> String {
    let row = |one: &OutcomeShown| -> Vec<String> {
        let corrects = one.corrects.map(|id| format!("corrects {id}"));
        let marks = [
            one.struck.then(|| "struck".to_owned()),
            corrects,
            (one.trust == Trust::Outside).then(|| "from outside".to_owned()),
        ];
        let marks: Vec<String> = marks.into_iter().flatten().collect();
        let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
        let text = to.line(&one.text);
        vec![one.id.to_string(), one.kind.word().to_owned(), format!("{text}{marks}")]
    };
    table::explained(&found.outcomes.iter().map(row).collect::<Vec<_>>(), to)
}

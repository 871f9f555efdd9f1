//! What was spent.

use std::fmt::Write as _;

use commands::args::cost::Period;
use commands::results::cost::{CostRow, Costs};
use model::Money;

use super::Plain;
use super::columns::columns;

pub(super) fn costs(found: &Costs, to: Plain) -> String {
    let money = |dollars: f64| Money::from_dollars(dollars).to_string();
    let row = |row: &CostRow| {
        vec![
            to.line(&row.key).into_owned(),
            format!("{} calls", row.calls),
            format!("{} in, {} cached, {} out", row.input_uncached, row.cache_read, row.output),
            row.cost.map_or_else(|| "price not known".to_owned(), money),
        ]
    };
    let mut out = columns(&found.rows.iter().map(row).collect::<Vec<_>>());
    let period = match found.period {
        Period::Today => "today",
        Period::Month => "this month",
        Period::All => "in all",
    };
    let _ = writeln!(out, "{} {period}", money(found.total));
    if found.unpriced_tokens > 0 {
        let _ = writeln!(out, "and {} tokens whose price is not known", found.unpriced_tokens);
    }
    let limits = &found.limits;
    let _ = writeln!(
        out,
        "{}",
        to.dim(&format!(
            "today {} of {}, this month {} of {}; {} a turn",
            money(limits.spent_today),
            money(limits.day),
            money(limits.spent_this_month),
            money(limits.month),
            money(limits.turn)
        ))
    );
    out
}

//! What was spent.

use std::fmt::Write as _;

use commands::args::cost::Period;
use commands::results::cost::{CostRow, Costs};
use model::Money;

use super::OutputStyle;
use super::columns::{count, wrapped};
use super::table::columns;

pub(super) fn costs(found: &Costs, to: OutputStyle) -> String {
    let money = |dollars: f64| Money::from_dollars(dollars).to_string();
    let row = |row: &CostRow| {
        vec![
            to.line(&row.key).into_owned(),
            count(row.calls, "call", "calls"),
            tokens(row),
            row.cost.map_or_else(|| "price not known".to_owned(), money),
        ]
    };
    let mut out = columns(&found.rows.iter().map(row).collect::<Vec<_>>(), &[0], to);
    let period = match found.period {
        Period::Today => "today",
        Period::Month => "this month",
        Period::All => "in all",
    };
    let _ = writeln!(out, "{} {period}", money(found.total));
    if found.unpriced_tokens > 0 {
        let said = format!("and {} tokens whose price is not known", found.unpriced_tokens);
        out += &wrapped(&said, "", to);
    }
    let limits = &found.limits;
    let said = format!(
        "today {} of {}{}, this month {} of {}{}; {} a turn",
        money(limits.spent_today),
        money(limits.day),
        percent(limits.share_of_day),
        money(limits.spent_this_month),
        money(limits.month),
        percent(limits.share_of_month),
        money(limits.turn)
    );
    out += &wrapped(&to.dim(&said), "", to);
    out
}

fn tokens(row: &CostRow) -> String {
    let written = match row.cache_write {
        Some(written) if written > 0 => format!(", {written} written to a cache"),
        _ => String::new(),
    };
    format!("{} in, {} cached{written}, {} out", row.input_uncached, row.cache_read, row.output)
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| format!(" ({:.0} %)", share * 100.0))
}

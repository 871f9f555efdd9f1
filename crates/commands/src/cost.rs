//! `cost`: what was spent, by model, purpose or conversation. It asks nobody; prices were kept with each answer, so
//! that a change of the catalogue does not change the past.

use std::collections::BTreeMap;

use agent::purse::{start_of_day, start_of_month};
use context::Manifest;
use loom::{GenerationId, GenerationRow, Millis, TreeId};
use model::Money;
use store::{GenerationFilter, SessionFilter, Usage, UsageRow};

use crate::app::App;
use crate::args::cost::{By, Cost, Period};
use crate::error::CommandError;
use crate::results::Outcome;
use crate::results::cost::{CostRow, Costs, Limits};
use crate::rights::Asker;

/// Runs it.
pub(crate) async fn cost(app: &App, asker: &Asker, args: Cost) -> Result<Outcome, CommandError> {
    let now = app.now();
    let (today, month) = (start_of_day(now), start_of_month(now));
    let since = match args.period {
        Period::Today => today,
        Period::Month => month,
        Period::All => Millis(0),
    };
    let used = app.store.usage(&asker.principal, None, since.min(month)).await?;
    let spent = |since: Millis| known(used.iter().filter(|row| row.at >= since)).dollars();
    let budget = app.purse.budget();
    let limits = Limits {
        turn: budget.turn.dollars(),
        day: budget.day.dollars(),
        month: budget.month.dollars(),
        spent_today: spent(today),
        spent_this_month: spent(month),
    };
    let shown: Vec<&UsageRow> = used.iter().filter(|row| row.at >= since).collect();
    let keys = Keys::read(app, asker, &shown, args.by).await?;
    let mut rows: BTreeMap<String, Usage> = BTreeMap::new();
    for row in &shown {
        let key = keys.of(row);
        let sum = rows.entry(key).or_insert(Usage { micro_cost: Some(0), ..Usage::default() });
        *sum = sum.plus(row.usage);
    }
    let mut rows: Vec<CostRow> = rows.into_iter().map(|(key, usage)| row(key, usage)).collect();
    // What is not known stands first: it may be anything.
    rows.sort_by(|a, b| {
        let worth = |row: &CostRow| row.cost.unwrap_or(f64::INFINITY);
        worth(b).total_cmp(&worth(a)).then_with(|| a.key.cmp(&b.key))
    });
    let unpriced = shown.iter().filter(|row| row.usage.micro_cost.is_none());
    Ok(Outcome::Cost(Costs {
        period: args.period,
        by: args.by,
        total: known(shown.iter().copied()).dollars(),
        currency: "USD",
        unpriced_tokens: unpriced.map(|row| row.usage.prompt_tokens + row.usage.completion_tokens).sum(),
        rows,
        limits,
    }))
}

/// What is known to have been spent.
fn known<'a>(rows: impl Iterator<Item = &'a UsageRow>) -> Money {
    rows.filter_map(|row| Some(Money(row.usage.micro_cost?.saturating_mul(1_000)))).sum()
}

fn row(key: String, usage: Usage) -> CostRow {
    CostRow {
        key,
        calls: usage.calls,
        input_uncached: usage.prompt_tokens.saturating_sub(usage.cached_tokens),
        cache_read: usage.cached_tokens,
        cache_write: None,
        output: usage.completion_tokens,
        cost: usage.micro_cost.map(|micro| micro as f64 / 1e6),
    }
}

/// What each generation is counted under.
enum Keys {
    Generations(BTreeMap<GenerationId, String>),
    Trees(BTreeMap<TreeId, String>),
}

impl Keys {
    async fn read(app: &App, asker: &Asker, rows: &[&UsageRow], by: By) -> Result<Self, CommandError> {
        let who = &asker.principal;
        if by == By::Session {
            let all = SessionFilter { workspace: None, name: None, archived: true };
            let sessions = app.store.sessions(who, all).await?;
            let trees = sessions
                .iter()
                .flat_map(|session| session.trees.iter().map(|tree| (tree.id, session.name.clone())));
            return Ok(Self::Trees(trees.collect()));
        }
        let mut keys = BTreeMap::new();
        let mut trees: Vec<TreeId> = rows.iter().map(|row| row.tree).collect();
        trees.sort();
        trees.dedup();
        for tree in trees {
            let filter = GenerationFilter { tree: Some(tree), ..GenerationFilter::default() };
            for generation in app.store.generations(who, filter).await? {
                let row = generation.row;
                if !rows.iter().any(|used| used.generation == row.id) {
                    continue;
                }
                let key = match by {
                    By::Purpose => row.purpose.as_str().to_owned(),
                    _ => model_of(app, asker, &row).await,
                };
                keys.insert(row.id, key);
            }
        }
        Ok(Self::Generations(keys))
    }

    fn of(&self, row: &UsageRow) -> String {
        let found = match self {
            Self::Generations(keys) => keys.get(&row.generation).cloned(),
            Self::Trees(keys) => keys.get(&row.tree).cloned().or_else(|| Some(format!("tree {}", row.tree))),
        };
        found.unwrap_or_else(|| "unknown".to_owned())
    }
}

/// The model of a generation, as its manifest has it; a request that was forgotten has none.
async fn model_of(app: &App, asker: &Asker, row: &GenerationRow) -> String {
    let bytes = app.store.manifest(&asker.principal, row.manifest).await.ok();
    let manifest = bytes.and_then(|bytes| Manifest::from_bytes(&bytes).ok());
    manifest.map_or_else(
        || "unknown".to_owned(),
        |found| format!("{}/{}", found.model.provider, found.model.name),
    )
}

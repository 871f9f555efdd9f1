//! `cost`: what was spent, by model, purpose or conversation. It asks nobody; prices were kept with each answer, so
//! that a change of the catalogue does not change the past. Usage is read a page at a time: of a home of many years
//! only the sums are held.

use std::collections::BTreeMap;

use agent::spend::{start_of_day, start_of_month};
use context::Manifest;
use loom::{Digest, Millis, TreeId};
use model::Money;
use store::{
    GenerationCost, LIST_PAGE, Principal, Session, SessionFilter, SessionId, SpentRow, Store, StoreError,
    TreeEntry, TreeFilter, all_pages,
};

use crate::app::App;
use crate::args::cost::{Cost, CostGrouping, Period};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::cost::{CostRow, Costs, LimitsShown, SessionCost};
use crate::rights::Asker;

/// Rows of usage read at a time.
const PAGE: usize = 1_000;

pub(crate) async fn cost(app: &App, asker: &Asker, args: Cost) -> Result<CommandOutcome, CommandError> {
    let now = app.now();
    let (today, month) = (start_of_day(now), start_of_month(now));
    let since = match args.period {
        Period::Today => today,
        Period::Month => month,
        Period::All => Millis(0),
    };
    let keys = Keys::read(app, asker, args.by).await?;
    let (mut sums, mut after) = (BTreeMap::<String, Sum>::new(), None);
    let (mut total, mut of_day, mut of_month, mut unpriced) = (Money::ZERO, Money::ZERO, Money::ZERO, 0);
    loop {
        let page = app.runtime.store.spent(&asker.principal, since.min(month), after, PAGE).await?;
        for spent in &page {
            let (at, usage) = (spent.row.at, spent.row.usage);
            let known = Money(usage.micro_cost.unwrap_or_default().saturating_mul(1_000));
            of_day += if at >= today { known } else { Money::ZERO };
            of_month += if at >= month { known } else { Money::ZERO };
            if at < since {
                continue;
            }
            total += known;
            if usage.micro_cost.is_none() {
                unpriced += usage.prompt_tokens + usage.completion_tokens;
            }
            sums.entry(keys.of(app, asker, spent).await).or_default().add(spent);
        }
        after = page.last().map(|last| (last.row.at, last.row.generation));
        if page.len() < PAGE {
            break;
        }
    }
    let mut rows: Vec<CostRow> = sums.into_iter().map(|(key, sum)| sum.row(key)).collect();
    // What is not known stands first: it may be anything.
    rows.sort_by(|a, b| {
        let worth = |row: &CostRow| row.cost.unwrap_or(f64::INFINITY);
        worth(b).total_cmp(&worth(a)).then_with(|| a.key.cmp(&b.key))
    });
    let budget = app.runtime.spend.budget();
    let share = |spent: Money, limit: Money| (limit > Money::ZERO).then(|| spent.dollars() / limit.dollars());
    Ok(CommandOutcome::Cost(Costs {
        period: args.period,
        by: args.by,
        total: total.dollars(),
        currency: "USD",
        unpriced_tokens: unpriced,
        rows,
        limits: LimitsShown {
            turn: budget.turn.dollars(),
            day: budget.day.dollars(),
            month: budget.month.dollars(),
            spent_today: of_day.dollars(),
            spent_this_month: of_month.dollars(),
            share_of_day: share(of_day, budget.day),
            share_of_month: share(of_month, budget.month),
        },
    }))
}

/// What the session of a tree came to, with its other trees.
///
/// # Errors
/// As the store says.
pub(crate) async fn of_session(
    store: &Store,
    who: &Principal,
    tree: TreeId,
) -> Result<SessionCost, StoreError> {
    let session = match store.tree(who, tree).await?.session {
        Some(id) => store.session(who, &SessionId(id)).await?,
        None => None,
    };
    let mut trees: Vec<TreeId> =
        session.map_or_else(Vec::new, |session| session.trees.iter().map(|tree| tree.id).collect());
    if trees.is_empty() {
        trees.push(tree);
    }
    let (mut known, mut unpriced_tokens) = (0, 0);
    for tree in trees {
        let spent = store.spent_in(who, tree).await?;
        (known, unpriced_tokens) = (known + spent.micro_dollars, unpriced_tokens + spent.unpriced_tokens);
    }
    Ok(SessionCost { total: known as f64 / 1e6, unpriced_tokens })
}

struct Sum {
    usage: GenerationCost,
    /// Written to caches; none where that is not known of some of it.
    cache_write: Option<u64>,
    /// What is known of it.
    known_write: u64,
}

impl Default for Sum {
    fn default() -> Self {
        let usage = GenerationCost { micro_cost: Some(0), ..GenerationCost::default() };
        Self { usage, cache_write: Some(0), known_write: 0 }
    }
}

impl Sum {
    fn add(&mut self, spent: &SpentRow) {
        self.usage = self.usage.plus(spent.row.usage);
        self.known_write += spent.cache_write.unwrap_or_default();
        self.cache_write = self.cache_write.zip(spent.cache_write).map(|(one, two)| one + two);
    }

    fn row(self, key: String) -> CostRow {
        let Self { usage, cache_write, known_write } = self;
        CostRow {
            key,
            calls: usage.calls,
            input_uncached: usage.prompt_tokens.saturating_sub(usage.cached_tokens + known_write),
            cache_read: usage.cached_tokens,
            cache_write,
            output: usage.completion_tokens,
            cost: usage.micro_cost.map(|micro| micro as f64 / 1e6),
        }
    }
}

/// What usage is counted under.
enum Keys {
    Purposes,
    Models,
    Trees(BTreeMap<TreeId, String>),
}

impl Keys {
    async fn read(app: &App, asker: &Asker, by: CostGrouping) -> Result<Self, CommandError> {
        match by {
            CostGrouping::Purpose => Ok(Self::Purposes),
            CostGrouping::Model => Ok(Self::Models),
            CostGrouping::Session => {
                let all = SessionFilter { workspace: None, name: None, archived: true };
                let store = &app.runtime.store;
                let page = |after| store.sessions(&asker.principal, all.clone(), after, LIST_PAGE);
                let sessions = all_pages(Session::place, page).await?;
                let page = |after| store.trees(&asker.principal, TreeFilter::All, after, LIST_PAGE);
                let trees = all_pages(TreeEntry::place, page).await?;
                Ok(Self::Trees(names(&sessions, &trees)))
            }
        }
    }

    async fn of(&self, app: &App, asker: &Asker, spent: &SpentRow) -> String {
        match self {
            Self::Purposes => spent.purpose.as_str().to_owned(),
            Self::Models => model_of(app, asker, spent.manifest).await,
            Self::Trees(names) => {
                names.get(&spent.row.tree).cloned().unwrap_or_else(|| "(forgotten)".to_owned())
            }
        }
    }
}

/// What each tree is called: its session, else its title, else its short id. What several are called alike is told
/// apart by workspace or short id.
fn names(sessions: &[Session], trees: &[TreeEntry]) -> BTreeMap<TreeId, String> {
    let mut owned = BTreeMap::new();
    for session in sessions {
        let is_shared = sessions.iter().any(|other| other.name == session.name && other.id != session.id);
        let name = match is_shared {
            true => format!("{} ({})", session.name, session.workspace),
            false => session.name.clone(),
        };
        owned.extend(session.trees.iter().map(|tree| (tree.id, name.clone())));
    }
    let mut titles = BTreeMap::<&str, usize>::new();
    trees.iter().for_each(|tree| *titles.entry(&tree.title).or_default() += 1);
    for tree in trees {
        let name = match (tree.title.as_str(), titles.get(tree.title.as_str())) {
            ("", _) => format!("tree {}", tree.short_id),
            (title, Some(1)) => title.to_owned(),
            (title, _) => format!("{title} ({})", tree.short_id),
        };
        owned.entry(tree.id).or_insert(name);
    }
    owned
}

/// The model of a request, as its manifest has it; a request that was forgotten has none.
async fn model_of(app: &App, asker: &Asker, manifest: Digest) -> String {
    let bytes = app.runtime.store.manifest(&asker.principal, manifest).await.ok();
    let manifest = bytes.and_then(|bytes| Manifest::from_bytes(&bytes).ok());
    manifest.map_or_else(|| "(forgotten)".to_owned(), |found| found.model.full_name())
}

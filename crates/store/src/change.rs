//! Reading, planning and applying a change of a tree.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use loom::id::Entropy;
use loom::plan::plan;
use loom::render::tip;
use loom::{IdSource, NodeId, Op, Plan, PlanError, ReadSet, Refusal, RowError, TreeReader, ViewName};

use crate::apply::{Applied, AttachedWrites};
use crate::db::Db;
use crate::error::StoreError;
use crate::identity::random;
use crate::preconditions::{Preconditions, is_row};
use crate::principal::Principal;
use crate::rows::{events, reader};
use crate::store::Store;

/// Ids of one process, each greater than the one before.
#[derive(Debug, Default)]
pub struct Ids(Mutex<IdSource>);

impl Ids {
    /// A new source; one a process.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Calls `f` with fresh randomness. Ids made after it returned are greater than those it made; nothing is locked
    /// while it runs.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the system gives no randomness.
    pub fn with<T>(&self, f: impl FnOnce(&mut Entropy<'_>) -> T) -> Result<T, StoreError> {
        let random = u128::from_le_bytes(random()?);
        let source = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ids = source().clone();
        let answer = f(&mut Entropy { ids: &mut ids, random });
        source().catch_up(&ids);
        Ok(answer)
    }
}

/// How often a change is planned again when something else was first. Of n writers of one view each wins one round
/// in n, so that eight of them lose this often in a row once in 10¹⁴ changes.
const TRIES: usize = 256;

/// How often a plan may ask for more rows. Undo over forgotten versions asks most: twice for each operation it looks back
/// over.
const ROUNDS: usize = 64;

/// Makes a change: reads what its plan needs, plans within the same snapshot, applies; plans again on conflict.
///
/// # Errors
/// [`StoreError::Refused`] when the change is not allowed; [`StoreError::Conflict`] when something else was first
/// every time; whatever the store fails with.
pub async fn change(
    store: &Store,
    who: &Principal,
    request: loom::plan::Request,
    with: AttachedWrites,
    ids: &Arc<Ids>,
) -> Result<Applied, StoreError> {
    if matches!(request.op, Op::Create(_)) {
        let planned = ids.with(|entropy| plan(&request, &ReadSet::default(), entropy))?;
        return store.apply(who, request.tree, finished(planned)?, with).await;
    }
    change_announced(store, who, request, with, ids, |_| std::future::ready(())).await
}

/// Makes a change of a tree that exists, as [`change`], and names the node it is about to make last before each try to
/// apply it: all of its nodes are written, or none.
///
/// # Errors
/// As [`change`].
pub async fn change_announced<F: Future<Output = ()>>(
    store: &Store,
    who: &Principal,
    request: loom::plan::Request,
    with: AttachedWrites,
    ids: &Arc<Ids>,
    announce: impl Fn(NodeId) -> F,
) -> Result<Applied, StoreError> {
    let mut tries = 1;
    loop {
        let PreparedChange { plan, preconditions } = prepare(store, who, request.clone(), ids).await?;
        if let Some(node) = plan.nodes.last() {
            announce(node.id).await;
        }
        let with = AttachedWrites { preconditions: Some(preconditions), ..with.clone() };
        // On the heap: futures hold futures, and plans are large.
        match Box::pin(store.apply(who, request.tree, plan, with)).await {
            Err(StoreError::Conflict(_)) if tries < TRIES => tries += 1,
            done => return done,
        }
    }
}

/// A plan, and what it rests on.
#[derive(Debug, Clone)]
pub struct PreparedChange {
    /// What is to be done.
    pub plan: Plan,
    /// What it was made from: to be applied with it ([`AttachedWrites::preconditions`]).
    pub preconditions: Preconditions,
}

/// Plans a change of a tree that exists, within one snapshot, without applying it.
///
/// # Errors
/// As [`change`].
pub async fn prepare(
    store: &Store,
    who: &Principal,
    request: loom::plan::Request,
    ids: &Arc<Ids>,
) -> Result<PreparedChange, StoreError> {
    let (who, ids) = (who.clone(), Arc::clone(ids));
    let work = move |db: &Db<'_>| {
        let (mut prepared, rests_on_rows) =
            reader::run(db, &who, request.tree, |rows| Ok(planned(&request, rows, &ids)))??;
        if rests_on_rows {
            prepared.preconditions.read_at = Some(events::last(db)?);
        }
        Ok(prepared)
    };
    store.read(work).await
}

/// Plans over rows, reading what the plan asks for; and whether it asked for rows that change only where they are
/// forgotten.
fn planned(
    request: &loom::plan::Request,
    rows: &dyn TreeReader,
    ids: &Ids,
) -> Result<(PreparedChange, bool), StoreError> {
    let (mut slice, mut asked) = (ReadSet::default(), BTreeSet::new());
    for _ in 0..ROUNDS {
        match ids.with(|entropy| plan(request, &slice, entropy))? {
            Err(PlanError::Needs(needs)) => {
                slice.load(&needs, rows)?;
                asked.extend(needs.0);
            }
            Err(PlanError::Refused(refusal)) => return Err(refused(refusal, &request.view, rows)),
            Ok(plan) => {
                let rests_on_rows = asked.iter().any(is_row);
                let preconditions = Preconditions::new(asked, slice, &plan);
                return Ok((PreparedChange { plan, preconditions }, rests_on_rows));
            }
        }
    }
    Err(StoreError::Malformed("a plan asks for rows without end".to_owned()))
}

/// Why a change is refused: as the plan says, unless it says so because the view's own rows are damaged.
fn refused(refusal: Refusal, view: &ViewName, rows: &dyn TreeReader) -> StoreError {
    let damaged = match (&refusal, tip(rows, view)) {
        (Refusal::NoView(name), Err(error @ RowError::Damaged { .. })) if name == view => Some(error),
        (Refusal::NoPosition(missing), Ok(tip)) if *missing == tip => Some(RowError::damaged("view", view)),
        _ => None,
    };
    damaged.map_or(StoreError::Refused(refusal), StoreError::Rows)
}

/// A plan that was made.
fn finished(planned: Result<Plan, PlanError>) -> Result<Plan, StoreError> {
    planned.map_err(|error| match error {
        PlanError::Refused(refusal) => StoreError::Refused(refusal),
        PlanError::Needs(needs) => StoreError::Malformed(format!("a plan lacks rows: {needs:?}")),
    })
}

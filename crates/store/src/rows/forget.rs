//! Forgetting in rows: what is to go is found in a snapshot, however long that takes, and removed a little at a time,
//! so that nobody who writes waits long. Then it is looked for again where something was written meanwhile, the last
//! time within the transaction that ends it.

mod find;
mod left;
mod removal;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use loom::{CellKey, Digest, GenerationId, Millis, NodeId, Seq, TreeId};

use super::generations::UNKNOWN_COST;
use super::trees::{TreeRef, find as find_tree};
use super::{
    attributions, calls, cell, commit, draft, events, file_changes, leases, node, operation, outcomes,
};
use crate::db::{Db, TreeKey, digest, get};
use crate::engine::Lock;
use crate::error::StoreError;
use crate::event::{Cursor, EventKind};
use crate::forget::{Forget, Forgotten, ForgottenPlace, Target, operation as record_of};
use crate::generation::GenerationState;
use crate::principal::{Principal, only_owner};
use crate::question::QuestionId;
use crate::session::SessionId;
use find::Found;
use left::begin_scrub;
pub(in crate::rows) use left::note_blob;
pub(crate) use left::{NOTE, TAKE_BACK, blob_removed, end_scrub, unfinished};
use removal::Removal;

/// Rows that one transaction removes at most.
pub(crate) const ROWS: usize = 32;

/// Bytes of indexed text that one transaction removes at most, but for a single node.
pub(crate) const TEXT: u64 = 32 * 1024;

/// How often what was written meanwhile is looked for before it is done with everybody waiting.
const ROUNDS: usize = 8;

#[derive(Debug, Clone)]
struct Goal {
    target: Target,
    /// Nodes that go, with those that quote them.
    nodes: BTreeSet<(TreeId, NodeId)>,
}

/// A forgetting under way: what is to go, and what of it was found. It can be gone on with after it ended, for what
/// was written meanwhile.
#[derive(Debug, Clone)]
pub struct Forgetting {
    goal: Arc<Goal>,
    /// What is to be removed, in portions of one transaction each.
    portions: VecDeque<Vec<(TreeKey, Removal)>>,
    /// The newest event of the moment it was looked for in.
    cursor: Cursor,
    rounds: usize,
    places: BTreeSet<ForgottenPlace>,
    /// Blobs that nothing shows any more.
    unshown: Vec<Digest>,
    done: Done,
}

/// What was done so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Done {
    /// Trees whose logs say that something was removed.
    recorded: BTreeSet<TreeId>,
    /// Blobs that removed nodes showed.
    blobs: BTreeSet<Digest>,
}

#[derive(Debug, Clone)]
pub(crate) struct Portion {
    goal: Arc<Goal>,
    removals: Vec<(TreeKey, Removal)>,
    done: Done,
}

impl Forgetting {
    /// Everywhere something is removed from.
    pub fn places(&self) -> Vec<ForgottenPlace> {
        self.places.iter().cloned().collect()
    }

    /// What was removed.
    pub(crate) fn forgotten(self, is_scrubbed: bool) -> Forgotten {
        Forgotten { places: self.places(), blobs: self.unshown, is_scrubbed }
    }

    /// Looks anew at what was written since, as often as at first.
    pub(crate) fn go_on(&mut self) {
        self.rounds = 0;
    }

    /// Whether there is more to be removed before it can be ended.
    pub(crate) fn has_more(&self) -> bool {
        !self.portions.is_empty()
    }

    /// What is to be removed next.
    pub(crate) fn next_portion(&mut self) -> Option<Portion> {
        let removals = self.portions.pop_front()?;
        Some(Portion { goal: Arc::clone(&self.goal), removals, done: self.done.clone() })
    }

    /// Notes that a portion was removed.
    pub(crate) fn removed(&mut self, done: Done) {
        self.done = done;
    }

    fn add(&mut self, found: Found) {
        self.cursor = found.cursor;
        let removals = found.removals.iter().map(|(_, removal)| removal);
        let named = removals.filter(|removal| !matches!(removal, Removal::UncitedBody(_)));
        self.places.extend(named.map(Removal::place));
        self.places.extend(found.damaged);
        let mut portion = Vec::new();
        let mut bytes = 0;
        for (tree, removal) in found.removals {
            if portion.len() >= ROWS || (!portion.is_empty() && bytes + removal.indexed() > TEXT) {
                self.portions.push_back(std::mem::take(&mut portion));
                bytes = 0;
            }
            bytes += removal.indexed();
            portion.push((tree, removal));
        }
        if !portion.is_empty() {
            self.portions.push_back(portion);
        }
    }
}

/// Finds what [`crate::Store::forget`] removes.
pub(crate) fn begin(db: &Db<'_>, who: &Principal, what: &Forget) -> Result<Forgetting, StoreError> {
    only_owner(who, "forget")?;
    let target = match what {
        Forget::Node { tree, node } => {
            let found = find_tree(db, who, *tree)?;
            let content = find::content_of(db, found, *node)?.ok_or(StoreError::NotFound("node"))?;
            Target::of_node(*tree, *node, &content)
        }
        Forget::Text(text) => Target::text(text)?,
    };
    begin_with(db, target)
}

/// Finds what [`crate::Store::purge`] removes.
pub(crate) fn begin_purge(db: &Db<'_>, who: &Principal, id: TreeId) -> Result<Forgetting, StoreError> {
    only_owner(who, "purge")?;
    find_tree(db, who, id)?;
    begin_with(db, Target::of_tree(id))
}

fn begin_with(db: &Db<'_>, target: Target) -> Result<Forgetting, StoreError> {
    let mut goal = Goal { target, nodes: BTreeSet::new() };
    let found = find::everywhere(db, &mut goal.target, &mut goal.nodes)?;
    let names = find::names(db, &goal.target)?.into_iter().map(|name| ForgottenPlace::Name { name });
    let mut forgetting = Forgetting {
        goal: Arc::new(goal),
        portions: VecDeque::new(),
        cursor: Cursor::default(),
        rounds: 0,
        places: names.collect(),
        unshown: Vec::new(),
        done: Done::default(),
    };
    forgetting.add(found);
    Ok(forgetting)
}

/// Looks, in a snapshot, where something was written since it was looked for last.
pub(crate) fn look_again(db: &Db<'_>, mut forgetting: Forgetting) -> Result<Forgetting, StoreError> {
    let goal = Arc::make_mut(&mut forgetting.goal);
    let found = find::since(db, &mut goal.target, &mut goal.nodes, forgetting.cursor)?;
    forgetting.add(found);
    forgetting.rounds += 1;
    Ok(forgetting)
}

pub(crate) fn remove(db: &Db<'_>, portion: &Portion, now: Millis) -> Result<Done, StoreError> {
    db.engine().lock(Lock::Everything)?;
    let mut done = portion.done.clone();
    remove_within(db, &portion.goal, &portion.removals, &mut done, now)?;
    Ok(done)
}

/// Ends it, unless much was written since: then there is more to be removed first.
pub(crate) fn end(db: &Db<'_>, mut forgetting: Forgetting, now: Millis) -> Result<Forgetting, StoreError> {
    db.engine().lock(Lock::Everything)?;
    let found = if events::last(db)? == forgetting.cursor {
        let removals = find::outside_trees(db, &forgetting.goal.target, &forgetting.goal.nodes)?;
        Found { cursor: forgetting.cursor, removals, damaged: Vec::new() }
    } else {
        let goal = Arc::make_mut(&mut forgetting.goal);
        find::since(db, &mut goal.target, &mut goal.nodes, forgetting.cursor)?
    };
    let is_much = found.removals.len() > ROWS;
    forgetting.add(found);
    if is_much && forgetting.rounds < ROUNDS {
        return Ok(forgetting);
    }
    let goal = Arc::clone(&forgetting.goal);
    let mut done = std::mem::take(&mut forgetting.done);
    while let Some(removals) = forgetting.portions.pop_front() {
        remove_within(db, &goal, &removals, &mut done, now)?;
    }
    // Also where nothing is left: a scrub that failed is done again.
    begin_scrub(db)?;
    if let Some(tree) = goal.target.tree {
        let tree = find_tree(db, &Principal::Owner, tree)?;
        // What is left could not be read.
        db.run("DELETE FROM drafts WHERE tree = ?1", [tree.key.0])?;
        cell::remove_texts(db, tree.key)?;
        calls::drop_all(db, tree.key)?;
        file_changes::drop_all(db, tree.key)?;
        outcomes::forget_tree(db, tree.key)?;
        record(db, &mut done, tree, now)?;
        db.run("UPDATE trees SET purged = 1, title = '' WHERE pk = ?1", [tree.key.0])?;
        // A turn that waits for its owner would write on. It is in the tree that its session goes on in.
        let sql = "SELECT t.session FROM trees t WHERE t.pk = ?1
             AND (NOT EXISTS (SELECT 1 FROM trees u WHERE u.session = t.session AND u.pk > t.pk)
                OR EXISTS (SELECT 1 FROM sessions s WHERE s.id = t.session AND s.tree = t.pk))";
        let session = db.one(sql, [tree.key.0], |row| get(row, 0))?;
        if let Some(session) = session.flatten() {
            leases::fence(db, &SessionId(session).lease())?;
        }
    }
    forgetting.unshown.clear();
    for blob in &done.blobs {
        if db.one("SELECT 1 FROM blobs WHERE digest = ?1", [blob.0], |_| Ok(()))?.is_none() {
            forgetting.unshown.push(*blob);
        }
    }
    forgetting.done = done;
    Ok(forgetting)
}

fn remove_within(
    db: &Db<'_>,
    goal: &Goal,
    removals: &[(TreeKey, Removal)],
    done: &mut Done,
    now: Millis,
) -> Result<(), StoreError> {
    begin_scrub(db)?;
    let (mut touched, mut keys) = (BTreeMap::new(), BTreeSet::new());
    for (tree, removal) in removals {
        apply(db, *tree, goal, removal, done)?;
        // Some belong to no tree.
        keys.extend((tree.0 != 0).then_some(*tree));
        if let Some(id) = removal.place().tree() {
            touched.insert(id, *tree);
        }
    }
    for (id, key) in touched {
        attributions::drop_all(db, key)?;
        record(db, done, TreeRef { key, id }, now)?;
    }
    // Of what was sent and received as well: a request may rest on it.
    keys.into_iter().try_for_each(|key| events::append(db, key, &EventKind::Removed))
}

/// Says in the log of a tree, once, that something was removed.
fn record(db: &Db<'_>, done: &mut Done, tree: TreeRef, now: Millis) -> Result<(), StoreError> {
    if done.recorded.insert(tree.id) {
        let head = commit::Head::read(db, tree)?;
        commit::append(db, tree, head, &record_of(tree.id, now), 0)?;
    }
    Ok(())
}

/// Stops an answer under way, in a tree that is locked: what its owner reports of it is refused from then on.
pub(crate) fn stop(db: &Db<'_>, tree: TreeKey, generation: GenerationId) -> Result<(), StoreError> {
    // What was sent may be billed, and nobody hears of it any more; whoever knows that it was refused says so
    // ([`super::generations::unbook`]).
    let sql = "INSERT INTO usage (generation, tree, at, calls, prompt, completion, cached, cost)
        SELECT id, tree, ?3, 1, reserved_tokens, 0, 0,
            CASE WHEN reserved > 0 OR reserved_tokens = 0 THEN reserved ELSE ?4 END
        FROM generations WHERE id = ?1 AND state = ?2 ON CONFLICT (generation) DO NOTHING";
    let [cancelled, started] =
        [GenerationState::Cancelled, GenerationState::Started].map(super::generations::state_code);
    db.run(sql, (generation.to_bytes(), started, db.now()?.0, UNKNOWN_COST))?;
    let sql =
        "UPDATE generations SET state = ?2, reserved = 0, reserved_tokens = 0 WHERE id = ?1 AND state = ?3";
    db.run(sql, (generation.to_bytes(), cancelled, started))?;
    events::append(db, tree, &EventKind::Generation { id: generation })
}

/// As [`crate::Store::stop`].
pub(crate) fn stop_all(
    db: &Db<'_>,
    who: &Principal,
    generations: &BTreeSet<GenerationId>,
) -> Result<(), StoreError> {
    only_owner(who, "stop")?;
    let sql = "SELECT tree FROM generations WHERE id = ?1";
    let mut of_trees: BTreeMap<TreeKey, Vec<GenerationId>> = BTreeMap::new();
    for generation in generations {
        if let Some(tree) = db.one(sql, [generation.to_bytes()], |row| Ok(TreeKey(get(row, 0)?)))? {
            of_trees.entry(tree).or_default().push(*generation);
        }
    }
    // In the order of their numbers, so that two that stop in the same trees do not wait for each other.
    for (tree, generations) in of_trees {
        db.engine().lock(Lock::Tree(tree.0))?;
        generations.into_iter().try_for_each(|generation| stop(db, tree, generation))?;
    }
    Ok(())
}

fn apply(
    db: &Db<'_>,
    tree: TreeKey,
    goal: &Goal,
    removal: &Removal,
    done: &mut Done,
) -> Result<(), StoreError> {
    match removal {
        Removal::Running(generation) => stop(db, tree, *generation),
        Removal::Node { key, .. } => {
            let sql = "SELECT content, flags FROM nodes WHERE pk = ?1";
            let content = match db
                .one(sql, [*key], |row| get(row, 1).and_then(|flags| node::read_content(row, 0, flags)))
            {
                // What stands in the index of it cannot be told.
                Err(error) if error.is_damage() => Vec::new(),
                content => content?.unwrap_or_default(),
            };
            db.engine().unindex(*key, &crate::search::searched_text(&content))?;
            let sql = "SELECT digest FROM blobs WHERE node = ?1";
            for blob in db.all(sql, [*key], |row| digest(row, 0))? {
                note_blob(db, blob)?;
                done.blobs.insert(blob);
            }
            db.run("DELETE FROM blobs WHERE node = ?1", [*key])?;
            file_changes::drop_of(db, *key)?;
            node::purge(db, *key)
        }
        // What is left is told by what is there now: it may have changed since it was found.
        Removal::Draft { view, slot, tree: id } => {
            let Some(now) = draft::one(db, tree, view, *slot)? else { return Ok(()) };
            let is_gone = goal.target.tree == Some(*id)
                || now.base.is_some_and(|base| goal.nodes.contains(&(*id, base)));
            match goal.target.words_of(*id).without(&now) {
                _ if is_gone => draft::set(db, tree, view, *slot, None),
                Some(left) => draft::set(db, tree, view, *slot, Some(&left)),
                None => Ok(()),
            }
        }
        Removal::Label { key: CellKey::Tag { tag, .. }, .. } => {
            // What is left of a tag is no tag.
            db.run("DELETE FROM cells WHERE tree = ?1 AND tag = ?2", (tree.0, tag)).map(drop)
        }
        Removal::Label { key, tree: id } => {
            let now = cell::one(db, tree, key)?;
            let (mut key, mut left) = (key.clone(), now.value.clone());
            if goal.target.words_of(*id).remove_from_cell(&mut key, &mut [&mut left]) {
                cell::set(db, tree, &key, &left, now.seq)?;
            }
            Ok(())
        }
        Removal::Operation { tree: id, seq } => {
            let at = TreeRef { key: tree, id: *id };
            let before = Seq(seq.0.saturating_sub(1));
            let records = match operation::after(db, at, before, 1) {
                Err(error) if error.is_damage() && goal.target.tree == Some(*id) => {
                    return operation::empty(db, tree, *seq);
                }
                records => records?,
            };
            for mut record in records {
                let words = goal.target.words_of(*id);
                if words.remove_from_changes(&mut record.op.cells, &mut record.op.skipped) {
                    operation::rewrite(db, tree, &record)?;
                }
            }
            Ok(())
        }
        Removal::Injection { number, ordinal, .. } => {
            let sql = "DELETE FROM injections WHERE tree = ?1 AND node = ?2 AND ordinal = ?3";
            db.run(sql, (tree.0, *number, *ordinal)).map(drop)
        }
        Removal::Response(generation) => {
            let sql = "UPDATE responses SET purged = 1, bytes = ?2, metadata = '' WHERE generation = ?1";
            db.run(sql, (generation.to_bytes(), Vec::new())).map(drop)
        }
        Removal::Manifest(digest) => {
            // Bodies are found by what cites them.
            let sql = "DELETE FROM bodies WHERE digest IN (SELECT body FROM citations WHERE manifest = ?1) AND NOT EXISTS
                (SELECT 1 FROM citations c WHERE c.body = bodies.digest AND c.manifest <> ?1)";
            db.run(sql, [digest.0])?;
            db.run("DELETE FROM citations WHERE manifest = ?1", [digest.0])?;
            db.run("DELETE FROM manifests WHERE digest = ?1", [digest.0]).map(drop)
        }
        Removal::Body(digest) => {
            db.run("DELETE FROM citations WHERE body = ?1", [digest.0])?;
            db.run("DELETE FROM bodies WHERE digest = ?1", [digest.0]).map(drop)
        }
        // Unless it was sent again meanwhile.
        Removal::UncitedBody(digest) => {
            let sql = "DELETE FROM bodies WHERE digest = ?1 AND NOT EXISTS
                (SELECT 1 FROM citations c WHERE c.body = bodies.digest)";
            db.run(sql, [digest.0]).map(drop)
        }
        Removal::Job(job) => {
            let sql = "UPDATE jobs SET payload = '', result = '', key = NULL WHERE pk = ?1";
            db.run(sql, [job.0]).map(drop)
        }
        // Nobody can answer what is not there any more.
        Removal::Question(question) => {
            let sql =
                "UPDATE questions SET payload = '', answers = '[]', asker = '', word = NULL, reason = NULL,
                    answered_by = '',
                    decision = coalesce(decision, 0), answered = coalesce(answered, ?2) WHERE id = ?1";
            db.run(sql, (*question, db.now()?.0))?;
            let of = db.one("SELECT tree FROM questions WHERE id = ?1", [*question], |row| get(row, 0))?;
            let id = QuestionId::from_bytes(*question);
            of.map_or(Ok(()), |tree| events::append(db, TreeKey(tree), &EventKind::Question { id }))
        }
        Removal::Outcome(_, id) => outcomes::forget(db, *id),
        Removal::Session(session) => {
            super::sessions::forget(db, session, |text| goal.target.is_in_bytes(text.as_bytes()))
        }
    }
}

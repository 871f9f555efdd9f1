//! Leases, jobs, generations, usage.

use std::time::Duration;

use loom::{GenerationId, Millis, TreeId};

use crate::error::StoreError;
use crate::event::Happening;
use crate::fence::{Fence, Holder, Lease, Tenure};
use crate::generation::{Generation, GenerationFilter, GenerationState, SpentAfter, SpentRow, UsageRow};
use crate::job::{Job, JobEnd, JobFilter, JobId, JobState, NewJob};
use crate::memory::state::{State, only_owner};
use crate::principal::Principal;

/// When a lease taken at `now` ends by itself.
pub(crate) fn end_of(now: Millis, ttl: Duration) -> Millis {
    Millis(now.0.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)))
}

impl State {
    pub(super) fn acquire(
        &mut self,
        who: &Principal,
        name: &str,
        holder: &Holder,
        ttl: Duration,
        now: Millis,
    ) -> Result<Fence, StoreError> {
        if !who.may_lease(name) {
            return Err(StoreError::NotFound("lease"));
        }
        let fresh = Lease { name: name.to_owned(), holder: None, fence: Fence::default(), expires: now };
        let lease = self.leases.entry(name.to_owned()).or_insert(fresh);
        let Some(fence) = lease.granted(holder, now) else {
            let holder = lease.holder.clone().unwrap_or_else(|| holder.clone());
            return Err(StoreError::Held { name: name.to_owned(), holder });
        };
        *lease =
            Lease { name: name.to_owned(), holder: Some(holder.clone()), fence, expires: end_of(now, ttl) };
        Ok(fence)
    }

    pub(super) fn current_lease(
        &mut self,
        who: &Principal,
        name: &str,
        fence: Fence,
    ) -> Result<&mut Lease, StoreError> {
        let seen = who.may_lease(name);
        let lease = self.leases.get_mut(name).filter(|_| seen).ok_or(StoreError::NotFound("lease"))?;
        if lease.is_current(fence) { Ok(lease) } else { Err(StoreError::Fenced { what: name.to_owned() }) }
    }

    /// Whether a job is a principal's business.
    fn sees_job(&self, who: &Principal, tree: Option<TreeId>) -> bool {
        tree.map_or(who.sees_all(), |tree| self.sees(who, tree))
    }

    pub(super) fn enqueue(&mut self, who: &Principal, new: NewJob) -> Result<(JobId, bool), StoreError> {
        match new.tree {
            Some(tree) => drop(self.tree_mut(who, tree)?),
            None => only_owner(who, "enqueue")?,
        }
        let same = self.jobs.values().find(|job| job.job.key.is_some() && job.job.key == new.key);
        if let Some(job) = same {
            return Ok((job.id, false));
        }
        let id = JobId(self.jobs.keys().last().map_or(1, |last| last.0 + 1));
        self.jobs.insert(id, Job { id, job: new, state: JobState::Queued, fence: Fence::default() });
        Ok((id, true))
    }

    pub(super) fn claim(
        &mut self,
        who: &Principal,
        kinds: &[&str],
        owner: &Holder,
        now: Millis,
    ) -> Result<Option<Job>, StoreError> {
        if !who.may_write() {
            return Err(StoreError::Denied("write"));
        }
        let waits = |job: &&Job| {
            job.state == JobState::Queued && job.job.due <= now && kinds.contains(&job.job.kind.as_str())
        };
        let found = self.jobs.values().filter(waits).find(|job| self.sees_job(who, job.job.tree));
        let Some(id) = found.map(|job| job.id) else { return Ok(None) };
        let job = self.jobs.get_mut(&id).ok_or(StoreError::NotFound("job"))?;
        job.fence = job.fence.next();
        job.state = JobState::Claimed(owner.clone());
        Ok(Some(job.clone()))
    }

    pub(super) fn finish(
        &mut self,
        who: &Principal,
        id: JobId,
        tenure: &Tenure,
        end: JobEnd,
    ) -> Result<(), StoreError> {
        let tree = self.jobs.get(&id).ok_or(StoreError::NotFound("job"))?.job.tree;
        if !self.sees_job(who, tree) {
            return Err(StoreError::NotFound("job"));
        }
        if !who.may_write() {
            return Err(StoreError::Denied("write"));
        }
        let job = self.jobs.get_mut(&id).ok_or(StoreError::NotFound("job"))?;
        if job.state != JobState::Claimed(tenure.owner.clone()) || job.fence != tenure.fence {
            return Err(StoreError::Fenced { what: format!("job {}", id.0) });
        }
        job.state = match end {
            JobEnd::Done(result) => JobState::Done(result),
            JobEnd::Failed(reason) => JobState::Failed(reason),
            JobEnd::Again => JobState::Queued,
        };
        Ok(())
    }

    pub(super) fn jobs(&self, who: &Principal, filter: JobFilter) -> Vec<Job> {
        let open = |job: &&Job| matches!(job.state, JobState::Queued | JobState::Claimed(_));
        let wanted = self.jobs.values().filter(|job| filter == JobFilter::All || open(job));
        wanted.filter(|job| self.sees_job(who, job.job.tree)).cloned().collect()
    }

    pub(super) fn generations(&self, who: &Principal, filter: &GenerationFilter) -> Vec<Generation> {
        let seen = self.generations.values().filter(|generation| self.sees(who, generation.row.tree));
        let wanted = seen.filter(|generation| {
            filter.tree.is_none_or(|tree| generation.row.tree == tree)
                && filter.state.is_none_or(|state| generation.state == state)
        });
        wanted.cloned().collect()
    }

    pub(super) fn take_over(
        &mut self,
        who: &Principal,
        id: GenerationId,
        from: &Tenure,
        to: &Holder,
    ) -> Result<Fence, StoreError> {
        let unknown = StoreError::NotFound("generation");
        let Some(tree) = self.generations.get(&id).map(|generation| generation.row.tree) else {
            return Err(unknown);
        };
        self.tree_mut(who, tree).map_err(|error| match error {
            StoreError::NotFound(_) => StoreError::NotFound("generation"),
            other => other,
        })?;
        let generation = self.generations.get_mut(&id).ok_or(unknown)?;
        if generation.state != GenerationState::Started || generation.tenure != *from {
            return Err(StoreError::Fenced { what: format!("generation {id}") });
        }
        let fence = from.fence.next();
        generation.tenure = Tenure { owner: to.clone(), fence };
        self.happened(tree, Happening::Generation { id });
        Ok(fence)
    }

    pub(super) fn usage(&self, who: &Principal, tree: Option<TreeId>, since: Millis) -> Vec<UsageRow> {
        let wanted =
            self.usage.iter().filter(|row| row.at >= since && tree.is_none_or(|tree| row.tree == tree));
        let mut rows: Vec<_> = wanted.filter(|row| self.sees(who, row.tree)).copied().collect();
        rows.sort_by_key(|row| (row.at, row.generation));
        rows
    }

    pub(super) fn spent(
        &self,
        who: &Principal,
        since: Millis,
        after: Option<SpentAfter>,
        limit: usize,
    ) -> Vec<SpentRow> {
        let rows = self.usage(who, None, since).into_iter();
        let rows = rows.filter(|row| after.is_none_or(|after| (row.at, row.generation) > after));
        let counted = rows.filter_map(|row| {
            let generation = &self.generations.get(&row.generation)?.row;
            let response = self.responses.get(&row.generation);
            let metadata =
                response.and_then(|found| serde_json::from_str::<serde_json::Value>(&found.metadata).ok());
            let cache_write = metadata.and_then(|metadata| metadata["usage"]["cache_write"].as_u64());
            Some(SpentRow { row, purpose: generation.purpose, manifest: generation.manifest, cache_write })
        });
        counted.take(limit).collect()
    }

    /// Fences everything that was running when the store was copied.
    pub(super) fn fence_everything(&mut self) {
        for lease in self.leases.values_mut() {
            lease.fence = lease.fence.next();
            lease.holder = None;
        }
        for generation in self.generations.values_mut() {
            if generation.state == GenerationState::Started {
                generation.tenure.fence = generation.tenure.fence.next();
            }
        }
        for job in self.jobs.values_mut() {
            if matches!(job.state, JobState::Claimed(_)) {
                job.fence = job.fence.next();
            }
        }
    }
}

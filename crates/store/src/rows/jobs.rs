//! Jobs as rows.

use loom::{Millis, TreeId};

use super::leases::check_guards;
use super::reader::limit_of;
use super::trees::{find_mut, seen};
use crate::db::{Db, get, optional_id16, unsigned};
use crate::engine::{Lock, Row, Value, params};
use crate::error::StoreError;
use crate::fence::{Claim, Fence, Guard, LeaseOwner};
use crate::job::{Job, JobEnd, JobFilter, JobId, JobState, NewJob};
use crate::principal::{Principal, only_owner};

const JOB: &str = "j.pk, j.kind, j.key, t.id, j.payload, j.due, j.state, j.owner, j.fence, j.result";

/// Jobs a principal sees; more conditions may follow.
fn jobs_sql(who: &Principal) -> (String, Value<'static>) {
    let (seen, param) = seen(who);
    (format!("SELECT {JOB} FROM jobs j LEFT JOIN trees t ON t.pk = j.tree WHERE {seen}"), param)
}

fn read_job(row: &Row<'_>) -> Result<Job, StoreError> {
    let result = || get::<String>(row, 9);
    let state = match get::<i64>(row, 6)? {
        0 => JobState::Queued,
        1 => JobState::Claimed(LeaseOwner(get(row, 7)?)),
        2 => JobState::Done(result()?),
        3 => JobState::Failed(result()?),
        other => return Err(StoreError::Damaged(format!("a job of an unknown state {other}"))),
    };
    let job = NewJob {
        kind: get(row, 1)?,
        key: get(row, 2)?,
        tree: optional_id16(row, 3)?.map(TreeId::from_bytes),
        payload: get(row, 4)?,
        due: Millis(get(row, 5)?),
    };
    Ok(Job { id: JobId(get(row, 0)?), job, state, fence: Fence(unsigned(row, 8)?) })
}

/// As [`crate::Store::enqueue`].
pub(crate) fn enqueue(db: &Db<'_>, who: &Principal, job: &NewJob) -> Result<(JobId, bool), StoreError> {
    let tree = match job.tree {
        Some(tree) => Some(find_mut(db, who, tree)?.key.0),
        None => {
            only_owner(who, "enqueue")?;
            None
        }
    };
    if let Some(key) = &job.key
        && let Some(pk) = db.one("SELECT pk FROM jobs WHERE key = ?1", [key], |row| get(row, 0))?
    {
        return Ok((JobId(pk), false));
    }
    let number = db.insert(
        "INSERT INTO jobs (kind, key, tree, payload, due, state, owner, fence, result)
         VALUES (?1, ?2, ?3, ?4, ?5, 0, '', 0, '') RETURNING pk",
        params![&job.kind, job.key.as_deref(), tree, &job.payload, job.due.0],
    )?;
    Ok((JobId(number), true))
}

/// As [`crate::Store::begin_job`].
pub(crate) fn begin(
    db: &Db<'_>,
    who: &Principal,
    job: &NewJob,
    owner: &LeaseOwner,
    guards: &[Guard],
) -> Result<(JobId, Claim), StoreError> {
    check_guards(db, who, guards)?;
    let (id, is_new) = enqueue(db, who, job)?;
    if !is_new {
        return Err(StoreError::Exists("job"));
    }
    let fence = give(db, id, owner, Fence::default())?;
    Ok((id, Claim { owner: owner.clone(), fence }))
}

/// As [`crate::Store::claim`].
pub(crate) fn claim(
    db: &Db<'_>,
    who: &Principal,
    kinds: &[String],
    owner: &LeaseOwner,
) -> Result<Option<Job>, StoreError> {
    if !who.may_write() {
        return Err(StoreError::Denied("write"));
    }
    db.engine().lock(Lock::Jobs)?;
    let (sql, param) = jobs_sql(who);
    let sql = format!("{sql} AND j.state = 0 AND j.due <= ?2 ORDER BY j.pk");
    let (now, mut found) = (db.now()?, None);
    db.each(&sql, (param, now.0), |row| {
        let job = read_job(row)?;
        if kinds.contains(&job.job.kind) {
            found = Some(job);
        }
        Ok(found.is_none())
    })?;
    let Some(mut job) = found else { return Ok(None) };
    job.fence = give(db, job.id, owner, job.fence)?;
    job.state = JobState::Claimed(owner.clone());
    Ok(Some(job))
}

/// Gives a job to an owner under the number behind its last one, which is returned.
fn give(db: &Db<'_>, id: JobId, owner: &LeaseOwner, last: Fence) -> Result<Fence, StoreError> {
    let fence = last.next();
    let sql = "UPDATE jobs SET state = 1, owner = ?2, fence = ?3 WHERE pk = ?1";
    db.run(sql, (id.0, &owner.0, fence.0 as i64))?;
    Ok(fence)
}

/// As [`crate::Store::take_over_job`].
pub(crate) fn take_over(
    db: &Db<'_>,
    who: &Principal,
    id: JobId,
    from: &Claim,
    to: &LeaseOwner,
) -> Result<Fence, StoreError> {
    let job = claimed(db, who, id, from)?;
    give(db, id, to, job.fence)
}

/// A job that is still worked on in a claim.
fn claimed(db: &Db<'_>, who: &Principal, id: JobId, claim: &Claim) -> Result<Job, StoreError> {
    db.engine().lock(Lock::Jobs)?;
    let (sql, param) = jobs_sql(who);
    let job = db.one(&format!("{sql} AND j.pk = ?2"), (param, id.0), read_job)?;
    let job = job.ok_or(StoreError::NotFound("job"))?;
    if !who.may_write() {
        return Err(StoreError::Denied("write"));
    }
    match job.claim().as_ref() == Some(claim) {
        true => Ok(job),
        false => Err(StoreError::Fenced { what: format!("job {}", id.0) }),
    }
}

/// As [`crate::Store::finish`].
pub(crate) fn finish(
    db: &Db<'_>,
    who: &Principal,
    id: JobId,
    claim: &Claim,
    end: &JobEnd,
) -> Result<(), StoreError> {
    claimed(db, who, id, claim)?;
    let (state, result) = match end {
        JobEnd::Again => (0_i64, ""),
        JobEnd::Done(result) => (2, result.as_str()),
        JobEnd::Failed(reason) => (3, reason.as_str()),
    };
    let now = db.now()?.0;
    let ended = (state >= 2).then_some(now);
    db.run(
        "UPDATE jobs SET state = ?2, result = ?3, ended = ?4,
            payload = CASE WHEN ?2 < 2 THEN payload ELSE '' END WHERE pk = ?1",
        (id.0, state, result, ended),
    )?;
    db.run("DELETE FROM jobs WHERE ended < ?1", [now - RETENTION])?;
    Ok(())
}

/// How long ended jobs and answered questions are kept, in ms: 30 days.
pub(super) const RETENTION: i64 = 30 * 24 * 60 * 60 * 1000;

/// As [`crate::Store::jobs`].
pub(crate) fn jobs(
    db: &Db<'_>,
    who: &Principal,
    filter: JobFilter,
    after: Option<JobId>,
    limit: usize,
) -> Result<Vec<Job>, StoreError> {
    let (sql, param) = jobs_sql(who);
    let open = if filter == JobFilter::Open { "AND j.state < 2" } else { "" };
    let sql = format!("{sql} {open} AND j.pk > ?2 ORDER BY j.pk LIMIT ?3");
    db.all(&sql, (param, after.map_or(i64::MIN, |after| after.0), limit_of(limit)), read_job)
}

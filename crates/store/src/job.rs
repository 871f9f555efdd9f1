//! Jobs: durable work that some process takes, with an owner and a fencing number.

use loom::{Millis, TreeId};

use crate::fence::{Claim, Fence, LeaseOwner};

/// The number of a job, in the order they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub i64);

/// A job to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// What kind of work, as `observe`.
    pub kind: String,
    /// A key under which it is enqueued at most once, as a reminder's id and due time.
    pub key: Option<String>,
    /// The tree it concerns; a job without one is the owner's business alone.
    pub tree: Option<TreeId>,
    /// What the worker needs, in the worker's own form; of a job that has ended it is gone.
    pub payload: String,
    /// Not to be started before.
    pub due: Millis,
}

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    Queued,
    /// Someone works on it, in the claim the job's `fence` numbers.
    Claimed(LeaseOwner),
    /// Done, with the worker's result.
    Done(String),
    /// Failed, with the reason; not tried again by itself.
    Failed(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub id: JobId,
    /// What is to be done.
    pub job: NewJob,
    pub state: JobState,
    /// The number of its newest claim.
    pub fence: Fence,
}

impl Job {
    /// What its worker has to show when it is finished; none while nobody works on it.
    pub fn claim(&self) -> Option<Claim> {
        match &self.state {
            JobState::Claimed(owner) => Some(Claim { owner: owner.clone(), fence: self.fence }),
            _ => None,
        }
    }
}

/// Which jobs a list holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobFilter {
    All,
    /// Jobs not done and not failed.
    Open,
}

/// The end of a job, written together with what it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedJob {
    pub id: JobId,
    /// Must still hold.
    pub claim: Claim,
    pub end: JobEnd,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnd {
    /// Done, with the worker's result.
    Done(String),
    /// Failed, with the reason.
    Failed(String),
    /// Given back: it waits again.
    Again,
}

//! Work: leases, jobs, questions, and what is asked of models.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use loom::{Digest, GenerationId, Millis, TreeId};

use super::Store;
use crate::call::{CallId, NewCall, RunningCall};
use crate::error::StoreError;
use crate::fence::{Claim, Fence, Guard, Lease, LeaseOwner};
use crate::file_change::{FileChange, FileChangeId, GivingBack, KeptFiles, NewFileChange, NewFileChanges};
use crate::generation::{
    Generation, GenerationFilter, KnownCost, Reservation, Spending, SpentAfter, SpentRow,
};
use crate::job::{Job, JobEnd, JobFilter, JobId, NewJob};
use crate::principal::Principal;
use crate::question::{NewAnswer, NewQuestion, Question, QuestionAnswer, QuestionId};
use crate::rows::{
    calls, file_changes, generations, jobs, kept_files, leases, outside_files, questions, tree_cost, trees,
};

forward! {
    /// Takes a lease that is free, has ended by the engine's clock, or is held by the same holder (whose older
    /// number then ends).
    ///
    /// # Errors
    /// [`StoreError::Held`] names who has it.
    write fn acquire_lease(name: &str, holder: &LeaseOwner, ttl: Duration) -> Fence
        = leases::acquire(&name, &holder, ttl);

    /// Makes a lease last for `ttl` from now, by the engine's clock.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it was taken over or released.
    write fn renew_lease(name: &str, fence: Fence, ttl: Duration) -> () = leases::renew(&name, fence, ttl);

    /// Lets a lease go.
    ///
    /// # Errors
    /// As [`Store::renew_lease`].
    write fn release_lease(name: &str, fence: Fence) -> () = leases::release(&name, fence);

    /// A lease as it stands; none if there never was one.
    read fn lease(name: &str) -> Option<Lease> = leases::lease(&name);

    /// Enqueues a job. One with the same key that is still kept (30 days after its end) is returned instead, with
    /// `false`.
    write fn enqueue(job: NewJob) -> (JobId, bool) = jobs::enqueue(&job);

    /// Begins a job that its owner works on at once.
    ///
    /// # Errors
    /// [`StoreError::Exists`] where one with its key is kept; [`StoreError::Fenced`] when a guard no longer holds.
    write fn begin_job(job: NewJob, owner: &LeaseOwner, guards: Vec<Guard>) -> (JobId, Claim)
        = jobs::begin(&job, &owner, &guards);

    /// Takes over a claimed job from an owner that is gone, under the next number: its result under the old one is
    /// refused from then on. The caller has made sure that the owner's lock is free.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it is no longer `from`'s.
    write fn take_over_job(job: JobId, from: &Claim, to: &LeaseOwner) -> Fence
        = jobs::take_over(job, &from, &to);

    /// Ends a claimed job.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it is no longer this claim's.
    write fn finish(job: JobId, claim: &Claim, end: JobEnd) -> () = jobs::finish(job, &claim, &end);

    /// Jobs behind one, at most `limit`, in the order they came.
    read fn jobs(filter: JobFilter, after: Option<JobId>, limit: usize) -> Vec<Job>
        = jobs::jobs(filter, after, limit);

    /// Asks a question, which stands from now on by the engine's clock.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when a guard no longer holds.
    write fn ask(question: NewQuestion) -> Question = questions::ask(&question);

    /// A question, answered or not.
    read fn question(id: QuestionId) -> Question = questions::question(id);

    /// The questions that stand behind one, by when they were asked, at most `limit`, the oldest first.
    read fn open_questions(after: Option<(Millis, QuestionId)>, limit: usize) -> Vec<Question>
        = questions::open(after, limit);

    /// The question a person names by its id or the beginning of its short id. Those that stand come first.
    ///
    /// # Errors
    /// [`StoreError::Ambiguous`] with the candidates' short ids.
    read fn resolve_question(name: &str) -> QuestionId = questions::resolve(&name);

    /// Answers a question. The answer that stood already, if it had one: that of the first counts. One past its time
    /// is denied.
    ///
    /// # Errors
    /// [`StoreError::NotAnAnswer`] names the words the question takes.
    write fn answer_question(id: QuestionId, answer: NewAnswer) -> Option<QuestionAnswer>
        = questions::answer(id, &answer);

    /// Denies a question if it is past its time by the engine's clock, and returns it as it is then.
    write fn expire_question(id: QuestionId) -> Question = questions::expire(id);

    /// Generations behind one, at most `limit`, oldest first.
    read fn generations(filter: GenerationFilter, after: Option<GenerationId>, limit: usize) -> Vec<Generation>
        = generations::generations(&filter, after, limit);

    read fn generation(id: GenerationId) -> Generation = generations::generation(id);

    /// Takes over a running generation from an owner that is gone, for recovery: its results under the old number
    /// are refused from then on. The caller has made sure that the owner's lock is free.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it is no longer `from`'s, or has ended.
    write fn take_over(generation: GenerationId, from: &Claim, to: &LeaseOwner) -> Fence
        = generations::take_over(generation, &from, &to);

    /// Makes durable that a call of a tool is about to run.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when it was started before; [`StoreError::Fenced`] when a guard no longer holds.
    write fn start_call(tree: TreeId, call: NewCall) -> () = calls::start(tree, &call);

    /// Calls that run or were cut off, behind one, at most `limit`.
    read fn running_calls(after: Option<CallId>, limit: usize) -> Vec<RunningCall> = calls::running(after, limit);

    /// Takes over a call from an owner that is gone, under the next number: its result under the old one is refused
    /// from then on. The caller has made sure that the owner's lock is free, or holds the session it is of.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it is no longer its owner's, or has a result.
    write fn take_over_call(call: RunningCall, to: &LeaseOwner) -> Claim = calls::take_over(&call, &to);

    /// Makes durable that a running call is about to change files. Their blobs are kept from then on.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when the call is no longer this claim's, or a guard no longer holds.
    write fn keep_file_changes(tree: TreeId, new: NewFileChanges) -> Vec<FileChangeId>
        = file_changes::keep(tree, &new);

    /// What tools changed in files in a tree, behind one, at most `limit`, the oldest first.
    read fn file_changes(tree: TreeId, after: Option<FileChangeId>, limit: usize) -> Vec<FileChange>
        = file_changes::list(tree, after, limit);

    /// Bytes that changes of files keep, those of the newest changes first.
    read fn kept_files() -> KeptFiles = kept_files::list();

    /// Whether nobody began to look for bytes that are kept too long since this many ms; if so, that is stored.
    write fn begin_file_expiry(every: Millis) -> bool = kept_files::begin(every);

    /// Drops the bytes that only changes in these roots keep, up to a time each; the changes stay. A part of them at
    /// a time, behind `after`. Returns behind what it goes on, if it does. The files of blobs are left to
    /// [`Store::unfinished_removal`].
    write fn expire_files(until: BTreeMap<PathBuf, Millis>, after: Option<i64>) -> Option<i64>
        = kept_files::expire(&until, after);

    /// Stores what the owner is about to give back: changes of paths that tools changed in this tree, of one moment. They
    /// stand behind all other changes.
    write fn keep_giving_back(tree: TreeId, changes: Vec<NewFileChange>) -> Vec<FileChangeId>
        = file_changes::keep_giving_back(tree, &changes);

    /// What the owner gave back in a tree, the oldest first, with the first `paths` of each.
    read fn givings_back(tree: TreeId, paths: usize) -> Vec<GivingBack> = file_changes::givings_back(tree, paths);

    /// Stores that givings-back were taken again, or not made: what they gave back stands.
    write fn redo_file_changes(tree: TreeId, changes: Vec<FileChangeId>) -> ()
        = file_changes::redo(tree, &changes);

    /// Stores that changes were given back, by the last giving-back of their path behind them if there is one.
    write fn take_back_file_changes(tree: TreeId, changes: Vec<FileChangeId>) -> ()
        = file_changes::take_back(tree, &changes);

    /// Stores that changes that stand were to be given back, and cannot be.
    write fn leave_file_changes(tree: TreeId, changes: Vec<FileChangeId>) -> ()
        = file_changes::leave(tree, &changes);

    /// Whether any file is known that comes from outside (spec: security §3).
    read fn knows_outside_files() -> bool = outside_files::is_any();

    /// Digests among the given ones, of the bytes of files, that come from outside.
    read fn outside_files(digests: Vec<Digest>) -> Vec<Digest> = outside_files::among(&digests);

    /// Files of these bytes come from outside: such text was written to them.
    write fn keep_outside_files(digests: Vec<Digest>) -> () = outside_files::add(&digests);

    /// Files count as what their workspace is: the owner read them. Returns how many came from outside.
    write fn accept_files(digests: Vec<Digest>) -> u64 = outside_files::accept(&digests);

    /// Takes back what a generation was booked with when it was stopped: who sent it knows that it was turned away.
    write fn unbook(generation: GenerationId, claim: &Claim) -> () = generations::unbook(generation, &claim);

    /// Usage written down at or after `since`, oldest first, behind `after`, at most `limit`: a home of many years is
    /// read a page at a time.
    read fn spent(since: Millis, after: Option<SpentAfter>, limit: usize) -> Vec<SpentRow>
        = generations::spent(since, after, limit);

    /// What the requests of a tree came to.
    read fn spent_in(tree: TreeId) -> KnownCost = tree_cost::spent_in(tree);
}

impl Store {
    /// Takes the oldest job that is due and waits, of one of these kinds.
    pub async fn claim(
        &self,
        who: &Principal,
        kinds: &[&str],
        owner: &LeaseOwner,
    ) -> Result<Option<Job>, StoreError> {
        let (who, owner) = (who.clone(), owner.clone());
        let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        self.write(move |db| jobs::claim(db, &who, &kinds, &owner)).await
    }

    /// What is spent of the limits a request in a tree counts against, with what generations that run may come to.
    pub async fn spending(
        &self,
        who: &Principal,
        tree: TreeId,
        reservation: &Reservation,
    ) -> Result<Spending, StoreError> {
        let (who, reservation) = (who.clone(), reservation.clone());
        self.read(move |db| generations::spending(db, trees::find(db, &who, tree)?, &reservation)).await
    }
}

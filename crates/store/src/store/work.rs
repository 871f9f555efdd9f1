//! Work: leases, jobs, questions, and what is asked of models.

use std::time::Duration;

use loom::{GenerationId, Millis, TreeId};

use super::Store;
use crate::error::StoreError;
use crate::fence::{Claim, Fence, Lease, LeaseOwner};
use crate::generation::{Generation, GenerationFilter, Reservation, Spending, SpentAfter, SpentRow};
use crate::job::{Job, JobEnd, JobFilter, JobId, NewJob};
use crate::principal::Principal;
use crate::question::{NewAnswer, NewQuestion, Question, QuestionId};
use crate::rows::{generations, jobs, leases, questions, trees};

impl Store {
    /// Takes a lease that is free, has ended by the engine's clock, or is held by the same holder (whose older
    /// number then ends).
    ///
    /// # Errors
    /// [`StoreError::Held`] names who has it.
    pub async fn acquire_lease(
        &self,
        who: &Principal,
        name: &str,
        holder: &LeaseOwner,
        ttl: Duration,
    ) -> Result<Fence, StoreError> {
        let (who, name, holder) = (who.clone(), name.to_owned(), holder.clone());
        self.write(move |db| leases::acquire(db, &who, &name, &holder, ttl)).await
    }

    /// Makes a lease last for `ttl` from now, by the engine's clock.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it was taken over or released.
    pub async fn renew_lease(
        &self,
        who: &Principal,
        name: &str,
        fence: Fence,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        let (who, name) = (who.clone(), name.to_owned());
        self.write(move |db| leases::renew(db, &who, &name, fence, ttl)).await
    }

    /// Lets a lease go.
    ///
    /// # Errors
    /// As [`Store::renew_lease`].
    pub async fn release_lease(&self, who: &Principal, name: &str, fence: Fence) -> Result<(), StoreError> {
        let (who, name) = (who.clone(), name.to_owned());
        self.write(move |db| leases::release(db, &who, &name, fence)).await
    }

    /// A lease as it stands; none if there never was one.
    pub async fn lease(&self, who: &Principal, name: &str) -> Result<Option<Lease>, StoreError> {
        let (who, name) = (who.clone(), name.to_owned());
        self.read(move |db| leases::lease(db, &who, &name)).await
    }

    /// Enqueues a job. One with the same key that is still kept (30 days after its end) is returned instead, with
    /// `false`.
    pub async fn enqueue(&self, who: &Principal, job: NewJob) -> Result<(JobId, bool), StoreError> {
        let who = who.clone();
        self.write(move |db| jobs::enqueue(db, &who, &job)).await
    }

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

    /// Takes over a claimed job from an owner that is gone, under the next number: its result under the old one is
    /// refused from then on. The caller has made sure that the owner's lock is free.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it is no longer `from`'s.
    pub async fn take_over_job(
        &self,
        who: &Principal,
        job: JobId,
        from: &Claim,
        to: &LeaseOwner,
    ) -> Result<Fence, StoreError> {
        let (who, from, to) = (who.clone(), from.clone(), to.clone());
        self.write(move |db| jobs::take_over(db, &who, job, &from, &to)).await
    }

    /// Ends a claimed job.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it is no longer this claim's.
    pub async fn finish(
        &self,
        who: &Principal,
        job: JobId,
        claim: &Claim,
        end: JobEnd,
    ) -> Result<(), StoreError> {
        let (who, claim) = (who.clone(), claim.clone());
        self.write(move |db| jobs::finish(db, &who, job, &claim, &end)).await
    }

    /// Jobs behind one, at most `limit`, in the order they came.
    pub async fn jobs(
        &self,
        who: &Principal,
        filter: JobFilter,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<Job>, StoreError> {
        let who = who.clone();
        self.read(move |db| jobs::jobs(db, &who, filter, after, limit)).await
    }

    /// Asks a question, which stands from now on by the engine's clock.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when a guard no longer holds.
    pub async fn ask(&self, who: &Principal, question: NewQuestion) -> Result<Question, StoreError> {
        let who = who.clone();
        self.write(move |db| questions::ask(db, &who, &question)).await
    }

    /// A question, answered or not.
    pub async fn question(&self, who: &Principal, id: QuestionId) -> Result<Question, StoreError> {
        let who = who.clone();
        self.read(move |db| questions::question(db, &who, id)).await
    }

    /// The questions that stand behind one, by when they were asked, at most `limit`, the oldest first.
    pub async fn open_questions(
        &self,
        who: &Principal,
        after: Option<(Millis, QuestionId)>,
        limit: usize,
    ) -> Result<Vec<Question>, StoreError> {
        let who = who.clone();
        self.read(move |db| questions::open(db, &who, after, limit)).await
    }

    /// The question a person names by its id or the beginning of its short id. Those that stand come first.
    ///
    /// # Errors
    /// [`StoreError::Ambiguous`] with the candidates' short ids.
    pub async fn resolve_question(&self, who: &Principal, name: &str) -> Result<QuestionId, StoreError> {
        let (who, name) = (who.clone(), name.to_owned());
        self.read(move |db| questions::resolve(db, &who, &name)).await
    }

    /// Answers a question. The answer that stood already, if it had one: that of the first counts. One past its time
    /// is denied.
    ///
    /// # Errors
    /// [`StoreError::NotAnAnswer`] names the words the question takes.
    pub async fn answer_question(
        &self,
        who: &Principal,
        id: QuestionId,
        answer: NewAnswer,
    ) -> Result<Option<crate::question::QuestionAnswer>, StoreError> {
        let who = who.clone();
        self.write(move |db| questions::answer(db, &who, id, &answer)).await
    }

    /// Denies a question if it is past its time by the engine's clock, and returns it as it is then.
    pub async fn expire_question(&self, who: &Principal, id: QuestionId) -> Result<Question, StoreError> {
        let who = who.clone();
        self.write(move |db| questions::expire(db, &who, id)).await
    }

    /// Generations behind one, at most `limit`, oldest first.
    pub async fn generations(
        &self,
        who: &Principal,
        filter: GenerationFilter,
        after: Option<GenerationId>,
        limit: usize,
    ) -> Result<Vec<Generation>, StoreError> {
        let who = who.clone();
        self.read(move |db| generations::generations(db, &who, &filter, after, limit)).await
    }

    pub async fn generation(&self, who: &Principal, id: GenerationId) -> Result<Generation, StoreError> {
        let who = who.clone();
        self.read(move |db| generations::generation(db, &who, id)).await
    }

    /// Takes over a running generation from an owner that is gone, for recovery: its results under the old number
    /// are refused from then on. The caller has made sure that the owner's lock is free.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when it is no longer `from`'s, or has ended.
    pub async fn take_over(
        &self,
        who: &Principal,
        generation: GenerationId,
        from: &Claim,
        to: &LeaseOwner,
    ) -> Result<Fence, StoreError> {
        let (who, from, to) = (who.clone(), from.clone(), to.clone());
        self.write(move |db| generations::take_over(db, &who, generation, &from, &to)).await
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

    /// Usage written down at or after `since`, oldest first, behind `after`, at most `limit`: a home of many years is
    /// read a page at a time.
    pub async fn spent(
        &self,
        who: &Principal,
        since: Millis,
        after: Option<SpentAfter>,
        limit: usize,
    ) -> Result<Vec<SpentRow>, StoreError> {
        let who = who.clone();
        self.read(move |db| generations::spent(db, &who, since, after, limit)).await
    }
}

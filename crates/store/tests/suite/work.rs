//! Leases and jobs: numbers grow, and old ones are refused.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use loom::Millis;
use store::{Claim, JobEnd, JobFilter, JobState, LeaseOwner, NewJob, StoreError};

use super::both::each;
use super::home::OWNER;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_lease_is_held_renewed_released_and_taken_over_when_it_ends() {
    each(|home| async move {
        let store = &home.store;
        let (a, b) = (&LeaseOwner::new("a"), &LeaseOwner::new("b"));
        let first = store.acquire_lease(OWNER, "turn", a, MINUTE).await.unwrap();
        let held = store.acquire_lease(OWNER, "turn", b, MINUTE).await;
        assert!(matches!(held, Err(StoreError::Held { holder, .. }) if holder == *a));
        store.advance_clock(MINUTE / 2);
        store.renew_lease(OWNER, "turn", first, MINUTE).await.unwrap();
        store.advance_clock(MINUTE / 2);
        assert!(store.acquire_lease(OWNER, "turn", b, MINUTE).await.is_err());
        store.advance_clock(MINUTE / 2);
        let second = store.acquire_lease(OWNER, "turn", b, MINUTE).await.unwrap();
        assert!(second > first);
        let late = store.renew_lease(OWNER, "turn", first, MINUTE).await;
        assert!(matches!(late, Err(StoreError::Fenced { .. })));
        assert!(matches!(store.release_lease(OWNER, "turn", first).await, Err(StoreError::Fenced { .. })));
        store.release_lease(OWNER, "turn", second).await.unwrap();
        let third = store.acquire_lease(OWNER, "turn", a, MINUTE).await.unwrap();
        assert!(third > second);
        let before = store.lease(OWNER, "turn").await.unwrap().unwrap();
        store.advance_clock(MINUTE / 2);
        let again = store.acquire_lease(OWNER, "turn", a, MINUTE).await.unwrap();
        assert!(again > third);
        let lease = store.lease(OWNER, "turn").await.unwrap().unwrap();
        assert_eq!((&lease.holder, lease.fence), (&Some(a.clone()), again));
        assert!(lease.expires.0 - before.expires.0 >= 30_000);
        assert!(store.lease(OWNER, "other").await.unwrap().is_none());
        assert!(matches!(store.release_lease(OWNER, "other", again).await, Err(StoreError::NotFound(_))));
    });
}

/// Now, in ms since 1970.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

fn job(kind: &str, key: Option<&str>, due: i64) -> NewJob {
    NewJob {
        kind: kind.into(),
        key: key.map(str::to_owned),
        tree: None,
        payload: "{}".into(),
        due: Millis(due),
    }
}

#[test]
fn a_job_is_enqueued_once_claimed_in_order_and_finished_by_its_claimant() {
    each(|home| async move {
        let store = &home.store;
        let (first, fresh) = store.enqueue(OWNER, job("observe", Some("k"), 0)).await.unwrap();
        assert!(fresh);
        assert_eq!(store.enqueue(OWNER, job("observe", Some("k"), 5)).await.unwrap(), (first, false));
        let (second, _) = store.enqueue(OWNER, job("wrap", None, 0)).await.unwrap();
        let in_an_hour = now() + 3_600_000 - 60_000;
        let (later, _) = store.enqueue(OWNER, job("observe", None, in_an_hour)).await.unwrap();
        let (a, b) = (&LeaseOwner::new("a"), &LeaseOwner::new("b"));
        let claimed = store.claim(OWNER, &["observe"], a).await.unwrap().unwrap();
        assert_eq!(claimed.id, first);
        assert!(store.claim(OWNER, &["observe"], b).await.unwrap().is_none());
        assert_eq!(store.claim(OWNER, &["observe", "wrap"], b).await.unwrap().unwrap().id, second);
        let claim = claimed.claim().unwrap();
        store.finish(OWNER, first, &claim, JobEnd::Again).await.unwrap();
        let reclaimed = store.claim(OWNER, &["observe"], b).await.unwrap().unwrap();
        assert!(reclaimed.id == first && reclaimed.fence > claimed.fence);
        let late = store.finish(OWNER, first, &claim, JobEnd::Done("old".into())).await;
        assert!(matches!(late, Err(StoreError::Fenced { .. })));
        let done = JobEnd::Done("new".into());
        store.finish(OWNER, first, &reclaimed.claim().unwrap(), done.clone()).await.unwrap();
        let twice = store.finish(OWNER, first, &reclaimed.claim().unwrap(), done).await;
        assert!(matches!(twice, Err(StoreError::Fenced { .. })));
        let all = store.jobs(OWNER, JobFilter::All, None, 99).await.unwrap();
        assert_eq!(all.iter().map(|job| job.id).collect::<Vec<_>>(), [first, second, later]);
        assert_eq!(all[0].state, JobState::Done("new".into()));
        let open = store.jobs(OWNER, JobFilter::Open, None, 99).await.unwrap();
        assert_eq!(open.iter().map(|job| job.id).collect::<Vec<_>>(), [second, later]);
        assert!(store.claim(OWNER, &["observe"], a).await.unwrap().is_none());
        store.advance_clock(Duration::from_secs(3600));
        assert_eq!(store.claim(OWNER, &["observe"], a).await.unwrap().unwrap().id, later);
    });
}

#[test]
fn a_job_of_a_dead_owner_is_taken_over_under_a_new_number() {
    each(|home| async move {
        let store = &home.store;
        let (id, _) = store.enqueue(OWNER, job("observe", None, 0)).await.unwrap();
        let (dead, heir) = (&LeaseOwner::new("dead"), LeaseOwner::new("heir"));
        let claimed = store.claim(OWNER, &["observe"], dead).await.unwrap().unwrap().claim().unwrap();
        let fence = store.take_over_job(OWNER, id, &claimed, &heir).await.unwrap();
        assert!(fence > claimed.fence);
        // Who comes second, and who was taken for dead, are refused.
        let second = store.take_over_job(OWNER, id, &claimed, &LeaseOwner::new("second")).await;
        assert!(matches!(second, Err(StoreError::Fenced { .. })));
        let late = store.finish(OWNER, id, &claimed, JobEnd::Again).await;
        assert!(matches!(late, Err(StoreError::Fenced { .. })));
        let claim = Claim { owner: heir, fence };
        store.finish(OWNER, id, &claim, JobEnd::Done("found".into())).await.unwrap();
        let ended = store.take_over_job(OWNER, id, &claim, dead).await;
        assert!(matches!(ended, Err(StoreError::Fenced { .. })));
    });
}

#[test]
fn a_new_identity_fences_everything_that_was_running() {
    each(|home| async move {
        let store = &home.store;
        let before = store.identity(OWNER).await.unwrap();
        let a = &LeaseOwner::new("a");
        let fence = store.acquire_lease(OWNER, "turn", a, MINUTE).await.unwrap();
        store.enqueue(OWNER, job("k", None, 0)).await.unwrap();
        let claimed = store.claim(OWNER, &["k"], a).await.unwrap().unwrap();
        let page = home.create(loom::Mode::Buffer, "").await;
        let generation = super::generations::start(&page, "x").await;
        let id = store.renew_identity(OWNER).await.unwrap();
        assert_ne!(id, before.store);
        assert_eq!(store.identity(OWNER).await.unwrap().store, id);
        assert!(store.renew_lease(OWNER, "turn", fence, MINUTE).await.is_err());
        let finished = store.finish(OWNER, claimed.id, &claimed.claim().unwrap(), JobEnd::Again).await;
        assert!(matches!(finished, Err(StoreError::Fenced { .. })));
        let ended = super::generations::try_answer(&page, &generation, "late").await;
        assert!(matches!(ended, Err(StoreError::Fenced { .. })));
    });
}

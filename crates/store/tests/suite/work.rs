//! Leases and jobs: numbers grow, and old ones are refused.

use std::time::Duration;

use loom::Millis;
use store::{Holder, JobEnd, JobFilter, JobState, NewJob, StoreError};

use super::both::each;
use super::home::OWNER;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_lease_is_held_renewed_released_and_taken_over_when_it_ends() {
    each(|home| async move {
        let store = &home.store;
        let (a, b) = (&Holder::new("a"), &Holder::new("b"));
        let first = store.acquire_lease(OWNER, "turn", a, MINUTE, Millis(0)).await.unwrap();
        let held = store.acquire_lease(OWNER, "turn", b, MINUTE, Millis(59_999)).await;
        assert!(matches!(held, Err(StoreError::Held { holder, .. }) if holder == *a));
        store.renew_lease(OWNER, "turn", first, MINUTE, Millis(59_999)).await.unwrap();
        assert!(store.acquire_lease(OWNER, "turn", b, MINUTE, Millis(60_001)).await.is_err());
        let second = store.acquire_lease(OWNER, "turn", b, MINUTE, Millis(119_999)).await.unwrap();
        assert!(second > first);
        let late = store.renew_lease(OWNER, "turn", first, MINUTE, Millis(119_999)).await;
        assert!(matches!(late, Err(StoreError::Fenced { .. })));
        assert!(matches!(store.release_lease(OWNER, "turn", first).await, Err(StoreError::Fenced { .. })));
        store.release_lease(OWNER, "turn", second).await.unwrap();
        let third = store.acquire_lease(OWNER, "turn", a, MINUTE, Millis(120_000)).await.unwrap();
        assert!(third > second);
        let again = store.acquire_lease(OWNER, "turn", a, MINUTE, Millis(120_000)).await.unwrap();
        assert!(again > third);
        let lease = store.lease(OWNER, "turn").await.unwrap().unwrap();
        assert_eq!((lease.holder, lease.fence, lease.expires), (Some(a.clone()), again, Millis(180_000)));
        assert!(store.lease(OWNER, "other").await.unwrap().is_none());
        assert!(matches!(store.release_lease(OWNER, "other", again).await, Err(StoreError::NotFound(_))));
    });
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
        let (later, _) = store.enqueue(OWNER, job("observe", None, 100)).await.unwrap();
        let (a, b) = (&Holder::new("a"), &Holder::new("b"));
        let claimed = store.claim(OWNER, &["observe"], a, Millis(10)).await.unwrap().unwrap();
        assert_eq!(claimed.id, first);
        assert!(store.claim(OWNER, &["observe"], b, Millis(10)).await.unwrap().is_none());
        assert_eq!(
            store.claim(OWNER, &["observe", "wrap"], b, Millis(10)).await.unwrap().unwrap().id,
            second
        );
        let tenure = claimed.tenure().unwrap();
        store.finish(OWNER, first, &tenure, JobEnd::Again).await.unwrap();
        let reclaimed = store.claim(OWNER, &["observe"], b, Millis(10)).await.unwrap().unwrap();
        assert!(reclaimed.id == first && reclaimed.fence > claimed.fence);
        let late = store.finish(OWNER, first, &tenure, JobEnd::Done("old".into())).await;
        assert!(matches!(late, Err(StoreError::Fenced { .. })));
        let done = JobEnd::Done("new".into());
        store.finish(OWNER, first, &reclaimed.tenure().unwrap(), done.clone()).await.unwrap();
        let twice = store.finish(OWNER, first, &reclaimed.tenure().unwrap(), done).await;
        assert!(matches!(twice, Err(StoreError::Fenced { .. })));
        let all = store.jobs(OWNER, JobFilter::All).await.unwrap();
        assert_eq!(all.iter().map(|job| job.id).collect::<Vec<_>>(), [first, second, later]);
        assert_eq!(all[0].state, JobState::Done("new".into()));
        let open = store.jobs(OWNER, JobFilter::Open).await.unwrap();
        assert_eq!(open.iter().map(|job| job.id).collect::<Vec<_>>(), [second, later]);
        assert_eq!(store.claim(OWNER, &["observe"], a, Millis(100)).await.unwrap().unwrap().id, later);
    });
}

#[test]
fn a_new_identity_fences_everything_that_was_running() {
    each(|home| async move {
        let store = &home.store;
        let before = store.identity(OWNER).await.unwrap();
        let a = &Holder::new("a");
        let fence = store.acquire_lease(OWNER, "turn", a, MINUTE, Millis(0)).await.unwrap();
        store.enqueue(OWNER, job("k", None, 0)).await.unwrap();
        let claimed = store.claim(OWNER, &["k"], a, Millis(0)).await.unwrap().unwrap();
        let page = home.create(loom::Mode::Buffer, "").await;
        let generation = super::generations::start(&page, "x").await;
        let id = store.renew_identity(OWNER).await.unwrap();
        assert_ne!(id, before.store);
        assert_eq!(store.identity(OWNER).await.unwrap().store, id);
        assert!(store.renew_lease(OWNER, "turn", fence, MINUTE, Millis(1)).await.is_err());
        let finished = store.finish(OWNER, claimed.id, &claimed.tenure().unwrap(), JobEnd::Again).await;
        assert!(matches!(finished, Err(StoreError::Fenced { .. })));
        let ended = super::generations::try_answer(&page, &generation, "late").await;
        assert!(matches!(ended, Err(StoreError::Fenced { .. })));
    });
}

//! Several connections at once: what one takes the others do not get.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use loom::{Millis, Mode};
use store::{
    AttachedWrites, Cursor, Forget, LeaseOwner, NewJob, NewSession, SessionId, SessionKind, Store,
    StoreError, follow,
};

use crate::both::block_on;
use crate::home::{Home, OWNER};
use crate::server::Schema;

const MANY: usize = 8;

/// Runs a test with several stores on one database.
fn several<Fut: Future<Output = ()>>(test: impl FnOnce(Vec<Arc<Store>>) -> Fut) {
    let Some(schema) = Schema::new() else { return };
    block_on(test((0..3).map(|_| Arc::new(schema.open())).collect()));
}

#[test]
fn a_lease_is_granted_once() {
    several(|stores| async move {
        for round in 0..10 {
            let name = format!("turn {round}");
            let tries: Vec<_> = (0..MANY)
                .map(|number| {
                    let (store, name) = (Arc::clone(&stores[number % stores.len()]), name.clone());
                    tokio::spawn(async move {
                        let holder = LeaseOwner::new(format!("holder {number}"));
                        store.acquire_lease(OWNER, &name, &holder, Duration::from_secs(60)).await
                    })
                })
                .collect();
            let mut granted = 0;
            for one in tries {
                match one.await.unwrap() {
                    Ok(_) => granted += 1,
                    Err(StoreError::Held { .. }) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
            assert_eq!(granted, 1);
        }
    });
}

#[test]
fn a_job_is_enqueued_and_claimed_once() {
    several(|stores| async move {
        let job = |key: String| NewJob {
            kind: "k".into(),
            key: Some(key),
            tree: None,
            payload: "{}".into(),
            due: Millis(0),
        };
        let tasks: Vec<_> = (0..40)
            .map(|number| {
                let (store, job) = (Arc::clone(&stores[number % 3]), job(format!("job {}", number % 20)));
                tokio::spawn(async move { store.enqueue(OWNER, job).await.unwrap() })
            })
            .collect();
        let mut fresh = 0;
        for task in tasks {
            fresh += usize::from(task.await.unwrap().1);
        }
        assert_eq!(fresh, 20);
        let tasks: Vec<_> = (0..30)
            .map(|number| {
                let store = Arc::clone(&stores[number % 3]);
                let holder = LeaseOwner::new(format!("{number}"));
                tokio::spawn(async move { store.claim(OWNER, &["k"], &holder).await.unwrap() })
            })
            .collect();
        let mut claimed = Vec::new();
        for task in tasks {
            claimed.extend(task.await.unwrap().map(|job| job.id));
        }
        assert_eq!((claimed.len(), claimed.iter().collect::<BTreeSet<_>>().len()), (20, 20));
    });
}

#[test]
fn a_session_of_one_name_begins_once() {
    several(|stores| async move {
        let tasks: Vec<_> = (0..MANY)
            .map(|number| {
                let home = Home::new(Arc::clone(&stores[number % 3]));
                tokio::spawn(async move {
                    let new = NewSession {
                        id: SessionId(format!("session {number}")),
                        workspace: String::new(),
                        name: "main".to_owned(),
                        kind: SessionKind::Main,
                        at: Millis(0),
                    };
                    let with = AttachedWrites { begins: Some(new), ..AttachedWrites::default() };
                    home.create_with(OWNER, Mode::Dialogue, "", with).await.map(drop)
                })
            })
            .collect();
        let mut begun = 0;
        for task in tasks {
            match task.await.unwrap() {
                Ok(()) => begun += 1,
                Err(StoreError::Exists("session")) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        assert_eq!(begun, 1);
    });
}

#[test]
fn trees_are_written_at_once_and_followers_see_every_event_once() {
    several(|stores| async move {
        let mut follower = follow(Arc::clone(&stores[0]), OWNER.clone(), Cursor::default()).unwrap();
        let tasks: Vec<_> = (0..6)
            .map(|number| {
                let home = Home::new(Arc::clone(&stores[number % 3]));
                tokio::spawn(async move {
                    let page = home.create(Mode::Buffer, "").await;
                    for line in 0..10 {
                        page.append(&format!("{line};")).await;
                    }
                    page
                })
            })
            .collect();
        let mut seen = Vec::new();
        while seen.len() < 66 {
            let page = tokio::time::timeout(Duration::from_secs(60), follower.next()).await.unwrap().unwrap();
            assert!(!page.missed);
            seen.extend(page.events.into_iter().map(|event| event.cursor.0));
        }
        assert_eq!(seen, (1..=66).collect::<Vec<_>>());
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[test]
fn forgetting_meets_those_who_write() {
    several(|stores| async move {
        let tasks: Vec<_> = (0..4)
            .map(|number| {
                let home = Home::new(Arc::clone(&stores[number % 3]));
                tokio::spawn(async move {
                    let page = home.create(Mode::Buffer, "").await;
                    for line in 0..8 {
                        page.append(if line % 2 == 0 { "the secret word; " } else { "nothing; " }).await;
                        if line == 5 {
                            let what = Forget::Text("the secret word".to_owned());
                            page.home.store.forget(OWNER, &what, Millis(1)).await.unwrap();
                        }
                    }
                    page
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        stores[0].forget(OWNER, &Forget::Text("the secret word".to_owned()), Millis(2)).await.unwrap();
        let found = stores[1].search(OWNER, "secret", store::SearchScope::All, 99).await.unwrap();
        assert!(found.hits.is_empty());
        assert_eq!(stores[2].check(OWNER).await.unwrap(), Vec::<String>::new());
        assert!(stores[0].beyond_reach().unwrap().contains("replicas"));
    });
}

//! Followers: every event once, in order, however slow they are.

use std::sync::Arc;
use std::time::Duration;

use loom::{Mode, TreeId};
use store::{Cursor, EventKind, Follower, Principal, Scope, StoreEvent, follow};

use super::both::each;
use super::home::{Home, OWNER};

/// Far more than anything here takes: what does not come by then never comes.
const LONG: Duration = Duration::from_secs(60);

fn follower(home: &Home, who: &Principal, after: Cursor) -> Follower {
    follow(Arc::clone(&home.store), who.clone(), after).unwrap()
}

async fn next(follower: &mut Follower) -> Vec<StoreEvent> {
    let page = tokio::time::timeout(LONG, follower.next()).await.unwrap().unwrap();
    assert!(!page.missed);
    page.events
}

/// The numbers of a tree's operations.
fn seqs(events: &[StoreEvent], of: TreeId) -> Vec<u64> {
    let of_tree = events.iter().filter(|event| event.tree == of);
    let seq = |event: &StoreEvent| match event.what {
        EventKind::Operation { seq, .. } => Some(seq.0),
        _ => None,
    };
    of_tree.filter_map(seq).collect()
}

#[test]
fn a_follower_sees_each_write_once_and_in_order() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let start = home.store.identity(OWNER).await.unwrap().cursor;
        let mut waiting = follower(&home, OWNER, start);
        let mut seen = Vec::new();
        for line in ["a", "b", "c"] {
            page.append(line).await;
            seen.extend(next(&mut waiting).await);
        }
        assert_eq!(seqs(&seen, page.tree), [2, 3, 4]);
        let again = home.store.events_after(OWNER, start, 99).await.unwrap();
        assert_eq!(seen, again.events);
        assert_eq!(waiting.cursor(), again.next);
    });
}

#[test]
fn a_follower_that_waits_is_woken_by_a_write() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let mut waiting = follower(&home, OWNER, home.store.identity(OWNER).await.unwrap().cursor);
        let (seen, _) = tokio::join!(next(&mut waiting), async {
            // The other half is under way by now.
            tokio::task::yield_now().await;
            page.append("woken").await
        });
        assert_eq!(seqs(&seen, page.tree), [2]);
    });
}

#[test]
fn a_slow_follower_catches_up_without_loss_or_repetition() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let mut slow = follower(&home, OWNER, Cursor::default());
        for line in 0..300 {
            page.append(&format!("{line} ")).await;
        }
        let mut seen = Vec::new();
        while seqs(&seen, page.tree).len() < 301 {
            seen.extend(next(&mut slow).await);
        }
        assert_eq!(seqs(&seen, page.tree), (1..=301).collect::<Vec<_>>());
        assert!(seen.windows(2).all(|pair| pair[0].cursor < pair[1].cursor));
    });
}

#[test]
fn a_follower_is_not_told_of_what_it_may_not_see() {
    each(|home| async move {
        let hidden = home.create(Mode::Buffer, "").await;
        let shown = home.create(Mode::Buffer, "").await;
        let scope = Scope::ReadTree { tree: shown.tree, with_context: false };
        let reader = Principal::Token { name: "reader".to_owned(), scope };
        let mut waiting = follower(&home, &reader, Cursor::default());
        hidden.append("hidden").await;
        shown.append("shown").await;
        let mut seen = Vec::new();
        while seqs(&seen, shown.tree).len() < 2 {
            seen.extend(next(&mut waiting).await);
        }
        assert!(seen.iter().all(|event| event.tree == shown.tree));
    });
}

/// The statements it takes until so many followers have heard of one write.
async fn statements_for(home: &Home, page: &super::home::Page, followers: usize) -> u64 {
    let start = home.store.cursor().await.unwrap();
    let mut waiting: Vec<Follower> = (0..followers).map(|_| follower(home, OWNER, start)).collect();
    // All of them wait at the same place, and what there was is read.
    page.append("before").await;
    let mut heard = Vec::new();
    for follower in &mut waiting {
        heard.push(next(follower).await);
    }
    assert!(heard.iter().all(|events| *events == heard[0]));
    let mut tasks = tokio::task::JoinSet::new();
    for mut follower in waiting {
        tasks.spawn(async move { next(&mut follower).await });
    }
    tokio::task::yield_now().await;
    let before = home.store.statement_counts().statements;
    page.append("heard by all").await;
    let heard = tasks.join_all().await;
    assert!(heard.iter().all(|events| *events == heard[0] && seqs(events, page.tree).len() == 1));
    home.store.statement_counts().statements - before
}

#[test]
fn many_followers_of_a_process_cause_one_reading() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let one = statements_for(&home, &page, 1).await;
        let many = statements_for(&home, &page, 64).await;
        // The thread that looks for what others write may ask once more.
        assert!(many <= one + 4, "{one} for one follower, {many} for 64");
    });
}

#[test]
fn a_follower_far_behind_holds_nobody_and_loses_nothing() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let mut slow = follower(&home, OWNER, Cursor::default());
        let mut quick = follower(&home, OWNER, home.store.cursor().await.unwrap());
        let mut heard = 0;
        for round in 0..20_u64 {
            for _ in 0..10 {
                page.append("a ").await;
            }
            while heard < (round + 1) * 10 {
                heard += seqs(&next(&mut quick).await, page.tree).len() as u64;
            }
        }
        let mut seen = Vec::new();
        while seqs(&seen, page.tree).len() < 201 {
            seen.extend(next(&mut slow).await);
        }
        assert_eq!(seqs(&seen, page.tree), (1..=201).collect::<Vec<_>>());
    });
}

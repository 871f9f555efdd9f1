//! Reservations: what runs counts against the limits of the home until it ends, and what does not fit is not begun.

use loom::{Millis, Mode, Plan};
use store::{
    AttachedWrites, GenerationCost, GenerationEnd, GenerationState, NewGeneration, Reservation, SpendLimits,
    Spending, StoreError,
};

use super::both::each;
use super::generations::generation;
use super::home::{Home, OWNER, Page};

const LIMITS: SpendLimits = SpendLimits {
    turn: 100,
    day: 250,
    month: 1_000,
    tokens: 50,
    day_began: Millis(10_000),
    month_began: Millis(1_000),
};

fn of(turn: &str, micro_dollars: u64, tokens: u64) -> Reservation {
    Reservation { turn: turn.to_owned(), micro_dollars, tokens, limits: LIMITS }
}

async fn begin(page: &Page, reservation: Reservation) -> Result<NewGeneration, StoreError> {
    let begun = NewGeneration { reservation: Some(reservation), ..generation(page, "x").await };
    let with = AttachedWrites { generations: vec![begun.clone()], ..AttachedWrites::default() };
    page.home.store.apply(OWNER, page.tree, Plan::default(), with).await?;
    Ok(begun)
}

async fn end(page: &Page, begun: &NewGeneration, at: i64, usage: Option<GenerationCost>) {
    let state = if usage.is_some() { GenerationState::Done } else { GenerationState::Cancelled };
    let (generation, claim) = (begun.row.id, begun.claim.clone());
    let outcome = GenerationEnd { generation, claim, state, response: None, usage, at: Millis(at) };
    let with = AttachedWrites { outcomes: vec![outcome], ..AttachedWrites::default() };
    page.home.store.apply(OWNER, page.tree, Plan::default(), with).await.unwrap();
}

fn cost(micro_cost: u64) -> Option<GenerationCost> {
    Some(GenerationCost { calls: 1, micro_cost: Some(micro_cost), ..GenerationCost::default() })
}

async fn spending(home: &Home, page: &Page) -> Spending {
    home.store.spending(OWNER, page.tree, &of("a", 0, 0)).await.unwrap()
}

#[test]
fn what_is_stopped_because_its_text_is_forgotten_is_booked_as_it_was_reserved() {
    each(|home| async move {
        let page = home.create(Mode::Dialogue, "").await;
        for (reservation, wanted) in [(of("a", 90, 0), (90, 0)), (of("a", 0, 40), (90, 40))] {
            let running = begin(&page, reservation).await.unwrap();
            home.store.stop(OWNER, [running.row.id].into()).await.unwrap();
            home.store.stop(OWNER, [running.row.id].into()).await.unwrap();
            let spent = spending(&home, &page).await;
            assert_eq!((spent.day, spent.tokens), wanted);
        }
    });
}

#[test]
fn what_was_turned_away_is_taken_back_by_who_sent_it_alone() {
    each(|home| async move {
        let page = home.create(Mode::Dialogue, "").await;
        let running = begin(&page, of("a", 90, 0)).await.unwrap();
        let claim = running.claim.clone();
        home.store.stop(OWNER, [running.row.id].into()).await.unwrap();
        for other in [
            store::Claim { fence: claim.fence.next(), ..claim.clone() },
            store::Claim { owner: store::LeaseOwner::new("two"), ..claim.clone() },
        ] {
            home.store.unbook(OWNER, running.row.id, &other).await.unwrap();
            assert_eq!(spending(&home, &page).await.day, 90, "{other:?}");
        }
        home.store.unbook(OWNER, running.row.id, &claim).await.unwrap();
        assert_eq!(spending(&home, &page).await.day, 0);
        let ended = begin(&page, of("a", 90, 0)).await.unwrap();
        end(&page, &ended, 10_500, cost(30)).await;
        home.store.unbook(OWNER, ended.row.id, &ended.claim).await.unwrap();
        assert_eq!(spending(&home, &page).await.day, 30, "the control: what was not stopped");
    });
}

#[test]
fn what_runs_is_reserved_until_its_outcome_which_is_then_what_counts() {
    each(|home| async move {
        let page = home.create(Mode::Dialogue, "").await;
        let first = begin(&page, of("a", 90, 0)).await.unwrap();
        let reserved = Spending { turn: 90, day: 90, month: 90, tokens: 0 };
        assert_eq!(spending(&home, &page).await, reserved);
        end(&page, &first, 10_500, cost(30)).await;
        assert_eq!(spending(&home, &page).await, Spending { turn: 30, day: 30, month: 30, tokens: 0 });
        // What failed and was free books nothing.
        let second = begin(&page, of("a", 70, 0)).await.unwrap();
        end(&page, &second, 10_500, None).await;
        assert_eq!(spending(&home, &page).await.day, 30);
        // What was spent before the day began counts for the month.
        let third = begin(&page, of("b", 50, 0)).await.unwrap();
        end(&page, &third, 9_000, cost(50)).await;
        assert_eq!(spending(&home, &page).await, Spending { turn: 30, day: 30, month: 80, tokens: 0 });
        // And tokens without a price for the tokens alone.
        let fourth = begin(&page, of("b", 0, 40)).await.unwrap();
        assert_eq!(spending(&home, &page).await.tokens, 40);
        let usage = GenerationCost { prompt_tokens: 7, completion_tokens: 4, ..GenerationCost::default() };
        end(&page, &fourth, 10_500, Some(usage)).await;
        assert_eq!(spending(&home, &page).await, Spending { turn: 30, day: 30, month: 80, tokens: 11 });
    });
}

#[test]
fn what_does_not_fit_is_not_begun() {
    each(|home| async move {
        let (page, other) = (home.create(Mode::Dialogue, "").await, home.create(Mode::Dialogue, "").await);
        let refused = |done: Result<NewGeneration, StoreError>| matches!(done, Err(StoreError::OverBudget));
        assert!(refused(begin(&page, of("a", 101, 0)).await), "the turn");
        begin(&page, of("a", 100, 0)).await.unwrap();
        assert!(refused(begin(&page, of("a", 1, 0)).await), "two at once do not fit the turn");
        begin(&other, of("a", 100, 0)).await.unwrap();
        assert!(refused(begin(&page, of("b", 51, 0)).await), "nor three the day");
        let last = begin(&page, of("b", 50, 0)).await.unwrap();
        assert!(refused(begin(&other, of("c", 1, 0)).await));
        begin(&page, of("c", 0, 50)).await.unwrap();
        assert!(refused(begin(&page, of("c", 0, 1)).await), "the tokens");
        // Its place is free again once one has ended.
        end(&page, &last, 10_500, None).await;
        begin(&other, of("c", 50, 0)).await.unwrap();
        let all = store::GenerationFilter::default();
        assert_eq!(home.store.generations(OWNER, all, None, 999).await.unwrap().len(), 5);
    });
}

/// Each looks and then takes: without a lock several would find the same left. They are of trees of their own, so that
/// nothing else keeps them apart.
#[test]
fn of_many_at_once_as_many_begin_as_fit() {
    each(|home| async move {
        for round in 1..=5 {
            let limits = SpendLimits { turn: 100, day: 200 * round, month: 10_000, ..LIMITS };
            let mut tries = Vec::new();
            for number in 0..8 {
                let page = home.create(Mode::Dialogue, "").await;
                let reservation = Reservation { limits, ..of(&format!("{number}"), 100, 0) };
                let begun = NewGeneration { reservation: Some(reservation), ..generation(&page, "x").await };
                let with = AttachedWrites { generations: vec![begun], ..AttachedWrites::default() };
                let store = std::sync::Arc::clone(&home.store);
                tries.push(async move { store.apply(OWNER, page.tree, Plan::default(), with).await });
            }
            let mut passed = 0;
            for one in tries.into_iter().map(tokio::spawn).collect::<Vec<_>>() {
                match one.await.unwrap() {
                    Ok(_) => passed += 1,
                    Err(StoreError::OverBudget) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
            assert_eq!(passed, 2, "round {round}");
        }
    });
}

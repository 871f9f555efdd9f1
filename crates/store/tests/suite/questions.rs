//! Questions: answered once, by whoever may, or denied at the deadline.

use std::sync::Arc;
use std::time::Duration;

use loom::{Millis, Mode};
use store::{
    Claim, Decision, EventKind, Fence, Guard, LeaseOwner, MAX_OPEN_QUESTIONS, NewAnswer, NewQuestion,
    Principal, QuestionId, Scope, StoreError,
};

use super::both::each;
use super::home::{OWNER, Page};

const TEN_MINUTES: Duration = Duration::from_secs(600);

pub(crate) fn question(page: &Page, ttl: Duration) -> NewQuestion {
    NewQuestion {
        id: page.home.ids.with(|entropy| entropy.next::<QuestionId>(Millis(5))).unwrap(),
        tree: page.tree,
        kind: "budget".to_owned(),
        asker: "process 1 (drawloom chat)".to_owned(),
        payload: "the day's budget is spent; go on?".to_owned(),
        answers: vec!["yes".to_owned(), "always".to_owned()],
        form: None,
        ttl,
        claim: Claim { owner: LeaseOwner::new("one"), fence: Fence(1) },
        guards: Vec::new(),
        most: MAX_OPEN_QUESTIONS,
    }
}

pub(crate) fn answer(decision: Decision, by: &str) -> NewAnswer {
    NewAnswer { decision, word: None, reason: None, by: by.to_owned() }
}

#[test]
fn a_question_is_answered_once_and_the_second_answer_hears_by_whom() {
    each(|home| async move {
        let page = home.create(Mode::Dialogue, "").await;
        let store = &home.store;
        let before = store.identity(OWNER).await.unwrap().cursor;
        let asked = store.ask(OWNER, question(&page, TEN_MINUTES)).await.unwrap();
        assert_eq!(asked.expires.0 - asked.created.0, 600_000);
        assert_eq!(store.open_questions(OWNER, None, 99).await.unwrap(), std::slice::from_ref(&asked));
        let second = store.ask(OWNER, question(&page, TEN_MINUTES)).await.unwrap();
        assert_eq!(store.open_questions(OWNER, None, 99).await.unwrap().len(), 2);

        let wrong = NewAnswer { word: Some("maybe".to_owned()), ..answer(Decision::Approved, "a") };
        let wrong = store.answer_question(OWNER, asked.id, wrong).await;
        assert!(
            matches!(wrong, Err(StoreError::NotAnAnswer { answers, .. }) if answers == ["yes", "always"])
        );

        let first = store.answer_question(OWNER, asked.id, answer(Decision::Approved, "a")).await.unwrap();
        assert_eq!(first, None, "it is the one that counts");
        let late = store.answer_question(OWNER, asked.id, answer(Decision::Denied, "b")).await.unwrap();
        let late = late.unwrap();
        assert_eq!((late.decision, late.word.as_deref(), &*late.by), (Decision::Approved, Some("yes"), "a"));
        assert!(late.at >= asked.created);
        assert_eq!(store.question(OWNER, asked.id).await.unwrap().answer, Some(late));
        assert_eq!(store.open_questions(OWNER, None, 99).await.unwrap(), [second]);
        // Whoever follows hears of the asking and of the answer.
        let events = store.events_after(OWNER, before, 100).await.unwrap().events;
        let told = events.iter().filter(|event| event.what == EventKind::Question { id: asked.id });
        assert_eq!(told.count(), 2);
    });
}

#[test]
fn of_many_answers_at_once_one_counts() {
    each(|home| async move {
        let page = home.create(Mode::Dialogue, "").await;
        for _ in 0..5 {
            let asked = home.store.ask(OWNER, question(&page, TEN_MINUTES)).await.unwrap();
            let tries = (0..6).map(|number| {
                let (store, id) = (Arc::clone(&home.store), asked.id);
                let decision = if number % 2 == 0 { Decision::Approved } else { Decision::Denied };
                let answer = answer(decision, &format!("client {number}"));
                tokio::spawn(async move { store.answer_question(OWNER, id, answer).await.unwrap() })
            });
            let (mut counted, mut heard) = (0, Vec::new());
            for one in tries.collect::<Vec<_>>() {
                match one.await.unwrap() {
                    None => counted += 1,
                    Some(earlier) => heard.push(earlier),
                }
            }
            assert_eq!((counted, heard.len()), (1, 5));
            let stands = home.store.question(OWNER, asked.id).await.unwrap().answer.unwrap();
            assert!(heard.iter().all(|earlier| *earlier == stands));
        }
    });
}

#[test]
fn a_question_past_its_time_is_denied_whatever_is_answered() {
    each(|home| async move {
        let page = home.create(Mode::Dialogue, "").await;
        let store = &home.store;
        let asked = store.ask(OWNER, question(&page, Duration::ZERO)).await.unwrap();
        assert!(store.open_questions(OWNER, None, 99).await.unwrap().is_empty());
        let late = store.answer_question(OWNER, asked.id, answer(Decision::Approved, "a")).await.unwrap();
        let late = late.unwrap();
        assert_eq!((late.decision, &*late.by), (Decision::Denied, "the deadline"));
        let asked = store.ask(OWNER, question(&page, Duration::ZERO)).await.unwrap();
        let expired = store.expire_question(OWNER, asked.id).await.unwrap();
        assert_eq!(expired.answer.unwrap().decision, Decision::Denied);
        // Control: one that has time left is not.
        let asked = store.ask(OWNER, question(&page, TEN_MINUTES)).await.unwrap();
        assert_eq!(store.expire_question(OWNER, asked.id).await.unwrap().answer, None);
    });
}

#[test]
fn a_question_is_found_by_the_beginning_of_its_short_id() {
    each(|home| async move {
        let page = home.create(Mode::Dialogue, "").await;
        let store = &home.store;
        let asked = store.ask(OWNER, question(&page, TEN_MINUTES)).await.unwrap();
        for name in [asked.id.to_string(), asked.id.short(), asked.id.short()[..4].to_uppercase()] {
            assert_eq!(store.resolve_question(OWNER, &name).await.unwrap(), asked.id, "{name}");
        }
        for name in ["", "zzzzzzzz", &asked.id.short()[..3]] {
            let missing = store.resolve_question(OWNER, name).await;
            assert!(matches!(missing, Err(StoreError::NotFound("question"))), "{name}");
        }
    });
}

#[test]
fn work_that_lost_its_lease_asks_nothing_and_others_do_not_see_the_question() {
    each(|home| async move {
        let page = home.create(Mode::Dialogue, "").await;
        let store = &home.store;
        let holder = LeaseOwner::new("one");
        let fence = store.acquire_lease(OWNER, "turn", &holder, TEN_MINUTES).await.unwrap();
        let guards = vec![Guard { lease: "turn".to_owned(), fence }];
        let guarded = || NewQuestion { guards: guards.clone(), ..question(&page, TEN_MINUTES) };
        let asked = store.ask(OWNER, guarded()).await.unwrap();
        store.release_lease(OWNER, "turn", fence).await.unwrap();
        assert!(matches!(store.ask(OWNER, guarded()).await, Err(StoreError::Fenced { .. })));

        let scope = Scope::ChatSession("another".to_owned());
        let other = Principal::Token { name: "t".to_owned(), scope };
        assert!(store.open_questions(&other, None, 99).await.unwrap().is_empty());
        let answered = store.answer_question(&other, asked.id, answer(Decision::Approved, "t")).await;
        assert!(matches!(answered, Err(StoreError::NotFound("question"))));
        let scope = Scope::ReadTree { tree: page.tree, with_context: true };
        let reader = Principal::Token { name: "t".to_owned(), scope };
        assert_eq!(store.open_questions(&reader, None, 99).await.unwrap().len(), 1);
        let answered = store.answer_question(&reader, asked.id, answer(Decision::Approved, "t")).await;
        assert!(matches!(answered, Err(StoreError::Denied(_))));
    });
}

#[test]
fn of_one_session_twenty_questions_stand_and_the_next_is_not_asked() {
    each(|home| async move {
        let store = &home.store;
        let [page, other] = [home.create(Mode::Dialogue, "").await, home.create(Mode::Dialogue, "").await];
        let mut asked = Vec::new();
        for _ in 0..MAX_OPEN_QUESTIONS {
            asked.push(store.ask(OWNER, question(&page, TEN_MINUTES)).await.unwrap());
        }
        let refused = store.ask(OWNER, question(&page, TEN_MINUTES)).await;
        assert!(matches!(refused, Err(StoreError::TooManyQuestions { limit: MAX_OPEN_QUESTIONS })));
        assert_eq!(store.open_questions(OWNER, None, 99).await.unwrap().len() as u64, MAX_OPEN_QUESTIONS);
        store.ask(OWNER, question(&other, TEN_MINUTES)).await.unwrap();
        store.answer_question(OWNER, asked[7].id, answer(Decision::Denied, "a")).await.unwrap();
        // One that is past its time stands no more.
        store.ask(OWNER, question(&page, Duration::ZERO)).await.unwrap();
        store.ask(OWNER, question(&page, TEN_MINUTES)).await.unwrap();
        assert!(store.ask(OWNER, question(&page, TEN_MINUTES)).await.is_err());
    });
}

#[test]
fn what_a_purged_tree_asked_is_emptied() {
    each(|home| async move {
        let page = home.create(Mode::Dialogue, "").await;
        let other = home.create(Mode::Dialogue, "").await;
        let store = &home.store;
        let asked = store.ask(OWNER, question(&page, TEN_MINUTES)).await.unwrap();
        let control = store.ask(OWNER, question(&other, TEN_MINUTES)).await.unwrap();
        store.purge(OWNER, page.tree, Millis(9)).await.unwrap();
        assert_eq!(store.question(OWNER, asked.id).await.unwrap().payload, "");
        assert_eq!(store.question(OWNER, control.id).await.unwrap().payload, control.payload);
    });
}

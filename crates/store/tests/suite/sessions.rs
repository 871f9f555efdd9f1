//! Sessions: names are unique where they are used, trees form one chain, and a token sees its own.

use std::time::Duration;

use loom::Millis;
use store::{
    AttachedWrites, LeaseOwner, NewSession, Principal, Scope, Session, SessionFilter, SessionId, SessionKind,
    StoreError,
};

use super::both::each;
use super::home::{Home, OWNER};

fn new(id: &str, workspace: &str, name: &str) -> NewSession {
    NewSession {
        id: SessionId(id.to_owned()),
        workspace: workspace.to_owned(),
        name: name.to_owned(),
        kind: SessionKind::Main,
        at: Millis(7),
    }
}

async fn begin(home: &Home, new: NewSession) -> Result<loom::TreeId, StoreError> {
    bound(home, AttachedWrites { begins: Some(new), ..AttachedWrites::nothing() }).await
}

async fn bound(home: &Home, with: AttachedWrites) -> Result<loom::TreeId, StoreError> {
    Ok(home.create_with(OWNER, loom::Mode::Dialogue, "", with).await?.tree)
}

async fn named(home: &Home, who: &Principal, workspace: &str, name: &str) -> Option<Session> {
    let filter =
        SessionFilter { workspace: Some(workspace.to_owned()), name: Some(name.to_owned()), archived: false };
    home.store.sessions(who, filter, None, 99).await.unwrap().into_iter().next()
}

#[test]
fn a_session_begins_with_its_first_tree_and_goes_on_in_its_newest() {
    each(|home| async move {
        let first = begin(&home, new("a", "w", "main")).await.unwrap();
        let next = AttachedWrites { session: Some("a".to_owned()), ..AttachedWrites::nothing() };
        let second = bound(&home, next).await.unwrap();
        let found = named(&home, OWNER, "w", "main").await.unwrap();
        assert_eq!(found.trees.iter().map(|tree| tree.id).collect::<Vec<_>>(), [first, second]);
        assert_eq!((found.tree(), found.kind), (Some(second), SessionKind::Main));
        assert!(named(&home, OWNER, "other", "main").await.is_none());
    });
}

#[test]
fn a_name_is_taken_once_in_a_workspace_and_free_again_when_archived() {
    each(|home| async move {
        begin(&home, new("a", "w", "main")).await.unwrap();
        begin(&home, new("b", "v", "main")).await.unwrap();
        let before = home.store.trees(OWNER, store::TreeFilter::All, None, 9_999).await.unwrap().len();
        let twice = begin(&home, new("c", "w", "main")).await;
        assert!(matches!(twice, Err(StoreError::Exists("session"))), "{twice:?}");
        // The tree that would have come with it is not there either.
        assert_eq!(home.store.trees(OWNER, store::TreeFilter::All, None, 9_999).await.unwrap().len(), before);

        let (a, c) = (SessionId("a".into()), SessionId("c".into()));
        home.store.archive_session(OWNER, &a, true).await.unwrap();
        begin(&home, new("c", "w", "main")).await.unwrap();
        let back = home.store.archive_session(OWNER, &a, false).await;
        assert!(matches!(back, Err(StoreError::Exists("session"))));
        home.store.rename_session(OWNER, &c, "side").await.unwrap();
        home.store.archive_session(OWNER, &a, false).await.unwrap();
        let taken = home.store.rename_session(OWNER, &c, "main").await;
        assert!(matches!(taken, Err(StoreError::Exists("session"))));
        assert_eq!(named(&home, OWNER, "w", "main").await.unwrap().id, a);
        assert_eq!(named(&home, OWNER, "w", "side").await.unwrap().id, c);
    });
}

#[test]
fn settings_are_written_over_those_that_were_seen_and_no_others() {
    each(|home| async move {
        begin(&home, new("a", "w", "main")).await.unwrap();
        let id = SessionId("a".into());
        let set = async |seen: &str, to: &str| home.store.set_session_settings(OWNER, &id, seen, to).await;
        assert_eq!(set("", "one").await.unwrap(), None);
        assert_eq!(set("", "two").await.unwrap().as_deref(), Some("one"), "another one was first");
        assert_eq!(named(&home, OWNER, "w", "main").await.unwrap().settings, "one");
        assert_eq!(set("one", "").await.unwrap(), None);
        assert_eq!(named(&home, OWNER, "w", "main").await.unwrap().settings, "");
        let other = SessionId("b".into());
        let missing = home.store.set_session_settings(OWNER, &other, "", "x").await;
        assert!(matches!(missing, Err(StoreError::NotFound(_))));
    });
}

/// Statements of a list of all sessions, each of which has two trees.
async fn list_cost(home: &Home, sessions: usize) -> u64 {
    let filter = SessionFilter { workspace: Some("w".to_owned()), name: None, archived: false };
    let before = home.store.statement_counts().statements;
    let listed = home.store.sessions(OWNER, filter, None, 99).await.unwrap();
    let after = home.store.statement_counts().statements;
    assert_eq!(listed.len(), sessions);
    assert!(listed.iter().all(|session| session.trees.len() == 2), "{listed:?}");
    after - before
}

#[test]
fn a_list_of_sessions_takes_as_many_statements_however_many_there_are() {
    each(|home| async move {
        let more = async |from: usize, to: usize| {
            for number in from..to {
                let id = format!("s{number}");
                begin(&home, new(&id, "w", &id)).await.unwrap();
                bound(&home, AttachedWrites { session: Some(id), ..AttachedWrites::nothing() })
                    .await
                    .unwrap();
            }
        };
        more(0, 3).await;
        let of_few = list_cost(&home, 3).await;
        more(3, 60).await;
        assert_eq!(list_cost(&home, 60).await, of_few);
    });
}

#[test]
fn a_session_is_removed_only_when_nothing_of_it_is_left() {
    each(|home| async move {
        let tree = begin(&home, new("a", "w", "main")).await.unwrap();
        let id = SessionId("a".into());
        assert!(matches!(home.store.remove_session(OWNER, &id).await, Err(StoreError::Exists(_))));
        home.store.purge(OWNER, tree, Millis(9)).await.unwrap();
        assert!(named(&home, OWNER, "w", "main").await.unwrap().tree().is_none());
        home.store.remove_session(OWNER, &id).await.unwrap();
        assert!(named(&home, OWNER, "w", "main").await.is_none());
        assert!(matches!(home.store.remove_session(OWNER, &id).await, Err(StoreError::NotFound(_))));
    });
}

#[test]
fn a_purge_takes_the_session_from_the_turn_it_is_in() {
    each(|home| async move {
        let (tree, other) = (begin(&home, new("a", "w", "main")), begin(&home, new("b", "w", "side")));
        let (tree, _) = (tree.await.unwrap(), other.await.unwrap());
        let (owner, ttl) = (LeaseOwner::new("a turn"), Duration::from_secs(600));
        let [of_tree, control] = ["a", "b"].map(|id| SessionId(id.into()).lease());
        let fence = home.store.acquire_lease(OWNER, &of_tree, &owner, ttl).await.unwrap();
        let of_control = home.store.acquire_lease(OWNER, &control, &owner, ttl).await.unwrap();
        home.store.purge(OWNER, tree, Millis(9)).await.unwrap();
        let renewed = home.store.renew_lease(OWNER, &of_tree, fence, ttl).await;
        assert!(matches!(renewed, Err(StoreError::Fenced { .. })), "{renewed:?}");
        home.store.renew_lease(OWNER, &control, of_control, ttl).await.unwrap();
        home.store.acquire_lease(OWNER, &of_tree, &LeaseOwner::new("the next"), ttl).await.unwrap();
    });
}

#[test]
fn a_token_of_one_session_sees_that_session_alone() {
    each(|home| async move {
        begin(&home, new("a", "w", "main")).await.unwrap();
        begin(&home, new("b", "w", "side")).await.unwrap();
        let scope = Scope::ChatSession("b".to_owned());
        let token = Principal::Token { name: "t".into(), scope };
        let seen = home.store.sessions(&token, SessionFilter::default(), None, 99).await.unwrap();
        assert_eq!(seen.iter().map(|found| found.name.as_str()).collect::<Vec<_>>(), ["side"]);
        let id = SessionId("b".into());
        assert!(matches!(home.store.rename_session(&token, &id, "x").await, Err(StoreError::NotFound(_))));
    });
}

//! A session that was moved to another of its trees goes on there, unless that was archived or purged since.

use std::sync::Arc;
use std::time::Duration;

use loom::{Millis, Mode, Op, TreeId};
use rusqlite::Connection;
use store::{AttachedWrites, LeaseOwner, NewSession, SessionId, SessionKind, Store, StoreError};

use crate::both::block_on;
use crate::home::{Home, OWNER, Page};

async fn page(home: &Home, begins: bool) -> Page {
    let new = NewSession {
        id: SessionId("a".to_owned()),
        workspace: String::new(),
        name: "main".to_owned(),
        kind: SessionKind::Main,
        at: Millis(7),
    };
    let with = AttachedWrites {
        begins: begins.then_some(new),
        session: Some("a".to_owned()),
        ..AttachedWrites::nothing()
    };
    home.create_with(OWNER, Mode::Buffer, "", with).await.unwrap()
}

#[test]
fn a_session_goes_on_in_the_tree_that_it_was_moved_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    block_on(async {
        let home = Home::new(Arc::new(Store::open(&path).unwrap()));
        let (first, second) = (page(&home, true).await, page(&home, false).await);
        let id = SessionId("a".to_owned());
        let found = async || home.store.session(OWNER, &id).await.unwrap().unwrap();
        let move_to = |tree: Option<TreeId>| {
            let sql = "UPDATE sessions SET tree = (SELECT pk FROM trees WHERE id = ?1)";
            let conn = Connection::open(&path).unwrap();
            conn.execute(sql, [tree.map(TreeId::to_bytes)]).unwrap();
        };
        assert_eq!(found().await.tree(), Some(second.tree));
        move_to(Some(first.tree));
        let moved = found().await;
        assert_eq!(moved.tree(), Some(first.tree));
        assert_eq!(moved.trees.len(), 2, "it is one chain all the same");
        assert_eq!(home.store.check(OWNER).await.unwrap(), Vec::<String>::new());
        first.change(Op::Archive(true)).await;
        assert_eq!(found().await.tree(), Some(second.tree), "an archived one is as none");
        first.change(Op::Archive(false)).await;
        assert_eq!(found().await.tree(), Some(first.tree));
        // A turn of the session is in that tree.
        let owner = LeaseOwner::new("a turn");
        let (lease, ttl) = (id.lease(), Duration::from_secs(600));
        let fence = home.store.acquire_lease(OWNER, &lease, &owner, ttl).await.unwrap();
        home.store.purge(OWNER, first.tree, Millis(9)).await.unwrap();
        let renewed = home.store.renew_lease(OWNER, &lease, fence, ttl).await;
        assert!(matches!(renewed, Err(StoreError::Fenced { .. })), "{renewed:?}");
        assert_eq!(found().await.tree(), Some(second.tree), "a purged one is as none");
        move_to(None);
        assert_eq!(found().await.tree(), Some(second.tree));
        // A tree of another session is damage.
        let other = home.create(Mode::Buffer, "").await;
        move_to(Some(other.tree));
        assert_eq!(found().await.tree(), Some(second.tree));
        let problems = home.store.check(OWNER).await.unwrap();
        assert!(
            problems.len() == 1 && problems[0].contains("goes on in a tree of another one"),
            "{problems:?}"
        );
    });
}

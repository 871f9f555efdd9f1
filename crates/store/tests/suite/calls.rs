//! Calls of tools: started once, ended by whoever has them, taken over with a number that refuses the one before.

use loom::{Mode, Op, TreeReader};
use store::{AttachedWrites, CallEnd, CallId, Claim, Fence, LeaseOwner, NewCall, StoreError, read};

use super::both::each;
use super::home::{OWNER, owner_text};

#[test]
fn a_call_is_started_once_and_ended_by_its_owner_alone() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let applied =
            page.change_as(OWNER, Op::Append(owner_text("calls")), AttachedWrites::default()).await.unwrap();
        let answer = applied.nodes[0].0;
        let store = &page.home.store;
        let claim = Claim { owner: LeaseOwner::new("one"), fence: Fence(1) };
        let call =
            |number| NewCall { id: CallId { answer, number }, claim: claim.clone(), guards: Vec::new() };
        for number in [0, 2] {
            store.start_call(OWNER, page.tree, call(number)).await.unwrap();
        }
        let again = store.start_call(OWNER, page.tree, call(2)).await;
        assert!(matches!(again, Err(StoreError::Exists("call"))), "{again:?}");
        let started = read(store, OWNER, page.tree, move |rows: &dyn TreeReader| rows.started_calls(answer));
        assert_eq!(started.await.unwrap(), [0, 2]);
        let running = store.running_calls(OWNER, None, 9).await.unwrap();
        assert_eq!(running.iter().map(|call| call.id.number).collect::<Vec<_>>(), [0, 2]);
        let behind = store.running_calls(OWNER, Some(running[0].id), 9).await.unwrap();
        assert_eq!(behind, running[1..]);
        let taken = store.take_over_call(OWNER, running[0].clone(), &LeaseOwner::new("two")).await.unwrap();
        let end = |claim| AttachedWrites {
            calls: vec![CallEnd { id: running[0].id, claim }],
            ..AttachedWrites::default()
        };
        let refused = page.change_as(OWNER, Op::Append(owner_text("late")), end(claim.clone())).await;
        assert!(matches!(refused, Err(StoreError::Fenced { .. })), "{refused:?}");
        page.change_as(OWNER, Op::Append(owner_text("result")), end(taken)).await.unwrap();
        assert_eq!(store.running_calls(OWNER, None, 9).await.unwrap(), running[1..]);
    });
}

//! Ledgers of sessions: appended in one order, struck by what corrects, and forgotten with what they were said in.

use loom::{Mode, NodeId, Trust};
use store::{
    AttachedWrites, Fence, Forget, ForgottenPlace, Guard, NewOutcome, NewSession, OUTCOME_CHARS, Outcome,
    OutcomeError, OutcomeId, OutcomeKind, Principal, Scope, SessionId, SessionKind, StoreError,
};

use super::both::each;
use super::home::{Home, OWNER, Page};

fn named(id: &str) -> SessionId {
    SessionId(id.to_owned())
}

/// A tree of a session that begins with it, or goes on in it.
async fn page(home: &Home, session: &str, begins: bool) -> Page {
    let new = NewSession {
        id: named(session),
        workspace: "w".to_owned(),
        name: session.to_owned(),
        kind: SessionKind::Main,
        at: loom::Millis(7),
    };
    let with = AttachedWrites {
        begins: begins.then_some(new),
        session: Some(session.to_owned()),
        ..AttachedWrites::nothing()
    };
    home.create_with(OWNER, Mode::Buffer, "", with).await.unwrap()
}

fn note(page: &Page, session: &str, text: &str) -> NewOutcome {
    NewOutcome {
        session: named(session),
        tree: page.tree,
        node: None,
        kind: OutcomeKind::Outcome,
        trust: Trust::Owner,
        text: text.to_owned(),
        corrects: None,
        guards: Vec::new(),
    }
}

async fn noted(page: &Page, new: NewOutcome) -> Result<OutcomeId, StoreError> {
    page.home.store.note_outcome(OWNER, new).await
}

/// Corrects an entry.
fn correction(page: &Page, session: &str, text: &str, corrects: OutcomeId) -> NewOutcome {
    NewOutcome { kind: OutcomeKind::Correction, corrects: Some(corrects), ..note(page, session, text) }
}

async fn ledger(home: &Home, session: &str) -> Vec<Outcome> {
    home.store.outcomes(OWNER, &named(session), None, 99).await.unwrap()
}

/// Texts of a ledger, those that are struck between tildes.
async fn texts(home: &Home, session: &str) -> Vec<String> {
    let all = ledger(home, session).await.into_iter();
    all.map(|one| if one.is_struck { format!("~{}~", one.text) } else { one.text }).collect()
}

#[test]
fn a_ledger_is_in_the_order_of_commits_and_a_correction_strikes() {
    each(|home| async move {
        let first = page(&home, "a", true).await;
        let node = first.append("We decide.").await;
        let decision = NewOutcome {
            node: Some(node),
            kind: OutcomeKind::Decision,
            trust: Trust::Agent,
            ..note(&first, "a", "Tuesday")
        };
        let decided = noted(&first, decision).await.unwrap();
        let other = page(&home, "b", true).await;
        noted(&other, note(&other, "b", "of another session")).await.unwrap();
        let second = page(&home, "a", false).await;
        let corrected = noted(&second, correction(&second, "a", "Friday", decided)).await.unwrap();
        noted(&second, correction(&second, "a", "Sunday", corrected)).await.unwrap();
        let all = ledger(&home, "a").await;
        assert!(all.windows(2).all(|pair| pair[0].id < pair[1].id && pair[0].at <= pair[1].at), "{all:?}");
        assert_eq!(texts(&home, "a").await, ["~Tuesday~", "~Friday~", "Sunday"]);
        let said = &all[0];
        assert_eq!((said.tree, said.node, said.kind), (first.tree, Some(node), OutcomeKind::Decision));
        assert_eq!((said.trust, said.corrects, all[1].corrects), (Trust::Agent, None, Some(decided)));
        assert_eq!(all[1].tree, second.tree);
        let behind = home.store.outcomes(OWNER, &named("a"), Some(decided), 1).await.unwrap();
        assert_eq!(behind, all[1..2]);
        assert_eq!(texts(&home, "b").await, ["of another session"]);
    });
}

#[test]
fn an_entry_that_does_not_fit_is_refused_by_name() {
    each(|home| async move {
        let (page_a, page_b) = (page(&home, "a", true).await, page(&home, "b", true).await);
        let refused = async |new: NewOutcome| match noted(&page_a, new).await {
            Err(StoreError::Outcome(error)) => Some(error),
            _ => None,
        };
        let long = "ä".repeat(OUTCOME_CHARS);
        noted(&page_a, note(&page_a, "a", &long)).await.unwrap();
        let longer = refused(note(&page_a, "a", &format!("{long}.")));
        assert_eq!(longer.await, Some(OutcomeError::TooLong { chars: OUTCOME_CHARS + 1 }));
        assert_eq!(refused(note(&page_a, "a", " \n")).await, Some(OutcomeError::Empty));
        let of_other = noted(&page_b, note(&page_b, "b", "of b")).await.unwrap();
        for unknown in [OutcomeId(9_999), of_other] {
            let found = refused(correction(&page_a, "a", "no", unknown)).await;
            assert_eq!(found, Some(OutcomeError::Unknown(unknown)));
        }
        let elsewhere = noted(&page_a, note(&page_b, "a", "in a tree of b")).await;
        assert!(matches!(elsewhere, Err(StoreError::NotFound(_))), "{elsewhere:?}");
        let nowhere = noted(&page_a, note(&page_a, "c", "of no session")).await;
        assert!(matches!(nowhere, Err(StoreError::NotFound("session"))), "{nowhere:?}");
        let node = Some(NodeId::from_bytes([9; 16]));
        let of_no_node = noted(&page_a, NewOutcome { node, ..note(&page_a, "a", "of no node") }).await;
        assert!(matches!(of_no_node, Err(StoreError::NotFound("node"))), "{of_no_node:?}");
        let guard = Guard { lease: named("a").lease(), fence: Fence(3) };
        let late = noted(&page_a, NewOutcome { guards: vec![guard], ..note(&page_a, "a", "late") }).await;
        assert!(matches!(late, Err(StoreError::Fenced { .. })), "{late:?}");
        assert_eq!(texts(&home, "a").await, [long]);
    });
}

#[test]
fn what_comes_from_outside_strikes_nothing_that_is_believed_further() {
    each(|home| async move {
        let page = page(&home, "a", true).await;
        let outside = |new: NewOutcome| NewOutcome { trust: Trust::Outside, ..new };
        for trust in [Trust::Owner, Trust::Agent, Trust::Workspace] {
            let said = noted(&page, NewOutcome { trust, ..note(&page, "a", "kept") }).await.unwrap();
            let refused = noted(&page, outside(correction(&page, "a", "struck", said))).await;
            let expected = OutcomeError::Outranked(said);
            assert!(matches!(refused, Err(StoreError::Outcome(error)) if error == expected), "{refused:?}");
        }
        let said = noted(&page, outside(note(&page, "a", "from a page"))).await.unwrap();
        noted(&page, outside(correction(&page, "a", "from another page", said))).await.unwrap();
        let last = ["kept", "kept", "kept", "~from a page~", "from another page"];
        assert_eq!(texts(&home, "a").await, last);
    });
}

#[test]
fn a_token_notes_in_its_own_session_alone() {
    each(|home| async move {
        let (page_a, page_b) = (page(&home, "a", true).await, page(&home, "b", true).await);
        let of = |scope| Principal::Token { name: "t".into(), scope };
        let chat = of(Scope::ChatSession("b".to_owned()));
        let reader = of(Scope::ReadTree { tree: page_b.tree, with_context: true });
        home.store.note_outcome(&chat, note(&page_b, "b", "mine")).await.unwrap();
        assert_eq!(home.store.outcomes(&chat, &named("b"), None, 9).await.unwrap().len(), 1);
        for (who, page, session) in [(&chat, &page_a, "a"), (&reader, &page_b, "b")] {
            let written = home.store.note_outcome(who, note(page, session, "not mine")).await;
            assert!(matches!(written, Err(StoreError::NotFound("session"))), "{written:?}");
            let read = home.store.outcomes(who, &named(session), None, 9).await;
            assert!(matches!(read, Err(StoreError::NotFound("session"))), "{read:?}");
        }
    });
}

#[test]
fn many_writers_at_once_lose_no_entry_and_give_no_number_twice() {
    each(|home| async move {
        let pages = [page(&home, "a", true).await, page(&home, "a", false).await];
        let writers = (0..4).map(|writer| {
            let page = pages[writer % 2].clone();
            tokio::spawn(async move {
                for number in 0..8 {
                    noted(&page, note(&page, "a", &format!("{writer} {number}"))).await.unwrap();
                }
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.await.unwrap();
        }
        let all = ledger(&home, "a").await;
        assert_eq!(all.len(), 32);
        assert!(all.windows(2).all(|pair| pair[0].id < pair[1].id), "{all:?}");
        for writer in 0..4 {
            let of = all.iter().filter(|one| one.text.starts_with(&format!("{writer} ")));
            let numbers: Vec<_> = of.map(|one| one.text[2..].parse::<u32>().unwrap()).collect();
            assert_eq!(numbers, (0..8).collect::<Vec<_>>(), "each in its order");
        }
    });
}

#[test]
fn a_forgotten_text_or_node_takes_its_entries_and_what_they_corrected_stays_struck() {
    each(|home| async move {
        let page = page(&home, "a", true).await;
        let (node, kept) = (page.append("A page says so.").await, page.append("Plain.").await);
        let said_in = |node, text: &str| NewOutcome { node: Some(node), ..note(&page, "a", text) };
        let first = noted(&page, said_in(kept, "the key is 1")).await.unwrap();
        let second = correction(&page, "a", "the marzipan key is 2", first);
        let second = noted(&page, second).await.unwrap();
        let third = noted(&page, said_in(node, "as the page says")).await.unwrap();
        let place = |outcome| ForgottenPlace::Outcome { session: named("a"), outcome };
        let what = Forget::Text("marzipan".into());
        let preview = home.store.forget_preview(OWNER, &what).await.unwrap();
        assert_eq!(texts(&home, "a").await.len(), 3, "a preview removes nothing");
        let done = home.store.forget(OWNER, &what, loom::Millis(8)).await.unwrap();
        assert_eq!((&done.places, &done.places[..]), (&preview, &[place(second)][..]));
        assert_eq!(texts(&home, "a").await, ["~the key is 1~", "as the page says"]);
        let again = noted(&page, correction(&page, "a", "again", second)).await;
        let unknown = OutcomeError::Unknown(second);
        assert!(matches!(again, Err(StoreError::Outcome(error)) if error == unknown), "{again:?}");
        let what = Forget::Node { tree: page.tree, node };
        let done = home.store.forget(OWNER, &what, loom::Millis(9)).await.unwrap();
        assert!(done.places.contains(&place(third)), "{done:?}");
        assert_eq!(texts(&home, "a").await, ["~the key is 1~"]);
    });
}

#[test]
fn a_purged_tree_takes_its_entries_and_a_removed_session_all_of_them() {
    each(|home| async move {
        let (first, second) = (page(&home, "a", true).await, page(&home, "a", false).await);
        let other = page(&home, "b", true).await;
        noted(&other, note(&other, "b", "of b")).await.unwrap();
        noted(&first, note(&first, "a", "in the first")).await.unwrap();
        noted(&second, note(&second, "a", "in the second")).await.unwrap();
        home.store.purge(OWNER, first.tree, loom::Millis(8)).await.unwrap();
        assert_eq!(texts(&home, "a").await, ["in the second"]);
        let late = noted(&first, note(&first, "a", "in what is purged")).await;
        assert!(matches!(late, Err(StoreError::NotFound(_))), "{late:?}");
        home.store.purge(OWNER, second.tree, loom::Millis(9)).await.unwrap();
        home.store.remove_session(OWNER, &named("a")).await.unwrap();
        let gone = home.store.outcomes(OWNER, &named("a"), None, 9).await;
        assert!(matches!(gone, Err(StoreError::NotFound("session"))), "{gone:?}");
        // A number is not given again.
        let next = noted(&other, note(&other, "b", "next")).await.unwrap();
        assert_eq!(ledger(&home, "b").await.len(), 2);
        assert!(next > OutcomeId(3), "{next}");
    });
}

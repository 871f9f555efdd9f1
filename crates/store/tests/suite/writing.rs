//! Plans: all or nothing, numbers without gaps, conflicts by name.

use loom::plan::Request;
use loom::{CellKey, Mode, Op, OpKind, OpTarget, PositionId, Seq, ViewName};
use store::{AttachedWrites, Fence, Guard, LeaseOwner, PreparedChange, StaleRead, StoreError, prepare, read};

use super::both::each;
use super::home::{Home, OWNER, Page, owner_text};

#[test]
fn what_is_written_is_read() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "Rain").await;
        let applied = page.change(Op::Append(owner_text("It rained. "))).await;
        assert_eq!(applied.seq, Some(Seq(2)));
        assert_eq!(applied.nodes.len(), 1);
        assert!(applied.nodes[0].1.len() >= 4);
        page.append("Then it stopped.").await;
        assert_eq!(page.text().await, "It rained. Then it stopped.");
        let entry = home.store.tree(OWNER, page.tree).await.unwrap();
        assert_eq!((entry.title.as_str(), entry.nodes, entry.seq), ("Rain", 3, Seq(3)));
    });
}

#[test]
fn a_tree_is_made_once() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let again = page.change_as(
            OWNER,
            Op::Create(loom::plan::NewTree { mode: Mode::Buffer, title: String::new(), origin: None }),
            AttachedWrites::nothing(),
        );
        assert!(matches!(again.await, Err(StoreError::Exists("tree"))));
    });
}

#[test]
fn a_stale_plan_names_what_changed_and_writes_nothing() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let request = home.request(page.tree, Op::Append(owner_text("late")));
        let stale = prepare(&home.store, OWNER, request, &home.ids).await.unwrap().plan;
        page.append("first").await;
        let refused = home.store.apply(OWNER, page.tree, stale, AttachedWrites::nothing()).await;
        let Err(StoreError::Conflict(changed)) = refused else { panic!("{refused:?}") };
        assert_eq!(changed, [StaleRead::Cell(CellKey::Tip { view: ViewName::default() })]);
        assert_eq!(page.text().await, "first");
        assert_eq!(home.store.tree(OWNER, page.tree).await.unwrap().seq, Seq(2));
    });
}

#[test]
fn writers_at_once_get_numbers_without_a_gap() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let tasks = tokio::task::LocalSet::new();
        for writer in 0..8 {
            let page = page.clone();
            tasks.spawn_local(async move {
                for line in 0..5 {
                    page.append(&format!("{writer}.{line};")).await;
                }
            });
        }
        tasks.await;
        let records =
            read(&home.store, OWNER, page.tree, |rows| rows.operations(Seq(0), 1000)).await.unwrap();
        let seqs: Vec<u64> = records.iter().map(|record| record.seq.0).collect();
        assert_eq!(seqs, (1..=41).collect::<Vec<_>>());
        for pair in records.windows(2) {
            assert_eq!(pair[1].prev, pair[0].hash);
            assert_eq!(pair[1].compute_hash().unwrap(), pair[1].hash);
        }
        let text = page.text().await;
        let mut lines: Vec<_> = text.split_terminator(';').collect();
        assert_eq!(lines.len(), 40);
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 40);
    });
}

#[test]
fn a_lost_guard_refuses_the_whole_write() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let minute = std::time::Duration::from_secs(60);
        let (a, b) = (LeaseOwner::new("a"), LeaseOwner::new("b"));
        let fence = home.store.acquire_lease(OWNER, "session/main", &a, minute).await.unwrap();
        let guarded = |fence| AttachedWrites {
            guards: vec![Guard { lease: "session/main".into(), fence }],
            ..AttachedWrites::default()
        };
        page.change_as(OWNER, Op::Append(owner_text("mine")), guarded(fence)).await.unwrap();
        home.store.advance_clock(minute);
        let taken = home.store.acquire_lease(OWNER, "session/main", &b, minute).await.unwrap();
        assert!(taken > fence);
        let late = page.change_as(OWNER, Op::Append(owner_text("late")), guarded(fence)).await;
        assert!(matches!(late, Err(StoreError::Fenced { .. })));
        let unknown = page.change_as(OWNER, Op::Append(owner_text("late")), guarded(Fence(99))).await;
        assert!(matches!(unknown, Err(StoreError::Fenced { .. })));
        assert_eq!(page.text().await, "mine");
    });
}

#[test]
fn every_write_is_an_event_in_the_order_of_its_tree() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let start = home.store.identity(OWNER).await.unwrap().cursor;
        page.append("a").await;
        let other = home.create(Mode::Buffer, "").await;
        page.append("b").await;
        let events = home.store.events_after(OWNER, start, 100).await.unwrap();
        assert!(!events.missed);
        let of_page: Vec<_> = events.events.iter().filter(|event| event.tree == page.tree).collect();
        let seqs: Vec<_> = of_page
            .iter()
            .map(|event| match &event.what {
                store::EventKind::Operation { seq, kind: OpKind::Commit, view: Some(_) } => seq.0,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(seqs, [2, 3]);
        assert!(events.events.iter().any(|event| event.tree == other.tree));
        let first = home.store.events_after(OWNER, start, 1).await.unwrap();
        assert_eq!(first.events[..], events.events[..1]);
        let rest = home.store.events_after(OWNER, first.next, 100).await.unwrap();
        assert_eq!(rest.events[..], events.events[1..]);
        assert_eq!(home.store.events_after(OWNER, rest.next, 100).await.unwrap().events, []);
    });
}

#[test]
fn seals_are_kept_if_they_are_signed_and_cover_what_is_there() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let begun =
            read(&home.store, OWNER, page.tree, |rows| rows.operation(Seq(1))).await.unwrap().unwrap();
        let head = loom::seal::next_head(loom::seal::first_head(page.tree), begun.hash);
        let good = loom::seal::sign(&[7; 32], page.tree, Seq(1), head, loom::Millis(5));
        let ahead = loom::seal::sign(&[7; 32], page.tree, Seq(2), head, loom::Millis(5));
        let forged = loom::seal::Seal { head: loom::Digest::of(b"other"), ..good.clone() };
        home.store.add_seal(OWNER, page.tree, good.clone()).await.unwrap();
        for bad in [ahead, forged] {
            assert!(matches!(
                home.store.add_seal(OWNER, page.tree, bad).await,
                Err(StoreError::Malformed(_))
            ));
        }
        let kept = read(&home.store, OWNER, page.tree, |rows| rows.seals()).await.unwrap();
        assert_eq!(kept, [good]);
    });
}

/// Two versions of one position, and plans to prune each, made at the same moment in two views.
async fn two_prunes(home: &Home) -> (Page, [PreparedChange; 2]) {
    let page = home.create(Mode::Buffer, "").await;
    let original = page.append("one").await;
    let version = page.edit(original.as_position(), "two").await;
    let side: ViewName = "side".parse().unwrap();
    page.change(Op::NewView { name: side.clone(), agent: "owner".to_owned() }).await;
    let prune = async |view, node| {
        let request = Request { view, ..home.request(page.tree, Op::Prune(OpTarget::Version(node))) };
        prepare(&home.store, OWNER, request, &home.ids).await.unwrap()
    };
    let plans = [prune(ViewName::default(), original).await, prune(side, version).await];
    (page, plans)
}

#[test]
fn two_stale_plans_do_not_hide_every_version_of_a_position() {
    each(|home| async move {
        // The control: the cells they set are different ones.
        let (page, plans) = two_prunes(&home).await;
        for PreparedChange { plan, .. } in plans {
            home.store.apply(OWNER, page.tree, plan, AttachedWrites::nothing()).await.unwrap();
        }
        let (page, plans) = two_prunes(&home).await;
        let mut answers = Vec::new();
        for PreparedChange { plan, preconditions } in plans {
            let with = AttachedWrites { preconditions: Some(preconditions), ..AttachedWrites::nothing() };
            answers.push(home.store.apply(OWNER, page.tree, plan, with).await);
        }
        assert!(answers[0].is_ok());
        let Err(StoreError::Conflict(changed)) = &answers[1] else { panic!("{answers:?}") };
        assert!(matches!(changed[..], [StaleRead::Read(loom::ReadKey::OtherVisible(..))]), "{changed:?}");
        assert_eq!(page.text().await, "two");
    });
}

#[test]
fn a_plan_whose_basis_stands_is_applied_after_others() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let node = page.append("one").await;
        let tag = |tag: &str| Op::Tag { position: node.as_position(), tag: tag.to_owned(), on: true };
        let request = home.request(page.tree, tag("late"));
        let PreparedChange { plan, preconditions } =
            prepare(&home.store, OWNER, request, &home.ids).await.unwrap();
        page.change(tag("early")).await;
        let with = AttachedWrites { preconditions: Some(preconditions), ..AttachedWrites::nothing() };
        home.store.apply(OWNER, page.tree, plan, with).await.unwrap();
    });
}

/// The text a view shows, without what is left out.
async fn shown(page: &Page) -> String {
    let text = read(&page.home.store, OWNER, page.tree, |rows| {
        let show = loom::render::Show { drafts: false, spans: false };
        loom::render::render(rows, &ViewName::default(), show)
    });
    text.await.unwrap().text
}

#[test]
fn choices_are_found_on_their_paths_however_branches_grew() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let leave_out = async |at: PositionId| {
            page.change(Op::Exclude(OpTarget::Position(at))).await;
        };
        let mut end = page.append("0 ").await.as_position();
        let (mut path, mut tips) = ("0 ".to_owned(), Vec::new());
        // Beside each passage of the path another way is tried first, and every so often a way that is long: it takes
        // the lane over, and the path takes it back once it is twice as long.
        for level in 1..100 {
            let next = page.append(&format!("{level} ")).await.as_position();
            page.change(Op::Move(end)).await;
            let (mut branch, mut tip) = (path.clone(), end);
            for step in 0..if level % 12 == 0 { 20 } else { level % 4 } {
                tip = page.append(&format!("{level}.{step} ")).await.as_position();
                if step == 1 {
                    leave_out(tip).await;
                } else {
                    branch += &format!("{level}.{step} ");
                }
            }
            tips.push((tip, branch));
            page.change(Op::Move(next)).await;
            end = next;
            if level % 5 == 0 {
                leave_out(next).await;
            } else {
                path += &format!("{level} ");
            }
        }
        tips.push((end, path));
        assert_eq!(home.store.check(OWNER).await.unwrap(), Vec::<String>::new());
        for (tip, expected) in tips {
            page.change(Op::Move(tip)).await;
            assert_eq!(shown(&page).await, expected);
        }
    });
}

#[test]
fn a_choice_is_found_on_its_path_whichever_sibling_is_continued() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let top = page.append("top ").await.as_position();
        let first = page.append("first ").await.as_position();
        page.change(Op::Exclude(OpTarget::Position(first))).await;
        page.change(Op::Move(top)).await;
        let second = page.append("second ").await.as_position();
        page.edit(second, "edited ").await;
        page.append("end").await;
        assert_eq!(shown(&page).await, "top edited end");
        page.change(Op::Move(first)).await;
        assert_eq!(shown(&page).await, "top ");
        page.append("after").await;
        assert_eq!(shown(&page).await, "top after");
    });
}

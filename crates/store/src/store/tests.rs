use loom::{Digest, Millis, Trust};

use super::*;
use crate::apply::AttachedWrites;
use crate::fence::LeaseOwner;
use crate::job::{JobEnd, JobFilter, JobId, NewJob};

#[tokio::test]
async fn a_write_that_panics_is_refused_alone() {
    let folder = tempfile::tempdir().unwrap();
    for store in [Store::open(&folder.path().join("loom.db")).unwrap(), Store::in_memory().unwrap()] {
        let insert = "INSERT INTO leases (name, fence, expires) VALUES (?1, 1, 0)";
        let broken = store.write(move |db| {
            db.run(insert, ["lost"])?;
            panic!("as a test wants it")
        });
        let kept = store.write(move |db| db.run(insert, ["kept"]));
        let (broken, kept): (Result<(), _>, _) = tokio::join!(broken, kept);
        assert!(matches!(broken, Err(StoreError::Panicked)));
        assert_eq!(kept.unwrap(), 1);
        assert!(store.lease(&Principal::Owner, "lost").await.unwrap().is_none());
        assert!(store.lease(&Principal::Owner, "kept").await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_lane_that_begins_below_itself_is_damage() {
    let (store, ids) = (Store::in_memory().unwrap(), crate::Ids::new());
    let tree: TreeId = ids.with(|entropy| entropy.next(Millis(1_700_000_000_000))).unwrap();
    let change = async |op: loom::Op| {
        let (view, author) = (loom::ViewName::default(), loom::Author::owner());
        let now = Millis(1_700_000_000_000);
        let request = loom::plan::Request { tree, view, author, trust: Trust::Owner, now, op };
        crate::change(&store, &Principal::Owner, request, AttachedWrites::nothing(), &ids).await
    };
    let append = async || change(loom::Op::Append(loom::plan::NewText::owner("On. ", None))).await;
    let (mode, title) = (loom::Mode::Buffer, String::new());
    change(loom::Op::Create(loom::plan::NewTree { mode, title, origin: None })).await.unwrap();
    append().await.unwrap();
    change(loom::Op::Undo).await.unwrap();
    for _ in 0..20 {
        append().await.unwrap();
    }
    // What the second lane begins with stands below a position further down in it.
    let damage = |db: &Db<'_>| {
        let lane = "SELECT lane FROM positions WHERE depth = 18";
        let below = "SELECT pk & 4294967295 FROM positions WHERE depth = 18";
        let sql = format!("UPDATE positions SET parent = ({below}) WHERE (pk & 4294967295) = ({lane})");
        db.run(&sql, crate::engine::NONE)
    };
    assert_eq!(store.write(damage).await.unwrap(), 1);
    let mut answers = Vec::new();
    for _ in 0..16 {
        answers.push(append().await.map(drop));
    }
    assert!(answers.iter().any(|answer| matches!(answer, Err(StoreError::Damaged(_)))), "{answers:?}");
}

#[tokio::test]
async fn a_store_that_does_not_say_who_may_write_it_is_damaged() {
    let store = Store::in_memory().unwrap();
    store.write(|db| db.run("DELETE FROM meta WHERE key = 'min_writer'", crate::engine::NONE)).await.unwrap();
    let written = store.write(|db| db.run("DELETE FROM leases", crate::engine::NONE)).await;
    assert!(matches!(written, Err(StoreError::Damaged(_))), "{written:?}");
    let problems = store.check(&Principal::Owner).await.unwrap();
    assert!(problems.iter().any(|problem| problem.contains("min_writer")), "{problems:?}");
}

#[tokio::test]
async fn numbers_of_other_tables_are_counted_anew() {
    let (store, ids, who) = (Store::in_memory().unwrap(), crate::Ids::new(), &Principal::Owner);
    let tree: TreeId = ids.with(|entropy| entropy.next(Millis(1_700_000_000_000))).unwrap();
    for op in [
        loom::Op::Create(loom::plan::NewTree {
            mode: loom::Mode::Buffer,
            title: String::new(),
            origin: None,
        }),
        loom::Op::Append(loom::plan::NewText::owner("e\u{301}n", None)),
        loom::Op::Append(loom::plan::NewText::owner("d", None)),
    ] {
        let (view, author) = (loom::ViewName::default(), loom::Author::owner());
        let now = Millis(1_700_000_000_000);
        let request = loom::plan::Request { tree, view, author, trust: Trust::Owner, now, op };
        crate::change(&store, who, request, AttachedWrites::nothing(), &ids).await.unwrap();
    }
    // As tables would have it to which the accent is a cluster of its own.
    let old = |db: &Db<'_>| {
        db.run("UPDATE nodes SET graphemes = 3 WHERE chars = 3", crate::engine::NONE)?;
        db.run("UPDATE positions SET graphemes = 0 WHERE depth = 2", crate::engine::NONE)
    };
    store.write(old).await.unwrap();
    let status = async || {
        let found = read(&store, who, tree, |rows| loom::verify::verify(rows, &Nothing)).await.unwrap();
        found.status
    };
    assert_eq!(status().await, loom::verify::Status::Invalid, "by the same tables it is damage");
    store.write(|db| db.run("UPDATE trees SET tables = 1", crate::engine::NONE)).await.unwrap();
    assert_eq!(status().await, loom::verify::Status::Incomplete);
    assert_eq!(store.repair(who).await.unwrap(), 1);
    assert_eq!(status().await, loom::verify::Status::Valid);
    assert_eq!(store.repair(who).await.unwrap(), 0);
}

struct Nothing;

impl loom::verify::Evidence for Nothing {
    fn manifest(&self, _: Digest) -> Result<Result<Digest, loom::verify::Gap>, RowError> {
        Ok(Err(loom::verify::Gap::Missing))
    }

    fn reread(&self, _: &loom::NodeRow, _: &loom::ModelSource) -> Result<loom::verify::Reread, RowError> {
        Ok(loom::verify::Reread::Gap { digest: None, gap: loom::verify::Gap::Missing })
    }

    fn has_checked_records(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn long_reads_hold_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { readers: 1, ..Options::default() };
    let store = Store::open_with(&folder.path().join("loom.db"), &options).unwrap();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let long = store.read_within(Time::Unbounded, move |_| Ok(released.recv().is_ok()));
    let short = async {
        let identity = store.identity(&Principal::Owner).await;
        release.send(()).unwrap();
        identity
    };
    let (long, short) = tokio::join!(long, short);
    assert!(long.unwrap());
    short.unwrap();
}

#[tokio::test]
async fn ended_jobs_go_after_30_days() {
    let store = Store::in_memory().unwrap();
    let (who, owner, kinds) = (&Principal::Owner, LeaseOwner::new("worker"), ["observe"]);
    for _ in 0..3 {
        let (kind, payload) = ("observe".to_owned(), String::new());
        let job = NewJob { kind, key: None, tree: None, payload, due: Millis(0) };
        store.enqueue(who, job).await.unwrap();
        let job = store.claim(who, &kinds, &owner).await.unwrap().unwrap();
        store.finish(who, job.id, &job.claim().unwrap(), JobEnd::Done(String::new())).await.unwrap();
        store.advance_clock(Duration::from_secs(16 * 24 * 60 * 60));
    }
    let left = store.jobs(who, JobFilter::All, None, 99).await.unwrap();
    assert_eq!(left.iter().map(|job| job.id).collect::<Vec<_>>(), [JobId(2), JobId(3)]);
}

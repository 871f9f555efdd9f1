//! Every list of the store is read a page at a time: the pages behind one another are the list.

use std::time::Duration;

use loom::Mode;
use store::{
    AttachedWrites, GenerationFilter, JobFilter, NewJob, NewSession, Principal, SessionFilter, SessionId,
    SessionKind, StoreError, TreeFilter,
};

use super::both::each;
use super::home::{Home, OWNER};

/// Rows of a page: fewer than there are.
const PAGE: usize = 2;

/// Reads a list page by page.
async fn paged<T, K>(
    key: impl Fn(&T) -> K,
    page: impl AsyncFn(Option<K>) -> Result<Vec<T>, StoreError>,
) -> Vec<T> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let rows = page(after.take()).await.unwrap();
        assert!(rows.len() <= PAGE, "a page holds at most what was asked for");
        let Some(last) = rows.last() else { return all };
        after = Some(key(last));
        all.extend(rows);
    }
}

async fn fill(home: &Home) {
    for number in 0..5_i64 {
        let id = SessionId(format!("session{number}"));
        let (name, kind) = (format!("name{number}"), SessionKind::Main);
        let begins = NewSession { id, workspace: "w".into(), name, kind, at: loom::Millis(number) };
        let with = AttachedWrites { begins: Some(begins), ..AttachedWrites::nothing() };
        let page = home.create_with(OWNER, Mode::Buffer, "tree", with).await.unwrap();
        super::generations::start(&page, &format!("request {number}")).await;
        let mut pictured = super::home::owner_text("a picture");
        let blob = loom::Digest::of(&number.to_be_bytes());
        pictured.content.push(loom::Block::Image { blob, mime: "image/png".into() });
        page.change(loom::Op::Append(pictured)).await;
        let kind = "observe".to_owned();
        let job = NewJob { kind, key: None, tree: None, payload: String::new(), due: loom::Millis(0) };
        home.store.enqueue(OWNER, job).await.unwrap();
        let question = super::questions::question(&page, Duration::from_secs(60));
        home.store.ask(OWNER, question).await.unwrap();
        let record = store::WorkspaceRecord {
            path: format!("/w/{number}").into(),
            device: 1,
            inode: 1,
            trusted: true,
            inventory: String::new(),
            at: loom::Millis(number),
        };
        home.store.keep_workspace(OWNER, record).await.unwrap();
    }
}

#[test]
fn pages_behind_one_another_are_the_whole_list() {
    each(|home| async move {
        fill(&home).await;
        let (store, who, all) = (&home.store, &Principal::Owner, 99);
        let trees = async |after| store.trees(who, TreeFilter::All, after, PAGE).await;
        let whole = store.trees(who, TreeFilter::All, None, all).await.unwrap();
        assert_eq!((paged(store::TreeEntry::place, trees).await, whole.len()), (whole, 5));
        let filter = SessionFilter::default;
        let sessions = async |after| store.sessions(who, filter(), after, PAGE).await;
        let whole = store.sessions(who, filter(), None, all).await.unwrap();
        assert_eq!((paged(store::Session::place, sessions).await, whole.len()), (whole, 5));
        let jobs = async |after| store.jobs(who, JobFilter::Open, after, PAGE).await;
        let whole = store.jobs(who, JobFilter::Open, None, all).await.unwrap();
        assert_eq!((paged(|job: &store::Job| job.id, jobs).await, whole.len()), (whole, 5));
        let filter = GenerationFilter::default;
        let generations = async |after| store.generations(who, filter(), after, PAGE).await;
        let whole = store.generations(who, filter(), None, all).await.unwrap();
        let key = |generation: &store::Generation| generation.row.id;
        assert_eq!((paged(key, generations).await, whole.len()), (whole, 5));
        let questions = async |after| store.open_questions(who, after, PAGE).await;
        let whole = store.open_questions(who, None, all).await.unwrap();
        let key = |question: &store::Question| (question.created, question.id);
        assert_eq!((paged(key, questions).await, whole.len()), (whole, 5));
        let blobs = async |after| store.blobs(who, after, PAGE).await;
        let whole = store.blobs(who, None, all).await.unwrap();
        assert_eq!((paged(|blob: &loom::Digest| *blob, blobs).await, whole.len()), (whole, 5));
        let workspaces = async |after| store.workspaces(who, after, PAGE).await;
        let whole = store.workspaces(who, None, all).await.unwrap();
        let key = |record: &store::WorkspaceRecord| record.path.clone();
        assert_eq!((paged(key, workspaces).await, whole.len()), (whole, 5));
    });
}

#[test]
fn a_session_and_a_generation_are_found_by_their_ids() {
    each(|home| async move {
        fill(&home).await;
        let id = SessionId("session3".into());
        let found = home.store.session(OWNER, &id).await.unwrap().unwrap();
        assert_eq!((found.name.as_str(), found.trees.len()), ("name3", 1));
        assert!(home.store.session(OWNER, &SessionId("none".into())).await.unwrap().is_none());
        let scope = store::Scope::ChatSession("session1".into());
        let other = Principal::Token { name: "other".into(), scope };
        assert!(home.store.session(&other, &id).await.unwrap().is_none());
        let all = home.store.generations(OWNER, GenerationFilter::default(), None, 9).await.unwrap();
        let one = home.store.generation(OWNER, all[2].row.id).await.unwrap();
        assert_eq!(one, all[2]);
        let seen = home.store.generations(&other, GenerationFilter::default(), None, 9).await.unwrap();
        let hidden = all.iter().find(|one| !seen.contains(one)).unwrap();
        let refused = home.store.generation(&other, hidden.row.id).await;
        assert!(matches!(refused, Err(StoreError::NotFound("generation"))), "{refused:?}");
    });
}

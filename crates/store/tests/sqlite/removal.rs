//! Removal that is broken off, and of what is damaged.

use std::sync::Arc;

use loom::{Millis, Mode, Op, Seq};
use rusqlite::Connection;
use store::{
    AttachedWrites, Faults, Forget, ForgottenPlace, HashedBytes, NewGeneration, Options, Store, StoreError,
    read,
};

use super::both::block_on;
use super::generations::{begin, generation};
use super::home::{Home, OWNER};

/// Requests that are sent; with their manifests, bodies and ends they are more rows than three transactions remove.
const REQUESTS: usize = 40;

/// What is removed of a tree.
#[derive(Debug, Clone, Copy)]
enum Removed {
    /// A node that says this.
    Node(&'static str),
    Tree,
}

/// A body is found by the manifests that cite it; it may lack white space at the ends of a text, or say nothing of it.
#[test]
fn a_removal_that_failed_at_any_time_leaves_nothing_that_was_sent_when_asked_again() {
    let said = "the spare key lies under the third stone \n";
    for removed in [Removed::Node(said), Removed::Node("PIN 4711 "), Removed::Tree] {
        let mut failures = 0;
        for at in (0..).step_by(23) {
            if block_on(broken_off(removed, said, at)) {
                break;
            }
            failures += 1;
        }
        assert!(failures > 5, "{removed:?}: {failures} failures were tried");
    }
}

/// Removes something, which fails at a statement, and again; whether it was over before.
async fn broken_off(removed: Removed, said: &str, at: u32) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    let faults = Faults::default();
    let options = Options { faults: faults.clone(), ..Options::default() };
    let page = Home::new(Arc::new(Store::open_with(&path, &options).unwrap())).create(Mode::Buffer, "").await;
    let text = if let Removed::Node(text) = removed { text } else { said };
    let node = page.append(text).await;
    for number in 0..REQUESTS {
        let bodies = [
            format!("{number}: {}", text.trim_end()),
            format!("{number}: also sent"),
            "everywhere".to_owned(),
        ];
        let bodies = bodies.map(HashedBytes::new).to_vec();
        let sent = NewGeneration { bodies, ..generation(&page, &format!("{number}: {node}")).await };
        begin(&page, &sent).await;
    }
    let bodies = vec![HashedBytes::new("everywhere".to_owned())];
    begin(&page, &NewGeneration { bodies, ..generation(&page, "of another node").await }).await;
    let uncited = "INSERT INTO bodies (digest, bytes) VALUES (zeroblob(32), x'00')";
    assert_eq!(Connection::open(&path).unwrap().execute(uncited, []).unwrap(), 1);
    let remove = async || match removed {
        Removed::Node(_) => {
            page.home.store.forget(OWNER, &Forget::Node { tree: page.tree, node }, Millis(1)).await.map(drop)
        }
        Removed::Tree => page.home.store.purge(OWNER, page.tree, Millis(1)).await.map(drop),
    };
    faults.fail_at(at);
    let first = remove().await;
    let is_over = faults.clear();
    if first.is_err() {
        remove().await.unwrap();
    }
    let rows = Connection::open(&path).unwrap();
    for table in ["manifests", "bodies", "citations"] {
        let sql = format!("SELECT count(*) FROM {table}");
        let left: i64 = rows.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(
            left,
            i64::from(!matches!(removed, Removed::Tree)),
            "{table}, {removed:?}, statement {at}"
        );
    }
    is_over
}

/// That a tree was called after a text is told from the record of its making.
#[test]
fn a_removal_that_failed_at_any_time_leaves_no_record_of_a_title_when_asked_again() {
    let said = "the spare key lies under the third stone from the left, as long as nobody takes it away";
    let called = text::title::title(said);
    let mut failures = 0;
    for at in (0..).step_by(23) {
        let folder = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let options = Options { faults: faults.clone(), ..Options::default() };
        let store = Arc::new(Store::open_with(&folder.path().join("loom.db"), &options).unwrap());
        let is_over = block_on(async {
            let with = AttachedWrites { session: Some("s".to_owned()), ..AttachedWrites::nothing() };
            let page = Home::new(store).create_with(OWNER, Mode::Buffer, &called, with).await.unwrap();
            let node = page.append(said).await;
            for title in ["other", &called].repeat(REQUESTS) {
                page.change(Op::Rename(title.to_owned())).await;
            }
            let what = Forget::Node { tree: page.tree, node };
            faults.fail_at(at);
            let first = page.home.store.forget(OWNER, &what, Millis(1)).await;
            let is_over = faults.clear();
            if first.is_err() {
                page.home.store.forget(OWNER, &what, Millis(1)).await.unwrap();
            }
            let records = read(&page.home.store, OWNER, page.tree, |rows| rows.operations(Seq(0), 999)).await;
            assert!(!format!("{records:?}").contains("spare key"), "statement {at}");
            is_over
        });
        if is_over {
            break;
        }
        failures += 1;
    }
    assert!(failures > 3, "{failures} failures were tried");
}

#[test]
fn a_damaged_record_is_emptied_with_its_tree_and_keeps_no_other_text_from_going() {
    for damage in ["substr(body, 1, length(body) - 1)", "'a riddle that is no record'", "4711"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loom.db");
        block_on(async {
            let home = Home::new(Arc::new(Store::open(&path).unwrap()));
            let page = home.create(Mode::Buffer, "a riddle").await;
            page.append("It snowed.").await;
            let other = home.create(Mode::Buffer, "").await;
            other.append("It rained a secret.").await;
            let rows = Connection::open(&path).unwrap();
            let sql = format!(
                "UPDATE operations SET body = {damage} WHERE seq = 1
                 AND tree = (SELECT pk FROM trees WHERE title = 'a riddle')"
            );
            assert_eq!(rows.execute(&sql, []).unwrap(), 1);
            let text = |text: &str| Forget::Text(text.to_owned());
            let done = home.store.forget(OWNER, &text("a secret"), Millis(1)).await.unwrap();
            let unread = ForgottenPlace::Damaged { tree: page.tree, row: "operation 1".to_owned() };
            assert!(done.places.contains(&unread), "{damage}: {:?}", done.places);
            let held = home.store.forget_preview(OWNER, &text("riddle")).await;
            assert_eq!(matches!(held, Err(StoreError::Damaged(_))), damage != "4711", "{damage}: {held:?}");

            home.store.purge(OWNER, page.tree, Millis(1)).await.unwrap();
            assert!(home.store.tree(OWNER, page.tree).await.unwrap().purged);
            let sql = "SELECT count(*) FROM operations WHERE instr(CAST(body AS TEXT), 'riddle')";
            let left: i64 = rows.query_row(sql, [], |row| row.get(0)).unwrap();
            assert_eq!(left, 0, "{damage}");
        });
    }
}

/// Nobody can read such a body, and by what it says it may be found no more.
#[test]
fn bodies_that_no_manifest_cites_go_with_whatever_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    block_on(async {
        let home = Home::new(Arc::new(Store::open(&path).unwrap()));
        let page = home.create(Mode::Buffer, "").await;
        page.append("It rained a secret.").await;
        let again = || vec![HashedBytes::new("sent again".to_owned())];
        begin(&page, &NewGeneration { bodies: again(), ..generation(&page, "first").await }).await;
        let rows = Connection::open(&path).unwrap();
        assert_eq!(rows.execute("DELETE FROM citations", []).unwrap(), 1);
        for number in 0..100 {
            let sql = "INSERT INTO bodies (digest, bytes) VALUES (?1, x'00')";
            rows.execute(sql, [vec![number; 32]]).unwrap();
        }
        let what = Forget::Text("a secret".to_owned());
        let found = home.store.begin_forgetting(OWNER, &what).await.unwrap();
        let named = found.places().iter().any(|place| matches!(place, ForgottenPlace::Body { .. }));
        assert!(!named, "they are no places of the text: {:?}", found.places());
        // One of them is sent again before it is removed.
        begin(&page, &NewGeneration { bodies: again(), ..generation(&page, "second").await }).await;
        home.store.remove_forgotten(found, Millis(1)).await.unwrap();
        let left: i64 = rows.query_row("SELECT count(*) FROM bodies", [], |row| row.get(0)).unwrap();
        assert_eq!(left, 1, "the one that was sent again");
    });
}

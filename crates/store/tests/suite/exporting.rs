//! Reads of whole trees (exports, verifications, checks) take no place of others, however many there are.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use loom::Mode;
use store::{Options, Store};
use tokio::task::JoinSet;

use super::both::block_on;
use super::home::{Home, OWNER};

/// Places for short reads.
const PLACES: usize = 2;

/// Far more than a short read takes, and less than a caller waits for a place.
const SOON: Duration = Duration::from_secs(4);

/// Fills the store with exports that do not end, and shows a tree meanwhile.
async fn show_beside_exports(store: Store) {
    let home = Home::new(Arc::new(store));
    let page = home.create(Mode::Buffer, "").await;
    page.append("shown").await;
    let (started, mut starts) = tokio::sync::mpsc::unbounded_channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let mut exports = JoinSet::new();
    for _ in 0..4 * PLACES {
        let (store, started, released) = (Arc::clone(&home.store), started.clone(), Arc::clone(&released));
        let tree = page.tree;
        exports.spawn(async move {
            let export = store.read_whole(OWNER, tree, move |rows| {
                started.send(()).ok();
                released.lock().unwrap().recv().ok();
                rows.nodes_in_order(None, usize::MAX)
            });
            export.await.unwrap().len()
        });
    }
    // As many as run at once run now.
    starts.recv().await.unwrap();
    starts.recv().await.unwrap();
    for _ in 0..8 {
        let shown = tokio::time::timeout(SOON, page.text()).await.unwrap();
        assert_eq!(shown, "shown");
    }
    tokio::time::timeout(SOON, page.append(" and written")).await.unwrap();
    drop(release);
    assert!(exports.join_all().await.into_iter().all(|nodes| nodes >= 2));
}

#[test]
fn a_show_answers_while_exports_fill_every_place() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { readers: PLACES, ..Options::default() };
    block_on(show_beside_exports(Store::open_with(&folder.path().join("loom.db"), &options).unwrap()));
    #[cfg(feature = "postgres")]
    if let Some(schema) = super::server::Schema::new() {
        let options = store::ServerOptions { pool: PLACES, ..schema.options() };
        block_on(show_beside_exports(Store::connect(&options).unwrap()));
    }
}

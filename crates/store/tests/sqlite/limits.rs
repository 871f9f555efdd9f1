//! Limits of time and space (spec: scale §4), each met.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loom::{Mode, Op, Refusal};
use store::{AttachedWrites, Options, SearchScope, Store, StoreError, StoreLimits, read};

use super::both::block_on;
use super::home::{Home, OWNER, owner_text};

fn open(path: &Path, limits: StoreLimits) -> Arc<Store> {
    let options = Options { limits, ..Options::default() };
    Arc::new(Store::open_with(&path.join("loom.db"), &options).unwrap())
}

#[test]
fn a_search_out_of_time_says_that_it_is_partial() {
    for (search, partial) in [(Duration::ZERO, true), (StoreLimits::default().search, false)] {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(open(folder.path(), StoreLimits { search, ..StoreLimits::default() }));
        block_on(async {
            home.create(Mode::Buffer, "").await.append("walrus").await;
            let hits = home.store.search(OWNER, "walrus", SearchScope::All, 9).await.unwrap();
            assert_eq!((hits.partial, hits.hits.is_empty()), (partial, partial));
        });
    }
}

#[test]
fn a_read_out_of_time_is_ended_and_the_next_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let limits = StoreLimits { read: Duration::ZERO, ..StoreLimits::default() };
    let home = Home::new(open(folder.path(), limits));
    block_on(async {
        let page = home.create(Mode::Buffer, "").await;
        let endless = |rows: &dyn loom::TreeReader| {
            for _ in 0..1_000_000 {
                rows.tree()?;
            }
            Ok(())
        };
        let ended = read(&home.store, OWNER, page.tree, endless).await;
        assert!(matches!(ended, Err(StoreError::TooLong(0))), "{ended:?}");
        page.append("on it goes").await;
    });
}

#[test]
fn a_node_above_its_limit_is_refused_by_every_store() {
    let folder = tempfile::tempdir().unwrap();
    let limits = StoreLimits { node: 8, ..StoreLimits::default() };
    let stores: [Arc<Store>; 2] =
        [Arc::new(Store::in_memory_with(limits).unwrap()), open(folder.path(), limits)];
    for store in stores {
        block_on(async {
            let page = Home::new(store).create(Mode::Buffer, "").await;
            page.append("8 bytes.").await;
            let refused =
                page.change_as(OWNER, Op::Append(owner_text("9 bytes..")), AttachedWrites::nothing()).await;
            let Err(StoreError::Refused(Refusal::TooLarge { len: 9, limit: 8 })) = refused else {
                panic!("{refused:?}")
            };
            assert_eq!(page.text().await, "8 bytes.");
        });
    }
}

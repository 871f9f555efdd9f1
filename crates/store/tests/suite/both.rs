//! Runs a test against every engine: in memory, in a file and, where there is a server, on PostgreSQL.

use std::future::Future;
use std::sync::Arc;

use proptest::prelude::*;
use store::Store;

use super::home::Home;

/// Runs a future to its end.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Whether a case of a law runs on a server too: one is ten times slower there.
pub(crate) fn one_case_in_eight() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.125)
}

/// Runs a test with a new store of each kind.
pub(crate) fn each<F, Fut>(test: F)
where
    F: Fn(Home) -> Fut,
    Fut: Future<Output = ()>,
{
    let memory: Arc<Store> = Arc::new(Store::in_memory().unwrap());
    block_on(test(Home::new(memory)));
    let folder = tempfile::tempdir().unwrap();
    let checked = |store: Store| {
        block_on(async {
            let home = Home::new(Arc::new(store));
            test(home.clone()).await;
            let problems = home.store.check(super::home::OWNER).await.unwrap();
            assert!(problems.is_empty(), "{problems:?}");
        });
    };
    checked(Store::open(&folder.path().join("loom.db")).unwrap());
    #[cfg(feature = "postgres")]
    if let Some(schema) = super::server::Schema::new() {
        checked(schema.open());
    }
}

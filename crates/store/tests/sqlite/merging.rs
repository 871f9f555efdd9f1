//! The search index is merged a little in each commit, and never falls behind.

use std::sync::Arc;

use loom::Mode;
use store::{SearchScope, Store};

use crate::both::block_on;
use crate::home::{Home, OWNER};

const APPENDS: usize = 400;

#[test]
fn segments_of_the_search_index_stay_few_and_nothing_is_lost_in_merging() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    block_on(async {
        let home = Home::new(Arc::new(Store::open(&path).unwrap()));
        let page = home.create(Mode::Buffer, "").await;
        for line in 0..APPENDS {
            page.append(&format!("common word{line} ")).await;
        }
        let found = home.store.search(OWNER, "common", SearchScope::All, 2 * APPENDS).await.unwrap();
        assert_eq!(found.hits.len(), APPENDS);
        for line in [0, 1, APPENDS / 2, APPENDS - 1] {
            let query = format!("word{line}");
            assert_eq!(home.store.search(OWNER, &query, SearchScope::All, 9).await.unwrap().hits.len(), 1);
        }
    });
    // Of the rows of the index, all but two are pages of a segment, which their numbers begin with.
    let conn = rusqlite::Connection::open(&path).unwrap();
    let sql = "SELECT count(DISTINCT id >> 37) FROM search_data WHERE id > 10";
    let segments: u32 = conn.query_row(sql, [], |row| row.get(0)).unwrap();
    assert!(segments <= 3 * 16, "{segments} segments after {APPENDS} commits");
}

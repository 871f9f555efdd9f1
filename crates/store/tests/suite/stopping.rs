//! What only several connections to a server show of stopping and searching.

use std::sync::Arc;

use loom::Mode;
use store::{Forget, GenerationFilter, GenerationState, StoreError};
use tokio_postgres::NoTls;

use super::both::block_on;
use super::generations::{start, try_answer};
use super::home::{Home, OWNER};
use super::server::Schema;

/// A stop that commits while the end of an answer is written, which was not stopped when that began.
#[test]
fn an_answer_that_is_stopped_while_its_end_is_written_has_not_ended() {
    let Some(schema) = Schema::new() else { return };
    block_on(async {
        let page = Home::new(Arc::new(schema.open())).create(Mode::Buffer, "").await;
        page.append("asked").await;
        let running = start(&page, "sent").await;
        let (client, connection) = tokio_postgres::connect(&schema.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute("BEGIN").await.unwrap();
        let stop = "UPDATE generations SET state = 2 WHERE id = $1";
        let id = running.row.id.to_bytes();
        assert_eq!(client.execute(stop, &[&id.as_slice()]).await.unwrap(), 1);
        let stopping = async {
            let waits = "SELECT 1 FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))";
            while client.query(waits, &[]).await.unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            client.batch_execute("COMMIT").await.unwrap();
        };
        let (ended, ()) = tokio::join!(try_answer(&page, &running, "too late"), stopping);
        assert!(matches!(ended, Err(StoreError::Fenced { .. })), "{ended:?}");
        let all = page.home.store.generations(OWNER, GenerationFilter::default(), None, 99).await.unwrap();
        assert_eq!(all[0].state, GenerationState::Cancelled);
        assert_eq!(page.text().await, "asked");
    });
}

#[test]
fn a_search_asks_as_often_however_much_was_sent() {
    let Some(schema) = Schema::new() else { return };
    block_on(async {
        let page = Home::new(Arc::new(schema.open())).create(Mode::Buffer, "").await;
        page.append("asked").await;
        let store = Arc::clone(&page.home.store);
        let round_trips = async || {
            let nowhere = Forget::Text("words nobody wrote".to_owned());
            store.forget_preview(OWNER, &nowhere).await.unwrap();
            let before = store.round_trips().unwrap();
            assert!(store.forget_preview(OWNER, &nowhere).await.unwrap().is_empty());
            store.round_trips().unwrap() - before
        };
        start(&page, "sent 0").await;
        let few = round_trips().await;
        for number in 1..60 {
            start(&page, &format!("sent {number}")).await;
        }
        assert_eq!(round_trips().await, few);
        // A page of a scan is not all there is.
        for number in 60..200 {
            start(&page, &format!("sent {number}")).await;
        }
        let what = Forget::Text("sent".to_owned());
        let found = store.forget_preview(OWNER, &what).await.unwrap();
        assert_eq!(found.len(), 3 * 200, "manifests, bodies, answers under way");
    });
}

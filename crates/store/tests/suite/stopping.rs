//! What only several connections to a server show of stopping and searching.

use std::sync::Arc;

use loom::{Millis, Mode, Plan};
use store::{AttachedWrites, Forget, GenerationEnd, GenerationFilter, GenerationState, StoreError};
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

/// A stop that comes while an answer that cost nothing is ended.
#[test]
fn what_ends_while_it_is_stopped_is_not_booked() {
    let Some(schema) = Schema::new() else { return };
    block_on(async {
        let page = Home::new(Arc::new(schema.open())).create(Mode::Buffer, "").await;
        page.append("asked").await;
        let running = start(&page, "sent").await;
        let (client, connection) = tokio_postgres::connect(&schema.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let paused = "CREATE TABLE pause (n INTEGER); INSERT INTO pause VALUES (1);
            CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN PERFORM 1 FROM pause FOR UPDATE; RETURN NEW; END $$;
            CREATE TRIGGER pause AFTER UPDATE ON generations FOR EACH ROW WHEN (NEW.state = 1)
                EXECUTE FUNCTION pause()";
        client.batch_execute(paused).await.unwrap();
        client.batch_execute("BEGIN; SELECT 1 FROM pause FOR UPDATE").await.unwrap();
        let until = async |there_is: &str| {
            while client.query(there_is, &[]).await.unwrap().is_empty() {
                // Who is connected is told once a transaction.
                client.batch_execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
            }
        };
        let store = &page.home.store;
        let outcome = GenerationEnd {
            generation: running.row.id,
            claim: running.claim.clone(),
            state: GenerationState::Done,
            response: None,
            usage: None,
            at: Millis(9),
        };
        let with = AttachedWrites { outcomes: vec![outcome], ..AttachedWrites::nothing() };
        let ending = store.apply(OWNER, page.tree, Plan::default(), with);
        let stopping = async {
            until("SELECT 1 FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))")
                .await;
            let released = async {
                until(
                    "SELECT 1 FROM pg_stat_activity ending JOIN pg_stat_activity stopping
                        ON ending.pid = ANY (pg_blocking_pids(stopping.pid))
                    WHERE pg_backend_pid() = ANY (pg_blocking_pids(ending.pid))",
                )
                .await;
                client.batch_execute("COMMIT").await.unwrap();
            };
            tokio::join!(store.stop(OWNER, [running.row.id].into()), released).0
        };
        let (ended, stopped) = tokio::join!(ending, stopping);
        ended.unwrap();
        stopped.unwrap();
        let all = store.generations(OWNER, GenerationFilter::default(), None, 99).await.unwrap();
        assert_eq!(all[0].state, GenerationState::Done);
        assert_eq!(store.spent(OWNER, Millis(0), None, 99).await.unwrap(), []);
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

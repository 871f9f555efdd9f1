//! A server that is stopped hard: what was acknowledged is there, and the store goes on with the next call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::{Mode, Op};
use store::{AttachedWrites, ServerError, Store, StoreError};

use crate::both::block_on;
use crate::home::{Home, OWNER, Page, owner_text};
use crate::own::Server;

/// How often the server dies.
const DEATHS: usize = 8;

/// Writers at once, each in a tree of its own.
const WRITERS: usize = 4;

/// Appends lines until the server is gone; how many were acknowledged.
async fn write(page: Page, from: usize, acknowledged: Arc<AtomicUsize>) -> (usize, StoreError) {
    for line in from.. {
        let op = Op::Append(owner_text(&format!("{line};")));
        match page.change_as(OWNER, op, AttachedWrites::nothing()).await {
            Ok(_) => acknowledged.fetch_add(1, Ordering::Relaxed),
            Err(error) => return (line, error),
        };
    }
    unreachable!()
}

#[test]
fn what_was_acknowledged_outlives_a_server_that_dies_at_any_moment() {
    let Some(server) = Server::start() else { return };
    block_on(async {
        let home = Home::new(Arc::new(Store::connect(&server.options("drawloom")).unwrap()));
        let mut pages = Vec::new();
        for _ in 0..WRITERS {
            pages.push((home.create(Mode::Buffer, "").await, 0));
        }
        let mut seed = 12_345_usize;
        for death in 0..DEATHS {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let after = (seed >> 33) % 60;
            let acknowledged = Arc::new(AtomicUsize::new(0));
            let writers: Vec<_> = pages
                .iter()
                .map(|(page, from)| tokio::spawn(write(page.clone(), *from, Arc::clone(&acknowledged))))
                .collect();
            while acknowledged.load(Ordering::Relaxed) < after {
                tokio::task::yield_now().await;
            }
            server.kill();
            let mut ends = Vec::new();
            for writer in writers {
                let (line, error) = writer.await.unwrap();
                let named = matches!(
                    error,
                    StoreError::Server(
                        ServerError::Lost(_) | ServerError::Unacknowledged(_) | ServerError::Absent { .. }
                    )
                );
                assert!(named, "{error:?}");
                ends.push((line, matches!(error, StoreError::Server(ServerError::Unacknowledged(_)))));
            }
            let gone = home.store.identity(OWNER).await;
            assert!(matches!(gone, Err(StoreError::Server(_))), "{gone:?}");
            server.go_on();
            for ((page, next), (line, unknown)) in pages.iter_mut().zip(ends) {
                let text = page.text().await;
                let lines: String = (0..line).map(|line| format!("{line};")).collect();
                let more = format!("{lines}{line};");
                assert!(text == lines || unknown && text == more, "death {death}: {text} after {lines}");
                *next = if text == more { line + 1 } else { line };
            }
            assert_eq!(home.store.check(OWNER).await.unwrap(), Vec::<String>::new());
        }
    });
}

#[test]
fn an_absent_server_is_named() {
    let Some(server) = Server::start() else { return };
    let options = server.options("drawloom");
    server.kill();
    match Store::connect(&options) {
        Err(StoreError::Server(ServerError::Absent { server, .. })) => {
            assert!(server.contains("postgres on /"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_connection_that_ended_while_nobody_asked_is_made_again() {
    let Some(server) = Server::start() else { return };
    block_on(async {
        let home = Home::new(Arc::new(Store::connect(&server.options("drawloom")).unwrap()));
        let page = home.create(Mode::Buffer, "").await;
        page.append("before ").await;
        server.kill();
        server.go_on();
        page.append("after").await;
        assert_eq!(page.text().await, "before after");
    });
}

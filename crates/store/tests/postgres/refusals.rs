//! What is refused, each by its name.

use std::sync::Arc;

use loom::{Mode, Op};
use store::{AttachedWrites, ServerError, Store, StoreError, StoreId};

use crate::both::block_on;
use crate::home::{Home, OWNER};
use crate::own::Server;
use crate::server::Schema;

#[test]
fn a_password_is_asked_for_and_checked() {
    let Some(server) = Server::start() else { return };
    block_on(async {
        let socket = server.options("drawloom").url;
        let (client, connection) = tokio_postgres::connect(&socket, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client
            .batch_execute("CREATE ROLE guest LOGIN PASSWORD 'right'; GRANT ALL ON SCHEMA public TO guest")
            .await
            .unwrap();
    });
    let mut options = server.options("guest");
    for password in [None, Some("wrong")] {
        options.password = password.map(str::to_owned);
        let refused = Store::connect(&options);
        assert!(
            matches!(refused, Err(StoreError::Server(ServerError::Login { .. }))),
            "{password:?}: {refused:?}"
        );
    }
    options.password = Some("right".to_owned());
    Store::connect(&options).unwrap();
    assert!(!format!("{options:?}").contains("right"));
}

#[test]
fn another_homes_database_is_refused() {
    let Some(schema) = Schema::new() else { return };
    let store = schema.open();
    let mut options = schema.options();
    options.store = StoreId([8; 16]);
    match Store::connect(&options) {
        Err(StoreError::Server(ServerError::OtherHome { found, own, .. })) => {
            assert_eq!((found, own), (StoreId([7; 16]).to_string(), options.store.to_string()));
        }
        other => panic!("{other:?}"),
    }
    drop(store);
    schema.open();
}

#[test]
fn another_programs_tables_are_left_alone() {
    let Some(schema) = Schema::new() else { return };
    schema.batch_within("CREATE TABLE trees (species TEXT)");
    assert!(matches!(Store::connect(&schema.options()), Err(StoreError::Foreign(_))));
    schema.batch_within("CREATE TABLE meta (species TEXT)");
    assert!(matches!(Store::connect(&schema.options()), Err(StoreError::Foreign(_))));
}

#[test]
fn a_newer_programs_tables_are_refused() {
    let Some(schema) = Schema::new() else { return };
    drop(schema.open());
    schema.batch_within("UPDATE meta SET value = '9' WHERE key = 'version'");
    assert!(matches!(Store::connect(&schema.options()), Err(StoreError::SchemaTooNew { found: 9, .. })));
}

#[test]
fn an_older_programs_tables_are_refused() {
    let Some(schema) = Schema::new() else { return };
    drop(schema.open());
    schema.batch_within("UPDATE meta SET value = '3' WHERE key = 'version'");
    let refused = Store::connect(&schema.options());
    assert!(
        matches!(refused, Err(StoreError::Server(ServerError::OldTables { found: 3, .. }))),
        "{refused:?}"
    );
}

#[test]
fn a_text_with_nul_is_refused_and_the_connection_stays() {
    let Some(schema) = Schema::new() else { return };
    block_on(async {
        let home = Home::new(Arc::new(schema.open()));
        let page = home.create(Mode::Buffer, "").await;
        let refused = page.change_as(OWNER, Op::Rename("a\0b".to_owned()), AttachedWrites::nothing()).await;
        assert!(matches!(refused, Err(StoreError::Malformed(_))), "{refused:?}");
        page.append("a\0b").await;
        assert_eq!(page.text().await, "a\0b");
    });
}

#[test]
fn a_backup_is_refused_and_names_what_makes_one() {
    let Some(schema) = Schema::new() else { return };
    block_on(async {
        let store = schema.open();
        let refused = store.backup(OWNER, std::path::Path::new("/nowhere")).await.unwrap_err();
        assert!(refused.hint().contains("pg_dump"), "{refused}");
    });
}

#[test]
fn a_caller_does_not_wait_for_a_place_forever() {
    let Some(schema) = Schema::new() else { return };
    let mut options = schema.options();
    options.pool = 1;
    block_on(async {
        let home = Home::new(Arc::new(Store::connect(&options).unwrap()));
        let page = home.create(Mode::Buffer, "").await;
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let (begun, begins) = tokio::sync::oneshot::channel();
        let store = Arc::clone(&home.store);
        let first = tokio::spawn(async move {
            let read = move |_: &dyn loom::TreeReader| {
                begun.send(()).unwrap();
                wait.recv().ok();
                Ok(())
            };
            store::read(&store, OWNER, page.tree, read).await
        });
        begins.await.unwrap();
        assert!(matches!(home.store.identity(OWNER).await, Err(StoreError::Busy)));
        go_on.send(()).unwrap();
        first.await.unwrap().unwrap();
        home.store.identity(OWNER).await.unwrap();
    });
}

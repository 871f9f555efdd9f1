//! A home whose store is in a database of the server that `DRAWLOOM_TEST_POSTGRES` names.

use tokio_postgres::NoTls;

use crate::world::{Run, World, piped};

/// A schema of its own, dropped with this value.
struct Schema {
    server: String,
    name: String,
}

impl Schema {
    /// An empty one, if there is a server.
    fn new(name: &str) -> Option<Self> {
        let server = std::env::var("DRAWLOOM_TEST_POSTGRES").ok().filter(|url| !url.is_empty())?;
        let schema = Self { server, name: format!("{name}_{}", std::process::id()) };
        schema.rows(&format!("CREATE SCHEMA {}", schema.name));
        Some(schema)
    }

    /// The URL under which it is the one schema there is.
    fn url(&self) -> String {
        let sign = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{sign}options=-csearch_path%3D{}", self.server, self.name)
    }

    /// How many tables it has.
    fn tables(&self) -> usize {
        self.rows(&format!("SELECT 1 FROM pg_tables WHERE schemaname = '{}'", self.name))
    }

    /// Runs a statement on a connection of its own; the number of its rows.
    fn rows(&self, sql: &str) -> usize {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.server, NoTls).await.unwrap();
            tokio::spawn(connection);
            client.query(sql, &[]).await.unwrap().len()
        })
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        self.rows(&format!("DROP SCHEMA {} CASCADE", self.name));
    }
}

#[test]
fn doctor_makes_nothing_in_an_empty_database() {
    let Some(schema) = Schema::new("doctor") else { return };
    let world = World::new();
    world.ok(&["config", "set", "store.url", &schema.url()]);
    let store = || {
        let (_, found) = world.json(&["doctor"]);
        let mut checks = found["checks"].as_array().unwrap().iter();
        let check = checks.find(|check| check["name"] == "store").unwrap();
        (check["state"].as_str().unwrap().to_owned(), check["why"].as_str().unwrap().to_owned())
    };
    let (state, why) = store();
    assert!(state == "ok" && why.ends_with("nothing was stored yet"), "{state}: {why}");
    assert_eq!(schema.tables(), 0);
    assert!(!world.home().join("store.id").exists());
    world.ok(&["tree", "list"]);
    assert!(schema.tables() > 0, "the control: a command that needs the store makes it");
    let (state, why) = store();
    assert!(state == "ok" && why.contains("schema "), "{state}: {why}");
}

#[test]
fn first_commands_at_once_find_one_home_and_one_database() {
    let Some(schema) = Schema::new("first") else { return };
    for _ in 0..5 {
        let world = World::new();
        let command = || {
            let mut command = world.command(&["tree", "list"]);
            command.env("DRAWLOOM_STORE__URL", schema.url());
            command
        };
        let children: Vec<_> = (0..6).map(|_| piped(&mut command())).collect();
        for child in children {
            let run = Run::from(child.wait_with_output().unwrap());
            assert_eq!(run.code, Some(0), "{run:?}");
        }
        schema.rows(&format!("DROP SCHEMA {} CASCADE", schema.name));
        schema.rows(&format!("CREATE SCHEMA {}", schema.name));
    }
}

#[test]
fn what_a_killed_first_command_left_of_the_id_keeps_no_home_closed() {
    let Some(schema) = Schema::new("killed") else { return };
    let world = World::new();
    let left = format!("store.id.{:032x}", 0x0123);
    world.write(&left, "half");
    let run = Run::from(
        world.command(&["tree", "list"]).env("DRAWLOOM_STORE__URL", schema.url()).output().unwrap(),
    );
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!world.home().join(left).exists(), "it is swept");
}

#[test]
fn the_database_of_another_home_is_refused_without_an_id_that_nobody_has() {
    let Some(schema) = Schema::new("other") else { return };
    let (first, second) = (World::new(), World::new());
    for world in [&first, &second] {
        world.ok(&["config", "set", "store.url", &schema.url()]);
    }
    first.ok(&["tree", "list"]);
    let run = second.run(&["doctor"]);
    assert!(run.out.contains("this home has none yet") && !run.out.contains("0000"), "{run:?}");
}

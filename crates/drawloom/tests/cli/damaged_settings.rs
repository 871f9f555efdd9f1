//! Settings of a session that are damaged while a conversation is held in it.

use crate::server;
use crate::session_settings::{other, provider, world};
use crate::terminal::Terminal;
use crate::world::World;

/// Of a newer program, or of a broken disk.
const DAMAGED: &str = r#"{"model":"box/m","place":"lan"}"#;

fn damage(world: &World) {
    let rows = rusqlite::Connection::open(world.home().join("loom.db")).unwrap();
    assert_eq!(rows.execute("UPDATE sessions SET settings = ?1", [DAMAGED]).unwrap(), 1);
}

fn settings(world: &World) -> String {
    let rows = rusqlite::Connection::open(world.home().join("loom.db")).unwrap();
    rows.query_row("SELECT settings FROM sessions", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_conversation_whose_settings_are_damaged_meanwhile_asks_no_remote_model_by_itself() {
    let world = World::new();
    let far = server::Server::start(|_, _| Some(server::chat("", "from afar", 10)));
    let config = format!("[model]\ndefault = \"far/m\"\n{}", provider("far", "remote", &far));
    world.write("config.toml", &config);
    let mut terminal = Terminal::start(world.command(&["chat", "--color", "never"]));
    terminal.says("hello\r");
    let asked = far.bodies().len();
    damage(&world);
    for line in ["private words\r", "/think high\r"] {
        terminal.says(line);
    }
    assert_eq!(far.bodies().len(), asked, "{:?}", far.bodies());
    assert_eq!(settings(&world), DAMAGED);
    for line in ["/model far/m\r", "on purpose\r"] {
        terminal.says(line);
    }
    assert_eq!(far.bodies().len(), asked + 1, "the control: it was chosen");
    assert!(settings(&world).contains("far/m"));
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn a_conversation_with_a_model_of_its_own_writes_damaged_settings_over() {
    let world = world();
    let model = other(&world);
    let mut terminal = Terminal::start(world.command(&["chat", "--color", "never"]));
    terminal.says("hello\r");
    terminal.says(&format!("/model {model}\r"));
    damage(&world);
    terminal.says("/think high\r");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    let (_, think) = world.json(&["chat", "-m", "/think"]);
    assert_eq!(think["thinking"], "high");
    assert_eq!(world.ok(&["chat", "-m", "again"]), "from the other\n");
}

#[test]
fn plan_mode_is_on_where_the_settings_are_not_known() {
    let world = World::new();
    let mut terminal =
        Terminal::start(world.command(&["--model", "script:echo", "chat", "--color", "never"]));
    terminal.says("hello\r");
    damage(&world);
    terminal.says("/plan\r");
    terminal.shows("plan mode: on");
    terminal.shows("main (plan)>");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
}

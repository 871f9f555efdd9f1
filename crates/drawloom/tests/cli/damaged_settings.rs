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

#[test]
fn a_value_without_effect_is_refused_by_set_and_in_the_file() {
    for (key, values, said) in [
        (
            "exec.dependency_folders",
            &["\"\"", "\".\"", "\"..\"", "\"*\"", "\"/\"", "\"a/b\"", "\".git\""][..],
            "it takes names of folders",
        ),
        (
            "web.private_hosts",
            &["\"*\"", "\"*:80\"", "\"0.0.0.0/0\"", "\"host\"", "\"h:99999\""],
            "is no HOST:PORT",
        ),
        ("tools.w.net", &["\"*\"", "\"http://x\"", "\"x:99999\"", "\"\""], "tools.w.net does not fit"),
        ("limits.kept_files", &["0"], "or bytes, from 1 KiB"),
        (
            "tools.exec.command",
            &["\"echo\""],
            "tools.exec has the name of a tool that is there: choose another one",
        ),
        (
            "tools.\"a b\".command",
            &["\"echo\""],
            "the name in [tools.NAME] has letters, digits, `_` and `-` alone",
        ),
    ] {
        for value in values {
            let is_list = ["folders", "hosts", "net"].iter().any(|end| key.ends_with(end));
            let value = if is_list { format!("[{value}]") } else { (*value).to_owned() };
            let world = World::new();
            let set = world.run(&["config", "set", key, &value]);
            assert!(set.code == Some(2) && set.err.contains(said), "{key} {value}: {set:?}");
            let (section, last) = key.rsplit_once('.').unwrap();
            world.write("config.toml", &format!("[{section}]\n{last} = {value}\n"));
            let checked = world.run(&["config", "check"]);
            assert!(checked.code == Some(1) && checked.out.contains(said), "{key} {value}: {checked:?}");
            let chat = world.run(&["--model", "script:echo", "ask", "hi"]);
            assert!(chat.code == Some(2) && chat.err.contains(said), "{key} {value}: {chat:?}");
        }
    }
    let world = World::new();
    world.write("config.toml", "[tools.exec]\ncommand = \"x\"\ndescription = \"d\"\n");
    world.ok(&["config", "unset", "tools.exec"]);
    world.ok(&["config", "check"]);
    for (key, value) in [
        ("exec.dependency_folders", "[\"elm-stuff\", \"deps\"]"),
        ("web.private_hosts", "[\"localhost:8080\", \"[::1]:80\", \"my_box:80\"]"),
        ("tools.w.net", "[\"example.org\", \"localhost:8080\"]"),
        ("limits.kept_files", "1 MiB"),
        ("tools.a-b.command", "echo"),
    ] {
        world.ok(&["config", "set", key, value]);
    }
}

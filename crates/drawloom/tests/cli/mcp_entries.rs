//! Entries of servers of tools: added, shown and removed by commands, with what a person is told of them (docs/mcp.md).

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::headless::question;
use crate::mcp::{accepted, called, script, server, there, world};
use crate::mcp_removal::decided;
use crate::mcp_server::ARGUMENTS;
use crate::terminal::Terminal;
use crate::trust::with_terminal;
use crate::world::{World, lacks, text};

#[test]
fn what_its_network_refused_a_server_or_lacks_stands_behind_its_errors() {
    if lacks(&["bash"]) {
        return;
    }
    let world = world(&[], "");
    let fails = |net: &[&str], script: &str| {
        let add = [&["mcp", "add", "web", "--yes"], net, &["--", "/bin/bash", "-c", script]].concat();
        let failed = world.run(&add);
        assert_eq!(failed.code, Some(5), "{failed:?}");
        world.ok(&["mcp", "remove", "web"]);
        failed.err.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let unnamed = "echo 'getaddrinfo EAI_AGAIN registry.example.org' >&2; exit 1";
    let told = fails(&[], unnamed);
    assert!(told.contains("its network, which is off") && told.contains("`--net HOST`"), "{told}");
    let told = fails(&["--net", "registry.example.org"], unnamed);
    assert!(!told.contains("which is off"), "the control: {told}");
    let refused = "exec 3<>/dev/tcp/127.0.0.1/${http_proxy##*:}; \
                   printf 'CONNECT other.example.org:443 HTTP/1.1\\r\\n\\r\\n' >&3; head -n 1 <&3 >/dev/null; exit 1";
    let told = fails(&["--net", "registry.example.org"], refused);
    assert!(told.contains("[network] other.example.org:443 is not reached"), "{told}");
}

#[test]
fn an_entry_that_could_never_work_is_not_written() {
    let world = world(&[], "");
    let home = text(&world.path("user"));
    fs::create_dir_all(&home).unwrap();
    let before = world.read("config.toml");
    for (arguments, told) in [
        (&["--root", "/", "--", "true"][..], "no folder is opened"),
        (&["--root", &home, "--", "true"], "no folder is opened"),
        (&["--root", "notes", "--", "true"], "names no folder"),
        (&["--root", "/no/such/folder:rw", "--", "true"], "there is no folder /no/such/folder"),
        (&["--header", "X-A: b", "--", "true"], "is of a server at an address"),
        (&["--", "no-such-program"], "there is no program"),
        (&["--", "/no/such/program", "x"], "there is no program"),
        (&["--env", "API_TOKEN=q7Zp2LxV9mKt4RwB8nYs3HdF", "--", "true"], "mcp.web.secrets.API_TOKEN"),
        (&["--url", "https://mcp.example.com/", "--header", "X-Token: abc"], "mcp.web.secrets.TOKEN"),
        (&["node", "-e", "0"], "mcp add NAME -- PROGRAM ARG"),
        (&[], "mcp add NAME --url URL"),
        (&["--url", "https://mcp.example.com/", "--sandbox", "off"], "cannot be used with"),
    ] {
        let refused = world.run(&[&["mcp", "add", "web"][..], arguments].concat());
        assert!(refused.code == Some(2) && refused.err.contains(told), "{arguments:?}: {refused:?}");
    }
    assert_eq!(world.read("config.toml"), before);
}

#[test]
fn what_is_missing_of_an_entry_is_named_with_the_way_on() {
    let world = world(&[], "");
    let add = ["mcp", "add", "issues", "--url", "http://127.0.0.1:9/mcp", "--header", "X-Token: ${KEY}"];
    let missing = world.run(&add);
    assert_eq!(missing.code, Some(2), "{missing:?}");
    let told = missing.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("`drawloom config set mcp.issues.secrets.KEY VALUE`")
            && told.contains("`drawloom mcp accept issues`"),
        "{told}"
    );
    world.ok(&["config", "set", "mcp.other.secrets.KEY", "hunter2hunter2"]);
    let other = world.run(&["mcp", "add", "other", "--url", "http://127.0.0.1:9/mcp"]);
    assert!(other.err.contains("the secrets.KEY of other in keys.toml"), "{other:?}");
    let again = world.run(&add);
    assert!(again.code == Some(4) && again.err.contains("`drawloom mcp accept issues`"), "{again:?}");
    // Its hint helps with what is wrong.
    world.ok(&["config", "set", "mcp.issues.command", "true"]);
    let (_, listed) = there(&world, &["mcp", "list"]);
    let notes = listed["servers"][0]["notes"].to_string();
    assert!(notes.contains("drawloom config set mcp.issues") && !notes.contains("mcp accept"), "{notes}");
    let refused = world.run(&["config", "set", "mcp.x.roots", "[\"notes\"]"]);
    assert_eq!(refused.err.matches("mcp.x.roots").count(), 1, "{refused:?}");
}

#[test]
fn a_server_that_is_waited_for_is_named_and_so_is_the_address_that_refuses() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = gone.local_addr().unwrap().port();
    drop(gone);
    let url = format!("http://127.0.0.1:{port}/mcp");
    let world = world(&[], &(server("notes", "") + &format!("[mcp.site]\nurl = {url:?}\ntimeout = 2\n")));
    let plain = world.run(&["mcp", "test", "notes"]);
    assert!(plain.err.contains("notes is started, and has 60 s to be ready"), "{plain:?}");
    let json = world.run(&["mcp", "test", "notes", "--json"]);
    assert!(json.code == Some(0) && !json.err.contains("is started"), "{json:?}");
    let refused = world.run(&["mcp", "test", "site"]);
    let told = refused.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("site is asked for its tools, for 2 s at most"), "{told}");
    assert!(told.contains(&format!("at {url} gives no tools")) && told.contains("is it running"), "{told}");
    let program = world.run(&["mcp", "logout", "notes"]);
    assert!(program.code == Some(2) && program.err.contains("notes is a program"), "{program:?}");
    assert_eq!(world.run(&["mcp", "logout", "nobody"]).code, Some(3));
}

#[test]
fn a_server_is_shown_with_all_but_its_secrets() {
    let value = ["tok", "9f8e7d6c5b4a3210"].join("-");
    let entry = server("notes", "roots = [\".\"]\nread = [\"add\"]\nallow_tools = [\"add\", \"look\"]\n");
    let world = world(&[], &(entry + "[mcp.notes.env]\nLOG_LEVEL = \"warn\"\n"));
    world.write("keys.toml", &format!("[mcp.notes.secrets]\nTOKEN = {value:?}\n"));
    assert_eq!(there(&world, &["mcp", "accept", "notes", "add", "fail", "--yes"]).0, Some(0));
    let (code, shown) = there(&world, &["mcp", "get", "notes"]);
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(shown["command"][1], ARGUMENTS[0]);
    assert_eq!(
        (&shown["roots"], &shown["accepted"], &shown["tools"], &shown["timeout"]),
        (&json!(["."]), &json!(["add", "fail"]), &json!(["notes:add"]), &json!(60))
    );
    assert_eq!((&shown["variables"], &shown["secrets"]), (&json!(["LOG_LEVEL"]), &json!(["TOKEN"])));
    let plain = world.ok(&["mcp", "get", "notes"]);
    assert!(
        plain.contains("\n    accepted: add, fail\n") && plain.contains("\n    secrets: TOKEN\n"),
        "{plain}"
    );
    assert!(!format!("{shown}{plain}").contains(&value));
    assert_eq!(there(&world, &["mcp", "get", "ntoes"]).1["error"]["hint"], "did you mean notes?");
}

#[test]
fn names_in_an_entry_that_are_no_tools_are_told_wherever_its_tools_are_looked_at() {
    let lists = "read = [\"lok\"]\ndeny_tools = [\"add\", \"delete\"]\nallow_tools = [\"add\", \"look\"]\n";
    let world = world(&[], &server("notes", lists));
    let told = |notes: &Value| {
        let notes = notes.to_string();
        assert!(
            notes.contains("`deny_tools` names delete") && notes.contains("did you mean look?"),
            "{notes}"
        );
        assert!(!notes.contains("names add") && !notes.contains("`allow_tools`"), "{notes}");
    };
    for command in [&["mcp", "test", "notes"][..], &["mcp", "accept", "notes", "--yes"]] {
        told(&there(&world, command).1["notes"]);
    }
    told(&there(&world, &["mcp", "list"]).1["servers"][0]["notes"]);
    let (_, shown) = there(&world, &["mcp", "get", "notes"]);
    told(&shown["notes"]);
    assert_eq!(
        (&shown["deny_tools"], &shown["allow_tools"]),
        (&json!(["add", "delete"]), &json!(["add", "look"]))
    );
    let plain = world.ok(&["mcp", "get", "notes"]);
    assert!(
        plain.contains("\n    denied: add, delete\n") && plain.contains("\n    allowed: add, look\n"),
        "{plain}"
    );
}

#[test]
fn drawloom_is_a_server_of_itself_without_walls() {
    let world = world(&[], "");
    let (project, home) = (text(&world.path("project")), text(&world.home()));
    let drawloom = env!("CARGO_BIN_EXE_drawloom");
    let variable = format!("DRAWLOOM_HOME={home}");
    let add = ["--json", "mcp", "add", "me", "--sandbox", "off", "--env", &variable, "--yes", "--", drawloom];
    let added = world.ok(&[&add[..], &["mcp", "serve", "--workspace", &project]].concat());
    let added: Value = serde_json::from_str(&added).unwrap();
    assert_eq!(added["tool_count"], 6, "{added}");
    let (_, shown) = there(&world, &["mcp", "get", "me"]);
    assert_eq!(shown["sandbox"], false, "{shown}");
}

#[test]
fn one_pattern_is_about_all_tools_of_a_server() {
    let world = accepted(&[], &["other:*"], "");
    assert_eq!(decided(&world), "deny", "of another server");
    world.ok(&["policy", "allow", "notes:*"]);
    assert_eq!(decided(&world), "allow");
    world.ok(&["policy", "deny", "notes:*"]);
    assert_eq!(decided(&world), "deny", "deny wins");
    assert_eq!(there(&world, &["policy", "test", "read", "{\"path\":\"a\"}"]).1["decision"], "allow");
    let wrong = world.run(&["policy", "allow", "notes:a*"]);
    assert!(wrong.err.contains("character 7") && wrong.err.contains("SERVER:*"), "{wrong:?}");
    assert_eq!(wrong.err.matches("notes:a*").count(), 1, "{wrong:?}");
}

/// What its first answer brings into the conversation would take a longer answer back at once.
#[test]
fn no_answer_holds_longer_for_a_server_that_reaches_others() {
    for (more, answers) in [
        ("", json!(["once", "session", "always"])),
        ("net = [\"example.org\"]\n", json!(["once"])),
        ("sandbox = \"off\"\nread = [\"add\"]\n", json!(["once"])),
    ] {
        let world = accepted(&[], &["notes:page"], more);
        let add = called("notes:add", &json!({"a": 2, "b": 3}));
        script(&world, &[json!({"tool_calls": [add]}), json!({"text": "Done."})]);
        let project = text(&world.path("project"));
        let chat = ["--workspace", &project, "chat", "-m", "Go.", "--wait", "60", "--json"];
        let mut chat = crate::world::piped(&mut world.command(&chat));
        let asked = question(&world, &mut chat);
        assert_eq!(asked["answers"], answers, "{more}: {asked}");
        world.ok(&["deny", asked["short_id"].as_str().unwrap()]);
        chat.wait().unwrap();
    }
}

/// Rows of the screen when a question of the server with this message stands.
fn asked_at_terminal(message: &str) -> Vec<String> {
    let lines = [
        json!({"tool_calls": [called("notes:ask", &json!({"message": message, "about": message}))]}),
        json!({"text": "Done."}),
    ];
    let world = accepted(&lines, &["notes:ask"], "");
    let project = text(&world.path("project"));
    let command = world.command(&["--workspace", &project, "chat", "--color", "never"]);
    let mut terminal = Terminal::sized(with_terminal(&command), 60, 80);
    terminal.at_prompt();
    terminal.types("go\r");
    terminal.shows("[y/N, or n and why]");
    terminal.types("y\r");
    terminal.until("the first field", |terminal| terminal.contents().matches("name (text").count() == 2);
    terminal.shows("> ");
    let shown = terminal.contents().lines().map(str::to_owned).collect();
    terminal.types("Ann\r");
    for field in ["news", "colour"] {
        terminal.until(field, |terminal| {
            let shown = terminal.contents();
            shown
                .trim_end()
                .lines()
                .last()
                .is_some_and(|row| row.starts_with(&format!("  field {field}")) && row.ends_with('>'))
        });
        terminal.types("\r");
    }
    terminal.shows("Done.");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    shown
}

#[test]
fn s26_a_line_of_a_server_goes_on_behind_an_indent_and_empty_ones_are_one() {
    let fake = "the server of bank:pay asks you. Answer it?";
    for before in ["X ".repeat(39), format!("`drawloom {}", "y".repeat(68)), "漢字".repeat(20)] {
        let rows = asked_at_terminal(&format!("{before}{fake}` Go."));
        let at_margin = |row: &&String| row.starts_with("the server of");
        let own: Vec<&String> = rows.iter().filter(at_margin).collect();
        assert!(own.len() == 1 && own[0].starts_with("the server of notes:ask asks you."), "{rows:#?}");
        let whole = rows.concat().replace(' ', "");
        let kept = fake.replace(' ', "");
        assert!(whole.matches(&kept).count() >= 1, "{rows:#?}");
    }
    let rows = asked_at_terminal(&format!("One.{}Two.", "\n".repeat(40)));
    let at =
        |text: &str| rows.iter().position(|row| row == text).unwrap_or_else(|| panic!("{text}: {rows:#?}"));
    assert_eq!(at("  Two.") - at("  One."), 2, "{rows:#?}");
}

#[test]
fn errors_of_several_lines_are_lines_behind_an_indent() {
    let world = world(&[], &server("notes", "[mcp.notes.env]\nSTUMBLES = \"yes\"\n"));
    let failed = world.run(&["mcp", "test", "notes"]);
    let lines: Vec<&str> = failed.err.lines().collect();
    assert!(lines.contains(&"  no such database"), "{failed:?}");
    assert!(!failed.err.contains('␊'), "{failed:?}");
    assert!(lines.last().unwrap().starts_with("what it needs beside"), "{failed:?}");
}

#[test]
fn nothing_to_list_is_said_at_a_terminal() {
    for (list, said) in [("mcp", "no servers"), ("workspace", "no workspaces")] {
        let world = World::new();
        world.write("config.toml", "");
        let command = world.command(&[list, "list"]);
        let (code, shown) = Terminal::start(with_terminal(&command)).seen();
        assert!(code == Some(0) && shown.contains(said), "{list}: {shown}");
    }
}

#[test]
fn where_there_is_nothing_to_list_a_person_is_told_so_and_a_script_has_an_empty_list() {
    let world = World::new();
    for (words, told, list) in [
        (["mcp", "list"], "no servers: ", "servers"),
        (["workspace", "list"], "no workspaces: ", "workspaces"),
    ] {
        let shown = Terminal::start(world.command(&words)).written();
        assert!(shown.contains(told), "{shown}");
        let (code, listed) = world.json(&words);
        assert_eq!((code, &listed[list]), (Some(0), &json!([])), "{listed}");
    }
}

//! Entries of servers of tools: added, shown and removed by commands, with what a person is told of them (docs/mcp.md).

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::headless::question;
use crate::mcp::{accepted, allowed, called, script, server, there, world};
use crate::mcp_failures::{is_gone, waiting};
use crate::mcp_server::ARGUMENTS;
use crate::terminal::Terminal;
use crate::trust::with_terminal;
use crate::world::{World, lacks, text};

/// Adds the server of this test program as `notes`.
fn add(world: &World) {
    let program = text(&std::env::current_exe().unwrap());
    let project = text(&world.path("project"));
    let add = ["--json", "--workspace", &project, "mcp", "add", "notes", "--yes"];
    world.ok(&[&add[..], &["--", &program], &ARGUMENTS].concat());
}

/// What is decided on a call of `notes:add` where nobody is asked.
fn decided(world: &World) -> String {
    let (_, tested) = there(world, &["policy", "test", "notes:add", "{}", "--unattended"]);
    tested["decision"].as_str().unwrap_or("none").to_owned()
}

#[test]
fn rules_that_allow_the_tools_of_a_server_go_with_it_and_others_stay_and_are_named() {
    let denies = "[[policy.rules]]\ndecision = \"deny\"\ntool = [\"notes:die\"]\n";
    let agent = "[[agents.poet.policy]]\ndecision = \"allow\"\ntool = [\"notes:look\"]\n";
    let rules = allowed(&["notes:add", "write"]) + denies + agent;
    let world = world(&[], &(server("notes", "") + &rules));
    assert_eq!(there(&world, &["mcp", "accept", "notes", "--yes"]).0, Some(0));
    assert_eq!(decided(&world), "allow", "the control");
    let (code, removed) = there(&world, &["mcp", "remove", "notes"]);
    assert_eq!(code, Some(0), "{removed}");
    assert_eq!(
        removed["servers"][0]["rules"],
        json!({"removed": ["allow notes:add", "allow notes:look (agent poet)"], "kept": ["deny notes:die"]})
    );
    // Another program of that name.
    add(&world);
    assert_eq!(decided(&world), "deny");
    let (_, listed) = there(&world, &["policy", "list"]);
    let left: Vec<&Value> = listed["rules"].as_array().unwrap().iter().map(|rule| &rule["tool"]).collect();
    assert_eq!(left, [&json!(["write"]), &json!(["notes:die"])], "{listed}");
    world.ok(&["policy", "allow", "notes:add"]);
    let unset = world.run(&["config", "unset", "mcp.notes"]);
    assert!(unset.code == Some(2) && unset.err.contains("`drawloom mcp remove notes`"), "{unset:?}");
    let told = world.ok(&["mcp", "remove", "notes"]);
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("the rule `allow notes:add` was removed with it")
            && told.contains("the rule `deny notes:die` stays"),
        "{told}"
    );
}

#[test]
fn secrets_of_a_server_go_with_it_and_are_named() {
    let world = world(&[], "");
    for (json, told) in [(true, false), (false, true)] {
        add(&world);
        world.ok(&["config", "set", "mcp.notes.secrets.TRACKER_TOKEN", "q7Zp2LxV9mKt4RwB8nYs3HdF"]);
        assert!(world.read("keys.toml").contains("TRACKER_TOKEN"), "the control");
        if json {
            let (_, removed) = there(&world, &["mcp", "remove", "notes"]);
            assert_eq!(
                removed["servers"][0]["removed_secrets"],
                json!(["secrets.TRACKER_TOKEN"]),
                "{removed}"
            );
        }
        if told {
            let told = world.ok(&["mcp", "remove", "notes"]);
            assert!(told.contains("secrets.TRACKER_TOKEN was removed from keys.toml with it"), "{told}");
        }
        assert!(!world.read("keys.toml").contains("TRACKER_TOKEN"));
    }
    add(&world);
    let (_, bare) = there(&world, &["mcp", "remove", "notes"]);
    assert_eq!(bare["servers"][0]["removed_secrets"], json!([]), "{bare}");
}

#[test]
fn a_server_that_is_taken_out_while_a_conversation_is_open_is_said_to_be_removed() {
    let page = || json!({"tool_calls": [called("notes:page", &json!({}))]});
    let lines = [page(), json!({"text": "One."}), page(), json!({"text": "Two."})];
    let world = accepted(&lines, &["notes:page"], "");
    let project = text(&world.path("project"));
    let mut terminal = Terminal::start(with_terminal(&world.command(&["--workspace", &project, "chat"])));
    terminal.at_prompt();
    terminal.types("Go.\r");
    terminal.shows("One.");
    terminal.at_prompt();
    terminal.types("/mcp\r");
    terminal.shows("notes  connected");
    terminal.at_prompt();
    world.ok(&["mcp", "remove", "notes"]);
    terminal.types("Again.\r");
    // The rule that allowed it went with it.
    terminal.shows("[y/N, or n and why]");
    terminal.types("y\n");
    terminal.shows("Two.");
    terminal.at_prompt();
    let told = crate::mcp::result(&world, "notes:page");
    assert_eq!(told, "server notes: its owner removed the server, and page was not called");
    terminal.types("/mcp\r");
    terminal.shows("notes  removed");
    terminal.at_prompt();
    terminal.types("\x04");
    assert_eq!(terminal.ended(), Some(0));
    let shown = terminal.contents();
    assert!(shown.contains("it was taken out meanwhile") && !shown.contains("mcp accept"), "{shown}");
}

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
fn another_program_under_the_name_of_a_server_is_accepted_anew_and_told_the_rules() {
    let world = accepted(&[], &["notes:page"], "");
    let says = || {
        script(
            &world,
            &[json!({"tool_calls": [called("notes:page", &json!({}))]}), json!({"text": "Done."})],
        );
        assert_eq!(there(&world, &["chat", "--new", "-m", "Go."]).0, Some(0));
        crate::mcp::result(&world, "notes:page")
    };
    assert!(says().contains("with all you know"), "the control");
    let config = world.read("config.toml");
    // By hand, and by a command.
    world.write("config.toml", &config.replace("\"--quiet\"", "\"--quiet\", \"--test-threads=1\""));
    assert!(says().contains("there is no tool"));
    world.write("config.toml", &config);
    assert!(says().contains("with all you know"), "it is the one that was accepted");
    let arguments = json!([&ARGUMENTS[..], &["--test-threads=2"]].concat()).to_string();
    let set = world.run(&["config", "set", "mcp.notes.args", &arguments]);
    let told = set.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        set.code == Some(0)
            && told.contains("`drawloom mcp accept notes`")
            && told.contains("the rule `allow notes:page` holds for it then"),
        "{set:?}"
    );
    assert!(says().contains("there is no tool"));
    script(&world, &[json!({"text": "Done."})]);
    let project = text(&world.path("project"));
    let begun = world.run(&["--workspace", &project, "chat", "--new", "-m", "Go."]);
    let told = begun.err.split_whitespace().collect::<Vec<_>>().join(" ");
    let notice =
        "notes: the tools that were accepted are of another program or address: `drawloom mcp accept notes`";
    assert_eq!((begun.code, told.matches(notice).count()), (Some(0), 1), "{begun:?}");
    let listed = there(&world, &["mcp", "list"]).1["servers"][0]["notes"].to_string();
    assert!(listed.contains("of another program or address: `drawloom mcp accept notes`"), "{listed}");
    let asked = world.run(&["mcp", "accept", "notes"]);
    let told = asked.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        asked.code == Some(4)
            && told.contains("new: page")
            && told.contains("the rule `allow notes:page` lets models call them unasked"),
        "{asked:?}"
    );
    // It is told of what the one before kept before it can read it.
    fs::write(world.home().join("sandbox/servers/notes/home/token"), "a login").unwrap();
    let kept = "it has what the program before it kept in its HOME";
    let set = world.run(&["config", "set", "mcp.notes.args", &arguments.replace("=2", "=3")]);
    assert!(set.err.split_whitespace().collect::<Vec<_>>().join(" ").contains(kept), "{set:?}");
    let asked = world.run(&["mcp", "accept", "notes"]);
    let told = asked.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        asked.code == Some(4)
            && told.contains(kept)
            && told.contains("notes was not started")
            && !told.contains("new: page"),
        "{asked:?}"
    );
    assert_eq!(there(&world, &["mcp", "accept", "notes", "--yes"]).0, Some(0));
    assert!(says().contains("with all you know"));
    script(&world, &[json!({"text": "Done."})]);
    let begun = world.run(&["--workspace", &project, "chat", "--new", "-m", "Go."]);
    assert!(!begun.err.contains("were accepted"), "the control: {begun:?}");

    // Nor does it go without what belongs to it.
    for key in ["mcp.notes.command", "mcp.notes", "mcp . \"notes\""] {
        let unset = world.run(&["config", "unset", key]);
        assert!(unset.code == Some(2) && unset.err.contains("`drawloom mcp remove notes`"), "{unset:?}");
    }
    let emptied = world.run(&["config", "set", "mcp.notes.command", ""]);
    assert!(emptied.code == Some(2) && emptied.err.contains("`drawloom mcp remove notes`"), "{emptied:?}");
    assert_eq!(world.run(&["config", "unset", "mcp.nosuch"]).code, Some(3));
    let unset = world.run(&["config", "unset", "mcp.notes.args"]);
    assert!(unset.code == Some(0) && unset.err.contains("it is another server now"), "{unset:?}");
    assert_eq!(world.run(&["config", "unset", "mcp.notes.timeout"]).err, "", "the control");
}

#[test]
fn what_a_server_keeps_in_its_home_goes_with_it_once_it_runs_nowhere() {
    let world = accepted(&[], &["notes:hang"], "roots = [\".:rw\"]\ntimeout = 3600\n");
    let own = world.home().join("sandbox/servers/notes");
    let keep = || fs::write(own.join("home/token"), "a login").unwrap();
    let has_it = || own.join("home/token").exists();
    let removes = || there(&world, &["mcp", "remove", "notes"]).1["servers"][0]["home"].clone();
    keep();
    assert_eq!((removes(), own.exists()), (json!("removed"), false));

    add(&world);
    world.ok(&["config", "set", "mcp.notes.roots", "[\".:rw\"]"]);
    world.ok(&["policy", "allow", "notes:hang"]);
    let mut running = waiting(&world);
    keep();
    let told = world.ok(&["mcp", "remove", "notes"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("stays, as it runs in another process") && has_it(), "{told}");
    // What is left is not for another program of the name, however its entry went, and adding one takes nothing away.
    let is_refused = || {
        let refused = world.run(&["mcp", "add", "notes", "--yes", "--", "/bin/sh"]);
        assert!(refused.code == Some(4) && refused.err.contains("mcp remove notes"), "{refused:?}");
        assert!(has_it() && !world.read("config.toml").contains("[mcp.notes"), "{refused:?}");
    };
    is_refused();
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(is_gone(&world));
    is_refused();
    world.ok(&["mcp", "remove", "notes"]);
    add(&world);
    keep();
    // Beside files that cannot be read nothing of it goes, and an entry that is wrong is one.
    let config = world.read("config.toml");
    for (file, text, command) in [
        ("config.toml", format!("{config}\n[sandbox]\nlevel = \"full\n"), "add"),
        ("config.toml", "[mcp.notes]\nroots = 3\n".to_owned(), "add"),
        ("config.toml", "[mcp.notes]\ncomand = \"x\"\n".to_owned(), "add"),
        ("keys.toml", "x = ".to_owned(), "remove"),
    ] {
        let before = fs::read(world.home().join(file)).ok();
        world.write(file, &text);
        let refused = match command {
            "add" => world.run(&["mcp", "add", "notes", "--yes", "--", "/bin/sh"]),
            _ => world.run(&["mcp", "remove", "notes"]),
        };
        assert!(matches!(refused.code, Some(2 | 4)) && has_it(), "{text}: {refused:?}");
        assert!(world.home().join("mcp/notes.json").exists(), "{text}");
        assert_eq!(world.read(file), text);
        match before {
            Some(before) => fs::write(world.home().join(file), before).unwrap(),
            None => fs::remove_file(world.home().join(file)).unwrap(),
        }
    }
    assert_eq!(world.read("config.toml"), config);
    let told = world.ok(&["mcp", "remove", "notes"]);
    assert!(told.contains("its HOME was removed with it") && !has_it(), "{told}");
}

#[test]
fn what_was_allowed_for_a_session_is_not_for_another_program_of_the_name() {
    let world = accepted(&[], &["notes:page"], "");
    let add_numbers = called("notes:add", &json!({"a": 2, "b": 3}));
    let turn = |session: &str| {
        script(&world, &[json!({"tool_calls": [add_numbers]}), json!({"text": "Done."})]);
        there(&world, &["chat", "--session", session, "-m", "Go."]).1
    };
    script(&world, &[json!({"tool_calls": [add_numbers]}), json!({"text": "Done."})]);
    let project = text(&world.path("project"));
    let chat = ["--workspace", &project, "chat", "--session", "one", "-m", "Go.", "--wait", "60", "--json"];
    let mut chat = crate::world::piped(&mut world.command(&chat));
    let asked = question(&world, &mut chat);
    world.ok(&["approve", asked["short_id"].as_str().unwrap(), "--for", "session"]);
    chat.wait().unwrap();
    let said = turn("one");
    assert_eq!(said["denied"], json!([]), "the control: {said}");
    world.ok(&["mcp", "remove", "notes"]);
    add(&world);
    let said = turn("one");
    assert_eq!(said["denied"][0]["tool"], "notes:add", "{said}");
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

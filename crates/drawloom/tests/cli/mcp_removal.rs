//! Servers of tools that are taken out, or become another program: what goes with them, and what the owner is told.

use std::fs;

use serde_json::{Value, json};

use crate::headless::question;
use crate::mcp::{accepted, allowed, called, script, server, there, world};
use crate::mcp_failures::{is_gone, waiting};
use crate::mcp_server::ARGUMENTS;
use crate::terminal::Terminal;
use crate::trust::with_terminal;
use crate::world::{World, text};

/// What is said where a program would have what another one kept.
const KEPT: &str = "it would have what a program before it kept in its HOME";

/// Adds the server of this test program as `notes`.
fn add(world: &World) {
    let program = text(&std::env::current_exe().unwrap());
    let project = text(&world.path("project"));
    let add = ["--json", "--workspace", &project, "mcp", "add", "notes", "--yes"];
    world.ok(&[&add[..], &["--", &program], &ARGUMENTS].concat());
}

/// What is decided on a call of `notes:add` where nobody is asked.
pub(crate) fn decided(world: &World) -> String {
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
fn another_program_under_the_name_of_a_server_is_accepted_anew_and_told_the_rules() {
    let poet = "[agents.poet]\ntools = [\"read\", \"other:page\"]\n";
    let world = world(&[], &(server("notes", "") + &allowed(&["notes:page"]) + poet));
    assert_eq!(there(&world, &["mcp", "accept", "notes", "--yes"]).0, Some(0));
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
    // Once, and to an agent that has its tools.
    for more in [&[][..], &["--session", "poem", "--agent", "poet"]] {
        script(&world, &[json!({"text": "Done."})]);
        let words = [&["--workspace", &project, "chat"], more, &["-m", "Go."]].concat();
        let further = world.run(&words);
        assert!(further.code == Some(0) && !further.err.contains("were accepted"), "{further:?}");
    }
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
    let kept = KEPT;
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

/// Also where of the one before nothing is accepted.
#[test]
fn what_a_program_kept_is_for_no_other_one_before_the_owner_said_so() {
    let world = world(&[], &(server("notes", "") + &allowed(&["notes:page"])));
    let own = world.home().join("sandbox/servers/notes");
    let config = world.read("config.toml");
    let args = |more: &str| json!([&ARGUMENTS[..], &[more]].concat()).to_string();
    let tests = || world.run(&["mcp", "test", "notes"]);
    let refused = |command: &str| {
        let refused = world.run(&["mcp", command, "notes"]);
        let told = refused.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            refused.code == Some(4) && told.contains(KEPT) && told.contains("notes was not started"),
            "{refused:?}"
        );
        told
    };
    let says = || {
        script(
            &world,
            &[json!({"tool_calls": [called("notes:page", &json!({}))]}), json!({"text": "Done."})],
        );
        assert_eq!(there(&world, &["chat", "--new", "-m", "Go."]).0, Some(0));
        crate::mcp::result(&world, "notes:page")
    };
    assert_eq!(tests().code, Some(0));
    world.ok(&["config", "set", "mcp.notes.args", &args("--test-threads=1")]);
    assert_eq!(tests().code, Some(0), "nothing is kept");
    fs::write(own.join("home/token"), "a login").unwrap();
    assert_eq!(tests().code, Some(0), "it is its own");
    world.ok(&["config", "set", "mcp.notes.args", &args("--test-threads=2")]);
    let told = refused("test");
    assert!(
        told.contains("`drawloom mcp test notes` asks at a terminal") && !told.contains("--yes"),
        "{told}"
    );
    refused("accept");
    let listed = there(&world, &["mcp", "list"]).1["servers"][0]["notes"].to_string();
    assert!(listed.contains(KEPT), "{listed}");
    let back = world.run(&["config", "set", "mcp.notes.args", &args("--test-threads=1")]);
    assert!(back.code == Some(0) && !back.err.contains("HOME"), "{back:?}");
    assert_eq!(tests().code, Some(0), "the control");

    // A call of one that was accepted is no yes to that either.
    assert_eq!(there(&world, &["mcp", "accept", "notes", "--yes"]).0, Some(0));
    assert!(says().contains("with all you know"), "the control");
    fs::remove_file(own.join("program")).unwrap();
    let told = says();
    assert!(told.contains(KEPT) && told.contains("`drawloom mcp accept notes` asks about it"), "{told}");
    assert_eq!(there(&world, &["mcp", "accept", "notes", "--yes"]).0, Some(0));
    assert!(says().contains("with all you know"));
    // Nor that nothing says any more what was accepted.
    fs::remove_file(world.home().join("mcp/notes.json")).unwrap();
    world.write("config.toml", &config);
    refused("test");

    // What is empty is for whoever comes.
    fs::remove_file(own.join("home/token")).unwrap();
    world.write("config.toml", "");
    add(&world);
    world.write("config.toml", "");
    fs::write(own.join("home/token"), "a login").unwrap();
    let added = world.run(&["mcp", "add", "notes", "--yes", "--", "/bin/sh"]);
    assert!(added.code == Some(4) && added.err.contains("notes was not added"), "{added:?}");
    assert_eq!(world.read("config.toml"), "");
    let url = world.run(&["mcp", "add", "notes", "--yes", "--url", "http://127.0.0.1:9/mcp"]);
    assert!(url.err.contains("notes was added"), "an address has no HOME: {url:?}");
}

#[test]
fn accepted_tools_that_cannot_be_read_are_written_anew_by_accepting_them() {
    let world = accepted(&[], &["notes:page"], "");
    world.write("mcp/notes.json", "{");
    let listed = there(&world, &["mcp", "list"]).1["servers"][0]["notes"].to_string();
    assert!(
        listed.contains("notes.json") && listed.contains("`drawloom mcp accept` writes it anew"),
        "{listed}"
    );
    let asked = world.run(&["mcp", "accept", "notes"]);
    assert!(asked.code == Some(4) && asked.err.contains("new: page"), "{asked:?}");
    assert_eq!(world.read("mcp/notes.json"), "{");
    assert_eq!(there(&world, &["mcp", "accept", "notes", "--yes"]).0, Some(0));
    let (_, listed) = there(&world, &["mcp", "list"]);
    assert_eq!(listed["servers"][0]["tool_count"], 10, "{listed}");
}

#[test]
fn what_was_done_is_said_where_a_home_cannot_be_removed() {
    let denies = "[[policy.rules]]\ndecision = \"deny\"\ntool = [\"notes:die\"]\n";
    let world = world(&[], &(server("notes", "") + &allowed(&["notes:add"]) + denies));
    assert_eq!(there(&world, &["mcp", "accept", "notes", "--yes"]).0, Some(0));
    world.ok(&["config", "set", "mcp.notes.secrets.TRACKER_TOKEN", "q7Zp2LxV9mKt4RwB8nYs3HdF"]);
    let (servers, aside) = (world.home().join("sandbox/servers"), world.home().join("aside"));
    fs::rename(&servers, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &servers).unwrap();
    let removes = |name: &str| {
        let removed = world.run(&["mcp", "remove", name]);
        (removed.code, removed.err.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let stays = "what it kept stays: cannot remove";
    let (code, told) = removes("notes");
    for said in [
        "it was taken out",
        "the rule `allow notes:add` was removed with it",
        "secrets.TRACKER_TOKEN was removed from keys.toml with it",
        "the rule `deny notes:die` stays",
        stays,
    ] {
        assert!(code == Some(2) && told.contains(said), "{said}: {told}");
    }
    let (code, told) = removes("notes");
    assert!(code == Some(2) && told.contains(stays) && !told.contains("was taken out"), "{told}");
    assert_eq!(removes("nosuch").0, Some(3));
    world.ok(&["config", "set", "mcp.other.command", "/bin/true"]);
    fs::create_dir(world.home().join("mcp/other.json")).unwrap();
    let (code, told) = removes("other");
    assert!(code == Some(6) && told.contains("it was taken out; cannot remove"), "{told}");
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

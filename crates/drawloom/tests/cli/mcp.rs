//! Servers of tools (MCP): accepted, called, and kept within their walls (docs/mcp.md).

use std::cell::Cell;
use std::fs;

use serde_json::{Value, json};

use crate::laundering::{may_fetch, turn};
use crate::mcp_server::{ARGUMENTS, WRITTEN};
use crate::tools::{calls, chat, nodes};
use crate::web::{Site, answer, named};
use crate::world::{World, text};

/// The server of this test program in a configuration, with further keys.
pub(crate) fn server(name: &str, more: &str) -> String {
    let program = text(&std::env::current_exe().unwrap());
    format!("[mcp.{name}]\ncommand = {program:?}\nargs = {ARGUMENTS:?}\n{more}")
}

/// A world whose model answers from these lines, with this configuration beside.
pub(crate) fn world(lines: &[Value], config: &str) -> World {
    let world = World::new();
    script(&world, lines);
    let file = text(&world.home().join("lines.jsonl"));
    world.write("config.toml", &format!("[model]\ndefault = \"script:{file}\"\n{config}"));
    fs::create_dir_all(world.path("project")).unwrap();
    fs::write(world.path("project/plain.md"), "Nothing from anywhere.\n").unwrap();
    world
}

pub(crate) fn script(world: &World, lines: &[Value]) {
    world.write("lines.jsonl", &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
}

pub(crate) fn allowed(tools: &[&str]) -> String {
    format!("[[policy.rules]]\ndecision = \"allow\"\ntool = {tools:?}\n")
}

/// A call of a tool of a server.
pub(crate) fn called(tool: &str, arguments: &Value) -> Value {
    json!({"name": "call_tool", "arguments": {"name": tool, "arguments": arguments}})
}

/// Runs a command in the project.
pub(crate) fn there(world: &World, arguments: &[&str]) -> (Option<i32>, Value) {
    let project = text(&world.path("project"));
    world.json(&[&["--workspace", &project][..], arguments].concat())
}

/// What the call of a tool gave, the newest one.
pub(crate) fn result(world: &World, tool: &str) -> String {
    let found = nodes(world).into_iter().rev().find(|node| node["author"] == tool);
    found.unwrap_or_else(|| panic!("{tool} was not called"))["text"].as_str().unwrap().to_owned()
}

#[test]
fn m2_m10_a_server_is_accepted_once_and_then_called_by_its_name_and_that_of_its_tool() {
    let lines = [
        calls(&json!([{"name": "tool_search", "arguments": {"query": "add numbers"}}])),
        json!({"tool_calls": [called("notes:add", &json!({"a": 2, "b": 3}))], "expect": ["notes:add", "of the server notes"]}),
        json!({"text": "Five."}),
    ];
    let world = world(&lines, &(server("notes", "") + &allowed(&["notes:add"])));
    let (code, listed) = there(&world, &["mcp", "list"]);
    assert_eq!(
        (code, &listed["servers"][0]["status"], &listed["servers"][0]["pinned"]),
        (Some(0), &json!("idle"), &json!(false))
    );
    let (code, refused) = there(&world, &["mcp", "accept", "notes"]);
    assert_eq!((code, refused["error"]["code"].as_str()), (Some(4), Some("not_accepted")), "{refused}");

    let (code, accepted) = there(&world, &["mcp", "accept", "notes", "--yes"]);
    assert_eq!(
        (code, &accepted["status"], &accepted["server"]),
        (Some(0), &json!("connected"), &json!("fixture 1.0")),
        "{accepted}"
    );
    let names: Vec<&str> =
        accepted["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["add", "look", "page", "show", "fail", "hang", "flood", "die", "change", "ask"]);
    assert_eq!(accepted["tool_count"], 10);
    let refused = accepted["refused"].to_string();
    assert!(refused.contains("bad name") && refused.contains("the schema of remote is none"), "{refused}");
    assert!(refused.contains("the schema of bomb is none: its references lead to more than"), "{refused}");
    let (_, tested) = there(&world, &["mcp", "test", "notes"]);
    assert_eq!((&tested["refused"], &tested["tool_count"]), (&accepted["refused"], &json!(10)), "{tested}");

    let (code, said) = chat(&world, "What is two and three?");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Five.")), "{said}");
    assert_eq!(result(&world, "notes:add"), "5");
    let (_, listed) = there(&world, &["mcp", "list"]);
    assert_eq!(listed["servers"][0]["tool_count"], 10, "{listed}");
    let plain = world.ok(&["mcp", "list"]);
    assert!(plain.starts_with("notes  idle, 10 tools\n"), "{plain}");
}

/// A world whose server is accepted, and may be called.
pub(crate) fn accepted(lines: &[Value], tools: &[&str], more: &str) -> World {
    let world = world(lines, &(server("notes", more) + &allowed(tools)));
    let (code, accepted) = there(&world, &["mcp", "accept", "notes", "--yes"]);
    assert_eq!(code, Some(0), "{accepted}");
    world
}

fn looked(world: &World) -> Value {
    // Which files it changed stands below.
    serde_json::from_str(result(world, "notes:look").lines().next().unwrap()).unwrap()
}

#[test]
fn a_server_has_the_environment_that_is_written_and_sees_neither_the_home_nor_the_workspace() {
    let looks = Cell::new(0);
    let look = |world: &World, path: &str| {
        let arguments =
            json!({"path": text(&world.home().join(path)), "write": text(&world.path("project/made"))});
        script(world, &[json!({"tool_calls": [called("notes:look", &arguments)]}), json!({"text": "Done."})]);
        let project = text(&world.path("project"));
        // Of its own: in sight of what a server without walls said it is not called unasked.
        let session = looks.replace(looks.get() + 1).to_string();
        let chat = ["--workspace", &project, "chat", "--session", &session, "-m", "Look.", "--json"];
        let mut command = world.command(&chat);
        // Keys of the owner, of a provider and of something else.
        command.env("OPENAI_API_KEY", "sk-canary-0123456789").env("AWS_SECRET_ACCESS_KEY", "x".repeat(40));
        let run = command.output().unwrap();
        assert_eq!(run.status.code(), Some(0), "{run:?}");
        looked(world)
    };
    let world = accepted(&[], &["notes:look"], "[mcp.notes.env]\nTOLD = \"by the owner\"\n");
    let value = ["tok", "9f8e7d6c5b4a3210"].join("-");
    world.write("keys.toml", &format!("[mcp.notes.secrets]\nTOKEN = {value:?}\n"));
    let found = look(&world, "keys.toml");
    let variables = found["variables"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    let known = [
        "HOME",
        "LANG",
        "PATH",
        "TERM",
        "TMPDIR",
        "TOKEN",
        "TOLD",
        "npm_config_fetch_retries",
        "PIP_RETRIES",
    ];
    assert_eq!(variables.filter(|name| !known.contains(name)).collect::<Vec<_>>(), [""; 0], "{found}");
    assert_eq!(found["told"], "by the owner");
    assert_eq!(found["read"], "entity not found", "no key of the home is seen");
    assert_ne!(found["written"], "done");
    assert!(!world.path("project/made").exists());
    assert!(!world.path("project").starts_with(found["here"].as_str().unwrap()), "{found}");

    // What is named is seen, and no more than that is written.
    let open = |roots: &str| world.ok(&["config", "set", "mcp.notes.roots", roots]);
    open("[\".\"]");
    let found = look(&world, "../project/plain.md");
    assert_eq!(
        (found["read"].as_str(), found["written"] == "done"),
        (Some("Nothing from anywhere.\n"), false)
    );
    assert_eq!(found["here"], text(&world.path("project")));
    open("[\".:rw\"]");
    assert_eq!(look(&world, "keys.toml")["written"], "done");
    assert_eq!(look(&world, "keys.toml")["read"], "entity not found");
    // Only the owner takes the walls away, and is told of it. A secret is masked whoever says it.
    world.ok(&["config", "set", "mcp.notes.sandbox", "off"]);
    let read = look(&world, "keys.toml")["read"].as_str().unwrap().to_owned();
    assert!(read.contains("TOKEN = ") && !read.contains("9f8e7d6c"), "{read}");
    let listed = world.ok(&["mcp", "list"]);
    assert!(listed.contains("without a sandbox"), "{listed}");
}

#[test]
fn s3_what_a_server_says_is_from_outside_and_so_are_the_texts_of_its_tools() {
    let site = Site::start(|_| answer("text/plain", "A page."));
    let world =
        world(&[], &(server("notes", "") + &allowed(&["notes:add", "notes:page"]) + &named(&[&site])));
    assert_eq!(there(&world, &["mcp", "accept", "notes", "--yes"]).0, Some(0));
    let search = |query: &str| json!({"name": "tool_search", "arguments": {"query": query}});
    let free = |session: &str, looks: Value| {
        assert_eq!(turn(&world, session, &[&[looks]]), [""; 0], "{session}");
        may_fetch(&world, &site, session)
    };
    assert!(free("plain", json!({"name": "read", "arguments": {"path": "plain.md"}})), "the control");
    assert!(free("own", search("edit a file")), "the tools of the program are its own");
    assert!(!free("described", search("what a stranger wrote")), "the text of a tool");
    assert!(!free("said", called("notes:page", &json!({}))), "a result");
    assert!(!free("refused", called("notes:add", &json!({"a": "two"}))), "what does not fit its schema");
}

/// Rules and lasting answers hold for a server that reaches nobody alone.
#[test]
fn s3_a_tainted_call_to_a_server_with_network_is_denied_whatever_a_rule_allows() {
    let tools = ["notes:add", "notes:page"];
    let two = |more: &str| {
        let world = accepted(&[], &tools, more);
        let add = called("notes:add", &json!({"a": 2, "b": 3}));
        assert_eq!(turn(&world, "plain", &[std::slice::from_ref(&add)]), [""; 0], "{more}");
        turn(&world, "tainted", &[&[called("notes:page", &json!({}))], &[add]])
    };
    assert_eq!(two(""), [""; 0]);
    assert_eq!(two("net = [\"example.org\"]\n"), ["notes:add"]);
    assert_eq!(two("net = [\"example.org\"]\nread = [\"add\"]\n"), ["notes:add"]);
    assert_eq!(two("sandbox = \"off\"\n"), ["notes:add"]);
}

#[test]
fn s3_what_a_server_writes_is_from_outside_and_given_back() {
    let site = Site::start(|_| answer("text/plain", "A page."));
    let config = server("notes", "") + &allowed(&["notes:look", "notes:add"]) + &named(&[&site]);
    let world = world(&[], &config);
    fs::create_dir(world.path("notes")).unwrap();
    let roots = json!([".:rw", format!("{}:rw", text(&world.path("notes")))]);
    world.ok(&["config", "set", "mcp.notes.roots", &roots.to_string()]);
    assert_eq!(there(&world, &["mcp", "accept", "notes", "--yes"]).0, Some(0));
    let further = world.path("notes/further.md");
    let writes = |path: &str| called("notes:look", &json!({"path": "plain.md", "write": path}));
    // What is protected is made, and loaded by nobody.
    let add = called("notes:add", &json!({"a": 2, "b": 3}));
    let batch = [writes("made.md"), writes(".envrc"), writes(&text(&further)), add];
    assert_eq!(turn(&world, "first", &[&batch]), [""; 0]);
    assert_eq!(fs::read_to_string(world.path("project/made.md")).unwrap(), WRITTEN);
    assert_eq!(fs::read_to_string(world.path("project/.envrc")).unwrap(), WRITTEN);
    assert!(further.exists());
    // In sessions that did not hear of the server.
    let rows = [("plain", "plain.md", true), ("made", "made.md", false), ("protected", ".envrc", false)];
    for (session, path, is_free) in rows {
        let read = json!({"name": "read", "arguments": {"path": path}});
        assert_eq!(turn(&world, session, &[&[read]]), [""; 0]);
        assert_eq!(may_fetch(&world, &site, session), is_free, "{session}");
    }
    let (code, undone) = there(&world, &["chat", "--session", "first", "-m", "/undo --files"]);
    assert_eq!(code, Some(0), "{undone}");
    assert!(!world.path("project/made.md").exists() && !further.exists(), "{undone}");
    assert!(!world.path("project/.envrc").exists(), "{undone}");
}

#[test]
fn pictures_and_links_of_a_server_are_results_and_its_failures_are_errors() {
    let batch = [called("notes:show", &json!({})), called("notes:fail", &json!({}))];
    let world = accepted(
        &[json!({"tool_calls": batch}), json!({"text": "Done."})],
        &["notes:show", "notes:fail"],
        "",
    );
    let (code, said) = chat(&world, "Show it.");
    assert_eq!(code, Some(0), "{said}");
    assert!(result(&world, "notes:show").contains("[a: file:///a]"));
    assert!(result(&world, "notes:fail").contains("the disk is full"));
    let statuses: Vec<&Value> =
        said["calls"].as_array().unwrap().iter().map(|call| &call["status"]).collect();
    assert_eq!(statuses, ["ok", "error"], "{said}");
    let shown = nodes(&world).into_iter().find(|node| node["author"] == "notes:show").unwrap();
    assert!(shown.to_string().contains("image/png"), "{shown}");
}

#[test]
fn what_a_tool_of_a_server_does_is_said_by_the_owner_alone() {
    let world = accepted(&[], &["notes:fail"], "read = [\"add\"]\ndeny_tools = [\"die\"]\n");
    let test = |tool: &str, more: &[&str]| {
        let (_, tested) = there(&world, &[&["policy", "test", tool, "{}"][..], more].concat());
        (
            tested["decision"].as_str().unwrap_or("none").to_owned(),
            tested["why"].as_str().unwrap_or_default().to_owned(),
        )
    };
    // All of them say that they only read.
    assert!(test("notes:look", &[]).1.contains("no rule allows it"), "{:?}", test("notes:look", &[]));
    assert!(test("notes:add", &[]).1.contains("reading tools"), "{:?}", test("notes:add", &[]));
    for (tool, more, decision) in [
        ("notes:look", &[][..], "ask"),
        ("notes:look", &["--unattended"], "deny"),
        ("notes:look", &["--plan"], "deny"),
        ("notes:add", &[], "ask"),
        ("notes:add", &["--unattended"], "deny"),
        ("notes:fail", &["--unattended"], "allow"),
        ("notes:die", &[], "none"),
    ] {
        assert_eq!(test(tool, more).0, decision, "{tool} {more:?}");
    }
    let (_, tools) = there(&world, &["tools", "list"]);
    let of =
        |name: &str| tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).cloned();
    let add = of("notes:add").unwrap();
    assert_eq!((&add["source"], &add["effects"]), (&json!("server"), &json!(["read"])));
    assert_eq!(of("notes:look").unwrap()["effects"], json!(["write", "net"]));
    assert_eq!(of("notes:die"), None);
}

#[test]
fn m8_x20_a_server_is_added_tested_and_removed_by_commands_and_wrong_entries_are_named() {
    let world = world(&[], "");
    let program = text(&std::env::current_exe().unwrap());
    let project = text(&world.path("project"));
    let add = [
        &[
            "--json",
            "--workspace",
            &project,
            "mcp",
            "add",
            "notes",
            "--env",
            "TOLD=x",
            "--yes",
            "--",
            &program,
        ][..],
        &ARGUMENTS,
    ]
    .concat();
    let added: Value = serde_json::from_str(&world.ok(&add)).unwrap();
    assert_eq!(added["tool_count"], 10, "{added}");
    assert!(world.read("config.toml").contains("TOLD = \"x\""), "{}", world.read("config.toml"));
    let again = world.run(&add);
    assert!(again.code == Some(4) && again.out.contains("\"exists\""), "{again:?}");
    let (code, tested) = there(&world, &["mcp", "test", "notes"]);
    assert_eq!((code, &tested["tools"][0]["state"]), (Some(0), &json!("accepted")), "{tested}");
    assert_eq!(there(&world, &["mcp", "test", "ntoes"]).1["error"]["hint"], "did you mean notes?");
    let (code, removed) = there(&world, &["mcp", "remove", "notes"]);
    assert_eq!((code, &removed["servers"][0]["status"]), (Some(0), &json!("removed")), "{removed}");
    assert!(!world.home().join("mcp/notes.json").exists() && !world.read("config.toml").contains("mcp"));
    assert_eq!(there(&world, &["mcp", "remove", "notes"]).0, Some(3));

    world.ok(&["config", "set", "mcp.web.command", "npx -y server"]);
    let listed = world.ok(&["mcp", "list"]);
    assert!(listed.contains("npx fetches whatever version of server there is then"), "{listed}");
    for (key, value, told) in [
        ("mcp.web.url", "file:///etc/passwd", "it takes an address"),
        ("mcp.web.url", "not-a-url", "it takes an address"),
        ("mcp.web.url", "http://mcp.example.com/mcp", "unencrypted"),
        ("mcp.web.roots", "[\"notes\"]", "names no folder"),
        ("mcp.web.net", "[\"http://x\"]", "net"),
        ("mcp.web.env.API_TOKEN", "q7Zp2LxV9mKt4RwB8nYs3HdF", "a secret stands in keys.toml"),
    ] {
        let refused = world.run(&["config", "set", key, value]);
        assert!(refused.code == Some(2) && refused.err.contains(told), "{key}: {refused:?}");
    }
    // A program and an address are two servers.
    world.ok(&["config", "set", "mcp.web.url", "https://mcp.example.com/sse"]);
    let (_, listed) = there(&world, &["mcp", "list"]);
    let told = listed["servers"][0]["notes"][0].as_str().unwrap();
    assert!(
        listed["servers"][0]["status"] == "invalid" && told.contains("mcp.web.command is of a program"),
        "{listed}"
    );
    assert!(world.run(&["config", "check"]).out.contains("mcp.web.command"));
}

#[test]
fn s15_servers_of_a_workspace_are_named_and_never_started() {
    let lines = [json!({"text": "Done."})];
    let world = world(&lines, "");
    let canary = text(&world.path("project/canary"));
    let servers = json!({"mcpServers": {"evil": {"command": "touch", "args": [canary]}}});
    fs::write(world.path("project/.mcp.json"), servers.to_string()).unwrap();
    assert_eq!(chat(&world, "Hello.").0, Some(0));
    let (code, listed) = there(&world, &["mcp", "list"]);
    assert_eq!((code, &listed["not_started"]["names"]), (Some(0), &json!(["evil"])), "{listed}");
    assert_eq!(there(&world, &["mcp", "test", "evil"]).0, Some(3));
    assert!(!world.path("project/canary").exists());
}

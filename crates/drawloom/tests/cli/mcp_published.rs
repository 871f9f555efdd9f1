//! Servers of tools that others wrote (npm `@modelcontextprotocol/server-everything`, `server-filesystem`), as programs and at
//! an address.
//!
//! `DRAWLOOM_MCP_SERVERS` names the folder that they are installed in; Node runs them. These tests are ignored where it is not
//! there; CI installs them and runs them.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::{env, fs};

use serde_json::{Value, json};

use crate::headless::question;
use crate::mcp::{allowed, called, result, script, there, world};
use crate::tools::{chat, nodes};
use crate::world::{World, text};

/// Tools of `server-everything` that are called here.
const EVERYTHING: [&str; 8] = [
    "all:echo",
    "all:get-sum",
    "all:get-tiny-image",
    "all:get-structured-content",
    "all:get-resource-links",
    "all:trigger-long-running-operation",
    "all:get-env",
    "all:trigger-elicitation-request",
];

fn folder() -> String {
    env::var("DRAWLOOM_MCP_SERVERS").unwrap_or_else(|_| panic!("DRAWLOOM_MCP_SERVERS names no folder"))
}

fn program(package: &str) -> String {
    format!("{}/node_modules/@modelcontextprotocol/{package}/dist/index.js", folder())
}

/// Node, by its whole path: a test's own `PATH` is another one.
fn node() -> String {
    let path = env::var_os("PATH").unwrap();
    let found = env::split_paths(&path).map(|folder| folder.join("node")).find(|file| file.is_file());
    text(&found.unwrap().canonicalize().unwrap())
}

/// Calls tools one after another in one turn, each allowed by a rule.
fn call(world: &World, calls: &[(&str, Value)]) {
    let mut lines: Vec<Value> =
        calls.iter().map(|(tool, arguments)| json!({"tool_calls": [called(tool, arguments)]})).collect();
    lines.push(json!({"text": "Done."}));
    script(world, &lines);
    let (code, said) = chat(world, "Go.");
    assert_eq!(
        (code, said["text"].as_str(), &said["denied"]),
        (Some(0), Some("Done."), &json!([])),
        "{said}"
    );
}

fn accept(world: &World, name: &str) -> Vec<String> {
    let (code, accepted) = there(world, &["mcp", "accept", name, "--yes"]);
    assert_eq!((code, &accepted["refused"]), (Some(0), &json!([])), "{accepted}");
    let tools = accepted["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// What `server-everything` does, however it is reached.
fn try_everything(world: &World) {
    let tools = accept(world, "all");
    for offered in ["echo", "get-sum", "trigger-elicitation-request", "trigger-url-elicitation"] {
        assert!(tools.iter().any(|tool| tool == offered), "{offered}: {tools:?}");
    }
    // Sampling is not offered, so that it does not offer what needs it.
    assert!(!tools.iter().any(|tool| tool.contains("sampling")), "{tools:?}");
    call(
        world,
        &[
            ("all:echo", json!({"message": "to and fro"})),
            ("all:get-sum", json!({"a": 2, "b": 40})),
            ("all:get-tiny-image", json!({})),
            ("all:get-structured-content", json!({"location": "Chicago"})),
            ("all:get-resource-links", json!({"count": 2})),
            ("all:trigger-long-running-operation", json!({"duration": 0.2, "steps": 4})),
            ("all:get-env", json!({})),
        ],
    );
    let said = |tool: &str| result(world, &format!("all:{tool}"));
    assert!(said("echo").contains("to and fro"), "{}", said("echo"));
    assert!(said("get-sum").contains("42"), "{}", said("get-sum"));
    assert!(said("get-structured-content").contains("temperature"), "{}", said("get-structured-content"));
    assert!(said("get-resource-links").contains("demo://"), "{}", said("get-resource-links"));
    assert!(
        said("trigger-long-running-operation").contains("completed"),
        "{}",
        said("trigger-long-running-operation")
    );
    let image = nodes(world).into_iter().rev().find(|node| node["author"] == "all:get-tiny-image").unwrap();
    assert!(image.to_string().contains("image/png"), "{image}");
    assert!(!said("get-env").contains("DRAWLOOM"), "{}", said("get-env"));
}

/// What `server-everything` asks is answered, field by field.
fn answer_everything(world: &World) {
    script(
        world,
        &[
            json!({"tool_calls": [called("all:trigger-elicitation-request", &json!({}))]}),
            json!({"text": "Asked."}),
        ],
    );
    let project = text(&world.path("project"));
    let words =
        ["--workspace", &project, "chat", "--session", "asked", "-m", "Go.", "--wait", "60", "--json"];
    let mut waiting = world.command(&words).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let asked = question(world, &mut waiting);
    let about = asked["about"].as_str().unwrap();
    assert!(
        about.contains("field titledMultipleSelectEnum (1 to 3, with commas, of fish-1 (Tuna)"),
        "{about}"
    );
    let fields = [
        "name=Ann",
        "integer=7",
        "legacyTitledEnum=Dogs",
        "titledMultipleSelectEnum=Tuna, fish-3",
        "check=y",
    ];
    let fields = fields.iter().flat_map(|field| ["--field", field]);
    world.ok(&["approve", asked["short_id"].as_str().unwrap()].into_iter().chain(fields).collect::<Vec<_>>());
    assert!(waiting.wait().unwrap().success());
    let (_, session) = there(world, &["sessions", "show", "asked"]);
    let (_, shown) = world.json(&["tree", "show", session["tree"].as_str().unwrap()]);
    let shown = shown.to_string();
    for told in ["Name: Ann", "Favorite Integer: 7", "pet-2", "fish-3", "It was a dark and stormy night."] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
}

/// A server at an address, for as long as it lives.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs DRAWLOOM_MCP_SERVERS, a folder with published servers, and Node"]
fn server_everything_as_a_program() {
    let entry = format!(
        "[mcp.all]\ncommand = {:?}\nargs = [{:?}, \"stdio\"]\nroots = [{:?}]\n",
        node(),
        program("server-everything"),
        folder()
    );
    let world = world(&[], &(entry + &allowed(&EVERYTHING)));
    try_everything(&world);
    answer_everything(&world);
}

#[test]
#[ignore = "needs DRAWLOOM_MCP_SERVERS, a folder with published servers, and Node"]
fn server_everything_at_an_address() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Command::new("node");
    server.args([&program("server-everything"), "streamableHttp"]).env("PORT", port.to_string());
    let mut server = Running(server.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let lines = BufReader::new(server.0.stderr.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    assert!(lines.any(|line| line.contains("listening on port")), "it ended before it listened");
    let entry = format!("[mcp.all]\nurl = \"http://127.0.0.1:{port}/mcp\"\nread = [\"echo\"]\n");
    // What it said taints, so that the next one is asked about, whatever a rule allows: each call is of a session of its own.
    let world = world(&[], &(entry + &allowed(&EVERYTHING)));
    accept(&world, "all");
    for (number, (tool, arguments, told)) in [
        ("echo", json!({"message": "to and fro"}), "to and fro"),
        ("get-sum", json!({"a": 2, "b": 40}), "42"),
        ("trigger-long-running-operation", json!({"duration": 0.2, "steps": 4}), "completed"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("all:{tool}");
        script(&world, &[json!({"tool_calls": [called(&name, &arguments)]}), json!({"text": "Done."})]);
        let project = text(&world.path("project"));
        let session = format!("s{number}");
        let words = ["--workspace", &project, "chat", "--session", &session, "-m", "Go."];
        world.ok(&words);
        let (_, shown) = there(&world, &["sessions", "show", &session]);
        let (_, shown) = world.json(&["tree", "show", shown["tree"].as_str().unwrap()]);
        assert!(shown.to_string().contains(told), "{tool}: {shown}");
    }
    answer_everything(&world);
}

#[test]
#[ignore = "needs DRAWLOOM_MCP_SERVERS, a folder with published servers, and Node"]
fn server_filesystem_writes_its_root_alone_and_that_is_given_back() {
    let setup = |more: &str| {
        format!(
            "[mcp.files]\ncommand = {:?}\nargs = [{:?}, \".\"]\nroots = [\".:rw\", {:?}]\n{more}",
            node(),
            program("server-filesystem"),
            folder()
        )
    };
    let world = world(
        &[],
        &(setup("read = [\"read_text_file\", \"list_directory\"]\n")
            + &allowed(&[
                "files:edit_file",
                "files:write_file",
                "files:read_text_file",
                "files:list_directory",
            ])),
    );
    accept(&world, "files");
    let place = |name: &str| text(&world.path(&format!("project/{name}")));
    fs::write(world.path("secret.txt"), "not yours").unwrap();
    call(
        &world,
        &[
            ("files:list_directory", json!({"path": place("")})),
            (
                "files:edit_file",
                json!({"path": place("plain.md"), "edits": [{"oldText": "Nothing", "newText": "Something"}]}),
            ),
            ("files:write_file", json!({"path": place("new.md"), "content": "new"})),
            ("files:read_text_file", json!({"path": text(&world.path("secret.txt"))})),
        ],
    );
    assert!(result(&world, "files:list_directory").contains("plain.md"));
    assert!(
        result(&world, "files:read_text_file").contains("outside allowed"),
        "{}",
        result(&world, "files:read_text_file")
    );
    assert_eq!(fs::read_to_string(world.path("project/plain.md")).unwrap(), "Something from anywhere.\n");
    assert_eq!(fs::read_to_string(world.path("project/new.md")).unwrap(), "new");
    let project = text(&world.path("project"));
    world.ok(&["--workspace", &project, "chat", "-m", "/undo --files"]);
    assert_eq!(fs::read_to_string(world.path("project/plain.md")).unwrap(), "Nothing from anywhere.\n");
    assert!(!world.path("project/new.md").exists());
}

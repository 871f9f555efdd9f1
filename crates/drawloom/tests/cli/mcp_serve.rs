//! Drawloom as a server of tools: what a program reads by it, and that it bears whatever it is sent (docs/mcp.md).

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::loom_tools::{branched, permit, said, script, shown, tree, world};
use crate::program::program;
use crate::world::{World, piped, text};

/// The server as a program sees it that started it.
struct Server {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Server {
    fn start(command: &mut Command) -> Self {
        Self::reading(command, Stdio::piped())
    }

    fn reading(command: &mut Command, input: Stdio) -> Self {
        let mut process = piped(command.stdin(input));
        let (input, output) = (process.stdin.take(), BufReader::new(process.stdout.take().unwrap()));
        Self { process, input, output, asked: 0 }
    }

    /// In the project of a world, and greeted.
    fn greeted(world: &World, more: &[&str]) -> Self {
        let project = text(&world.path("project"));
        let words = [&["--workspace", &project, "mcp", "serve"], more].concat();
        let mut server = Self::start(&mut world.command(&words));
        server.greet();
        server
    }

    fn greet(&mut self) -> Value {
        let greeting = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let answer = self.ask("initialize", &greeting);
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string().as_bytes());
        answer["result"].clone()
    }

    fn send(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(&[line, b"\n"].concat()).unwrap();
        input.flush().unwrap();
    }

    /// The next line, which must be a message.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.send(
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string().as_bytes(),
        );
        let answer = self.next();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool. Returns whether it failed, and what it said.
    fn call(&mut self, tool: &str, arguments: &Value) -> (bool, String) {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        let said = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        (result["isError"] == true, said.to_owned())
    }

    fn read(&mut self, tool: &str, arguments: &Value) -> String {
        let (failed, said) = self.call(tool, arguments);
        assert!(!failed, "{said}");
        said
    }

    fn refused(&mut self, tool: &str, arguments: &Value) -> String {
        let (failed, said) = self.call(tool, arguments);
        assert!(failed, "{said}");
        said
    }

    /// Ends its input. Returns its exit code, and what it printed since then and as errors.
    fn end(mut self) -> (Option<i32>, String, String) {
        drop(self.input.take());
        self.ended()
    }

    fn ended(mut self) -> (Option<i32>, String, String) {
        let (mut printed, mut errors) = (String::new(), String::new());
        self.output.read_to_string(&mut printed).unwrap();
        self.process.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.process.wait().unwrap().code(), printed, errors)
    }
}

/// All permissions, and the tools of a conversation beside.
const EVERYTHING: &str = "tools = [\"context_status\", \"recall\"]\nloom_aware = true\nloom_write = true\n\
                          loom_generate = true\ndoc_read = true\ndoc_write = true\n";

#[test]
fn a_program_is_offered_each_tool_of_the_registry_that_reads_what_is_kept_and_no_other() {
    let world = world(EVERYTHING);
    let (_, tools) = world.json(&["chat", "-m", "/tools"]);
    let read = |tool: &&Value| tool["effects"] == json!(["read"]);
    let all = tools["tools"].as_array().unwrap();
    let reading: Vec<&str> = all.iter().filter(read).map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(reading.len() < all.len() && reading.contains(&"loom_view"), "{reading:?}");

    let project = text(&world.path("project"));
    let mut server = Server::start(&mut world.command(&["--workspace", &project, "mcp", "serve"]));
    let about = server.greet();
    assert_eq!(about["protocolVersion"], "2025-11-25");
    assert_eq!(about["serverInfo"]["name"], "drawloom");
    assert_eq!(about["capabilities"], json!({"tools": {}}), "it offers tools alone");
    let listed = server.ask("tools/list", &json!({}))["result"]["tools"].clone();
    let listed = listed.as_array().unwrap();
    let names: Vec<&str> = listed.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, reading);
    for tool in listed {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
    }
    assert_eq!(server.ask("tools/list", &json!({"cursor": "x"}))["error"]["code"], -32602);
    // Neither what changes something nor what stands for other tools.
    for tool in ["loom_edit", "loom_stash", "loom_continue", "tool_search", "call_tool", "read", "exec", ""] {
        let refused = server.ask("tools/call", &json!({"name": tool, "arguments": {}}));
        assert_eq!(refused["error"]["code"], -32602, "{tool}: {refused}");
        assert!(
            refused["error"]["message"].as_str().unwrap().contains("there are context_status, loom_list")
        );
    }
    for method in ["resources/list", "prompts/list", "completion/complete", "logging/setLevel", "no/such"] {
        let refused = server.ask(method, &json!({"level": "info", "ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"}}));
        assert_eq!(refused["error"]["code"], -32601, "{method}: {refused}");
    }
    assert_eq!(server.end(), (Some(0), String::new(), String::new()));
}

#[test]
fn a_program_reads_a_conversation_as_its_agent_does_and_changes_nothing() {
    let world = world("loom_aware = true\n");
    let (tree, [question, answer, other, other_answer]) = branched(&world);
    world.ok(&["tree", "new", "--title", "Rain", "--text", "It rained."]);
    let before = (world.ok(&["tree", "log", &tree]), world.ok(&["sessions", "list", "--all"]));
    let mut server = Server::greeted(&world, &[]);
    let seen = server.read("loom_view", &json!({}));
    assert!(
        seen.contains(&format!("[{other_answer} assistant, by model assistant]\nThe weft is blue.\n")),
        "{seen}"
    );
    let seen = server.read("loom_view", &json!({"node": answer}));
    assert!(seen.contains("The thread is red.") && !seen.contains("blue"), "{seen}");
    let drawn = server.read("loom_tree", &json!({"node": other}));
    assert!(drawn.contains(&format!("\n  - {question} user")), "{drawn}");
    assert!(server.read("recall", &json!({"node": other})).contains("Which weft?"));
    assert!(server.read("context_status", &json!({})).contains("cost of the session"));
    assert!(server.read("loom_list", &json!({"what": "documents"})).contains("Rain"));
    assert!(server.read("loom_view", &json!({"tree": "Rain"})).contains("It rained."));
    // All problems are told in one message.
    let wrong = server.refused("loom_list", &json!({"nod": 1, "from": "x"}));
    for told in ["missing required what", "unknown nod", "from should be integer, not string"] {
        assert!(wrong.contains(told), "{told}: {wrong}");
    }
    assert!(server.refused("loom_view", &json!({"node": "nowhere"})).contains("no node nowhere"));

    assert_eq!(server.end(), (Some(0), String::new(), String::new()));
    assert_eq!((world.ok(&["tree", "log", &tree]), world.ok(&["sessions", "list", "--all"])), before);

    // What its owner does meanwhile is seen, and what they take away is not.
    let mut server = Server::greeted(&world, &[]);
    world.ok(&["tree", "prune", &tree, &answer]);
    let closed = server.read("loom_view", &json!({"node": answer}));
    assert!(closed.contains("its owner pruned it") && !closed.contains("red"), "{closed}");
    world.ok(&["tree", "undo", &tree]);
    assert!(server.read("loom_view", &json!({"node": answer})).contains("The thread is red."));
    server.end();
}

#[test]
fn a_program_reads_no_session_but_the_one_that_is_named_of_its_workspace() {
    let world = world("loom_aware = true\n");
    said(&world, "Which thread?", "The thread is red.");
    let theirs = tree(&world);
    let other = text(&world.path("other"));
    fs::create_dir(&other).unwrap();
    world.ok(&["tree", "new", "--title", "Rain", "--text", "It rained."]);
    let mut server = Server::start(&mut world.command(&["--workspace", &other, "mcp", "serve"]));
    server.greet();
    let none = server.refused("loom_view", &json!({}));
    assert!(none.contains("this workspace has no session main yet"), "{none}");
    let closed = server.refused("loom_view", &json!({"tree": theirs}));
    assert!(closed.contains("the tree of another conversation") && !closed.contains("red"), "{closed}");
    assert!(server.read("loom_view", &json!({"tree": "Rain"})).contains("It rained."));
    // A session that begins later is read from then on.
    world.ok(&["--workspace", &other, "--model", "script:echo", "chat", "-m", "Warp?"]);
    assert!(server.read("loom_view", &json!({})).contains("Warp?"));
    server.end();

    let project = text(&world.path("project"));
    let missing = world.run(&["--workspace", &project, "mcp", "serve", "--session", "mian"]);
    assert_eq!((missing.code, missing.out.as_str()), (Some(3), ""), "{missing:?}");
    assert!(missing.err.contains("did you mean main?"), "{missing:?}");
    let json = world.run(&["--workspace", &project, "mcp", "serve", "--json"]);
    assert_eq!((json.code, json.out.as_str()), (Some(2), ""), "standard output is the protocol's: {json:?}");
}

#[test]
fn s11_a_secret_that_is_known_by_then_is_masked_for_a_program() {
    let world = world("");
    let secret = "weft-canary-0123456789abcdef";
    world.ok(&["tree", "new", "--title", "Note", "--text", &format!("The key is {secret}.")]);
    let read = |world: &World| {
        let mut server = Server::greeted(world, &[]);
        let seen = server.read("loom_view", &json!({"tree": "Note"}));
        server.end();
        seen
    };
    assert!(read(&world).contains(secret), "the control: nobody knows it yet");
    world.ok(&["config", "set", "mcp.other.secrets.TOKEN", secret]);
    let seen = read(&world);
    assert!(seen.contains("The key is ") && !seen.contains(secret), "{seen}");
}

#[test]
fn s11_a_secret_that_is_set_meanwhile_is_masked_wherever_its_text_is_cut() {
    let world = world("");
    let (secret, part) = ("weft-canary-0123456789abcdef", "canary-012");
    let (_, answer) = said(&world, "Which key?", &format!("The key is {secret} as of now and later on."));
    let beginning = format!("weft {}", &secret[..20]);
    world.ok(&["tree", "new", "--title", &format!("A note about {secret}"), "--text", &beginning]);
    let mut server = Server::greeted(&world, &[]);
    let calls = [
        ("recall", json!({"node": answer, "from": 14})),
        ("loom_view", json!({"node": answer, "from": 14})),
        ("loom_view", json!({})),
        ("loom_tree", json!({})),
        ("loom_list", json!({"what": "siblings", "node": answer})),
        ("loom_list", json!({"what": "documents"})),
    ];
    for (tool, arguments) in &calls {
        let seen = server.read(tool, arguments);
        assert!(seen.contains(part), "the control: nobody knows it yet: {tool} {arguments} {seen}");
    }
    world.ok(&["config", "set", "mcp.other.secrets.TOKEN", secret]);
    for (tool, arguments) in &calls {
        let seen = server.read(tool, arguments);
        assert!(!seen.contains(part) && seen.contains("secrets"), "{tool} {arguments} {seen}");
    }
    // What was known once stays masked, when the program began or since.
    let mut later = Server::greeted(&world, &[]);
    world.ok(&["config", "unset", "mcp.other.secrets.TOKEN"]);
    for known in [&mut server, &mut later] {
        for (tool, arguments) in &calls {
            let seen = known.read(tool, arguments);
            assert!(!seen.contains(part), "{tool} {arguments} {seen}");
        }
    }
}

#[test]
fn s11_where_known_secrets_cannot_be_read_nothing_is_told() {
    let world = world("");
    let secret = "weft-canary-0123456789abcdef";
    said(&world, "Which key?", &format!("The key is {secret}."));
    world.ok(&["config", "set", "mcp.other.secrets.TOKEN", secret]);
    let mut server = Server::greeted(&world, &[]);
    assert!(server.read("loom_view", &json!({})).contains("The key is "), "the control");
    let keys = world.home().join("keys.toml");
    let whole = fs::read_to_string(&keys).unwrap();
    fs::write(&keys, format!("{whole}\n[providers.x\n")).unwrap();
    let refused = server.refused("loom_view", &json!({}));
    assert!(refused.contains("known secrets cannot be masked: keys.toml"), "{refused}");
    assert!(!refused.contains(secret), "{refused}");
    let project = text(&world.path("project"));
    let later = Server::start(&mut world.command(&["--workspace", &project, "mcp", "serve"]));
    let (code, printed, errors) = later.end();
    assert!(code == Some(4) && printed.is_empty(), "{code:?} {printed}");
    assert!(errors.contains("known secrets cannot be masked: keys.toml"), "{errors}");
}

#[test]
fn s11_where_a_login_cannot_be_read_nothing_is_told() {
    let world = world("");
    let secret = "weft-canary-0123456789abcdef";
    said(&world, "Which key?", &format!("The key is {secret}."));
    let login = json!({
        "resource": "https://example.org/mcp", "token_endpoint": "https://example.org/token", "id": "x",
        "client_id": "x", "access_token": secret,
    });
    let folder = world.home().join("oauth");
    fs::create_dir_all(&folder).unwrap();
    // Of a server that the configuration does not name.
    let file = folder.join("issues.json");
    let mut server = Server::greeted(&world, &[]);
    assert!(server.read("loom_view", &json!({})).contains(secret), "the control: nobody knows it yet");
    fs::write(&file, login.to_string()).unwrap();
    let seen = server.read("loom_view", &json!({}));
    assert!(seen.contains("The key is ") && !seen.contains(secret), "{seen}");
    let torn = &login.to_string()[..40];
    fs::write(&file, torn).unwrap();
    let refused = server.refused("loom_view", &json!({}));
    assert!(refused.contains("issues.json holds no login") && !refused.contains(secret), "{refused}");
    let project = text(&world.path("project"));
    let later = Server::start(&mut world.command(&["--workspace", &project, "mcp", "serve"]));
    let (code, printed, errors) = later.end();
    assert!(code == Some(4) && printed.is_empty(), "{code:?} {printed}");
    assert!(errors.contains("issues.json holds no login"), "{errors}");
}

#[test]
fn nothing_tells_of_a_node_of_another_session() {
    let world = world("");
    said(&world, "Which thread?", "The thread is red.");
    let project = text(&world.path("project"));
    script(&world, &[json!({"text": "The weft is blue."})]);
    let (_, other) =
        world.json(&["--workspace", &project, "chat", "--session", "other", "-m", "Which weft?"]);
    let (id, tree) = (other["node"].as_str().unwrap(), other["tree"].as_str().unwrap());
    let theirs = shown(&world, &[tree]).into_iter().find(|node| node["id"] == id).unwrap();
    let unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let mut server = Server::greeted(&world, &[]);
    let (named, none) = (format!("{tree}:{}", theirs["short_id"].as_str().unwrap()), format!("{unknown}:a1"));
    for (there, not_there) in [(id, unknown), (&named, &none)] {
        for (tool, more) in [
            ("recall", json!({})),
            ("loom_view", json!({})),
            ("loom_view", json!({"from": 0})),
            ("loom_tree", json!({})),
            ("loom_list", json!({"what": "siblings"})),
            ("loom_list", json!({"what": "bookmarks"})),
        ] {
            let mut refused = |node: &str| {
                let mut arguments = more.clone();
                arguments["node"] = json!(node);
                server.refused(tool, &arguments)
            };
            assert_eq!(refused(there).replace(there, not_there), refused(not_there), "{tool} {more}");
        }
    }
}

#[test]
fn a_rule_that_denies_a_tool_denies_it_to_a_program() {
    let world = world("");
    world.ok(&["tree", "new", "--title", "Rain", "--text", "It rained."]);
    let read = |world: &World| {
        let mut server = Server::greeted(world, &[]);
        let said = server.call("loom_view", &json!({"tree": "Rain"}));
        server.end();
        said
    };
    assert!(!read(&world).0, "the control");
    for decision in ["deny", "ask"] {
        permit(&world, &format!("[[policy.rules]]\ndecision = \"{decision}\"\ntool = [\"loom_view\"]\n"));
        let (failed, why) = read(&world);
        assert!(failed && why.starts_with("loom_view is not run: "), "{why}");
    }
}

#[test]
fn hostile_lines_are_answered_and_end_nothing() {
    let world = world("");
    let mut server = Server::greeted(&world, &[]);
    let refusals: [(Vec<u8>, i64, Value); 9] = [
        (b"{".to_vec(), -32700, Value::Null),
        (b"\xff\xfe\x00".to_vec(), -32700, Value::Null),
        ([b"[".repeat(100_000), b"]".repeat(100_000)].concat(), -32700, Value::Null),
        (b"[]".to_vec(), -32600, Value::Null),
        (b"7".to_vec(), -32600, Value::Null),
        (br#"{"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}"#.to_vec(), -32600, Value::Null),
        (br#"{"jsonrpc": "1.0", "id": "a", "method": "ping"}"#.to_vec(), -32600, json!("a")),
        (br#"{"jsonrpc": "2.0", "id": "b"}"#.to_vec(), -32600, json!("b")),
        (vec![b'x'; 3 << 20], -32600, Value::Null),
    ];
    for (line, code, id) in refusals {
        server.send(&line);
        let answer = server.next();
        let begins = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{begins}: {answer}");
        assert!(answer.as_object().unwrap().contains_key("id"), "{answer}");
    }
    // What asks for nothing is not answered: the next answer is that of the ping.
    for line in [
        &b""[..],
        b"  \r",
        br#"{"jsonrpc": "2.0", "method": "no/such"}"#,
        br#"{"jsonrpc": "2.0", "id": 99, "result": {}}"#,
    ] {
        server.send(line);
    }
    assert_eq!(server.ask("ping", &json!({}))["result"], json!({}));
    for params in [json!({}), json!({"name": 7}), json!({"name": "loom_view", "arguments": [1]}), json!("x")]
    {
        let answer = server.ask("tools/call", &params);
        assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
    }
    let unknown = &server.ask("no/such", &json!({}))["error"];
    assert_eq!(unknown["code"], -32601);
    let why = unknown["message"].as_str().unwrap();
    assert!(why.starts_with("there is no method \"no/such\": there are initialize, "), "{why}");
    // Whoever was greeted is not greeted anew.
    for version in ["2025-11-25", "9999", "2026-07-28"] {
        let again = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        assert_eq!(server.ask("initialize", &again)["error"]["code"], -32600, "{version}");
        assert_eq!(server.ask("ping", &json!({}))["result"], json!({}), "{version}");
        assert_eq!(server.ask("tools/list", &json!({}))["result"].get("resultType"), None, "{version}");
    }
    // An end in the middle of a message.
    server.input.as_mut().unwrap().write_all(br#"{"jsonrpc": "2.0", "id": 100, "meth"#).unwrap();
    assert_eq!(server.end(), (Some(0), String::new(), String::new()));

    // Before it is greeted.
    let mut server = Server::start(&mut world.command(&["mcp", "serve"]));
    server.send(br#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#);
    server.send(br#"{"jsonrpc": "2.0", "id": 99, "result": {}}"#);
    server.send(b"nothing");
    assert_eq!(server.next()["error"]["code"], -32700);
    assert_eq!(server.ask("ping", &json!({}))["result"], json!({}));
    for method in ["tools/list", "tools/call", "no/such"] {
        let refused = &server.ask(method, &json!({}))["error"];
        assert_eq!(
            (&refused["code"], &refused["message"]),
            (&json!(-32600), &json!("send initialize first")),
            "{method}"
        );
    }
    assert_eq!(server.greet()["serverInfo"]["name"], "drawloom");
    // That there is nothing is no failure.
    assert_eq!(server.read("loom_list", &json!({"what": "documents"})), "there are none\n");
    assert_eq!(server.end(), (Some(0), String::new(), String::new()));
}

#[test]
fn a_server_ends_with_its_input_and_by_signals_and_has_printed_nothing_else() {
    let world = world("");
    let nothing = world.run(&["mcp", "serve"]);
    assert_eq!((nothing.code, nothing.out.as_str()), (Some(0), ""), "{nothing:?}");
    let unreadable =
        Server::reading(&mut world.command(&["mcp", "serve"]), fs::File::open("/").unwrap().into());
    let (code, printed, errors) = unreadable.ended();
    assert_eq!((code, printed.as_str()), (Some(2), ""), "{errors}");
    assert!(errors.contains("could not be read"), "{errors}");
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let server = Server::greeted(&world, &[]);
        kill_process(Pid::from_child(&server.process), signal).unwrap();
        let (ended, printed, _) = server.ended();
        assert_eq!((ended, printed.as_str()), (Some(code), ""));
    }
}

#[test]
fn our_own_client_reads_by_it() {
    let world = world("");
    let (home, project) = (text(&world.home()), text(&world.path("project")));
    world.ok(&["tree", "new", "--title", "Rain", "--text", "It rained."]);
    permit(
        &world,
        &format!(
            "[mcp.own]\ncommand = {:?}\nargs = [\"mcp\", \"serve\", \"--workspace\", {project:?}]\nread = \
             [\"loom_view\"]\nsandbox = \"off\"\n[mcp.own.env]\nDRAWLOOM_HOME = {home:?}\n[[policy.rules]]\n\
             decision = \"allow\"\ntool = [\"own:loom_view\"]\n",
            text(&program())
        ),
    );
    let (code, accepted) = world.json(&["--workspace", &project, "mcp", "accept", "own", "--yes"]);
    assert_eq!((code, &accepted["refused"]), (Some(0), &json!([])), "{accepted}");
    assert_eq!(accepted["server"], format!("drawloom {}", env!("CARGO_PKG_VERSION")));
    let call =
        json!({"name": "call_tool", "arguments": {"name": "own:loom_view", "arguments": {"tree": "Rain"}}});
    let lines = [json!({"tool_calls": [call]}), json!({"text": "Done."})];
    world.write("lines.jsonl", &lines.map(|line| format!("{line}\n")).concat());
    let said = world.json(&["--workspace", &project, "chat", "-m", "Look."]);
    assert_eq!(said.0, Some(0), "{said:?}");
    let nodes = shown(&world, &[&tree(&world)]);
    let result = nodes.iter().find(|node| node["author"] == "own:loom_view").unwrap();
    assert!(result["text"].as_str().unwrap().contains("It rained."), "{result}");
    assert_eq!(result["trust"], "outside");
}

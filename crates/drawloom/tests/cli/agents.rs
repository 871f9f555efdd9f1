//! Profiles of agents (spec: agent §0): who answers in a session, as what, and by which rules.

use std::fs;

use serde_json::{Value, json};

use crate::server::{self, Server};
use crate::world::{World, text};

const POET: &str = "[agents.poet]\nsystem = \"You are a poet.\"\ntools = [\"write\"]\n\
                    [[agents.poet.policy]]\ndecision = \"deny\"\ntool = [\"write path=docs/**\"]\n\
                    reason = \"docs are published\"\n";

/// A world with the script model and these agents.
fn world(config: &str) -> World {
    let world = World::new();
    let file = text(&world.home().join("lines.jsonl"));
    world.write("config.toml", &format!("[model]\ndefault = \"script:{file}\"\n{config}"));
    fs::create_dir_all(world.path("project/docs")).unwrap();
    world
}

/// The model answers with these lines.
fn script(world: &World, lines: &[Value]) {
    world.write("lines.jsonl", &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
}

fn words<'a>(project: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["--workspace", project][..], more].concat()
}

/// A call in the project: its result.
fn said(world: &World, more: &[&str]) -> Value {
    let project = text(&world.path("project"));
    let (code, found) = world.json(&words(&project, more));
    assert_eq!(code, Some(0), "{found}");
    found
}

/// A call in the project that is refused: what is said.
fn refused(world: &World, more: &[&str]) -> (Option<i32>, String) {
    let project = text(&world.path("project"));
    let run = world.run(&words(&project, more));
    (run.code, run.err)
}

/// The system prompt of the request behind a node: source, reason and text.
fn system(world: &World, node: &str) -> (String, String, String) {
    let shown = said(world, &["context", "show", node, "--text"]);
    let segments = shown["segments"].as_array().unwrap();
    let identity = segments.iter().find(|segment| segment["kind"] == "identity").unwrap();
    let word = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{identity}")).to_owned();
    (identity.to_string(), word(&identity["reason"]), word(&identity["text"]))
}

#[test]
fn an_agent_answers_with_its_prompt_and_tools_by_its_rules_until_another_one_is_chosen() {
    let world = world(POET);
    let write =
        |path: &str| json!({"tool_calls": [{"name": "write", "arguments": {"path": path, "content": "x"}}]});
    script(
        &world,
        &[write("docs/a.md"), write("poem.md"), json!({"text": "Done.", "expect": "You are a poet."})],
    );
    let done = said(&world, &["chat", "--agent", "poet", "-m", "Write."]);
    let denied = done["denied"].as_array().unwrap();
    assert_eq!(denied.len(), 1, "{done}");
    let why = "rule 1 of agent poet (deny write path='docs/**'): docs are published";
    assert!(denied[0]["why"].as_str().unwrap().contains(why), "{done}");
    assert!(world.path("project/poem.md").exists() && !world.path("project/docs/a.md").exists());
    let (source, reason, text) = system(&world, done["node"].as_str().unwrap());
    assert!(source.contains("agents.poet.system"), "{source}");
    assert_eq!((&*reason, &*text), ("the system prompt of this agent", "You are a poet."));

    script(&world, &[json!({"text": "Still.", "expect": "You are a poet."})]);
    said(&world, &["chat", "-m", "And you?"]);
    script(&world, &[json!({"text": "Plainly.", "expect": "Speak plainly."})]);
    said(&world, &["chat", "--system", "Speak plainly.", "-m", "And now?"]);
    script(&world, &[json!({"text": "No.", "expect": "You are a helpful assistant"})]);
    said(&world, &["chat", "--agent", "assistant", "--system", "", "-m", "And now?"]);
    script(&world, &[json!({"text": "Rhymes.", "expect": "You are a poet."})]);
    said(&world, &["ask", "--agent", "poet", "And you?"]);
}

#[test]
fn an_agent_that_is_not_there_answers_nothing() {
    let world = world(POET);
    script(&world, &[json!({"text": "Yes.", "loop": true})]);
    let (code, told) = refused(&world, &["chat", "--agent", "nobody", "-m", "Hi."]);
    assert_eq!(code, Some(3));
    assert!(told.contains("nobody") && told.contains("there are assistant, poet"), "{told}");
    said(&world, &["chat", "--agent", "poet", "-m", "Hi."]);
    let config = world.read("config.toml");
    world.write("config.toml", &config[..config.find("[agents.poet]").unwrap()]);
    // Its rules are gone with it: nobody else goes on unasked.
    let (code, told) = refused(&world, &["chat", "-m", "And you?"]);
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("poet"), "{told}");
    said(&world, &["chat", "--agent", "assistant", "-m", "And you?"]);
}

#[test]
fn rules_of_an_agent_are_written_shown_and_tried_out() {
    let world = world("[agents.poet]\ntools = [\"write\"]\n");
    let call = r#"{"path":"docs/a.md","content":"x"}"#;
    let tested = |more: &[&str]| said(&world, &[&["policy", "test", "write", call], more].concat());
    world.ok(&["policy", "ask", "write path=docs/**"]);
    let told = world.ok(&["policy", "deny", "write path=docs/**", "--agent", "poet", "--reason", "no"]);
    assert!(told.starts_with("deny write path='docs/**': written to"), "{told}");
    world.ok(&["policy", "allow", "write path=src/**", "--agent", "poet"]);
    assert!(world.read("config.toml").contains("[[agents.poet.policy]]"), "{}", world.read("config.toml"));
    insta::assert_snapshot!(world.ok(&["policy", "list"]), @r"
     1  ask write path='docs/**'
    agent poet:
     1  deny write path='docs/**'
        no
     2  allow write path='src/**'
    ");
    let shown = said(&world, &["policy", "list", "--agent", "poet"]);
    assert_eq!(shown["rules"][1]["agent"], "poet");
    assert_eq!(
        said(&world, &["policy", "list", "--agent", "assistant"])["rules"].as_array().unwrap().len(),
        1
    );
    assert_eq!(
        tested(&["--agent", "poet"]),
        json!({"decision": "deny", "rule": 1, "agent": "poet", "why": "rule 1 of agent poet (deny write path='docs/**'): no"})
    );
    assert_eq!(tested(&[])["decision"], "ask");
    // What a general rule asks about stays asked about.
    world.ok(&["policy", "remove", "write path='docs/**'", "--agent", "poet"]);
    world.ok(&["policy", "allow", "write path=docs/**", "--agent", "poet"]);
    assert_eq!(tested(&["--agent", "poet"])["decision"], "ask");
    for pattern in ["write path='docs/**'", "write path='src/**'"] {
        world.ok(&["policy", "remove", pattern, "--agent", "poet"]);
    }
    assert!(!world.read("config.toml").contains("agents.poet.policy"), "{}", world.read("config.toml"));
    for command in [&["policy", "list"][..], &["policy", "deny", "write"], &["policy", "test", "write", call]]
    {
        let (code, told) = refused(&world, &[command, &["--agent", "nobody"]].concat());
        assert_eq!(code, Some(3), "{command:?}: {told}");
    }
}

#[test]
fn rules_of_an_agent_that_do_not_fit_stop_what_writes_and_asks() {
    for (rules, said) in [
        ("[[agents.poet.policy]]\ndecision = \"deny\"\ntool = []\n", "is about nothing"),
        ("[[agents.poet.policy]]\ndecision = \"never\"\ntool = [\"write\"]\n", "never"),
    ] {
        let world = world(rules);
        script(&world, &[json!({"text": "Yes."})]);
        for command in [&["chat", "-m", "Hi."][..], &["policy", "list"]] {
            let (code, told) = refused(&world, command);
            assert_eq!(code, Some(2), "{told}");
            assert!(told.contains("agents.poet.policy") && told.contains(said), "{told}");
        }
    }
    // One about what is nearly a tool, too; `policy` takes it out.
    let world = world("[[agents.poet.policy]]\ndecision = \"deny\"\ntool = [\"wirte\"]\n");
    script(&world, &[json!({"text": "Yes."})]);
    let told = "agents.poet.policy, rule 1: there is no such tool as wirte (did you mean write?); \
                `drawloom policy remove wirte --agent poet` takes it out";
    for (command, code) in [(&["chat", "-m", "Hi."][..], 2), (&["policy", "list"], 0)] {
        let run = world.run(command);
        assert!(run.code == Some(code) && run.err.contains(told), "{run:?}");
    }
    world.ok(&["policy", "remove", "wirte", "--agent", "poet"]);
    assert!(!world.read("config.toml").contains("wirte"));
    world.ok(&["chat", "-m", "Hi."]);
}

#[test]
fn a_system_prompt_may_stand_in_a_file_that_no_tool_reaches() {
    let world = world("[agents.poet]\nsystem_file = \"poet.md\"\n");
    script(&world, &[json!({"text": "Yes.", "expect": "You rhyme.", "loop": true})]);
    let chat = ["chat", "--agent", "poet", "-m", "Hi."];
    let (code, told) = refused(&world, &chat);
    assert_eq!(code, Some(2));
    assert!(told.contains("agents.poet.system_file: poet.md"), "{told}");
    assert!(world.run(&["config", "check"]).out.contains("agents.poet.system_file"));
    fs::create_dir(world.home().join("agents")).unwrap();
    world.write("agents/poet.md", "You rhyme.\n");
    let done = said(&world, &chat);
    let (source, _, text) = system(&world, done["node"].as_str().unwrap());
    assert!(source.contains("agents.poet.system_file") && text.starts_with("You rhyme."), "{source} {text}");
    world.ok(&["config", "check"]);
    // A file elsewhere may be one that tools write.
    world.write("outside.md", "You rhyme.\n");
    std::os::unix::fs::symlink(world.home().join("outside.md"), world.home().join("agents/link.md")).unwrap();
    let absolute = crate::world::text(&world.home().join("outside.md"));
    for elsewhere in ["../outside.md", "link.md", &*absolute] {
        world.ok(&["config", "set", "agents.poet.system_file", elsewhere]);
        let (code, told) = refused(&world, &chat);
        assert_eq!(code, Some(2), "{elsewhere}: {told}");
    }
    world.ok(&["config", "set", "agents.poet.system_file", "poet.md"]);
    world.ok(&["config", "set", "agents.poet.system", "You sing."]);
    let (code, told) = refused(&world, &chat);
    assert_eq!(code, Some(2));
    assert!(told.contains("system and system_file are both set"), "{told}");
}

#[test]
fn a_document_gets_a_system_prompt_only_where_the_profile_says_so() {
    let world = world(POET);
    script(&world, &[json!({"text": " more", "loop": true})]);
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It was night."]);
    let kinds = || -> Vec<String> {
        let made = world.json(&["tree", "generate", "Tale", "--agent", "poet"]).1;
        let node = made["nodes"][0]["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
        let shown = world.json(&["context", "show", &node]).1;
        let replayed = world.json(&["context", "replay", &node, "--model", "script:echo"]);
        assert_eq!(replayed.0, Some(0), "{}", replayed.1);
        let again = world.json(&["context", "show", replayed.1["node"].as_str().unwrap()]).1;
        let kinds = |shown: &Value| -> Vec<String> {
            let segments = shown["segments"].as_array().unwrap().iter();
            segments
                .map(|segment| segment["kind"].as_str().unwrap().to_owned())
                .filter(|kind| kind == "identity")
                .collect()
        };
        assert_eq!(kinds(&shown), kinds(&again), "what is replayed has what it had");
        kinds(&shown)
    };
    assert!(kinds().is_empty());
    world.ok(&["config", "set", "agents.poet.buffer_system_context", "true"]);
    assert_eq!(kinds(), ["identity"]);
}

#[test]
fn parameters_of_a_provider_are_sent_to_the_model_of_the_profile_alone() {
    let near =
        Server::start(|path, _| path.ends_with("/chat/completions").then(|| server::chat("", "Said.", 10)));
    let world = World::new();
    world.write(
        "config.toml",
        &format!(
            "[model]\ndefault = \"box/m\"\n[providers.box]\nbase_url = \"{}\"\nkind = \"ollama\"\nwindow = 32000\n\
             [agents.poet]\ntemperature = 0.5\nprovider_parameters = '{{\"top_k\": 40, \"options\": {{\"mirostat\": 2}}}}'\n",
            near.base()
        ),
    );
    let asked = |words: &[&str]| {
        world.ok(words);
        near.bodies().pop().unwrap()
    };
    let body = asked(&["chat", "--agent", "poet", "-m", "Hi."]);
    assert_eq!((&body["top_k"], &body["options"]["mirostat"]), (&json!(40), &json!(2)), "{body}");
    assert_eq!(body["temperature"], 0.5);
    let body = asked(&["chat", "--model", "box/other", "-m", "Hi."]);
    assert_eq!((&body["top_k"], &body["temperature"]), (&Value::Null, &json!(0.5)), "{body}");
    world.ok(&["tree", "new", "--mode", "dialogue", "--title", "Talk", "--text", "Hello."]);
    assert_eq!(asked(&["tree", "generate", "Talk", "--agent", "poet"])["top_k"], 40);
    for (wrong, why) in
        [("[1]", "no JSON object"), ("{\"messages\": []}", "messages is set by the request itself")]
    {
        world.ok(&["config", "set", "agents.poet.provider_parameters", wrong]);
        let run = world.run(&["chat", "-m", "Hi."]);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.err.contains("agents.poet.provider_parameters") && run.err.contains(why), "{run:?}");
        assert!(world.run(&["config", "check"]).out.contains("agents.poet.provider_parameters"));
    }
    // What the request says itself stays.
    world.ok(&["config", "set", "agents.poet.provider_parameters", "{\"temperature\": 2}"]);
    let run = world.run(&["chat", "-m", "Hi."]);
    assert!(run.code != Some(0) && run.err.contains("the request says temperature itself"), "{run:?}");
}

/// The digest of the profile that an answer was asked by.
fn digest(world: &World, flags: &[&str]) -> String {
    script(world, &[json!({"text": "Yes.", "loop": true})]);
    let done = said(world, &[&["chat", "--new", "--agent", "poet", "-m", "Hi."], flags].concat());
    let shown = said(world, &["context", "show", done["node"].as_str().unwrap()]);
    shown["profile"].as_str().unwrap_or_else(|| panic!("{shown}")).to_owned()
}

#[test]
fn the_digest_of_a_profile_changes_with_what_has_an_effect_and_with_nothing_else() {
    let world =
        world("[presets.cold]\ntemperature = 0.1\n[presets.warm]\ntemperature = 0.9\n[agents.poet]\nn = 1\n");
    let mut seen = vec![digest(&world, &[])];
    for (key, value) in [
        ("system", "You are a poet."),
        ("buffer_system_context", "true"),
        ("preset", "cold"),
        ("top_p", "0.5"),
        ("min_p", "0.1"),
        ("max_tokens", "500"),
        ("stop", "[\"END\"]"),
        ("seed", "7"),
        ("think", "low"),
        ("n", "2"),
        ("provider_parameters", "{\"top_k\": 40, \"a\": 1}"),
        ("tools", "[\"write\"]"),
        ("policy", "[{decision = \"deny\", tool = [\"write path=docs/**\"]}]"),
        ("loom_aware", "true"),
        ("model", "script:echo"),
    ] {
        world.ok(&["config", "set", &format!("agents.poet.{key}"), value]);
        let now = digest(&world, &[]);
        assert!(!seen.contains(&now), "{key} has an effect");
        seen.push(now);
    }
    let last = seen.pop().unwrap();
    assert_eq!(digest(&world, &["--temperature", "0.3"]), last, "a flag is no key of the profile");
    fs::create_dir(world.home().join("agents")).unwrap();
    world.write("agents/poet.md", "You are a poet.");
    for (key, value) in [
        ("agents.poet.temperature", "0.1"),
        ("agents.poet.provider_parameters", "{\"a\":1,\"top_k\":40}"),
        ("agents.poet.tools", "[\"write\", \"write\"]"),
        ("presets.warm.temperature", "0.8"),
        ("agents.other.system", "Another one."),
        ("policy.rules", "[{decision = \"ask\", tool = [\"write\"]}]"),
        ("model.default", "script:other"),
    ] {
        world.ok(&["config", "set", key, value]);
        assert_eq!(digest(&world, &[]), last, "{key} has none");
    }
    world.ok(&["config", "unset", "agents.poet.preset"]);
    world.ok(&["config", "unset", "agents.poet.system"]);
    world.ok(&["config", "set", "agents.poet.system_file", "poet.md"]);
    assert_eq!(digest(&world, &[]), last, "it is the same, found elsewhere");
    world.write("agents/poet.md", "You are another poet.");
    assert_ne!(digest(&world, &[]), last, "the text of the file counts");
}

#[test]
fn what_an_agents_own_rules_close_is_neither_found_nor_copied_nor_deleted_on_the_way() {
    let tools = "tools = [\"copy\", \"delete\", \"grep\", \"move\"]\n";
    let keeper = "[[agents.keeper.policy]]\ndecision = \"deny\"\nreason = \"private\"\n\
                  tool = [\"effect:read path=docs/private/**\", \"delete path=docs/private/**\"]\n";
    let world = world(&format!("[agents.assistant]\n{tools}[agents.keeper]\n{tools}{keeper}"));
    fs::create_dir(world.path("project/docs/private")).unwrap();
    fs::write(world.path("project/docs/private/a.md"), "a closed word\n").unwrap();
    fs::write(world.path("project/docs/b.md"), "an open word\n").unwrap();
    let call = |name: &str, arguments: Value| json!({"tool_calls": [{"name": name, "arguments": arguments}]});
    let calls = [
        call("grep", json!({"pattern": "word"})),
        call("copy", json!({"from": "docs", "to": "copied"})),
        call("move", json!({"from": "docs", "to": "moved"})),
        call("delete", json!({"path": "docs"})),
    ];
    let told = |agent: &str| {
        let done = json!({"text": "Done.", "expect": "an open word"});
        script(&world, &[&calls[..], &[done]].concat());
        let done = said(&world, &["chat", "--session", agent, "--agent", agent, "-m", "Look."]);
        let sent = said(&world, &["context", "show", done["node"].as_str().unwrap(), "--text"]);
        let denied = done["denied"].to_string();
        (denied.matches("of agent keeper").count(), sent.to_string().contains("a closed word"))
    };
    assert_eq!(told("keeper"), (3, false));
    for name in ["copied", "moved"] {
        assert!(!world.path("project").join(name).exists(), "{name}");
    }
    assert!(world.path("project/docs/private/a.md").exists());
    assert_eq!(told("assistant"), (0, true), "the control");
    assert!(world.path("project/copied/private/a.md").exists());
}

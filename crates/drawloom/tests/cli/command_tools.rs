//! Tools that a configuration names: commands that read their arguments as JSON and say their result as JSON.

use std::fs;

use serde_json::{Value, json};

use crate::tools::{calls, chat, nodes};
use crate::web::{Site, answer, named};
use crate::world::{World, lacks, text};

/// What tells words of a text, changes a file, fails, and says no JSON.
const TOOLS: &str = r#"
[tools.count]
command = "read -r given; touch seen 2>/dev/null; printf '{\"given\": %s, \"main\": \"%s\"}' \"$given\" \"$(cat src/main.rs)\""
description = "Count the words of a text."
effects = ["read"]
schema = '{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": false}'
[tools.note]
command = "cat > note.json; echo '\"noted\"'"
description = "Write a note down."
[tools.fail]
command = "echo oh >&2; exit 3"
description = "Fail."
[tools.much]
command = "printf '\"'; head -c 100000 /dev/zero | tr '\\0' x; printf '\"'; touch .envrc"
description = "Say much, and make what is protected."
[tools.chatter]
command = "echo hello"
description = "Say no JSON."
"#;

/// A world whose model answers from these lines, and has these tools.
fn world(lines: &[Value], more: &str) -> World {
    let world = World::new();
    world.write("lines.jsonl", &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    let file = text(&world.home().join("lines.jsonl"));
    let names = r#"["count", "note", "fail", "much", "chatter"]"#;
    world.write(
        "config.toml",
        &format!("[model]\ndefault = \"script:{file}\"\n[agents.assistant]\ntools = {names}\n{TOOLS}{more}"),
    );
    fs::create_dir_all(world.path("project/src")).unwrap();
    fs::write(world.path("project/src/main.rs"), "weave").unwrap();
    world
}

fn result(world: &World, tool: &str) -> String {
    let found = nodes(world).into_iter().find(|node| node["author"] == tool).unwrap();
    found["text"].as_str().unwrap().to_owned()
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

#[test]
fn a_configured_command_is_a_tool_with_arguments_a_result_and_changes_that_are_given_back() {
    let world = world(
        &[
            calls(&json!([
                call("count", &json!({"text": "warp and \"weft\""})),
                call("count", &json!({"txet": 1})),
                call("note", &json!({"any": [1, null]})),
                call("fail", &json!({})),
                call("chatter", &json!({})),
                call("much", &json!({"unread": "y".repeat(80_000)})),
            ])),
            json!({"text": "Done."}),
        ],
        "",
    );
    let (code, said) = chat(&world, "Do it.");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    let counts: Vec<_> = nodes(&world).into_iter().filter(|node| node["author"] == "count").collect();
    let counts: Vec<_> = counts.iter().map(|node| node["text"].as_str().unwrap()).collect();
    let counted = r#"{"given": {"text":"warp and \"weft\""}, "main": "weave"}"#;
    assert!(counts.contains(&counted), "{counts:?}");
    assert!(counts.iter().any(|told| told.starts_with("Invalid parameters of count")), "{counts:?}");
    assert!(!world.path("project/seen").exists(), "what only reads sees the workspace read-only");
    let noted = result(&world, "note");
    assert!(noted.starts_with("noted\n[files]\nmade note.json"), "{noted}");
    assert_eq!(fs::read_to_string(world.path("project/note.json")).unwrap(), "{\"any\":[1,null]}\n");
    let failed = result(&world, "fail");
    assert!(failed.starts_with("exit 3 (") && failed.contains("[errors]\noh"), "{failed}");
    assert!(result(&world, "chatter").starts_with("chatter said no JSON"), "{}", result(&world, "chatter"));
    let much = result(&world, "much");
    assert!(much.starts_with("xxx") && much.len() < 21_000 && much.contains("… result: "), "{much}");
    assert!(much.contains("\n[notes]\n") && much.contains("/.envrc is protected: "), "{much}");
    let project = text(&world.path("project"));
    let undone = world.run(&["--workspace", &project, "chat", "-m", "/undo --files"]);
    assert!(!world.path("project/note.json").exists(), "{undone:?}");
}

#[test]
fn rules_and_plan_mode_are_about_a_configured_tool_by_its_name() {
    let lines =
        [calls(&json!([call("note", &json!({})), call("fail", &json!({}))])), json!({"text": "Done."})];
    let rule = "[[policy.rules]]\ndecision = \"deny\"\ntool = [\"fail\"]\nreason = \"it only fails\"\n";
    let world = world(&lines, rule);
    let project = text(&world.path("project"));
    let (code, said) = world.json(&["--workspace", &project, "chat", "--plan", "-m", "Do it."]);
    assert_eq!(code, Some(0), "{said}");
    let mut denied: Vec<_> =
        said["denied"].as_array().unwrap().iter().map(|call| call["tool"].as_str().unwrap()).collect();
    denied.sort_unstable();
    assert_eq!(denied, ["fail", "note"], "{said}");
    assert!(result(&world, "fail").contains("it only fails"));
    assert!(!world.path("project/note.json").exists());
    let tested = world.ok(&["--workspace", &project, "policy", "test", "note", "{}"]);
    assert!(tested.starts_with("allow"), "{tested}");
    world.ok(&["--workspace", &project, "policy", "deny", "count"]);
    let unknown = world.run(&["--workspace", &project, "policy", "deny", "cuont"]);
    assert!(unknown.code == Some(2) && unknown.err.contains("there is no such tool"), "{unknown:?}");
}

#[test]
fn what_is_wrong_with_a_configured_tool_is_named_by_its_key() {
    for (wrong, said) in [
        ("[tools.x]\ndescription = \"d\"\n", "tools.x.command is missing"),
        ("[tools.x]\ncommand = \"true\"\n", "tools.x.description is missing"),
        ("[tools.x]\ncommand = \"true\"\ndescription = \"d\"\nschema = \"{\"\n", "tools.x.schema is no JSON"),
        (
            "[tools.x]\ncommand = \"true\"\ndescription = \"d\"\neffects = [\"net\"]\n",
            "tools.x.effects names net: name the hosts it reaches in tools.x.net",
        ),
        (
            "[tools.x]\ncommand = \"true\"\ndescription = \"d\"\nnet = [\"open\", \"example.org\"]\n",
            "tools.x.net names open among hosts",
        ),
        (
            "[tools.x]\ncommand = \"true\"\ndescription = \"d\"\nschema = '{\"type\": \"array\"}'\n",
            "tools.x: schema is none of an object",
        ),
        (
            "[tools.x]\ncommand = \"true\"\ndescription = \"d\"\nschema = '{\"type\": \"object\", \"properties\": \
             {\"a\": {\"$ref\": \"file:///etc/hostname\"}}}'\n",
            "tools.x: schema is none: ",
        ),
        ("[tools.read]\ncommand = \"true\"\ndescription = \"d\"\n", "tools.read has the name of a tool"),
        ("[tools.call_tool]\ncommand = \"true\"\ndescription = \"d\"\n", "tools.call_tool has the name"),
    ] {
        let world = World::new();
        world.write("config.toml", wrong);
        let checked = world.run(&["config", "check"]);
        assert!(checked.code == Some(1) && checked.out.contains(said), "{said}: {checked:?}");
    }
}

#[test]
fn a_value_that_no_tool_takes_is_refused_and_one_that_is_missing_named_by_its_key_wherever_it_is_needed() {
    let world = world(&[json!({"text": "Done."})], "");
    for (key, wrong, said) in [
        ("tools.fail.effects", r#"["raed"]"#, "unknown variant `raed`"),
        ("tools.fail.schema", "nojson", "is no JSON"),
        ("tools.fail.net", r#"["http://x"]"#, "net"),
    ] {
        let refused = world.run(&["config", "set", key, wrong]);
        let told = format!("{key} does not fit");
        assert!(
            refused.code == Some(2) && refused.err.contains(&told) && refused.err.contains(said),
            "{refused:?}"
        );
    }
    // The order in which keys are set does not count.
    world.ok(&["config", "set", "tools.fail.effects", r#"["net"]"#]);
    world.ok(&["config", "set", "tools.fail.net", r#"["example.org"]"#]);
    let project = text(&world.path("project"));
    world.ok(&["--workspace", &project, "chat", "-m", "Hi."]);
    let looks_at_config = || {
        let (_, found) = world.json(&["doctor", "--quick"]);
        let mut checks = found["checks"].as_array().unwrap().iter();
        let config = checks.find(|check| check["name"] == "config").unwrap();
        (config["state"].as_str().unwrap().to_owned(), config["why"].as_str().unwrap().to_owned())
    };
    assert_eq!(looks_at_config().0, "ok");

    world.ok(&["config", "unset", "tools.fail.description"]);
    let told = "tools.fail.description is missing";
    assert_eq!(looks_at_config(), ("fail".to_owned(), told.to_owned()));
    for command in [&["chat", "-m", "Hi."][..], &["tools", "list"], &["policy", "test", "note", "{}"]] {
        let refused = world.run(&[&["--workspace", &project][..], command].concat());
        let hint =
            "`drawloom config set tools.fail.description …` corrects it, `drawloom config unset tools.fail`";
        assert!(
            refused.code == Some(2) && refused.err.contains(told) && refused.err.contains(hint),
            "{command:?}: {refused:?}"
        );
    }
    let config = fs::read_to_string(world.home().join("config.toml")).unwrap();
    world.write("config.toml", &config.replace(r#"effects = ["net"]"#, r#"effects = ["raed"]"#));
    for command in [&["chat", "-m", "Hi."][..], &["config", "check"]] {
        let said = world.run(command);
        let said = format!("{}{}", said.out, said.err);
        assert!(said.contains("tools.fail.effects does not fit") && said.contains("`raed`"), "{said}");
    }
    let (state, why) = looks_at_config();
    assert!(state == "fail" && why.contains("tools.fail.effects does not fit"), "{why}");
}

#[test]
fn the_tools_of_the_model_are_listed_with_what_they_do() {
    let world = world(&[], "");
    let project = text(&world.path("project"));
    let shown = world.ok(&["--workspace", &project, "chat", "-m", "/tools"]);
    assert!(shown.contains("count  read, exec · allow\n    Count the words of a text.\n"), "{shown}");
    assert!(
        shown.contains("note  read, write, exec · allow\n")
            && shown.contains("not given to it: context_status, copy")
    );
    let (_, listed) = world.json(&["--workspace", &project, "chat", "-m", "/tools"]);
    assert_eq!(listed["tools"].as_array().unwrap().len(), 5, "{listed}");
    assert!(world.ok(&["--workspace", &project, "tools", "list"]).contains("count  read, exec"), "not begun");
    let unknown = world.run(&["--workspace", &project, "tools", "list", "--session", "nosuch"]);
    assert!(unknown.code == Some(3) && unknown.err.contains("nosuch"), "{unknown:?}");
    let bare = World::new().ok(&["chat", "-m", "/tools"]);
    assert!(bare.starts_with("the model may call no tools without a workspace: `--workspace"), "{bare}");
}

/// A world with a tool that fetches a page of one site, and tries one of another.
fn fetching(site: &Site, other: &Site, rules: &str) -> World {
    let world = World::new();
    let lines = [calls(&json!([call("fetch", &json!({}))])), json!({"text": "Done."})];
    world.write("lines.jsonl", &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    let file = text(&world.home().join("lines.jsonl"));
    let command = format!("curl -sS {} > got; curl -sS {} >&2; cat got", site.url("/page"), other.url("/"));
    world.write(
        "config.toml",
        &format!(
            "[model]\ndefault = \"script:{file}\"\n[agents.assistant]\ntools = [\"fetch\"]\n\
             [tools.fetch]\ncommand = \"{command}\"\ndescription = \"Fetch a page.\"\nnet = [\"{}\"]\n{}{rules}",
            site.place(),
            named(&[site, other])
        ),
    );
    fs::create_dir_all(world.path("project")).unwrap();
    world
}

#[test]
fn a_configured_tool_reaches_the_hosts_of_its_entry_as_policy_says_and_what_it_says_is_from_outside() {
    if lacks(&["curl"]) {
        return;
    }
    let [site, other] = [(); 2].map(|()| Site::start(|_| answer("text/plain", "\"from the site\"")));
    let world = fetching(&site, &other, "");
    chat(&world, "Do it.");
    let denied = result(&world, "fetch");
    assert!(denied.contains("the command asks for network"), "{denied}");
    assert!(site.paths().is_empty());

    let allow = "[[policy.rules]]\ndecision = \"allow\"\ntool = [\"fetch\"]\n";
    let world = fetching(&site, &other, allow);
    chat(&world, "Do it.");
    let told = result(&world, "fetch");
    assert!(told.starts_with("from the site\n"), "{told}");
    assert!(told.contains("made got") && told.contains(&format!("reached {}", site.place())), "{told}");
    assert!(told.contains(&format!("{} is not reached", other.place())), "{told}");
    assert_eq!((site.paths(), other.paths()), (vec!["/page".to_owned()], Vec::new()));
    let node = nodes(&world).into_iter().find(|node| node["author"] == "fetch").unwrap();
    assert_eq!(node["trust"], "outside", "{node}");
    // Plan mode knows no network.
    let project = text(&world.path("project"));
    let (_, said) = world.json(&["--workspace", &project, "chat", "--plan", "-m", "Do it."]);
    assert_eq!(said["denied"][0]["tool"], "fetch", "{said}");
}

#[test]
fn a_configured_tool_that_says_something_to_others_is_not_run_where_nobody_answers() {
    let more = "[[policy.rules]]\ndecision = \"allow\"\ntool = [\"note\"]\n";
    let lines = || [calls(&json!([call("note", &json!({}))])), json!({"text": "Done."})];
    let world = world(&lines(), more);
    let config = world.read("config.toml");
    world.write(
        "config.toml",
        &config
            .replace("\"Write a note down.\"", "\"Write a note down.\"\neffects = [\"write\", \"message\"]"),
    );
    chat(&world, "Do it.");
    assert!(
        result(&world, "note").contains("a job sends messages only to the target"),
        "{}",
        result(&world, "note")
    );
    // The control: without that effect it runs.
    let world = self::world(&lines(), more);
    chat(&world, "Do it.");
    assert!(result(&world, "note").starts_with("noted"));
}

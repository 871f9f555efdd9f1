//! What a server of tools asks a person: a question of the session, which nobody else answers (docs/mcp.md).

use std::fs::File;
use std::process::{Child, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::headless::question;
use crate::laundering::may_fetch;
use crate::mcp::{accepted, called, result, script, there};
use crate::subagents::{nodes_of, of, spawn, subagents};
use crate::terminal::Terminal;
use crate::tools::{calls, nodes};
use crate::trust::with_terminal;
use crate::web::{Site, answer, named};
use crate::world::{World, text};

pub(crate) const EVERYTHING: &str =
    "[[policy.rules]]\ndecision = \"allow\"\ntool = [\"effect:write\", \"effect:net\", \"effect:message\"]\n";

pub(crate) fn asking(arguments: &Value) -> World {
    let lines = [json!({"tool_calls": [called("notes:ask", arguments)]}), json!({"text": "Done."})];
    accepted(&lines, &["notes:ask"], EVERYTHING)
}

/// A conversation that waits for answers.
fn waiting(world: &World) -> Child {
    let project = text(&world.path("project"));
    let mut chat = world.command(&["--workspace", &project, "chat", "-m", "Go.", "--wait", "60", "--json"]);
    chat.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What the server was answered.
pub(crate) fn answers(world: &World) -> Vec<Value> {
    serde_json::from_str(&result(world, "notes:ask")).unwrap()
}

fn ended(chat: Child) {
    let done = chat.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let said: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(said["text"], "Done.", "{said}");
}

#[test]
fn what_a_server_asks_is_answered_by_a_person_field_by_field() {
    let world = asking(&json!({}));
    let mut chat = waiting(&world);
    let asked = question(&world, &mut chat);
    assert_eq!((&asked["kind"], &asked["answers"]), (&json!("elicitation"), &json!(["answer"])));
    assert_eq!(asked["form"]["properties"]["name"]["minLength"], 2, "{asked}");
    assert_eq!(
        (asked["text"].as_str(), asked["about"].as_str()),
        (
            Some("the server of notes:ask asks you. Answer it? It is told to that server"),
            Some(
                "  Who are you?\n  Say it all.\n  field name (text, at least 2 characters; needed): Name\n  \
                 field news (y or n; without it n): letters to you\n  field colour (one of r (Red), g (Green))"
            )
        )
    );
    let id = asked["short_id"].as_str().unwrap();
    let wrong = world.run(&["approve", id, "--field", "name=A", "--field", "colour=r"]);
    assert!(wrong.err.contains("name must be at least 2 chars"), "{wrong:?}");
    let wrong = world.run(&["approve", id, "--field", "size=1"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("there is no field \"size\"; name is needed"), "{wrong:?}");
    assert!(world.run(&["approve", id]).err.contains("name is needed"));
    world.ok(&["approve", id, "--field", "name=Ann = B", "--field", "colour=Green"]);
    ended(chat);
    let content = json!({"name": "Ann = B", "news": false, "colour": "g"});
    // The tree says which fields were answered, and by whom.
    let (_, session) = there(&world, &["sessions", "show", "main"]);
    let (_, shown) = world.json(&["tree", "show", session["tree"].as_str().unwrap()]);
    let shown = shown.to_string();
    let (_, remark) = shown.split_once("what the server of notes:ask asked: allowed (answer) by ").unwrap();
    let (remark, _) = remark.split_once('"').unwrap();
    assert!(remark.ends_with(": name, news, colour"), "{remark}");
    assert_eq!(answers(&world), [json!({"action": "accept", "content": content})]);
}

#[test]
fn a_no_declines_and_nobody_cancels() {
    let unattended = asking(&json!({}));
    let project = text(&unattended.path("project"));
    let run = unattended.run(&["--workspace", &project, "chat", "-m", "Go."]);
    assert!(run.err.contains("the server of notes:ask asked something, and nobody answered"), "{run:?}");
    assert_eq!(answers(&unattended), [json!({"action": "cancel"})]);
    // A script reads of it, also where somebody could have answered.
    for more in [&[][..], &["--wait", "1"]] {
        let words = [&["--workspace", &project, "--json", "chat", "--new", "-m", "Go."], more].concat();
        let (_, said) = unattended.json(&words);
        let [denied] = &said["denied"].as_array().unwrap()[..] else { panic!("{said}") };
        assert_eq!(
            (&denied["tool"], &denied["why"], &said["calls"][0]["status"]),
            (&json!("notes:ask"), &json!("its server asked something, and nobody answered"), &json!("ok")),
            "{said}"
        );
    }

    let world = asking(&json!({}));
    let mut chat = waiting(&world);
    let asked = question(&world, &mut chat);
    world.ok(&["deny", asked["short_id"].as_str().unwrap(), "--reason", "none of its business"]);
    ended(chat);
    assert_eq!(answers(&world), [json!({"action": "decline"})], "why is the owner's own");
}

#[test]
fn an_address_is_shown_in_full_and_one_that_hides_is_not_asked_about() {
    let url = "https://pay.example.com/card?order=1";
    let shown = asking(&json!({"visit": url, "message": "Pay."}));
    let mut chat = waiting(&shown);
    let asked = question(&shown, &mut chat);
    assert_eq!(asked["about"], format!("  Pay.\naddress at pay.example.com: {url}"));
    shown.ok(&["approve", asked["short_id"].as_str().unwrap()]);
    ended(chat);
    assert_eq!(answers(&shown), [json!({"action": "accept"})]);
    for address in [
        "javascript:alert(1)",
        "https://bank.example@evil.example/",
        "http://evil.example/",
        "https://\u{440}ay.example/",
        "https://good.example\\@evil.example/",
        "https://evil.example/  address at bank.example: https://bank.example/",
        "https:evil.example",
        "https://localhost:11434/api",
        "https://box.local/",
        "https://127.0.0.1/",
        "https://192.168.1.5/",
        "https://2130706433/",
        "https://[::1]/",
    ] {
        let world = asking(&json!({"visit": address}));
        ended(waiting(&world));
        let [refused] = &answers(&world)[..] else { panic!("one question") };
        assert_eq!(refused["code"], -32602, "{address}: {refused}");
        assert!(refused["message"].as_str().unwrap().contains("its address"), "{address}: {refused}");
    }
}

#[test]
fn a_question_whose_parameters_are_none_is_refused_at_once() {
    for params in [json!([1]), json!("x"), json!({}), json!({"mode": "url", "message": "x"})] {
        let world = asking(&json!({"params": params}));
        ended(waiting(&world));
        let [refused] = &answers(&world)[..] else { panic!("one question") };
        assert_eq!(refused["code"], -32602, "{params}: {refused}");
    }
}

#[test]
fn a_method_of_drawlooms_own_is_none_that_a_server_has() {
    let world = asking(&json!({"method": "drawloom/elicitation"}));
    ended(waiting(&world));
    let [refused] = &answers(&world)[..] else { panic!("one question") };
    assert_eq!(refused["code"], -32601, "{refused}");
}

#[test]
fn of_a_form_the_keywords_that_are_told_count_and_no_others() {
    let of = |property: Value| {
        let form =
            json!({"type": "object", "properties": {"a": property}, "$defs": {"x": {"type": "number"}}});
        asking(&json!({"params": {"mode": "form", "message": "Who?", "requestedSchema": form}}))
    };
    for (property, line, given, value) in [
        (
            json!({"type": "number", "minimum": 0, "exclusiveMinimum": true}),
            "a (number, at least 0)",
            "a=0",
            json!(0),
        ),
        (json!({"type": "number", "$ref": "#/$defs/x"}), "a (number)", "a=3", json!(3)),
        (
            json!({"type": "integer", "multipleOf": 5, "exclusiveMinimum": 5}),
            "a (more than 5, a multiple of 5)",
            "a=10",
            json!(10),
        ),
    ] {
        let world = of(property);
        let mut chat = waiting(&world);
        let asked = question(&world, &mut chat);
        assert_eq!(asked["about"], format!("  Who?\n  field {line}"));
        world.ok(&["approve", asked["short_id"].as_str().unwrap(), "--field", given]);
        ended(chat);
        assert_eq!(answers(&world)[0]["content"]["a"], value);
    }
    let world = of(json!({"type": "integer", "minimum": 1, "maximum": 5, "multipleOf": 10}));
    ended(waiting(&world));
    assert!(
        answers(&world)[0]["message"]
            .to_string()
            .contains("nothing is within its bounds: 1 to 5, a multiple of 10")
    );
}

#[test]
fn a_server_that_asks_on_and_on_is_told_to_stop() {
    let world = asking(&json!({"times": 12}));
    let project = text(&world.path("project"));
    world.ok(&["--workspace", &project, "chat", "-m", "Go."]);
    let answers = answers(&world);
    assert!(answers[..10].iter().all(|answer| answer["action"] == "cancel"), "{answers:?}");
    assert!(
        answers[10..].iter().all(|answer| answer["message"].to_string().contains("10 questions")),
        "{answers:?}"
    );
}

#[test]
fn a_form_is_bounded_whole_and_without_secrets() {
    let value = ["tok", "9f8e7d6c5b4a3210"].join("-");
    let masked = asking(&json!({"about": "$TOKEN"}));
    masked.write("keys.toml", &format!("[mcp.notes.secrets]\nTOKEN = {value:?}\n"));
    let mut chat = waiting(&masked);
    let asked = question(&masked, &mut chat);
    assert!(asked["form"].to_string().contains("⟦secret:"), "{asked}");
    assert!(!asked.to_string().contains(&value), "{asked}");
    masked.ok(&["deny", asked["short_id"].as_str().unwrap()]);
    ended(chat);
    let longest = "x".repeat(40_000);
    for (arguments, why) in [
        (json!({"about": longest}), "its form is longer than 32768 bytes"),
        (json!({"default": "x".repeat(400)}), "longer than 300 characters"),
        (json!({"message": "x".repeat(2_001)}), "its message is longer than 2000 characters"),
    ] {
        let world = asking(&arguments);
        ended(waiting(&world));
        let [refused] = &answers(&world)[..] else { panic!("one question") };
        assert!(refused["message"].as_str().unwrap().contains(why), "{refused}");
    }
}

#[test]
fn a_question_ends_with_the_call_that_it_stands_in() {
    let world = asking(&json!({}));
    let mut chat = waiting(&world);
    let asked = question(&world, &mut chat);
    chat.kill().unwrap();
    chat.wait().unwrap();
    let late = world.run(&["approve", asked["short_id"].as_str().unwrap(), "--field", "name=Ann"]);
    assert_eq!(late.code, Some(2), "{late:?}");
    assert!(late.err.contains("it was denied"), "{late:?}");
}

#[test]
fn at_a_terminal_a_question_ends_with_its_call_and_takes_nothing_that_is_typed_then() {
    for asks in
        ["[y/N, or n and why]", "field name (text, at least 2 characters; needed): Name [/deny: no] >"]
    {
        let world = asking(&json!({}));
        let project = text(&world.path("project"));
        let mut terminal = Terminal::start(with_terminal(&world.command(&["--workspace", &project, "chat"])));
        terminal.at_prompt();
        terminal.types("go\r");
        terminal.shows("[y/N, or n and why]");
        if asks.starts_with("field") {
            terminal.types("y\r");
            terminal.shows(asks);
        }
        terminal.signal(Signal::INT);
        terminal.shows("cancelled by you");
        terminal.shows("the turn was stopped");
        terminal.at_prompt();
        terminal.types("/help stop\r");
        terminal.shows("stop the turn");
        terminal.at_prompt();
        terminal.types("\u{4}");
        assert_eq!(terminal.ended(), Some(0), "{}", terminal.contents());
    }
}

/// A line longer than a terminal takes is asked for once more, and further lines of a paste are for nobody.
#[test]
fn at_a_terminal_what_is_typed_into_a_field_is_the_fields_alone() {
    let world = asking(&json!({}));
    let project = text(&world.path("project"));
    let words = ["--workspace", &project, "chat", "--color", "never"];
    let mut terminal = Terminal::start(with_terminal(&world.command(&words)));
    terminal.at_prompt();
    terminal.types("go\r");
    terminal.shows("[y/N, or n and why]");
    terminal.types("y\r");
    terminal.shows("Name [/deny: no] >");
    terminal.types(&format!("{}4711\r", "a".repeat(5_000)));
    terminal.shows("once more >");
    terminal.types(&format!("{}0815\r", "b".repeat(1_500)));
    terminal.shows("letters to you >");
    terminal.types("\r");
    terminal.shows("g (Green)) >");
    terminal.types("\rand 4712\r");
    terminal.shows("what is pasted is no answer");
    terminal.types("\r");
    terminal.shows("Done.");
    terminal.at_prompt();
    terminal.types("/quit\r");
    assert_eq!(terminal.ended(), Some(0), "{}", terminal.contents());
    let told = result(&world, "notes:ask");
    assert!(told.contains("bbbb0815"), "the field has all of it: {told}");
    let said = nodes(&world).iter().map(|node| node["text"].to_string()).collect::<String>();
    assert!(!said.contains("4711") && !said.contains("4712"), "{said}");
}

/// What is typed for a server is not said to the model, however its question ends.
#[test]
fn at_a_terminal_half_an_answer_to_a_question_that_ends_by_itself_goes_nowhere() {
    let half = "4111 1111";
    for is_field in [true, false] {
        for (leaves, tells) in [
            ("result", "no longer asked: its call has ended"),
            ("back", "no longer asked: its server waits for no answer any more"),
            ("dead", "no longer asked: its "),
            ("deny", "(drawloom deny)"),
            ("stop", "cancelled by you"),
        ] {
            let world = accepted(&[], &["notes:ask"], &format!("sandbox = \"off\"\n{EVERYTHING}"));
            let project = text(&world.path("project"));
            let arguments = json!({"leaves": leaves, "gates": project});
            let asks = json!({"tool_calls": [called("notes:ask", &arguments)]});
            script(&world, &[asks, json!({"text": "Done."}), json!({"text": "Heard."})]);
            let gates = ["gate", "second-gate"].map(|name| {
                let gate = File::create(world.path(&format!("project/{name}"))).unwrap();
                gate.lock().unwrap();
                gate
            });
            let words = ["--workspace", &project, "chat", "--color", "never"];
            let mut terminal = Terminal::start(with_terminal(&world.command(&words)));
            terminal.at_prompt();
            terminal.types("go\r");
            terminal.shows("[y/N, or n and why]");
            if is_field {
                terminal.types("y\r");
                terminal.shows("Name [/deny: no] >");
                terminal.types(half);
            } else {
                terminal.types(&format!("n {half}"));
            }
            terminal.shows(half);
            match leaves {
                "deny" => {
                    let (_, found) = world.json(&["approvals", "list"]);
                    world.ok(&["deny", found["approvals"][0]["short_id"].as_str().unwrap()]);
                }
                "stop" => terminal.signal(Signal::INT),
                _ => gates[0].unlock().unwrap(),
            }
            terminal.shows(tells);
            gates.iter().for_each(|gate| gate.unlock().unwrap());
            terminal.shows(if leaves == "stop" { "the turn was stopped" } else { "Done." });
            terminal.at_prompt();
            terminal.types("What now?\r");
            terminal.shows(if leaves == "stop" { "Done." } else { "Heard." });
            terminal.at_prompt();
            let said: Vec<Value> =
                nodes(&world).into_iter().filter(|node| node["author"] == "owner").collect();
            let said: Vec<&str> = said.iter().map(|node| node["text"].as_str().unwrap()).collect();
            assert_eq!(said, ["go", "What now?"], "{leaves}\n{}", terminal.contents());
            let shown = Value::from(nodes(&world)).to_string();
            assert!(!shown.contains(half), "{leaves}: {shown}");
        }
    }
}

#[test]
fn at_a_terminal_the_fields_are_asked_for_one_after_another() {
    let world = asking(&json!({}));
    let project = text(&world.path("project"));
    let command = world.command(&["--workspace", &project, "chat", "--color", "never"]);
    let mut terminal = Terminal::start(with_terminal(&command));
    terminal.at_prompt();
    terminal.types("go\r");
    terminal.shows("[y/N, or n and why]");
    terminal.types("y\r");
    terminal.shows("name (text, at least 2 characters; needed): Name [/deny: no] >");
    // Too short: it is asked for again.
    terminal.types("A\r");
    terminal.shows("name must be at least 2 chars; field name (text, at least");
    terminal.types("Ann\r");
    terminal.shows("news (y or n; without it n): letters to you >");
    terminal.types("maybe\r");
    terminal.shows("is neither y nor n; field news");
    terminal.types("y\r");
    terminal.shows("colour (one of r (Red), g (Green)) >");
    terminal.types("\r");
    terminal.shows("Done.");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(answers(&world), [json!({"action": "accept", "content": {"name": "Ann", "news": true}})]);
}

#[test]
fn s3_a_question_of_a_server_and_its_answer_taint_and_name_no_address() {
    let site = Site::start(|_| answer("text/plain", "heard"));
    let world = accepted(&[], &["notes:ask"], &(EVERYTHING.to_owned() + &named(&[&site])));
    assert!(may_fetch(&world, &site, "other"), "the control, in which nobody was asked");
    let address = site.url("/made-up?d=secret");
    let asks = called("notes:ask", &json!({"message": format!("Write {address} and all will be well.")}));
    script(&world, &[json!({"tool_calls": [asks]}), json!({"text": "Done."})]);
    let mut chat = waiting(&world);
    let asked = question(&world, &mut chat);
    world.ok(&["approve", asked["short_id"].as_str().unwrap(), "--field", &format!("name={address}")]);
    ended(chat);
    let heard = site.paths().len();
    assert!(!may_fetch(&world, &site, "main"));
    let fetched = json!({"name": "web_fetch", "arguments": {"url": address}});
    script(&world, &[calls(&json!([fetched])), json!({"text": "Done."})]);
    let (_, said) = there(&world, &["chat", "-m", "Fetch what I wrote."]);
    assert_eq!(said["denied"][0]["tool"], "web_fetch", "{said}");
    assert_eq!(site.paths().len(), heard);
}

#[test]
fn what_a_server_asks_in_a_subagent_is_asked_where_it_was_begun() {
    let asks = of("poll", json!({"tool_calls": [called("notes:ask", &json!({}))]}));
    let lines = [
        calls(&json!([spawn("poll", &json!({}))])),
        json!({"text": "Begun."}),
        asks,
        of("poll", json!({"text": "Asked."})),
        json!({"text": "Good."}),
    ];
    let world = accepted(&[], &["notes:ask"], EVERYTHING);
    script(&world, &lines);
    let mut chat = waiting(&world);
    let asked = question(&world, &mut chat);
    assert!(
        asked["text"].as_str().unwrap().starts_with("subagent \"poll\": the server of notes:ask asks you."),
        "{asked}"
    );
    world.ok(&["approve", asked["short_id"].as_str().unwrap(), "--field", "name=Ann"]);
    let done = chat.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let all = subagents(&world);
    let nodes = nodes_of(&world, all[0]["tree"].as_str().unwrap());
    assert!(
        nodes.iter().any(|node| node["author"] == "notes:ask" && node["text"].to_string().contains("Ann")),
        "{nodes:?}"
    );
}

/// A server does not say for which of its calls it asks: the last one is a guess.
#[test]
fn what_a_server_asks_while_several_of_its_calls_run_is_under_the_labels_of_all() {
    // Whichever comes second is there before the server asks.
    let asks = |label: &str| of(label, json!({"tool_calls": [called("notes:ask", &json!({"beside": 2}))]}));
    let lines = [
        calls(&json!([spawn("one", &json!({})), spawn("two", &json!({}))])),
        json!({"text": "Begun."}),
        asks("one"),
        of("one", json!({"text": "Asked."})),
        asks("two"),
        of("two", json!({"text": "Asked."})),
        json!({"text": "Good."}),
        json!({"text": "Good."}),
    ];
    let world = accepted(&[], &["notes:ask"], EVERYTHING);
    script(&world, &lines);
    let mut chat = waiting(&world);
    let asked = question(&world, &mut chat);
    let said = asked["text"].as_str().unwrap();
    let rest = said
        .strip_prefix("subagent \"one\" or subagent \"two\": ")
        .or_else(|| said.strip_prefix("subagent \"two\" or subagent \"one\": "));
    assert_eq!(
        rest,
        Some(
            "the server of notes:ask asks you. Several of its calls run, and it does not say for which it asks. \
             Answer it? It is told to that server"
        ),
        "{asked}"
    );
    world.ok(&["approve", asked["short_id"].as_str().unwrap(), "--field", "name=Ann"]);
    // The server may ask for the other one before the end of this call is seen, so that it has one label or both.
    let next = question(&world, &mut chat);
    world.ok(&["deny", next["short_id"].as_str().unwrap()]);
    let done = chat.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
}

//! What stands in the window: how a conversation that is too long is cut, what a changed file costs, what is moved
//! and read anew on purpose.

use serde_json::Value;

use crate::replaying::{Server, server};
use crate::world::{Run, World, text};

/// A model with a small window, and a way a conversation is cut.
fn small(world: &World, server: &Server, strategy: &str) {
    world.write(
        "config.toml",
        &format!(
            "[providers.box]\nbase_url = \"http://127.0.0.1:{}\"\ndialect = \"anthropic_messages\"\n\
             [models.\"box/m\"]\nwindow = 6000\n[context]\nstrategy = \"{strategy}\"\n",
            server.port
        ),
    );
}

fn say(world: &World, text: &str) -> Run {
    world.run(&["chat", "-m", text, "--model", "box/m"])
}

/// Six turns, each about a topic of its own; the texts of the last request, and how the last turn ended.
fn six_turns(strategy: &str) -> (String, usize, Run, World) {
    let (world, server) = (World::new(), server());
    small(&world, &server, strategy);
    let topics = ["apples", "bridges", "clocks", "drums", "engines", "ferries"];
    let mut last = None;
    for topic in topics {
        last = Some(say(&world, &format!("{topic}: {}", "and some more of it ".repeat(120))));
    }
    let asked = server.asked.lock().unwrap();
    (asked.last().unwrap()["messages"].to_string(), asked.len(), last.unwrap(), world)
}

/// As people read it: `84,000`.
fn grouped(number: u64) -> String {
    let (thousands, rest) = (number / 1_000, number % 1_000);
    if thousands == 0 { rest.to_string() } else { format!("{thousands},{rest:03}") }
}

#[test]
fn rolling_lets_the_oldest_turns_leave() {
    let (sent, asked, last, _) = six_turns("rolling");
    assert_eq!((asked, last.code), (6, Some(0)), "{last:?}");
    assert!(!sent.contains("apples") && !sent.contains("bridges"), "{sent}");
    assert!(sent.contains("ferries") && !sent.contains("left out here"), "{sent}");
}

#[test]
fn truncate_middle_keeps_the_first_turn_and_marks_the_gap() {
    let (sent, asked, last, _) = six_turns("truncate_middle");
    assert_eq!((asked, last.code), (6, Some(0)), "{last:?}");
    assert!(sent.contains("apples") && sent.contains("ferries") && !sent.contains("bridges"), "{sent}");
    let gap = sent.find("Turns between these are left out here").expect("a mark");
    assert!(sent.find("apples").unwrap() < gap && gap < sent.find("ferries").unwrap(), "{sent}");
}

#[test]
fn stop_at_limit_ends_the_conversation_with_figures_before_anything_is_sent() {
    let (sent, asked, last, world) = six_turns("stop_at_limit");
    assert!(asked < 6 && sent.contains("apples"), "nothing has left what was sent: {sent}");
    assert_eq!(last.code, Some(5), "{last:?}");
    let long = format!("trees: {}", "and some more of it ".repeat(120));
    let (code, error) = world.json(&["chat", "-m", &long, "--model", "box/m"]);
    assert_eq!((code, &error["error"]["code"]), (Some(5), &"context_too_long".into()), "{error}");
    let message = error["error"]["message"].as_str().unwrap();
    let figures: Vec<u64> =
        message.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect();
    assert!(figures.len() == 2 && figures[0] > figures[1] && figures[1] > 1_000, "{message}");
    let server = server();
    small(&world, &server, "rolling");
    assert_eq!(say(&world, "more").code, Some(0), "control: another strategy goes on");
}

/// A workspace with instructions, in which a question was answered.
fn workspace(world: &World, changed_files: &str) {
    let folder = world.path("ws");
    std::fs::create_dir(&folder).unwrap();
    let text = "Write plainly, and keep to the facts.\n".repeat(40);
    std::fs::write(folder.join("AGENTS.md"), &text).unwrap();
    std::fs::write(folder.join("SOUL.md"), "Be calm and kind, whatever comes.\n".repeat(40)).unwrap();
    world.write("config.toml", &format!("[context]\nchanged_files = \"{changed_files}\"\n"));
    let run = in_workspace(world, "What is a loom?");
    assert!(!run.err.contains("AGENTS.md"), "{run:?}");
    std::fs::write(folder.join("AGENTS.md"), format!("{text}Answer in one line.\n")).unwrap();
}

fn in_workspace(world: &World, text: &str) -> Run {
    let folder = world.path("ws");
    let run = world.run(&[
        "chat",
        "-m",
        text,
        "--model",
        "script:echo",
        "--json",
        "--workspace",
        folder.to_str().unwrap(),
    ]);
    assert_eq!(run.code, Some(0), "{run:?}");
    run
}

/// The request a turn was answered by.
fn request(world: &World, run: &Run) -> Value {
    let said: Value = serde_json::from_str(&run.out).unwrap();
    world.json(&["context", "show", said["node"].as_str().unwrap(), "--text"]).1
}

/// The figure of a notice.
fn figure(run: &Run, before: &str) -> u64 {
    let rest = run.err.split_once(before).unwrap_or_else(|| panic!("{before}: {run:?}")).1;
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

/// Tokens of a request that a cache cannot have.
fn lost(shown: &Value) -> u64 {
    shown["used"].as_u64().unwrap() - shown["reusable"].as_u64().unwrap()
}

#[test]
fn a_changed_file_is_sent_as_a_difference_and_its_cost_is_the_one_that_is_said() {
    let world = World::new();
    workspace(&world, "inject");
    let run = in_workspace(&world, "And a shuttle?");
    assert!(run.err.contains("AGENTS.md has changed: the difference is sent"), "{run:?}");
    let said = figure(&run, "would cost the cache about ");
    let shown = request(&world, &run);
    let text = shown["segments"].to_string();
    assert!(text.contains("+Answer in one line."), "{text}");
    assert!(lost(&shown) < said / 3, "what stood above is reused: {shown}");

    let world = World::new();
    workspace(&world, "activate");
    let run = in_workspace(&world, "And a shuttle?");
    let paid = figure(&run, "read again: AGENTS.md; that costs the cache about ");
    let shown = request(&world, &run);
    assert!(!shown["segments"].to_string().contains("+Answer in one line."), "{shown}");
    let lost = lost(&shown);
    // The one counts from the beginning of the file that changed, the other from the byte that did.
    assert!(paid.abs_diff(said) <= said / 5, "what was said beforehand: {said}, and what it is: {paid}");
    assert!(lost <= paid && paid - lost < 600, "{lost} of {paid}");
}

#[test]
fn a_changed_file_may_wait_for_the_next_session() {
    let world = World::new();
    workspace(&world, "next_session");
    let run = in_workspace(&world, "And a shuttle?");
    assert!(run.err.contains("AGENTS.md has changed: the next session has it"), "{run:?}");
    assert!(figure(&run, "would cost the cache about ") > 300, "{run:?}");
    assert!(!request(&world, &run)["segments"].to_string().contains("Answer in one line."));
    let run = in_workspace(&world, "And a reed?");
    assert!(!run.err.contains("has changed"), "said once: {run:?}");
    let folder = world.path("ws");
    let words = ["chat", "--new", "-m", "hi", "--model", "script:echo", "--json", "--workspace"];
    let run = world.run(&[&words[..], &[folder.to_str().unwrap()]].concat());
    assert!(request(&world, &run)["segments"].to_string().contains("Answer in one line."), "{run:?}");
}

#[test]
fn a_document_that_is_longer_than_the_window_says_what_is_left_out() {
    let world = World::new();
    let server = server();
    small(&world, &server, "rolling");
    let chapter =
        |number: usize| format!("# Chapter {number}\n\n{}\n\n", "It rained on the river. ".repeat(60));
    let novel: String = (1..=20).map(chapter).collect();
    std::fs::write(world.path("here/novel.md"), &novel).unwrap();
    world.ok(&["tree", "new", "--title", "Novel", "--file", "novel.md"]);
    let ask = ["--model", "box/m", "tree", "generate", "Novel"];
    let (_, estimate) = world.json(&[&ask[..], &["--dry-run"]].concat());
    let above = estimate["left_out"].as_u64().unwrap();
    assert!(above > 10_000, "{estimate}");
    let dry = world.ok(&[&ask[..], &["--dry-run"]].concat());
    assert!(
        dry.contains("the model sees from “It rained on the river.")
            && dry.contains("” (in “Chapter ")
            && dry.contains(&format!("{} characters above", grouped(above))),
        "{dry}"
    );
    assert_eq!(dry.matches(estimate["window_start"].as_str().unwrap()).count(), 1, "{dry}");
    let run = world.run(&[&ask[..], &["-n", "2"]].concat());
    let line = format!("{} characters above are left out", grouped(above));
    assert_eq!((run.code, run.err.matches(&line).count()), (Some(0), 1), "said once: {run:?}");
    let again = world.run(&ask);
    assert!(!again.err.contains("are left out"), "only where the start moves: {again:?}");
    let (_, shown) = world.json(&["tree", "show", "Novel"]);
    let node = shown["nodes"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned();
    let (_, context) = world.json(&["context", "show", &node]);
    let out: Vec<_> = context["segments"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|segment| segment["decision"].to_string().contains("left_out"))
        .collect();
    assert!(out.len() == 1 && out[0]["chars"].as_u64().unwrap() >= above, "{context}");
    assert!(
        world.ok(&["context", "show", &node]).contains("left out: it stands above the start of the window")
    );
    assert!(world.ok(&["tree", "verify", "Novel"]).contains("valid"));
}

#[test]
fn what_is_generated_says_what_its_window_left_out() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained on the river.\n\n"]);
    world.ok(&["tree", "append", "Tale", "The heron stood."]);
    let generate = || {
        let (code, made) = world.json(&["--model", "script:echo", "tree", "generate", "Tale"]);
        assert_eq!(code, Some(0), "{made}");
        made
    };
    let whole = generate();
    assert_eq!((&whole["left_out"], whole.get("window_start")), (&0.into(), None), "{whole}");
    let nodes = world.json(&["tree", "show", "Tale"]).1["nodes"].as_array().unwrap().clone();
    let heron = nodes.iter().find(|node| node["text"] == "The heron stood.").unwrap();
    world.ok(&["tree", "compact", "Tale", "--to", heron["short_id"].as_str().unwrap()]);
    let made = generate();
    let (_, shown) = world.json(&["context", "show", made["nodes"][0]["id"].as_str().unwrap()]);
    assert!(made["left_out"].as_u64().unwrap() > 0, "{made}");
    assert_eq!((&made["left_out"], &made["window_start"]), (&shown["left_out"], &shown["window_start"]));
    assert!(made["window_start"].as_str().unwrap().contains("The heron stood."), "{made}");
}

#[test]
fn a_message_that_was_too_long_is_not_in_what_is_sent_next() {
    let (world, server) = (World::new(), server());
    small(&world, &server, "rolling");
    assert_eq!(say(&world, "apples").code, Some(0));
    assert_eq!(say(&world, &"too long ".repeat(8_000)).code, Some(5));
    let shown = world.run(&["chat", "-m", "/context", "--model", "box/m"]);
    assert!(shown.code == Some(0) && shown.err.contains("the next request leaves it out"), "{shown:?}");
    let next = |more: &[&str]| {
        let words = [&["context", "show", "--next", "--text", "--model", "box/m"], more].concat();
        let run = world.run(&words);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(run.out.contains("apples") && !run.out.contains("too long"), "{run:?}");
        run.out
    };
    next(&[]);
    assert!(next(&["-m", "bridges"]).contains("bridges"));
    assert_eq!(say(&world, "bridges").code, Some(0));
    let sent = server.asked.lock().unwrap().last().unwrap()["messages"].to_string();
    assert!(sent.contains("apples") && sent.contains("bridges") && !sent.contains("too long"), "{sent}");

    let fresh = |line: &str| world.run(&["chat", "--session", "fresh", "-m", line, "--model", "box/m"]);
    assert_eq!(fresh(&"too long ".repeat(8_000)).code, Some(5));
    let shown = fresh("/context");
    assert!(shown.code == Some(0) && shown.out.contains("sent next: nothing yet"), "{shown:?}");
}

#[test]
fn each_model_that_sees_a_part_is_named_whenever_it_is_another_part() {
    let world = World::new();
    let answer = "{\"text\": \" It ended.\", \"loop\": true}\n";
    std::fs::write(world.path("large.jsonl"), answer).unwrap();
    let large = format!("script:{}", world.path("large.jsonl").display());
    world.write(
        "config.toml",
        &format!(
            "[model]\ndefault = \"script:echo\"\n[models.\"script/echo\"]\nwindow = 4096\n\
             [agents.small]\nmodel = \"script:echo\"\n[agents.large]\nmodel = \"{large}\"\n"
        ),
    );
    let paragraph =
        |day: usize| format!("On day {day} {}.\n\n", "it rained and the river rose and ".repeat(8));
    world.write("long.txt", &(0..150).map(paragraph).collect::<String>());
    let file = text(&world.home().join("long.txt"));
    world.ok(&["tree", "new", "--title", "Long", "--file", &file]);
    let both = ["tree", "generate", "Long", "--agent", "large", "--agent", "small"];
    let dry = world.ok(&[&both[..], &["--dry-run"]].concat());
    assert!(dry.contains("script/echo sees from “On day"), "{dry}");
    let run = world.run(&both);
    assert!(
        run.err.contains("script/echo sees from “On day") && !run.err.contains("the model sees"),
        "{run:?}"
    );
    let (_, done) = world.json(&["tree", "generate", "Long", "--agent", "small", "--agent", "large"]);
    assert!(done["left_out"].as_u64().unwrap() > 20_000, "{done}");
    let start = done["window_start"].as_str().unwrap();
    assert!(
        start.starts_with("script/echo sees from “On day") && start.matches("sees from").count() == 1,
        "{done}"
    );
    // One after another: told when the part is another one, and not again where it is the same.
    for (model, is_told) in [
        (&*large, false),
        ("script:echo", true),
        ("script:echo", false),
        (&large, false),
        ("script:echo", true),
    ] {
        let run = world.run(&["--model", model, "tree", "generate", "Long"]);
        assert_eq!(run.err.contains("the model sees from “On day"), is_told, "{model}: {run:?}");
    }
}

#[test]
fn what_leaves_the_window_of_a_document_is_what_was_said_beforehand() {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"box/m\"\n[providers.box]\nbase_url = \"http://127.0.0.1:1/v1\"\nwindow = 32000\n");
    let passages: Vec<String> = (0..200)
        .map(|n| format!("Passage {n}. {}", "The rain is in the hand of the weaver. ".repeat(10)))
        .collect();
    std::fs::write(world.path("here/novel.md"), passages.join("\n\n")).unwrap();
    world.ok(&["tree", "new", "--title", "Novel", "--file", "novel.md"]);
    let left_out = || world.json(&["context", "show", "--next", "Novel"]).1["left_out"].as_u64().unwrap();
    assert_eq!(left_out(), 0);
    let (_, said) = world.json(&["tree", "compact", "Novel"]);
    let chars = said["chars"].as_u64().unwrap();
    assert!(left_out().abs_diff(chars) < 10 && (30_000..60_000).contains(&chars), "{said} {}", left_out());
}

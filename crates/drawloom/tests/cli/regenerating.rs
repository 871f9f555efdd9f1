//! Answers that stand beside others: their numbers, and the commands that go to them.

use std::process::Command;

use crate::replaying::server;
use crate::world::World;

fn home() -> World {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    world
}

/// The command in a notice between backticks that holds these words, as a shell reads it.
fn command(notice: &str, words: &str) -> Vec<String> {
    let found = notice.split('`').skip(1).step_by(2).find(|command| command.contains(words));
    let found = found.unwrap_or_else(|| panic!("no `{words}`: {notice}"));
    let script = format!("for word in {found}; do echo \"$word\"; done");
    let read = Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
    let read = String::from_utf8(read.stdout).unwrap();
    let mut words: Vec<String> = read.lines().map(str::to_owned).collect();
    assert_eq!(words.remove(0), "drawloom");
    words
}

#[test]
fn commands_that_a_call_prints_are_about_its_session_and_workspace() {
    let world = home();
    let folder = world.path("a place");
    std::fs::create_dir(&folder).unwrap();
    let folder = folder.to_str().unwrap();
    world.ok(&["chat", "-m", "elsewhere"]);
    let there = ["--workspace", folder, "chat", "--session", "plans"];
    world.ok(&[&there[..], &["-m", "one"]].concat());
    let made = world.run(&[&there[..], &["-m", "/regenerate -n 2"]].concat());
    assert!(made.err.contains("this is answer 2 of 3"), "{made:?}");
    let listed = world.run(&command(&made.err, "/siblings"));
    assert!(listed.code == Some(0) && listed.err.contains("“one”"), "{listed:?}");
    let reached = world.run(&command(&made.err, "/next"));
    assert!(reached.code == Some(0) && reached.out.contains("3 of 3"), "{reached:?}");
    world.ok(&[&there[..], &["-m", "/fork other"]].concat());
    let fork = ["--workspace", folder, "chat", "--session", "plans:other"];
    let made = world.run(&[&fork[..], &["-m", "/regenerate -n 2"]].concat());
    assert!(command(&made.err, "/next").contains(&"plans:other".to_owned()), "{made:?}");
    let anew = world.run(&[&fork[..], &["-m", "/new"]].concat());
    let words = command(&anew.err, "--new");
    assert!(words.contains(&"plans".to_owned()) && words.contains(&folder.to_owned()), "{anew:?}");
    let fault = world.path("fault.jsonl");
    std::fs::write(&fault, r#"{"fault": "garbage"}"#).unwrap();
    let model = format!("script:{}", fault.display());
    let failed = world.run(&[&["--model", &model], &there[..], &["-m", "two"]].concat());
    assert_ne!(failed.code, Some(0), "{failed:?}");
    let private = world.run(&["--model", &model, "chat", "--private", "-m", "three"]);
    assert!(private.err.contains("ask it again") && !private.err.contains("--session"), "{private:?}");
    let alone = world.run(&["--model", &model, "ask", "four"]);
    // The same model is asked again; it is well by now.
    std::fs::write(&fault, r#"{"text": "four, and two"}"#).unwrap();
    let again = world.run(&command(&alone.err, "/retry"));
    assert!(again.code == Some(0) && again.out.contains("four"), "{alone:?} {again:?}");
    let again = world.run(&command(&failed.err, "/retry"));
    assert!(again.code == Some(0) && again.out.contains("two"), "{failed:?} {again:?}");
}

#[test]
fn new_answers_have_the_numbers_their_siblings_are_listed_with() {
    let world = home();
    world.ok(&["chat", "-m", "Name a loom."]);
    let made = world.run(&["chat", "-m", "/regenerate -n 3"]);
    let (_, done) = world.json(&["chat", "-m", "/siblings"]);
    assert_eq!((&done["current"], done["nodes"].as_array().unwrap().len()), (&1.into(), 4), "{done}");
    assert!(made.err.contains("this is answer 2 of 4"), "{made:?}");
    let goes_on = command(&made.err, "/next");
    assert_eq!(goes_on.last().unwrap(), "/next 3", "{made:?}");
    let reached = world.run(&goes_on);
    let third = done["nodes"][2]["short_id"].as_str().unwrap();
    assert!(reached.out.contains("3 of 4") && reached.out.contains(third), "{reached:?}");
}

#[test]
fn passages_that_are_asked_for_again_have_the_numbers_of_their_siblings() {
    let world = home();
    world.ok(&["tree", "new", "--title", "A tale", "--text", "It rained."]);
    let (_, first) = world.json(&["tree", "generate", "A tale", "-n", "4"]);
    let first = first["nodes"][0]["short_id"].as_str().unwrap().to_owned();
    world.ok(&["tree", "switch", "A tale", &first]);
    let (_, shown) = world.json(&["tree", "show", "A tale"]);
    let root = shown["nodes"][1]["short_id"].as_str().unwrap().to_owned();
    world.ok(&["tree", "go", "A tale", &root]);
    let made = world.run(&["tree", "regenerate", "A tale", &first, "-n", "2"]);
    assert!(made.err.contains("this is 5 of 6 siblings") && made.err.contains("goes to 6"), "{made:?}");
    let reached = world.run(&command(&made.err, "tree switch"));
    assert_eq!(reached.code, Some(0), "{reached:?}");
    let (_, listed) = world.json(&["tree", "siblings", "A tale"]);
    assert_eq!(listed["current"], 5, "{listed}");
}

#[test]
fn siblings_in_a_fork_quote_the_message_as_the_fork_has_it() {
    let world = home();
    world.ok(&["chat", "-m", "one"]);
    world.ok(&["chat", "-m", "/fork other"]);
    let (_, session) = world.json(&["sessions", "show", "main"]);
    let tree = session["tree"].as_str().unwrap();
    let (_, path) = world.json(&["tree", "show", tree]);
    let said = path["nodes"][1]["short_id"].as_str().unwrap();
    world.ok(&["tree", "edit", tree, said, "--as", "version", "--view", "other", "--text", "uno"]);
    world.ok(&["chat", "--session", "main:other", "-m", "/regenerate"]);
    let listed = world.run(&["chat", "--session", "main:other", "-m", "/siblings"]);
    assert!(listed.err.contains("“uno”"), "{listed:?}");
    let listed = world.run(&["chat", "-m", "/siblings"]);
    assert!(listed.code == Some(0) && !listed.err.contains("“uno”"), "{listed:?}");
}

#[test]
fn what_several_answers_cost_at_most_is_said_before_they_are_asked_for() {
    let (world, near) = (World::new(), server());
    let config = format!(
        "[model]\ndefault = \"told/m\"\n[providers.told]\nbase_url = \"http://127.0.0.1:{}\"\nplace = \"remote\"\n\
         dialect = \"anthropic_messages\"\n[models.\"told/m\"]\nwindow = 200000\noutput_limit = 32000\n\
         price_input = 10\nprice_output = 20\n",
        near.port
    );
    world.write("config.toml", &config);
    world.ok(&["chat", "-m", "hi"]);
    world.ok(&["chat", "-m", "/regenerate -n 2"]);
    // A limit that was asked for is reckoned with whole: two answers of 30 000 tokens at $20 a million.
    let limited = world.run(&["chat", "-m", "/regenerate -n 2", "--max-tokens", "30000"]);
    assert!(limited.code == Some(4) && limited.err.contains("2 requests of"), "{limited:?}");
    assert!(limited.err.contains("at most $1.2"), "{limited:?}");
    // The price is that of the longest answers, whatever is expected of them.
    let many = world.run(&["chat", "-m", "/regenerate -n 13"]);
    assert!(many.code == Some(4) && many.err.contains("at most $8.3"), "{many:?}");
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let limited = world.run(&["tree", "generate", "Tale", "-n", "2", "--max-tokens", "30000"]);
    assert!(limited.code == Some(4) && limited.err.contains("at most $1.2"), "{limited:?}");
}

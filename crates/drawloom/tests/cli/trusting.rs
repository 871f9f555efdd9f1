//! A text from outside taints no more once its owner answers for it (spec: security §3).

use serde_json::{Value, json};

use crate::laundering::{may_fetch, noted, turn};
use crate::terminal::Terminal;
use crate::trust::with_terminal;
use crate::web::{Site, answer, fetch, named, script, world};
use crate::world::{World, text};

/// What `/trust` with these arguments says in a session.
pub(crate) fn trust(world: &World, session: &str, arguments: &str) -> Value {
    let line = format!("/trust {arguments}");
    let project = text(&world.path("project"));
    let (code, said) = world.json(&["--workspace", &project, "chat", "--session", session, "-m", &line]);
    assert_eq!(code, Some(0), "{said}");
    said
}

/// The short ids of what taints, with who wrote each.
pub(crate) fn taints(said: &Value) -> Vec<(String, String)> {
    let word = |node: &Value, name: &str| node[name].as_str().unwrap().to_owned();
    let nodes = said["taints"].as_array().unwrap();
    nodes.iter().map(|node| (word(node, "short_id"), word(node, "author"))).collect()
}

fn all(said: &Value) -> String {
    let names: Vec<String> = taints(said).into_iter().map(|(short_id, _)| short_id).collect();
    names.join(" ")
}

#[test]
fn s3_what_the_owner_answers_for_taints_no_more_and_what_was_made_of_it_does() {
    let (site, world) = noted();
    assert!(!may_fetch(&world, &site, "first"), "the control");
    let found = taints(&trust(&world, "first", ""));
    let page = found.iter().find(|(_, author)| author == "web_fetch").unwrap().0.clone();

    let said = trust(&world, "first", &format!("{page} --yes"));
    assert_eq!(said["changed"][0]["short_id"], json!(page));
    assert!(taints(&said).iter().all(|(short_id, _)| *short_id != page), "{said}");
    assert!(!taints(&said).is_empty() && !may_fetch(&world, &site, "first"), "answers in its sight still do");

    let rest = all(&trust(&world, "first", ""));
    assert_eq!(taints(&trust(&world, "first", &format!("{rest} --yes"))), []);
    trust(&world, "first", &format!("{page} --off"));
    assert!(!may_fetch(&world, &site, "first"), "it is from outside again");

    let rest = all(&trust(&world, "first", ""));
    trust(&world, "first", &format!("{rest} --yes"));
    let project = text(&world.path("project"));
    let verified = world.json(&["--workspace", &project, "chat", "--session", "first", "-m", "/verify"]);
    assert_eq!(verified.1["status"], "valid", "{verified:?}");
    assert!(may_fetch(&world, &site, "first"), "in another process, from the next request on");
}

#[test]
fn s3_it_holds_on_each_branch_and_is_not_given_by_what_is_undone() {
    let (site, world) = noted();
    let project = text(&world.path("project"));
    world.ok(&["--workspace", &project, "chat", "--session", "first", "-m", "/fork aside"]);
    let rest = all(&trust(&world, "first", ""));
    trust(&world, "first", &format!("{rest} --yes"));
    world.ok(&["--workspace", &project, "chat", "--session", "first", "-m", "/undo"]);
    assert_eq!(taints(&trust(&world, "first:aside", "")), []);
    assert!(may_fetch(&world, &site, "first:aside"));
    assert_eq!(turn(&world, "first:aside", &[]), [""; 0]);
}

#[test]
fn s3_nobody_but_a_person_answers_for_a_text() {
    let (_site, world) = noted();
    let project = text(&world.path("project"));
    let page = taints(&trust(&world, "first", ""))[0].0.clone();
    let first = ["--workspace", &project, "chat", "--session", "first", "-m"];
    let (code, said) = world.json(&[&first[..], &[&format!("/trust {page}")]].concat());
    assert_eq!((code, said["error"]["code"].as_str()), (Some(4), Some("not_confirmed")), "{said}");
    // What a model says is a text, whatever it begins with.
    world.write("lines.jsonl", &format!("{}\n", json!({"text": format!("/trust {page} --yes")})));
    world.ok(&[&first[..], &["Say it."]].concat());
    assert!(all(&trust(&world, "first", "")).contains(&page));
    let (code, said) = world.json(&[&first[..], &[&format!("/trust {page} --off")]].concat());
    assert_eq!((code, said["error"]["code"].as_str()), (Some(4), Some("not_trusted")), "{said}");
}

#[test]
fn s3_the_whole_text_is_shown_before_the_owner_answers_for_it() {
    let long = (1..=500).map(|n| format!("line {n} of it\n")).collect::<String>();
    let site = Site::start(move |_| answer("text/plain", &long));
    let world = world(r#"["web_fetch"]"#, &named(&[&site]));
    assert_eq!(turn(&world, "first", &[&[fetch(&site.url("/page"))]]), [""; 0]);
    let tainting = taints(&trust(&world, "first", ""));
    let page = &tainting[0].0;
    let project = text(&world.path("project"));
    let line = format!("/trust {page}");
    let command = world.command(&["--workspace", &project, "chat", "--session", "first", "-m", &line]);
    let mut terminal = Terminal::start(with_terminal(&command));
    terminal.shows("Answer for what it says");
    let seen = terminal.plain();
    for shown in ["line 1 of it", "line 199 of it", "lines are not shown here", "line 500 of it"] {
        assert!(seen.contains(shown), "{shown}: {seen}");
    }
    assert!(!seen.contains("line 250 of it"), "{seen}");
    terminal.types("n\r");
    assert_eq!(terminal.ended(), Some(4));
    assert!(all(&trust(&world, "first", "")).contains(page.as_str()));
}

#[test]
fn s14_a_question_in_sight_of_a_text_from_outside_names_it() {
    let (site, world) = noted();
    let page = &taints(&trust(&world, "first", ""))[0].0;
    script(&world, &[&[fetch(&site.url("/made-up?d=secret"))]]);
    let project = text(&world.path("project"));
    let command = world.command(&["--workspace", &project, "chat", "--session", "first"]);
    let mut terminal = Terminal::start(with_terminal(&command));
    terminal.at_prompt();
    terminal.types("Go on.\r");
    terminal.shows(&format!("text from outside: {page}, web_fetch: [http://"));
    terminal.shows("[y/N, or n and why]");
    let (_, open) = world.json(&["approvals", "list"]);
    let named = open["approvals"][0]["tainted_by"][0].as_str().unwrap();
    assert!(named.starts_with(&format!("{page}, web_fetch: [http://")), "{open}");
    terminal.types("n\r");
    terminal.at_prompt();
    terminal.types("/quit\r");
    assert_eq!(terminal.ended(), Some(0));
}

//! What looks like a secret is masked in what tools, files and pages bring, and in nothing that a person says (spec:
//! security §11).

use std::fs;

use serde_json::{Value, json};

use crate::laundering::turn;
use crate::terminal::Terminal;
use crate::trust::with_terminal;
use crate::web::{Site, answer, fetch, named, world};
use crate::world::{World, text};

const TOOLS: &str = r#"["edit", "exec", "grep", "patch", "read", "web_fetch", "write"]"#;

fn body(length: usize) -> String {
    "q7Zk2VbN9xR4tLw8Ys3HdJ6mPc5GfT1aUeKoBiQ0".chars().cycle().take(length).collect()
}

/// A secret of each of twelve formats. Put together here, so that none stands in a file.
pub(crate) fn canaries() -> Vec<String> {
    let key = format!("-----BEGIN {0} KEY-----\n{1}\n{1}\n-----END {0} KEY-----", "PRIVATE", body(64));
    vec![
        format!("AK{}", "IAQ7ZK2VBNXR4TLWYS"),
        format!("gh{}{}", "p_", body(36)),
        format!("gl{}{}", "pat-", body(20)),
        format!("xo{}{}", "xb-248163264128-", body(24)),
        format!("sk_{}{}", "live_", body(24)),
        format!("sk{}{}", "-proj-", body(64)),
        format!("sk{}{}", "-ant-api03-", body(80)),
        format!("AI{}{}", "za", body(35)),
        format!("np{}{}", "m_", body(36)),
        format!("S{}{}.{}", "G.", body(22), body(43)),
        format!("{}{}.{0}{}.{}", "eyJ", body(20), body(30), body(43)),
        key,
    ]
}

fn github() -> String {
    canaries()[1].clone()
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

fn in_project(config: &str) -> World {
    world(TOOLS, config)
}

/// Everything that was sent and said in a session.
fn told(world: &World, session: &str) -> String {
    let show = world.json(&["--workspace", &text(&world.path("project")), "sessions", "show", session]).1;
    let tree = show["tree"].as_str().unwrap().to_owned();
    world.ok(&["tree", "export", &tree, "--with-context", "-o", "-"])
}

#[test]
fn s11_twelve_formats_are_masked_at_every_entry() {
    let all: String = canaries().iter().map(|secret| format!("it is {secret} here\n")).collect();
    let page = all.clone();
    let site = Site::start(move |_| answer("text/plain", &page));
    let world = in_project(&named(&[&site]));
    for name in ["all.txt", "AGENTS.md"] {
        fs::write(world.path("project").join(name), &all).unwrap();
    }
    let entries = [
        ("read", call("read", &json!({"path": "all.txt"}))),
        ("grep", call("grep", &json!({"pattern": "it is|^q7"}))),
        ("page", fetch(&site.url("/page"))),
        ("output", call("exec", &json!({"command": "cat all.txt; dd if=all.txt bs=5 status=none >&2"}))),
    ];
    for (session, entry) in entries {
        turn(&world, session, &[&[entry]]);
        let told = told(&world, session);
        for secret in canaries() {
            for part in secret.lines().filter(|line| !line.starts_with('-')) {
                assert!(!told.contains(part), "{session}: {part}");
            }
        }
        assert!(told.matches("⟦secret:guessed.").count() >= 12, "{session}: {told}");
    }
}

#[test]
fn s11_a_file_keeps_its_secret_whatever_tool_changes_it() {
    let world = in_project("");
    let file = world.path("project/conf.txt");
    fs::write(&file, format!("TOKEN={}\nname = one\n", github())).unwrap();
    let is = |name: &str| {
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("TOKEN={}\nname = {name}\n", github()));
    };
    let read = call("read", &json!({"path": "conf.txt"}));
    turn(&world, "read", &[std::slice::from_ref(&read)]);
    let read_as = told(&world, "read");
    let at = read_as.find("⟦secret:guessed.github.").unwrap();
    let shown = &read_as[at..=at + read_as[at..].find('⟧').unwrap() + 2];
    let mark = format!("TOKEN={shown}\nname = ");
    let edit = json!({"path": "conf.txt", "old": format!("{mark}one"), "new": format!("{mark}two")});
    assert_eq!(turn(&world, "edit", &[std::slice::from_ref(&read), &[call("edit", &edit)]]), [""; 0]);
    is("two");
    let write = json!({"path": "conf.txt", "content": format!("{mark}three\n")});
    assert_eq!(turn(&world, "write", &[std::slice::from_ref(&read), &[call("write", &write)]]), [""; 0]);
    is("three");
    let patch = format!(
        "*** Begin Patch\n*** Update File: conf.txt\n@@\n TOKEN={shown}\n-name = three\n+name = four\n*** End Patch\n"
    );
    turn(&world, "patch", &[&[read], &[call("patch", &json!({"patch": patch}))]]);
    is("four");
    // Where the secret is not, its mark is refused.
    let other = call("write", &json!({"path": "other.txt", "content": format!("{mark}one\n")}));
    turn(&world, "other", &[&[other]]);
    assert!(!world.path("project/other.txt").exists());
    assert!(told(&world, "other").contains("stands for a secret"));
}

/// The page is given in two parts, and a secret stands where it is cut.
#[test]
fn s11_a_secret_is_masked_where_a_page_is_cut() {
    let page = format!("{} {} end\n", "word ".repeat(3_996).trim_end(), github());
    let site = Site::start(move |_| answer("text/plain", &page));
    let world = in_project(&named(&[&site]));
    let parts = [0, 20_000].map(|from| call("web_fetch", &json!({"url": site.url("/page"), "from": from})));
    turn(&world, "parts", &[&parts]);
    let told = told(&world, "parts");
    for at in [4, 20, 30] {
        assert!(!told.contains(&github()[at..at + 6]), "{at}: {told}");
    }
    assert!(told.contains("⟦secret:guessed."), "{told}");
}

#[test]
fn s11_what_a_person_types_is_sent_as_it_is_and_said() {
    let world = in_project("");
    world.write("lines.jsonl", "{\"text\": \"Yes.\"}\n");
    let project = text(&world.path("project"));
    let said = world.run(&["--workspace", &project, "chat", "-m", &format!("It is {}.", github())]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("looks like a secret (guessed.github)"), "{said:?}");
    assert!(told(&world, "main").contains(&github()));
}

#[test]
fn s11_at_a_terminal_a_person_is_asked_and_may_send_a_mark() {
    let world = in_project("");
    world.write("lines.jsonl", "{\"text\": \"Yes.\"}\n");
    let project = text(&world.path("project"));
    let mut terminal = Terminal::start(with_terminal(&world.command(&["--workspace", &project, "chat"])));
    terminal.at_prompt();
    terminal.types(&format!("It is {}.\r", github()));
    terminal.shows("Send a mark in its place?");
    terminal.types("n\r");
    terminal.shows("Send it as it was typed?");
    terminal.types("n\r");
    terminal.shows("the text was not sent");
    terminal.at_prompt();
    terminal.types(&format!("It is {}.\r", github()));
    terminal.until("it is asked again", |seen| {
        seen.contents().matches("Send a mark in its place? [y/N]").count() == 2
            && seen.contents().trim_end().ends_with("[y/N]")
    });
    terminal.types("y\r");
    terminal.shows("Yes.");
    terminal.at_prompt();
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    let told = told(&world, "main");
    assert!(told.contains("It is ⟦secret:guessed.github.") && !told.contains(&github()), "{told}");
}

#[test]
fn s11_the_owner_may_turn_guesses_off_and_an_attached_file_is_masked() {
    for (config, is_masked) in [("", true), ("[safety]\nguess_secrets = false\n", false)] {
        let world = in_project(config);
        let file = world.path("project/note.txt");
        fs::write(&file, format!("It is {}.\n", github())).unwrap();
        world.write("lines.jsonl", "{\"text\": \"Yes.\"}\n");
        let project = text(&world.path("project"));
        let said = world.run(&[
            "--workspace",
            &project,
            "chat",
            "--session",
            "file",
            "--file",
            &text(&file),
            "-m",
            "Look.",
        ]);
        assert_eq!(
            (said.code, said.err.contains("was masked in note.txt")),
            (Some(0), is_masked),
            "{said:?}"
        );
        assert_eq!(told(&world, "file").contains(&github()), !is_masked);
        turn(&world, "read", &[&[call("read", &json!({"path": "note.txt"}))]]);
        assert_eq!(told(&world, "read").contains(&github()), !is_masked);
    }
}

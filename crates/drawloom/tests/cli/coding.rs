//! A repository with a failing test, mended by an agent: searched, patched, tried, killed in between, committed, and taken
//! back (spec: agent §1, §3).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::everyday::git;
use crate::exec::{exec, world_with};
use crate::file_tools::listed;
use crate::loom_tools::script;
use crate::package_caches::sysroot;
use crate::tools::{calls, nodes};
use crate::world::{World, lacks, text};

const FILES: [(&str, &str); 5] = [
    ("Cargo.toml", "[package]\nname = \"looms\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
    (".gitignore", "/target\nCargo.lock\n"),
    (
        "src/lib.rs",
        "//! Threads and what they weigh.\n\npub fn threads(width: u32, per: u32) -> u32 {\n    width + per\n}\n\n\
         pub fn weight(threads: u32) -> u32 {\n    threads / 2\n}\n",
    ),
    (
        "src/main.rs",
        "use std::io::Write as _;\n\nfn main() {\n    let server = std::net::TcpListener::bind(\"127.0.0.1:8000\").unwrap();\n    \
         println!(\"listening\");\n    for connection in server.incoming() {\n        \
         let said = looms::threads(6, 7).to_string();\n        \
         let head = format!(\"HTTP/1.0 200 OK\\r\\ncontent-length: {}\\r\\n\\r\\n\", said.len());\n        \
         connection.unwrap().write_all((head + &said).as_bytes()).unwrap();\n    }\n}\n",
    ),
    (
        "tests/cloth.rs",
        "#[test]\nfn a_cloth_has_threads() {\n    assert_eq!(looms::threads(6, 7), 42);\n}\n\n\
         #[test]\nfn threads_weigh() {\n    assert_eq!(looms::weight(42), 14);\n}\n",
    ),
];

/// A fresh machine may have no curl.
const CLIENT: &str = "if command -v curl > /dev/null; then curl -sS http://127.0.0.1:8000/; else perl -MIO::Socket::INET -e \
                      'my $s=IO::Socket::INET->new(PeerAddr=>\"127.0.0.1:8000\"); print((<$s>)[-1])'; fi";

/// One patch over two files; where `old` stands nowhere it misses.
fn patch(old: &str) -> Value {
    let patch = format!(
        "*** Begin Patch\n*** Update File: src/lib.rs\n@@\n-    {old}\n+    width * per\n*** Add File: NOTES.md\n+Threads \
         are counted by area.\n*** End Patch\n"
    );
    json!({"name": "patch", "arguments": {"patch": patch}})
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

fn chat(world: &World, project: &Path, said: &str) -> Value {
    let (code, answer) = world.json(&["--workspace", &text(project), "chat", "-m", said]);
    assert_eq!((code, answer["text"].as_str()), (Some(0), Some("Done.")), "{answer}");
    assert!(answer["denied"].as_array().unwrap().is_empty(), "nothing is asked: {answer}");
    answer
}

/// Files of the repository that are neither git's nor made by a build.
fn files(project: &Path) -> Vec<(String, u32, String)> {
    let is_ours =
        |path: &str| !path.starts_with(".git/") && !path.starts_with("target") && path != "Cargo.lock";
    listed(project).into_iter().filter(|(path, ..)| path != ".git" && is_ours(path)).collect()
}

fn repository(world: &World) -> PathBuf {
    let project = world.path("looms");
    for (path, holds) in FILES {
        fs::create_dir_all(project.join(path).parent().unwrap()).unwrap();
        fs::write(project.join(path), holds).unwrap();
    }
    git(&project, &["init", "-q"]);
    git(&project, &["config", "user.name", "A"]);
    git(&project, &["config", "user.email", "a@example.org"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "one"]);
    project
}

#[test]
fn a_failing_test_is_mended_over_a_kill_and_everything_is_explained_and_taken_back() {
    if lacks(&["git", "perl"]) {
        return;
    }
    let sysroot = sysroot();
    let cargo = format!("PATH={sysroot}/bin:$PATH; export CARGO_TERM_COLOR=never; cargo");
    let tests = || exec(&format!("{cargo} test --offline 2>&1"));
    let tools = r#"["edit", "exec", "glob", "grep", "patch", "process", "read", "write"]"#;
    let world = world_with(&[], &format!("[exec]\ntoolchains = [{sysroot:?}]\n"));
    let config = world.read("config.toml").replace(r#"["exec", "process", "read", "write"]"#, tools);
    world.write("config.toml", &config);
    let project = repository(&world);
    let before = files(&project);

    // Looked at, patched at the second try, tried, mended, tried again, and served.
    let background = format!("{cargo} run --offline --quiet 2>&1");
    script(
        &world,
        &[
            calls(&json!([
                call("read", &json!({"path": "src/lib.rs"})),
                call("read", &json!({"path": "tests/cloth.rs"})),
                call("grep", &json!({"pattern": "threads\\(", "context": 1})),
                call("glob", &json!({"pattern": "**/*.rs"})),
            ])),
            json!({"tool_calls": [tests()], "expect": ["width + per", "looms::weight(42), 14", "src/main.rs"]}),
            json!({"tool_calls": [patch("width - per")], "expect": ["exit 101", "left: 13", "right: 42"]}),
            json!({"tool_calls": [patch("width + per")], "expect": ["width + per", "differs"]}),
            json!({"tool_calls": [tests()], "expect": ["NOTES.md"]}),
            json!({
                "tool_calls": [call("edit", &json!({"path": "src/lib.rs", "old": "threads / 2", "new": "threads / 3"}))],
                "expect": ["exit 101", "1 passed; 1 failed"],
            }),
            calls(&json!([tests(), call("exec", &json!({"command": background, "background": true}))])),
            calls(&json!([call("process", &json!({"process": 1, "wait_for": "listening", "timeout": 120}))])),
            calls(&json!([exec(CLIENT)])),
            json!({"text": "Done.", "expect": ["2 passed; 0 failed", "listening", "[output]\n42"]}),
        ],
    );
    chat(&world, &project, "Make the tests pass.");
    assert!(std::net::TcpStream::connect("127.0.0.1:8000").is_err(), "closed to this machine, and ended");

    // Killed while it tries once more.
    let log = project.join("log.txt");
    script(&world, &[calls(&json!([exec(&format!("{cargo} test --offline > log.txt 2>&1; sleep 300"))]))]);
    let workspace = text(&project);
    let mut child = world.command(&["--workspace", &workspace, "chat", "-m", "Try again."]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !fs::read_to_string(&log).is_ok_and(|log| log.contains("test result: ok")) {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "the tests do not run");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();

    // The next process knows that it does not know, tries again and commits.
    let commit =
        "rm log.txt; git add -A && git commit -q -m 'Count threads by area' && git status --porcelain";
    script(
        &world,
        &[
            json!({"tool_calls": [tests(), exec(commit)], "expect": ["outcome of this call is unknown"]}),
            json!({"text": "Done.", "expect": ["2 passed; 0 failed", "exit 0"]}),
        ],
    );
    chat(&world, &project, "Go on, and commit it.");
    assert_eq!(git(&project, &["log", "--format=%s"]), "Count threads by area\none\n");
    assert_eq!(git(&project, &["status", "--porcelain"]), "");
    let status = git(&project, &["show", "--stat", "--format=", "HEAD"]);
    assert!(
        status.contains("NOTES.md") && status.contains("src/lib.rs") && !status.contains("log.txt"),
        "{status}"
    );

    // Each step is told: in the tree, as a difference, and as what was sent.
    let authors: Vec<String> =
        nodes(&world).iter().map(|node| node["author"].as_str().unwrap().to_owned()).collect();
    for (tool, times) in
        [("read", 2), ("grep", 1), ("glob", 1), ("patch", 2), ("edit", 1), ("exec", 8), ("process", 1)]
    {
        assert_eq!(authors.iter().filter(|author| *author == tool).count(), times, "{tool}: {authors:?}");
    }
    let difference = world.ok(&["--workspace", &workspace, "chat", "-m", "/diff session"]);
    for line in ["-    width + per", "+    width * per", "+    threads / 3", "NOTES.md"] {
        assert!(difference.contains(line), "{line}: {difference}");
    }
    let tree = world.json(&["tree", "list"]).1["trees"][0]["short_id"].as_str().unwrap().to_owned();
    let drawn = world.ok(&["tree", "show", &tree]);
    assert!(drawn.contains("Make the tests pass.") && drawn.contains("unknown"), "{drawn}");
    let answers: Vec<Value> =
        nodes(&world).into_iter().filter(|node| node["author"] == "assistant").collect();
    assert!(answers.len() >= 10, "{answers:?}");
    for answer in answers {
        let sent = world.ok(&["context", "show", answer["short_id"].as_str().unwrap()]);
        assert!(sent.contains("schemas") && sent.contains("history"), "{answer}: {sent}");
    }
    assert!(world.ok(&["tree", "verify", &tree]).starts_with("valid"));

    // And back, turn by turn.
    for _ in 0..3 {
        world.ok(&["--workspace", &workspace, "chat", "-m", "/undo --files"]);
    }
    assert_eq!(files(&project), before);
}

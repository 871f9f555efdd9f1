//! Secrets that came in by every way there is stand nowhere afterwards: neither in the home, its log, what was printed, an
//! export and a backup, nor in what was sent, which is read back byte for byte (spec: security §11).

use std::fs;

use serde_json::{Value, json};

use crate::guessing::canaries;
use crate::laundering::{call, read};
use crate::secrets::is_below;
use crate::server::Server;
use crate::web::{Site, answer, fetch, named, script, world};
use crate::world::{Run, World, text};

/// The value of a key that the home holds.
const KNOWN: &str = "canary-0123456789-of-the-owner";
/// What stands beside each secret, and is kept.
const BESIDE: &str = "plainly-kept";

/// What must stand nowhere: the known one, in the encodings it is looked for in, and each line of those that are guessed.
fn secrets() -> Vec<String> {
    let guessed = canaries();
    let lines = guessed.iter().flat_map(|secret| secret.lines()).filter(|line| !line.starts_with('-'));
    known().into_iter().chain(lines.map(str::to_owned)).collect()
}

/// [`KNOWN`] as it is, in percent code and in Base64.
fn known() -> [String; 3] {
    [KNOWN.to_owned(), KNOWN.replace('-', "%2D"), "Y2FuYXJ5LTAxMjM0NTY3ODktb2YtdGhlLW93bmVy".to_owned()]
}

/// A text that holds all of them.
fn hostile() -> String {
    known().into_iter().chain(canaries()).map(|secret| format!("{BESIDE} {secret} here\n")).collect()
}

fn assert_none(place: &str, told: &[u8]) {
    for secret in secrets() {
        let told = told.windows(secret.len()).position(|window| window == secret.as_bytes()).map(|at| {
            String::from_utf8_lossy(&told[at.saturating_sub(300)..(at + 100).min(told.len())]).into_owned()
        });
        assert_eq!(told, None, "{place} holds {secret}");
    }
}

/// A way in: its session, further arguments, and what the model calls.
type Way<'a> = (&'a str, &'a [&'a str], &'a [&'a [Value]]);

/// One conversation for each way in, in a home that logs all it can.
struct Entries {
    world: World,
    _page: Site,
    _server: Server,
}

/// Files of the workspace in which the secrets stand before.
const SOURCES: [&str; 4] = ["AGENTS.md", "all.txt", "environment", "say.json"];

impl Entries {
    fn new() -> Self {
        let (page, error) = (hostile(), hostile());
        let site = Site::start(move |path| match path {
            "/error" => answer("text/plain", &page).replace("200 OK", "500 Broken"),
            _ => answer("text/html", &format!("<p>{}</p>", page.replace('\n', "<br>"))),
        });
        // It refuses every request, and quotes what it does not like.
        let server = Server::start(move |path, _| {
            path.ends_with("/chat/completions")
                .then(|| json!({"error": {"message": error, "type": "invalid_request_error"}}).to_string())
        });
        let more = format!(
            "[providers.box]\nbase_url = \"{}\"\nplace = \"local\"\n[log]\nlevel = \"trace\"\n\
             [tools.teller]\ncommand = \"cat say.json\"\ndescription = \"Tells.\"\neffects = [\"read\"]\n",
            server.base()
        );
        let tools = r#"["edit", "exec", "grep", "process", "read", "teller", "web_fetch", "write"]"#;
        let world = world(tools, &(named(&[&site]) + &more));
        world.write("keys.toml", &format!("[providers.box]\nkey = \"{KNOWN}\"\n"));
        for name in ["AGENTS.md", "all.txt"] {
            fs::write(world.path("project").join(name), hostile()).unwrap();
        }
        fs::write(world.path("project/say.json"), json!(hostile()).to_string()).unwrap();
        let numbered = known().into_iter().chain(canaries()).enumerate();
        let variables: String =
            numbered.map(|(nth, secret)| format!("export PLACE_{nth}='{BESIDE} {secret}'\n")).collect();
        fs::write(world.path("project/environment"), variables).unwrap();
        fs::write(world.path("here/attached.txt"), hostile()).unwrap();
        Self { world, _page: site, _server: server }
    }

    fn chat(&self, session: &str, more: &[&str], batches: &[&[Value]]) -> Run {
        script(&self.world, batches);
        let project = text(&self.world.path("project"));
        let words = ["--workspace", &project, "--json", "chat", "--session", session, "-m", "Look."];
        self.world.run(&[&words, more].concat())
    }

    /// The nodes that a model wrote in a session.
    fn answers(&self, session: &str) -> (String, Vec<String>) {
        let project = text(&self.world.path("project"));
        let (_, found) = self.world.json(&["--workspace", &project, "sessions", "show", session]);
        let tree = found["tree"].as_str().unwrap_or_else(|| panic!("{session}: {found}")).to_owned();
        let (_, shown) = self.world.json(&["tree", "show", &tree, "--all"]);
        let nodes = shown["nodes"].as_array().unwrap().iter().filter(|node| node["role"] == "assistant");
        (tree.clone(), nodes.map(|node| node["id"].as_str().unwrap().to_owned()).collect())
    }
}

#[test]
fn s11_secrets_that_came_in_by_any_way_stand_nowhere_and_what_was_sent_is_read_back() {
    let entries = Entries::new();
    let (world, site) = (&entries.world, &entries._page);
    let exec = |line: &str| call("exec", &json!({"command": line}));
    let background = call("exec", &json!({"command": "cat all.txt; read end", "background": true}));
    let looks = call("process", &json!({"process": 1, "wait_for": "here\n", "kill": true}));
    let attached = text(&world.path("here/attached.txt"));
    let ways: [Way<'_>; 11] = [
        ("read", &[], &[&[read("all.txt")]]),
        ("grep", &[], &[&[call("grep", &json!({"pattern": "here|plainly|q7"}))]]),
        ("output", &[], &[&[exec("cat all.txt; dd if=all.txt bs=5 status=none >&2")]]),
        ("environment", &[], &[&[exec(". ./environment; env")]]),
        ("background", &[], &[&[background], &[looks]]),
        ("teller", &[], &[&[call("teller", &json!({}))]]),
        ("page", &[], &[&[fetch(&site.url("/page"))]]),
        ("error", &[], &[&[fetch(&site.url("/error"))]]),
        ("miss", &[], &[&[call("edit", &json!({"path": "all.txt", "old": "plainly", "new": "x"}))]]),
        ("file", &["--file", &attached], &[]),
        ("provider", &["--model", "box/m"], &[]),
    ];
    for (session, more, batches) in ways {
        let run = entries.chat(session, more, batches);
        assert_eq!(run.code == Some(0), session != "provider", "{session}: {run:?}");
        assert_none(&format!("what {session} printed"), format!("{}{}", run.out, run.err).as_bytes());
        if session == "provider" {
            assert!(run.out.contains(BESIDE), "the control: {run:?}");
            continue;
        }
        let (tree, answers) = entries.answers(session);
        let export = world.ok(&["tree", "export", &tree, "--with-context", "-o", "-"]);
        assert!(export.contains(BESIDE) && export.contains("⟦secret:guessed."), "the control: {session}");
        assert_none(&format!("the export of {session}"), export.as_bytes());
        assert!(answers.len() >= batches.len(), "{session}: {answers:?}");
        for node in answers {
            let sent = world.ok(&["context", "show", &node, "--text", "--json"]);
            assert_none(&format!("what was sent in {session}"), sent.as_bytes());
            let (code, read_back) = world.json(&["context", "replay", &node, "--dry-run"]);
            assert_eq!((code, &read_back["identical"]), (Some(0), &json!(true)), "{session}: {read_back}");
        }
    }
    is_nowhere(world);
}

/// The key itself stands in the one file that holds keys, and what a person put into the workspace stays there.
fn is_nowhere(world: &World) {
    let backup = world.path("kept.backup");
    world.ok(&["backup", "-o", &text(&backup)]);
    assert!(is_below(&world.home(), KNOWN), "the control");
    fs::remove_file(world.home().join("keys.toml")).unwrap();
    // Files of the workspace as they stood when commands began, by which they are given back.
    fs::remove_dir_all(world.home().join("cache/checkpoints")).unwrap();
    for name in SOURCES {
        fs::remove_file(world.path("project").join(name)).unwrap();
    }
    for secret in secrets() {
        for folder in [world.home(), world.path("project"), world.path("user")] {
            assert!(!is_below(&folder, &secret), "{} holds {secret}", folder.display());
        }
    }
    assert_none("the backup", &fs::read(&backup).unwrap());
    // Another home, which knows no key, has what the backup held: nothing is masked as it is shown.
    let other = World::new();
    other.ok(&["restore", &text(&backup)]);
    let (_, trees) = other.json(&["tree", "list"]);
    let trees = trees["trees"].as_array().unwrap();
    assert!(trees.len() >= 10, "{trees:?}");
    for tree in trees {
        let export =
            other.ok(&["tree", "export", tree["short_id"].as_str().unwrap(), "--with-context", "-o", "-"]);
        assert_none("an export of the backup", export.as_bytes());
    }
}

//! The conformance suite of MCP (npm `@modelcontextprotocol/conformance`), with the server and the client of this crate: the
//! examples `conformance_server` and `conformance_client`.
//!
//! `tests/conformance` pins it with all that it needs. `DRAWLOOM_MCP_CONFORMANCE` names its script, as
//! `…/node_modules/@modelcontextprotocol/conformance/dist/index.js`, and
//! `DRAWLOOM_NODE` a Node of version 22 or later. These tests are ignored where they are not there; CI installs both and
//! runs them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs, thread};

use serde_json::Value;

/// A scenario with the checks of it that pass, each counted once, and why others do not; nothing where all do.
type Row = (&'static str, usize, &'static str);

const NO_RESOURCES: &str = "the server offers no resources";
const NO_PROMPTS: &str = "the server offers no prompts";
const NO_NOTIFICATIONS: &str = "tools tell nothing before they answer: neither logs nor progress";
const NO_REQUESTS: &str = "the server asks nothing of its client: neither sampling nor elicitation";

const SERVER: [Row; 32] = [
    ("server-initialize", 1, ""),
    ("ping", 1, ""),
    ("tools-list", 1, ""),
    ("tools-call-simple-text", 1, ""),
    ("tools-call-image", 1, ""),
    ("tools-call-audio", 1, ""),
    ("tools-call-embedded-resource", 1, ""),
    ("tools-call-mixed-content", 1, ""),
    ("tools-call-error", 1, ""),
    ("json-schema-2020-12", 4, ""),
    ("server-sse-polling", 2, "no tool closes its stream before it answers"),
    ("server-sse-multiple-streams", 2, ""),
    ("dns-rebinding-protection", 2, ""),
    ("logging-set-level", 0, NO_NOTIFICATIONS),
    ("tools-call-with-logging", 0, NO_NOTIFICATIONS),
    ("tools-call-with-progress", 0, NO_NOTIFICATIONS),
    ("tools-call-sampling", 0, NO_REQUESTS),
    ("tools-call-elicitation", 0, NO_REQUESTS),
    ("elicitation-sep1034-defaults", 0, NO_REQUESTS),
    ("elicitation-sep1330-enums", 0, NO_REQUESTS),
    ("completion-complete", 0, NO_PROMPTS),
    ("prompts-list", 0, NO_PROMPTS),
    ("prompts-get-simple", 0, NO_PROMPTS),
    ("prompts-get-with-args", 0, NO_PROMPTS),
    ("prompts-get-embedded-resource", 0, NO_PROMPTS),
    ("prompts-get-with-image", 0, NO_PROMPTS),
    ("resources-list", 0, NO_RESOURCES),
    ("resources-read-text", 0, NO_RESOURCES),
    ("resources-read-binary", 0, NO_RESOURCES),
    ("resources-templates-read", 0, NO_RESOURCES),
    ("resources-subscribe", 0, NO_RESOURCES),
    ("resources-unsubscribe", 0, NO_RESOURCES),
];

const NO_PERSON: &str = "a login is a person's, at a browser: no grant without one is asked for";

const CLIENT: [Row; 26] = [
    ("initialize", 1, ""),
    ("tools_call", 1, ""),
    ("elicitation-sep1034-client-defaults", 5, ""),
    ("sse-retry", 3, ""),
    ("auth/metadata-default", 10, ""),
    ("auth/metadata-var1", 10, ""),
    ("auth/metadata-var2", 10, ""),
    ("auth/metadata-var3", 10, ""),
    (
        "auth/basic-cimd",
        10,
        "no document of Drawloom's at an address describes it as a client: it registers itself",
    ),
    ("auth/scope-from-www-authenticate", 11, ""),
    ("auth/scope-from-scopes-supported", 11, ""),
    ("auth/scope-omitted-when-undefined", 11, ""),
    ("auth/scope-step-up", 12, ""),
    ("auth/scope-retry-limit", 10, ""),
    ("auth/token-endpoint-auth-basic", 15, ""),
    ("auth/token-endpoint-auth-post", 15, ""),
    ("auth/token-endpoint-auth-none", 15, ""),
    ("auth/pre-registration", 10, ""),
    (
        "auth/2025-03-26-oauth-metadata-backcompat",
        1,
        "an issuer that describes itself as another one is not believed (RFC 8414, section 3.3)",
    ),
    (
        "auth/2025-03-26-oauth-endpoint-fallback",
        0,
        "an issuer that does not say that it protects logins (PKCE) is not asked",
    ),
    ("auth/resource-mismatch", 2, ""),
    ("auth/offline-access-scope", 11, ""),
    ("auth/offline-access-not-supported", 11, ""),
    ("auth/client-credentials-jwt", 8, NO_PERSON),
    ("auth/client-credentials-basic", 8, NO_PERSON),
    ("auth/cross-app-access-complete-flow", 8, NO_PERSON),
];

fn named(variable: &str) -> OsString {
    env::var_os(variable).unwrap_or_else(|| panic!("{variable} is not set"))
}

/// The suite, with these arguments.
fn suite(arguments: &[&str]) -> Command {
    let mut command = Command::new(named("DRAWLOOM_NODE"));
    command.arg(named("DRAWLOOM_MCP_CONFORMANCE")).args(arguments);
    command
}

/// An example, which is built with the tests of this crate.
fn example(name: &str) -> PathBuf {
    let tests = env::current_exe().unwrap();
    let built = tests.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(built.is_file(), "`cargo build -p drawloom-mcp --examples` makes {}", built.display());
    built
}

/// The checks of a scenario: names of those that passed, and those that did not with why.
#[derive(Debug, Default)]
struct Checks {
    passed: BTreeSet<String>,
    failed: Vec<String>,
}

/// The checks of the one result in or below a folder.
fn checks(folder: &Path) -> Checks {
    let mut below = vec![folder.to_owned()];
    let mut found = Checks::default();
    while let Some(folder) = below.pop() {
        below.extend(
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()),
        );
        let Ok(told) = fs::read(folder.join("checks.json")) else { continue };
        for check in serde_json::from_slice::<Vec<Value>>(&told).unwrap() {
            let id = check["id"].as_str().unwrap().to_owned();
            match check["status"].as_str() {
                Some("SUCCESS") => drop(found.passed.insert(id)),
                Some("INFO" | "SKIPPED") => {}
                _ => found.failed.push(format!("{id}: {}", check["errorMessage"])),
            }
        }
    }
    found
}

/// Compares what the suite found with a table. Its rows are all scenarios that the suite has.
fn compare(heading: &str, rows: &[Row], found: &BTreeMap<&str, Checks>) {
    let listed = String::from_utf8(suite(&["list"]).output().unwrap().stdout).unwrap();
    let of_kind = listed.split("\n\n").find(|part| part.trim_start().starts_with(heading));
    let lines = of_kind.unwrap_or_else(|| panic!("{listed}")).lines();
    let there: BTreeSet<&str> =
        lines.filter_map(|line| line.strip_prefix("  - ")?.split(' ').next()).collect();
    assert_eq!(rows.iter().map(|row| row.0).collect::<BTreeSet<_>>(), there);
    let mut wrong = Vec::new();
    for (scenario, passed, why) in rows {
        let checks = &found[scenario];
        if checks.passed.len() != *passed || checks.failed.is_empty() != why.is_empty() {
            wrong.push(format!("{scenario}: {} passed: {checks:?}", checks.passed.len()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The server, for as long as it lives.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs the conformance suite of MCP, in Node: .ci/run runs it"]
fn the_server_passes_the_conformance_suite_but_for_what_is_named() {
    let mut served =
        Served(Command::new(example("conformance_server")).stdout(Stdio::piped()).spawn().unwrap());
    let mut url = String::new();
    BufReader::new(served.0.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut command = suite(&["server", "--url", url.trim(), "--suite", "all", "-o"]);
    let ran = command.arg(folder.path()).output().unwrap();
    let results: Vec<PathBuf> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let found = SERVER.map(|(scenario, ..)| {
        // The day stands behind the name.
        let is_of_it = |path: &&PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            let rest = name.strip_prefix(&format!("server-{scenario}-")).map(str::to_owned);
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let result = results.iter().find(is_of_it).unwrap_or_else(|| panic!("{scenario}: {ran:?}"));
        (scenario, checks(result))
    });
    compare("Server scenarios", &SERVER, &found.into());
}

#[test]
#[ignore = "needs the conformance suite of MCP, in Node: .ci/run runs it"]
fn the_client_passes_the_conformance_suite_but_for_what_is_named() {
    let client = example("conformance_client");
    let folder = tempfile::tempdir().unwrap();
    let run = |scenario: &'static str| {
        let results = folder.path().join(scenario);
        let mut command = suite(&["client", "--scenario", scenario, "--timeout", "60000", "--command"]);
        let ran = command.arg(&client).arg("-o").arg(&results).output().unwrap();
        assert!(results.is_dir(), "{scenario}: {ran:?}");
        let mut checks = checks(&results);
        if !ran.status.success() {
            checks.failed.push(ran.status.to_string());
        }
        (scenario, checks)
    };
    let found = thread::scope(|scope| {
        let halves = CLIENT.chunks(CLIENT.len().div_ceil(2)).collect::<Vec<_>>();
        let running: Vec<_> = halves
            .into_iter()
            .map(|rows| scope.spawn(|| rows.iter().map(|row| run(row.0)).collect::<Vec<_>>()))
            .collect();
        running.into_iter().flat_map(|half| half.join().unwrap()).collect()
    });
    compare("Client scenarios", &CLIENT, &found);
}

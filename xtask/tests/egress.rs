//! Nothing opens a socket, listens on one or looks a name up but the gate (`crates/egress`), and a few places with a reason (spec: security
//! §10; ARCHITECTURE.md, *Invariants*). Programs that it starts are named, too: each of them opens what it likes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::path::{Path, PathBuf};

/// What opens a socket, listens on the network, looks a name up, or makes something that does.
const OPENERS: [&str; 23] = [
    "TcpListener::bind",
    "TcpStream::connect",
    "TcpSocket::new",
    "UdpSocket::bind",
    "UnixStream::connect",
    "UnixListener::bind",
    "UnixDatagram::",
    "to_socket_addrs",
    "ToSocketAddrs",
    "lookup_host",
    "reqwest::",
    "hyper::",
    "tokio_postgres::connect",
    "config.connect(",
    "net::connect(",
    "net::socket",
    "socket_with(",
    "connect_unix",
    "connect_addr",
    "socket2::",
    "libc::socket",
    "libc::connect",
    "libc::getaddrinfo",
];

/// Files that may, with what each of them opens.
const ALLOWED: &[(&str, &[&str], &str)] = &[
    (
        "crates/agent/src/session/steering/attached.rs",
        &["UnixStream::connect"],
        "the socket of a session, in the home",
    ),
    ("crates/agent/src/session/steering/listener.rs", &["UnixListener::bind"], "the other end of it"),
    ("crates/store/src/postgres/session.rs", &["config.connect("], "the database that the owner named"),
    (
        "crates/sandbox/src/helper/attempts.rs",
        &["TcpStream::connect", "UdpSocket::bind", "UnixStream::connect"],
        "attempts of the probe to get out, which have to fail",
    ),
    (
        "crates/sandbox/src/supervisor/probe.rs",
        &["TcpListener::bind", "UdpSocket::bind", "UnixListener::bind"],
        "what those attempts would reach",
    ),
    (
        "crates/sandbox/src/published_ports.rs",
        &["TcpListener::bind"],
        "ports of a session that the owner was asked for, at 127.0.0.1",
    ),
    (
        "crates/sandbox/src/helper/own_network.rs",
        &["TcpListener::bind"],
        "the proxy's place in a network of a command's own",
    ),
    ("crates/sandbox/src/helper/session_sockets.rs", &["socket_with("], "sockets of a session's own network"),
    (
        "crates/drawloom/src/bench/model_server.rs",
        &["TcpListener::bind"],
        "the server that a benchmark asks, at 127.0.0.1",
    ),
    ("crates/sandbox/src/helper/loopback.rs", &["socket_with("], "the loopback of a command's own network"),
];

/// What starts another program, which then opens what it likes.
const STARTERS: [&str; 7] =
    ["Command::new(", "execve", "execvp", "libc::execv", "posix_spawn", "libc::system", "libc::popen"];

/// Files that may, with the program that they start.
const STARTED: &[(&str, &str)] = &[
    ("crates/drawloom/src/bench/scripted.rs", "this program, for a benchmark"),
    ("crates/drawloom/src/bench/starts.rs", "this program, for a benchmark"),
    ("crates/drawloom/src/bench/tools.rs", "ripgrep, which a benchmark is compared with"),
    ("crates/drawloom/src/bench/turns.rs", "this program, for a benchmark"),
    ("crates/drawloom/src/completing.rs", "this program"),
    ("crates/drawloom/src/demo.rs", "this program"),
    ("crates/drawloom/src/pager.rs", "the owner's pager"),
    ("crates/drawloom/src/terminal/editor.rs", "the owner's editor"),
    ("crates/sandbox/src/helper/inner.rs", "a command, within its walls"),
    ("crates/sandbox/src/supervisor.rs", "this program, as the helper that makes the walls"),
    ("crates/sandbox/src/worker.rs", "this program, as a worker within walls"),
    ("crates/weights/src/pip.rs", "pip, for a model that the owner asked for, pinned by its hash"),
];

/// Dependencies by which a crate would connect, and the crates that have them.
const CLIENTS: [(&str, &[&str]); 18] = [
    ("reqwest", &["egress"]),
    ("tokio-postgres", &["store"]),
    ("attohttpc", &[]),
    ("awc", &[]),
    ("curl", &[]),
    ("hickory-client", &[]),
    ("hickory-resolver", &[]),
    ("hyper", &[]),
    ("hyper-util", &[]),
    ("isahc", &[]),
    ("minreq", &[]),
    ("quinn", &[]),
    ("socket2", &[]),
    ("surf", &[]),
    ("tokio-tungstenite", &[]),
    ("trust-dns-resolver", &[]),
    ("tungstenite", &[]),
    ("ureq", &[]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Which of some calls a source makes, comments and its tests left out: those are the module at its end, or a file of their
/// own.
fn made(calls: &[&'static str], source: &str) -> Vec<&'static str> {
    let code = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = || code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let makes = |line: &str, call: &str| {
        let is_whole = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        line.match_indices(call).any(|(at, _)| is_whole(at))
    };
    calls.iter().copied().filter(|call| lines().any(|line| makes(line, call))).collect()
}

fn is_test(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    name == "tests.rs"
        || name.ends_with("_tests.rs")
        || path.iter().any(|part| part == "tests" || part == "laws")
}

/// Files of the program, but of the crates named, that make some of these calls.
fn found(calls: &[&'static str], but: &str) -> Vec<(String, Vec<&'static str>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("crates")).expect("crates") {
        let path = entry.expect("an entry").path();
        if path.file_name().is_some_and(|name| name != but) {
            sources(&path.join("src"), &mut found);
        }
    }
    assert!(found.len() > 300, "the sources were found");
    let name = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    let of = |path: PathBuf| (name(&path), made(calls, &fs::read_to_string(&path).expect("a source")));
    found.into_iter().filter(|path| !is_test(path)).map(of).filter(|(_, made)| !made.is_empty()).collect()
}

#[test]
fn nothing_but_the_gate_opens_a_socket_or_looks_a_name_up() {
    let mut found = found(&OPENERS, "egress");
    for (path, openers, reason) in ALLOWED {
        let at = found.iter().position(|(found, made)| found == path && made == openers);
        let at =
            at.unwrap_or_else(|| panic!("{path} opens other things than {openers:?}: {reason}: {found:?}"));
        found.swap_remove(at);
    }
    assert!(found.is_empty(), "{found:?}: go through the gate, or say why not");
}

#[test]
fn no_program_is_started_but_those_that_are_named() {
    let mut found = found(&STARTERS, "");
    for (path, program) in STARTED {
        let at = found.iter().position(|(found, _)| found == path);
        let at = at.unwrap_or_else(|| panic!("{path} does not start {program}"));
        found.swap_remove(at);
    }
    assert!(found.is_empty(), "{found:?}: what do they start, and what may that reach?");
}

#[test]
fn a_call_is_found_and_one_of_a_test_is_none() {
    for call in OPENERS.into_iter().chain(STARTERS) {
        assert_eq!(made(&[call], &format!("fn f() {{\n    x({call});\n}}\n")), [call]);
    }
    let tested = "// reqwest::get\n#[cfg(test)]\nmod tests {\n    reqwest::get();\n}\n";
    assert!(made(&OPENERS, tested).is_empty());
    assert!(made(&STARTERS, "BackgroundCommand::new()").is_empty(), "another name");
}

/// Whether a manifest has a dependency, in any of the forms that name one.
fn depends(manifest: &str, client: &str) -> bool {
    let is_one = |line: &str| {
        let named = line.strip_prefix(client);
        named.is_some_and(|rest| rest.starts_with('.') || rest.starts_with(' ') || rest.starts_with('='))
            || line.ends_with(&format!("dependencies.{client}]"))
            || line.contains(&format!("package = \"{client}\""))
    };
    manifest.lines().any(|line| is_one(line.trim()))
}

#[test]
fn a_dependency_is_found_in_each_of_its_forms() {
    for form in [
        "reqwest = \"0.13\"",
        "reqwest.workspace = true",
        "reqwest={ version = \"0.13\" }",
        "[dependencies.reqwest]",
        "[target.'cfg(unix)'.dependencies.reqwest]",
        "web = { package = \"reqwest\", version = \"0.13\" }",
    ] {
        assert!(depends(&format!("[dependencies]\n{form}\n"), "reqwest"), "{form}");
    }
    assert!(!depends("[dependencies]\nreqwest-middleware = \"1\"\n", "reqwest"));
}

#[test]
fn only_the_gate_and_the_store_have_a_client() {
    for entry in fs::read_dir(root().join("crates")).expect("crates") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let manifest = fs::read_to_string(path.join("Cargo.toml")).expect("a manifest");
        let normal = manifest.split("[dev-dependencies]").next().unwrap();
        for (client, crates) in CLIENTS {
            assert!(!depends(normal, client) || crates.contains(&name.as_str()), "{name} has {client}");
        }
    }
}

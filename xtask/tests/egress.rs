//! Nothing opens a socket, listens on one or looks a name up but the gate (`crates/egress`), and a few places with a reason (spec: security
//! §10; ARCHITECTURE.md, *Invariants*).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::path::{Path, PathBuf};

/// What opens a socket, listens on the network, looks a name up, or makes something that does.
const OPENERS: [&str; 20] = [
    "TcpListener::bind",
    "TcpStream::connect",
    "TcpSocket::new",
    "UdpSocket::bind",
    "UnixStream::connect",
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
    "socket2::",
    "libc::socket",
    "libc::connect",
    "libc::getaddrinfo",
];

/// Files that may, with what they open.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/agent/src/session/steering/attached.rs", "the socket of a session, in the home"),
    ("crates/store/src/postgres/session.rs", "the database that the owner named"),
    ("crates/sandbox/src/helper/attempts.rs", "attempts of the probe to get out, which have to fail"),
    ("crates/sandbox/src/supervisor/probe.rs", "what those attempts would reach"),
    (
        "crates/sandbox/src/published_ports.rs",
        "ports of a session that the owner was asked for, at 127.0.0.1",
    ),
    ("crates/sandbox/src/helper/own_network.rs", "the proxy's place in a network of a command's own"),
    ("crates/sandbox/src/helper/session_sockets.rs", "sockets of a session's own network"),
    ("crates/drawloom/src/bench/model_server.rs", "the server that a benchmark asks, at 127.0.0.1"),
    ("crates/sandbox/src/helper/loopback.rs", "the loopback of a command's own network"),
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

/// The openers in a source, comments and its tests left out: those are the module at its end, or a file of their own.
fn openers(source: &str) -> Vec<&'static str> {
    let code = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = || code.lines().filter(|line| !line.trim_start().starts_with("//"));
    OPENERS.into_iter().filter(|opener| lines().any(|line| line.contains(opener))).collect()
}

fn is_test(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    name == "tests.rs" || name.ends_with("_tests.rs") || path.iter().any(|part| part == "tests")
}

/// Files of the program that open something, below the root.
fn found() -> Vec<(String, Vec<&'static str>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("crates")).expect("crates") {
        let path = entry.expect("an entry").path();
        if path.file_name().is_some_and(|name| name != "egress") {
            sources(&path.join("src"), &mut found);
        }
    }
    assert!(found.len() > 300, "the sources were found");
    let name = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    let of = |path: PathBuf| (name(&path), openers(&fs::read_to_string(&path).expect("a source")));
    found
        .into_iter()
        .filter(|path| !is_test(path))
        .map(of)
        .filter(|(_, openers)| !openers.is_empty())
        .collect()
}

#[test]
fn nothing_but_the_gate_opens_a_socket_or_looks_a_name_up() {
    let found = found();
    let is_allowed = |path: &str| ALLOWED.iter().any(|(allowed, _)| *allowed == path);
    let strays: Vec<_> = found.iter().filter(|(path, _)| !is_allowed(path)).collect();
    assert!(strays.is_empty(), "{strays:?}: go through the gate, or say why not");
    for (path, reason) in ALLOWED {
        assert!(found.iter().any(|(found, _)| found == path), "{path} opens nothing more: {reason}");
    }
}

#[test]
fn an_opener_is_found_and_one_of_a_test_is_none() {
    for opener in OPENERS {
        assert_eq!(openers(&format!("fn f() {{\n    x({opener});\n}}\n")), [opener]);
    }
    assert!(openers("// reqwest::get\n#[cfg(test)]\nmod tests {\n    reqwest::get();\n}\n").is_empty());
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

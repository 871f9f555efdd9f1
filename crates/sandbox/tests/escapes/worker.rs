//! Workers: they answer, and can do nothing else.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::{Duration, Instant};

fn ask(input: &str, omitted: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_sandbox-test-helper"))
        .args([&["work", input], omitted].concat())
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_worker_answers_what_it_is_given() {
    let long = "é".repeat(40_000);
    assert_eq!(ask(&format!("echo {long}"), &[]), Ok(long));
}

/// Each attempt succeeds without the walls, and not within.
#[test]
fn a_worker_opens_no_file_no_socket_and_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (file, socket) = (folder.path().join("file"), folder.path().join("socket"));
    std::fs::write(&file, "text").unwrap();
    let _unix = UnixListener::bind(&socket).unwrap();
    let tcp = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = tcp.local_addr().unwrap().port();
    let new = folder.path().join("new");
    for attempt in [
        format!("file {}", file.display()),
        format!("new-file {}", new.display()),
        format!("folder {}", folder.path().display()),
        format!("tcp {port}"),
        "udp".to_owned(),
        format!("unix {}", socket.display()),
        "program /bin/true".to_owned(),
        "thread".to_owned(),
    ] {
        assert_eq!(ask(&attempt, &["seccomp", "landlock"]).as_deref(), Ok("true"), "{attempt}");
        assert_eq!(ask(&attempt, &[]).as_deref(), Ok("false"), "{attempt}");
    }
    // The wall behind the filter of calls.
    let file = format!("file {}", file.display());
    assert_eq!(ask(&file, &["seccomp"]).as_deref(), Ok("false"));
}

#[test]
fn a_worker_that_breaks_down_is_an_error_that_says_how() {
    for (input, why) in [
        ("memory", "broke down (signal: 6"),
        ("stack", "broke down (signal: 11"),
        ("panic", "broke down (exit status: 101)"),
        ("spin", "more than 1 s"),
        ("flood", "longer than 1 MiB"),
        ("stop", "it was stopped"),
    ] {
        let begun = Instant::now();
        let error = ask(input, &[]).unwrap_err();
        assert!(error.contains(why), "{input}: {error}");
        assert!(begun.elapsed() < Duration::from_secs(15), "{input}");
    }
    // Its limit alone kept it from a gibibyte.
    assert!(ask("memory", &["limits"]).unwrap_err().contains("longer than"));
}

//! What a model says is brought to the device while it says nothing more (spec: security §19).

use std::io::Write as _;
use std::process::Command;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use crate::servers::{END, Server, beginning};
use crate::support::{Home, ended, until};

/// Within this time it has to be there: 250 ms, and what a busy machine takes.
const SOON: Duration = Duration::from_secs(2);

/// A line of a recording: when, and the call with the paths of its descriptors.
fn line(line: &str) -> Option<(f64, &str)> {
    let (_process, rest) = line.split_once(' ')?;
    let (at, call) = rest.trim_start().split_once(' ')?;
    Some((at.parse().ok()?, call))
}

/// When bytes of the answer were last written to its spool, and when that was synced since.
fn spooled(log: &str) -> (Option<f64>, Option<f64>) {
    let (mut written, mut synced) = (None, None);
    for (at, call) in log.lines().filter_map(line).filter(|(_, call)| call.contains("/home/spool/")) {
        if call.starts_with("write(") && call.contains(" all") {
            (written, synced) = (Some(at), None);
        } else if call.starts_with("fdatasync(") || call.starts_with("fsync(") {
            synced = synced.or(Some(at));
        }
    }
    (written, synced)
}

#[test]
#[ignore = "needs strace: .ci/run runs it"]
fn what_came_is_brought_to_the_device_though_nothing_follows() {
    let home = Home::with_tale("It rained");
    let (go_on, goes_on) = mpsc::channel::<()>();
    let goes_on = Mutex::new(goes_on);
    let server = Server::start(move |stream| {
        let _ = stream.write_all(&beginning(&[" all"]));
        // Until it was seen, or the test has failed.
        let _ = goes_on.lock().unwrap().recv();
        let _ = stream.write_all(END.as_bytes());
    });
    home.ok(&["config", "set", "providers.test.base_url", &format!("http://127.0.0.1:{}/v1", server.port)]);
    home.ok(&["config", "set", "providers.test.window", "8192"]);
    let log = home.folder().join("calls");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-ttt", "-s", "400", "-e", "trace=write,fsync,fdatasync", "-o"]).arg(&log);
    strace.arg(crate::program::program()).args(["--model", "test/m", "tree", "generate", "Tale"]);
    let child = home.at_home(strace).spawn().unwrap();
    let recorded = || spooled(&std::fs::read_to_string(&log).unwrap_or_default());
    until("the answer is in its spool", || recorded().0.is_some());
    until("it is synced while the server is silent", || recorded().1.is_some());
    let (Some(written), Some(synced)) = recorded() else { panic!() };
    go_on.send(()).unwrap();
    let ran = ended(child);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert_eq!(home.text(), "It rained all");
    assert!(synced - written < SOON.as_secs_f64(), "{} s", synced - written);
}

//! Ports of the machine that lead to a server of a session, and to nothing else.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use drawloom_sandbox::Level;
use serde_json::{Value, json};

use crate::sessions::{background, follow, step};
use crate::world::{User, World};

const REFUSED: &str = "ConnectionRefused";

/// A port of the machine that nobody has, and that the system gives to nobody who asks for any.
fn free_port() -> u16 {
    loop {
        let port = 20_000 + (RandomState::new().build_hasher().finish() % 12_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn server(port: u16) -> String {
    format!(r#"exec "$ATTEMPT" serve {port}"#)
}

/// A server in the background, for which its port is published.
fn publish(session: usize, port: u16) -> Value {
    step(session, "publish", json!([server(port), "listening", [port]]))
}

/// What is answered at a port of the machine.
fn ask(port: u16) -> Value {
    step(0, "ask", json!([format!("127.0.0.1:{port}"), 0]))
}

#[test]
fn a_published_port_reaches_its_server_from_the_machine_and_no_other_one() {
    for user in User::all() {
        let world = World::new(user);
        let (closed, open) = (free_port(), free_port());
        let given = follow(
            &world,
            Level::Full,
            &json!([
                background(0, &server(closed), "listening"),
                ask(closed),
                ask(open),
                publish(0, open),
                ask(open),
                ask(closed),
                step(0, "ask", json!([format!("127.0.0.2:{open}"), 0])),
                step(0, "run", format!(r#""$ATTEMPT" ask {open}"#)),
            ]),
        );
        assert_eq!((given[1].ending.as_str(), given[2].ending.as_str()), (REFUSED, REFUSED), "{given:?}");
        assert!(given[3].ending.starts_with("Printed"), "{user:?}: {given:?}");
        assert_eq!(given[3].text, format!("[127.0.0.1:{open}]"));
        assert_eq!(given[4].text, "hello", "{user:?}: {given:?}");
        assert_eq!(given[5].ending, REFUSED, "another server of the session: {given:?}");
        assert_eq!(given[6].ending, REFUSED, "another address of the machine: {given:?}");
        assert_eq!(given[7].text, "hello\n", "{user:?}: {given:?}");
    }
}

#[test]
fn a_published_port_is_closed_with_its_command_and_with_its_session() {
    let world = World::new(User::Own);
    let port = free_port();
    let given = follow(
        &world,
        Level::Full,
        &json!([
            publish(0, port),
            ask(port),
            step(0, "", "cancel"),
            step(0, "", "finish"),
            ask(port),
            // One that ends by itself.
            step(0, "publish", json!(["echo over", "over", [port]])),
            step(0, "", "finish"),
            ask(port),
            publish(0, port),
            ask(port),
            step(0, "", "end"),
            step(0, "", "finish"),
            ask(port),
            publish(0, port),
        ]),
    );
    for answered in [1, 9] {
        assert_eq!(given[answered].text, "hello", "{answered}: {given:?}");
    }
    for refused in [4, 7, 12] {
        assert_eq!(given[refused].ending, REFUSED, "{refused}: {given:?}");
    }
    assert_eq!(given[13].ending, "the session of the command is over", "{given:?}");
}

/// A program with a session in which a server runs, and its port is published. It is killed when this is dropped.
struct Publishing(Child);

impl Publishing {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Publishing {
    fn drop(&mut self) {
        self.kill();
    }
}

fn publishing(world: &World, port: u16) -> Publishing {
    let steps = json!([publish(0, port), step(0, "", "wait")]).to_string();
    let mut program = world.sessions(Level::Full, &steps, &[]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "waiting\n");
    Publishing(program)
}

/// A connection that stays open, and what its server greets with, if it does so soon.
fn greeted(port: u16) -> (TcpStream, String) {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut text = String::new();
    connection.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let _ = connection.read_to_string(&mut text);
    (connection, text)
}

/// Folders of `/proc` of the processes that a process started.
fn children(of: u32) -> Vec<PathBuf> {
    let parent = format!("PPid:\t{of}\n");
    let folders = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    folders
        .filter(|folder| {
            fs::read_to_string(folder.join("status")).is_ok_and(|status| status.contains(&parent))
        })
        .collect()
}

/// Whether a process runs; one that ended and was not waited for does not.
fn is_running(folder: &Path) -> bool {
    fs::read_to_string(folder.join("status")).is_ok_and(|status| !status.contains("State:\tZ"))
}

#[test]
fn a_published_port_is_closed_with_the_process_of_its_session_and_its_helper_ends() {
    let world = World::new(User::Own);
    let port = free_port();
    let mut program = publishing(&world, port);
    let helpers = children(program.0.id());
    assert_eq!(helpers.len(), 2, "of the command, and of the sockets");
    assert_eq!(greeted(port).1, "hello");
    program.kill();
    let until = Instant::now() + Duration::from_secs(5);
    let is_open = || TcpStream::connect(("127.0.0.1", port)).is_ok();
    let run = || helpers.iter().any(|helper| is_running(helper));
    while is_open() || run() {
        assert!(Instant::now() < until, "open: {}, helpers: {}", is_open(), run());
        std::thread::yield_now();
    }
}

#[test]
fn connections_beyond_the_bound_wait_for_one_that_ends() {
    let world = World::new(User::Own);
    let port = free_port();
    let _program = publishing(&world, port);
    let mut open: Vec<_> = (0..64).map(|_| greeted(port)).collect();
    assert!(open.iter().all(|(_, text)| text == "hello"));
    let (mut waiting, text) = greeted(port);
    assert_eq!(text, "");
    drop(open.pop());
    let mut text = String::new();
    waiting.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    waiting.read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello");
}

/// The network of a session is its own: neither the machine's nor another session's server is reached by its ports.
#[test]
fn a_published_port_leads_to_the_network_of_its_session_alone() {
    let world = World::new(User::Own);
    let (port, taken) = (free_port(), TcpListener::bind("127.0.0.1:0").unwrap());
    let of_machine = taken.local_addr().unwrap().port();
    let given = follow(
        &world,
        Level::Full,
        &json!([
            background(0, &server(port), "listening"),
            step(1, "publish", json!(["echo on; sleep 60", "on", [port]])),
            ask(port),
            step(0, "publish", json!(["echo on", "on", [of_machine]])),
        ]),
    );
    assert!(given[1].ending.starts_with("Printed"), "{given:?}");
    assert_eq!(given[2].text, "", "the server of another session: {given:?}");
    let why = "another program of this machine listens on it";
    assert!(given[3].ending.contains(why), "{given:?}");
}

#[test]
fn bytes_are_carried_both_ways_and_the_end_of_one_way_leaves_the_other_open() {
    let world = World::new(User::Own);
    let port = free_port();
    let bytes = 8 << 20;
    let given = follow(
        &world,
        Level::Full,
        &json!([
            step(0, "publish", json!([format!(r#"exec "$ATTEMPT" count {port}"#), "listening", [port]])),
            step(0, "ask", json!([format!("127.0.0.1:{port}"), bytes])),
            step(0, "ask", json!([format!("127.0.0.1:{port}"), 3])),
        ]),
    );
    assert_eq!(given[1].text.len(), bytes + format!("{bytes} ").len(), "{}", given[1].ending);
    assert!(given[1].text.starts_with(&format!("{bytes} xxx")));
    assert_eq!(given[2].text, "3 xxx", "{given:?}");
}

#[test]
fn below_full_no_port_is_published_and_it_is_said_what_holds_there() {
    for (level, why) in [
        (Level::Partial, "at sandbox level partial a command has no network"),
        (Level::None, "at sandbox level none a command has the network of this machine"),
    ] {
        let world = World::new(User::Own);
        let port = free_port();
        let given = follow(&world, level, &json!([publish(0, port), ask(port)]));
        assert!(given[0].ending.contains(why), "{given:?}");
        assert_eq!(given[1].ending, REFUSED, "{given:?}");
    }
}

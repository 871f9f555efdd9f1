//! Ports of a server in the background that its owner opens: asked for, reached, and closed with it.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{ErrorKind, Read as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::exec::{exec, world};
use crate::headless::question;
use crate::terminal::Terminal;
use crate::tools::{calls, chat, nodes};
use crate::world::{World, lacks, text};

/// A port of the machine that nobody has, and that the system gives to nobody who asks for any.
fn free_port() -> u16 {
    loop {
        let port = 20_000 + (RandomState::new().build_hasher().finish() % 12_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A server in the background that asks for its port.
fn publishing(port: u16) -> Value {
    json!({"name": "exec", "arguments": {"command": serving(port), "background": true, "publish": [port]}})
}

/// The line of a server.
fn serving(port: u16) -> String {
    format!(
        "perl -MIO::Socket::INET -e '$|=1; my $s=IO::Socket::INET->new(LocalAddr=>\"127.0.0.1\",LocalPort=>{port},ReuseAddr=>1,\
         Listen=>5) or die; print \"listening\\n\"; while(my $c=$s->accept){{print $c \"from the server\\n\"; close $c}}'"
    )
}

fn process(arguments: &Value) -> Value {
    json!({"name": "process", "arguments": arguments})
}

fn waiting(number: u32) -> Value {
    calls(&json!([process(&json!({"process": number, "wait_for": "listening", "timeout": 20}))]))
}

/// What is answered at an address of the machine.
fn answer(address: &str) -> Result<String, ErrorKind> {
    let mut text = String::new();
    let connection = TcpStream::connect(address);
    connection
        .and_then(|mut connection| connection.read_to_string(&mut text))
        .map_err(|error| error.kind())?;
    Ok(text)
}

#[test]
fn a_port_is_open_after_a_yes_until_its_command_ends_and_until_the_session_does() {
    if lacks(&["perl", "curl"]) {
        return;
    }
    let (port, closed) = (free_port(), free_port());
    let address = format!("127.0.0.1:{port}");
    let unpublished = json!({"name": "exec", "arguments": {"command": serving(closed), "background": true}});
    let asks_it = format!("curl -s --http0.9 -m 9 http://127.0.0.1:{closed}/");
    let world = world(&[
        calls(&json!([publishing(port), unpublished])),
        waiting(1),
        waiting(2),
        calls(&json!([exec(&asks_it)])),
        json!({"text": "Served.", "expect": [
            "from the server",
            format!("until then the owner reaches it at {address} of this machine"),
            format!("runs, reached at {address} of this machine"),
        ]}),
        calls(&json!([process(&json!({"process": 1, "kill": true}))])),
        json!({"text": "Ended.", "expect": ["stopped"]}),
        calls(&json!([publishing(port)])),
        waiting(3),
        json!({"text": "Served again.", "expect": [format!("runs, reached at {address} of this machine")]}),
    ]);
    let project = text(&world.path("project"));
    let command = world.command(&["--color", "never", "--workspace", &project, "chat"]);
    let mut terminal = Terminal::start(crate::trust::with_terminal(&command));
    terminal.at_prompt();
    terminal.types("Serve.\r");
    terminal.shows("[y/N, or n and why]");
    let asked = terminal.contents();
    assert!(asked.contains(&format!("opens {address} of this machine to its port {port}")), "{asked}");
    assert_eq!(answer(&address), Err(ErrorKind::ConnectionRefused), "before the yes");
    terminal.types("y\n");
    terminal.shows("Served.");
    let told = terminal.contents();
    assert!(told.contains(&format!("until then the owner reaches it at {address}")), "{told}");
    assert_eq!(answer(&address).as_deref(), Ok("from the server\n"));
    assert_eq!(answer(&format!("127.0.0.2:{port}")), Err(ErrorKind::ConnectionRefused));
    // One that was not opened answers the commands of its session alone, while it runs.
    assert_ne!(answer(&format!("127.0.0.1:{closed}")).as_deref(), Ok("from the server\n"));
    terminal.says("End it.\r");
    terminal.shows("Ended.");
    assert_eq!(answer(&address), Err(ErrorKind::ConnectionRefused), "after its end");
    terminal.types("Again.\r");
    terminal.until("its second question", |terminal| terminal.contents().matches("[y/N, or").count() == 2);
    terminal.types("y\n");
    terminal.shows("Served again.");
    assert_eq!(answer(&address).as_deref(), Ok("from the server\n"));
    terminal.at_prompt();
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(answer(&address), Err(ErrorKind::ConnectionRefused), "after the session");
    // Whoever connects may say anything: the looks after that are from outside.
    let looks = nodes(&world).into_iter().filter(|node| node["author"] == "process");
    let trust: Vec<Value> = looks.map(|node| node["trust"].clone()).collect();
    assert_eq!(trust, ["workspace", "workspace", "outside", "outside"], "before a connection and after it");
}

#[test]
fn where_nobody_is_asked_and_in_plan_mode_no_port_is_published() {
    let port = free_port();
    for (flags, why) in [
        (&[][..], "the command asks for a port of this machine"),
        (&["--plan"], "plan mode is on: no port is published until the owner ends it"),
        (&["--plan", "--wait", "60"], "plan mode is on: no port is published until the owner ends it"),
    ] {
        let world = world(&[calls(&json!([publishing(port)])), json!({"text": "Done."})]);
        let project = text(&world.path("project"));
        let (_, said) = world.json(&[&["--workspace", &project, "chat", "-m", "Do it."], flags].concat());
        assert!(said["denied"].to_string().contains(why), "{flags:?}: {said}");
    }
}

#[test]
fn an_allow_rule_publishes_no_port() {
    let world = world(&[calls(&json!([publishing(free_port())])), json!({"text": "Done."})]);
    world.ok(&["policy", "allow", "effect:exec"]);
    let (_, said) = chat(&world, "Do it.");
    assert!(said["denied"].to_string().contains("the command asks for a port of this machine"), "{said}");
}

#[test]
fn what_cannot_be_published_is_refused_without_a_question() {
    let call = |arguments: &Value| json!({"name": "exec", "arguments": arguments});
    let publish = |ports: &Value| call(&json!({"command": "sleep 9", "background": true, "publish": ports}));
    let world = world(&[
        calls(&json!([
            call(&json!({"command": "true", "publish": [8000]})),
            publish(&json!([80])),
            publish(&json!(["0.0.0.0:8000"])),
            publish(&json!([8001, 8002, 8003, 8004, 8005])),
            publish(&json!([8001, 8001])),
            call(
                &json!({"command": "sleep 9", "background": true, "publish": [3128], "net": ["example.com"]})
            ),
        ])),
        json!({"text": "Done."}),
    ]);
    let project = text(&world.path("project"));
    let (code, said) = world.json(&["--workspace", &project, "chat", "-m", "Do it.", "--wait", "60"]);
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{said}");
    let told: Vec<String> = nodes(&world)
        .iter()
        .filter(|node| node["author"] == "exec")
        .map(|node| node["text"].as_str().unwrap().to_owned())
        .collect();
    for (told, why) in told.iter().zip(["in the background", "1024", "integer", "4", "named twice", "3128"]) {
        assert!(told.contains(why), "{why}: {told}");
    }
    assert_eq!(told.len(), 6, "{told:?}");
}

#[test]
fn a_port_that_is_taken_is_named_and_nothing_is_started() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let world = world(&[
        calls(&json!([publishing(port)])),
        calls(&json!([process(&json!({"process": 1}))])),
        json!({"text": "Done.", "expect": [
            format!("port {port} cannot be published: another program of this machine listens on it"),
            "process 1 is not there: there is none",
        ]}),
    ]);
    approved(&world);
}

/// Runs a turn of which the first question is answered with yes; it ends well.
fn approved(world: &World) {
    let project = text(&world.path("project"));
    let mut waits = world.command(&["--workspace", &project, "chat", "-m", "Do it.", "--wait", "60"]);
    let mut waits = waits.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let asked = question(world, &mut waits);
    world.ok(&["approve", asked["short_id"].as_str().unwrap()]);
    assert!(waits.wait().unwrap().success());
}

#[test]
fn a_port_is_closed_with_a_process_that_is_killed() {
    if lacks(&["perl"]) {
        return;
    }
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let slow = json!({"name": "exec", "arguments": {"command": "touch ready; sleep 300"}});
    let world = world(&[calls(&json!([publishing(port)])), waiting(1), calls(&json!([slow]))]);
    let project = text(&world.path("project"));
    let mut child = world.command(&["--workspace", &project, "chat", "-m", "Do it.", "--wait", "60"]);
    let mut child = child.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let asked = question(&world, &mut child);
    world.ok(&["approve", asked["short_id"].as_str().unwrap()]);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !world.path("project/ready").exists() {
        assert!(Instant::now() < deadline, "the command does not run");
        std::thread::yield_now();
    }
    assert_eq!(answer(&address).as_deref(), Ok("from the server\n"));
    child.kill().unwrap();
    child.wait().unwrap();
    while answer(&address) != Err(ErrorKind::ConnectionRefused) {
        assert!(Instant::now() < deadline, "it is still open");
        std::thread::yield_now();
    }
}

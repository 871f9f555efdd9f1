//! Commands in sessions, by steps, and a server and a client to run in them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use drawloom_sandbox::{
    AcceptedChanges, AcceptedState, BackgroundCommand, CommandLine, Outcome, PackageCache, Run, SandboxError,
    Session, TextWait,
};
use serde::{Deserialize, Serialize};

const LONG: Duration = Duration::from_secs(20);

/// One step: a session by its number, and what is done in it.
#[derive(Deserialize)]
pub(crate) struct Step {
    session: usize,
    action: Action,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    /// A line run to its end.
    Run(String),
    /// A line in a network of its own, with a text that whoever serves its proxy greets with.
    Proxied(String, String),
    /// A line in the background, until it prints a text.
    Background(String, String),
    /// A line in the background, until it prints a text, with ports that are published for it.
    Publish(String, String, Vec<u16>),
    /// What a server answers at an address of the machine to so many bytes and their end.
    Ask(String, usize),
    /// Text to the newest background command, and what is awaited from it.
    Say(String, String),
    CloseInput,
    Cancel,
    /// What the newest background command printed, once it ended.
    Finish,
    /// A file that a person lets a tool write meanwhile.
    Accept(String, String),
    /// A file that a person lets a tool take away meanwhile.
    Remove(String),
    /// A file that somebody writes meanwhile, outside of all walls.
    Write(String, String),
    End,
    /// Says that all before is done, and waits to be killed.
    Wait,
}

/// What a step gave.
#[derive(Serialize)]
struct Given {
    ending: String,
    text: String,
    notices: String,
}

/// Folder of the sessions of a run.
fn place(run: &Run) -> PathBuf {
    run.quarantine.with_file_name("sessions")
}

/// One command in a session with package caches.
pub(crate) fn run_with_caches(run: &str, caches: &str, weaker: &[&str]) -> Result<Outcome, String> {
    let run: Run = serde_json::from_str(run).expect("a run");
    let caches: Vec<PackageCache> = serde_json::from_str(caches).expect("caches");
    let session = super::sandbox(weaker).open_session(run.level, &place(&run), 16 << 20, &caches);
    let session = session.map_err(|error| error.to_string())?;
    super::waiting(session.run(run, None))
}

pub(crate) fn follow(run: &str, steps: &str, caches: &str) -> impl Serialize {
    let run: Run = serde_json::from_str(run).expect("a run");
    let caches: Vec<PackageCache> = serde_json::from_str(caches).expect("caches");
    let steps: Vec<Step> = serde_json::from_str(steps).expect("steps");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let place = place(&run);
        let count = steps.iter().map(|step| step.session).max().unwrap_or(0) + 1;
        let sandbox = super::sandbox(&[]);
        let open = || sandbox.open_session(run.level, &place, 16 << 20, &caches).expect("a session");
        let sessions: Vec<Session> = (0..count).map(|_| open()).collect();
        let mut background = Vec::new();
        let mut given = Vec::new();
        for step in steps {
            given.push(act(&sessions[step.session], &run, step.action, &mut background).await);
        }
        given
    })
}

async fn act(
    session: &Session,
    run: &Run,
    action: Action,
    background: &mut Vec<(BackgroundCommand, u64)>,
) -> Given {
    let with = |line: String| Run { command: CommandLine::Shell(line), ..run.clone() };
    let mut given = Given { ending: String::new(), text: String::new(), notices: String::new() };
    let of = |outcome: Result<Outcome, SandboxError>| match outcome {
        Ok(outcome) => Given {
            ending: format!("{:?}", outcome.ending),
            text: outcome.standard.text() + &outcome.error.text(),
            notices: format!("{:?}", outcome.notices),
        },
        Err(error) => Given { ending: error.to_string(), text: String::new(), notices: String::new() },
    };
    match action {
        Action::Run(line) => given = of(session.run(with(line), None).await),
        Action::Proxied(line, greeting) => {
            given = match session.with_own_network() {
                Ok((session, listener)) => {
                    std::thread::spawn(move || greet(&listener, greeting.as_bytes()));
                    of(session.run(with(line), None).await)
                }
                Err(error) => of(Err(error)),
            }
        }
        Action::Background(line, text) => {
            let mut command = session.start_background(with(line), 1 << 20, ()).expect("a command");
            let waited = command.wait_for(text.as_bytes(), 0, LONG).await;
            given.ending = format!("{waited:?}");
            let end = if let TextWait::Printed(end) = waited { end } else { 0 };
            background.push((command, end));
        }
        Action::Publish(line, text, ports) => match session.publish(&ports) {
            Err(error) => given.ending = error.to_string(),
            Ok(published) => {
                given.text = format!("{:?}", published.addresses());
                let started = session.start_background(with(line), 1 << 20, Some(published));
                let mut command = started.expect("a command");
                given.ending = format!("{:?}", command.wait_for(text.as_bytes(), 0, LONG).await);
                background.push((command, 0));
            }
        },
        Action::Ask(address, bytes) => match answer(&address, bytes) {
            Ok(text) => given.text = text,
            Err(error) => given.ending = format!("{:?}", error.kind()),
        },
        Action::Say(line, text) => {
            let (command, end) = background.last_mut().expect("a background command");
            command.write(line.as_bytes(), LONG).await.expect("an input");
            let waited = command.wait_for(text.as_bytes(), *end, LONG).await;
            given.ending = format!("{waited:?}");
        }
        Action::CloseInput => background.last_mut().expect("a background command").0.close_input(),
        Action::Cancel => background.last_mut().expect("a background command").0.cancel(),
        Action::Finish => {
            let (mut command, _) = background.pop().expect("a background command");
            let outcome = command.outcome().await.as_ref().expect("an outcome");
            given.ending = format!("{:?}", outcome.ending);
            given.notices = format!("{:?}", outcome.notices);
            given.text = String::from_utf8(command.output(0, usize::MAX).bytes).expect("text");
        }
        Action::Accept(path, text) => {
            let records = run.walls.tracked_records.as_deref().expect("records");
            let path = run.directory.join(path);
            let state = AcceptedState::file(None, text.as_bytes());
            let accepted = AcceptedChanges::begin(records, [(path.clone(), state)]).expect("a record");
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
            accepted.finish().expect("a record");
        }
        Action::Remove(path) => {
            let records = run.walls.tracked_records.as_deref().expect("records");
            let path = run.directory.join(path);
            let removed = [(path.clone(), AcceptedState::Absent)];
            let accepted = AcceptedChanges::begin(records, removed).expect("a record");
            std::fs::remove_file(path).expect("a file");
            accepted.finish().expect("a record");
        }
        Action::Write(path, text) => std::fs::write(run.directory.join(path), text).expect("a file"),
        Action::End => session.end(),
        Action::Wait => {
            println!("waiting");
            std::thread::park();
        }
    }
    given
}

/// What a server answers to so many bytes and their end.
fn answer(address: &str, bytes: usize) -> std::io::Result<String> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(LONG))?;
    let mut reading = connection.try_clone()?;
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        reading.read_to_string(&mut text).map(|_| text)
    });
    let sent = connection.write_all(&vec![b'x'; bytes]).and_then(|()| connection.shutdown(Shutdown::Write));
    let read = reading.join().expect("a reader")?;
    sent.map(|()| read)
}

fn listener(port: &str) -> TcpListener {
    let listener = TcpListener::bind(("127.0.0.1", port.parse().expect("a port")));
    let listener = listener.expect("a port that is free");
    println!("listening");
    listener
}

/// A server that says how many bytes it was sent, once it read their end, and sends them back.
pub(crate) fn count(port: &str) {
    for connection in listener(port).incoming() {
        let mut connection = connection.expect("a connection");
        let mut sent = String::new();
        connection.read_to_string(&mut sent).expect("bytes and their end");
        connection.write_all(format!("{} {sent}", sent.len()).as_bytes()).expect("a reader");
    }
}

/// A server that greets, on the loopback.
pub(crate) fn serve(port: &str) {
    greet(&listener(port), b"hello");
}

fn greet(listener: &TcpListener, greeting: &[u8]) {
    for connection in listener.incoming() {
        connection.and_then(|mut connection| connection.write_all(greeting)).expect("a connection");
    }
}

pub(crate) fn ask(port: &str) -> ExitCode {
    let mut text = String::new();
    let asked = TcpStream::connect(("127.0.0.1", port.parse().expect("a port")));
    match asked.and_then(|mut connection| connection.read_to_string(&mut text)) {
        Ok(_) => println!("{text}"),
        Err(error) => println!("{error}"),
    }
    ExitCode::from(u8::from(text.is_empty()))
}

//! Files named as arguments, wherever a path is taken: never the store's, never a wait without end, never into the
//! home (spec: security §8, §28).

use std::ffi::OsStr;
use std::io::pipe;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::terminal::Terminal;
use crate::trust::PersonAtTerminal;
use crate::world::{Run, World, heeds_ctrl_c, piped, text};

/// Nothing here takes this long; what does, hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a command that must come to its end.
#[track_caller]
pub(crate) fn ends(command: &mut Command) -> Run {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    ended(child, &format!("{command:?}"))
}

/// What a program left that must come to its end.
#[track_caller]
pub(crate) fn ended(child: Child, what: &str) -> Run {
    let process = Pid::from_child(&child);
    let (sender, receiver) = mpsc::channel::<Output>();
    std::thread::spawn(move || sender.send(child.wait_with_output().unwrap()));
    match receiver.recv_timeout(PATIENCE) {
        Ok(output) => output.into(),
        Err(_) => {
            kill_process(process, Signal::KILL).unwrap();
            panic!("it hangs: {what}");
        }
    }
}

/// The error of a command that must end with one, as `--json` has it.
#[track_caller]
fn error<A: AsRef<OsStr>>(world: &World, arguments: &[A]) -> (Option<i32>, String, String) {
    let mut all: Vec<&OsStr> = arguments.iter().map(AsRef::as_ref).collect();
    all.push("--json".as_ref());
    let run = ends(&mut world.command(&all));
    let answer: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{all:?}: {run:?}"));
    let part = |name: &str| answer["error"][name].as_str().unwrap_or_default().to_owned();
    (run.code, part("code"), part("message"))
}

/// Every way a file is named as an argument; `@` stands for its path.
const ARGUMENTS: [&[&str]; 8] = [
    &["chat", "-m", "hello", "--model", "script:echo", "--file", "@"],
    &["tree", "new", "--file", "@"],
    &["tree", "verify", "--file", "@"],
    &["import", "@"],
    &["tree", "import", "@"],
    &["restore", "@", "--to", "elsewhere"],
    &["chat", "-m", "hello", "--model", "script:@"],
    &["chat", "-m", "hello", "--model-file", "@"],
];

fn with(arguments: &[&str], path: &Path) -> Vec<String> {
    arguments.iter().map(|argument| argument.replace('@', &text(path))).collect()
}

fn tale() -> World {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    world
}

#[test]
fn e10_the_stores_files_are_refused_as_every_argument_and_under_any_name() {
    let world = tale();
    // Somebody has the store open, so that its log and index are there.
    let mut terminal =
        Terminal::start(world.command(&["--model", "script:echo", "chat", "--color", "never"]));
    terminal.at_prompt();
    let mut ways = Vec::new();
    for name in ["loom.db", "loom.db-wal", "loom.db-shm"] {
        let file = world.home().join(name);
        let link = world.path(&format!("link-{name}"));
        symlink(&file, &link).unwrap();
        ways.extend([file, link]);
    }
    // A log with a second name is refused whatever is asked.
    let hard = world.path("hard-loom.db");
    std::fs::hard_link(world.home().join("loom.db"), &hard).unwrap();
    ways.push(hard);
    ways.push(world.path("here/../home/loom.db"));
    for arguments in ARGUMENTS {
        for way in &ways {
            let (code, name, message) = error(&world, &with(arguments, way));
            let found = (code, name.as_str());
            assert_eq!(found, (Some(4), "store_file"), "{arguments:?} {}: {message}", way.display());
        }
    }
    // What standard input was redirected from is told by its descriptor alone.
    let input = std::fs::File::open(world.home().join("loom.db")).unwrap();
    let run = ends(world.command(&["tree", "new", "--file", "-"]).stdin(input));
    assert_eq!(run.code, Some(4), "{run:?}");
    terminal.types("\u{4}");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn e10_naming_the_stores_files_loses_nothing_that_is_said_afterwards() {
    let world = World::new();
    let mut terminal =
        Terminal::start(world.command(&["--model", "script:echo", "chat", "--color", "never"]));
    terminal.says("one\r");
    for name in ["loom.db", "loom.db-shm"] {
        terminal.says(&format!("/file {}\r", world.home().join(name).display()));
    }
    // Without the locks of the first, this process takes the log for one that was left, and removes it.
    world.ok(&["sessions", "list"]);
    terminal.says("two\r");
    terminal.signal(Signal::KILL);
    terminal.ended();
    let (_, session) = world.json(&["sessions", "show", "main"]);
    let (_, shown) = world.json(&["tree", "show", session["tree"].as_str().unwrap()]);
    let texts: Vec<&str> =
        shown["nodes"].as_array().unwrap().iter().filter_map(|node| node["text"].as_str()).collect();
    assert_eq!(texts.iter().filter(|text| **text == "two").count(), 2, "{texts:?}");
}

#[test]
fn e10_nothing_is_written_into_the_home_but_its_workspace() {
    let world = tale();
    std::fs::create_dir_all(world.home().join("workspace")).unwrap();
    symlink(world.home(), world.path("linked")).unwrap();
    world.ok(&["chat", "-m", "hello", "--model", "script:echo"]);
    let inside = ["home/a", "home/blobs/a", "home/loom.db-journal", "linked/a", "here/../home/a"];
    for place in inside {
        for arguments in [
            &["tree", "export", "Tale", "--format", "text", "-o", "@"][..],
            &["backup", "-o", "@"],
            &["chat", "-m", "/export text @"],
        ] {
            let (code, name, message) = error(&world, &with(arguments, &world.path(place)));
            assert_eq!((code, name.as_str()), (Some(4), "in_home"), "{arguments:?} {place}: {message}");
        }
        assert!(!world.path(place).exists(), "{place}");
    }
    let run = ends(world.command(&["backup"]).current_dir(world.home().join("blobs")));
    assert_eq!(run.code, Some(4), "a file that is not named lies where one stands: {run:?}");
    std::fs::remove_dir(world.home().join("workspace")).unwrap();
    let around = text(&world.home().join("workspace/../blobs/a"));
    assert_eq!(world.run(&["tree", "export", "Tale", "-o", &around]).code, Some(3));
    let deeper = text(&world.path("home/workspace/sub/a"));
    assert_eq!(world.run(&["tree", "export", "Tale", "-o", &deeper]).code, Some(3));
    assert!(!world.home().join("workspace").exists(), "what is refused makes nothing");
    for outside in ["home/workspace/a", "here/a"] {
        world.ok(&["tree", "export", "Tale", "-o", &text(&world.path(outside))]);
    }
    world.ok(&["backup", "-o", &text(&world.path("home/workspace/b"))]);
}

#[test]
fn e11_what_is_no_plain_file_is_refused_by_its_kind() {
    let world = tale();
    mkfifoat(CWD, world.path("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
    let kinds =
        [(world.path("fifo"), "FIFO"), ("/dev/zero".into(), "device"), (world.path("user"), "folder")];
    for arguments in ARGUMENTS {
        for (path, kind) in &kinds {
            let (code, name, message) = error(&world, &with(arguments, path));
            assert_eq!(
                (code, name.as_str()),
                (Some(2), "usage"),
                "{arguments:?} {}: {message}",
                path.display()
            );
            assert!(message.contains(&format!("is a {kind}, not a plain file")), "{message}");
        }
    }
}

#[test]
fn e11_a_fifo_in_the_home_is_named_and_not_waited_for() {
    let commands: [(&str, &[&str]); 6] = [
        ("config.toml", &["tree", "list"]),
        ("keys.toml", &["tree", "list"]),
        ("seal.key", &["tree", "seal", "Tale"]),
        ("reserve", &["tree", "list"]),
        ("backups.json", &["backup", "-o", "b"]),
        ("loom.db", &["tree", "list"]),
    ];
    for (name, arguments) in commands {
        let world = tale();
        let path = world.home().join(name);
        if path.exists() {
            std::fs::remove_file(&path).unwrap();
        }
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        let run = ends(&mut world.command(arguments));
        assert!(!run.err.is_empty(), "{name}: {run:?}");
    }
}

#[test]
fn e11_a_fifo_as_the_history_of_input_lines_is_named() {
    let world = tale();
    std::fs::create_dir_all(world.home().join("cache")).unwrap();
    mkfifoat(CWD, world.home().join("cache/history"), Mode::RUSR | Mode::WUSR).unwrap();
    let mut terminal =
        Terminal::start(world.command(&["--model", "script:echo", "chat", "--color", "never"]));
    terminal.shows("history is not a plain file");
    assert_eq!(terminal.ended(), Some(6));
}

#[test]
fn e11_a_pipe_the_shell_hands_over_is_read() {
    let world = tale();
    let arguments = ["chat", "-m", "look", "--model", "script:echo", "--file", "/dev/fd/0"];
    let run = world.fed(&arguments, b"+ a line that was added\n");
    assert_eq!(run.code, Some(0), "{run:?}");
    let (_, session) = world.json(&["sessions", "show", "main"]);
    let shown = world.ok(&["tree", "show", session["tree"].as_str().unwrap(), "--all"]);
    assert!(shown.contains("+ a line that was added"), "{shown}");
    // As any descriptor, for a file of the tree, and as a script.
    let run = world.fed(&["tree", "new", "--title", "Piped", "--file", "/proc/self/fd/0"], b"It poured.");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(world.ok(&["tree", "text", "Piped"]).trim_end(), "It poured.");
    let run = world
        .fed(&["tree", "generate", "Piped", "--model", "script:/dev/fd/0"], br#"{"text": " It hailed."}"#);
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn e11_a_pipe_that_brings_too_much_is_cut_off() {
    let world = tale();
    for path in ["-", "/dev/fd/0"] {
        let mut command = world.command(&["tree", "new", "--file", path, "--json"]);
        let (reader, mut writer) = pipe().unwrap();
        let endless = std::thread::spawn(move || std::io::copy(&mut std::io::repeat(b'x'), &mut writer));
        let run = ends(command.env("DRAWLOOM_LIMITS__PASTE", "1048576").stdin(reader));
        drop(command);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.out.contains("too_large"), "{run:?}");
        assert!(endless.join().unwrap().is_err(), "its end was closed");
    }
}

#[test]
fn e11_a_silent_pipe_is_given_up() {
    let world = tale();
    for path in ["-", "/dev/fd/0"] {
        let (reader, _writer) = pipe().unwrap();
        let mut command = world.command(&["tree", "new", "--file", path, "--json"]);
        let run = ends(command.env("DRAWLOOM_LIMITS__INPUT_WAIT", "0.1").stdin(reader));
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.out.contains("\"silent\"") && run.out.contains("nothing came for 0.1 s"), "{run:?}");
    }
}

#[test]
fn e11_ctrl_c_ends_the_wait_for_a_pipe() {
    let world = tale();
    let (reader, writer) = pipe().unwrap();
    let path = format!("/proc/{}/fd/{}", std::process::id(), reader.as_raw_fd());
    let ours = std::fs::read_link(&path).unwrap();
    let mut child = piped(&mut world.command(&["tree", "new", "--file", &path]));
    let theirs = format!("/proc/{}/fd", child.id());
    let has_opened = || {
        let mut descriptors = std::fs::read_dir(&theirs).into_iter().flatten().flatten();
        descriptors.any(|descriptor| std::fs::read_link(descriptor.path()).is_ok_and(|file| file == ours))
    };
    let begun = Instant::now();
    while !(has_opened() && heeds_ctrl_c(&child)) {
        assert_eq!(child.try_wait().unwrap(), None, "it waits");
        assert!(begun.elapsed() < PATIENCE, "it does not read the pipe");
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let run = ended(child, "Ctrl-C changes nothing");
    assert_eq!(run.code, Some(130), "{run:?}");
    drop(writer);
}

#[test]
fn a_demo_is_not_kept_within_the_home() {
    let world = World::new();
    world.ok(&["tree", "list"]);
    let within = world.home().join("demo");
    let run = world.run(&["demo", "--keep", within.to_str().unwrap()]);
    assert!(run.code == Some(4) && run.err.contains("would be in the home"), "{run:?}");
    assert!(!within.exists());
    // The control.
    world.ok(&["demo", "--keep", "kept"]);
    assert!(world.path("here/kept/home/loom.db").exists());
}

/// Each of its steps is this program in a home that is new.
#[test]
fn a_demo_asks_nothing_at_a_terminal() {
    let world = World::new();
    let person = PersonAtTerminal { echo: false, stdout: true, question: "[y/N] ", answer: "n\n" };
    let (code, shown) = person.run(&world, &world.path("here"), &["demo"]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("Everything agrees with its hashes") && !shown.contains("[y/N]"), "{shown}");
    // The story is about the passages it names.
    for told in ["Halfway over, the engine”", "1 word came, 1 went"] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
}

//! What holds between real processes that are killed and stopped.
//!
//! The child is this test binary again: it runs one of the `child_…` tests, which do nothing unless the
//! parent's variable is set.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test reports by failing")]

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use drawloom_store::home::{Home, HomeDir, HomeOptions};
use drawloom_store::instance::{About, InstanceId, Instances};
use drawloom_store::spool::{GenerationName, Recovered, Spool, SpoolHeader, recover};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

const HOME: &str = "DRAWLOOM_TEST_CHILD_HOME";
const SEED: &str = "DRAWLOOM_TEST_CHILD_SEED";
const KILLS: u64 = 60;

/// A child process that reports on stderr, line by line; killed when dropped.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
}

impl Process {
    fn start(test: &str, home: &Path, seed: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(HOME, home)
            .env(SEED, seed.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("the child ended").unwrap()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// SIGKILL, and the lines that were still on their way.
    fn kill(&mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.lines.by_ref().map(Result::unwrap).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn child_home() -> Option<Home> {
    let path = PathBuf::from(std::env::var_os(HOME)?);
    Some(Home::open(&path, HomeOptions::default()).unwrap())
}

fn say(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// The bytes a child receives: endless, of uneven chunks, the same for a seed.
fn chunks(seed: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    std::iter::repeat_with(move || {
        let length = usize::from(next()) + 1;
        (0..length).map(|_| next()).collect()
    })
}

#[test]
fn child_receives_a_stream() {
    let Some(home) = child_home() else { return };
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    let instances = Instances::of(&home).unwrap();
    let id = InstanceId::generate(1).unwrap();
    let _instance = instances.start(id, &About::this_process("chat", "0.1.0", 1)).unwrap();
    let name = GenerationName::try_from("generation".to_owned()).unwrap();
    let header = SpoolHeader::new(name, id, 1, "openai_chat", 1);
    let spool_dir = home.dir(HomeDir::Spool).unwrap();
    say("ready");
    let mut spool = Spool::create(&spool_dir, &header).unwrap();
    for chunk in chunks(seed) {
        spool.append(&chunk).unwrap();
        say(&spool.received().to_string());
    }
}

#[test]
fn every_byte_whose_append_returned_outlives_kill_9() {
    let mut recovered = 0;
    for seed in 0..KILLS {
        let tmp = tempfile::tempdir().unwrap();
        let root = tmp.path().join("home");
        let mut writer = Process::start("child_receives_a_stream", &root, seed);
        assert_eq!(writer.line(), "ready");
        let home = Home::open(&root, HomeOptions::default()).unwrap();
        let instances = Instances::of(&home).unwrap();
        let spool_dir = home.dir(HomeDir::Spool).unwrap();
        // Killed after as many chunks as the seed says, in the middle of whatever it does then.
        let mut acknowledged: u64 = 0;
        for _ in 0..seed * 7 % 90 {
            acknowledged = writer.line().parse().unwrap();
        }
        let alive = |id| instances.is_alive(id).unwrap();
        assert_eq!(recover(&spool_dir, alive).unwrap().count(), 0, "nothing is taken from the living");
        if let Some(last) = writer.kill().last() {
            acknowledged = last.parse().unwrap();
        }
        for found in recover(&spool_dir, alive).unwrap() {
            let Recovered::Spooled(mut spooled) = found.unwrap() else { panic!("a torn header") };
            let body = spooled.read(1 << 26).unwrap();
            assert!(body.len() as u64 >= acknowledged, "seed {seed}: {} < {acknowledged}", body.len());
            let mut sent = Vec::new();
            for chunk in chunks(seed) {
                if sent.len() >= body.len() {
                    break;
                }
                sent.extend(chunk);
            }
            assert_eq!(body, sent[..body.len()], "seed {seed}");
            spooled.committed().unwrap();
            recovered += 1;
            acknowledged = 0;
        }
        assert_eq!(acknowledged, 0, "seed {seed}: acknowledged bytes without a spool");
        assert_eq!(recover(&spool_dir, alive).unwrap().count(), 0);
        assert_eq!(instances.remove_dead(|_| true).unwrap().len(), 1);
    }
    assert!(recovered >= 50, "only {recovered} of {KILLS} left a spool");
}

#[test]
fn child_waits() {
    let Some(home) = child_home() else { return };
    let id = InstanceId::generate(1).unwrap();
    let about = About::this_process("up", "0.1.0", 5);
    let _instance = Instances::of(&home).unwrap().start(id, &about).unwrap();
    say(&id.to_string());
    wait_for_the_parent();
}

/// Until the test lets go of the pipe, or ends.
fn wait_for_the_parent() {
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
}

#[test]
fn child_starts_a_child() {
    let Some(home) = child_home() else { return };
    let id = InstanceId::generate(1).unwrap();
    let about = About::this_process("up", "0.1.0", 5);
    let _instance = Instances::of(&home).unwrap().start(id, &about).unwrap();
    say(&id.to_string());
    // Same environment, same pipes: it says its own id and waits for the same parent.
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_waits", "--nocapture"])
        .spawn()
        .unwrap();
    child.wait().unwrap();
}

#[test]
fn an_owner_is_alive_while_stopped_or_hidden_and_dead_once_killed() {
    let tmp = tempfile::tempdir().unwrap();
    let home = Home::open(&tmp.path().join("home"), HomeOptions::default()).unwrap();
    let instances = Instances::of(&home).unwrap();
    let mut owner = Process::start("child_waits", home.root(), 0);
    let id: InstanceId = owner.line().parse().unwrap();
    let alive = || instances.is_alive(id).unwrap();
    assert!(alive());
    let named = format!("process {} (drawloom up)", owner.child.id());
    assert_eq!(instances.list().unwrap()[0].to_string(), named);

    kill_process(owner.pid(), Signal::STOP).unwrap();
    waitpid(Some(owner.pid()), WaitOptions::UNTRACED).unwrap();
    assert!(alive(), "stopped is not dead");
    assert!(instances.remove_dead(|_| true).unwrap().is_empty());

    std::fs::remove_file(home.root().join(format!("run/{id}.lock"))).unwrap();
    assert!(alive(), "without its file in run/ it lives all the same");
    kill_process(owner.pid(), Signal::CONT).unwrap();

    owner.kill();
    assert!(!alive());
    assert_eq!(instances.list().unwrap()[0].to_string(), named, "the dead are named too");
    assert_eq!(instances.remove_dead(|_| true).unwrap(), [id]);
    assert!(!alive() && instances.list().unwrap().is_empty());
}

/// A program that we start must not keep us alive: the lock's descriptor is closed on exec.
#[test]
fn a_killed_owners_child_does_not_hold_its_lock() {
    let tmp = tempfile::tempdir().unwrap();
    let home = Home::open(&tmp.path().join("home"), HomeOptions::default()).unwrap();
    let instances = Instances::of(&home).unwrap();
    let mut owner = Process::start("child_starts_a_child", home.root(), 0);
    let [id, child]: [InstanceId; 2] = [(); 2].map(|()| owner.line().parse().unwrap());
    assert!(instances.is_alive(id).unwrap());
    kill_process(owner.pid(), Signal::KILL).unwrap();
    // Not through `Child`, which would let go of the pipe and with it of the owner's child.
    waitpid(Some(owner.pid()), WaitOptions::empty()).unwrap();
    assert!(!instances.is_alive(id).unwrap());
    assert!(instances.is_alive(child).unwrap(), "the child is still there");
}

//! A protection that is taken away lets a named attempt succeed (spec: security §29).

use drawloom_sandbox::{Ending, Level, Limits, Protection};

use crate::caches::CACHES;
use crate::refused_calls::REFUSED_CALLS;
use crate::rows::{self, Row};
use crate::succeeds;
use crate::world::{User, World};

/// Attempts that succeed without a protection at level *full*, all others in place.
pub(crate) const FULL: &[(&str, &[Row], &str)] = &[
    ("protected-mounts", rows::PROTECTED, "truncate instructions"),
    ("protected-mounts", rows::ANCESTORS, "hard link to instructions"),
    ("hidden-drawloom", rows::HOME, "settings of the workspace"),
    ("cache-layers", CACHES, "append to a file"),
    ("cache-layers", CACHES, "attribute of a file"),
    ("cache-covers", CACHES, "credentials in the cache"),
    ("cache-covers", CACHES, "second name of credentials"),
    ("net-namespace", rows::NETWORK, "UDP"),
    ("mount-namespace", rows::OUTSIDE, "permissions"),
    ("pid-namespace", rows::OUTLIVING, "own session"),
    ("ipc-namespace", rows::PROCESSES, "message queue"),
    ("uts-namespace", rows::PROCESSES, "name of the machine"),
    ("pid-namespace", rows::KEYS, "arguments of any process"),
    ("look-after", rows::PROTECTED, "new environment file"),
    ("own-temp", rows::OUTSIDE, "in the machine's /tmp"),
    ("own-devices", rows::TERMINAL, "a terminal of one's own"),
    ("not-dumpable", rows::PROCESSES, "memory of the parent"),
    ("seccomp", rows::NETWORK, "io_uring"),
    ("seccomp", REFUSED_CALLS, "userfaultfd"),
    ("seccomp", REFUSED_CALLS, "clone3"),
    ("seccomp", rows::NAMESPACES, "new user namespace"),
    ("seccomp", rows::NAMESPACES, "set-user-ID program"),
    ("close-descriptors", rows::TERMINAL, "inherited descriptor"),
    ("limits", rows::FLOODS, "processes"),
    ("limits", rows::FLOODS, "memory in a file without a name"),
    ("limits", rows::FLOODS, "free space"),
    ("limits", rows::FLOODS, "output"),
    ("empty-input", rows::TERMINAL, "an input that is not empty"),
    ("seccomp", rows::TERMINAL, "request to type into a terminal"),
];

/// The same at level *partial*.
pub(crate) const PARTIAL: &[(&str, &[Row], &str)] = &[
    ("look-after", rows::PROTECTED, "truncate instructions"),
    ("look-after", rows::PROTECTED, "new environment file"),
    ("landlock", rows::OUTSIDE, "create"),
    ("limits", rows::FLOODS, "free space"),
    ("limits", rows::FLOODS, "output"),
    ("seccomp", rows::NETWORK, "UDP"),
    ("seccomp", rows::NETWORK, "raw Unix socket"),
    ("seccomp", rows::TERMINAL, "request to type into a terminal"),
    ("empty-input", rows::TERMINAL, "an input that is not empty"),
    ("end-tree", rows::OUTLIVING, "own session"),
    ("end-tree", rows::OUTLIVING, "without its first thread"),
];

/// Attempts, given the protections that are omitted: whether they succeed.
type Attempt = fn(&[&str]) -> bool;

/// Protections that a row alone does not show, or not as every user, with the attempt that does.
pub(crate) const ALONE: &[(Protection, &str, Attempt)] = &[
    (Protection::NewSession, "terminal of its supervisor, without walls", opens_the_terminal),
    (Protection::DropCapabilities, "capabilities of the administrator", has_capabilities),
    (Protection::HiddenSystemFiles, "passwords of the machine", reads_passwords),
    (Protection::ReadOnlyProcesses, "settings of the kernel, without Landlock", changes_kernel),
    (Protection::NoNewPrivileges, "new privileges, without Landlock and filters", gains_privileges),
    (Protection::Landlock, "create outside, without mounts", creates_outside_without_mounts),
    (Protection::RenewedCovers, "append to instructions that their owner saved", crate::replaced::is_changed),
    (Protection::LookAlone, "change instructions and lose the supervisor", change_stays),
];

fn lets_through(level: Level, omitted: &[&str], rows: &[Row], name: &str) -> bool {
    let row = rows.iter().find(|row| row.name == name).unwrap();
    succeeds(row, User::Own, level, omitted).0
}

#[test]
fn without_a_protection_an_attempt_succeeds() {
    for (level, removals) in [(Level::Full, FULL), (Level::Partial, PARTIAL)] {
        for (omitted, rows, name) in removals {
            let row = rows.iter().find(|row| row.name == *name).unwrap();
            let (succeeds, outcome) = succeeds(row, User::Own, level, &[omitted]);
            assert!(succeeds, "{name} at {level} without {omitted}: {outcome:?}");
            println!("without {omitted:<18} at {level:<8}: {name}");
        }
    }
    for (protection, attempt, succeeds) in ALONE {
        let omitted = protection.name();
        let of_administrator =
            [Protection::DropCapabilities, Protection::HiddenSystemFiles, Protection::ReadOnlyProcesses];
        if of_administrator.contains(protection) && !User::Own.is_administrator() {
            println!("not run: without {omitted}: this is not the administrator");
            continue;
        }
        assert!(!succeeds(&[]), "{attempt} with {omitted}");
        assert!(succeeds(&[omitted]), "{attempt} without {omitted}");
        println!("without {omitted:<18} alone      : {attempt}");
    }
}

/// Other walls hold the device of the terminal, too: at level *none* it is left to the session alone.
fn opens_the_terminal(omitted: &[&str]) -> bool {
    let world = World::new(User::Own);
    world.supervise_at_terminal(": < /dev/tty", Level::None, omitted).ending == Ending::Exited(0)
}

fn has_capabilities(omitted: &[&str]) -> bool {
    lets_through(Level::Full, omitted, rows::PROCESSES, "capabilities")
}

fn reads_passwords(omitted: &[&str]) -> bool {
    lets_through(Level::Full, omitted, rows::KEYS, "passwords of the machine")
}

/// The administrator's files of `/proc` are held by Landlock as well.
fn changes_kernel(omitted: &[&str]) -> bool {
    let omitted: Vec<&str> = omitted.iter().copied().chain(["landlock"]).collect();
    lets_through(Level::Full, &omitted, rows::PROCESSES, "settings of the kernel")
}

/// Landlock and filters of calls are only for processes without new privileges, and see to that themselves.
fn gains_privileges(omitted: &[&str]) -> bool {
    let omitted: Vec<&str> = omitted.iter().copied().chain(["landlock", "seccomp"]).collect();
    lets_through(Level::Full, &omitted, rows::PROCESSES, "new privileges")
}

/// In level *full* nothing is left to Landlock alone: it is seen once the mounts are gone.
fn creates_outside_without_mounts(omitted: &[&str]) -> bool {
    let omitted: Vec<&str> = omitted.iter().copied().chain(["mount-namespace"]).collect();
    lets_through(Level::Full, &omitted, rows::OUTSIDE, "create")
}

/// Below level *full*, of a command whose supervisor was killed: what it changed stays.
fn change_stays(omitted: &[&str]) -> bool {
    let world = World::new(User::Own);
    let line = "echo evil > AGENTS.md; echo $PPID > helper.new; mv helper.new helper; sleep 60";
    let mut supervisor = world.start(line, Level::Partial, world.walls(Limits::default()), omitted);
    while !world.path("root/helper").exists() {
        std::thread::yield_now();
    }
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    let helper = world.text("root/helper").unwrap();
    let stat = format!("/proc/{}/stat", helper.trim());
    let lives = || {
        let stat = std::fs::read_to_string(&stat).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
    };
    while lives() {
        std::thread::yield_now();
    }
    world.text("root/AGENTS.md").as_deref() == Some("evil\n")
}

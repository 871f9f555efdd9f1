//! A protection that is taken away lets a named attempt succeed (spec: security §29).

use drawloom_sandbox::Level;

use crate::rows::{self, Row};
use crate::succeeds;
use crate::world::User;

/// Attempts that succeed without a protection at level *full*, all others in place.
const FULL: &[(&str, &[Row], &str)] = &[
    ("protected-mounts", rows::PROTECTED, "truncate instructions"),
    ("protected-mounts", rows::ANCESTORS, "hard link to instructions"),
    ("hidden-drawloom", rows::HOME, "settings of the workspace"),
    ("net-namespace", rows::NETWORK, "UDP"),
    ("mount-namespace", rows::OUTSIDE, "permissions"),
    ("pid-namespace", rows::OUTLIVING, "own session"),
    ("ipc-namespace", rows::PROCESSES, "message queue"),
    ("uts-namespace", rows::PROCESSES, "name of the machine"),
    ("pid-namespace", rows::KEYS, "arguments of any process"),
    ("seccomp", rows::NETWORK, "io_uring"),
    ("seccomp", rows::NAMESPACES, "new user namespace"),
    ("close-descriptors", rows::TERMINAL, "inherited descriptor"),
    ("limits", rows::FLOODS, "processes"),
];

/// The same at level *partial*.
const PARTIAL: &[(&str, &[Row], &str)] = &[
    ("landlock", rows::OUTSIDE, "create"),
    ("seccomp", rows::NETWORK, "UDP"),
    ("end-tree", rows::OUTLIVING, "own session"),
];

fn lets_through(level: Level, omitted: &str, rows: &[Row], name: &str) -> bool {
    let row = rows.iter().find(|row| row.name == name).unwrap();
    succeeds(row, User::Own, level, &[omitted]).0
}

#[test]
fn without_a_protection_an_attempt_succeeds() {
    for (level, removals) in [(Level::Full, FULL), (Level::Partial, PARTIAL)] {
        for (omitted, rows, name) in removals {
            assert!(lets_through(level, omitted, rows, name), "{name} at {level} without {omitted}");
        }
    }
}

#[test]
fn without_dropping_capabilities_the_administrator_has_some() {
    if User::all().len() > 1 {
        assert!(lets_through(Level::Full, "drop-capabilities", rows::PROCESSES, "capabilities"));
    }
}

//! The escape suite (spec: security §1, §9, §29): every attempt is made twice, without walls and within. One that does
//! not succeed without walls shows nothing within; it counts as not run, and is printed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, in its helpers too, and says what it could not run"
)]

mod commands;
mod removals;
mod rows;
mod supervision;
mod world;

use drawloom_sandbox::{Ending, Level, Limits, Outcome};
use rows::Row;
use world::{User, World};

/// Rows that cannot run, with the reason. Any other one that does not is a failure.
const CANNOT_RUN: &[(&str, User, &str)] = &[
    ("passwords of the machine", User::Nobody, "another user's file"),
    ("settings of the kernel", User::Nobody, "the administrator's file"),
    ("capabilities", User::Nobody, "there are none"),
    ("join a namespace", User::Nobody, "needs capabilities"),
    ("another root", User::Nobody, "needs capabilities"),
    ("open by handle", User::Nobody, "needs capabilities"),
    ("raw socket", User::Nobody, "needs capabilities"),
    ("typing into a terminal", User::Nobody, "needs capabilities"),
];

fn limits(row: &Row) -> Limits {
    let mut limits = Limits { time_ms: 20_000, free_space: 1 << 20, ..Limits::default() };
    if let Some(change) = row.limits {
        change(&mut limits);
    }
    limits
}

/// Whether an attempt succeeds without walls.
fn succeeds_freely(row: &Row, user: User) -> bool {
    let world = World::new(user);
    world.run_freely(row.line) && row.effect.is_none_or(|seen| seen(&world))
}

/// Whether an attempt succeeds behind walls, with the outcome of its command.
pub(crate) fn succeeds(row: &Row, user: User, level: Level, omitted: &[&str]) -> (bool, Outcome) {
    let world = World::new(user);
    let outcome = world.run_in_walls(row.line, level, limits(row), omitted);
    let outcome = outcome.unwrap_or_else(|error| panic!("{}: {error}", row.name));
    let succeeded = match row.effect {
        Some(seen) => seen(&world),
        None => outcome.ending == Ending::Exited(0),
    };
    (succeeded, outcome)
}

/// Makes all attempts of a class at a level.
fn all_are_held(class: &str, rows: &[Row], level: Level) {
    let mut wrong = Vec::new();
    for user in User::all() {
        for row in rows {
            let name = format!("{class}, {}, {user:?}", row.name);
            let cannot = CANNOT_RUN.iter().find(|(name, who, _)| *name == row.name && *who == user);
            if let Some(reason) = row.partial.filter(|_| level == Level::Partial) {
                println!("not held at partial: {name}: {reason}");
                continue;
            }
            if !succeeds_freely(row, user) {
                match cannot {
                    Some((_, _, reason)) => println!("not run: {name}: {reason}"),
                    None => wrong.push(format!("the control of {name} failed: the row was not run")),
                }
                continue;
            }
            let (succeeded, outcome) = succeeds(row, user, level, &[]);
            if succeeded {
                wrong.push(format!("{name} succeeded at {level}: {outcome:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

macro_rules! classes {
    ($($full:ident, $partial:ident: $name:literal, $rows:expr;)*) => {$(
        #[test]
        fn $full() {
            all_are_held($name, $rows, Level::Full);
        }

        #[test]
        fn $partial() {
            all_are_held($name, $rows, Level::Partial);
        }
    )*};
}

classes! {
    keys_and_environment_are_not_reached, keys_and_environment_at_partial: "keys", rows::KEYS;
    nothing_is_written_outside, nothing_is_written_outside_at_partial: "outside", rows::OUTSIDE;
    the_protected_set_stays_as_it_is, the_protected_set_is_given_back_at_partial: "protected set", rows::PROTECTED;
    ancestors_and_links_lead_nowhere, ancestors_and_links_at_partial: "ancestors and links", rows::ANCESTORS;
    other_processes_are_not_reached, other_processes_at_partial: "processes", rows::PROCESSES;
    no_namespace_and_no_mount_is_made, no_namespace_at_partial: "namespaces", rows::NAMESPACES;
    no_network_is_reached, no_network_at_partial: "network", rows::NETWORK;
    nothing_outlives_its_command, nothing_outlives_its_command_at_partial: "outliving", rows::OUTLIVING;
    floods_are_ended, floods_at_partial: "floods", rows::FLOODS;
    home_and_store_are_not_reached, home_and_store_at_partial: "home", rows::HOME;
    terminal_and_descriptors_are_not_reached, terminal_at_partial: "terminal", rows::TERMINAL;
}

/// Kernels of 6.1 and 6.8 have these versions of Landlock.
#[test]
fn older_kernels_hold_files_and_network_at_partial() {
    for version in ["landlock=2", "landlock=4"] {
        for (class, rows) in [("outside", rows::OUTSIDE), ("network", rows::NETWORK), ("home", rows::HOME)] {
            for row in rows.iter().filter(|row| row.partial.is_none()) {
                let (succeeded, outcome) = succeeds(row, User::Own, Level::Partial, &[version]);
                assert!(!succeeded, "{class}, {}, {version}: {outcome:?}", row.name);
            }
        }
    }
}

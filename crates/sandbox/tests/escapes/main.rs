//! The escape suite (spec: security §1, §9, §29): every attempt is made twice, without walls and within. One that does
//! not succeed without walls shows nothing within; it counts as not run, and is printed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, in its helpers too, and says what it could not run"
)]

mod answering;
mod caches;
mod classes;
mod closed_folders;
mod commands;
mod further_roots;
mod git_folders;
mod larger_repository;
#[path = "../support/left_out.rs"]
mod left_out;
mod matrix;
mod networks;
mod overlapping;
mod published;
mod removals;
mod rows;
mod sessions;
mod supervision;
mod worker;
mod world;

use drawloom_sandbox::{Ending, Level, Limits, Notice, Outcome, RootAccess};
use rows::{Row, differs, is_there};
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
    ("answer pushed into the terminal", User::Nobody, "needs capabilities"),
    ("answer to the input of the owner's program", User::Nobody, "another user's pipe"),
];

/// Why a row cannot run as a user.
fn cannot_run(row: &Row, user: User) -> Option<&'static str> {
    CANNOT_RUN.iter().find(|(name, who, _)| *name == row.name && *who == user).map(|(_, _, why)| *why)
}

fn limits(row: &Row) -> Limits {
    let mut limits = world::limits();
    if let Some(change) = row.limits {
        change(&mut limits);
    }
    limits
}

/// Whether an attempt succeeds without walls.
fn succeeds_freely(row: &Row, user: User) -> bool {
    let world = World::new(user);
    let ended_well = match row.at_terminal {
        true => world.run_freely_at_terminal(row.line),
        false => world.run_freely(row.line),
    };
    ended_well && row.effect.is_none_or(|seen| seen(&world))
}

/// Whether an attempt succeeds behind walls, with the outcome of its command.
pub(crate) fn succeeds(row: &Row, user: User, level: Level, omitted: &[&str]) -> (bool, Outcome) {
    let world = World::new(user);
    let outcome = match (row.cached, row.further) {
        _ if row.at_terminal => Ok(world.supervise_at_terminal(row.line, level, omitted)),
        (true, _) => world.run_with_cache(row.line, level, limits(row), omitted),
        (_, true) => {
            let walls = further_roots::walls(&world, limits(row), RootAccess::ReadOnly);
            world.run(row.line, level, walls, omitted)
        }
        _ => world.run_in_walls(row.line, level, limits(row), omitted),
    };
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
            if let Some(reason) = row.partial.filter(|_| level == Level::Partial) {
                println!("not held at partial: {name}: {reason}");
                continue;
            }
            if !succeeds_freely(row, user) {
                match cannot_run(row, user) {
                    Some(reason) => println!("not run: {name}: {reason}"),
                    None => wrong.push(format!("the control of {name} failed: the row was not run")),
                }
                continue;
            }
            let (succeeded, outcome) = succeeds(row, user, level, &[]);
            if succeeded {
                wrong.push(format!("{name} succeeded at {level}: {outcome:?}"));
            } else if level != Level::Full && row.effect.is_some() && outcome.ending == Ending::Exited(0) {
                // It was not held: it was undone, and is named for that (spec: security §1).
                let is_named = outcome.notices.iter().any(|notice| {
                    matches!(notice, Notice::Restored(_) | Notice::Quarantined { .. } | Notice::Ended(_))
                });
                if !is_named {
                    wrong.push(format!("{name} was undone at {level} and is not named: {outcome:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

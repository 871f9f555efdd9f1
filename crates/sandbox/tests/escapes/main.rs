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
mod git_differs;
mod git_folders;
mod larger_repository;
#[path = "../support/left_out.rs"]
mod left_out;
mod matrix;
mod networks;
mod other_names;
mod overlapping;
mod published;
mod refused_calls;
mod removals;
mod replaced;
mod rows;
mod sessions;
mod supervision;
mod user;
mod worker;
mod world;

use drawloom_sandbox::{Ending, Level, Limits, Outcome, RootAccess};
use matrix::must_hold;
use rows::{Effect, Row, Surroundings};
use world::{User, World};

/// Commands run in a session, as those of an agent and of `drawloom sandbox` do.
pub(crate) const IN_SESSION: &str = "in-session";

/// Level, with what the helper lacks, and how the command is run.
pub(crate) type Setting = (Level, &'static [&'static str]);

fn limits(row: &Row) -> Limits {
    let mut limits = world::limits();
    if let Some(change) = row.limits {
        change(&mut limits);
    }
    limits
}

/// Whether an attempt succeeds without walls.
pub(crate) fn succeeds_freely(row: &Row, user: User) -> bool {
    let world = World::new(user);
    let ended_well = match row.surroundings {
        Surroundings::Terminal => world.run_freely_at_terminal(row.line),
        Surroundings::SmallHome => world.run_freely_with_small_home(row.line),
        _ => world.run_freely(row.line),
    };
    ended_well && row.is_seen(&world)
}

/// Whether an attempt succeeds behind walls, with the outcome of its command.
pub(crate) fn succeeds(row: &Row, user: User, level: Level, weaker: &[&str]) -> (bool, Outcome) {
    let world = World::new(user);
    let outcome = match row.surroundings {
        Surroundings::Workspace => world.run_in_walls(row.line, level, limits(row), weaker),
        Surroundings::Cache => world.run_with_cache(row.line, level, limits(row), weaker),
        Surroundings::FurtherRoot => {
            let walls = further_roots::walls(&world, limits(row), RootAccess::ReadOnly);
            world.run(row.line, level, walls, weaker)
        }
        Surroundings::Terminal => Ok(world.supervise_at_terminal(row.line, level, weaker)),
        Surroundings::SmallHome => world.run_with_small_home(row.line, level, limits(row), weaker),
    };
    let outcome = outcome.unwrap_or_else(|error| panic!("{}: {error}", row.name));
    (row.has_succeeded(&world, &outcome), outcome)
}

/// What is wrong with what came of an attempt that is to be held: it succeeded, or is not named though no wall held it.
pub(crate) fn fault(row: &Row, level: Level, (has_succeeded, outcome): &(bool, Outcome)) -> Option<String> {
    if *has_succeeded {
        return Some(format!("succeeded: {outcome:?}"));
    }
    let is_held = match row.effect {
        Effect::EndedWell | Effect::Told(_) => true,
        _ => outcome.ending != Ending::Exited(0) && !row.is_undone(),
    };
    let is_named = level == Level::Full || is_held || row.is_named(outcome);
    (!is_named).then(|| format!("was undone and is not named: {outcome:?}"))
}

/// Whether the control of an attempt succeeds. One that does not counts as not run, and is a failure unless its row has the
/// reason.
pub(crate) fn is_run(name: &str, row: &Row, user: User, wrong: &mut Vec<String>) -> bool {
    let is_run = succeeds_freely(row, user);
    match row.administrator.filter(|_| !user.is_administrator()) {
        _ if is_run => {}
        Some(reason) => println!("not run: {name}: {reason}"),
        None => wrong.push(format!("the control of {name} failed: the row was not run")),
    }
    is_run
}

/// Makes attempts as users in settings.
pub(crate) fn are_held<'a>(
    attempts: impl Iterator<Item = (&'a str, &'a Row)>,
    users: &[User],
    settings: &[Setting],
) {
    let mut wrong = Vec::new();
    for (class, row) in attempts {
        for user in users {
            let name = format!("{class}, {}, {user:?}", row.name);
            if !is_run(&name, row, *user, &mut wrong) {
                continue;
            }
            for (level, weaker) in settings {
                if must_hold(row, *level, weaker) {
                    let fault = fault(row, *level, &succeeds(row, *user, *level, weaker));
                    wrong.extend(fault.map(|fault| format!("{name} at {level} {weaker:?} {fault}")));
                } else {
                    let reason = row.partial.unwrap_or("it needs a newer Landlock");
                    println!("not held at {level} {weaker:?}: {name}: {reason}");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Makes all attempts of a class at a level, as each user.
fn all_are_held(class: &str, rows: &[Row], level: Level) {
    let setting: Setting = match level {
        Level::Full => (level, &[IN_SESSION]),
        Level::Partial | Level::None => (level, &[]),
    };
    are_held(rows.iter().map(|row| (class, row)), &User::all(), &[setting]);
}

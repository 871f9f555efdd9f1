//! The whole matrix (spec: security §29): every attempt as each user at each level and on older kernels, and every
//! protection taken away in turn. `cargo xtask soak` runs it and prints its tables; other tests run parts of it.

use std::collections::BTreeMap;

use drawloom_sandbox::{Level, Protection};

use crate::answering::ANSWERING;
use crate::caches::CACHES;
use crate::closed_folders::CLOSED_FOLDERS;
use crate::further_roots::READ_ONLY;
use crate::git_folders::GIT_FOLDERS;
use crate::refused_calls::REFUSED_CALLS;
use crate::removals::{ALONE, FULL, PARTIAL};
use crate::rows::{self, Row};
use crate::world::User;
use crate::{IN_SESSION, Setting, fault, is_run, succeeds};

/// Every class of attempts.
const CLASSES: &[(&str, &[Row])] = &[
    ("keys", rows::KEYS),
    ("outside", rows::OUTSIDE),
    ("protected set", rows::PROTECTED),
    ("ancestors and links", rows::ANCESTORS),
    ("git folders", GIT_FOLDERS),
    ("closed folders", CLOSED_FOLDERS),
    ("caches", CACHES),
    ("further root for reading", READ_ONLY),
    ("processes", rows::PROCESSES),
    ("namespaces", rows::NAMESPACES),
    ("refused calls", REFUSED_CALLS),
    ("network", rows::NETWORK),
    ("outliving", rows::OUTLIVING),
    ("floods", rows::FLOODS),
    ("home", rows::HOME),
    ("terminal", rows::TERMINAL),
    ("answering", ANSWERING),
];

/// Levels, in a session and outside of one, and older kernels at them. Those of 6.1, 6.8 and 6.15 have these versions of
/// Landlock.
const SETTINGS: &[Setting] = &[
    (Level::Full, &[IN_SESSION]),
    (Level::Full, &[]),
    (Level::Full, &["no-overlay"]),
    (Level::Partial, &[IN_SESSION]),
    (Level::Partial, &[]),
    (Level::Partial, &["landlock=7"]),
    (Level::Partial, &["landlock=4"]),
    (Level::Partial, &["landlock=2"]),
    (Level::None, &[]),
];

/// Attempts that an older Landlock lets through at level *partial*: name, and the version that holds them.
const NEEDS_LANDLOCK: &[(&str, u32)] = &[("signal", 6)];

/// Whether walls promise to hold an attempt.
pub(crate) fn must_hold(row: &Row, level: Level, weaker: &[&str]) -> bool {
    let landlock = weaker.iter().find_map(|name| name.strip_prefix("landlock=")?.parse::<u32>().ok());
    let is_older = |needed: u32| landlock.is_some_and(|version| version < needed);
    let needs = NEEDS_LANDLOCK.iter().find(|(name, _)| *name == row.name);
    match level {
        Level::Full => true,
        Level::Partial => row.partial.is_none() && !needs.is_some_and(|(_, version)| is_older(*version)),
        // What needs no wall: a look after the command, and the end of what it left.
        Level::None => row.is_undone(),
    }
}

pub(crate) fn every_attempt() -> impl Iterator<Item = (&'static str, &'static Row)> {
    CLASSES.iter().flat_map(|(class, rows)| rows.iter().map(move |row| (*class, row)))
}

/// Attempts of which the control succeeds, by user.
fn attempts() -> Vec<(User, &'static str, &'static Row)> {
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    for user in User::all() {
        for (class, row) in every_attempt() {
            if is_run(&format!("{class}, {}, {user:?}", row.name), row, user, &mut wrong) {
                found.push((user, class, row));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    found
}

#[test]
#[ignore = "takes an hour: cargo xtask soak runs it"]
fn every_attempt_as_each_user_at_each_level_and_on_older_kernels() {
    let (attempts, mut wrong) = (attempts(), Vec::new());
    for (level, weaker) in SETTINGS {
        let mut table = BTreeMap::<_, [usize; 2]>::new();
        for (user, class, row) in &attempts {
            let came = succeeds(row, *user, *level, weaker);
            table.entry((format!("{user:?}"), *class)).or_default()[usize::from(came.0)] += 1;
            let name = format!("{class}, {}, {user:?}", row.name);
            if must_hold(row, *level, weaker) {
                let fault = fault(row, *level, &came);
                wrong.extend(fault.map(|fault| format!("{name} at {level} {weaker:?} {fault}")));
            } else if came.0 {
                println!("let through at {level} {weaker:?}: {name}");
            }
        }
        for ((user, class), [held, through]) in table {
            println!("{level} {weaker:?} {user:<7} {class:<20} held {held:>3}, let through {through:>3}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "takes an hour: cargo xtask soak runs it"]
fn every_protection_taken_away_is_caught_by_an_attempt() {
    let (attempts, mut uncaught) = (attempts(), Vec::new());
    for protection in Protection::ALL {
        let name = protection.name();
        let mut caught = 0;
        for level in [Level::Full, Level::Partial] {
            for (user, class, row) in attempts.iter().filter(|(_, _, row)| must_hold(row, level, &[])) {
                if succeeds(row, *user, level, &[name]).0 {
                    println!("without {name:<18} at {level:<8}: {class}, {}, {user:?}", row.name);
                    caught += 1;
                }
            }
        }
        for (_, attempt, lets_through) in ALONE.iter().filter(|(alone, ..)| *alone == protection) {
            if lets_through(&[name]) {
                println!("without {name:<18} alone      : {attempt}");
                caught += 1;
            }
        }
        if caught == 0 {
            uncaught.push(name);
        }
    }
    assert!(uncaught.is_empty(), "no attempt catches that these are gone: {uncaught:?}");
}

/// What is caught is seen in [`crate::removals`].
#[test]
fn every_protection_is_taken_away_by_a_test() {
    let is_listed = |protection: &Protection| {
        let by_row = FULL.iter().chain(PARTIAL).any(|(omitted, ..)| *omitted == protection.name());
        by_row || ALONE.iter().any(|(alone, ..)| alone == protection)
    };
    let missing: Vec<_> = Protection::ALL.into_iter().filter(|protection| !is_listed(protection)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A name is looked up in its class, and printed alone.
#[test]
fn names_of_attempts_are_each_given_once_in_a_class() {
    for (class, rows) in CLASSES {
        for row in *rows {
            assert_eq!(
                rows.iter().filter(|other| other.name == row.name).count(),
                1,
                "{class}: {}",
                row.name
            );
        }
    }
}

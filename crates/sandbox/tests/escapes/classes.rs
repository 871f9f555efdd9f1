//! Each class of attempts at each level.

use drawloom_sandbox::{Ending, Level};

use crate::answering::ANSWERING;
use crate::further_roots::READ_ONLY;
use crate::matrix::every_attempt;
use crate::refused_calls::REFUSED_CALLS;
use crate::rows;
use crate::world::{User, World, limits};
use crate::{all_are_held, are_held};

#[test]
fn keys_and_environment_are_not_reached() {
    all_are_held("keys", rows::KEYS, Level::Full);
}

#[test]
fn keys_and_environment_at_partial() {
    all_are_held("keys", rows::KEYS, Level::Partial);
}

#[test]
fn nothing_is_written_outside() {
    all_are_held("outside", rows::OUTSIDE, Level::Full);
}

#[test]
fn nothing_is_written_outside_at_partial() {
    all_are_held("outside", rows::OUTSIDE, Level::Partial);
}

#[test]
fn the_protected_set_stays_as_it_is() {
    all_are_held("protected set", rows::PROTECTED, Level::Full);
}

#[test]
fn the_protected_set_is_given_back_at_partial() {
    all_are_held("protected set", rows::PROTECTED, Level::Partial);
}

#[test]
fn ancestors_and_links_lead_nowhere() {
    all_are_held("ancestors and links", rows::ANCESTORS, Level::Full);
}

#[test]
fn ancestors_and_links_at_partial() {
    all_are_held("ancestors and links", rows::ANCESTORS, Level::Partial);
}

#[test]
fn other_processes_are_not_reached() {
    all_are_held("processes", rows::PROCESSES, Level::Full);
}

#[test]
fn other_processes_at_partial() {
    all_are_held("processes", rows::PROCESSES, Level::Partial);
}

#[test]
fn no_namespace_and_no_mount_is_made() {
    all_are_held("namespaces", rows::NAMESPACES, Level::Full);
}

#[test]
fn no_namespace_at_partial() {
    all_are_held("namespaces", rows::NAMESPACES, Level::Partial);
}

#[test]
fn calls_that_no_command_needs_are_refused() {
    all_are_held("refused calls", REFUSED_CALLS, Level::Full);
}

#[test]
fn no_network_is_reached() {
    all_are_held("network", rows::NETWORK, Level::Full);
}

#[test]
fn no_network_at_partial() {
    all_are_held("network", rows::NETWORK, Level::Partial);
}

#[test]
fn nothing_outlives_its_command() {
    all_are_held("outliving", rows::OUTLIVING, Level::Full);
}

#[test]
fn nothing_outlives_its_command_at_partial() {
    all_are_held("outliving", rows::OUTLIVING, Level::Partial);
}

#[test]
fn floods_are_ended() {
    all_are_held("floods", rows::FLOODS, Level::Full);
}

#[test]
fn floods_at_partial() {
    all_are_held("floods", rows::FLOODS, Level::Partial);
}

#[test]
fn home_and_store_are_not_reached() {
    all_are_held("home", rows::HOME, Level::Full);
}

#[test]
fn home_and_store_at_partial() {
    all_are_held("home", rows::HOME, Level::Partial);
}

#[test]
fn terminal_and_descriptors_are_not_reached() {
    all_are_held("terminal", rows::TERMINAL, Level::Full);
}

#[test]
fn terminal_at_partial() {
    all_are_held("terminal", rows::TERMINAL, Level::Partial);
}

#[test]
fn no_command_answers_a_question_of_its_own() {
    all_are_held("answering", ANSWERING, Level::Full);
}

#[test]
fn no_command_answers_a_question_of_its_own_at_partial() {
    all_are_held("answering", ANSWERING, Level::Partial);
}

/// What needs no wall: what a command left is looked after, and ended.
#[test]
fn without_walls_the_protected_set_is_given_back_and_nothing_outlives_its_command() {
    all_are_held("protected set", rows::PROTECTED, Level::None);
    all_are_held("outliving", rows::OUTLIVING, Level::None);
}

/// Kernels of 6.1 and 6.15 have these versions of Landlock.
#[test]
fn older_kernels_hold_files_and_network_at_partial() {
    let classes = [
        ("outside", rows::OUTSIDE),
        ("further root for reading", READ_ONLY),
        ("network", rows::NETWORK),
        ("home", rows::HOME),
    ];
    let attempts = classes.into_iter().flat_map(|(class, rows)| rows.iter().map(move |row| (class, row)));
    are_held(attempts, &User::all(), &[(Level::Partial, &["landlock=2"]), (Level::Partial, &["landlock=7"])]);
}

#[test]
fn on_an_older_kernel_a_command_empties_what_it_opens_to_write() {
    let world = World::new(User::Own);
    let line = ": > src/main.txt && test ! -s src/main.txt";
    let outcome = world.run_in_walls(line, Level::Partial, limits(), &["landlock=2"]).unwrap();
    assert_eq!(outcome.ending, Ending::Exited(0), "{outcome:?}");
}

/// Every class as the user that a person is. A kernel of 6.8 has this version of Landlock.
#[test]
fn a_kernel_of_long_support_holds_every_class_at_partial() {
    let user = *User::all().last().unwrap();
    are_held(every_attempt(), &[user], &[(Level::Partial, &["landlock=4"])]);
}

//! Each class of attempts at each level.

use drawloom_sandbox::Level;

use crate::rows;
use crate::world::User;
use crate::{all_are_held, succeeds};

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

/// Kernels of 6.1, 6.8 and 6.15 have these versions of Landlock.
#[test]
fn older_kernels_hold_files_and_network_at_partial() {
    for version in ["landlock=2", "landlock=4", "landlock=7"] {
        for (class, rows) in [("outside", rows::OUTSIDE), ("network", rows::NETWORK), ("home", rows::HOME)] {
            let rows = rows.iter().filter(|row| row.partial.is_none());
            for (user, row) in rows.flat_map(|row| User::all().into_iter().map(move |user| (user, row))) {
                let (succeeded, outcome) = succeeds(row, user, Level::Partial, &[version]);
                assert!(!succeeded, "{class}, {}, {user:?}, {version}: {outcome:?}", row.name);
            }
        }
    }
}

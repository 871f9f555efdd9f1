//! Protected files with another name, which their owner saves while a command runs.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use drawloom_sandbox::{Ending, Level, Notice, Outcome};

use crate::IN_SESSION;
use crate::world::{User, World, limits};

/// Runs a line, and what the owner does once it has made `asked`. The line ends once `saved` is there.
fn beside(world: &World, line: &str, owner: impl FnOnce(&World) + Send) -> Outcome {
    thread::scope(|scope| {
        scope.spawn(|| {
            let late = Instant::now() + Duration::from_secs(60);
            while !world.path("root/asked").exists() {
                assert!(Instant::now() < late, "nobody asked");
                thread::yield_now();
            }
            owner(world);
            fs::write(world.path("root/saved"), "").unwrap();
        });
        let line = format!("{line}; touch asked; until test -e saved; do sleep 0.01; done");
        world.run_in_walls(&line, Level::Full, limits(), &[IN_SESSION]).unwrap()
    })
}

fn rename_over(world: &World, name: &str) {
    fs::write(world.path("root/new"), "mine\n").unwrap();
    world.give_to_user("root/new");
    fs::rename(world.path("root/new"), world.path("root").join(name)).unwrap();
}

fn restored(outcome: &Outcome) -> Vec<&Notice> {
    let is_restored = |notice: &&Notice| matches!(notice, Notice::Restored(_) | Notice::Quarantined { .. });
    outcome.notices.iter().filter(is_restored).collect()
}

fn told<'o>(outcome: &'o Outcome, what: &str) -> Vec<&'o str> {
    let told = outcome.notices.iter().filter_map(|notice| match notice {
        Notice::Lacks(text) if text.contains(what) => Some(text.as_str()),
        _ => None,
    });
    told.collect()
}

#[test]
fn what_its_owner_saves_by_renaming_stays_and_what_it_was_is_kept() {
    for user in User::all() {
        for line in ["true", "echo evil >> second-name"] {
            let world = World::new(user);
            let outcome = beside(&world, line, |world| rename_over(world, "BOOT.md"));
            assert_eq!(outcome.ending, Ending::Exited(0), "{outcome:?}");
            assert_eq!(world.text("root/BOOT.md").as_deref(), Some("mine\n"), "{line}: {outcome:?}");
            assert_eq!(restored(&outcome), Vec::<&Notice>::new(), "{line}");
            assert_eq!(world.text("quarantine/0/BOOT.md").as_deref(), Some("ours"), "{line}: {outcome:?}");
            let kept = world.path("quarantine/0/BOOT.md").display().to_string();
            assert_eq!(told(&outcome, &kept).len(), 1, "{line}: {outcome:?}");
        }
    }
}

/// Without a save the same line changes it, and that is undone.
#[test]
fn the_control_what_a_command_writes_by_the_other_name_of_the_same_file_is_given_back() {
    let world = World::new(User::Own);
    let outcome = beside(&world, "echo evil >> second-name", |_| {});
    assert_eq!(world.text("root/BOOT.md").as_deref(), Some("ours"), "{outcome:?}");
    assert_eq!(world.text("quarantine/0/BOOT.md").as_deref(), Some("oursevil\n"), "{outcome:?}");
    let path = world.path("root/BOOT.md");
    assert!(outcome.notices.contains(&Notice::Restored(path)), "{outcome:?}");
}

#[test]
fn what_its_owner_removes_is_gone_and_what_it_was_is_kept() {
    let world = World::new(User::Own);
    let outcome = beside(&world, "true", |world| fs::remove_file(world.path("root/BOOT.md")).unwrap());
    assert_eq!(world.text("root/BOOT.md"), None, "{outcome:?}");
    assert_eq!(world.text("quarantine/0/BOOT.md").as_deref(), Some("ours"), "{outcome:?}");
    assert_eq!(restored(&outcome), Vec::<&Notice>::new());
}

/// A command beside it that began before the save tells of it as well, and takes nothing back.
#[test]
fn of_several_commands_none_takes_a_save_back() {
    let world = World::new(User::Own);
    let first = world.start_beside("touch first; until test -e over; do sleep 0.01; done", Level::Full);
    let late = Instant::now() + Duration::from_secs(60);
    while !world.path("root/first").exists() {
        assert!(Instant::now() < late, "it did not begin");
        thread::yield_now();
    }
    beside(&world, "true", |world| rename_over(world, "BOOT.md"));
    // One that begins later finds what was saved.
    let later = world.does("cat BOOT.md; touch over", Level::Full);
    assert_eq!((later.standard.text().as_str(), restored(&later)), ("mine\n", vec![]), "{later:?}");
    assert_eq!(told(&later, "BOOT.md"), Vec::<&str>::new());
    assert!(first.wait_with_output().unwrap().status.success());
    assert_eq!(world.text("root/BOOT.md").as_deref(), Some("mine\n"));
}

/// By an editor that writes into the file: all its names are mounted, so that nobody else can have written to it.
#[test]
fn what_its_owner_writes_into_a_file_that_is_protected_by_each_of_its_names_stays() {
    for (other, stays) in [("GEMINI.md", true), ("plain", false)] {
        let world = World::new(User::Own);
        fs::hard_link(world.path("root/AGENTS.md"), world.path("root").join(other)).unwrap();
        let outcome = beside(&world, &format!("echo evil >> {other} || true"), |world| {
            fs::write(world.path("root/AGENTS.md"), "mine\n").unwrap();
        });
        let text = world.text("root/AGENTS.md").unwrap();
        assert_eq!(
            (text.as_str(), restored(&outcome).is_empty()),
            match stays {
                true => ("mine\n", true),
                false => ("ours", false),
            },
            "{other}: {outcome:?}"
        );
        // Nothing is lost.
        assert!(stays || world.text("quarantine/0/AGENTS.md").as_deref() == Some("mine\n"), "{outcome:?}");
    }
}

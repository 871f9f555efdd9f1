//! Protected files that their owner replaces while a command runs, which takes the mounts off them that kept the command out.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use drawloom_sandbox::{Ending, Level, Notice};

use crate::IN_SESSION;
use crate::world::{User, World, limits};

/// What its owner replaces once a command has made `asked`, and the command's line, which then tries to write `evil`.
struct Replacement {
    name: &'static str,
    replace: fn(&World),
    line: &'static str,
    /// Path that is to be named.
    named: &'static str,
}

const REPLACEMENTS: &[Replacement] = &[
    Replacement {
        name: "saved by renaming",
        replace: |world| rename_over(world, "AGENTS.md"),
        line: "touch asked; until grep -q mine AGENTS.md; do sleep 0.05; done; sleep 0.5; echo evil >> AGENTS.md",
        named: "root/AGENTS.md",
    },
    Replacement {
        name: "the old one under another name",
        replace: |world| move_away(world, "AGENTS.md"),
        line: "touch asked; until grep -q mine AGENTS.md; do sleep 0.05; done; sleep 2.5; echo evil >> AGENTS.md",
        named: "root/AGENTS.md",
    },
    Replacement {
        name: "settings of git",
        replace: |world| rename_over(world, ".git/config"),
        line: "touch asked; until grep -q mine .git/config; do sleep 0.05; done; sleep 0.5; echo evil >> .git/config",
        named: "root/.git/config",
    },
    Replacement {
        name: "kept open",
        replace: |world| move_away(world, "AGENTS.md"),
        line: "touch asked; until grep -q mine AGENTS.md; do :; done; \
            exec 3>> AGENTS.md; sleep 6; echo evil >&3",
        named: "root/AGENTS.md",
    },
    Replacement {
        name: "second name",
        replace: |world| move_away(world, "AGENTS.md"),
        line: "touch asked; until grep -q mine AGENTS.md; do :; done; \
            ln AGENTS.md other; sleep 3; echo evil >> other",
        named: "root/AGENTS.md",
    },
    Replacement {
        name: "folder of hooks",
        replace: |world| {
            fs::create_dir(world.path("root/new")).unwrap();
            fs::write(world.path("root/new/mine"), "").unwrap();
            world.give_to_user("root/new");
            fs::rename(world.path("root/.git/hooks"), world.path("root/old")).unwrap();
            fs::rename(world.path("root/new"), world.path("root/.git/hooks")).unwrap();
        },
        line: "touch asked; until test -e .git/hooks/mine; do sleep 0.05; done; sleep 3; \
            echo evil > .git/hooks/pre-push",
        named: "root/.git/hooks",
    },
];

fn rename_over(world: &World, name: &str) {
    fs::write(world.path("root/new"), "mine\n").unwrap();
    world.give_to_user("root/new");
    fs::rename(world.path("root/new"), world.path("root").join(name)).unwrap();
}

fn move_away(world: &World, name: &str) {
    fs::rename(world.path("root").join(name), world.path("root/old")).unwrap();
    rename_over(world, name);
}

impl Replacement {
    /// Runs something while the owner waits to be asked; whether `evil` stands in the file.
    fn beside<T>(&self, world: &World, run: impl FnOnce() -> T) -> (bool, T) {
        let asked = world.path("root/asked");
        let ran = thread::scope(|scope| {
            let owner = scope.spawn(|| {
                let late = Instant::now() + Duration::from_secs(60);
                while !asked.exists() {
                    assert!(Instant::now() < late, "{}: nobody asked", self.name);
                    thread::yield_now();
                }
                (self.replace)(world);
            });
            let ran = run();
            owner.join().unwrap();
            ran
        });
        let has_evil = |name: &str| world.text(name).is_some_and(|text| text.contains("evil"));
        (["root/AGENTS.md", "root/.git/config", "root/.git/hooks/pre-push"].into_iter().any(has_evil), ran)
    }

    fn is_held(&self, user: User) {
        let world = World::new(user);
        let (is_changed, _) = self.beside(&world, || world.run_freely(self.line));
        assert!(is_changed, "the control of {} failed", self.name);
        let world = World::new(user);
        let (is_changed, outcome) = self
            .beside(&world, || world.run_in_walls(self.line, Level::Full, limits(), &[IN_SESSION]).unwrap());
        assert!(!is_changed, "{}: {outcome:?}", self.name);
        let path = world.path(self.named).display().to_string();
        let is_named = |notice: &Notice| matches!(notice, Notice::Lacks(what) if what.contains(&path));
        assert!(outcome.notices.iter().any(is_named), "{}: {outcome:?}", self.name);
        // Nothing is told twice.
        let notices = &outcome.notices;
        assert!(
            notices.iter().enumerate().all(|(at, notice)| !notices[..at].contains(notice)),
            "{outcome:?}"
        );
    }
}

#[test]
fn what_its_owner_replaces_while_a_command_runs_is_kept_from_it_again_and_named() {
    thread::scope(|scope| {
        for user in User::all() {
            for replacement in REPLACEMENTS {
                scope.spawn(move || replacement.is_held(user));
            }
        }
    });
}

#[test]
fn an_owner_who_saves_again_and_again_ends_no_command() {
    let world = World::new(User::Own);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            let late = Instant::now() + Duration::from_secs(60);
            while !world.path("root/asked").exists() {
                assert!(Instant::now() < late, "nobody asked");
                thread::yield_now();
            }
            for _ in 0..2_000 {
                rename_over(&world, "AGENTS.md");
            }
            fs::write(world.path("root/saved"), "").unwrap();
        });
        let line = "touch asked; until test -e saved; do sleep 0.01; done";
        world.run_in_walls(line, Level::Full, limits(), &[IN_SESSION]).unwrap()
    });
    assert_eq!(outcome.ending, Ending::Exited(0), "{outcome:?}");
    let is_named =
        |notice: &&Notice| matches!(notice, Notice::Lacks(what) if what.contains("AGENTS.md was replaced"));
    assert_eq!(outcome.notices.iter().filter(is_named).count(), 1, "{outcome:?}");
}

#[test]
fn what_is_gone_at_the_end_is_named() {
    for (omitted, named) in [(&[IN_SESSION][..], true), (&[IN_SESSION, "renewed-covers"], false)] {
        let world = World::new(User::Own);
        let outcome = thread::scope(|scope| {
            scope.spawn(|| {
                let late = Instant::now() + Duration::from_secs(60);
                while !world.path("root/asked").exists() {
                    assert!(Instant::now() < late, "nobody asked");
                    thread::yield_now();
                }
                fs::remove_file(world.path("root/AGENTS.md")).unwrap();
            });
            let line = "touch asked; while test -e AGENTS.md; do sleep 0.01; done";
            world.run_in_walls(line, Level::Full, limits(), omitted).unwrap()
        });
        assert_eq!(outcome.ending, Ending::Exited(0), "{outcome:?}");
        let path = world.path("root/AGENTS.md").display().to_string();
        let is_named = |notice: &Notice| matches!(notice, Notice::Lacks(what) if what.starts_with(&format!("{path} is gone")));
        assert_eq!(outcome.notices.iter().any(is_named), named, "{outcome:?}");
    }
}

/// Whether a file that its owner saved is changed by a command, with some protections omitted.
pub(crate) fn is_changed(omitted: &[&str]) -> bool {
    let world = World::new(User::Own);
    let [saved, ..] = REPLACEMENTS else { unreachable!() };
    let run = || world.run_in_walls(saved.line, Level::Full, limits(), omitted).unwrap();
    saved.beside(&world, run).0
}

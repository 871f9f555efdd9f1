//! Time, output, and what is said of a command.

use std::time::{Duration, Instant};

use drawloom_sandbox::{Ending, Level, LevelReport, Limits, Notice, Outcome};

use crate::rows::{ENDS_HELPER, ENDS_HELPER_AND_WAITS, HOLDS, still_holds};
use crate::world::{User, World};

const LEVELS: [Level; 3] = [Level::Full, Level::Partial, Level::None];

#[test]
fn x8_a_grandchild_that_holds_the_output_does_not_hold_the_command() {
    for level in LEVELS {
        let world = World::new(User::Own);
        let limits = Limits { time_ms: 1_000, free_space: 1, ..Limits::default() };
        let begun = Instant::now();
        let outcome = world.run_in_walls("(setsid sleep 47 &); sleep 50", level, limits, &[]).unwrap();
        assert_eq!(outcome.ending, Ending::TimedOut, "{level}");
        assert!(outcome.duration < Duration::from_millis(1_100), "{level}: {:?}", outcome.duration);
        assert!(begun.elapsed() < Duration::from_secs(3));
        let names = outcome
            .notices
            .iter()
            .any(|notice| matches!(notice, Notice::Ended(names) if names[0] == "sleep"));
        assert!(names, "{:?}", outcome.notices);
    }
}

#[test]
fn x9_a_flood_of_output_is_kept_in_part_and_counted() {
    let world = World::new(User::Own);
    let limits = Limits { output: 64 << 10, free_space: 1, ..Limits::default() };
    let outcome = world.run_in_walls("yes | head -c 300000000; echo end", Level::Full, limits, &[]).unwrap();
    assert_eq!(outcome.ending, Ending::Exited(0));
    assert_eq!(outcome.standard.total(), 300_000_004);
    assert!(outcome.standard.head.len() + outcome.standard.tail.len() <= 64 << 10);
    assert!(outcome.standard.text().ends_with("y\nend\n"));
}

#[test]
fn what_a_command_leaves_running_is_ended_and_named() {
    for level in LEVELS {
        let world = World::new(User::Own);
        let outcome = world.run_in_walls("sleep 60 & echo a", level, Limits::default(), &[]).unwrap();
        assert_eq!((outcome.ending, outcome.standard.text()), (Ending::Exited(0), "a\n".to_owned()));
        assert_eq!(outcome.notices, [Notice::Ended(vec!["sleep".into()])], "{level}");
    }
}

#[test]
fn the_end_of_a_command_is_told_as_it_was() {
    let world = World::new(User::Own);
    let end = |line: &str, level| {
        world.run_in_walls(line, level, Limits::default(), &[]).map(|outcome| outcome.ending)
    };
    for level in LEVELS {
        assert_eq!(end("exit 3", level), Ok(Ending::Exited(3)));
        assert_eq!(end("kill -9 $$", level), Ok(Ending::Signaled(9)));
    }
}

#[test]
fn what_looks_like_a_missing_network_says_so() {
    let world = World::new(User::Own);
    let said = "echo 'curl: (6) Could not resolve host: example.com'";
    let time_ms = Limits::default().time_ms;
    for (end, time_ms, ending) in [
        (" >&2; exit 6", time_ms, Ending::Exited(6)),
        (" | tail -1", time_ms, Ending::Exited(0)),
        ("; exec sleep 60", 3_000, Ending::TimedOut),
    ] {
        let limits = Limits { time_ms, ..Limits::default() };
        let outcome = world.run_in_walls(&format!("{said}{end}"), Level::Full, limits, &[]).unwrap();
        assert_eq!((outcome.ending, outcome.notices), (ending, vec![Notice::NetworkSeemsMissing]), "{end}");
    }
}

#[test]
fn what_appeared_is_in_quarantine_and_named() {
    let world = World::new(User::Own);
    let outcome = world.run_in_walls("echo evil > .envrc", Level::Full, Limits::default(), &[]).unwrap();
    let [Notice::Quarantined { path, to }] = outcome.notices.as_slice() else {
        panic!("{:?}", outcome.notices)
    };
    assert!(path.ends_with("root/.envrc") && to.starts_with(world.path("quarantine")));
    assert_eq!(std::fs::read_to_string(to).unwrap(), "evil\n");
}

fn probe(omitted: &[&str]) -> LevelReport {
    let program = crate::world::Program::new();
    let probe = std::process::Command::new(program.path()).arg("probe").args(omitted).output();
    serde_json::from_slice(&probe.unwrap().stdout).unwrap()
}

#[test]
fn the_machine_of_the_tests_allows_the_highest_level() {
    let report = probe(&[]);
    assert_eq!((report.level, report.missing), (Level::Full, Vec::new()));
}

#[test]
fn what_is_missing_lowers_the_level_and_is_named() {
    for (omitted, level, named) in [
        ("landlock=4", Level::Partial, "full: Landlock: the kernel has version 4"),
        ("landlock=4", Level::Partial, "partial: signals to other processes is not held"),
        ("landlock=0", Level::None, "partial: reading outside of the walls is not held"),
        ("seccomp", Level::None, "full: io_uring is not held"),
        ("net-namespace", Level::Partial, "full: UDP to the machine is not held"),
        ("protected-mounts", Level::Partial, "full: writing the protected set is not held"),
    ] {
        let report = probe(&[omitted]);
        assert_eq!(report.level, level, "{omitted}: {report:?}");
        assert!(report.missing.iter().any(|missing| missing.starts_with(named)), "{omitted}: {report:?}");
    }
}

#[test]
fn ending_the_helper_from_inside_frees_nothing() {
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        let outcome = world.run_in_walls(ENDS_HELPER, level, Limits::default(), &[]).unwrap();
        assert!(!still_holds(&world), "{level}: {outcome:?}");
    }
}

#[test]
fn a_command_that_is_cancelled_ends_with_all_it_started() {
    for level in LEVELS {
        let world = World::new(User::Own);
        let output = world.run_otherwise("cancel", HOLDS, level, Limits::default());
        let outcome: Result<Outcome, String> = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(outcome.unwrap().ending, Ending::Cancelled, "{level}");
        assert!(!still_holds(&world), "{level}");
    }
}

#[test]
fn a_command_does_not_outlive_the_process_that_started_it() {
    for level in LEVELS {
        let world = World::new(User::Own);
        assert!(world.run_otherwise("abandon", HOLDS, level, Limits::default()).status.success());
        let until = Instant::now() + Duration::from_secs(5);
        while still_holds(&world) {
            assert!(Instant::now() < until, "{level}");
            std::thread::yield_now();
        }
    }
}

/// At level *none* nothing keeps a command from ending its helper; what it left is ended by the process above.
#[test]
fn what_a_helper_leaves_that_was_ended_is_ended_and_named() {
    let after = |omitted: &[&str]| {
        let world = World::new(User::Own);
        let outcome =
            world.run_in_walls(ENDS_HELPER_AND_WAITS, Level::None, Limits::default(), omitted).unwrap();
        let ended =
            |notice: &Notice| matches!(notice, Notice::Ended(names) if names.contains(&"sleep".into()));
        (still_holds(&world), outcome.notices.iter().any(ended))
    };
    assert_eq!(after(&[]), (false, true));
    assert_eq!(after(&["end-tree"]), (true, false), "the control");
}

/// Kernels before 6.12 hold no signals at level *partial*.
#[test]
fn a_command_cannot_end_its_supervisors_at_partial() {
    let lines = ["kill -9 $PPID; echo on", "kill -9 $(sed -n 's/PPid:\t//p' /proc/$PPID/status); echo on"];
    for line in lines {
        for version in ["landlock=2", "landlock=7"] {
            let world = World::new(User::Own);
            let outcome = world.run_in_walls(line, Level::Partial, Limits::default(), &[version]).unwrap();
            let text = outcome.standard.text();
            assert_eq!((outcome.ending, text.as_str()), (Ending::Exited(0), "on\n"), "{line}, {version}");
        }
    }
    let world = World::new(User::Own);
    let omitted = ["landlock", "seccomp"];
    let outcome = world.run_in_walls(lines[0], Level::Partial, Limits::default(), &omitted).unwrap();
    assert_eq!(outcome.ending, Ending::Signaled(9), "the control");
}

#[test]
fn processes_of_the_owner_do_not_count_for_a_command() {
    let Some(user) = User::all().into_iter().find(|user| *user == User::Nobody) else {
        return println!("not run: this is not the administrator, who can be somebody else");
    };
    let mut others: Vec<_> = (0..40).map(|_| user.sleeping_process()).collect();
    for level in [Level::Full, Level::Partial] {
        let world = World::new(user);
        let limits = Limits { processes: 8, ..Limits::default() };
        let outcome = world.run_in_walls("(true | true) && echo on", level, limits, &[]).unwrap();
        assert_eq!(outcome.standard.text(), "on\n", "{level}: {}", outcome.error.text());
    }
    others.iter_mut().for_each(|process| process.kill().and_then(|()| process.wait()).map(drop).unwrap());
}

#[test]
fn whoever_does_not_read_the_output_holds_neither_its_time_nor_its_end() {
    for (way, time_ms, ending) in
        [("stall", 1_000, Ending::TimedOut), ("stall-and-cancel", 60_000, Ending::Cancelled)]
    {
        let world = World::new(User::Own);
        let limits = Limits { time_ms, free_space: 1, ..Limits::default() };
        let begun = Instant::now();
        let output = world.run_otherwise(way, "yes", Level::Full, limits);
        let outcome: Result<Outcome, String> = serde_json::from_slice(&output.stdout).unwrap();
        let outcome = outcome.unwrap();
        assert_eq!(outcome.ending, ending, "{way}");
        assert!(begun.elapsed() < Duration::from_secs(6), "{way}: {:?}", begun.elapsed());
        // Nor does what it does not read pile up.
        assert!(outcome.standard.total() < 16 << 20, "{way}: {}", outcome.standard.total());
        let stalled = |notice: &Notice| matches!(notice, Notice::Lacks(what) if what.contains("stalled"));
        assert!(outcome.notices.iter().any(stalled), "{way}: {:?}", outcome.notices);
    }
}

#[test]
fn a_command_that_ends_its_supervisor_is_looked_at_all_the_same() {
    let world = World::new(User::Own);
    let line = "echo theirs > AGENTS.md; echo theirs > .envrc; kill -9 $PPID; sleep 60";
    let outcome = world.run_in_walls(line, Level::None, Limits::default(), &[]).unwrap();
    assert_eq!(outcome.ending, Ending::Signaled(9));
    assert_eq!(world.text("root/AGENTS.md").unwrap(), "ours");
    assert!(!world.path("root/.envrc").exists());
    let says =
        |word: &str| outcome.notices.iter().any(|n| matches!(n, Notice::Lacks(what) if what.contains(word)));
    assert!(says("without saying how"), "{outcome:?}");
    assert!(outcome.notices.contains(&Notice::Restored(world.path("root/AGENTS.md"))), "{outcome:?}");
}

/// Nobody is told of it, but no instruction stays that nobody wrote.
#[test]
fn what_a_command_changed_is_given_back_also_when_its_supervisor_is_killed() {
    let line = "echo theirs > AGENTS.md; echo theirs > .envrc; echo on; sleep 60";
    let is_as_it_was = |world: &World| {
        world.text("root/AGENTS.md").as_deref() == Some("ours") && !world.path("root/.envrc").exists()
    };
    for level in [Level::Partial, Level::None] {
        let world = World::new(User::Own);
        assert!(world.run_otherwise("abandon", line, level, Limits::default()).status.success());
        let until = Instant::now() + Duration::from_secs(10);
        while !is_as_it_was(&world) {
            assert!(Instant::now() < until, "{level}: {:?}", world.text("root/AGENTS.md"));
            std::thread::yield_now();
        }
        assert!(world.path("quarantine").exists());
    }
}

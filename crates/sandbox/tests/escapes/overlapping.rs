//! Commands that run at once: what one of them made or changed is no less a command's for another one.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use drawloom_sandbox::{
    AcceptedChanges, AcceptedState, FileBefore, Level, Notice, Outcome, before_running_commands,
};

use crate::world::{User, World};

const LEVELS: [Level; 2] = [Level::Full, Level::Partial];

/// What makes a file of instructions, a repository that runs a program, and where no mount holds it another text.
const EVIL: &str = "echo evil > .envrc; mkdir -p s/.git/objects s/.git/refs; echo 'ref: refs/heads/main' > s/.git/HEAD; \
    printf '[core]\\n\\tfsmonitor = ./evil\\n' > s/.git/config; { echo evil > AGENTS.md; } 2> /dev/null; \
    { printf '[core]\\n\\tfsmonitor = ./evil\\n' >> .git/config; } 2> /dev/null";
/// What has other names, so that the next look finds nothing.
const RENAME: &str = "mv .envrc one; mv s two";

fn mark(name: &str) -> String {
    format!("touch {name}")
}

fn until(name: &str) -> String {
    format!("until test -e {name}; do sleep 0.01; done")
}

fn wait_for(path: &Path) {
    let late = Instant::now() + Duration::from_secs(60);
    while !path.exists() {
        assert!(Instant::now() < late, "{} never came", path.display());
        thread::yield_now();
    }
}

fn outcome(command: Child) -> Outcome {
    let output = command.wait_with_output().unwrap();
    let outcome: Result<Outcome, String> = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    outcome.unwrap()
}

fn run(world: &World, line: &str, level: Level) -> Outcome {
    outcome(world.start_beside(line, level))
}

fn touch(world: &World, name: &str) {
    fs::write(world.path("root").join(name), "").unwrap();
}

/// Nothing is left that its owner's programs would run or read.
fn nothing_is_left(world: &World, told: &str) {
    for name in ["root/.envrc", "root/s/.git/config"] {
        assert!(!world.path(name).exists(), "{name}, {told}");
    }
    assert_eq!(world.text("root/AGENTS.md").as_deref(), Some("ours"), "{told}");
    let config = world.text("root/.git/config").unwrap();
    assert!(!config.contains("fsmonitor"), "{told}: {config}");
}

#[test]
fn a_name_that_one_command_hands_to_another_is_new_for_both() {
    for (user, level) in User::all().into_iter().flat_map(|user| LEVELS.map(|level| (user, level))) {
        let world = World::new(user);
        let line = [EVIL, &mark("made"), &until("begun"), RENAME].join("; ");
        let first = world.start_beside(&line, level);
        wait_for(&world.path("root/made"));
        let second = world.start_beside(&[&mark("begun"), &until("over"), EVIL].join("; "), level);
        let first = outcome(first);
        touch(&world, "over");
        let second = outcome(second);
        nothing_is_left(&world, &format!("{user:?} at {level}: {first:?} {second:?}"));
    }
}

#[test]
fn what_one_command_made_and_changed_is_given_back_whichever_ends_first() {
    for (user, level) in User::all().into_iter().flat_map(|user| LEVELS.map(|level| (user, level))) {
        for first_ends_first in [true, false] {
            let world = World::new(user);
            let first = [EVIL, &mark("made"), &until("over")].join("; ");
            let first = world.start_beside(&first, level);
            wait_for(&world.path("root/made"));
            let second =
                world.start_beside(&[&mark("begun"), &until("end")].map(String::as_str).join("; "), level);
            wait_for(&world.path("root/begun"));
            let outcomes = if first_ends_first {
                touch(&world, "over");
                let one = outcome(first);
                touch(&world, "end");
                [one, outcome(second)]
            } else {
                touch(&world, "end");
                let one = outcome(second);
                touch(&world, "over");
                [outcome(first), one]
            };
            nothing_is_left(&world, &format!("{user:?} at {level}, {first_ends_first}: {outcomes:?}"));
            // The control: nobody runs, and what is there now is there.
            let next = run(&world, "true", level);
            assert_eq!(next.notices, [], "{user:?} at {level}");
        }
    }
}

#[test]
fn what_a_killed_command_left_is_looked_after_by_the_next_one_and_what_came_later_stays() {
    for (level, comes_later) in [(Level::Full, false), (Level::Full, true), (Level::Partial, false)] {
        let world = World::new(User::Own);
        let mut first = world.start_beside(&[EVIL, &mark("made"), &until("over")].join("; "), level);
        wait_for(&world.path("root/made"));
        first.kill().unwrap();
        first.wait().unwrap();
        if comes_later {
            // As if it had been killed long ago.
            for lock in fs::read_dir(world.path("home/sandbox/tracked/running")).unwrap() {
                let lock = fs::File::options().write(true).open(lock.unwrap().path()).unwrap();
                lock.set_modified(SystemTime::now() - Duration::from_secs(3_600)).unwrap();
            }
        }
        let next = run(&world, "true", level);
        if comes_later {
            assert_eq!(next.notices, []);
            assert!(world.path("root/.envrc").exists() && world.path("root/s/.git/config").exists());
        } else {
            nothing_is_left(&world, &format!("{level}: {next:?}"));
        }
        let is_told =
            |notice: &Notice| matches!(notice, Notice::Quarantined { path, .. } if path.ends_with(".envrc"));
        // At the lower level the helper of the first one, which outlives it, may be the one that looks first.
        let told = next.notices.iter().any(is_told);
        assert!(level == Level::Partial || told != comes_later, "{level}, {comes_later}: {next:?}");
    }
}

/// What a tool begins to change at a path, as a person let it.
fn accept(world: &World, name: &str, state: AcceptedState) -> AcceptedChanges {
    let path = world.path("root").join(name);
    AcceptedChanges::begin(&world.path("home/sandbox/tracked"), [(path, state)]).unwrap()
}

/// A command that writes AGENTS.md and is killed, once a tool took that file away, or not. None where it was ended before it
/// wrote: what its owner removes may be seen first.
fn killed_after_writing(is_removed: bool) -> Option<World> {
    let line =
        ["touch made", &until("go"), "echo evil > AGENTS.md", "touch wrote", &until("over")].join("; ");
    let world = World::new(User::Own);
    let mut first = world.start_beside(&line, Level::Full);
    wait_for(&world.path("root/made"));
    if is_removed {
        let removing = accept(&world, "AGENTS.md", AcceptedState::Absent);
        fs::remove_file(world.path("root/AGENTS.md")).unwrap();
        removing.finish().unwrap();
    }
    touch(&world, "go");
    while !world.path("root/wrote").exists() {
        if first.try_wait().unwrap().is_some() {
            return None;
        }
        thread::yield_now();
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let expected = if is_removed { Some("evil\n") } else { Some("ours") };
    assert_eq!(world.text("root/AGENTS.md").as_deref(), expected, "the control");
    Some(world)
}

#[test]
fn what_a_killed_command_put_where_a_tool_took_a_file_away_is_moved_away() {
    for is_removed in [true, false] {
        let world = (0..100).find_map(|_| killed_after_writing(is_removed)).unwrap();
        let next = run(&world, "true", Level::Full);
        let expected = if is_removed { None } else { Some("ours") };
        assert_eq!(world.text("root/AGENTS.md").as_deref(), expected, "{next:?}");
    }
}

/// Which of two made it cannot be told: one may write there, so that it stays, and the other one says so.
#[test]
fn what_is_new_where_a_command_beside_may_write_is_named() {
    for is_over in [false, true] {
        let world = World::new(User::Own);
        let beside = accept(&world, ".envrc", AcceptedState::Any);
        let line = ["echo made > .envrc", "touch made", &until("over")].join("; ");
        let first = world.start_beside(&line, Level::Full);
        wait_for(&world.path("root/made"));
        let beside = if is_over { beside.finish().map(|()| None).unwrap() } else { Some(beside) };
        touch(&world, "over");
        let first = outcome(first);
        let is_named = |notice: &Notice| matches!(notice, Notice::Lacks(what) if what.contains("/.envrc is new, and stays"));
        assert!(first.notices.iter().any(is_named), "{first:?}");
        assert_eq!(world.text("root/.envrc").as_deref(), Some("made\n"));
        drop(beside);
        fs::remove_file(world.path("root/.envrc")).unwrap();
        // The control: nobody may write there.
        let alone = run(&world, "echo made > .envrc", Level::Full);
        assert!(!alone.notices.iter().any(is_named) && !world.path("root/.envrc").exists(), "{alone:?}");
    }
}

#[test]
fn who_reads_instructions_while_a_command_runs_is_told_what_was_there_before_it() {
    for level in LEVELS {
        let world = World::new(User::Own);
        let records = world.path("home/sandbox/tracked");
        let file = |name: &str| before_running_commands(&records, &world.path("root").join(name)).unwrap();
        assert_eq!(file("AGENTS.md"), FileBefore::AsItStands, "nothing ran here");
        let command = world.start_beside(&[EVIL, &mark("made"), &until("over")].join("; "), level);
        wait_for(&world.path("root/made"));
        assert_eq!(file(".envrc"), FileBefore::New, "{level}");
        let before = match level {
            Level::Full => FileBefore::AsItStands,
            Level::Partial | Level::None => FileBefore::Was(b"ours".to_vec()),
        };
        assert_eq!(file("AGENTS.md"), before, "{level}");
        touch(&world, "over");
        outcome(command);
        assert_eq!(file("AGENTS.md"), FileBefore::AsItStands, "{level}");
    }
}

#[test]
fn where_a_record_cannot_be_read_no_command_begins_and_no_file_is_believed() {
    let world = World::new(User::Own);
    let before = || {
        before_running_commands(&world.path("home/sandbox/tracked"), &world.path("root/AGENTS.md"))
            .map_err(|error| error.to_string())
    };
    let first = world.start_beside(&[mark("made"), until("over")].join("; "), Level::Full);
    wait_for(&world.path("root/made"));
    assert_eq!(before(), Ok(FileBefore::AsItStands), "the control");
    let entries = fs::read_dir(world.path("home/sandbox/tracked/running")).unwrap();
    let records = entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_none());
    for record in records {
        fs::write(record, "{\"folder\"").unwrap();
    }
    assert!(before().is_err());
    let second = world.start_beside("touch begun", Level::Full).wait_with_output().unwrap();
    let second: Result<Outcome, String> = serde_json::from_slice(&second.stdout).unwrap();
    let why = second.unwrap_err();
    assert!(why.contains("tracked") && !world.path("root/begun").exists(), "{why}");
    touch(&world, "over");
    outcome(first);
    assert_eq!(before(), Ok(FileBefore::AsItStands), "nobody runs");
    // The control: what is damaged of commands that ended stops nobody.
    run(&world, "true", Level::Full);
}

#[test]
fn a_command_that_runs_alone_leaves_no_record() {
    for level in LEVELS {
        let world = World::new(User::Own);
        run(&world, "true", level);
        let records = fs::read_dir(world.path("home/sandbox/tracked/running")).unwrap();
        let records: Vec<_> = records.map(|entry| entry.unwrap().path()).collect();
        assert!(records.iter().all(|path| path.extension().is_some_and(|end| end == "lock")), "{records:?}");
    }
}

/// Walls of a command in the folder that holds the root of the others.
fn walls_around(world: &World) -> drawloom_sandbox::Walls {
    let mut walls = world.walls(drawloom_sandbox::Limits { free_space: 1 << 20, ..Default::default() });
    walls.tracked_records = Some(world.path("home/sandbox/tracked"));
    walls.roots[0].path = world.path("");
    walls.private = vec![world.path("home")];
    walls.git_folders = Vec::new();
    walls
}

#[test]
fn a_folder_below_that_of_a_running_command_keeps_what_only_its_own_root_protects() {
    let world = World::new(User::Own);
    let skill = world.path("root/skills/x/SKILL.md");
    fs::create_dir_all(skill.parent().unwrap()).unwrap();
    fs::write(&skill, "ours").unwrap();
    let line = drawloom_sandbox::CommandLine::Shell([mark("made"), until("over")].join("; "));
    let around = walls_around(&world);
    thread::scope(|threads| {
        let first = threads.spawn(|| world.supervise(line, Level::Full, around, &[]).unwrap());
        wait_for(&world.path("root/made"));
        let second = run(&world, "echo evil > skills/x/SKILL.md; echo evil > skills/new", Level::Full);
        touch(&world, "over");
        let told = format!("{second:?} {:?}", first.join().unwrap());
        assert_eq!(world.text("root/skills/x/SKILL.md").as_deref(), Some("ours"), "{told}");
        assert!(!world.path("root/skills/new").exists(), "{told}");
    });
}

#[test]
fn a_folder_around_that_of_a_running_command_has_what_was_there_before_it() {
    let world = World::new(User::Own);
    let first = world.start_beside(&[EVIL, &mark("made"), &until("over")].join("; "), Level::Full);
    wait_for(&world.path("root/made"));
    let line = drawloom_sandbox::CommandLine::Shell("true".to_owned());
    let around = world.supervise(line, Level::Full, walls_around(&world), &[]).unwrap();
    assert!(!world.path("root/.envrc").exists(), "{around:?}");
    touch(&world, "over");
    nothing_is_left(&world, &format!("{around:?} {:?}", outcome(first)));
}

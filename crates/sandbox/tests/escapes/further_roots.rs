//! Further roots of a command beside its workspace.

use drawloom_sandbox::{Ending, Level, Limits, Notice, RootAccess, WallRoot, Walls};

use crate::all_are_held;
use crate::rows::{NO_LANDLOCK_RIGHT, Row, Surroundings, is_there, row};
use crate::world::{SECRET, User, World};

/// Walls of the workspace with the folder outside as a further root.
pub(crate) fn walls(world: &World, limits: Limits, access: RootAccess) -> Walls {
    let mut walls = world.walls(limits);
    walls.roots.push(WallRoot { path: world.path("outside"), access });
    walls
}

const fn further(name: &'static str, line: &'static str) -> Row {
    row(name, line).with(Surroundings::FurtherRoot)
}

/// Attempts on a root for reading.
pub(crate) const READ_ONLY: &[Row] = &[
    further("create", r#"echo x > "$OUTSIDE/new""#).makes("outside/new"),
    further("make a folder", r#"mkdir "$OUTSIDE/new""#).makes("outside/new"),
    further("append", r#"echo x >> "$OUTSIDE/file""#).changes("outside/file", SECRET),
    further("truncate", r#": > "$OUTSIDE/file""#).changes("outside/file", SECRET),
    further("empty what is not opened to write", r#""$ATTEMPT" attempt truncate"#)
        .changes("outside/file", SECRET),
    further("remove", r#"rm "$OUTSIDE/file""#).changes("outside/file", SECRET),
    further("rename in it", r#"mv "$OUTSIDE/file" "$OUTSIDE/other""#).changes("outside/file", SECRET),
    further("rename out of it", r#"mv "$OUTSIDE/file" taken"#).changes("outside/file", SECRET),
    further("rename into it", r#"mv src/main.txt "$OUTSIDE/brought""#).makes("outside/brought"),
    further("rename over", r#"echo x > new && mv -f new "$OUTSIDE/file""#).changes("outside/file", SECRET),
    further("rename itself", r#"mv "$OUTSIDE" "$BASE/elsewhere""#).makes("elsewhere"),
    further("hard link into the workspace", r#"ln "$OUTSIDE/file" link && echo x >> link"#)
        .changes("outside/file", SECRET),
    further("hard link into it", r#"ln src/main.txt "$OUTSIDE/link""#).makes("outside/link"),
    further("symbolic link to a file", r#"ln -s "$OUTSIDE/file" link && echo x >> link"#)
        .changes("outside/file", SECRET),
    further("symbolic link to a folder", r#"ln -s "$OUTSIDE" link && echo x > link/new"#)
        .makes("outside/new"),
    further("permissions", r#"chmod 600 "$OUTSIDE/file""#).not_in_partial(NO_LANDLOCK_RIGHT),
    further("times", r#"touch -d 2001-01-01 "$OUTSIDE/file""#).not_in_partial(NO_LANDLOCK_RIGHT),
];

#[test]
fn a_further_root_for_reading_is_not_written() {
    all_are_held("further root for reading", READ_ONLY, Level::Full);
}

#[test]
fn a_further_root_for_reading_is_not_written_at_partial() {
    all_are_held("further root for reading", READ_ONLY, Level::Partial);
}

#[test]
fn a_further_root_is_read_and_where_it_may_be_written_the_same_attempts_succeed() {
    let run = |line: &str, level, access| {
        let world = World::new(User::Own);
        let walls = walls(&world, Limits::default(), access);
        let outcome = world.run(line, level, walls, &[]).unwrap();
        (world, outcome)
    };
    for level in [Level::Full, Level::Partial] {
        for access in [RootAccess::ReadOnly, RootAccess::ReadWrite] {
            let (_, outcome) = run(r#"cd "$OUTSIDE" && grep -q s3cret file"#, level, access);
            assert_eq!(outcome.ending, Ending::Exited(0), "{level} {access:?}: {outcome:?}");
        }
        // A second name across two mounts there is none, and a root is not moved.
        let kept = |row: &&Row| !row.name.contains("hard link") && row.name != "rename itself";
        for row in READ_ONLY.iter().filter(kept) {
            let (world, outcome) = run(row.line, level, RootAccess::ReadWrite);
            let succeeded = row.has_succeeded(&world, &outcome);
            assert!(succeeded, "{} at {level}: {outcome:?}", row.name);
        }
    }
}

#[test]
fn the_protected_set_holds_in_a_further_root_that_may_be_written() {
    let world = World::new(User::Own);
    std::fs::create_dir_all(world.path("outside/.git/hooks")).unwrap();
    std::fs::write(world.path("outside/.git/config"), "").unwrap();
    std::fs::write(world.path("outside/AGENTS.md"), "ours").unwrap();
    for level in [Level::Full, Level::Partial] {
        let line = r#"cd "$OUTSIDE"; echo x > AGENTS.md; echo x > .git/hooks/pre-commit; echo x > .envrc; mv .git g2; echo x > plain"#;
        let walls = walls(&world, Limits::default(), RootAccess::ReadWrite);
        let outcome = world.run(line, level, walls, &[]).unwrap();
        assert_eq!(world.text("outside/AGENTS.md").as_deref(), Some("ours"), "{level}");
        assert!(
            !is_there(&world, "outside/.git/hooks/pre-commit") && !is_there(&world, "outside/.envrc"),
            "{level}"
        );
        assert!(is_there(&world, "outside/.git/config"), "{level}");
        let quarantined =
            |notice: &Notice| matches!(notice, Notice::Quarantined { path, .. } if path.ends_with(".envrc"));
        assert!(outcome.notices.iter().any(quarantined), "{level}: {:?}", outcome.notices);
        // The control: what is not protected is written.
        assert!(is_there(&world, "outside/plain"));
    }
}

//! The owner's package caches: read by the commands of a session, and never written.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::process::Stdio;

use drawloom_sandbox::{Ending, Level, Outcome};
use serde_json::json;

use crate::rows::{NO_LANDLOCK_RIGHT, Row, Surroundings, row};
use crate::sessions::{background, follow_with_cache, step};
use crate::world::{SECRET, User, World, limits};
use crate::{all_are_held, succeeds, succeeds_freely};

/// A line with the cache as the command has it; without walls, the owner's.
macro_rules! cached {
    ($name:expr, $line:literal) => {
        row(
            $name,
            concat!(r#"C="$HOME/.cargo/registry"; test -d "$C" || C="$OWNER/.cargo/registry"; "#, $line),
        )
        .with(Surroundings::Cache)
    };
}

const SOCKET: &str = "socket in the cache";
const ENTRY: &str = "owner/.cargo/registry/index/file";

fn metadata(world: &World) -> fs::Metadata {
    fs::metadata(world.path(ENTRY)).unwrap()
}

pub(crate) const CACHES: &[Row] = &[
    cached!("append to a file", r#"echo evil >> "$C/index/file""#).changes(ENTRY, "theirs"),
    cached!("truncate a file", r#": > "$C/index/file""#).changes(ENTRY, "theirs"),
    cached!("remove a file", r#"rm "$C/index/file""#).changes(ENTRY, "theirs"),
    cached!("rename over a file", r#"echo evil > new; mv -f new "$C/index/file""#).changes(ENTRY, "theirs"),
    cached!("move a folder away", r#"mv "$C/index" "$C/other""#).changes(ENTRY, "theirs"),
    cached!("remove all", r#"rm -rf "$C/index" "$C""#).changes(ENTRY, "theirs"),
    cached!("write through a second name", r#"ln "$C/index/file" "$C/second" && echo evil >> "$C/second""#)
        .changes(ENTRY, "theirs"),
    cached!("make a file", r#"echo evil > "$C/new""#).makes("owner/.cargo/registry/new"),
    cached!("permissions of a file", r#"chmod 777 "$C/index/file""#)
        .seen_by(|w| metadata(w).mode() & 0o777 == 0o777)
        .not_in_partial(NO_LANDLOCK_RIGHT),
    cached!("times of a file", r#"touch -d 2001-01-01 "$C/index/file""#)
        .seen_by(|w| metadata(w).mtime() < 1_000_000_000)
        .not_in_partial(NO_LANDLOCK_RIGHT),
    cached!("attribute of a file", r#"CACHE="$C/index" "$ATTEMPT" attempt attribute-in-cache"#)
        .seen_by(|w| rustix::fs::getxattr(w.path(ENTRY), c"user.escape", &mut [0_u8; 8]).is_ok())
        .not_in_partial(NO_LANDLOCK_RIGHT),
    cached!("credentials in the cache", r#"grep -q s3cret "$C/credentials.toml""#),
    cached!("second name of credentials", r#"grep -q s3cret "$C/src/one/notes""#),
    cached!("new name of credentials", r#"ln "$C/src/one/.npmrc" "$C/seen" && grep -q s3cret "$C/seen""#),
    cached!("moved folder of credentials", r#"mv "$C/src" "$C/moved"; grep -qr s3cret "$C/moved""#),
    cached!("copied folder of credentials", r#"cp -R "$C" copy; grep -q s3cret copy/src/one/.npmrc"#),
    cached!(
        "credentials under what replaced them",
        r#"mv "$C/credentials.toml" kept; echo x > "$C/credentials.toml"; rm "$C/credentials.toml"
        cat kept "$C/credentials.toml" | grep -q s3cret"#
    ),
    cached!("credentials beside the cache", r#"grep -q s3cret "$OWNER/.cargo/credentials.toml""#),
    cached!("credentials above the cache", r#"grep -q s3cret "$C/../credentials.toml""#),
    cached!(SOCKET, r#"CACHE="$C" "$ATTEMPT" attempt unix-in-cache"#),
    cached!("link out of the cache", r#"grep -q s3cret "$C/out""#),
];

#[test]
fn the_owners_caches_are_never_written_and_show_no_credentials() {
    all_are_held("caches", CACHES, Level::Full);
}

#[test]
fn the_owners_caches_are_not_reached_at_partial() {
    all_are_held("caches", CACHES, Level::Partial);
}

#[test]
fn without_overlays_the_owners_caches_are_held_as_well() {
    for row in CACHES {
        assert!(succeeds_freely(row, User::Own), "{}", row.name);
        let (succeeded, outcome) = succeeds(row, User::Own, Level::Full, &["no-overlay"]);
        assert!(!succeeded, "{}: {outcome:?}", row.name);
    }
}

/// Below an overlay a socket is another one than the owner's: it is seen once there is none.
#[test]
fn without_covers_and_overlays_a_socket_in_a_cache_answers() {
    let row = CACHES.iter().find(|row| row.name == SOCKET).unwrap();
    assert!(succeeds(row, User::Own, Level::Full, &["no-overlay", "cache-covers"]).0);
}

fn with_cache(world: &World, line: &str, level: Level, weaker: &[&str]) -> Outcome {
    world.run_with_cache(line, level, limits(), weaker).unwrap()
}

const READS: &str = r#"cd "$HOME/.cargo/registry" && cat index/file src/one/lib.rs"#;
const WRITES: &str = r#"cd "$HOME/.cargo/registry" && echo ours > index/file && mkdir made && echo ours > made/file
    rm src/one/lib.rs && mv index/file made/moved && cat made/*"#;

#[test]
fn a_cache_is_read_and_what_is_written_to_it_stays_in_its_session() {
    for user in User::all() {
        let world = World::new(user);
        let read = step(0, "run", READS);
        let given = follow_with_cache(
            &world,
            &json!([
                read,
                step(0, "run", WRITES),
                step(0, "run", r#"cat "$HOME/.cargo/registry/made/moved""#),
                step(1, "run", READS),
            ]),
        );
        assert_eq!((given[0].text.as_str(), given[0].notices.as_str()), ("theirstheirs", "[]"), "{given:?}");
        assert_eq!(given[1].text, "ours\nours\n", "{user:?}: {given:?}");
        assert_eq!(given[2].text, "ours\n", "{user:?}: {given:?}");
        assert_eq!(given[3].text, "theirstheirs", "{user:?}: {given:?}");
        assert_eq!(world.text(ENTRY).unwrap(), "theirs");
        assert_eq!(fs::read_dir(world.path("sessions")).unwrap().count(), 0, "nothing of a session stays");
    }
}

/// Two commands at once have copies of one mount: an upper folder that were part of two would not be told of the other's.
#[test]
fn commands_of_a_session_that_run_at_once_see_what_each_writes_to_a_cache() {
    let world = World::new(User::Own);
    let reads = r#"cd "$HOME/.cargo/registry"; echo on; read line; cat late; echo back > early; echo done; read line"#;
    let given = follow_with_cache(
        &world,
        &json!([
            background(0, reads, "on"),
            step(0, "run", r#"echo ours > "$HOME/.cargo/registry/late""#),
            step(0, "say", json!(["go\n", "ours\ndone"])),
            step(0, "run", r#"cat "$HOME/.cargo/registry/early""#),
            step(1, "run", r#"ls "$HOME/.cargo/registry""#),
        ]),
    );
    assert!(given[2].ending.starts_with("Printed"), "{given:?}");
    assert_eq!(given[3].text, "back\n", "{given:?}");
    assert!(given[4].text.contains("index") && !given[4].text.contains("early"), "{given:?}");
}

#[test]
fn where_there_is_no_overlay_a_cache_is_read_only_and_that_is_told_once() {
    let world = World::new(User::Own);
    let read = with_cache(&world, READS, Level::Full, &["no-overlay"]);
    assert_eq!((read.ending.clone(), read.standard.text()), (Ending::Exited(0), "theirstheirs".to_owned()));
    assert!(format!("{:?}", read.notices).contains("~/.cargo/registry is read-only"), "{read:?}");
    let write = with_cache(&world, "echo x > ~/.cargo/registry/index/new", Level::Full, &["no-overlay"]);
    assert!(write.error.text().contains("Read-only file system"), "{write:?}");
    let partial = with_cache(&world, "ls ~/.cargo", Level::Partial, &[]);
    assert!(format!("{:?}", partial.notices).contains("is not shown: there are none below level full"));
    fs::remove_dir_all(world.path("owner")).unwrap();
    let gone = follow_with_cache(&world, &json!([step(0, "run", "true"), step(0, "run", "true")]));
    assert!(gone[0].notices.contains("~/.cargo/registry is not shown"), "{gone:?}");
    assert_eq!(gone[1].notices, "[]", "{gone:?}");
}

/// What a command leaves in the place of a cache costs later commands the cache, and leads nowhere.
#[test]
fn a_place_that_is_taken_costs_the_cache_alone() {
    let world = World::new(User::Own);
    let home = world.path("home/sandbox/this");
    std::os::unix::fs::symlink(world.path("root"), home.join(".cargo")).unwrap();
    let outcome = with_cache(&world, "ls; echo done", Level::Full, &[]);
    assert_eq!(outcome.ending, Ending::Exited(0), "{outcome:?}");
    assert!(format!("{:?}", outcome.notices).contains("its place in HOME is taken"), "{outcome:?}");
    assert!(!world.path("root/registry").exists());
}

#[test]
fn what_a_killed_session_leaves_is_removed_by_the_next_one() {
    for user in User::all() {
        let world = World::new(user);
        let steps = json!([
            step(
                0,
                "run",
                r#"mkdir -m 0 "$HOME/.cargo/registry/closed"; echo x > "$HOME/.cargo/registry/new""#
            ),
            step(0, "", "wait"),
        ]);
        let mut program = world.sessions(Level::Full, &steps.to_string(), &[world.cache()]);
        let mut program = program.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "waiting\n");
        let left = || fs::read_dir(world.path("sessions")).unwrap().count();
        // One that is there is not touched by another session.
        follow_with_cache(&world, &json!([step(0, "run", "true")]));
        assert_eq!(left(), 1);
        program.kill().unwrap();
        program.wait().unwrap();
        assert_eq!(left(), 1, "the control");
        // Also by one without caches.
        let steps = json!([step(0, "run", "true")]).to_string();
        assert!(world.sessions(Level::Full, &steps, &[]).output().unwrap().status.success());
        assert_eq!(left(), 0);
        assert!(!world.path("owner/.cargo/registry/new").exists());
        assert_eq!(fs::read_to_string(world.path("owner/.cargo/credentials.toml")).unwrap(), SECRET);
    }
}

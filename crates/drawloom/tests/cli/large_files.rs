//! Files of which no bytes are kept: those that a command made go again, and those of the owner stay.

use std::fs;

use serde_json::{Value, json};

use crate::exec::{exec, world};
use crate::file_tools::say;
use crate::tools::{calls, chat};
use crate::world::World;

#[test]
fn a_file_too_large_to_be_kept_that_a_command_made_goes_unless_somebody_changed_it() {
    const MAKES: &str =
        "head -c 11000000 /dev/zero > big; head -c 11000000 /dev/zero > other; echo 1 > small";
    let world =
        world(&[calls(&json!([exec(MAKES)])), json!({"text": "Made.", "expect": ["made big (10.5 MiB"]})]);
    let project = world.path("project");
    assert_eq!(chat(&world, "Make them.").0, Some(0));
    let shown = say(&world, "/diff").out;
    assert!(shown.contains("big: a file of 10.5 MiB, whose bytes are not kept\n"), "{shown}");
    use std::io::Write as _;
    fs::OpenOptions::new().append(true).open(project.join("other")).unwrap().write_all(b"mine").unwrap();
    let back = say(&world, "/undo --files");
    assert!(!project.join("big").exists() && !project.join("small").exists(), "{back:?}");
    assert!(project.join("other").exists() && back.err.contains("left as it is: other"), "{back:?}");
    // What cannot be brought back is not taken again; the rest is.
    let redone = say(&world, "/redo --files");
    assert_eq!(fs::read_to_string(project.join("small")).unwrap(), "1\n", "{redone:?}");
    assert!(!project.join("big").exists());
}

#[test]
fn a_large_file_that_a_turn_made_goes_with_each_of_its_names_and_also_where_it_became_small() {
    const MAKES: &str = "head -c 11000000 /dev/zero > big; ln big linked; cp big shrinks";
    let world = world(&[
        calls(&json!([exec(MAKES)])),
        calls(&json!([exec("echo 1 > shrinks; echo 2 > own")])),
        json!({"text": "Made.", "expect": ["changed shrinks (it had 10.5 MiB: its bytes were not kept"]}),
    ]);
    let project = world.path("project");
    fs::File::create(project.join("own")).unwrap().set_len(12_000_000).unwrap();
    assert_eq!(chat(&world, "Make them.").0, Some(0));
    let back = say(&world, "/undo --files");
    for name in ["big", "linked", "shrinks"] {
        assert!(!project.join(name).exists(), "{name}: {back:?}");
    }
    // Nothing has the bytes of what was there before.
    assert_eq!(fs::read_to_string(project.join("own")).unwrap(), "2\n", "{back:?}");
    let why = "own: a file of 11.4 MiB, whose bytes are not kept";
    assert!(back.err.contains(&format!("left as it is: {why}")), "{back:?}");
    let restored = say(&world, "/restore own");
    assert!(restored.code != Some(0) && restored.err.contains(why), "{restored:?}");
}

/// Nothing keeps the bytes of what was there before.
#[test]
fn a_large_file_of_the_owner_that_a_command_moved_or_packed_stays() {
    for command in [
        "mv own moved",
        "mv data data2",
        "cp -p own copy; rm own",
        "ln own link; rm own",
        "gzip -1 own",
        "mv big.db big2",
    ] {
        let world = world(&[calls(&json!([exec(command)])), json!({"text": "Done."})]);
        let project = world.path("project");
        fs::create_dir(project.join("data")).unwrap();
        // As good as random: packed, they are as many.
        let mut state = 88_172_645_463_325_252_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        let bytes: Vec<u8> = (0..11_000_000).map(|_| next()).collect();
        for file in ["own", "data/of", "big.db"] {
            fs::write(project.join(file), &bytes).unwrap();
        }
        fs::write(project.join(".gitignore"), "big.db\n").unwrap();
        assert_eq!(chat(&world, "Do it.").0, Some(0));
        let large = || {
            let folders = [project.clone(), project.join("data"), project.join("data2")];
            let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
            entries.filter(|entry| entry.as_ref().unwrap().metadata().unwrap().len() > 9_000_000).count()
        };
        assert_eq!(large(), 3, "{command}");
        let back = say(&world, "/undo --files");
        assert_eq!(large(), 3, "{command}: {back:?}");
    }
}

/// The files that a turn changed whose command is told so.
fn changed(world: &World, command: &str, told: &str) -> Value {
    let lines = [calls(&json!([exec(command)])), json!({"text": "Done.", "expect": [told]})];
    world.write("lines.jsonl", &lines.map(|line| format!("{line}\n")).concat());
    let (code, said) = chat(world, command);
    assert_eq!(code, Some(0), "{said}");
    said["changed"].clone()
}

#[test]
fn a_turn_that_changed_a_file_too_large_to_be_kept_is_the_one_that_is_given_back() {
    let world = world(&[]);
    let project = world.path("project");
    fs::File::create(project.join("big")).unwrap().set_len(11_000_000).unwrap();
    fs::write(project.join("small"), "mine\n").unwrap();
    changed(&world, "echo one >> small", "changed small");
    let big = json!({"path": "big", "added": null, "removed": null});
    let new = json!({"path": "new", "added": 1, "removed": 0});
    let told = "changed big (it had 10.5 MiB: its bytes were not kept";
    assert_eq!(changed(&world, "echo x >> big; echo two > new", told), json!([big, new]));
    assert_eq!(changed(&world, "echo y >> big", told), json!([big]));
    let why = "big: a file of 10.5 MiB, whose bytes are not kept";
    let shown = say(&world, "/diff").out;
    assert!(shown.contains(why), "{shown}");
    let small = || fs::read_to_string(project.join("small")).unwrap();

    let third = say(&world, "/undo --files");
    assert!(third.err.contains(&format!("left as it is: {why}")) && third.out.is_empty(), "{third:?}");
    assert!(third.err.contains("once more gives back what an earlier turn changed"), "{third:?}");
    assert!(project.join("new").exists() && small() == "mine\none\n", "{third:?}");
    let second = say(&world, "/undo --files");
    assert!(!project.join("new").exists() && second.err.contains(why), "{second:?}");
    assert_eq!(small(), "mine\none\n", "{second:?}");
    assert!(say(&world, "/diff").out.contains(why), "what cannot be given back still stands");
    let first = say(&world, "/undo --files");
    assert_eq!(small(), "mine\n", "{first:?}");
}

#[test]
fn a_large_file_that_may_be_one_that_went_is_named_and_stays() {
    let world = world(&[]);
    let project = world.path("project");
    fs::File::create(project.join("own")).unwrap().set_len(11_000_000).unwrap();
    fs::write(project.join("small"), "mine\n").unwrap();
    changed(&world, "echo one >> small", "changed small");
    let command = "rm own; head -c 12000000 /dev/zero > other";
    let changed = changed(&world, command, "made other (its bytes are not kept");
    let named: Vec<_> = changed.as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!(named, ["other", "own"], "{changed}");
    let shown = say(&world, "/diff").out;
    assert!(shown.contains("new file other, whose bytes are not kept\n"), "{shown}");
    let back = say(&world, "/undo --files");
    for left in ["other: a file of 11.4 MiB, which is not kept", "own: a file of 10.5 MiB, whose bytes"] {
        assert!(back.err.contains(&format!("left as it is: {left}")), "{left}: {back:?}");
    }
    assert!(project.join("other").exists(), "{back:?}");
    assert_eq!(fs::read_to_string(project.join("small")).unwrap(), "mine\none\n", "{back:?}");
}

#[test]
fn a_small_file_that_a_command_made_large_is_given_back_unless_somebody_changed_it() {
    const GROWS: &str = "for file in grown theirs gone; do truncate -s 20000000 $file; done; ln grown linked";
    let world = world(&[calls(&json!([exec(GROWS)])), json!({"text": "Grown."})]);
    let project = world.path("project");
    for file in ["grown", "theirs", "gone"] {
        fs::write(project.join(file), format!("{file}\n")).unwrap();
    }
    assert_eq!(chat(&world, "Grow.").0, Some(0));
    use std::io::Write as _;
    fs::OpenOptions::new().append(true).open(project.join("theirs")).unwrap().write_all(b"mine").unwrap();
    fs::remove_file(project.join("gone")).unwrap();
    let back = say(&world, "/undo --files");
    let read = |file: &str| fs::read_to_string(project.join(file)).unwrap();
    assert_eq!((read("grown"), read("gone")), ("grown\n".to_owned(), "gone\n".to_owned()), "{back:?}");
    assert!(!project.join("linked").exists(), "{back:?}");
    let why =
        "theirs: a file of 19.1 MiB stands there, which is not kept and may be yours: move it away, then";
    assert!(back.err.contains(&format!("left as it is: {why}")), "{back:?}");
    let refused = say(&world, "/restore theirs --yes");
    assert!(refused.code != Some(0) && refused.err.contains(why), "{refused:?}");
    fs::rename(project.join("theirs"), project.join("moved")).unwrap();
    let restored = say(&world, "/restore theirs --yes");
    assert_eq!(read("theirs"), "theirs\n", "{restored:?}");
}

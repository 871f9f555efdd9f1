//! Files of which no bytes are kept: those that a command made go again, and those of the owner stay.

use std::fs;

use serde_json::json;

use crate::exec::{exec, world};
use crate::file_tools::say;
use crate::tools::{calls, chat};

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

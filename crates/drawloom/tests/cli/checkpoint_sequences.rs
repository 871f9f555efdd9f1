//! Sequences of real commands and tools, with a person's edits between the turns, given back: what only the agent touched
//! is what it was, and every other byte of the folder is what it is (spec: agent §3 *Checkpoints*).

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::exec::{exec, world};
use crate::file_tools::{listed, say};
use crate::tools::{calls, chat};
use crate::world::World;

/// Sequences: a sixteenth of `PROPTEST_CASES`, of which a day has 64; 100 at most.
fn sequences() -> u64 {
    let cases = std::env::var("PROPTEST_CASES").ok().map_or(64, |cases| cases.parse::<u64>().unwrap());
    (cases / 16).clamp(1, 100)
}

/// A sequence of numbers that is the same each time (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

const FILES: [&str; 6] = ["a/x", "a/y", "a/d/z", "a/d/w", "a/d/deep/v", "top"];
const FOLDERS: [&str; 3] = ["a/d", "a/d/deep", "a/n"];
/// A person's own: untracked, ignored by git, and of dependencies.
const PERSONS: [&str; 5] = ["p/one", "p/two", "notes.log", "out/built", "target/thing"];

/// One step of a command; where it cannot, the command goes on.
fn step(numbers: &mut Numbers, unique: usize) -> String {
    let (file, other) = (numbers.one_of(&FILES), numbers.one_of(&FILES));
    let (folder, to) = (numbers.one_of(&FOLDERS), numbers.one_of(&FOLDERS));
    match numbers.below(9) {
        0 | 1 => format!("mkdir -p $(dirname {file}); printf 'made {unique}' > {file}"),
        2 => format!("printf 'more {unique}\\n' >> {file}"),
        3 => format!("rm -f {file}"),
        4 => format!("mv -fT {file} {other}"),
        5 => format!("mv -T {folder} {to}{unique}"),
        6 => format!("chmod 7{}5 {file}", numbers.below(8)),
        7 => format!("ln -sfT x{unique} {file}"),
        _ => format!("rm -rf {folder}"),
    }
}

fn call(numbers: &mut Numbers, unique: usize) -> Value {
    let (file, folder) = (numbers.one_of(&FILES), numbers.one_of(&FOLDERS));
    let tool = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    match numbers.below(7) {
        0 => tool("write", json!({"path": format!("{file}.{unique}"), "content": format!("{unique}\n")})),
        1 => tool("move", json!({"from": file, "to": format!("a/moved{unique}")})),
        2 => tool("delete", json!({"path": folder})),
        _ => {
            let steps: Vec<String> =
                (0..=numbers.below(4)).map(|number| step(numbers, unique * 10 + number)).collect();
            exec(&steps.join("\n"))
        }
    }
}

fn put(folder: &Path, path: &str, text: &str) {
    fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
    fs::write(folder.join(path), text).unwrap();
}

/// A turn of six calls.
fn turn(world: &World, numbers: &mut Numbers, from: usize) {
    let made: Vec<Value> = (0..6).map(|number| call(numbers, from + number)).collect();
    world.write("lines.jsonl", &format!("{}\n{}\n", calls(&json!(made)), json!({"text": "Done."})));
    let (code, said) = chat(world, "Work.");
    assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{made:?}: {said}");
}

#[test]
fn sequences_of_commands_and_tools_are_given_back_and_a_persons_bytes_stay() {
    let mut changed = 0;
    for seed in 1..=sequences() {
        let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let world = world(&[]);
        let tools = r#"["delete", "exec", "move", "write"]"#;
        let config = world.read("config.toml").replace(r#"["exec", "process", "read", "write"]"#, tools);
        world.write("config.toml", &config);
        let project = world.path("project");
        for (number, path) in FILES.iter().chain(&PERSONS).enumerate() {
            put(&project, path, &format!("{number}\n"));
        }
        put(&project, ".gitignore", "/out/\n*.log\n");
        assert!(Command::new("chmod").args(["640", "a/y"]).current_dir(&project).status().unwrap().success());

        // What stood there at first, with the person's edits done to it alone.
        let persons = world.path("persons");
        assert!(Command::new("cp").arg("-a").args([&project, &persons]).status().unwrap().success());
        for part in 0..3 {
            turn(&world, &mut numbers, 100 * part);
            let (path, text) = (numbers.one_of(&PERSONS), format!("a person's, {part}\n"));
            [&project, &persons].into_iter().for_each(|folder| put(folder, path, &text));
        }
        changed += usize::from(listed(&project) != listed(&persons));
        for _ in 0..3 {
            let back = say(&world, "/undo --files");
            assert_eq!(back.code, Some(0), "sequence {seed}: {back:?}");
        }
        assert_eq!(listed(&project), listed(&persons), "sequence {seed}");
    }
    assert!(changed > 0, "the control: something was changed");
}

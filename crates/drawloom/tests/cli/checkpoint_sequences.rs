//! Sequences of real commands and tools, with a person's edits between the turns and after them, given back: what only the
//! agent touched is what it was, what a person touched since is named and left, and every other byte of the folder is what it
//! is (spec: agent §3 *Checkpoints*).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::exec::{exec, world};
use crate::file_tools::{listed, say};
use crate::tools::{calls, chat};
use crate::world::World;

/// Sequences: a sixteenth of `PROPTEST_CASES`, of which a day has 64; 1,000 at most.
fn sequences() -> u64 {
    let cases = std::env::var("PROPTEST_CASES").ok().map_or(64, |cases| cases.parse::<u64>().unwrap());
    (cases / 16).clamp(1, 1_000)
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
/// A person's own, which is untracked.
const PERSONS: [&str; 2] = ["p/one", "p/two"];
/// Ignored by git, or of dependencies: what a command does there stays.
const PASSED_OVER: [&str; 3] = ["notes.log", "out/built", "target/thing"];

fn is_passed_over(path: &str) -> bool {
    path.starts_with("out/") || path.starts_with("target/") || path.ends_with(".log")
}

/// One step of a command; where it cannot, the command goes on.
fn step(numbers: &mut Numbers, unique: usize) -> String {
    let (file, other) = (numbers.one_of(&FILES), numbers.one_of(&FILES));
    let (folder, to) = (numbers.one_of(&FOLDERS), numbers.one_of(&FOLDERS));
    match numbers.below(10) {
        0 | 1 => format!("mkdir -p $(dirname {file}); printf 'made {unique}' > {file}"),
        2 => format!("printf 'more {unique}\\n' >> {file}"),
        3 => format!("rm -f {file}"),
        4 => format!("mv -fT {file} {other}"),
        5 => format!("mv -T {folder} {to}{unique}"),
        6 => format!("[ -L {file} ] || chmod 7{}5 {file}", numbers.below(8)),
        7 => format!("ln -sfT x{unique} {file}"),
        8 => format!("printf 'more {unique}\\n' >> {}", numbers.one_of(&PASSED_OVER)),
        _ => format!("rm -rf {folder}"),
    }
}

/// One call of a tool.
enum Call {
    Write { path: String, text: String },
    Move { from: &'static str, to: String },
    Delete(&'static str),
    Run(String),
}

impl Call {
    fn any(numbers: &mut Numbers, unique: usize) -> Self {
        let (file, folder) = (numbers.below(FILES.len()), numbers.below(FOLDERS.len()));
        let text = format!("{unique}\n");
        match numbers.below(8) {
            0 => Self::Write { path: format!("{}.{unique}", FILES[file]), text },
            1 => Self::Write { path: format!("out/w{unique}"), text },
            2 => Self::Move { from: FILES[file], to: format!("a/moved{unique}") },
            3 => Self::Delete(FOLDERS[folder]),
            _ => {
                let steps: Vec<String> =
                    (0..=numbers.below(4)).map(|number| step(numbers, unique * 10 + number)).collect();
                Self::Run(steps.join("\n"))
            }
        }
    }

    fn json(&self) -> Value {
        let tool = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
        match self {
            Self::Write { path, text } => tool("write", json!({"path": path, "content": text})),
            Self::Move { from, to } => tool("move", json!({"from": from, "to": to})),
            Self::Delete(path) => tool("delete", json!({"path": path})),
            Self::Run(line) => exec(line),
        }
    }

    /// Whether it did something: a tool may refuse what somebody changed since it was seen.
    fn is_done(&self, said: &Value) -> bool {
        said["status"] == "ok" || (matches!(self, Self::Run(_)) && said["status"] == "error")
    }

    /// Does the same in another folder, without Drawloom.
    fn mimic(&self, folder: &Path) {
        match self {
            Self::Write { path, text } => drop(put(folder, path, text)),
            Self::Move { from, to } => drop(fs::rename(folder.join(from), folder.join(to))),
            // A person may have put a file in the place of a folder.
            Self::Delete(path) => {
                let at = folder.join(path);
                drop(fs::remove_dir_all(&at).or_else(|_| fs::remove_file(&at)));
            }
            Self::Run(line) => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", line]).current_dir(folder).stdin(Stdio::null());
                shell.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
            }
        }
    }
}

fn put(folder: &Path, path: &str, text: &str) -> io::Result<()> {
    fs::create_dir_all(folder.join(path).parent().unwrap())?;
    fs::write(folder.join(path), text)
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    Folder,
    File(u32, String),
    Link(String),
}

impl Standing {
    /// The bytes of a file, or where a link leads.
    fn content(&self) -> Option<&str> {
        match self {
            Self::Folder => None,
            Self::File(_, content) | Self::Link(content) => Some(content),
        }
    }
}

type Snapshot = BTreeMap<String, Standing>;

fn snapshot(folder: &Path) -> Snapshot {
    let kinds = |(path, mode, content): (String, u32, String)| {
        let at = folder.join(&path);
        let standing = match at.is_symlink() {
            true => Standing::Link(content),
            false if at.is_dir() => Standing::Folder,
            false => Standing::File(mode, content),
        };
        (path, standing)
    };
    listed(folder).into_iter().map(kinds).collect()
}

/// The folders above a path.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// What a call found at a path, and what it left there.
type Act = (Option<Standing>, Option<Standing>);

/// What an undo makes of a folder.
#[derive(Debug, Default)]
struct Undone {
    /// All but folders.
    standing: Snapshot,
    /// Folders that come back.
    folders: Vec<String>,
    /// Folders that the agent made and that hold nothing by then: these go.
    gone: BTreeSet<String>,
    /// Paths that are named, folders left out.
    left: BTreeSet<String>,
}

/// Turns as plain maps of paths, the newest last.
#[derive(Default)]
struct Turns(Vec<BTreeMap<String, Vec<Act>>>);

impl Turns {
    /// A call that found one thing and left another.
    fn note(&mut self, before: &Snapshot, after: &Snapshot, is_command: bool) {
        let turn = self.0.last_mut().unwrap();
        for path in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
            let act = (before.get(path).cloned(), after.get(path).cloned());
            if act.0 != act.1 && !(is_command && is_passed_over(path)) {
                turn.entry(path.clone()).or_default().push(act);
            }
        }
    }

    /// Gives back what the newest turn left of which anything can be given back.
    fn undo(&mut self, now: &Snapshot) -> Undone {
        let mut undone = Undone::default();
        let files = now.iter().filter(|(_, standing)| standing.content().is_some());
        undone.standing = files.map(|(path, standing)| (path.clone(), standing.clone())).collect();
        for turn in self.0.iter_mut().rev() {
            turn.retain(|path, acts| now.get(path) != acts[0].0.as_ref());
            let (mut given, mut left) = (BTreeSet::new(), BTreeSet::new());
            for (path, acts) in turn.iter() {
                let (found, stands) = acts.last().unwrap();
                let is_agents = [stands.as_ref(), found.as_ref()].contains(&now.get(path));
                let is_behind_link =
                    above(path).any(|above| matches!(now.get(above), Some(Standing::Link(_))));
                let side = if is_agents && !is_behind_link { &mut given } else { &mut left };
                side.insert(path.clone());
            }
            if given.is_empty() {
                undone.left.extend(left);
                continue;
            }
            // Where a person put a file, no folder comes back, nor what it held.
            let is_file = |path: &str| matches!(now.get(path), Some(Standing::File(..)));
            let is_behind = |path: &str| above(path).any(|above| is_file(above) && !given.contains(above));
            let (behind, given): (BTreeSet<String>, BTreeSet<String>) =
                given.iter().cloned().partition(|path| is_behind(path));
            left.extend(behind);
            // What was taken from there has no other place.
            let taken = left.iter().filter_map(|path| match turn[path].last().unwrap() {
                (Some(found), None) => found.content().map(str::to_owned),
                _ => None,
            });
            let homeless: BTreeSet<String> = taken.collect();
            undone.left.extend(left);
            for path in given {
                let stands = now.get(&path).and_then(Standing::content);
                if stands.is_some_and(|content| homeless.contains(content)) {
                    undone.left.insert(path);
                    continue;
                }
                undone.standing.remove(&path);
                if now.get(&path) == Some(&Standing::Folder) {
                    undone.gone.insert(path);
                    continue;
                }
                match turn.remove(&path).unwrap().swap_remove(0).0 {
                    Some(Standing::Folder) => undone.folders.push(path),
                    Some(before) => drop(undone.standing.insert(path, before)),
                    None => {}
                }
            }
            // A folder that holds something stays, and goes with a later undo.
            let stays = now
                .iter()
                .filter(|(path, stands)| **stands == Standing::Folder && !undone.gone.contains(*path));
            let held: Vec<&String> =
                undone.standing.keys().chain(&undone.folders).chain(stays.map(|(path, _)| path)).collect();
            undone.gone.retain(|folder| !held.iter().any(|path| path.starts_with(&format!("{folder}/"))));
            for folder in &undone.gone {
                if let Some(before) = turn.remove(folder).unwrap().swap_remove(0).0 {
                    undone.standing.insert(folder.clone(), before);
                }
            }
            break;
        }
        undone.left.retain(|path| now.get(path) != Some(&Standing::Folder));
        undone
    }
}

/// A person's edit at one path, done alike in both folders.
fn edit(numbers: &mut Numbers, touched: &[String], folders: [&Path; 2], unique: usize) -> String {
    let path = match numbers.below(4) {
        0 if !touched.is_empty() => touched[numbers.below(touched.len())].as_str(),
        0 | 1 => numbers.one_of(&PERSONS),
        2 => numbers.one_of(&PASSED_OVER),
        _ => numbers.one_of(&FILES),
    };
    let (kind, mode) = (numbers.below(5), [0o600, 0o640, 0o700, 0o750][numbers.below(4)]);
    for folder in folders {
        let at = folder.join(path);
        let is_folder = at.is_dir() && !at.is_symlink();
        if is_folder || fs::create_dir_all(at.parent().unwrap()).is_err() {
            continue;
        }
        match kind {
            0 if !at.is_symlink() => {
                let text = fs::read_to_string(&at).unwrap_or_default();
                fs::write(&at, format!("{text}a person's {unique}\n")).unwrap();
            }
            1 => drop(fs::remove_file(&at)),
            2 if at.is_file() && !at.is_symlink() => {
                fs::set_permissions(&at, fs::Permissions::from_mode(mode)).unwrap();
            }
            3 => {
                let _ = fs::remove_file(&at);
                symlink(format!("person{unique}"), &at).unwrap();
            }
            _ => {
                let beside = folder.join("a-persons-new-file");
                fs::write(&beside, format!("a person's {unique}\n")).unwrap();
                fs::rename(beside, &at).unwrap();
            }
        }
    }
    format!("{path} ({kind})")
}

/// Paths that an undo said it left.
fn named(said: &str) -> BTreeSet<String> {
    let named = said.lines().filter_map(|line| line.strip_prefix("left as it is: ")?.split_once(": "));
    named.map(|(path, _)| path.to_owned()).collect()
}

struct Played {
    /// Paths that were given back, and paths that were left.
    given: usize,
    left: usize,
}

fn play(seed: u64) -> Played {
    let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let world: World = world(&[]);
    let tools = r#"["delete", "exec", "move", "write"]"#;
    let config = world.read("config.toml").replace(r#"["exec", "process", "read", "write"]"#, tools);
    // A call that is no longer possible may be drawn more than twice.
    world.write("config.toml", &format!("{config}[limits]\nsame_call = 100\n"));
    let (project, mimicked) = (world.path("project"), world.path("mimicked"));
    for (number, path) in FILES.iter().chain(&PERSONS).chain(&PASSED_OVER).enumerate() {
        put(&project, path, &format!("{number}\n")).unwrap();
    }
    put(&project, ".gitignore", "/out/\n*.log\n").unwrap();
    fs::set_permissions(project.join("a/y"), fs::Permissions::from_mode(0o640)).unwrap();
    assert!(Command::new("cp").arg("-a").args([&project, &mimicked]).status().unwrap().success());

    let (mut turns, mut story) = (Turns::default(), Vec::new());
    let edits = |numbers: &mut Numbers, turns: &Turns, unique: usize| -> Vec<String> {
        let touched: Vec<String> = turns.0.iter().flat_map(|turn| turn.keys().cloned()).collect();
        let mut edit = |number| edit(numbers, &touched, [&project, &mimicked], unique + number);
        (0..3).map(&mut edit).collect()
    };
    for part in 1..=3 {
        let made: Vec<Call> = (0..6).map(|number| Call::any(&mut numbers, 100 * part + number)).collect();
        let asked: Vec<Value> = made.iter().map(Call::json).collect();
        world.write("lines.jsonl", &format!("{}\n{}\n", calls(&json!(asked)), json!({"text": "Done."})));
        let (code, said) = chat(&world, "Work.");
        assert_eq!((code, said["text"].as_str()), (Some(0), Some("Done.")), "{asked:?}: {said}");
        turns.0.push(BTreeMap::new());
        let called = said["calls"].as_array().unwrap();
        assert_eq!(called.len(), made.len(), "{said}");
        for (call, _) in made.iter().zip(called).filter(|(call, said)| call.is_done(said)) {
            let before = snapshot(&mimicked);
            call.mimic(&mimicked);
            turns.note(&before, &snapshot(&mimicked), matches!(call, Call::Run(_)));
        }
        story.push(format!("{asked:#?}"));
        assert_eq!(
            snapshot(&project),
            snapshot(&mimicked),
            "the control: the same was done, {seed}: {story:#?}"
        );
        story.extend(edits(&mut numbers, &turns, 1_000 * part));
    }
    let mut played = Played { given: 0, left: 0 };
    for undo in 4..=7 {
        let now = snapshot(&project);
        let expected = turns.undo(&now);
        let back = say(&world, "/undo --files");
        let mut found = snapshot(&project);
        let told =
            || format!("sequence {seed}, undo {undo}: {back:?}\n{expected:#?}\nbefore: {now:#?}\n{story:#?}");
        for folder in &expected.folders {
            assert_eq!(found.get(folder), Some(&Standing::Folder), "{folder}: {}", told());
        }
        for folder in &expected.gone {
            assert_ne!(found.get(folder), Some(&Standing::Folder), "{folder}: {}", told());
        }
        let is_known = |folder: &String| {
            let holds = |path: &String| path.starts_with(&format!("{folder}/"));
            now.contains_key(folder)
                || expected.folders.contains(folder)
                || expected.standing.keys().any(holds)
        };
        let strays: Vec<_> = found
            .iter()
            .filter(|(path, standing)| **standing == Standing::Folder && !is_known(path))
            .collect();
        assert!(strays.is_empty(), "{strays:?}: {}", told());
        found.retain(|_, standing| *standing != Standing::Folder);
        for path in found.keys().chain(expected.standing.keys()) {
            assert_eq!(found.get(path), expected.standing.get(path), "{path}: {}", told());
        }
        let mut named = named(&back.err);
        named.retain(|path| now.get(path) != Some(&Standing::Folder));
        assert_eq!(named, expected.left, "{}", told());
        played.left += expected.left.len();
        let files = now.iter().filter(|(_, stood)| stood.content().is_some());
        played.given += files.filter(|(path, stood)| expected.standing.get(*path) != Some(stood)).count();
        story.extend(edits(&mut numbers, &turns, 1_000 * undo));
    }
    played
}

#[test]
fn sequences_of_commands_and_tools_are_given_back_and_a_persons_bytes_stay() {
    let (mut given, mut left) = (0, 0);
    for seed in 1..=sequences() {
        let played = play(seed);
        given += played.given;
        left += played.left;
        println!("sequence {seed}: {} were given back, {} left", played.given, played.left);
    }
    println!("{} sequences: {given} paths were given back, {left} were left", sequences());
    assert!(given > 0 && left > 0, "the control: {given} and {left}");
}

//! What comes of any sequence of the file tools and a person's edits once it is given back, against plain maps of paths.

mod acts;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ::tools::testing::{KeptChanges, TestRecorder};
use ::tools::{
    CallPlace, ChangeRecorder, CheckpointRules, Checkpoints, FileContent, NextPlace, PlannedChange,
    RootRecords, SeenFiles, ToolRegistry, ToolScope, WaitedTime, recording,
};
use loom::{Digest, Millis, NodeId, ToolStatus, TreeId, Trust, ViewName};
use model::Cancel;
use policy::{Policy, SessionType};
use proptest::prelude::*;
use serde_json::{Value, json};
use store::{CallId, ChangeStanding, FileChange, FileChangeId, FileState};
use text::mask::Masker;
use workspace::{AllowedRoots, Root, StoreGuard};

use self::acts::{Act, Step, act, any_step};
use super::disk::{Disk, Found};
use super::path_changes::{PathChange, by_path, links_over_folders};
use super::redo;

/// What was written down, and the bytes that were kept.
#[derive(Default)]
struct Records {
    rows: Mutex<Vec<FileChange>>,
    blobs: Mutex<HashMap<Digest, Vec<u8>>>,
    /// Where the rows of the present call begin.
    first: Mutex<usize>,
}

impl Records {
    fn state(&self, content: FileContent<'_>) -> FileState {
        let keep = |bytes: &[u8]| {
            self.blobs.lock().unwrap().insert(Digest::of(bytes), bytes.to_vec());
            Digest::of(bytes)
        };
        match content {
            FileContent::Absent => FileState::Absent,
            FileContent::File { mode, bytes } => FileState::File { mode, blob: keep(bytes) },
            FileContent::Folder { mode } => FileState::Folder { mode },
            FileContent::Link { target } => FileState::Link { target: keep(target) },
            FileContent::Unknown => FileState::Unknown,
            FileContent::Large { bytes, stamp } => FileState::Large { bytes, stamp },
            FileContent::Special(id) => FileState::Special { device: id.device, inode: id.inode },
        }
    }
}

impl KeptChanges for Records {
    fn keep(&self, changes: &[PlannedChange<'_>]) -> Result<(), String> {
        for change in changes {
            let mut rows = self.rows.lock().unwrap();
            let call = CallId { answer: NodeId::from_bytes([1; 16]), number: 0 };
            let number = u32::try_from(rows.len()).unwrap();
            rows.push(FileChange {
                id: FileChangeId { call, number },
                root: change.root.to_owned(),
                path: change.path.as_path().to_owned(),
                before: self.state(change.before),
                after: self.state(change.after),
                at: Millis(1),
                standing: ChangeStanding::Made,
            });
        }
        Ok(())
    }

    fn take_back(&self) {
        self.rows.lock().unwrap().truncate(*self.first.lock().unwrap());
    }
}

/// What stands at a path that is no folder.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    File(Vec<u8>, u32),
    Link(PathBuf),
}

impl Standing {
    /// The bytes of a file, or where a link leads.
    fn content(&self) -> &[u8] {
        match self {
            Self::File(bytes, _) => bytes,
            Self::Link(target) => target.as_os_str().as_encoded_bytes(),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Snapshot {
    files: BTreeMap<PathBuf, Standing>,
    /// With their permission bits.
    folders: BTreeMap<PathBuf, u32>,
}

/// Files that git ignores, and one of dependencies: what a command does to them stays.
const PASSED_OVER: [&str; 3] = ["out/o0", "notes.log", "target/t0"];

/// What an act found at a path, and what it left there.
type Transition = (Option<Standing>, Option<Standing>);

/// A workspace with a person and an agent in it.
struct Shared {
    _temp: tempfile::TempDir,
    folder: PathBuf,
    disk: Disk,
    records: TestRecorder<Records>,
    checkpoints: Checkpoints,
    /// By path: what each act of the agent found and left there.
    acts: BTreeMap<PathBuf, Vec<Transition>>,
    /// Folders that the agent did not make.
    folders: BTreeSet<PathBuf>,
}

impl Shared {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("w").canonicalize().unwrap_or_else(|_| temp.path().join("w"));
        fs::create_dir_all(folder.join("d0/d2")).unwrap();
        let (locks, records) = (temp.path().join("locks"), temp.path().join("commands"));
        let disk = Disk { guard: StoreGuard::new(), locks, records, umask: 0o022 };
        let (acts, records) = (BTreeMap::new(), TestRecorder::<Records>::default());
        let checkpoints = Checkpoints::within(temp.path().join("records"), CheckpointRules::default());
        let mut shared =
            Self { _temp: temp, folder, disk, records, checkpoints, acts, folders: BTreeSet::new() };
        for (path, text) in [("f0", "zero"), ("d0/f1", "one"), ("d0/d2/f2", "two"), ("d0/d2/f3", "two")] {
            shared.put(path, text, 0o640);
        }
        symlink("../f0", shared.folder.join("d0/l0")).unwrap();
        shared.put(".gitignore", "/out/\n*.log\n", 0o644);
        for path in PASSED_OVER {
            shared.put(path, "a person's", 0o604);
        }
        shared.folders = shared.snapshot().folders.into_keys().collect();
        shared
    }

    fn put(&self, path: &str, text: &str, mode: u32) {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::remove_file(&path).ok();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn snapshot(&self) -> Snapshot {
        fn below(folder: &Path, from: &Path, found: &mut Snapshot) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(from).unwrap().to_owned();
                if path.is_symlink() {
                    found.files.insert(name, Standing::Link(fs::read_link(&path).unwrap()));
                    continue;
                }
                let mode = path.metadata().unwrap().permissions().mode() & 0o7777;
                let set = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
                // A command may have closed it to its owner.
                if mode & 0o400 == 0 || (path.is_dir() && mode & 0o700 != 0o700) {
                    set(mode | 0o700);
                }
                if path.is_dir() {
                    found.folders.insert(name, mode);
                    below(&path, from, found);
                } else {
                    found.files.insert(name, Standing::File(fs::read(&path).unwrap(), mode));
                }
                if path.metadata().unwrap().permissions().mode() & 0o7777 != mode {
                    set(mode);
                }
            }
        }
        let mut found = Snapshot::default();
        below(&self.folder, &self.folder, &mut found);
        found
    }

    /// The agent runs a command.
    fn run(&mut self, steps: &[Step]) {
        let before = self.snapshot();
        let root = Root::open(&self.folder, &self.disk.guard).unwrap();
        let recorder = (&self.records as &dyn ChangeRecorder, &Cancel::never(), false);
        let run = || acts::run(steps, &self.folder);
        recording(&[RootRecords { root: &root, checkpoints: &self.checkpoints }], recorder, &[], |_| run())
            .unwrap();
        self.note_what_changed(&before);
    }

    /// The agent calls a tool; whether it did anything.
    fn call(&mut self, tool: &str, arguments: &Value) -> bool {
        let scope = ToolScope {
            roots: AllowedRoots::within(vec![Root::open(&self.folder, &self.disk.guard).unwrap()]).into(),
            trust: Trust::Workspace,
            masker: Arc::new(Masker::new(&[]).unwrap()),
            policy: Policy::default().into(),
            session: SessionType::Main,
            locks: self.disk.locks.clone(),
            umask: self.disk.umask,
            seen: SeenFiles::default(),
            max_pixels: 1_000_000,
            search_time: std::time::Duration::from_secs(600),
            commands: None,
            hooks: Vec::new(),
        };
        let registry =
            Arc::new(ToolRegistry::new(scope, Vec::new(), &["read".to_owned(), tool.to_owned()]).unwrap());
        let place = CallPlace {
            tree: TreeId::from_bytes([0; 16]),
            view: ViewName::default(),
            trust: Trust::Agent,
            masker: Arc::new(Masker::new(&[]).unwrap()),
            answer: None,
            fence: None,
            turn: None,
            next: NextPlace::default(),
            model: None,
            spending: String::new(),
            waited: WaitedTime::default(),
            cancel: Cancel::never(),
            skills_list: None,
            subagents: None,
            person: None,
        };
        if tool == "write" {
            let read = registry.check("read", &json!({"path": arguments["path"]})).unwrap();
            read.run(&Cancel::never(), &self.records, &place);
        }
        *self.records.kept.first.lock().unwrap() = self.records.kept.rows.lock().unwrap().len();
        let before = self.snapshot();
        let output = registry.check(tool, arguments).unwrap().run(&Cancel::never(), &self.records, &place);
        self.note_what_changed(&before);
        output.status == ToolStatus::Ok
    }

    fn note_what_changed(&mut self, before: &Snapshot) {
        let after = self.snapshot();
        let mut paths: BTreeSet<&PathBuf> = before.files.keys().chain(after.files.keys()).collect();
        paths.retain(|path| !PASSED_OVER.iter().any(|passed| Path::new(passed) == **path));
        for path in paths {
            let states = (before.files.get(path).cloned(), after.files.get(path).cloned());
            if states.0 != states.1 {
                self.acts.entry(path.clone()).or_default().push(states);
            }
        }
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Write(path, text) => drop(self.call("write", &json!({"path": path, "content": text}))),
            Act::Mkdir(path) => drop(self.call("mkdir", &json!({"path": path}))),
            Act::Delete(path) => drop(self.call("delete", &json!({"path": path}))),
            Act::Relocate { copy, from, to, overwrite } => {
                let tool = if *copy { "copy" } else { "move" };
                self.call(tool, &json!({"from": from, "to": to, "overwrite": overwrite}));
            }
            Act::Run(steps) => self.run(steps),
            Act::Killed(act, undone) => {
                let before = self.snapshot();
                self.act(act);
                self.cut_off(&before, matches!(**act, Act::Relocate { copy: false, .. }), *undone);
            }
            Act::PersonWrites(path, text) => {
                self.put(path, text, 0o644);
                let above = Path::new(path).ancestors().skip(1).filter(|path| *path != Path::new(""));
                self.folders.extend(above.map(Path::to_owned));
            }
            Act::PersonDeletes(path) => drop(fs::remove_file(self.folder.join(path))),
            Act::PersonChangesMode(path, mode) => {
                let path = self.folder.join(path);
                if !path.is_symlink() {
                    fs::set_permissions(path, fs::Permissions::from_mode(*mode)).ok();
                }
            }
        }
    }

    /// Leaves some paths, or all, as they were before what was done last, as a process does that is killed. A move is
    /// one step.
    fn cut_off(&self, before: &Snapshot, all: bool, undone: u8) {
        let after = self.snapshot();
        let changed = before.files.keys().chain(after.files.keys()).collect::<BTreeSet<_>>().into_iter();
        let changed = changed.filter(|path| before.files.get(*path) != after.files.get(*path));
        for (number, path) in changed.enumerate() {
            if !all && undone >> (number % 8) & 1 == 0 {
                continue;
            }
            let at = self.folder.join(path);
            fs::remove_file(&at).ok();
            match before.files.get(path) {
                Some(Standing::File(bytes, mode)) => {
                    fs::create_dir_all(at.parent().unwrap()).unwrap();
                    fs::write(&at, bytes).unwrap();
                    fs::set_permissions(&at, fs::Permissions::from_mode(*mode)).unwrap();
                }
                Some(Standing::Link(target)) => {
                    fs::create_dir_all(at.parent().unwrap()).unwrap();
                    symlink(target, &at).unwrap();
                }
                None => {}
            }
        }
    }

    /// What stands at each path once the agent's acts are given back, as plain maps say it.
    fn expected(&self) -> BTreeMap<PathBuf, Standing> {
        let now = self.snapshot().files;
        let paths: BTreeSet<&PathBuf> = now.keys().chain(self.acts.keys()).collect();
        let mut expected = BTreeMap::new();
        // What was taken from paths at which a person put something else since.
        let mut homeless = Vec::new();
        for path in &paths {
            let now = now.get(*path);
            let wanted = match self.acts.get(*path) {
                None => now,
                Some(acts) => {
                    // A cut off act may have left what it found.
                    let follows = |at: usize| acts[at].0 == acts[at - 1].1 || acts[at].0 == acts[at - 1].0;
                    let touched = (1..acts.len()).rev().find(|at| !follows(*at));
                    let (before, last) = (acts[0].0.as_ref(), &acts[acts.len() - 1]);
                    let is_agents = now == last.1.as_ref() || now == last.0.as_ref();
                    match touched {
                        None if is_agents => before,
                        // What the person left goes back to where nothing is.
                        Some(at) if now != before && now.is_none() && last.1.is_none() => acts[at].0.as_ref(),
                        _ => now,
                    }
                }
            };
            if let Some((Some(taken), None)) = self.acts.get(*path).and_then(|acts| acts.last())
                && now.is_some()
                && wanted == now
                && now != self.acts[*path][0].0.as_ref()
            {
                homeless.push(taken.content());
            }
            if let Some(wanted) = wanted {
                expected.insert((*path).clone(), wanted.clone());
            }
        }
        for (path, now) in now.iter().filter(|(_, now)| homeless.contains(&now.content())) {
            expected.insert(path.clone(), now.clone());
        }
        expected
    }

    fn give_back(&self) -> Vec<FileChange> {
        let rows = self.records.kept.rows.lock().unwrap().clone();
        let (mut examined, mut left) = (Vec::new(), Vec::new());
        let paths = by_path(rows);
        let links = links_over_folders(&paths);
        for path in paths {
            match self.disk.examine(&path, &links) {
                Ok(found) if found.is_back => {}
                Ok(found) => examined.push((path, found)),
                Err(_) => left.push(path),
            }
        }
        let given = examined.iter().map(|(path, found)| FileChange {
            id: path.ids[0],
            root: path.root.clone(),
            path: path.path.clone(),
            before: found.state,
            after: found.target,
            at: Millis(2),
            standing: ChangeStanding::GivingBack,
        });
        let given = given.collect();
        self.bring(examined, &left);
        given
    }

    fn bring(&self, paths: Vec<(PathChange, Found)>, left: &[PathChange]) {
        let blobs = self.records.kept.blobs.lock().unwrap();
        let blob = |blob: Digest| blobs.get(&blob).cloned().ok_or_else(|| "it was not kept".to_owned());
        self.disk.bring_back(paths, left, &blob);
    }

    /// Takes a giving-back again; why paths are left.
    fn redo(&self, given: Vec<FileChange>) -> Vec<String> {
        let paths = by_path(given);
        let links = links_over_folders(&paths);
        let (mut found, mut left) = (Vec::new(), Vec::new());
        for path in paths {
            match redo::found(&self.disk, &path, &links) {
                Ok(of) if of.is_back => {}
                Ok(of) => found.push((path, of)),
                Err(why) => left.push(format!("{}: {why}", path.path.display())),
            }
        }
        self.bring(found, &[]);
        left
    }
}

#[test]
fn a_file_that_became_a_folder_and_a_folder_that_became_a_file_come_back() {
    let mut shared = Shared::new();
    fs::set_permissions(shared.folder.join("d0/d2"), fs::Permissions::from_mode(0o550)).unwrap();
    let (before, mode) =
        (shared.snapshot(), |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777);
    for (tool, arguments) in [
        ("delete", json!({"path": "f0"})),
        ("write", json!({"path": "f0/sub/x", "content": "x"})),
        ("move", json!({"from": "d0", "to": "d1"})),
        ("write", json!({"path": "d0", "content": "a file"})),
        ("delete", json!({"path": "d1/l0"})),
        ("mkdir", json!({"path": "d1/l0"})),
    ] {
        assert!(shared.call(tool, &arguments), "{tool} {arguments}");
    }
    shared.give_back();
    assert_eq!(shared.snapshot(), before);
    assert_eq!(mode(&shared.folder.join("d0/d2")), 0o550);
}

#[test]
fn what_cannot_go_back_stays_where_it_is() {
    let mut shared = Shared::new();
    assert!(shared.call("move", &json!({"from": "d0", "to": "d1"})));
    assert!(shared.call("move", &json!({"from": "f0", "to": "f1"})));
    shared.put("d0", "a person's", 0o644);
    shared.put("f0", "a person's", 0o644);
    let before = shared.snapshot();
    shared.give_back();
    assert_eq!(shared.snapshot(), before);
    fs::remove_file(shared.folder.join("d0")).unwrap();
    fs::remove_file(shared.folder.join("f0")).unwrap();
    shared.give_back();
    assert_eq!(shared.snapshot(), Shared::new().snapshot());
}

/// `PROPTEST_CASES`, and 1,000 at most: a case runs programs.
fn config() -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig { cases: config.cases.min(1_000), ..config }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_only_the_agent_touched_is_what_it_was_and_every_other_byte_stays(
        acts in prop::collection::vec(act(), 1..24)
    ) {
        let mut shared = Shared::new();
        acts.iter().for_each(|act| shared.act(act));
        let expected = shared.expected();
        shared.give_back();
        let found = shared.snapshot();
        prop_assert_eq!(&found.files, &expected);
        let holds = |folder: &PathBuf| expected.keys().any(|path| path.starts_with(folder));
        for folder in found.folders.keys().filter(|folder| !shared.folders.contains(*folder)) {
            prop_assert!(holds(folder), "{} is the agent's and holds nothing", folder.display());
        }
        shared.give_back();
        prop_assert_eq!(shared.snapshot(), found);
    }
    #[test]
    fn what_commands_did_to_paths_modes_and_links_is_given_back_and_taken_again(
        commands in prop::collection::vec(prop::collection::vec(any_step(), 1..6), 1..4)
    ) {
        let mut shared = Shared::new();
        let before = shared.snapshot();
        commands.iter().for_each(|steps| shared.run(steps));
        let after = shared.snapshot();
        let given = shared.give_back();
        prop_assert_eq!(shared.snapshot(), before);
        let left = shared.redo(given);
        prop_assert_eq!(shared.snapshot(), after);
        prop_assert!(left.is_empty(), "{left:?}");
    }
}

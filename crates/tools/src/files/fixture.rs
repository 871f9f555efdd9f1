//! A workspace in a temporary folder, the tools in it, and what was written down before it was done.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use loom::{ToolStatus, TreeId, Trust, ViewName};
use model::Cancel;
use policy::{Policy, SessionType};
use serde_json::Value;
use text::mask::Masker;
use workspace::{AllowedRoots, Root, StoreGuard};

use crate::testing::{KeptChanges, TestRecorder};
use crate::{
    CallPlace, FileContent, NextPlace, PlannedChange, SeenFiles, ToolRegistry, ToolScope, WaitedTime,
};

/// How a folder stands in a row.
pub(crate) const FOLDER: &str = "(folder)";

/// What stands at a path, as a row says it.
fn standing(path: &Path) -> Option<String> {
    let found = fs::symlink_metadata(path).ok()?;
    Some(if found.is_dir() {
        FOLDER.to_owned()
    } else if found.is_symlink() {
        format!("-> {}", fs::read_link(path).unwrap().display())
    } else {
        String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
    })
}

/// Path, text before, text after.
pub(crate) type Row = (String, Option<String>, Option<String>);

/// What was written down before it was done.
#[derive(Default)]
pub(crate) struct Recorded {
    pub(crate) rows: Mutex<Vec<Row>>,
    pub(crate) refuses: bool,
}

/// Recorder of the rows.
pub(crate) type RowRecorder = TestRecorder<Recorded>;

impl KeptChanges for Recorded {
    fn keep(&self, changes: &[PlannedChange<'_>]) -> Result<(), String> {
        if self.refuses {
            return Err("the disk is full".to_owned());
        }
        let text = |content: FileContent<'_>| match content {
            FileContent::File { bytes, .. } => Some(String::from_utf8_lossy(bytes).into_owned()),
            FileContent::Folder { .. } => Some(FOLDER.to_owned()),
            FileContent::Link { target } => Some(format!("-> {}", String::from_utf8_lossy(target))),
            FileContent::Absent
            | FileContent::Unknown
            | FileContent::Large { .. }
            | FileContent::Special(_) => None,
        };
        let row = |change: &PlannedChange<'_>| {
            let path = change.path.as_path().display().to_string();
            let before = text(change.before);
            assert_eq!(standing(&change.root.join(&path)), before, "{path}: nothing is done yet");
            (path, before, text(change.after))
        };
        self.rows.lock().unwrap().extend(changes.iter().map(row));
        Ok(())
    }

    fn take_back(&self) {
        self.rows.lock().unwrap().clear();
    }
}

pub(crate) struct Fixture {
    pub(crate) temp: tempfile::TempDir,
    pub(crate) registry: Arc<ToolRegistry>,
    pub(crate) recorded: RowRecorder,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(Policy::default())
    }

    pub(crate) fn with(policy: Policy) -> Self {
        Self::in_roots(policy, |root, _| AllowedRoots::within(vec![root]))
    }

    /// In which a search takes so long at most.
    pub(crate) fn searching_for(search_time: Duration) -> Self {
        Self::made(Policy::default(), |root, _| AllowedRoots::within(vec![root]), search_time)
    }

    /// With the roots that `roots` makes of the folder and what guards the store.
    pub(crate) fn in_roots(policy: Policy, roots: impl FnOnce(Root, &StoreGuard) -> AllowedRoots) -> Self {
        Self::made(policy, roots, Duration::from_secs(600))
    }

    fn made(
        policy: Policy,
        roots: impl FnOnce(Root, &StoreGuard) -> AllowedRoots,
        search_time: Duration,
    ) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("w");
        fs::create_dir(&folder).unwrap();
        let guard = StoreGuard::new();
        let scope = ToolScope {
            roots: roots(Root::open(&folder, &guard).unwrap(), &guard).into(),
            trust: Trust::Workspace,
            masker: Arc::new(Masker::new(&[]).unwrap()),
            policy: policy.into(),
            session: SessionType::Main,
            locks: temp.path().join("locks"),
            umask: 0o022,
            seen: SeenFiles::default(),
            max_pixels: 1_000_000,
            search_time,
            commands: None,
            hooks: Vec::new(),
        };
        let registry = Arc::new(ToolRegistry::new(scope, Vec::new(), &ToolRegistry::names()).unwrap());
        Self { temp, registry, recorded: RowRecorder::default() }
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.temp.path().join("w").join(name)
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    pub(crate) fn call(&self, name: &str, arguments: &Value) -> Result<String, String> {
        let output = match self.registry.check(name, arguments) {
            Ok(call) => call.run(&Cancel::never(), &self.recorded, &place()),
            Err(output) => output,
        };
        if output.status == ToolStatus::Ok { Ok(output.text) } else { Err(output.text) }
    }

    pub(crate) fn refused(&self, name: &str, arguments: &Value, why: &str) {
        let refused = self.call(name, arguments).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }

    /// Names of everything below the folder.
    pub(crate) fn names(&self) -> Vec<String> {
        fn below(folder: &Path, from: &Path, names: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                names.push(path.strip_prefix(from).unwrap().display().to_string());
                if path.is_dir() && !path.is_symlink() {
                    below(&path, from, names);
                }
            }
        }
        let (mut names, root) = (Vec::new(), self.path(""));
        below(&root, &root, &mut names);
        names.sort();
        names
    }
}

/// Where the calls of tests are made.
pub(crate) fn place() -> CallPlace {
    CallPlace {
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
    }
}

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// A workspace with protected files, and a quarantine outside of it.
struct Place {
    folder: TempDir,
    walls: Walls,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("root");
        fs::create_dir_all(root.join("skills/a")).unwrap();
        fs::write(root.join("AGENTS.md"), "ours").unwrap();
        fs::write(root.join("skills/a/SKILL.md"), "skill").unwrap();
        fs::write(root.join(".envrc"), "export A=1").unwrap();
        Self { folder, walls: Walls::around(&root, &root) }
    }

    fn root(&self, name: &str) -> PathBuf {
        self.walls.roots[0].path.join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.root(name)).unwrap()
    }

    fn snapshot(&self) -> (Snapshot, RootFolders) {
        let roots = RootFolders::open(&self.walls);
        (Snapshot::take(&ProtectedPaths::of(&self.walls), &self.walls, &roots, &Snapshot::default()), roots)
    }

    /// What is said, and texts of files in quarantine by the paths they had.
    fn restored(
        &self,
        (snapshot, roots): &(Snapshot, RootFolders),
    ) -> (Vec<Notice>, Vec<(PathBuf, PathBuf)>) {
        let mut quarantine = Quarantine::new(&self.folder.path().join("quarantine"));
        let notices = snapshot.restore(&self.walls, roots, &mut quarantine);
        let taken = quarantine.into_notices().into_iter().filter_map(|notice| match notice {
            Notice::Quarantined { path, to } => Some((path, to)),
            _ => None,
        });
        (notices, taken.collect())
    }
}

#[test]
fn what_was_changed_replaced_removed_or_added_is_as_it_was() {
    let place = Place::new();
    let before = place.snapshot();
    assert_eq!(place.restored(&before), (vec![], vec![]));

    fs::write(place.root("AGENTS.md"), "theirs").unwrap();
    fs::remove_dir_all(place.root("skills/a")).unwrap();
    fs::write(place.root("skills/new.md"), "new").unwrap();
    fs::remove_file(place.root(".envrc")).unwrap();
    symlink("/etc/passwd", place.root(".envrc")).unwrap();
    let (notices, taken) = place.restored(&before);
    let restored: Vec<Notice> =
        [".envrc", "AGENTS.md", "skills"].map(|name| Notice::Restored(place.root(name))).into();
    assert_eq!(notices, restored);
    assert_eq!(place.text("AGENTS.md"), "ours");
    assert_eq!(place.text("skills/a/SKILL.md"), "skill");
    assert!(!place.root("skills/new.md").exists());
    assert_eq!(place.text(".envrc"), "export A=1");
    assert_eq!(place.restored(&before), (vec![], vec![]));
    // Nothing is lost: a person may have written it.
    let paths: Vec<_> = taken.iter().map(|(path, _)| path.clone()).collect();
    assert_eq!(paths, [".envrc", "AGENTS.md", "skills/new.md"].map(|name| place.root(name)));
    assert_eq!(fs::read_to_string(&taken[1].1).unwrap(), "theirs");
    assert_eq!(fs::read_to_string(&taken[2].1).unwrap(), "new");
}

#[test]
fn an_edit_between_comparison_and_exchange_stays_and_what_it_was_is_kept() {
    let place = Place::new();
    let path = place.root("AGENTS.md");
    let (_, roots) = place.snapshot();
    let (folder, name) = roots.parent_of(&path).unwrap();
    fs::write(&path, "theirs").unwrap();
    let seen = SeenEntry::at(folder.as_fd(), name, &path, &place.walls);
    fs::write(&path, "a person's").unwrap();
    let ours = KeptEntry::File { bytes: b"ours".to_vec(), mode: 0o644 };
    let new = unused_name();
    ours.make(folder.as_fd(), &new).unwrap();
    let mut quarantine = Quarantine::new(&place.folder.path().join("quarantine"));
    let refused = exchange(folder.as_fd(), &new, name, &path, seen, &place.walls, &mut quarantine);
    let refused = refused.unwrap_err().to_string();
    assert_eq!(place.text("AGENTS.md"), "a person's");
    let kept = place.folder.path().join("quarantine/0/AGENTS.md");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "ours");
    assert!(refused.contains(kept.to_str().unwrap()), "{refused}");
    assert_eq!(fs::read_dir(place.root("")).unwrap().count(), 3);
}

#[test]
fn a_file_that_appears_where_one_was_removed_is_not_written_over() {
    let place = Place::new();
    let path = place.root("AGENTS.md");
    let (_, roots) = place.snapshot();
    let (folder, name) = roots.parent_of(&path).unwrap();
    let new = unused_name();
    KeptEntry::File { bytes: b"ours".to_vec(), mode: 0o644 }.make(folder.as_fd(), &new).unwrap();
    fs::write(&path, "a person's").unwrap();
    let mut quarantine = Quarantine::new(&place.folder.path().join("quarantine"));
    assert!(exchange(folder.as_fd(), &new, name, &path, None, &place.walls, &mut quarantine).is_err());
    assert_eq!(place.text("AGENTS.md"), "a person's");
}

/// Readers of the name see the old text or the new one, and never none: what is killed between loses nothing.
#[test]
fn at_no_time_does_the_name_lead_to_nothing_or_to_half_a_file() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let place = Place::new();
    let (ours, theirs) = ("o".repeat(300_000), "t".repeat(300_000));
    fs::write(place.root("AGENTS.md"), &ours).unwrap();
    let before = place.snapshot();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                let text = fs::read_to_string(place.root("AGENTS.md")).expect("always there");
                assert!(text == ours || text == theirs, "{} bytes", text.len());
            }
        });
        for _ in 0..50 {
            fs::write(place.root("new"), &theirs).unwrap();
            fs::rename(place.root("new"), place.root("AGENTS.md")).unwrap();
            assert_eq!(place.restored(&before).0, [Notice::Restored(place.root("AGENTS.md"))]);
        }
        over.store(true, Ordering::SeqCst);
        looking.join().unwrap();
    });
}

#[test]
fn a_git_folder_that_was_moved_is_moved_back_and_no_link_is_followed() {
    let place = Place::new();
    for name in [".git/objects", ".git/refs", ".git/hooks"] {
        fs::create_dir_all(place.root(name)).unwrap();
    }
    fs::write(place.root(".git/HEAD"), "x").unwrap();
    let before = place.snapshot();
    fs::rename(place.root(".git"), place.root("g2")).unwrap();
    let outside = place.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, place.root(".git")).unwrap();
    let (notices, taken) = place.restored(&before);
    assert_eq!(notices, [Notice::Restored(place.root(".git"))]);
    assert!(place.root(".git/HEAD").exists() && !place.root("g2").exists());
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(taken.len(), 1);
}

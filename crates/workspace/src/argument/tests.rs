use std::fs;
use std::io::{Write, pipe};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use rustix::fs::mkfifoat;

use super::*;
use crate::root::descriptor_path;

const LONG: Duration = Duration::from_secs(30);

struct Field {
    temp: tempfile::TempDir,
    guard: StoreGuard,
}

impl Field {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        for name in ["home", "home/workspace", "home/blobs", "elsewhere"] {
            fs::create_dir(temp.path().join(name)).unwrap();
        }
        for name in ["loom.db", "loom.db-wal", "loom.db-shm"] {
            fs::write(temp.path().join("home").join(name), "rows").unwrap();
        }
        fs::write(temp.path().join("text"), "text").unwrap();
        let guard = StoreGuard::of(&temp.path().join("home/loom.db")).unwrap();
        Self { temp, guard }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    fn open(&self, path: &Path, accept: Accept) -> Result<FileArgument, FileProblem> {
        FileArgument::open(path, &self.guard, accept, LONG).map_err(|error| error.problem)
    }
}

#[test]
fn the_stores_files_are_refused_by_any_way() {
    let field = Field::new();
    for name in ["loom.db", "loom.db-wal", "loom.db-shm"] {
        let file = field.path("home").join(name);
        let (link, hard) = (field.path(&format!("link-{name}")), field.path(&format!("hard-{name}")));
        symlink(&file, &link).unwrap();
        fs::hard_link(&file, &hard).unwrap();
        let held = File::open(&file).unwrap();
        let other = field.path("home/../home/./").join(name);
        for way in [file, link, hard, other, descriptor_path(&held)] {
            let refused = field.open(&way, Accept::RegularOrPipe).map(drop);
            assert!(matches!(refused, Err(FileProblem::StoreFile)), "{}: {refused:?}", way.display());
        }
    }
    // The control: without the guard each is a file like any other.
    let open = FileArgument::open(&field.path("home/loom.db"), &StoreGuard::new(), Accept::Regular, LONG);
    assert_eq!(open.unwrap().read_at_most(10).unwrap(), b"rows");
}

#[test]
fn what_is_no_regular_file_is_refused_and_not_waited_for() {
    let field = Field::new();
    mkfifoat(CWD, field.path("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(field.path("socket")).unwrap();
    let cases = [
        (field.path("fifo"), FileKind::Fifo),
        (field.path("socket"), FileKind::Socket),
        (field.path("elsewhere"), FileKind::Folder),
        (PathBuf::from("/dev/zero"), FileKind::Device),
    ];
    for accept in [Accept::Regular, Accept::RegularOrPipe] {
        for (path, kind) in &cases {
            let refused = field.open(path, accept).map(drop);
            assert!(matches!(refused, Err(FileProblem::NotRegular(found)) if found == *kind), "{refused:?}");
        }
    }
    assert!(matches!(field.open(&field.path("none"), Accept::Regular), Err(FileProblem::NotFound)));
}

#[test]
fn a_pipe_of_the_shell_is_read_within_its_limits() {
    let field = Field::new();
    let (reader, writer) = pipe().unwrap();
    let path = descriptor_path(&reader);
    let refused = field.open(&path, Accept::Regular).map(drop);
    assert!(matches!(refused, Err(FileProblem::NotRegular(FileKind::Fifo))));
    let (first, second) = (
        field.open(&path, Accept::RegularOrPipe).unwrap(),
        field.open(&path, Accept::RegularOrPipe).unwrap(),
    );
    let mut writer = writer;
    writer.write_all(b"12345").unwrap();
    assert!(matches!(first.read_at_most(4), Err(FileProblem::TooLarge { limit: 4 })));
    writer.write_all(b"6789").unwrap();
    drop(writer);
    assert_eq!(second.read_at_most(4).unwrap(), b"6789");
}

#[test]
fn a_pipe_nobody_writes_to_is_given_up() {
    let field = Field::new();
    let (reader, _writer) = pipe().unwrap();
    let open = |timeout| {
        FileArgument::open(&descriptor_path(&reader), &field.guard, Accept::RegularOrPipe, timeout).unwrap()
    };
    let silent = open(Duration::from_millis(1)).read_at_most(10);
    assert!(matches!(silent, Err(FileProblem::Io(error)) if error.kind() == io::ErrorKind::TimedOut));
}

#[test]
fn nothing_is_written_into_the_home_but_its_workspace() {
    let field = Field::new();
    let home = field.path("home");
    fs::create_dir(field.path("home/workspace/notes")).unwrap();
    symlink(&home, field.path("linked")).unwrap();
    symlink(field.path("home/workspace"), field.path("mine")).unwrap();
    for inside in
        ["home/a", "home/loom.db", "home/blobs/a", "linked/a", "linked/blobs/../a", "elsewhere/../home/a"]
    {
        let refused = check_output(&field.path(inside), &home).map_err(|error| error.problem);
        assert!(matches!(refused, Err(FileProblem::InHome)), "{inside}: {refused:?}");
    }
    for outside in ["a", "elsewhere/a", "home/workspace/a", "home/workspace/notes/a", "mine/a"] {
        assert!(check_output(&field.path(outside), &home).is_ok(), "{outside}");
    }
    let missing = check_output(&field.path("none/a"), &home).map_err(|error| error.problem);
    assert!(matches!(missing, Err(FileProblem::NotFound)));
    assert!(check_output(&field.path("a"), &field.path("no-home")).is_ok());
}

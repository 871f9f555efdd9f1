//! Every rule of opening, run against both resolvers: the kernel's and the one by components.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, Mode, mkfifoat};

use super::*;

pub(super) struct Field {
    _temp: tempfile::TempDir,
    pub(super) outside: PathBuf,
    pub(super) inside: PathBuf,
    pub(super) roots: [Root; 2],
    pub(super) guard: StoreGuard,
}

pub(super) fn field() -> Field {
    let temp = tempfile::tempdir().unwrap();
    let inside = temp.path().join("w");
    fs::create_dir_all(inside.join("docs/capabilities")).unwrap();
    fs::create_dir_all(temp.path().join("w-other")).unwrap();
    fs::write(temp.path().join("secret.txt"), "secret").unwrap();
    fs::write(temp.path().join("w-other/secret"), "secret").unwrap();
    fs::write(inside.join("allowed.txt"), "content").unwrap();
    let guard = StoreGuard::new();
    let roots = [Resolver::Kernel, Resolver::Components]
        .map(|resolver| Root::open_with(&inside, &guard, resolver).unwrap());
    let inside = inside.canonicalize().unwrap();
    Field { outside: temp.path().canonicalize().unwrap(), inside, roots, guard, _temp: temp }
}

pub(super) fn path(text: &str) -> RelativePath {
    RelativePath::parse(text).unwrap()
}

fn problem<T: std::fmt::Debug>(result: Result<T, FileError>) -> FileProblem {
    result.unwrap_err().problem
}

const RULES: ReadRules =
    ReadRules { max_bytes: 100, links: LinkPolicy::Refuse, single_name: false, one_device: false };

fn read(root: &Root, name: &str, rules: ReadRules) -> Result<Vec<u8>, FileProblem> {
    root.read(&path(name), &rules).map(|content| content.bytes).map_err(|error| error.problem)
}

#[test]
fn f10_a_file_in_the_root_is_read() {
    let field = field();
    for root in &field.roots {
        assert_eq!(read(root, "allowed.txt", RULES).unwrap(), b"content");
        assert_eq!(root.read_text(&path("allowed.txt"), &RULES).unwrap(), "content");
        assert!(matches!(read(root, "absent.txt", RULES), Err(FileProblem::NotFound)));
        assert!(matches!(read(root, "allowed.txt/x", RULES), Err(FileProblem::NotAFolder)));
    }
}

#[test]
fn x28_a_sibling_with_the_same_prefix_is_outside() {
    let field = field();
    let sibling = field.outside.join("w-other/secret");
    for root in &field.roots {
        assert_eq!(root.relative(&sibling), Err(PathProblem::Outside));
        assert_eq!(root.relative(&field.inside.join("../w-other/secret")), Err(PathProblem::Outside));
        assert_eq!(root.relative(&field.inside.join("a")), Ok(path("a")));
        assert_eq!(root.relative(&field.inside), Ok(RelativePath::root()));
    }
}

#[test]
fn files_3_links_are_refused_unless_asked_for() {
    let field = field();
    symlink("allowed.txt", field.inside.join("link")).unwrap();
    symlink("docs", field.inside.join("folder")).unwrap();
    fs::write(field.inside.join("docs/x.md"), "x").unwrap();
    for root in &field.roots {
        assert!(matches!(read(root, "link", RULES), Err(FileProblem::Symlink)));
        assert!(matches!(read(root, "folder/x.md", RULES), Err(FileProblem::Symlink)));
        // The control: the same names open when links inside the root are allowed.
        assert_eq!(read(root, "link", RULES.follow_links()).unwrap(), b"content");
        assert_eq!(read(root, "folder/x.md", RULES.follow_links()).unwrap(), b"x");
    }
}

#[test]
fn files_3_links_that_leave_are_refused_even_when_followed() {
    let field = field();
    symlink("../secret.txt", field.inside.join("up")).unwrap();
    symlink(field.outside.join("secret.txt"), field.inside.join("absolute")).unwrap();
    symlink("..", field.inside.join("parent")).unwrap();
    symlink("first", field.inside.join("second")).unwrap();
    symlink("up", field.inside.join("first")).unwrap();
    for root in &field.roots {
        for name in ["up", "absolute", "parent/secret.txt", "second"] {
            assert!(matches!(read(root, name, RULES.follow_links()), Err(FileProblem::Outside)), "{name}");
            assert!(matches!(read(root, name, RULES), Err(FileProblem::Symlink)), "{name}");
        }
    }
    // The control: without a root the same names lead to the secret.
    assert_eq!(fs::read(field.inside.join("second")).unwrap(), b"secret");
}

#[test]
fn files_3_loops_and_dangling_links_end_in_a_refusal() {
    let field = field();
    symlink("b", field.inside.join("a")).unwrap();
    symlink("a", field.inside.join("b")).unwrap();
    symlink("nowhere", field.inside.join("dangling")).unwrap();
    for root in &field.roots {
        assert!(matches!(read(root, "a", RULES.follow_links()), Err(FileProblem::Symlink)));
        assert!(matches!(read(root, "dangling", RULES.follow_links()), Err(FileProblem::NotFound)));
        assert!(matches!(problem(root.create_file(&path("dangling"))), FileProblem::Exists));
    }
    assert!(!field.inside.join("nowhere").exists());
}

#[test]
fn files_3_only_regular_files_are_opened_and_nothing_blocks() {
    let field = field();
    mkfifoat(CWD, field.inside.join("pipe.md"), Mode::from_raw_mode(0o600)).unwrap();
    fs::create_dir(field.inside.join("x.md")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(field.inside.join("socket")).unwrap();
    for root in &field.roots {
        assert!(matches!(read(root, "pipe.md", RULES), Err(FileProblem::NotRegular(FileKind::Fifo))));
        assert!(matches!(read(root, "x.md", RULES), Err(FileProblem::NotRegular(FileKind::Folder))));
        assert!(matches!(read(root, "socket", RULES), Err(FileProblem::NotRegular(FileKind::Socket))));
    }
    let system = Root::open(Path::new("/"), &field.guard).unwrap();
    let device = system.read(&path("dev/zero"), &RULES);
    assert!(matches!(problem(device), FileProblem::NotRegular(FileKind::Device)));
}

#[test]
fn files_3_links_of_proc_are_never_followed() {
    let field = field();
    let secret = fs::File::open(field.outside.join("secret.txt")).unwrap();
    let link = format!("proc/self/fd/{}", secret.as_raw_fd());
    // The control: the link works for anyone who follows it.
    assert_eq!(fs::read(Path::new("/").join(&link)).unwrap(), b"secret");
    let system = Root::open(Path::new("/"), &field.guard).unwrap();
    assert!(matches!(read(&system, &link, RULES.follow_links()), Err(FileProblem::Symlink)));
    assert!(read(&system, &link, RULES).is_err());
}

#[test]
fn files_3_size_and_names_are_limited() {
    let field = field();
    fs::write(field.inside.join("large"), vec![b'x'; 101]).unwrap();
    fs::write(field.inside.join("just"), vec![b'x'; 100]).unwrap();
    fs::File::create(field.inside.join("sparse")).unwrap().set_len(1 << 40).unwrap();
    fs::hard_link(field.outside.join("secret.txt"), field.inside.join("hard")).unwrap();
    fs::write(field.inside.join("latin1"), b"caf\xe9").unwrap();
    for root in &field.roots {
        assert!(matches!(read(root, "large", RULES), Err(FileProblem::TooLarge { limit: 100 })));
        assert!(matches!(read(root, "sparse", RULES), Err(FileProblem::TooLarge { limit: 100 })));
        assert_eq!(read(root, "just", RULES).unwrap().len(), 100);
        assert!(matches!(read(root, "hard", RULES.single_name()), Err(FileProblem::HardLinked { links: 2 })));
        assert_eq!(read(root, "hard", RULES).unwrap(), b"secret");
        let latin1 = root.read_text(&path("latin1"), &RULES);
        assert!(matches!(problem(latin1), FileProblem::NotUtf8 { valid_up_to: 3 }));
    }
}

#[test]
fn files_3_another_file_system_is_refused_where_one_device_is_asked() {
    let field = field();
    for resolver in [Resolver::Kernel, Resolver::Components] {
        let system = Root::open_with(Path::new("/"), &field.guard, resolver).unwrap();
        let rules = ReadRules { max_bytes: 1 << 20, ..RULES };
        assert!(matches!(read(&system, "proc/version", rules.one_device()), Err(FileProblem::OtherDevice)));
        assert!(read(&system, "proc/version", rules).is_ok());
    }
}

#[test]
fn files_3_a_root_may_itself_be_a_link_and_survives_being_moved() {
    let field = field();
    let alias = field.outside.join("alias");
    symlink(&field.inside, &alias).unwrap();
    let root = Root::open(&alias, &field.guard).unwrap();
    assert_eq!(root.path(), field.inside);
    assert_eq!(root.relative(&alias.join("allowed.txt")), Ok(path("allowed.txt")));
    fs::rename(&field.inside, field.outside.join("moved")).unwrap();
    fs::create_dir(&field.inside).unwrap();
    fs::write(field.inside.join("allowed.txt"), "another").unwrap();
    assert_eq!(read(&root, "allowed.txt", RULES).unwrap(), b"content");
}

#[test]
fn files_3_a_folder_swapped_in_mid_walk_never_yields_the_outside() {
    let field = field();
    let (here, spare) = (field.inside.join("swap"), field.outside.join("spare"));
    fs::create_dir(&here).unwrap();
    fs::write(here.join("x"), "inside").unwrap();
    fs::create_dir(field.outside.join("evil")).unwrap();
    fs::write(field.outside.join("evil/x"), "outside").unwrap();
    symlink(field.outside.join("evil"), &spare).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let exchange = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(CWD, &here, CWD, &spare, exchange).unwrap();
            }
        });
        for _ in 0..500 {
            for root in &field.roots {
                for rules in [RULES, RULES.follow_links()] {
                    if let Ok(bytes) = read(root, "swap/x", rules) {
                        assert_eq!(bytes, b"inside");
                    }
                }
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn stat_says_owner_mode_and_links_without_opening() {
    let field = field();
    mkfifoat(CWD, field.inside.join("pipe"), Mode::from_raw_mode(0o600)).unwrap();
    let open = field.inside.join("open.md");
    fs::write(&open, "x").unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o666)).unwrap();
    for root in &field.roots {
        assert_eq!(root.stat(&path("pipe"), LinkPolicy::Refuse).unwrap().kind, FileKind::Fifo);
        let found = root.stat(&path("open.md"), LinkPolicy::Refuse).unwrap();
        assert!(found.world_writable());
        assert_eq!((found.links, found.bytes, found.mode), (1, 1, 0o666));
        assert_eq!(found.owner, rustix::process::getuid().as_raw());
    }
}

#[test]
fn files_3_a_listing_is_sorted_bounded_and_says_when_it_is_cut() {
    let field = field();
    for name in ["b.md", "A.md", "a.md"] {
        fs::write(field.inside.join("docs").join(name), "").unwrap();
    }
    symlink("/etc", field.inside.join("docs/z")).unwrap();
    for root in &field.roots {
        let all = root.list(&path("docs"), 10).unwrap();
        let names: Vec<_> = all.entries.iter().map(|e| e.name.to_str().unwrap()).collect();
        assert_eq!(names, ["A.md", "a.md", "b.md", "capabilities", "z"]);
        assert_eq!(all.entries[4].kind, FileKind::Symlink);
        assert!(!all.incomplete);
        let some = root.list(&path("docs"), 2).unwrap();
        assert!(some.incomplete && some.entries.len() == 2);
        assert!(matches!(problem(root.list(&path("docs/z"), 10)), FileProblem::Symlink));
        assert!(matches!(problem(root.list(&path("allowed.txt"), 10)), FileProblem::NotAFolder));
    }
}

#[test]
fn f11_to_f16_names_are_made_inside_and_never_replace() {
    let field = field();
    symlink(&field.outside, field.inside.join("out")).unwrap();
    for (number, root) in field.roots.iter().enumerate() {
        assert!(matches!(problem(root.create_file(&path("out/escape.txt"))), FileProblem::Symlink));
        assert!(matches!(problem(root.create_folder(&path("out/escape"))), FileProblem::Symlink));
        let away = root.rename(&path("allowed.txt"), root, &path("out/escaped.txt"));
        assert!(matches!(problem(away), FileProblem::Symlink));
        assert!(field.inside.join("allowed.txt").exists());
        let folder = format!("new{number}/deep");
        root.create_folder(&path(&folder)).unwrap();
        root.create_folder(&path(&folder)).unwrap();
        let file = format!("{folder}/file");
        root.create_file(&path(&file)).unwrap();
        assert!(matches!(problem(root.create_file(&path(&file))), FileProblem::Exists));
        let taken = root.rename(&path(&file), root, &path("allowed.txt"));
        assert!(matches!(problem(taken), FileProblem::Exists));
        root.rename(&path(&file), root, &path(&format!("moved{number}"))).unwrap();
    }
    assert!(!field.outside.join("escape.txt").exists() && !field.outside.join("escape").exists());
}

#[test]
fn a_folder_has_its_bits_from_the_moment_it_has_its_name_whatever_the_umask_is() {
    use std::os::unix::fs::PermissionsExt as _;

    let field = field();
    let former = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let root = &field.roots[0];
    root.create_folder_as(&path("shared/deep"), 0o755).unwrap();
    root.create_folder(&path("private")).unwrap();
    rustix::process::umask(former);
    let mode = |name: &str| fs::metadata(field.inside.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(["shared", "shared/deep", "private"].map(mode), [0o755, 0o755, 0o700]);
}

#[test]
fn x1_a_link_is_read_made_and_moved_as_itself() {
    let field = field();
    fs::create_dir(field.inside.join("sub")).unwrap();
    symlink(field.outside.join("secret.txt"), field.inside.join("sub/link")).unwrap();
    let target = field.outside.join("secret.txt");
    for (number, root) in field.roots.iter().enumerate() {
        let found = root.link_target(&path("sub/link")).unwrap();
        assert_eq!(found, target.as_os_str().as_encoded_bytes());
        assert!(matches!(problem(root.link_target(&path("allowed.txt"))), FileProblem::NotRegular(_)));
        let made = format!("made{number}");
        root.create_link(&path(&made), &found).unwrap();
        assert!(matches!(problem(root.create_link(&path(&made), b"x")), FileProblem::Exists));
        assert_eq!(fs::read_link(field.inside.join(&made)).unwrap(), target);
        root.rename(&path(&made), root, &path(&format!("moved{number}"))).unwrap();
        assert!(field.inside.join(format!("moved{number}")).is_symlink());
    }
    assert_eq!(fs::read_to_string(target).unwrap(), "secret");
}

#[test]
fn a_folder_moves_whole_into_another_root() {
    let field = field();
    let other = Root::open(&field.outside.join("w-other"), &field.guard).unwrap();
    field.roots[0].rename(&path("docs"), &other, &path("docs")).unwrap();
    assert!(field.outside.join("w-other/docs/capabilities").is_dir() && !field.inside.join("docs").exists());
    let away = field.roots[0].rename(&path("allowed.txt"), &other, &path("secret"));
    assert!(matches!(problem(away), FileProblem::Exists));
}

#[test]
fn s8_the_stores_files_are_never_opened_under_any_name() {
    let field = field();
    let home = field.inside.join("home");
    fs::create_dir(&home).unwrap();
    let database = home.join("loom.db");
    fs::write(&database, "database").unwrap();
    // The control: before it is under guard the file opens.
    assert!(read(&field.roots[0], "home/loom.db", RULES).is_ok());
    field.guard.protect(&database).unwrap();
    // Files that SQLite makes later are known by name at once.
    fs::write(home.join("loom.db-wal"), "log").unwrap();
    fs::write(home.join("loom.db-shm"), "index").unwrap();
    fs::write(home.join("other.db"), "free").unwrap();
    fs::hard_link(&database, field.inside.join("innocent.txt")).unwrap();
    fs::hard_link(home.join("loom.db-shm"), field.inside.join("shm.txt")).unwrap();
    symlink("home/loom.db", field.inside.join("link")).unwrap();
    for root in &field.roots {
        for name in
            ["home/loom.db", "home/loom.db-wal", "home/loom.db-shm", "innocent.txt", "shm.txt", "link"]
        {
            let refused = read(root, name, RULES.follow_links());
            assert!(matches!(refused, Err(FileProblem::StoreFile)), "{name}");
        }
        assert_eq!(read(root, "home/other.db", RULES).unwrap(), b"free");
        let moved = root.rename(&path("home/loom.db"), root, &path("taken.db"));
        assert!(matches!(problem(moved), FileProblem::StoreFile));
    }
    // A database that was moved away by someone else is still the store's.
    fs::rename(&database, home.join("moved.db")).unwrap();
    assert!(matches!(read(&field.roots[0], "home/moved.db", RULES), Err(FileProblem::StoreFile)));
}

#[test]
fn s8_a_database_may_be_guarded_before_it_exists() {
    let field = field();
    field.guard.protect(&field.inside.join("loom.db")).unwrap();
    fs::write(field.inside.join("loom.db"), "new").unwrap();
    assert!(matches!(read(&field.roots[0], "loom.db", RULES), Err(FileProblem::StoreFile)));
    assert!(field.guard.protect(Path::new("/")).is_err());
    assert!(field.guard.protect(&field.inside.join("absent/loom.db")).is_err());
}

#[test]
fn s8_a_name_of_the_store_is_never_planted() {
    let field = field();
    let journal = path("loom.db-journal");
    // The control: the name is free before the database is under guard.
    field.roots[0].create_file(&journal).unwrap();
    fs::remove_file(field.inside.join("loom.db-journal")).unwrap();
    fs::write(field.inside.join("loom.db"), "").unwrap();
    field.guard.protect(&field.inside.join("loom.db")).unwrap();
    for root in &field.roots {
        assert!(matches!(problem(root.create_file(&journal)), FileProblem::StoreFile));
        let renamed = root.rename(&path("allowed.txt"), root, &journal);
        assert!(matches!(problem(renamed), FileProblem::StoreFile));
        assert!(root.stat(&path("docs/loom.db-journal"), LinkPolicy::Refuse).is_err());
    }
    field.roots[0].create_file(&path("docs/loom.db-journal")).unwrap();
}

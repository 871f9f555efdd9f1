use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::sync::Mutex;

use tempfile::TempDir;

use super::*;

/// A machine whose disks are whatever the test says.
#[derive(Default)]
struct Machine {
    network: Mutex<Option<(PathBuf, NetworkFs)>>,
    free: Mutex<Option<u64>>,
    cannot_allocate: Mutex<Option<io::ErrorKind>>,
}

impl FileSystems for Machine {
    fn network_kind(&self, path: &Path) -> io::Result<Option<NetworkFs>> {
        let network = self.network.lock().unwrap();
        Ok(network.as_ref().filter(|(root, _)| path.starts_with(root)).map(|(_, kind)| *kind))
    }

    fn free_and_total(&self, path: &Path) -> io::Result<(u64, u64)> {
        match *self.free.lock().unwrap() {
            Some(free) => Ok((free, 100 << 30)),
            None => HostFileSystems.free_and_total(path),
        }
    }

    fn allocate(&self, file: &File, bytes: u64) -> io::Result<()> {
        match *self.cannot_allocate.lock().unwrap() {
            Some(kind) => Err(kind.into()),
            None => HostFileSystems.allocate(file, bytes),
        }
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn open(path: &Path) -> Result<Home, HomeError> {
    Home::open(path, HomeOptions::default())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_new_home_is_closed_to_others_and_its_folders_come_when_needed() {
    let tmp = folder();
    let home = open(&tmp.path().join("a/b/home")).unwrap();
    assert_eq!(mode(home.root()), 0o700);
    assert_eq!(fs::read_dir(home.root()).unwrap().count(), 0);
    for dir in HomeDir::ALL {
        let path = home.dir(dir).unwrap();
        assert_eq!(mode(&path), 0o700, "{dir:?}");
        assert_eq!(home.dir(dir).unwrap(), path);
    }
    assert_eq!(mode(&home.root().join("cache")), 0o700);
    assert!(open(home.root()).unwrap().repaired().is_empty());
}

#[test]
fn modes_open_to_others_are_repaired_and_named() {
    let tmp = folder();
    let home = open(&tmp.path().join("home")).unwrap();
    home.dir(HomeDir::Spool).unwrap();
    fs::write(home.keys(), "secret").unwrap();
    fs::write(home.root().join("note.txt"), "the owner's").unwrap();
    for (path, mode) in [(home.root(), 0o755), (&*home.keys(), 0o644), (&home.root().join("spool"), 0o750)] {
        chmod(path, mode);
    }
    chmod(&home.root().join("note.txt"), 0o644);
    let again = open(home.root()).unwrap();
    assert_eq!(again.repaired(), [home.root().to_owned(), home.keys(), home.root().join("spool")]);
    assert_eq!((mode(home.root()), mode(&home.keys())), (0o700, 0o600));
    assert_eq!(mode(&home.root().join("note.txt")), 0o644, "what is not ours is left alone");
}

#[test]
fn the_mode_of_a_login_is_repaired_and_named_and_none_behind_a_link() {
    let tmp = folder();
    let home = open(&tmp.path().join("home")).unwrap();
    let login = home.dir(HomeDir::Logins).unwrap().join("issues.json");
    fs::write(&login, "{}").unwrap();
    chmod(&login, 0o666);
    assert_eq!(open(home.root()).unwrap().repaired(), std::slice::from_ref(&login));
    assert_eq!(mode(&login), 0o600);
    let outside = tmp.path().join("outside");
    fs::rename(home.root().join("oauth"), &outside).unwrap();
    symlink(&outside, home.root().join("oauth")).unwrap();
    chmod(&outside.join("issues.json"), 0o644);
    assert!(open(home.root()).unwrap().repaired().is_empty());
    assert_eq!(mode(&outside.join("issues.json")), 0o644);
}

#[test]
fn a_home_that_its_owner_keeps_from_being_written_stays_so() {
    let tmp = folder();
    let home = open(&tmp.path().join("home")).unwrap();
    fs::write(home.keys(), "secret").unwrap();
    chmod(&home.keys(), 0o444);
    chmod(home.root(), 0o500);
    // Whoever may write everywhere opens it all the same.
    let repaired = open(home.root()).map(|again| again.repaired().to_owned());
    assert_eq!((mode(home.root()), mode(&home.keys())), (0o500, 0o400), "closed to others, and not opened");
    assert!(repaired.is_err() || repaired.is_ok_and(|named| named == [home.keys()]));
    chmod(home.root(), 0o700);
}

#[test]
fn a_link_in_the_home_is_not_followed_to_change_modes() {
    let tmp = folder();
    let outside = tmp.path().join("weights");
    fs::create_dir(&outside).unwrap();
    chmod(&outside, 0o755);
    let home = open(&tmp.path().join("home")).unwrap();
    symlink(&outside, home.root().join("models")).unwrap();
    open(home.root()).unwrap();
    assert_eq!(mode(&outside), 0o755);
}

#[test]
fn nothing_is_written_through_a_link_in_the_home_but_what_may_lie_elsewhere() {
    let tmp = folder();
    let outside = tmp.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let home = open(&tmp.path().join("home")).unwrap();
    for dir in HomeDir::ALL {
        let top = home.root().join(dir.name().split('/').next().unwrap());
        let _ = fs::remove_dir_all(&top);
        symlink(&outside, &top).unwrap();
        let elsewhere = matches!(dir, HomeDir::Models | HomeDir::DefaultWorkspace);
        assert_eq!(home.dir(dir).is_ok(), elsewhere, "{dir:?}");
        fs::remove_file(&top).unwrap();
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn folders_that_are_no_home_are_refused_and_left_as_they_are() {
    let tmp = folder();
    chmod(tmp.path(), 0o755);
    fs::create_dir(tmp.path().join("logs")).unwrap();
    fs::write(tmp.path().join("thesis.tex"), "").unwrap();
    assert!(matches!(open(tmp.path()), Err(HomeError::NotAHome { .. })));
    assert_eq!(mode(tmp.path()), 0o755);
    assert!(matches!(open(Path::new("/")), Err(HomeError::NotAHome { .. })));
    fs::write(tmp.path().join("config.toml"), "").unwrap();
    assert!(open(tmp.path()).is_ok(), "a config file makes it a home");
    let tmp = folder();
    let written =
        tempfile::Builder::new().prefix(UNFINISHED_CONFIG).rand_bytes(RANDOM_CHARS).tempfile_in(tmp.path());
    let written = written.unwrap();
    assert!(open(tmp.path()).is_ok(), "another process is about to write the first one");
    fs::write(tmp.path().join(".config.d"), "").unwrap();
    assert!(matches!(open(tmp.path()), Err(HomeError::NotAHome { .. })), "others' names begin so, too");
    drop(written);
}

#[test]
fn what_an_owner_makes_by_hand_stands_in_a_new_home_and_what_is_in_the_way_is_named() {
    let tmp = folder();
    let made = ["agents", "commands", "skills"].map(|name| tmp.path().join(name));
    for folder in &made {
        fs::create_dir(folder).unwrap();
        chmod(folder, 0o755);
    }
    assert_eq!(open(tmp.path()).unwrap().repaired(), [tmp.path().to_owned()]);
    assert!(made.iter().all(|folder| mode(folder) == 0o755), "what is not ours is left alone");
    for other in ["thesis.tex", "letter.txt"] {
        fs::write(tmp.path().join(other), "").unwrap();
    }
    let refused = open(tmp.path()).unwrap_err().to_string();
    assert!(refused.ends_with(" holds other files (letter.txt) and is no Drawloom home"), "{refused}");
}

#[test]
fn a_home_is_known_by_the_id_of_its_store_and_its_list_of_backups_is_its_own() {
    let tmp = folder();
    fs::write(tmp.path().join(BACKUPS), "").unwrap();
    assert!(open(tmp.path()).is_ok(), "with nothing else in it");
    fs::write(tmp.path().join("thesis.tex"), "").unwrap();
    assert!(matches!(open(tmp.path()), Err(HomeError::NotAHome { .. })), "the name is others' too");
    fs::write(tmp.path().join(STORE_ID), "").unwrap();
    assert!(open(tmp.path()).is_ok());
}

#[test]
fn a_file_in_the_way_is_named() {
    let tmp = folder();
    let file = tmp.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("home")] {
        match open(&path) {
            Err(HomeError::NotADirectory { path }) => assert_eq!(path, file),
            other => panic!("{other:?}"),
        }
    }
    let home = open(&tmp.path().join("home")).unwrap();
    fs::write(home.root().join("spool"), "").unwrap();
    assert!(matches!(home.dir(HomeDir::Spool), Err(HomeError::NotADirectory { .. })));
    assert!(matches!(open(Path::new("")), Err(HomeError::Empty)));
}

#[test]
fn another_users_home_is_refused() {
    let tmp = folder();
    let root = tmp.path().join("home");
    fs::create_dir(&root).unwrap();
    if rustix::process::geteuid().is_root() {
        chown(&root, Some(65534), None).unwrap();
        match open(&root) {
            Err(HomeError::ForeignOwner { owner, us, .. }) => assert_eq!((owner, us), (65534, 0)),
            other => panic!("{other:?}"),
        }
        chown(&root, Some(0), None).unwrap();
    }
    assert!(open(&root).is_ok());
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    if rustix::process::geteuid().is_root() {
        // Modes do not bind root: only the mapping can be shown.
        let error = HomeError::io("created", Path::new("/x"))(io::ErrorKind::ReadOnlyFilesystem.into());
        assert!(matches!(error, HomeError::NotWritable { .. }));
        let error = HomeError::io("read", Path::new("/x"))(io::ErrorKind::PermissionDenied.into());
        assert!(matches!(error, HomeError::NotReadable { .. }), "{error}");
        return;
    }
    let tmp = folder();
    chmod(tmp.path(), 0o500);
    assert!(matches!(open(&tmp.path().join("home")), Err(HomeError::NotWritable { .. })));
    chmod(tmp.path(), 0o000);
    let within = open(&tmp.path().join("home"));
    chmod(tmp.path(), 0o700);
    assert!(matches!(within, Err(HomeError::NotReadable { .. })), "{within:?}");
}

#[test]
fn a_relative_path_is_made_absolute_and_links_are_resolved() {
    let tmp = folder();
    let real = open(&tmp.path().join("real")).unwrap();
    symlink(real.root(), tmp.path().join("link")).unwrap();
    assert_eq!(open(&tmp.path().join("link")).unwrap().root(), real.root());
    assert!(std::path::absolute("x").unwrap().is_absolute());
    assert!(real.root().is_absolute());
}

const KINDS: [(u32, NetworkFs); 7] = [
    (0x6969, NetworkFs::Nfs),
    (0x517B, NetworkFs::Smb),
    (0xFF53_4D42, NetworkFs::Smb),
    (0xFE53_4D42, NetworkFs::Smb),
    (0x0102_1997, NetworkFs::Plan9),
    (0x6573_5546, NetworkFs::Fuse),
    (0x00C3_6400, NetworkFs::Ceph),
];

#[test]
fn each_network_file_system_is_refused_unless_allowed() {
    for (magic, kind) in KINDS {
        assert_eq!(NetworkFs::from_magic(magic), Some(kind));
        let tmp = folder();
        let root = tmp.path().join("home");
        let machine = || {
            let network = Mutex::new(Some((tmp.path().to_owned(), kind)));
            Arc::new(Machine { network, ..Machine::default() })
        };
        match Home::open_on(&root, HomeOptions::default(), machine()) {
            Err(HomeError::NetworkFileSystem { kind: named, .. }) => assert_eq!(named, kind),
            other => panic!("{other:?}"),
        }
        assert!(!root.exists(), "nothing is created there");
        assert!(Home::open_on(&root, HomeOptions { allow_network_fs: true }, machine()).is_ok());
    }
    for local in [0xEF53, 0x0102_1994, 0x9123_683E, 0x5846_5342, 0x794C_7630] {
        assert_eq!(NetworkFs::from_magic(local), None);
    }
    assert_eq!(HostFileSystems.network_kind(folder().path()).unwrap(), None);
}

#[test]
fn a_database_that_lies_elsewhere_is_judged_by_where_it_lies() {
    let tmp = folder();
    let share = tmp.path().join("share");
    fs::create_dir(&share).unwrap();
    fs::write(share.join("loom.db"), "").unwrap();
    let home = open(&tmp.path().join("home")).unwrap();
    symlink(share.join("loom.db"), home.database()).unwrap();
    let real = home.database().canonicalize().unwrap();
    struct Follows(PathBuf);
    impl FileSystems for Follows {
        fn network_kind(&self, path: &Path) -> io::Result<Option<NetworkFs>> {
            Ok((path.canonicalize()? == self.0).then_some(NetworkFs::Nfs))
        }
        fn free_and_total(&self, path: &Path) -> io::Result<(u64, u64)> {
            HostFileSystems.free_and_total(path)
        }
        fn allocate(&self, file: &File, bytes: u64) -> io::Result<()> {
            HostFileSystems.allocate(file, bytes)
        }
    }
    let refused = Home::open_on(home.root(), HomeOptions::default(), Arc::new(Follows(real)));
    assert!(matches!(refused, Err(HomeError::NetworkFileSystem { .. })));
}

#[test]
fn space_is_judged_by_both_limits() {
    let limits = SpaceLimits::default();
    let gib = 1 << 30;
    assert_eq!(limits.judge(256 << 20, gib), Space::Enough { free: 256 << 20 });
    assert_eq!(
        limits.judge((256 << 20) - 1, gib),
        Space::Short { free: (256 << 20) - 1, minimum: 256 << 20 }
    );
    assert_eq!(limits.judge(9 * gib, 100 * gib), Space::Low { free: 9 * gib, total: 100 * gib });
    assert_eq!(limits.judge(10 * gib, 100 * gib), Space::Enough { free: 10 * gib });
    let tmp = folder();
    let machine = Arc::new(Machine { free: Mutex::new(Some(1)), ..Machine::default() });
    let home = Home::open_on(&tmp.path().join("home"), HomeOptions::default(), machine).unwrap();
    assert!(matches!(home.space(limits).unwrap(), Space::Short { free: 1, .. }));
}

const ANY_SPACE: SpaceLimits = SpaceLimits { minimum_free: 0, warn_below_percent: 0 };

#[test]
fn the_reserve_takes_real_blocks_and_gives_them_back() {
    let tmp = folder();
    let home = open(&tmp.path().join("home")).unwrap();
    let bytes = 1 << 20;
    for _ in 0..2 {
        assert_eq!(home.reserve().hold(bytes, ANY_SPACE).unwrap(), ReserveState::Held);
    }
    let metadata = fs::metadata(home.reserve_file()).unwrap();
    assert!(metadata.blocks() * 512 >= bytes, "a sparse file holds nothing back");
    assert_eq!(metadata.mode() & 0o7777, 0o600);
    assert_eq!(home.reserve().release().unwrap(), bytes);
    assert_eq!(home.reserve().release().unwrap(), 0);
    assert!(!home.reserve_file().exists());
}

#[test]
fn the_reserve_is_filled_by_writing_where_blocks_cannot_be_allocated() {
    let tmp = folder();
    let machine =
        Machine { cannot_allocate: Mutex::new(Some(io::ErrorKind::Unsupported)), ..Machine::default() };
    let home = Home::open_on(&tmp.path().join("home"), HomeOptions::default(), Arc::new(machine)).unwrap();
    assert_eq!(home.reserve().hold(100_000, ANY_SPACE).unwrap(), ReserveState::Held);
    assert_eq!(home.reserve().release().unwrap(), 100_000);
}

#[test]
fn the_reserve_never_takes_the_last_room() {
    let tmp = folder();
    let machine = Arc::new(Machine { free: Mutex::new(Some(256 << 20)), ..Machine::default() });
    let home = Home::open_on(&tmp.path().join("home"), HomeOptions::default(), machine.clone()).unwrap();
    let hold = || home.reserve().hold(4096, SpaceLimits::default()).unwrap();
    assert_eq!(hold(), ReserveState::Released);
    *machine.free.lock().unwrap() = Some((256 << 20) + 4096);
    assert_eq!(hold(), ReserveState::Held);
    home.reserve().release().unwrap();
    *machine.cannot_allocate.lock().unwrap() = Some(io::ErrorKind::StorageFull);
    assert_eq!(hold(), ReserveState::Released);
    assert!(!home.reserve_file().exists(), "a half-taken reserve is given back");
}

#[test]
fn a_small_write_on_a_full_disk_lives_off_the_reserve_once() {
    let tmp = folder();
    let home = open(&tmp.path().join("home")).unwrap();
    // A disk on which there is room exactly when the reserve is gone.
    let draft = || if home.reserve_file().exists() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(7) };
    home.reserve().hold(4096, ANY_SPACE).unwrap();
    assert_eq!(draft().map_err(|error: io::Error| error.kind()), Err(io::ErrorKind::StorageFull));
    assert_eq!(home.reserve().spend(draft).unwrap(), 7);

    let mut tries = 0;
    let full = home.reserve().spend(|| {
        tries += 1;
        Err::<(), _>(io::ErrorKind::StorageFull.into())
    });
    assert_eq!((full.unwrap_err().kind(), tries), (io::ErrorKind::StorageFull, 1));

    home.reserve().hold(4096, ANY_SPACE).unwrap();
    let other = home.reserve().spend(|| Err::<(), _>(io::ErrorKind::PermissionDenied.into()));
    assert_eq!(other.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    assert!(home.reserve_file().exists(), "only a full disk spends it");
}

#[test]
fn a_name_that_is_taken_is_not_given_whatever_the_file_system_can_do() {
    let tmp = folder();
    let path = |name: &str| tmp.path().join(name);
    for can_rename in [true, false] {
        let rename = |from: &Path, to: &Path| {
            let renames = || renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE);
            if can_rename { renames() } else { Err(Errno::INVAL) }
        };
        fs::write(path("old"), "mine").unwrap();
        fs::write(path("new"), "theirs").unwrap();
        let named =
            || rename_or_link(rename(&path("old"), &path("new")), &path("old"), &path("new")).unwrap();
        assert!(!named());
        assert_eq!(fs::read_to_string(path("new")).unwrap(), "theirs");
        fs::remove_file(path("new")).unwrap();
        assert!(named());
        assert_eq!(fs::read_to_string(path("new")).unwrap(), "mine");
        assert!(!path("old").exists());
    }
}

#[test]
fn where_nothing_names_a_file_without_a_risk_it_is_not_named() {
    let tmp = folder();
    let (old, new) = (tmp.path().join("old"), tmp.path().join("new"));
    // No file system links folders.
    fs::create_dir(&old).unwrap();
    let refused = rename_or_link(Err(Errno::NOSYS), &old, &new).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
    assert!(old.exists() && !new.exists());
    assert!(
        rename_or_link(Err(Errno::NOENT), &old, &new)
            .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    );
}

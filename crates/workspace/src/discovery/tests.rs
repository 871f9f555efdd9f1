//! Discovery over a made-up machine, and once over the real one.

use std::collections::BTreeMap;

use super::*;

const US: u32 = 1000;
const OTHER: u32 = 1001;

#[derive(Default)]
struct Machine(BTreeMap<PathBuf, FolderFacts>);

impl Machine {
    fn with(mut self, folder: &str, facts: FolderFacts) -> Self {
        self.0.insert(folder.into(), facts);
        self
    }
}

impl Facts for Machine {
    fn of(&self, folder: &Path) -> std::io::Result<FolderFacts> {
        Ok(self.0.get(folder).cloned().unwrap_or_else(plain))
    }
}

fn plain() -> FolderFacts {
    FolderFacts { owner: US, mode: 0o755, ..FolderFacts::default() }
}

fn marked() -> FolderFacts {
    FolderFacts { markers: vec![("AGENTS.md", US)], ..plain() }
}

fn us() -> DiscoveryContext {
    DiscoveryContext { home: "/home/us/.drawloom".into(), user_home: Some("/home/us".into()), user: US }
}

fn from(start: &str, machine: &Machine) -> Discovered {
    discover(Path::new(start), &us(), machine)
}

/// The walk ended at `folder`, and the home's own workspace is taken.
#[track_caller]
fn ended(found: &Discovered, folder: &str, stop: DiscoveryStop) {
    assert_eq!(found.because, DiscoveryReason::NothingBefore { folder: folder.into(), stop });
    assert_eq!(found.folder, Path::new("/home/us/.drawloom/workspace"));
    assert!(found.to_string().contains(&stop.to_string()));
}

#[test]
fn the_nearest_marked_folder_upward_is_the_workspace() {
    let machine = Machine::default().with("/home/us/w", marked()).with("/home/us/w/in", marked());
    assert_eq!(from("/home/us/w/in/deep", &machine).folder, Path::new("/home/us/w/in"));
    assert_eq!(from("/home/us/w/src", &machine).folder, Path::new("/home/us/w"));
    assert_eq!(from("/home/us/w", &machine).because, DiscoveryReason::Marker("AGENTS.md"));
    let toml = FolderFacts { markers: vec![(MARKERS[0], US), ("AGENTS.md", US)], ..plain() };
    let found = from("/home/us/w", &Machine::default().with("/home/us/w", toml));
    assert_eq!(found.because, DiscoveryReason::Marker(".drawloom/workspace.toml"));
    assert_eq!(found.to_string(), "/home/us/w: holds .drawloom/workspace.toml");
}

#[test]
fn the_walk_ends_above_a_git_work_tree() {
    let git = FolderFacts { git: true, ..plain() };
    let machine = Machine::default().with("/home/us/p", marked()).with("/home/us/p/repo", git.clone());
    let found = from("/home/us/p/repo/src", &machine);
    ended(&found, "/home/us/p", DiscoveryStop::AboveGit);
    assert_eq!(found.git_top.as_deref(), Some(Path::new("/home/us/p/repo")));
    let chosen = found.in_git_top();
    assert_eq!((chosen.folder.as_path(), chosen.git_top.as_ref()), (Path::new("/home/us/p/repo"), None));
    assert_eq!(chosen.to_string(), "/home/us/p/repo: a git repository in which you chose to work");
    // Below the home folder, where the walk ends by another rule.
    let machine = machine.with("/home/us/repo", git.clone());
    let found = from("/home/us/repo/src", &machine);
    ended(&found, "/home/us", DiscoveryStop::UserHome);
    assert_eq!(found.git_top.as_deref(), Some(Path::new("/home/us/repo")));
    // The work tree itself may be the workspace; without `.git` the folder above is found.
    let both = FolderFacts { git: true, ..marked() };
    let machine = machine.with("/home/us/p/repo", both);
    let found = from("/home/us/p/repo/src", &machine);
    assert_eq!((found.folder.as_path(), found.git_top), (Path::new("/home/us/p/repo"), None));
    let machine = machine.with("/home/us/p/repo", plain());
    assert_eq!(from("/home/us/p/repo/src", &machine).folder, Path::new("/home/us/p"));
}

#[test]
fn the_top_of_a_work_tree_is_looked_for_within_the_same_bounds() {
    let git = || FolderFacts { git: true, ..plain() };
    let top = |from: &str, machine: &Machine| git_top(Path::new(from), &us(), machine);
    let machine = Machine::default().with("/data/repo", git()).with("/home/us", git());
    assert_eq!(top("/data/repo/a/b", &machine).as_deref(), Some(Path::new("/data/repo")));
    assert_eq!(top("/data/repo", &machine).as_deref(), Some(Path::new("/data/repo")));
    assert_eq!(top("/home/us/notes", &machine), None, "a home folder is no repository of a workspace");
    for strange in [FolderFacts { owner: OTHER, ..git() }, FolderFacts { mode: 0o777, ..git() }] {
        let machine = Machine::default().with("/data/repo", strange);
        assert_eq!(top("/data/repo/a", &machine), None);
        assert_eq!(top("/data/repo", &machine).as_deref(), Some(Path::new("/data/repo")), "it was named");
    }
    let mounted = Machine::default()
        .with("/data", git())
        .with("/data/disk", FolderFacts { mount_point: true, ..plain() });
    assert_eq!(top("/data/disk/a", &mounted), None);
}

#[test]
fn the_walk_ends_at_folders_that_are_not_plainly_ours() {
    let cases = [
        (FolderFacts { mount_point: true, ..marked() }, DiscoveryStop::MountPoint),
        (FolderFacts { owner: OTHER, ..marked() }, DiscoveryStop::ForeignOwner),
        (FolderFacts { owner: 0, ..marked() }, DiscoveryStop::ForeignOwner),
        (FolderFacts { mode: 0o1777, ..marked() }, DiscoveryStop::WorldWritable),
        (FolderFacts { mode: 0o757, ..marked() }, DiscoveryStop::WorldWritable),
    ];
    for (facts, stop) in cases {
        let machine = Machine::default().with("/data/stop", facts).with("/data", marked());
        ended(&from("/data/stop/in", &machine), "/data/stop", stop);
        ended(&from("/data/stop", &machine), "/data/stop", stop);
    }
    // The control: the same folder, plain.
    let machine = Machine::default().with("/data/stop", marked());
    assert_eq!(from("/data/stop/in", &machine).folder, Path::new("/data/stop"));
}

#[test]
fn the_homes_and_the_root_are_never_found() {
    let everywhere = Machine::default()
        .with("/", marked())
        .with("/home", marked())
        .with("/home/us", marked())
        .with("/home/us/.drawloom", marked())
        .with("/home/us/.drawloom/sandbox/x", marked())
        .with("/home/us/.drawloom/workspace", marked());
    ended(&from("/", &everywhere), "/", DiscoveryStop::SystemRoot);
    ended(&from("/home/us", &everywhere), "/home/us", DiscoveryStop::UserHome);
    ended(&from("/home/us/notes", &everywhere), "/home/us", DiscoveryStop::UserHome);
    ended(&from("/home", &everywhere), "/home", DiscoveryStop::ContainsHome);
    ended(&from("/var/x", &Machine::default().with("/", marked())), "/", DiscoveryStop::SystemRoot);
    let sandbox = from("/home/us/.drawloom/sandbox/x", &everywhere);
    ended(&sandbox, "/home/us/.drawloom/sandbox/x", DiscoveryStop::InsideHome);
    let own = from("/home/us/.drawloom/workspace/notes", &everywhere);
    assert_eq!(own.because, DiscoveryReason::Marker("AGENTS.md"));

    let elsewhere = DiscoveryContext { home: "/data/d/home".into(), ..us() };
    let machine = Machine::default().with("/data/d", marked()).with("/data", marked());
    let found = discover(Path::new("/data/d/project"), &elsewhere, &machine);
    assert_eq!(
        found.because,
        DiscoveryReason::NothingBefore { folder: "/data/d".into(), stop: DiscoveryStop::ContainsHome }
    );
}

#[test]
fn s4_a_marker_of_another_user_is_ignored_with_a_reason() {
    let planted = FolderFacts { markers: vec![("AGENTS.md", OTHER)], ..plain() };
    let machine = Machine::default().with("/home/us/w/sub", planted).with("/home/us/w", marked());
    let found = from("/home/us/w/sub", &machine);
    assert_eq!(found.folder, Path::new("/home/us/w"));
    assert_eq!(found.foreign_markers, [Path::new("/home/us/w/sub/AGENTS.md")]);
    assert!(found.to_string().contains("ignored /home/us/w/sub/AGENTS.md"));

    let tmp = FolderFacts { owner: 0, mode: 0o1777, markers: vec![("AGENTS.md", OTHER)], ..plain() };
    let found = from("/tmp/build", &Machine::default().with("/tmp", tmp));
    ended(&found, "/tmp", DiscoveryStop::ForeignOwner);
    assert_eq!(found.foreign_markers, [Path::new("/tmp/AGENTS.md")]);
}

#[test]
fn a_folder_that_cannot_be_read_ends_the_walk() {
    struct Closed;
    impl Facts for Closed {
        fn of(&self, _: &Path) -> std::io::Result<FolderFacts> {
            Err(std::io::ErrorKind::PermissionDenied.into())
        }
    }
    let found = discover(Path::new("/data/x"), &us(), &Closed);
    ended(&found, "/data/x", DiscoveryStop::Unreadable);
}

#[test]
fn s4_homes_and_what_contains_them_are_refused_as_writable_roots() {
    let refused = |folder: &str| check_writable_root(Path::new(folder), &us()).map_err(|e| e.stop);
    assert_eq!(refused("/"), Err(DiscoveryStop::SystemRoot));
    assert_eq!(refused("/home/us"), Err(DiscoveryStop::UserHome));
    assert_eq!(refused("/home"), Err(DiscoveryStop::ContainsHome));
    assert_eq!(refused("/home/us/.drawloom"), Err(DiscoveryStop::InsideHome));
    assert_eq!(refused("/home/us/.drawloom/run"), Err(DiscoveryStop::InsideHome));
    for skills in ["/home/us/.agents/skills", "/home/us/.agents/skills/weave"] {
        assert_eq!(refused(skills), Err(DiscoveryStop::OwnersSkills));
    }
    for fine in [
        "/home/us/w",
        "/home/us/.agents",
        "/home/us/.drawloom/workspace",
        "/home/us/.drawloom-notes",
        "/srv/w",
        "/tmp",
    ] {
        assert_eq!(refused(fine), Ok(()), "{fine}");
    }
    let apart = DiscoveryContext { home: "/data/home".into(), ..us() };
    assert_eq!(check_writable_root(Path::new("/home"), &apart).unwrap_err().stop, DiscoveryStop::UserHome);
}

#[test]
fn real_folders_give_the_same_facts() {
    let temp = tempfile::tempdir().unwrap();
    let start = temp.path().canonicalize().unwrap();
    let (repo, deep) = (start.join("repo"), start.join("repo/src/deep"));
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::create_dir(repo.join(".git")).unwrap();
    std::fs::write(start.join("AGENTS.md"), "").unwrap();
    let us = DiscoveryContext {
        home: start.join("home"),
        user_home: None,
        user: rustix::process::getuid().as_raw(),
    };
    let found = discover(&deep, &us, &OnDisk);
    let because = DiscoveryReason::NothingBefore { folder: start.clone(), stop: DiscoveryStop::ContainsHome };
    assert_eq!(found.because, because);
    std::fs::write(repo.join("AGENTS.md"), "").unwrap();
    assert_eq!(discover(&deep, &us, &OnDisk).folder, repo);
    let stranger = DiscoveryContext { user: us.user + 1, ..us.clone() };
    let found = discover(&deep, &stranger, &OnDisk);
    assert!(matches!(
        found.because,
        DiscoveryReason::NothingBefore { stop: DiscoveryStop::ForeignOwner, .. }
    ));
    assert!(OnDisk.of(Path::new("/proc")).unwrap().mount_point);
    assert!(!OnDisk.of(&repo).unwrap().mount_point);
    assert!(OnDisk.of(&repo).unwrap().git);
    assert!(OnDisk.of(&start.join("absent")).is_err());
}

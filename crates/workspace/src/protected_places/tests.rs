use std::os::unix::fs::symlink;

use Protection::{Ask, Never};
use ProtectionMatch::{Nothing, OnTheWay, Protected};

use super::*;
use crate::guard::StoreGuard;

struct World {
    temp: tempfile::TempDir,
    root: Root,
}

impl World {
    /// Files below a folder that holds the root `w`.
    fn new(files: &[(&str, &str)]) -> Self {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("w")).unwrap();
        for (name, text) in files {
            let path = temp.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::open(&temp.path().join("w"), &StoreGuard::new()).unwrap();
        Self { temp, root }
    }

    /// Judges the paths of a call.
    fn judged<const N: usize>(&self, paths: [&str; N]) -> [ProtectionMatch; N] {
        let paths = paths.map(|path| RelativePath::parse(path).unwrap());
        let found = ProtectedPlaces::beneath(&self.root, &paths.iter().collect::<Vec<_>>(), &[]);
        paths.each_ref().map(|path| found.protection(path))
    }

    fn is(&self, path: &str, expected: ProtectionMatch) {
        assert_eq!(self.judged([path]), [expected], "{path}");
    }
}

#[test]
fn what_a_configuration_names_as_hooks_or_to_be_read_is_asked_about() {
    let world = World::new(&[
        (
            "w/.git/config",
            "[core]\n\thooksPath = .githooks # ours\n[include]\n\tpath = ../conf/team.cfg ; y\n",
        ),
        ("w/.git/HEAD", "ref: refs/heads/m\n"),
        ("w/.git/modules/logs/config", "[core]\n\tworktree = ../../../logs\n\thooksPath = run\n"),
        ("w/nested/.git/config", "[include]\n\tpath = ../../shared.cfg\n"),
    ]);
    for path in [
        ".githooks/pre-commit",
        ".GitHooks/pre-push",
        ".githooks",
        "conf/team.cfg",
        "logs/run/x",
        "shared.cfg",
    ] {
        world.is(path, Protected(Ask));
    }
    world.is("conf", OnTheWay(Ask));
    for path in ["githooks/x", "conf/team.cfg.bak", "src/main.rs", "logs/x", "run/x"] {
        world.is(path, Nothing);
    }
}

#[test]
fn the_repository_around_a_root_and_a_linked_working_tree_count() {
    let around = World::new(&[(".git/config", "[core]\n\thooksPath = w/hooks2\n"), (".git/HEAD", "")]);
    around.is("hooks2/pre-commit", Protected(Ask));
    let linked = World::new(&[
        ("main/.git/config", "[core]\n\thooksPath = run\n"),
        ("main/.git/worktrees/w/commondir", "../..\n"),
        ("main/.git/worktrees/w/HEAD", ""),
        ("w/.git", "gitdir: ../main/.git/worktrees/w\n"),
    ]);
    linked.is("run/pre-commit", Protected(Ask));
}

#[test]
fn a_folder_of_the_shape_of_gits_is_never_written() {
    let world = World::new(&[
        ("w/remote.git/HEAD", ""),
        ("w/remote.git/config", "[core]\n\thooksPath = run\n"),
        ("w/remote.git/objects/x", ""),
        ("w/remote.git/refs/x", ""),
        ("w/node_modules/p/HEAD", ""),
        ("w/node_modules/p/commondir", ""),
    ]);
    for path in
        ["remote.git/config", "remote.git/hooks/post-receive", "remote.git/run/x", "node_modules/p/config"]
    {
        world.is(path, Protected(Never));
    }
    world.is("remote.git", Protected(Never));
    world.is("other.git/config", Nothing);
}

#[test]
fn a_file_that_names_a_git_folder_may_be_as_long_as_git_takes_it() {
    let padding = "\n".repeat(1 << 17);
    let world = World::new(&[
        ("w/q/.git", &format!("gitdir: ../store{padding}")),
        ("w/store/config", "[include]\n\tpath = ../more.cfg\n"),
    ]);
    world.is("more.cfg", Protected(Ask));
    world.is("store/config", Protected(Never));
}

#[test]
fn a_folder_gets_that_shape_by_no_call() {
    let world =
        World::new(&[("w/d/config", "[core]\n\tfsmonitor = x\n"), ("w/d/objects/x", ""), ("w/d/refs/x", "")]);
    world.is("d/HEAD", Protected(Never));
    world.is("d/head", Protected(Never));
    world.is("d/hooks/x", Protected(Never));
    // Whatever a command makes of it later.
    assert_eq!(world.judged(["m/config", "m/objects/x", "m/refs/x"]), [Protected(Never); 3]);
    assert_eq!(world.judged(["m/config/x", "m/objects/x", "m/refs/x"]), [Nothing; 3], "a folder of modules");
    assert_eq!(world.judged(["n/HEAD", "n/objects/x", "n/refs/x"]), [Protected(Never); 3], "by one patch");
    assert_eq!(world.judged(["n/HEAD", "n/objects/x"]), [Nothing; 2]);
}

#[test]
fn a_root_that_is_a_git_folder_keeps_what_runs_in_it() {
    let world = World::new(&[("w/HEAD", ""), ("w/objects/x", ""), ("w/refs/x", "")]);
    world.is("hooks/post-receive", Protected(Never));
    world.is("config", Protected(Never));
    world.is("notes/x", Nothing);
}

#[test]
fn what_a_protected_name_leads_to_is_protected_as_it_is() {
    let world = World::new(&[("w/docs/agents.md", ""), ("w/g/x", "")]);
    for (target, link) in [
        ("docs/agents.md", "w/AGENTS.md"),
        ("later.md", "w/CLAUDE.md"),
        ("g", "w/.github"),
        (".", "w/.vscode"),
    ] {
        symlink(target, world.temp.path().join(link)).unwrap();
    }
    for path in ["docs/agents.md", "later.md", "g/workflows/ci.yml"] {
        world.is(path, Protected(Ask));
    }
    world.is("docs", OnTheWay(Ask));
    world.is("g", OnTheWay(Ask));
    world.is("docs/other.md", Nothing);
    world.is("g/x", Nothing);
}

#[test]
fn what_links_in_protected_places_lead_to_is_asked_about() {
    let world = World::new(&[
        ("w/.git/HEAD", ""),
        ("w/.git/config", "[core]\n\thooksPath = .githooks\n"),
        ("w/.git/hooks/x.sample", ""),
        ("w/.githooks/pre-push", ""),
        ("w/.vscode/x", ""),
        ("w/conf/below/x", ""),
    ]);
    for (target, link) in [
        ("../../scripts/pc", "w/.git/hooks/pre-commit"),
        ("../attributes", "w/.git/info"),
        ("../scripts/push", "w/.githooks/pre-commit"),
        ("../conf", "w/.vscode/more"),
        ("../../far", "w/conf/below/link"),
        ("..", "w/conf/round"),
    ] {
        symlink(target, world.temp.path().join(link)).unwrap();
    }
    for path in ["scripts/pc", "scripts/push", "attributes/x", "conf/new", "far/x"] {
        world.is(path, Protected(Ask));
    }
    world.is("scripts/other", Nothing);
}

#[test]
fn where_a_folder_cannot_be_listed_each_path_is_asked_about() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new(&[("w/a", ""), ("w/closed/x", "")]);
    let closed = world.temp.path().join("w/closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o311)).unwrap();
    // The administrator may list any.
    let expected = if fs::read_dir(&closed).is_ok() { Nothing } else { Protected(Ask) };
    world.is("a", expected);
}

#[test]
fn where_not_all_could_be_looked_at_each_path_is_asked_about() {
    let world = World::new(&[("w/a", ""), ("w/b", ""), ("w/c", "")]);
    let path = RelativePath::parse("a").unwrap();
    let cut = ProtectedPlaces::within(&world.root, &[&path], &[], 2);
    assert_eq!(cut.protection(&path), Protected(Ask));
    assert_eq!(ProtectedPlaces::within(&world.root, &[&path], &[], 3).protection(&path), Nothing);
}

#[test]
fn what_leads_into_another_root_is_found_from_where_it_leads() {
    let world =
        World::new(&[("w/.git/HEAD", "ref: refs/heads/m\n"), ("other/run/pre-push", ""), ("other/far", "")]);
    let top = world.temp.path().canonicalize().unwrap();
    let config = format!("[core]\n\thooksPath = {}\n", top.join("other/run").display());
    fs::write(top.join("w/.git/config"), config).unwrap();
    symlink("../other/linked", top.join("w/.envrc")).unwrap();
    symlink("../far", top.join("other/run/post-commit")).unwrap();
    let other = Root::open(&top.join("other"), &StoreGuard::new()).unwrap();
    let judged = |others: &[&Root]| {
        let found = ProtectedPlaces::beneath(&world.root, &[], others);
        ["run/pre-push", "linked", "run", "far", "plain"]
            .map(|path| found.protection_elsewhere(&top.join("other").join(path)))
    };
    assert_eq!(judged(&[&other]), [Protected(Ask), Protected(Ask), Protected(Ask), Protected(Ask), Nothing]);
    // The control: in a folder that is no root of the session nothing is written anyhow.
    assert_eq!(judged(&[]), [Nothing; 5]);
}

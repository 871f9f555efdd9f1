//! What a command sees of a repository that its workspace is a folder of, and what it cannot (decision 26).

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::everyday::{git, repository, told};
use crate::world::{Run, World, lacks, text};

/// Puts what a model guesses under the name of a file into the index.
const GUESS: &str =
    "git -C .. update-index --add --cacheinfo 100644,$(echo guess | git hash-object -w --stdin),other/.env";

/// A repository of two parts, with a secret beside them that git ignores.
fn outer(world: &World) -> PathBuf {
    let outer = repository(world.path("outer"));
    for (name, text) in [
        ("README.md", "all of it\n"),
        ("other/a.rs", "fn a() {}\n"),
        ("part/b.rs", "fn b() {}\n"),
        ("part2/c.rs", "fn c() {}\n"),
        (".gitignore", ".env*\n*.log\n"),
    ] {
        write(&outer.join(name), text);
    }
    commit(&outer);
    for name in [".env", "other/.env", "notes/todo"] {
        write(&outer.join(name), "SECRETIVE\n");
    }
    outer
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn commit(repository: &Path) {
    git(repository, &["add", "-A"]);
    git(repository, &["commit", "-q", "-m", "more"]);
}

/// Runs a line in the walls of a workspace.
fn walled(world: &World, workspace: &Path, line: &str) -> Run {
    let workspace = text(workspace);
    let run = world.run(&["--workspace", &workspace, "sandbox", "--", "sh", "-c", line]);
    assert!(!(run.out.clone() + &run.err).contains("SECRETIVE"), "{line}: {run:?}");
    run
}

/// A world with a repository of which a command has been run in its part, so that what git had is recorded.
fn recorded() -> (World, PathBuf, PathBuf) {
    let world = World::new();
    let outer = outer(&world);
    let part = outer.join("part");
    let first = walled(&world, &part, "cat ../other/a.rs");
    assert_eq!((first.out.as_str(), first.err.as_str()), ("fn a() {}\n", ""), "control");
    (world, outer, part)
}

#[test]
fn of_a_larger_repository_a_command_sees_what_git_has_and_writes_nothing() {
    if lacks(&["git"]) {
        return;
    }
    let commands = [
        "cat ../README.md ../other/a.rs",
        "cat ../.env ../other/.env ../notes/todo 2>&1; ls -A .. ../other",
        "! touch ../new && ! sh -c 'echo x >> ../README.md' && git status --porcelain",
        "git -C .. ls-files | sort | head -1",
    ];
    let (world, folder, told) = told(&commands, |world| outer(world).join("part"));
    assert!(told[0].contains("all of it") && told[0].contains("fn a()"), "{}", told[0]);
    assert!(!told[1].contains("SECRETIVE") && told[1].contains("a.rs"), "{}", told[1]);
    assert!(told[2].starts_with("exit 0 ("), "{}", told[2]);
    assert!(!told[2].contains(" D ") && !told[2].contains("part/"), "{}", told[2]);
    assert!(told[3].contains(".gitignore"), "{}", told[3]);
    let outer = folder.parent().unwrap();
    assert_eq!(fs::read_to_string(outer.join("README.md")).unwrap(), "all of it\n");
    assert_eq!(fs::read_to_string(outer.join("other/.env")).unwrap(), "SECRETIVE\n");
    drop(world);
}

/// Files of the owner's that git is told to look at, also against its rules, by names that patterns would not fit.
const UNTRACKED: [&str; 5] =
    ["mine.txt", "other/a [1]*.txt", "other/Icon\r", "part2/!deep#/x y ", "notes/new\nline"];

#[test]
fn what_is_not_seen_of_a_larger_repository_is_new_to_no_git_command() {
    if lacks(&["git"]) {
        return;
    }
    let world = World::new();
    let outer = outer(&world);
    write(&outer.join(".gitignore"), ".env\n!mine.txt\n");
    write(&outer.join("excluded"), "*.key\n");
    git(&outer, &["config", "core.excludesFile", &text(&outer.join(".git/excluded"))]);
    fs::rename(outer.join("excluded"), outer.join(".git/excluded")).unwrap();
    git(&outer, &["commit", "-q", "-a", "-m", "rules"]);
    for name in UNTRACKED {
        write(&outer.join(name), "SECRETIVE\n");
    }
    // A link is not seen either, unless git has something under its name.
    symlink("mine.txt", outer.join("other/link")).unwrap();
    fs::remove_file(outer.join("README.md")).unwrap();
    symlink("mine.txt", outer.join("README.md")).unwrap();
    let part = outer.join("part");
    let line = "git init -q nested && echo x > nested/mine.txt && git -C nested status --porcelain && rm -rf nested && \
                echo new > new.txt && echo key > a.key && git status --porcelain && git add -A && git commit -qm all && \
                git show --stat --format= && git status --porcelain && git show HEAD:README.md && echo && ls -A .. ../other";
    let run = walled(&world, &part, line);
    assert_eq!(run.code, Some(0), "{run:?}");
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(
        lines[..3],
        ["?? mine.txt", " T README.md", "?? part/new.txt"],
        "the rules are the owner's: {run:?}"
    );
    assert!(run.out.contains("2 files changed, 2 insertions(+), 1 deletion(-)\nmine.txt\n..:"), "{run:?}");
    let seen = "..:\n.git\n.gitignore\nREADME.md\nother\npart\npart2\nsrc\n\n../other:\na.rs\n";
    assert!(run.out.ends_with(seen), "{run:?}");
    let later = walled(
        &world,
        &part,
        "git stash -u -q; git clean -fdxq ..; git checkout -q HEAD~1 -- ../part; git log --oneline",
    );
    assert!(later.out.lines().count() == 4 && !later.err.contains("no repository"), "{later:?}");
    git(&outer, &["reset", "-q", "--hard"]);
    for name in UNTRACKED.into_iter().chain(["other/.env"]) {
        assert_eq!(fs::read_to_string(outer.join(name)).unwrap(), "SECRETIVE\n", "{name}");
    }
}

#[test]
fn a_command_that_writes_the_index_of_a_larger_repository_sees_no_more_of_it() {
    if lacks(&["git"]) {
        return;
    }
    let commands = [
        "cat ../other/.env ../other/a.rs",
        &format!("{GUESS} && ! cat ../other/.env"),
        "cat ../other/.env ../other/a.rs",
        "cat b.rs",
    ];
    let (_world, _, told) = told(&commands, |world| outer(world).join("part"));
    assert!(told[0].contains("fn a()"), "control: {}", told[0]);
    assert!(told[1].starts_with("exit 0 ("), "control: the index is the command's to write: {}", told[1]);
    assert!(told.iter().all(|told| !told.contains("SECRETIVE")), "{told:?}");
    assert!(!told[2].contains("fn a()") && told[2].contains("other/.env is new to git"), "{}", told[2]);
    assert!(told[3].contains("fn b()"), "{}", told[3]);
}

#[test]
fn what_one_workspace_put_into_the_index_shows_no_more_to_another_of_the_same_repository() {
    if lacks(&["git"]) {
        return;
    }
    for first in ["part", ""] {
        let world = World::new();
        let outer = outer(&world);
        let line = if first.is_empty() { GUESS.replace("-C ..", "-C .") } else { GUESS.to_owned() };
        assert_eq!(walled(&world, &outer.join(first), &line).code, Some(0));
        let second = walled(&world, &outer.join("part2"), "cat ../other/.env ../other/a.rs");
        assert!(second.err.contains("other/.env is new to git"), "{second:?}");
        // As the notice says, the owner has the index believed as it stands.
        let record = second.err.split("removes ").nth(1).unwrap().split(',').next().unwrap();
        fs::remove_file(record).unwrap();
        git(&outer, &["update-index", "--force-remove", "other/.env"]);
        let third = walled(&world, &outer.join("part2"), "cat ../other/a.rs");
        assert_eq!((third.out.as_str(), third.err.as_str()), ("fn a() {}\n", ""));
    }
}

#[test]
fn a_file_that_was_what_git_has_is_compared_each_time() {
    if lacks(&["git"]) {
        return;
    }
    let (world, outer, part) = recorded();
    write(&outer.join("other/debug.log"), "");
    let empty = "git -C .. update-index --add --cacheinfo 100644,$(git hash-object -w --stdin < /dev/null),other/debug.log";
    assert_eq!(walled(&world, &part, empty).code, Some(0));
    let shown = walled(&world, &part, "test -e ../other/debug.log && cat ../other/a.rs");
    assert_eq!(shown.out, "fn a() {}\n", "control: whoever knows its content need not look: {shown:?}");
    write(&outer.join("other/debug.log"), "SECRETIVE\n");
    let refused = walled(&world, &part, "cat ../other/debug.log");
    assert!(refused.err.contains("other/debug.log is new to git"), "{refused:?}");
}

#[test]
fn what_stands_as_another_kind_than_the_index_says_is_not_shown() {
    if lacks(&["git"]) {
        return;
    }
    let (world, outer, part) = recorded();
    fs::remove_file(outer.join("other/.env")).unwrap();
    symlink(".env.local", outer.join("other/.env")).unwrap();
    let link = "git -C .. update-index --add --cacheinfo \
        120000,$(printf .env.local | git hash-object -w --stdin),other/.env";
    assert_eq!(walled(&world, &part, link).code, Some(0));
    assert_eq!(walled(&world, &part, "readlink ../other/.env").out, ".env.local\n", "control");
    fs::remove_file(outer.join("other/.env")).unwrap();
    write(&outer.join("other/.env"), "SECRETIVE\n");
    let read = walled(&world, &part, "cat ../other/a.rs; test ! -e ../other/.env");
    assert_eq!((read.code, read.out.as_str()), (Some(0), "fn a() {}\n"), "{read:?}");
}

#[test]
fn a_repository_that_holds_the_owners_home_is_not_shown_and_programs_run() {
    if lacks(&["git"]) {
        return;
    }
    let world = World::new();
    let user = repository(world.path("user"));
    for (name, text) in
        [("dotfiles", "SECRETIVE\n"), ("proj/a", "a\n"), (".cargo/bin/mytool", "#!/bin/sh\necho runs\n")]
    {
        write(&user.join(name), text);
    }
    commit(&user);
    let tool = user.join(".cargo/bin/mytool");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", text(tool.parent().unwrap()));
    let line = "mytool && cd && pwd && ! git -C \"$OLDPWD\" status && ! cat \"$OLDPWD/../dotfiles\"";
    let run: Run = world
        .command(&["--workspace", &text(&user.join("proj")), "sandbox", "--", "sh", "-c", line])
        .env("PATH", path)
        .output()
        .unwrap()
        .into();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.starts_with("runs\n") && !run.out.contains("SECRETIVE"), "{run:?}");
    assert!(run.err.contains("holds your home folder"), "{run:?}");
}

#[test]
fn what_the_walls_show_on_purpose_is_seen_in_a_larger_repository() {
    if lacks(&["git"]) {
        return;
    }
    let world = World::new();
    let outer = outer(&world);
    let tool = outer.join(".venv/bin/mytool");
    write(&tool, "#!/bin/sh\necho runs\n");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    // The home, which no command sees, with the folder in it that is their HOME.
    let home = outer.join("data/drawloom");
    write(&home.join("config.toml"), &format!("[exec]\ntoolchains = [\"{}\"]\n", text(&outer.join(".venv"))));
    fs::set_permissions(home.join("config.toml"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    let line = "mytool && cat ../other/a.rs && cat ../.env; cd && pwd && touch x && ls -A .. ../..";
    let run: Run = world
        .command(&["--workspace", &text(&outer.join("part")), "sandbox", "--", "sh", "-c", line])
        .env("PATH", format!("{}:/usr/bin:/bin", text(tool.parent().unwrap())))
        .env("DRAWLOOM_HOME", &home)
        .output()
        .unwrap()
        .into();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.starts_with("runs\nfn a() {}\n") && !run.out.contains("SECRETIVE"), "{run:?}");
    assert!(!run.out.contains("config.toml") && !run.out.contains("tracked"), "{run:?}");
}

#[test]
fn a_file_that_came_to_git_through_a_filter_of_the_owner_closes_nothing() {
    if lacks(&["git"]) {
        return;
    }
    let (world, outer, part) = recorded();
    write(&outer.join("other/lines.txt"), "one\r\ntwo\r\n");
    git(&outer, &["-c", "core.autocrlf=true", "add", "other/lines.txt"]);
    assert_eq!(git(&outer, &["cat-file", "-s", ":other/lines.txt"]), "8\n", "control");
    assert_eq!(walled(&world, &part, "cat ../other/lines.txt").out, "one\r\ntwo\r\n");

    // SHA-256 of the file, as Git LFS names it.
    let digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize 1\n");
    let large = outer.join("other/large.bin");
    write(&large, &pointer);
    git(&outer, &["add", "other/large.bin"]);
    write(&outer.join(".git/info/attributes"), "*.bin filter=lfs -text\n");
    // A program that is not there behind the walls.
    git(&outer, &["config", "filter.lfs.clean", "no-git-lfs clean -- %f"]);
    git(&outer, &["config", "filter.lfs.required", "true"]);
    write(&large, "x");
    assert_eq!(walled(&world, &part, "cat ../other/large.bin").out, "x");
    write(&large, "y");
    let refused = walled(&world, &part, "cat ../other/large.bin");
    assert!(refused.err.contains("other/large.bin is new to git"), "{refused:?}");
}

#[test]
fn a_file_that_git_does_not_look_at_is_not_shown_and_not_taken_for_changed() {
    if lacks(&["git"]) {
        return;
    }
    let world = World::new();
    let outer = outer(&world);
    for name in ["other/skipped", "other/assumed", "alone/skipped"] {
        write(&outer.join(name), "password = x\n");
    }
    commit(&outer);
    git(&outer, &["update-index", "--skip-worktree", "other/skipped", "alone/skipped"]);
    git(&outer, &["update-index", "--assume-unchanged", "other/assumed"]);
    for name in ["other/skipped", "other/assumed", "alone/skipped"] {
        write(&outer.join(name), "password = SECRETIVE\n");
    }
    let part = outer.join("part");
    let commits = "cat ../other/* ; git status --porcelain; git diff-index HEAD; \
        echo '// more' >> b.rs && git commit -q -a -m two && git stash";
    let run = walled(&world, &part, commits);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "fn a() {}\nNo local changes to save\n"), "{run:?}");
    assert_eq!(git(&outer, &["diff", "--name-only", "HEAD~", "HEAD"]), "part/b.rs\n");
    // Whoever has git look at it again sees no more.
    let looks = "git -C .. update-index --no-skip-worktree other/skipped && \
        git -C .. update-index --no-assume-unchanged other/assumed";
    assert_eq!(walled(&world, &part, looks).code, Some(0));
    let refused = walled(&world, &part, "cat ../other/skipped ../other/assumed");
    assert!(refused.err.contains("other/assumed is new to git"), "{refused:?}");
}

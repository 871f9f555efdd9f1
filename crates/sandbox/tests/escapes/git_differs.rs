//! Protected files that git has another text of than the folder.

use drawloom_sandbox::{Ending, Level, Limits, Notice};

use crate::commands::{outcome, works};
use crate::world::{User, World, lacks};
#[test]
fn a_checkout_over_a_protected_file_is_named() {
    if lacks(&["git"]) {
        return;
    }
    let world = World::new(User::Own);
    let commit = "git -c user.name=n -c user.email=n@example.com commit -q -m";
    let line = format!("git init -q n && cd n && echo one > CLAUDE.md && git add . && {commit} one");
    outcome(&world, &line);
    // What a command made is a person's once it lies there when the next one begins.
    std::fs::write(world.path("root/n/CLAUDE.md"), "two\n").unwrap();
    assert_eq!(outcome(&world, &format!("cd n && {commit} two -a")).notices, []);
    let checkout = outcome(&world, "cd n && git checkout -q HEAD~ 2>&1");
    assert_eq!(checkout.notices, [Notice::DiffersFromIndex(vec![world.path("root/n/CLAUDE.md")])]);
    assert_eq!(world.text("root/n/CLAUDE.md").unwrap(), "two\n");
}

/// What a person once let a command write is no word on what another one has git keep of it.
#[test]
fn a_text_that_was_accepted_before_hides_no_other_text_of_git() {
    if lacks(&["git"]) {
        return;
    }
    let world = World::new(User::Own);
    repository(&world);
    let mut walls = world.walls(Limits::default());
    walls.touches = vec![world.path("root/n/CLAUDE.md")];
    let written = world.run("echo two > n/CLAUDE.md", Level::Full, walls, &[]).unwrap();
    assert_eq!((written.ending, written.notices), (Ending::Exited(0), Vec::new()));
    let line = "cd n && git update-index --cacheinfo 100644,$(echo evil | git hash-object -w --stdin),CLAUDE.md \
        && git -c user.name=n -c user.email=n@example.com commit -q -m innocent";
    let committed = outcome(&world, line);
    assert_eq!(committed.notices, [Notice::DiffersFromIndex(vec![world.path("root/n/CLAUDE.md")])]);
}

#[test]
fn a_checkout_in_a_linked_worktree_is_named() {
    if lacks(&["git"]) {
        return;
    }
    let world = World::new(User::Own);
    let commit = "git -c user.name=n -c user.email=n@example.com commit -q -m";
    // Made by a person: the file that leads to the git folder would not stay.
    let line = format!(
        "git init -q n && cd n && echo one > CLAUDE.md && git add . && {commit} one \
            && git worktree add -q -b other ../tree && cd ../tree && echo two > CLAUDE.md && {commit} two -a"
    );
    assert!(world.run_freely(&line));
    let checkout = outcome(&world, "cd tree && git checkout -q HEAD~ 2>&1");
    assert_eq!(checkout.notices, [Notice::DiffersFromIndex(vec![world.path("root/tree/CLAUDE.md")])]);
}

#[test]
fn a_checkout_in_a_root_below_a_repository_is_named() {
    if lacks(&["git"]) {
        return;
    }
    let world = World::new(User::Own);
    let commit = "git -c user.name=n -c user.email=n@example.com commit -q -m";
    let line = format!(
        "rm -rf .git && cd .. && git init -q && cd root && echo one > src/AGENTS.md && git add src && {commit} one \
            && echo two > src/AGENTS.md && {commit} two -a"
    );
    assert!(world.run_freely(&line));
    let mut walls = world.walls(Limits::default());
    walls.git_folders = vec![world.path(".git")];
    let line = "GIT_DISCOVERY_ACROSS_FILESYSTEM=1 git checkout -q HEAD~ 2>&1";
    let checkout = world.run(line, Level::Full, walls, &[]).unwrap();
    assert_eq!(checkout.notices, [Notice::DiffersFromIndex(vec![world.path("root/src/AGENTS.md")])]);
}

/// A repository of a person with instructions and a link to them.
fn repository(world: &World) {
    // Older than the index, so that git goes by its times.
    let line = "git init -q n && cd n && echo one > CLAUDE.md && touch -d 2020-01-01 CLAUDE.md && ln -s CLAUDE.md GEMINI.md && echo a > a && git add . \
        && git -c user.name=n -c user.email=n@example.com commit -q -m one";
    assert!(world.run_freely(line));
}

#[test]
fn what_git_has_of_protected_files_is_named_whatever_the_index_says_of_them() {
    if lacks(&["git", "perl"]) {
        return;
    }
    let flagged =
        "git update-index --add --cacheinfo 100644,$H,.envrc && git update-index --skip-worktree .envrc";
    let assumed =
        "git update-index --cacheinfo 100644,$H,CLAUDE.md && git update-index --assume-unchanged CLAUDE.md";
    let as_it_stands = "git update-index --refresh -q; O=$(git ls-files -s CLAUDE.md | cut -c8-47) H=$H \
        perl -0777 -pi -e '$o = pack \"H*\", $ENV{O}; $h = pack \"H*\", $ENV{H}; s/\\Q$o/$h/' .git/index && test -z \"$(git diff-files)\"";
    let twice = "git update-index --cacheinfo 100644,$H,CLAUDE.md && git update-index --add --cacheinfo 100644,$O,CLAUDE.mx && \
        LC_ALL=C sed -i s,CLAUDE.mx,CLAUDE.md, .git/index";
    let committed = "export GIT_INDEX_FILE=/tmp/i; git read-tree HEAD && git update-index --add --cacheinfo 100644,$H,.envrc && \
        git update-ref HEAD $(git -c user.name=n -c user.email=n@example.com commit-tree -p HEAD -m two $(git write-tree))";
    let removed = format!("{committed} && rm .git/objects/$(git rev-parse HEAD~ | sed 's,..,&/,')");
    for (line, name) in [
        (flagged, ".envrc"),
        (assumed, "CLAUDE.md"),
        (as_it_stands, "CLAUDE.md"),
        (twice, "CLAUDE.md"),
        (committed, ".envrc"),
        (&removed, ".envrc"),
    ] {
        let world = World::new(User::Own);
        repository(&world);
        let line = format!(
            "cd n && H=$(echo evil | git hash-object -w --stdin) O=$(git rev-parse HEAD:CLAUDE.md) && {line}"
        );
        let outcome = outcome(&world, &line);
        assert_eq!(outcome.ending, Ending::Exited(0), "control: {line}: {outcome:?}");
        let path = world.path("root/n").join(name);
        assert_eq!(outcome.notices, [Notice::DiffersFromIndex(vec![path])], "{line}");
    }
}

#[test]
fn what_an_owner_keeps_otherwise_than_git_has_it_is_no_news() {
    if lacks(&["git"]) {
        return;
    }
    let world = World::new(User::Own);
    repository(&world);
    assert!(world.run_freely("cd n && git update-index --skip-worktree CLAUDE.md && echo mine > CLAUDE.md"));
    let line =
        "cd n && echo b > a && git add a && git -c user.name=n -c user.email=n@example.com commit -q -m two";
    works(&world, line);
    works(
        &world,
        "cd n && git branch -q other && git checkout -q other && git pack-refs --all && echo c > a && git add a",
    );
}

#[test]
fn a_protected_file_is_not_named_where_git_has_of_it_what_it_had() {
    if lacks(&["git"]) {
        return;
    }
    let conflict = "git checkout -q -b other && echo other > CLAUDE.md && git -c user.name=n -c user.email=n@example.com commit -q -a -m o \
        && git checkout -q - && echo ours > CLAUDE.md && git -c user.name=n -c user.email=n@example.com commit -q -a -m p \
        && ! git -c user.name=n -c user.email=n@example.com merge -q other 2>&1";
    for of_owner in [
        "echo mine >> CLAUDE.md",
        "echo mine >> CLAUDE.md && git add CLAUDE.md && echo more >> CLAUDE.md",
        conflict,
        "git update-index --index-version 4 && echo mine >> CLAUDE.md",
    ] {
        let world = World::new(User::Own);
        repository(&world);
        assert!(world.run_freely(&format!("cd n && {of_owner} && touch a")), "{of_owner}");
        works(
            &world,
            "cd n && stat -c %z .git/index > was && git status --short > s && ! stat -c %z .git/index | cmp -s - was",
        );
        works(&world, "cd n && echo b > b && git add b");
    }
    let world = World::new(User::Own);
    repository(&world);
    assert!(world.run_freely("cd n && echo mine >> CLAUDE.md"));
    works(&world, "cd n && echo b > a && git -c user.name=n -c user.email=n@example.com commit -q -m two a");
    // The control, and a file that the command was to write.
    let line = "cd n && H=$(echo evil | git hash-object -w --stdin) && git update-index --cacheinfo 100644,$H,CLAUDE.md";
    let path = world.path("root/n/CLAUDE.md");
    assert_eq!(outcome(&world, line).notices, [Notice::DiffersFromIndex(vec![path.clone()])]);
    let mut walls = world.walls(Limits::default());
    walls.touches = vec![path];
    let line = "cd n && echo one > CLAUDE.md && git add CLAUDE.md && echo two > CLAUDE.md";
    assert_eq!(world.run(line, Level::Full, walls, &[]).unwrap().notices, []);
}

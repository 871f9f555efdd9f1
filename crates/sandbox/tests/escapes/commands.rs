//! Everyday commands that must work behind the walls.

use std::process::Command;

use drawloom_sandbox::{Ending, Level, Limits, Network, Notice, Outcome, RootAccess, WallRoot};

use crate::left_out::is_left_out;
use crate::world::{User, World, lacks};

pub(crate) fn outcome(world: &World, line: &str) -> Outcome {
    let limits = Limits { time_ms: 60_000, free_space: 1 << 20, ..Limits::default() };
    world.run_in_walls(line, Level::Full, limits, &[]).unwrap()
}

pub(crate) fn works(world: &World, line: &str) -> String {
    let outcome = outcome(world, line);
    assert_eq!(
        outcome.ending,
        Ending::Exited(0),
        "{line}: {}{}",
        outcome.standard.text(),
        outcome.error.text()
    );
    assert_eq!(outcome.notices, [], "{line}");
    outcome.standard.text()
}

#[test]
fn x6_a_line_of_a_shell_runs() {
    for user in User::all() {
        let world = World::new(user);
        assert_eq!(works(&world, "echo a; ls src | wc -l"), "a\n1\n");
        assert_eq!(
            works(&world, "cd src; ls *.txt; echo $HOME"),
            format!("main.txt\n{}\n", world.path("home/sandbox/this").display())
        );
        assert_eq!(works(&world, "cat src/main.txt"), "text");
    }
}

#[test]
fn x7_the_environment_is_what_was_given() {
    let world = World::new(User::Own);
    let text = works(&world, "env");
    assert!(!text.contains("OWNERS_KEY") && !text.contains("s3cret"), "{text}");
}

#[test]
fn git_makes_a_folder_and_commits() {
    if lacks(&["git"]) {
        return;
    }
    for user in User::all() {
        let world = World::new(user);
        // No upkeep in the background, of which a slow machine would see the end.
        let quiet =
            "git config --global maintenance.autoDetach false; git config --global gc.autoDetach false";
        works(&world, quiet);
        let line = "git init -q n && cd n && echo a > a && git add a \
            && git -c user.name=n -c user.email=n@example.com commit -q -m one && git log --format=%s";
        assert_eq!(works(&world, line), "one\n");
        // What it made the first time is there the second time.
        let line = "cd n && echo b > b && git add b && git -c user.name=n -c user.email=n@example.com commit -q -m two \
            && git checkout -q -b branch && git log --format=%s && git gc -q && git status --short";
        assert_eq!(works(&world, line), "two\none\n");
        let configured = outcome(&world, "cd n && git config core.fsmonitor x");
        let is_config = |notice: &Notice| matches!(notice, Notice::Quarantined { path, .. } if path.ends_with("n/.git/config"));
        assert!(configured.notices.iter().any(is_config), "{configured:?}");
    }
}

#[test]
fn git_makes_linked_working_trees_and_submodules_that_stay() {
    if lacks(&["git"]) {
        return;
    }
    for user in User::all() {
        let world = World::new(user);
        let commit = "git -c user.name=n -c user.email=n@example.com commit -q -m one";
        let line = format!(
            "git init -q n && cd n && echo a > a && git add . && {commit} && git worktree add -q ../tree 2>&1"
        );
        works(&world, &line);
        works(&world, "cd tree && echo b > a && git add a && git status --short");
        // In a repository that was there.
        works(&world, "cd n && git worktree add -q ../another 2>&1 && cd ../another && git log --format=%s");
        // As git makes one, without writing `.gitmodules` and the configuration around it.
        works(
            &world,
            "cd n && mkdir .git/modules && git clone -q --separate-git-dir .git/modules/sub . sub && git --git-dir .git/modules/sub config core.worktree ../../../sub",
        );
        works(&world, "cd n/sub && git log --format=%s");
    }
}

#[test]
fn a_repository_with_submodules_keeps_its_history_whichever_of_its_configurations_runs_something() {
    if lacks(&["git"]) {
        return;
    }
    for (more, gone) in [
        ("", None),
        ("git -C c config core.fsmonitor x", Some("c/.git/config")),
        ("git -C c/lib config core.fsmonitor x", Some("c/.git/modules/lib/config")),
        ("echo x > c/.git/modules/lib/hooks/pre-commit", Some("c/.git/modules/lib/hooks")),
    ] {
        let world = World::new(User::Own);
        let line = format!(
            "export GIT_CONFIG_COUNT=3 GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always \
             GIT_CONFIG_KEY_1=user.name GIT_CONFIG_VALUE_1=n GIT_CONFIG_KEY_2=user.email GIT_CONFIG_VALUE_2=n@example.com; \
             set -e; git init -q lib; git -C lib commit -q --allow-empty -m one; git init -q top; \
             git -C top submodule --quiet add ../lib lib; git -C top commit -q -m two; \
             git clone -q --recurse-submodules top c; {more}"
        );
        let outcome = world.run_in_walls(&line, Level::Full, Limits::default(), &[]).unwrap();
        assert_eq!(outcome.ending, Ending::Exited(0), "{}", outcome.error.text());
        let taken: Vec<_> = outcome
            .notices
            .iter()
            .map(|notice| match notice {
                Notice::Quarantined { path, .. } => path.strip_prefix(world.path("root")).unwrap().to_owned(),
                other => panic!("{other:?}"),
            })
            .collect();
        let mut expected: Vec<_> = ["c/.gitmodules", "top/.gitmodules"]
            .into_iter()
            .chain(gone)
            .map(std::path::PathBuf::from)
            .collect();
        expected.sort();
        assert_eq!(taken, expected, "{more}");
    }
}

#[test]
fn a_repository_that_a_command_made_is_removed_moved_and_configured_by_the_next_one() {
    if lacks(&["git"]) {
        return;
    }
    for user in User::all() {
        let world = World::new(user);
        let outcome = |line: &str| {
            let mut walls = world.walls(Limits { time_ms: 60_000, free_space: 1 << 20, ..Limits::default() });
            walls.tracked_records = Some(world.path("home/sandbox/tracked"));
            world.run(line, Level::Full, walls, &[]).unwrap()
        };
        let works = |line: &str| {
            let outcome = outcome(line);
            assert_eq!(outcome.ending, Ending::Exited(0), "{line}: {}", outcome.error.text());
            assert_eq!(outcome.notices, [], "{line}");
        };
        works(
            "mkdir target; for name in one target/two three four; do git init -q $name; echo a > $name/a; done",
        );
        works("rm -r one target/two && mv three moved && git -C four config user.name n");
        works("rm -r moved && test ! -e moved");
        // Looked at again each time, and not lost with what runs in it.
        let config = world.text("root/four/.git/config");
        let hooked = outcome("cd four && echo x > .git/hooks/pre-commit; git config pull.rebase true");
        assert_eq!(hooked.notices.len(), 1, "{hooked:?}");
        assert!(world.path("root/four/.git/HEAD").exists() && !world.path("root/four/.git/hooks").exists());
        assert_ne!(world.text("root/four/.git/config"), config);
        let configured = outcome("cd four && git config core.fsmonitor x");
        assert!(
            matches!(&configured.notices[..], [Notice::Quarantined { path, .. }] if path.ends_with("four/.git/config"))
        );
        assert!(world.path("root/four/.git/HEAD").exists());
        // What is its owner's stays so, also where they add to one that a command made.
        works("git init -q five");
        std::fs::write(world.path("root/five/.git/hooks/pre-push"), "mine").unwrap();
        assert_ne!(outcome("rm -rf five/.git/hooks").ending, Ending::Exited(0));
        assert_eq!(world.text("root/five/.git/hooks/pre-push").as_deref(), Some("mine"));
        assert_ne!(outcome("git config core.fsmonitor x").ending, Ending::Exited(0));
    }
}

#[test]
fn python_makes_an_environment() {
    let has_venv = Command::new("/usr/bin/python3")
        .args(["-c", "import venv, ensurepip"])
        .status()
        .is_ok_and(|it| it.success());
    if !has_venv && is_left_out(&["python3-venv"]) {
        return;
    }
    works(
        &World::new(User::Own),
        "/usr/bin/python3 -m venv --without-pip env && env/bin/python -c 'print(1)'",
    );
}

#[test]
fn make_and_a_compiler_run() {
    if lacks(&["make", "cc"]) {
        return;
    }
    let line = "printf 'int main(void){return 0;}' > m.c; printf 'm: m.c\\n\\tcc -o m m.c\\n' > Makefile; make -s && ./m";
    works(&World::new(User::Own), line);
}

#[test]
fn a_server_on_the_own_loopback_answers() {
    if lacks(&["python3"]) {
        return;
    }
    let script = "import socket\ns=socket.socket(); s.bind(('127.0.0.1',0)); s.listen()\n\
        c=socket.create_connection(s.getsockname()); s.accept()[0].send(b'x'); print(c.recv(1))";
    assert_eq!(works(&World::new(User::Own), &format!("/usr/bin/python3 -c \"{script}\"")), "b'x'\n");
}

#[test]
fn what_packages_bring_is_ordinary() {
    let world = World::new(User::Own);
    works(
        &world,
        "echo x >> node_modules/package/AGENTS.md; mkdir -p node_modules/p/.idea .venv/lib target/.vscode",
    );
}

#[test]
fn a_root_that_is_read_is_not_written_and_one_beside_it_is() {
    let world = World::new(User::Own);
    let mut walls = world.walls(Limits::default());
    walls.roots.push(WallRoot { path: world.path("outside"), access: RootAccess::ReadOnly });
    assert_eq!(walls.network, Network::Off);
    let line = "cat \"$OUTSIDE/file\" && ! touch \"$OUTSIDE/new\" && touch new";
    assert_eq!(world.run(line, Level::Full, walls, &[]).unwrap().ending, Ending::Exited(0));
}

#[test]
fn a_workspace_that_is_mounted_read_only_is_read_and_that_is_said() {
    if User::all().len() == 1 {
        return;
    }
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        let outcome =
            world.run_mounted_read_only("cat src/main.txt && ! touch new 2> /dev/null", level).unwrap();
        assert_eq!(outcome.ending, Ending::Exited(0), "{level}: {outcome:?}");
        assert!(format!("{:?}", outcome.notices).contains("is mounted read-only"), "{level}: {outcome:?}");
    }
}

#[test]
fn what_a_person_allowed_is_written_by_that_command() {
    let world = World::new(User::Own);
    for name in ["root/AGENTS.md", "root/skills/one"] {
        let mut walls = world.walls(Limits::default());
        walls.touches = vec![world.path(name)];
        let line = "echo x >> AGENTS.md; echo x > skills/one/new; echo x > skills/new";
        let outcome = world.run(line, Level::Full, walls, &[]).unwrap();
        assert_eq!(outcome.notices, [], "{name}");
    }
    assert_eq!(world.text("root/AGENTS.md").unwrap(), "oursx\n");
    assert!(world.path("root/skills/one/new").exists() && !world.path("root/skills/new").exists());
    let mut walls = world.walls(Limits::default());
    // A folder that holds protected ones would open them with it.
    for name in ["root/.git/hooks", "root", "root/src"] {
        walls.touches = vec![world.path(name)];
        assert!(world.run("true", Level::Full, walls.clone(), &[]).is_err(), "{name}");
    }
}

#[test]
fn a_link_on_the_way_to_instructions_leads_where_it_led() {
    let links = [("v1", "cur"), ("cur", "mid"), ("mid/guide.md", "SOUL.md")];
    for level in [Level::Full, Level::Partial] {
        for line in
            ["ln -sfn v2 cur", "rm cur", "mv cur other; ln -s v2 cur", "ln -sfn other mid; ln -s v2 other"]
        {
            let world = World::new(User::Own);
            let path = |name: &str| world.path("root").join(name);
            for (folder, text) in [("v1", "good"), ("v2", "evil")] {
                std::fs::create_dir(path(folder)).unwrap();
                std::fs::write(path(folder).join("guide.md"), text).unwrap();
            }
            for (target, link) in links {
                std::os::unix::fs::symlink(target, path(link)).unwrap();
            }
            let outcome = world.does(line, level);
            assert_eq!(world.text("root/SOUL.md").as_deref(), Some("good"), "{level}: {line}: {outcome:?}");
            for (target, link) in links {
                let leads = std::fs::read_link(path(link)).unwrap();
                assert_eq!(leads.to_str(), Some(target), "{level}: {line}: {outcome:?}");
            }
        }
    }
}

#[test]
fn what_a_person_allowed_is_made_by_that_command_and_is_no_link() {
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        let mut walls = world.walls(Limits::default());
        let names = ["root/CLAUDE.md", "root/new/AGENTS.md", "root/commands"];
        walls.touches = names.map(|name| world.path(name)).to_vec();
        let line = "echo x > CLAUDE.md; mkdir new commands; echo x > new/AGENTS.md; echo x > commands/one.md; \
                    echo x > SOUL.md";
        let outcome = world.run(line, level, walls.clone(), &[]).unwrap();
        assert!(
            matches!(outcome.notices.as_slice(), [Notice::Quarantined { path, .. }] if path.ends_with("SOUL.md")),
            "{level}: {outcome:?}"
        );
        for name in ["root/CLAUDE.md", "root/new/AGENTS.md", "root/commands/one.md"] {
            assert_eq!(world.text(name).as_deref(), Some("x\n"), "{level}: {name}");
        }
        walls.touches = vec![world.path("root/USER.md")];
        let outcome = world.run("ln -s src/main.txt USER.md", level, walls.clone(), &[]).unwrap();
        assert!(format!("{:?}", outcome.notices).contains("USER.md"), "{level}: {outcome:?}");
        assert!(!world.path("root/USER.md").is_symlink());
        // Nor does one come in the place of a file that it may write, nor a pipe.
        for line in [
            "rm AGENTS.md; ln -s ../outside/file AGENTS.md",
            "rm AGENTS.md; ln -s nowhere AGENTS.md",
            "rm AGENTS.md; ln -s src/main.txt AGENTS.md",
            "rm AGENTS.md; ln -s .git/config AGENTS.md",
            "rm AGENTS.md; mkfifo AGENTS.md",
        ] {
            let world = World::new(User::Own);
            let mut walls = world.walls(Limits::default());
            walls.touches = vec![world.path("root/AGENTS.md")];
            let outcome = world.run(line, level, walls, &[]).unwrap();
            let told = format!("{:?}", outcome.notices);
            assert!(told.contains("root/AGENTS.md"), "{level}: {line}: {told}");
            assert!(world.path("root/AGENTS.md").symlink_metadata().is_err(), "{level}: {line}: {told}");
        }
        // What no command may write is moved out of what one was let to write, and such a folder is opened to none.
        walls.touches = vec![world.path("root/hooks"), world.path("root/.idea")];
        let line = "mkdir -p hooks/p/.git/hooks hooks/.drawloom .idea/q/objects .idea/q/refs; echo x > hooks/p/.git/hooks/x; \
                    echo ref > .idea/q/HEAD; mkfifo hooks/pipe; echo x > hooks/plain";
        let outcome = world.run(line, level, walls.clone(), &[]).unwrap();
        let told = format!("{:?}", outcome.notices);
        for name in ["hooks/p/.git", "hooks/.drawloom", ".idea/q", "hooks/pipe"] {
            assert!(
                told.contains(name) && world.path(&format!("root/{name}")).symlink_metadata().is_err(),
                "{level}: {name}: {told}"
            );
        }
        assert_eq!(world.text("root/hooks/plain").as_deref(), Some("x\n"));
        std::fs::create_dir_all(world.path("root/hooks/own/.git/hooks")).unwrap();
        assert!(
            world
                .run("true", level, walls.clone(), &[])
                .unwrap_err()
                .contains("holds what no command may write")
        );
        // Behind a mount, below what is found by another name, and through a link nothing is made.
        std::os::unix::fs::symlink("nowhere", world.path("root/IDENTITY.md")).unwrap();
        for name in ["root/skills/new", "root/.idea/new", "root/IDENTITY.md", "root/.git/hooks/x"] {
            walls.touches = vec![world.path(name)];
            assert!(world.run("true", level, walls.clone(), &[]).is_err(), "{level}: {name}");
        }
    }
}

#[test]
fn x2_a_working_directory_outside_of_the_roots_is_refused() {
    let world = World::new(User::Own);
    let mut walls = world.walls(Limits::default());
    walls.roots[0].path = world.path("root/src");
    assert!(world.run("true", Level::Full, walls, &[]).unwrap_err().contains("outside of the roots"));
}

#[test]
fn a_home_in_a_root_is_not_seen_and_not_moved() {
    let world = World::new(User::Own);
    let mut walls = world.walls(Limits::default());
    walls.roots[0].path = world.path("");
    walls.private = vec![world.path("home")];
    walls.git_folders = Vec::new();
    let line =
        "cd ..; ! test -e home/loom.db && ! touch home/x && ! mv home h2 && touch \"$HOME/mine\" && ls home";
    let outcome = world.run(line, Level::Full, walls, &[]).unwrap();
    assert_eq!((outcome.ending, outcome.standard.text()), (Ending::Exited(0), "sandbox\n".to_owned()));
    assert!(world.path("home/sandbox/this/mine").exists() && !world.path("home/x").exists());
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let world = World::new(User::Own);
    for level in [Level::Full, Level::Partial, Level::None] {
        let run = |program: &str| world.run_program(&[program], level);
        assert!(run("/no/such/program").unwrap_err().contains("/no/such/program cannot be run"), "{level}");
        assert_eq!(run("true").unwrap().ending, Ending::Exited(0), "{level}");
    }
}

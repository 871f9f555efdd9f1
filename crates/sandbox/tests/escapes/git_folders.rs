//! Git folders: what a command leaves in one, or makes of a folder, that the owner's next git would run or write by.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use drawloom_sandbox::{Ending, Level, Notice};

use crate::all_are_held;
use crate::rows::{Row, is_there, row};
use crate::world::{CONFIG, User, World, git_folder, limits};

pub(crate) const GIT_FOLDERS: &[Row] = &[
    row(
        "git folder below a folder of packages",
        "mkdir -p target/x; cp -r .git target/t; mv target/t target/x/.git; echo '[core]fsmonitor=x' > target/x/.git/config",
    )
    .makes("root/target/x/.git/config"),
    row("file in place of a git folder there", "mkdir -p vendor/l && echo 'gitdir: ../../evil' > vendor/l/.git")
        .makes("root/vendor/l/.git"),
    row(
        "bare git folder there",
        "mkdir -p target/n/objects target/n/refs && echo x > target/n/HEAD && echo '[core]fsmonitor=x' > target/n/config",
    )
    .makes("root/target/n/config"),
    row("hook of a package's git folder", "echo x > node_modules/package/.git/hooks/post-checkout")
        .makes("root/node_modules/package/.git/hooks/post-checkout"),
    row(
        "files that may be run in place of folders",
        "mkdir n; echo 'ref: refs/heads/x' > n/HEAD; touch n/objects n/refs; chmod 755 n/objects n/refs; \
            echo '[core]pager=x' > n/config",
    )
    .makes("root/n/config"),
    row("hook of a push", "mkdir -p .git/elsewhere/hooks; echo x > .git/elsewhere/hooks/post-receive")
        .makes("root/.git/elsewhere/hooks/post-receive")
        .names("root/.git/elsewhere/hooks"),
    row("hook behind a link", "echo x > scripts/commit").changes("root/scripts/commit", "ours"),
    row("file behind a link in a protected folder", "echo x > scripts/tasks/x")
        .makes("root/scripts/tasks/x"),
    row("file behind a link behind another one", "echo x > scripts/far")
        .changes("root/scripts/far", "ours"),
    row("file behind a link in a folder of hooks", "echo x > scripts/push")
        .changes("root/scripts/push", "ours"),
    row("file that a link waits for", "echo x > scripts/local").makes("root/scripts/local"),
    row("link in place of a message", r#"ln -s "$OUTSIDE/file" .git/COMMIT_EDITMSG"#)
        .makes("root/.git/COMMIT_EDITMSG"),
    row("link in place of a log", r#"mkdir .git/logs; ln -s "$OUTSIDE/file" .git/logs/HEAD"#)
        .makes("root/.git/logs/HEAD"),
    row("link in place of the index", r#"ln -s "$OUTSIDE/file" .git/index"#)
        .makes("root/.git/index"),
    row("link in place of a folder of references", r#"ln -s "$OUTSIDE" .git/refs/tags"#)
        .makes("root/.git/refs/tags"),
    row("link in place of a folder of objects", r#"ln -s "$OUTSIDE" .git/objects/pack"#)
        .makes("root/.git/objects/pack"),
    row("link out of references as the head", r#"ln -sf refs/../hooks/x .git/HEAD"#)
        .seen_by(|w| w.path("root/.git/HEAD").is_symlink())
        .names("root/.git/HEAD"),
    row("link in the git folder of a submodule", r#"ln -s "$OUTSIDE/file" .git/modules/libs/sub/ORIG_HEAD"#)
        .makes("root/.git/modules/libs/sub/ORIG_HEAD"),
    row("link in the git folder elsewhere", r#"ln -s "$OUTSIDE/file" "$OTHER_GIT/FETCH_HEAD""#)
        .makes("other.git/FETCH_HEAD"),
    row(
        "link in a new bare git folder",
        r#"mkdir -p n/objects n/refs; echo x > n/HEAD; ln -s "$OUTSIDE/file" n/FETCH_HEAD"#,
    )
    .makes("root/n/FETCH_HEAD"),
    row("pipe in place of the index", "mkfifo .git/index").makes("root/.git/index"),
    row("configuration of a submodule called logs", "echo '[core]fsmonitor=x' >> .git/modules/logs/config")
        .changes("root/.git/modules/logs/config", CONFIG),
    row("submodule called objects", "mkdir -p .git/modules/objects; cp -r .git/modules/logs .git/modules/objects/e; \
        echo '[core]fsmonitor=x' > .git/modules/objects/e/config")
        .makes("root/.git/modules/objects/e/config"),
    row(
        "rebase that runs a program",
        r"mkdir .git/rebase-merge; printf 'pick 1 one\n x\ttouch there\n' > .git/rebase-merge/git-rebase-todo",
    )
    .makes("root/.git/rebase-merge/git-rebase-todo"),
    row("rebase with a program as its strategy", "mkdir .git/rebase-merge; echo x/../evil.sh > .git/rebase-merge/strategy")
        .makes("root/.git/rebase-merge/strategy"),
    row(
        "cherry-pick with a program as its strategy",
        r"mkdir .git/sequencer; printf '[options]\n\tstrategy = x/../evil.sh\n' > .git/sequencer/opts",
    )
    .makes("root/.git/sequencer/opts"),
    row(
        "patches with an option that writes anywhere",
        r#"mkdir .git/rebase-apply; echo "'--build-fake-ancestor=../x'" > .git/rebase-apply/apply-opt"#,
    )
    .makes("root/.git/rebase-apply/apply-opt"),
    row(
        "rebase of a linked working tree",
        "mkdir .git/worktrees/linked/rebase-merge; echo 'exec x' > .git/worktrees/linked/rebase-merge/git-rebase-todo",
    )
    .makes("root/.git/worktrees/linked/rebase-merge/git-rebase-todo"),
    row(
        "repository that fetches what git misses",
        "cp -r .git n; rm -rf n/modules n/worktrees n/info; printf '[remote \"o\"]\\nurl=http://127.0.0.1:1/x\\npromisor=true\\n' > n/config; \
            mkdir s; mv n s/.git",
    )
    .makes("root/s/.git/config"),
    row(
        "linked working tree with a configuration",
        r#"mkdir wt .git/worktrees/n; echo "gitdir: $ROOT/.git/worktrees/n" > wt/.git; echo "$ROOT/wt/.git" > .git/worktrees/n/gitdir; \
            echo ../.. > .git/worktrees/n/commondir; echo '[core]fsmonitor=x' > .git/worktrees/n/config.worktree"#,
    )
    .makes("root/.git/worktrees/n/config.worktree"),
    row(
        "linked working tree of another folder",
        r#"mkdir -p wt evil/worktrees/n .git/worktrees/n; echo "gitdir: $ROOT/evil/worktrees/n" > wt/.git; echo ../.. > evil/worktrees/n/commondir; \
            echo "$ROOT/wt/.git" > evil/worktrees/n/gitdir"#,
    )
    .makes("root/wt/.git"),
    row(
        "common folder of a linked working tree elsewhere",
        r#"mkdir wt .git/worktrees/n; echo "gitdir: $ROOT/.git/worktrees/n" > wt/.git; echo "$ROOT/wt/.git" > .git/worktrees/n/gitdir; \
            echo ../../../evil > .git/worktrees/n/commondir"#,
    )
    .makes("root/.git/worktrees/n/commondir"),
    row(
        "submodule that runs something",
        r#"cp -r .git/modules/logs .git/modules/n; mkdir n; echo "gitdir: $ROOT/.git/modules/n" > n/.git; \
            printf '[core]\n\tworktree = ../../../n\n\tfsmonitor = x\n' > .git/modules/n/config"#,
    )
    .makes("root/.git/modules/n/config"),
    row("another place of a linked working tree", "echo /nowhere/.git > .git/worktrees/linked/gitdir")
        .seen_by(|w| !w.text("root/.git/worktrees/linked/gitdir").is_some_and(|text| text.ends_with("root/linked/.git\n")))
        .names("root/.git/worktrees/linked/gitdir"),
];

#[test]
fn what_the_owners_git_runs_or_writes_by_is_not_left_in_git_folders() {
    all_are_held("git folders", GIT_FOLDERS, Level::Full);
}

#[test]
fn what_the_owners_git_runs_or_writes_by_is_not_left_at_partial() {
    all_are_held("git folders", GIT_FOLDERS, Level::Partial);
}

#[test]
fn links_of_a_git_folder_that_were_there_stay() {
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        let (head, shared) = (world.path("root/.git/HEAD"), world.path("root/.git/objects/pack"));
        fs::remove_file(&head).unwrap();
        symlink("refs/heads/main", &head).unwrap();
        symlink(world.path("outside/folder"), &shared).unwrap();
        // As git does it where it makes links.
        assert_eq!(world.does("ln -sfn refs/heads/other .git/HEAD", level).notices, [], "{level}");
        assert_eq!(fs::read_link(&head).unwrap(), Path::new("refs/heads/other"));
        let outcome = world.does(r#"ln -sfn "$BASE/home" .git/objects/pack"#, level);
        assert!(outcome.notices.contains(&Notice::Restored(shared.clone())), "{level}: {outcome:?}");
        assert_eq!(fs::read_link(&shared).unwrap(), world.path("outside/folder"), "{level}");
    }
}

#[test]
fn a_git_folder_without_its_head_stays_protected() {
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        git_folder(&world.path("root/mirror.git"));
        for folder in [".git/modules/libs/sub", "mirror.git"] {
            world.does(&format!("rm {folder}/HEAD"), level);
            world.does(
                &format!("echo '[core]fsmonitor=x' >> {folder}/config; echo x > {folder}/hooks/update"),
                level,
            );
            let config = format!("root/{folder}/config");
            assert!(!is_there(&world, &format!("root/{folder}/hooks/update")), "{level}: {folder}");
            assert_eq!(world.text(&config).as_deref(), Some(CONFIG), "{level}: {folder}");
            if folder != "mirror.git" {
                let outcome = world.does(&format!("echo 'ref: refs/heads/main' > {folder}/HEAD"), level);
                assert_eq!(outcome.notices, [], "{level}: {folder}");
            }
        }
    }
}

#[test]
fn what_was_there_of_a_folder_that_becomes_one_of_git_is_new() {
    for level in [Level::Full, Level::Partial] {
        for (made, missing) in [("HEAD", "HEAD"), ("objects/x", "objects"), ("refs/x", "refs")] {
            let world = World::new(User::Own);
            for name in ["d/HEAD", "d/objects/x", "d/refs/x", "d/config", "d/hooks/update"] {
                fs::create_dir_all(world.path("root").join(name).parent().unwrap()).unwrap();
                fs::write(world.path("root").join(name), "[alias]\n\tst = !x\n").unwrap();
            }
            let missing = world.path("root/d").join(missing);
            if missing.is_dir() { fs::remove_dir_all(missing) } else { fs::remove_file(missing) }.unwrap();
            let line = format!("mkdir -p $(dirname d/{made}); echo 'ref: refs/heads/m' > d/{made}");
            let outcome = world.does(&line, level);
            assert!(!is_there(&world, "root/d/config"), "{level} {made}: {outcome:?}");
            assert!(!is_there(&world, "root/d/hooks"), "{level} {made}: {outcome:?}");
            assert!(is_there(&world, &format!("root/d/{made}")), "{level} {made}: {outcome:?}");
        }
    }
}

#[test]
fn a_linked_working_tree_that_is_named_from_the_git_folder_can_be_worked_in() {
    let world = World::new(User::Own);
    fs::write(world.path("root/.git/worktrees/linked/gitdir"), "../../../linked/.git\n").unwrap();
    let line = "cd .git/worktrees/linked && echo x > index && echo 'ref: refs/heads/y' > HEAD && ! echo x > commondir";
    let outcome = world.does(line, Level::Full);
    assert_eq!(outcome.ending, Ending::Exited(0), "{outcome:?}");
    assert_eq!(outcome.notices, []);
}

#[test]
fn a_link_that_led_to_nothing_stays_and_what_comes_there_is_taken() {
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        symlink("local.envrc", world.path("root/.envrc")).unwrap();
        let outcome = world.does("echo x > local.envrc", level);
        assert!(!is_there(&world, "root/local.envrc"), "{level}: {outcome:?}");
        assert_eq!(fs::read_link(world.path("root/.envrc")).unwrap(), Path::new("local.envrc"), "{level}");
    }
}

#[test]
fn more_git_folders_than_can_be_protected_are_looked_at_and_no_command_begins() {
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        let mut few = limits();
        few.protected = 1_000;
        let line = "seq -f n%g 400 | while read n; do mkdir -p $n/.git; cp -r node_modules/package/.git/. $n/.git; \
            : > $n/.git/config; done; mkdir e; cp -r .git/modules/logs e/.git";
        let outcome = world.run_in_walls(line, level, few, &[]).unwrap();
        assert_eq!(outcome.ending, Ending::Exited(0), "{level}: {outcome:?}");
        assert!(
            !is_there(&world, "root/e/.git/config") && is_there(&world, "root/n400/.git"),
            "{level}: {outcome:?}"
        );
        assert!(
            outcome.notices.contains(&Notice::TooManyProtected(world.path("root"))),
            "{level}: {outcome:?}"
        );
        let refused = world.run_in_walls("touch begun", level, few, &[]).unwrap_err();
        assert!(refused.contains("more protected files and git folders"), "{level}: {refused}");
        assert!(!is_there(&world, "root/begun"), "{level}");
    }
}

#[test]
fn no_command_begins_where_not_all_can_be_looked_at_and_all_is_looked_at_after_one() {
    for level in [Level::Full, Level::Partial, Level::None] {
        let world = World::new(User::Own);
        let mut few = limits();
        few.entries = 1_000;
        let line =
            "mkdir -p z/y/n/.git/hooks a; echo x > z/y/n/.git/hooks/pre-commit; cd a; seq 1000 | xargs touch";
        let outcome = world.run_in_walls(line, level, few, &[]).unwrap();
        assert_eq!(outcome.ending, Ending::Exited(0), "{level}: {outcome:?}");
        assert!(!is_there(&world, "root/z/y/n/.git/hooks"), "{level}: {outcome:?}");
        let refused = world.run_in_walls("touch begun", level, few, &[]).unwrap_err();
        assert!(refused.contains("more than 1000 files and folders"), "{level}: {refused}");
        assert!(!is_there(&world, "root/begun"), "{level}");
    }
}

/// More than were looked at once, with what lies behind them.
#[test]
fn many_files_hide_no_git_folder() {
    let world = World::new(User::Own);
    git_folder(&world.path("root/z/y/n/.git"));
    for folder in 0..201 {
        let folder = world.path(&format!("root/a/{folder}"));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..1_000 {
            fs::write(folder.join(file.to_string()), "").unwrap();
        }
    }
    world.does("echo '[core]fsmonitor=x' >> z/y/n/.git/config", Level::Full);
    assert_eq!(world.text("root/z/y/n/.git/config").as_deref(), Some(CONFIG));
}

#[test]
fn a_path_too_long_for_the_kernel_hides_no_git_folder() {
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        // As many levels as git can name from the workspace, and not from the root of the machine.
        let line = "n=$(printf '%0200d' 0); i=0; while test $i -lt 20; do mkdir -p $n && cd $n || exit 1; i=$((i+1)); done; \
            mkdir -p .git/hooks && echo x > .git/hooks/pre-commit && echo made";
        let outcome = world.does(line, level);
        assert_eq!(outcome.standard.text(), "made\n", "{level}: {outcome:?}");
        let mut deep = world.path("root");
        for _ in 0..17 {
            deep.push("0".repeat(200));
        }
        assert!(deep.is_dir(), "{level}");
        assert!(
            fs::read_dir(deep.join("0".repeat(200))).map_or(true, |below| below.count() == 0),
            "{level}: {outcome:?}"
        );
        assert!(format!("{outcome:?}").contains("Quarantined"), "{level}: {outcome:?}");
    }
}

#[test]
fn what_an_owner_left_of_a_rebase_goes_on() {
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        let todo = world.path("root/.git/rebase-merge/git-rebase-todo");
        fs::create_dir_all(todo.parent().unwrap()).unwrap();
        fs::write(&todo, "pick 1 one\nexec make\npick 2 two\nexec make\n").unwrap();
        let line = "sed -i 1,2d .git/rebase-merge/git-rebase-todo";
        assert_eq!(world.does(line, level).notices, [], "{level}");
        assert_eq!(fs::read_to_string(&todo).unwrap(), "pick 2 two\nexec make\n");
        let outcome = world.does("echo exec evil >> .git/rebase-merge/git-rebase-todo", level);
        assert!(format!("{outcome:?}").contains("Quarantined"), "{level}: {outcome:?}");
        assert!(!todo.exists(), "{level}");
        let strategy = world.path("root/.git/rebase-merge/strategy");
        assert_eq!(world.does("echo ort > .git/rebase-merge/strategy", level).notices, [], "{level}");
        fs::write(&strategy, "mine\n").unwrap();
        assert_eq!(world.does("true", level).notices, [], "{level}");
        assert!(strategy.exists(), "{level}");
    }
}

#[test]
fn names_that_are_no_text_are_protected_as_others_are() {
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        let folder = world.path("root").join(OsStr::from_bytes(b"o\xff"));
        fs::create_dir_all(folder.join(".vscode")).unwrap();
        fs::write(folder.join(".vscode/tasks.json"), "ours").unwrap();
        let line = r"d=$(printf 'o\377'); echo x > $d/.vscode/tasks.json; echo x > $d/.envrc; echo done";
        let outcome = world.does(line, level);
        assert_eq!(outcome.standard.text(), "done\n", "{level}: {outcome:?}");
        assert_eq!(fs::read_to_string(folder.join(".vscode/tasks.json")).unwrap(), "ours", "{level}");
        assert!(!folder.join(".envrc").exists(), "{level}");
    }
}

#[test]
fn what_a_new_link_of_a_protected_name_leads_to_stays() {
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        fs::write(world.path("root/src/config"), "theirs").unwrap();
        fs::write(world.path("root/src/config.toml"), "theirs").unwrap();
        let line =
            "ln -s src .idea; mkdir -p new/below; ln -s ../src new/.git; ln -s ../../src new/below/.cargo";
        let outcome = world.does(line, level);
        for name in ["main.txt", "config", "config.toml"] {
            assert!(is_there(&world, &format!("root/src/{name}")), "{level}: {name}: {outcome:?}");
        }
        for name in [".idea", "new/.git", "new/below/.cargo"] {
            assert!(!is_there(&world, &format!("root/{name}")), "{level}: {name}: {outcome:?}");
        }
    }
}

#[test]
fn what_is_protected_by_its_own_name_and_by_a_new_link_is_taken() {
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        fs::remove_file(world.path("root/elsewhere/shared")).unwrap();
        // Of many names, which are found in any order.
        let line = "for n in .idea .claude .cursor .codex .husky .agents .npmrc .mcp.json; do ln -s elsewhere/shared $n; done; \
            echo '[core]fsmonitor=x' > elsewhere/shared; mkdir -p made; echo x > made/.envrc; ln -s made/.envrc .envrc";
        let outcome = world.does(line, level);
        for name in ["elsewhere/shared", "made/.envrc", ".envrc", ".idea", ".mcp.json"] {
            assert!(!is_there(&world, &format!("root/{name}")), "{level}: {name}: {outcome:?}");
        }
    }
}

/// The history of a repository that a command made stays, whatever its configuration says.
#[test]
fn of_a_new_repository_the_configuration_alone_is_taken_where_it_alone_runs_something() {
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        let line = |name: &str, setting: &str| {
            format!(
                "mkdir -p {name}/.git/hooks {name}/.git/objects {name}/.git/refs {name}/.git/info; echo x > {name}/.git/HEAD; \
                    echo '# x' > {name}/.git/info/exclude; printf '{setting}' > {name}/.git/config; "
            )
        };
        let all = [
            line(
                "plain",
                "[commit]\\n gpgsign = false\\n[pull]\\n rebase = true\\n[remote \"o\"]\\n mirror = true\\n",
            ),
            line("running", "[core]\\n fsmonitor = x\\n"),
            line("hooked", "[core]\\n fsmonitor = x\\n"),
            "echo x > hooked/.git/hooks/pre-commit".to_owned(),
        ];
        let outcome = world.does(&all.concat(), level);
        let gone = ["running/.git/config", "hooked/.git/config", "hooked/.git/hooks"];
        for name in gone {
            assert!(!is_there(&world, &format!("root/{name}")), "{level}: {name}: {outcome:?}");
        }
        for name in [
            "plain/.git/config",
            "running/.git/HEAD",
            "running/.git/info/exclude",
            "running/.git/hooks",
            "hooked/.git/HEAD",
        ] {
            assert!(is_there(&world, &format!("root/{name}")), "{level}: {name}: {outcome:?}");
        }
        assert_eq!(outcome.notices.len(), gone.len(), "{level}: {outcome:?}");
    }
}

#[test]
fn where_a_link_on_the_way_to_hooks_led_elsewhere_what_stood_there_stays() {
    for level in [Level::Full, Level::Partial] {
        for (config, hooks) in
            [("[include]\n\tpath = ../more.cfg\n", "hk"), ("[core]\n\thooksPath = hl/sub\n", "hk/sub")]
        {
            let world = World::new(User::Own);
            for folder in ["hk/sub", "src/sub"] {
                fs::create_dir_all(world.path("root").join(folder)).unwrap();
            }
            symlink("hk", world.path("root/hl")).unwrap();
            fs::write(world.path("root/more.cfg"), "[core]\n\thooksPath = hl\n").unwrap();
            fs::write(world.path("root/.git/config"), config).unwrap();
            world.does(&format!("echo x > {hooks}/pre-commit"), level);
            assert!(!is_there(&world, &format!("root/{hooks}/pre-commit")), "{level}");
            let outcome = world.does("ln -sfn src hl", level);
            for name in ["src/main.txt", "src/sub", "hk/sub"] {
                assert!(is_there(&world, &format!("root/{name}")), "{level}: {name}: {outcome:?}");
            }
            assert!(!is_there(&world, "root/hl"), "{level}: {outcome:?}");
        }
    }
}

#[test]
fn where_a_link_of_the_configuration_led_elsewhere_what_stood_there_stays() {
    for level in [Level::Full, Level::Partial] {
        let world = World::new(User::Own);
        fs::create_dir(world.path("root/hk")).unwrap();
        symlink("hk", world.path("root/hl")).unwrap();
        fs::write(world.path("root/.git/config"), "[core]\n\tbare = false\n\thooksPath = hl\n").unwrap();
        // What the link leads to is protected while it does.
        world.does("echo x > hk/pre-commit", level);
        assert!(!is_there(&world, "root/hk/pre-commit"), "{level}");
        let outcome = world.does("echo x > src/pre-commit; ln -sfn src hl", level);
        assert!(is_there(&world, "root/src/main.txt") && is_there(&world, "root/hk"), "{level}: {outcome:?}");
        assert!(!is_there(&world, "root/hl"), "{level}: {outcome:?}");
        assert_eq!(outcome.notices.len(), 1, "{level}: {outcome:?}");
    }
}

//! Folders whose mode a command changed, so that nobody may list them or write in them: to the administrator that is nothing, to
//! anybody else a way to hide what git still finds.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use drawloom_sandbox::{Ending, Level, Notice};

use crate::all_are_held;
use crate::rows::{Row, differs, is_there, row};
use crate::world::{CONFIG, User, World, git_folder, limits};

pub(crate) const CLOSED_FOLDERS: &[Row] = &[
    row(
        "git folder in a folder that nobody may list",
        "mkdir -p d/sub; cp -r .git/modules/logs d/sub/.git; chmod 311 d",
    )
    .makes("root/d/sub/.git/config"),
    row("git folder that nobody may list", "cp -r .git/modules/logs n; mv n d.git; chmod 311 d.git")
        .makes("root/d.git/config"),
    row(
        "file in a folder that nobody may enter",
        "mkdir -p d/e; echo x > d/e/.envrc; chmod 0 d/e; chmod 600 d",
    )
    .seen_by(|w| {
        for folder in ["root/d", "root/d/e"] {
            fs::set_permissions(w.path(folder), Permissions::from_mode(0o755)).unwrap();
        }
        is_there(w, "root/d/e/.envrc")
    })
    .names("root/d/e/.envrc"),
    row(
        "git folder in a folder that nobody may write in",
        "mkdir -p d/sub; cp -r .git/modules/logs d/sub/.git; chmod 555 d d/sub",
    )
    .makes("root/d/sub/.git/config"),
    row(
        "git folder that nobody may write in",
        "mkdir -p d/sub; cp -r .git/modules/logs d/sub/.git; chmod -R a-w d",
    )
    .makes("root/d/sub/.git/config"),
    row(
        "file in a folder that nobody may write in",
        "mkdir d; echo x > d/.envrc; chmod 0 d/.envrc; chmod 500 d",
    )
    .makes("root/d/.envrc"),
    row(
        "link in a git folder that nobody may write in",
        r#"ln -s "$OUTSIDE/file" .git/ORIG_HEAD; chmod 500 .git"#,
    )
    .makes("root/.git/ORIG_HEAD"),
    row(
        "rebase in a folder that nobody may write in",
        "mkdir .git/rebase-merge; echo 'exec x' > .git/rebase-merge/git-rebase-todo; \
        chmod 500 .git/rebase-merge",
    )
    .makes("root/.git/rebase-merge/git-rebase-todo"),
];

#[test]
fn what_is_protected_in_a_closed_folder_is_taken() {
    all_are_held("closed folders", CLOSED_FOLDERS, Level::Full);
}

#[test]
fn what_is_protected_in_a_closed_folder_is_taken_at_partial() {
    all_are_held("closed folders", CLOSED_FOLDERS, Level::Partial);
}

#[test]
fn a_folder_that_nobody_may_list_stays_protected() {
    for (user, level) in
        User::all().into_iter().flat_map(|user| [(user, Level::Full), (user, Level::Partial)])
    {
        for closed in [".", ".git", ".git/modules", ".git/modules/libs", "../other.git", "elsewhere"] {
            let world = World::new(user);
            let folder = world.path("root").join(closed);
            fs::set_permissions(&folder, Permissions::from_mode(0o311)).unwrap();
            let line = "for file in .git/config .git/modules/libs/sub/config ../other.git/config; do \
                echo '[core]fsmonitor=x' >> $file; done; echo x > AGENTS.md; echo x > .git/hooks/pre-commit; \
                echo x > elsewhere/hooks/pre-commit";
            let outcome = world.does(line, level);
            for config in ["root/.git/config", "root/.git/modules/libs/sub/config", "other.git/config"] {
                assert_eq!(
                    world.text(config).as_deref(),
                    Some(CONFIG),
                    "{user:?} {level} {closed}: {outcome:?}"
                );
            }
            assert_eq!(world.text("root/AGENTS.md").as_deref(), Some("ours"), "{user:?} {level} {closed}");
            for hooks in [".git", "elsewhere"] {
                let hook = format!("root/{hooks}/hooks/pre-commit");
                assert!(!is_there(&world, &hook), "{user:?} {level} {closed}: {outcome:?}");
            }
            // Nor is it new to a command that opens it.
            let outcome = world.does(&format!("chmod 755 {closed}"), level);
            assert_eq!(outcome.notices, [], "{user:?} {level} {closed}");
        }
    }
}

#[test]
fn what_a_command_closed_is_given_back() {
    for user in User::all() {
        for line in [
            "echo '[core]fsmonitor=x' >> .git/config; chmod 555 .git",
            "echo '[core]fsmonitor=x' >> .git/config; chmod 0 .git/config .git",
            "rm .git/config; chmod 100 .git .",
            "mv .git src/; chmod 555 src src/.git",
        ] {
            let world = World::new(user);
            let outcome = world.does(line, Level::Partial);
            assert_eq!(
                world.text("root/.git/config").as_deref(),
                Some(CONFIG),
                "{user:?}: {line}: {outcome:?}"
            );
            assert!(!differs(&world, "root/AGENTS.md", "ours"), "{user:?}: {line}");
        }
    }
}

#[test]
fn the_folder_that_something_was_taken_from_keeps_its_mode() {
    for user in User::all() {
        let world = World::new(user);
        world.does("mkdir d; echo x > d/.envrc; chmod 555 d", Level::Full);
        assert!(!is_there(&world, "root/d/.envrc"), "{user:?}");
        assert_eq!(world.path("root/d").metadata().unwrap().mode() & 0o777, 0o555, "{user:?}");
    }
}

/// As where the disk is full.
#[test]
fn what_cannot_be_moved_is_closed_and_no_command_begins_until_it_is_gone() {
    for (user, level) in
        User::all().into_iter().flat_map(|user| [(user, Level::Full), (user, Level::Partial)])
    {
        let world = World::new(user);
        fs::write(world.path("quarantine"), "no folder").unwrap();
        for (line, left) in [
            ("mkdir -p n/.git/hooks; echo x > n/.git/hooks/pre-commit", "n/.git/hooks"),
            ("echo x > .envrc", ".envrc"),
        ] {
            let outcome = world.does(line, level);
            let told = outcome.notices.iter().any(|notice| {
                matches!(notice, Notice::NotRestored { problem, .. } if problem.contains("no command begins"))
            });
            assert!(told, "{user:?} {level}: {outcome:?}");
            let path = world.path("root").join(left);
            assert_eq!(path.metadata().unwrap().mode() & 0o777, 0, "{user:?} {level}: {outcome:?}");
            for _ in 0..2 {
                let refused = world.run_in_walls("touch begun", level, limits(), &[]).unwrap_err();
                assert!(
                    refused.contains(left) && refused.contains("mode 000"),
                    "{user:?} {level}: {refused}"
                );
            }
            assert!(!is_there(&world, "root/begun"));
            fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.unwrap();
            assert_eq!(world.does("true", level).ending, Ending::Exited(0), "{user:?} {level}");
        }
    }
}

#[test]
fn a_folder_of_another_user_in_which_no_command_can_write_is_passed_over_and_another_refused() {
    if User::all().len() == 1 {
        return;
    }
    let world = World::new(User::Nobody);
    git_folder(&world.path("root/volume/.git"));
    for (mode, begins) in [(0o700, true), (0o711, true), (0o733, false)] {
        let volume = world.path("root/volume");
        std::os::unix::fs::chown(&volume, Some(0), Some(0)).unwrap();
        fs::set_permissions(&volume, Permissions::from_mode(mode)).unwrap();
        match world.run_in_walls("true", Level::Full, limits(), &[]) {
            Ok(outcome) => assert!(begins && outcome.notices.is_empty(), "{mode:o}: {outcome:?}"),
            Err(refused) => assert!(!begins && refused.contains("volume"), "{mode:o}: {refused}"),
        }
    }
}

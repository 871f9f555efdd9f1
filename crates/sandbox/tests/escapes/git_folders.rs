//! Git folders: what a command leaves in one, or makes of a folder, that the owner's next git would run or write by.

use drawloom_sandbox::Level;

use crate::all_are_held;
use crate::rows::{Row, is_there, row};

const GIT_FOLDERS: &[Row] = &[
    row(
        "git folder below a folder of packages",
        "mkdir -p target/x; cp -r .git target/t; mv target/t target/x/.git; echo '[core]fsmonitor=x' > target/x/.git/config",
    )
    .seen_by(|w| is_there(w, "root/target/x/.git/config")),
    row("file in place of a git folder there", "mkdir -p vendor/l && echo 'gitdir: ../../evil' > vendor/l/.git")
        .seen_by(|w| is_there(w, "root/vendor/l/.git")),
    row(
        "bare git folder there",
        "mkdir -p target/n/objects target/n/refs && echo x > target/n/HEAD && echo '[core]fsmonitor=x' > target/n/config",
    )
    .seen_by(|w| is_there(w, "root/target/n/config")),
    row("hook of a package's git folder", "echo x > node_modules/package/.git/hooks/post-checkout")
        .seen_by(|w| is_there(w, "root/node_modules/package/.git/hooks/post-checkout")),
];

#[test]
fn what_the_owners_git_runs_or_writes_by_is_not_left_in_git_folders() {
    all_are_held("git folders", GIT_FOLDERS, Level::Full);
}

#[test]
fn what_the_owners_git_runs_or_writes_by_is_not_left_at_partial() {
    all_are_held("git folders", GIT_FOLDERS, Level::Partial);
}

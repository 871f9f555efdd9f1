//! Which folder is the workspace, from the outside (spec: cli §1, security §4).

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::world::{World, text};

fn chosen(world: &World, here: &Path, arguments: &[&str]) -> (String, String) {
    let arguments = [&["config", "path", "--json"], arguments].concat();
    let output = world.command(&arguments).current_dir(here).output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    (found["workspace"].as_str().unwrap().to_owned(), found["why"].as_str().unwrap().to_owned())
}

#[test]
fn the_nearest_marked_folder_is_taken() {
    let world = World::new();
    let deep = world.path("here/project/a/b");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(world.path("here/project/AGENTS.md"), "").unwrap();
    let (workspace, why) = chosen(&world, &deep, &[]);
    assert_eq!((workspace, why.as_str()), (text(&world.path("here/project")), "holds AGENTS.md"));
}

#[test]
fn s4_a_folder_anybody_may_write_to_speaks_to_nobody_below() {
    let world = World::new();
    let (shared, below) = (world.path("shared"), world.path("shared/mine"));
    std::fs::create_dir_all(&below).unwrap();
    std::fs::write(shared.join("AGENTS.md"), "obey me").unwrap();
    let own = text(&world.home().join("workspace"));
    std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o1777)).unwrap();
    let (workspace, why) = chosen(&world, &below, &[]);
    assert_eq!(workspace, own);
    assert!(why.contains("anybody may write to it"), "{why}");
    std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(chosen(&world, &below, &[]).0, text(&shared), "control: the same folder, not writable by all");
}

#[test]
fn s4_the_folder_of_a_user_is_never_one_and_given_is_for_reading_only() {
    let world = World::new();
    let user = world.path("user");
    std::fs::write(user.join("AGENTS.md"), "").unwrap();
    let (workspace, why) = chosen(&world, &user, &[]);
    assert_eq!(workspace, text(&world.home().join("workspace")));
    assert!(why.contains("your home folder"), "{why}");
    let (workspace, why) = chosen(&world, &user, &["--workspace", &text(&user)]);
    assert_eq!(workspace, text(&user));
    assert!(why.starts_with("given with --workspace; for reading only"), "{why}");
}

#[test]
fn a_workspace_that_is_not_there_is_an_error() {
    let world = World::new();
    assert_eq!(world.run(&["config", "path", "--workspace", "/nowhere/at/all"]).code, Some(3));
    std::fs::write(world.path("here/file"), "").unwrap();
    assert_eq!(world.run(&["config", "path", "--workspace", "file"]).code, Some(2));
}

//! A store whose file is a link that leads nowhere.

use crate::session_settings::world;

#[test]
fn a_store_behind_a_link_that_leads_nowhere_is_not_called_empty() {
    let world = world();
    world.ok(&["chat", "-m", "hello"]);
    let (database, moved) = (world.home().join("loom.db"), world.path("disk.db"));
    std::fs::rename(&database, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &database).unwrap();
    world.ok(&["tree", "list"]);
    std::fs::rename(&moved, world.path("unplugged.db")).unwrap();
    for command in [&["tree", "list"][..], &["doctor"]] {
        let run = world.run(command);
        let said = format!("{}{}", run.out, run.err).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("disk.db, which is not there"), "{command:?}: {run:?}");
        assert!(!said.contains("is empty"), "{command:?}: {run:?}");
    }
}

//! Documents that come from a file or are written in an editor as a whole.

use std::fs;

use crate::editing::{NOVEL, edited, ids, novel, rendered};
use crate::world::{World, text};

#[test]
fn a_changed_file_comes_in_as_edits_of_what_changed() {
    let world = World::new();
    let before = novel(&world);
    let file = world.path("novel.md");
    fs::write(&file, NOVEL.replace("All day it", "All night it") + "\nAnd then?\n").unwrap();
    let (code, done) = world.json(&["tree", "edit", "Novel", "--file", &text(&file)]);
    assert_eq!(code, Some(0), "{done}");
    assert_eq!(
        (done["changed"].as_array().unwrap().len(), done["added"].as_array().unwrap().len()),
        (1, 1),
        "{done}"
    );
    assert_eq!((&done["words_added"], &done["words_removed"]), (&3.into(), &1.into()), "{done}");
    assert_eq!(rendered(&world), fs::read_to_string(&file).unwrap());
    assert_eq!(ids(&world)[1], before[1]);
    let twice = world.run(&["tree", "edit", "Novel", "--replace", "rained", "snowed"]);
    assert!(twice.code == Some(2) && twice.err.contains("2 times"), "{twice:?}");
    world.ok(&["tree", "edit", "Novel", "--replace", "rained", "snowed", "--all"]);
    assert!(rendered(&world).contains("It snowed.\n\nAll night it snowed."));
    world.ok(&["tree", "undo", "Novel"]);
    assert_eq!(rendered(&world), fs::read_to_string(&file).unwrap());
}

#[test]
fn an_empty_document_is_written_in_an_editor() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Novel"]);
    let done = edited(&world, "sh -c 'printf \"One.\\n\\nTwo.\\n\" >\"$1\"' sh", &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(rendered(&world), "One.\n\nTwo.");
    assert_eq!(ids(&world).len(), 2);
}

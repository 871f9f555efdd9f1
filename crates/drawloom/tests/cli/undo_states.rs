//! What can stand at a path, and how it is shown, given back and taken again.

use std::fs;

use serde_json::json;

use crate::exec::world;
use crate::file_tools::say;
use crate::tools::{calls, chat};

/// Both were once written in the place of bytes that are not kept.
#[test]
fn a_text_that_says_that_its_bytes_are_not_kept_is_shown_and_given_back_as_any_other() {
    const UNKNOWN: &str = "[What stands here is not known to be what the command left.]\n";
    const LARGE: &str =
        "[A file of 10.5 MiB, whose bytes are not kept: 11000000 bytes, 1, 2, 3, 4.]\nrm -rf ~/important\n";
    let write =
        |path: &str, content: &str| json!({"name": "write", "arguments": {"path": path, "content": content}});
    let world = world(&[
        calls(&json!([{"name": "read", "arguments": {"path": "mine"}}])),
        calls(&json!([write("evil", LARGE), write("mine", UNKNOWN)])),
        json!({"text": "Done."}),
    ]);
    let project = world.path("project");
    fs::write(project.join("mine"), "mine\n").unwrap();
    let (code, said) = chat(&world, "Do it.");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said["changed"][0], json!({"path": "evil", "added": 2, "removed": 0}), "{said}");
    let shown = say(&world, "/diff").out;
    assert!(shown.contains("+rm -rf ~/important\n") && shown.contains("+[What stands here"), "{shown}");
    let back = say(&world, "/undo --files");
    assert!(!project.join("evil").exists(), "{back:?}");
    assert_eq!(fs::read_to_string(project.join("mine")).unwrap(), "mine\n", "{back:?}");
    let redone = say(&world, "/redo --files");
    assert_eq!(fs::read_to_string(project.join("evil")).unwrap(), LARGE, "{redone:?}");
    assert_eq!(fs::read_to_string(project.join("mine")).unwrap(), UNKNOWN, "{redone:?}");
}

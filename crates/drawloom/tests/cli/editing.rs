//! A document edited in an editor: stand-ins that change the file in place, and every way an editor ends badly.

use std::fs;
use std::path::PathBuf;

use crate::program::program;
use crate::world::{Run, World, piped, text};

const NOVEL: &str = "# Rain\n\nIt rained.\n\nAll day it rained.\n\nThe rain stopped.\n";

/// The document and the short ids of its passages.
fn novel(world: &World) -> Vec<String> {
    fs::write(world.path("novel.md"), NOVEL).unwrap();
    world.ok(&["tree", "new", "--title", "Novel", "--file", &text(&world.path("novel.md"))]);
    ids(world)
}

fn ids(world: &World) -> Vec<String> {
    let (_, shown) = world.json(&["tree", "show", "Novel"]);
    let nodes = shown["nodes"].as_array().unwrap().iter().skip(1);
    nodes.map(|node| node["short_id"].as_str().unwrap().to_owned()).collect()
}

fn rendered(world: &World) -> String {
    world.ok(&["tree", "text", "Novel"])
}

/// Edits with a program in the place of an editor.
fn edited(world: &World, editor: &str, more: &[&str]) -> Run {
    let mut command = world.command(&[&["tree", "edit", "Novel"], more].concat());
    command.env("EDITOR", editor).output().unwrap().into()
}

/// Files that wait to be taken in.
fn kept(world: &World) -> Vec<PathBuf> {
    let found = fs::read_dir(world.home().join("edits"))
        .map(|folder| folder.map(|file| file.unwrap().path()).collect());
    found.unwrap_or_default()
}

#[test]
fn what_an_editor_changed_is_one_step_and_leaves_the_rest() {
    let world = World::new();
    let before = novel(&world);
    // A word changed, a passage deleted with its mark, one inserted, two written at the end.
    let script = format!(
        "sed -i -e 's/It rained/It snowed/' -e '/⟦{}⟧/d' -e 's/⟦{}⟧/Inserted.\\n\\n&/' -e '$aNew.\\n\\nNewer.'",
        before[2], before[3]
    );
    let done = edited(&world, &script, &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.out.contains("passages changed (") && done.out.contains("2 passages added ("),
        "{}",
        done.out
    );
    let after = "# Rain\n\nIt snowed.\n\nInserted.\n\nThe rain stopped.\n\nNew.\n\nNewer.";
    // The line of the deleted mark went, the blank one behind it stayed.
    assert_eq!(rendered(&world).replace("\n\n\n", "\n\n"), after);
    let now = ids(&world);
    assert_eq!(
        (now.len(), &now[0], &now[3]),
        (6, &before[0], &before[3]),
        "what was not changed is the same node"
    );
    assert!(kept(&world).is_empty());
    world.ok(&["tree", "undo", "Novel"]);
    assert_eq!(rendered(&world), NOVEL, "one step");
    world.ok(&["tree", "redo", "Novel"]);
    assert_eq!(rendered(&world).replace("\n\n\n", "\n\n"), after);
}

#[test]
fn marks_are_there_to_be_lost_and_line_ends_are_the_editors() {
    let world = World::new();
    let before = novel(&world);
    for editor in ["sed -i 's/⟦[^⟧]*⟧//g'", "sed -i 's/$/\\r/'", "sed -i '1s/^/\u{feff}/'", "sed -i 1d"]
    {
        let done = edited(&world, editor, &[]);
        assert_eq!((done.code, done.out.as_str()), (Some(0), "nothing was changed\n"), "{editor}: {done:?}");
        assert_eq!((rendered(&world).as_str(), ids(&world)), (NOVEL, before.clone()), "{editor}");
    }
    let part = edited(&world, "sed -i 's/rain/snow/g'", &["--from", &before[1], "--to", &before[2]]);
    assert_eq!(part.code, Some(0), "{part:?}");
    assert_eq!(rendered(&world), NOVEL.replace("It rained", "It snowed").replace("it rained", "it snowed"));
    let one = edited(&world, "sed -i s/snowed/hailed/", &[&before[1]]);
    assert_eq!(one.code, Some(0), "{one:?}");
    assert!(rendered(&world).contains("It hailed.\n\nAll day it snowed."));
    assert!(kept(&world).is_empty());
}

#[test]
fn an_editor_that_ends_badly_loses_nothing() {
    let world = World::new();
    novel(&world);
    let changes = "sed -i s/rained/poured/g \"$1\"";
    for (what, editor, code, said) in [
        ("fails", format!("sh -c '{changes}; exit 3' sh"), 1, "ended with 3"),
        ("is killed", format!("sh -c '{changes}; kill -9 $$' sh"), 1, "was ended by signal 9"),
        ("is not UTF-8", "sh -c 'printf \"\\377\" >>\"$1\"' sh".to_owned(), 2, "is not UTF-8"),
        ("has a mark of its own", "sed -i '2s/^/⟦zzzz⟧/'".to_owned(), 2, "⟦zzzz⟧ in line 1 marks no passage"),
        ("is empty", "sh -c ': >\"$1\"' sh".to_owned(), 2, "nothing was changed"),
    ] {
        let done = edited(&world, &editor, &[]);
        assert_eq!(done.code, Some(code), "{what}: {done:?}");
        assert!(done.err.contains(said), "{what}: {}", done.err);
        assert_eq!(rendered(&world), NOVEL, "{what}");
        let files = kept(&world);
        assert_eq!(files.len(), 1, "{what}: {files:?}");
        assert!(done.err.contains(files[0].to_str().unwrap()), "{what}: {}", done.err);
        if what == "fails" {
            let taken = world.ok(&["tree", "edit", "Novel", "--file", files[0].to_str().unwrap()]);
            assert!(taken.contains("2 passages changed"), "{taken}");
            assert_eq!(rendered(&world), NOVEL.replace("rained", "poured"));
            world.ok(&["tree", "undo", "Novel"]);
        }
        fs::remove_file(&files[0]).unwrap();
    }
    let missing = edited(&world, "no-such-editor", &[]);
    assert!(missing.code == Some(1) && missing.err.contains("was not found"), "{missing:?}");
    let none = edited(&world, "", &[]);
    assert!(none.code == Some(2) && none.err.contains("VISUAL or EDITOR"), "{none:?}");
    assert!(kept(&world).is_empty(), "what was never edited is not kept");
    let at_once = edited(&world, "true", &[]);
    assert!(at_once.code == Some(0) && at_once.err.contains("code --wait"), "{at_once:?}");
    assert_eq!(kept(&world).len(), 1, "its window may still be open");
    assert_eq!(rendered(&world), NOVEL);
}

#[test]
fn what_was_changed_elsewhere_meanwhile_is_named_and_the_rest_goes_in() {
    let world = World::new();
    let before = novel(&world);
    let program = program();
    let editor = format!(
        "sh -c '{} tree edit Novel {} --text \"Elsewhere.\n\n\" && sed -i s/rained/poured/g \"$1\"' sh",
        program.display(),
        before[1]
    );
    let done = edited(&world, &editor, &[]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains(&format!("changed elsewhere meanwhile: {}", before[1])), "{}", done.err);
    assert_eq!(rendered(&world), NOVEL.replace("It rained.", "Elsewhere.").replace("rained", "poured"));
    let files = kept(&world);
    assert!(done.err.contains(files[0].to_str().unwrap()), "{}", done.err);
    assert!(fs::read_to_string(&files[0]).unwrap().contains("It poured."));
}

#[test]
fn a_killed_program_leaves_the_edited_text() {
    let world = World::new();
    novel(&world);
    let fifo = world.path("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let editor =
        format!("sh -c 'sed -i s/rained/poured/ \"$1\"; echo ready >{0}; read line <{0}' sh", fifo.display());
    let mut child = piped(world.command(&["tree", "edit", "Novel"]).env("EDITOR", editor));
    assert_eq!(fs::read_to_string(&fifo).unwrap(), "ready\n");
    child.kill().unwrap();
    child.wait().unwrap();
    let files = kept(&world);
    assert!(fs::read_to_string(&files[0]).unwrap().contains("It poured."));
    let preview = world.run(&["forget", "--text", "All day", "--dry-run"]);
    assert!(preview.err.contains(files[0].to_str().unwrap()), "{preview:?}");
    // Lets the editor end.
    fs::write(&fifo, "end\n").unwrap();
}

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

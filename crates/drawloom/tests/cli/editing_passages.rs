//! What an edit leaves as it was: who wrote a text, what parts a passage from the next, and drafts, which are named.

use std::fs;

use crate::editing::{edited, ids, novel, rendered};
use crate::world::{Run, World, text};

/// Who wrote a text stays with it, also where its passage goes elsewhere.
#[test]
fn a_passage_that_is_moved_keeps_its_author() {
    let world = World::new();
    novel(&world);
    let line = "{\"text\": \"The machine wrote this about rain.\\n\\n\"}\n";
    fs::write(world.path("line.jsonl"), line).unwrap();
    let model = format!("script:{}", text(&world.path("line.jsonl")));
    world.ok(&["--model", &model, "tree", "generate", "Novel"]);
    world.ok(&["tree", "append", "Novel", "One more.\n\n"]);
    world.ok(&["tree", "append", "Novel", "The end."]);
    let machine = ids(&world)[4].clone();
    let spans = |world: &World| {
        let (_, found) = world.json(&["tree", "text", "Novel", "--authors"]);
        let of_model = |span: &&serde_json::Value| span["kind"] == "model";
        let text = rendered(world);
        let spans = found["spans"].as_array().unwrap().iter().filter(of_model);
        let at = |span: &serde_json::Value, end: &str| usize::try_from(span[end].as_u64().unwrap()).unwrap();
        spans.map(|span| text[at(span, "start")..at(span, "end")].trim().to_owned()).collect::<Vec<_>>()
    };
    let said = ["The machine wrote this about rain."];
    assert_eq!(spans(&world), said, "control");
    let taken_out = format!("/⟦{machine}⟧/{{h;d}}");
    for (where_to, put) in [("up", "/It rained/{G}"), ("to the end", "$!b;G")] {
        // Where it is put it is held first: two runs of a line editor.
        let script = match where_to {
            "up" => {
                format!("sh -c 'tac \"$1\" | sed -e \"{taken_out}\" -e \"{put}\" | tac > x && cp x \"$1\"' -")
            }
            _ => format!("sed -i -e '{taken_out}' -e '{put}'"),
        };
        let done = edited(&world, &script, &[]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(rendered(&world).matches(said[0]).count(), 1, "{where_to}");
        assert_ne!(ids(&world)[4], machine, "{where_to}: {}", rendered(&world));
        assert_eq!(spans(&world), said, "{where_to}: {}", rendered(&world));
        assert!(world.ok(&["tree", "verify", "Novel"]).starts_with("valid"));
        world.ok(&["tree", "undo", "Novel"]);
        assert_eq!((spans(&world), ids(&world)[4].clone()), (vec![said[0].to_owned()], machine.clone()));
    }
}

/// What parts a passage from the next is none of its words.
#[test]
fn a_new_text_of_one_passage_stays_a_paragraph() {
    let world = World::new();
    let before = novel(&world);
    let expected = "# Rain\n\nDry.\n\nAll day it rained.\n\nThe rain stopped.\n";
    world.ok(&["tree", "edit", "Novel", &before[1], "--text", "Dry."]);
    assert_eq!(rendered(&world), expected);
    for left in ["Wet.", "Wet.\\n"] {
        let done = edited(&world, &format!("sh -c 'printf \"{left}\" > \"$1\"' -"), &[&before[1]]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(rendered(&world), expected.replace("Dry.", "Wet."));
        world.ok(&["tree", "undo", "Novel"]);
    }
    for said in ["Wet.", "Wet.\n"] {
        world.write("wet.txt", said);
        world.ok(&["tree", "edit", "Novel", &before[1], "--file", &text(&world.home().join("wet.txt"))]);
        assert_eq!(rendered(&world), expected.replace("Dry.", "Wet."), "{said:?}");
    }
    world.ok(&["tree", "edit", "Novel", &before[1], "--text", "Dry.\n"]);
    assert_eq!(rendered(&world), expected.replace("Dry.\n\n", "Dry.\n"), "a line end that is given counts");
}

#[test]
fn what_was_typed_is_named_where_an_edit_commits_it() {
    let world = World::new();
    novel(&world);
    world.ok(&["tree", "draft", "Novel", "Typed."]);
    let done = edited(&world, "sed -i 's/All day/All night/'", &[]);
    let last = ids(&world).last().cloned().unwrap();
    assert!(done.err.contains(&format!("what was typed stands in the tree now: {last}")), "{done:?}");
    world.ok(&["tree", "new", "--title", "Empty"]);
    let mut command = world.command(&["tree", "edit", "Empty"]);
    let run: Run = command.env("EDITOR", "sed -i '$ahello'").output().unwrap().into();
    assert_eq!((run.code, world.ok(&["tree", "text", "Empty"]).as_str()), (Some(0), "hello"), "{run:?}");
}

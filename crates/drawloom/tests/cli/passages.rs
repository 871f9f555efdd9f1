//! Documents made of passages: brought in, branched after words, changed by words, gone about in.

use crate::world::{World, text};

const NOVEL: &str =
    "# Rain\n\nIt rained.\nAll day.\n\n## Two\n\nThe rain stopped.\n\n```\na\n\nb\n```\n\n## Three\n";

fn novel(world: &World, name: &str, more: &[&str]) -> Vec<String> {
    std::fs::write(world.path("novel.md"), NOVEL).unwrap();
    let file = text(&world.path("novel.md"));
    world.ok(&[&["tree", "new", "--title", name, "--file", &file], more].concat());
    assert_eq!(world.ok(&["tree", "text", name, "--committed"]), NOVEL, "byte for byte");
    let (_, shown) = world.json(&["tree", "show", name]);
    let nodes = shown["nodes"].as_array().unwrap().iter().skip(1);
    nodes.map(|node| node["short_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_file_becomes_a_passage_a_paragraph_in_one_step() {
    let world = World::new();
    assert_eq!(novel(&world, "Paragraphs", &[]).len(), 6);
    assert_eq!(novel(&world, "Chapters", &["--split", "chapter"]).len(), 3);
    assert_eq!(novel(&world, "Whole", &["--split", "none"]).len(), 1);
    world.ok(&["tree", "undo", "Paragraphs"]);
    assert_eq!(world.ok(&["tree", "text", "Paragraphs"]), "");
    world.ok(&["tree", "redo", "Paragraphs"]);
    assert_eq!(world.ok(&["tree", "text", "Paragraphs"]), NOVEL);
    let refused = world.run(&["tree", "new", "--text", "x", "--split", "none"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[test]
fn what_is_piped_is_the_text_of_a_new_document() {
    let world = World::new();
    for (more, title) in [(&[][..], "Rain"), (&["--title", "Tale"], "Tale")] {
        let made = world.fed(&[&["tree", "new"], more].concat(), format!("\u{feff}{NOVEL}").as_bytes());
        assert_eq!(made.code, Some(0), "{made:?}");
        assert_eq!(world.ok(&["tree", "text", title]), NOVEL);
        assert_eq!(world.json(&["tree", "show", title]).1["nodes"].as_array().unwrap().len(), 7);
    }
    let chapters = world.fed(&["tree", "new", "--title", "Chapters", "--split", "chapter"], NOVEL.as_bytes());
    assert!(chapters.err.contains("3 passages"), "{chapters:?}");
    // The controls: an empty pipe is nothing, and what is named goes before it.
    assert_eq!(world.fed(&["tree", "new", "--title", "Empty"], b"").code, Some(0));
    assert_eq!(world.ok(&["tree", "text", "Empty"]), "");
    world.fed(&["tree", "new", "--title", "Typed", "--text", "Typed."], b"piped");
    assert_eq!(world.ok(&["tree", "text", "Typed"]), "Typed.");
}

#[test]
fn passages_are_merged_and_split() {
    let world = World::new();
    let ids = novel(&world, "Novel", &[]);
    let merged = world.ok(&["tree", "merge", "Novel", &ids[2]]);
    assert_eq!(world.ok(&["tree", "text", "Novel"]), NOVEL);
    let (code, done) =
        world.json(&["tree", "split", "Novel", merged.trim(), "--after", "All day.\n\n", "--view", "main"]);
    assert_eq!(
        (code, &done["short_id"], &done["tail"]["short_id"]),
        (Some(0), &ids[1].clone().into(), &ids[2].clone().into())
    );
    let refused = world.run(&["tree", "split", "Novel", &ids[1], "--after", "It rained."]);
    assert!(refused.code == Some(2) && refused.err.contains("tree branch Novel"), "{refused:?}");
    let first = world.run(&["tree", "merge", "Novel", &ids[0]]);
    assert!(first.code == Some(2) && first.err.contains("is the first passage"), "{first:?}");
    let end = world.ok(&["tree", "split", "Novel", &ids[5], "--at", "3"]);
    assert_eq!(end.lines().count(), 2, "both parts are named: {end}");
    assert_eq!(world.ok(&["tree", "text", "Novel"]), NOVEL);
}

#[test]
fn a_hint_names_the_tree_as_a_shell_takes_it() {
    let world = World::new();
    let ids = novel(&world, "The Rain", &[]);
    let tree = world.json(&["tree", "show", "The Rain"]).1["tree"].as_str().unwrap().to_owned();
    let refused = world.run(&["tree", "split", &tree, &ids[1], "--after", "It rained."]);
    assert!(refused.err.contains("tree branch 'The Rain' "), "{refused:?}");
    assert!(refused.err.contains("tree edit 'The Rain'`"), "{refused:?}");
    world.ok(&["tree", "exclude", &tree, &ids[0]]);
    let refused = world.run(&["tree", "merge", &tree, &ids[1]]);
    assert!(refused.err.contains(&format!("tree include 'The Rain' {}", ids[0])), "{refused:?}");
}

#[test]
fn a_branch_begins_behind_words() {
    let world = World::new();
    let ids = novel(&world, "Novel", &[]);
    world.ok(&["tree", "branch", "Novel", &ids[1], "--after", "It rained."]);
    assert_eq!(world.ok(&["tree", "text", "Novel"]), "# Rain\n\nIt rained.");
    world.ok(&["tree", "append", "Novel", " Then sun."]);
    world.ok(&["tree", "go", "Novel", &ids[5]]);
    assert_eq!(world.ok(&["tree", "text", "Novel"]), NOVEL);
    world.ok(&["tree", "go", "Novel", &ids[1]]);
    assert_eq!(world.ok(&["tree", "text", "Novel"]), "# Rain\n\nIt rained.\nAll day.\n\n");
    let twice = world.run(&["tree", "branch", "Novel", &ids[1], "--after", "a"]);
    assert_eq!(twice.code, Some(2));
    assert!(twice.err.contains("2 times: at 4 ") && twice.err.contains("at 16 "), "{}", twice.err);
    world.ok(&["tree", "go", "Novel", &ids[5]]);
    world.ok(&["tree", "branch", "Novel", "--after", "The rain"]);
    assert!(world.ok(&["tree", "text", "Novel"]).ends_with("## Two\n\nThe rain"), "words of the path");
    let nowhere = world.run(&["tree", "branch", "Novel", "--after", "snow"]);
    assert_eq!(nowhere.code, Some(3));
    let nowhere = world.run(&["tree", "branch", "Novel", &ids[1], "--after", "snow"]);
    assert_eq!(nowhere.code, Some(3));
}

#[test]
fn words_of_a_passage_are_replaced() {
    let world = World::new();
    let ids = novel(&world, "Novel", &[]);
    world.ok(&["tree", "edit", "Novel", &ids[1], "--replace", "All day", "All night"]);
    assert!(world.ok(&["tree", "text", "Novel"]).contains("It rained.\nAll night.\n\n## Two"));
    let several = world.run(&["tree", "edit", "Novel", &ids[1], "--replace", "i", "y"]);
    assert_eq!(several.code, Some(2), "{several:?}");
    assert!(several.err.contains("2 times"), "{}", several.err);
    world.ok(&["tree", "edit", "Novel", &ids[1], "--replace", "i", "y", "--all"]);
    assert!(world.ok(&["tree", "text", "Novel"]).contains("It rayned.\nAll nyght."));
    let none = world.run(&["tree", "edit", "Novel", &ids[1], "--replace", "snow", "sun"]);
    assert_eq!(none.code, Some(3));
    std::fs::write(world.path("new.txt"), "It snowed.\n\n").unwrap();
    world.ok(&["tree", "edit", "Novel", &ids[1], "--file", &text(&world.path("new.txt"))]);
    assert!(world.ok(&["tree", "text", "Novel"]).contains("# Rain\n\nIt snowed.\n\n## Two"));
    world.ok(&["tree", "rename", "Novel", "Snow"]);
    assert!(world.ok(&["tree", "list"]).contains("Snow"));
}

#[test]
fn siblings_are_looked_for_as_far_as_the_path_goes() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Long", "--text", "Another.\n\n"]);
    let (_, shown) = world.json(&["tree", "show", "Long"]);
    let first = shown["nodes"][1]["short_id"].as_str().unwrap();
    world.ok(&["tree", "edit", "Long", first, "--text", "One.\n\n", "--as", "branch"]);
    let (_, shown) = world.json(&["tree", "show", "Long"]);
    let id = shown["nodes"][1]["short_id"].as_str().unwrap();
    let long: String = (0..1_100).map(|n| format!("Passage {n}.\n\n")).collect();
    std::fs::write(world.path("long.md"), format!("One.\n\n{long}")).unwrap();
    assert!(world.ok(&["tree", "siblings", "Long"]).contains("Another."));
    world.ok(&["tree", "edit", "Long", "--file", &text(&world.path("long.md"))]);
    for named in [&["tree", "siblings", "Long"] as &[&str], &["tree", "siblings", "Long", id]] {
        assert!(world.ok(named).contains("Another."), "{named:?}");
    }
    world.ok(&["tree", "switch", "Long", "--prev"]);
    assert_eq!(world.ok(&["--quiet", "tree", "text", "Long"]), "Another.\n\n");
}

#[test]
fn a_file_that_nothing_divides_names_the_option_that_would() {
    let world = World::new();
    let new = |name: &str, text: &str, more: &[&str]| {
        std::fs::write(world.path("text.txt"), text).unwrap();
        let file = crate::world::text(&world.path("text.txt"));
        let run = world.run(&[&["tree", "new", "--title", name, "--file", &file], more].concat());
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(world.ok(&["tree", "text", name]), text, "byte for byte");
        let (_, shown) = world.json(&["tree", "show", name]);
        (run.err, shown["nodes"].as_array().unwrap().len() - 1)
    };
    let lines = "It rained.\nIt poured.\nIt stopped.\n";
    let (said, made) = new("Lines", lines, &[]);
    assert!(made == 1 && said.contains("`--split line` makes one of each of its 3 lines"), "{said}");
    let (said, made) = new("Divided", lines, &["--split", "line"]);
    assert!(made == 3 && !said.contains("--split"), "{said}");
    let (said, made) = new("No chapters", "It rained.\n\nIt poured.\n", &["--split", "chapter"]);
    assert!(made == 1 && said.contains("`--split paragraph`"), "{said}");
    let chapters = "Chapter 1\n\nIt rained.\n\nCHAPTER TWO\n\nIt poured.\n";
    let (said, made) = new("Chapters", chapters, &["--split", "chapter"]);
    assert!(made == 2 && !said.contains("--split"), "{said}");
}

#[test]
fn a_byte_order_mark_is_no_text_of_a_document() {
    let world = World::new();
    std::fs::write(world.path("here/marked.md"), "\u{feff}# My Title\n\nText.\n").unwrap();
    world.ok(&["tree", "new", "--file", "marked.md"]);
    assert_eq!(world.ok(&["tree", "text", "My Title"]), "# My Title\n\nText.\n");
}

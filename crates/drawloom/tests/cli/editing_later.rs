//! Texts that an editor left, taken in later.

use std::fs;

use crate::editing::{NOVEL, edited, kept, novel, rendered};
use crate::world::{World, text};

/// The one text that waits to be taken in.
pub(crate) fn one_kept(world: &World) -> String {
    let [file] = kept(world).try_into().unwrap();
    text(&file)
}

#[test]
fn a_text_that_is_taken_in_later_leaves_what_others_wrote_meanwhile() {
    let world = World::new();
    let before = novel(&world);
    // The editor changes two passages and fails.
    let done =
        edited(&world, "sed -i -e 's/It rained/It snowed/' -e 's/stopped/went on/' \"$1\"; false", &[]);
    assert_eq!(done.code, Some(2), "{done:?}");
    let file = one_kept(&world);
    for (old, new) in [("All day", "All night"), ("stopped", "ended")] {
        world.ok(&["tree", "edit", "Novel", "--replace", old, new]);
    }
    let taken = world.run(&["tree", "edit", "Novel", "--file", &file]);
    assert_eq!(taken.code, Some(1), "{taken:?}");
    assert!(taken.err.contains(&format!("changed elsewhere meanwhile: {}", before[3])), "{taken:?}");
    assert_eq!(rendered(&world), "# Rain\n\nIt snowed.\n\nAll night it rained.\n\nThe rain ended.\n");
    assert_eq!(world.ok(&["tree", "verify", "Novel", "--json"]).matches("\"valid\"").count(), 1);
}

#[test]
fn a_text_of_a_part_is_taken_in_later_as_that_part() {
    let world = World::new();
    let before = novel(&world);
    let part = ["--from", &before[1], "--to", &before[2]];
    let done = edited(&world, "sed -i -e 's/All day/All night/' \"$1\"; false", &part);
    assert_eq!(done.code, Some(2), "{done:?}");
    world.ok(&["tree", "edit", "Novel", "--file", &one_kept(&world)]);
    assert_eq!(rendered(&world), "# Rain\n\nIt rained.\n\nAll night it rained.\n\nThe rain stopped.\n");
}

/// A text of the novel that an editor changed before it failed.
fn left(world: &World, more: &[&str]) -> String {
    let done = edited(world, "sed -i 's/It rained/It snowed/' \"$1\"; false", more);
    assert_eq!(done.code, Some(2), "{done:?}");
    one_kept(world)
}

#[test]
fn what_was_written_below_a_text_stays_when_it_is_taken_in() {
    for other in [
        &["append", "Novel", "\nAnd then?"] as &[&str],
        &["draft", "Novel", "\nAnd then?"],
        &["split", "Novel", "LAST", "--after", "The rain"],
    ] {
        let world = World::new();
        let last = novel(&world)[3].clone();
        let file = left(&world, &[]);
        let other: Vec<&str> =
            other.iter().map(|word| if *word == "LAST" { last.as_str() } else { word }).collect();
        world.ok(&[&["tree"], other.as_slice()].concat());
        let before = rendered(&world);
        world.ok(&["tree", "edit", "Novel", "--file", &file]);
        assert_eq!(rendered(&world), before.replace("It rained", "It snowed"), "{other:?}");
        assert!(kept(&world).is_empty(), "what was taken in does not wait");
    }
}

#[test]
fn a_change_of_what_has_left_the_path_is_named_and_the_rest_goes_in() {
    for (command, gone) in [("prune", 2), ("go", 3)] {
        let world = World::new();
        let before = novel(&world);
        let changes = "sed -i -e 's/It rained/It snowed/' -e 's/All day/All night/' -e 's/stopped/ended/' \"$1\"; false";
        assert_eq!(edited(&world, changes, &[]).code, Some(2));
        let file = one_kept(&world);
        let at = if command == "go" { &before[1] } else { &before[gone] };
        world.ok(&["tree", command, "Novel", at]);
        let taken = world.run(&["tree", "edit", "Novel", "--file", &file]);
        assert_eq!(taken.code, Some(1), "{command}: {taken:?}");
        assert!(
            taken.err.contains("are on the path no more") && taken.err.contains(&before[gone]),
            "{taken:?}"
        );
        assert!(rendered(&world).starts_with("# Rain\n\nIt snowed."), "{}", rendered(&world));
    }
}

#[test]
fn a_text_of_one_passage_is_not_taken_in_over_what_somebody_wrote_meanwhile() {
    let world = World::new();
    let passage = novel(&world)[1].clone();
    let file = left(&world, &[&passage]);
    world.ok(&["tree", "edit", "Novel", &passage, "--text", "Somebody wrote this. "]);
    let taken = world.run(&["tree", "edit", "Novel", &passage, "--file", &file]);
    assert!(taken.code != Some(0) && taken.err.contains("was changed meanwhile"), "{taken:?}");
    assert!(rendered(&world).contains("Somebody wrote this."));
    world.ok(&["tree", "undo", "Novel"]);
    world.ok(&["tree", "edit", "Novel", &passage, "--file", &file]);
    assert_eq!(rendered(&world), "# Rain\n\nIt snowed.\n\nAll day it rained.\n\nThe rain stopped.\n");
    assert!(kept(&world).is_empty());
}

#[test]
fn what_others_wrote_stays_also_where_the_file_has_lost_its_marks() {
    let mark_of = |id: &str| format!("-e 's/⟦{id}⟧//'");
    // Passages by number, and whether the line above the text goes as well.
    for (gone, header_goes) in [(vec![2], false), (vec![3], false), (vec![0, 1, 2, 3], false), (vec![], true)]
    {
        let world = World::new();
        let before = novel(&world);
        let mut editor = "sed -i -e 's/It rained/It snowed/'".to_owned();
        gone.iter().for_each(|at| editor += &format!(" {}", mark_of(&before[*at])));
        editor += if header_goes { " -e 1d \"$1\"; false" } else { " \"$1\"; false" };
        assert_eq!(edited(&world, &editor, &[]).code, Some(2));
        let file = one_kept(&world);
        world.ok(&["tree", "edit", "Novel", "--replace", "All day", "All night"]);
        world.ok(&["tree", "append", "Novel", "\nSomebody wrote this."]);
        let now = rendered(&world);
        world.ok(&["tree", "edit", "Novel", "--file", &file]);
        assert_eq!(rendered(&world), now.replace("It rained", "It snowed"), "{gone:?} {header_goes}");
        assert!(kept(&world).is_empty());
    }
}

#[test]
fn a_copy_elsewhere_is_taken_in_as_the_file_and_once() {
    let world = World::new();
    novel(&world);
    let (file, copy) = (left(&world, &[]), world.path("copy.md"));
    fs::copy(&file, &copy).unwrap();
    world.ok(&["tree", "append", "Novel", "\nSomebody wrote this."]);
    let now = rendered(&world);
    world.ok(&["tree", "edit", "Novel", "--file", &text(&copy)]);
    assert_eq!(rendered(&world), now.replace("It rained", "It snowed"));
    assert!(kept(&world).is_empty(), "the file that says the same went with it");
    let late = world.run(&["tree", "edit", "Novel", "--file", &text(&copy)]);
    assert!(late.code == Some(3) && late.err.contains("may have been taken in"), "{late:?}");
    assert_eq!(rendered(&world), now.replace("It rained", "It snowed"));
}

#[test]
fn a_text_of_one_passage_goes_nowhere_else() {
    let world = World::new();
    let before = novel(&world);
    let file = left(&world, &[&before[1]]);
    world.ok(&["tree", "new", "--title", "Other", "--text", "Other."]);
    for (to, said) in [
        (vec!["Novel"], format!("drawloom tree edit TREE {} --file", before[1])),
        (vec!["Novel", &before[2]], format!("is a text of {}, not of {}", before[1], before[2])),
        (vec!["Other"], "is a text of another document".to_owned()),
    ] {
        let refused = world.run(&[&["tree", "edit"], to.as_slice(), &["--file", &file]].concat());
        assert!(refused.code == Some(2) && refused.err.contains(&said), "{to:?}: {refused:?}");
    }
    assert_eq!(rendered(&world), "# Rain\n\nIt rained.\n\nAll day it rained.\n\nThe rain stopped.\n");
    assert_eq!(kept(&world).len(), 1);
    let (all, at) = (edited(&world, "sed -i 's/It rained/It poured/' \"$1\"; false", &[]), &before[1]);
    assert_eq!(all.code, Some(2), "{all:?}");
    let whole = kept(&world).into_iter().map(|file| text(&file)).find(|other| *other != file).unwrap();
    for more in [&["Novel", at] as &[&str], &["Novel", "--from", at]] {
        let refused = world.run(&[&["tree", "edit"], more, &["--file", &whole]].concat());
        assert_eq!(refused.code, Some(2), "{more:?}: {refused:?}");
    }
}

#[test]
fn what_did_not_go_in_goes_in_once_nothing_is_in_its_way() {
    let world = World::new();
    let before = novel(&world);
    let changes = "sed -i -e 's/It rained/It snowed/' -e 's/stopped/ended/' -e '$aMore.' \"$1\"; false";
    assert_eq!(edited(&world, changes, &[]).code, Some(2));
    let file = one_kept(&world);
    world.ok(&["tree", "edit", "Novel", &before[1], "--text", "It hailed.\n\n"]);
    for _ in 0..2 {
        let taken = world.run(&["tree", "edit", "Novel", "--file", &file]);
        assert_eq!(taken.code, Some(1), "{taken:?}");
        assert!(taken.err.contains(&format!("changed elsewhere meanwhile: {};", before[1])), "{taken:?}");
        assert!(taken.err.contains(&file), "{taken:?}");
        assert_eq!(
            rendered(&world),
            "# Rain\n\nIt hailed.\n\nAll day it rained.\n\nThe rain ended.\n\nMore."
        );
    }
    world.ok(&["tree", "edit", "Novel", &before[1], "--text", "It snowed.\n\n"]);
    world.ok(&["tree", "edit", "Novel", "--file", &file]);
    assert!(kept(&world).is_empty());
    assert_eq!(rendered(&world), "# Rain\n\nIt snowed.\n\nAll day it rained.\n\nThe rain ended.\n\nMore.");
}

#[test]
fn what_was_forgotten_meanwhile_does_not_come_back() {
    let world = World::new();
    let before = novel(&world);
    let file = left(&world, &[]);
    world.ok(&["forget", &format!("Novel:{}", before[2]), "--yes", "--yes"]);
    let taken = world.run(&["tree", "edit", "Novel", "--file", &file]);
    assert!(taken.code == Some(1) && taken.err.contains(&before[2]), "{taken:?}");
    let now = rendered(&world);
    assert!(now.contains("It snowed.") && !now.contains("All day"), "{now}");
}

#[test]
fn what_somebody_typed_meanwhile_is_not_said_to_be_added() {
    let world = World::new();
    let before = novel(&world);
    let file = left(&world, &[]);
    world.ok(&["tree", "draft", "Novel", "All week it rained.\n\n", "--at", &before[2]]);
    let (code, done) = world.json(&["tree", "edit", "Novel", "--file", &file]);
    assert_eq!((code, done["added"].as_array().unwrap().len()), (Some(0), 0), "{done}");
    assert!(rendered(&world).contains("It snowed.\n\nAll week it rained."));
}

#[test]
fn a_file_that_was_not_changed_is_opened_again_and_called_by_the_short_id() {
    let world = World::new();
    novel(&world);
    for _ in 0..3 {
        let done = edited(&world, "true", &[]);
        assert!(done.code == Some(0) && !done.err.contains("texts of this tree wait"), "{done:?}");
    }
    let file = one_kept(&world);
    let (_, trees) = world.json(&["tree", "list"]);
    let named = format!("edit-{}-", trees["trees"][0]["short_id"].as_str().unwrap());
    assert!(file.contains(&named), "{file}");
    // Nor is it named where the text is another one by then.
    world.ok(&["tree", "append", "Novel", "More."]);
    let done = edited(&world, "true", &[]);
    assert!(!done.err.contains("texts of this tree wait") && !done.err.contains("nothing was"), "{done:?}");
    world.ok(&["tree", "undo", "Novel"]);
    kept(&world)
        .into_iter()
        .filter(|other| text(other) != file)
        .for_each(|other| fs::remove_file(other).unwrap());
    // Of one that holds something else a new one is made, and the other is named.
    fs::write(&file, "Something else.").unwrap();
    assert!(edited(&world, "true", &[]).err.contains(&file));
    assert_eq!(kept(&world).len(), 2);
}

#[test]
fn a_file_that_an_editor_may_have_still_outlives_one_that_changed_nothing() {
    let world = World::new();
    novel(&world);
    assert_eq!(edited(&world, "true", &[]).code, Some(0));
    let file = one_kept(&world);
    assert_eq!(edited(&world, "false", &[]).code, Some(2), "it is opened again, and nothing is changed");
    // The window of the first editor.
    let text = fs::read_to_string(&file).unwrap().replace("It rained", "It snowed");
    fs::write(&file, text).unwrap();
    world.ok(&["tree", "edit", "Novel", "--file", &file]);
    assert!(rendered(&world).contains("It snowed."));
    assert!(kept(&world).is_empty());
}

/// Marks are those that the file was opened with, whatever the passages say by then.
#[test]
fn marks_that_had_to_be_told_from_text_are_known_when_that_text_is_forgotten() {
    let world = World::new();
    let before = novel(&world);
    let literal = format!("All ⟦{}⟧ day", before[1]);
    world.ok(&["tree", "edit", "Novel", "--replace", "All day", &literal]);
    let done = edited(&world, "sed -i 's/stopped/ended/' \"$1\"; false", &[]);
    assert_eq!(done.code, Some(2), "{done:?}");
    let file = one_kept(&world);
    assert!(fs::read_to_string(&file).unwrap().contains(&format!("⟦{}·2⟧", before[1])), "control");
    world.ok(&["forget", "--text", &literal, "--yes", "--yes"]);
    let taken = world.run(&["tree", "edit", "Novel", "--file", &file]);
    assert!(taken.code == Some(0) || taken.code == Some(1), "{taken:?}");
    let text = rendered(&world);
    assert!(text.contains("The rain ended.") && !text.contains("·2"), "{text}");
}

#[test]
fn a_text_of_another_view_is_refused_there() {
    let world = World::new();
    let before = novel(&world);
    world.ok(&["tree", "view", "new", "Novel", "other"]);
    for more in [&[][..], &[before[1].as_str()]] {
        let file = left(&world, more);
        let words = [&["tree", "edit", "Novel", "--view", "other"], more, &["--file", &file]].concat();
        let refused = world.run(&words);
        assert_eq!(refused.code, Some(2), "{words:?}: {refused:?}");
        assert!(refused.err.contains("a text of the view main, not of other"), "{refused:?}");
        let words = [&["tree", "edit", "Novel"], more, &["--file", &file]].concat();
        world.ok(&words);
        world.ok(&["tree", "undo", "Novel"]);
    }
}

#[test]
fn the_command_that_takes_a_text_in_later_names_its_view() {
    let world = World::new();
    let before = novel(&world);
    world.ok(&["tree", "view", "new", "Novel", "other"]);
    for (more, change) in
        [(&[][..], "s/It rained/It snowed/"), (&[before[1].as_str()], "s/It snowed/It hailed/")]
    {
        let view = [&["--view", "other"], more].concat();
        let done = edited(&world, &format!("sed -i '{change}' \"$1\"; false"), &view);
        assert_eq!(done.code, Some(2), "{done:?}");
        let file = one_kept(&world);
        let wrong = [
            &["tree", "edit", "Novel", "--view", "other", "--file", &file][..],
            match more {
                [] => &[before[1].as_str()],
                _ => &[],
            },
        ];
        let refused = world.run(&wrong.concat());
        assert!(
            refused.err.contains("`drawloom tree edit TREE ")
                && refused.err.contains(" --view other --file ")
        );
        let mut parts = done.err.split('`');
        let command = parts.find_map(|part| part.strip_prefix("drawloom ")).unwrap();
        let words: Vec<&str> = command.split(' ').collect();
        world.ok(&words);
        assert!(kept(&world).is_empty(), "{command}");
    }
    assert!(world.ok(&["tree", "text", "Novel", "--view", "other"]).contains("It hailed."));
}

#[test]
fn a_file_that_was_moved_away_or_saved_under_another_name_is_still_known() {
    let world = World::new();
    novel(&world);
    let file = left(&world, &[]);
    let beside = std::path::Path::new(&file).with_file_name("mine.md");
    fs::copy(&file, &beside).unwrap();
    let away = text(&world.path("away.md"));
    fs::rename(&file, &away).unwrap();
    // Whoever opens an editor looks for what is left over.
    let done = edited(&world, "sed -i 's/stopped/went on/'", &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let taken = world.ok(&["tree", "edit", "Novel", "--file", &away]);
    assert!(taken.contains("1 passage changed"), "{taken}");
    assert_eq!(rendered(&world), "# Rain\n\nIt snowed.\n\nAll day it rained.\n\nThe rain went on.\n");
    let again = world.run(&["tree", "edit", "Novel", "--file", &text(&beside)]);
    assert_eq!(again.code, Some(3), "{again:?}");
    assert_eq!(rendered(&world), "# Rain\n\nIt snowed.\n\nAll day it rained.\n\nThe rain went on.\n");
}

#[test]
fn what_a_file_was_made_of_that_cannot_be_read_is_no_reason_to_write_over_others() {
    let world = World::new();
    novel(&world);
    let file = left(&world, &[]);
    let name = std::path::Path::new(&file).file_stem().unwrap().to_str().unwrap().to_owned();
    let base = world.home().join("edits").join(format!(".{name}.json"));
    let held = fs::read_to_string(&base).unwrap();
    fs::write(&base, &held[..20]).unwrap();
    let refused = world.run(&["tree", "edit", "Novel", "--file", &file]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.err.contains("does not say what") && !refused.err.contains("taken in"), "{refused:?}");
    fs::write(&base, held).unwrap();
    world.ok(&["tree", "edit", "Novel", "--file", &file]);
}

/// Without its marks nobody knows which of the words were forgotten.
#[test]
fn what_was_forgotten_does_not_come_back_by_a_file_without_its_marks() {
    for script in ["s/⟦[0-9a-z]*⟧//g", "1d"] {
        let world = World::new();
        let before = novel(&world);
        let done =
            edited(&world, &format!("sed -i -e 's/It rained/It snowed/' -e '{script}' \"$1\"; false"), &[]);
        assert_eq!(done.code, Some(2), "{done:?}");
        let file = one_kept(&world);
        world.ok(&["forget", &format!("Novel:{}", before[2]), "--yes", "--yes"]);
        let taken = world.run(&["tree", "edit", "Novel", "--file", &file]);
        assert_eq!(taken.code, Some(3), "{script}: {taken:?}");
        assert!(taken.err.contains("was forgotten since"), "{taken:?}");
        assert!(!rendered(&world).contains("All day") && fs::exists(&file).unwrap(), "{script}");
    }
}

#[test]
fn what_is_taken_in_again_is_there_once() {
    let world = World::new();
    novel(&world);
    let done = edited(&world, "echo Ending. >> \"$1\"; false", &[]);
    assert_eq!(done.code, Some(2), "{done:?}");
    let file = one_kept(&world);
    let copy = text(&world.path("copy.md"));
    fs::copy(&file, &copy).unwrap();
    let base = std::path::Path::new(&file);
    let base = base.with_file_name(format!(".{}.json", base.file_stem().unwrap().to_str().unwrap()));
    let held = fs::read(&base).unwrap();
    world.ok(&["tree", "edit", "Novel", "--file", &copy]);
    let once = rendered(&world);
    assert_eq!(once.matches("Ending.").count(), 1);
    assert!(kept(&world).is_empty());
    let refused = world.run(&["tree", "edit", "Novel", "--file", &copy]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    // As where its process died before it could say that it is in.
    fs::write(&base, held).unwrap();
    let again = world.ok(&["tree", "edit", "Novel", "--file", &copy]);
    assert_eq!((again.as_str(), rendered(&world)), ("nothing was changed\n", once));
    // Two at one time.
    let done = edited(&world, "echo Again. >> \"$1\"; false", &[]);
    assert_eq!(done.code, Some(2), "{done:?}");
    let file = one_kept(&world);
    let racing: Vec<_> =
        (0..4).map(|_| world.command(&["tree", "edit", "Novel", "--file", &file]).spawn().unwrap()).collect();
    let codes: Vec<_> = racing.into_iter().map(|mut child| child.wait().unwrap().code()).collect();
    assert!(codes.contains(&Some(0)), "{codes:?}");
    assert_eq!(rendered(&world).matches("Again.").count(), 1, "{codes:?}");
}

/// A passage goes from one place to another whole, or stays.
#[test]
fn half_a_move_is_not_taken_in() {
    for (at, words) in [(0, ["Rain", "Snow"]), (3, ["stopped", "ended"])] {
        let world = World::new();
        let before = novel(&world);
        let last = format!("/⟦{}⟧/{{h;d}}", before[3]);
        let done = edited(
            &world,
            &format!(
                "sh -c 'tac \"$1\" | sed -e \"{last}\" -e \"/# Rain/{{G}}\" | tac > x && cp x \"$1\"; false' -"
            ),
            &[],
        );
        assert_eq!(done.code, Some(2), "{done:?}");
        let file = one_kept(&world);
        world.ok(&["tree", "edit", "Novel", "--replace", words[0], words[1]]);
        let now = rendered(&world);
        let taken = world.run(&["tree", "edit", "Novel", "--file", &file]);
        assert_eq!((taken.code, rendered(&world)), (Some(1), now), "{at}: {taken:?}");
        assert!(taken.err.contains(&before[0]) && taken.err.contains(&before[3]), "{taken:?}");
    }
}

#[test]
fn what_a_file_was_made_of_may_be_anything() {
    let world = World::new();
    let before = novel(&world);
    let file = left(&world, &[]);
    let base = std::path::Path::new(&file);
    let base = base.with_file_name(format!(".{}.json", base.file_stem().unwrap().to_str().unwrap()));
    let held = fs::read_to_string(&base).unwrap();
    let doubled =
        held.replacen("[[", &format!("[{},[", &held[held.find("[\"").unwrap()..=held.find(']').unwrap()]), 1);
    for hostile in [doubled.as_str(), "[]", "{\"tree\": 1}"] {
        fs::write(&base, hostile).unwrap();
        assert_eq!(world.run(&["tree", "edit", "Novel", "--file", &file]).code, Some(3), "{hostile}");
    }
    fs::remove_file(&base).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &base, rustix::fs::Mode::RWXU).unwrap();
    assert_eq!(world.run(&["tree", "edit", "Novel", "--file", &file]).code, Some(3));
    fs::remove_file(&base).unwrap();
    // A text of one passage has no first line: where it lies says that it came from here.
    let one = edited(&world, "sed -i 's/It rained/It hailed/' \"$1\"; false", &[&before[1]]);
    assert_eq!(one.code, Some(2));
    for file in kept(&world) {
        let file = text(&file);
        let stem = std::path::Path::new(&file).file_stem().unwrap().to_str().unwrap().to_owned();
        fs::remove_file(world.home().join("edits").join(format!(".{stem}.json"))).ok();
        assert_eq!(
            world.run(&["tree", "edit", "Novel", &before[1], "--file", &file]).code,
            Some(3),
            "{file}"
        );
    }
}

#[test]
fn what_was_taken_back_goes_in_again_from_a_file_of_which_a_part_was_in() {
    let world = World::new();
    novel(&world);
    let both = "sed -i -e 's/It rained/It snowed/' -e 's/stopped/went on/'";
    edited(&world, &format!("{both} \"$1\"; false"), &[]);
    let file = one_kept(&world);
    world.ok(&["tree", "edit", "Novel", "--replace", "stopped", "ended"]);
    assert_eq!(world.run(&["tree", "edit", "Novel", "--file", &file]).code, Some(1), "the last collides");
    // What went in is taken back, and so is what was in the way.
    world.ok(&["tree", "undo", "Novel"]);
    world.ok(&["tree", "undo", "Novel"]);
    assert_eq!(rendered(&world), NOVEL);
    world.ok(&["tree", "edit", "Novel", "--file", &file]);
    let all = NOVEL.replace("It rained", "It snowed").replace("stopped", "went on");
    assert_eq!((rendered(&world), kept(&world).len()), (all, 0));
}

//! A document edited in an editor: stand-ins that change the file in place, and every way an editor ends badly.

use std::fs;
use std::path::PathBuf;

use crate::program::program;
use crate::trust::PersonAtTerminal;
use crate::world::{Run, World, piped, text};

pub(crate) const NOVEL: &str = "# Rain\n\nIt rained.\n\nAll day it rained.\n\nThe rain stopped.\n";

/// The document and the short ids of its passages.
pub(crate) fn novel(world: &World) -> Vec<String> {
    fs::write(world.path("novel.md"), NOVEL).unwrap();
    world.ok(&["tree", "new", "--title", "Novel", "--file", &text(&world.path("novel.md"))]);
    ids(world)
}

pub(crate) fn ids(world: &World) -> Vec<String> {
    let (_, shown) = world.json(&["tree", "show", "Novel"]);
    let nodes = shown["nodes"].as_array().unwrap().iter().skip(1);
    nodes.map(|node| node["short_id"].as_str().unwrap().to_owned()).collect()
}

pub(crate) fn rendered(world: &World) -> String {
    world.ok(&["tree", "text", "Novel"])
}

/// Edits with a program in the place of an editor.
pub(crate) fn edited(world: &World, editor: &str, more: &[&str]) -> Run {
    let mut command = world.command(&[&["tree", "edit", "Novel"], more].concat());
    command.env("EDITOR", editor).output().unwrap().into()
}

/// Files that wait to be taken in.
pub(crate) fn kept(world: &World) -> Vec<PathBuf> {
    let found =
        fs::read_dir(world.home().join("edits")).into_iter().flatten().map(|file| file.unwrap().path());
    found.filter(|file| file.extension().is_some_and(|ending| ending == "md")).collect()
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
        ("fails", format!("sh -c '{changes}; exit 3' sh"), 2, "ended with 3"),
        ("is killed", format!("sh -c '{changes}; kill -9 $$' sh"), 2, "was ended by signal 9"),
        ("is not UTF-8", "sh -c 'printf \"\\377\" >>\"$1\"' sh".to_owned(), 2, "is not UTF-8"),
        ("has a mark of its own", "sed -i '2s/^/⟦zzzz⟧/'".to_owned(), 2, "⟦zzzz⟧ in line 2 marks no passage"),
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
        } else {
            fs::remove_file(&files[0]).unwrap();
        }
    }
    let empty = edited(&world, "sh -c ': >\"$1\"' sh", &[]);
    assert!(empty.code == Some(2) && empty.err.contains("its file was removed"), "{empty:?}");
    assert!(rendered(&world) == NOVEL && kept(&world).is_empty(), "there is nothing to keep");
    let missing = edited(&world, "no-such-editor", &[]);
    assert!(missing.code == Some(2) && missing.err.contains("was not found"), "{missing:?}");
    for blank in ["", " \t "] {
        let none = edited(&world, blank, &[]);
        assert!(none.code == Some(2) && none.err.contains("VISUAL or EDITOR"), "{none:?}");
    }
    assert!(kept(&world).is_empty(), "what was never edited is not kept");
    let at_once = edited(&world, "true", &[]);
    assert!(at_once.code == Some(0) && at_once.err.contains("code --wait"), "{at_once:?}");
    assert_eq!(kept(&world).len(), 1, "its window may still be open");
    assert_eq!(rendered(&world), NOVEL);
}

/// Edits at a terminal, where a question is answered; the exit code and what was shown there.
fn asked(world: &World, editor: &str, more: &[&str], answer: &str) -> (Option<i32>, String) {
    let mut command = world.command(&[&["tree", "edit", "Novel"], more].concat());
    command.env("EDITOR", editor);
    PersonAtTerminal { echo: false, stdout: false, question: "[y/N] ", answer }.answers(&command)
}

#[test]
fn an_empty_file_is_asked_about_at_a_terminal() {
    let world = World::new();
    let before = novel(&world);
    let empty = "sh -c ': >\"$1\"' sh";
    let (code, screen) = asked(&world, empty, &[], "n\n");
    assert_eq!((code, rendered(&world).as_str(), ids(&world)), (Some(2), NOVEL, before.clone()), "{screen}");
    assert!(screen.contains("nothing was changed") && screen.contains("file was removed"), "{screen}");
    assert!(kept(&world).is_empty(), "there is nothing to keep");
    let marks_alone = "sed -i '1!s/[A-Za-z#. ]*$//'";
    let (code, screen) = asked(&world, marks_alone, &[], "n\n");
    assert_eq!((code, rendered(&world).as_str()), (Some(2), NOVEL), "only marks are left: {screen}");
    let (code, screen) = asked(&world, empty, &[], "y\n");
    assert_eq!((code, rendered(&world).as_str()), (Some(0), ""), "{screen}");
    assert!(kept(&world).is_empty(), "it was taken in");
    world.ok(&["tree", "undo", "Novel"]);
    assert_eq!((rendered(&world).as_str(), ids(&world)), (NOVEL, before), "one step");
}

#[test]
fn the_only_passage_is_asked_about_as_one() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Novel", "--text", "It rained."]);
    let (code, screen) = asked(&world, "sh -c ': >\"$1\"' sh", &[], "n\n");
    assert!(code == Some(2) && screen.contains("take the only passage out?"), "{screen}");
}

#[test]
fn an_emptied_passage_is_asked_about_too() {
    let world = World::new();
    let passage = novel(&world)[1].clone();
    let empty = "sh -c ': >\"$1\"' sh";
    fs::write(world.path("empty.md"), "").unwrap();
    let file = text(&world.path("empty.md"));
    for done in
        [edited(&world, empty, &[&passage]), world.run(&["tree", "edit", "Novel", &passage, "--file", &file])]
    {
        assert!(done.code == Some(2) && done.err.contains("nothing was changed"), "{done:?}");
        assert!(rendered(&world) == NOVEL && kept(&world).is_empty(), "there is nothing to keep");
    }
    let (code, screen) = asked(&world, empty, &[&passage], "n\n");
    assert_eq!((code, rendered(&world).as_str()), (Some(2), NOVEL), "{screen}");
    let (code, screen) = asked(&world, empty, &[&passage], "y\n");
    assert_eq!((code, rendered(&world)), (Some(0), NOVEL.replace("It rained.\n\n", "")), "{screen}");
    assert!(screen.contains(&format!("take {passage} out?")), "{screen}");
    world.ok(&["tree", "edit", "Novel", &passage, "--text", "Rain."]);
    world.ok(&["tree", "edit", "Novel", &passage, "--text", ""]);
}

#[test]
fn marks_that_are_doubled_or_moved_change_no_text() {
    let world = World::new();
    let before = novel(&world);
    let [a, b, c, d] = [0, 1, 2, 3].map(|at| format!("⟦{}⟧", before[at]));
    let (one, two, three, four) =
        ("# Rain\n\n", "It rained.\n\n", "All day it rained.\n\n", "The rain stopped.\n");
    for (what, file) in [
        ("a passage doubled with its mark", format!("{a}{one}{b}{two}{b}{two}{c}{three}{d}{four}")),
        ("passages swapped with their marks", format!("{a}{one}{c}{three}{b}{two}{d}{four}")),
        ("the last passage first", format!("{d}{four}{a}{one}{b}{two}{c}{three}")),
        ("a mark moved into another passage", format!("{a}# Ra{c}in\n\n{b}{two}{three}{d}{four}")),
        ("a mark doubled within its passage", format!("{a}{one}{b}It {b}rained.\n\n{c}{three}{d}{four}")),
        ("all marks at the end", format!("{one}{two}{three}{four}{d}{c}{b}{a}")),
        ("a passage and its mark gone", format!("{a}{one}{c}{three}{d}{four}")),
        ("two passages joined", format!("{a}{one}{b}It rained. {c}{three}{d}{four}")),
        ("a passage parted", format!("{a}{one}{b}{two}{c}All day\n\nit rained.\n\n{d}{four}")),
    ] {
        let marks = [&a, &b, &c, &d];
        let expected = marks.iter().fold(file.clone(), |text, mark| text.replace(mark.as_str(), ""));
        fs::write(world.path("edited.md"), file + "\n").unwrap();
        let done = edited(&world, &format!("cp {}", text(&world.path("edited.md"))), &[]);
        assert_eq!((done.code, rendered(&world)), (Some(0), expected.clone()), "{what}: {done:?}");
        assert!(kept(&world).is_empty(), "{what}");
        if expected != NOVEL {
            world.ok(&["tree", "undo", "Novel"]);
        }
        assert_eq!((rendered(&world).as_str(), ids(&world)), (NOVEL, before.clone()), "{what}");
    }
}

#[test]
fn marks_that_stand_in_the_text_are_text() {
    let world = World::new();
    let before = novel(&world);
    let own = format!("⟦{}⟧ and ⟦zzzz⟧ are text.\n\n", before[0]);
    world.ok(&["tree", "edit", "Novel", &before[1], "--text", &own]);
    let with_marks = NOVEL.replace("It rained.\n\n", &own);
    assert_eq!(rendered(&world), with_marks);
    // What marks the passages is told from them, and all of it may go.
    let opened =
        format!("sh -c 'grep -q \"⟦{}·2⟧# Rain\" \"$1\" && sed -i s/rained/poured/ \"$1\"' sh", before[0]);
    let done = edited(&world, &opened, &[]);
    assert_eq!((done.code, rendered(&world)), (Some(0), with_marks.replace("rained", "poured")), "{done:?}");
    let unmarked = edited(&world, "sed -i s/⟦[^⟧]*·2⟧//g", &[]);
    assert_eq!(unmarked.out, "nothing was changed\n", "{unmarked:?}");
    // One that is invented is named with its line, and the file it stands in.
    let invented = edited(&world, "sed -i 's/poured/⟦yyyy·2⟧ poured/'", &[]);
    assert_eq!((invented.code, rendered(&world)), (Some(2), with_marks.replace("rained", "poured")));
    let files = kept(&world);
    assert!(
        invented.err.contains("⟦yyyy·2⟧") && invented.err.contains(files[0].to_str().unwrap()),
        "{invented:?}"
    );
    assert!(fs::read_to_string(&files[0]).unwrap().contains("⟦yyyy·2⟧ poured"), "the edited text is there");
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

/// An editor that changes words while somebody else does something with the document.
fn meanwhile(command: &str, changes: &str) -> String {
    format!("sh -c '{} tree {command} >&2 && sed -i \"{changes}\" \"$1\"' sh", program().display())
}

#[test]
fn where_all_was_changed_elsewhere_meanwhile_the_edited_text_is_kept() {
    let world = World::new();
    let before = novel(&world);
    let other =
        meanwhile(&format!("edit Novel {} --replace It Elsewhere", before[1]), "s/It rained/It poured/");
    let done = edited(&world, &other, &[]);
    assert_eq!((done.code, done.out.as_str()), (Some(1), "nothing was changed\n"), "{done:?}");
    let files = kept(&world);
    assert!(done.err.contains(&format!("changed elsewhere meanwhile: {}", before[1])), "{}", done.err);
    assert!(done.err.contains(files[0].to_str().unwrap()), "{}", done.err);
    assert!(fs::read_to_string(&files[0]).unwrap().contains("It poured."));
    assert_eq!(rendered(&world), NOVEL.replace("It rained", "Elsewhere rained"));
}

#[test]
fn a_passage_typed_into_meanwhile_is_not_edited_over() {
    let world = World::new();
    let passage = novel(&world)[1].clone();
    for (other, there) in [
        (format!("draft Novel --at {passage} Elsewhere"), "Elsewhere"),
        (format!("edit Novel {passage} --text Again"), "Again"),
    ] {
        let done = edited(&world, &meanwhile(&other, "s/.*/Poured./"), &[&passage]);
        assert_ne!(done.code, Some(0), "{done:?}");
        assert!(done.err.contains(&format!("{passage} was changed meanwhile")), "{}", done.err);
        assert!(done.err.contains("edit the passage again with what it says"), "{}", done.err);
        assert!(!done.err.contains("takes it in"), "it would be refused: {}", done.err);
        let files = kept(&world);
        assert!(done.err.contains(files[0].to_str().unwrap()), "{}", done.err);
        assert!(fs::read_to_string(&files[0]).unwrap().contains("Poured."));
        assert!(rendered(&world).contains(there), "{}", rendered(&world));
        fs::remove_file(&files[0]).unwrap();
    }
}

#[test]
fn a_passage_that_was_left_out_meanwhile_is_not_edited_unseen() {
    for (other, is_one) in [("exclude", false), ("exclude", true), ("prune", false), ("prune", true)] {
        let world = World::new();
        let passage = novel(&world)[1].clone();
        let command = meanwhile(&format!("{other} Novel {passage}"), "s/It rained/It poured/");
        let named = [passage.as_str()];
        let done = edited(&world, &command, if is_one { &named } else { &[] });
        assert_ne!(done.code, Some(0), "{other} {is_one}: {done:?}");
        assert!(done.err.contains(&passage) && done.err.contains("the edited text lies in"), "{}", done.err);
        assert!(fs::read_to_string(&kept(&world)[0]).unwrap().contains("It poured"), "{other} {is_one}");
    }
}

#[test]
fn a_pending_edit_is_opened_and_what_comes_of_it_is_one_step() {
    let world = World::new();
    let passage = novel(&world)[1].clone();
    world.ok(&["tree", "draft", "Novel", "--at", &passage, "It thundered.\n\n"]);
    let operations = || world.ok(&["tree", "log", "Novel"]).lines().count();
    let before = operations();
    for (editor, code) in [("no-such-editor", 2), ("cat", 0)] {
        assert_eq!(edited(&world, editor, &[&passage]).code, Some(code), "{editor}");
        assert_eq!(operations(), before, "{editor} changed nothing");
        kept(&world).iter().for_each(|file| fs::remove_file(file).unwrap());
    }
    let missing = world.run(&["tree", "edit", "Novel", &passage, "--replace", "rained", "snowed"]);
    assert_eq!((missing.code, operations()), (Some(3), before), "the pending edit is its text: {missing:?}");
    let done = edited(&world, "sed -i s/thundered/hailed/", &[&passage]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(rendered(&world).contains("It hailed."));
    world.ok(&["tree", "undo", "Novel"]);
    assert!(rendered(&world).contains("It thundered."), "{}", rendered(&world));
}

#[test]
fn a_command_that_is_refused_commits_nothing_that_is_typed() {
    let world = World::new();
    let before = novel(&world);
    let id = before[3].as_str();
    world.ok(&["tree", "draft", "Novel", "\nAnd then?"]);
    world.ok(&["tree", "draft", "Novel", "--at", &before[1], "It thundered.\n\n"]);
    let operations = || world.ok(&["tree", "log", "Novel"]).lines().count();
    let done = operations();
    fs::write(world.path("empty.md"), "").unwrap();
    fs::write(world.path("mark.md"), format!("⟦{id}⟧The rain ⟦zzzz⟧stopped.")).unwrap();
    let (empty, mark) = (text(&world.path("empty.md")), text(&world.path("mark.md")));
    for refused in [
        &["edit", "Novel", "--file", "missing.md"] as &[&str],
        &["edit", "Novel", "--file", &empty],
        &["edit", "Novel", "--file", &mark],
        &["edit", "Novel", "--replace", "It rained.", "It snowed."],
        &["edit", "Novel", "--from", "zzzzzz"],
        &["merge", "Novel", &before[0]],
        &["split", "Novel", id, "--after", "rain"],
        &["split", "Novel", &before[1], "--after", "It rained"],
    ] {
        let refused = world.run(&[&["tree"], refused].concat());
        assert_ne!(refused.code, Some(0), "{refused:?}");
        assert_eq!(operations(), done, "{refused:?}");
    }
    for editor in ["no-such-editor", ""] {
        let refused = edited(&world, editor, &[]);
        assert_ne!(refused.code, Some(0), "{refused:?}");
        assert_eq!(operations(), done, "{refused:?}");
    }
    // What is done takes it in.
    world.ok(&["tree", "edit", "Novel", "--replace", "thundered", "hailed"]);
    let changed = NOVEL.replace("It rained", "It hailed") + "\nAnd then?";
    assert_eq!(world.ok(&["tree", "text", "Novel", "--committed"]), changed);
    world.ok(&["tree", "draft", "Novel", " Sun."]);
    assert_eq!(edited(&world, "sed -i s/hailed/snowed/", &[]).code, Some(0));
    assert_eq!(
        world.ok(&["tree", "text", "Novel", "--committed"]),
        changed.replace("hailed", "snowed") + " Sun."
    );
}

#[test]
fn what_left_the_path_meanwhile_is_named_and_the_rest_goes_in() {
    let world = World::new();
    let before = novel(&world);
    let pruned = meanwhile(&format!("prune Novel {}", before[2]), "s/rained/poured/; \\$aNew.");
    let done = edited(&world, &pruned, &[]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let off = format!("are on the path no more: {} {}", before[2], before[3]);
    assert!(done.out.contains("1 passage changed (") && done.err.contains(&off), "{done:?}");
    assert_eq!(rendered(&world), "# Rain\n\nIt poured.\n\n");
    let files = kept(&world);
    assert!(done.err.contains(files[0].to_str().unwrap()), "{}", done.err);
    assert!(fs::read_to_string(&files[0]).unwrap().contains("New."));
    fs::remove_file(&files[0]).unwrap();
    world.ok(&["tree", "undo", "Novel"]);
    world.ok(&["tree", "undo", "Novel"]);
    assert_eq!(rendered(&world), NOVEL);
    let branched =
        meanwhile(&format!("edit Novel {} --text Dry. --as branch", before[1]), "s/All day/All night/");
    let done = edited(&world, &branched, &[]);
    assert_eq!((done.code, done.out.as_str()), (Some(1), "nothing was changed\n"), "{done:?}");
    assert!(done.err.contains(&format!("are on the path no more: {}", before[2])), "{}", done.err);
    assert_eq!((rendered(&world).as_str(), kept(&world).len()), ("# Rain\n\nDry.\n\n", 1));
}

#[test]
fn what_an_editor_puts_in_the_place_of_its_file_is_not_opened() {
    let world = World::new();
    novel(&world);
    let hard_link = format!("ln -f {} \"$1\"", text(&world.home().join("loom.db")));
    for (what, code, said) in [
        ("rm \"$1\"; ln -s /dev/zero \"$1\"", 2, "is a device"),
        ("rm \"$1\"; mkfifo \"$1\"", 2, "is a FIFO"),
        (hard_link.as_str(), 4, "belongs to the store"),
        ("rm \"$1\"", 3, "is gone"),
        ("rm \"$1\"; exit 3", 2, "is gone"),
    ] {
        for node in [None, Some(ids(&world)[1].clone())] {
            let more: Vec<&str> = node.as_deref().into_iter().collect();
            let done = edited(&world, &format!("sh -c '{what}' sh"), &more);
            assert_eq!(done.code, Some(code), "{what}: {done:?}");
            assert!(done.err.contains(said) && done.err.contains("/edits/edit-"), "{what}: {}", done.err);
            assert!(!done.err.contains("edited text lies"), "{what}: {}", done.err);
            kept(&world).iter().for_each(|file| fs::remove_file(file).unwrap());
            assert_eq!(rendered(&world), NOVEL, "{what}");
        }
    }
}

#[test]
fn the_line_above_the_text_is_no_text_and_half_a_mark_is_named() {
    let world = World::new();
    let before = novel(&world);
    let done = edited(&world, "sed -i '1s/^/Above.\\n\\n/'", &[]);
    assert_eq!((done.code, rendered(&world)), (Some(0), format!("Above.\n\n{NOVEL}")), "{done:?}");
    world.ok(&["tree", "undo", "Novel"]);
    let wrapped = edited(&world, "sed -i '1s/ /\\n/g'", &[]);
    assert_eq!((wrapped.out.as_str(), rendered(&world).as_str()), ("nothing was changed\n", NOVEL));
    let half = edited(&world, &format!("sed -i s/⟦{0}⟧It/⟦{0}It/", before[1]), &[]);
    assert_eq!((half.code, rendered(&world).as_str()), (Some(2), NOVEL), "{half:?}");
    let files = kept(&world);
    let named = half.err.contains(&format!("⟦{}It in line 4", before[1]));
    assert!(named && half.err.contains(files[0].to_str().unwrap()), "{half:?}");
    let id = &before[1];
    let (most, least) = (&id[1..], &id[..2]);
    for left in [format!("⟦{most}⟧"), "⟦⟧".to_owned(), format!("⟦{least}"), format!("{most}⟧")] {
        let half = edited(&world, &format!("sed -i s/⟦{id}⟧It/{left}It/"), &[]);
        assert_eq!((half.code, rendered(&world).as_str()), (Some(2), NOVEL), "{left}: {half:?}");
    }
    let others = edited(&world, "sed -i s/rained/⟦e⟧ρ/", &[]);
    assert_eq!(others.code, Some(0), "control: brackets that are no marks: {others:?}");
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
    // The next one names it, that of another document does not.
    let next = edited(&world, "true", &[]);
    assert!(next.err.contains(&format!("wait in {}:", text(&files[0]))), "{next:?}");
    world.ok(&["tree", "new", "--title", "Other", "--text", "Other."]);
    let other = world.command(&["tree", "edit", "Other"]).env("EDITOR", "true").output().unwrap();
    assert!(!Run::from(other).err.contains(files[0].to_str().unwrap()));
    let (_, found) = world.json(&["doctor", "--quick"]);
    let edits = found["checks"].as_array().unwrap().iter().find(|check| check["name"] == "edits").unwrap();
    assert!(edits["state"] == "warn" && edits["why"].as_str().unwrap().contains(files[0].to_str().unwrap()));
    // Lets the editor end.
    fs::write(&fifo, "end\n").unwrap();
}

//! What happens beside an editor while it is open: passages are forgotten or typed in, its file is copied or taken in.

use std::fs;

use crate::editing::{edited, ids, kept, novel, rendered};
use crate::editing_later::one_kept;
use crate::terminal::Terminal;
use crate::trust::with_terminal;
use crate::world::{World, text};

/// An editor whose author forgot a passage in another process while it was open, and which then does this to its file.
fn forgetting(world: &World, node: &str, then: &str) -> crate::world::Run {
    let program = env!("CARGO_BIN_EXE_drawloom");
    let home = text(&world.home());
    let script = format!(
        "sh -c '{program} --home {home} --quiet forget Novel:{node} --yes --yes >/dev/null && {then}' -"
    );
    edited(world, &script, &[])
}

#[test]
fn words_forgotten_while_an_editor_is_open_are_not_stored_in_another_passage() {
    let moved = "sed -i -e \"/^All day/d\" -e \"s/It rained./It rained. All day it rained./\" \"$1\"";
    let copied = "sed -i \"s/It rained./It rained. All day it rained./\" \"$1\"";
    for then in [moved, copied] {
        let world = World::new();
        let before = novel(&world);
        let done = forgetting(&world, &before[2], then);
        assert!(done.code == Some(3) && done.err.contains("was forgotten since"), "{then}: {done:?}");
        assert!(!rendered(&world).contains("All day"), "{then}");
    }
    let world = World::new();
    let before = novel(&world);
    forgetting(&world, &before[2], "sed -i \"s/It rained/It snowed/\" \"$1\"");
    assert!(rendered(&world).contains("It snowed."), "control: what was not forgotten goes in");
}

/// The mark of a forgotten passage does not tell what it said: nothing of such a file is taken in later either.
#[test]
fn words_forgotten_while_an_editor_is_open_do_not_come_back_by_the_file_that_stays() {
    let world = World::new();
    let before = novel(&world);
    let then = format!(
        "sed -i -e \"s/⟦{}⟧.*/⟦{}⟧-/\" -e \"s/stopped./stopped. All day it rained./\" \"$1\"",
        before[2], before[2]
    );
    let done = forgetting(&world, &before[2], &then);
    assert!(done.code == Some(3) && done.err.contains("(line 6)"), "{done:?}");
    let file = one_kept(&world);
    let refused = world.run(&["tree", "edit", "Novel", "--file", &file]);
    assert!(refused.code == Some(3) && refused.err.contains("was forgotten since"), "{refused:?}");
    // Without its first line it is a copy: the mark that stands in it is known.
    let copy = text(&world.path("copy.md"));
    let saved = fs::read_to_string(&file).unwrap();
    fs::write(&copy, saved.split_once('\n').unwrap().1).unwrap();
    let refused = world.run(&["tree", "edit", "Novel", "--file", &copy]);
    assert!(refused.code == Some(3) && refused.err.contains("stands in line 5"), "{refused:?}");
    let database = fs::read(world.home().join("loom.db")).unwrap();
    let words = b"All day it rained";
    assert!(!database.windows(words.len()).any(|found| found == words));
}

/// It is left and named, and the rest goes in, also where its own text was edited too.
#[test]
fn a_passage_that_was_edited_and_forgotten_holds_up_no_other_one() {
    let world = World::new();
    let before = novel(&world);
    let both = "sed -i -e \"s/All day/All week/\" -e \"s/It rained/It snowed/\" \"$1\"";
    let done = forgetting(&world, &before[2], both);
    assert!(done.code == Some(1) && done.err.contains(&before[2]), "{done:?}");
    let now = rendered(&world);
    assert!(now.contains("It snowed.") && !now.contains("All week"), "{now}");
    let again = world.run(&["tree", "edit", "Novel", "--file", &one_kept(&world)]);
    assert!(again.code == Some(1) && again.err.contains(&before[2]), "{again:?}");
    assert_eq!(rendered(&world), now);
}

#[test]
fn words_of_a_forgotten_last_passage_do_not_come_back_behind_it() {
    let world = World::new();
    let before = novel(&world);
    let done = forgetting(&world, &before[3], "echo \"And then: The rain stopped.\" >> \"$1\"");
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(!rendered(&world).contains("stopped"), "{}", rendered(&world));
}

#[test]
fn no_command_is_named_for_a_text_of_which_nothing_is_left() {
    let program = env!("CARGO_BIN_EXE_drawloom");
    let world = World::new();
    novel(&world);
    let home = text(&world.home());
    let purged = format!(
        "sh -c '{program} --home {home} --quiet tree purge Novel --yes --yes >/dev/null && sed -i s/stopped/ended/ \"$1\"' -"
    );
    let done = edited(&world, &purged, &[]);
    assert!(done.code == Some(3) && done.err.contains("edits/"), "{done:?}");
    assert!(!done.err.contains("whole text") && !done.err.contains("takes it in"), "{done:?}");
    let world = World::new();
    let before = novel(&world);
    let home = text(&world.home());
    let passage = format!(
        "sh -c '{program} --home {home} --quiet forget Novel:{} --yes --yes >/dev/null && echo More >> \"$1\"' -",
        before[2]
    );
    let done = edited(&world, &passage, &[&before[2]]);
    assert!(done.code == Some(2) && done.err.contains("edits/"), "{done:?}");
    assert!(!done.err.contains("takes it in"), "{done:?}");
}

#[test]
fn the_file_of_a_command_that_was_killed_is_not_opened_again() {
    let world = World::new();
    novel(&world);
    let mut command = world.command(&["tree", "edit", "Novel"]);
    let opened = world.path("opened");
    command.env("EDITOR", format!("sh -c 'touch {}; exec sleep 3' -", text(&opened)));
    let null = std::process::Stdio::null;
    let mut killed = command.stdin(null()).stdout(null()).stderr(null()).spawn().unwrap();
    while !opened.exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let first = one_kept(&world);
    edited(&world, "true", &[]);
    let files = kept(&world);
    assert!(files.len() == 2 && files.contains(&first.into()), "{files:?}");
    // Its editor came back: that one is opened again.
    edited(&world, "true", &[]);
    assert_eq!(kept(&world), files);
}

#[test]
fn a_part_of_forgotten_words_does_not_come_back_and_a_few_of_them_hold_nothing_up() {
    let secret = "The zanzibarium secret was hidden here tonight.\n\n";
    let partial = "s/stopped./stopped. zanzibarium secret was hidden here tonight/";
    let wrapped = "s/stopped./stopped. The zanzibarium secret\\nwas hidden here/";
    for (said, change, code) in [
        (secret, partial, 3),
        (secret, wrapped, 3),
        ("AKIAIOSFODNN7EXAMPLE\n\n", "s/stopped./stopped. AKIAIOSFODNN7EXAMPLE/", 3),
        ("He.\n\n", "s/stopped./stopped. He. Here./", 0),
    ] {
        let world = World::new();
        let before = novel(&world);
        world.ok(&["tree", "edit", "Novel", &before[2], "--text", said]);
        let shown = ids(&world);
        let done = forgetting(&world, &shown[2], &format!("sed -i \"{change}\" \"$1\""));
        assert_eq!(done.code, Some(code), "{change}: {done:?}");
        assert_eq!(rendered(&world).contains("stopped. "), code == 0, "{change}");
    }
}

#[test]
fn a_move_into_a_passage_that_is_being_typed_is_left_whole() {
    let world = World::new();
    let before = novel(&world);
    // The last passage goes behind the title, while another client types there.
    let program = env!("CARGO_BIN_EXE_drawloom");
    let home = text(&world.home());
    let last = format!("/⟦{}⟧/{{h;d}}", before[3]);
    let typed =
        format!("{program} --home {home} --quiet tree draft Novel --at {} \"# Snow\" >/dev/null", before[0]);
    let script = format!(
        "sh -c 'tac \"$1\" | sed -e \"{last}\" -e \"/# Rain/{{G}}\" | tac > x && cp x \"$1\"; {typed}' -"
    );
    let done = edited(&world, &script, &[]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(rendered(&world).contains("The rain stopped."), "{}", rendered(&world));
    assert!(done.err.contains(&before[0]) && done.err.contains(&before[3]), "{done:?}");
}

#[test]
fn what_an_editor_leaves_beside_a_text_is_none() {
    let world = World::new();
    novel(&world);
    let done = edited(&world, "sh -c 'cp \"$1\" \"$1~\"; sed -i s/stopped/ended/ \"$1\"; false' -", &[]);
    assert_eq!(done.code, Some(2), "{done:?}");
    let file = one_kept(&world);
    // What it leaves hidden may hold forgotten words as well.
    let swap = world.home().join("edits/.edit-x.md.swp");
    fs::write(&swap, "All day it rained.").unwrap();
    let told = world.run(&["forget", "--text", "All day", "--dry-run"]);
    assert!(told.err.contains(&text(&swap)) && !told.err.contains(".json"), "{told:?}");
    // The backup holds what the document says: it is not opened in place of the text.
    let seen = edited(&world, "sh -c 'test \"${1##*.}\" = md' -", &[]);
    assert_eq!(seen.code, Some(0), "{seen:?}");
    world.ok(&["tree", "edit", "Novel", "--file", &file]);
    assert!(rendered(&world).contains("The rain ended."), "{}", rendered(&world));
}

#[test]
fn an_emptied_text_that_is_saved_again_during_the_question_stays_and_is_named() {
    let world = World::new();
    let passage = novel(&world)[1].clone();
    let before = rendered(&world);
    for more in [&[][..], &[passage.as_str()]] {
        let mut command = world.command(&[&["tree", "edit", "Novel"], more].concat());
        command.env("EDITOR", "sh -c ': >\"$1\"' sh");
        let mut terminal = Terminal::of_width(with_terminal(&command), 400);
        terminal.shows("take");
        let file = one_kept(&world);
        fs::write(&file, "It snowed.\n").unwrap();
        terminal.shows("[y/N]");
        terminal.types("n\n");
        terminal.shows("its file stays");
        let screen = terminal.contents();
        let command = [&["drawloom tree edit Novel"], more, &["--file", &file]].concat().join(" ");
        assert!(screen.contains("was saved again meanwhile, and stays"), "{screen}");
        assert!(screen.contains(&format!("`{command}`")), "{screen}");
        assert_eq!(terminal.ended(), Some(2), "{screen}");
        assert_eq!(
            (rendered(&world), fs::read_to_string(&file).unwrap()),
            (before.clone(), "It snowed.\n".into())
        );
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_first_text_that_is_in_already_is_there_once() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Novel"]);
    let done = edited(&world, "sh -c 'echo It rained. >> \"$1\"; false' -", &[]);
    assert_eq!(done.code, Some(2), "{done:?}");
    let file = one_kept(&world);
    let base = std::path::Path::new(&file);
    let base = base.with_file_name(format!(".{}.json", base.file_stem().unwrap().to_str().unwrap()));
    let (held, saved) = (fs::read(&base).unwrap(), fs::read(&file).unwrap());
    world.ok(&["tree", "edit", "Novel", "--file", &file]);
    let once = rendered(&world);
    assert_eq!(once.matches("It rained.").count(), 1, "{once}");
    // As where its process died before it could say that it is in.
    fs::write(&base, held).unwrap();
    fs::write(&file, saved).unwrap();
    world.ok(&["tree", "edit", "Novel", "--file", &file]);
    assert_eq!(rendered(&world), once);
}

#[test]
fn a_text_that_an_editor_has_open_is_taken_in_by_nobody_else() {
    let world = World::new();
    novel(&world);
    let program = env!("CARGO_BIN_EXE_drawloom");
    let home = text(&world.home());
    let other = format!("{program} --home {home} tree edit Novel --file \"$1\" 2>busy");
    let script = format!("sh -c 'echo Ending. >> \"$1\"; {other}; test $? = 6' -");
    let done = edited(&world, &script, &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(rendered(&world).matches("Ending.").count(), 1);
}

#[test]
fn a_result_of_a_tool_opens_with_what_the_tool_said() {
    let world = World::new();
    world.write(
        "lines.jsonl",
        "{\"tool_calls\": [{\"name\": \"list\", \"arguments\": {}}]}\n{\"text\": \"Seen.\"}\n",
    );
    let script = text(&world.home().join("lines.jsonl"));
    world.write(
        "config.toml",
        &format!("[model]\ndefault = \"script:{script}\"\n[agents.assistant]\ntools = [\"list\"]\n"),
    );
    fs::create_dir_all(world.path("project")).unwrap();
    fs::write(world.path("project/rain.md"), "It rained.").unwrap();
    world.ok(&["--workspace", &text(&world.path("project")), "chat", "-m", "Look."]);
    let (_, trees) = world.json(&["tree", "list"]);
    let tree = trees["trees"][0]["short_id"].as_str().unwrap().to_owned();
    let (_, shown) = world.json(&["tree", "show", &tree]);
    let nodes = shown["nodes"].as_array().unwrap();
    let result = nodes.iter().find(|node| node["author"] == "list").unwrap()["short_id"].as_str().unwrap();
    world.ok(&["tree", "edit", &tree, result, "--replace", "rain.md", "snow.md"]);
    let (_, shown) = world.json(&["tree", "show", &tree]);
    assert!(shown["nodes"].to_string().contains("snow.md"), "{shown}");
    let mut left = world.command(&["tree", "edit", &tree, result]);
    let left = left.env("EDITOR", "sed -i s/rain.md/hail.md/ \"$1\"; false").output().unwrap();
    assert_eq!(left.status.code(), Some(2));
    world.ok(&["tree", "edit", &tree, result, "--file", &one_kept(&world)]);
    let (_, shown) = world.json(&["tree", "show", &tree]);
    assert!(shown["nodes"].to_string().contains("hail.md"), "{shown}");
    let within = world.run(&["tree", "branch", &tree, result, "--after", "hail"]);
    assert!(within.code == Some(2) && within.err.contains("is what a tool said"), "{within:?}");
}

//! What commands say of what they did: to a person a sentence, to a program a name.

use std::fs;
use std::path::Path;

use crate::seeing::written;
use crate::terminal::Terminal;
use crate::world::{Run, World};

/// A document of two passages; its tree is called Tale, and `script:echo` is asked.
pub(crate) fn tale() -> World {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained all night."]);
    world.ok(&["tree", "append", "Tale", " The heron stood in the reeds."]);
    world
}

/// Short id of a node of the tree, by its number in the order of making.
pub(crate) fn short(world: &World, index: usize) -> String {
    let (_, all) = world.json(&["tree", "show", "Tale", "--all"]);
    all["nodes"][index]["short_id"].as_str().unwrap().to_owned()
}

/// Runs a command as a program does: a name stands alone on its standard output, the sentence on standard error.
#[track_caller]
fn says(world: &World, words: &[&str], name: &str, sentence: &str) {
    let run = world.run(words);
    assert_eq!(run.code, Some(0), "{words:?}: {run:?}");
    assert_eq!((run.out.trim_end(), run.err.trim_end()), (name, sentence), "{words:?}");
}

#[test]
fn a_program_gets_the_name_and_a_person_the_sentence() {
    let world = tale();
    let (first, second) = (short(&world, 1), short(&world, 2));
    let run = world.run(&["tree", "append", "Tale", " It flew."]);
    let third = run.out.trim().to_owned();
    assert_eq!(run.err.trim(), format!("added {third} “It flew.”; 2 words came"));
    says(
        &world,
        &["tree", "bookmark", "Tale", &first, "night"],
        &first,
        &format!("bookmarked {first} “It rained all night.” as “night”"),
    );
    says(
        &world,
        &["tree", "tag", "Tale", &first, "rain"],
        &first,
        &format!("tagged {first} “It rained all night.” with #rain"),
    );
    let hid = format!(
        "hid {third} “It flew.”; 2 words went; main now ends at {second} “The heron stood in the reeds.”"
    );
    says(&world, &["tree", "prune", "Tale", &third], &third, &hid);
    let back = format!("shown again: {third} “It flew.”; to go there: `drawloom tree switch Tale {third}`");
    says(&world, &["tree", "restore", "Tale", &third], &third, &back);
    let left = format!("left out {second} “The heron stood in the reeds.”; 6 words went");
    says(&world, &["tree", "exclude", "Tale", &second], &second, &left);
    let taken = format!("taken in again: {second} “The heron stood in the reeds.”; 6 words came");
    says(&world, &["tree", "include", "Tale", &second], &second, &taken);
    let went = format!("main stands at {third} “It flew.”; 2 words came");
    says(&world, &["tree", "go", "Tale", &third], &third, &went);

    let edited = world.run(&["tree", "edit", "Tale", &first, "--text", "It rained all day long."]);
    let version = edited.out.trim();
    let told = format!("edited: {version} “It rained all day long.” is shown now; 2 words came, 1 went");
    assert_eq!(edited.err.trim(), told);
    let undone = world.ok(&["tree", "undo", "Tale"]);
    let told = format!("undone: edit of {version} “It rained all day long.”; 1 word came, 2 went\n");
    assert_eq!(undone, told, "what went comes back");
    let redone = world.ok(&["tree", "redo", "Tale"]);
    assert!(redone.ends_with("; 2 words came, 1 went\n"), "{redone}");

    // The control: JSON has neither.
    let run = world.run(&["tree", "append", "Tale", " And came back.", "--json"]);
    assert!(run.err.is_empty() && !run.out.contains("added"), "{run:?}");
}

#[test]
fn trees_and_sessions_are_named_by_title_and_short_id() {
    let world = tale();
    let tree = world.json(&["tree", "list"]).1["trees"][0]["short_id"].as_str().unwrap().to_owned();
    let list = world.ok(&["tree", "list"]);
    assert!(list.contains("document  2 passages  Tale"), "{list}");
    says(
        &world,
        &["tree", "rename", "Tale", "Fable"],
        &tree,
        &format!("{tree} “Tale” is called “Fable” now"),
    );
    let archived = format!("archived {tree} “Fable”: `drawloom tree undelete {tree}` brings it back");
    says(&world, &["tree", "delete", "Fable"], &tree, &archived);
    says(&world, &["tree", "undelete", &tree], &tree, &format!("{tree} “Fable” is back from the archive"));
    let run = world.run(&["tree", "new", "--text", "One.\n\nTwo."]);
    let told = format!("made the document {}: 1 passage, 2 words", run.out.trim());
    assert_eq!(run.err.lines().last(), Some(&*told), "{run:?}");

    world.ok(&["chat", "-m", "hello"]);
    says(&world, &["sessions", "rename", "main", "other"], "other", "the session main is called other now");
    let archived = "archived the session other: `drawloom sessions restore other` brings it back";
    says(&world, &["sessions", "archive", "other"], "other", archived);
    says(&world, &["sessions", "restore", "other"], "other", "the session other is back from the archive");
}

#[test]
fn an_edit_says_where_it_stands_and_a_view_what_became_of_it() {
    let world = tale();
    let (first, second) = (short(&world, 1), short(&world, 2));
    let third = world.ok(&["tree", "append", "Tale", " It flew."]).trim().to_owned();
    world.ok(&["tree", "go", "Tale", &second]);
    let edited = world.run(&["tree", "edit", "Tale", &third, "--text", " It sang."]);
    let version = edited.out.trim();
    let command = format!("drawloom tree switch Tale {version}");
    let beside =
        format!("edited: {version} “It sang.” stands beside the path of main: `{command}` goes there");
    assert_eq!(edited.err.trim(), beside);
    assert!(!world.ok(&["tree", "text", "Tale"]).contains("sang"));
    world.ok(&command.split(' ').skip(1).collect::<Vec<_>>());
    assert!(world.ok(&["tree", "text", "Tale"]).contains("sang"), "the command goes there");
    world.ok(&["tree", "exclude", "Tale", &first]);
    let edited = world.run(&["tree", "edit", "Tale", &first, "--text", "It poured."]);
    assert!(edited.err.contains("“It poured.” is left out of the text"), "{edited:?}");

    let run = world.run(&["tree", "view", "new", "Tale", "side"]);
    assert!(run.out.contains("main") && run.out.contains("side"), "{run:?}");
    assert_eq!(run.err.trim(), format!("made the view side; it stands at {version} “It sang.”"));
    let run = world.run(&["tree", "view", "delete", "Tale", "side"]);
    assert_eq!((run.out.contains("side"), run.err.trim()), (false, "deleted the view side"), "{run:?}");
    assert_eq!(world.run(&["tree", "view", "list", "Tale"]).err, "", "control");

    let run = world.run(&["tree", "compact", "Tale", "--to", &third]);
    let said = [&*run.out, &run.err].concat();
    assert_eq!(said.matches("no longer sent").count(), 1, "{run:?}");
    assert!(run.out.starts_with("2 passages (") && run.out.ends_with("; undo brings them back\n"), "{run:?}");
}

#[test]
fn a_window_is_moved_without_a_model() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let second = world.ok(&["tree", "append", "Tale", " On."]).trim().to_owned();
    let command = world.command(&["tree", "compact", "Tale", "--to", &second]);
    let told = Terminal::start(command).written();
    assert!(told.contains("left the window") && !told.contains("No model is chosen"), "{told}");
}

/// The words of a line, those between double quotes together.
fn words_of(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate().flat_map(|(place, part)| match place % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    parts.collect()
}

#[test]
fn the_name_alone_shows_help_whose_examples_work() {
    let world = World::new();
    let run = world.run::<&str>(&[]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    let from = run.out.split("Examples:\n").nth(1).unwrap();
    let examples: Vec<Vec<String>> = from
        .lines()
        .take_while(|line| line.starts_with("  drawloom"))
        .map(|line| words_of(line.trim_start().split("  ").next().unwrap()))
        .collect();
    assert_eq!(examples.len(), 4, "{}", run.out);
    for example in examples {
        let mut words: Vec<&str> = example[1..].iter().map(String::as_str).collect();
        // Weights are fetched, and a conversation needs somebody at a terminal.
        words.iter_mut().filter(|word| **word == "smollm2").for_each(|word| *word = "script:echo");
        let run = world.run(&words);
        match words[0] {
            "chat" => assert!(run.code == Some(2) && run.err.contains("-m TEXT"), "{run:?}"),
            _ => assert_eq!(run.code, Some(0), "{words:?}: {run:?}"),
        }
    }
    // The control: a command that lacks its subcommand is an error as before.
    assert_eq!(world.run(&["tree"]).code, Some(2));
    assert_eq!(world.run(&["--json"]).code, Some(2));
}

/// Words that only records have: they are shown to nobody.
const INNER_WORDS: [&str; 3] = ["genesis", "framing", "buffer"];

/// A word that is written as a whole id is.
fn is_id(word: &str) -> bool {
    word.len() == 26
        && word.starts_with('0')
        && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}

#[test]
fn ids_and_words_of_records_stand_in_json_alone() {
    let (world, made) = written();
    let outside = world.path("outside.txt");
    fs::write(&outside, "From elsewhere.").unwrap();
    world.ok(&["tree", "annotate", "Tale", &made, "Too short."]);
    world.ok(&["tree", "head", "Tale", "--text", "A tale."]);
    let (_, shown) = world.json(&["tree", "show", "Tale"]);
    let (genesis, first) =
        (shown["nodes"][0]["id"].as_str().unwrap(), shown["nodes"][1]["id"].as_str().unwrap());
    world.ok(&["chat", "-m", "hello", "--file", outside.to_str().unwrap()]);
    world.ok(&["tree", "new", "--text", "A cloud without a title."]);
    let file = world.path("tale.jsonl");
    let file = file.to_str().unwrap();
    let answer = world.json(&["sessions", "show", "main"]).1["tip"].as_str().unwrap().to_owned();
    let commands: &[&[&str]] = &[
        &["tree", "list"],
        &["tree", "show", "Tale"],
        &["tree", "show", "Tale", "--all"],
        &["tree", "show", "Tale", "--limit", "1"],
        &["tree", "show", "Tale", "--all", "--limit", "1"],
        &["tree", "edit", "Tale", "--from", &made, "--text", "x"],
        &["tree", "text", "Tale", "--spans"],
        &["tree", "text", "Tale", "--authors"],
        &["tree", "append", "Tale", " more"],
        &["tree", "draft", "Tale", "and"],
        &["tree", "draft", "Tale", "and more", "--commit"],
        &["tree", "draft", "Tale", "other", "--at", first],
        &["tree", "edit", "Tale", first, "--text", "It poured."],
        &["tree", "branch", "Tale", first, "--at", "3"],
        &["tree", "switch", "Tale", &made],
        &["tree", "go", "Tale", genesis],
        &["tree", "log", "Tale"],
        &["tree", "undo", "Tale"],
        &["tree", "go", "Tale", &made],
        &["tree", "generate", "Tale", "--dry-run"],
        &["tree", "generate", "Tale", "--from", first],
        &["tree", "view", "new", "Tale", "second"],
        &["tree", "view", "list", "Tale"],
        &["tree", "verify", "Tale"],
        &["tree", "seal", "Tale"],
        &["tree", "compact", "Tale", "--to", &made, "--dry-run"],
        &["tree", "compact", "Tale", "--to", &made],
        &["tree", "export", "Tale", "-o", file],
        &["tree", "verify", "--file", file],
        &["tree", "rename", "Tale", "Rain"],
        &["tree", "delete", "Rain"],
        &["tree", "undelete", "Rain"],
        &["tree", "import", file, "--copy"],
        &["search", "cloud"],
        &["context", "show", &made],
        &["context", "show", &answer],
        &["context", "show", "--next"],
        &["context", "replay", &made, "--model", "script:echo"],
        &["sessions", "show", "main"],
        &["sessions", "list"],
        &["chat", "-m", "/status"],
        &["chat", "-m", "/context detail"],
        &["chat", "-m", "/zone"],
        &["log"],
        &["tree", "edit", "Rain", genesis, "--text", "x"],
        &["tree", "regenerate", "Rain", genesis],
        &["tree", "select", "Rain", genesis],
    ];
    for words in commands {
        let Run { out, err, .. } = world.run(words);
        for stream in [&out, &err] {
            let id = stream.split(|c: char| !c.is_ascii_alphanumeric()).find(|word| is_id(word));
            assert_eq!(id, None, "{words:?}: {stream}");
            for word in INNER_WORDS {
                assert!(!stream.to_lowercase().contains(word), "{word} in {words:?}: {stream}");
            }
        }
    }
    // The control: JSON has ids, of the beginning of the tree too.
    let all = world.run(&["tree", "show", "Rain", "--all", "--json"]);
    assert!(is_id(&made) && all.out.contains(genesis), "{all:?}");
}

#[test]
fn sessions_of_other_folders_are_named_where_this_one_has_none() {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    let there = world.path("there");
    fs::create_dir(&there).unwrap();
    let workspace = there.to_str().unwrap();
    world.ok(&["--workspace", workspace, "chat", "-m", "hello"]);
    world.ok(&["--workspace", workspace, "sessions", "rename", "main", "plans"]);
    let log = world.ok(&["log"]);
    assert!(
        log.contains("no session in this workspace") && log.contains("plans") && log.contains(workspace),
        "{log}"
    );
    assert_eq!(world.json(&["log"]).1["exchanges"], serde_json::json!([]));
    let missing = world.run(&["sessions", "show", "main"]);
    assert!(missing.code == Some(3) && missing.err.contains(&format!("plans ({workspace})")), "{missing:?}");
    let mut chat = Terminal::of_width(world.command(&["chat"]), 200);
    chat.shows(&format!("others have plans ({workspace})"));
    // The control: nothing is said once this one has a session.
    world.ok(&["chat", "-m", "hello"]);
    let mut chat = Terminal::of_width(world.command(&["chat"]), 200);
    chat.at_prompt();
    assert!(!chat.contents().contains("others have"), "{}", chat.contents());
}

#[test]
fn what_was_sent_says_where_the_window_begins() {
    let world = tale();
    world.ok(&["tree", "edit", "Tale", "--replace", "in the reeds.", "in the reeds.\n\n"]);
    let asked =
        || world.json(&["tree", "generate", "Tale"]).1["nodes"][0]["short_id"].as_str().unwrap().to_owned();
    let answer = asked();
    let whole = world.json(&["context", "show", &format!("Tale:{answer}")]).1;
    assert_eq!((&whole["left_out"], whole.get("window_start")), (&0.into(), None), "{whole}");
    world.ok(&["tree", "compact", "Tale", "--to", &short(&world, 2)]);
    let begins = "the model sees from “The heron stood in the reeds.” on; 20 characters above are left out";
    let told = |run: Run| run.err.lines().filter(|line| line.ends_with(begins)).count();
    assert_eq!(
        told(world.run(&["tree", "generate", "Tale", "-n", "2"])),
        1,
        "a start that was moved by hand"
    );
    assert_eq!(told(world.run(&["tree", "generate", "Tale"])), 0, "control: once");
    world.ok(&["tree", "undo", "Tale"]);
    world.ok(&["tree", "undo", "Tale"]);
    let last = format!("Tale:{}", asked());
    for words in [
        &["context", "show", &last][..],
        &["context", "show", "--next", "Tale"],
        &["context", "show", &last, "--map"],
    ] {
        let shown = world.ok(words);
        assert!(shown.lines().any(|line| line == begins), "{words:?}: {shown}");
    }
    let (_, shown) = world.json(&["context", "show", &last]);
    assert_eq!((&shown["left_out"], &shown["window_start"]), (&20.into(), &begins.into()));
    let (_, estimate) = world.json(&["tree", "generate", "Tale", "--dry-run"]);
    assert_eq!(estimate["window_start"], begins, "one sentence for both");
}

/// A screen: its name, the command, how it ends.
type Screen<'a> = (&'a str, Vec<&'a str>, i32);

/// A home as it was, for each look at a screen: what a command changes is not there for the next.
struct Kept {
    world: World,
    copy: std::path::PathBuf,
}

impl Kept {
    fn of(world: World) -> Self {
        let copy = world.path("kept");
        copied(&world.home(), &copy);
        Self { world, copy }
    }

    fn again(&self) -> &World {
        fs::remove_dir_all(self.world.home()).unwrap();
        copied(&self.copy, &self.world.home());
        &self.world
    }
}

/// Copies a folder, with the rights of what is in it.
fn copied(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copied(&entry.path(), &target);
        } else if kind.is_file() {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Texts with what differs from run to run as what it is: short ids, in the order they appear, and moments.
fn steady<const N: usize>(world: &World, texts: [&str; N]) -> [String; N] {
    let whole = texts.concat();
    let (mut ids, mut trees) = (Vec::new(), Vec::new());
    for tree in world.json(&["tree", "list"]).1["trees"].as_array().unwrap() {
        let tree = tree["short_id"].as_str().unwrap().to_owned();
        let (_, all) = world.json(&["tree", "show", &tree, "--all"]);
        let nodes = all["nodes"].as_array().unwrap();
        ids.extend(nodes.iter().map(|node| node["short_id"].as_str().unwrap().to_owned()));
        trees.push(tree);
    }
    let by_place = |ids: Vec<String>| {
        let mut found: Vec<_> = ids.into_iter().filter_map(|id| Some((whole.find(&id)?, id))).collect();
        found.sort();
        found.into_iter().map(|(_, id)| id)
    };
    let (ids, trees): (Vec<_>, Vec<_>) = (by_place(ids).collect(), by_place(trees).collect());
    texts.map(|text| {
        let mut text = text.to_owned();
        for (name, ids) in [("nod", &ids), ("tre", &trees)] {
            for (index, id) in ids.iter().enumerate() {
                text = text.replace(id, &format!("{name}{}", index + 1));
            }
        }
        without_moments(&text)
    })
}

fn without_moments(text: &str) -> String {
    let mut steady = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("20") {
        let digits = |from: usize, to: usize| {
            rest.get(at + from..at + to).is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let is_moment = digits(0, 4) && digits(5, 7) && digits(8, 10) && digits(11, 13) && digits(14, 16);
        let (shown, len) = if is_moment { ("(the moment now)", 16) } else { ("20", 2) };
        steady += &rest[..at];
        steady += shown;
        rest = &rest[at + len..];
    }
    steady + rest
}

#[test]
fn every_screen_of_what_was_done() {
    let world = tale();
    world.ok(&["tree", "generate", "Tale"]);
    world.ok(&["tree", "new", "--title", "Rain", "--text", "A cloud."]);
    let (first, second, answer) = (short(&world, 1), short(&world, 2), short(&world, 3));
    let id = world.json(&["tree", "show", "Tale"]).1["nodes"][3]["id"].as_str().unwrap().to_owned();
    let near = format!("{}{}", &first[..3], if first.ends_with('0') { '1' } else { '0' });
    world.ok(&["tree", "append", "Rain", " It grew."]);
    world.ok(&["tree", "undo", "Rain"]);
    world.ok(&["chat", "-m", "hello"]);
    let kept = Kept::of(world);
    let screens: Vec<Screen<'_>> = vec![
        ("generate", vec!["tree", "generate", "Tale"], 0),
        ("generate_several", vec!["tree", "generate", "Tale", "-n", "3"], 0),
        ("generate_elsewhere", vec!["tree", "generate", "Tale", "--from", &second], 0),
        ("regenerate", vec!["tree", "regenerate", "Tale", &answer], 0),
        ("replay", vec!["context", "replay", &id, "--model", "script:echo"], 0),
        ("undo", vec!["tree", "undo", "Tale"], 0),
        ("redo", vec!["tree", "redo", "Rain"], 0),
        ("new", vec!["tree", "new", "--title", "A tale of rain and of herons", "--text", "It rained."], 0),
        ("edit", vec!["tree", "edit", "Tale", &first, "--text", "It rained all day long."], 0),
        ("edit_path", vec!["tree", "edit", "Tale", "--replace", "heron", "grey heron"], 0),
        (
            "append",
            vec!["tree", "append", "Tale", " Nobody saw it go, and nobody asked where it had been."],
            0,
        ),
        ("go", vec!["tree", "go", "Tale", &first], 0),
        ("list", vec!["tree", "list"], 0),
        ("no_tree", vec!["tree", "show", "Tael"], 3),
        ("no_node", vec!["tree", "go", "Tale", &near], 3),
        ("no_command", vec!["tree", "shwo", "Tale"], 2),
        ("no_session", vec!["sessions", "show", "mian"], 3),
    ];
    for (name, words, code) in screens {
        let at = |columns: u16, environment: &[(&str, &str)]| {
            let world = kept.again();
            let mut command = world.command(&words);
            command.envs(environment.iter().copied());
            let (ended, seen) = Terminal::of_width(command, columns).seen();
            assert_eq!(ended, Some(code), "{name}: {seen}");
            let [seen] = steady(world, [&seen.replace(&near, "(typed)")]);
            seen
        };
        let dumb = at(200, &[("TERM", "dumb")]);
        assert!(!dumb.contains('\u{1b}'), "{name}: {dumb:?}");
        assert_eq!(dumb, at(200, &[("NO_COLOR", "1")]), "{name}");
        let narrow = at(40, &[]).replace('\u{1b}', "␛");
        let wide = at(200, &[]).replace('\u{1b}', "␛");
        let world = kept.again();
        let run = world.run(&words);
        assert_eq!(run.code, Some(code), "{name}: {run:?}");
        let [out, err] = steady(world, [&run.out, &run.err.replace(&near, "(typed)")]);
        let screens = [
            ("40", &narrow),
            ("200", &wide),
            ("plain", &dumb),
            ("pipe", &out),
            ("pipe, standard error", &err),
        ];
        let whole: String = screens.iter().map(|(how, seen)| format!("──── {how}\n{seen}\n")).collect();
        insta::assert_snapshot!(format!("said_{name}"), whole);
    }
}

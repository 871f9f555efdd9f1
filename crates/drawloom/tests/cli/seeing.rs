//! What is shown of a tree: marks, settings, passages found, differences.

use serde_json::{Value, json};

use crate::narrow;
use crate::terminal::Terminal;
use crate::world::World;

/// A document whose last passage a model wrote.
pub(crate) fn written() -> (World, String) {
    let world = World::new();
    world.write(
        "config.toml",
        "[model]\ndefault = \"script:echo\"\n[presets.calm]\ntemperature = 0.25\nthink = \"low\"\n",
    );
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let (_, made) =
        world.json(&["tree", "generate", "Tale", "--preset", "calm", "--seed", "7", "--max-tokens", "40"]);
    (world, made["nodes"][0]["id"].as_str().unwrap().to_owned())
}

fn node_of<'a>(shown: &'a Value, id: &str) -> &'a Value {
    shown["nodes"].as_array().unwrap().iter().find(|node| node["id"] == id).unwrap()
}

#[test]
fn the_settings_of_a_generation_stand_at_its_node_and_its_spans() {
    let (world, made) = written();
    // A script cannot be told how to think, as its preset says.
    let asked = json!({"temperature": 0.25, "seed": 7, "max_tokens": 40, "preset": "calm"});
    let (_, shown) = world.json(&["tree", "show", "Tale"]);
    assert_eq!(node_of(&shown, &made)["settings"], asked);
    assert!(shown["nodes"][1]["settings"].is_null(), "{shown}");
    let told = world.ok(&["tree", "show", "Tale"]);
    assert!(told.contains("preset calm · temperature 0.25 · seed 7"), "{told}");
    let (_, text) = world.json(&["tree", "text", "Tale", "--spans"]);
    let spans = text["spans"].as_array().unwrap();
    let of_model = spans.iter().find(|span| span["kind"] == "model").unwrap();
    assert_eq!(of_model["settings"], asked);

    // A replay is asked in its own way, which is what its node says.
    let (_, replayed) = world.json(&["context", "replay", &made, "--model", "script:echo"]);
    let (_, all) = world.json(&["tree", "show", "Tale", "--all"]);
    let again = node_of(&all, replayed["node"].as_str().unwrap());
    assert!(again["settings"].is_object() && again["model"] == "script/echo", "{again}");
    // They stay with what is left of a text that was edited.
    world.ok(&["tree", "edit", "Tale", &made, "--text", "It rained. And more."]);
    let (_, text) = world.json(&["tree", "text", "Tale", "--spans"]);
    assert!(text["spans"].to_string().contains("0.25"), "{text}");
}

#[test]
fn one_changed_word_leaves_the_rest_of_a_passage_the_models() {
    let (world, _) = written();
    std::fs::write(world.path("here/mill.jsonl"), r#"{"text": " The  mill turned slowly in the rain."}"#)
        .unwrap();
    let (_, made) = world.json(&["--model", "script:mill.jsonl", "tree", "generate", "Tale", "--seed", "9"]);
    let id = made["nodes"][0]["id"].as_str().unwrap();
    let line = |color: &str| {
        let shown = world.ok(&["--color", color, "tree", "show", "Tale"]);
        shown.lines().find(|line| line.contains("mill")).unwrap().to_owned()
    };
    let all_blue = line("always");
    assert!(
        all_blue.contains("\x1b[34mThe mill turned slowly in the rain.\x1b[0m"),
        "the control: {all_blue:?}"
    );
    world.ok(&["tree", "edit", "Tale", id, "--replace", "slowly", "quickly"]);
    let (shown, plain) = (line("always"), line("never"));
    assert!(shown.starts_with("\x1b[34mM\x1b[0m "), "{shown:?}");
    let words = "\x1b[34mThe mill turned \x1b[0mquickly \x1b[34min the rain.\x1b[0m";
    assert!(shown.contains(words), "{shown:?}");
    assert!(plain.starts_with("M ") && plain.ends_with("  The mill turned quickly in the rain."), "{plain}");
    let about = world.ok(&["tree", "show", "Tale"]);
    assert!(about.contains("owner · edits script/mill.jsonl"), "{about}");
    let spans = world.ok(&["tree", "text", "Tale", "--spans"]);
    assert!(spans.lines().any(|line| line.contains("script/mill.jsonl · seed 9")), "{spans}");
    // Of a passage that was written anew nothing is the model's.
    world.ok(&["tree", "edit", "Tale", id, "--text", "Nothing"]);
    let shown = world.ok(&["--color", "always", "tree", "show", "Tale"]);
    assert!(shown.lines().any(|line| line.starts_with("H ") && line.ends_with("  Nothing")), "{shown:?}");
}

#[test]
fn marks_are_shown_at_their_place() {
    let (world, made) = written();
    world.ok(&["tree", "tag", "Tale", &made, "scene"]);
    world.ok(&["tree", "annotate", "Tale", &made, "Too short."]);
    world.ok(&["tree", "head", "Tale", "--text", "A tale of rain."]);
    world.ok(&["tree", "note", "Tale", "--text", "Slowly.", "--depth", "2"]);
    world.ok(&["tree", "draft", "Tale", "And then"]);
    let shown = world.ok(&["tree", "show", "Tale"]);
    let at = |words: &str| shown.find(words).unwrap_or_else(|| panic!("no {words}: {shown}"));
    assert!(at("A tale of rain.") < at("It rained."), "{shown}");
    assert!(at("#scene") < at("Too short.") && at("Too short.") < at("And then"), "{shown}");
    assert!(at("sent 2 paragraphs before the end") < at("Slowly."), "{shown}");

    assert!(world.ok(&["tree", "tag", "Tale"]).contains("#scene"));
    assert!(world.ok(&["tree", "annotate", "Tale"]).contains("Too short."));
    assert_eq!(world.ok(&["tree", "head", "Tale"]), "A tale of rain.");
    assert_eq!(world.ok(&["tree", "note", "Tale"]), "Slowly.");
    assert_eq!(world.ok(&["tree", "draft", "Tale"]), "And then");
    world.ok(&["tree", "head", "Tale", "--text", ""]);
    let none = world.run(&["tree", "head", "Tale"]);
    assert_eq!((none.code, none.out.as_str(), none.err.trim()), (Some(0), "", "none is set"));
}

/// A document with branches, versions, marks and texts of two authors, whose tree is called Tale, and one of a model
/// that gives probabilities, called Odds.
fn screens() -> World {
    let (world, made) = written();
    let near = narrow::near();
    let config = world.read("config.toml");
    world.write(
        "config.toml",
        &format!("{config}[providers.box]\nbase_url = \"{}\"\nwindow = 32000\n", near.base()),
    );
    world.ok(&["tree", "new", "--title", "Odds", "--text", "Over"]);
    world.ok(&["tree", "generate", "Odds", "--model", "box/m"]);
    let (_, shown) = world.json(&["tree", "show", "Tale"]);
    let first = shown["nodes"][1]["id"].as_str().unwrap();
    let long = "It rained all night, and the grey heron stood in the reeds until the first light came over the hills.";
    world.ok(&["tree", "edit", "Tale", first, "--text", long]);
    world.ok(&["tree", "append", "Tale", " Nobody saw it go."]);
    world.ok(&["tree", "edit", "Tale", &made, "--text", " A cold wind rose.", "--as", "branch"]);
    world.ok(&["tree", "append", "Tale", " The reeds bent."]);
    world.ok(&["tree", "switch", "Tale", &made]);
    world.ok(&["tree", "bookmark", "Tale", first, "the beginning"]);
    world.ok(&["tree", "tag", "Tale", first, "scene"]);
    world.ok(&[
        "tree",
        "annotate",
        "Tale",
        first,
        "Which heron is meant here, the one of the second chapter?",
    ]);
    world.ok(&["tree", "head", "Tale", "--text", "A tale of rain and of herons."]);
    world.ok(&["tree", "draft", "Tale", "And then"]);
    world
}

/// The ids of the tree as what they are ids of.
fn named(world: &World, text: &str) -> String {
    let mut named = text.to_owned();
    for (tree, short) in [("Tale", "nod"), ("Odds", "odd")] {
        let (_, all) = world.json(&["tree", "show", tree, "--all"]);
        for (index, node) in all["nodes"].as_array().unwrap().iter().enumerate() {
            named = named.replace(node["id"].as_str().unwrap(), &format!("(id of {short}{index})"));
            named = named.replace(node["short_id"].as_str().unwrap(), &format!("{short}{index}"));
        }
    }
    named
}

#[test]
fn every_screen_fits_and_reads_without_colours() {
    let world = screens();
    let (_, versions) = world.json(&["tree", "versions", "Tale", &first_of(&world)]);
    let [old, new] = [0, 1].map(|index| versions["nodes"][index]["id"].as_str().unwrap().to_owned());
    let id = |listed: &Value, index: usize| listed["nodes"][index]["id"].as_str().unwrap().to_owned();
    let (_, siblings) = world.json(&["tree", "siblings", "Tale"]);
    let made = id(&siblings, 0);
    let (_, odds) = world.json(&["tree", "show", "Odds"]);
    let (begin, likely) = (id(&odds, 1), id(&odds, 2));
    world.ok(&["tree", "edit", "Odds", &begin, "--text", "Under"]);
    let (_, again) = world.json(&["tree", "regenerate", "Odds", &likely, "--model", "box/m"]);
    let again = id(&again, 0);
    for (name, words) in [
        ("show", vec!["tree", "show", "Tale"]),
        ("show_all", vec!["tree", "show", "Tale", "--all"]),
        ("siblings", vec!["tree", "siblings", "Tale"]),
        ("versions", vec!["tree", "versions", "Tale", &new]),
        ("bookmarks", vec!["tree", "bookmarks", "Tale"]),
        ("search", vec!["tree", "search", "heron"]),
        ("compare", vec!["tree", "compare", "Tale", &old, &new]),
        ("authors", vec!["tree", "text", "Tale", "--authors"]),
        ("show_around", vec!["tree", "show", "Tale", "--around", &made]),
        ("show_depth", vec!["tree", "show", "Tale", "--all", "--depth", "1"]),
        ("tokens", vec!["tree", "tokens", "Odds", &likely]),
        ("context_diff", vec!["context", "diff", &likely, &again]),
        ("switch", vec!["tree", "switch", "Tale", "1"]),
        ("go", vec!["tree", "go", "Tale", &made]),
    ] {
        if ["switch", "go"].contains(&name) {
            // From then on it goes to where it is.
            world.ok(&words);
        }
        let at = |columns: u16, environment: &[(&str, &str)]| {
            let mut command = world.command(&words);
            command.envs(environment.iter().copied());
            let seen = Terminal::of_width(command, columns).written();
            // A text is the terminal's to break: copied from it, it is whole.
            for line in seen.lines().filter(|_| name != "authors") {
                let plain = without_colours(line);
                assert!(plain.chars().count() <= columns.into(), "{name} at {columns}: {plain:?}");
            }
            seen
        };
        let dumb = at(200, &[("TERM", "dumb")]);
        assert!(!dumb.contains('\u{1b}'), "{name}: {dumb:?}");
        assert_eq!(dumb, at(200, &[("NO_COLOR", "1")]), "{name}");
        let screens = [
            ("40", at(40, &[]).replace('\u{1b}', "␛")),
            ("200", at(200, &[]).replace('\u{1b}', "␛")),
            ("plain", dumb),
            ("pipe", world.ok(&words)),
        ];
        let mut whole = String::new();
        for (how, seen) in screens {
            whole += &format!("──── {how}\n{}\n", named(&world, &seen));
        }
        insta::assert_snapshot!(format!("screen_{name}"), whole);
    }
}

fn first_of(world: &World) -> String {
    world.json(&["tree", "show", "Tale"]).1["nodes"][1]["id"].as_str().unwrap().to_owned()
}

pub(crate) fn without_colours(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or(part, |(_, rest)| rest))
}

#[test]
fn a_search_that_finds_nothing_says_so_to_people_alone() {
    let (world, _) = written();
    let run = world.run(&["tree", "search", "osprey"]);
    assert_eq!((run.code, run.out.as_str(), run.err.trim()), (Some(0), "", "nothing found"));
    assert_eq!(world.json(&["tree", "search", "osprey"]).1["hits"], json!([]));
}

#[test]
fn signs_mark_authors_and_the_text_can_be_read_back_from_them() {
    let world = screens();
    let marked = world.ok(&["tree", "text", "Tale", "--authors"]);
    let mut text = String::new();
    for line in marked.lines() {
        let (at, bar) = line.char_indices().find(|(_, c)| ['│', '┆'].contains(c)).unwrap();
        if bar == '│' && !text.is_empty() {
            text.push('\n');
        }
        text += &line[at + bar.len_utf8()..];
    }
    assert_eq!(text, world.ok(&["tree", "text", "Tale"]));
    assert!(marked.starts_with("H│") && marked.contains("\nM┆"), "{marked}");
    // Two passages by one author are one stretch.
    assert_eq!(marked.matches('H').count(), 2, "{marked}");
}

#[test]
fn two_requests_are_compared_word_by_word() {
    let (world, made) = written();
    let first = first_of(&world);
    world.ok(&["tree", "edit", "Tale", &first, "--text", "It snowed."]);
    let (_, again) = world.json(&["tree", "regenerate", "Tale", &made]);
    let again = again["nodes"][0]["id"].as_str().unwrap();
    let told = world.ok(&["context", "diff", &made, again]);
    assert!(told.contains("[-rained") && told.contains("{+snowed"), "{told}");
}

#[test]
fn a_model_that_took_over_is_named_with_its_settings() {
    let world = World::new();
    world.write(
        "config.toml",
        "[model]\ndefault = \"down/m\"\nfallbacks = [\"script:echo\"]\n\
         [providers.down]\nbase_url = \"http://127.0.0.1:1/v1\"\n",
    );
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    let (_, made) = world.json(&["tree", "generate", "Tale", "--temperature", "0.5"]);
    let (_, shown) = world.json(&["tree", "show", "Tale"]);
    let node = node_of(&shown, made["nodes"][0]["id"].as_str().unwrap());
    assert_eq!((&node["model"], &node["settings"]["temperature"]), (&"script/echo".into(), &json!(0.5)));
    for format in ["html", "annotations"] {
        let written = world.ok(&["tree", "export", "Tale", "--format", format]);
        assert!(
            written.contains("script/echo") && written.contains("temperature 0.5"),
            "{format}: {written}"
        );
        assert!(!written.contains("down/m"), "{format}: {written}");
    }
}

#[test]
fn the_place_from_which_the_model_sees_is_drawn() {
    let (world, made) = written();
    world.ok(&["tree", "append", "Tale", " Nobody saw it go."]);
    let place = "┄┄ the model sees from here on ┄┄\nM ";
    assert!(!world.ok(&["tree", "show", "Tale"]).contains("the model sees"));
    world.ok(&["tree", "compact", "Tale", "--to", &made]);
    for words in [&["tree", "show", "Tale"][..], &["tree", "show", "Tale", "--all"]] {
        let shown = world.ok(words).replace("▸ ", "");
        assert!(shown.contains(place), "{shown}");
    }
}

#[test]
fn the_place_from_which_the_model_sees_is_drawn_where_it_is_inside_of_a_passage() {
    let world = World::new();
    world.write(
        "config.toml",
        "[model]\ndefault = \"script:echo\"\n[models.\"script/echo\"]\nwindow = 4096\n",
    );
    world.write("long.txt", &"It rained all day, and the river rose.\n".repeat(20_000));
    let file = world.home().join("long.txt");
    world.ok(&["tree", "new", "--title", "Long", "--file", file.to_str().unwrap(), "--split", "none"]);
    world.ok(&["tree", "generate", "Long"]);
    let (_, shown) = world.json(&["tree", "show", "Long"]);
    assert_eq!((&shown["window"], &shown["window_inside"]), (&shown["nodes"][1]["position"], &json!(true)));
    for more in [&[][..], &["--all"]] {
        let shown = world.ok(&[&["tree", "show", "Long"], more].concat());
        assert!(shown.contains("┄┄ the model sees from within the next passage on ┄┄"), "{shown}");
    }
}

#[test]
fn a_larger_window_sees_more_again_and_no_place_is_drawn() {
    let world = World::new();
    std::fs::write(world.path("model.jsonl"), "{\"text\": \" It ended.\", \"loop\": true}\n").unwrap();
    let large = format!("script:{}", world.path("model.jsonl").display());
    world.write(
        "config.toml",
        "[model]\ndefault = \"script:echo\"\n[models.\"script/echo\"]\nwindow = 4096\n",
    );
    let paragraph =
        |day: usize| format!("On day {day} {}.\n\n", "it rained and the river rose and ".repeat(8));
    world.write("long.txt", &(0..150).map(paragraph).collect::<String>());
    let file = world.home().join("long.txt");
    world.ok(&["tree", "new", "--title", "Long", "--file", file.to_str().unwrap()]);
    world.ok(&["tree", "generate", "Long"]);
    assert!(world.ok(&["tree", "show", "Long"]).contains("┄┄ the model sees from here on ┄┄"));
    let (_, made) = world.json(&["--model", &large, "tree", "generate", "Long"]);
    let shown = world.ok(&["tree", "show", "Long"]);
    assert!(!shown.contains("the model sees"), "{shown}");
    let (_, shown) = world.json(&["tree", "show", "Long"]);
    assert_eq!(shown["window"], Value::Null, "{}", shown["window"]);
    // What it was sent begins with the document.
    let sent = world.ok(&["context", "show", made["nodes"][0]["id"].as_str().unwrap(), "--text"]);
    assert!(sent.contains("On day 0 it rained"));
}

#[test]
fn each_model_has_a_colour_of_its_own() {
    let (world, _) = written();
    let script = "{\"text\": \" Nobody saw it.\", \"loop\": true}\n";
    std::fs::write(world.path("other.jsonl"), script).unwrap();
    let other = format!("script:{}", world.path("other.jsonl").display());
    world.ok(&["--model", &other, "tree", "generate", "Tale"]);
    let marked = Terminal::start(world.command(&["tree", "text", "Tale", "--authors"])).written();
    assert!(marked.contains("It rained.\u{1b}[34m"), "{marked:?}");
    assert!(marked.contains("\u{1b}[35m Nobody saw it."), "{marked:?}");
    assert!(marked.contains("blue") && marked.contains("magenta"), "{marked:?}");
}

#[test]
fn what_differs_between_two_requests_is_said_in_words() {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    let asked = |question: &str| {
        let (_, made) = world.json(&["chat", "--new", "-m", question]);
        made["node"].as_str().unwrap().to_owned()
    };
    let (first, second) = (asked("Say \"one\"\nin lines."), asked("Say \"two\"\nin lines."));
    let told = world.ok(&["context", "diff", &first, &second]);
    assert!(told.contains("Say [-\"one\"-]{+\"two\"+}\n"), "{told}");
    assert!(!told.contains("role") && !told.contains("\\\"") && !told.contains("\\n"), "{told}");
}

#[test]
fn what_differs_beside_the_words_is_shown_as_it_was_sent() {
    let world = World::new();
    world.write("config.toml", "[model]\ndefault = \"script:echo\"\n");
    let asked = |temperature: &str| {
        let (_, made) = world.json(&["ask", "--temperature", temperature, "Why?"]);
        made["node"].as_str().unwrap().to_owned()
    };
    let told = world.ok(&["context", "diff", &asked("0.25"), &asked("0.75")]);
    assert!(told.contains("\"temperature\": [-0.25,-]{+0.75,+} "), "{told}");
}

#[test]
fn a_branch_within_a_passage_of_a_model_names_the_model() {
    let (world, made) = written();
    world.ok(&["tree", "branch", "Tale", &made, "--at", "3"]);
    let (_, shown) = world.json(&["tree", "show", "Tale"]);
    let node = shown["nodes"].as_array().unwrap().last().unwrap();
    assert_eq!((&node["model"], &node["author"]), (&"script/echo".into(), &"owner".into()), "{shown}");
    let told = world.ok(&["tree", "show", "Tale"]);
    assert!(told.contains("owner · from script/echo"), "{told}");
    world.ok(&["tree", "branch", "Tale", node["id"].as_str().unwrap(), "--at", "2"]);
    let (_, shown) = world.json(&["tree", "show", "Tale"]);
    assert_eq!(shown["nodes"].as_array().unwrap().last().unwrap()["model"], "script/echo", "of a branch");
}

#[test]
fn settings_that_are_those_of_the_passage_above_are_not_repeated() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained."]);
    for (tokens, times) in [("40", 2), ("50", 1)] {
        for _ in 0..times {
            world.ok(&["--model", "script:echo", "tree", "generate", "Tale", "--max-tokens", tokens]);
        }
    }
    let shown = world.ok(&["tree", "show", "Tale"]);
    assert_eq!(shown.matches("at most 40 tokens").count(), 1, "{shown}");
    assert_eq!(shown.matches("at most 50 tokens").count(), 1, "{shown}");
    let (_, all) = world.json(&["tree", "show", "Tale"]);
    let nodes = all["nodes"].as_array().unwrap();
    assert_eq!(nodes.iter().filter(|node| node["settings"]["max_tokens"] == 40).count(), 2, "{all}");
}

#[test]
fn a_page_of_the_whole_tree_marks_no_old_version_as_the_path() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Rain", "--text", "One."]);
    for text in [" Two.", " Three.", " Four."] {
        world.ok(&["tree", "append", "Rain", text]);
    }
    let (_, shown) = world.json(&["tree", "show", "Rain"]);
    let id = |at: usize| shown["nodes"][at]["short_id"].as_str().unwrap().to_owned();
    let (second, old) = (id(2), id(3));
    world.ok(&["tree", "edit", "Rain", &old, "--text", " Drei."]);
    let page = world.ok(&["tree", "show", "Rain", "--all", "--limit", "1", "--from", &second]);
    assert!(
        page.contains(&old) && page.contains("another version is shown") && !page.contains('▸'),
        "{page}"
    );
    let whole = world.ok(&["tree", "show", "Rain", "--all"]);
    assert!(whole.contains("▸ H") && !whole.contains("another version"), "control: {whole}");
}

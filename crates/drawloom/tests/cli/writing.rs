//! What a person sees who writes with the program: each answer once, and where a command has led.

use serde_json::{Value, json};

use crate::terminal::Terminal;
use crate::trust::at_terminal;
use crate::work::server;
use crate::world::{World, text};

fn story(world: &World) {
    world.ok(&["tree", "new", "--title", "Rain", "--text", "It rained."]);
}

/// A script whose answers come in pieces.
fn answers(world: &World) -> String {
    let file = world.path("answers.jsonl");
    let answer = |words: [&str; 3]| json!({"deltas": words, "delta_delay_ms": 20, "usage": {"input": 12, "cached": 0, "output": 25}});
    let lines = [answer([" The", " boatman", " counted."]), answer([" Halfway", " it", " stopped."])];
    std::fs::write(&file, lines.map(|line| line.to_string()).join("\n")).unwrap();
    format!("script:{}", text(&file))
}

fn shown(world: &World, more: &[&str]) -> String {
    let model = answers(world);
    let words = [&["--model", &model, "tree", "generate", "Rain", "--color", "never"][..], more].concat();
    let mut terminal = Terminal::start(world.command(&words));
    assert_eq!(terminal.ended(), Some(0), "{}", terminal.contents());
    terminal.contents()
}

#[test]
fn an_answer_is_shown_once_at_a_terminal() {
    let world = World::new();
    story(&world);
    let contents = shown(&world, &[]);
    assert_eq!(contents.matches("The boatman counted.").count(), 1, "{contents}");
    let lines: Vec<&str> = contents.lines().collect();
    let [answer, notice, moved] = lines.as_slice() else { panic!("{contents}") };
    assert!(moved.starts_with("main moved to "), "{contents}");
    assert!(answer.ends_with("The boatman counted."), "{contents}");
    assert!(notice.starts_with('[') && notice.ends_with(", 12 in, 25 out]"), "{contents}");
}

#[test]
fn of_siblings_each_is_shown_once_at_a_terminal() {
    let world = World::new();
    story(&world);
    let contents = shown(&world, &["-n", "2"]);
    for said in ["The boatman counted.", "Halfway it stopped."] {
        assert_eq!(contents.matches(said).count(), 1, "{contents}");
    }
    assert_eq!(contents.matches("complete, shown above").count(), 1, "{contents}");
}

/// The control: where the answer goes to a pipe, nothing of it is taken away.
#[test]
fn in_a_pipe_the_answer_is_whole() {
    let world = World::new();
    story(&world);
    let run = world.run(&["--verbose", "--model", &answers(&world), "tree", "generate", "Rain"]);
    assert_eq!(run.out, " The boatman counted.\n");
    assert!(run.err.contains(" The boatman counted.\n["), "the notice is a line of its own: {run:?}");
}

fn node(world: &World, index: usize) -> String {
    let (_, shown) = world.json(&["tree", "show", "Rain", "--all"]);
    shown["nodes"][index]["short_id"].as_str().unwrap().to_owned()
}

#[test]
fn hiding_and_showing_say_where_the_view_ends() {
    let world = World::new();
    story(&world);
    world.ok(&["tree", "append", "Rain", " It poured."]);
    let (first, second) = (node(&world, 1), node(&world, 2));
    let hidden = world.run(&["tree", "prune", "Rain", &second]);
    assert_eq!(
        (hidden.out.trim(), hidden.err.trim()),
        (
            &*second,
            &*format!("hid {second} “It poured.”; 2 words went; main now ends at {first} “It rained.”")
        )
    );
    let again = world.run(&["tree", "restore", "Rain", &second]);
    let go = format!("shown again: {second} “It poured.”; to go there: `drawloom tree switch Rain {second}`");
    assert_eq!(again.err.trim(), go);
    assert_eq!(world.ok(&["tree", "switch", "Rain", &second]).trim(), second, "a short id");
    let shown = world.run(&["tree", "restore", "Rain", &first]);
    assert_ne!(shown.err.trim(), go, "the control: what is on the path needs no way there: {shown:?}");
}

#[test]
fn what_stands_below_a_pruned_passage_names_it_and_the_way_back() {
    let world = World::new();
    story(&world);
    world.ok(&["tree", "append", "Rain", " It poured."]);
    world.ok(&["tree", "append", "Rain", " It stopped."]);
    let [first, second, third] = [1, 2, 3].map(|index| node(&world, index));
    world.ok(&["tree", "prune", "Rain", &second]);
    let restore = format!("drawloom tree restore TREE {second}");
    for words in [["tree", "go"], ["tree", "switch"]] {
        let refused = world.run(&[words[0], words[1], "Rain", &third]);
        let told = format!("{third} stands below {second}, which is pruned");
        assert!(refused.err.contains(&told) && refused.err.contains(&restore), "{refused:?}");
        let refused = world.run(&[words[0], words[1], "Rain", &second]);
        assert!(refused.err.contains(&format!("{second} is pruned")), "{refused:?}");
        assert!(refused.err.contains(&restore), "{refused:?}");
    }
    let same = world.run(&["tree", "restore", "Rain", &third]);
    let told = format!(
        "nothing changed: so it is with {third} “It stopped.” already; it stands below {second} “It poured.”, which is \
         pruned: `drawloom tree restore Rain {second}`"
    );
    assert_eq!(same.err.trim(), told);
    let shown = world.ok(&["tree", "show", "Rain", "--all"]);
    let marks =
        |id: &str| shown.lines().skip_while(|line| !line.contains(id)).nth(1).unwrap().trim().to_owned();
    let told = [&first, &second, &third].map(|id| marks(id));
    assert_eq!(told, ["owner", "owner · pruned", "owner · below a pruned one"], "{shown}");
    world.ok(&["tree", "restore", "Rain", &second]);
    assert_eq!(world.ok(&["tree", "go", "Rain", &third]).trim(), third);
}

#[test]
fn a_node_of_one_author_is_one_line_of_the_spans() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Rain", "--text", "It rained. It poured."]);
    world.ok(&["tree", "edit", "Rain", &node(&world, 1), "--text", "It rained hard. It poured a lot."]);
    let shown = world.ok(&["tree", "text", "Rain", "--spans"]);
    let lines: Vec<&str> = shown.lines().filter(|line| line.contains('–')).collect();
    assert_eq!(lines.len(), 1, "{shown}");
}

#[test]
fn what_will_be_forgotten_is_listed_by_name_beforehand() {
    let world = World::new();
    story(&world);
    world.ok(&[
        "tree",
        "new",
        "--title",
        "Song",
        "--text",
        "It rained.\n\nAnd so on, for many more words than fit.",
    ]);
    let (_, list) = world.json(&["tree", "list"]);
    let short = |title: &str| {
        let trees = list["trees"].as_array().unwrap();
        trees.iter().find(|tree| tree["title"] == title).unwrap()["short_id"].as_str().unwrap().to_owned()
    };
    let line = format!("  {}:{} \"It rained.\", 10 characters", short("Rain"), node(&world, 1));
    let preview = world.run(&["forget", "--text", "It rained", "--dry-run"]);
    assert!(
        preview.out.contains(&line) && preview.out.contains(&format!("  {}:", short("Song"))),
        "{preview:?}"
    );
    let whole = "the whole text of these nodes goes";
    assert!(preview.err.contains(whole), "{preview:?}");
    let arguments = ["forget", "--text", "It rained"];
    let (code, asked) = at_terminal(&world, &world.path("here"), &arguments, "n\n");
    assert!(code == Some(4) && asked.contains("forget the whole text of 2 nodes for good? [y/N]"), "{asked}");
    let refused = world.run(&["forget", "--text", "It rained"]);
    assert!(refused.code == Some(4) && refused.err.contains(&line), "{refused:?}");

    let named = format!("Rain:{}", node(&world, 1));
    let brief = world.run(&["forget", &named, "--dry-run"]);
    assert!(brief.err.contains("shorter than 16 bytes"), "{brief:?}");
    assert!(!brief.err.contains(whole), "the control: a node is named as a whole: {brief:?}");
    let tree = world.run(&["forget", "Rain"]);
    assert!(tree.code == Some(3) && tree.err.contains("`drawloom tree purge Rain`"), "{tree:?}");
    world.ok(&["tree", "purge", "Rain", "--yes", "--yes"]);
    let again = world.run(&["tree", "purge", &short("Rain"), "--yes", "--yes"]);
    assert!(again.code == Some(3) && again.err.contains("is already purged"), "{again:?}");
}

#[test]
fn an_export_without_a_file_is_in_the_json_too() {
    let world = World::new();
    story(&world);
    let (code, exported) = world.json(&["tree", "export", "Rain", "--format", "text"]);
    assert_eq!((code, &exported["text"]), (Some(0), &json!("It rained.")));
    let shared = world.run(&["tree", "export", "Rain", "--format", "html", "--share"]);
    assert!(shared.err.contains("no known secret is in it"), "{shared:?}");
    let file = text(&world.path("rain.txt"));
    let (_, exported) = world.json(&["tree", "export", "Rain", "--format", "text", "-o", &file]);
    assert_eq!(exported["text"], Value::Null, "the control: {exported}");
}

#[test]
fn what_documents_cost_is_under_their_titles() {
    let world = World::new();
    story(&world);
    let model = answers(&world);
    world.ok(&["--model", &model, "tree", "generate", "Rain"]);
    for folder in ["one", "two"] {
        std::fs::create_dir(world.path(folder)).unwrap();
        world.ok(&["--model", &model, "--workspace", &text(&world.path(folder)), "chat", "-m", "hi"]);
    }
    let (_, costs) = world.json(&["cost", "--by", "session"]);
    let keys: Vec<&str> =
        costs["rows"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    let main = |folder: &str| format!("main ({})", text(&world.path(folder)));
    assert!(
        keys.contains(&"Rain") && keys.contains(&&*main("one")) && keys.contains(&&*main("two")),
        "{keys:?}"
    );
}

#[test]
fn models_of_a_configured_local_server_are_listed() {
    let (world, server) = (World::new(), server());
    world.ok(&["config", "set", "providers.box.base_url", &format!("http://127.0.0.1:{}", server.port)]);
    let listed = world.ok(&["model", "list", "--detect"]);
    assert!(listed.contains("box/small") && listed.contains("box/large"), "{listed}");
    assert!(!world.ok(&["model", "list"]).contains("box/small"), "the control: nobody was asked");
    let used = world.run(&["model", "use", "box/nosuch"]);
    assert!(used.code == Some(3) && used.err.contains("which lists small, large"), "{used:?}");
    assert!(used.err.contains("`drawloom model use box/small`"), "{used:?}");
    assert_eq!(world.json(&["config", "show"]).1["model"]["default"], Value::Null, "nothing is kept");
    world.ok(&["model", "use", "box/small"]);
    world.ok(&["config", "set", "providers.gone.base_url", "http://127.0.0.1:9"]);
    let used = world.run(&["model", "use", "gone/any"]);
    assert!(
        used.code == Some(0) && used.err.contains(" (") && used.err.contains("kept unchecked"),
        "a server that is not up: {used:?}"
    );
    let used = world.run(&["model", "use", "local/nope"]);
    let command = "`drawloom config set providers.local.base_url http://127.0.0.1:8080/v1`";
    assert!(used.code == Some(3) && used.err.contains(command), "{used:?}");
}

#[test]
fn a_model_of_a_conversation_is_one_that_its_server_has() {
    let (world, server) = (World::new(), server());
    world.ok(&["config", "set", "providers.box.base_url", &format!("http://127.0.0.1:{}", server.port)]);
    world.ok(&["config", "set", "providers.gone.base_url", "http://127.0.0.1:9"]);
    world.ok(&["--model", "script:echo", "chat", "-m", "hello"]);
    let model = |line: &str| world.run(&["chat", "-m", line]);
    let refused = model("/model box/nosuch");
    assert!(refused.code == Some(3) && refused.err.contains("which lists small, large"), "{refused:?}");
    assert!(refused.err.contains("`/model box/small`"), "{refused:?}");
    for name in ["box/small", "gone/any"] {
        let set = model(&format!("/model {name}"));
        assert!(set.code == Some(0) && set.out.contains(name), "{set:?}");
    }
    assert_eq!(model("/model script:echo").code, Some(0));
}

#[test]
fn the_server_of_an_address_is_asked_for_its_models() {
    let world = World::new();
    let server = crate::server::Server::start(|path, _| {
        let models = serde_json::json!({"data": [{"id": "small"}, {"id": "large"}]});
        (path == "/v1/models").then(|| models.to_string())
    });
    for base in [format!("http://127.0.0.1:{}", server.port), server.base()] {
        let used = world.run(&["model", "use", &format!("{base}/nosuch")]);
        assert!(used.code == Some(3) && used.err.contains("which lists small, large"), "{used:?}");
        assert!(used.err.contains(&format!("`drawloom model use {base}/small`")), "{used:?}");
        assert_eq!(world.json(&["config", "show"]).1["model"]["default"], Value::Null, "nothing is kept");
    }
    assert!(server.asked().iter().all(|(path, _)| path == "/v1/models"), "{:?}", server.asked());
    let used = world.run(&["model", "use", &format!("{}/small", server.base())]);
    assert!(used.code == Some(0) && !used.err.contains("unchecked"), "{used:?}");
}

#[test]
fn of_a_file_that_cannot_be_read_only_that_is_said() {
    let world = World::new();
    world.write("keys.toml", "[providers.rem]\nkey = \"canary-0123456789\"\n");
    world.write("config.toml", "[providers.rem\nbase_url = \"http://h\"\n");
    let (code, found) = world.json(&["config", "check"]);
    assert_eq!((code, found["problems"].as_array().unwrap().len()), (Some(1), 1), "{found}");
    world.write("config.toml", "");
    let (_, found) = world.json(&["config", "check"]);
    assert!(found["problems"][0].as_str().unwrap().contains("base_url is missing"), "the control: {found}");
}

#[test]
fn a_link_that_leads_nowhere_or_a_folder_in_the_place_of_settings_is_named() {
    let world = World::new();
    let config = world.home().join("config.toml");
    world.ok(&["tree", "list"]);
    std::os::unix::fs::symlink("nowhere", &config).unwrap();
    let run = world.run(&["config", "check"]);
    assert!(run.code == Some(1) && run.out.contains("a link that leads nowhere"), "{run:?}");
    std::fs::remove_file(&config).unwrap();
    std::fs::create_dir(&config).unwrap();
    let run = world.run(&["config", "check"]);
    assert!(run.code == Some(1) && run.out.contains("it is a folder"), "{run:?}");
}

#[test]
fn a_question_names_the_request_it_was_sent_with() {
    let world = World::new();
    world.ok(&["--model", "script/echo", "chat", "-m", "Did it rain?"]);
    let (_, log) = world.json(&["log", "-n", "1"]);
    let question = log["exchanges"][0]["node"].as_str().unwrap();
    let (_, sent) = world.json(&["context", "show", question]);
    let (_, newest) = world.json(&["context", "show", log["exchanges"][0]["tree"].as_str().unwrap()]);
    assert!(sent["manifest"].is_string() && sent["manifest"] == newest["manifest"], "{sent} {newest}");
}

#[test]
fn undo_names_the_operation_whatever_was_undone_before() {
    let world = World::new();
    story(&world);
    world.ok(&["tree", "append", "Rain", "It poured."]);
    let node = node(&world, 2);
    for (step, moved) in
        [("undo", "went"), ("redo", "came"), ("undo", "went"), ("redo", "came"), ("undo", "went")]
    {
        let told = world.ok(&["tree", step, "Rain"]);
        assert_eq!(told, format!("{step}ne: wrote {node} “It poured.”; 2 words {moved}\n"));
    }
}

#[test]
fn the_log_and_undo_say_what_was_done_and_to_which_passage() {
    let world = World::new();
    story(&world);
    let first = node(&world, 1);
    world.ok(&["tree", "append", "Rain", "It poured."]);
    let second = node(&world, 2);
    world.ok(&["tree", "tag", "Rain", &second, "wet"]);
    world.ok(&["tree", "merge", "Rain", &second]);
    let undone = world.ok(&["tree", "undo", "Rain"]);
    assert!(
        undone.starts_with("undone: merge into ") && undone.ends_with("”\n"),
        "no word came or went: {undone}"
    );
    world.ok(&["tree", "go", "Rain", &first]);
    world.ok(&["tree", "append", "Rain", "It snowed."]);
    world.ok(&["tree", "switch", "Rain", &second]);
    let log = world.run(&["tree", "log", "Rain", "--limit", "7"]);
    for did in [
        format!("went to {second} “It poured.”"),
        format!("moved the end of main to {first} “It rained.”"),
        "undid: merge into ".to_owned(),
        format!("put the tag #wet on {second} “It poured.”"),
    ] {
        assert!(log.out.contains(&did), "{did}: {}", log.out);
    }
    let undone = world.ok(&["tree", "undo", "Rain"]);
    assert!(undone.starts_with(&format!("undone: went to {second} “It poured.”")), "{undone}");
    let more =
        log.err.trim().strip_prefix("more: `drawloom ").and_then(|more| more.strip_suffix('`')).unwrap();
    let more: Vec<&str> = more.split(' ').collect();
    assert!(world.ok(&more).contains("made the tree"), "{more:?}");
}

#[test]
fn undo_says_where_it_changed_nothing() {
    let world = World::new();
    story(&world);
    world.ok(&["tree", "edit", "Rain", &node(&world, 1), "--text", "It poured."]);
    world.ok(&["forget", "--text", "It rained", "--yes", "--yes"]);
    let run = world.run(&["tree", "undo", "Rain"]);
    assert!(run.out.starts_with("not undone: edit of ") && run.out.ends_with(" “It poured.”\n"), "{run:?}");
    assert!(run.err.contains("not undone, because it was changed or forgotten since"), "{run:?}");
    let log = world.ok(&["tree", "log", "Rain", "--limit", "1"]);
    assert!(log.contains("did not undo: edit of "), "{log}");
    assert_eq!(world.ok(&["tree", "text", "Rain"]), "It poured.");
}

#[test]
fn requests_and_responses_that_are_here_are_not_read_when_a_file_brings_them_again() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Rain", "--text", "It rained."]);
    world.ok(&["--model", "script:echo", "tree", "generate", "Rain"]);
    let file = text(&world.path("rain.jsonl"));
    world.ok(&["tree", "export", "Rain", "--with-context", "-o", &file]);
    let database = rusqlite::Connection::open(world.home().join("loom.db")).unwrap();
    for table in ["responses", "bodies"] {
        let damaged = database.execute(&format!("UPDATE {table} SET bytes = X'ff'"), []).unwrap();
        assert_eq!(damaged, 1, "{table}");
    }
    drop(database);
    let run = world.run(&["import", &file]);
    assert!(run.code == Some(0) && run.err.contains("already in this home"), "{run:?}");
    assert!(!run.err.contains("not added"), "{run:?}");
    let control = world.run(&["tree", "export", "Rain", "-o", &text(&world.path("again.jsonl"))]);
    assert_eq!(control.code, Some(6), "the control: they cannot be read: {control:?}");
}

#[test]
fn a_server_that_only_chats_is_met_with_the_setting_for_it() {
    let world = World::new();
    let server = crate::server::Server::start(|path, _| {
        (path == "/v1/chat/completions").then(|| crate::server::chat("", " and then it stopped.", 100))
    });
    world.write("config.toml", &format!("[providers.box]\nbase_url = \"{}\"\n", server.base()));
    world.ok(&["tree", "new", "--title", "Tale", "--text", "It rained"]);
    let generate = ["tree", "generate", "Tale", "--model", "box/m"];
    let run = world.run(&generate);
    let setting = "`drawloom config set providers.NAME.completion_endpoint false`";
    assert!(
        run.code != Some(0) && run.err.contains("/v1/completions") && run.err.contains(setting),
        "{run:?}"
    );
    world.ok(&["config", "set", "providers.box.completion_endpoint", "false"]);
    world.ok(&generate);
    assert!(world.ok(&["tree", "text", "Tale"]).contains("and then it stopped."), "the control");
}

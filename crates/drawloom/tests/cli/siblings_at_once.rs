//! Answers that are asked for at once, of which some fail or are stopped, or whose place is pruned meanwhile.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::server::{self, Server};
use crate::terminal::Terminal;
use crate::trust::with_terminal;
use crate::world::World;

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq)]
enum Reply {
    Answer,
    /// Its place is pruned, and it is answered.
    PrunedAnswer,
    /// Its place is pruned, and it may be repeated.
    PrunedBusy,
}

/// A world with a document that ends with a passage, the short id of that, and a model whose requests, in the order they
/// come, have these replies.
fn world(replies: &'static [Reply]) -> (World, String, Server) {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Rain", "--text", "It rained."]);
    let node = world.ok(&["tree", "append", "Rain", " It poured."]).trim().to_owned();
    let prune = Mutex::new(world.command(&["tree", "prune", "Rain", &node]));
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |path, body| {
        if !path.ends_with("/completions") || body.is_null() {
            return None;
        }
        let reply = replies.get(asked.fetch_add(1, Ordering::SeqCst)).copied().unwrap_or(Reply::Answer);
        if reply != Reply::Answer {
            assert!(prune.lock().unwrap().output().unwrap().status.success());
        }
        Some(if reply == Reply::PrunedBusy { server::BUSY.to_owned() } else { server::chat("", "Yes.", 100) })
    });
    world.write("config.toml", &format!("[providers.box]\nbase_url = {:?}\n", server.base()));
    (world, node, server)
}

#[test]
fn what_is_said_of_one_that_fails_names_places_by_their_short_ids() {
    let (world, node, _server) = world(&[Reply::Answer, Reply::PrunedBusy]);
    let run = world.run(&["--model", "box/m", "tree", "generate", "Rain", "--from", &node, "-n", "2"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let notice = run.err.lines().find(|line| line.starts_with("one of the requests failed: "));
    assert!(notice.is_some_and(|notice| notice.contains(&format!("{node} is pruned"))), "{run:?}");
    let is_whole_id = |word: &str| word.len() == 26 && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    assert!(!run.err.split(|c: char| !c.is_ascii_alphanumeric()).any(is_whole_id), "{run:?}");
}

#[test]
fn no_way_is_named_to_an_answer_below_what_was_pruned_meanwhile() {
    for (replies, is_pruned) in [(&[Reply::PrunedAnswer][..], true), (&[Reply::Answer], false)] {
        let (world, node, _server) = world(replies);
        world.ok(&["tree", "append", "Rain", " It stopped."]);
        let run = world.run(&["--model", "box/m", "tree", "generate", "Rain", "--from", &node]);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(run.err.contains("drawloom tree go"), !is_pruned, "{run:?}");
    }
}

#[test]
fn answers_that_are_stopped_are_all_kept_and_named() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Rain", "--text", "It rained."]);
    let words: String = (0..200).map(|word| format!("\" w{word}\",")).collect();
    let slow = format!("{{\"deltas\": [{}], \"delta_delay_ms\": 100}}\n", words.trim_end_matches(','));
    std::fs::write(world.path("here/slow.jsonl"), slow.repeat(2)).unwrap();
    let generate = ["--model", "script:slow.jsonl", "tree", "generate", "Rain", "-n", "2"];
    let mut terminal = Terminal::of_width(with_terminal(&world.command(&generate)), 200);
    terminal.shows(" w9 ");
    terminal.types("\x03");
    assert_eq!(terminal.ended(), Some(130), "{}", terminal.contents());
    while terminal.listen() {}
    let screen = terminal.contents();
    let named = screen.split("the parts received are kept as ").nth(1).unwrap_or_else(|| panic!("{screen}"));
    let named: Vec<&str> = named.split(':').next().unwrap().split(", ").collect();
    let (_, shown) = world.json(&["tree", "show", "Rain", "--all"]);
    let nodes = shown["nodes"].as_array().unwrap().iter();
    let kept = nodes.filter(|node| node["text"].as_str().is_some_and(|text| text.starts_with(" w0")));
    let kept: Vec<&str> = kept.map(|node| node["short_id"].as_str().unwrap()).collect();
    assert_eq!(kept.len(), 2, "{shown}");
    assert!(kept.iter().all(|id| named.contains(id)), "{kept:?}: {screen}");
    // The way to ask again asks beside the part, and not behind it.
    let again = format!("`drawloom tree regenerate Rain {}` asks again", kept[0]);
    assert!(screen.contains(&again), "{screen}");
    std::fs::write(world.path("here/whole.jsonl"), "{\"text\": \" Whole.\"}").unwrap();
    let (_, made) = world.json(&["--model", "script:whole.jsonl", "tree", "regenerate", "Rain", kept[0]]);
    assert_eq!(made["nodes"][0]["text"], " Whole.", "{made}");
}

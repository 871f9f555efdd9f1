//! Answers that end with a sentence or a paragraph, written on one after another.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Value, json};

use crate::world::{World, text};

/// A script that answers each call with more than a sentence, in small pieces.
fn model(world: &World, answer: &str) -> String {
    let file = world.path("long.jsonl");
    let pieces: Vec<String> = answer.chars().map(String::from).collect();
    std::fs::write(&file, json!({"deltas": pieces}).to_string()).unwrap();
    format!("script:{}", text(&file))
}

/// Writes on in `tree` some times, and checks that each call adds the same text and nothing else.
fn goes_on(stop: &str, answer: &str, new: &str, times: usize) {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Rain", "--text", "It rained. "]);
    let model = model(&world, answer);
    let mut expected = "It rained. ".to_owned();
    for time in 0..times {
        let run = world.run(&["--model", &model, "tree", "generate", "Rain", "--stop", stop]);
        assert_eq!(run.code, Some(0), "call {time}: {}", run.err);
        // White space that stands in the document already is not written twice.
        expected.push_str(new);
        let shown = world.ok(&["tree", "text", "Rain"]);
        assert_eq!(shown.trim_end(), expected.trim_end(), "call {time}");
    }
    if let "sentence" | "paragraph" = stop {
        let shown = world.ok(&["tree", "show", "Rain"]);
        assert!(shown.contains(&format!("to the end of a {stop}")), "{shown}");
    }
    let verified = world.ok(&["tree", "verify", "Rain"]);
    assert!(verified.contains("valid") && !verified.contains("invalid"), "{verified}");
}

#[test]
fn twenty_sentences_go_on() {
    let answer = " Dr. Boatman counted 3.5 stones, e.g. flints… slowly. “Why?” he asked. Then";
    goes_on("sentence", answer, "Dr. Boatman counted 3.5 stones, e.g. flints… slowly. ", 20);
}

#[test]
fn sentences_without_spaces_go_on() {
    goes_on("sentence", "彼は来た。彼女は行った。", "彼は来た。", 3);
}

#[test]
fn paragraphs_keep_their_blank_line() {
    goes_on("paragraph", "One. Two.\n\nThree. Four.", "One. Two.\n\n", 5);
}

#[test]
fn answers_that_are_no_longer_than_a_sentence_are_whole() {
    goes_on("sentence", " One sentence. ", "One sentence. ", 3);
}

/// A server that sends the beginning of an answer and leaves it open; its base address, and the paths, bodies and hang-ups
/// of its clients. Whoever waits for the end of an answer waits for ever.
fn endless(pieces: &'static [&'static str]) -> (String, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, asked) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let sender = sender.clone();
            std::thread::spawn(move || begin(&stream.unwrap(), pieces, &sender));
        }
    });
    (base, asked)
}

fn begin(mut stream: &TcpStream, pieces: &[&str], asked: &Sender<(String, Value)>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        let line = line.to_ascii_lowercase();
        length = line.strip_prefix("content-length:").map_or(length, |n| n.trim().parse().unwrap());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    if !first.starts_with("POST") || path.ends_with("/tokenize") {
        let none = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        return stream.write_all(none).ok();
    }
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        .ok()?;
    for said in pieces {
        let event = piece(&path, said);
        // It may have hung up by then.
        let _ = stream.write_all(event.as_bytes());
    }
    // It answers nothing more: the client has to go.
    let _ = reader.read_to_end(&mut Vec::new());
    asked.send((path, serde_json::from_slice(&body).unwrap())).ok()
}

/// A piece of an answer in the form of the API that has this path.
fn piece(path: &str, said: &str) -> String {
    let event = if path.ends_with("/chat/completions") {
        json!({"id": "c", "choices": [{"index": 0, "delta": {"content": said}, "finish_reason": null}]})
    } else if path.ends_with("/completions") {
        json!({"id": "c", "choices": [{"index": 0, "text": said, "finish_reason": null}]})
    } else if path.ends_with("/responses") {
        json!({"type": "response.output_text.delta", "delta": said})
    } else if path.ends_with("/messages") {
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": said}})
    } else {
        json!({"candidates": [{"content": {"role": "model", "parts": [{"text": said}]}}]})
    };
    let name = event["type"].as_str().map(|name| format!("event: {name}\n")).unwrap_or_default();
    let begun = json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant",
        "model": "m", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}});
    let block =
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let head = (path.ends_with("/messages") && said.starts_with(FIRST)).then(|| {
        format!("event: message_start\ndata: {begun}\n\nevent: content_block_start\ndata: {block}\n\n")
    });
    format!("{}{name}data: {event}\n\n", head.unwrap_or_default())
}

/// With what each answer begins.
const FIRST: &str = " The rain";
const PIECES: [&str; 4] = [FIRST, " fell. “Why?", "” he asked.\n\nNobody", " said a word."];

/// The forms in which a document is continued: settings of a provider, and the end of the path that is asked.
const FORMS: [(&str, &str); 6] = [
    ("kind = \"llamacpp\"", "/completions"),
    ("kind = \"vllm\"\ncompletion_endpoint = false", "/chat/completions"),
    ("dialect = \"openai_chat\"\ncompletion_endpoint = false", "/chat/completions"),
    ("dialect = \"openai_responses\"\ncompletion_endpoint = false", "/responses"),
    ("dialect = \"anthropic_messages\"", "/messages"),
    ("dialect = \"gemini\"", "GenerateContent?alt=sse"),
];

#[test]
fn a_stop_is_cut_in_every_dialect_and_ends_the_stream() {
    for (form, end) in FORMS {
        for (stop, kept) in
            [("sentence", " The rain fell. "), ("paragraph", " The rain fell. “Why?” he asked.\n\n")]
        {
            let (base, asked) = endless(&PIECES);
            let world = World::new();
            let config = format!(
                "[model]\ndefault = \"box/m\"\n[providers.box]\nbase_url = \"{base}\"\n{form}\nplace = \"remote\"\n\
                 window = 32000\nidle_timeout = 30\n[models.\"box/m\"]\nprice_input = 10.0\nprice_output = 10.0\n"
            );
            world.write("config.toml", &config);
            world.ok(&["tree", "new", "--title", "Rain", "--text", "It was dark."]);
            let (code, made) = world.json(&["tree", "generate", "Rain", "--stop", stop]);
            assert_eq!(code, Some(0), "{form}, {stop}: {made}");
            let (_, cost) = world.json(&["cost"]);
            let row = &cost["rows"][0];
            assert!(row["output"].as_u64() > Some(3) && row["cost"].as_f64() > Some(0.0), "{form}: {cost}");
            assert_eq!(
                made["usage"]["reported"], false,
                "{form}: the server had not counted its answer: {made}"
            );
            if end == "/messages" {
                assert_eq!(made["usage"]["input_uncached"], 9, "the server had counted its input: {made}");
            }
            let text = world.ok(&["tree", "text", "Rain"]);
            assert_eq!(text.trim_end(), format!("It was dark.{kept}").trim_end(), "{form}, {stop}");
            let (path, body) = asked.recv().unwrap();
            assert!(path.ends_with(end), "{form}: {path}");
            for field in ["stop", "stop_sequences", "stopSequences"] {
                assert!(!body.to_string().contains(&format!("\"{field}\":")), "{form}: {body}");
            }
            let (_, verified) = world.json(&["tree", "verify", "Rain"]);
            assert_eq!(verified["status"], "valid", "{form}, {stop}: {verified}");
        }
    }
}

#[test]
fn what_a_cut_answer_of_a_conversation_came_to_is_estimated() {
    for words in [&["chat", "-m"][..], &["ask"]] {
        let (base, _asked) = endless(&PIECES);
        let world = World::new();
        let config = format!(
            "[model]\ndefault = \"box/m\"\n[providers.box]\nbase_url = \"{base}\"\ndialect = \"openai_chat\"\n\
             place = \"remote\"\nwindow = 32000\nidle_timeout = 30\n[presets.s]\nstop = [\"sentence\"]\n"
        );
        world.write("config.toml", &config);
        let (code, done) = world.json(&[words, &["Wet?", "--preset", "s"]].concat());
        assert_eq!((code, &done["text"]), (Some(0), &json!(" The rain fell. ")), "{done}");
        let usage = &done["usage"];
        assert_eq!(usage["reported"], false, "{done}");
        assert!(usage["input_uncached"].as_u64() > Some(3) && usage["output"].as_u64() > Some(2), "{done}");
    }
}

#[test]
fn equal_answers_with_different_ends_are_valid_in_a_file() {
    let (base, _asked) = endless(&["It rained. It poured.\n\nIt cleared."]);
    let world = World::new();
    let config = format!(
        "[model]\ndefault = \"box/m\"\n[providers.box]\nbase_url = \"{base}\"\nkind = \"llamacpp\"\nwindow = 32000\n\
         idle_timeout = 30\n"
    );
    world.write("config.toml", &config);
    world.ok(&["tree", "new", "--title", "Rain", "--text", "Once. "]);
    for stop in ["sentence", "paragraph"] {
        world.ok(&["tree", "generate", "Rain", "--stop", stop]);
    }
    let shown = world.ok(&["tree", "text", "Rain"]);
    assert_eq!(shown.trim_end(), "Once. It rained. It rained. It poured.");
    let [file, again] = ["rain.jsonl", "again.jsonl"].map(|name| text(&world.path(name)));
    world.ok(&["tree", "export", "Rain", "-o", &file]);
    let exported = std::fs::read_to_string(&file).unwrap();
    assert_eq!(exported.matches("{\"record\":\"response\"").count(), 1, "equal bytes are one record");
    let verified = world.run(&["tree", "verify", "--file", &file]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    std::fs::rename(world.home(), world.path("first")).unwrap();
    world.ok(&["import", &file]);
    let (_, verified) = world.json(&["tree", "verify", "Rain"]);
    assert_eq!(verified["status"], "valid", "{verified}");
    world.ok(&["tree", "export", "Rain", "-o", &again]);
    assert_eq!(std::fs::read_to_string(&again).unwrap(), exported);
}

#[test]
fn twenty_sentences_of_a_server_go_on() {
    let (base, asked) = endless(&PIECES);
    let world = World::new();
    let config = format!(
        "[model]\ndefault = \"box/m\"\n[providers.box]\nbase_url = \"{base}\"\nkind = \"llamacpp\"\nwindow = 32000\n\
         idle_timeout = 30\n"
    );
    world.write("config.toml", &config);
    world.ok(&["tree", "new", "--title", "Rain", "--text", "It was dark."]);
    for time in 1..=20 {
        world.ok(&["tree", "generate", "Rain", "--stop", "sentence"]);
        let expected = format!("It was dark.{}", " The rain fell.".repeat(time));
        assert_eq!(world.ok(&["tree", "text", "Rain"]).trim_end(), expected, "call {time}");
        assert!(asked.recv().unwrap().1["stop"].is_null(), "call {time}");
    }
    let (_, verified) = world.json(&["tree", "verify", "Rain"]);
    assert_eq!(verified["status"], "valid", "{verified}");
}

#[test]
fn a_text_stops_an_answer_though_its_server_writes_on() {
    for (form, end) in FORMS {
        let (base, asked) = endless(&[FIRST, " fell. “Wh", "y?” he asked.", " “Wh"]);
        let world = World::new();
        let config = format!(
            "[model]\ndefault = \"box/m\"\n[providers.box]\nbase_url = \"{base}\"\n{form}\nwindow = 32000\n\
             idle_timeout = 600\n"
        );
        world.write("config.toml", &config);
        world.ok(&["tree", "new", "--title", "Rain", "--text", "It was dark."]);
        let (code, made) = world.json(&["tree", "generate", "Rain", "--stop", "“Why", "--stop", "never"]);
        if end == "/responses" {
            // Its API has no field for it, and no chat completions stand beside it here.
            assert_eq!((code, &made["error"]["code"]), (Some(5), &"unsupported".into()), "{made}");
            continue;
        }
        assert_eq!(code, Some(0), "{form}: {made}");
        assert_eq!(world.ok(&["tree", "text", "Rain"]).trim_end(), "It was dark. The rain fell.", "{form}");
        let (path, body) = asked.recv().unwrap();
        assert!(body.to_string().contains("“Why"), "it was told: {path}: {body}");
        let (_, verified) = world.json(&["tree", "verify", "Rain"]);
        assert_eq!(verified["status"], "valid", "{form}: {verified}");
    }
}

#[test]
fn a_text_stops_a_script_and_one_that_does_not_come_changes_nothing() {
    goes_on("Then", " He asked. Then he", "He asked. ", 3);
    goes_on("Thence", " He asked. Then", "He asked. Then", 1);
}

#[test]
fn a_stop_that_is_nearly_a_name_is_refused() {
    let world = World::new();
    world.ok(&["tree", "new", "--title", "Rain", "--text", "It rained. "]);
    let model = model(&world, "One sentence. Two");
    let run = |stop: &str| world.run(&["--model", &model, "tree", "generate", "Rain", "--stop", stop]);
    for (stop, name) in [
        ("sentense", "sentence"),
        ("Sentence", "sentence"),
        ("PARAGRAPH", "paragraph"),
        ("sentence ", "sentence"),
        ("sentences", "sentence"),
        ("paragaph", "paragraph"),
        ("setnence", "sentence"),
    ] {
        let refused = run(stop);
        assert!(
            refused.code == Some(2) && refused.err.contains(&format!("did you mean {name}?")),
            "{refused:?}"
        );
    }
    for stop in ["Sentense", "a sentence", "tence", "sentence", "END"] {
        assert_eq!(run(stop).code, Some(0), "{stop}");
    }
}

/// Tokens that end a sentence or a paragraph in the place of all that no English text has.
#[cfg(feature = "embedded-model")]
fn talkative(world: &World) -> String {
    use crate::tiny::{Meta, TINY};
    let mut file = TINY.file();
    for (key, value) in &mut file.metadata {
        if let ("tokenizer.ggml.tokens", Meta::Texts(tokens)) = (key.as_str(), value) {
            // A blank and the end of a line, as vocabularies of this kind write them.
            let kept = |token: &str| token.is_ascii() || token.contains(['Ġ', 'Ċ']);
            for (number, token) in tokens.iter_mut().filter(|token| !kept(token)).enumerate() {
                let end = if number % 2 == 0 { "Ġ" } else { "ĊĊ" };
                *token = format!("w{number}.{end}The");
            }
        }
    }
    let path = world.path("talkative.gguf");
    std::fs::write(&path, file.bytes()).unwrap();
    text(&path)
}

#[test]
#[cfg(feature = "embedded-model")]
fn a_stop_is_cut_in_the_embedded_engine() {
    for stop in ["sentence", "paragraph"] {
        let world = World::new();
        let file = talkative(&world);
        world.ok(&["tree", "new", "--title", "Rain", "--text", "It was dark."]);
        for time in 0..3 {
            let sampling = ["--temperature", "3", "--seed", "7", "--max-tokens", "200", "--stop", stop];
            let ask = ["--model-file", &file, "tree", "generate", "Rain"];
            let (code, made) = world.json(&[&ask[..], &sampling].concat());
            assert_eq!(code, Some(0), "{stop}, call {time}: {made}");
            let said = made["nodes"][0]["text"].as_str().unwrap();
            // A paragraph ends a sentence, too.
            let paragraph = said.ends_with("\n\n") && said.matches("\n\n").count() == 1;
            let sentence = said.ends_with(". ") && said.matches(". ").count() == 1 && !said.contains("\n\n");
            assert!(paragraph || (stop == "sentence" && sentence), "{stop}, call {time}: {said:?}");
            assert!(made["usage"]["output"].as_u64() < Some(200), "it read on: {made}");
        }
        let (_, verified) = world.json(&["tree", "verify", "Rain"]);
        assert_eq!(verified["status"], "valid", "{stop}: {verified}");
    }
}

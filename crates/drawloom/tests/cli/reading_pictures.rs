//! Pictures that a model looks at with `read`: as its server takes them, and told where it takes none.

use data_encoding::BASE64;
use image::{ImageFormat, Rgb, RgbImage};
use serde_json::{Value, json};

use crate::pictures::blobs;
use crate::server::{self, Server};
use crate::world::{World, text};

fn picture(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    let image = RgbImage::from_fn(width, height, |x, y| Rgb([(x * 7) as u8, (y * 5) as u8, (x ^ y) as u8]));
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// A server whose model reads a file, in chat completions or in messages, and then says "I see.".
fn reads(path: &'static str) -> Server {
    Server::start(move |asked, body| {
        let is_first =
            !body.to_string().contains("This is a picture") && !body.to_string().contains("is not shown");
        let arguments = json!({ "path": path });
        Some(match (asked.contains("chat/completions"), is_first) {
            (true, true) => {
                let call = json!({"index": 0, "id": "c1", "type": "function",
                    "function": {"name": "read", "arguments": arguments.to_string()}});
                let delta = json!({"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [call]},
                    "finish_reason": "tool_calls"}]});
                format!("data: {delta}\n\ndata: [DONE]\n\n")
            }
            (true, false) => server::chat("", "I see.", 10),
            (false, true) => called(&arguments),
            (false, false) if asked.contains("messages") => server::messages("", "I see.", 10),
            (false, false) => return None,
        })
    })
}

/// A call in messages.
fn called(arguments: &Value) -> String {
    let all = [
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "m",
            "content": [], "usage": {"input_tokens": 10, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "tool_use", "id": "c1", "name": "read", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": arguments.to_string()}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ];
    let named = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    all.iter().map(named).collect()
}

/// A world with such a model, of a dialect, and with a file in its workspace.
fn world(server: &Server, dialect: &str, images: bool, (name, bytes): (&str, &[u8])) -> World {
    let world = World::new();
    world.write(
        "config.toml",
        &format!(
            "[model]\ndefault = \"seer/m\"\n[agents.assistant]\ntools = [\"read\"]\n[providers.seer]\nbase_url = \"{}\"\n\
             dialect = \"{dialect}\"\nplace = \"local\"\nwindow = 64000\n[models.\"seer/m\"]\nimages = {images}\n",
            server.base()
        ),
    );
    std::fs::create_dir_all(world.path("project")).unwrap();
    std::fs::write(world.path("project").join(name), bytes).unwrap();
    world
}

/// The messages of the last request, after a turn that ended well.
fn last_messages(world: &World, server: &Server) -> Vec<Value> {
    let project = text(&world.path("project"));
    assert_eq!(world.ok(&["--workspace", &project, "chat", "-m", "Look at it."]), "I see.\n");
    server.bodies().last().unwrap()["messages"].as_array().unwrap().clone()
}

fn size(data: &str) -> (u32, u32) {
    let image = image::load_from_memory(&BASE64.decode(data.as_bytes()).unwrap()).unwrap();
    (image.width(), image.height())
}

#[test]
fn in_chat_completions_a_picture_that_was_read_follows_its_result_in_the_users_place() {
    // Told by its first bytes, and scaled to what models take.
    let server = reads("sea.txt");
    let large = picture(3_136, 400, ImageFormat::WebP);
    let world = world(&server, "openai_chat", true, ("sea.txt", &large));
    let messages = last_messages(&world, &server);
    let [.., result, shown] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!(result["role"], "tool", "{result}");
    let said = result["content"].as_str().unwrap();
    assert_eq!(said.trim(), "This is a picture (WebP, 3136×400, shown as 1568×200).");
    assert_eq!(shown["role"], "user", "{shown}");
    let url = shown["content"][0]["image_url"]["url"].as_str().unwrap();
    assert_eq!(size(url.strip_prefix("data:image/png;base64,").unwrap()), (1_568, 200));
    // The next turn sends it again from what is kept, and the node names it.
    std::fs::remove_file(world.path("project/sea.txt")).unwrap();
    let again = last_messages(&world, &server);
    assert!(again.iter().any(|message| message == shown), "{again:?}");
    let shown = crate::tools::nodes(&world).into_iter().find(|node| node["author"] == "read").unwrap();
    assert_eq!(shown["media"][0]["mime"], "image/png", "{shown}");
}

#[test]
fn in_messages_a_picture_that_was_read_stands_in_its_result() {
    let server = reads("shell.jpg");
    let world =
        world(&server, "anthropic_messages", true, ("shell.jpg", &picture(40, 30, ImageFormat::Jpeg)));
    let messages = last_messages(&world, &server);
    let result = &messages.last().unwrap()["content"][0];
    assert_eq!(result["type"], "tool_result", "{result}");
    assert_eq!(result["content"][0]["text"].as_str().unwrap().trim(), "This is a picture (JPEG, 40×30).");
    let source = &result["content"][1]["source"];
    assert_eq!(
        (source["type"].as_str(), source["media_type"].as_str()),
        (Some("base64"), Some("image/jpeg"))
    );
    assert_eq!(size(source["data"].as_str().unwrap()), (40, 30));
}

#[test]
fn a_model_that_takes_no_pictures_is_told_what_it_is() {
    let server = reads("wave.gif");
    let world = world(&server, "openai_chat", false, ("wave.gif", &picture(16, 8, ImageFormat::Gif)));
    let messages = last_messages(&world, &server);
    let result = messages.last().unwrap();
    assert_eq!(result["role"], "tool", "{messages:?}");
    assert_eq!(result["content"], "This is a picture (GIF, 16×8).\n[picture left out: image/png]");
}

#[test]
fn a_picture_that_is_damaged_or_over_the_limit_is_not_shown_and_the_reason_is_told() {
    let whole = picture(40, 30, ImageFormat::Png);
    for (bytes, limit, why) in [
        (&whole[..whole.len() / 2], 1_000_000, "it is a damaged PNG"),
        (&whole[..], 1_000, "it is 40×30 pixels"),
    ] {
        let server = reads("a.png");
        let world = world(&server, "openai_chat", true, ("a.png", bytes));
        let config = world.read("config.toml") + &format!("[limits]\npicture = {limit}\n");
        world.write("config.toml", &config);
        let messages = last_messages(&world, &server);
        let result = messages.last().unwrap()["content"].as_str().unwrap();
        assert!(result.contains("it is a picture that is not shown") && result.contains(why), "{result}");
        assert!(!world.home().join("blobs").exists());
    }
}

#[test]
fn a_temporary_conversation_leaves_no_picture_that_was_read() {
    let server = reads("a.png");
    let world = world(&server, "openai_chat", true, ("a.png", &picture(40, 30, ImageFormat::Png)));
    let project = text(&world.path("project"));
    world.ok(&["--workspace", &project, "chat", "--private", "-m", "Look at it."]);
    assert!(server.bodies().last().unwrap().to_string().contains("image_url"));
    assert!(blobs(&world).is_empty());
    last_messages(&world, &server);
    assert_eq!(blobs(&world).len(), 1, "the control");
}

//! Servers of one's own in other dialects than OpenAI's.

use crate::server::{self, Server};
use crate::world::World;

#[test]
fn a_server_of_ones_own_continues_a_document_in_any_dialect() {
    let server = Server::start(|path, _| {
        if path.contains("messages") {
            return Some(server::messages("", " And so on.", 10));
        }
        let part = r#"{"candidates":[{"content":{"parts":[{"text":" And so on."}]},"finishReason":"STOP"}]}"#;
        path.contains("GenerateContent").then(|| format!("data: {part}\n\n"))
    });
    let world = World::new();
    let provider = |name: &str, dialect: &str| {
        format!(
            "[providers.{name}]\nbase_url = \"{}\"\ndialect = \"{dialect}\"\nwindow = 32000\nplace = \"local\"\n",
            server.base()
        )
    };
    let config = [provider("claudelike", "anthropic_messages"), provider("geminilike", "gemini")].concat();
    world.write("config.toml", &config);
    world.ok(&["tree", "new", "--title", "story", "--text", "It was a dark night."]);
    for model in ["claudelike/m", "geminilike/m"] {
        let run = world.run(&["tree", "generate", "story", "--model", model]);
        assert_eq!(run.code, Some(0), "{model}: {run:?}");
        assert!(run.out.contains("And so on."), "{model}: {run:?}");
    }
}

//! The server of tools with what the conformance suite of MCP calls, over streamable HTTP at a free port of the loopback,
//! whose address it prints. `tests/conformance.rs` runs it.

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use drawloom_mcp::{ServedTool, ServedTools, ToolReply, ToolServer};
use model::Cancel;
use rmcp::model::{ContentBlock, ResourceContents};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

/// A picture of one pixel, and a sound of no sample.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const SOUND: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// Tools with fixed answers.
struct Fixtures;

/// What a tool answers, and whether that is an error.
fn answer(tool: &str) -> Option<(Vec<ContentBlock>, bool)> {
    let picture = || ContentBlock::image(PICTURE, "image/png");
    Some(match tool {
        "test_simple_text" => {
            (vec![ContentBlock::text("This is a simple text response for testing.")], false)
        }
        "test_image_content" => (vec![picture()], false),
        "test_audio_content" => (vec![ContentBlock::audio(SOUND, "audio/wav")], false),
        "test_embedded_resource" => {
            let text = "This is an embedded resource content.";
            (vec![ContentBlock::embedded_text("test://embedded-resource", text)], false)
        }
        "test_multiple_content_types" => {
            let resource = ResourceContents::text(r#"{"test":"data"}"#, "test://mixed-content-resource");
            let text = ContentBlock::text("Multiple content types test:");
            (
                vec![text, picture(), ContentBlock::resource(resource.with_mime_type("application/json"))],
                false,
            )
        }
        "test_error_handling" => {
            (vec![ContentBlock::text("This tool intentionally returns an error for testing")], true)
        }
        "json_schema_2020_12_tool" => (vec![ContentBlock::text("The arguments fit.")], false),
        _ => return None,
    })
}

/// Names of the tools, and schemas of their arguments.
fn tools() -> [(&'static str, Value); 7] {
    let nothing = || json!({"type": "object", "additionalProperties": false});
    [
        ("test_simple_text", nothing()),
        ("test_image_content", nothing()),
        ("test_audio_content", nothing()),
        ("test_embedded_resource", nothing()),
        ("test_multiple_content_types", nothing()),
        ("test_error_handling", nothing()),
        (
            "json_schema_2020_12_tool",
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "$defs": {"address": {
                    "type": "object",
                    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
                }},
                "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
                "additionalProperties": false,
            }),
        ),
    ]
}

impl ServedTools for Fixtures {
    fn list(&self) -> Vec<ServedTool> {
        let told = |(name, schema): (&str, Value)| ServedTool {
            name: name.to_owned(),
            description: format!("Answers what the suite expects of {name}."),
            schema: schema.as_object().cloned().unwrap_or_default(),
        };
        tools().into_iter().map(told).collect()
    }

    fn call(&self, tool: &str, _: Map<String, Value>, _: &Cancel) -> Result<ToolReply, String> {
        let (content, is_error) = answer(tool).ok_or_else(|| format!("there is no tool {tool}"))?;
        Ok(ToolReply { content, is_error })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = ToolServer::new(Arc::new(Fixtures), "Answers what a suite of tests expects.");
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::<LocalSessionManager>::default(),
        StreamableHttpServerConfig::default(),
    );
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    writeln!(std::io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    axum::serve(listener, Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}

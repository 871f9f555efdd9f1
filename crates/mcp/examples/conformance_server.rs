//! The server of tools with what the conformance suite of MCP calls, over streamable HTTP at a free port of the loopback,
//! whose address it prints. `tests/conformance.rs` runs it.

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use context::ToolSpec;
use data_encoding::BASE64;
use drawloom_mcp::{EmbeddedResource, ResourceBody, ServedTools, ToolContent, ToolReply, ToolServer};
use model::Cancel;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

/// A picture of one pixel (PNG) and a sound of no sample (WAV), in Base64.
const PICTURE: &[u8] =
    b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const SOUND: &[u8] = b"UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// Tools with fixed answers.
struct Fixtures;

fn text(text: &str) -> ToolContent {
    ToolContent::Text(text.to_owned())
}

fn picture() -> Result<ToolContent, String> {
    let bytes = BASE64.decode(PICTURE).map_err(|error| error.to_string())?;
    Ok(ToolContent::Image { bytes, media_type: "image/png".to_owned() })
}

fn sound() -> Result<ToolContent, String> {
    let bytes = BASE64.decode(SOUND).map_err(|error| error.to_string())?;
    Ok(ToolContent::Audio { bytes, media_type: "audio/wav".to_owned() })
}

fn resource(uri: &str, media_type: &str, body: &str) -> ToolContent {
    let (uri, media_type) = (uri.to_owned(), Some(media_type.to_owned()));
    ToolContent::Resource(EmbeddedResource { uri, media_type, body: ResourceBody::Text(body.to_owned()) })
}

/// What a tool answers.
fn content(tool: &str) -> Result<Vec<ToolContent>, String> {
    Ok(match tool {
        "test_simple_text" => vec![text("This is a simple text response for testing.")],
        "test_image_content" => vec![picture()?],
        "test_audio_content" => vec![sound()?],
        "test_embedded_resource" => {
            let body = "This is an embedded resource content.";
            vec![resource("test://embedded-resource", "text/plain", body)]
        }
        "test_multiple_content_types" => vec![
            text("Multiple content types test:"),
            picture()?,
            resource("test://mixed-content-resource", "application/json", r#"{"test":"data"}"#),
        ],
        FAILS => vec![text("This tool intentionally returns an error for testing")],
        "json_schema_2020_12_tool" => vec![text("The arguments fit.")],
        _ => return Err(format!("there is no tool {tool}")),
    })
}

/// The tool whose answer is an error.
const FAILS: &str = "test_error_handling";

/// Names of the tools, and schemas of their arguments.
fn tools() -> [(&'static str, Value); 7] {
    let nothing = || json!({"type": "object", "additionalProperties": false});
    [
        ("test_simple_text", nothing()),
        ("test_image_content", nothing()),
        ("test_audio_content", nothing()),
        ("test_embedded_resource", nothing()),
        ("test_multiple_content_types", nothing()),
        (FAILS, nothing()),
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
    fn list(&self) -> Vec<ToolSpec> {
        let told = |(name, parameters): (&str, Value)| ToolSpec {
            name: name.to_owned(),
            description: format!("Answers what the suite expects of {name}."),
            parameters,
            core: false,
        };
        tools().into_iter().map(told).collect()
    }

    fn call(&self, tool: &str, _: Map<String, Value>, _: &Cancel) -> Result<ToolReply, String> {
        Ok(ToolReply { content: content(tool)?, is_error: tool == FAILS })
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

//! The server of tools with what the conformance suite of MCP calls, over streamable HTTP at a free port of the loopback,
//! whose address it prints. `tests/conformance.rs` runs it.

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use context::ToolSpec;
use drawloom_mcp::{ServedTools, ToolReply, ToolServer};
use model::Cancel;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

/// Tools with fixed answers.
struct Fixtures;

/// Text that a tool answers with, and whether that is an error.
fn answer(tool: &str) -> Option<(&'static str, bool)> {
    Some(match tool {
        "test_simple_text" => ("This is a simple text response for testing.", false),
        "test_error_handling" => ("This tool intentionally returns an error for testing", true),
        "json_schema_2020_12_tool" => ("The arguments fit.", false),
        _ => return None,
    })
}

/// Names of the tools, and schemas of their arguments.
fn tools() -> [(&'static str, Value); 3] {
    let nothing = || json!({"type": "object", "additionalProperties": false});
    [
        ("test_simple_text", nothing()),
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
        let (text, is_error) = answer(tool).ok_or_else(|| format!("there is no tool {tool}"))?;
        Ok(ToolReply { text: text.to_owned(), is_error })
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

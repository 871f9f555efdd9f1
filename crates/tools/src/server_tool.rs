//! Tools of MCP servers, as the owner accepted them (spec: agent §5). What they do is told by nobody but the owner: one
//! that is not marked as reading may write, and reach whom it likes.

use std::sync::Arc;

use context::ToolSpec;
use loom::ToolStatus;
use model::Cancel;
use policy::{Effect, ServerFacts};
use serde_json::{Map, Value};
use text::cut::head_tail;

use crate::arguments::ArgumentSchema;
use crate::exec::report::SHOWN;
use crate::tool::{CallScope, Tool, ToolOutput, bounded};

/// What there is to know of such a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTool {
    pub server: String,
    pub name: String,
    /// What its server says of it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Value,
    /// Tools of the server that the owner marked as reading.
    pub reading: Vec<String>,
    /// Whether its server reaches anybody else.
    pub is_online: bool,
}

/// What a server answered to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAnswer {
    /// What it said; or why the call failed.
    pub said: Result<String, String>,
    /// Bytes of pictures.
    pub pictures: Vec<Vec<u8>>,
    /// What the owner should know.
    pub notices: Vec<String>,
}

/// Asks the server; it blocks.
pub type AskServer = dyn Fn(&str, Map<String, Value>, &Cancel) -> ServerAnswer + Send + Sync;

impl ServerTool {
    /// Refuses what no call can be checked by.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        ArgumentSchema::new(&self.schema)
            .map(drop)
            .map_err(|why| format!("the schema of {} is none: {why}", self.name))
    }

    /// Tool that asks the server. All that comes of a call is from outside.
    pub fn into_tool(self, ask: Arc<AskServer>) -> Tool {
        let Self { server, name, description, schema, reading, is_online } = self;
        let spec = ToolSpec {
            name: context::tools::name_of_server_tool(&server, &name),
            description: format!("[of the server {server}] {description}"),
            parameters: schema,
            core: false,
        };
        let effects: &[Effect] = match (reading.contains(&name), is_online) {
            (true, false) => &[Effect::Read],
            (true, true) => &[Effect::Read, Effect::Net],
            (false, _) => &[Effect::Write, Effect::Net],
        };
        let run = move |call: &CallScope<'_>, arguments: Value| {
            let Value::Object(arguments) = arguments else {
                return ToolOutput::error("the arguments of a tool of a server are an object");
            };
            output(call, ask(&name, arguments, call.cancel)).from_outside()
        };
        Tool::reading_no_files(spec, run).of_server(ServerFacts { name: server, reading, is_online }, effects)
    }
}

/// An answer as the output of its call: masked, and no longer than that of any tool.
fn output(call: &CallScope<'_>, ServerAnswer { said, pictures, notices }: ServerAnswer) -> ToolOutput {
    let mask = |text: &str| call.scope.masker.mask_entering(text).text.into_owned();
    let (status, mut text) = match said {
        Ok(said) => (ToolStatus::Ok, said),
        Err(why) => (ToolStatus::Error, why),
    };
    let mut shown = Vec::new();
    for bytes in &pictures {
        match media::import_picture(bytes, call.scope.max_pixels) {
            Ok(picture) => shown.push(picture),
            Err(error) => text += &format!("\n[a picture that is not shown: {error}]"),
        }
    }
    if text.is_empty() && shown.is_empty() {
        "It said nothing.".clone_into(&mut text);
    }
    // Secrets go before anything is cut.
    let text = mask(&text);
    let text = head_tail(&text, SHOWN, "result").text.into_owned();
    let brief = notices.iter().map(|notice| mask(notice)).collect();
    let said = ToolOutput::said(status, bounded(text), call.scope.trust);
    ToolOutput { brief, pictures: shown, ..said }
}

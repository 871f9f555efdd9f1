//! Tools as a model is told of them, and which of them wait until they are searched for (spec: context §2, §3).
//!
//! The list never changes within a session. The core stands in it always. The rest stands there while it is small;
//! else two fixed tools stand for it: one that finds schemas and returns them as a result, one that calls what was
//! found. Neither says anything of what can be found, so that it costs the cache nothing when that changes.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::estimate::Estimator;

/// Most schemas that are sent at once.
pub const MOST_TOOLS: usize = 40;
/// The part of the window, one in so many, above which schemas wait.
pub const SCHEMA_SHARE: u64 = 10;
/// A window with fewer tokens gets no tools by itself.
pub const LEAST_WINDOW: u64 = 16_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON schema of its arguments.
    pub parameters: Value,
    /// Whether it is one of those that are always sent.
    pub core: bool,
}

impl ToolSpec {
    /// The characters of its schema.
    pub(crate) fn chars(&self) -> u64 {
        (self.name.chars().count() + self.description.chars().count()) as u64
            + self.parameters.to_string().chars().count() as u64
    }

    /// Tokens of its schema, estimated.
    pub(crate) fn tokens(&self, estimator: &Estimator) -> u64 {
        let chars = self.name.len() + self.description.len() + self.parameters.to_string().len();
        estimator.of_schema(chars) + estimator.of_messages(1)
    }
}

/// The name of a tool of a server. No other tool has a colon in its name.
pub fn name_of_server_tool(server: &str, tool: &str) -> String {
    format!("{server}:{tool}")
}

/// The server of a tool by its name, and the name that it has there; none of a tool of another kind.
pub fn server_of(name: &str) -> Option<(&str, &str)> {
    name.split_once(':')
}

/// The tools that are sent, sorted, and the names of those that wait: all outside of the core where they are deferred, and
/// in any case those of servers, whose texts are strangers'.
pub(crate) fn offered(tools: &[ToolSpec], defer: bool) -> (Vec<ToolSpec>, Vec<String>) {
    let waits = |tool: &&ToolSpec| defer && !tool.core || server_of(&tool.name).is_some();
    let mut sent: Vec<ToolSpec> = tools.iter().filter(|tool| !waits(tool)).cloned().collect();
    let mut waiting: Vec<String> = tools.iter().filter(waits).map(|tool| tool.name.clone()).collect();
    if !waiting.is_empty() {
        for fixed in [tool_search(), call_tool()] {
            if sent.iter().all(|tool| tool.name != fixed.name) {
                sent.push(fixed);
            }
        }
    }
    sent.sort_by(|a, b| a.name.cmp(&b.name));
    waiting.sort();
    (sent, waiting)
}

/// The tool that finds others.
pub fn tool_search() -> ToolSpec {
    ToolSpec {
        name: "tool_search".to_owned(),
        description: "Find further tools by what they do. Returns their names, descriptions and schemas."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"query": {"type": "string", "description": "What the tool should do."}},
            "required": ["query"],
            "additionalProperties": false,
        }),
        core: true,
    }
}

/// The tool that calls what was found.
pub fn call_tool() -> ToolSpec {
    ToolSpec {
        name: "call_tool".to_owned(),
        description: "Call a tool that tool_search found, with arguments that fit its schema.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The tool's name."},
                "arguments": {"type": "object", "description": "Its arguments."},
            },
            "required": ["name", "arguments"],
            "additionalProperties": false,
        }),
        core: true,
    }
}

/// What a call is about: of one through `call_tool` the tool and the arguments that stand in it.
pub fn unwrapped<'a>(name: &'a str, arguments: &'a Value) -> (&'a str, &'a Value) {
    let is_meant = name == call_tool().name && arguments.as_object().is_some_and(|given| given.len() == 2);
    let inner =
        is_meant.then(|| Some((arguments.get("name")?.as_str()?, arguments.get("arguments")?))).flatten();
    inner.filter(|(_, arguments)| arguments.is_object()).unwrap_or((name, arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, core: bool) -> ToolSpec {
        ToolSpec { name: name.into(), description: String::new(), parameters: json!({}), core }
    }

    #[test]
    fn two_fixed_tools_stand_for_those_that_wait() {
        let tools = [tool("zip", false), tool("read", true), tool("edit", true)];
        let names = |defer| {
            let (sent, waiting) = offered(&tools, defer);
            (sent.into_iter().map(|tool| tool.name).collect::<Vec<_>>(), waiting)
        };
        assert_eq!(names(false), (vec!["edit".into(), "read".into(), "zip".into()], vec![]));
        let core = ["call_tool", "edit", "read", "tool_search"].map(str::to_owned).to_vec();
        assert_eq!(names(true), (core, vec!["zip".to_owned()]));
        let of_server = [tool("notes:add", false), tool("read", true)];
        let (sent, waiting) = offered(&of_server, false);
        assert_eq!(
            sent.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
            ["call_tool", "read", "tool_search"]
        );
        assert_eq!(waiting, ["notes:add"]);
    }

    #[test]
    fn a_call_through_another_tool_is_that_of_what_stands_in_it() {
        let wrapped = json!({"name": "move", "arguments": {"from": "a"}});
        assert_eq!(unwrapped("call_tool", &wrapped), ("move", &json!({"from": "a"})));
        assert_eq!(unwrapped("read", &wrapped), ("read", &wrapped));
        for wrong in [json!({}), json!({"name": "move"}), json!({"name": 1, "arguments": {}}), json!([1])] {
            assert_eq!(unwrapped("call_tool", &wrong), ("call_tool", &wrong));
        }
        let more = json!({"name": "move", "arguments": {}, "now": true});
        assert_eq!(unwrapped("call_tool", &more).0, "call_tool", "an unknown parameter is refused");
    }
}

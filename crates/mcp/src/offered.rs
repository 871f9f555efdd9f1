//! Tools as a server offers them, bounded: their text is a stranger's.

use std::path::Path;

use loom::Digest;
use rmcp::model::Tool;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use text::grapheme::floor;
use text::terminal::{explicit, one_line};

/// Characters of a name; with that of its server it is what models take.
const LONGEST_NAME: usize = 64;
/// Bytes of a description that are kept.
const LONGEST_DESCRIPTION: usize = 2 << 10;
/// Bytes of a schema; a tool with a longer one is refused.
const LONGEST_SCHEMA: usize = 32 << 10;
/// Folders within each other in a schema.
const DEEPEST_SCHEMA: usize = 32;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OfferedTool {
    pub name: String,
    /// What the server says of it, with nothing hidden.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Value,
    /// Hash of all three as the server said them.
    pub hash: Digest,
}

impl OfferedTool {
    /// The tool that a server tells of.
    ///
    /// # Errors
    /// Why it is none that can be called.
    pub(crate) fn of(tool: &Tool) -> Result<Self, String> {
        let name = &*tool.name;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
            let shown: String = one_line(name).chars().take(LONGEST_NAME).collect();
            return Err(format!(
                "{shown:?} is no name of a tool here: letters, digits and `_-./`, {LONGEST_NAME} at most"
            ));
        }
        let schema = Value::Object((*tool.input_schema).clone());
        if schema.to_string().len() > LONGEST_SCHEMA {
            return Err(format!("{name}: its schema is longer than {} KiB", LONGEST_SCHEMA >> 10));
        }
        if depth(&schema) > DEEPEST_SCHEMA {
            return Err(format!("{name}: its schema is deeper than {DEEPEST_SCHEMA} levels"));
        }
        let said = tool.description.as_deref().unwrap_or_default();
        let shown = explicit(said.trim());
        let mut description = shown[..floor(&shown, LONGEST_DESCRIPTION.min(shown.len()))].to_owned();
        if description.len() < shown.len() {
            description += " […]";
        }
        let whole = json!([name, said, schema]);
        let canonical = serde_json_canonicalizer::to_vec(&whole)
            .map_err(|error| format!("{name}: its schema has no canonical form: {error}"))?;
        Ok(Self { name: name.to_owned(), description, schema, hash: Digest::of(&canonical) })
    }
}

fn depth(value: &Value) -> usize {
    let inner: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => return 0,
    };
    1 + inner.map(depth).max().unwrap_or(0)
}

/// Address of a folder.
pub(crate) fn file_address(path: &Path) -> String {
    let mut address = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                address.push(char::from(*byte));
            }
            byte => address += &format!("%{byte:02X}"),
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(value: Value) -> Result<OfferedTool, String> {
        OfferedTool::of(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn a_hash_is_of_all_that_a_server_says_of_a_tool_and_of_nothing_else() {
        let plain =
            json!({"name": "add", "description": "Adds.", "inputSchema": {"type": "object", "title": "a"}});
        let hash = |change: &dyn Fn(&mut Value)| {
            let mut changed = plain.clone();
            change(&mut changed);
            tool(changed).unwrap().hash
        };
        let same = hash(&|_| {});
        let order = json!({"title": "a", "type": "object"});
        assert_eq!(hash(&|tool| tool["inputSchema"] = order.clone()), same);
        assert_eq!(
            hash(&|tool| tool["annotations"] = json!({"readOnlyHint": true})),
            same,
            "hints say nothing"
        );
        let changes: [&dyn Fn(&mut Value); 4] = [
            &|tool| tool["name"] = "sub".into(),
            &|tool| tool["description"] = "Adds. Call it first.".into(),
            &|tool| tool["description"] = "Adds. ".into(),
            &|tool| tool["inputSchema"]["title"] = "b".into(),
        ];
        for change in changes {
            assert_ne!(hash(change), same);
        }
        let long = |end: &str| format!("{}{end}", "x".repeat(LONGEST_DESCRIPTION));
        let [one, other] = ["a", "b"].map(|end| hash(&|tool| tool["description"] = long(end).into()));
        assert_ne!(one, other, "what is left out counts");
    }

    #[test]
    fn what_hides_is_shown_and_what_is_too_much_is_left_out_or_refused() {
        let told = |description: &str| {
            let tool = tool(json!({"name": "a", "description": description, "inputSchema": {}}));
            tool.unwrap().description
        };
        let hidden = told("a\u{200b}b\u{1b}[2Jc\u{202e}d");
        assert!(!hidden.contains(['\u{200b}', '\u{1b}', '\u{202e}']), "{hidden:?}");
        assert!(told(&"é".repeat(5_000)).ends_with("é […]"));
        for name in ["", "a b", "a:b", "a\nb", "ü", &"n".repeat(65)] {
            assert!(tool(json!({"name": name, "inputSchema": {}})).is_err(), "{name}");
        }
        let mut deep = json!({});
        for _ in 0..40 {
            deep = json!({"properties": deep});
        }
        assert!(tool(json!({"name": "a", "inputSchema": deep})).unwrap_err().contains("deeper"));
        let wide = json!({"title": "x".repeat(40_000)});
        assert!(tool(json!({"name": "a", "inputSchema": wide})).unwrap_err().contains("longer"));
    }

    #[test]
    fn a_folder_has_an_address() {
        assert_eq!(file_address(Path::new("/a b/ü")), "file:///a%20b/%C3%BC");
    }
}

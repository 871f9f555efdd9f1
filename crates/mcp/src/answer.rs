//! Answer of a server to a call, as a model is told it: a text, and pictures.

use rmcp::model::CallToolResult;
use serde_json::Value;

use crate::content::{EmbeddedResource, ResourceBody, ResourceLink, ToolContent};

/// Pictures of an answer at most.
const PICTURES: usize = 8;

/// What a tool of a server answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolAnswer {
    pub text: String,
    /// Bytes of pictures, as they came.
    pub pictures: Vec<Vec<u8>>,
    /// Whether the server says that the call failed.
    pub is_error: bool,
}

impl ToolAnswer {
    pub(crate) fn of(result: CallToolResult) -> Self {
        let mut answer = Self { is_error: result.is_error == Some(true), ..Self::default() };
        let mut parts = Vec::new();
        for block in result.content {
            match ToolContent::read(block) {
                Ok(content) => parts.extend(answer.told(content)),
                Err(why) => parts.push(format!("[{why}]")),
            }
        }
        // Most servers say it as text, too.
        if let Some(structured) = result.structured_content
            && !parts.iter().any(|part| is_same(part, &structured))
        {
            parts.push(structured.to_string());
        }
        answer.text = parts.join("\n");
        answer
    }

    /// Text of a part; a picture is taken instead of told.
    fn told(&mut self, content: ToolContent) -> Option<String> {
        Some(match content {
            ToolContent::Text(text) => text,
            ToolContent::Image { .. } if self.pictures.len() == PICTURES => {
                "[one more picture, left out]".to_owned()
            }
            ToolContent::Image { bytes, .. } => {
                self.pictures.push(bytes);
                return None;
            }
            ToolContent::Audio { media_type, .. } => format!("[sound, {media_type}, left out]"),
            ToolContent::Resource(EmbeddedResource { uri, media_type, body }) => match body {
                ResourceBody::Text(text) => format!("[{uri}]\n{text}"),
                ResourceBody::Bytes(_) => {
                    format!("[{uri}, {}, left out]", media_type.as_deref().unwrap_or("bytes"))
                }
            },
            ToolContent::Link(ResourceLink { uri, name, title, description, .. }) => {
                let (title, description) = (title.unwrap_or(name), description.unwrap_or_default());
                format!("[{title}: {uri}] {description}").trim_end().to_owned()
            }
        })
    }
}

fn is_same(text: &str, structured: &Value) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|text| text == *structured)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(result: Value) -> ToolAnswer {
        ToolAnswer::of(serde_json::from_value(result).unwrap())
    }

    #[test]
    fn an_answer_is_its_texts_pictures_and_links() {
        let found = answer(json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "data": "AAEC", "mimeType": "image/png"},
            {"type": "image", "data": "?", "mimeType": "image/png"},
            {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "note://1", "text": "two"}},
            {"type": "resource", "resource": {"uri": "note://2", "blob": "AA=="}},
            {"type": "resource_link", "uri": "file:///a", "name": "a", "description": "The a."},
        ]}));
        assert_eq!(found.pictures, [[0, 1, 2]]);
        assert_eq!(
            found.text,
            "one\n[a picture that cannot be read]\n[sound, audio/wav, left out]\n[note://1]\ntwo\n[note://2, bytes, left \
             out]\n[a: file:///a] The a."
        );
        assert!(!found.is_error);
    }

    #[test]
    fn what_is_structured_stands_there_once() {
        let twice =
            json!({"content": [{"type": "text", "text": "{\"a\": 1}"}], "structuredContent": {"a": 1}});
        assert_eq!(answer(twice).text, "{\"a\": 1}");
        let alone = json!({"content": [], "structuredContent": {"a": 1}, "isError": true});
        assert_eq!((answer(alone.clone()).text.as_str(), answer(alone).is_error), ("{\"a\":1}", true));
    }
}

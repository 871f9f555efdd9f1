//! Answer of a server to a call: a text, and pictures.

use data_encoding::BASE64;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

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
        for block in &result.content {
            match block {
                ContentBlock::Text(text) => parts.push(text.text.clone()),
                ContentBlock::Image(image) if answer.pictures.len() < PICTURES => {
                    match BASE64.decode(image.data.as_bytes()) {
                        Ok(bytes) => answer.pictures.push(bytes),
                        Err(_) => parts.push("[a picture that cannot be read]".to_owned()),
                    }
                }
                ContentBlock::Image(_) => parts.push("[one more picture, left out]".to_owned()),
                ContentBlock::Audio(sound) => {
                    parts.push(format!("[sound, {}, left out]", sound.mime_type));
                }
                ContentBlock::Resource(embedded) => parts.push(match &embedded.resource {
                    ResourceContents::TextResourceContents { uri, text, .. } => format!("[{uri}]\n{text}"),
                    ResourceContents::BlobResourceContents { uri, mime_type, .. } => {
                        format!("[{uri}, {}, left out]", mime_type.as_deref().unwrap_or("bytes"))
                    }
                    _ => "[something of another kind, left out]".to_owned(),
                }),
                ContentBlock::ResourceLink(link) => {
                    let title = link.title.as_deref().unwrap_or(&link.name);
                    let description = link.description.as_deref().unwrap_or_default();
                    parts.push(format!("[{title}: {}] {description}", link.uri).trim_end().to_owned());
                }
                _ => parts.push("[something of another kind, left out]".to_owned()),
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

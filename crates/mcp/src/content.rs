//! Content of a tool's result, as the protocol has it: read from what a server answered, written for a client.

use data_encoding::BASE64;
use rmcp::model::{ContentBlock, Resource, ResourceContents};

/// Part of a tool's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolContent {
    Text(String),
    /// A picture: the bytes of its file, and their media type as its sender has it (`image/png`).
    Image {
        bytes: Vec<u8>,
        media_type: String,
    },
    /// A sound, in the same way (`audio/wav`).
    Audio {
        bytes: Vec<u8>,
        media_type: String,
    },
    Resource(EmbeddedResource),
    Link(ResourceLink),
}

/// Resource that stands in a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddedResource {
    pub uri: String,
    pub media_type: Option<String>,
    pub body: ResourceBody,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceBody {
    Text(String),
    Bytes(Vec<u8>),
}

/// Resource that a result names alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceLink {
    pub uri: String,
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub media_type: Option<String>,
}

impl ToolContent {
    /// # Errors
    /// What was left out and why, for the reader of the result.
    pub(crate) fn read(block: ContentBlock) -> Result<Self, String> {
        let decoded = |data: &str, kind: &str| {
            BASE64.decode(data.as_bytes()).map_err(|_| format!("a {kind} that cannot be read"))
        };
        Ok(match block {
            ContentBlock::Text(text) => Self::Text(text.text),
            ContentBlock::Image(image) => {
                Self::Image { bytes: decoded(&image.data, "picture")?, media_type: image.mime_type }
            }
            ContentBlock::Audio(sound) => {
                Self::Audio { bytes: decoded(&sound.data, "sound")?, media_type: sound.mime_type }
            }
            ContentBlock::Resource(embedded) => Self::Resource(match embedded.resource {
                ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                    EmbeddedResource { uri, media_type: mime_type, body: ResourceBody::Text(text) }
                }
                ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                    let body = ResourceBody::Bytes(decoded(&blob, "resource")?);
                    EmbeddedResource { uri, media_type: mime_type, body }
                }
                _ => return Err(UNKNOWN.to_owned()),
            }),
            ContentBlock::ResourceLink(Resource { uri, name, title, description, mime_type, .. }) => {
                Self::Link(ResourceLink { uri, name, title, description, media_type: mime_type })
            }
            _ => return Err(UNKNOWN.to_owned()),
        })
    }
}

/// A kind of content that the protocol did not have when this was written.
const UNKNOWN: &str = "something of another kind, left out";

impl From<ToolContent> for ContentBlock {
    fn from(content: ToolContent) -> Self {
        match content {
            ToolContent::Text(text) => Self::text(text),
            ToolContent::Image { bytes, media_type } => Self::image(BASE64.encode(&bytes), media_type),
            ToolContent::Audio { bytes, media_type } => Self::audio(BASE64.encode(&bytes), media_type),
            ToolContent::Resource(EmbeddedResource { uri, media_type: mime_type, body }) => {
                Self::resource(match body {
                    ResourceBody::Text(text) => {
                        ResourceContents::TextResourceContents { uri, mime_type, text, meta: None }
                    }
                    ResourceBody::Bytes(bytes) => {
                        let blob = BASE64.encode(&bytes);
                        ResourceContents::BlobResourceContents { uri, mime_type, blob, meta: None }
                    }
                })
            }
            ToolContent::Link(ResourceLink { uri, name, title, description, media_type }) => {
                let mut link = Resource::new(uri, name);
                (link.title, link.description, link.mime_type) = (title, description, media_type);
                Self::resource_link(link)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn content_is_written_as_it_was_read() {
        let blocks = [
            json!({"type": "text", "text": "one"}),
            json!({"type": "image", "data": "AAEC", "mimeType": "image/png"}),
            json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav"}),
            json!({"type": "resource", "resource": {"uri": "a:1", "mimeType": "text/plain", "text": "two"}}),
            json!({"type": "resource", "resource": {"uri": "a:2", "blob": "AAEC"}}),
            json!({
                "type": "resource_link", "uri": "a:3", "name": "three", "title": "Three",
                "description": "The third.", "mimeType": "text/plain",
            }),
        ];
        for block in blocks {
            let read = ToolContent::read(serde_json::from_value(block.clone()).unwrap()).unwrap();
            let written: Value = serde_json::to_value(ContentBlock::from(read)).unwrap();
            assert_eq!(written, block);
        }
    }
}

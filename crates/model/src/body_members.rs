//! Members that the owner adds to the body of requests: parameters of a provider that no dialect knows.
//!
//! They go into the objects that they name, or behind what the body has. What the body says stays: a member that is there
//! already, other than an object of both, is refused. Places of parts move with the bytes put before them.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::encoded::{EncodeError, EncodedRequest, PartRange};

/// Names of the members in which a request says what is sent to whom, and what may be called.
const OURS: &[&str] = &[
    "model",
    "messages",
    "input",
    "prompt",
    "system",
    "instructions",
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "tool_choice",
    "functions",
    "function_call",
    "mcp_servers",
    "web_search_options",
    "stream",
    "stream_options",
    "n",
    "previous_response_id",
    "conversation",
    "cachedContent",
    "response_format",
];

/// Reads members as they stand in a configuration: a JSON object.
///
/// # Errors
/// It is none, or has a member that is the program's own.
pub fn read_members(text: &str) -> Result<Map<String, Value>, String> {
    let members: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| format!("it is no JSON object, such as {{\"top_k\": 40}}: {error}"))?;
    match members.keys().find(|name| OURS.contains(&name.as_str())) {
        Some(name) => Err(format!("{name} is set by the request itself")),
        None => Ok(members),
    }
}

impl EncodedRequest {
    /// The request with further members in its body.
    ///
    /// # Errors
    /// [`EncodeError::Member`] where the body has one of them already.
    pub(crate) fn with_members(self, members: &Map<String, Value>) -> Result<Self, EncodeError> {
        if members.is_empty() {
            return Ok(self);
        }
        let mut added = Vec::new();
        let body = std::str::from_utf8(self.body()).map_err(|_| EncodeError::Coverage { part: 0 })?;
        insert(body, 0, members, &mut added)?;
        added.sort_by_key(|(at, _)| *at);
        let (mut whole, mut from) = (Vec::with_capacity(body.len() + 64), 0);
        for (at, text) in &added {
            whole.extend_from_slice(&body.as_bytes()[from..*at]);
            whole.extend_from_slice(text.as_bytes());
            from = *at;
        }
        whole.extend_from_slice(&body.as_bytes()[from..]);
        // What ends where members are put stays before them.
        let moved = |place: usize, before: usize| {
            let put = added.iter().filter(|(at, _)| *at < before);
            place + put.map(|(_, text)| text.len()).sum::<usize>()
        };
        let ranges = self.ranges().iter().map(|range| {
            let (start, end) = (range.bytes.start, range.bytes.end);
            PartRange { bytes: moved(start, start + 1)..moved(end, end), ..range.clone() }
        });
        Self::new(self.dialect(), self.path(), whole.into(), ranges.collect(), self.stream())
    }
}

/// Finds where the members go in an object, which begins at byte `at` of the body, with the text to put there.
fn insert(
    object: &str,
    at: usize,
    members: &Map<String, Value>,
    added: &mut Vec<(usize, String)>,
) -> Result<(), EncodeError> {
    let no_object = |_| EncodeError::Coverage { part: 0 };
    let standing: BTreeMap<String, &RawValue> = serde_json::from_str(object).map_err(no_object)?;
    let mut new = String::new();
    for (name, value) in members {
        match (standing.get(name), value) {
            (None, value) => {
                let name = Value::from(name.as_str());
                new += &format!(",{name}:{value}");
            }
            (Some(raw), Value::Object(inner)) if raw.get().starts_with('{') => {
                // It lies in the text it was read from.
                let place = raw.get().as_ptr() as usize - object.as_ptr() as usize;
                insert(raw.get(), at + place, inner, added)?;
            }
            (Some(_), _) => return Err(EncodeError::Member { name: name.clone() }),
        }
    }
    if standing.is_empty() {
        new = new.split_off(usize::from(!new.is_empty()));
    }
    let closes = object.rfind('}').ok_or(EncodeError::Coverage { part: 0 })?;
    added.push((at + closes, new));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::DialectName;
    use crate::encoded::PartKind;
    use crate::prompt::PartId;

    fn with(body: &str, part: &str, members: &str) -> Result<(String, String), EncodeError> {
        let at = body.find(part).unwrap();
        let range = PartRange { part: PartId(0), kind: PartKind::User, bytes: at..at + part.len() };
        let body = body.to_owned().into();
        let request = EncodedRequest::new(DialectName::Gemini, "p", body, vec![range], true).unwrap();
        let request = request.with_members(&serde_json::from_str(members).unwrap())?;
        let text = String::from_utf8(request.body().to_vec()).unwrap();
        let part = text[request.ranges()[0].bytes.clone()].to_owned();
        Ok((text, part))
    }

    #[test]
    fn members_stand_behind_what_there_is_and_parts_keep_their_bytes() {
        let body = r#"{"config":{"topP":1,"empty":{}},"text":"Hi. }"}"#;
        let members = r#"{"config":{"topK":40,"empty":{"a":1}},"safety":["x"]}"#;
        let (text, part) = with(body, "Hi. }", members).unwrap();
        assert_eq!(text, r#"{"config":{"topP":1,"empty":{"a":1},"topK":40},"text":"Hi. }","safety":["x"]}"#);
        assert_eq!(part, "Hi. }");
        assert_eq!(with(body, "Hi. }", "{}").unwrap().0, body);
    }

    #[test]
    fn what_the_body_says_stays() {
        for members in [r#"{"text":"No."}"#, r#"{"config":{"topP":0.5}}"#, r#"{"config":1}"#] {
            let refused = with(r#"{"config":{"topP":1},"text":"Hi."}"#, "Hi.", members).unwrap_err();
            assert_eq!(refused.code(), "bad_parameter", "{members}");
        }
        for name in OURS {
            assert!(read_members(&format!("{{\"{name}\": 1}}")).is_err(), "{name}");
        }
        assert!(read_members("[1]").is_err() && read_members("{").is_err());
        assert_eq!(read_members(r#"{"top_k": 40}"#).unwrap()["top_k"], 40);
    }
}

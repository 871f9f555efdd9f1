//! Thinking that a server wants back: as it arrives, and as it is sent again.
//!
//! Two forms are known. `reasoning_content` is the text itself, so that what is kept is the name of the field alone
//! and the text that was shown is sent again. `reasoning_details` is a list of objects with signatures and
//! encrypted parts, which arrive in fragments; it is put together and kept as it is.

use serde_json::{Map, Value, json};

use crate::encoded::PartKind;
use crate::event::ModelEvent;
use crate::parts::Parts;
use crate::prompt::OpaquePart;
use crate::quirks::ThinkingBack;

/// The field that holds thinking as text.
const CONTENT: &str = "reasoning_content";

/// What has arrived of one run of thinking.
#[derive(Debug, Default)]
pub(crate) struct ThinkingRun {
    details: Vec<Map<String, Value>>,
    shown: bool,
    as_content: bool,
}

impl ThinkingRun {
    /// Thinking was shown; `as_content` if it came in `reasoning_content`.
    pub(crate) fn shown(&mut self, as_content: bool) {
        self.shown = true;
        self.as_content |= as_content;
    }

    /// Takes fragments of `reasoning_details`.
    pub(crate) fn details(&mut self, fragments: Vec<Value>) {
        for fragment in fragments {
            let Value::Object(fragment) = fragment else { continue };
            match self.details.last_mut().filter(|last| continues(last, &fragment)) {
                Some(last) => join(last, fragment),
                None => self.details.push(fragment),
            }
        }
    }

    /// The run has ended: what is to be given back of it, if anything.
    pub(crate) fn end(&mut self, choice: u32) -> Option<ModelEvent> {
        let Self { details, shown, as_content } = std::mem::take(self);
        let json = if !details.is_empty() {
            Value::Array(details.into_iter().map(Value::Object).collect())
        } else if as_content {
            json!(CONTENT)
        } else {
            return None;
        };
        Some(ModelEvent::Opaque { choice, with_thinking: shown, json })
    }
}

/// The words of fragments, for servers that show thinking nowhere else.
pub(crate) fn words(fragments: &[Value]) -> String {
    let words = fragments
        .iter()
        .filter_map(|fragment| ["text", "summary"].iter().find_map(|name| fragment.get(name)?.as_str()));
    words.collect()
}

/// Whether a fragment belongs to the entry before it: text of the same type and place.
fn continues(last: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    let same = |name| last.get(name) == new.get(name);
    let kind = new.get("type").and_then(Value::as_str);
    let ids = |entry: &Map<String, Value>| entry.get("id").filter(|id| !id.is_null()).cloned();
    let ids_agree = match (ids(last), ids(new)) {
        (Some(last), Some(new)) => last == new,
        _ => true,
    };
    matches!(kind, Some("reasoning.text" | "reasoning.summary")) && same("type") && same("index") && ids_agree
}

/// Words are appended; anything else that is said later holds.
fn join(last: &mut Map<String, Value>, new: Map<String, Value>) {
    for (name, value) in new {
        match (last.get_mut(&name), value) {
            (Some(Value::String(words)), Value::String(more)) if name == "text" || name == "summary" => {
                words.push_str(&more);
            }
            (Some(own), value) if !value.is_null() => *own = value,
            (Some(_), _) => {}
            (None, value) => {
                last.insert(name, value);
            }
        }
    }
}

/// What a server wants back of the thinking of one message, in either field.
#[derive(Default)]
pub(crate) struct ReturnedThinking {
    pub(crate) content: Option<String>,
    pub(crate) details: Option<Vec<String>>,
}

/// What a server wants back of the thinking of one message.
pub(crate) fn back<'a>(
    parts: &mut Parts<'a>,
    opaque: &[&'a OpaquePart],
    with_tools: bool,
    form: ThinkingBack,
) -> ReturnedThinking {
    match form {
        ThinkingBack::Content if with_tools => {
            // Where the field is wanted it must be there, though another model answered.
            let texts = opaque.iter().filter_map(|part| Some((part.id, part.thinking.as_deref()?)));
            let texts = texts.map(|(id, text)| parts.string(PartKind::Opaque, id, text));
            ReturnedThinking { content: Some(texts.collect::<Vec<_>>().join("\n\n")), details: None }
        }
        ThinkingBack::Details => {
            let lists = opaque.iter().filter_map(|part| Some((part.id, part.json.as_array()?)));
            let lists = lists.filter(|(_, list)| !list.is_empty()).map(|(id, list)| {
                let entries: Vec<String> = list.iter().map(Value::to_string).collect();
                parts.json(PartKind::Opaque, id, entries.join(","))
            });
            let lists: Vec<String> = lists.collect();
            ReturnedThinking { content: None, details: (!lists.is_empty()).then_some(lists) }
        }
        ThinkingBack::Content | ThinkingBack::Nothing => ReturnedThinking::default(),
    }
}

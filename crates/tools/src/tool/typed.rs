//! Typed arguments of a tool: their schema, and functions of them as functions of JSON.

use context::ToolSpec;
use loom::{ToolStatus, Trust};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{CallScope, Steering, Tool, ToolOutput, ToolScope};

impl Tool {
    /// The tool as one whose calls are made in the order of their answer, whatever they change.
    #[must_use]
    pub fn in_order(self) -> Self {
        let steering = Steering { only_looks: Box::new(|_, _| false), plan_mode: Box::new(|_, _| None) };
        Self { steering: Some(steering), ..self }
    }
}

pub(crate) fn spec<A: JsonSchema>(name: &str, description: &str) -> ToolSpec {
    let settings = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| (settings.inline_subschemas, settings.meta_schema) = (true, None))
        .with_transform(schemars::transform::RecursiveTransform(leave_out_the_plain));
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    for known in ["title", "description"] {
        schema.remove(known);
    }
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: schema.to_value(),
        core: true,
    }
}

/// Leaves out what a model is told without it: widths of integers, and defaults that are nothing. Every request has the
/// schemas (spec: agent §3).
fn leave_out_the_plain(schema: &mut schemars::Schema) {
    schema.remove("format");
    let is_nothing = |value: &Value| {
        [Value::Null, Value::Bool(false), Value::from(0), Value::Array(Vec::new())].contains(value)
    };
    if schema.get("default").is_some_and(is_nothing) {
        schema.remove("default");
    }
}

/// A function of typed arguments as one of JSON; nothing where they are not of the type.
pub(super) fn of_arguments<A: DeserializeOwned, T: Default>(
    of: impl Fn(&ToolScope, &A) -> T,
) -> impl Fn(&ToolScope, &Value) -> T {
    move |scope, arguments| {
        let read = serde_json::from_value::<A>(arguments.clone());
        read.map(|arguments| of(scope, &arguments)).unwrap_or_default()
    }
}

/// The arguments of a call as a question shows them, masked.
pub(super) fn called_with(scope: &ToolScope, arguments: &Value) -> String {
    format!("with {}", scope.masker.mask(&arguments.to_string()).text)
}

/// What a question shows, masked.
pub(super) fn previewing<A: DeserializeOwned>(
    preview: impl Fn(&ToolScope, &A) -> Result<String, String>,
) -> impl Fn(&ToolScope, Value) -> Result<String, String> {
    move |scope, arguments| {
        let read = serde_json::from_value::<A>(arguments).map_err(|error| error.to_string());
        let shown = read.and_then(|arguments| preview(scope, &arguments));
        // It is shown whole or not at all: a question refuses one that is too long.
        let mask = |text: String| scope.masker.mask_entering(&text).text.into_owned();
        shown.map(mask).map_err(|why| bounded(mask(why)))
    }
}

/// A function of typed arguments as one of JSON, with what it says masked and bounded. What failed may quote what was
/// read as much as what did not.
pub(super) fn running<A: DeserializeOwned>(
    run: impl Fn(&CallScope<'_>, &A) -> Result<String, String>,
) -> impl Fn(&CallScope<'_>, Value) -> ToolOutput {
    move |call, arguments| {
        let read = serde_json::from_value::<A>(arguments).map_err(|error| error.to_string());
        let ran = read.and_then(|arguments| run(call, &arguments));
        let (status, text) = match ran {
            Ok(text) => (ToolStatus::Ok, text),
            Err(why) => (ToolStatus::Error, why),
        };
        let text = bounded(call.scope.masker.mask_entering(&text).text.into_owned());
        let trust = if call.from_outside.get() { Trust::Outside } else { call.scope.trust };
        let mask = |line: String| call.scope.masker.mask_entering(&line).text.into_owned();
        let brief = call.brief.take().into_iter().map(mask).collect();
        ToolOutput { brief, pictures: call.pictures.take(), ..ToolOutput::said(status, text, trust) }
    }
}

/// Bytes that a tool says at most, whatever names it met.
const OUTPUT: usize = 256 << 10;

pub(crate) fn bounded(mut text: String) -> String {
    let at = text::grapheme::floor(&text, OUTPUT.min(text.len()));
    if at < text.len() {
        let more = text.len() - at;
        text.truncate(at);
        text += &format!("\n[{more} more bytes are left out.]\n");
    }
    text
}

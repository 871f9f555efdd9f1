//! The schema of an answer (`ask --schema`): a JSON schema, and where an answer does not fit it.
//!
//! References stay within the schema: nothing is read or fetched for one. Formats are notes, as JSON Schema has it.

use std::error::Error;

use boon::{CompileError, Compiler, Draft, ErrorKind, SchemaIndex, Schemas, UrlLoader, ValidationError};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tools::{Comparisons, REFERENCES};

/// Most comparisons that a schema may take, of an answer or to look for references that lead to themselves.
const MOST_COMPARISONS: u64 = 100_000;

/// What stands in a fragment as it is.
const IN_FRAGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'~').remove(b'-').remove(b'.').remove(b'_');

/// Where the schema stands for its own references.
const PLACE: &str = "answer:/schema";

/// A schema that was found to be one.
pub(crate) struct AnswerSchema {
    value: Value,
    compiled: Schemas,
    index: SchemaIndex,
}

impl AnswerSchema {
    /// Reads a schema: of the draft that `$schema` names, else 2020-12.
    ///
    /// # Errors
    /// Where it is none, and why.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
        if !value.is_object() {
            return Err("it is no object".to_owned());
        }
        unusable_pattern(&value, "")?;
        let (mut compiler, mut compiled) = (compiler(), Schemas::new());
        let index = compile(&mut compiler, value.clone(), &mut compiled)
            .map_err(|error| why_none(&error).replace(PLACE, "the schema"))?;
        if Comparisons::of(&value).of_references() > MOST_COMPARISONS {
            return Err(format!(
                "its references lead to more than {MOST_COMPARISONS} alternatives for one value"
            ));
        }
        leads_to_itself(&value, "", &mut compiler)?;
        Ok(Self { value, compiled, index })
    }

    pub(crate) const fn value(&self) -> &Value {
        &self.value
    }

    /// Where a text does not fit, and why; none where it does.
    pub(crate) fn misfit(&self, text: &str) -> Option<String> {
        match serde_json::from_str::<Value>(text.trim()) {
            Ok(value) if Comparisons::of(&self.value).with(&value) > MOST_COMPARISONS => Some(format!(
                "the schema has more than {MOST_COMPARISONS} alternatives for it: it was not compared"
            )),
            Ok(value) => self.compiled.validate(&value, self.index).err().map(|error| placed(&error)),
            Err(error) => Some(format!("it is no JSON: {error}")),
        }
    }
}

fn compiler() -> Compiler {
    let mut compiler = Compiler::new();
    compiler.set_default_draft(Draft::V2020_12);
    compiler.use_loader(Box::new(Nowhere));
    compiler
}

fn compile(
    compiler: &mut Compiler,
    schema: Value,
    into: &mut Schemas,
) -> Result<SchemaIndex, Box<CompileError>> {
    compiler.add_resource(PLACE, schema)?;
    Ok(compiler.compile(PLACE, into)?)
}

/// Keywords whose values are no schemas, whatever they look like.
const DATA: [&str; 5] = ["const", "enum", "default", "example", "examples"];
/// Keywords whose members are named by the schema's author.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// The values within a value, with their JSON pointers, but for those of [`DATA`].
fn within<'v>(value: &'v Value, at: &str) -> Vec<(String, &'v Value)> {
    let pointer = |step: &str| format!("{at}/{}", step.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(members) => {
            let is_named = NAMED.contains(&at.rsplit('/').next().unwrap_or_default());
            let members = members.iter().filter(|(key, _)| is_named || !DATA.contains(&key.as_str()));
            members.map(|(key, value)| (pointer(key), value)).collect()
        }
        Value::Array(values) => {
            values.iter().enumerate().map(|(number, value)| (pointer(&number.to_string()), value)).collect()
        }
        _ => Vec::new(),
    }
}

/// Refuses a pattern that cannot be made a program to match with, such as one that is too large: the library takes such
/// a failure for one of its own.
fn unusable_pattern(value: &Value, at: &str) -> Result<(), String> {
    if let Some(pattern) = value.get("pattern").and_then(Value::as_str) {
        let alone = serde_json::json!({"patternProperties": {pattern: true}});
        let made = compile(&mut compiler(), alone, &mut Schemas::new());
        if let Err(CompileError::InvalidRegex { src, .. }) = made.as_ref().map_err(Box::as_ref) {
            return Err(format!("{at}/pattern: it cannot be used: {src}"));
        }
    }
    within(value, at).into_iter().try_for_each(|(at, value)| unusable_pattern(value, &at))
}

/// Refuses references that lead to themselves without a value between: no answer could be compared with them.
fn leads_to_itself(value: &Value, at: &str, compiler: &mut Compiler) -> Result<(), String> {
    if REFERENCES.iter().any(|key| value.get(key).is_some_and(Value::is_string)) {
        let mut compiled = Schemas::new();
        // What is no schema is never compared with anything.
        if let Ok(index) =
            compiler.compile(&format!("{PLACE}#{}", utf8_percent_encode(at, IN_FRAGMENT)), &mut compiled)
        {
            let probes = serde_json::json!([null, true, 0, "", [], {}]);
            let misfits = probes.as_array().into_iter().flatten();
            let mut misfits = misfits.filter_map(|probe| compiled.validate(probe, index).err());
            if misfits.any(|misfit| has_cycle(&misfit)) {
                let place = if at.is_empty() { "the schema" } else { at };
                return Err(format!("{place} refers to itself, and nothing could fit it"));
            }
        }
    }
    within(value, at).into_iter().try_for_each(|(at, value)| leads_to_itself(value, &at, compiler))
}

fn has_cycle(error: &ValidationError) -> bool {
    matches!(error.kind, ErrorKind::RefCycle { .. }) || error.causes.iter().any(has_cycle)
}

/// Refuses what a schema refers to outside itself.
struct Nowhere;

impl UrlLoader for Nowhere {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        Err(format!("{url} is not in this schema").into())
    }
}

fn why_none(error: &CompileError) -> String {
    match error {
        CompileError::ValidationError { src, .. } => placed(src),
        CompileError::LoadUrlError { src, .. } => src.to_string(),
        other => format!("{other:#}"),
    }
}

/// The innermost place where a value does not fit, as a JSON pointer, and why.
fn placed(error: &ValidationError) -> String {
    let (place, error) = innermost(error);
    let why = match &error.kind {
        ErrorKind::FalseSchema => "nothing may stand here".to_owned(),
        ErrorKind::Not => "it fits what it must not".to_owned(),
        kind => kind.to_string(),
    };
    if place.is_empty() { why } else { format!("{place}: {why}") }
}

/// Of several causes that which lies deepest in the value; of those, the first.
fn innermost<'e, 's, 'v>(error: &'e ValidationError<'s, 'v>) -> (String, &'e ValidationError<'s, 'v>) {
    // More than one alternative fits: each of them has nothing to say.
    let is_own = matches!(error.kind, ErrorKind::OneOf(Some(_)) | ErrorKind::Not);
    let causes = error.causes.iter().filter(|_| !is_own).map(innermost).rev();
    let depth = |place: &str| place.matches('/').count();
    causes
        .max_by_key(|(place, _)| depth(place))
        .unwrap_or_else(|| (error.instance_location.to_string(), error))
}

#[cfg(test)]
mod tests;

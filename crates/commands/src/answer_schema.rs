//! The schema of an answer (`ask --schema`): a JSON schema, and where an answer does not fit it.
//!
//! References stay within the schema: nothing is read or fetched for one. Formats are notes, as JSON Schema has it.

use std::error::Error;

use boon::{CompileError, Compiler, Draft, ErrorKind, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde_json::Value;

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
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V2020_12);
        compiler.use_loader(Box::new(Nowhere));
        let mut compiled = Schemas::new();
        let index = compiler
            .add_resource(PLACE, value.clone())
            .and_then(|()| compiler.compile(PLACE, &mut compiled))
            .map_err(|error| why_none(&error).replace(PLACE, "the schema"))?;
        Ok(Self { value, compiled, index })
    }

    pub(crate) const fn value(&self) -> &Value {
        &self.value
    }

    /// Where a text does not fit, and why; none where it does.
    pub(crate) fn misfit(&self, text: &str) -> Option<String> {
        match serde_json::from_str::<Value>(text.trim()) {
            Ok(value) => self.compiled.validate(&value, self.index).err().map(|error| placed(&error)),
            Err(error) => Some(format!("it is no JSON: {error}")),
        }
    }
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

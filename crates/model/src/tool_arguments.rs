//! Tool arguments from what models write.
//!
//! Models deliver them as a JSON object, as JSON text of such an object, as nothing at all, or
//! wrapped once more in `{"arguments": …}`. All of these mean the same (spec: agent, case X23).

use serde_json::{Map, Value};

/// The arguments are no JSON object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tool's arguments are no JSON object: {why}")]
pub struct ArgumentsError {
    why: String,
}

impl ArgumentsError {
    /// A stable name of the error.
    pub fn code(&self) -> &'static str {
        "bad_arguments"
    }

    /// What to do about it, as the model is told.
    pub fn hint(&self) -> &'static str {
        "call the tool again with its arguments as one JSON object"
    }
}

/// Reads arguments as the model wrote them. `keeps_wrapper` is true for a tool that itself has a
/// parameter called `arguments`: there the wrapper is meant.
///
/// # Errors
/// When there is no reading in which they are an object.
pub fn parse(raw: &str, keeps_wrapper: bool) -> Result<Map<String, Value>, ArgumentsError> {
    let mut object = object(raw)?;
    if object.len() == 1 && !keeps_wrapper {
        match object.remove("arguments") {
            Some(Value::Object(inner)) => return Ok(inner),
            Some(Value::String(text)) => match self::object(&text) {
                Ok(inner) => return Ok(inner),
                Err(_) => object.insert("arguments".to_owned(), Value::String(text)),
            },
            Some(other) => object.insert("arguments".to_owned(), other),
            None => None,
        };
    }
    Ok(object)
}

fn object(raw: &str) -> Result<Map<String, Value>, ArgumentsError> {
    if raw.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(raw).map_err(|error| ArgumentsError { why: error.to_string() })? {
        Value::Object(object) => Ok(object),
        Value::Null => Ok(Map::new()),
        Value::String(text) if !text.trim_start().starts_with('"') => object(&text),
        other => Err(ArgumentsError { why: format!("they are {}", kind(&other)) }),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x23_every_form_models_use_is_read() {
        let plain = parse(r#"{"path":"a"}"#, false).unwrap();
        for raw in
            [r#""{\"path\":\"a\"}""#, r#"{"arguments":{"path":"a"}}"#, r#"{"arguments":"{\"path\":\"a\"}"}"#]
        {
            assert_eq!(parse(raw, false).unwrap(), plain, "{raw}");
        }
        for raw in ["", "  ", "{}", "null", "\"\""] {
            assert!(parse(raw, false).unwrap().is_empty(), "{raw}");
        }
    }

    #[test]
    fn a_parameter_called_arguments_is_kept_where_it_is_meant() {
        assert!(parse(r#"{"arguments":{"a":1}}"#, true).unwrap().contains_key("arguments"));
        assert!(parse(r#"{"arguments":"-v --all"}"#, false).unwrap().contains_key("arguments"));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for raw in ["[1]", "3", "{\"a\":", "words"] {
            assert_eq!(parse(raw, false).unwrap_err().code(), "bad_arguments", "{raw}");
        }
    }
}

//! The check of what a tool is called with: every problem in one message, so that one try more is enough.

use boon::{Compiler, ErrorKind, SchemaIndex, Schemas, ValidationError};
use serde_json::Value;

/// Problems that are named at most.
const NAMED: usize = 20;

/// The schema of the arguments of one tool.
pub(crate) struct ArgumentSchema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl ArgumentSchema {
    /// # Errors
    /// It is no schema.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        let place = "tool:arguments";
        compiler.add_resource(place, schema.clone()).map_err(|error| error.to_string())?;
        let index = compiler.compile(place, &mut schemas).map_err(|error| error.to_string())?;
        Ok(Self { schemas, index })
    }

    /// Checks arguments.
    ///
    /// # Errors
    /// Everything that does not fit.
    pub(crate) fn check(&self, arguments: &Value) -> Result<(), String> {
        self.schemas.validate(arguments, self.index).map_err(|error| {
            let mut problems = Vec::new();
            leaves(&error, &mut problems);
            problems.dedup();
            let more = problems.len().saturating_sub(NAMED);
            problems.truncate(NAMED);
            if more > 0 {
                problems.push(format!("{more} more"));
            }
            problems.join("; ")
        })
    }
}

fn leaves(error: &ValidationError<'_, '_>, problems: &mut Vec<String>) {
    if error.causes.is_empty() && !matches!(error.kind, ErrorKind::Group) {
        let place = error.instance_location.to_string();
        let place = place.trim_start_matches('/');
        let at = if place.is_empty() { String::new() } else { format!("{place}: ") };
        problems.push(format!("{at}{}", error.kind));
    }
    error.causes.iter().for_each(|cause| leaves(cause, problems));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_problems_stand_in_one_message() {
        let schema = json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "offset": {"type": "integer", "minimum": 1}},
            "required": ["path"],
            "additionalProperties": false,
        });
        let schema = ArgumentSchema::new(&schema).unwrap();
        assert_eq!(schema.check(&json!({"path": "a", "offset": 3})), Ok(()));
        let why = schema.check(&json!({"offset": 0, "line": 4, "text": ""})).unwrap_err();
        for problem in ["path", "offset: ", "line", "text"] {
            assert!(why.contains(problem), "{problem}: {why}");
        }
        assert!(schema.check(&json!("a path")).unwrap_err().contains("object"));
    }
}

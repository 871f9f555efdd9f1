//! The check of what a tool is called with: every problem in one message, so that one try more is enough.

use boon::{Compiler, ErrorKind, InstanceToken, SchemaIndex, Schemas, SchemeUrlLoader, ValidationError};
use serde_json::Value;

use crate::comparisons::Comparisons;

/// Problems that are named at most.
const NAMED: usize = 20;
/// Characters of one problem: a name may be as long as whoever called likes.
const LONGEST: usize = 300;
/// Comparisons of arguments with a schema at most: what fits in none of them is an error each.
const MOST_COMPARISONS: u64 = 100_000;
/// Of these, those that its references alone may lead to: what they multiply is bounded by no argument.
const MOST_OF_REFERENCES: u64 = 10_000;

/// The schema of the arguments of one tool.
pub struct ArgumentSchema {
    value: Value,
    schemas: Schemas,
    index: SchemaIndex,
}

impl ArgumentSchema {
    /// # Errors
    /// It is no schema, or its references lead to more than can be compared.
    pub fn new(schema: &Value) -> Result<Self, String> {
        Self::compiled(schema, Compiler::new())
    }

    /// One by which formats (`email`, `date`) are checked as well.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_formats(schema: &Value) -> Result<Self, String> {
        let mut compiler = Compiler::new();
        compiler.enable_format_assertions();
        Self::compiled(schema, compiler)
    }

    fn compiled(schema: &Value, mut compiler: Compiler) -> Result<Self, String> {
        if Comparisons::of(schema).of_references() > MOST_OF_REFERENCES {
            return Err(format!(
                "its references lead to more than {MOST_OF_REFERENCES} schemas for one value"
            ));
        }
        let mut schemas = Schemas::new();
        // A schema opens nothing: neither a file nor a connection.
        compiler.use_loader(Box::new(SchemeUrlLoader::new()));
        let place = "tool:arguments";
        compiler.add_resource(place, schema.clone()).map_err(|error| error.to_string())?;
        let index = compiler.compile(place, &mut schemas).map_err(|error| error.to_string())?;
        Ok(Self { value: schema.clone(), schemas, index })
    }

    /// Checks arguments.
    ///
    /// # Errors
    /// Everything that does not fit.
    pub fn check(&self, arguments: &Value) -> Result<(), String> {
        if Comparisons::of(&self.value).with(arguments) > MOST_COMPARISONS {
            return Err(format!("the schema has more than {MOST_COMPARISONS} alternatives for them"));
        }
        self.schemas.validate(arguments, self.index).map_err(|error| {
            let mut problems = Vec::new();
            leaves(&error, &mut problems);
            problems.dedup();
            problems.iter_mut().for_each(|problem| *problem = problem.chars().take(LONGEST).collect());
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
    error.causes.iter().for_each(|cause| leaves(cause, problems));
    if error.causes.is_empty() {
        told(error, problems);
    }
}

/// What one place of the arguments has wrong, by its name as a program writes it.
fn told(error: &ValidationError<'_, '_>, problems: &mut Vec<String>) {
    let mut place = String::new();
    for token in &error.instance_location.tokens {
        match token {
            InstanceToken::Prop(name) if place.is_empty() => place.push_str(name),
            InstanceToken::Prop(name) => place += &format!(".{name}"),
            InstanceToken::Item(number) => place += &format!("[{number}]"),
        }
    }
    let below = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    let here = if place.is_empty() { "the arguments" } else { place.as_str() };
    match &error.kind {
        ErrorKind::Required { want } => {
            problems.extend(want.iter().map(|name| format!("missing required {}", below(name))));
        }
        ErrorKind::AdditionalProperties { got } => {
            problems.extend(got.iter().map(|name| format!("unknown {}", below(name))));
        }
        ErrorKind::Type { got, want } => {
            let want: Vec<String> = want.iter().map(|kind| kind.to_string()).collect();
            problems.push(format!("{here} should be {}, not {got}", want.join(" or ")));
        }
        ErrorKind::Enum { want } => {
            let want: Vec<String> = want.iter().map(Value::to_string).collect();
            problems.push(format!("{here} must be one of {}", want.join(", ")));
        }
        ErrorKind::MinLength { want, .. } => problems.push(format!("{here} must be at least {want} chars")),
        ErrorKind::Minimum { want, .. } => problems.push(format!("{here} must be >= {want}")),
        ErrorKind::Maximum { want, .. } => problems.push(format!("{here} must be <= {want}")),
        kind => problems.push(format!("{here}: {kind}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(arguments: &Value) -> String {
        let schema = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 2},
                "count": {"type": "integer", "minimum": 1, "maximum": 10},
                "mode": {"enum": ["fast", "full"]},
                "meta": {
                    "type": "object",
                    "properties": {
                        "tag": {"type": "string"},
                        "flags": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["tag"],
                },
            },
            "required": ["query", "count"],
            "additionalProperties": false,
        });
        ArgumentSchema::new(&schema).unwrap().check(arguments).err().unwrap_or_default()
    }

    #[test]
    fn v1_to_v5_every_problem_is_told_by_its_place() {
        for (arguments, told) in [
            (json!({"query": "hi"}), "missing required count"),
            (json!({"query": "hi", "count": 0}), "count must be >= 1"),
            (json!({"query": "hi", "count": 11}), "count must be <= 10"),
            (json!({"query": "hi", "count": "2"}), "count should be integer, not string"),
            (
                json!({"query": "h", "count": 2, "mode": "slow"}),
                "mode must be one of \"fast\", \"full\"; query must be at least 2 chars",
            ),
            (
                json!({"query": "hi", "count": 2, "meta": {"flags": [1, "ok"]}}),
                "meta.flags[0] should be string, not number; missing required meta.tag",
            ),
            (json!({"query": "hi", "count": 2, "line": 1, "text": 2}), "unknown line; unknown text"),
            (json!("a path"), "the arguments should be object, not string"),
            (json!({"query": "hi", "count": 2, "meta": {"tag": "a", "flags": ["ok"]}}), ""),
        ] {
            let mut problems: Vec<String> = problems(&arguments).split("; ").map(str::to_owned).collect();
            problems.sort();
            assert_eq!(problems.join("; "), told, "{arguments}");
        }
    }

    /// Definitions `a0` to `a{length}`, each as `next` makes it of the one before.
    fn chain(length: usize, next: impl Fn(Value) -> Value) -> Value {
        let mut definitions = serde_json::Map::from_iter([("a0".to_owned(), json!({"type": "string"}))]);
        for number in 1..=length {
            let before = json!({"$ref": format!("#/$defs/a{}", number - 1)});
            definitions.insert(format!("a{number}"), next(before));
        }
        json!({"$defs": definitions, "properties": {"a": {"$ref": format!("#/$defs/a{length}")}}})
    }

    #[test]
    fn a_schema_that_multiplies_itself_is_none_and_one_that_is_long_is() {
        let twice = |before: Value| json!({"allOf": [before, before]});
        for bomb in [chain(30, twice), chain(12, twice), chain(200, |before| before)] {
            let why = ArgumentSchema::new(&bomb).err().unwrap();
            assert!(why.contains("lead to more than 10000 schemas"), "{why}");
        }
        for ordinary in [chain(8, twice), chain(100, |before| before)] {
            let schema = ArgumentSchema::new(&ordinary).unwrap();
            assert_eq!(schema.check(&json!({"a": "x"})), Ok(()));
            assert!(schema.check(&json!({"a": 1})).unwrap_err().contains("a should be string"));
        }
    }

    #[test]
    fn arguments_that_a_schema_multiplies_or_goes_too_deep_for_are_not_compared() {
        let below = json!({"properties": {"a": {"$ref": "#"}}});
        let schema = ArgumentSchema::new(&json!({"allOf": [below, below]})).unwrap();
        let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({"a": inner}));
        assert_eq!(schema.check(&nested(8)), Ok(()));
        assert!(schema.check(&nested(60)).unwrap_err().contains("more than 100000 alternatives"));

        let around = |length: usize| {
            let mut schema = chain(length, |before| before);
            schema["$defs"]["a0"] = json!({"$ref": "#"});
            ArgumentSchema::new(&schema).unwrap()
        };
        assert_eq!(around(1).check(&nested(25)), Ok(()));
        assert!(around(100).check(&nested(120)).is_err(), "no thread has a stack for it");
    }

    #[test]
    fn no_more_problems_are_told_than_one_can_mend() {
        let many: serde_json::Map<String, Value> =
            (0..1_000).map(|number| (format!("k{number}"), Value::Null)).collect();
        let told = problems(&Value::Object(many));
        assert!(told.ends_with("; 982 more"), "{told}");
    }
}

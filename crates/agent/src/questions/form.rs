//! Forms: what a question asks for besides yes or no, as a server of tools describes it (spec: agent §5 *Elicitation*).

mod bounds;
mod choice;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};
use text::terminal::one_line;
use tools::ArgumentSchema;

pub use choice::Choice;
use choice::{choices, has_names_of_their_own};

/// Fields of a form at most, and choices of one.
const MOST_FIELDS: usize = 20;
const MOST_CHOICES: usize = 50;
/// Characters of a name or choice, of what is said of a field, and of all that is answered.
const NAME_CHARS: usize = 100;
const SAID_CHARS: usize = 300;
const VALUES_CHARS: usize = 8_000;

/// JSON Schema of an object whose properties are texts, numbers, yes or no, or choices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Form(Value);

impl TryFrom<Value> for Form {
    type Error = String;

    fn try_from(schema: Value) -> Result<Self, String> {
        Self::new(schema)
    }
}

impl From<Form> for Value {
    fn from(Form(schema): Form) -> Self {
        schema
    }
}

/// One property of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct FormField {
    pub name: String,
    /// What its server says of it, in one line; may be empty.
    pub about: String,
    pub kind: FieldKind,
    /// What it takes, for whoever fills it in.
    takes: String,
    pub is_required: bool,
    pub default: Option<Value>,
}

/// What a field takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldKind {
    Text,
    Number,
    YesOrNo,
    /// One of these.
    Choice(Vec<Choice>),
    /// Some of these.
    Choices(Vec<Choice>),
}

impl Form {
    /// # Errors
    /// Why nobody could fill it in.
    pub fn new(schema: Value) -> Result<Self, String> {
        let properties = schema["properties"].as_object().ok_or("it names no properties")?;
        if properties.len() > MOST_FIELDS {
            return Err(format!("it has more than {MOST_FIELDS} fields"));
        }
        for (name, property) in properties {
            field(name, property, false).map_err(|why| format!("field {}: {why}", shortened(name)))?;
        }
        let is_field = |name: &&Value| name.as_str().is_some_and(|name| properties.contains_key(name));
        if let Some(name) = schema["required"].as_array().into_iter().flatten().find(|name| !is_field(name)) {
            return Err(format!("it needs {}, which is none of its fields", shortened(&said(name))));
        }
        ArgumentSchema::with_formats(&schema)?;
        Ok(Self(schema))
    }

    pub(crate) fn schema(&self) -> Value {
        self.0.clone()
    }

    /// Fields, in the order that they are told in.
    pub fn fields(&self) -> Vec<FormField> {
        let required = self.0["required"].as_array();
        let is_required = |name: &String| required.is_some_and(|all| all.iter().any(|one| one == name));
        let fields = self.0["properties"].as_object().into_iter().flatten();
        fields.filter_map(|(name, property)| field(name, property, is_required(name)).ok()).collect()
    }

    /// What is wrong with a text for one of its fields.
    pub fn problem(&self, field: &FormField, text: &str) -> Option<String> {
        let (name, text) = (&field.name, text.trim());
        if text.is_empty() {
            return (field.is_required && field.default.is_none()).then(|| format!("{name} is needed"));
        }
        let value = match field.value(text) {
            Ok(value) => value,
            Err(why) => return Some(format!("{name}: {why}")),
        };
        let alone = json!({"type": "object", "properties": {name: self.0["properties"][name]}});
        ArgumentSchema::with_formats(&alone).and_then(|schema| schema.check(&json!({name: value}))).err()
    }

    /// What is answered by the texts that were given for its fields; an empty one is that of a field which is left out,
    /// or has its default.
    ///
    /// # Errors
    /// Everything that does not fit.
    pub fn values(&self, given: &[(String, String)]) -> Result<Map<String, Value>, String> {
        let fields = self.fields();
        let mut problems: Vec<String> = Vec::new();
        for (number, (name, _)) in given.iter().enumerate() {
            if !fields.iter().any(|field| field.name == *name) {
                problems.push(format!("there is no field {}", shortened(name)));
            } else if given[..number].iter().any(|(other, _)| other == name) {
                problems.push(format!("{name} is given twice"));
            }
        }
        let mut values = Map::new();
        for field in &fields {
            let text = given.iter().find(|(name, _)| *name == field.name).map_or("", |(_, text)| text.trim());
            match (text, &field.default) {
                ("", Some(default)) => {
                    values.insert(field.name.clone(), default.clone());
                }
                ("", None) if field.is_required => problems.push(format!("{} is needed", field.name)),
                ("", None) => {}
                (text, _) => match field.value(text) {
                    Ok(value) => {
                        values.insert(field.name.clone(), value);
                    }
                    Err(why) => problems.push(format!("{}: {why}", field.name)),
                },
            }
        }
        if problems.is_empty() {
            let values = Value::Object(values.clone());
            ArgumentSchema::with_formats(&self.0)
                .and_then(|schema| schema.check(&values))
                .unwrap_or_else(|why| problems.push(why));
            if values.to_string().chars().count() > VALUES_CHARS {
                problems.push(format!("it is longer than {VALUES_CHARS} characters"));
            }
        }
        if problems.is_empty() { Ok(values) } else { Err(problems.join("; ")) }
    }
}

impl FormField {
    /// The field in one line, for whoever fills it in.
    pub fn line(&self) -> String {
        let Self { name, about, takes, is_required, default, .. } = self;
        let mut takes = takes.clone();
        match default {
            Some(default) => takes += &format!("; without it {}", said(default)),
            None if *is_required => takes += "; needed",
            None => {}
        }
        let about = if about.is_empty() { String::new() } else { format!(": {about}") };
        format!("{name} ({takes}){about}")
    }

    /// # Errors
    /// Why a text is none of its values.
    fn value(&self, text: &str) -> Result<Value, String> {
        match &self.kind {
            FieldKind::Text => Ok(text.into()),
            FieldKind::Number => {
                let number: Option<Number> = text.parse().ok();
                number.map(Value::Number).ok_or_else(|| format!("{} is no number", shortened(text)))
            }
            FieldKind::YesOrNo => match text.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(true.into()),
                "n" | "no" | "false" => Ok(false.into()),
                _ => Err(format!("{} is neither y nor n", shortened(text))),
            },
            FieldKind::Choice(choices) => choice::chosen(choices, text),
            FieldKind::Choices(choices) => text
                .split(',')
                .map(|one| choice::chosen(choices, one.trim()))
                .collect::<Result<Vec<_>, _>>()
                .map(Value::Array),
        }
    }
}

/// # Errors
/// What it asks for cannot be typed.
fn field(name: &str, property: &Value, is_required: bool) -> Result<FormField, String> {
    let is_plain =
        |text: &str| !text.is_empty() && text.chars().count() <= NAME_CHARS && one_line(text) == text;
    if !is_plain(name) || name.contains('=') {
        return Err("its name cannot be shown".to_owned());
    }
    let kind = match property["type"].as_str() {
        Some("string") => choices(property)?.map_or(FieldKind::Text, FieldKind::Choice),
        Some("number" | "integer") => FieldKind::Number,
        Some("boolean") => FieldKind::YesOrNo,
        Some("array") => FieldKind::Choices(choices(&property["items"])?.ok_or("it is a list of anything")?),
        _ => return Err("it is neither text, number, yes or no, nor a choice".to_owned()),
    };
    if let FieldKind::Choice(choices) | FieldKind::Choices(choices) = &kind {
        if choices.is_empty() || choices.len() > MOST_CHOICES {
            return Err(format!("it has no choices, or more than {MOST_CHOICES}"));
        }
        if !choices.iter().all(|one| is_plain(&one.value) && one.title.as_deref().is_none_or(is_plain)) {
            return Err("a choice cannot be shown".to_owned());
        }
        if !has_names_of_their_own(choices) {
            return Err("two of its choices have one name".to_owned());
        }
    }
    if let FieldKind::Choices(choices) = &kind {
        let is_one = |text: &str| !text.contains(',');
        if !choices.iter().all(|one| is_one(&one.value) || one.title.as_deref().is_some_and(is_one)) {
            return Err("a choice has a comma, which parts them".to_owned());
        }
    }
    let takes = bounds::takes(property, &kind)?;
    let texts = ["title", "description"].into_iter().filter_map(|key| property[key].as_str());
    let whole = texts.collect::<Vec<_>>().join(" – ");
    let whole = one_line(&whole);
    let mut about: String = whole.chars().take(SAID_CHARS).collect();
    if about.len() < whole.len() {
        about.push('…');
    }
    let schema = ArgumentSchema::with_formats(&json!({"type": "object", "properties": {"a": property}}))?;
    // One that does not fit is none.
    let fits = |default: &&Value| !default.is_null() && schema.check(&json!({"a": default})).is_ok();
    let default = property.get("default").filter(fits).cloned();
    // Whoever leaves it as it is has read it.
    if default.as_ref().is_some_and(|default| said(default).chars().count() > SAID_CHARS) {
        return Err(format!("what it has without an answer is longer than {SAID_CHARS} characters"));
    }
    Ok(FormField { name: name.to_owned(), about, kind, takes, is_required, default })
}

/// A value as it is typed.
fn said(value: &Value) -> String {
    match value {
        Value::String(text) => one_line(text).into_owned(),
        Value::Bool(true) => "y".to_owned(),
        Value::Bool(false) => "n".to_owned(),
        Value::Array(all) => all.iter().map(said).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn shortened(text: &str) -> String {
    format!("{:?}", text.chars().take(NAME_CHARS).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> Form {
        Form::new(json!({"type": "object", "required": ["name", "age"], "properties": {
            "name": {"type": "string", "title": "Name", "description": "as on your card", "minLength": 2},
            "age": {"type": "integer", "minimum": 0},
            "news": {"type": "boolean", "default": false},
            "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
            "days": {"type": "array", "items": {"anyOf": [{"const": "mo", "title": "Monday"}, {"const": "tu"}]}},
        }}))
        .unwrap()
    }

    fn given(form: &Form, all: &[(&str, &str)]) -> Result<Value, String> {
        let all: Vec<_> = all.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        form.values(&all).map(Value::Object)
    }

    #[test]
    fn texts_become_the_values_of_their_fields() {
        let form = form();
        let lines: Vec<String> = form.fields().iter().map(FormField::line).collect();
        assert_eq!(
            lines,
            [
                "name (text, at least 2 characters; needed): Name – as on your card",
                "age (at least 0; needed)",
                "news (y or n; without it n)",
                "colour (one of r (Red), g (Green))",
                "days (some, with commas, of mo (Monday), tu)",
            ]
        );
        let all =
            [("name", " Ann "), ("age", "30"), ("news", "Y"), ("colour", "Green"), ("days", "tu, Monday")];
        let values = json!({"name": "Ann", "age": 30, "news": true, "colour": "g", "days": ["tu", "mo"]});
        assert_eq!(given(&form, &all).unwrap(), values);
        let promised = json!({"type": "object", "properties": {"a": {"enum": ["x"], "type": "string", "default": "zz"}}});
        assert_eq!(Form::new(promised).unwrap().fields()[0].line(), "a (one of x)", "it fits no choice");
        let least = [("name", "Ann"), ("age", "30"), ("colour", "")];
        assert_eq!(given(&form, &least).unwrap(), json!({"name": "Ann", "age": 30, "news": false}));
    }

    #[test]
    fn a_field_says_what_it_takes_and_within_which_bounds() {
        for (property, takes) in [
            (json!({"type": "integer", "minimum": 1, "maximum": 100}), "1 to 100"),
            (json!({"type": "integer"}), "whole number"),
            (json!({"type": "number", "maximum": 0.5}), "number, at most 0.5"),
            (json!({"type": "number", "minimum": 5}), "number, at least 5"),
            (
                json!({"type": "number", "exclusiveMinimum": 5, "maximum": 6}),
                "number, more than 5, at most 6",
            ),
            (json!({"type": "integer", "minimum": 1, "exclusiveMinimum": 1}), "more than 1"),
            (json!({"type": "integer", "minimum": 2, "exclusiveMinimum": 1}), "at least 2"),
            (json!({"type": "integer", "exclusiveMaximum": 3, "maximum": 9}), "less than 3"),
            (json!({"type": "string", "format": "date"}), "date, 2026-01-31"),
            (json!({"type": "string", "minLength": 2, "maxLength": 9}), "text, 2 to 9 characters"),
            (
                json!({"type": "array", "minItems": 1, "maxItems": 2, "items": {"enum": ["a", "b", "c"]}}),
                "1 to 2, with commas, of a, b, c",
            ),
        ] {
            let form = Form::new(json!({"type": "object", "properties": {"a": property}})).unwrap();
            assert_eq!(form.fields()[0].line(), format!("a ({takes})"));
        }
    }

    #[test]
    fn a_choice_is_taken_in_any_case_where_one_alone_fits() {
        let of = |choices: Value, text: &str| {
            let property = json!({"type": "string", "enum": choices});
            let form = Form::new(json!({"type": "object", "properties": {"a": property}})).unwrap();
            form.values(&[("a".to_owned(), text.to_owned())]).map(|values| values["a"].clone())
        };
        assert_eq!(of(json!(["Cats", "dogs"]), "cats"), Ok(json!("Cats")));
        assert_eq!(of(json!(["Cats", "cats"]), "cats"), Ok(json!("cats")));
        assert!(of(json!(["Cats", "cats"]), "CATS").is_err());
    }

    #[test]
    fn every_problem_is_named() {
        let form = form();
        let why =
            given(&form, &[("age", "old"), ("colour", "blue"), ("x", "1"), ("age", "2"), ("news", "maybe")]);
        assert_eq!(
            why.unwrap_err(),
            "there is no field \"x\"; age is given twice; name is needed; age: \"old\" is no number; news: \"maybe\" is \
             neither y nor n; colour: \"blue\" is none of r (Red), g (Green)"
        );
        let why = given(&form, &[("name", "A"), ("age", "-1")]).unwrap_err();
        assert!(why.contains("name") && why.contains("age"), "{why}");
        assert!(given(&form, &[("name", &"x".repeat(VALUES_CHARS)), ("age", "1")]).is_err());
    }

    #[test]
    fn a_field_is_checked_by_itself() {
        let form = Form::new(json!({"type": "object", "required": ["mail"], "properties": {
            "mail": {"type": "string", "format": "email"},
            "born": {"type": "string", "format": "date"},
            "n": {"type": "integer", "maximum": 3},
        }}))
        .unwrap();
        let fields = form.fields();
        let problem = |place: usize, text: &str| form.problem(&fields[place], text);
        for (place, text) in [(0, "a@b.example"), (1, ""), (1, "2026-11-30"), (2, "3"), (2, " ")] {
            assert_eq!(problem(place, text), None, "{text}");
        }
        for (place, text) in [(0, ""), (0, "foo"), (1, "yesterday"), (2, "4"), (2, "x"), (2, "1.5")] {
            assert!(problem(place, text).is_some_and(|why| why.contains(&fields[place].name)), "{text}");
        }
    }

    #[test]
    fn what_nobody_could_type_is_no_form() {
        let of = |property: Value| Form::new(json!({"type": "object", "properties": {"a": property}}));
        for property in [
            json!({"type": "object"}),
            json!({"type": "string", "default": "x".repeat(SAID_CHARS + 1)}),
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "string", "enum": [1]}),
            json!({"type": "string", "enum": ["pay", "pay "]}),
            json!({"type": "string", "oneOf": [{"const": "Yes", "title": "no"}, {"const": "No", "title": "yes"}]}),
            json!({"type": "string", "enum": []}),
            json!({"type": "string", "enum": ["a\u{1b}[2J"]}),
            json!({"type": ["string", "null"]}),
            json!({"type": "integer", "minimum": 5, "maximum": 1}),
            json!({"type": "string", "minLength": 5, "maxLength": 1}),
            json!({"type": "number", "exclusiveMinimum": 5, "exclusiveMaximum": 5}),
            json!({"type": "number", "minimum": 5, "exclusiveMaximum": 5}),
            json!({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}),
            json!({"type": "integer", "minimum": 1.2, "maximum": 1.8}),
            json!({"type": "integer", "enum": [1, 2], "minimum": 3}),
            json!({"type": "boolean", "enum": ["x"]}),
            json!({"type": "string", "minLength": 2, "enum": ["a"]}),
            json!({"type": "string", "const": "x", "enum": ["y"]}),
            json!({"type": "string", "const": "x", "minLength": 2}),
            json!({"type": "array", "minItems": 2, "items": {"enum": ["a", "bb"], "minLength": 2}}),
            json!({"type": "array", "items": {"enum": ["a", "b"], "minLength": 2}}),
            json!({"type": "array", "minItems": 3, "items": {"enum": ["a", "b"]}}),
            json!({"type": "array", "minItems": 2, "maxItems": 1, "items": {"enum": ["a", "b"]}}),
            json!({"type": "array", "items": {"enum": ["x, y", "z"]}}),
            json!({"type": "string", "enum": ["a", "b"], "enumNames": ["One", "One"]}),
            json!({"type": "string", "oneOf": [{"const": "a", "title": "b"}, {"const": "b", "title": "a"}]}),
            json!({"type": "string", "$ref": "file:///etc/passwd"}),
        ] {
            assert!(of(property.clone()).is_err(), "{property}");
        }
        for property in [
            json!({"type": "integer", "minimum": 1, "maximum": 1}),
            json!({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 3}),
            json!({"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 2}),
            json!({"type": "string", "minLength": 2, "enum": ["a", "bb"]}),
            json!({"type": "string", "const": "x", "enum": ["x", "y"]}),
            json!({"type": "array", "minItems": 2, "items": {"enum": ["a", "b"]}}),
            json!({"type": "string", "enum": ["x, y", "z"], "enumNames": ["x, y", "Z"]}),
            json!({"type": "array", "items": {"anyOf": [{"const": "x, y", "title": "both"}, {"const": "z"}]}}),
        ] {
            assert!(of(property.clone()).is_ok(), "{property}");
        }
        let ghost = json!({"type": "object", "required": ["ghost"], "properties": {"a": {"type": "string"}}});
        assert_eq!(Form::new(ghost).unwrap_err(), "it needs \"ghost\", which is none of its fields");
        let many: Map<String, Value> =
            (0..=MOST_FIELDS).map(|n| (n.to_string(), json!({"type": "string"}))).collect();
        assert!(Form::new(json!({"type": "object", "properties": many})).is_err());
        assert!(Form::new(json!({"type": "object", "properties": {"a\nb": {"type": "string"}}})).is_err());
        assert!(Form::new(json!({"type": "object"})).is_err());
        assert!(Form::new(json!({"type": "object", "properties": {}})).is_ok());
        // Nor is it one where it is read.
        assert!(serde_json::from_value::<Form>(json!({"type": "object"})).is_err());
        assert_eq!(serde_json::from_value::<Form>(json!(form())).unwrap(), form());
    }
}

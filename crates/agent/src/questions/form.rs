//! Forms: what a question asks for besides yes or no, as a server of tools describes it (spec: agent §5 *Elicitation*).

mod bounds;
mod choice;
mod keywords;

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
        Self::new(&schema)
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
    pub fn new(schema: &Value) -> Result<Self, String> {
        let properties = schema["properties"].as_object().ok_or("it names no properties")?;
        let looked_at = keywords::of_form(properties, &schema["required"]);
        if properties.len() > MOST_FIELDS {
            return Err(format!("it has more than {MOST_FIELDS} fields"));
        }
        for name in properties.keys() {
            field(name, &looked_at["properties"][name], false)
                .map_err(|why| format!("field {}: {why}", shortened(name)))?;
        }
        let is_field = |name: &&Value| name.as_str().is_some_and(|name| properties.contains_key(name));
        if let Some(name) = schema["required"].as_array().into_iter().flatten().find(|name| !is_field(name)) {
            return Err(format!("it needs {}, which is none of its fields", shortened(&said(name))));
        }
        ArgumentSchema::with_formats(&looked_at)?;
        Ok(Self(looked_at))
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

/// Check of a value by the schema of a field.
///
/// # Errors
/// It is no schema.
fn check_of(property: &Value) -> Result<impl Fn(&Value) -> bool + use<>, String> {
    let schema = ArgumentSchema::with_formats(&json!({"type": "object", "properties": {"a": property}}))?;
    Ok(move |value: &Value| schema.check(&json!({"a": value})).is_ok())
}

/// Whether a text can be shown, and typed, as it is.
fn is_plain(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= NAME_CHARS && one_line(text) == text
}

/// # Errors
/// What it asks for cannot be typed.
fn field(name: &str, property: &Value, is_required: bool) -> Result<FormField, String> {
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
            return Err(format!(
                "none of its choices is within its bounds, or they are more than {MOST_CHOICES}"
            ));
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
    let fits = check_of(property)?;
    // One that does not fit is none.
    let default = property.get("default").filter(|default| !default.is_null() && fits(default)).cloned();
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
mod tests;

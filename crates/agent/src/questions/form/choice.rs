//! Choices of a field of a form.

use std::collections::HashSet;

use serde_json::Value;

use super::shortened;

/// What may be chosen, and how it is called where that is another word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub value: String,
    pub title: Option<String>,
}

/// What may be chosen; none where anything may.
///
/// # Errors
/// A choice is no text.
pub(super) fn choices(property: &Value) -> Result<Option<Vec<Choice>>, String> {
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or("a choice is no text");
    if let Some(titled) = property["oneOf"].as_array().or_else(|| property["anyOf"].as_array()) {
        let choice = |one: &Value| {
            Ok::<_, String>(Choice {
                value: text(&one["const"])?,
                title: one["title"].as_str().map(str::to_owned),
            })
        };
        return titled.iter().map(choice).collect::<Result<_, _>>().map(Some);
    }
    let Some(values) = property["enum"].as_array() else { return Ok(None) };
    let title = |number: usize| property["enumNames"][number].as_str().map(str::to_owned);
    let choice = |(number, value)| Ok::<_, String>(Choice { value: text(value)?, title: title(number) });
    values.iter().enumerate().map(choice).collect::<Result<_, _>>().map(Some)
}

/// The one choice whose value or title is a text but for its case; none where there are several.
fn only_one<'c>(choices: &'c [Choice], text: &str) -> Option<&'c Choice> {
    let lower = text.to_lowercase();
    let is_it = |name: &str| name.to_lowercase() == lower;
    let mut fitting =
        choices.iter().filter(|choice| is_it(&choice.value) || choice.title.as_deref().is_some_and(is_it));
    fitting.next().filter(|_| fitting.next().is_none())
}

pub(super) fn named(choices: &[Choice]) -> String {
    let named = choices.iter().map(|choice| match &choice.title {
        Some(title) if *title != choice.value => format!("{} ({title})", choice.value),
        _ => choice.value.clone(),
    });
    named.collect::<Vec<_>>().join(", ")
}

/// Whether no name leads to two of the choices, whatever white space stands at its ends, nor the title of one to the value of
/// another in whatever case.
pub(super) fn has_names_of_their_own(choices: &[Choice]) -> bool {
    let names = |choice: &Choice| {
        let title = choice.title.clone().filter(|title| *title != choice.value);
        [Some(choice.value.clone()), title].into_iter().flatten().map(|name| name.trim().to_owned())
    };
    let all: Vec<String> = choices.iter().flat_map(names).collect();
    let lower = |name: &str| name.trim().to_lowercase();
    let is_mistakable = |one: &Choice| {
        let title = one.title.as_deref().map(lower);
        choices.iter().any(|other| other.value != one.value && title == Some(lower(&other.value)))
    };
    all.iter().collect::<HashSet<_>>().len() == all.len() && !choices.iter().any(is_mistakable)
}

/// # Errors
/// A text names none of the choices.
pub(super) fn chosen(choices: &[Choice], text: &str) -> Result<Value, String> {
    let found = choices.iter().find(|choice| choice.value == text);
    let found = found.or_else(|| choices.iter().find(|choice| choice.title.as_deref() == Some(text)));
    let found = found.or_else(|| only_one(choices, text));
    let found = found.ok_or_else(|| format!("{} is none of {}", shortened(text), named(choices)))?;
    Ok(Value::from(found.value.clone()))
}

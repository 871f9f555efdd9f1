//! Bounds of a field: how they are told, and whether anything is within them.

use serde_json::{Value, json};
use tools::ArgumentSchema;

use super::FieldKind;
use super::choice::{Choice, named};

/// What a field takes, with its bounds.
///
/// # Errors
/// Nothing is within them.
pub(super) fn takes(property: &Value, kind: &FieldKind) -> Result<String, String> {
    require_fitting(property, kind)?;
    let is_whole = property["type"] == "integer";
    Ok(match kind {
        FieldKind::Text => {
            let form = match property["format"].as_str() {
                Some("date") => "date, 2026-01-31".to_owned(),
                Some("date-time") => "time, 2026-01-31T18:30:00Z".to_owned(),
                Some("email") => "mail address".to_owned(),
                Some("uri") => "address, https://example.org/".to_owned(),
                _ => "text".to_owned(),
            };
            range(property, (&["minLength"], &["maxLength"]), true)?
                .map_or(form.clone(), |length| format!("{form}, {length} characters"))
        }
        FieldKind::Number => {
            let keys = (&["minimum", "exclusiveMinimum"][..], &["maximum", "exclusiveMaximum"][..]);
            match range(property, keys, is_whole)? {
                Some(range) if is_whole => range,
                Some(range) => format!("number, {range}"),
                None if is_whole => "whole number".to_owned(),
                None => "number".to_owned(),
            }
        }
        FieldKind::YesOrNo => "y or n".to_owned(),
        FieldKind::Choice(choices) => format!("one of {}", named(choices)),
        FieldKind::Choices(choices) => {
            let number = range(property, (&["minItems"], &["maxItems"]), true)?;
            format!("{}, with commas, of {}", number.unwrap_or_else(|| "some".to_owned()), named(choices))
        }
    })
}

/// # Errors
/// None of the values that a field has fits it.
fn require_fitting(property: &Value, kind: &FieldKind) -> Result<(), String> {
    let texts = |choices: &[Choice]| choices.iter().map(|one| Value::from(one.value.clone())).collect();
    let (schema, values, needed): (_, Vec<Value>, _) = match kind {
        FieldKind::Choice(choices) => (property, texts(choices), 1),
        FieldKind::Choices(choices) => {
            (&property["items"], texts(choices), property["minItems"].as_u64().unwrap_or_default().max(1))
        }
        FieldKind::YesOrNo => (property, vec![true.into(), false.into()], 1),
        FieldKind::Text | FieldKind::Number => match (property.get("const"), property["enum"].as_array()) {
            (Some(value), _) => (property, vec![value.clone()], 1),
            (None, Some(values)) => (property, values.clone(), 1),
            (None, None) => return Ok(()),
        },
    };
    let schema = ArgumentSchema::with_formats(&json!({"type": "object", "properties": {"a": schema}}))?;
    let fitting = values.iter().filter(|value| schema.check(&json!({"a": value})).is_ok()).count() as u64;
    match (fitting, needed) {
        (0, _) => Err("none of its choices is within its bounds".to_owned()),
        (fitting, needed) if fitting < needed => Err("it needs more choices than it has".to_owned()),
        _ => Ok(()),
    }
}

/// End of a range, and whether it is out of it itself.
struct Bound {
    at: f64,
    is_open: bool,
    shown: String,
}

/// The end of a range that is nearer; the second key names one that is out of it.
fn bound(property: &Value, keys: &[&str], is_nearer: fn(f64, f64) -> bool) -> Option<Bound> {
    let bounds = keys.iter().enumerate().filter_map(|(number, key)| {
        let (value, is_open) = (&property[*key], number > 0);
        Some(Bound { at: value.as_f64()?, is_open, shown: value.to_string() })
    });
    bounds.reduce(|one, other| match is_nearer(one.at, other.at) {
        true => one,
        false => other,
    })
}

/// A range in words; none where it has no end.
///
/// # Errors
/// Nothing is within it.
fn range(
    property: &Value,
    (least, most): (&[&str], &[&str]),
    is_whole: bool,
) -> Result<Option<String>, String> {
    let from = bound(property, least, |one, other| one > other);
    let to = bound(property, most, |one, other| one < other);
    let is_empty = |from: &Bound, to: &Bound| match is_whole {
        true => {
            let first = if from.is_open { from.at.floor() + 1.0 } else { from.at.ceil() };
            let last = if to.is_open { to.at.ceil() - 1.0 } else { to.at.floor() };
            first > last
        }
        false => from.at > to.at || (from.at >= to.at && (from.is_open || to.is_open)),
    };
    let said = match (&from, &to) {
        (Some(from), Some(to)) if !from.is_open && !to.is_open => format!("{} to {}", from.shown, to.shown),
        _ => {
            let from = from.as_ref().map(|bound| match bound.is_open {
                true => format!("more than {}", bound.shown),
                false => format!("at least {}", bound.shown),
            });
            let to = to.as_ref().map(|bound| match bound.is_open {
                true => format!("less than {}", bound.shown),
                false => format!("at most {}", bound.shown),
            });
            from.into_iter().chain(to).collect::<Vec<_>>().join(", ")
        }
    };
    match (from, to) {
        (Some(from), Some(to)) if is_empty(&from, &to) => {
            Err(format!("nothing is within its bounds: {said}"))
        }
        (None, None) => Ok(None),
        _ => Ok(Some(said)),
    }
}

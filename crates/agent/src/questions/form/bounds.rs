//! Bounds of a field: how they are told, and whether anything is within them.

use serde_json::Value;

use super::choice::named;
use super::{FieldKind, MOST_CHOICES, check_of, said};

/// What a field takes, with its bounds.
///
/// # Errors
/// Nothing is within them.
pub(super) fn takes(property: &Value, kind: &FieldKind) -> Result<String, String> {
    Ok(match kind {
        FieldKind::Text => {
            let form = match property["format"].as_str() {
                Some("date") => "date, 2026-01-31",
                Some("date-time") => "time, 2026-01-31T18:30:00Z",
                Some("email") => "mail address",
                Some("uri") => "address, https://example.org/",
                _ => "text",
            };
            let length = range(property, (&["minLength"], &["maxLength"]), Some(1.0))?;
            let length = length.map(|length| format!("{length} characters"));
            let pattern = property["pattern"].as_str().map(|pattern| format!("matching {pattern}"));
            in_a_row([Some(form.to_owned()), length, pattern])
        }
        FieldKind::Number => {
            if let Some(values) = property["enum"].as_array() {
                return Ok(format!("one of {}", fitting(property, values)?.join(", ")));
            }
            let keys = (&["minimum", "exclusiveMinimum"][..], &["maximum", "exclusiveMaximum"][..]);
            let (is_whole, step) = (property["type"] == "integer", property["multipleOf"].as_f64());
            let multiple = step.map(|step| format!("a multiple of {step}"));
            let range = range(property, keys, step.or(is_whole.then_some(1.0)))
                .map_err(|why| in_a_row([Some(why), multiple.clone(), None]))?;
            let form = match (is_whole, &range) {
                (true, Some(_)) => None,
                (true, None) => Some("whole number".to_owned()),
                (false, _) => Some("number".to_owned()),
            };
            in_a_row([form, range, multiple])
        }
        FieldKind::YesOrNo => fitting(property, &[true.into(), false.into()])?.join(" or "),
        FieldKind::Choice(choices) => format!("one of {}", named(choices)),
        FieldKind::Choices(choices) => {
            if property["minItems"].as_u64().is_some_and(|least| least > choices.len() as u64) {
                return Err("it needs more choices than it has".to_owned());
            }
            let number = range(property, (&["minItems"], &["maxItems"]), Some(1.0))?;
            format!("{}, with commas, of {}", number.unwrap_or_else(|| "some".to_owned()), named(choices))
        }
    })
}

fn in_a_row(parts: [Option<String>; 3]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Values of these that a field takes, as they are typed.
///
/// # Errors
/// There is none, or there are too many.
fn fitting(property: &Value, values: &[Value]) -> Result<Vec<String>, String> {
    let fits = check_of(property)?;
    let fitting: Vec<String> = values.iter().filter(|value| fits(value)).map(said).collect();
    if fitting.is_empty() || fitting.len() > MOST_CHOICES {
        return Err(format!("none of its values is within its bounds, or they are more than {MOST_CHOICES}"));
    }
    Ok(fitting)
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

/// A range in words, of multiples of a step where there is one; none where it has no end.
///
/// # Errors
/// Nothing is within it.
fn range(
    property: &Value,
    (least, most): (&[&str], &[&str]),
    step: Option<f64>,
) -> Result<Option<String>, String> {
    let from = bound(property, least, |one, other| one > other);
    let to = bound(property, most, |one, other| one < other);
    let is_empty = |from: &Bound, to: &Bound| match step {
        Some(step) => {
            let (from_step, to_step) = (from.at / step, to.at / step);
            let first = if from.is_open { from_step.floor() + 1.0 } else { from_step.ceil() };
            let last = if to.is_open { to_step.ceil() - 1.0 } else { to_step.floor() };
            first > last
        }
        None => from.at > to.at || (from.at >= to.at && (from.is_open || to.is_open)),
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

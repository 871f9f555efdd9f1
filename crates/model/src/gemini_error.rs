//! What went wrong, from an error body of Google's APIs.
//!
//! Recognised by the status' name and the reasons among its details. In two cases that is not enough: a full
//! window is an invalid argument like any other, and a spent account is a rate limit like any other; there the
//! message decides.

use serde_json::Value;

use crate::dialect::{FailureKind, ServerFailure};
use crate::openai_error;
use crate::server_text::sanitised;

pub(crate) fn from_response(status: u16, body: &[u8]) -> ServerFailure {
    let value = serde_json::from_slice::<Value>(body).unwrap_or_default();
    match error_of(&value) {
        Some(error) if error.is_object() => read(error, status),
        // A page of a proxy, or a gateway that speaks otherwise.
        _ => openai_error::from_response(status, body),
    }
}

/// Reads a failure reported in a body whose status was fine; `None` if it reports none.
pub(crate) fn reported(value: &Value) -> Option<ServerFailure> {
    from_error(error_of(value)?)
}

/// As [`reported`], from what stands under `error`.
pub(crate) fn from_error(error: &Value) -> Option<ServerFailure> {
    if error.is_null() {
        return None;
    }
    let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    Some(match error {
        Value::Object(_) => read(error, code.unwrap_or(500)),
        _ => openai_error::from_value(error),
    })
}

/// Streams that are no events wrap it into a list of one.
fn error_of(value: &Value) -> Option<&Value> {
    let value = value.as_array().map_or(Some(value), |list| list.first())?;
    value.get("error")
}

fn read(error: &Value, status: u16) -> ServerFailure {
    let name = text(error, "status");
    let message = sanitised(text(error, "message"));
    let kind = kind(status, name, error, &message.to_lowercase());
    let message = match (message.is_empty(), name.is_empty()) {
        (false, _) => message,
        (true, false) => sanitised(name),
        (true, true) => "it gave no reason".to_owned(),
    };
    ServerFailure { kind, message }
}

fn kind(status: u16, name: &str, error: &Value, message: &str) -> FailureKind {
    if details(error).any(|detail| text(detail, "reason").starts_with("API_KEY_")) {
        return FailureKind::Unauthorized;
    }
    match name {
        "INVALID_ARGUMENT" if message.contains("input token count") => FailureKind::ContextTooLong,
        "RESOURCE_EXHAUSTED" if is_spent(error, message) => FailureKind::QuotaExceeded,
        "RESOURCE_EXHAUSTED" => FailureKind::RateLimited,
        "UNAVAILABLE" | "DEADLINE_EXCEEDED" | "INTERNAL" | "ABORTED" | "CANCELLED" | "UNKNOWN" => {
            FailureKind::Unavailable
        }
        "PERMISSION_DENIED" | "UNAUTHENTICATED" => FailureKind::Unauthorized,
        "NOT_FOUND" => FailureKind::NotFound,
        "INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE" | "UNIMPLEMENTED" => {
            FailureKind::Rejected
        }
        _ => match status {
            401 | 403 => FailureKind::Unauthorized,
            402 => FailureKind::QuotaExceeded,
            404 => FailureKind::NotFound,
            429 => FailureKind::RateLimited,
            408 | 499.. => FailureKind::Unavailable,
            _ => FailureKind::Rejected,
        },
    }
}

/// Whether waiting a little is of no use: the day's share is spent, or the account is.
fn is_spent(error: &Value, message: &str) -> bool {
    let violations = details(error).filter_map(|detail| detail.get("violations")?.as_array()).flatten();
    let daily = violations.into_iter().any(|violation| text(violation, "quotaId").contains("PerDay"));
    daily || ["prepayment credits", "spending cap"].iter().any(|words| message.contains(words))
}

fn details(error: &Value) -> impl Iterator<Item = &Value> {
    error.get("details").and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

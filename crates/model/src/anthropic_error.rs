//! What went wrong, from the error body of a server that speaks messages.
//!
//! Servers of others put their own errors behind this dialect, so what the type of an error does not say is read
//! as from any other server.

use serde_json::Value;

use crate::dialect::{FailureKind, ServerFailure};
use crate::openai_error;

pub(crate) fn from_response(status: u16, body: &[u8]) -> ServerFailure {
    let failure = openai_error::from_response(status, body);
    let value = serde_json::from_slice::<Value>(body).ok();
    refined(failure, value.as_ref())
}

/// Reads a failure reported in the middle of a body whose status was fine.
pub(crate) fn from_value(value: &Value) -> ServerFailure {
    refined(openai_error::from_value(value), Some(value))
}

fn refined(failure: ServerFailure, value: Option<&Value>) -> ServerFailure {
    let error = value.and_then(|value| value.get("error"));
    let kind = error.and_then(|error| kind(error, &failure.message.to_lowercase()));
    ServerFailure { kind: kind.unwrap_or(failure.kind), ..failure }
}

const TOO_LONG: &[&str] = &["prompt is too long", "exceed context limit", "exceeds the context window"];
const SPENT: &[&str] = &["credit balance is too low", "usage limits"];

fn kind(error: &Value, message: &str) -> Option<FailureKind> {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| message.contains(phrase));
    Some(match error.get("type")?.as_str()? {
        "invalid_request_error" if says(TOO_LONG) => FailureKind::ContextTooLong,
        "invalid_request_error" if says(SPENT) => FailureKind::QuotaExceeded,
        "invalid_request_error" => FailureKind::Rejected,
        "request_too_large" => FailureKind::ContextTooLong,
        "authentication_error" | "permission_error" => FailureKind::Unauthorized,
        "billing_error" => FailureKind::QuotaExceeded,
        "not_found_error" => FailureKind::NotFound,
        "rate_limit_error" if spend_limit(error) => FailureKind::QuotaExceeded,
        "rate_limit_error" => FailureKind::RateLimited,
        "overloaded_error" | "api_error" | "timeout_error" => FailureKind::Unavailable,
        _ => return None,
    })
}

/// A spend limit is reported like a rate limit, but waiting does not lift it.
fn spend_limit(error: &Value) -> bool {
    let code = error.pointer("/details/error_code").and_then(Value::as_str);
    code.is_some_and(|code| code.contains("spend_limit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(kind: &str, message: &str) -> Vec<u8> {
        let error = serde_json::json!({"type": kind, "message": message});
        serde_json::json!({"type": "error", "error": error, "request_id": "req_011C"})
            .to_string()
            .into_bytes()
    }

    #[test]
    fn every_class_of_error_has_its_kind() {
        let cases = [
            (400, "invalid_request_error", "max_tokens: Field required", FailureKind::Rejected),
            (401, "authentication_error", "invalid x-api-key", FailureKind::Unauthorized),
            (402, "billing_error", "Your billing is on hold.", FailureKind::QuotaExceeded),
            (403, "permission_error", "Your API key may not use this.", FailureKind::Unauthorized),
            (404, "not_found_error", "model: claude-x", FailureKind::NotFound),
            (413, "request_too_large", "Request exceeds the maximum size", FailureKind::ContextTooLong),
            (429, "rate_limit_error", "Number of request tokens has exceeded", FailureKind::RateLimited),
            (500, "api_error", "Internal server error", FailureKind::Unavailable),
            (504, "timeout_error", "Request timed out", FailureKind::Unavailable),
            (529, "overloaded_error", "Overloaded", FailureKind::Unavailable),
        ];
        for (status, name, message, kind) in cases {
            let failure = from_response(status, &body(name, message));
            assert_eq!((failure.kind, failure.message.as_str()), (kind, message), "{name}");
            let value = serde_json::from_slice(&body(name, message)).unwrap();
            assert_eq!(from_value(&value).kind, kind, "{name} in mid-stream");
        }
    }

    #[test]
    fn a_full_window_and_a_spent_account_are_told_by_their_words() {
        let kind = |message: &str| from_response(400, &body("invalid_request_error", message)).kind;
        assert_eq!(kind("prompt is too long: 208310 tokens > 200000 maximum"), FailureKind::ContextTooLong);
        assert_eq!(
            kind("input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000"),
            FailureKind::ContextTooLong
        );
        assert_eq!(kind("Your credit balance is too low to access the API."), FailureKind::QuotaExceeded);
        assert_eq!(kind("You have reached your specified API usage limits."), FailureKind::QuotaExceeded);
    }

    #[test]
    fn a_spend_limit_is_no_rate_limit() {
        let limited = br#"{"type":"error","error":{"type":"rate_limit_error","message":"Spend limit reached.","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
        assert_eq!(from_response(429, limited).kind, FailureKind::QuotaExceeded);
    }

    #[test]
    fn errors_of_other_servers_behind_this_dialect_are_read_too() {
        let full = br#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#;
        assert_eq!(from_response(400, full).kind, FailureKind::ContextTooLong);
        assert_eq!(from_response(503, b"<html>busy</html>").kind, FailureKind::Unavailable);
    }
}

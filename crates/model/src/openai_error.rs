//! What went wrong, from the error body of an OpenAI-compatible server.
//!
//! Recognised by code and type where servers give one. Only for the full window a list of phrases
//! is needed: vLLM and Ollama say it in words alone, and the caller must know, because it can trim
//! and try again.

use serde_json::Value;

use crate::dialect::{FailureKind, ServerFailure};
use crate::server_text::sanitised;

pub(crate) fn from_response(status: u16, body: &[u8]) -> ServerFailure {
    let value = serde_json::from_slice::<Value>(body).ok();
    let details = value.as_ref().map(Details::of).unwrap_or_default();
    let message = match &details.message {
        Some(message) => sanitised(message),
        None => sanitised(&String::from_utf8_lossy(body)),
    };
    let message = match status {
        300..400 => "it sends the request elsewhere, which is not followed".to_owned(),
        _ if message.is_empty() => "it gave no reason".to_owned(),
        _ => message,
    };
    ServerFailure { kind: kind(status, &details, &message), message }
}

/// Reads a failure reported in the middle of a body whose status was fine.
pub(crate) fn from_value(value: &Value) -> ServerFailure {
    let details = Details::of(value);
    let message = sanitised(details.message.as_deref().unwrap_or("the server reported a failure"));
    let status = details.status.or_else(|| details.named_status()).unwrap_or(500);
    ServerFailure { kind: kind(status, &details, &message), message }
}

#[derive(Default)]
struct Details {
    message: Option<String>,
    /// Code and type, in lower case.
    names: Vec<String>,
    status: Option<u16>,
}

impl Details {
    /// `{"error": {"message", "type", "code"}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}`.
    fn of(value: &Value) -> Self {
        let inner = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        let text = |name: &str| inner.get(name).and_then(Value::as_str).map(str::to_owned);
        let message = inner.as_str().map(str::to_owned);
        // Mistral puts what is wrong with a request there as an object.
        let object = |name: &str| inner.get(name).filter(|value| !value.is_null()).map(Value::to_string);
        let message = message.or_else(|| text("message")).or_else(|| text("detail"));
        let message = message.or_else(|| object("message")).or_else(|| object("detail"));
        let names = ["code", "type"].iter().filter_map(|name| text(name)).map(|n| n.to_lowercase()).collect();
        let status = inner.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        Self { message, names, status }
    }

    /// The status a failure by this name would have had, had it come before the answer began.
    fn named_status(&self) -> Option<u16> {
        self.names.iter().find_map(|name| match name.as_str() {
            "rate_limit_exceeded" | "rate_limit_error" | "too_many_requests" => Some(429),
            "invalid_api_key" | "authentication_error" | "permission_error" => Some(401),
            "model_not_found" | "not_found_error" => Some(404),
            "bad_request" => Some(400),
            name if name.starts_with("invalid_") || name.starts_with("unsupported_") => Some(400),
            name if name.contains("image") => Some(400),
            _ => None,
        })
    }

    fn named(&self, names: &[&str]) -> bool {
        self.names.iter().any(|own| names.contains(&own.as_str()))
    }
}

const TOO_LONG_NAMES: &[&str] = &["context_length_exceeded", "exceed_context_size_error"];
const TOO_LONG_PHRASES: &[&str] = &[
    "maximum context length",
    "exceeds the available context size",
    "exceeds the context length",
    "exceeds the context window",
    "too long to fit into the model",
    "longer than the maximum model length",
    "prompt is too long",
];

fn kind(status: u16, details: &Details, message: &str) -> FailureKind {
    let lower = message.to_lowercase();
    let may_be_size = matches!(status, 400 | 413 | 422 | 500);
    if details.named(TOO_LONG_NAMES) || (may_be_size && TOO_LONG_PHRASES.iter().any(|p| lower.contains(p))) {
        return FailureKind::ContextTooLong;
    }
    if details.named(&["insufficient_quota"]) {
        return FailureKind::QuotaExceeded;
    }
    match status {
        429 => FailureKind::RateLimited,
        401 | 403 => FailureKind::Unauthorized,
        402 => FailureKind::QuotaExceeded,
        404 => FailureKind::NotFound,
        408 | 500.. => FailureKind::Unavailable,
        _ => FailureKind::Rejected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_window_is_recognised_from_every_server() {
        let bodies = [
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","param":null,"code":400}"#,
            ),
            (
                400,
                r#"{"error":{"message":"The prompt (total length 9000) is too long to fit into the model (context length 4096).","type":"BadRequestError","code":400}}"#,
            ),
            (500, r#"{"error":"the input length exceeds the context length"}"#),
        ];
        for (status, body) in bodies {
            assert_eq!(from_response(status, body.as_bytes()).kind, FailureKind::ContextTooLong, "{body}");
        }
    }

    #[test]
    fn other_failures_are_told_apart() {
        let kind = |status, body: &str| from_response(status, body.as_bytes()).kind;
        assert_eq!(
            kind(429, r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#),
            FailureKind::RateLimited
        );
        assert_eq!(
            kind(429, r#"{"error":{"message":"pay","code":"insufficient_quota"}}"#),
            FailureKind::QuotaExceeded
        );
        assert_eq!(kind(401, r#"{"error":{"message":"no key"}}"#), FailureKind::Unauthorized);
        assert_eq!(kind(503, "<html>busy</html>"), FailureKind::Unavailable);
        assert_eq!(kind(404, r#"{"error":{"message":"model 'x' not found"}}"#), FailureKind::NotFound);
        assert_eq!(kind(400, r#"{"error":{"message":"bad tool"}}"#), FailureKind::Rejected);
    }

    #[test]
    fn a_failure_in_mid_stream_is_told_by_its_name() {
        let kind = |error: &str| from_value(&serde_json::from_str(error).unwrap()).kind;
        for (error, expected) in [
            (r#"{"type":"error","code":"rate_limit_exceeded","message":"slow"}"#, FailureKind::RateLimited),
            (
                r#"{"error":{"type":"invalid_request_error","code":"x","message":"no"}}"#,
                FailureKind::Rejected,
            ),
            (r#"{"error":{"code":"image_too_large","message":"no"}}"#, FailureKind::Rejected),
            (r#"{"error":{"code":"context_length_exceeded","message":"no"}}"#, FailureKind::ContextTooLong),
            (r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#, FailureKind::QuotaExceeded),
            (r#"{"error":{"code":"server_error","message":"oh"}}"#, FailureKind::Unavailable),
            (r#"{"error":{"code":429,"message":"slow"}}"#, FailureKind::RateLimited),
        ] {
            assert_eq!(kind(error), expected, "{error}");
        }
    }

    #[test]
    fn the_message_is_the_servers_and_harmless() {
        let failure = from_response(400, b"{\"error\":{\"message\":\"no \\u001b[2J tool\"}}");
        assert_eq!(failure.message, "no \\u{1b}[2J tool");
        assert_eq!(from_response(502, b"plain words").message, "plain words");
    }
}

//! How long a server asks to wait, where it says so in its error instead of a header.
//!
//! Google's servers do: an entry of `error.details` holds `retryDelay`, in seconds with an `s` behind. Their
//! OpenAI-compatible door wraps the same in a list.

use std::time::Duration;

use serde_json::Value;

/// The wait an error body asks for.
pub(crate) fn retry_hint(body: &[u8]) -> Option<Duration> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let details = body.pointer("/error/details").or_else(|| body.pointer("/0/error/details"))?;
    let delay = details.as_array()?.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_among_the_details_is_read() {
        let body = r#"{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[
            {"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[]},
            {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.074824224s"}]}}"#;
        let asked = retry_hint(body.as_bytes()).unwrap();
        assert_eq!(asked.as_secs(), 34);
        assert_eq!(retry_hint(format!("[{body}]").as_bytes()), Some(asked));
    }

    #[test]
    fn anything_else_asks_for_nothing() {
        for body in [
            "",
            "{}",
            r#"{"error":{"details":[{"retryDelay":"soon"}]}}"#,
            r#"{"error":{"details":[{"retryDelay":"-1s"}]}}"#,
            r#"{"error":{"details":"34s"}}"#,
        ] {
            assert_eq!(retry_hint(body.as_bytes()), None, "{body}");
        }
    }
}

//! Parameters of requests that a server sends. Those that are no object make no request of the protocol, which would be
//! answered without its id, or by nothing: the server would wait for its answer.

use serde_json::{Map, Value};

const METHOD: &[u8] = b"\"method\"";

/// A request with an empty object in the place of parameters that are none, so that it is refused as one whose parameters do
/// not fit. None of what can be read as it is.
pub(crate) fn with_object(message: &[u8]) -> Option<String> {
    // Answers are long, and have no method.
    if !message.windows(METHOD.len()).any(|part| part == METHOD) {
        return None;
    }
    let mut message: Map<String, Value> = serde_json::from_slice(message).ok()?;
    let is_request = message.contains_key("id") && message.get("method").is_some_and(Value::is_string);
    let params = message.get_mut("params").filter(|params| is_request && !params.is_object())?;
    *params = Value::Object(Map::new());
    Some(Value::Object(message).to_string())
}

#[cfg(test)]
mod tests {
    use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage, ServerRequest};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_can_be_answered_whatever_its_parameters_are() {
        for params in [json!([1]), json!("x"), json!(7), Value::Null] {
            let asked =
                json!({"jsonrpc": "2.0", "id": "a", "method": "elicitation/create", "params": params});
            let readable = with_object(asked.to_string().as_bytes()).unwrap();
            let JsonRpcMessage::Request(request) =
                serde_json::from_str::<ServerJsonRpcMessage>(&readable).unwrap()
            else {
                panic!("{readable}")
            };
            assert!(matches!(request.request, ServerRequest::CustomRequest(_)), "{readable}");
        }
        for other in [
            json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}}),
            json!({"jsonrpc": "2.0", "method": "notifications/message", "params": [1]}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {"method": 1}, "params": 1}),
        ] {
            assert_eq!(with_object(other.to_string().as_bytes()), None, "{other}");
        }
        assert_eq!(with_object(b"\"method\" [1"), None);
    }
}

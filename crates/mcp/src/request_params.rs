//! Requests that a server sends, as they are read. Parameters that are no object make no request of the protocol, which would
//! be answered without its id, or by nothing: the server would wait for its answer. What asks a person is read by another
//! name, so that its form comes whole: a type of the protocol leaves out each keyword that it does not know.

use rmcp::model::{ConstString as _, ElicitationCreateRequestMethod};
use serde_json::{Map, Value};

const METHOD: &[u8] = b"\"method\"";

/// Method by which a request is read that asks a person.
pub(crate) const ELICITATION: &str = "drawloom/elicitation";

/// A request as it is read: with an empty object in the place of parameters that are none, so that it is refused as one whose
/// parameters do not fit, and with [`ELICITATION`]. None of what can be read as it is.
pub(crate) fn as_read(message: &[u8]) -> Option<String> {
    // Answers are long, and have no method.
    if !message.windows(METHOD.len()).any(|part| part == METHOD) {
        return None;
    }
    let mut message: Map<String, Value> = serde_json::from_slice(message).ok()?;
    message.get("id").zip(message.get("method").filter(|method| method.is_string()))?;
    let mut is_other = false;
    if let Some(params) = message.get_mut("params").filter(|params| !params.is_object()) {
        (*params, is_other) = (Value::Object(Map::new()), true);
    }
    if let Some(method) =
        message.get_mut("method").filter(|method| *method == ElicitationCreateRequestMethod::VALUE)
    {
        (*method, is_other) = (ELICITATION.into(), true);
    }
    is_other.then(|| Value::Object(message).to_string())
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
            let readable = as_read(asked.to_string().as_bytes()).unwrap();
            let JsonRpcMessage::Request(request) =
                serde_json::from_str::<ServerJsonRpcMessage>(&readable).unwrap()
            else {
                panic!("{readable}")
            };
            assert!(matches!(request.request, ServerRequest::CustomRequest(_)), "{readable}");
        }
        let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {"a": 5}});
        let read: Value = serde_json::from_str(&as_read(asked.to_string().as_bytes()).unwrap()).unwrap();
        assert_eq!((&read["method"], &read["params"]), (&json!(ELICITATION), &json!({"a": 5})));
        for other in [
            json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
            json!({"jsonrpc": "2.0", "method": "elicitation/create", "params": {}}),
            json!({"jsonrpc": "2.0", "method": "notifications/message", "params": [1]}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {"method": 1}, "params": 1}),
        ] {
            assert_eq!(as_read(other.to_string().as_bytes()), None, "{other}");
        }
        assert_eq!(as_read(b"\"method\" [1"), None);
    }
}

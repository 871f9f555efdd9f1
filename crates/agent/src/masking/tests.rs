use std::sync::Mutex;

use proptest::prelude::*;
use serde_json::{Value, json};
use text::mask::Secret;

use super::*;

const SECRET: &str = "sk-canary-0123456789";

fn masker() -> Masker {
    Masker::new(&[Secret::new("KEY", SECRET).unwrap()]).unwrap()
}

/// A stream of chat completions whose deltas are these texts.
fn stream(deltas: &[&str]) -> Vec<u8> {
    let mut body = String::new();
    for delta in deltas {
        let token = json!({"token": delta, "logprob": -0.1, "bytes": delta.as_bytes(), "top_logprobs": []});
        let choice = json!({"index": 0, "delta": {"content": delta}, "logprobs": {"content": [token]}});
        body += &format!("data: {}\n\n", json!({"id": "c", "choices": [choice]}));
    }
    let end = json!({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    (body + &format!("data: {end}\n\ndata: [DONE]\n\n")).into_bytes()
}

fn masked(body: &[u8], streamed: bool) -> MaskedResponse {
    let parsed = reparse(DialectName::OpenAiChat, body, streamed);
    MaskedResponse::of(&masker(), DialectName::OpenAiChat, body.to_vec(), streamed, parsed)
}

#[test]
fn a_secret_split_over_deltas_is_in_no_stored_byte() {
    let body = stream(&["It is sk-can", "ary-01234", "56789, ", "keep it."]);
    // The control: the bytes alone do not show it.
    assert!(!masker().finds_in(&body));
    let masked = masked(&body, true);
    assert_eq!(masked.parsed.choices[0].text(), "It is ⟦secret:KEY⟧, keep it.");
    assert_eq!(masked.names, BTreeSet::from(["KEY".to_owned()]));
    let kept = String::from_utf8(masked.body).unwrap();
    for part in ["sk-can", "ary-01234", "56789"] {
        assert!(!kept.contains(part), "{part} in {kept}");
    }
    assert_eq!(
        kept.matches("\"logprobs\"").count(),
        1,
        "only the delta without a part of it keeps its tokens: {kept}"
    );
}

#[test]
fn escapes_do_not_hide_a_secret() {
    let escaped: String = SECRET.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    let choice =
        |text: &str| format!(r#"{{"index":0,"message":{{"content":"{text}"}},"finish_reason":"stop"}}"#);
    let body = format!(r#"{{"id":"c","choices":[{}]}}"#, choice(&format!("It is {escaped}.")));
    assert!(!masker().finds_in(body.as_bytes()));
    let masked = masked(body.as_bytes(), false);
    assert_eq!(masked.parsed.choices[0].text(), "It is ⟦secret:KEY⟧.");
    assert!(!String::from_utf8(masked.body).unwrap().contains("\\u00"));
}

#[test]
fn an_invalid_byte_beside_it_does_not_hide_a_secret() {
    let mut body = stream(&["It is SECRET."]);
    let at = body.windows(6).position(|six| six == b"SECRET").unwrap();
    body.splice(at..at + 6, [&b"\xff"[..], SECRET.as_bytes()].concat());
    let masked = masked(&body, true);
    assert!(masked.parsed.choices[0].text().contains("⟦secret:KEY⟧"));
    assert!(!masker().finds_in(&masked.body));
}

#[test]
fn a_body_without_a_secret_stays_byte_for_byte() {
    for body in [stream(&["It is ", "sk-can", "not."]), b"\xff\xfe no answer".to_vec()] {
        assert_eq!(masked(&body, true).body, body);
    }
}

#[derive(Default)]
struct Heard(Mutex<String>);

impl EventSink for Heard {
    fn emit(&self, event: SessionEvent) {
        let SessionEvent::Delta { offset, text, .. } = event else { panic!("{event:?}") };
        let mut heard = self.0.lock().unwrap();
        assert_eq!(offset, heard.len() as u64, "it goes on where it was");
        heard.push_str(&text);
    }
}

fn cut(text: &str, cuts: &[usize]) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (chars.len() + 1)).collect();
    ends.extend([0, chars.len()]);
    ends.sort_unstable();
    ends.windows(2).map(|pair| chars[pair[0]..pair[1]].iter().collect()).collect()
}

proptest! {
    #[test]
    fn what_is_heard_is_what_is_stored_and_holds_no_secret(
        before in "[a-z sk\\-üÄ\"\\\\]{0,12}",
        after in "[a-z sk\\-🎉\n]{0,12}",
        cuts in prop::collection::vec(0_usize..64, 0..6),
    ) {
        let said = format!("{before}{SECRET}{after}");
        let deltas = cut(&said, &cuts);
        let deltas: Vec<&str> = deltas.iter().map(String::as_str).collect();
        let masked = masked(&stream(&deltas), true);
        let stored = masked.parsed.choices[0].text();
        prop_assert_eq!(&stored, &masker().mask(&said).text);
        prop_assert!(!masked.body.is_empty());
        let (heard, masker, nodes) = (Heard::default(), masker(), [NodeId::from_bytes([1; 16])]);
        let mut shown = MaskedDeltas::new(&heard, &masker, &nodes);
        for delta in &deltas {
            shown.event(&model::ModelEvent::Text { choice: 0, text: (*delta).to_owned() });
        }
        shown.finish();
        prop_assert_eq!(heard.0.into_inner().unwrap(), stored);
    }
}

#[test]
fn a_delta_that_reads_like_a_label_is_edited_and_not_the_label() {
    // `c` is the id of the response, too.
    let masked = masked(&stream(&["sk-", "c", "anary-0123456789, and on"]), true);
    assert_eq!(masked.parsed.choices[0].text(), "⟦secret:KEY⟧, and on");
    assert!(
        String::from_utf8(masked.body)
            .unwrap()
            .contains("\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}")
    );
}

#[test]
fn a_body_that_cannot_be_edited_is_left_out() {
    // One event whose JSON stands in two lines: no line of it is JSON.
    let (one, two) = SECRET.split_at(9);
    let event = |text: &str| {
        let json: Value = json!({"id": "c", "choices": [{"index": 0, "delta": {"content": text}}]});
        json.to_string().replacen("\"choices\"", "\ndata: \"choices\"", 1)
    };
    let body = format!("data: {}\n\ndata: {}\n\ndata: [DONE]\n\n", event(one), event(two));
    let masked = masked(body.as_bytes(), true);
    assert_eq!(masked.parsed.choices[0].text(), "⟦secret:KEY⟧");
    assert_eq!(masked.body, b"");
}

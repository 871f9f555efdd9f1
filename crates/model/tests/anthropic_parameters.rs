//! The parameters of requests in the messages dialect, and which of them exclude each other.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

#[path = "support/anthropic.rs"]
mod support;

use drawloom_model::anthropic::{Anthropic, DEFAULT_MAX_TOKENS};
use drawloom_model::quirks::{Quirks, SchemaForm, ThinkingForm, ThinkingOff};
use drawloom_model::{
    Chat, ChatPart, Dialect, EncodeError, OpaquePart, OutputSchema, Params, PartId, Prompt, Thinking,
    ToolChoice,
};
use serde_json::{Value, json};

use support::{assistant, body, chat, conversation, encode_with, text, unsupported, user};

#[test]
fn tools_are_chosen_as_asked() {
    let asked = |choice: ToolChoice| {
        let params = Params { tool_choice: choice, ..Params::default() };
        body(&encode_with(Quirks::default(), conversation(), &params).unwrap())["tool_choice"].clone()
    };
    assert_eq!(asked(ToolChoice::Auto), Value::Null);
    assert_eq!(asked(ToolChoice::None), json!({"type": "none"}));
    assert_eq!(asked(ToolChoice::Required), json!({"type": "any"}));
    assert_eq!(asked(ToolChoice::Tool("read".to_owned())), json!({"type": "tool", "name": "read"}));
    let params = Params { tool_choice: ToolChoice::Required, ..Params::default() };
    let sent = body(&encode_with(Quirks::default(), chat(vec![user(1, "Hi")]), &params).unwrap());
    assert_eq!(sent["tool_choice"], Value::Null, "there is nothing to choose from");
}

fn thinking(form: ThinkingForm, always: bool) -> Quirks {
    Quirks { thinking: form, thinking_always: always, ..Quirks::default() }
}

#[test]
fn thinking_is_asked_for_in_the_servers_form() {
    let asked = |quirks: Quirks, thinking: Option<Thinking>, max_tokens: Option<u32>| {
        let params = Params { thinking, max_tokens, temperature: Some(0.3), ..Params::default() };
        let sent = body(&encode_with(quirks, chat(vec![user(1, "Hi")]), &params).unwrap());
        (
            sent["thinking"].clone(),
            sent["output_config"].clone(),
            sent["max_tokens"].clone(),
            sent["temperature"].clone(),
        )
    };
    let nothing = || (Value::Null, Value::Null, json!(DEFAULT_MAX_TOKENS), json!(0.3));
    let budget = thinking(ThinkingForm::Budget, false);
    let enabled = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    assert_eq!(asked(budget, None, None), nothing());
    assert_eq!(asked(budget, Some(Thinking::Off), None).0, json!({"type": "disabled"}));
    let low = (enabled(2048), Value::Null, json!(DEFAULT_MAX_TOKENS + 2048), Value::Null);
    assert_eq!(asked(budget, Some(Thinking::Low), None), low, "a budget has no temperature beside it");
    assert_eq!(asked(budget, Some(Thinking::High), Some(8000)).0, enabled(4000), "the answer keeps its half");
    assert_eq!(asked(budget, Some(Thinking::High), Some(1025)).0, enabled(1024));
    let params = Params { thinking: Some(Thinking::Low), max_tokens: Some(1024), ..Params::default() };
    let error = encode_with(budget, chat(vec![user(1, "Hi")]), &params).unwrap_err();
    assert_eq!(error, EncodeError::Parameter { name: "max_tokens" });

    let level = thinking(ThinkingForm::Level, false);
    let adaptive = json!({"type": "adaptive", "display": "summarized"});
    let max = || json!(DEFAULT_MAX_TOKENS);
    assert_eq!(asked(level, None, None), nothing());
    assert_eq!(
        asked(level, Some(Thinking::High), None),
        (adaptive, json!({"effort": "high"}), max(), Value::Null)
    );
    assert_eq!(asked(level, Some(Thinking::Off), None).0, json!({"type": "disabled"}));
    let always = thinking(ThinkingForm::Level, true);
    let least = (Value::Null, json!({"effort": "low"}), max(), Value::Null);
    assert_eq!(asked(always, Some(Thinking::Off), None), least, "it can only think less");
    assert_eq!(asked(thinking(ThinkingForm::None, false), Some(Thinking::High), None), nothing());
}

#[test]
fn thinking_that_is_bound_to_its_conversation_is_left_out_where_that_has_changed() {
    let thought = OpaquePart {
        id: PartId(2),
        thinking: None,
        json: json!({"type": "thinking", "thinking": "", "signature": "c2ln"}),
    };
    let sent = |quirks: Quirks, asked: Option<Thinking>| {
        let said =
            vec![user(1, "Hi"), ChatPart::Opaque(thought.clone()), assistant(3, "Yes."), user(4, "Why?")];
        let params = Params { thinking: asked, ..Params::default() };
        let sent = body(&encode_with(quirks, chat(said), &params).unwrap());
        let back = sent["messages"][1]["content"][0]["type"] == "thinking";
        (sent["thinking"].clone(), back)
    };
    let drop = json!({"prefix_mismatch_behavior": "drop_block"});
    let bound = |always| Quirks { thinking_bound: true, ..thinking(ThinkingForm::Level, always) };
    let adaptive = json!({"type": "adaptive", "block_binding": drop});
    assert_eq!(sent(bound(false), None), (adaptive.clone(), true));
    let shown = json!({"type": "adaptive", "display": "summarized", "block_binding": drop});
    assert_eq!(sent(bound(false), Some(Thinking::High)), (shown, true));
    assert_eq!(sent(bound(true), Some(Thinking::Off)), (adaptive, true), "it thinks all the same");
    let off = json!({"type": "disabled"});
    assert_eq!(sent(bound(false), Some(Thinking::Off)), (off.clone(), false), "nothing could be said of it");
    let free = thinking(ThinkingForm::Level, false);
    assert_eq!(sent(free, Some(Thinking::Off)), (off, true), "control: one that is not bound goes back");
    assert_eq!(sent(free, None), (Value::Null, true));
}

#[test]
fn each_model_is_told_in_its_own_way_not_to_think() {
    let off = |thinking_off: ThinkingOff| {
        let quirks = Quirks { thinking_off, ..thinking(ThinkingForm::Level, false) };
        let params = Params { thinking: Some(Thinking::Off), ..Params::default() };
        body(&encode_with(quirks, chat(vec![user(1, "Hi")]), &params).unwrap())["thinking"].clone()
    };
    assert_eq!(off(ThinkingOff::Disabled), json!({"type": "disabled"}));
    assert_eq!(off(ThinkingOff::BetweenTools), json!({"type": "between_tools"}));
    assert_eq!(off(ThinkingOff::Unsaid), Value::Null);
}

#[test]
fn a_form_of_the_answer_stands_beside_the_effort() {
    let schema = OutputSchema {
        name: "n".to_owned(),
        schema: json!({"type": "object", "additionalProperties": false}),
    };
    let params = Params { schema: Some(schema), thinking: Some(Thinking::Low), ..Params::default() };
    let sent = |quirks| encode_with(quirks, chat(vec![user(1, "Hi")]), &params);
    let format = json!({"type": "json_schema", "schema": {"type": "object", "additionalProperties": false}});
    let both = json!({"effort": "low", "format": format});
    assert_eq!(body(&sent(thinking(ThinkingForm::Level, false)).unwrap())["output_config"], both);
    assert!(unsupported(&sent(Quirks { schema: SchemaForm::Object, ..Quirks::default() })));
}

#[test]
fn what_the_api_cannot_do_is_refused_before_anything_is_sent() {
    let level = thinking(ThinkingForm::Level, false);
    let thinks = || Params { thinking: Some(Thinking::Low), ..Params::default() };
    let begun = || Chat { prefill: Some(text(9, "It")), ..conversation() };
    let schema = OutputSchema { name: "n".to_owned(), schema: json!({}) };
    let forced = ToolChoice::Required;
    let always = thinking(ThinkingForm::Level, true);
    for (quirks, chat, params) in [
        (level, conversation(), Params { n: 2, ..Params::default() }),
        (level, conversation(), Params { logprobs: Some(0), ..Params::default() }),
        (level, conversation(), Params { stop: vec!["\n\n".to_owned()], ..Params::default() }),
        (level, conversation(), Params { tool_choice: forced.clone(), ..thinks() }),
        (always, conversation(), Params { tool_choice: forced, ..Params::default() }),
        (level, begun(), thinks()),
        (level, begun(), Params { schema: Some(schema), ..Params::default() }),
    ] {
        assert!(unsupported(&encode_with(quirks, chat, &params)), "{params:?}");
    }
    let raw = Anthropic::default().encode(&Prompt::Raw(vec![text(1, "a")]), &Params::default(), "m");
    assert!(unsupported(&raw));
    for params in [
        Params { temperature: Some(1.01), ..Params::default() },
        Params { temperature: Some(f64::NAN), ..Params::default() },
        Params { top_p: Some(-0.1), ..Params::default() },
        Params { n: 0, ..Params::default() },
    ] {
        assert_eq!(encode_with(level, conversation(), &params).unwrap_err().code(), "bad_parameter");
    }
}

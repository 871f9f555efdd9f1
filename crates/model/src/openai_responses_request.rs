//! The parameters of a responses request.

use crate::encoded::{BodyWriter, EncodeError};
use crate::prompt::{OutputSchema, Params, Thinking};
use crate::quirks::{CacheForm, Quirks, SchemaForm, ThinkingForm};

/// Opens the body and writes what changes rarely: what grows comes last, so that two bodies of a session share the
/// longest beginning.
pub(crate) fn open_body(
    body: &mut BodyWriter,
    model: &str,
    params: &Params,
    quirks: &Quirks,
) -> Result<(), EncodeError> {
    admit(params, quirks)?;
    body.frame("{\"model\":");
    body.frame_value(model);
    body.frame(",\"store\":false");
    include(body, params, quirks);
    if params.stream {
        body.frame(",\"stream\":true");
    }
    if quirks.sampling {
        field(body, "temperature", params.temperature);
        field(body, "top_p", params.top_p);
    }
    field(body, "max_output_tokens", params.max_tokens);
    field(body, "top_logprobs", params.logprobs.filter(|&alternatives| alternatives > 0));
    if let Some(thinking) = params.thinking {
        think(body, thinking, quirks)?;
    }
    if let Some(schema) = &params.schema {
        form(body, schema, quirks.schema);
    }
    if quirks.cache == CacheForm::Key {
        field(body, "prompt_cache_key", params.cache_key.as_ref());
    }
    Ok(())
}

/// Refuses what the API has no field for. What a server is known not to take is left out instead, as everywhere.
fn admit(params: &Params, quirks: &Quirks) -> Result<(), EncodeError> {
    if params.n == 0 {
        return Err(EncodeError::Parameter { name: "n" });
    }
    for (name, value) in
        [("temperature", params.temperature), ("top_p", params.top_p), ("min_p", params.min_p)]
    {
        if value.is_some_and(|value| !value.is_finite() || value < 0.0) {
            return Err(EncodeError::Parameter { name });
        }
    }
    let refused = [
        (params.n > 1, "more than one choice in a request"),
        (!params.stop.is_empty(), "a text that ends the answer"),
        (params.seed.is_some() && quirks.seed, "a seed"),
        (params.min_p.is_some() && quirks.min_p, "min_p"),
    ];
    match refused.into_iter().find(|(refused, _)| *refused) {
        Some((_, what)) => Err(EncodeError::Unsupported { what }),
        None => Ok(()),
    }
}

fn include(body: &mut BodyWriter, params: &Params, quirks: &Quirks) {
    let sealed = quirks.thinking != ThinkingForm::None;
    let wanted: Vec<&str> = [
        sealed.then_some("reasoning.encrypted_content"),
        params.logprobs.map(|_| "message.output_text.logprobs"),
    ]
    .into_iter()
    .flatten()
    .collect();
    field(body, "include", (!wanted.is_empty()).then_some(wanted));
}

/// A summary is asked for with the thinking: without it nothing of it would be seen.
fn think(body: &mut BodyWriter, thinking: Thinking, quirks: &Quirks) -> Result<(), EncodeError> {
    match quirks.thinking {
        ThinkingForm::None => {}
        ThinkingForm::Effort | ThinkingForm::ReasoningObject => {
            body.frame(",\"reasoning\":{\"effort\":");
            body.frame_value(quirks.least_effort.nearest(thinking));
            body.frame(if thinking == Thinking::Off { "" } else { ",\"summary\":\"auto\"" });
            body.frame("}");
        }
        ThinkingForm::TemplateSwitch => {
            body.frame(",\"chat_template_kwargs\":{\"enable_thinking\":");
            body.frame_value(&(thinking != Thinking::Off));
            body.frame("}");
        }
        _ => return Err(EncodeError::Unsupported { what: "this way to say how much to think" }),
    }
    Ok(())
}

fn form(body: &mut BodyWriter, schema: &OutputSchema, form: SchemaForm) {
    body.frame(",\"text\":{\"format\":");
    match form {
        SchemaForm::Schema => {
            body.frame("{\"type\":\"json_schema\",\"name\":");
            body.frame_value(&schema.name);
            body.frame(",\"schema\":");
            body.frame_value(&schema.schema);
            body.frame(",\"strict\":true}");
        }
        SchemaForm::Object => body.frame("{\"type\":\"json_object\"}"),
    }
    body.frame("}");
}

fn field<T: serde::Serialize>(body: &mut BodyWriter, name: &str, value: Option<T>) {
    let Some(value) = value else { return };
    body.frame(",\"");
    body.frame(name);
    body.frame("\":");
    body.frame_value(&value);
}

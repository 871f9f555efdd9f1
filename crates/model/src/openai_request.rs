//! The parameters that both OpenAI dialects write alike.

use crate::encoded::{BodyWriter, EncodeError};
use crate::prompt::Params;
use crate::quirks::Quirks;

/// Opens the body and writes model and sampling, which change rarely: what grows comes last, so
/// that two bodies of a session share the longest beginning and end.
pub(crate) fn open_body(
    writer: &mut BodyWriter,
    model: &str,
    params: &Params,
    limit_field: &str,
    quirks: &Quirks,
) -> Result<(), EncodeError> {
    if params.n == 0 {
        return Err(EncodeError::Parameter { name: "n" });
    }
    writer.frame("{\"model\":");
    writer.frame_value(model);
    if params.stream {
        writer.frame(",\"stream\":true");
        if quirks.stream_options {
            writer.frame(",\"stream_options\":{\"include_usage\":true}");
        }
    }
    // What only shapes the choice of tokens is left out where a server refuses it; what changes the task is not.
    for (name, field, value, taken) in [
        ("temperature", ",\"temperature\":", params.temperature, quirks.sampling),
        ("top_p", ",\"top_p\":", params.top_p, quirks.sampling),
        ("min_p", ",\"min_p\":", params.min_p, quirks.min_p),
    ] {
        let Some(value) = value else { continue };
        if !value.is_finite() || value < 0.0 {
            return Err(EncodeError::Parameter { name });
        }
        if taken {
            writer.frame(field);
            writer.frame_value(&value);
        }
    }
    if let Some(limit) = params.max_tokens {
        writer.frame(",\"");
        writer.frame(limit_field);
        writer.frame("\":");
        writer.frame_value(&limit);
    }
    if !params.stop.is_empty() {
        writer.frame(",\"stop\":");
        writer.frame_value(&params.stop);
    }
    if let Some(seed) = params.seed.filter(|_| quirks.seed) {
        writer.frame(",\"seed\":");
        writer.frame_value(&seed);
    }
    if params.n > 1 {
        writer.frame(",\"n\":");
        writer.frame_value(&params.n);
    }
    Ok(())
}

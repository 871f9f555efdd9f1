//! The parameters that both OpenAI dialects write alike.

use crate::encoded::{BodyWriter, EncodeError};
use crate::prompt::Params;

/// Opens the body and writes model and sampling, which change rarely: what grows comes last, so
/// that two bodies of a session share the longest beginning and end.
pub(crate) fn open_body(
    writer: &mut BodyWriter,
    model: &str,
    params: &Params,
    limit_field: &str,
) -> Result<(), EncodeError> {
    if params.n == 0 {
        return Err(EncodeError::Parameter { name: "n" });
    }
    writer.frame("{\"model\":");
    writer.frame_value(model);
    if params.stream {
        writer.frame(",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    }
    for (name, field, value) in [
        ("temperature", ",\"temperature\":", params.temperature),
        ("top_p", ",\"top_p\":", params.top_p),
        ("min_p", ",\"min_p\":", params.min_p),
    ] {
        let Some(value) = value else { continue };
        if !value.is_finite() || value < 0.0 {
            return Err(EncodeError::Parameter { name });
        }
        writer.frame(field);
        writer.frame_value(&value);
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
    if let Some(seed) = params.seed {
        writer.frame(",\"seed\":");
        writer.frame_value(&seed);
    }
    if params.n > 1 {
        writer.frame(",\"n\":");
        writer.frame_value(&params.n);
    }
    Ok(())
}

//! `model test`: one small question, and how it was answered.

use model::{Call, Chat, ChatPart, Exchange, Params, PartId, Prompt, Purpose, TextPart, reparse};

use crate::app::App;
use crate::error::CommandError;
use crate::results::Outcome;
use crate::results::model::Tested;

/// The question. Nothing of the owner's is in it.
const QUESTION: &str = "Answer with one word: what colour is a clear sky?";
/// Longest answer, in tokens.
const MAX_TOKENS: u32 = 16;

/// Asks a model.
pub(crate) async fn test(app: &App, name: Option<&str>) -> Result<Outcome, CommandError> {
    let model = app.models.find(name.or(app.settings.model.as_deref()))?;
    let question = ChatPart::User(TextPart::new(PartId(0), QUESTION));
    let prompt = Prompt::Chat(Chat { messages: vec![question], ..Chat::default() });
    let params = Params { max_tokens: Some(MAX_TOKENS), ..Params::default() };
    let request = model.encode(&prompt, &params)?;
    let (mut spool, mut listener) = (Vec::new(), |_| {});
    let exchange = Exchange { spool: &mut spool, listener: &mut listener, cancel: app.cancel.clone() };
    let sent = model.send(&request, &Call::new("model test", Purpose::Turn), exchange).await;
    let response = sent.map_err(|error| CommandError::from(&error))?;
    let read = reparse(response.dialect, &response.body, response.streamed);
    if let Some(problem) = read.problem {
        let hint = "the server speaks otherwise than expected: check its address";
        return Err(CommandError::new("bad_answer", 5, problem.to_string(), hint));
    }
    let timings = response.timings;
    let output = read.usage.map(|usage| usage.output);
    let spent = timings.total_ms.saturating_sub(timings.first_byte_ms.unwrap_or(timings.total_ms));
    let rate = output.filter(|_| spent > 0).map(|tokens| tokens as f64 * 1000.0 / spent as f64);
    let text = read.choices.first().map(|choice| choice.text.clone()).unwrap_or_default();
    let info = model.info();
    Ok(Outcome::Tested(Tested {
        name: format!("{}/{}", info.provider, info.name),
        place: info.place,
        text: text.trim().lines().next().unwrap_or_default().to_owned(),
        first_byte_ms: timings.first_byte_ms,
        total_ms: timings.total_ms,
        output,
        tokens_per_second: rate.map(|rate| (rate * 10.0).round() / 10.0),
        usage_reported: read.usage.is_some(),
    }))
}

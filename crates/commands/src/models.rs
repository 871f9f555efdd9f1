//! `model test`: one small question, and how it was answered.

use std::time::Instant;

use context::Estimator;
use model::{
    CallOrigin, Chat, ChatPart, DialectName, Exchange, ModelEvent, Params, PartId, Prompt, Purpose, TextPart,
};

use crate::app::App;
use crate::error::CommandError;
use crate::frontend::RequestTokens;
use crate::results::CommandOutcome;
use crate::results::model::Tested;

/// The question. Nothing of the owner's is in it.
const QUESTION: &str = "Answer with one word: what colour is a clear sky?";
/// Longest answer, in tokens.
const MAX_TOKENS: u32 = 16;

pub(crate) async fn test(app: &App, name: Option<&str>) -> Result<CommandOutcome, CommandError> {
    let model = app.model(name.or(app.settings.model.as_deref())).await?;
    let question = ChatPart::User(TextPart::new(PartId(0), QUESTION));
    let prompt = Prompt::Chat(Chat { messages: vec![question], ..Chat::default() });
    let params = Params { max_tokens: Some(MAX_TOKENS), ..Params::default() };
    let request = model.encode(&prompt, &params)?;
    let began = Instant::now();
    // Before its first text a server may say that it has begun, long before it has read the question.
    let mut first_text = None;
    let mut listener = |event| {
        if matches!(event, ModelEvent::Text { .. } | ModelEvent::Thinking { .. }) {
            first_text.get_or_insert_with(|| began.elapsed());
        }
    };
    let mut spool = Vec::new();
    let exchange =
        Exchange { spool: &mut spool, listener: &mut listener, cancel: app.cancel.clone(), permit: None };
    let tokens = RequestTokens { tokens: Estimator::default().of(QUESTION), is_counted: false };
    app.frontend.awaits(&model.info().full_name(), tokens);
    let sent = model.send(&request, &CallOrigin::new("model test", Purpose::Turn), exchange).await;
    app.frontend.arrived();
    let response = sent.map_err(|error| CommandError::from(&error))?;
    let read = response.parsed;
    if let Some(problem) = read.problem {
        let hint = "the server has another API than expected: check its address";
        return Err(CommandError::new("bad_answer", 5, problem.to_string(), hint));
    }
    let whole = response.timings.total_ms;
    let first = first_text.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX).min(whole));
    let output = read.usage.map(|usage| usage.output);
    let spent = whole.saturating_sub(first.unwrap_or(whole));
    let rate = output.filter(|_| spent > 0).map(|tokens| tokens as f64 * 1000.0 / spent as f64);
    let text = read.choices.first().map(model::Choice::text).unwrap_or_default();
    let info = model.info();
    Ok(CommandOutcome::Tested(Tested {
        name: info.full_name(),
        place: info.place,
        embedded: info.dialect == DialectName::Embedded,
        text: text.trim().lines().next().unwrap_or_default().to_owned(),
        first_text_ms: first,
        total_ms: whole,
        output,
        tokens_per_second: rate.map(|rate| (rate * 10.0).round() / 10.0),
        usage_reported: read.usage.is_some(),
    }))
}

//! Whole choices, folded from events.

use serde::{Deserialize, Serialize};

use crate::event::{Event, FinishReason, TokenLogprob, Usage};

/// A tool call as a model asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them; see [`crate::tool_arguments::parse`].
    pub arguments: String,
}

/// One of the answers in a response.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    /// The choice's index in the response.
    pub index: u32,
    /// The text.
    pub text: String,
    /// The thinking before it.
    pub thinking: String,
    /// A refusal's text, where the provider keeps it apart.
    pub refusal: String,
    /// Tool calls, in order.
    pub tool_calls: Vec<ToolCall>,
    /// Probabilities of the tokens, where asked for.
    pub logprobs: Vec<TokenLogprob>,
    /// Why it ended; `None` when it was interrupted.
    pub finish: Option<FinishReason>,
}

/// A response as far as it has arrived.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// The server's id of the response.
    pub id: Option<String>,
    /// The model as the server names it.
    pub model: Option<String>,
    /// The choices, by index.
    pub choices: Vec<Choice>,
    /// Token counts; `None` means unknown, never 0 (spec: context §4).
    pub usage: Option<Usage>,
}

impl Reply {
    /// Folds events into a reply.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut reply = Self::default();
        for event in events {
            reply.apply(event);
        }
        reply
    }

    /// Takes in one event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Start { id, model } => {
                self.id.clone_from(id);
                self.model.clone_from(model);
            }
            Event::Text { choice, text } => self.choice(*choice).text.push_str(text),
            Event::Thinking { choice, text } => self.choice(*choice).thinking.push_str(text),
            Event::Refusal { choice, text } => self.choice(*choice).refusal.push_str(text),
            Event::ToolCall { choice, index, begin, arguments } => {
                let calls = &mut self.choice(*choice).tool_calls;
                if let Some(begin) = begin {
                    calls.push(ToolCall {
                        id: begin.id.clone(),
                        name: begin.name.clone(),
                        arguments: String::new(),
                    });
                }
                if let Some(call) = calls.get_mut(*index as usize) {
                    call.arguments.push_str(arguments);
                }
            }
            Event::Logprobs { choice, tokens } => {
                self.choice(*choice).logprobs.extend_from_slice(tokens);
            }
            Event::Usage(usage) => self.usage = Some(*usage),
            Event::Finish { choice, reason } => self.choice(*choice).finish = Some(reason.clone()),
        }
    }

    fn choice(&mut self, index: u32) -> &mut Choice {
        let at = match self.choices.binary_search_by_key(&index, |choice| choice.index) {
            Ok(at) => at,
            Err(at) => {
                self.choices.insert(at, Choice { index, ..Choice::default() });
                at
            }
        };
        &mut self.choices[at]
    }
}

//! Whole choices, folded from events.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::event::{CallBegin, FinishReason, ModelEvent, TokenLogprob, TokenUsage};
use crate::prompt::Media;

/// A tool call as a model asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// The arguments as the model wrote them; see [`crate::tool_arguments::parse`].
    pub arguments: String,
}

/// One piece of an answer; pieces keep the order in which the model made them.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyPiece {
    Text(String),
    /// Thinking, and what the provider wants back with it.
    Thinking {
        /// The text shown; providers may show none.
        text: String,
        /// The dialect's own form, without the text; [`ReplyPiece::opaque`] gives it whole.
        opaque: Option<Value>,
    },
    /// What the provider wants back unchanged.
    Opaque(Value),
    /// A refusal's text, where the provider keeps it apart.
    Refusal(String),
    Call(ToolCall),
    /// A picture or a sound.
    Media(Media),
}

impl ReplyPiece {
    /// What the provider wants back, whole: thinking is kept with its text beside it, not twice.
    pub fn opaque(&self) -> Option<Value> {
        match self {
            Self::Thinking { text, opaque: Some(json) } if is_without_text(json) => {
                let signature = json.get("signature").cloned().unwrap_or_default();
                Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
            }
            Self::Thinking { opaque, .. } => opaque.clone(),
            Self::Opaque(json) => Some(json.clone()),
            _ => None,
        }
    }
}

/// Whether it is signed thinking of Anthropic without its text.
fn is_without_text(json: &Value) -> bool {
    json.get("type").is_some_and(|kind| kind == "thinking") && json.get("thinking").is_none()
}

/// One of the answers in a response.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    /// The choice's index in the response.
    pub index: u32,
    /// What it consists of, in order.
    pub pieces: Vec<ReplyPiece>,
    /// Probabilities of the tokens, where asked for.
    pub logprobs: Vec<TokenLogprob>,
    /// Why it ended; `None` when it was interrupted.
    pub finish: Option<FinishReason>,
}

impl Choice {
    /// Text of the choice, borrowed where it is one piece.
    pub fn text(&self) -> Cow<'_, str> {
        self.joined(|piece| match piece {
            ReplyPiece::Text(text) => Some(text),
            _ => None,
        })
    }

    pub fn thinking(&self) -> Cow<'_, str> {
        self.joined(|piece| match piece {
            ReplyPiece::Thinking { text, .. } => Some(text),
            _ => None,
        })
    }

    pub fn refusal(&self) -> Cow<'_, str> {
        self.joined(|piece| match piece {
            ReplyPiece::Refusal(text) => Some(text),
            _ => None,
        })
    }

    /// The tool calls, in order.
    pub fn tool_calls(&self) -> Vec<ToolCall> {
        let calls = self.pieces.iter().filter_map(|piece| match piece {
            ReplyPiece::Call(call) => Some(call.clone()),
            _ => None,
        });
        calls.collect()
    }

    /// Texts of pieces, one after another; borrowed where there is one.
    fn joined<'a>(&'a self, of: impl Fn(&'a ReplyPiece) -> Option<&'a String>) -> Cow<'a, str> {
        let mut texts = self.pieces.iter().filter_map(of).map(String::as_str);
        let first = texts.next().unwrap_or_default();
        texts.fold(Cow::Borrowed(first), |all, text| all + text)
    }

    fn add_text(&mut self, new: &str) {
        match self.pieces.last_mut() {
            Some(ReplyPiece::Text(text)) => text.push_str(new),
            _ => self.pieces.push(ReplyPiece::Text(new.to_owned())),
        }
    }

    fn add_thinking(&mut self, new: &str) {
        match self.pieces.last_mut() {
            Some(ReplyPiece::Thinking { text, opaque: None }) => text.push_str(new),
            _ => self.pieces.push(ReplyPiece::Thinking { text: new.to_owned(), opaque: None }),
        }
    }

    fn add_refusal(&mut self, new: &str) {
        match self.pieces.last_mut() {
            Some(ReplyPiece::Refusal(text)) => text.push_str(new),
            _ => self.pieces.push(ReplyPiece::Refusal(new.to_owned())),
        }
    }

    fn add_opaque(&mut self, with_thinking: bool, json: &Value) {
        let json = json.clone();
        // Thinking whose text is not repeated belongs to the last that has none yet, whatever was said since.
        let open = self.pieces.iter_mut().rev().find_map(|piece| match piece {
            ReplyPiece::Thinking { opaque: opaque @ None, .. } if is_without_text(&json) => Some(opaque),
            _ => None,
        });
        if let Some(opaque) = open {
            *opaque = Some(json);
            return;
        }
        match self.pieces.last_mut() {
            Some(ReplyPiece::Thinking { opaque: opaque @ None, .. }) if with_thinking => *opaque = Some(json),
            _ if with_thinking => {
                self.pieces.push(ReplyPiece::Thinking { text: String::new(), opaque: Some(json) });
            }
            _ => self.pieces.push(ReplyPiece::Opaque(json)),
        }
    }

    /// Adds to the call with this number among the choice's calls.
    fn add_call(&mut self, number: u32, begin: Option<&CallBegin>, arguments: &str) {
        if let Some(begin) = begin {
            let CallBegin { id, name } = begin.clone();
            self.pieces.push(ReplyPiece::Call(ToolCall { id, name, arguments: String::new() }));
        }
        let calls = self.pieces.iter_mut().filter_map(|piece| match piece {
            ReplyPiece::Call(call) => Some(call),
            _ => None,
        });
        if let Some(call) = calls.into_iter().nth(number as usize) {
            call.arguments.push_str(arguments);
        }
    }
}

/// A response as far as it has arrived.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// The server's id of the response.
    pub id: Option<String>,
    /// The model as the server names it.
    pub model: Option<String>,
    pub choices: Vec<Choice>,
    /// Token counts; `None` means unknown, never 0 (spec: context §4).
    pub usage: Option<TokenUsage>,
    /// The last token counts that came while the answer went on; none once those of the whole came.
    pub interim_usage: Option<TokenUsage>,
}

impl Reply {
    /// Adds what an event brings.
    pub fn apply(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Start { id, model } => {
                self.id.clone_from(id);
                self.model.clone_from(model);
            }
            ModelEvent::PromptRead { .. } => {}
            ModelEvent::Text { choice, text } => self.choice(*choice).add_text(text),
            ModelEvent::Thinking { choice, text } => self.choice(*choice).add_thinking(text),
            ModelEvent::Refusal { choice, text } => self.choice(*choice).add_refusal(text),
            ModelEvent::Opaque { choice, with_thinking, json } => {
                self.choice(*choice).add_opaque(*with_thinking, json);
            }
            ModelEvent::Media { choice, media } => {
                self.choice(*choice).pieces.push(ReplyPiece::Media(media.clone()));
            }
            ModelEvent::ToolCall { choice, index, begin, arguments } => {
                self.choice(*choice).add_call(*index, begin.as_ref(), arguments);
            }
            ModelEvent::Logprobs { choice, tokens } => {
                self.choice(*choice).logprobs.extend_from_slice(tokens);
            }
            ModelEvent::Usage(usage) => (self.usage, self.interim_usage) = (Some(*usage), None),
            ModelEvent::InterimUsage(usage) => self.interim_usage = Some(*usage),
            ModelEvent::Finish { choice, reason } => self.choice(*choice).finish = Some(reason.clone()),
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

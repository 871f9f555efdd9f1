//! Chat templates: messages to a prompt.
//!
//! The templates of two families are ours. A template in a file is a program by whoever made the file and is never
//! evaluated (spec: security §24): for a known family it is compared with ours as text and a different one is
//! reported; a model of any other family continues raw text.

use crate::error::TemplateError;
use crate::header::GgufHeader;
use crate::metadata_value::MetadataValue;
use crate::vocabulary::{PromptPiece, Vocabulary};

/// Bytes of a file's template beyond which it is not compared with ours.
const MAX_COMPARED: usize = 2_048;

/// What stands in the ChatML templates of files that say the same as ours. Tools and default system prompts apart,
/// which are never sent, any ChatML template is one line: this.
const CHATML_CORE: &str = "'<|im_start|>'+message['role']+'\\n'+message['content']+'<|im_end|>'+'\\n'";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatRole {
    /// Instructions: at most one message, the first.
    System,
    User,
    Assistant,
}

impl ChatRole {
    fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    pub role: ChatRole,
    pub text: String,
}

/// How a family's conversations are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatTemplate {
    /// `<|im_start|>role\n…<|im_end|>\n`: SmolLM2, Qwen and many more.
    ChatMl,
    /// `<|start_header_id|>role<|end_header_id|>\n\n…<|eot_id|>`: Llama 3.
    Llama3,
}

impl ChatTemplate {
    /// The template of the family whose markers the vocabulary has; none for any other family.
    pub(crate) fn of(vocabulary: &Vocabulary) -> Option<Self> {
        let has = |markers: &[&str]| markers.iter().all(|marker| vocabulary.has_marker(marker));
        if has(&["<|im_start|>", "<|im_end|>"]) {
            Some(Self::ChatMl)
        } else if has(&["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]) {
            Some(Self::Llama3)
        } else {
            None
        }
    }

    /// The template's name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::ChatMl => "ChatML",
            Self::Llama3 => "Llama 3",
        }
    }

    /// Whether the file brings a template that writes messages otherwise. A default system message is no difference:
    /// ours never sends one.
    pub(crate) fn differs_from(self, header: &GgufHeader) -> bool {
        let Some(source) = header.get("tokenizer.chat_template").and_then(MetadataValue::text) else {
            return false;
        };
        if self != Self::ChatMl || source.len() > MAX_COMPARED {
            return true;
        }
        let source = source.replace('\n', "\\n");
        let dense: String = source.chars().filter(|letter| !letter.is_whitespace()).collect();
        !dense.contains(CHATML_CORE) || dense.len() >= 512
    }

    /// The prompt of a conversation, up to where the answer begins. Each message is one piece of text.
    pub(crate) fn prompt(self, messages: &[ChatMessage]) -> Result<Vec<PromptPiece>, TemplateError> {
        if messages.iter().skip(1).any(|message| message.role == ChatRole::System) {
            return Err(TemplateError::Roles);
        }
        let (open, role_end, close) = match self {
            Self::ChatMl => ("<|im_start|>", "\n", "<|im_end|>\n"),
            Self::Llama3 => ("<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>"),
        };
        let mut pieces = Vec::new();
        let mut before = "";
        for message in messages {
            pieces.push(PromptPiece::Template(format!("{before}{open}{}{role_end}", message.role.name())));
            pieces.push(PromptPiece::Text(message.text.clone()));
            before = close;
        }
        pieces.push(PromptPiece::Template(format!("{before}{open}{}{role_end}", ChatRole::Assistant.name())));
        Ok(pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation() -> Vec<ChatMessage> {
        let message = |role, text: &str| ChatMessage { role, text: text.to_owned() };
        vec![
            message(ChatRole::System, "Be brief."),
            message(ChatRole::User, "<|im_end|> {{ 1 }}"),
            message(ChatRole::Assistant, "One."),
            message(ChatRole::User, "Why?"),
        ]
    }

    fn written(template: ChatTemplate) -> Vec<(bool, String)> {
        let pieces = template.prompt(&conversation()).unwrap();
        let plain = |piece: &PromptPiece| (matches!(piece, PromptPiece::Text(_)), piece.as_str().to_owned());
        pieces.iter().map(plain).collect()
    }

    #[test]
    fn chatml_holds_each_message_as_a_piece_of_its_own() {
        let expected = [
            (false, "<|im_start|>system\n"),
            (true, "Be brief."),
            (false, "<|im_end|>\n<|im_start|>user\n"),
            (true, "<|im_end|> {{ 1 }}"),
            (false, "<|im_end|>\n<|im_start|>assistant\n"),
            (true, "One."),
            (false, "<|im_end|>\n<|im_start|>user\n"),
            (true, "Why?"),
            (false, "<|im_end|>\n<|im_start|>assistant\n"),
        ];
        assert_eq!(written(ChatTemplate::ChatMl), expected.map(|(text, piece)| (text, piece.to_owned())));
    }

    #[test]
    fn llama_3_holds_each_message_as_a_piece_of_its_own() {
        let header = |role: &str| format!("<|start_header_id|>{role}<|end_header_id|>\n\n");
        let next = |role: &str| format!("<|eot_id|>{}", header(role));
        let expected = [
            (false, header("system")),
            (true, "Be brief.".to_owned()),
            (false, next("user")),
            (true, "<|im_end|> {{ 1 }}".to_owned()),
            (false, next("assistant")),
            (true, "One.".to_owned()),
            (false, next("user")),
            (true, "Why?".to_owned()),
            (false, next("assistant")),
        ];
        assert_eq!(written(ChatTemplate::Llama3), expected);
    }

    #[test]
    fn a_system_message_stands_first_or_not_at_all() {
        let mut late = conversation();
        late.rotate_left(1);
        for template in [ChatTemplate::ChatMl, ChatTemplate::Llama3] {
            assert_eq!(template.prompt(&late), Err(TemplateError::Roles));
        }
    }
}

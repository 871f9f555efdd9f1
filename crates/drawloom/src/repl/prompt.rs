//! What stands before an input line: the session, and how full it is once that matters.

use std::borrow::Cow;

use commands::chat::Conversation;
use commands::{App, Asker};
use context::Zone;
use reedline::{Color, Prompt, PromptEditMode, PromptHistorySearch};

/// Where the conversation stands when a line is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    session: String,
    zone: Zone,
}

impl Standing {
    /// Where it stands now. What cannot be read is said by the next turn.
    pub(super) async fn of(app: &App, conversation: &Conversation) -> Self {
        let zone = conversation.zone(app, &Asker::owner()).await.ok().flatten();
        Self { session: conversation.name(), zone: zone.unwrap_or(Zone::Green) }
    }
}

impl Prompt for Standing {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        match self.zone {
            Zone::Green => Cow::Borrowed(&self.session),
            zone => Cow::Owned(format!("{} ({zone})", self.session)),
        }
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("| ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("(search: {}) ", search.term))
    }

    fn get_prompt_color(&self) -> Color {
        match self.zone {
            Zone::Green => Color::Green,
            Zone::Yellow => Color::Yellow,
            Zone::Orange | Zone::Red => Color::Red,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_window_stands_in_the_prompt() {
        let prompt = |zone| Standing { session: "main".to_owned(), zone };
        assert_eq!(prompt(Zone::Green).render_prompt_left(), "main");
        assert_eq!(prompt(Zone::Orange).render_prompt_left(), "main (orange)");
    }
}

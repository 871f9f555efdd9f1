//! What stands before an input line: the session, and how full it is once that matters.

use std::borrow::Cow;

use commands::chat::Conversation;
use commands::{App, Asker};
use context::Zone;
use reedline::{Color, Prompt, PromptEditMode, PromptHistorySearch};

/// What a conversation is called before what is said in it.
pub(super) fn name_of(conversation: &Conversation) -> String {
    if conversation.is_temporary() { "private".to_owned() } else { conversation.name() }
}

/// Where the conversation stands when a line is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    session: String,
    zone: Zone,
    /// Whether plan mode is on.
    plan: bool,
    /// Whether tools reach everything.
    unrestricted: bool,
}

impl Standing {
    /// Where it stands now. What cannot be read is said by the next turn.
    pub(super) async fn of(app: &App, conversation: &Conversation) -> Self {
        let zone = conversation.zone(app, &Asker::owner()).await.ok().flatten();
        let (session, plan) = (name_of(conversation), conversation.is_planning());
        let unrestricted = conversation.is_unrestricted();
        Self { session, zone: zone.unwrap_or(Zone::Green), plan, unrestricted }
    }
}

impl Prompt for Standing {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        let zone = (self.zone != Zone::Green).then(|| self.zone.to_string());
        let said = [
            self.unrestricted.then(|| "no restriction".to_owned()),
            self.plan.then(|| "plan".to_owned()),
            zone,
        ];
        let said: Vec<String> = said.into_iter().flatten().collect();
        match said.is_empty() {
            true => Cow::Borrowed(&self.session),
            false => Cow::Owned(format!("{} ({})", self.session, said.join(", "))),
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
    fn a_full_window_and_plan_mode_stand_in_the_prompt() {
        let prompt = |zone, plan| {
            let standing = Standing { session: "main".to_owned(), zone, plan, unrestricted: false };
            standing.render_prompt_left().into_owned()
        };
        assert_eq!(prompt(Zone::Green, false), "main");
        assert_eq!(prompt(Zone::Orange, false), "main (orange)");
        assert_eq!(prompt(Zone::Green, true), "main (plan)");
        assert_eq!(prompt(Zone::Red, true), "main (plan, red)");
    }
}

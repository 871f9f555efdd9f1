//! `/note`: what a person notes for the session after this one, and what is noted.

use loom::ViewName;
use store::OutcomeKind;

use super::NoteArgument;
use crate::app::App;
use crate::chat::Conversation;
use crate::chat::position::view_position;
use crate::error::CommandError;
use crate::outcomes::{Note, NotePlace, append, ledger};
use crate::results::CommandOutcome;
use crate::results::outcomes::OutcomesShown;
use crate::rights::Asker;

/// Appends a note to the session's ledger, or lists it. What is noted is said where the conversation stands.
///
/// # Errors
/// The session has not begun or hands nothing over, or the note is refused.
pub(super) async fn note(
    app: &App,
    asker: &Asker,
    conversation: &Conversation,
    note: Option<NoteArgument>,
) -> Result<CommandOutcome, CommandError> {
    let entered = conversation.entered_before(app, asker).await?;
    let Some(NoteArgument { kind, corrects, text }) = note else {
        return Ok(CommandOutcome::Outcomes(match entered {
            Some(entered) => ledger(&app.runtime, &asker.principal, &entered.session).await?,
            None => OutcomesShown::default(),
        }));
    };
    let Some(entered) = entered else {
        let hint = "say something first: the session begins with it";
        return Err(CommandError::refused("no_ledger", "this session has not begun", hint));
    };
    let (tree, view): (_, ViewName) = (entered.tree, entered.view);
    let at = app.read(asker, tree, move |rows| view_position(rows, &view)).await?;
    let default = if corrects.is_some() { OutcomeKind::Correction } else { OutcomeKind::Outcome };
    let note = Note { kind: kind.unwrap_or(default), trust: asker.trust, text: app.typed(&text)?, corrects };
    let place = NotePlace { tree, node: Some(at.node), fence: None };
    Ok(CommandOutcome::OutcomeNoted(append(&app.runtime, &asker.principal, &place, note).await?))
}

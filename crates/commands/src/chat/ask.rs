//! `ask`: one question, in a session of its own.

use agent::session::Name;
use loom::{TreeId, ViewName};
use store::{Session, SessionKind};

use super::Conversation;
use super::sessions::listed;
use crate::app::App;
use crate::args::chat::{AskArgs, ChatArgs};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::rights::Asker;

/// What the name of such a session begins with.
const PREFIX: &str = "ask-";
/// Characters of the id of a tree that follow it: the random ones.
const ID_CHARS: usize = 10;

pub(crate) async fn ask(app: &App, asker: &Asker, args: AskArgs) -> Result<CommandOutcome, CommandError> {
    let AskArgs { text, continues, extract, request } = args;
    let name = if continues { last(app, asker).await? } else { fresh(app)? };
    let args = ChatArgs { message: Some(text.clone()), request, ..ChatArgs::default() };
    args.check()?;
    let reads_input = args.reads_input();
    let text = app.text(&text)?;
    let place = (name, ViewName::default(), SessionKind::Isolated);
    let mut conversation = Conversation::open_at(app, asker, place, &args).await?;
    if !reads_input {
        conversation.attach_piped(app)?;
    }
    conversation.say(app, asker, text).await?;
    let done = conversation.answer(app, asker).await?;
    Ok(CommandOutcome::Chatted(if extract { done.extracted() } else { done }))
}

fn fresh(app: &App) -> Result<Name, CommandError> {
    let id = app.runtime.new_id::<TreeId>()?.to_string().to_lowercase();
    let random: String = id.chars().skip(id.len() - ID_CHARS).collect();
    Ok(Name::new(&format!("{PREFIX}{random}"))?)
}

/// The session of the last question of this workspace.
async fn last(app: &App, asker: &Asker) -> Result<Name, CommandError> {
    let sessions = listed(app, asker, Some(app.workspace.key.clone()), false).await?;
    let asked = sessions
        .into_iter()
        .filter(|session| session.kind == SessionKind::Isolated && session.name.starts_with(PREFIX));
    let last = asked.max_by_key(Session::updated_at);
    let last = last.ok_or_else(|| {
        let hint = "`drawloom ask TEXT` asks one; `drawloom chat` goes on with a conversation";
        CommandError::not_found("question", "to go on with in this workspace", hint)
    })?;
    Ok(Name::new(&last.name)?)
}

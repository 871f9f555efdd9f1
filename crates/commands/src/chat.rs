//! Conversations: what is said in a session, by whom it is answered, and the answer.
//!
//! A [`Conversation`] is what a surface holds of a session: which one, and how a model is asked there. It says things
//! by sending operations to the session's task, and shows the task's events.

mod agent_choice;
mod ask;
mod attached;
mod conversation;
mod conversation_tools;
mod edit;
mod ended;
mod exchanges;
mod loom_tools;
mod model_choice;
mod navigation;
mod next_request;
mod permissions;
mod plan_mode;
pub(crate) mod position;
mod regenerate;
mod reload;
mod sampling;
mod say;
pub(crate) mod served_tools;
pub(crate) mod server_tools;
mod session_settings;
mod sessions;
mod shown_addresses;
mod steering;
mod subagents;
pub(crate) mod tools;
mod window_usage;
mod wrapping;

use crate::app::App;
use crate::args::chat::{ChatArgs, SessionArg};
use crate::error::CommandError;
use crate::results::{CommandOutcome, Done, Told};
use crate::rights::Asker;
use crate::slash::{self, Input, SlashCommand, SlashOutcome};

pub(crate) use ask::ask;
pub use conversation::Conversation;
pub(crate) use conversation::named_folders;
pub(crate) use exchanges::log;
pub(crate) use next_request::{prepare, unsaid};
pub use say::TurnStep;
pub(crate) use sessions::{session_trees, sessions};
pub use steering::{Steering, SteeringOutcome};
pub use subagents::{JoinedFrom, joined_line};

/// `tools list`: those of a session that is named, or of the one that `chat` continues, whether or not that has begun.
pub(crate) async fn list_tools(
    app: &App,
    asker: &Asker,
    session: SessionArg,
) -> Result<CommandOutcome, CommandError> {
    if session.session.is_some() {
        session_trees(app, asker, &session).await?;
    }
    let conversation = Conversation::open(app, asker, &ChatArgs { session, ..ChatArgs::default() }).await?;
    conversation.tools_shown(app).await.map(CommandOutcome::Tools)
}

/// `chat -m`. It returns once its own turn is done; what other processes said meanwhile is given back to them, and
/// they take the session themselves.
pub(crate) async fn chat(app: &App, asker: &Asker, args: ChatArgs) -> Result<CommandOutcome, CommandError> {
    let Some(message) = &args.message else {
        return Err(CommandError::usage(
            "there is no message",
            "give -m TEXT, or run `drawloom chat` at a terminal",
        ));
    };
    // What comes from standard input is text, whatever it looks like (spec: security §5).
    let piped = if message == "-" { Some(app.text(message)?) } else { None };
    let mut conversation = Conversation::open(app, asker, &args).await?;
    // Another argument has it, or what was asked for says nothing new to a model.
    let says = match slash::parse(message) {
        Input::Command(command) => matches!(command, SlashCommand::Queue { .. }),
        _ => true,
    };
    if !args.reads_input() && says {
        conversation.attach_piped(app)?;
    } else if !says && app.frontend.leaves_input() {
        let command = message.split_whitespace().next().unwrap_or(message);
        app.frontend.note(&format!(
            "standard input was not read: {} takes no text from it (`-m -` sends it as a message)",
            text::terminal::one_line(command)
        ));
    }
    let mut done = match piped {
        Some(text) => said(app, asker, &mut conversation, text).await,
        None => one_line(app, asker, &mut conversation, message).await,
    };
    if let (true, Ok(done)) = (args.wrap, &mut done) {
        wrap_behind(app, asker, &mut conversation, done).await;
    }
    if conversation.is_temporary() {
        conversation.close(app, asker).await?;
    }
    done
}

/// Hands a session over behind its answer, which is there whatever becomes of that.
async fn wrap_behind(app: &App, asker: &Asker, conversation: &mut Conversation, done: &mut CommandOutcome) {
    // Until then its turn holds the session.
    while conversation.next(app, asker).await.is_some() {}
    match conversation.wrap(app, asker).await {
        Ok(Told { result, sentence }) => {
            app.frontend.note(&sentence);
            if let CommandOutcome::Chatted(done) = done {
                done.wrapped = Some(Box::new(result));
            }
        }
        Err(error) => app.frontend.note(&error.message),
    }
}

/// Takes in the one input line of a call that ends with it.
async fn one_line(
    app: &App,
    asker: &Asker,
    conversation: &mut Conversation,
    line: &str,
) -> Result<CommandOutcome, CommandError> {
    if let Input::Command(SlashCommand::Reload) = slash::parse(line) {
        return Err(CommandError::usage(
            "/reload is for the next request of a conversation, and this call has none",
            "type it in `drawloom chat`; after `/compact` everything is read again too",
        ));
    }
    if let Input::Command(command) = slash::parse(line)
        && let Some(hint) = conversation.lasts_longer(app, asker, &command).await?
    {
        return Err(CommandError::usage(
            "this command is for a conversation, and this call ends with it",
            hint,
        ));
    }
    if let Input::Command(SlashCommand::Regenerate { number: 2.. }) = slash::parse(line) {
        // Each is shown under its short id.
        conversation.streams = false;
    }
    match conversation.take_at_once(app, asker, line).await? {
        SlashOutcome::Done(outcome) => Ok(*outcome),
        SlashOutcome::Turn => conversation.answer(app, asker).await.map(CommandOutcome::Chatted),
        // Nothing is under way that it could wait for.
        SlashOutcome::Queue(text) => said(app, asker, conversation, text).await,
        SlashOutcome::Quit => Ok(Done::outcome()),
        SlashOutcome::Run(command) => Err(command.not_here()),
    }
}

async fn said(
    app: &App,
    asker: &Asker,
    conversation: &mut Conversation,
    text: String,
) -> Result<CommandOutcome, CommandError> {
    conversation.say(app, asker, text).await?;
    conversation.answer(app, asker).await.map(CommandOutcome::Chatted)
}

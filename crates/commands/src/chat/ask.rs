//! `ask`: one question, in a session of its own.

use std::path::Path;

use agent::session::Name;
use loom::{TreeId, ViewName};
use store::{Session, SessionKind};
use text::terminal::one_line;

use super::Conversation;
use super::sessions::listed;
use crate::answer_schema::AnswerSchema;
use crate::app::App;
use crate::app::input::argument_name;
use crate::args::chat::{AskArgs, ChatArgs, is_standard_input};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::chat::Chatted;
use crate::rights::Asker;

/// What the name of such a session begins with.
const PREFIX: &str = "ask-";
/// Characters of the id of a tree that follow it: the random ones.
const ID_CHARS: usize = 10;

pub(crate) async fn ask(app: &App, asker: &Asker, args: AskArgs) -> Result<CommandOutcome, CommandError> {
    let AskArgs { text, message, continues, extract, schema, turn, request } = args;
    let typed = text.or(message);
    let message = Some(typed.clone().unwrap_or_default());
    let args = ChatArgs { message, turn, request, ..ChatArgs::default() };
    args.check()?;
    let schema_is_input = schema.as_deref().is_some_and(is_standard_input);
    if args.reads_input() && schema_is_input {
        return Err(CommandError::usage(
            "standard input is named more than once",
            "name a file for --schema",
        ));
    }
    let named_input = args.reads_input() || schema_is_input;
    let reads_input = named_input || typed.is_none();
    let text = match &typed {
        Some(text) => app.typed(&app.text(text)?)?,
        None => {
            let piped = if named_input { None } else { app.piped_text()? };
            let hint = "`drawloom ask TEXT`, or pipe it";
            piped.ok_or_else(|| CommandError::usage("no question is given", hint))?
        }
    };
    let name = if continues { last(app, asker).await? } else { fresh(app)? };
    let place = (name, ViewName::default(), SessionKind::Isolated);
    let mut conversation = Conversation::open_at(app, asker, place, &args).await?;
    // What is looked through first is shown once, when it is whole.
    conversation.streams = !extract && schema.is_none();
    if let Some(file) = &schema {
        conversation.fit_answers(app, file).await?;
    }
    if !reads_input {
        conversation.attach_piped(app)?;
    }
    conversation.say(app, asker, text).await?;
    let done = conversation.answer(app, asker).await?;
    let done = match conversation.schema.as_ref().and_then(|schema| schema.misfit(&done.text)) {
        Some(why) => Chatted { misfit: Some(why), ..done },
        None => done,
    };
    Ok(CommandOutcome::Chatted(if extract { done.extracted() } else { done }))
}

impl Conversation {
    /// Has its answers fit the schema of a file.
    ///
    /// # Errors
    /// When the file cannot be read or holds no schema, or the model keeps to none.
    async fn fit_answers(&mut self, app: &App, file: &Path) -> Result<(), CommandError> {
        let text = app.file_text(file)?;
        let schema = AnswerSchema::read(&text).map_err(|why| {
            let name = argument_name(file);
            let hint = "give a JSON schema, such as {\"type\": \"object\", \"properties\": {…}}";
            CommandError::usage(format!("{} is no schema of an answer: {why}", one_line(&name)), hint)
        })?;
        (self.schema, self.config) = (Some(schema), None);
        // Before weights are fetched.
        if let Some(model) = self.model_named(app).filter(|name| app.settings.embedded.contains(name)) {
            return Err(keeps_to_none(&model, "name another model with --model".to_owned()));
        }
        let info = self.model(app).await?;
        if info.structured {
            return Ok(());
        }
        let model = info.full_name();
        let hint = format!(
            "name another model with --model; if this one does, set models.\"{model}\".structured = true in \
             config.toml"
        );
        Err(keeps_to_none(&model, hint))
    }
}

fn keeps_to_none(model: &str, hint: String) -> CommandError {
    let message = format!("{} keeps to no schema: your question was not sent", one_line(model));
    CommandError::new("not_taken", 2, message, hint)
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

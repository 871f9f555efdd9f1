//! What slash commands do. None but `/edit`, `/retry` and `/regenerate` asks a model.

use agent::session::OpenedSession;
use futures_util::future::BoxFuture;
use loom::{Op, TreeId, ViewName};
use store::SessionId;

use super::status::status;
use super::{DiffArgument, Section, SlashCommand, SlashSpec, TABLE, export, input, note};
use crate::app::App;
use crate::args::approvals::{Approve, Deny};
use crate::args::think::Think;
use crate::args::tree::{Compact, PassageArg, TreeCommand, Verify};
use crate::args::{TreeArg, ViewArg};
use crate::chat::position::{Last, view_position};
use crate::chat::{Conversation, prepare};
use crate::custom_commands::{CustomCommand, CustomCommands};
use crate::error::CommandError;
use crate::file_changes::{DiffScope, Restoration};
use crate::results::chat::{Copied, Exchanges};
use crate::results::context::ContextShown;
use crate::results::policy::PolicyRules;
use crate::results::slash::{ContextForm, ContextStatus, Help, HelpLine, TipMoved};
use crate::results::{CommandOutcome, Done};
use crate::rights::{Asker, Right};
use crate::table::Command;
use crate::tree::SiblingChoice;
use crate::{approvals, contexts, file_changes, profile, skills, tree};
use ::skills::RefusedPlace;
use text::terminal::one_line;

/// What comes of an input line.
#[derive(Debug, Clone, PartialEq)]
pub enum SlashOutcome {
    Done(Box<CommandOutcome>),
    /// Something was said: its turn is shown by [`Conversation::next`].
    Turn,
    /// This is to be said once what is under way is done; now, if nothing is.
    Queue(String),
    /// The surface is to run this: it holds the files.
    Run(Box<Command>),
    /// The conversation is to end.
    Quit,
}

impl App {
    /// Runs a slash command for someone in a conversation. This is where its right is checked.
    ///
    /// # Errors
    /// [`CommandError`], `denied` before anything was done.
    pub fn slash<'a>(
        &'a self,
        asker: &'a Asker,
        conversation: &'a mut Conversation,
        command: SlashCommand,
    ) -> BoxFuture<'a, Result<SlashOutcome, CommandError>> {
        Box::pin(async move {
            let row = command.row();
            Self::require(asker, &format!("/{}", row.name), row.right)?;
            let outcome = match command {
                SlashCommand::Help { topic } => {
                    let custom = CustomCommands::read(self).await;
                    for RefusedPlace { path, why } in &custom.refused {
                        self.frontend
                            .note(&format!("{} is left out: {why}", one_line(&path.to_string_lossy())));
                    }
                    CommandOutcome::Help(help(topic.as_deref(), &custom.commands)?)
                }
                SlashCommand::Status => {
                    CommandOutcome::Status(Box::new(status(self, asker, conversation).await?))
                }
                SlashCommand::Context { form } => {
                    CommandOutcome::Standing(standing(self, asker, conversation, form).await?)
                }
                SlashCommand::Run(_, command) if command.is_of_the_surface() => {
                    return Ok(SlashOutcome::Run(command));
                }
                SlashCommand::Run(_, command) => Box::pin(self.run(asker, *command)).await?,
                SlashCommand::New { name } => {
                    CommandOutcome::Went(conversation.begin(self, asker, name.as_deref()).await?)
                }
                SlashCommand::Wrap => CommandOutcome::Wrapped(conversation.wrap(self, asker).await?),
                SlashCommand::UndoWrap => {
                    CommandOutcome::WrapUndone(conversation.undo_wrap(self, asker).await?)
                }
                SlashCommand::Switch { name } => {
                    CommandOutcome::Went(conversation.switch(self, asker, &name).await?)
                }
                SlashCommand::Rename { to } => {
                    CommandOutcome::Went(conversation.rename(self, asker, &to).await?)
                }
                SlashCommand::Fork { name } => {
                    CommandOutcome::Went(conversation.fork(self, asker, name.as_deref()).await?)
                }
                SlashCommand::Edit { node, text } => {
                    let text = self.typed(&text)?;
                    let staying = files_staying(self, asker, conversation).await?;
                    conversation.edit(self, asker, node.as_deref(), text).await?;
                    staying.into_iter().for_each(|staying| self.frontend.note(staying));
                    return Ok(SlashOutcome::Turn);
                }
                SlashCommand::Retry => {
                    let staying = files_staying(self, asker, conversation).await?;
                    conversation.retry(self, asker).await?;
                    staying.into_iter().for_each(|staying| self.frontend.note(staying));
                    return Ok(SlashOutcome::Turn);
                }
                SlashCommand::Regenerate { number } => {
                    conversation.regenerate(self, asker, number).await?;
                    return Ok(SlashOutcome::Turn);
                }
                SlashCommand::Siblings => {
                    let (_, view) = place(self, asker, conversation).await?;
                    let beside = passage(self, asker, conversation).await?;
                    let found = Box::pin(self.run(asker, Command::Tree(TreeCommand::Siblings(beside)))).await;
                    match found.map_err(no_sibling)? {
                        CommandOutcome::Listed(found) => {
                            CommandOutcome::Listed(tree::with_followed(self, asker, view, found).await?)
                        }
                        other => other,
                    }
                }
                SlashCommand::Reach { next, number } => {
                    let beside = passage(self, asker, conversation).await?;
                    let to = match number {
                        Some(number) => SiblingChoice::Number(number),
                        None if next => SiblingChoice::Next,
                        None => SiblingChoice::Previous,
                    };
                    let reached = tree::reach(self, asker, &beside, to).await;
                    CommandOutcome::Reached(reached.map_err(no_sibling)?)
                }
                SlashCommand::History { number } => {
                    let exchanges = conversation.exchanges(self, asker, number).await?;
                    CommandOutcome::Exchanges(Exchanges {
                        exchanges,
                        elsewhere: Vec::new(),
                        of_conversation: true,
                    })
                }
                SlashCommand::Copy { code } => {
                    CommandOutcome::Copied(copied(self, asker, conversation, code).await?)
                }
                SlashCommand::Diff { of } => {
                    let (tree, _) = place(self, asker, conversation).await?;
                    let scope = match of {
                        DiffArgument::Conversation => DiffScope::Conversation,
                        DiffArgument::Session => DiffScope::Session,
                        DiffArgument::Node(name) => {
                            DiffScope::Turn(self.node_anywhere(asker, Some(tree), &name).await?.node)
                        }
                    };
                    file_changes::diff(self, asker, tree, scope).await?
                }
                SlashCommand::Restore { file, node, yes } => {
                    let (tree, _) = place(self, asker, conversation).await?;
                    let before = match node {
                        Some(name) => Some(self.node_anywhere(asker, Some(tree), &name).await?.node),
                        None => None,
                    };
                    file_changes::restore(self, asker, tree, &Restoration { file, before, yes }).await?
                }
                SlashCommand::UndoFiles => {
                    let (tree, _) = place(self, asker, conversation).await?;
                    file_changes::give_back(self, asker, tree).await?
                }
                SlashCommand::RedoFiles => {
                    let (tree, _) = place(self, asker, conversation).await?;
                    file_changes::redo(self, asker, tree).await?
                }
                SlashCommand::Trust { nodes, off, yes } => {
                    let (tree, view) = place(self, asker, conversation).await?;
                    let choice = tree::TrustChoice { nodes, off, yes };
                    tree::trust_in(self, asker, (tree, &view), choice).await?
                }
                SlashCommand::Note { note } => note::note(self, asker, conversation, note).await?,
                SlashCommand::Undo => {
                    let staying = files_staying(self, asker, conversation).await?;
                    let stepped = step(self, asker, conversation, Op::Undo).await?;
                    staying.into_iter().for_each(|staying| self.frontend.note(staying));
                    stepped
                }
                SlashCommand::Redo => step(self, asker, conversation, Op::Redo).await?,
                SlashCommand::Compact { to } => {
                    let PassageArg { tree, .. } = passage(self, asker, conversation).await?;
                    let compact = Compact { tree, to, dry_run: false };
                    let done = Box::pin(self.run(asker, Command::Tree(TreeCommand::Compact(compact)))).await;
                    done.map_err(|error| match error.code.as_ref() {
                        tree::NOTHING_TO_COMPACT => CommandError {
                            hint: "name the node it should start at: /compact @NODE, or write more first"
                                .into(),
                            ..error
                        },
                        _ => error,
                    })?
                }
                SlashCommand::Reload => CommandOutcome::Reloaded(conversation.reload(self, asker).await?),
                SlashCommand::File { path } => {
                    if path.is_some() {
                        conversation.require_settings()?;
                    }
                    conversation.attach(self, path.as_deref()).await?;
                    conversation.keep_settings(self, asker).await?;
                    Done::outcome()
                }
                SlashCommand::Zone => CommandOutcome::Zone(conversation.window_usage(self, asker).await?),
                SlashCommand::Think { think } => {
                    if think.is_some() {
                        conversation.require_settings()?;
                    }
                    let shown = conversation.ask_to_think(self, think.map(Think::wish))?;
                    conversation.keep_settings(self, asker).await?;
                    CommandOutcome::Think(shown)
                }
                SlashCommand::Plan { plan } => {
                    CommandOutcome::Plan(conversation.set_plan(self, asker, plan).await?)
                }
                SlashCommand::System { text } => CommandOutcome::System(match text {
                    Some(text) => conversation.speak_as(self, asker, &text).await?,
                    None => conversation.system_shown(),
                }),
                SlashCommand::Set { settings } => CommandOutcome::Sampling(if settings.is_empty() {
                    conversation.sampling_shown(self)
                } else {
                    conversation.set(self, asker, settings).await?
                }),
                SlashCommand::Model { name } => {
                    let shown = conversation.ask_model(self, name.as_deref()).await?;
                    conversation.keep_settings(self, asker).await?;
                    CommandOutcome::Model(shown)
                }
                SlashCommand::Tools => CommandOutcome::Tools(conversation.tools_shown(self).await?),
                SlashCommand::RunSkill { name, text } => {
                    Self::require(asker, "/skills run", Right::Act)?;
                    let text = self.typed(&text)?;
                    let skill = skills::named(self, asker, &name).await?;
                    conversation.say_with(self, asker, text, vec![skill]).await?;
                    return Ok(SlashOutcome::Turn);
                }
                SlashCommand::Subagents => {
                    CommandOutcome::Subagents(conversation.subagents_shown(self, asker).await?)
                }
                SlashCommand::Policy { reset } => {
                    if reset {
                        conversation.take_back_permissions(self, asker).await?;
                    }
                    let allowed = conversation.allowed().to_vec();
                    let agent = conversation.agent();
                    let of_agent = PolicyRules::of(&profile::policy(&self.settings, agent)?);
                    let rules = of_agent.with_written(self.runtime.rules.written());
                    CommandOutcome::PolicyRules(PolicyRules { allowed, ..rules })
                }
                SlashCommand::Verify => {
                    let (tree, _) = place(self, asker, conversation).await?;
                    let args = Verify { tree: Some(tree.to_string()), file: None, node: None };
                    Box::pin(self.run(asker, Command::Tree(TreeCommand::Verify(args)))).await?
                }
                SlashCommand::Export { format, file } => {
                    export::export(self, asker, conversation, format, file).await?
                }
                command @ (SlashCommand::Approve { .. } | SlashCommand::Deny { .. }) => {
                    let session =
                        conversation.entered_before(self, asker).await?.map(|entered| entered.session);
                    self.answer(asker, session.as_ref(), command).await?
                }
                SlashCommand::Queue { text } => return Ok(SlashOutcome::Queue(self.masked(&text))),
                SlashCommand::Stop => {
                    let session =
                        conversation.entered_before(self, asker).await?.map(|entered| entered.session);
                    let stops = match session {
                        Some(session) => {
                            agent::steering::stop(&self.runtime, &asker.principal, &session).await?
                        }
                        None => false,
                    };
                    let told =
                        if stops { "the turn of another process is stopped" } else { "nothing is under way" };
                    self.frontend.note(told);
                    Done::outcome()
                }
                SlashCommand::Quit => return Ok(SlashOutcome::Quit),
            };
            Ok(SlashOutcome::Done(Box::new(outcome)))
        })
    }
}

impl App {
    /// Runs `/approve` or `/deny`: the command of that name, for the question that is meant.
    pub(crate) async fn answer(
        &self,
        asker: &Asker,
        session: Option<&SessionId>,
        command: SlashCommand,
    ) -> Result<CommandOutcome, CommandError> {
        let command = match command {
            SlashCommand::Approve { id, holds } => {
                let id = match id {
                    Some(id) => id,
                    None => approvals::only_one(self, asker, session).await?,
                };
                Command::Approve(Approve { id, answer: None, holds, fields: Vec::new() })
            }
            SlashCommand::Deny { id_and_reason: said } => {
                let (first, rest) = said.split_once(char::is_whitespace).unwrap_or((&said, ""));
                let (id, reason) = if approvals::is_named(&self.runtime.store, &asker.principal, first)
                    .await?
                {
                    (first.to_owned(), rest.trim_start())
                } else if approvals::looks_like_id(first) {
                    let hint =
                        "`drawloom approvals list` shows the open ones; a reason begins with another word";
                    return Err(CommandError::not_found("question", first, hint));
                } else {
                    (approvals::only_one(self, asker, session).await?, &*said)
                };
                let reason = (!reason.is_empty()).then(|| reason.to_owned());
                Command::Deny(Deny { id, reason })
            }
            other => {
                return Err(CommandError::usage(format!("/{} answers no question", other.row().name), ""));
            }
        };
        Box::pin(self.run(asker, command)).await
    }
}

fn help(topic: Option<&str>, custom: &[CustomCommand]) -> Result<Help, CommandError> {
    let section = topic.and_then(|topic| Section::ALL.into_iter().find(|section| section.word() == topic));
    let is_meant = |line: &HelpLine| match (section, topic) {
        (Some(section), _) => line.section == section,
        (None, Some(topic)) => line.name == topic,
        (None, None) => true,
    };
    let of_table = |row: &SlashSpec| HelpLine {
        name: row.name.to_owned(),
        arguments: row.arguments.to_owned(),
        section: row.section,
        right: row.right,
        help: row.help.to_owned(),
    };
    let of_owner = |command: &CustomCommand| HelpLine {
        name: command.name.clone(),
        arguments: command.arguments.clone(),
        section: Section::Own,
        right: Right::Act,
        help: command.description.clone(),
    };
    let all = TABLE.iter().map(of_table).chain(custom.iter().map(of_owner));
    let commands: Vec<_> = all.filter(is_meant).collect();
    match topic {
        Some(topic) if commands.is_empty() && section.is_none() => {
            let custom = custom.iter().map(|command| &*command.name);
            let hint = match input::nearest_topic(custom, topic) {
                Some(near) => format!("did you mean /help {near}?"),
                None => "/help shows the commands".to_owned(),
            };
            let topic = one_line(topic);
            let message = format!("there is no command and no section {topic}");
            Err(CommandError::new("unknown_command", 2, message, hint))
        }
        _ => Ok(Help { commands, is_all: topic.is_none() }),
    }
}

/// Tree and view of a conversation in which something was said.
pub(super) async fn place(
    app: &App,
    asker: &Asker,
    conversation: &Conversation,
) -> Result<(TreeId, ViewName), CommandError> {
    let entered = begun(app, asker, conversation).await?;
    Ok((entered.tree, entered.view))
}

/// The tree of a conversation in which something was said, for a command of the table.
async fn passage(app: &App, asker: &Asker, conversation: &Conversation) -> Result<PassageArg, CommandError> {
    let (tree, view) = place(app, asker, conversation).await?;
    let tree = TreeArg { tree: tree.to_string(), view: ViewArg { view: Some(view.to_string()) } };
    Ok(PassageArg { tree, node: None })
}

/// That there is no sibling to go to, with what a conversation has for it.
fn no_sibling(error: CommandError) -> CommandError {
    let (message, hint) = match error.code.as_ref() {
        tree::NO_CHOICE => (
            "nothing stands beside what was said here".to_owned(),
            "/regenerate asks for one more answer, which /siblings then lists",
        ),
        "no_sibling" => (error.message.clone(), "/siblings lists them, /regenerate asks for one more answer"),
        _ => return error,
    };
    CommandError { message, hint: hint.to_owned(), ..error }
}

/// The last answer, or its first code block.
async fn copied(
    app: &App,
    asker: &Asker,
    conversation: &Conversation,
    code: bool,
) -> Result<Copied, CommandError> {
    let last = conversation.exchanges(app, asker, 1).await?.pop();
    let answer = last.and_then(|last| last.answer);
    let answer = answer.ok_or_else(|| CommandError::not_found("answer", "to copy", "say something first"))?;
    let text = if code { text::code::first_block(&answer) } else { Some(answer) };
    let hint = "/copy takes the whole answer";
    let text = text.ok_or_else(|| CommandError::not_found("code block", "in the last answer", hint))?;
    Ok(Copied { text })
}

/// A conversation in which something was said.
async fn begun(app: &App, asker: &Asker, conversation: &Conversation) -> Result<OpenedSession, CommandError> {
    conversation.entered(app, asker).await?.ok_or_else(|| {
        CommandError::not_found("text", "in this session", "say something first, or /switch to another one")
    })
}

/// What is said of files that the newest turn changed.
async fn files_staying(
    app: &App,
    asker: &Asker,
    conversation: &Conversation,
) -> Result<Option<&'static str>, CommandError> {
    // Whatever needs a place says so itself.
    let Ok((tree, view)) = place(app, asker, conversation).await else { return Ok(None) };
    file_changes::staying(app, asker, tree, view).await
}

/// A step in the timeline of the session's view.
async fn step(
    app: &App,
    asker: &Asker,
    conversation: &Conversation,
    op: Op,
) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = place(app, asker, conversation).await?;
    let stepped = tree::step(app, asker, (tree, &view), op).await?;
    let (node, short_id) = app
        .read(asker, tree, move |rows| {
            let position = view_position(rows, &view)?;
            Ok((rows.node(position.node)?, position.short_id))
        })
        .await?;
    let text = node.map(|row| row.node.said().into_owned()).unwrap_or_default();
    Ok(CommandOutcome::Stood(TipMoved { stepped, tip: short_id, text }))
}

async fn standing(
    app: &App,
    asker: &Asker,
    conversation: &mut Conversation,
    form: ContextForm,
) -> Result<ContextStatus, CommandError> {
    let Some(entered) = conversation.entered(app, asker).await? else {
        return Ok(ContextStatus { last: None, next: None, form });
    };
    let view = entered.view.clone();
    let position = app.read(asker, entered.tree, move |rows| view_position(rows, &view)).await?;
    let next = match prepare(app, asker, conversation.request(app, &entered).await?).await {
        Ok(next) => Some(Box::new(contexts::shown(app, asker, &next.manifest, None).await?)),
        // All that was said is left out of the next one.
        Err(error) if error.code == "empty_document" => None,
        Err(error) => return Err(error),
    };
    let last = match &position.last {
        Some(last) => Some(Box::new(sent(app, asker, last).await?)),
        None => None,
    };
    Ok(ContextStatus { last, next, form })
}

async fn sent(app: &App, asker: &Asker, last: &Last) -> Result<ContextShown, CommandError> {
    let mut shown = contexts::shown(app, asker, &last.manifest, None).await?;
    shown.manifest = Some(last.digest);
    shown.used = last.used();
    shown.estimated = last.usage.is_none();
    shown.cache_read = last.usage.map(|usage| usage.cache_read);
    shown.zone = Some(last.zone().to_string());
    Ok(shown)
}

//! From arguments to an exit code.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser as _;
use commands::args::chat::{AskArgs, ChatArgs};
use commands::args::context::ContextCommand;
use commands::args::handoff::HandoffCommand;
use commands::args::maintenance::Restore;
use commands::args::mcp::McpCommand;
use commands::args::model::ModelCommand;
use commands::args::skills::SkillsCommand;
use commands::args::tree::{StepArgs, TreeCommand};
use commands::maintenance::RestoreTo;
use commands::{Asker, Command, CommandError, CommandOutcome, Right};
use model::{Cancel, Clock};
use store::home::HomeOptions;

use crate::cli::{Action, Cli, Global};
use crate::config::{self, Layers};
use crate::file_limit;
use crate::interrupt::{self, CommandEnd};
use crate::open::{self, Invocation, WorkspaceNeed};
use crate::output::{self, Output};
use crate::paths::InvocationPaths;
use crate::terminal::Terminal;
use crate::{doctor, log, repl, usage};

/// The exit code of a command that was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Runs the program.
///
/// # Errors
/// Whatever the command ends with; it was not printed yet.
pub(crate) fn run(arguments: &[OsString], output: &mut Output) -> Result<u8, CommandError> {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        // Whoever types the name alone wants to know what it is.
        Err(_) if arguments.len() <= 1 => {
            return output::bytes(usage::help().as_bytes()).map(|()| 0);
        }
        Err(found) => match usage::error(&found, arguments) {
            Some(error) => return Err(error),
            None => return output::bytes(found.render().to_string().as_bytes()).map(|()| 0),
        },
    };
    *output = Output::new(&cli.global);
    let command = match cli.action {
        Action::Completions { shell } => {
            return output::bytes(&crate::completing::script(shell)?).map(|()| 0);
        }
        Action::Demo { keep } => {
            // Without a home of its own there is nothing that it could be written into.
            let own = InvocationPaths::of(cli.global.home, cli.global.workspace).ok().map(|paths| paths.home);
            return crate::demo::play(keep.as_deref(), own.as_deref()).map(|()| 0);
        }
        Action::Command(command) => match *command {
            Command::Skills(SkillsCommand::Run(args)) => Command::Chat(args.into()),
            command => command,
        },
    };
    // What is a line of a program is none for a person.
    *output = output.with_events(command.turn().is_some_and(|turn| turn.events));
    if let Command::Chat(chat) = &command {
        chat.check()?;
    }
    if matches!(command, Command::Mcp(McpCommand::Serve(_))) && std::mem::take(&mut output.json) {
        return Err(CommandError::usage(
            "`mcp serve` speaks MCP on standard output: --json has no place there",
            "leave it out",
        ));
    }
    let command = with_authors(command, output);
    let Global { home, workspace, model, model_file, verbose, .. } = cli.global;
    let model = match (model, model_file) {
        (None, Some(file)) => Some(named_file(&file)?),
        (Some(path), None) if is_weights(&path) => {
            let path = text::terminal::one_line(&path).into_owned();
            let hint = format!("`--model-file {path}` loads weights from a file");
            return Err(CommandError::usage(format!("{path} is a file, not the name of a model"), hint));
        }
        (model, _) => model,
    };
    let mut paths = InvocationPaths::of(home, workspace)?;
    let flags = [("model.default", model.as_deref()), ("log.level", verbose.then_some("debug"))];
    let layers = Layers::read(&paths.home, std::env::vars_os(), &flags);
    if matches!(
        command,
        Command::Config(_)
            | Command::Doctor(_)
            | Command::Init(_)
            | Command::Model(_)
            | Command::Policy(_)
            | Command::Sandbox(_)
            | Command::Skills(SkillsCommand::Enable(_) | SkillsCommand::Disable(_))
    ) {
        paths = open::reading::with_choice(paths, &layers);
    }
    if matches!(command, Command::Policy(_) | Command::Sandbox(_)) {
        paths = paths.or_here();
    }
    let (command, layers) = match command {
        Command::Mcp(McpCommand::Add(added)) => {
            config::home("mcp", &paths, &layers)?;
            let command = crate::mcp_commands::add(&added, &paths, &|line| output.note(line))?;
            (Command::Mcp(command), Layers::read(&paths.home, std::env::vars_os(), &flags))
        }
        command => (command, layers),
    };
    let command = match command {
        Command::Skills(SkillsCommand::Enable(named)) => {
            Command::Config(crate::skill_commands::switch(&named.name, false, &paths, &layers.lenient()?)?)
        }
        Command::Skills(SkillsCommand::Disable(named)) => {
            let switched = crate::skill_commands::switch(&named.name, true, &paths, &layers.lenient()?)?;
            output.note("conversations that are open keep it: it is off in those that are opened later");
            Command::Config(switched)
        }
        command => command,
    };
    egress::record_to([store::home::EGRESS, store::home::OLDER_EGRESS].map(|name| paths.home.join(name)));
    let outcome = match command {
        Command::Config(command) => config::run(command, &paths, &layers, &|line| output.note(line))?,
        Command::Policy(command) if command.changes_rules() => {
            let changed = config::rules::run(command, &paths, &layers, &|line| output.note(line))?;
            CommandOutcome::PolicyRules(changed)
        }
        Command::Mcp(McpCommand::Remove(named)) => crate::mcp_commands::remove(&named.name, &paths)?,
        Command::Bench(arguments) => {
            CommandOutcome::Rows(crate::bench::run(&arguments, &mut |line| output.note(line))?)
        }
        Command::Init(arguments) => {
            crate::init::run(&paths, &layers, Terminal::new(output.quiet, verbose), arguments.caches)?
        }
        Command::Model(ModelCommand::List { .. } | ModelCommand::Pull { .. } | ModelCommand::Use { .. }) => {
            let config = layers.config_for(&command, &|line| output.note(line))?;
            let Command::Model(command) = command else { return Err(command.not_here()) };
            let person = Terminal::new(output.quiet, verbose);
            crate::model_commands::run(&command, &paths, (&layers, config), person)?
        }
        Command::Sandbox(_) => {
            let config = layers.config_for(&command, &|line| output.note(line))?;
            let Command::Sandbox(arguments) = command else { return Err(command.not_here()) };
            let web = open::web_of(&config)?;
            crate::sandboxed::run(
                &arguments,
                &paths,
                (&config.exec.of_commands(&config.limits), &web),
                output.json,
            )?
        }
        Command::Doctor(arguments) => doctor::examine(arguments.quick, &paths, &layers)?,
        Command::Restore(arguments) => restore(&arguments, &paths, &layers, output.quiet)?,
        command => {
            let layers = with_closed_keys(&paths, layers, &flags, &Terminal::new(output.quiet, verbose));
            let (layers, was_set_up) = match model {
                None => first_run(&paths, layers, output, verbose)?,
                Some(_) => (layers, false),
            };
            let config = layers.config_for(&command, &|line| output.note(line))?;
            log::start(config.log.level);
            if !command.only_reads() {
                config::last_good::keep(&paths.home);
            }
            let mut person =
                Terminal::new(output.quiet, verbose).dimming(output.color()).telling_progress(!output.json);
            if was_set_up {
                person = person.without_offers();
            }
            let shows = matches!(
                command,
                Command::Chat(_) | Command::Ask(AskArgs { extract: false, schema: None, .. })
            );
            if shows && !output.json && io::stdout().is_terminal() {
                person = person.showing_answers();
            }
            let asks = matches!(
                command,
                Command::Tree(TreeCommand::Generate(_) | TreeCommand::Regenerate(_))
                    | Command::Context(ContextCommand::Replay(_))
            );
            if asks && !output.json && io::stdout().is_terminal() {
                person = person.showing_first();
            }
            let ends = matches!(&command, Command::Chat(ChatArgs { message: Some(_), .. }) | Command::Ask(_));
            if ends {
                person = person.unattended();
            }
            if let Some(turn) = command.turn() {
                let within = turn.wait.map(|seconds| Duration::from_secs(seconds.into()));
                person = person.waiting_for_answer(within).printing_events(turn.events);
            }
            let person = Arc::new(person);
            if let Command::Chat(chat) = &command
                && chat.message.is_none()
            {
                repl::require_terminal(output.json)?;
                let (runtime, never) = (interrupt::runtime()?, Cancel::never());
                let (need, named) = (WorkspaceNeed::LoadOrOffer, model.as_deref());
                let runtime = &runtime;
                let (begins, only_reads, recovers) = (true, false, true);
                let paths = &paths;
                let invocation =
                    Invocation { name: "chat", paths, need, runtime, named, begins, only_reads, recovers };
                let opened = open::open(&invocation, config, Arc::clone(&person), never)?;
                let ended = repl::hold(&opened, person, *output, &layers, chat);
                let ended = ended.map_err(|error| opened.name_others(error));
                opened.close();
                return ended;
            }
            // What processes that died received is masked before it is kept, for which every secret must be known.
            let recovers = !layers.are_blocked();
            return with_store(command, (&paths, config, recovers), model.as_deref(), &person, output);
        }
    };
    output.last(&outcome)?;
    Ok(outcome.exit())
}

/// Restores a backup. The home is not opened first: that would make the store which must not be there.
fn restore(
    arguments: &Restore,
    paths: &InvocationPaths,
    layers: &Layers,
    quiet: bool,
) -> Result<CommandOutcome, CommandError> {
    let config = layers.config()?.store;
    if config.url.is_some() {
        return Err(store::StoreError::from(store::ServerError::Unsupported("restore a backup")).into());
    }
    let options = HomeOptions { allow_network_fs: config.allow_network_fs };
    let guard = paths.guard()?;
    let into = RestoreTo { home: paths.home.clone(), options, guard, now: Clock::system().now() };
    let person = Terminal::new(quiet, false);
    // Not to be dropped half-way: what Ctrl-C ends is the process, and then no store is there yet.
    interrupt::runtime()?.block_on(commands::maintenance::restore(arguments, into, &person))
}

/// A new home, met at a terminal: whoever is there may have it set up first (spec: cli *First run*). Whether it was.
fn first_run(
    paths: &InvocationPaths,
    layers: Layers,
    output: &Output,
    verbose: bool,
) -> Result<(Layers, bool), CommandError> {
    if paths.home.exists() || output.json || !io::stdout().is_terminal() {
        return Ok((layers, false));
    }
    let person = Terminal::new(output.quiet, verbose);
    let lines = [format!("This is the first time. Everything will be kept in {}.", paths.home.display())];
    if person.answer(&lines, "Look for models and set up the home first?") != Some(true) {
        return Ok((layers, false));
    }
    output.outcome(&crate::init::run(paths, &layers, person, false)?)?;
    let flags = [("log.level", verbose.then_some("debug"))];
    Ok((Layers::read(&paths.home, std::env::vars_os(), &flags), true))
}

/// The settings once a `keys.toml` that others may read is closed to them; as they were, where it cannot be.
fn with_closed_keys(
    paths: &InvocationPaths,
    layers: Layers,
    flags: &[(&str, Option<&str>)],
    person: &Terminal,
) -> Layers {
    let opened = |config| open::home(paths, &config, person).ok();
    let home = layers.has_loose().then(|| layers.lenient().ok().and_then(opened)).flatten();
    match home {
        Some(home) if !home.repaired().is_empty() => Layers::read(&paths.home, std::env::vars_os(), flags),
        _ => layers,
    }
}

/// Whether what is given as the name of a model is the path of its weights.
fn is_weights(named: &str) -> bool {
    let is_path = named.starts_with(['.', '/', '~']);
    let is_there = || Path::new(named).is_file();
    match named.ends_with(".gguf") && !named.contains(':') {
        true => is_path || !named.contains('/') || is_there(),
        false => is_path && is_there(),
    }
}

/// The name of a model that is a file.
fn named_file(file: &Path) -> Result<String, CommandError> {
    let file = std::path::absolute(file).map_err(|error| CommandError::file("cannot find", file, &error))?;
    match file.to_str() {
        Some(path) => Ok(format!("{}{path}", crate::embedded::FILE)),
        None => {
            Err(CommandError::usage("the path of --model-file is not UTF-8", "give the file another name"))
        }
    }
}

/// Opens the home, runs a command in it as its owner, prints what came of it, and closes the home. Returns the exit
/// code.
fn with_store(
    command: Command,
    (paths, config, recovers): (&InvocationPaths, config::Config, bool),
    model: Option<&str>,
    person: &Arc<Terminal>,
    output: &Output,
) -> Result<u8, CommandError> {
    let spec = command.spec();
    let runtime = interrupt::runtime()?;
    let (stop, cancel) = Cancel::new();
    let need = match command {
        Command::Chat(_) => WorkspaceNeed::Load,
        // A question stands for itself: nothing of the workspace is loaded for it.
        Command::Ask(_)
        | Command::Log(_)
        | Command::Files(_)
        | Command::Handoff(HandoffCommand::History)
        | Command::Mcp(_)
        | Command::Policy(_)
        | Command::Sessions(_)
        | Command::Cards(_)
        | Command::Skills(_)
        | Command::Tools(_)
        | Command::Tree(
            TreeCommand::Undo(StepArgs { files: true, .. }) | TreeCommand::Redo(StepArgs { files: true, .. }),
        )
        | Command::Workspace(_) => WorkspaceNeed::Place,
        // The session that is meant is one of this workspace, and its request holds what that brings.
        Command::Context(ContextCommand::Show(ref show)) if show.next.as_deref() == Some("") => {
            WorkspaceNeed::Load
        }
        _ => WorkspaceNeed::None,
    };
    let begins = matches!(command, Command::Chat(_) | Command::Ask(_) | Command::Tree(TreeCommand::New(_)));
    let invocation = Invocation {
        name: spec.name,
        paths,
        need,
        runtime: &runtime,
        named: model,
        begins,
        only_reads: command.only_reads(),
        recovers,
    };
    let opened = open::open(&invocation, config, Arc::clone(person), cancel);
    let opened = opened.map_err(|error| open::not_to_itself(spec.name, error))?;
    runtime.block_on(opened.recover());
    let is_chat = matches!(command, Command::Chat(_));
    // While a turn runs here, other processes say theirs through it.
    let listening = is_chat.then(|| runtime.block_on(opened.listen())).flatten();
    let app = Arc::clone(&opened.app);
    let stop = (spec.right == Right::Act).then_some((&stop, &person.input_wait));
    let sessions = app.sessions.clone();
    let work = async move { app.run(&Asker::owner(), command).await };
    let ended = interrupt::run(&runtime, work, stop);
    // What was shown while it came is a line of its own.
    person.end_line();
    if !is_chat {
        interrupt::end_at_once();
    }
    // What was kept, or why it was not, is said also of what was interrupted; that it was, by the exit code.
    let (ended, interrupted) = match ended {
        Ok(CommandEnd::Done(outcome)) => (Some(Ok(outcome)), None),
        Ok(CommandEnd::Interrupted(partial, code)) => (partial, Some(code)),
        Err(error) => (Some(Err(error)), None),
    };
    let mut paged = None;
    let code = match ended {
        Some(Ok(outcome)) if !is_chat && output.may_page(&outcome) => Ok(paged.insert(outcome).exit()),
        Some(Ok(outcome)) => output.outcome(&outcome).map(|()| outcome.exit()),
        Some(Err(error)) => {
            let error = open::not_to_itself(spec.name, file_limit::explain(opened.name_others(error)));
            output.failure(&error);
            Ok(error.exit)
        }
        None => {
            // A program that reads JSON reads a value in any case.
            if output.json {
                output.failure(&interrupt::error());
            }
            Ok(INTERRUPTED)
        }
    };
    let code = code.map(|code| interrupted.unwrap_or(code));
    // Who said something to a turn that ran here hears what became of it before this process ends, or until Ctrl-C.
    let closed = async move {
        sessions.close_all().await;
        if let Some(listener) = listening {
            listener.finish().await;
        }
        Ok(())
    };
    let closed = interrupt::run(&runtime, closed, None);
    opened.close();
    // A thread that waits for input cannot be ended, and nothing waits for it.
    runtime.shutdown_background();
    if let Some(outcome) = paged {
        output.last(&outcome)?;
    }
    match closed? {
        CommandEnd::Done(()) => code,
        CommandEnd::Interrupted(_, code) => Ok(interrupted.unwrap_or(code)),
    }
}

/// A command that says who wrote what, in colours or as JSON, has to find that out.
fn with_authors(mut command: Command, output: &Output) -> Command {
    if let Command::Tree(TreeCommand::Text(text)) = &mut command
        && (output.color() || output.json)
    {
        text.authors = true;
    }
    command
}

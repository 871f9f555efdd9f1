//! From arguments to an exit code.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use clap::{CommandFactory as _, Parser as _};
use commands::args::care::Restore;
use commands::care::RestoreTo;
use commands::{Asker, Command, CommandError, Outcome, Right};
use model::{Cancel, Clock};
use store::home::HomeOptions;

use crate::cli::{Action, Cli, Global};
use crate::config::{self, Layers};
use crate::interrupt::{self, Ended};
use crate::open;
use crate::output::{self, Output};
use crate::places::Places;
use crate::talk::Person;
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
        Err(found) => match usage::error(&found) {
            Some(error) => return Err(error),
            None => return output::bytes(found.render().to_string().as_bytes()).map(|()| 0),
        },
    };
    *output = Output::new(&cli.global);
    if cli.global.model_file.is_some() {
        return Err(CommandError::usage(
            "--model-file needs the embedded engine, which comes with a later version",
            "serve the file with llama.cpp and give --model http://127.0.0.1:8080/NAME",
        ));
    }
    let command = match cli.action {
        Action::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "drawloom", &mut script);
            return output::bytes(&script).map(|()| 0);
        }
        Action::Demo { keep } => return crate::demo::play(keep.as_deref()).map(|()| 0),
        Action::Command(command) => *command,
    };
    let Global { home, workspace, model, verbose, .. } = cli.global;
    let places = Places::of(home, workspace)?;
    let flags = [("model.default", model.as_deref()), ("log.level", verbose.then_some("debug"))];
    let layers = Layers::read(&places.home, std::env::vars_os(), &flags);
    let outcome = match command {
        Command::Config(command) => config::run(command, &places, &layers, &|line| output.note(line))?,
        Command::Bench(arguments) => {
            Outcome::Rows(crate::bench::run(&arguments, &mut |line| output.note(line))?)
        }
        Command::Doctor(arguments) => doctor::examine(arguments.quick, &places, &layers)?,
        Command::Restore(arguments) => restore(&arguments, &places, &layers, output.quiet)?,
        command => {
            let config = layers.config()?;
            log::start(&config.log.level);
            let mut person = Person::new(output.quiet, verbose);
            if matches!(command, Command::Chat(_)) && !output.json && io::stdout().is_terminal() {
                person = person.showing_answers();
            }
            let person = Arc::new(person);
            if let Command::Chat(chat) = &command
                && chat.message.is_none()
            {
                repl::require_terminal(output.json)?;
                let never = Cancel::never();
                let opened =
                    open::open("chat", &places, config, model.as_deref(), Arc::clone(&person), never, true)?;
                let ended = repl::hold(&opened, person, *output, (&places, &layers), chat);
                let ended = ended.map_err(|error| opened.name_others(error));
                opened.close();
                return ended;
            }
            match with_store(command, &places, config, model.as_deref(), person)? {
                Ended::Done(outcome) => outcome,
                Ended::Interrupted(partial) => {
                    // What was kept is said; that it was interrupted, by the exit code.
                    partial.map_or(Ok(()), |partial| output.outcome(&partial))?;
                    return Ok(INTERRUPTED);
                }
            }
        }
    };
    output.outcome(&outcome)?;
    Ok(outcome.exit())
}

/// Restores a backup. The home is not opened first: that would make the store which must not be there.
fn restore(
    arguments: &Restore,
    places: &Places,
    layers: &Layers,
    quiet: bool,
) -> Result<Outcome, CommandError> {
    let options = HomeOptions { allow_network_fs: layers.config()?.store.allow_network_fs };
    let into = RestoreTo { home: places.home.clone(), options, now: Clock::system().now() };
    let person = Person::new(quiet, false);
    // Not to be dropped half-way: what Ctrl-C ends is the process, and then no store is there yet.
    interrupt::runtime()?.block_on(commands::care::restore(arguments, into, &person))
}

/// Opens the home, runs a command in it as its owner, and closes it.
fn with_store(
    command: Command,
    places: &Places,
    config: config::Config,
    model: Option<&str>,
    person: Arc<Person>,
) -> Result<Ended<Outcome>, CommandError> {
    let spec = command.spec();
    let runtime = interrupt::runtime()?;
    let (stop, cancel) = Cancel::new();
    let in_workspace = matches!(command, Command::Chat(_) | Command::Sessions(_));
    let opened = open::open(spec.name, places, config, model, person, cancel, in_workspace)?;
    runtime.block_on(opened.recover());
    // While a turn runs here, other processes say theirs through it.
    let listening = matches!(command, Command::Chat(_)).then(|| runtime.block_on(opened.listen()));
    let app = Arc::clone(&opened.app);
    let stop = (spec.right == Right::Act).then_some(&stop);
    let work = async move { app.run(&Asker::owner(), command).await };
    let ended = interrupt::run(&runtime, work, stop).map_err(|error| opened.name_others(error));
    drop(listening);
    opened.close();
    // A thread that waits for input cannot be ended, and nothing waits for it.
    runtime.shutdown_background();
    ended
}

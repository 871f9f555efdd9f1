//! Lines that a configuration names, run at the top of the workspace in the walls of `exec`, with a text that they read.

use std::time::Duration;
use std::{fs, io};

use model::Cancel;
use sandbox::{CommandLine, Level, Outcome, Run, SandboxError, Session, SessionFolder, Walls};

use crate::exec::{self, ChangedFiles, CommandNetwork, CommandScope, NetworkRequest, recording_beside};
use crate::tool::CallScope;

/// Why no command runs where there is no place for any.
pub(crate) const NO_COMMANDS: &str = "commands cannot run on this machine";

/// A line with how it runs.
pub(crate) struct Program<'p> {
    /// Line for /bin/sh.
    pub(crate) line: &'p str,
    pub(crate) network: &'p NetworkRequest,
    /// How long it may run, and leave unread what it is given, in seconds.
    pub(crate) seconds: u32,
    /// Whether it sees its folders read-only.
    pub(crate) only_looks: bool,
    /// Whether what it is given holds something from outside that the request of its call did not.
    pub(crate) is_told_outside: bool,
    /// Whether it has a `HOME` and a `/tmp` of its own, empty ones: what commands leave in theirs does not steer it.
    pub(crate) has_own_folders: bool,
}

/// What came of a line.
pub(crate) struct RanProgram {
    pub(crate) outcome: Outcome,
    pub(crate) network: CommandNetwork,
    /// What it changed; none of one that could change nothing.
    pub(crate) changed: Option<ChangedFiles>,
}

impl Program<'_> {
    /// Runs it for a call until it ends, and writes down what it changed. It blocks.
    ///
    /// # Errors
    /// It did not run, or what became of it is not known.
    pub(crate) fn run(
        &self,
        (call, commands): (&CallScope<'_>, &CommandScope),
        input: &str,
    ) -> Result<RanProgram, String> {
        let scope = call.scope;
        exec::require_same_roots(&scope.roots)?;
        let place = scope.roots.place(".").map_err(|error| error.to_string())?;
        let mut walls = commands.walls.clone();
        exec::bound(&mut walls, self.seconds);
        if self.only_looks {
            walls.close_for_writing();
        }
        let _own = self.has_own_folders.then(|| own_folders(&mut walls)).transpose()?;
        let network = self.network.open(&commands.session, &commands.egress, &mut walls)?;
        let run = Run {
            walls,
            command: CommandLine::Shell(self.line.to_owned()),
            directory: place.root.path().to_owned(),
            level: commands.session.level(),
            quarantine: commands.quarantine.join(call.changes.name()),
            signs_of_life: Vec::new(),
        };
        let is_outside = if self.network.is_on() || self.is_told_outside {
            call.brings_outside(commands)
        } else {
            call.meets_commands(commands)
        };
        let given = (input.as_bytes(), Duration::from_secs(self.seconds.into()));
        // Below that level nothing keeps it from writing.
        if self.only_looks && commands.session.level() == Level::Full {
            let run = || run_with_input(&network.session, run, given, call.cancel);
            let outcome = exec::looking(call, commands, run)?;
            return Ok(RanProgram { outcome, network, changed: None });
        }
        let run = |signs_of_life| {
            run_with_input(&network.session, Run { signs_of_life, ..run }, given, call.cancel)
        };
        let (outcome, changed) = recording_beside(call, commands, (is_outside, &[]), run)?;
        let mut outcome = outcome?;
        network.correct(&mut outcome);
        Ok(RanProgram { outcome, network, changed: Some(changed) })
    }
}

/// Has `HOME` and `/tmp` be empty folders, for as long as what is returned is kept.
fn own_folders(walls: &mut Walls) -> Result<SessionFolder, String> {
    let failed = |error: io::Error| format!("there is no place for its home: {error}");
    let folder = SessionFolder::make(&walls.home.with_file_name("tmp")).map_err(failed)?;
    let [home, temp] = ["home", "tmp"].map(|name| folder.path().join(name));
    [&home, &temp].into_iter().try_for_each(fs::create_dir).map_err(failed)?;
    (walls.home, walls.temp) = (home, Some(temp));
    Ok(folder)
}

/// Runs a command that reads this, until it ends. It blocks.
fn run_with_input(
    session: &Session,
    run: Run,
    (input, patience): (&[u8], Duration),
    cancel: &Cancel,
) -> Result<Outcome, String> {
    let mut running = session.start_background(run, exec::OUTPUT, ()).map_err(|error| error.to_string())?;
    let mut cancel = cancel.clone();
    exec::blocking(async {
        tokio::select! {
            // One that ends without reading it needed none.
            _unread = running.write(input, patience) => {}
            () = cancel.cancelled() => {}
        }
        running.close_input();
        tokio::select! {
            biased;
            outcome = running.outcome() => return ended(outcome),
            () = cancel.cancelled() => {}
        }
        running.cancel();
        ended(running.outcome().await)
    })?
}

fn ended(outcome: &Result<Outcome, SandboxError>) -> Result<Outcome, String> {
    match outcome {
        Ok(outcome) => Ok(outcome.clone()),
        Err(error) => Err(error.to_string()),
    }
}

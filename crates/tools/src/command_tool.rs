//! Tools that a configuration names: a command that reads its arguments as JSON and says its result as JSON (spec: agent
//! §10). It runs in the walls of `exec`.

use std::time::Duration;

use context::ToolSpec;
use model::Cancel;
use policy::{CommandFacts, CommandStart, Effect, NetworkWish};
use sandbox::{CommandLine, Ending, Outcome, RootAccess, Run, SandboxError, Session};
use serde_json::Value;
use text::terminal::explicit;
use workspace::RelativePath;

use crate::exec::{self, CommandScope, recording, report};
use crate::tool::{CallScope, Tool, ToolScope};

/// How long a command may leave its arguments unread.
const PATIENCE: Duration = Duration::from_secs(5);

/// What there is to know of such a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandTool {
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Value,
    /// Line for /bin/sh.
    pub line: String,
    /// Whether it changes files; one that does not sees its folders read-only.
    pub writes: bool,
    /// How long it may run, in seconds.
    pub seconds: u32,
}

impl CommandTool {
    /// It as a tool, which waits for a search where schemas do not fit.
    pub fn into_tool(self) -> Tool {
        let spec = ToolSpec {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.schema.clone(),
            core: false,
        };
        let effects =
            if self.writes { &[Effect::Read, Effect::Write, Effect::Exec][..] } else { &[Effect::Exec] };
        let shown = self.line.lines().map(|line| format!("$ {}\n", explicit(line))).collect::<String>();
        Tool::running_a_program(spec, effects, (facts(), shown), move |call, arguments| {
            self.run(call, arguments)
        })
    }

    fn run(&self, call: &CallScope<'_>, arguments: &Value) -> Result<String, String> {
        let scope = call.scope;
        let commands = scope.commands.as_ref().ok_or("commands cannot run on this machine")?;
        let place = scope.roots.place(".").map_err(|error| error.to_string())?;
        let mut walls = commands.walls.clone();
        exec::bound(&mut walls, self.seconds);
        let only_looks = call.plan_mode || !self.writes;
        if only_looks {
            walls.roots.iter_mut().for_each(|root| root.access = RootAccess::ReadOnly);
            walls.git_folders.clear();
        }
        let run = Run {
            walls,
            command: CommandLine::Shell(self.line.clone()),
            directory: place.root.path().to_owned(),
            level: commands.session.level(),
            quarantine: commands.quarantine.join(call.changes.name()),
        };
        let input = format!("{arguments}\n");
        if only_looks {
            let outcome = run_with_input(&commands.session, run, &input, call.cancel)?;
            return self.result(scope, commands, &outcome, None);
        }
        let recorder = (call.changes, call.cancel);
        let (outcome, changed) = recording(&commands.checkpoints, place.root, recorder, || {
            run_with_input(&commands.session, run, &input, call.cancel)
        })?;
        self.result(scope, commands, &outcome?, changed.told_changes())
    }

    /// What it said, and which files it changed.
    fn result(
        &self,
        scope: &ToolScope,
        commands: &CommandScope,
        outcome: &Outcome,
        changed: Option<String>,
    ) -> Result<String, String> {
        let files = changed.map(|changed| format!("\n[files]\n{changed}")).unwrap_or_default();
        let told = || report::told(scope, outcome, &commands.report, None) + &files;
        if outcome.ending != Ending::Exited(0) {
            return Err(told());
        }
        match serde_json::from_str(&outcome.standard.text()) {
            Ok(Value::String(text)) => Ok(text + &files),
            Ok(value) => Ok(value.to_string() + &files),
            Err(error) => Err(format!("{} said no JSON ({error}): {}", self.name, told())),
        }
    }
}

/// What policy is told of a call: that a program runs, which the owner wrote down.
fn facts() -> CommandFacts {
    CommandFacts {
        line: String::new(),
        directory: RelativePath::root(),
        network: NetworkWish::Off,
        publishes: false,
        start: CommandStart::Foreground,
    }
}

/// Runs a command that reads this, until it ends. It blocks.
fn run_with_input(session: &Session, run: Run, input: &str, cancel: &Cancel) -> Result<Outcome, String> {
    let mut running = session.start_background(run, exec::OUTPUT).map_err(|error| error.to_string())?;
    let mut cancel = cancel.clone();
    exec::blocking(async {
        // One that ends without reading them needed none.
        let _unread = running.write(input.as_bytes(), PATIENCE).await;
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

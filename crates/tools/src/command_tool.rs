//! Tools that a configuration names: a command that reads its arguments as JSON and says its result as JSON (spec: agent
//! §10). It runs in the walls of `exec`.

use std::time::Duration;

use context::ToolSpec;
use model::Cancel;
use policy::{CommandFacts, CommandStart, Effect};
use sandbox::{CommandLine, Ending, Level, Outcome, Run, SandboxError, Session};
use serde_json::Value;
use text::cut::head_tail;
use workspace::RelativePath;

use crate::arguments::ArgumentSchema;
use crate::exec::{
    self, ChangedFiles, CommandNetwork, CommandReport, CommandScope, NetworkRequest, recording_beside, report,
};
use crate::tool::{CallScope, Tool};

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
    /// Whether it says something to somebody else.
    pub sends_messages: bool,
    /// Network of each call.
    pub network: NetworkRequest,
    /// How long it may run, in seconds.
    pub seconds: u32,
}

/// Characters of the longest name that models take.
const LONGEST_NAME: usize = 64;

impl CommandTool {
    /// Refuses what no model can be told of or no call be checked by.
    ///
    /// # Errors
    /// What is wrong, by its key.
    pub fn check(&self) -> Result<(), String> {
        if self.name.len() > LONGEST_NAME {
            return Err(format!("its name is longer than {LONGEST_NAME} characters"));
        }
        if self.schema.get("type") != Some(&Value::from("object")) {
            return Err("schema is none of an object: its `type` is not `object`".to_owned());
        }
        ArgumentSchema::new(&self.schema).map(drop).map_err(|why| format!("schema is none: {why}"))
    }

    /// What policy sees of the command of each call.
    pub fn facts(&self) -> CommandFacts {
        CommandFacts {
            line: String::new(),
            directory: RelativePath::root(),
            further_root: None,
            network: self.network.wish(),
            publishes: false,
            start: CommandStart::Foreground,
        }
    }

    /// Tool that runs the command; it waits for a search where schemas do not fit.
    pub fn into_tool(self) -> Tool {
        let spec = ToolSpec {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.schema.clone(),
            core: false,
        };
        let effects = match (self.writes, self.sends_messages) {
            (true, false) => &[Effect::Read, Effect::Write, Effect::Exec][..],
            (true, true) => &[Effect::Read, Effect::Write, Effect::Exec, Effect::Message],
            (false, false) => &[Effect::Read, Effect::Exec],
            (false, true) => &[Effect::Read, Effect::Exec, Effect::Message],
        };
        let (facts, line) = (self.facts(), self.line.clone());
        let reaches = self.network.is_on().then(|| self.network.to_string());
        Tool::running_a_program(spec, effects, (facts, line, reaches), move |call, arguments| {
            self.run(call, arguments)
        })
    }

    fn run(&self, call: &CallScope<'_>, arguments: &Value) -> Result<String, String> {
        let scope = call.scope;
        let commands = scope.commands.as_ref().ok_or("commands cannot run on this machine")?;
        exec::require_same_roots(&scope.roots)?;
        let place = scope.roots.place(".").map_err(|error| error.to_string())?;
        let mut walls = commands.walls.clone();
        exec::bound(&mut walls, self.seconds);
        let only_looks = call.plan_mode || !self.writes;
        if only_looks {
            walls.close_for_writing();
        }
        let opened = self.network.open(&commands.session, &commands.egress, &mut walls)?;
        let run = Run {
            walls,
            command: CommandLine::Shell(self.line.clone()),
            directory: place.root.path().to_owned(),
            level: commands.session.level(),
            quarantine: commands.quarantine.join(call.changes.name()),
            signs_of_life: Vec::new(),
        };
        let input = format!("{arguments}\n");
        let is_outside =
            if self.network.is_on() { call.opens_network(commands) } else { call.meets_commands(commands) };
        // Below that level nothing keeps it from writing.
        if only_looks && commands.session.level() == Level::Full {
            let run = || run_with_input(&opened.session, run, self.given(&input), call.cancel);
            let outcome = exec::looking(call, commands, run)?;
            return self.result(call, commands, (&outcome, &opened), None);
        }
        let run = |signs_of_life| {
            run_with_input(&opened.session, Run { signs_of_life, ..run }, self.given(&input), call.cancel)
        };
        let (outcome, changed) = recording_beside(call, commands, (is_outside, &[]), run)?;
        let mut outcome = outcome?;
        opened.correct(&mut outcome);
        self.result(call, commands, (&outcome, &opened), Some(&changed))
    }

    /// What it reads, and how long it may leave that unread: as long as it may run.
    fn given<'i>(&self, input: &'i str) -> (&'i [u8], Duration) {
        (input.as_bytes(), Duration::from_secs(self.seconds.into()))
    }

    /// What it said, and which files it changed.
    fn result(
        &self,
        call: &CallScope<'_>,
        commands: &CommandScope,
        (outcome, opened): (&Outcome, &CommandNetwork),
        changed: Option<&ChangedFiles>,
    ) -> Result<String, String> {
        let report = CommandReport::of(call.scope, (outcome, None), &commands.report, changed);
        let report = CommandReport { network: opened.told(), ..report };
        let told = || call.tell(&report);
        let shown = |result: &str| {
            call.brief.replace(report.brief_besides());
            // Secrets go before anything is cut.
            let result = call.scope.masker.mask_entering(result).text;
            let result = head_tail(&result, report::SHOWN, "result").text.into_owned();
            [result].into_iter().chain(report.besides()).collect::<Vec<_>>().join("\n")
        };
        if outcome.ending != Ending::Exited(0) {
            return Err(told());
        }
        if outcome.standard.omitted > 0 {
            return Err(format!("{} said more than is kept: {}", self.name, told()));
        }
        let said = outcome.standard.text();
        match serde_json::from_str(&said) {
            Ok(Value::String(text)) => Ok(shown(&text)),
            Ok(_) => Ok(shown(said.trim())),
            Err(error) => {
                let wants = "it is to print one JSON value; a text as a string, which `jq -Rs .` makes of it";
                Err(format!("{} said no JSON ({error}): {wants}: {}", self.name, told()))
            }
        }
    }
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

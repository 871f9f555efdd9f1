//! Tools that a configuration names: a command that reads its arguments as JSON and says its result as JSON (spec: agent
//! §10). It runs in the walls of `exec`.

use context::ToolSpec;
use policy::{CommandFacts, CommandStart, Effect};
use sandbox::Ending;
use serde_json::Value;
use text::cut::head_tail;
use workspace::RelativePath;

use crate::arguments::ArgumentSchema;
use crate::exec::{CommandReport, CommandScope, NetworkRequest, report};
use crate::program::{NO_COMMANDS, Program, RanProgram};
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
            directory_is_direct: true,
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
        let commands = call.scope.commands.as_ref().ok_or(NO_COMMANDS)?;
        let program = Program {
            line: &self.line,
            network: &self.network,
            seconds: self.seconds,
            only_looks: call.plan_mode || !self.writes,
            has_own_folders: false,
            is_told_outside: false,
        };
        let ran = program.run((call, commands), &format!("{arguments}\n"))?;
        self.result(call, commands, &ran)
    }

    /// What it said, and which files it changed.
    fn result(
        &self,
        call: &CallScope<'_>,
        commands: &CommandScope,
        RanProgram { outcome, network, changed }: &RanProgram,
    ) -> Result<String, String> {
        let report = CommandReport::of(call.scope, (outcome, None), &commands.report, changed.as_ref());
        let report = CommandReport { network: network.told(), ..report };
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

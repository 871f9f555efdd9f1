//! Commands of the owner that see what happens in a session and may answer it (spec: agent §10 *Hooks*): one that reads the
//! event as JSON and prints its answer as JSON. They run in the walls of `exec`, without network.
//!
//! A hook before calls is for safety: whatever goes wrong with it denies the call.

use loom::Trust;
use policy::{CallFacts, PathUse, Pattern};
use sandbox::{Ending, Level, Notice};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use text::cut::head_tail;

use crate::exec::{ChangedFiles, CommandReport, NetworkRequest, report};
use crate::program::{NO_COMMANDS, Program, RanProgram};
use crate::tool::{CallScope, ToolOutput, ToolScope, bounded};

/// Lines of what hooks say that a person reads of a call.
const BRIEF: usize = 8;

/// Characters of an answer that is none that are told.
const BEGINNING: usize = 60;
/// Characters of the last line that a failed hook printed that a person reads.
const LAST: usize = 200;

/// What a hook is run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookEvent {
    /// A call of a tool that policy, or the owner, allowed is about to run.
    BeforeCall,
    /// A call of a tool has ended. Its result is written once these have.
    AfterCall,
    /// A model has answered without a further call.
    TurnEnd,
    /// A process takes up a conversation, and no model was asked there yet.
    SessionStart,
}

/// What there is to know of a hook.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    pub name: String,
    /// Line for /bin/sh.
    pub line: String,
    pub on: Vec<HookEvent>,
    /// The calls that it is about; all of them where there is no pattern.
    pub tools: Vec<Pattern>,
    /// How long it may run, in seconds.
    pub seconds: u32,
}

impl Hook {
    /// Whether it sees calls of tools.
    pub(crate) fn sees_calls(&self) -> bool {
        let sees = |event: &HookEvent| matches!(event, HookEvent::BeforeCall | HookEvent::AfterCall);
        self.on.iter().any(sees)
    }

    /// Whether it is run on an event of this call.
    fn is_about(&self, event: HookEvent, call: &HookedCall<'_>) -> bool {
        self.on.contains(&event) && (self.tools.is_empty() || call.may_be_of(&self.tools))
    }
}

/// A call as hooks are told of it.
pub(crate) struct HookedCall<'c> {
    pub(crate) tool: &'c str,
    pub(crate) arguments: &'c Value,
    pub(crate) facts: CallFacts,
}

impl HookedCall<'_> {
    /// Whether patterns may mean it, as what it is judged as or by the name of its tool.
    fn may_be_of(&self, patterns: &[Pattern]) -> bool {
        let as_named = || CallFacts { tool: self.tool.to_owned(), ..self.facts.clone() };
        // The name of a tool of a server is that of no other tool.
        let is_named = || self.facts.server.is_none() && policy::may_mean(patterns, &as_named());
        policy::may_mean(patterns, &self.facts) || is_named()
    }

    /// The call as the JSON of an event.
    fn told(&self) -> Map<String, Value> {
        let named = |path: &PathUse| match path.named() {
            top if top.as_os_str().is_empty() => ".".to_owned(),
            path => path.display().to_string(),
        };
        let paths: Vec<String> = self.facts.paths.iter().map(named).collect();
        let told =
            [("tool", json!(self.tool)), ("arguments", self.arguments.clone()), ("paths", json!(paths))];
        told.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

/// What came of a hook.
struct HookAnswer {
    /// What it printed: a JSON object, an empty one for nothing. Or why it said nothing that counts.
    said: Result<Map<String, Value>, String>,
    /// What it changed, and what there is to know of that.
    besides: Vec<String>,
    /// Whether it changed a file.
    has_changed: bool,
    /// Whether something from outside went into it.
    is_outside: bool,
}

/// What hooks leave to tell beside the result of their call.
#[derive(Default)]
struct HookTelling {
    parts: Vec<String>,
    is_outside: bool,
}

impl HookTelling {
    /// Adds what a hook says, and what it changed, below its name; nothing of one that did neither.
    fn add(&mut self, name: &str, text: Option<String>, answer: HookAnswer) {
        let parts: Vec<String> = text.into_iter().chain(answer.besides).collect();
        if !parts.is_empty() {
            self.parts.push(format!("[hook {name}]\n{}", parts.join("\n")));
            self.is_outside |= answer.is_outside;
        }
    }

    /// The output with all that.
    fn behind(self, call: &CallScope<'_>, output: ToolOutput) -> ToolOutput {
        if self.parts.is_empty() {
            return output;
        }
        let told = masked(call, &self.parts.join("\n"));
        let mut output = if self.is_outside { output.from_outside() } else { output };
        output.add_beside(&told);
        output.brief.extend(told.lines().take(BRIEF).map(str::to_owned));
        output.trust = output.trust.min(call.scope.trust);
        output
    }
}

/// Runs a call between its hooks. It blocks.
pub(crate) fn hooked(
    call: &CallScope<'_>,
    hooked: &HookedCall<'_>,
    run: impl FnOnce() -> ToolOutput,
) -> ToolOutput {
    let of = |event| call.scope.hooks.iter().filter(move |hook| hook.is_about(event, hooked));
    let mut telling = HookTelling::default();
    for hook in of(HookEvent::BeforeCall) {
        let answer = answer_of(hook, call, (HookEvent::BeforeCall, hooked.told()), false);
        let is_changed = answer.has_changed && call.changes.is_approved();
        let denied = denial(&hook.name, &answer.said).or_else(|| {
            is_changed.then(|| {
                format!("the hook {} changed files after a person allowed it: call it again", hook.name)
            })
        });
        let is_outside = answer.is_outside;
        telling.add(&hook.name, None, answer);
        if let Some(why) = denied {
            let why = masked(call, &format!("{} was not run: {why}", hooked.tool));
            let output = ToolOutput { trust: call.scope.trust, ..ToolOutput::denied(why) };
            return telling.behind(call, if is_outside { output.from_outside() } else { output });
        }
    }
    let output = run();
    // A turn that is stopped runs nothing more, and what is left to be found out is not overwritten.
    if !call.cancel.is_cancelled() && !call.changes.is_left() {
        for hook in of(HookEvent::AfterCall) {
            let mut told = hooked.told();
            told.insert("status".to_owned(), json!(output.status));
            told.insert("result".to_owned(), json!(output.text));
            let is_told_outside = output.trust == Trust::Outside;
            let answer = answer_of(hook, call, (HookEvent::AfterCall, told), is_told_outside);
            let text = addition(&answer.said);
            telling.add(&hook.name, text, answer);
        }
    }
    telling.behind(call, output)
}

/// A text with which a hook goes on with a turn.
#[derive(Debug)]
pub struct Continuation {
    /// Name of the hook.
    pub hook: String,
    pub text: String,
    pub trust: Trust,
}

/// What hooks beside calls said.
#[derive(Debug, Default)]
pub struct HookedEvent {
    /// What the turn goes on with, in the order of the hooks' names.
    pub goes_on: Vec<Continuation>,
    /// What a person is told of them, a line or more each.
    pub notices: Vec<String>,
}

/// Runs the hooks of an event beside calls. It blocks.
pub(crate) fn on_event(call: &CallScope<'_>, event: HookEvent, told: &Map<String, Value>) -> HookedEvent {
    let mut found = HookedEvent::default();
    for hook in call.scope.hooks.iter().filter(|hook| hook.on.contains(&event)) {
        if call.cancel.is_cancelled() {
            break;
        }
        let HookAnswer { said, besides, is_outside, .. } =
            answer_of(hook, call, (event, told.clone()), false);
        let mut notice =
            |told: &str| found.notices.push(masked(call, &format!("the hook {}: {told}", hook.name)));
        besides.iter().for_each(|told| notice(told));
        let goes_on = match event {
            HookEvent::TurnEnd => continuation(said),
            // What others print is for nobody.
            _ => said.map(|_| None),
        };
        match goes_on {
            Ok(None) => {}
            Ok(Some(text)) => {
                let trust = if is_outside { Trust::Outside } else { call.scope.trust };
                let (hook, text) = (hook.name.clone(), bounded(masked(call, &text)));
                found.goes_on.push(Continuation { hook, text, trust });
            }
            Err(why) => notice(&format!("it failed: {why}")),
        }
    }
    found
}

/// The text with which a turn goes on.
fn continuation(said: Result<Map<String, Value>, String>) -> Result<Option<String>, String> {
    let said = said?;
    match (said.len(), said.get("continue")) {
        (0, _) => Ok(None),
        (1, Some(Value::String(text))) if !text.trim().is_empty() => {
            Ok(Some(head_tail(text.trim(), report::SHOWN, "text").text.into_owned()))
        }
        _ => Err(r#"its answer is none: it takes {"continue": TEXT}, or nothing"#.to_owned()),
    }
}

/// What a hook adds to a result, or why it adds nothing although it should have.
fn addition(said: &Result<Map<String, Value>, String>) -> Option<String> {
    let shown = |text: &str| head_tail(text, report::SHOWN, "text").text.into_owned();
    match said {
        Ok(said) if said.is_empty() => None,
        Ok(said) => match (said.len(), said.get("text")) {
            (1, Some(Value::String(text))) => Some(shown(text.trim_end())).filter(|text| !text.is_empty()),
            _ => Some(r#"It failed: its answer is none: it takes {"text": TEXT}, or nothing"#.to_owned()),
        },
        Err(why) => Some(format!("It failed: {why}")),
    }
}

/// Why a hook denies a call, if it does: whatever it says that it may not denies, too.
fn denial(name: &str, said: &Result<Map<String, Value>, String>) -> Option<String> {
    match said {
        Ok(said) if said.is_empty() => None,
        Ok(said) => match (said.len(), said.get("deny")) {
            (1, Some(Value::String(reason))) if reason.trim().is_empty() => {
                Some(format!("the hook {name} denies it"))
            }
            (1, Some(Value::String(reason))) => {
                let reason = head_tail(reason.trim(), report::SHOWN, "reason").text;
                Some(format!("the hook {name} denies it: {reason}"))
            }
            _ => Some(failed(name, r#"its answer is none: it takes {"deny": REASON}, or nothing"#)),
        },
        // A person reads the first line.
        Err(why) => Some(failed(
            name,
            &match why.split_once('\n') {
                Some((ended, printed)) => {
                    let last: String =
                        printed.lines().last().unwrap_or_default().chars().take(LAST).collect();
                    format!("{ended}: {last}\n{printed}")
                }
                None => why.clone(),
            },
        )),
    }
}

fn failed(name: &str, why: &str) -> String {
    format!("the hook {name} has to allow it, and failed: {why}")
}

fn masked(call: &CallScope<'_>, text: &str) -> String {
    call.scope.masker.mask_entering(text).text.into_owned()
}

/// Runs a hook on an event of a call. What it changes is recorded with the call, and stays where that is denied or fails;
/// of a file tool that is cut off before its last change it is given back with the others.
fn answer_of(
    hook: &Hook,
    call: &CallScope<'_>,
    (event, mut told): (HookEvent, Map<String, Value>),
    is_told_outside: bool,
) -> HookAnswer {
    told.insert("event".to_owned(), json!(event));
    told.insert("hook".to_owned(), json!(hook.name));
    told.insert("read_only".to_owned(), json!(call.plan_mode));
    let input = format!("{}\n", Value::Object(told));
    let was_outside = call.from_outside.replace(false);
    let mut ran = Err(String::new());
    call.changes.beside(&mut || ran = run(hook, call, &input, is_told_outside));
    let is_outside = call.from_outside.replace(was_outside);
    let has_changed = ran.as_ref().is_ok_and(|ran| changes_of(ran).is_some());
    let (said, besides) = match ran {
        Ok(ran) => read(hook, call, (event, &ran)),
        Err(why) => (Err(why), Vec::new()),
    };
    HookAnswer { said, besides, has_changed, is_outside }
}

/// Why no hook runs here, if so: the walls keep each from what is not its own, and one that only looks from writing.
pub(crate) fn refusal(scope: &ToolScope, only_looks: bool) -> Option<String> {
    let Some(commands) = &scope.commands else { return Some(NO_COMMANDS.to_owned()) };
    let level = commands.session.level();
    let is_lifted = scope.roots.all().any(|root| root.path().parent().is_none());
    match level {
        Level::Full => None,
        _ if only_looks => Some(format!(
            "here hooks may only look, and at the sandbox's level {level} nothing keeps them from writing"
        )),
        Level::None if !is_lifted => Some("there is no sandbox on this machine to run hooks in".to_owned()),
        Level::Partial | Level::None => None,
    }
}

fn run(hook: &Hook, call: &CallScope<'_>, input: &str, is_told_outside: bool) -> Result<RanProgram, String> {
    if let Some(why) = refusal(call.scope, call.plan_mode) {
        return Err(why);
    }
    let commands = call.scope.commands.as_ref().ok_or(NO_COMMANDS)?;
    let program = Program {
        line: &hook.line,
        network: &NetworkRequest::Off,
        seconds: hook.seconds,
        only_looks: call.plan_mode,
        // Without walls it has the network of the machine.
        has_own_folders: true,
        is_told_outside: is_told_outside || commands.session.level() == Level::None,
    };
    let mut ran = program.run((call, commands), input)?;
    // It has none, and nothing that it could ask for.
    ran.outcome.notices.retain(|notice| *notice != Notice::NetworkSeemsMissing);
    Ok(ran)
}

/// What a hook changed, if it changed anything.
fn changes_of(ran: &RanProgram) -> Option<&ChangedFiles> {
    ran.changed.as_ref().filter(|changed| changed.are_some())
}

/// The answer that a hook printed, and what it changed.
fn read(
    hook: &Hook,
    call: &CallScope<'_>,
    (event, ran): (HookEvent, &RanProgram),
) -> (Result<Map<String, Value>, String>, Vec<String>) {
    let commands = call.scope.commands.as_ref();
    let (outcome, changed) = (&ran.outcome, changes_of(ran));
    let Some(commands) = commands else { return (Err(NO_COMMANDS.to_owned()), Vec::new()) };
    let report = CommandReport::of(call.scope, (outcome, None), &commands.report, changed);
    let is_quiet = changed.is_none() && outcome.notices.is_empty();
    let besides: Vec<String> = report.besides().filter(|_| !is_quiet).collect();
    // What it printed, without what is told anyhow.
    let printed = || CommandReport { files: None, notes: Vec::new(), ..report }.told(call.scope);
    let guards = event == HookEvent::BeforeCall;
    let said = match outcome.ending {
        _ if ran.changed.as_ref().is_some_and(|changed| !changed.is_written()) => {
            Err("what it changed could not be written down".to_owned())
        }
        Ending::TimedOut => Err(format!("it did not end within {} s", hook.seconds)),
        Ending::Exited(0) if event == HookEvent::SessionStart => Ok(Map::new()),
        Ending::Exited(0) if outcome.standard.omitted > 0 || (guards && outcome.error.omitted > 0) => {
            Err("it said more than is kept".to_owned())
        }
        Ending::Exited(0) => {
            let said = outcome.standard.text();
            match said.trim() {
                "" => Ok(Map::new()),
                said => serde_json::from_str(said).map(|said| masked_values(call, said)).map_err(|error| {
                    let begins: String = masked(call, said).chars().take(BEGINNING).collect();
                    format!("it is to print one JSON object or nothing ({error}), and printed {begins:?}")
                }),
            }
        }
        _ => Err(printed()),
    };
    (said, besides)
}

/// The members of an answer, whose secrets go before anything is cut.
fn masked_values(call: &CallScope<'_>, mut said: Map<String, Value>) -> Map<String, Value> {
    for value in said.values_mut() {
        if let Value::String(text) = value {
            *text = masked(call, text);
        }
    }
    said
}

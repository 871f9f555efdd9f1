//! The script model: answers from a file, for tests, demonstrations and work without a network
//! (spec: cli §3).
//!
//! Each line of the file answers one model call. A call takes the next unused line of its own kind, one
//! of a subagent of its label where there are such; counting starts at the first line in every process and runs per session. A repeated attempt is a
//! call of its own, as it is for a server.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::capture::{Clock, RawResponse};
use crate::dialect::{Dialect, DialectName};
use crate::encoded::{EncodeError, EncodedRequest, PartKind};
use crate::error::ModelError;
use crate::expectation::difference;
use crate::model::{CallOrigin, Exchange, Model, ModelInfo, Purpose, SourceKind};
use crate::openai_chat::OpenAiChat;
use crate::openai_completions::OpenAiCompletions;
use crate::prompt::{Params, Prompt};
use crate::receive::{Io, Sent, Timeouts, receive};
use crate::retry::{self, Attempt, RetryPolicy};
use crate::script_lines::{self, Line};
use crate::script_wire::{Form, answer};

pub use crate::script_lines::ScriptError;

/// How a script behaves besides its lines.
#[derive(Debug, Clone)]
pub struct ScriptOptions {
    /// The window it claims, in tokens.
    pub window: u32,
    /// The output limit it claims, in tokens.
    pub output_limit: u32,
    /// How long to wait for what; `hang` and delays meet these.
    pub timeouts: Timeouts,
    /// How to repeat failed calls.
    pub retry: RetryPolicy,
    pub clock: Clock,
}

impl Default for ScriptOptions {
    fn default() -> Self {
        Self {
            window: 128_000,
            output_limit: 8_192,
            timeouts: Timeouts::default(),
            retry: RetryPolicy { base: Duration::from_millis(20), ..RetryPolicy::patient() },
            clock: Clock::system(),
        }
    }
}

/// A model that answers from a script.
#[derive(Debug)]
pub struct ScriptModel {
    info: ModelInfo,
    file: String,
    /// `None` for the echo.
    lines: Option<Vec<Line>>,
    count: Mutex<Count>,
    options: ScriptOptions,
}

impl ScriptModel {
    /// The model named after `script:`, which is `echo` or the path of a script.
    ///
    /// # Errors
    /// When the file cannot be read or holds a line that is no line of a script.
    pub fn open(name: &str, options: ScriptOptions) -> Result<Self, ScriptError> {
        if name == "echo" {
            return Ok(Self::echo(options));
        }
        let text = std::fs::read_to_string(name)
            .map_err(|cause| ScriptError::Read { file: name.to_owned(), cause })?;
        Self::from_text(name, &text, options)
    }

    /// A script from its text; `file` names it in messages.
    ///
    /// # Errors
    /// When a line is no line of a script.
    pub fn from_text(file: &str, text: &str, options: ScriptOptions) -> Result<Self, ScriptError> {
        let lines = script_lines::read(file, text)?;
        Ok(Self::with(file, Some(lines), options))
    }

    /// The echo: the last user text again, or ` echo N` after a document.
    pub fn echo(options: ScriptOptions) -> Self {
        Self::with("echo", None, options)
    }

    fn with(file: &str, lines: Option<Vec<Line>>, options: ScriptOptions) -> Self {
        let name = Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| file.to_owned());
        let info = ModelInfo {
            kind: SourceKind::Script,
            tools: true,
            images: true,
            audio: true,
            structured: true,
            ..ModelInfo::local("script", name, options.window, options.output_limit)
        };
        Self { info, file: file.to_owned(), lines, count: Mutex::default(), options }
    }

    /// The line that answers a call.
    fn take(&self, request: &EncodedRequest, call: &CallOrigin, number: u32) -> Result<Line, ModelError> {
        let exhausted =
            || ModelError::ScriptExhausted { file: self.file.clone(), purpose: call.purpose.as_str() };
        let Some(lines) = &self.lines else {
            // An echo of a background call's prompt would be remembered as if it meant something.
            let is_turn = matches!(call.purpose, Purpose::Turn | Purpose::Subagent);
            return if is_turn { Ok(echo(request, call)) } else { Err(exhausted()) };
        };
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = if number == 1 { count.take(call) } else { count.take_alone(call) };
        line_at(lines, call, turn).cloned().ok_or_else(exhausted)
    }

    /// Checks what the line expects of the plain text sent.
    fn check(&self, line: &Line, request: &EncodedRequest) -> Result<(), ModelError> {
        if line.expect.is_empty() {
            return Ok(());
        }
        let texts: Vec<String> = request.ranges().iter().map(|range| request.plain_text(range)).collect();
        let sent = texts.join("\n");
        match line.expect.iter().find_map(|expected| difference(expected, &sent)) {
            None => Ok(()),
            Some(difference) => {
                Err(ModelError::ExpectFailed { file: self.file.clone(), line: line.number, difference })
            }
        }
    }
}

#[async_trait]
impl Model for ScriptModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn encode(&self, prompt: &Prompt, params: &Params) -> Result<EncodedRequest, EncodeError> {
        self.info.admit(prompt, params)?;
        let encoded = match prompt {
            Prompt::Raw(_) => OpenAiCompletions::default().encode(prompt, params, &self.info.name),
            Prompt::Chat(_) => OpenAiChat::default().encode(prompt, params, &self.info.name),
        };
        encoded?.with_members(&params.provider)
    }

    async fn send(
        &self,
        request: &EncodedRequest,
        call: &CallOrigin,
        exchange: Exchange<'_>,
    ) -> Result<RawResponse, ModelError> {
        let played = Played { script: self, request, call };
        retry::send(&self.options.retry, &played, &mut Io::new(exchange)).await
    }
}

struct Played<'a> {
    script: &'a ScriptModel,
    request: &'a EncodedRequest,
    call: &'a CallOrigin,
}

#[async_trait]
impl Attempt for Played<'_> {
    async fn attempt(&self, number: u32, io: &mut Io<'_>) -> Result<RawResponse, ModelError> {
        let Self { script, request, call } = *self;
        if io.cancel.is_cancelled() {
            return Err(ModelError::Cancelled { response: None, refused: false });
        }
        let line = script.take(request, call, number)?;
        script.check(&line, request)?;
        let response = response_id(request, &line, call, number);
        let form = Form {
            dialect: request.dialect(),
            stream: request.stream(),
            response: &response,
            model: &script.info.name,
        };
        let sent = Sent {
            started_at: script.options.clock.now(),
            since: Instant::now(),
            attempt: number,
            dialect: request.dialect(),
            source: SourceKind::Script,
        };
        let (head, mut wire) = answer(&line, &form);
        receive(head, &mut wire, sent, script.options.timeouts, io).await
    }

    /// A spent script gives its last fault, not its emptiness.
    fn can_repeat(&self) -> bool {
        let Some(lines) = &self.script.lines else { return true };
        let count = self.script.count.lock().unwrap_or_else(PoisonError::into_inner);
        line_at(lines, self.call, count.next(self.call)).is_some()
    }
}

/// How many lines each session has taken, by kind.
#[derive(Debug, Default)]
struct Count {
    taken: HashMap<(String, Purpose), usize>,
    /// Lines set aside for the siblings of a `generate`: the first of them, and how many calls are
    /// still to come.
    groups: HashMap<(String, Purpose, String), (usize, u32)>,
}

impl Count {
    fn next(&self, call: &CallOrigin) -> usize {
        self.taken.get(&(call.session.clone(), call.purpose)).copied().unwrap_or(0)
    }

    fn take_alone(&mut self, call: &CallOrigin) -> usize {
        self.set_aside(call, 1)
    }

    fn set_aside(&mut self, call: &CallOrigin, lines: usize) -> usize {
        let taken = self.taken.entry((call.session.clone(), call.purpose)).or_default();
        let first = *taken;
        *taken += lines;
        first
    }

    /// Siblings take lines in their order, however their calls are run.
    fn take(&mut self, call: &CallOrigin) -> usize {
        let Some(slot) = call.sibling.as_ref().filter(|slot| slot.index < slot.count) else {
            return self.take_alone(call);
        };
        let key = (call.session.clone(), call.purpose, slot.turn.clone());
        let (first, left) = match self.groups.remove(&key) {
            Some(group) => group,
            None => (self.set_aside(call, slot.count as usize), slot.count),
        };
        if left > 1 {
            self.groups.insert(key, (first, left - 1));
        }
        first + slot.index as usize
    }
}

/// The line for the n-th call (from 0) of a kind in its session: of a subagent one with its label, where there are such.
fn line_at<'l>(lines: &'l [Line], call: &CallOrigin, turn: usize) -> Option<&'l Line> {
    let of = |label: Option<&str>| -> Vec<&Line> {
        let fits = |line: &&Line| line.purpose == call.purpose && line.label.as_deref() == label;
        lines.iter().filter(fits).collect()
    };
    let labelled = call.label.as_deref().map(|label| of(Some(label))).filter(|own| !own.is_empty());
    let own = labelled.unwrap_or_else(|| of(None));
    let repeats = own.last().is_some_and(|line| line.repeats) || own.first().is_some_and(|line| line.repeats);
    let at = if repeats { turn % own.len() } else { turn };
    own.get(at).copied()
}

fn echo(request: &EncodedRequest, call: &CallOrigin) -> Line {
    let text = match request.dialect() {
        DialectName::OpenAiCompletions | DialectName::Embedded => {
            let index = call.sibling.as_ref().map_or(0, |slot| slot.index);
            format!(" echo {}", index + 1)
        }
        _ => {
            let said = request.ranges().iter().rfind(|range| range.kind == PartKind::User);
            said.map(|range| request.plain_text(range)).unwrap_or_default()
        }
    };
    Line { number: 1, deltas: vec![text], ..Line::default() }
}

/// Different for every call of a growing conversation and for every sibling, yet the same whenever
/// the same script is played again: ids of tool calls are made from it.
fn response_id(request: &EncodedRequest, line: &Line, call: &CallOrigin, attempt: u32) -> String {
    let digest = Sha256::digest(request.body());
    let index = call.sibling.as_ref().map_or(0, |slot| slot.index);
    let short = data_encoding::HEXLOWER.encode(&digest[..6]);
    format!("script-{short}-{}-{index}-{attempt}", line.number)
}

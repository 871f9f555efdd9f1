//! Tools of MCP servers, as the owner accepted them (spec: agent §5). What they do is told by nobody but the owner: one
//! that is not marked as reading may write, and reach whom it likes.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::SystemTime;

use context::ToolSpec;
use context::elicitation::Elicit;
use loom::ToolStatus;
use model::Cancel;
use policy::{Effect, ServerFacts, SessionType};
use sandbox::SIGN_OF_LIFE;
use serde_json::{Map, Value};
use text::cut::head_tail;
use workspace::AllowedRoots;

use crate::arguments::ArgumentSchema;
use crate::checkpoint::RootCheckpoints;
use crate::exec::report::SHOWN;
use crate::exec::{ChangedFiles, recording, require_same_roots};
use crate::tool::{CallScope, Tool, ToolOutput, bounded};

/// Lines of an error behind its first one that a person reads while the turn goes on.
const ERROR_LINES: usize = 8;

/// What there is to know of such a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTool {
    pub server: String,
    pub name: String,
    /// What its server says of it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Value,
    /// Tools of the server that the owner marked as reading.
    pub reading: Vec<String>,
    /// Whether its server reaches anybody else.
    pub is_online: bool,
}

/// Folders that a server writes, with the records of what stands there.
#[derive(Debug)]
pub struct ServerFolders {
    pub roots: AllowedRoots,
    pub records: RootCheckpoints,
}

/// Opens the folders that a server writes, in a session of a type; it blocks.
pub type OpenServerFolders = dyn Fn(SessionType) -> Result<ServerFolders, String> + Send + Sync;

/// What a server answered to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAnswer {
    /// What it said; or why the call failed.
    pub said: Result<String, String>,
    /// Whether no word of it is the server's.
    pub is_own: bool,
    /// Bytes of pictures.
    pub pictures: Vec<Vec<u8>>,
    /// What the owner should know.
    pub notices: Vec<String>,
}

/// Asks the server; it blocks.
pub type AskServer =
    dyn Fn(&str, Map<String, Value>, (&Cancel, Option<Arc<dyn Elicit>>)) -> ServerAnswer + Send + Sync;

impl ServerTool {
    /// Refuses what no call can be checked by.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        ArgumentSchema::new(&self.schema)
            .map(drop)
            .map_err(|why| format!("the schema of {} is none: {why}", self.name))
    }

    /// Tool that asks the server. What comes of a call is from outside: what it says, and what changes meanwhile in the
    /// folders that it writes. Why it was not asked, in words of Drawloom's own, is not.
    pub fn into_tool(self, (ask, folders): (Arc<AskServer>, Arc<OpenServerFolders>)) -> Tool {
        let Self { server, name, description, schema, reading, is_online } = self;
        let spec = ToolSpec {
            name: context::tools::name_of_server_tool(&server, &name),
            description: format!("[of the server {server}] {description}"),
            parameters: schema,
            core: false,
        };
        let effects: &[Effect] = match (reading.contains(&name), is_online) {
            (true, false) => &[Effect::Read],
            (true, true) => &[Effect::Read, Effect::Net],
            (false, _) => &[Effect::Write, Effect::Net],
        };
        let run = move |call: &CallScope<'_>, arguments: Value| {
            let Value::Object(arguments) = arguments else {
                return ToolOutput::error("the arguments of a tool of a server are an object");
            };
            let ask = || ask(&name, arguments, (call.cancel, call.place.person.clone()));
            match folders(call.scope.session).and_then(|folders| recording_call(call, &folders, ask)) {
                Ok((answer, changed)) => {
                    let is_own = answer.is_own && !changed.are_some();
                    let output = output(call, answer, &changed);
                    if is_own { output } else { output.from_outside() }
                }
                Err(why) => ToolOutput::error(call.scope.masker.mask_entering(&why).text).from_outside(),
            }
        };
        Tool::reading_no_files(spec, run).of_server(ServerFacts { name: server, reading, is_online }, effects)
    }
}

/// Asks, and writes down what changed meanwhile in the folders that the server writes.
fn recording_call(
    call: &CallScope<'_>,
    ServerFolders { roots, records }: &ServerFolders,
    ask: impl FnOnce() -> ServerAnswer,
) -> Result<(ServerAnswer, ChangedFiles), String> {
    require_same_roots(roots)?;
    // No walls give back what is protected while it runs: a new one stands there, and is from outside.
    let all: Vec<PathBuf> = roots.all().map(|root| root.path().to_owned()).collect();
    let recorder = (call.changes, call.cancel, true);
    recording(&records.of_roots(roots), recorder, &all, |signs| signing(&signs, ask))
}

/// Marks the time of files every while until something is done.
fn signing<T>(files: &[PathBuf], run: impl FnOnce() -> T) -> T {
    let (done, is_done) = mpsc::channel::<()>();
    let sign = move || {
        while is_done.recv_timeout(SIGN_OF_LIFE) == Err(RecvTimeoutError::Timeout) {
            for file in files {
                let signed = File::options().write(true).open(file);
                if let Err(error) = signed.and_then(|file| file.set_modified(SystemTime::now())) {
                    tracing::warn!(%error, "when a server was called is not known after a crash");
                }
            }
        }
    };
    thread::scope(|scope| {
        if !files.is_empty() {
            scope.spawn(sign);
        }
        let ran = run();
        drop(done);
        ran
    })
}

/// An answer as the output of its call: masked, and no longer than that of any tool.
fn output(
    call: &CallScope<'_>,
    ServerAnswer { said, pictures, notices, .. }: ServerAnswer,
    changed: &ChangedFiles,
) -> ToolOutput {
    let mask = |text: &str| call.scope.masker.mask_entering(text).text.into_owned();
    let (status, mut text) = match said {
        Ok(said) => (ToolStatus::Ok, said),
        Err(why) => (ToolStatus::Error, why),
    };
    let mut shown = Vec::new();
    for bytes in &pictures {
        match media::import_picture(bytes, call.scope.max_pixels) {
            Ok(picture) => shown.push(picture),
            Err(error) => text += &format!("\n[a picture that is not shown: {error}]"),
        }
    }
    if text.is_empty() && shown.is_empty() {
        "It said nothing.".clone_into(&mut text);
    }
    // Secrets go before anything is cut.
    let text = mask(&text);
    let lines = text.lines().count();
    let mut text = head_tail(&text, SHOWN, "result").text.into_owned();
    let mut brief: Vec<String> = notices.iter().map(|notice| mask(notice)).collect();
    // The end of what it wrote to standard error stands behind the first line of an error.
    let further = if status == ToolStatus::Error { ERROR_LINES } else { 0 };
    brief.extend(text.lines().skip(1).take(further).map(str::to_owned));
    let more = lines.saturating_sub(1 + further);
    brief.extend((more > 0).then(|| format!("[{more} more lines]")));
    brief.extend(changed.brief().map(|line| mask(&line)));
    if let Some(changed) = changed.told_changes() {
        text += &format!("\n{}", mask(&changed));
    }
    let said = ToolOutput::said(status, bounded(text), call.scope.trust);
    ToolOutput { brief, pictures: shown, ..said }
}

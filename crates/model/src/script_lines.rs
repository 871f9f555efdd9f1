//! The lines of a script, checked when it is opened.

use serde::Deserialize;

use crate::event::FinishReason;
use crate::model::Purpose;

/// A script that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script {file}: {cause}")]
    Read { file: String, cause: std::io::Error },
    /// A line is not what a script may hold.
    #[error("{file}:{line}: {why}")]
    Malformed {
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    #[error("the script {file} has no line")]
    Empty { file: String },
}

impl ScriptError {
    /// A stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "script_unreadable",
            Self::Malformed { .. } => "script_malformed",
            Self::Empty { .. } => "script_empty",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read { .. } => "give --model script:FILE.jsonl a readable file, or use script:echo",
            Self::Malformed { .. } => "write one JSON object a line, with the fields of the script model",
            Self::Empty { .. } => "write at least one line, like {\"text\": \"hello\"}",
        }
    }
}

/// One line: the answer to one call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Line {
    /// Where it stands, from 1.
    pub(crate) number: usize,
    pub(crate) purpose: Purpose,
    /// The subagent whose calls it answers alone.
    pub(crate) label: Option<String>,
    pub(crate) deltas: Vec<String>,
    pub(crate) thinking: String,
    pub(crate) tool_calls: Vec<ScriptCall>,
    pub(crate) finish: Option<FinishReason>,
    pub(crate) usage: Option<ScriptUsage>,
    pub(crate) delay_ms: u64,
    pub(crate) delta_delay_ms: u64,
    pub(crate) fault: Option<Fault>,
    pub(crate) expect: Vec<String>,
    pub(crate) repeats: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScriptCall {
    pub(crate) name: String,
    /// JSON text, or whatever text the script wants to try.
    pub(crate) arguments: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptUsage {
    #[serde(default)]
    pub(crate) input: u64,
    #[serde(default)]
    pub(crate) cached: u64,
    #[serde(default)]
    pub(crate) output: u64,
}

/// What goes wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// The text comes, then the connection breaks.
    Cut,
    /// The text comes, then nothing more.
    Hang,
    /// The text comes, then what is no event.
    Garbage,
    #[serde(rename = "429")]
    RateLimited,
    #[serde(rename = "500")]
    Unavailable,
    ContextTooLong,
}

/// Reads a script; blank lines are skipped.
pub(crate) fn read(file: &str, text: &str) -> Result<Vec<Line>, ScriptError> {
    let mut lines = Vec::new();
    for (at, text) in text.trim_start_matches('\u{FEFF}').lines().enumerate() {
        if text.trim().is_empty() {
            continue;
        }
        let number = at + 1;
        let line = line(number, text);
        lines.push(line.map_err(|why| ScriptError::Malformed {
            file: file.to_owned(),
            line: number,
            why,
        })?);
    }
    if lines.is_empty() {
        return Err(ScriptError::Empty { file: file.to_owned() });
    }
    Ok(lines)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(rename = "for")]
    purpose: Option<Purpose>,
    label: Option<String>,
    text: Option<String>,
    deltas: Option<Vec<String>>,
    thinking: Option<String>,
    #[serde(default)]
    tool_calls: Vec<WrittenCall>,
    finish: Option<WrittenFinish>,
    usage: Option<ScriptUsage>,
    #[serde(default)]
    delay_ms: u64,
    #[serde(default)]
    delta_delay_ms: u64,
    fault: Option<Fault>,
    expect: Option<OneOrMore>,
    #[serde(default, rename = "loop")]
    repeats: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCall {
    name: String,
    #[serde(default)]
    arguments: serde_json::Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenFinish {
    Stop,
    Length,
    ToolUse,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

/// What is wrong with a line. Its place in the script is named beside it, so that of serde, which knows one line, is not.
fn why(error: &serde_json::Error) -> String {
    if error.is_syntax() || error.is_eof() {
        return "it is not JSON".to_owned();
    }
    let (why, place) = (error.to_string(), format!(" at line {} column {}", error.line(), error.column()));
    why.strip_suffix(&place).unwrap_or(&why).to_owned()
}

fn line(number: usize, text: &str) -> Result<Line, String> {
    let written: Written = serde_json::from_str(text).map_err(|error| why(&error))?;
    let deltas = match (written.text, written.deltas) {
        (Some(text), Some(deltas)) if deltas.concat() != text => {
            return Err("`text` and `deltas` say different things: keep one".to_owned());
        }
        (_, Some(deltas)) => deltas,
        (Some(text), None) => vec![text],
        (None, None) => Vec::new(),
    };
    let purpose = written.purpose.unwrap_or_default();
    if written.label.is_some() && purpose != Purpose::Subagent {
        return Err("`label` names a subagent: write `\"for\": \"subagent\"` beside it".to_owned());
    }
    Ok(Line {
        number,
        purpose,
        label: written.label,
        deltas,
        thinking: written.thinking.unwrap_or_default(),
        tool_calls: written.tool_calls.into_iter().map(call).collect(),
        finish: written.finish.map(|finish| match finish {
            WrittenFinish::Stop => FinishReason::Stop,
            WrittenFinish::Length => FinishReason::Length,
            WrittenFinish::ToolUse => FinishReason::ToolUse,
        }),
        usage: written.usage,
        delay_ms: written.delay_ms,
        delta_delay_ms: written.delta_delay_ms,
        fault: written.fault,
        expect: match written.expect {
            None => Vec::new(),
            Some(OneOrMore::One(text)) => vec![text],
            Some(OneOrMore::More(texts)) => texts,
        },
        repeats: written.repeats,
    })
}

fn call(written: WrittenCall) -> ScriptCall {
    let arguments = match written.arguments {
        serde_json::Value::String(text) => text,
        serde_json::Value::Null => "{}".to_owned(),
        other => other.to_string(),
    };
    ScriptCall { name: written.name, arguments }
}

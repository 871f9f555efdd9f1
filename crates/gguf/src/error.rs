//! Errors of the engine.
//!
//! A file comes from anywhere, so each way in which it can be wrong has a name of its own; no caller
//! recognises an error by its text. A hostile file is an error, never a panic.

use std::io;

/// Errors of reading a file as a model (spec: security §24).
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("the file cannot be read or written: {0}")]
    Io(#[from] io::Error),
    #[error("this is no GGUF file")]
    NotGguf,
    #[error("this GGUF file has the byte order of another kind of machine")]
    ByteOrder,
    #[error("GGUF version {0} is not supported: 2 and 3 are")]
    Version(u32),
    #[error("the file ends inside {0}")]
    Cut(&'static str),
    #[error("{what} is {found}, and the limit is {limit}")]
    Limit {
        what: &'static str,
        found: u64,
        /// The most that is accepted.
        limit: u64,
    },
    #[error("{0} is no UTF-8 text")]
    NotText(&'static str),
    #[error("the value of `{key}` is of a kind that is not supported ({kind})")]
    ValueKind {
        key: String,
        /// The number of the kind.
        kind: u32,
    },
    #[error("the key `{0}` occurs twice")]
    DuplicateKey(String),
    #[error("the key `{0}` is missing or of the wrong kind")]
    Key(String),
    #[error("`{key}` is {found}, which cannot be")]
    Value { key: String, found: String },
    #[error("the tensor `{0}` occurs twice")]
    DuplicateTensor(String),
    #[error("the tensor `{0}` is missing")]
    Tensor(String),
    #[error("the tensor `{name}` has the dimensions {found:?}, which do not fit")]
    Shape {
        name: String,
        /// Dimensions of the tensor, as they stand in the file.
        found: Vec<u64>,
    },
    #[error("the tensor `{name}` has the type {kind}, which is not supported")]
    TensorType {
        name: String,
        /// The number of the type.
        kind: u32,
    },
    #[error("the tensor `{0}` does not lie in the file as it should")]
    Placement(String),
    #[error("models of the architecture `{0}` are not supported")]
    Architecture(String),
    #[error("the model uses {0}, which is not supported")]
    Feature(String),
    #[error("the vocabulary is broken: {0}")]
    Vocabulary(String),
}

/// Errors of making a prompt of messages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("no chat template is known for the model's family: it only continues raw text")]
    None,
    #[error("a conversation begins with at most one system message and has no other")]
    Roles,
}

/// Errors that end a job before its answer is complete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The prompt leaves no room for an answer. Nothing is ever cut silently.
    #[error("the prompt has {tokens} tokens or more, and the model's window is {window}")]
    TooLong {
        /// Tokens of the prompt; a lower bound where the text is so long that it was not counted.
        tokens: u64,
        /// The window in tokens.
        window: u32,
    },
    #[error("the prompt is empty")]
    Empty,
    #[error("{0} is out of range")]
    Parameter(&'static str),
    #[error("the prompt cannot be read as tokens: {0}")]
    Tokens(String),
    #[error("stopped")]
    Cancelled,
    #[error("{0} requests wait for the engine already")]
    Busy(usize),
    #[error("the computation failed: {0}")]
    Compute(String),
    #[error("the engine has ended")]
    Ended,
}

//! How the engine fails.
//!
//! A file comes from anywhere, so each way in which it can be wrong has a name of its own; a caller never has
//! to read a message to know what happened. Nothing here stands for a panic: a hostile file is an error.

use std::io;

/// Why a file cannot be read as a model (spec: security §24).
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be opened, read or written.
    #[error("the file cannot be read or written: {0}")]
    Io(#[from] io::Error),
    /// The file does not begin as GGUF files do.
    #[error("this is no GGUF file")]
    NotGguf,
    /// The file is written for machines of the other byte order.
    #[error("this GGUF file has the byte order of another kind of machine")]
    ByteOrder,
    /// A version of the format this reader does not know.
    #[error("GGUF version {0} is not supported: 2 and 3 are")]
    Version(u32),
    /// The file ends before what it announces.
    #[error("the file ends inside {0}")]
    Cut(&'static str),
    /// A count or length is above what any model needs.
    #[error("{what} is {found}, and the limit is {limit}")]
    Limit {
        /// What is too large.
        what: &'static str,
        /// What the file says.
        found: u64,
        /// The most that is accepted.
        limit: u64,
    },
    /// A text that is no UTF-8.
    #[error("{0} is no UTF-8 text")]
    NotText(&'static str),
    /// A value of a kind the format does not have, or that stands where it may not.
    #[error("the value of `{key}` is of a kind that is not supported ({kind})")]
    ValueKind {
        /// The key.
        key: String,
        /// The number of the kind.
        kind: u32,
    },
    /// A key stands twice.
    #[error("the key `{0}` stands twice")]
    DuplicateKey(String),
    /// A key that the model needs is absent or of another kind.
    #[error("the key `{0}` is missing or of the wrong kind")]
    Key(String),
    /// A value is outside what can be meant.
    #[error("`{key}` is {found}, which cannot be")]
    Value {
        /// The key.
        key: String,
        /// What the file says.
        found: String,
    },
    /// Two tensors have one name.
    #[error("the tensor `{0}` stands twice")]
    DuplicateTensor(String),
    /// A tensor that the model needs is absent.
    #[error("the tensor `{0}` is missing")]
    Tensor(String),
    /// A tensor's dimensions are absurd or not those the model needs.
    #[error("the tensor `{name}` has the dimensions {found:?}, which do not fit")]
    Shape {
        /// The tensor.
        name: String,
        /// Its dimensions, as they stand in the file.
        found: Vec<u64>,
    },
    /// A tensor's type is not supported.
    #[error("the tensor `{name}` has the type {kind}, which is not supported")]
    TensorType {
        /// The tensor.
        name: String,
        /// The number of the type.
        kind: u32,
    },
    /// A tensor lies outside the file, off its alignment or upon another one.
    #[error("the tensor `{0}` does not lie in the file as it should")]
    Placement(String),
    /// The model's architecture is none the engine can run.
    #[error("models of the architecture `{0}` are not supported")]
    Architecture(String),
    /// The architecture is known, but the model uses a part of it that is not.
    #[error("the model uses {0}, which is not supported")]
    Feature(String),
    /// The vocabulary contradicts itself.
    #[error("the vocabulary is broken: {0}")]
    Vocabulary(String),
    /// The tensor library refused something the checks let pass.
    #[error("the tensors cannot be used: {0}")]
    Tensors(#[from] candle_core::Error),
}

/// Why a prompt cannot be made of messages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("no chat template is known for the model's family: it only continues raw text")]
    None,
    #[error("a conversation begins with at most one system message and has no other")]
    Roles,
}

/// Why a job gave no complete answer.
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
    /// A prompt without any token.
    #[error("the prompt is empty")]
    Empty,
    /// A parameter is no number that can be used.
    #[error("{0} is out of range")]
    Parameter(&'static str),
    /// The prompt names a marker that is none of the model's.
    #[error("the prompt cannot be read as tokens: {0}")]
    Tokens(String),
    /// The job was stopped from outside.
    #[error("stopped")]
    Cancelled,
    /// More jobs wait than may.
    #[error("{0} requests wait for the engine already")]
    Busy(usize),
    /// The computation failed.
    #[error("the computation failed: {0}")]
    Compute(String),
    /// The engine's thread has ended.
    #[error("the engine has ended")]
    Ended,
}

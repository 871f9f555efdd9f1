//! The embedded engine: quantised language models from GGUF files, in this process.
//!
//! [`Engine::load`] reads a file, [`Engine::chat_prompt`] makes a prompt of messages, [`Engine::run`] has it
//! continued on the engine's own thread and calls a listener with each event. There is no async runtime, no
//! network and no configuration here; a file goes in, tokens come out.
//!
//! Three things are the engine's own, because they are what it is for:
//!
//! - **A file is untrusted** (spec: security §24). The header is read within limits; every way in which a
//!   file can be wrong is a [`LoadError`] with a name. A chat template in a file is never run: two families have
//!   [templates](ChatTemplate) of ours, and a model of any other family continues raw text.
//! - **Text of a message stays text.** A prompt is made of [`PromptPiece`]s; only those of the template become control
//!   tokens.
//! - **Nothing is computed twice.** Keys and values of earlier jobs are kept within a bound of memory, and a
//!   job begins at the longest beginning it shares with one of them, wherever that ends. Siblings of a loom
//!   read their prompt once.
//!
//! Products with weights are our own and exact: 8-bit blocks lie as multiplication needs them, other types are
//! converted row by row. The forward pass is ours too, so that caches can be cut and a prompt read in chunks gives the
//! same numbers as one read at once. The price is that architectures are few (llama, qwen2, qwen3); each was compared
//! with llama.cpp.
//!
//! **Threads.** Products are computed on the global pool of rayon, as large as the machine has processors. It reads
//! [`THREADS_VARIABLE`] once, at the first product. A program that wants one thread, as it should where cores are
//! shared, sets the variable before it starts any other thread.

mod blocks;
mod decoder;
mod engine;
mod error;
mod header;
mod job;
mod kv_cache;
mod matmul;
mod merge;
mod metadata_value;
mod model_config;
mod packed_rows;
mod pre_tokenizer;
mod requantise;
mod sampler;
mod simd;
mod stop_filter;
mod stored_rows;
mod template;
mod tensor_type;
mod vocabulary;
mod weights;
mod worker;

pub use engine::{Engine, EngineInfo, EngineOptions, PromptCounter};
pub use error::{LoadError, RunError, TemplateError};
pub use header::{GgufHeader, TensorEntry};
pub use job::{
    EngineJob, JobEvent, JobHandle, JobListener, JobResult, PromptUsage, StopReason, Token, TokenAlternative,
};
pub use metadata_value::MetadataValue;
pub use requantise::{RequantiseProgress, requantise};
pub use sampler::SamplingParams;
pub use template::{ChatMessage, ChatRole, ChatTemplate};
pub use tensor_type::TensorType;
pub use vocabulary::PromptPiece;

/// The environment variable that says on how many threads products with weights are computed.
pub const THREADS_VARIABLE: &str = "RAYON_NUM_THREADS";

/// The number of threads in effect. Fixed from the first call, or the first product, on.
pub fn threads() -> usize {
    rayon_core::current_num_threads()
}

//! A loaded model and its thread.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use crate::decoder::Decoder;
use crate::error::{LoadError, RunError, TemplateError};
use crate::header::GgufHeader;
use crate::job::{EngineJob, JobHandle, JobListener};
use crate::model_config::ModelConfig;
use crate::template::{ChatMessage, ChatTemplate};
use crate::vocabulary::{PromptPiece, Vocabulary};
use crate::worker::{QueuedJob, run_jobs};

/// Jobs that may wait for the engine's thread (the channel `jobs`).
const MAX_WAITING: usize = 64;

/// Limits of a loaded model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
    /// Largest window in tokens; a model trained for less has less.
    pub window: u32,
    /// Most memory, in bytes, of the prefix cache, the running job included. A job that needs more by itself gets
    /// it while it runs.
    pub cache_bytes: usize,
}

impl Default for EngineOptions {
    /// 4,096 tokens and 512 MiB.
    fn default() -> Self {
        Self { window: 4_096, cache_bytes: 512 << 20 }
    }
}

/// Properties of a loaded model.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineInfo {
    /// Window in tokens, for prompt and answer together.
    pub window: u32,
    /// Window in tokens the model was trained for.
    pub trained_window: u32,
    /// Number of matrices of slow types ([`TensorType::is_fast`](crate::TensorType::is_fast)), which
    /// [`crate::requantise()`] converts.
    pub slow_matrices: usize,
    /// Chat template in use; a model without one only continues raw text.
    pub template: Option<ChatTemplate>,
    /// Whether the file brings another chat template than the one in use.
    pub template_differs: bool,
}

/// Model, shared by the engine's thread and its owner.
pub(crate) struct LoadedModel {
    pub(crate) decoder: Decoder,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) window: u32,
}

impl LoadedModel {
    /// The tokens of a prompt, with room for at least one more in the window.
    pub(crate) fn prompt_tokens(&self, prompt: &[PromptPiece]) -> Result<Vec<u32>, RunError> {
        let too_long = |tokens| RunError::TooLong { tokens, window: self.window };
        let bytes = prompt.iter().map(|piece| piece.as_str().len()).sum();
        let least = self.vocabulary.min_tokens(bytes);
        if least >= u64::from(self.window) {
            return Err(too_long(least));
        }
        let tokens = self.vocabulary.tokens(prompt)?;
        match tokens.len() as u64 {
            0 => Err(RunError::Empty),
            count if count >= u64::from(self.window) => Err(too_long(count)),
            _ => Ok(tokens),
        }
    }
}

/// Counts tokens with the vocabulary of a model, whatever its window.
#[derive(Clone)]
pub struct PromptCounter(Arc<LoadedModel>);

impl std::fmt::Debug for PromptCounter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PromptCounter").finish_non_exhaustive()
    }
}

impl PromptCounter {
    /// Tokens of a text by itself.
    ///
    /// # Errors
    /// When the vocabulary has no tokens for it.
    pub fn text(&self, text: &str) -> Result<u64, RunError> {
        self.0.vocabulary.count(text)
    }

    /// Tokens of a prompt, as a job would read them.
    ///
    /// # Errors
    /// As [`PromptCounter::text`].
    pub fn prompt(&self, prompt: &[PromptPiece]) -> Result<u64, RunError> {
        Ok(self.0.vocabulary.tokens(prompt)?.len() as u64)
    }
}

/// A model in this process. Dropping it ends its thread after the job that runs; drop that job's [`JobHandle`]
/// first.
pub struct Engine {
    model: Arc<LoadedModel>,
    info: EngineInfo,
    jobs: SyncSender<QueuedJob>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("info", &self.info).finish_non_exhaustive()
    }
}

impl Engine {
    /// Loads a model and starts its thread. Takes as long as reading the file does.
    ///
    /// # Errors
    /// A [`LoadError`] that names what is wrong with the file. A hostile one is found out before memory is
    /// taken for what it claims.
    pub fn load(path: &Path, options: &EngineOptions) -> Result<Self, LoadError> {
        let mut file = File::open(path)?;
        let header = GgufHeader::read(&mut file)?;
        let config = ModelConfig::of(&header)?;
        let vocabulary = Vocabulary::of(&header)?;
        let window = config.context.min(options.window).max(1);
        let template = ChatTemplate::of(&vocabulary);
        let slow =
            header.tensors.iter().filter(|tensor| tensor.dimensions.len() > 1 && !tensor.kind.is_fast());
        let info = EngineInfo {
            window,
            trained_window: config.context,
            slow_matrices: slow.count(),
            template,
            template_differs: template.is_some_and(|template| template.differs_from(&header)),
        };
        let decoder = Decoder::read(&header, config, &mut file, window)?;
        let model = Arc::new(LoadedModel { decoder, vocabulary, window });
        let (jobs, waiting) = sync_channel(MAX_WAITING);
        let (working, cache_bytes) = (Arc::clone(&model), options.cache_bytes);
        std::thread::Builder::new()
            .name("gguf-engine".to_owned())
            .spawn(move || run_jobs(&working, cache_bytes, &waiting))?;
        Ok(Self { model, info, jobs })
    }

    pub fn info(&self) -> &EngineInfo {
        &self.info
    }

    /// The prompt of a conversation, up to where the answer begins. Every message is one [`PromptPiece::Text`], in
    /// order; to continue a given beginning of the answer, append it as another.
    ///
    /// # Errors
    /// [`TemplateError::None`] for a model of a family whose template is not known, [`TemplateError::Roles`].
    pub fn chat_prompt(&self, messages: &[ChatMessage]) -> Result<Vec<PromptPiece>, TemplateError> {
        self.info.template.ok_or(TemplateError::None)?.prompt(messages)
    }

    /// The tokens of a prompt, as a job would read them.
    ///
    /// # Errors
    /// [`RunError::TooLong`] when they leave no room for an answer, [`RunError::Empty`] when there are none.
    pub fn tokens(&self, prompt: &[PromptPiece]) -> Result<Vec<u32>, RunError> {
        self.model.prompt_tokens(prompt)
    }

    /// What counts tokens beside the engine.
    pub fn counter(&self) -> PromptCounter {
        PromptCounter(Arc::clone(&self.model))
    }

    /// The bytes a token is written with.
    pub fn spelling(&self, token: u32) -> &[u8] {
        self.model.vocabulary.spelling(token)
    }

    /// Begins a job; it is done after those that wait already. The listener is called on the engine's
    /// thread, with [`crate::JobEvent::Ended`] last.
    ///
    /// # Errors
    /// When a parameter cannot be used or too many jobs wait. Errors of the prompt come to the listener.
    pub fn run(&self, job: EngineJob, listener: JobListener) -> Result<JobHandle, RunError> {
        job.sampling.check()?;
        if job.max_tokens == 0 {
            return Err(RunError::Parameter("max_tokens"));
        }
        let cancelled = Arc::new(AtomicBool::new(false));
        let order = QueuedJob { job, listener, cancelled: Arc::clone(&cancelled) };
        match self.jobs.try_send(order) {
            Ok(()) => Ok(JobHandle(cancelled)),
            Err(TrySendError::Full(_)) => Err(RunError::Busy(MAX_WAITING)),
            Err(TrySendError::Disconnected(_)) => Err(RunError::Ended),
        }
    }
}

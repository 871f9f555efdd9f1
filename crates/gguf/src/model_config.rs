//! Shape of a model by its metadata, checked against limits.

use crate::error::LoadError;
use crate::header::GgufHeader;
use crate::metadata_value::MetadataValue;

/// The architectures the engine runs. All are one decoder with small differences; each was compared with
/// llama.cpp number by number. Others, of which the file may be perfectly fine, are refused by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Architecture {
    /// Llama and its many descendants: SmolLM2, Mistral, TinyLlama, Llama 3.
    Llama,
    /// Qwen 2 and 2.5: biases on queries, keys and values.
    Qwen2,
    /// Qwen 3: queries and keys are normalised for each head.
    Qwen3,
}

impl Architecture {
    /// The architecture's name in GGUF files.
    fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
        }
    }

    fn of(name: &str) -> Option<Self> {
        [Self::Llama, Self::Qwen2, Self::Qwen3].into_iter().find(|family| family.name() == name)
    }

    /// Whether rotation pairs neighbours (2i, 2i+1) rather than halves (i, i+d/2).
    pub(crate) fn rotates_neighbours(self) -> bool {
        self == Self::Llama
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelConfig {
    pub(crate) family: Architecture,
    pub(crate) layers: usize,
    pub(crate) width: usize,
    pub(crate) inner: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head: usize,
    /// Dimensions of a head that are rotated.
    pub(crate) rotated: usize,
    pub(crate) rotation_base: f64,
    /// Positions are divided by this before they are rotated.
    pub(crate) rotation_scale: f64,
    pub(crate) epsilon: f32,
    /// Window the model was trained for, in tokens.
    pub(crate) context: u32,
    pub(crate) vocabulary: usize,
}

impl ModelConfig {
    pub(crate) fn of(header: &GgufHeader) -> Result<Self, LoadError> {
        let architecture = header.require("general.architecture", MetadataValue::text)?;
        let family =
            Architecture::of(architecture).ok_or_else(|| LoadError::Architecture(architecture.to_owned()))?;
        let keys = Keys { header, family };
        keys.refuse_unsupported()?;
        let width = keys.size("embedding_length", 65_536)?;
        let heads = keys.size("attention.head_count", 1_024)?;
        let head = keys.optional_size("attention.key_length", 1_024)?.unwrap_or(width / heads);
        let config = Self {
            family,
            layers: keys.size("block_count", 512)?,
            width,
            inner: keys.size("feed_forward_length", 1 << 20)?,
            heads,
            kv_heads: keys.optional_size("attention.head_count_kv", 1_024)?.unwrap_or(heads),
            head,
            rotated: keys.optional_size("rope.dimension_count", 1_024)?.unwrap_or(head),
            rotation_base: keys.positive("rope.freq_base", 10_000.0)?,
            rotation_scale: keys.scale()?,
            epsilon: keys.epsilon()?,
            context: u32::try_from(keys.size("context_length", u64::from(u32::MAX >> 1))?)
                .unwrap_or(u32::MAX),
            vocabulary: header.require("tokenizer.ggml.tokens", MetadataValue::texts)?.len(),
        };
        let fits = config.head > 0
            && config.head.is_multiple_of(2)
            && config.rotated.is_multiple_of(2)
            && config.rotated <= config.head
            && config.heads.is_multiple_of(config.kv_heads)
            && config.heads * config.head <= 1 << 17;
        if !fits {
            return Err(keys.wrong("attention.head_count", format!("{heads} heads of {head} dimensions")));
        }
        Ok(config)
    }

    /// Bytes that one token takes in the key and value cache.
    pub(crate) fn token_bytes(&self) -> usize {
        2 * self.layers * self.kv_heads * self.head * size_of::<f32>()
    }
}

struct Keys<'a> {
    header: &'a GgufHeader,
    family: Architecture,
}

impl Keys<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.family.name())
    }

    fn wrong(&self, name: &str, found: String) -> LoadError {
        LoadError::Value { key: self.key(name), found }
    }

    fn optional_size(&self, name: &str, most: u64) -> Result<Option<usize>, LoadError> {
        let key = self.key(name);
        let Some(value) = self.header.get(&key) else { return Ok(None) };
        let size = value.unsigned().ok_or(LoadError::Key(key))?;
        match usize::try_from(size) {
            Ok(fitting) if (1..=most).contains(&size) => Ok(Some(fitting)),
            _ => Err(self.wrong(name, size.to_string())),
        }
    }

    fn size(&self, name: &str, most: u64) -> Result<usize, LoadError> {
        self.optional_size(name, most)?.ok_or_else(|| LoadError::Key(self.key(name)))
    }

    fn positive(&self, name: &str, default: f64) -> Result<f64, LoadError> {
        let key = self.key(name);
        let Some(value) = self.header.get(&key) else { return Ok(default) };
        match value.float() {
            Some(number) if number > 0.0 => Ok(number),
            _ => Err(self.wrong(name, format!("{value:?}"))),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the file holds single precision")]
    fn epsilon(&self) -> Result<f32, LoadError> {
        const NAME: &str = "attention.layer_norm_rms_epsilon";
        let key = self.key(NAME);
        match self.header.require(&key, MetadataValue::float)? {
            number if (0.0..=0.1).contains(&number) => Ok(number as f32),
            number => Err(self.wrong(NAME, number.to_string())),
        }
    }

    fn scale(&self) -> Result<f64, LoadError> {
        match self.header.get(&self.key("rope.scaling.type")).and_then(MetadataValue::text) {
            None | Some("none") => Ok(1.0),
            Some("linear") => self.positive("rope.scaling.factor", 1.0),
            Some(other) => Err(LoadError::Feature(format!("rotary scaling of the kind `{other}`"))),
        }
    }

    fn refuse_unsupported(&self) -> Result<(), LoadError> {
        let experts =
            self.header.get(&self.key("expert_count")).and_then(MetadataValue::unsigned).unwrap_or(0);
        if experts > 0 {
            return Err(LoadError::Feature("a mixture of experts".to_owned()));
        }
        if self
            .header
            .get(&self.key("attention.sliding_window"))
            .and_then(MetadataValue::unsigned)
            .unwrap_or(0)
            > 0
        {
            return Err(LoadError::Feature("a sliding window of attention".to_owned()));
        }
        Ok(())
    }
}

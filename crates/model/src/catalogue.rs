//! What is known of models by their names, before anybody is asked: windows, prices, abilities (spec: agent §2).
//!
//! The catalogue is data in the source ([`remote`], [`open`]), each row with the month it was looked up. A row stands
//! for a name and for every name that begins with it and goes on with a new word (`gpt-5.1` for `gpt-5.1-2025-11-13`,
//! not for `gpt-5.10`); the longest such row counts. A price is claimed for the model and its dated releases alone:
//! what a `-lite` of tomorrow costs is not known. What a provider's own row does not know is looked for among the
//! open families, whose weights anybody may serve: those rows have no price, because it is the server's. Whoever knows
//! better says so in the configuration.

mod open;
mod remote;
mod wants;

pub use wants::Wants;

use serde::{Deserialize, Serialize};

use crate::prices::Prices;
use crate::quirks::Quirks;

/// Window of a model of which nothing is known, in tokens.
pub const ASSUMED_WINDOW: u32 = 8_192;
/// Longest answer of a model of which nothing is known, in tokens.
pub const ASSUMED_OUTPUT: u32 = 2_048;

/// How a model cuts text into tokens, as far as an estimate needs to know (spec: context §4).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tokenizer {
    /// OpenAI since GPT-4o, and its open models.
    OpenaiO200k,
    /// OpenAI before.
    OpenaiCl100k,
    /// Llama 3 and those that took its vocabulary over.
    Llama,
    /// Qwen 2 and later.
    Qwen,
    /// Anthropic.
    Claude,
    /// Gemini and Gemma.
    Gemini,
    /// The embedded demo.
    Smollm,
    /// Nothing is known.
    #[default]
    Unknown,
}

impl Tokenizer {
    /// The name, as it stands in manifests and settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiO200k => "openai_o200k",
            Self::OpenaiCl100k => "openai_cl100k",
            Self::Llama => "llama",
            Self::Qwen => "qwen",
            Self::Claude => "claude",
            Self::Gemini => "gemini",
            Self::Smollm => "smollm",
            Self::Unknown => "unknown",
        }
    }
}

/// What is known of a model or of a family of models.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry {
    /// Its name, or how the names of its family begin.
    pub name: &'static str,
    /// Window in tokens: what input and output may have together.
    pub window: u32,
    /// Longest answer in tokens.
    pub output: u32,
    /// What it costs, where that is known.
    pub prices: Option<Prices>,
    /// Whether it can call tools.
    pub tools: bool,
    /// Whether it takes pictures.
    pub images: bool,
    /// Whether it takes sound.
    pub audio: bool,
    /// Whether it continues a given beginning of its answer.
    pub prefill: bool,
    /// Whether it keeps to a schema.
    pub structured: bool,
    /// What it wants otherwise than other models of its provider.
    pub wants: Wants,
    /// Whether one request gives several choices.
    pub n: bool,
    /// Whether it gives log-probabilities.
    pub logprobs: bool,
    /// The cheap model of the same provider that is used for small work.
    pub fast: Option<&'static str>,
    /// How it cuts text into tokens.
    pub tokenizer: Tokenizer,
    /// The month in which this was looked up, as `2026-10`.
    pub as_of: &'static str,
}

impl Entry {
    /// A model that calls tools, takes text alone and is otherwise as plain as can be.
    const fn plain(
        name: &'static str,
        window: u32,
        output: u32,
        tokenizer: Tokenizer,
        as_of: &'static str,
    ) -> Self {
        Self {
            name,
            window,
            output,
            prices: None,
            tools: true,
            images: false,
            audio: false,
            prefill: false,
            structured: true,
            wants: Wants::NOTHING,
            n: false,
            logprobs: false,
            fast: None,
            tokenizer,
            as_of,
        }
    }

    /// What its provider wants, with what this model wants otherwise.
    #[must_use]
    pub fn quirks(&self, provider: Quirks) -> Quirks {
        self.wants.over(provider)
    }
}

/// Models of one provider.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// The provider's name, as in [`crate::ModelInfo::provider`].
    pub provider: &'static str,
    /// Other names it goes by.
    pub also: &'static [&'static str],
    /// The one that is proposed to whoever has not chosen.
    pub usual: Option<&'static str>,
    /// Its models.
    pub entries: &'static [Entry],
}

/// What is known of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// The row.
    pub entry: Entry,
    /// Whose model it is: a provider's, or `open` for weights anybody may serve.
    pub family: &'static str,
    /// Whether it is asked at its maker's own address: then the row speaks for the API, too.
    pub own: bool,
}

/// The name of the family of open weights.
pub const OPEN: &str = "open";

/// Every family, the providers before the open weights.
pub fn families() -> impl Iterator<Item = Family> {
    remote::FAMILIES.iter().copied().chain([Family {
        provider: OPEN,
        also: &[],
        usual: None,
        entries: open::ENTRIES,
    }])
}

/// What is known of a model that a provider has under this name. Gateways name models by their makers
/// (`anthropic/claude-…`); OpenRouter, which passes their prices on, is looked through with the price, others without.
pub fn find(provider: &str, name: &str) -> Option<Known> {
    let provider = provider.to_ascii_lowercase();
    let name = name.to_ascii_lowercase();
    if let Some(family) = family(&provider)
        && let Some(entry) = longest(family.entries, &name)
    {
        return Some(Known { entry, family: family.provider, own: true });
    }
    let (model, variant) =
        name.split_once(':').map_or((name.as_str(), None), |(model, variant)| (model, Some(variant)));
    if let Some((maker, of_maker)) = model.split_once('/')
        && let Some(family) = family(maker.trim_start_matches('~'))
        && let Some(entry) = longest(family.entries, of_maker)
    {
        // `:free`, `:nitro` and their like have prices of their own.
        let prices = entry.prices.filter(|_| provider == "openrouter" && variant.is_none());
        return Some(Known { entry: Entry { prices, ..entry }, family: family.provider, own: false });
    }
    let bare = model.rsplit('/').next().unwrap_or(model);
    let whole = variant.map_or_else(|| bare.to_owned(), |variant| format!("{bare}:{variant}"));
    let entry = longest(open::ENTRIES, &whole).or_else(|| longest(open::ENTRIES, bare))?;
    Some(Known { entry, family: OPEN, own: false })
}

/// The providers that have a model of this name of their own, for a name without a provider.
pub fn makers(name: &str) -> Vec<&'static str> {
    let name = name.to_ascii_lowercase();
    let families = remote::FAMILIES.iter().filter(|family| longest(family.entries, &name).is_some());
    families.map(|family| family.provider).collect()
}

/// The family of a provider.
pub fn family(provider: &str) -> Option<&'static Family> {
    let is_called = |family: &&Family| family.provider == provider || family.also.contains(&provider);
    remote::FAMILIES.iter().find(is_called)
}

/// The longest row a name goes on from. A variant of a model has a price of its own, which its row does not know.
fn longest(entries: &[Entry], name: &str) -> Option<Entry> {
    // Gateways write `claude-opus-4.5` for what its maker calls `claude-opus-4-5`.
    let dashed = name.replace('.', "-");
    let rest = |entry: &Entry| {
        let name = if entry.name.starts_with("claude") { &dashed } else { name };
        name.strip_prefix(entry.name).filter(|rest| goes_on(entry.name, rest)).map(str::to_owned)
    };
    let found = entries.iter().filter_map(|entry| Some((entry, rest(entry)?)));
    let (entry, rest) = found.max_by_key(|(entry, _)| entry.name.len())?;
    let prices = entry.prices.filter(|_| is_release(&rest));
    Some(Entry { prices, ..*entry })
}

/// Whether what stands behind a row's name leaves it the same model or family: `gpt-5` does not stand for `gpt-5.1`,
/// nor `claude-opus-5` for `claude-opus-5-6`.
fn goes_on(row: &str, rest: &str) -> bool {
    if row.ends_with(['-', ':', '.']) || rest.is_empty() {
        return true;
    }
    let Some(word) = rest.strip_prefix(['-', ':', '@', '_']) else { return false };
    let word = word.split(['-', '_']).next().unwrap_or(word);
    let is_version = word.len() <= 2 && !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    !(rest.starts_with('-') && is_version)
}

/// Whether what stands behind a row's name only says which release of the model it is.
fn is_release(rest: &str) -> bool {
    let says_no_more = |word: &str| {
        word.bytes().all(|b| b.is_ascii_digit())
            || matches!(word, "latest" | "preview" | "exp" | "beta" | "it")
    };
    rest.split(['-', '@']).all(says_no_more)
}

#[cfg(test)]
mod tests;

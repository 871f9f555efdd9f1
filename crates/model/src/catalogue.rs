//! What is known of models by their names, before anybody is asked: windows, prices, abilities (spec: agent §2).
//!
//! The catalogue is the file `catalogue.json`, each row with the month it was looked up; `cargo xtask catalogue` compares
//! it with a public list. A row stands for a name and for every name that begins with it and goes on with a new word (`gpt-5.1` for `gpt-5.1-2025-11-13`,
//! not for `gpt-5.10`); the longest such row counts. A price is claimed for the model and its dated releases alone:
//! what a `-lite` of tomorrow costs is not known. What a provider's own row does not know is looked for among the
//! open families, whose weights anybody may serve: those rows have no price, because it is the server's. Whoever knows
//! better says so in the configuration.

mod quirk_overrides;

pub use quirk_overrides::QuirkOverrides;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::prices::Prices;
use crate::providers::Abilities;
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
    OpenaiCl100k,
    /// Llama 3 and those that took its vocabulary over.
    Llama,
    /// Qwen 2 and later.
    Qwen,
    Claude,
    Gemini,
    Smollm,
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
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Entry {
    /// Name of the model, or how the names of the family begin.
    pub name: &'static str,
    /// The month in which this was looked up, as `2026-10`.
    pub as_of: &'static str,
    /// Window in tokens: what input and output may have together.
    pub window: u32,
    /// Longest answer in tokens.
    pub output: u32,
    /// What it costs, where that is known.
    pub prices: Option<Prices>,
    #[serde(default)]
    pub abilities: Abilities,
    /// What it wants otherwise than other models of its provider.
    #[serde(default)]
    pub wants: QuirkOverrides,
    /// The cheap model of the same provider that is used for small work.
    pub fast: Option<&'static str>,
    #[serde(default)]
    pub tokenizer: Tokenizer,
}

impl Entry {
    /// What its provider wants, with what this model wants otherwise.
    #[must_use]
    pub fn quirks(&self, provider: Quirks) -> Quirks {
        self.wants.over(provider)
    }

    /// Whether it speaks for every name that begins with its own, and for no model of that very name.
    pub fn is_family(&self) -> bool {
        self.name.ends_with(['-', ':', '.'])
    }
}

#[derive(Debug, Deserialize)]
pub struct Family {
    /// The provider's name, as in [`crate::ModelInfo::provider`].
    pub provider: &'static str,
    /// Other names it goes by.
    pub also: Vec<&'static str>,
    /// The one that is proposed to whoever has not chosen.
    pub usual: Option<&'static str>,
    #[serde(rename = "models")]
    pub entries: Vec<Entry>,
}

/// The file, parsed when it is first asked for.
#[derive(Debug, Default, Deserialize)]
struct Catalogue {
    /// The month of its last comparison with a public list.
    date: &'static str,
    /// The providers whose models are known.
    families: Vec<Family>,
    /// Families of open weights, in the spellings of Hugging Face, Ollama and llama.cpp. Their windows are what the
    /// weights were made for; a server may give them less. They have no price: it is the server's.
    open: Vec<Entry>,
}

/// A test rules out that the file cannot be parsed.
static CATALOGUE: LazyLock<Catalogue> =
    LazyLock::new(|| serde_json::from_str(include_str!("../catalogue.json")).unwrap_or_default());

/// The month in which the catalogue was last compared with a public list, as `2026-10`.
pub fn date() -> &'static str {
    CATALOGUE.date
}

/// What is known of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CatalogueMatch {
    pub entry: Entry,
    /// Whose model it is: a provider's, or `open` for weights anybody may serve.
    pub family: &'static str,
    /// Whether it is asked at its maker's own address: then the row speaks for the API, too.
    pub own: bool,
}

/// The name of the family of open weights.
pub const OPEN: &str = "open";

/// What is known of a model that a provider has under this name. Gateways name models by their makers
/// (`anthropic/claude-…`); OpenRouter, which passes their prices on, is looked through with the price, others without.
pub fn find(provider: &str, name: &str) -> Option<CatalogueMatch> {
    let provider = provider.to_ascii_lowercase();
    let name = name.to_ascii_lowercase();
    if let Some(family) = family(&provider)
        && let Some(entry) = longest(&family.entries, &name)
    {
        return Some(CatalogueMatch { entry, family: family.provider, own: true });
    }
    let (model, variant) =
        name.split_once(':').map_or((name.as_str(), None), |(model, variant)| (model, Some(variant)));
    if let Some((maker, of_maker)) = model.split_once('/')
        && let Some(family) = family(maker.trim_start_matches('~'))
        && let Some(entry) = longest(&family.entries, of_maker)
    {
        // `:free`, `:nitro` and their like have prices of their own.
        let prices = entry.prices.filter(|_| provider == "openrouter" && variant.is_none());
        return Some(CatalogueMatch {
            entry: Entry { prices, ..entry },
            family: family.provider,
            own: false,
        });
    }
    let bare = model.rsplit('/').next().unwrap_or(model);
    let whole = variant.map_or_else(|| bare.to_owned(), |variant| format!("{bare}:{variant}"));
    let entry = longest(&CATALOGUE.open, &whole).or_else(|| longest(&CATALOGUE.open, bare))?;
    Some(CatalogueMatch { entry, family: OPEN, own: false })
}

/// The providers that have a model of this name of their own, for a name without a provider.
pub fn makers(name: &str) -> Vec<&'static str> {
    let name = name.to_ascii_lowercase();
    let families = CATALOGUE.families.iter().filter(|family| longest(&family.entries, &name).is_some());
    families.map(|family| family.provider).collect()
}

/// The family of a provider.
pub fn family(provider: &str) -> Option<&'static Family> {
    let is_called = |family: &&Family| family.provider == provider || family.also.contains(&provider);
    CATALOGUE.families.iter().find(is_called)
}

/// Whether two names mean the same model: by another route (`anthropic/claude-opus-4.5` at a gateway), or as one of
/// its releases (`gpt-5.1-2025-11-13`).
pub fn is_same(one: &str, other: &str) -> bool {
    one == other || identity(one) == identity(other)
}

/// The name of a model's row, for its releases too; of what the catalogue does not know, the name without its maker.
fn identity(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let (path, variant) = name.split_once(':').map_or((&*name, ""), |(path, variant)| (path, variant));
    // Behind a maker's name it is how a gateway serves the model; elsewhere it is the size of the weights.
    let bare = path.rsplit('/').next().unwrap_or(path);
    let name = if path.contains('/') || variant.is_empty() { bare } else { &name };
    let all = CATALOGUE.families.iter().map(|family| &family.entries).chain([&CATALOGUE.open]);
    let rows = all.flatten().filter(|row| !row.is_family()).filter_map(|row| Some((row, rest(row, name)?)));
    let row = rows.max_by_key(|(row, _)| row.name.len());
    let row = row.filter(|(_, rest)| is_release(rest)).map(|(row, _)| row.name);
    row.unwrap_or(name).rsplit('/').next().unwrap_or_default().replace('.', "-")
}

/// The longest row a name goes on from. A variant of a model has a price of its own, which its row does not know.
fn longest(entries: &[Entry], name: &str) -> Option<Entry> {
    let found = entries.iter().filter_map(|entry| Some((entry, rest(entry, name)?)));
    let (entry, rest) = found.max_by_key(|(entry, _)| entry.name.len())?;
    let prices = entry.prices.filter(|_| is_release(rest));
    Some(Entry { prices, ..*entry })
}

/// What stands in a name behind a row's, where the row stands for the name. Gateways write `claude-opus-4.5` for what
/// its maker calls `claude-opus-4-5`.
fn rest<'n>(entry: &Entry, name: &'n str) -> Option<&'n str> {
    let same = |(row, named): (u8, u8)| {
        row == named || (row == b'-' && named == b'.' && entry.name.starts_with("claude"))
    };
    let begins = name.len() >= entry.name.len() && entry.name.bytes().zip(name.bytes()).all(same);
    let rest = name.get(entry.name.len()..).filter(|_| begins)?;
    goes_on(entry.name, rest).then_some(rest)
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

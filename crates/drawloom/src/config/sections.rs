//! The configuration as types. Defaults are not here but in the table, so that there is one of each.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::table::{KEYS, default};
use commands::CommandError;
use commands::settings::{Agent, Preset};
use model::quirks::{LimitField, PrefillForm, ThinkingForm};
use model::{DialectName, Money, Thinking, Tokenizer};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, Visitor};

/// The whole configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// `[model]`.
    pub(crate) model: Model,
    /// `[providers.NAME]`.
    #[serde(default)]
    pub(crate) providers: BTreeMap<String, Provider>,
    /// `[models."PROVIDER/NAME"]`.
    #[serde(default)]
    pub(crate) models: BTreeMap<String, ModelSection>,
    /// `[budget]`.
    pub(crate) budget: Budget,
    /// `[presets.NAME]`.
    #[serde(default)]
    pub(crate) presets: BTreeMap<String, Preset>,
    /// `[agents.NAME]`.
    #[serde(default)]
    pub(crate) agents: BTreeMap<String, Agent>,
    /// `[store]`.
    pub(crate) store: Store,
    /// `[limits]`.
    pub(crate) limits: Limits,
    /// `[context]`.
    pub(crate) context: Context,
    /// `[log]`.
    pub(crate) log: Log,
}

/// `[model]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Model {
    /// The model used when none is named.
    pub(crate) default: Option<String>,
    /// Whether downloads are allowed unasked.
    pub(crate) auto_pull: bool,
    /// Who is asked when one cannot be.
    pub(crate) fallbacks: Vec<String>,
    /// Whether a remote one of them may take over from a local one.
    pub(crate) fallback_remote: bool,
    /// Where old requests may go although they went elsewhere.
    pub(crate) replay: Vec<String>,
    /// How much is thought, where nothing else says so.
    pub(crate) think: Option<Thinking>,
}

/// `[budget]`, in dollars.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Budget {
    /// Of a turn.
    pub(crate) turn: f64,
    /// Of a day.
    pub(crate) day: f64,
    /// Of a month.
    pub(crate) month: f64,
}

impl Budget {
    /// In the agent's own form.
    pub(crate) fn of_the_agent(&self) -> agent::Budget {
        let money = Money::from_dollars;
        agent::Budget { turn: money(self.turn), day: money(self.day), month: money(self.month) }
    }
}

/// `[models."PROVIDER/NAME"]`: what the owner knows better than the catalogue.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelSection {
    pub(crate) window: Option<u32>,
    pub(crate) output_limit: Option<u32>,
    /// Prices in dollars a million tokens.
    pub(crate) price_input: Option<f64>,
    pub(crate) price_output: Option<f64>,
    pub(crate) price_cache_read: Option<f64>,
    pub(crate) price_cache_write: Option<f64>,
    pub(crate) tools: Option<bool>,
    pub(crate) images: Option<bool>,
    pub(crate) audio: Option<bool>,
    pub(crate) structured: Option<bool>,
    pub(crate) prefill: Option<bool>,
    pub(crate) honours_n: Option<bool>,
    pub(crate) logprobs: Option<bool>,
    pub(crate) completion_endpoint: Option<bool>,
    pub(crate) fast: Option<String>,
    pub(crate) tokenizer: Option<Tokenizer>,
    pub(crate) thinking_form: Option<ThinkingForm>,
}

/// `[providers.NAME]`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Provider {
    pub(crate) base_url: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) dialect: Option<DialectName>,
    pub(crate) place: Option<Place>,
    pub(crate) key_env: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) insecure_http: bool,
    pub(crate) proxy: Option<String>,
    pub(crate) window: Option<u32>,
    pub(crate) output_limit: Option<u32>,
    pub(crate) honours_n: Option<bool>,
    pub(crate) prefill: Option<bool>,
    pub(crate) prefill_form: Option<PrefillForm>,
    pub(crate) logprobs: Option<bool>,
    pub(crate) completion_endpoint: Option<bool>,
    pub(crate) tools: Option<bool>,
    pub(crate) images: Option<bool>,
    pub(crate) limit_field: Option<LimitField>,
    pub(crate) thinking_form: Option<ThinkingForm>,
    pub(crate) connect_timeout: u64,
    pub(crate) first_byte_timeout: u64,
    pub(crate) idle_timeout: u64,
}

impl Provider {
    /// A provider without a section; of a server that is none, nothing is known but its address.
    ///
    /// # Errors
    /// When the table and this type disagree, which a test rules out.
    pub(crate) fn at(base_url: Option<&str>) -> Result<Self, CommandError> {
        let section = "providers.NAME";
        let keys = KEYS.iter().filter_map(|key| key.path.strip_prefix(section)?.strip_prefix('.'));
        let defaults = keys.filter_map(|key| Some((key.to_owned(), default(&format!("{section}.{key}"))?)));
        let mut table: toml::Table = defaults.collect();
        table.extend(base_url.map(|url| ("base_url".to_owned(), url.into())));
        table.try_into().map_err(|error: toml::de::Error| CommandError::new("config", 2, error.message(), ""))
    }
}

impl fmt::Debug for Provider {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

pub(crate) use model::Place;

/// `[store]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Store {
    /// Open a home on a network file system.
    pub(crate) allow_network_fs: bool,
}

/// `[limits]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    /// Least free space.
    pub(crate) free_space: Bytes,
    /// Largest home without a notice.
    pub(crate) home_warn: Bytes,
    /// Longest log of the store without a notice.
    pub(crate) wal: Bytes,
    /// How long one search may take, in seconds.
    pub(crate) search: f64,
    /// Most rows of a page.
    pub(crate) show_all: u32,
    /// Most bytes of a node.
    pub(crate) node: Bytes,
    /// Most bytes of a text that is taken in.
    pub(crate) paste: Bytes,
    /// Most pixels of a picture that is decoded.
    pub(crate) picture: u32,
    /// How long what is piped in may stay silent, in seconds.
    pub(crate) input_wait: f64,
}

impl Limits {
    /// Those that commands keep.
    pub(crate) fn of_commands(&self) -> commands::settings::Limits {
        commands::settings::Limits {
            free_space: self.free_space.0,
            search: Duration::from_secs_f64(self.search),
            show_all: self.show_all as usize,
            node: self.node.0,
            paste: self.paste.0,
            picture: u64::from(self.picture),
            input_wait: Duration::from_secs_f64(self.input_wait),
        }
    }
}

/// `[context]`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    /// What becomes of a boot file that changes in mid-session.
    pub(crate) changed_files: context::ChangedFiles,
    /// How a conversation that is too long is cut.
    pub(crate) strategy: context::Strategy,
}

/// `[log]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Log {
    /// What is logged.
    pub(crate) level: String,
}

/// A size in bytes, written as a number or as `256 MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) u64);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Size;
        impl Visitor<'_> for Size {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"256 MiB\"")
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Bytes, E> {
                u64::try_from(number).map(Bytes).map_err(|_| E::custom("a size is not negative"))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Bytes, E> {
                super::key::bytes(text).map(Bytes).ok_or_else(|| E::custom("not a size"))
            }
        }
        deserializer.deserialize_any(Size).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use toml::{Table, Value};

    use super::super::key::{Key, Kind};
    use super::super::layers::Layers;
    use super::super::table::KEYS;
    use super::*;

    fn sample(kind: Kind) -> Value {
        match kind {
            Kind::Text | Kind::Variable => Value::String("X".into()),
            Kind::Address => Value::String("http://localhost:1".into()),
            Kind::Flag => Value::Boolean(true),
            Kind::Whole(from, _) => Value::Integer(from.max(1)),
            Kind::Number(from, _) => Value::Float(from),
            Kind::Bytes(..) => Value::String("1 MiB".into()),
            Kind::Choice(words) => Value::String(words[0].into()),
            Kind::Texts => Value::Array(vec![Value::String("x".into())]),
        }
    }

    #[test]
    fn every_key_of_the_table_is_a_field_of_a_section() {
        for key in KEYS {
            let home = tempfile::tempdir().unwrap();
            let variable = format!("DRAWLOOM_{}", key.path.replace('.', "__").to_uppercase());
            let value = sample(key.kind).to_string();
            let layers = Layers::read(home.path(), [(variable.into(), value.into())].into_iter(), &[]);
            assert_eq!(layers.problems(), [], "{}", key.path);
            layers.config().unwrap_or_else(|error| panic!("{}: {error}", key.path));
        }
    }

    #[test]
    fn every_field_of_presets_and_agents_is_a_key_of_the_table() {
        // The names a type knows are what it says when it meets another.
        let known = |section: &'static str, message: String| {
            assert!(message.starts_with("unknown field `strange`, expected one of `"), "{message}");
            for name in message.split('`').skip(3).step_by(2) {
                let is_key = |key: &Key| key.around_name() == Some((section, name));
                assert!(KEYS.iter().any(is_key), "{section}: {name}");
            }
        };
        let strange: Table = "strange = 1".parse().unwrap();
        known("presets", strange.clone().try_into::<Preset>().unwrap_err().message().to_owned());
        known("agents", strange.clone().try_into::<Agent>().unwrap_err().message().to_owned());
        known("models", strange.clone().try_into::<ModelSection>().unwrap_err().message().to_owned());
        known("providers", strange.try_into::<Provider>().unwrap_err().message().to_owned());
    }
}

//! The providers that are known by name: where they are and what they want, one row each.
//!
//! The rows are the file `providers.json`: what one says is what the dialects, the client and the configuration go by,
//! and a section of the configuration may say otherwise. A row speaks for a provider's models as far as nothing is
//! known of them; where servers differ from model to model it says what all of them take.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::dialect::DialectName;
use crate::model::ModelPlace;
use crate::quirks::Quirks;

/// What is known of a provider.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub struct ProviderRow {
    /// Name in the configuration and before the `/` of a model.
    pub name: &'static str,
    pub base_url: &'static str,
    /// The environment variable its key is usually kept in; none for a server that wants no key.
    pub key_env: Option<&'static str>,
    pub dialect: DialectName,
    pub place: ModelPlace,
    /// What its requests look like.
    pub quirks: Quirks,
    /// What its models can do, as far as nothing more is known of them.
    pub abilities: Abilities,
    /// Where it tells the windows of its models, if its list of models does not.
    pub probe: Option<Probe>,
    /// The address where such a server listens on this machine unless told otherwise.
    pub detect: Option<&'static str>,
}

/// What a model can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Abilities {
    /// Whether it continues a given beginning of its answer.
    pub prefill: bool,
    /// Whether it continues raw text.
    pub completion_endpoint: bool,
    pub logprobs: bool,
    /// Whether one request gives `n` choices.
    pub honours_n: bool,
    pub tools: bool,
    /// Whether it takes pictures; a provider that does may still have blind models.
    pub images: bool,
    pub audio: bool,
    /// Whether it keeps to a schema.
    pub structured: bool,
}

impl Default for Abilities {
    /// A model that talks and calls tools, of which nothing else is certain.
    fn default() -> Self {
        Self {
            prefill: false,
            completion_endpoint: false,
            logprobs: false,
            honours_n: false,
            tools: true,
            images: false,
            audio: false,
            structured: true,
        }
    }
}

/// Where a server tells the windows of its models beside the list of models.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub struct Probe {
    /// The path that is asked (GET), below the server's address without its version.
    pub path: &'static str,
    /// JSON pointer of the list with an entry a model; none, if the answer speaks for every model.
    pub list: Option<&'static str>,
    /// JSON pointers of a model's name in its entry; the first that is there holds.
    #[serde(default)]
    pub id: Vec<&'static str>,
    /// JSON pointers of the window in tokens in an entry, or in the answer; the first that is there holds.
    pub window: Vec<&'static str>,
}

/// A test rules out that the file cannot be parsed.
static PROVIDERS: LazyLock<Vec<ProviderRow>> =
    LazyLock::new(|| serde_json::from_str(include_str!("../providers.json")).unwrap_or_default());

/// Every provider that is known by name.
pub fn providers() -> &'static [ProviderRow] {
    &PROVIDERS
}

/// The row of a provider by its name.
pub fn provider(name: &str) -> Option<&'static ProviderRow> {
    PROVIDERS.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Endpoint;

    #[test]
    fn every_row_is_found_by_its_name_and_no_name_stands_twice() {
        assert_eq!(PROVIDERS.len(), 11);
        for (at, row) in PROVIDERS.iter().enumerate() {
            assert_eq!(PROVIDERS.iter().position(|other| other.name == row.name), Some(at), "{}", row.name);
            assert_eq!(provider(row.name), Some(row));
        }
        assert_eq!(provider("nobody"), None);
    }

    #[test]
    fn addresses_may_be_used_as_they_stand_and_say_where_text_goes() {
        for row in providers() {
            let endpoint = Endpoint::parse(row.base_url, false).unwrap();
            assert_eq!(endpoint.place(), row.place, "{}", row.name);
            assert!(
                endpoint.join("x").unwrap().as_str().starts_with(row.base_url),
                "{} names its version",
                row.name
            );
            assert_eq!(row.key_env.is_some(), row.place == ModelPlace::Remote, "{}", row.name);
        }
    }

    #[test]
    fn only_servers_on_this_machine_are_looked_for() {
        for row in providers() {
            let listens = row.detect.map(|url| Endpoint::parse(url, false).unwrap());
            assert_eq!(listens.is_some(), row.place == ModelPlace::Local, "{}", row.name);
            let base = Endpoint::parse(row.base_url, false).unwrap();
            assert!(listens.is_none_or(|listens| listens == base), "{}", row.name);
        }
    }

    #[test]
    fn pointers_of_probes_are_pointers() {
        for probe in PROVIDERS.iter().filter_map(|row| row.probe.as_ref()) {
            let mut pointers = probe.list.iter().chain(&probe.id).chain(&probe.window);
            assert!(pointers.all(|pointer| pointer.starts_with('/')), "{}", probe.path);
            assert!(!probe.path.starts_with('/') && probe.list.is_some() != probe.id.is_empty());
        }
    }
}

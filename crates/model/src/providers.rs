//! The providers that are known by name: where they are and what they want, one row each.
//!
//! Facts only, no code: what a row says is what the dialects, the client and the configuration go by, and a
//! section of the configuration may say otherwise. A row speaks for a provider's models as far as nothing is known of
//! them; where servers differ from model to model it says what all of them take.

use crate::dialect::DialectName;
use crate::model::Place;
use crate::quirks::{
    CacheForm, CallIds, InstructionRole, LeastEffort, LimitField, PrefillForm, Quirks, SchemaForm,
    ThinkingBack, ThinkingForm,
};

/// What is known of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderRow {
    /// Its name in the configuration and before the `/` of a model.
    pub name: &'static str,
    /// Its base URL.
    pub base_url: &'static str,
    /// The environment variable its key is usually kept in; none for a server that wants no key.
    pub key_env: Option<&'static str>,
    /// The dialect of conversations.
    pub dialect: DialectName,
    /// Where text goes.
    pub place: Place,
    /// What its requests look like.
    pub quirks: Quirks,
    /// What its models can do, as far as nothing more is known of them.
    pub abilities: Abilities,
    /// Where it tells the windows of its models, if its list of models does not.
    pub probe: Option<Probe>,
    /// The address where such a server listens on this machine unless told otherwise.
    pub detect: Option<&'static str>,
}

/// What models can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// Whether they continue a given beginning of their answer.
    pub prefill: bool,
    /// Whether they continue raw text.
    pub completion_endpoint: bool,
    /// Whether they give log-probabilities.
    pub logprobs: bool,
    /// Whether one request gives `n` choices.
    pub honours_n: bool,
    /// Whether they can call tools.
    pub tools: bool,
    /// Whether their API takes pictures; a model may still be blind.
    pub images: bool,
}

/// Where a server tells the windows of its models beside the list of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// The path that is asked (GET), below the server's address without its version.
    pub path: &'static str,
    /// JSON pointer of the list with an entry a model; none, if the answer speaks for every model.
    pub list: Option<&'static str>,
    /// JSON pointers of a model's name in its entry; the first that is there holds.
    pub id: &'static [&'static str],
    /// JSON pointers of the window in tokens in an entry, or in the answer; the first that is there holds.
    pub window: &'static [&'static str],
}

/// A model that can talk and use tools, of which nothing else is certain.
const TALKS: Abilities = Abilities {
    prefill: false,
    completion_endpoint: false,
    logprobs: false,
    honours_n: false,
    tools: true,
    images: true,
};

/// Every provider that is known by name.
pub const PROVIDERS: &[ProviderRow] = &[
    // Chat completions are there as well, for a section that names them: the quirks are those of both.
    ProviderRow {
        name: "openai",
        base_url: "https://api.openai.com/v1",
        key_env: Some("OPENAI_API_KEY"),
        dialect: DialectName::OpenAiResponses,
        place: Place::Remote,
        quirks: Quirks {
            limit: LimitField::MaxCompletionTokens,
            instructions: InstructionRole::Developer,
            thinking: ThinkingForm::Effort,
            cache: CacheForm::Key,
            min_p: false,
            seed: false,
            chat_beside: true,
            ..Quirks::COMPATIBLE
        },
        abilities: Abilities { logprobs: true, honours_n: true, ..TALKS },
        probe: None,
        detect: None,
    },
    ProviderRow {
        name: "anthropic",
        base_url: "https://api.anthropic.com/v1",
        key_env: Some("ANTHROPIC_API_KEY"),
        dialect: DialectName::AnthropicMessages,
        place: Place::Remote,
        quirks: Quirks {
            thinking: ThinkingForm::Budget,
            cache: CacheForm::Marks,
            min_p: false,
            seed: false,
            ..Quirks::COMPATIBLE
        },
        abilities: TALKS,
        probe: None,
        detect: None,
    },
    ProviderRow {
        name: "gemini",
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        key_env: Some("GEMINI_API_KEY"),
        dialect: DialectName::Gemini,
        place: Place::Remote,
        quirks: Quirks { thinking: ThinkingForm::Budget, min_p: false, ..Quirks::COMPATIBLE },
        abilities: TALKS,
        probe: None,
        detect: None,
    },
    // Its completions put a prompt into the model's template: nothing is continued raw.
    ProviderRow {
        name: "ollama",
        base_url: "http://127.0.0.1:11434/v1",
        key_env: None,
        dialect: DialectName::OpenAiChat,
        place: Place::Local,
        quirks: Quirks {
            thinking: ThinkingForm::Effort,
            least_effort: LeastEffort::None,
            min_p: false,
            ..Quirks::COMPATIBLE
        },
        abilities: Abilities { prefill: true, ..TALKS },
        // What a model could take is far more than what it was loaded with, and what is beyond that is cut off
        // without a word: only the loaded window is to be believed.
        probe: Some(Probe {
            path: "api/ps",
            list: Some("/models"),
            id: &["/model", "/name"],
            window: &["/context_length"],
        }),
        detect: Some("http://127.0.0.1:11434"),
    },
    ProviderRow {
        name: "llamacpp",
        base_url: "http://127.0.0.1:8080/v1",
        key_env: None,
        dialect: DialectName::OpenAiChat,
        place: Place::Local,
        quirks: Quirks { thinking: ThinkingForm::TemplateSwitch, ..Quirks::COMPATIBLE },
        abilities: Abilities { prefill: true, completion_endpoint: true, logprobs: true, ..TALKS },
        probe: Some(Probe {
            path: "props",
            list: None,
            id: &[],
            window: &["/default_generation_settings/n_ctx"],
        }),
        detect: Some("http://127.0.0.1:8080"),
    },
    ProviderRow {
        name: "lmstudio",
        base_url: "http://127.0.0.1:1234/v1",
        key_env: None,
        dialect: DialectName::OpenAiChat,
        place: Place::Local,
        quirks: Quirks { min_p: false, ..Quirks::COMPATIBLE },
        abilities: Abilities { completion_endpoint: true, ..TALKS },
        probe: Some(Probe {
            path: "api/v0/models",
            list: Some("/data"),
            id: &["/id"],
            window: &["/loaded_context_length", "/max_context_length"],
        }),
        detect: Some("http://127.0.0.1:1234"),
    },
    ProviderRow {
        name: "vllm",
        base_url: "http://127.0.0.1:8000/v1",
        key_env: None,
        dialect: DialectName::OpenAiChat,
        place: Place::Local,
        quirks: Quirks {
            prefill: PrefillForm::ContinueFinalMessage,
            thinking: ThinkingForm::TemplateSwitch,
            ..Quirks::COMPATIBLE
        },
        abilities: Abilities {
            prefill: true,
            completion_endpoint: true,
            logprobs: true,
            honours_n: true,
            ..TALKS
        },
        probe: None,
        detect: Some("http://127.0.0.1:8000"),
    },
    ProviderRow {
        name: "openrouter",
        base_url: "https://openrouter.ai/api/v1",
        key_env: Some("OPENROUTER_API_KEY"),
        dialect: DialectName::OpenAiChat,
        place: Place::Remote,
        quirks: Quirks {
            thinking: ThinkingForm::ReasoningObject,
            thinking_back: ThinkingBack::Details,
            cache: CacheForm::Marks,
            ..Quirks::COMPATIBLE
        },
        abilities: Abilities { prefill: true, ..TALKS },
        probe: None,
        detect: None,
    },
    ProviderRow {
        name: "groq",
        base_url: "https://api.groq.com/openai/v1",
        key_env: Some("GROQ_API_KEY"),
        dialect: DialectName::OpenAiChat,
        place: Place::Remote,
        quirks: Quirks {
            limit: LimitField::MaxCompletionTokens,
            thinking: ThinkingForm::Effort,
            min_p: false,
            ..Quirks::COMPATIBLE
        },
        abilities: Abilities { prefill: true, ..TALKS },
        probe: None,
        detect: None,
    },
    ProviderRow {
        name: "deepseek",
        base_url: "https://api.deepseek.com/v1",
        key_env: Some("DEEPSEEK_API_KEY"),
        dialect: DialectName::OpenAiChat,
        place: Place::Remote,
        quirks: Quirks {
            // Taken below its beta address alone, so that it must be switched on together with that.
            prefill: PrefillForm::PrefixFlag,
            thinking: ThinkingForm::SwitchAndEffort,
            thinking_back: ThinkingBack::Content,
            schema: SchemaForm::Object,
            min_p: false,
            seed: false,
            ..Quirks::COMPATIBLE
        },
        abilities: Abilities { logprobs: true, images: false, ..TALKS },
        probe: None,
        detect: None,
    },
    ProviderRow {
        name: "mistral",
        base_url: "https://api.mistral.ai/v1",
        key_env: Some("MISTRAL_API_KEY"),
        dialect: DialectName::OpenAiChat,
        place: Place::Remote,
        quirks: Quirks {
            prefill: PrefillForm::PrefixFlag,
            call_ids: CallIds::Nine,
            min_p: false,
            seed: false,
            stream_options: false,
            ..Quirks::COMPATIBLE
        },
        abilities: Abilities { prefill: true, ..TALKS },
        probe: None,
        detect: None,
    },
];

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
        for (at, row) in PROVIDERS.iter().enumerate() {
            assert_eq!(PROVIDERS.iter().position(|other| other.name == row.name), Some(at), "{}", row.name);
            assert_eq!(provider(row.name), Some(row));
        }
        assert_eq!(provider("nobody"), None);
    }

    #[test]
    fn addresses_may_be_used_as_they_stand_and_say_where_text_goes() {
        for row in PROVIDERS {
            let endpoint = Endpoint::parse(row.base_url, false).unwrap();
            assert_eq!(endpoint.place(), row.place, "{}", row.name);
            assert!(
                endpoint.join("x").unwrap().as_str().starts_with(row.base_url),
                "{} names its version",
                row.name
            );
            assert_eq!(row.key_env.is_some(), row.place == Place::Remote, "{}", row.name);
        }
    }

    #[test]
    fn only_servers_on_this_machine_are_looked_for() {
        for row in PROVIDERS {
            let listens = row.detect.map(|url| Endpoint::parse(url, false).unwrap());
            assert_eq!(listens.is_some(), row.place == Place::Local, "{}", row.name);
            let base = Endpoint::parse(row.base_url, false).unwrap();
            assert!(listens.is_none_or(|listens| listens == base), "{}", row.name);
        }
    }

    #[test]
    fn pointers_of_probes_are_pointers() {
        for probe in PROVIDERS.iter().filter_map(|row| row.probe) {
            let mut pointers = probe.list.iter().chain(probe.id).chain(probe.window);
            assert!(pointers.all(|pointer| pointer.starts_with('/')), "{}", probe.path);
            assert!(!probe.path.starts_with('/') && probe.list.is_some() != probe.id.is_empty());
        }
    }
}

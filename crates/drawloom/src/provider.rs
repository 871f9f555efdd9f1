//! A provider as it is reached: the owner's section over the row of the provider it is like, and what is known of its
//! models from the configuration, the catalogue and the row, in that order.

use std::borrow::Cow;
use std::time::Duration;

use commands::CommandError;
use model::catalogue::{self, ASSUMED_OUTPUT, ASSUMED_WINDOW, CatalogueMatch};
use model::connection::place_of;
use model::endpoint::Endpoint;
use model::providers::{Abilities, ProviderRow};
use model::{
    ApiKey, Connection, DialectName, HttpModel, ModelInfo, ModelPlace, Prices, Quirks, Rates, SetupError,
    SourceKind, Timeouts,
};
use text::terminal::one_line;

use crate::config::{Config, ModelSection, Provider, loose_key};
use crate::variable::held;

/// Window and longest answer of a remote model nobody knows: the least that providers have had for years.
const ASSUMED_REMOTE: (u32, u32) = (128_000, 16_384);

/// A provider, with everything that is known of how to reach it.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedProvider<'a> {
    /// Name before the `/` of a model.
    pub(crate) name: Cow<'a, str>,
    /// What the owner says of it; the defaults without a section.
    pub(crate) section: Cow<'a, Provider>,
    /// The provider it is, or is like.
    pub(crate) row: Option<&'static ProviderRow>,
}

impl<'a> ResolvedProvider<'a> {
    /// The provider of a name, if the configuration or the program knows one.
    pub(crate) fn of(config: &'a Config, name: &'a str) -> Option<Self> {
        let section = config.providers.get(name);
        let row = model::provider(section.and_then(|section| section.kind.as_deref()).unwrap_or(name));
        let section = match section {
            Some(section) => Cow::Borrowed(section),
            None if row.is_some() => Cow::Owned(Provider::default()),
            None => return None,
        };
        Some(Self { name: Cow::Borrowed(name), section, row })
    }

    /// A server of which nothing is known but its address.
    pub(crate) fn at(name: String, base_url: &str) -> Self {
        let section = Provider { base_url: Some(base_url.to_owned()), ..Provider::default() };
        Self { name: Cow::Owned(name), section: Cow::Owned(section), row: None }
    }

    pub(crate) fn base_url(&self) -> Option<&str> {
        self.section.base_url.as_deref().or(self.row.map(|row| row.base_url))
    }

    /// Whether it is at the address it is known for.
    fn is_at_home(&self) -> bool {
        self.row.is_some_and(|row| self.base_url() == Some(row.base_url))
    }

    /// Where text goes; remote, if that cannot be told.
    pub(crate) fn place(&self) -> ModelPlace {
        let of_url = || self.base_url().and_then(|url| place_of(url).ok());
        self.section.place.or_else(of_url).unwrap_or(ModelPlace::Remote)
    }

    /// Host of the provider, with the port where one is named.
    pub(crate) fn host(&self) -> Option<String> {
        Some(Endpoint::parse(self.base_url()?, true).ok()?.host())
    }

    pub(crate) fn dialect(&self) -> DialectName {
        let of_row = self.row.map(|row| match row.dialect {
            // What is like OpenAI elsewhere serves chat completions; whether responses as well, its owner knows.
            DialectName::OpenAiResponses if !self.is_at_home() => DialectName::OpenAiChat,
            dialect => dialect,
        });
        self.section.dialect.or(of_row).unwrap_or(DialectName::OpenAiChat)
    }

    /// The key, if it is there: the environment before `keys.toml` (spec: cli §5).
    pub(crate) fn known_key(&self) -> Option<String> {
        let named = self.section.key_env.as_deref().and_then(held);
        named.or_else(|| self.section.key.clone())
    }

    /// The variable its key is usually in, at the address it is known for: to another address it does not go.
    pub(crate) fn usual_key(&self) -> Option<&'static str> {
        self.row.filter(|_| self.is_at_home()).and_then(|row| row.key_env)
    }

    /// The key, if it needs one. A key that merely lies in the environment is used when `named` says that the owner
    /// named this provider in this call.
    ///
    /// # Errors
    /// When there is none, or it was not named.
    pub(crate) fn key(&self, named: bool) -> Result<Option<String>, CommandError> {
        if let Some(key) = self.known_key() {
            return Ok(Some(key));
        }
        if self.section.loose_key.is_some() {
            return Err(loose_key(&format!("providers.{}.key", self.name)));
        }
        if let Some(variable) = &self.section.key_env {
            return key_in(variable, &self.name).map(Some);
        }
        let Some(variable) = self.usual_key() else { return Ok(None) };
        // An empty variable holds none: to name it would help nobody.
        if named || held(variable).is_none() {
            return key_in(variable, &self.name).map(Some);
        }
        Err(CommandError::refused(
            "key_not_named",
            format!("the key in {variable} is used only when it is named"),
            format!(
                "`drawloom config set providers.{}.key_env {variable}`, or name the model with --model",
                self.name
            ),
        ))
    }

    /// How to reach it.
    ///
    /// # Errors
    /// When its address is missing.
    pub(crate) fn connection(&self, key: Option<String>) -> Result<Connection, CommandError> {
        let base_url = self.base_url().ok_or_else(|| {
            CommandError::usage(
                format!("provider {} has no address", self.name),
                format!("`drawloom config set providers.{}.base_url URL`", self.name),
            )
        })?;
        let section = &self.section;
        Ok(Connection {
            key: key.map(ApiKey::new),
            insecure_http: section.insecure_http,
            proxy: section.proxy.clone(),
            timeouts: Timeouts {
                connect: Duration::from_secs(section.connect_timeout.0),
                first_byte: Duration::from_secs(section.first_byte_timeout.0),
                idle: Duration::from_secs(section.idle_timeout.0),
            },
            ..Connection::new(base_url)
        })
    }

    /// A model of it, with the window its server `told`, if it was asked.
    ///
    /// # Errors
    /// When it cannot be reached by configuration.
    pub(crate) fn model(
        &self,
        config: &Config,
        name: &str,
        key: Option<String>,
        told: Option<u32>,
    ) -> Result<HttpModel, CommandError> {
        let connection = self.connection(key)?;
        if self.section.place.is_none() {
            place_of(&connection.base_url).map_err(|error| self.setup(&error.into()))?;
        }
        let model = HttpModel::new(self.info_told(config, name, told), self.quirks(config, name), connection);
        model
            .and_then(|model| {
                if self.counts_tokens() {
                    return model.counting();
                }
                Ok(if self.is_openai(name) { model.counting_by_name() } else { model })
            })
            .map_err(|error| self.setup(&error))
    }

    /// Whether its server may be asked to count tokens: one on this machine that can, or of which nothing is known.
    fn counts_tokens(&self) -> bool {
        let can = self.row.is_none_or(|row| matches!(row.name, "llamacpp" | "vllm"));
        can && self.place() == ModelPlace::Local
    }

    /// Whether a model of it is one of OpenAI's, whose vocabularies are known.
    fn is_openai(&self, name: &str) -> bool {
        self.row.is_some_and(|row| match row.name {
            "openai" => true,
            "openrouter" => name.starts_with("openai/"),
            _ => false,
        })
    }

    fn setup(&self, error: &SetupError) -> CommandError {
        CommandError::new(
            error.code(),
            2,
            format!("provider {}: {error}", one_line(&self.name)),
            error.hint(),
        )
    }

    /// What the catalogue knows of a model.
    pub(crate) fn known(&self, name: &str) -> Option<CatalogueMatch> {
        catalogue::find(self.row.map_or(&*self.name, |row| row.name), name)
    }

    /// What its API can do: as its row says, else as a compatible server's does of which nothing is known.
    fn api(&self) -> Abilities {
        let compatible =
            Abilities { completion_endpoint: true, logprobs: true, images: true, ..Abilities::default() };
        self.row.map_or(compatible, |row| row.abilities)
    }

    /// What its requests look like: as its row says, else as the dialect's maker wants them.
    fn base_quirks(&self) -> Quirks {
        let maker = match self.dialect() {
            DialectName::AnthropicMessages => model::provider("anthropic"),
            DialectName::Gemini => model::provider("gemini"),
            _ => None,
        };
        self.row.or(maker).map(|row| row.quirks).unwrap_or_default()
    }

    /// What a model of it wants: as the owner says, else as the catalogue does of a model at its maker's, else as its
    /// provider's row does.
    fn quirks(&self, config: &Config, name: &str) -> Quirks {
        let owner = config.models.get(&format!("{}/{name}", self.name));
        let thinking = owner.and_then(|owner| owner.thinking_form).or(self.section.thinking_form);
        let base = self.base_quirks();
        let quirks = match self.known(name) {
            Some(known) if known.own => known.entry.quirks(base),
            _ => base,
        };
        Quirks {
            limit: self.section.limit_field.unwrap_or(quirks.limit),
            prefill: self.section.prefill_form.unwrap_or(quirks.prefill),
            thinking: thinking.unwrap_or(quirks.thinking),
            ..quirks
        }
    }

    /// The window the owner says a model of it has.
    pub(crate) fn said_window(&self, config: &Config, name: &str) -> Option<u32> {
        let owner = config.models.get(&format!("{}/{name}", self.name));
        owner.and_then(|owner| owner.window).or(self.section.window)
    }

    /// What is known of a model of it.
    pub(crate) fn info(&self, config: &Config, name: &str) -> ModelInfo {
        self.info_told(config, name, None)
    }

    /// [`Self::info`] with the window the server told.
    fn info_told(&self, config: &Config, name: &str, told: Option<u32>) -> ModelInfo {
        let known = self.known(name);
        let (place, section) = (self.place(), &*self.section);
        let abilities = self.api();
        let full = format!("{}/{name}", self.name);
        let owner = config.models.get(&full).cloned().unwrap_or_default();
        let entry = known.map(|known| known.entry);
        let own = known.is_some_and(|known| known.own);
        let (model, of_maker) =
            (entry.map(|entry| entry.abilities), entry.filter(|_| own).map(|entry| entry.abilities));
        // Asked at its maker's, the model's row speaks for both; elsewhere the server must be able to as well.
        let can = |api: bool, model: Option<bool>| match model {
            Some(model) if own => model,
            Some(model) => api && model,
            None => api,
        };
        let assumed = match (place, self.row) {
            (ModelPlace::Remote, Some(_)) => ASSUMED_REMOTE,
            _ => (ASSUMED_WINDOW, ASSUMED_OUTPUT),
        };
        let said = self.said_window(config, name).or(told);
        let window = said.or(entry.map(|entry| entry.window)).unwrap_or(assumed.0);
        let output = owner.output_limit.or(section.output_limit).or(match place {
            // Weights have no limit of their own: what a request may keep of the window is theirs.
            ModelPlace::Local => Some((window / 4).max(1)),
            ModelPlace::Remote => entry.map(|entry| entry.output),
        });
        ModelInfo {
            provider: self.name.clone().into_owned(),
            name: name.to_owned(),
            dialect: self.dialect(),
            place,
            kind: if place == ModelPlace::Local { SourceKind::Local } else { SourceKind::Remote },
            window,
            output_limit: output.unwrap_or(assumed.1).min(window),
            honours_n: owner.honours_n.or(section.honours_n).unwrap_or_else(|| {
                // Responses have one answer each, whatever the model can.
                self.dialect() != DialectName::OpenAiResponses
                    && can(abilities.honours_n, of_maker.map(|model| model.honours_n))
            }),
            prefill: owner
                .prefill
                .or(section.prefill)
                .unwrap_or_else(|| can(abilities.prefill, model.map(|model| model.prefill))),
            logprobs: owner
                .logprobs
                .or(section.logprobs)
                .unwrap_or_else(|| can(abilities.logprobs, of_maker.map(|model| model.logprobs))),
            completion_endpoint: self.dialect().has_completions()
                && owner
                    .completion_endpoint
                    .or(section.completion_endpoint)
                    .unwrap_or(abilities.completion_endpoint),
            tools: owner
                .tools
                .or(section.tools)
                .unwrap_or_else(|| can(abilities.tools, model.map(|model| model.tools))),
            // A local model nobody knows is taken to be blind; a remote one is asked, and says so.
            images: owner.images.or(section.images).unwrap_or_else(|| match model {
                Some(model) => can(abilities.images, Some(model.images)),
                None => abilities.images && place == ModelPlace::Remote,
            }),
            audio: owner.audio.unwrap_or_else(|| model.is_some_and(|model| model.audio)),
            structured: owner.structured.unwrap_or_else(|| model.is_none_or(|model| model.structured)),
            fast: owner.fast.clone().or_else(|| entry.filter(|_| own)?.fast.map(str::to_owned)),
            prices: prices(&owner, place, entry.and_then(|entry| entry.prices)),
            tokenizer: owner.tokenizer.or(entry.map(|entry| entry.tokenizer)).unwrap_or_default(),
            // A family speaks for its new models, not for a name that looks misspelt.
            window_assumed: said.is_none()
                && (entry.is_none() || crate::model_names::doubt(config, &full).is_some()),
            host: self.host(),
            thinks: self.quirks(config, name).thinks(self.dialect()),
        }
    }
}

/// What a model costs: what the owner says, nothing for what runs here, else what the catalogue knows.
fn prices(owner: &ModelSection, place: ModelPlace, known: Option<Prices>) -> Option<Prices> {
    let known = if place == ModelPlace::Local { Some(Prices::FREE) } else { known };
    // Micro-dollars; the table of keys keeps the number within their range.
    let rate = |dollars: f64| (dollars * 1e6).round() as u64;
    let (Some(input), Some(output)) = (owner.price_input, owner.price_output) else { return known };
    Some(Prices::flat(Rates {
        input: rate(input),
        cache_read: rate(owner.price_cache_read.unwrap_or(input)),
        cache_write: rate(owner.price_cache_write.unwrap_or(input)),
        output: rate(output),
    }))
}

fn key_in(variable: &str, provider: &str) -> Result<String, CommandError> {
    held(variable).ok_or_else(|| {
        CommandError::refused(
            "no_key",
            format!(
                "there is no key for {provider}: {variable} is {}",
                match std::env::var_os(variable) {
                    Some(_) => "empty",
                    None => "not set",
                }
            ),
            format!("give it one: `drawloom config set providers.{provider}.key`, or set {variable}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use model::ThinkingControl;
    use model::quirks::ThinkingForm;

    use super::*;
    use crate::config::Layers;

    fn config(text: &str) -> Config {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config.toml"), text).unwrap();
        Layers::read(home.path(), std::iter::empty(), &[]).config().unwrap()
    }

    fn info(config: &Config, provider: &str, name: &str) -> ModelInfo {
        ResolvedProvider::of(config, provider).unwrap().info(config, name)
    }

    #[test]
    fn a_known_provider_needs_no_section_and_its_model_is_looked_up() {
        let config = config("");
        let found = info(&config, "anthropic", "claude-opus-4-5");
        assert_eq!((found.place, found.dialect), (ModelPlace::Remote, DialectName::AnthropicMessages));
        assert_eq!((found.window, found.images, found.window_assumed), (200_000, true, false));
        assert_eq!(found.host.as_deref(), Some("api.anthropic.com"));
        assert!(found.prices.is_some() && found.fast.is_some());
        assert!(ResolvedProvider::of(&config, "nobody").is_none());
    }

    #[test]
    fn what_runs_here_is_free_and_what_is_not_known_is_not() {
        let config = config("[providers.far]\nbase_url = \"https://far.test/v1\"\n");
        let local = info(&config, "ollama", "qwen3:8b");
        assert_eq!(
            (local.place, local.prices, local.window),
            (ModelPlace::Local, Some(Prices::FREE), 40_960)
        );
        let own = info(&config, "ollama", "of-my-own");
        assert_eq!((own.window, own.window_assumed), (ASSUMED_WINDOW, true));
        assert_eq!(info(&config, "far", "qwen3-8b").prices, None);
        assert_eq!(info(&config, "openai", "gpt-99").prices, None);
    }

    #[test]
    fn the_owner_knows_best_of_the_model_then_of_the_provider() {
        let config = config(
            "[providers.openai]\nwindow = 5000\ntools = false\n\
             [models.\"openai/gpt-5.1\"]\nwindow = 6000\nprice_input = 2\nprice_output = 0.5\nimages = false\n",
        );
        let found = info(&config, "openai", "gpt-5.1");
        assert_eq!((found.window, found.tools, found.images), (6_000, false, false));
        let rates = found.prices.unwrap().base;
        assert_eq!((rates.input, rates.cache_read, rates.output), (2_000_000, 2_000_000, 500_000));
        assert_eq!(info(&config, "openai", "gpt-5").window, 5_000);
    }

    #[test]
    fn a_server_of_ones_own_may_be_like_a_known_one() {
        let config = config("[providers.box]\nbase_url = \"http://127.0.0.1:9\"\nkind = \"vllm\"\n");
        let found = info(&config, "box", "m");
        assert!(found.prefill && found.honours_n);
        assert!(!info(&config, "lmstudio", "m").prefill, "control");
    }

    #[test]
    fn a_server_of_ones_own_that_knows_no_raw_text_is_not_asked_to_continue_any() {
        for dialect in ["anthropic_messages", "gemini"] {
            let config = config(&format!(
                "[providers.mine]\nbase_url = \"https://mine.test\"\ndialect = \"{dialect}\"\n\
                 completion_endpoint = true\n"
            ));
            assert!(!info(&config, "mine", "m").completion_endpoint, "{dialect}");
            let quirks = ResolvedProvider::of(&config, "mine").unwrap().quirks(&config, "m");
            assert!(!quirks.min_p, "{dialect} knows none");
        }
        let plain = config("[providers.mine]\nbase_url = \"https://mine.test\"\n");
        assert!(info(&plain, "mine", "m").completion_endpoint, "control");
    }

    #[test]
    fn a_model_wants_what_the_owner_says_then_the_catalogue_then_its_provider() {
        let config = config(
            "[providers.gw]\nbase_url = \"https://gw.test/v1\"\nkind = \"openrouter\"\n\
             [models.\"anthropic/claude-opus-4-7\"]\nthinking_form = \"none\"\n\
             [providers.ollama]\nthinking_form = \"none\"\n",
        );
        let quirks = |provider: &str, name: &str| {
            ResolvedProvider::of(&config, provider).unwrap().quirks(&config, name)
        };
        assert_eq!(quirks("anthropic", "claude-sonnet-4-5").thinking, ThinkingForm::Budget);
        assert_eq!(quirks("anthropic", "claude-opus-5").thinking, ThinkingForm::Level);
        assert_eq!(quirks("anthropic", "claude-opus-4-7").thinking, ThinkingForm::None);
        assert_eq!(quirks("ollama", "qwen3:8b").thinking, ThinkingForm::None);
        let thinks = |provider: &str, name: &str| info(&config, provider, name).thinks;
        assert_eq!(thinks("anthropic", "claude-opus-4-7"), ThinkingControl::Untold);
        assert_eq!(thinks("anthropic", "claude-opus-5"), ThinkingControl::Told);
        assert_eq!(thinks("anthropic", "claude-opus-5-5"), ThinkingControl::Always);
        assert_eq!(thinks("openai", "gpt-4o"), ThinkingControl::Untold);
        // Elsewhere a gateway has its own ways, whatever the model's maker wants.
        assert_eq!(quirks("gw", "anthropic/claude-opus-5-5").thinking, ThinkingForm::ReasoningObject);
        assert_eq!(thinks("gw", "anthropic/claude-opus-5-5"), ThinkingControl::Told);
    }

    #[test]
    fn openai_is_asked_for_responses_unless_the_owner_wants_chat() {
        let model = |text: &str| info(&config(text), "openai", "gpt-4.1");
        let found = model("");
        assert_eq!((found.dialect, found.honours_n), (DialectName::OpenAiResponses, false));
        let chat = model("[providers.openai]\ndialect = \"openai_chat\"\n");
        assert_eq!((chat.dialect, chat.honours_n, chat.logprobs), (DialectName::OpenAiChat, true, true));
        let like = config("[providers.proxy]\nbase_url = \"http://127.0.0.1:9/v1\"\nkind = \"openai\"\n");
        assert_eq!(
            info(&like, "proxy", "gpt-4.1").dialect,
            DialectName::OpenAiChat,
            "nobody said that it can"
        );
        assert_eq!(info(&config(""), "openai", "gpt-5.1").thinks, ThinkingControl::Told);
    }

    #[test]
    fn a_key_in_the_environment_goes_to_the_known_address_alone() {
        let config = config("[providers.openai]\nbase_url = \"https://elsewhere.test/v1\"\n");
        let moved = ResolvedProvider::of(&config, "openai").unwrap();
        assert_eq!(moved.usual_key(), None);
        let home = ResolvedProvider::of(&config, "groq").unwrap();
        assert_eq!(home.usual_key(), Some("GROQ_API_KEY"));
        assert_eq!(home.key(false).unwrap_err().code, "no_key", "none lies there");
    }
}

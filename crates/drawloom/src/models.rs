//! Models by name: of a configured provider, of an address, or of a script (spec: agent §2, cli §3).
//!
//! A key that merely lies in the environment is not used: it takes a section that names it, or `--model` with
//! that provider. So no text goes to a paid service because of a variable that was meant for another program.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use agent::fallback::FoundModel;
use commands::CommandError;
use commands::app::Models;
use model::script::ScriptOptions;
use model::{DialectName, ListedModel, Model, ModelInfo, ModelPlace, ScriptModel};
use text::terminal::one_line;
use workspace::{Accept, FileArgument, StoreGuard};

use crate::config::{self, Config};
use crate::context_windows::ContextWindows;
use crate::detect;
use crate::embedded::{self, Embedded};
use crate::model_address::{address, host};
use crate::model_commands::served;
use crate::model_names;
use crate::provider::ResolvedProvider;
use crate::terminal::Terminal;

/// The largest script, in bytes.
const MAX_SCRIPT_BYTES: u64 = 256 << 20;
/// How the name of a script begins.
const SCRIPT: &str = "script:";
/// How the name of a script begins where an answer's model is shown.
const SHOWN_SCRIPT: &str = "script/";
/// What to do about a script that cannot be read.
const SCRIPT_HINT: &str = "script:FILE takes JSON lines, script:echo needs no file";

/// The models of a configuration.
pub(crate) struct ConfiguredModels {
    config: Config,
    named: Option<String>,
    /// The files of the home's store.
    guard: StoreGuard,
    /// What may be done for embedded models; without, none are known.
    embedded: Option<Embedded>,
    /// Who is told of a name that looks misspelt.
    person: Option<Arc<Terminal>>,
    /// What local servers say of windows; without, none is asked.
    windows: Option<ContextWindows>,
    /// A script counts its lines per process, so that each name is one model.
    made: Mutex<HashMap<String, Arc<Slot>>>,
}

/// The model of one name. It is locked while it is made, and those who want the same one wait for it; nobody else does.
type Slot = Mutex<Option<Arc<dyn Model>>>;

impl ConfiguredModels {
    /// The models of a configuration; `named` is what `--model` says.
    pub(crate) fn new(config: Config, named: Option<&str>) -> Self {
        Self {
            config,
            named: named.map(str::to_owned),
            guard: StoreGuard::new(),
            embedded: None,
            person: None,
            windows: None,
            made: Mutex::default(),
        }
    }

    /// Opens no file of `guard` as a script or a model.
    pub(crate) fn guarding(mut self, guard: StoreGuard) -> Self {
        self.guard = guard;
        self
    }

    pub(crate) fn with(mut self, embedded: Embedded) -> Self {
        self.embedded = Some(embedded);
        self
    }

    /// Tells `person` of names that look misspelt.
    pub(crate) fn telling(mut self, person: Arc<Terminal>) -> Self {
        self.person = Some(person);
        self
    }

    /// Asks local servers for the windows of their models; without `windows`, none is asked.
    pub(crate) fn asking(mut self, windows: Option<ContextWindows>) -> Self {
        self.windows = windows;
        self
    }

    /// Whether a name means a model, without asking or fetching anything.
    ///
    /// # Errors
    /// As [`Models::find`].
    pub(crate) fn check(&self, name: &str) -> Result<(), CommandError> {
        self.make(name).map(drop)
    }

    /// Whether a name can be that of a model by its form and its provider. Nothing is opened, asked or fetched.
    ///
    /// # Errors
    /// As [`Self::full`], and for an address without a model.
    pub(crate) fn can_be(&self, name: &str) -> Result<(), CommandError> {
        let is_file = self.script_of(name).is_some() || name.starts_with(embedded::FILE);
        if is_file || embedded::known(name).is_some() || address(name)?.is_some() {
            return Ok(());
        }
        self.full(name).map(drop)
    }

    fn make(&self, name: &str) -> Result<Arc<dyn Model>, CommandError> {
        if let Some(script) = self.script_of(name) {
            return self.script(script);
        }
        if let Some(path) = name.strip_prefix(embedded::FILE) {
            return embedded::file(Path::new(path), &self.guard, self.person.as_deref());
        }
        if let (Some(weights), Some(embedded)) = (embedded::known(name), &self.embedded) {
            let named = self.named.as_deref().and_then(embedded::known);
            return embedded.model(weights, named == Some(weights));
        }
        if let Some((address, model)) = address(name)? {
            let reached = ResolvedProvider::at(host(&address), &address);
            let told = self.told(&reached, (name, model))?;
            return Ok(Arc::new(reached.model(&self.config, model, None, told)?));
        }
        let full = self.full(name).map_err(|error| self.with_full_names(name, error))?;
        let (provider, model) = full.split_once('/').unwrap_or_default();
        let reached = ResolvedProvider::of(&self.config, provider).ok_or_else(|| self.unknown(name))?;
        let key = reached.key(self.names_provider(provider))?;
        let told = self.told(&reached, (&full, model))?;
        Ok(Arc::new(reached.model(&self.config, model, key, told)?))
    }

    /// The script a name means: as it is typed, or as it is recorded and shown, where no provider is called so.
    fn script_of<'n>(&self, name: &'n str) -> Option<&'n str> {
        let shown =
            || name.strip_prefix(SHOWN_SCRIPT).filter(|_| !self.config.providers.contains_key("script"));
        name.strip_prefix(SCRIPT).or_else(shown)
    }

    fn slot(&self, name: &str) -> Arc<Slot> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(made.entry(name.to_owned()).or_default())
    }

    fn script(&self, name: &str) -> Result<Arc<dyn Model>, CommandError> {
        let mut options = ScriptOptions::default();
        if let Some(owner) = self.config.models.get(&format!("{SHOWN_SCRIPT}{name}")) {
            options.window = owner.window.unwrap_or(options.window);
            options.output_limit = owner.output_limit.unwrap_or(options.output_limit);
        }
        if name == "echo" {
            return Ok(Arc::new(ScriptModel::echo(options)));
        }
        let path = Path::new(name);
        let timeout = self.config.limits.of_commands().input_wait;
        let file = FileArgument::open(path, &self.guard, Accept::RegularOrPipe, timeout);
        let file = file.map_err(|error| CommandError {
            hint: SCRIPT_HINT.into(),
            ..CommandError::file_argument(&error)
        })?;
        let bytes = file.read_at_most(MAX_SCRIPT_BYTES);
        let bytes = bytes.map_err(|problem| CommandError::file("cannot read", path, &problem.into()))?;
        let text = String::from_utf8(bytes).map_err(|_| bad_script(&format!("{name} is not UTF-8 text")))?;
        let model =
            ScriptModel::from_text(name, &text, options).map_err(|error| bad_script(&error.to_string()))?;
        Ok(Arc::new(model))
    }

    /// The window a local server says a model has of which the owner did not say it; `full` is the model's full name.
    ///
    /// # Errors
    /// As [`ContextWindows::told`].
    fn told(
        &self,
        reached: &ResolvedProvider<'_>,
        (full, model): (&str, &str),
    ) -> Result<Option<u32>, CommandError> {
        let unsaid =
            reached.place() == ModelPlace::Local && reached.said_window(&self.config, model).is_none();
        let Some(windows) = self.windows.as_ref().filter(|_| unsaid) else { return Ok(None) };
        match &self.person {
            Some(person) => person.while_window_is_asked(full, || windows.told(reached, model)),
            None => windows.told(reached, model),
        }
    }

    /// What is known of a model of a provider, without asking anybody and without its key; none of another kind.
    pub(crate) fn info(&self, name: &str) -> Option<ModelInfo> {
        let reached = match address(name).ok()? {
            Some((address, model)) => {
                return Some(ResolvedProvider::at(host(&address), &address).info(&self.config, model));
            }
            None => self.full(name).ok()?,
        };
        let (provider, model) = reached.split_once('/')?;
        Some(ResolvedProvider::of(&self.config, provider)?.info(&self.config, model))
    }

    /// The models that the server of a model lists, or why it lists none.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub(crate) fn listed(
        &self,
        name: &str,
        info: &ModelInfo,
    ) -> Result<Result<Vec<ListedModel>, String>, CommandError> {
        let reached = match address(name)? {
            Some((address, _)) => Some(ResolvedProvider::at(host(&address), &address)),
            None => ResolvedProvider::of(&self.config, &info.provider),
        };
        reached.map_or_else(|| Ok(Ok(Vec::new())), |reached| detect::listed(&reached))
    }

    /// Whether the server of a model that lists this one alone answers with it to every name: llama.cpp does, which
    /// lists a file.
    pub(crate) fn answers_to_any_name(&self, info: &ModelInfo, listed: &str) -> bool {
        let reached = ResolvedProvider::of(&self.config, &info.provider);
        let row = reached.and_then(|reached| reached.row);
        row.map_or(listed.ends_with(".gguf"), |row| row.name == "llamacpp")
    }

    /// A name with its provider. A name alone is that of the catalogue's, where one provider has such a model.
    ///
    /// # Errors
    /// When there is no such provider, or there are several.
    pub(crate) fn full<'n>(&self, name: &'n str) -> Result<Cow<'n, str>, CommandError> {
        if let Some((provider, model)) = name.split_once('/') {
            let known = self.config.providers.contains_key(provider) || model::provider(provider).is_some();
            return if known && !model.is_empty() {
                Ok(Cow::Borrowed(name))
            } else {
                Err(self.unknown(name))
            };
        }
        let mut candidates: Vec<String> = model_names::of_bare(&self.config, name);
        match (candidates.pop(), candidates.is_empty()) {
            (Some(only), true) => Ok(Cow::Owned(only)),
            (Some(last), false) => {
                candidates.push(last);
                Err(CommandError::new(
                    "ambiguous",
                    2,
                    format!("{} is a model of several providers", one_line(name)),
                    format!("write one of {}", candidates.join(", ")),
                ))
            }
            (None, _) => Err(self.unknown(name)),
        }
    }

    /// The error of a name without its provider, with the full names that end so.
    fn with_full_names(&self, name: &str, error: CommandError) -> CommandError {
        let ends = crate::model_commands::that_end_so(&self.config, name);
        if ends.is_empty() {
            return error;
        }
        CommandError { hint: format!("did you mean {}?", ends.join(" or ")), ..error }
    }

    /// Whether `--model` names this provider.
    fn names_provider(&self, provider: &str) -> bool {
        let named = self.named.as_deref().and_then(|named| self.full(named).ok());
        named.is_some_and(|named| named.split_once('/').is_some_and(|(named, _)| named == provider))
    }

    fn unknown(&self, name: &str) -> CommandError {
        let hint = match model_names::nearest(&self.config, name) {
            Some(meant) => format!("did you mean {meant}? `drawloom model list --all` has every name"),
            None => {
                let known = model_names::providers(&self.config).join(", ");
                match name.split_once('/').filter(|(provider, _)| config::is_name(provider)) {
                    Some((provider, _)) => format!(
                        "define it with the address of its server, such as `drawloom config set \
                         providers.{provider}.base_url http://127.0.0.1:8080/v1`; known providers: {known}"
                    ),
                    None => format!(
                        "known providers: {known}; write PROVIDER/NAME, http://HOST:PORT/NAME or script:FILE"
                    ),
                }
            }
        };
        CommandError::not_found("provider for the model", name, hint)
    }
}

impl ConfiguredModels {
    /// A model of a list of the owner's, where it is named in full.
    fn in_full(&self, name: &str) -> FoundModel {
        let by_name = name.contains('/') || name.contains(':') || embedded::known(name).is_some();
        let found = match by_name {
            true => self.find(Some(name)).map_err(|error| format!("{}: {}", error.message, error.hint)),
            false => Err("write it in full, as PROVIDER/NAME".to_owned()),
        };
        (name.to_owned(), found)
    }
}

impl Models for ConfiguredModels {
    fn about(&self, model: &ModelInfo) -> Option<String> {
        if model.dialect != DialectName::Embedded {
            return None;
        }
        Some(match embedded::known(&model.name) {
            Some(weights) => weights.about.to_owned(),
            None => format!("{}: a model inside this program; it cannot act", one_line(&model.name)),
        })
    }

    fn fallbacks(&self) -> Vec<FoundModel> {
        self.config.model.fallbacks.iter().map(|name| self.in_full(name)).collect()
    }

    fn of_subagents(&self) -> Vec<FoundModel> {
        self.config.model.subagents.iter().map(|name| self.in_full(name)).collect()
    }

    fn fallback_remote(&self) -> bool {
        self.config.model.fallback_remote
    }

    fn subagent_remote(&self) -> bool {
        self.config.model.subagent_remote
    }

    fn names(&self) -> Vec<String> {
        let presets = self.config.presets.values().filter_map(|preset| preset.model.clone());
        let agents = self.config.agents.values().filter_map(|agent| agent.model.clone());
        let named = self.named.iter().chain(&self.config.model.default).cloned();
        let providers =
            model_names::providers(&self.config).into_iter().map(|provider| format!("{provider}/"));
        let catalogue = model_names::catalogue(&self.config).map(|(name, _)| name);
        let mut names: Vec<String> =
            named.chain(presets).chain(agents).chain(providers).chain(catalogue).collect();
        names.sort();
        names.dedup();
        names
    }

    fn check_served(&self, name: &str) -> Result<(), CommandError> {
        if embedded::known(name).is_some() || name.starts_with(embedded::FILE) {
            return Ok(());
        }
        let info = self.info(name).filter(|_| !name.contains('/'));
        let full = info.map_or_else(|| name.to_owned(), |info| info.full_name());
        served(self, &full, "/model", &|_| {}).map(drop)
    }

    fn find(&self, name: Option<&str>) -> Result<Arc<dyn Model>, CommandError> {
        let name = name.or(self.named.as_deref()).or(self.config.model.default.as_deref());
        // What was said yes to stands under no name.
        let slot = self.slot(name.unwrap_or_default());
        let mut made = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = made.as_ref() {
            return Ok(Arc::clone(model));
        }
        let model = match name {
            Some(name) => self.make(name)?,
            None => {
                let embedded = self.embedded.as_ref();
                let here = embedded.and_then(Embedded::here);
                embedded.and_then(Embedded::offer).unwrap_or_else(|| Err(none_chosen(here)))?
            }
        };
        if let (Some(person), Some(doubt)) =
            (&self.person, model_names::doubt(&self.config, &model.info().full_name()))
        {
            person.notice(&doubt);
        }
        Ok(Arc::clone(made.insert(model)))
    }
}

/// The error where no model is chosen; `here` are weights on this machine.
fn none_chosen(here: Option<&weights::Weights>) -> CommandError {
    match here {
        Some(weights) => CommandError::usage(
            format!("no model is chosen. On this machine: {}", weights.name),
            format!("choose it with `drawloom model use {}`, or name one with --model", weights.name),
        ),
        None => CommandError::usage(
            "no model is chosen",
            "name one with --model PROVIDER/NAME, choose a default with `drawloom model use PROVIDER/NAME`, or \
             download the small demo model with --model smollm2",
        ),
    }
}

fn bad_script(why: &str) -> CommandError {
    CommandError::new("bad_script", 2, one_line(why), SCRIPT_HINT)
}

#[cfg(test)]
mod tests {
    use model::SourceKind;

    use super::*;

    #[test]
    fn plain_http_goes_to_this_machine_alone() {
        let home = tempfile::tempdir().unwrap();
        let config = config::Layers::read(home.path(), std::iter::empty(), &[]).config().unwrap();
        let models = ConfiguredModels::new(config, None);
        let local = models.find(Some("http://127.0.0.1:8080/m")).unwrap();
        assert_eq!((local.info().place, local.info().kind), (ModelPlace::Local, SourceKind::Local));
        let Err(refused) = models.find(Some("http://example.com/m")) else {
            panic!("plain http to a stranger")
        };
        assert_eq!((refused.code.as_ref(), refused.exit), ("insecure_http", 2));
    }

    #[test]
    fn a_model_that_takes_long_to_come_keeps_nobody_waiting_for_another() {
        use std::io::Write;
        use std::os::fd::AsRawFd;
        use std::sync::mpsc::channel;
        use std::time::Duration;

        let (reader, mut writer) = std::io::pipe().unwrap();
        let slow = format!("script:/dev/fd/{}", reader.as_raw_fd());
        let models = Arc::new(models(None));
        let find = |name: &str| {
            let (found, heard) = channel();
            let (models, name) = (Arc::clone(&models), name.to_owned());
            std::thread::spawn(move || {
                found.send(models.find(Some(&name)).map(|model| model.info().full_name()))
            });
            heard
        };
        writer.write_all(b"{\"text\":").unwrap();
        let waits = find(&slow);
        // Whether or not the first has begun to read: it ends when the pipe is closed.
        let other = find("script:echo").recv_timeout(Duration::from_secs(60));
        assert!(other.expect("nobody waits for another model").is_ok());
        assert!(waits.try_recv().is_err(), "control: the first one is not there yet");
        writer.write_all(b"\"Yes.\"}\n").unwrap();
        drop(writer);
        assert!(waits.recv().unwrap().is_ok());
        // Each name is one model.
        let same = [models.find(Some("script:echo")).unwrap(), models.find(Some("script:echo")).unwrap()];
        assert_eq!(
            models.find(Some("script/echo")).unwrap().info().full_name(),
            "script/echo",
            "as it is shown"
        );
        assert!(Arc::ptr_eq(&same[0], &same[1]));
    }

    fn models(named: Option<&str>) -> ConfiguredModels {
        let home = tempfile::tempdir().unwrap();
        let config = config::Layers::read(home.path(), std::iter::empty(), &[]).config().unwrap();
        ConfiguredModels::new(config, named)
    }

    #[test]
    fn a_bare_name_is_its_only_makers_and_else_the_candidates_are_named() {
        assert_eq!(models(None).full("gpt-5.1").unwrap(), "openai/gpt-5.1");
        assert_eq!(models(None).full("gemini-3.5-flash").unwrap(), "gemini/gemini-3.5-flash");
        assert!(models(None).names_provider("openai") == models(Some("gpt-9")).names_provider("openai"));
        assert!(models(Some("gpt-5.1")).names_provider("openai"));
        let mut two = models(None);
        for name in ["one", "two"] {
            let section = config::ModelSection::default();
            two.config.models.insert(format!("{name}/twin"), section);
        }
        let error = two.full("twin").unwrap_err();
        assert_eq!((error.code.as_ref(), error.exit), ("ambiguous", 2));
        assert!(error.hint.contains("one/twin, two/twin"), "{}", error.hint);
    }

    #[test]
    fn a_misspelt_name_finds_its_neighbour() {
        let hint = |name: &str| models(None).full(name).unwrap_err().hint;
        assert!(hint("opnai/gpt-5.1").contains("openai/gpt-5.1"), "{}", hint("opnai/gpt-5.1"));
        assert!(hint("gtp-5.1").contains("openai/gpt-5.1"), "{}", hint("gtp-5.1"));
        assert!(hint("weather").contains("known providers"), "{}", hint("weather"));
        let local = hint("local/m");
        assert!(local.contains("`drawloom config set providers.local.base_url http://"), "{local}");
    }
}

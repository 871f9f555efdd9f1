//! Opening a home for a command: the folder, this process's lock, the store, and what commands work on.

use std::path::Path;
use std::sync::Arc;

use agent::session::Sessions;
use agent::steering::Listener;
use agent::{FileRetention, LastingRules, Runtime, SpendLimiter};
use commands::app::{Models, Workspace, fallbacks, subagent_models};
use commands::maintenance::backups::newest;
use commands::settings::{Settings, WebSettings};
use commands::{App, CommandError, Servers};
use model::{Cancel, Clock};
use policy::Policy;
use store::home::{
    BACKUPS, DATABASE, Home, HomeError, HomeOptions, KEYS, STORE_ID, Scratch, SpaceLimits, made_with_store,
    stray_log,
};
use store::instance::{About, Instance, InstanceError, InstanceId, Instances};
use store::{Principal, ServerOptions, Store, StoreError, StoreId};
use text::bytes::size;
use text::terminal::visible;
use workspace::StoreGuard;

use crate::config::Config;
use crate::config::rules::ConfigRules;
use crate::context_windows::ContextWindows;
use crate::embedded::{self, Embedded};
use crate::models::ConfiguredModels;
use crate::paths::InvocationPaths;
use crate::secrets;
use crate::terminal::Terminal;
use crate::workspaces::{self, WorkspaceLoading};

pub(crate) mod reading;

/// A home that is open. The instance's lock is given back last.
pub(crate) struct OpenHome {
    pub(crate) app: Arc<App>,
    /// With the git work tree in which the owner chose to work, before or while the home was opened.
    pub(crate) paths: InvocationPaths,
    /// None where the home is only read.
    instance: Option<Instance>,
    recovers: bool,
}

impl OpenHome {
    /// Keeps what processes that died had received, and clears their files away. What fails here is no reason to
    /// refuse a command: it is said, and tried again next time.
    pub(crate) async fn recover(&self) {
        if !self.recovers || self.instance.is_none() {
            return;
        }
        let app = &self.app;
        Scratch::sweep();
        let cleared = match app.recover().await {
            Ok(_) => Instances::of(&app.runtime.home)
                .and_then(|instances| instances.remove_dead(|_| true))
                .map(|_| ())
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.message),
        };
        if let Err(why) = cleared {
            app.frontend.note(&format!("the work of a process that ended could not be recovered: {why}"));
        }
    }

    /// Listens for what other processes say to sessions whose turns run here. Without a socket they wait; where the home
    /// is only read there are no turns.
    pub(crate) async fn listen(&self) -> Option<Listener> {
        self.instance.as_ref()?;
        let app = &self.app;
        match Listener::start(&app.runtime.home, app.runtime.instance, &app.sessions) {
            Ok(listener) => Some(listener),
            Err(error) => {
                app.frontend.note(&error.to_string());
                None
            }
        }
    }

    /// A store that is busy, with who else has it open: one of them writes (spec: cli §1 exit 6). An error that names
    /// who is in the way stays as it is.
    pub(crate) fn name_others(&self, mut error: CommandError) -> CommandError {
        let Some(own) = self.instance.as_ref().filter(|_| error.code == "busy").map(Instance::id) else {
            return error;
        };
        let all =
            Instances::of(&self.app.runtime.home).and_then(|instances| instances.list()).unwrap_or_default();
        let others: Vec<String> =
            all.iter().filter(|found| found.alive && found.id != own).map(ToString::to_string).collect();
        if !others.is_empty() && !others.iter().any(|other| error.message.contains(other)) {
            error.message += &format!(": open in {}", others.join(", "));
        }
        error
    }

    /// Closes the store before this process stops being an owner of running work.
    pub(crate) fn close(self) {
        let Self { app, instance, .. } = self;
        drop(app);
        drop(instance);
    }
}

/// What a command needs of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkspaceNeed {
    /// Nothing: it is not even looked for.
    None,
    Place,
    Load,
    /// As [`Self::Load`]; whoever is in a git work tree that is none is offered to work there.
    LoadOrOffer,
}

/// A command that is about to run.
pub(crate) struct Invocation<'a> {
    /// Name of the command, in messages to other processes.
    pub(crate) name: &'static str,
    pub(crate) paths: &'a InvocationPaths,
    /// What it needs of the workspace.
    pub(crate) need: WorkspaceNeed,
    pub(crate) runtime: &'a tokio::runtime::Runtime,
    /// What `--model` says.
    pub(crate) named: Option<&'a str>,
    /// Whether people begin a home with it: whoever asks for another command has mistyped the home's name more often
    /// than made one.
    pub(crate) begins: bool,
    /// Whether it works in a home that cannot be written ([`commands::Command::only_reads`]).
    pub(crate) only_reads: bool,
    /// Whether what processes that died had received is kept first.
    pub(crate) recovers: bool,
}

/// What of a home was opened.
struct Opened {
    home: Home,
    guard: StoreGuard,
    /// None where it is only read.
    instance: Option<Instance>,
    store: Store,
}

/// Opens the home for a command.
///
/// # Errors
/// Whatever keeps the home, the lock, the store or the workspace from being opened.
pub(crate) fn open(
    invocation: &Invocation<'_>,
    config: Config,
    person: Arc<Terminal>,
    cancel: Cancel,
) -> Result<OpenHome, CommandError> {
    let Invocation { paths, need, runtime, named, .. } = *invocation;
    let (masker, weak) = secrets::masker(&config, &paths.home)?;
    weak.iter().for_each(|notice| person.notice(notice));
    let newest_masker = secrets::newest_masker(&config, paths.home.clone());
    let clock = Clock::system();
    let opened = match to_write(invocation, &config, &person, &clock) {
        Err(why) if invocation.only_reads && reading::may_help(&why, paths, &config) => {
            reading::open(paths, &config, &person, &why)?
        }
        opened => opened?,
    };
    let Opened { home, guard, instance, store } = opened;
    let masker = masker.identifying_by(runtime.block_on(store.identity(&Principal::Owner))?.store.0);
    let id = match &instance {
        Some(instance) => instance.id(),
        None => new_id(&clock)?,
    };
    let paths = runtime.block_on(workspaces::with_choice(paths, &store))?;
    let (workspace, paths) = match need {
        WorkspaceNeed::None => (Workspace::default(), paths),
        WorkspaceNeed::Place => (workspaces::locate(&paths)?, paths),
        WorkspaceNeed::Load | WorkspaceNeed::LoadOrOffer => {
            let now = loom::Millis(clock.now());
            let (guard, store, masker, person) = (&guard, &store, &masker, &person);
            let looking = WorkspaceLoading { home: home.root(), guard, store, masker, now, person };
            runtime.block_on(looking.load(&paths, need == WorkspaceNeed::LoadOrOffer))?
        }
    };
    let settings = Settings {
        model: named.map(str::to_owned).or_else(|| config.model.default.clone()),
        named: named.map(str::to_owned),
        default_model: config.model.default.clone(),
        embedded: embedded::names(),
        replay: config.model.replay.clone(),
        presets: config.presets.clone(),
        agents: config.agents.clone(),
        tools: config.tools.clone(),
        hooks: config.hooks.clone(),
        mcp: config.mcp.clone(),
        exec: config.exec.of_commands(&config.limits),
        web: web_of(&config)?,
        skills: config.skills.of_commands(),
        cards: config.capabilities.clone(),
        policy: policy_of(&config)?,
        limits: config.limits.of_commands(),
        think: config.model.think,
        changed_files: config.context.changed_files,
        strategy: config.context.strategy,
    };
    let (budget, turn_bounds) = (config.budget.of_the_agent(), config.limits.of_turns());
    let (waiting, subagents) = (config.limits.of_sessions(), config.limits.of_subagents());
    let kept_files = Arc::new(FileRetention::new(config.limits.of_kept_files()));
    // What stands in a workspace is run for nobody, trusted or not.
    let closed = paths.workspace().ok().map(|chosen| chosen.folder);
    let (auto_pull, asking) = (config.model.auto_pull, Arc::clone(&person));
    let embedded = Embedded::of_home(home.root(), closed, auto_pull, asking, cancel.clone());
    let windows = ContextWindows::of_home(&home, clock.clone());
    let models: Arc<dyn Models> = Arc::new(
        ConfiguredModels::new(config, named)
            .guarding(guard.clone())
            .with(embedded)
            .telling(Arc::clone(&person))
            .asking(windows),
    );
    let runtime = Runtime {
        spend: Arc::new(SpendLimiter::new(budget)),
        space: SpaceLimits { minimum_free: settings.limits.free_space, ..SpaceLimits::default() },
        turn_bounds,
        subagents,
        waiting,
        kept_files,
        fallbacks: fallbacks(&models),
        subagent_models: subagent_models(&models),
        rules: LastingRules::new(Arc::new(ConfigRules::new(paths.clone()))),
        newest_masker: Some(newest_masker),
        ..Runtime::new(Arc::new(store), Arc::new(home), id, clock, Arc::new(masker))
    };
    let sessions = Sessions::default();
    let servers = Servers::default();
    let app =
        App { runtime, sessions, guard, models, workspace, settings, servers, frontend: person, cancel };
    Ok(OpenHome { app: Arc::new(app), paths, instance, recovers: invocation.recovers })
}

/// Opens the home as one of its owners.
fn to_write(
    &Invocation { name, paths, begins, .. }: &Invocation<'_>,
    config: &Config,
    person: &Terminal,
    clock: &Clock,
) -> Result<Opened, CommandError> {
    let is_new = !paths.home.exists();
    let home = home(paths, config, person)?;
    // Before anything else can fail in it.
    if is_new && !begins {
        person.notice(&format!("a new home was made at {}", paths.home.display()));
    }
    if config.store.url.is_none() {
        require_known_store(home.root())?;
    }
    keep_room(&home, config, person);
    // Before the store is opened: from then on closing any other descriptor of its files drops its locks.
    let guard = paths.guard()?;
    let instance = Some(start(&home, name, clock)?);
    let store = match &config.store.url {
        Some(url) => connect(url, &home, config, true)?,
        None => open_file(&home, limits(config), person)?,
    };
    Ok(Opened { home, guard, instance, store })
}

fn limits(config: &Config) -> store::StoreLimits {
    store::StoreLimits {
        wal: config.limits.wal.0,
        search: std::time::Duration::from_secs_f64(config.limits.search),
        ..store::StoreLimits::default()
    }
}

/// Opens the store on a server.
fn connect(url: &str, home: &Home, config: &Config, makes_tables: bool) -> Result<Store, CommandError> {
    Ok(Store::connect(&ServerOptions {
        url: url.to_owned(),
        password: config.store.usable_password()?,
        store: StoreId::of_home(home.root())?,
        makes_tables,
        pool: usize::from(config.store.pg_pool),
        limits: limits(config),
    })?)
}

/// An error whose hint does not name the command that ended with it.
pub(crate) fn not_to_itself(name: &str, mut error: CommandError) -> CommandError {
    if name.starts_with("store check") && error.code == "damaged" {
        error.hint = "restore a backup: `drawloom doctor` names the newest".to_owned();
    }
    error
}

/// Refuses a home that tells of a store and has none: a new one in its place would look as if nothing had been lost.
/// An empty store, and the log of one that is gone, the store itself names.
fn require_known_store(home: &Path) -> Result<(), CommandError> {
    let database = home.join(DATABASE);
    if database.symlink_metadata().is_ok() || stray_log(&database).is_some() {
        return Ok(());
    }
    refuse_lost_store(home)
}

/// Refuses a home without a store that tells of one.
///
/// # Errors
/// `no_store`.
pub(crate) fn refuse_lost_store(home: &Path) -> Result<(), CommandError> {
    let database = home.join(DATABASE);
    // Last: another process may make the store meanwhile.
    let sign = made_with_store(&database).filter(|_| database.symlink_metadata().is_err());
    let Some(sign) = sign else { return Ok(()) };
    let name = sign.strip_prefix(home).unwrap_or(&sign).display();
    let missing = |why: String, hint: String| {
        let message = format!("the store of the home {} is not there: {why}", home.display());
        Err(CommandError::new("no_store", 6, visible(&message), hint))
    };
    if sign.ends_with(STORE_ID) {
        return missing(
            format!("{STORE_ID} says that it is in a database, and store.url names none"),
            format!(
                "set store.url (DRAWLOOM_STORE__URL); to begin anew with a file, remove {STORE_ID} from the home"
            ),
        );
    }
    let why = match newest(home) {
        _ if !sign.ends_with(BACKUPS) => format!("{name} was made with it"),
        Ok(Some(made)) => format!("its newest backup is {}", made.file.display()),
        Ok(None) => format!("{BACKUPS} was made with it"),
        Err(error) => format!("{BACKUPS} cannot be read ({error})"),
    };
    let hint = format!(
        "bring it back with `drawloom restore FILE`, or set store.url if it is in a database; to begin anew, remove \
         {name} from the home"
    );
    missing(why, hint)
}

/// Opens the store in the home's file, brought up to date if need be.
fn open_file(home: &Home, limits: store::StoreLimits, person: &Terminal) -> Result<Store, CommandError> {
    let options = store::Options { limits, ..store::Options::default() };
    match Store::open_with(&home.database(), &options) {
        Err(StoreError::MigrationNeeded { known, .. }) => {
            nobody_older(home)?;
            let store = Store::open_with(&home.database(), &store::Options { may_migrate: true, ..options })?;
            if let Some(from) = store.updated_from() {
                person.notice(&format!(
                    "the store was updated from version {from} to {known}; a copy of the old one is kept as loom.db.v{from}.bak"
                ));
            }
            Ok(store)
        }
        opened => Ok(opened?),
    }
}

/// Refuses to bring the store up to date while a process of an older program may have it open.
fn nobody_older(home: &Home) -> Result<(), CommandError> {
    let older = Instances::of(home).and_then(|instances| instances.older()).map_err(instance_error)?;
    if older.is_empty() {
        return Ok(());
    }
    let older: Vec<String> = older.iter().map(ToString::to_string).collect();
    Err(CommandError::new(
        "migration_needed",
        6,
        format!("an older Drawloom wrote the store, and has it open: {}", older.join(", ")),
        "end it and try again; nothing was changed",
    ))
}

/// Opens the folder, and says what was repaired in it.
///
/// # Errors
/// When it cannot be a home.
pub(crate) fn home(
    paths: &InvocationPaths,
    config: &Config,
    person: &Terminal,
) -> Result<Home, CommandError> {
    let options = HomeOptions { allow_network_fs: config.store.allow_network_fs };
    let home = Home::open(&paths.home, options).map_err(|error| home_error(&error))?;
    for path in home.repaired() {
        let advice = if path.ends_with(KEYS) { "; consider new keys" } else { "" };
        person.notice(&format!("{} was open to other users; it is closed now{advice}", path.display()));
    }
    Ok(home)
}

/// Holds some bytes back while there is room, and gives them up once there is none, so that what was written can
/// still be read and a draft kept on a full disk (spec: scale §4 `free_space`).
fn keep_room(home: &Home, config: &Config, person: &Terminal) {
    let limits = SpaceLimits { minimum_free: config.limits.free_space.0, ..SpaceLimits::default() };
    if let Err(error) = home.reserve().keep(limits) {
        person.notice(&format!("no space can be reserved for a full disk: {error}"));
    }
    // The store is most of a home, and asking for the size of one file costs nothing; `doctor` weighs all of it.
    let taken = home.database().metadata().map_or(0, |found| found.len());
    if taken > config.limits.home_warn.0 {
        let (taken, limit) = (size(taken), size(config.limits.home_warn.0));
        person.notice(&format!(
            "the home is larger than {limit} (limits.home_warn), its store {taken}; purge what you do not need"
        ));
    }
}

fn start(home: &Home, name: &'static str, clock: &Clock) -> Result<Instance, CommandError> {
    let id = new_id(clock)?;
    let about = About::this_process(name, env!("CARGO_PKG_VERSION"), clock.now());
    Instances::of(home).and_then(|instances| instances.start(id, &about)).map_err(instance_error)
}

/// The rules on calls of tools. One that says nothing is refused: what it was to deny would be allowed.
fn policy_of(config: &Config) -> Result<Policy, CommandError> {
    let rules = Policy::new(config.policy.rules.clone());
    rules.map_err(|why| CommandError::usage(why.to_string(), "correct [[policy.rules]] in config.toml"))
}

/// What the tools of the web reach.
pub(crate) fn web_of(config: &Config) -> Result<WebSettings, CommandError> {
    let web = config.web.of_commands();
    web.map_err(|why| CommandError::usage(why, "write HOST:PORT, as [\"localhost:8080\"]"))
}

fn new_id(clock: &Clock) -> Result<InstanceId, CommandError> {
    InstanceId::generate(u64::try_from(clock.now()).unwrap_or(0))
        .map_err(|error| CommandError::new("store", 6, format!("no random numbers: {error}"), ""))
}

/// A home that cannot be used, as the error of a command.
pub(crate) fn home_error(error: &HomeError) -> CommandError {
    let (code, exit) = match error {
        HomeError::Empty | HomeError::NotAHome { .. } => ("bad_home", 2),
        HomeError::NetworkFileSystem { .. } => ("network_fs", 6),
        HomeError::NotWritable { .. } => ("read_only", 6),
        _ => ("home", 6),
    };
    said(code, exit, error, error.hint())
}

fn instance_error(error: InstanceError) -> CommandError {
    match error {
        InstanceError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
            CommandError::new(
                "disk_full",
                6,
                "no space left for the home",
                "free some and try again; nothing was lost",
            )
        }
        InstanceError::Home(error) => home_error(&error),
        other => said("home", 6, &other, other.hint()),
    }
}

/// An error with its cause.
fn said(code: &'static str, exit: u8, error: &dyn std::error::Error, hint: &str) -> CommandError {
    let mut message = error.to_string();
    if let Some(cause) = error.source() {
        message += &format!(" ({cause})");
    }
    CommandError::new(code, exit, visible(&message), hint)
}

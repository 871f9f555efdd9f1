//! The MCP servers of the owner, as this process has them: each is started when it is needed, in walls of its own, or spoken
//! with at its address (spec: agent §5, security §15).

use std::collections::BTreeMap;
use std::env;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::tools::CommandEgress;
use egress::{Gate, HostPort};
use loom::Digest;
use mcp::{SavedLogin, SavedTools, Server, ServerAddress, ServerPlace, StartedServer};
use sandbox::{CommandLine, Level, OutputSink, Run, Sandbox, WallRoot, Walls, git_folders_serving};
use store::home::HomeDir;
use store::instance::InstanceId;
use workspace::discovery::DiscoveryContext;
use workspace::{RootAccess, canonical, file_name_of_key};

use crate::app::App;
use crate::args::allow::AllowedFolder;
use crate::configured_server::{ConfiguredServer, PlaceEntry, ProgramEntry, WORKSPACE};
use crate::server_address::AddressEntry;
use crate::server_folders;
use crate::server_home::OwnFolders;
use crate::server_secrets;
use crate::settings::ExecSettings;
use crate::walls;

/// How long a server runs at most, if the process does.
const LONGEST_RUN: Duration = Duration::from_secs(365 * 24 * 3600);
/// Bytes of what a server prints that its outcome keeps: all of it was read.
const KEPT_OUTPUT: usize = 4 << 10;

/// The servers that were asked for in this process. With it they end.
#[derive(Debug, Default)]
pub struct Servers(Mutex<BTreeMap<String, Arc<Server>>>);

/// What a server is started with.
struct Launch {
    name: String,
    entry: ProgramEntry,
    /// Digest of its program.
    program: Digest,
    /// Variables of its environment.
    environment: BTreeMap<String, String>,
    /// The home of Drawloom.
    home: PathBuf,
    /// Folder of the home for protected files that it makes, and what tells its runs from others.
    quarantine: PathBuf,
    instance: InstanceId,
    runs: AtomicU32,
    workspace: Option<PathBuf>,
    surroundings: Option<DiscoveryContext>,
    exec: ExecSettings,
    egress: CommandEgress,
}

impl Servers {
    /// The server of a name, which may not run yet.
    ///
    /// # Errors
    /// There is none, or what is wrong with its entry.
    pub(crate) fn get(app: &App, name: &str) -> Result<Arc<Server>, String> {
        let mut servers = app.servers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.get(name) {
            return Ok(Arc::clone(server));
        }
        let configured = app.settings.mcp.get(name).ok_or_else(|| format!("there is no [mcp.{name}]"))?;
        if !configured.loose_secrets.is_empty() {
            return Err(format!(
                "mcp.{name}.secrets are not used: others may read keys.toml; run `chmod 600` on it"
            ));
        }
        let entry = configured.entry(name)?;
        let (roots, place) = match entry.place {
            PlaceEntry::Program(program) => {
                let launch = Launch::of(app, (name, configured), program)?;
                let folders = launch.entry.roots.iter().map(|root| launch.folder(root));
                let roots = folders.filter_map(Result::ok).collect();
                (roots, ServerPlace::Program(Box::new(move |sink, input| launch.start(sink, input))))
            }
            PlaceEntry::Address(address) => {
                let login = (login_hosts(app, &address), saved_login(app, name));
                let address = reached((name, configured), address)?;
                let address = address.with_login(&Gate::default(), name, login)?;
                (Vec::new(), ServerPlace::Address(Arc::new(address)))
            }
        };
        let server = Arc::new(Server::new(name, (entry.within, roots), saved(app, name), place));
        servers.insert(name.to_owned(), Arc::clone(&server));
        Ok(server)
    }

    /// The server of a name, if this process asked for it.
    pub(crate) fn known(app: &App, name: &str) -> Option<Arc<Server>> {
        app.servers.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

/// A server at an address, with what the owner wrote into its headers.
///
/// # Errors
/// A secret is not there.
pub(crate) fn reached(
    (name, configured): (&str, &ConfiguredServer),
    address: AddressEntry,
) -> Result<ServerAddress, String> {
    if let Some(secret) = address.missing(&configured.secrets).first() {
        return Err(server_secrets::missing(name, secret));
    }
    let headers = address.headers(&configured.secrets).map_err(|why| format!("mcp.{name}: {why}"))?;
    ServerAddress::new(&Gate::default(), address.url, headers)
}

/// Hosts besides the public network where a login at a server may be asked for: those that the owner wrote.
pub(crate) fn login_hosts(app: &App, address: &AddressEntry) -> Vec<HostPort> {
    let own = HostPort::of(&address.url);
    own.into_iter().chain(app.settings.web.private_hosts.iter().cloned()).collect()
}

/// The login at a server.
pub(crate) fn saved_login(app: &App, name: &str) -> SavedLogin {
    SavedLogin::of(app.runtime.home.root().join(HomeDir::Logins.name()), name)
}

/// What was accepted of a server as it is configured.
pub(crate) fn saved(app: &App, name: &str) -> SavedTools {
    let saved = SavedTools::of(app.runtime.home.root().join(HomeDir::AcceptedTools.name()), name);
    match app.settings.mcp.get(name) {
        Some(server) => saved.of_program(server.program_digest()),
        None => saved,
    }
}

impl ConfiguredServer {
    /// Looks whether it could be started or asked from this machine.
    ///
    /// # Errors
    /// What is wrong: its entry, its program, or a root. The workspace is not looked at.
    pub fn check_here(&self, name: &str, surroundings: &DiscoveryContext) -> Result<(), String> {
        let PlaceEntry::Program(program) = self.entry(name)?.place else { return Ok(()) };
        for root in program.roots.iter().filter(|root| root.folder != Path::new(WORKSPACE)) {
            server_folders::place(root, None, Some(surroundings))
                .map_err(|why| format!("mcp.{name}.roots: {why}"))?;
        }
        program.file(None).map(drop)
    }
}

impl ProgramEntry {
    /// The program by an absolute path.
    fn file(&self, workspace: Option<&Path>) -> Result<PathBuf, String> {
        let named = self.command.first().map_or("", String::as_str);
        let path = match (named.strip_prefix("~/"), walls::user_home()) {
            (Some(below), Some(home)) => home.join(below),
            _ => PathBuf::from(named),
        };
        if named.contains('/') {
            return match (path.is_absolute(), path.is_file()) {
                (true, true) => Ok(path),
                (true, false) => Err(format!("there is no program {named:?}")),
                (false, _) => Err(format!("{named:?}: name the program alone, or by its whole path")),
            };
        }
        let found = walls::safe_search_path(workspace).into_iter().map(|folder| folder.join(named));
        let mut found = found.filter(|file| file.is_file());
        found.next().ok_or_else(|| {
            format!("there is no program {named:?} in the folders of your PATH that you alone write")
        })
    }
}

impl Launch {
    fn of(
        app: &App,
        (name, configured): (&str, &ConfiguredServer),
        entry: ProgramEntry,
    ) -> Result<Self, String> {
        let variables = configured.env.iter().chain(&configured.secrets);
        Ok(Self {
            name: name.to_owned(),
            entry,
            program: configured.program_digest(),
            environment: variables.map(|(variable, value)| (variable.clone(), value.clone())).collect(),
            home: app.runtime.home.root().to_owned(),
            quarantine: app.runtime.home.dir(HomeDir::Quarantine).map_err(|error| error.to_string())?,
            instance: app.runtime.instance,
            runs: AtomicU32::new(0),
            workspace: app.workspace.folder.as_deref().map(canonical),
            surroundings: app.workspace.surroundings.clone(),
            exec: app.settings.exec.clone(),
            egress: CommandEgress {
                gate: Gate::default(),
                private_hosts: app.settings.web.private_hosts.clone(),
            },
        })
    }

    /// Where a root of the entry is.
    fn folder(&self, root: &AllowedFolder) -> Result<PathBuf, String> {
        server_folders::place(root, self.workspace.as_deref(), self.surroundings.as_ref())
    }

    /// The walls around the server, and the folder that it works in.
    fn walls(&self, program: &Path, own: &OwnFolders) -> Result<(Walls, PathBuf), String> {
        let mut walls = Walls::around(&own.work, &own.home);
        let mut directory = own.work.clone();
        for (number, root) in self.entry.roots.iter().enumerate() {
            let path = self.folder(root)?;
            if root.access == RootAccess::ReadWrite {
                walls.git_folders.extend(git_folders_serving(&path));
            }
            // Without walls it would load what a workspace has for it.
            if number == 0 && self.entry.is_walled {
                directory.clone_from(&path);
            }
            walls.roots.push(WallRoot { path, access: root.access });
        }
        walls.tracked_records = Some(agent::command_records(&self.home));
        walls.private = vec![self.home.clone()];
        walls.dependency_folders.clone_from(&self.exec.dependency_folders);
        walls.limits.free_space = self.exec.free_space;
        walls.limits.time_ms = u64::try_from(LONGEST_RUN.as_millis()).unwrap_or(u64::MAX);
        walls.limits.output = KEPT_OUTPUT;
        walls.umask = store::home::former_umask() & 0o077;
        walls::show_toolchains(&mut walls, &self.home, &self.exec).map_err(|error| error.message)?;
        walls.readable.extend([program.to_owned(), canonical(program)]);
        if !self.entry.is_walled {
            let path = env::join_paths(walls::safe_search_path(self.workspace.as_deref()));
            let path = path.map_err(|error| error.to_string())?.to_string_lossy().into_owned();
            walls.environment.insert("PATH".to_owned(), path);
            walls.home = walls::user_home().unwrap_or(walls.home);
        }
        walls.environment.extend(self.environment.clone());
        Ok((walls, directory))
    }

    /// Starts it. It blocks, and needs a runtime of this thread.
    fn start(&self, sink: OutputSink, input: OwnedFd) -> Result<StartedServer, String> {
        let program = self.entry.file(self.workspace.as_deref())?;
        let own = OwnFolders::open(&self.home, &self.name, self.program)?;
        let (mut walls, directory) = self.walls(&program, &own)?;
        let sandbox = Sandbox::of_this_program().map_err(|error| error.to_string())?;
        let level = if self.entry.is_walled { sandbox.probe().level } else { Level::None };
        if self.entry.is_walled && level == Level::None {
            return Err(format!(
                "this machine has no sandbox for it (`drawloom doctor` says why); mcp.{}.sandbox = \"off\" runs it without",
                self.name
            ));
        }
        let place = self.home.join(HomeDir::Sandbox.name()).join("tmp");
        let session =
            sandbox.open_session(level, &place, walls::TEMP_BYTES, &[]).map_err(|error| error.to_string())?;
        let network = self.entry.network.open(&session, &self.egress, &mut walls)?;
        let mut command = self.entry.command.clone();
        command[0] = program.to_string_lossy().into_owned();
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let run_name = format!("{}-{}-{number}", file_name_of_key(&self.name), self.instance);
        let run = Run {
            walls,
            command: CommandLine::Program(command.iter().map(Into::into).collect()),
            directory,
            level,
            quarantine: self.quarantine.join(run_name),
            signs_of_life: Vec::new(),
        };
        let running =
            network.session.start_with_input(run, Some(sink), input).map_err(|error| error.to_string())?;
        let told = network.teller().map(|told| Box::new(told) as Box<dyn Fn() -> Vec<String> + Send + Sync>);
        Ok(StartedServer { running, network: told, held: Box::new((network, session, own)) })
    }
}

//! One attempt's surroundings: a workspace, what lies outside of it, servers and a process to reach.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use drawloom_sandbox::{CommandLine, Level, Limits, Outcome, PackageCache, Run, Walls};
use tempfile::TempDir;

use crate::left_out::is_left_out;
pub(crate) use crate::user::User;

/// Value that no command may learn.
pub(crate) const SECRET: &str = "s3cret-of-the-owner";

/// Configuration of the git folders.
pub(crate) const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\thooksPath = \"else\"where/hooks # ours\n\
    [include]\n\tpath = ../elsewhere/\\\nshared ; theirs\n";

/// Bytes of a small `HOME`.
pub(crate) const SMALL: u64 = 64 << 20;

/// What a command of a test may use: a minute would hide one that hangs.
pub(crate) fn limits() -> Limits {
    Limits { time_ms: 20_000, free_space: 1 << 20, ..Limits::default() }
}

/// Whether the machine lacks programs that a test's commands run, which its owner left out.
pub(crate) fn lacks(programs: &[&str]) -> bool {
    let is_missing = |program: &&str| {
        !["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|folder| Path::new(folder).join(program).is_file())
    };
    is_left_out(&programs.iter().copied().filter(is_missing).collect::<Vec<_>>())
}

/// The program of the suite in a folder that every user can read; it goes with the last that holds it.
pub(crate) struct Program(TempDir);

impl Program {
    pub(crate) fn new() -> Arc<Self> {
        static SHARED: Mutex<Weak<Program>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = shared.upgrade() {
            return program;
        }
        let program = Arc::new(Self(tempfile::tempdir().unwrap()));
        fs::set_permissions(program.folder(), fs::Permissions::from_mode(0o755)).unwrap();
        let built = env!("CARGO_BIN_EXE_sandbox-test-helper");
        // A link costs nothing; it takes one file system.
        if fs::hard_link(built, program.path()).is_err() {
            fs::copy(built, program.path()).unwrap();
        }
        *shared = Arc::downgrade(&program);
        program
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder().join("attempt")
    }
}

/// Surroundings of one attempt.
pub(crate) struct World {
    pub(crate) user: User,
    program: Arc<Program>,
    folder: TempDir,
    victim: Child,
    unix: UnixListener,
    in_cache: UnixListener,
    of_program: UnixListener,
    abstract_unix: UnixListener,
    tcp: TcpListener,
    udp: UdpSocket,
    udp6: Option<UdpSocket>,
    datagrams: UnixDatagram,
    /// Number of a message queue of System V.
    queue: String,
}

impl World {
    pub(crate) fn new(user: User) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let cache = "owner/.cargo/registry";
        for name in
            ["root", "home/sandbox/this", "home/sandbox/other", "home/run", "outside/folder", "other.git"]
        {
            fs::create_dir_all(path(name)).unwrap();
        }
        fs::write(path("outside/file"), SECRET).unwrap();
        fs::write(path("home/loom.db"), SECRET).unwrap();
        git_folder(&path("root/.git"));
        git_folder(&path("root/.git/modules/libs/sub"));
        git_folder(&path("root/.git/modules/logs"));
        git_folder(&path("root/node_modules/package/.git"));
        git_folder(&path("other.git"));
        let files = [
            ("AGENTS.md", "ours"),
            (".drawloom/workspace.toml", SECRET),
            (".drawloom/run/log", ""),
            ("docs/capabilities/card.md", "ours"),
            (".github/workflows/ci.yml", "ours"),
            ("skills/one/SKILL.md", "ours"),
            ("src/main.txt", "text"),
            ("elsewhere/hooks/pre-push", ""),
            ("elsewhere/shared", ""),
            ("settings/settings.json", ""),
            ("scripts/commit", "ours"),
            ("scripts/far", "ours"),
            ("scripts/push", "ours"),
            ("scripts/tasks/one", "ours"),
            (".claude/settings.json", "ours"),
            ("tools/config.toml", ""),
            ("node_modules/package/AGENTS.md", "theirs"),
            (".git/worktrees/linked/commondir", "../..\n"),
            (".git/worktrees/linked/gitdir", &format!("{}\n", path("root/linked/.git").display())),
            (".git/worktrees/linked/HEAD", "ref: refs/heads/linked\n"),
            ("linked/.git", &format!("gitdir: {}\n", path("root/.git/worktrees/linked").display())),
        ];
        for (name, text) in files {
            let file = path("root").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        for (name, text) in [
            ("owner/.cargo/credentials.toml", SECRET),
            ("owner/.cargo/registry/credentials.toml", SECRET),
            ("owner/.cargo/registry/index/file", "theirs"),
            ("owner/.cargo/registry/src/one/.npmrc", SECRET),
            ("owner/.cargo/registry/src/one/lib.rs", "theirs"),
        ] {
            fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            fs::write(path(name), text).unwrap();
        }
        fs::hard_link(path(cache).join("src/one/.npmrc"), path(cache).join("src/one/notes")).unwrap();
        std::os::unix::fs::symlink(path("outside/file"), path(cache).join("out")).unwrap();
        fs::write(path("root/BOOT.md"), "ours").unwrap();
        fs::hard_link(path("root/BOOT.md"), path("root/second-name")).unwrap();
        for (target, link) in [
            ("../../scripts/commit", ".git/hooks/prepare-commit-msg"),
            ("../../scripts/push", "elsewhere/hooks/post-commit"),
            ("../scripts/tasks", ".claude/tasks"),
            ("../scripts/local", ".claude/local"),
            ("../far", "scripts/tasks/far"),
        ] {
            std::os::unix::fs::symlink(target, path("root").join(link)).unwrap();
        }
        std::os::unix::fs::symlink("settings", path("root/.vscode")).unwrap();
        std::os::unix::fs::symlink("tools", path("root/.cargo")).unwrap();
        std::os::unix::fs::symlink("AGENTS.md", path("root/CLAUDE.md")).unwrap();
        let unix = UnixListener::bind(path("outside/socket")).unwrap();
        let in_cache = UnixListener::bind(path(cache).join("socket")).unwrap();
        let of_program = UnixListener::bind(path("home/run/socket")).unwrap();
        let datagrams = UnixDatagram::bind(path("outside/datagrams")).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        let name = folder.path().to_string_lossy().into_owned();
        let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        let udp6 = UdpSocket::bind("[::1]:0").ok();
        if let Some(socket) = &udp6 {
            socket.set_nonblocking(true).unwrap();
        }
        // The same user's, so that without walls everything of it can be reached.
        let mut victim = Command::new("/bin/cat");
        victim.arg0(format!("victim-{SECRET}")).env_clear().env("SECRET", SECRET).stdin(Stdio::piped());
        user.apply(&mut victim);
        let victim = victim.spawn().unwrap();
        let mut queue = Command::new("/usr/bin/ipcmk");
        user.apply(queue.arg("-Q"));
        let queue = String::from_utf8(queue.output().unwrap().stdout).unwrap();
        let queue = queue.split_whitespace().last().unwrap().to_owned();
        if user == User::Nobody {
            own(folder.path());
        }
        Self {
            user,
            program: Program::new(),
            victim,
            unix,
            in_cache,
            of_program,
            abstract_unix: UnixListener::bind_addr(&address).unwrap(),
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp,
            udp6,
            datagrams,
            queue,
            folder,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    /// Whether a datagram arrived at one of the servers.
    pub(crate) fn was_told(&self) -> bool {
        let mut buffer = [0; 64];
        self.udp.recv(&mut buffer).is_ok()
            || self.udp6.as_ref().is_some_and(|socket| socket.recv(&mut buffer).is_ok())
            || self.datagrams.recv(&mut buffer).is_ok()
    }

    /// Gives a file or folder to the user of the commands.
    pub(crate) fn give_to_user(&self, name: &str) {
        if self.user == User::Nobody {
            own(&self.path(name));
        }
    }

    /// What an attempt aims at, as its environment.
    fn targets(&self) -> BTreeMap<String, String> {
        let path = |name: &str| self.path(name).to_string_lossy().into_owned();
        let udp6 = self.udp6.as_ref().map_or(0, |socket| socket.local_addr().unwrap().port());
        let _ = (&self.unix, &self.in_cache, &self.of_program, &self.abstract_unix);
        [
            ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
            ("ROOT", path("root")),
            ("OUTSIDE", path("outside")),
            ("OWNER", path("owner")),
            ("OWNER_HOME", path("home")),
            ("OTHER_GIT", path("other.git")),
            ("BASE", self.folder.path().to_string_lossy().into_owned()),
            ("VICTIM", self.victim.id().to_string()),
            ("TCP", self.tcp.local_addr().unwrap().port().to_string()),
            ("UDP", self.udp.local_addr().unwrap().port().to_string()),
            ("UDP6", udp6.to_string()),
            ("QUEUE", self.queue.clone()),
            ("MACHINE", rustix::system::uname().nodename().to_string_lossy().into_owned()),
            ("ATTEMPT", self.program.path().to_string_lossy().into_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// Runs a line without walls; whether it ended well.
    pub(crate) fn run_freely(&self, line: &str) -> bool {
        let mut command = Command::new("/bin/sh");
        // A descriptor and an input that are there to be had, and a secret in the environment.
        // The line has a parent of its own user.
        let around = "exec 9<\"$OUTSIDE/file\"; /bin/sh -c \"$LINE\"; exit $?";
        command.args(["-c", around]).current_dir(self.path("root"));
        command.env_clear().envs(self.targets()).env("HOME", self.path("home/sandbox/this"));
        command.env("TMPDIR", self.folder.path()).env("OWNERS_KEY", SECRET).env("LINE", line);
        command.stdin(fs::File::open(self.path("outside/file")).unwrap());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.user.apply(&mut command);
        command.status().unwrap().success()
    }

    /// Runs a line without walls where `HOME` is small; whether it ended well.
    pub(crate) fn run_freely_with_small_home(&self, line: &str) -> bool {
        let within = format!(r#"exec "$ATTEMPT" with-small-home "$HOME" {SMALL} /bin/sh -c '{line}'"#);
        self.run_freely(&within)
    }

    /// Runs a line in the walls of the workspace where `HOME` is small.
    pub(crate) fn run_with_small_home(
        &self,
        line: &str,
        level: Level,
        limits: Limits,
        weaker: &[&str],
    ) -> Result<Outcome, String> {
        let line = CommandLine::Shell(line.to_owned());
        let supervisor = self.program("supervise", line, level, self.walls(limits), weaker);
        let mut command = Command::new(self.program.path());
        command.arg("with-small-home").arg(self.path("home/sandbox/this")).arg(SMALL.to_string());
        command.arg(supervisor.get_program()).args(supervisor.get_args());
        command.env("OUTSIDE", self.path("outside")).stdin(Stdio::null());
        self.user.apply(&mut command);
        outcome(&command.output().unwrap())
    }

    /// Walls of the workspace.
    pub(crate) fn walls(&self, limits: Limits) -> Walls {
        let mut walls = Walls::around(&self.path("root"), &self.path("home/sandbox/this"));
        walls.readable.push(self.program.folder().to_owned());
        walls.git_folders = vec![self.path("other.git")];
        walls.environment = self.targets();
        walls.limits = limits;
        walls.tracked_records = Some(self.path("home/sandbox/tracked"));
        walls
    }

    /// Runs a line without walls where `y` was typed at a terminal; whether it ended well.
    pub(crate) fn run_freely_at_terminal(&self, line: &str) -> bool {
        let mut command = Command::new(self.program.path());
        command.args(["freely-at-terminal", line]).current_dir(self.path("root")).envs(self.targets());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.user.apply(&mut command);
        command.status().unwrap().success()
    }

    /// Runs a line in the walls of the workspace.
    pub(crate) fn run_in_walls(
        &self,
        line: &str,
        level: Level,
        limits: Limits,
        omitted: &[&str],
    ) -> Result<Outcome, String> {
        self.run(line, level, self.walls(limits), omitted)
    }

    /// What comes of a line in the walls of the workspace.
    pub(crate) fn does(&self, line: &str, level: Level) -> Outcome {
        self.run_in_walls(line, level, limits(), &[]).unwrap()
    }

    pub(crate) fn run(
        &self,
        line: &str,
        level: Level,
        walls: Walls,
        omitted: &[&str],
    ) -> Result<Outcome, String> {
        self.supervise(CommandLine::Shell(line.to_owned()), level, walls, omitted)
    }

    pub(crate) fn run_program(&self, arguments: &[&str], level: Level) -> Result<Outcome, String> {
        let command = CommandLine::Program(arguments.iter().map(Into::into).collect());
        self.supervise(command, level, self.walls(Limits::default()), &[])
    }

    /// Starts a supervisor of a line that has records of the commands that run beside it.
    pub(crate) fn start_beside(&self, line: &str, level: Level) -> Child {
        let limits = Limits { time_ms: 60_000, free_space: 1 << 20, ..Limits::default() };
        let mut walls = self.walls(limits);
        walls.tracked_records = Some(self.path("home/sandbox/tracked"));
        self.start(line, level, walls, &[])
    }

    /// Starts a supervisor of a line.
    pub(crate) fn start(&self, line: &str, level: Level, walls: Walls, omitted: &[&str]) -> Child {
        let command = CommandLine::Shell(line.to_owned());
        let mut command = self.program("supervise", command, level, walls, omitted);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs a line in the walls of the workspace where that is mounted read-only. For the administrator.
    pub(crate) fn run_mounted_read_only(&self, line: &str, level: Level) -> Result<Outcome, String> {
        let command = CommandLine::Shell(line.to_owned());
        let supervisor = self.program("supervise", command, level, self.walls(Limits::default()), &[]);
        let mut command = Command::new("/usr/bin/unshare");
        let mount = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"";
        command.args(["-m", "/bin/sh", "-c", mount]).arg(self.path("root"));
        command.arg(supervisor.get_program()).args(supervisor.get_args());
        command.env("OUTSIDE", self.path("outside")).stdin(Stdio::null());
        outcome(&command.output().unwrap())
    }

    pub(crate) fn supervise(
        &self,
        command: CommandLine,
        level: Level,
        walls: Walls,
        omitted: &[&str],
    ) -> Result<Outcome, String> {
        outcome(&self.program_with("supervise", command, level, walls, omitted))
    }

    /// Runs the program of the suite on a line, in another way than to its end.
    pub(crate) fn run_otherwise(
        &self,
        way: &str,
        line: &str,
        level: Level,
        limits: Limits,
    ) -> std::process::Output {
        let command = CommandLine::Shell(line.to_owned());
        self.program_with(way, command, level, self.walls(limits), &[])
    }

    fn program_with(
        &self,
        way: &str,
        command: CommandLine,
        level: Level,
        walls: Walls,
        omitted: &[&str],
    ) -> std::process::Output {
        self.program(way, command, level, walls, omitted).output().unwrap()
    }

    /// Runs a line under a supervisor with a controlling terminal.
    pub(crate) fn supervise_at_terminal(&self, line: &str, level: Level, omitted: &[&str]) -> Outcome {
        let command = CommandLine::Shell(line.to_owned());
        let walls = self.walls(Limits::default());
        outcome(&self.program_with("supervise-at-terminal", command, level, walls, omitted)).unwrap()
    }

    /// The program of the suite with commands in sessions.
    pub(crate) fn sessions(&self, level: Level, steps: &str, caches: &[PackageCache]) -> Command {
        let nothing = CommandLine::Shell(String::new());
        let caches = serde_json::to_string(caches).unwrap();
        let mut walls = self.walls(Limits::default());
        walls.tracked_records = Some(self.path("home/sandbox/tracked"));
        self.program("sessions", nothing, level, walls, &[steps, &caches])
    }

    /// Package cache of the owner.
    pub(crate) fn cache(&self) -> PackageCache {
        PackageCache { folder: self.path("owner/.cargo/registry"), place: ".cargo/registry".into() }
    }

    /// Runs a line in a session with the owner's package cache.
    pub(crate) fn run_with_cache(
        &self,
        line: &str,
        level: Level,
        limits: Limits,
        weaker: &[&str],
    ) -> Result<Outcome, String> {
        let caches = serde_json::to_string(&[self.cache()]).unwrap();
        let more: Vec<&str> = [caches.as_str()].into_iter().chain(weaker.iter().copied()).collect();
        let line = CommandLine::Shell(line.to_owned());
        outcome(&self.program_with("supervise-with-caches", line, level, self.walls(limits), &more))
    }

    fn program(&self, way: &str, command: CommandLine, level: Level, walls: Walls, more: &[&str]) -> Command {
        let run = Run {
            walls,
            command,
            directory: self.path("root"),
            level,
            quarantine: self.path("quarantine"),
            signs_of_life: Vec::new(),
        };
        let mut command = Command::new("/bin/sh");
        // The supervisor has what a program may have: a descriptor that is not closed, an input, a secret.
        command.args(["-c", "exec 9<\"$OUTSIDE/file\"; exec \"$@\"", "sh"]);
        command.arg(self.program.path()).arg(way).arg(serde_json::to_string(&run).unwrap()).args(more);
        command.env("OWNERS_KEY", SECRET).env("OUTSIDE", self.path("outside"));
        command.stdin(fs::File::open(self.path("outside/file")).unwrap());
        self.user.apply(&mut command);
        command
    }
}

/// What the program of the suite says came of a command.
fn outcome(output: &std::process::Output) -> Result<Outcome, String> {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        let _ = Command::new("/usr/bin/ipcrm").args(["-q", &self.queue]).status();
        // What a control left running says so here.
        if let Some(left) = self.text("root/left") {
            for process in left.split_whitespace() {
                let _ = Command::new("/bin/kill").args(["-9", process]).stderr(Stdio::null()).status();
            }
        }
    }
}

/// A git folder as git makes it, without running git for each attempt.
pub(crate) fn git_folder(path: &Path) {
    for name in ["hooks", "info", "objects", "refs/heads"] {
        fs::create_dir_all(path.join(name)).unwrap();
    }
    fs::write(path.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(path.join("config"), CONFIG).unwrap();
    fs::write(path.join("hooks/pre-commit.sample"), "#!/bin/sh\n").unwrap();
}

fn own(path: &Path) {
    std::os::unix::fs::lchown(path, Some(65534), Some(65534)).unwrap();
    if path.symlink_metadata().unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            own(&entry.unwrap().path());
        }
    }
}

//! The attempts, in classes. A new one is a row here.

use std::path::Path;

use drawloom_sandbox::{BoundedOutput, Ending, Limits, Notice, Outcome};

use crate::world::{SECRET, SMALL, World};

/// One attempt to escape.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Line of a shell. It ends well if it got what it wanted.
    pub(crate) line: &'static str,
    pub(crate) effect: Effect,
    /// Why the row cannot be held at level *partial*.
    pub(crate) partial: Option<&'static str>,
    /// Why only the administrator can make the attempt.
    pub(crate) administrator: Option<&'static str>,
    pub(crate) limits: Option<fn(&mut Limits)>,
    pub(crate) surroundings: Surroundings,
    /// What is named where no wall holds the attempt and its effect is undone.
    named: Option<Named>,
}

/// What shows that an attempt succeeded.
pub(crate) enum Effect {
    /// Its line ended well.
    EndedWell,
    /// What is seen afterwards from outside.
    Seen(fn(&World) -> bool),
    /// A path is there.
    Made(&'static str),
    /// A file has another text than this, or is gone.
    Changed(&'static str, &'static str),
    /// What its outcome holds.
    Told(fn(&Outcome) -> bool),
}

/// What an attempt has beside the walls of the workspace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surroundings {
    Workspace,
    /// A package cache of the owner.
    Cache,
    /// The folder outside as a further root, for reading.
    FurtherRoot,
    /// A terminal of whoever starts the command, at which `y` was typed.
    Terminal,
    /// A `HOME` on a file system of its own, of [`SMALL`] bytes.
    SmallHome,
}

enum Named {
    Path(&'static str),
    Process(&'static str),
}

pub(crate) const fn row(name: &'static str, line: &'static str) -> Row {
    let (effect, surroundings) = (Effect::EndedWell, Surroundings::Workspace);
    let (partial, administrator, limits, named) = (None, None, None, None);
    Row { name, line, effect, partial, administrator, limits, surroundings, named }
}

impl Row {
    /// Succeeds only if something is to be seen of it afterwards.
    pub(crate) const fn seen_by(self, effect: fn(&World) -> bool) -> Self {
        Self { effect: Effect::Seen(effect), ..self }
    }

    /// Succeeds if a path is there afterwards; it is the one that is named.
    pub(crate) const fn makes(self, path: &'static str) -> Self {
        Self { effect: Effect::Made(path), ..self.names(path) }
    }

    /// Succeeds if a file has another text afterwards; it is the one that is named.
    pub(crate) const fn changes(self, path: &'static str, was: &'static str) -> Self {
        Self { effect: Effect::Changed(path, was), ..self.names(path) }
    }

    /// Succeeds if its outcome holds something.
    const fn told_by(self, told: fn(&Outcome) -> bool) -> Self {
        Self { effect: Effect::Told(told), ..self }
    }

    /// The path that is named for being undone.
    pub(crate) const fn names(self, path: &'static str) -> Self {
        Self { named: Some(Named::Path(path)), ..self }
    }

    const fn leaves(self, process: &'static str) -> Self {
        Self { effect: Effect::Seen(still_holds), named: Some(Named::Process(process)), ..self }
    }

    pub(crate) const fn not_in_partial(self, reason: &'static str) -> Self {
        Self { partial: Some(reason), ..self }
    }

    pub(crate) const fn with(self, surroundings: Surroundings) -> Self {
        Self { surroundings, ..self }
    }

    /// An attempt that only the administrator can make.
    pub(crate) const fn by_administrator(self, reason: &'static str) -> Self {
        Self { administrator: Some(reason), ..self }
    }

    const fn limited(self, limits: fn(&mut Limits)) -> Self {
        Self { limits: Some(limits), ..self }
    }

    /// Whether the attempt, of which this came, succeeded.
    pub(crate) fn has_succeeded(&self, world: &World, outcome: &Outcome) -> bool {
        match self.effect {
            Effect::EndedWell => outcome.ending == Ending::Exited(0),
            Effect::Told(told) => told(outcome),
            _ => self.is_seen(world),
        }
    }

    /// Whether its effect is there, where the line ended well.
    pub(crate) fn is_seen(&self, world: &World) -> bool {
        match self.effect {
            Effect::EndedWell | Effect::Told(_) => true,
            Effect::Seen(seen) => seen(world),
            Effect::Made(path) => is_there(world, path),
            Effect::Changed(path, was) => differs(world, path, was),
        }
    }

    /// Whether no wall below level *full* holds the attempt, so that its effect is undone and named (spec: security §1).
    pub(crate) fn is_undone(&self) -> bool {
        match self.named {
            Some(Named::Path(path)) => path.starts_with("root/") || path.starts_with("other.git/"),
            Some(Named::Process(_)) => true,
            None => false,
        }
    }

    /// Whether the outcome names what was undone, and nothing that was not.
    pub(crate) fn is_named(&self, outcome: &Outcome) -> bool {
        let is_named = |notice: &Notice| match (notice, &self.named) {
            (Notice::Restored(path) | Notice::Quarantined { path, .. }, Some(Named::Path(named))) => {
                path.ends_with(named)
            }
            (Notice::Ended(names), Some(Named::Process(named))) => names.iter().any(|name| name == named),
            _ => false,
        };
        let is_left = |notice: &Notice| matches!(notice, Notice::NotRestored { .. });
        outcome.notices.iter().any(is_named) && !outcome.notices.iter().any(is_left)
    }
}

const SHARED_PROC: &str = "there is no process namespace: what /proc says of others is read";
pub(crate) const NEEDS_CAPABILITIES: &str = "it needs capabilities";
pub(crate) const NO_LANDLOCK_RIGHT: &str = "no right of Landlock holds it";

pub(crate) const KEYS: &[Row] = &[
    row("environment of the supervisor", r#"test -n "$OWNERS_KEY""#),
    row("environment of a process", r#"tr '\0' '\n' < /proc/$VICTIM/environ | grep -q s3cret"#),
    row("environment of any process", r#""$ATTEMPT" attempt environ-of-all"#),
    row("arguments of any process", r#""$ATTEMPT" attempt arguments-of-all"#).not_in_partial(SHARED_PROC),
    row("key file of the owner", r#"grep -q s3cret "$OUTSIDE/file""#),
    row("passwords of the machine", "grep -q root /etc/shadow")
        .by_administrator("another user's file")
        .not_in_partial("/etc is read as it is"),
    row("files of the owner's home", r#"ls "$OWNER_HOME" | grep -q loom"#),
];

/// Whether a file was made in `/tmp` beside the world's folder, which is removed.
fn takes_from_temp(world: &World) -> bool {
    let name = format!("{}.new", world.path("").file_name().unwrap().to_string_lossy());
    std::fs::remove_file(Path::new("/tmp").join(name)).is_ok()
}

/// Without mounts of its own a command sees the processes of the machine, whose memory counts then.
fn any_memory(limits: &mut Limits) {
    limits.memory = 1 << 50;
}

pub(crate) const OUTSIDE: &[Row] = &[
    row("create", r#"mkdir -p "$OUTSIDE"; echo x > "$OUTSIDE/new""#).makes("outside/new").limited(any_memory),
    row("append", r#"echo x >> "$OUTSIDE/file""#),
    row("truncate", r#": > "$OUTSIDE/file""#),
    row("empty what is not opened to write", r#""$ATTEMPT" attempt truncate"#)
        .changes("outside/file", SECRET),
    row("rename over", r#"echo x > new && mv -f new "$OUTSIDE/file""#),
    row("move away", r#"mv "$OUTSIDE/file" taken"#),
    row("remove", r#"rm "$OUTSIDE/file""#),
    row("in the machine's /tmp", r#"echo x > "/tmp/${BASE##*/}.new""#).seen_by(takes_from_temp),
    row("make a folder", r#"mkdir -p "$OUTSIDE/new""#).makes("outside/new"),
    row("hard link in the root", r#"ln "$OUTSIDE/file" link && echo x >> link"#),
    row("symbolic link in the root", r#"ln -s "$OUTSIDE/file" link && echo x >> link"#),
    row("read by a symbolic link", r#"ln -s "$OUTSIDE/file" link && grep -q s3cret link"#),
    row("permissions", r#"chmod 600 "$OUTSIDE/file""#).limited(any_memory).not_in_partial(NO_LANDLOCK_RIGHT),
    row("times", r#"touch -d 2001-01-01 "$OUTSIDE/file""#).not_in_partial(NO_LANDLOCK_RIGHT),
    row("attributes", r#""$ATTEMPT" attempt xattr"#).not_in_partial(NO_LANDLOCK_RIGHT),
    row("existence", r#"test -e "$OUTSIDE/file""#).not_in_partial(NO_LANDLOCK_RIGHT),
];

pub(crate) fn differs(world: &World, name: &str, was: &str) -> bool {
    world.text(name).as_deref() != Some(was)
}

pub(crate) fn is_there(world: &World, name: &str) -> bool {
    world.path(name).symlink_metadata().is_ok()
}

const CONFIG: &str = crate::world::CONFIG;

pub(crate) const PROTECTED: &[Row] = &[
    row("hook", "echo x > .git/hooks/pre-commit").makes("root/.git/hooks/pre-commit"),
    row("configuration of git", "echo '[core]fsmonitor=x' >> .git/config")
        .changes("root/.git/config", CONFIG),
    row("configuration of git by rename", "cp .git/config c && echo x >> c && mv c .git/config")
        .changes("root/.git/config", CONFIG),
    row("configuration of a worktree", "echo x > .git/config.worktree")
        .makes("root/.git/config.worktree"),
    row("another common folder", "echo ../evil > .git/commondir")
        .makes("root/.git/commondir"),
    row("attributes", "echo '* filter=x' > .git/info/attributes")
        .makes("root/.git/info/attributes"),
    row("hook of a submodule", "echo x > .git/modules/libs/sub/hooks/post-checkout")
        .makes("root/.git/modules/libs/sub/hooks/post-checkout"),
    row("hook of the git folder elsewhere", r#"echo x > "$OTHER_GIT/hooks/post-checkout""#)
        .makes("other.git/hooks/post-checkout"),
    row("new git folder with a hook", "mkdir -p n/.git/hooks && echo x > n/.git/hooks/pre-commit")
        .makes("root/n/.git/hooks/pre-commit")
        .names("root/n/.git/hooks"),
    row(
        "bare git folder",
        "mkdir -p n/objects n/refs && echo x > n/HEAD && echo '[core]fsmonitor=x' > n/config",
    )
    .makes("root/n/config"),
    row(
        "bare git folder behind links",
        "mkdir n a b; ln -s ../a n/objects; ln -s ../b n/refs; echo x > n/HEAD; echo '[core]fsmonitor=x' > n/config",
    )
    .makes("root/n/config"),
    row(
        "bare git folder with its data elsewhere",
        "mkdir n; echo x > n/HEAD; echo ../.git > n/commondir; echo '[core]fsmonitor=x' > n/config.worktree",
    )
    .makes("root/n/config.worktree"),
    row("behind a folder that looks like git's", "mkdir objects refs && echo x > HEAD && echo x > .envrc")
        .makes("root/.envrc"),
    row("hooks where the configuration looks for them", r#"echo x > "$ROOT/elsewhere/hooks/pre-commit""#)
        .makes("root/elsewhere/hooks/pre-commit"),
    row("configuration that is included", r#"echo '[core]fsmonitor=x' > "$ROOT/elsewhere/shared""#)
        .changes("root/elsewhere/shared", ""),
    row("target of a protected link", "echo x > settings/tasks.json")
        .makes("root/settings/tasks.json"),
    row("target of a link on the way", "echo x > tools/config.toml")
        .changes("root/tools/config.toml", ""),
    row("file in place of a git folder", "mkdir n && echo 'gitdir: ../evil' > n/.git")
        .makes("root/n/.git"),
    row("truncate instructions", ": > AGENTS.md").changes("root/AGENTS.md", "ours"),
    row("rename over instructions", "echo x > n && mv -f n AGENTS.md")
        .changes("root/AGENTS.md", "ours"),
    row("remove instructions", "rm -f AGENTS.md").changes("root/AGENTS.md", "ours"),
    row("change a skill", "echo x >> skills/one/SKILL.md")
        .changes("root/skills/one/SKILL.md", "ours"),
    row("new skill", "mkdir skills/two && echo x > skills/two/SKILL.md")
        .makes("root/skills/two"),
    row("new memory", "echo x > MEMORY.md").makes("root/MEMORY.md"),
    row("new environment file", "echo x > .envrc").makes("root/.envrc"),
    row("new settings of an editor below", "mkdir -p src/.vscode && echo x > src/.vscode/tasks.json")
        .makes("root/src/.vscode"),
    row("new configuration of cargo", "mkdir -p src/.cargo && echo x > src/.cargo/config.toml")
        .makes("root/src/.cargo/config.toml"),
    row("new configuration of other version control", "mkdir .hg && echo x > .hg/hgrc")
        .makes("root/.hg/hgrc"),
    row("new settings of an editor by their last part", "echo x > src/x.code-workspace")
        .makes("root/src/x.code-workspace"),
    row("place of a push", "mkdir .git/remotes && echo 'URL: /evil' > .git/remotes/origin")
        .makes("root/.git/remotes/origin")
        .names("root/.git/remotes"),
    row("another spelling", "echo x > .EnvRC").makes("root/.EnvRC"),
];

pub(crate) const ANCESTORS: &[Row] = &[
    row("a second name that was there before", "echo x >> second-name").changes("root/BOOT.md", "ours"),
    row("move the git folder", "mv .git g2 && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit")
        .seen_by(|w| is_there(w, "root/.git/hooks/pre-commit") || !is_there(w, "root/.git/HEAD"))
        .names("root/.git"),
    row(
        "move the folder of cards",
        "mv docs d2 && mkdir -p docs/capabilities && echo x > docs/capabilities/card.md",
    )
    .changes("root/docs/capabilities/card.md", "ours"),
    row("move the folder of workflows", "mv .github d2")
        .changes("root/.github/workflows/ci.yml", "ours")
        .names("root/.github/workflows"),
    row("move the modules", "mv .git/modules m2")
        .changes("root/.git/modules/libs/sub/config", CONFIG)
        .names("root/.git/modules/libs/sub"),
    row("hard link to instructions", "ln AGENTS.md link && echo x >> link").changes("root/AGENTS.md", "ours"),
    row("replace a protected link", "ln -sf src/main.txt CLAUDE.md").changes("root/CLAUDE.md", "ours"),
    row("link in place of a protected folder", "mv skills s2 && ln -s src skills")
        .changes("root/skills/one/SKILL.md", "ours")
        .names("root/skills"),
    row("move the root", r#"mv "$ROOT" "$BASE/r2""#),
    row("replace the root's parent", r#"mv "$BASE/outside" "$BASE/o2""#),
];

pub(crate) const PROCESSES: &[Row] = &[
    row("signal", r#""$ATTEMPT" attempt kill"#),
    row("trace", r#""$ATTEMPT" attempt trace"#),
    row("trace from a child", r#""$ATTEMPT" attempt trace-child"#),
    row("read memory", r#""$ATTEMPT" attempt read-memory"#),
    row("memory file", r#""$ATTEMPT" attempt memory-file"#),
    row("memory of the parent", r#"exec "$ATTEMPT" attempt memory-of-parent"#),
    row("process descriptor", r#""$ATTEMPT" attempt process-descriptor"#)
        .not_in_partial("there is no process namespace"),
    row("root of a process", r#"grep -q s3cret "/proc/$VICTIM/root$OUTSIDE/file""#),
    row("working folder of a process", r#"ls "/proc/$VICTIM/cwd/""#),
    row("settings of the kernel", r#""$ATTEMPT" attempt kernel-settings"#)
        .by_administrator("the administrator's file"),
    row("capabilities", r#""$ATTEMPT" attempt capabilities"#).by_administrator("there are none"),
    row("new privileges", r#""$ATTEMPT" attempt privileges"#),
    row("message queue", r#"grep -q "^ *-*[0-9]* *$QUEUE " /proc/sysvipc/msg"#)
        .not_in_partial("there is no IPC namespace"),
    row("name of the machine", r#"test "$(uname -n)" = "$MACHINE""#)
        .not_in_partial("there is no UTS namespace"),
    row("keyring", r#""$ATTEMPT" attempt keyring"#),
];

pub(crate) const NAMESPACES: &[Row] = &[
    row("new user namespace", r#""$ATTEMPT" attempt unshare-user"#),
    row("new user namespace by clone", r#""$ATTEMPT" attempt clone-user"#),
    row("mount", r#""$ATTEMPT" attempt mount"#),
    row("join a namespace", r#""$ATTEMPT" attempt setns"#).by_administrator(NEEDS_CAPABILITIES),
    row("another root", r#""$ATTEMPT" attempt chroot"#).by_administrator(NEEDS_CAPABILITIES),
    row("open by handle", r#""$ATTEMPT" attempt handle"#).by_administrator(NEEDS_CAPABILITIES),
    row("set-user-ID program", "cp /bin/true y && chmod 4755 y"),
    row("numbers of x32", r#""$ATTEMPT" attempt x32"#),
];

pub(crate) const NETWORK: &[Row] = &[
    row("TCP", r#""$ATTEMPT" attempt tcp"#),
    row("UDP", r#""$ATTEMPT" attempt udp"#).seen_by(World::was_told),
    row("UDP by IPv6, as to a name server", r#""$ATTEMPT" attempt udp6"#).seen_by(World::was_told),
    row("Unix socket", r#""$ATTEMPT" attempt unix"#),
    row("Unix datagram", r#""$ATTEMPT" attempt unix-datagram"#).seen_by(World::was_told),
    row("raw Unix socket", r#""$ATTEMPT" attempt unix-raw"#).seen_by(World::was_told),
    row("abstract Unix socket", r#""$ATTEMPT" attempt abstract"#),
    row("io_uring", r#""$ATTEMPT" attempt io-uring"#),
    row("socket of the host of a virtual machine", r#""$ATTEMPT" attempt vsock"#),
    row("raw socket", r#""$ATTEMPT" attempt raw-socket"#).by_administrator(NEEDS_CAPABILITIES),
];

/// Whether the process that a command left has the pipe open.
pub(crate) fn still_holds(world: &World) -> bool {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap();
    let pipe = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(world.path("root/pipe"));
    // The end of a pipe that nobody writes to is read at once; else it would have to be waited for.
    pipe.is_ok_and(|mut pipe| pipe.read(&mut [0]).is_err())
}

/// A line that goes on once its process in another session holds a pipe.
macro_rules! holding {
    ($then:literal) => {
        concat!(
            "mkfifo pipe; setsid sh -c 'exec 3<>pipe; echo $$ > left; exec sleep 60' & \
             until test -s left; do :; done",
            $then
        )
    };
}

/// One that says so, and waits.
pub(crate) const HOLDS: &str = holding!("; echo on; sleep 60");
/// Ones that end their helper, and say so or wait.
pub(crate) const ENDS_HELPER: &str = holding!("; kill -9 $PPID; echo on");
pub(crate) const ENDS_HELPER_AND_WAITS: &str = holding!("; kill -9 $PPID; sleep 60");

pub(crate) const OUTLIVING: &[Row] = &[
    row("own session", holding!("")).leaves("sleep"),
    row("orphan", r#"mkfifo pipe; (sh -c 'exec 3<>pipe; echo $$ > left; exec sleep 60' &); until test -s left; do :; done"#)
        .leaves("sleep"),
    row("deaf to signals", r#"mkfifo pipe; (trap '' TERM HUP INT; setsid sh -c 'exec 3<>pipe; echo $$ > left; exec sleep 60' &); until test -s left; do :; done"#)
        .leaves("sleep"),
    row("without its first thread", r#"mkfifo pipe; (setsid "$ATTEMPT" attempt outlive-as-threads &); until test -s left; do :; done"#)
        .leaves("attempt"),
];

/// Bytes of output that are kept of one that is flooded.
const OUTPUT: usize = 64 << 10;

fn less_output(limits: &mut Limits) {
    limits.output = OUTPUT;
}

fn kept(output: &BoundedOutput) -> usize {
    output.head.len() + output.tail.len()
}

pub(crate) const FLOODS: &[Row] = &[
    row("processes", r#""$ATTEMPT" attempt forks"#).limited(|limits| limits.processes = 40),
    row("memory", r#""$ATTEMPT" attempt memory"#).limited(|limits| limits.memory = 64 << 20),
    row("memory without the first thread", r#""$ATTEMPT" attempt memory-of-threads"#)
        .limited(|limits| limits.memory = 64 << 20),
    row("memory in a file without a name", r#""$ATTEMPT" attempt memory-in-file"#)
        .limited(|limits| limits.memory = 64 << 20),
    row("shared memory that nobody maps", r#""$ATTEMPT" attempt shared-memory"#)
        .limited(|limits| limits.memory = 64 << 20)
        .not_in_partial("there is no IPC namespace: what is a command's cannot be told"),
    row("a file", "head -c 40000000 /dev/zero > big").limited(|limits| limits.file_size = 8 << 20),
    row("temporary files", r#"head -c 40000000 /dev/zero > "$TMPDIR/big""#)
        .limited(|limits| limits.memory = 64 << 20)
        .not_in_partial("there is no file system in memory: the files count as those of a folder"),
    // More than is kept between two counts, and until the next one.
    row("free space", r#"head -c 48000000 /dev/zero > "$HOME/big" && sleep 0.3"#)
        .with(Surroundings::SmallHome)
        .limited(|limits| limits.free_space = SMALL / 2),
    row("output", "head -c 8000000 /dev/zero")
        .told_by(|outcome| kept(&outcome.standard) > OUTPUT)
        .limited(less_output),
    row("output of errors", "head -c 8000000 /dev/zero >&2")
        .told_by(|outcome| kept(&outcome.error) > OUTPUT)
        .limited(less_output),
];

pub(crate) const HOME: &[Row] = &[
    row("read the store", r#"grep -q s3cret "$OWNER_HOME/loom.db""#),
    row("write the store", r#"echo x >> "$OWNER_HOME/loom.db""#).changes("home/loom.db", SECRET),
    row(
        "another workspace's home",
        r#"mkdir -p "$OWNER_HOME/sandbox/other" && echo x > "$OWNER_HOME/sandbox/other/.profile""#,
    )
    .makes("home/sandbox/other/.profile"),
    row("settings of the workspace", "grep -q s3cret .drawloom/workspace.toml")
        .not_in_partial("a folder in a root that is read cannot be hidden"),
    row("change settings of the workspace", "echo x >> .drawloom/workspace.toml")
        .changes("root/.drawloom/workspace.toml", SECRET),
];

pub(crate) const TERMINAL: &[Row] = &[
    row("inherited descriptor", "grep -q s3cret <&9"),
    row("input of the supervisor", "grep -q s3cret"),
    row("an input that is not empty", "! test -c /proc/self/fd/0"),
    row("request to type into a terminal", r#""$ATTEMPT" attempt terminal-request"#),
    row("a terminal of one's own", ": < /dev/ptmx"),
    row("typing into a terminal", r#""$ATTEMPT" attempt type-into-terminal"#)
        .by_administrator(NEEDS_CAPABILITIES),
];

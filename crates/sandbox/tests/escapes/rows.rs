//! The attempts, in classes. A new one is a row here.

use drawloom_sandbox::Limits;

use crate::world::{SECRET, World};

/// One attempt to escape.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Line of a shell. It ends well if it got what it wanted.
    pub(crate) line: &'static str,
    /// What else shows that it succeeded, looked at afterwards from outside.
    pub(crate) effect: Option<fn(&World) -> bool>,
    /// Why the row cannot be held at level *partial*.
    pub(crate) partial: Option<&'static str>,
    pub(crate) limits: Option<fn(&mut Limits)>,
    /// Whether the command has a package cache of the owner.
    pub(crate) cached: bool,
    /// Whether the folder outside is a further root of the command, for reading.
    pub(crate) further: bool,
    /// Whether whoever starts the command has a terminal, at which `y` was typed.
    pub(crate) at_terminal: bool,
}

pub(crate) const fn row(name: &'static str, line: &'static str) -> Row {
    let (effect, partial, limits) = (None, None, None);
    Row { name, line, effect, partial, limits, cached: false, further: false, at_terminal: false }
}

impl Row {
    /// Succeeds only if something is to be seen of it afterwards.
    pub(crate) const fn seen_by(self, effect: fn(&World) -> bool) -> Self {
        Self { effect: Some(effect), ..self }
    }

    pub(crate) const fn not_in_partial(self, reason: &'static str) -> Self {
        Self { partial: Some(reason), ..self }
    }

    pub(crate) const fn at_terminal(self) -> Self {
        Self { at_terminal: true, ..self }
    }

    const fn limited(self, limits: fn(&mut Limits)) -> Self {
        Self { limits: Some(limits), ..self }
    }
}

const SHARED_PROC: &str = "there is no process namespace: what /proc says of others is read";
pub(crate) const NO_LANDLOCK_RIGHT: &str = "no right of Landlock holds it";

pub(crate) const KEYS: &[Row] = &[
    row("environment of the supervisor", r#"test -n "$OWNERS_KEY""#),
    row("environment of a process", r#"tr '\0' '\n' < /proc/$VICTIM/environ | grep -q s3cret"#),
    row("environment of any process", r#""$ATTEMPT" attempt environ-of-all"#),
    row("arguments of any process", r#""$ATTEMPT" attempt arguments-of-all"#).not_in_partial(SHARED_PROC),
    row("key file of the owner", r#"grep -q s3cret "$OUTSIDE/file""#),
    row("passwords of the machine", "grep -q root /etc/shadow").not_in_partial("/etc is read as it is"),
    row("files of the owner's home", r#"ls "$OWNER_HOME" | grep -q loom"#),
];

pub(crate) const OUTSIDE: &[Row] = &[
    row("create", r#"mkdir -p "$OUTSIDE"; echo x > "$OUTSIDE/new""#).seen_by(|w| is_there(w, "outside/new")),
    row("append", r#"echo x >> "$OUTSIDE/file""#),
    row("truncate", r#": > "$OUTSIDE/file""#),
    row("rename over", r#"echo x > new && mv -f new "$OUTSIDE/file""#),
    row("move away", r#"mv "$OUTSIDE/file" taken"#),
    row("remove", r#"rm "$OUTSIDE/file""#),
    row("make a folder", r#"mkdir -p "$OUTSIDE/new""#).seen_by(|w| is_there(w, "outside/new")),
    row("hard link in the root", r#"ln "$OUTSIDE/file" link && echo x >> link"#),
    row("symbolic link in the root", r#"ln -s "$OUTSIDE/file" link && echo x >> link"#),
    row("read by a symbolic link", r#"ln -s "$OUTSIDE/file" link && grep -q s3cret link"#),
    row("permissions", r#"chmod 600 "$OUTSIDE/file""#).not_in_partial(NO_LANDLOCK_RIGHT),
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
    row("hook", "echo x > .git/hooks/pre-commit").seen_by(|w| is_there(w, "root/.git/hooks/pre-commit")),
    row("configuration of git", "echo '[core]fsmonitor=x' >> .git/config")
        .seen_by(|w| differs(w, "root/.git/config", CONFIG)),
    row("configuration of git by rename", "cp .git/config c && echo x >> c && mv c .git/config")
        .seen_by(|w| differs(w, "root/.git/config", CONFIG)),
    row("configuration of a worktree", "echo x > .git/config.worktree")
        .seen_by(|w| is_there(w, "root/.git/config.worktree")),
    row("another common folder", "echo ../evil > .git/commondir")
        .seen_by(|w| is_there(w, "root/.git/commondir")),
    row("attributes", "echo '* filter=x' > .git/info/attributes")
        .seen_by(|w| is_there(w, "root/.git/info/attributes")),
    row("hook of a submodule", "echo x > .git/modules/libs/sub/hooks/post-checkout")
        .seen_by(|w| is_there(w, "root/.git/modules/libs/sub/hooks/post-checkout")),
    row("hook of the git folder elsewhere", r#"echo x > "$OTHER_GIT/hooks/post-checkout""#)
        .seen_by(|w| is_there(w, "other.git/hooks/post-checkout")),
    row("new git folder with a hook", "mkdir -p n/.git/hooks && echo x > n/.git/hooks/pre-commit")
        .seen_by(|w| is_there(w, "root/n/.git/hooks/pre-commit")),
    row(
        "bare git folder",
        "mkdir -p n/objects n/refs && echo x > n/HEAD && echo '[core]fsmonitor=x' > n/config",
    )
    .seen_by(|w| is_there(w, "root/n/config")),
    row(
        "bare git folder behind links",
        "mkdir n a b; ln -s ../a n/objects; ln -s ../b n/refs; echo x > n/HEAD; echo '[core]fsmonitor=x' > n/config",
    )
    .seen_by(|w| is_there(w, "root/n/config")),
    row(
        "bare git folder with its data elsewhere",
        "mkdir n; echo x > n/HEAD; echo ../.git > n/commondir; echo '[core]fsmonitor=x' > n/config.worktree",
    )
    .seen_by(|w| is_there(w, "root/n/config.worktree")),
    row("behind a folder that looks like git's", "mkdir objects refs && echo x > HEAD && echo x > .envrc")
        .seen_by(|w| is_there(w, "root/.envrc")),
    row("hooks where the configuration looks for them", r#"echo x > "$ROOT/elsewhere/hooks/pre-commit""#)
        .seen_by(|w| is_there(w, "root/elsewhere/hooks/pre-commit")),
    row("configuration that is included", r#"echo '[core]fsmonitor=x' > "$ROOT/elsewhere/shared""#)
        .seen_by(|w| differs(w, "root/elsewhere/shared", "")),
    row("target of a protected link", "echo x > settings/tasks.json")
        .seen_by(|w| is_there(w, "root/settings/tasks.json")),
    row("target of a link on the way", "echo x > tools/config.toml")
        .seen_by(|w| differs(w, "root/tools/config.toml", "")),
    row("file in place of a git folder", "mkdir n && echo 'gitdir: ../evil' > n/.git")
        .seen_by(|w| is_there(w, "root/n/.git")),
    row("truncate instructions", ": > AGENTS.md").seen_by(|w| differs(w, "root/AGENTS.md", "ours")),
    row("rename over instructions", "echo x > n && mv -f n AGENTS.md")
        .seen_by(|w| differs(w, "root/AGENTS.md", "ours")),
    row("remove instructions", "rm -f AGENTS.md").seen_by(|w| !is_there(w, "root/AGENTS.md")),
    row("change a skill", "echo x >> skills/one/SKILL.md")
        .seen_by(|w| differs(w, "root/skills/one/SKILL.md", "ours")),
    row("new skill", "mkdir skills/two && echo x > skills/two/SKILL.md")
        .seen_by(|w| is_there(w, "root/skills/two")),
    row("new memory", "echo x > MEMORY.md").seen_by(|w| is_there(w, "root/MEMORY.md")),
    row("new environment file", "echo x > .envrc").seen_by(|w| is_there(w, "root/.envrc")),
    row("new settings of an editor below", "mkdir -p src/.vscode && echo x > src/.vscode/tasks.json")
        .seen_by(|w| is_there(w, "root/src/.vscode")),
    row("new configuration of cargo", "mkdir -p src/.cargo && echo x > src/.cargo/config.toml")
        .seen_by(|w| is_there(w, "root/src/.cargo/config.toml")),
    row("new configuration of other version control", "mkdir .hg && echo x > .hg/hgrc")
        .seen_by(|w| is_there(w, "root/.hg/hgrc")),
    row("new settings of an editor by their last part", "echo x > src/x.code-workspace")
        .seen_by(|w| is_there(w, "root/src/x.code-workspace")),
    row("place of a push", "mkdir .git/remotes && echo 'URL: /evil' > .git/remotes/origin")
        .seen_by(|w| is_there(w, "root/.git/remotes/origin")),
    row("another spelling", "echo x > .EnvRC").seen_by(|w| is_there(w, "root/.EnvRC")),
];

pub(crate) const ANCESTORS: &[Row] = &[
    row("a second name that was there before", "echo x >> second-name")
        .seen_by(|w| differs(w, "root/BOOT.md", "ours")),
    row("move the git folder", "mv .git g2 && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit")
        .seen_by(|w| is_there(w, "root/.git/hooks/pre-commit") || !is_there(w, "root/.git/HEAD")),
    row(
        "move the folder of cards",
        "mv docs d2 && mkdir -p docs/capabilities && echo x > docs/capabilities/card.md",
    )
    .seen_by(|w| differs(w, "root/docs/capabilities/card.md", "ours")),
    row("move the folder of workflows", "mv .github d2")
        .seen_by(|w| !is_there(w, "root/.github/workflows/ci.yml")),
    row("move the modules", "mv .git/modules m2")
        .seen_by(|w| !is_there(w, "root/.git/modules/libs/sub/config")),
    row("hard link to instructions", "ln AGENTS.md link && echo x >> link")
        .seen_by(|w| differs(w, "root/AGENTS.md", "ours")),
    row("replace a protected link", "ln -sf src/main.txt CLAUDE.md")
        .seen_by(|w| differs(w, "root/CLAUDE.md", "ours")),
    row("link in place of a protected folder", "mv skills s2 && ln -s src skills")
        .seen_by(|w| differs(w, "root/skills/one/SKILL.md", "ours")),
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
    row("settings of the kernel", r#""$ATTEMPT" attempt kernel-settings"#),
    row("capabilities", r#""$ATTEMPT" attempt capabilities"#),
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
    row("join a namespace", r#""$ATTEMPT" attempt setns"#),
    row("another root", r#""$ATTEMPT" attempt chroot"#),
    row("open by handle", r#""$ATTEMPT" attempt handle"#),
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
    row("raw socket", r#""$ATTEMPT" attempt raw-socket"#),
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
    row("own session", holding!("")).seen_by(still_holds),
    row("orphan", r#"mkfifo pipe; (sh -c 'exec 3<>pipe; echo $$ > left; exec sleep 60' &); until test -s left; do :; done"#)
        .seen_by(still_holds),
    row("deaf to signals", r#"mkfifo pipe; (trap '' TERM HUP INT; setsid sh -c 'exec 3<>pipe; echo $$ > left; exec sleep 60' &); until test -s left; do :; done"#)
        .seen_by(still_holds),
    row("without its first thread", r#"mkfifo pipe; (setsid "$ATTEMPT" attempt outlive-as-threads &); until test -s left; do :; done"#)
        .seen_by(still_holds),
];

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
    row("free space", "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.05; done")
        .limited(|limits| limits.free_space = u64::MAX),
];

pub(crate) const HOME: &[Row] = &[
    row("read the store", r#"grep -q s3cret "$OWNER_HOME/loom.db""#),
    row("write the store", r#"echo x >> "$OWNER_HOME/loom.db""#)
        .seen_by(|w| differs(w, "home/loom.db", SECRET)),
    row(
        "another workspace's home",
        r#"mkdir -p "$OWNER_HOME/sandbox/other" && echo x > "$OWNER_HOME/sandbox/other/.profile""#,
    )
    .seen_by(|w| is_there(w, "home/sandbox/other/.profile")),
    row("settings of the workspace", "grep -q s3cret .drawloom/workspace.toml")
        .not_in_partial("a folder in a root that is read cannot be hidden"),
    row("change settings of the workspace", "echo x >> .drawloom/workspace.toml")
        .seen_by(|w| differs(w, "root/.drawloom/workspace.toml", SECRET)),
];

pub(crate) const TERMINAL: &[Row] = &[
    row("inherited descriptor", "grep -q s3cret <&9"),
    row("input of the supervisor", "grep -q s3cret"),
    row("an input that is not empty", "! test -c /proc/self/fd/0"),
    row("request to type into a terminal", r#""$ATTEMPT" attempt terminal-request"#),
    row("typing into a terminal", r#""$ATTEMPT" attempt type-into-terminal"#),
];

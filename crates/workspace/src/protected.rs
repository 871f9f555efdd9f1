//! The protected set: names that run, steer or remember something (spec: security §1).
//!
//! One table serves all who must agree on it: file tools (which may write a protected name only
//! after asking, some never), the sandbox (which mounts them read-only), and the snapshot that is
//! compared after a command where there is no such mount.
//!
//! Matching is by path components, never by text, and folds what file systems and programs fold:
//! case, trailing dots and spaces, characters that some file systems ignore, and the short name
//! `GIT~1`. A name that only looks different must not be a way around.

use std::path::Path;
use std::sync::LazyLock;

use crate::path::RelativePath;

/// Folders in which a protected path counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtectedScope {
    /// At the top of the root only: names that are ordinary elsewhere (`src/hooks/`).
    Top,
    /// In every folder: programs look for these wherever they are started.
    Anywhere,
}

/// Permission of file tools for a protected path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protection {
    /// Written only after a person saw the difference; unattended never.
    Ask,
    /// Never written by a tool.
    Never,
}

/// One row of the set: a path, all of it and everything below it protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protected {
    /// Components; `*` at the end of a last one stands for every name that begins so, at its beginning for every one that ends so.
    pub path: &'static [&'static str],
    pub scope: ProtectedScope,
    pub tools: Protection,
    /// Whether the sandbox mounts it read-only. Not all of `.git`: commits must work.
    pub mounted: bool,
}

const fn row(path: &'static [&'static str], scope: ProtectedScope, tools: Protection) -> Protected {
    Protected { path, scope, tools, mounted: true }
}

use ProtectedScope::{Anywhere, Top};
use Protection::{Ask, Never};

/// The set. A path is governed by the strictest row that matches.
pub const PROTECTED: &[Protected] = &[
    // Git runs its hooks and what its configuration names; tools use the sandboxed git instead.
    Protected { path: &[".git"], scope: Anywhere, tools: Never, mounted: false },
    row(&[".git", "hooks"], Anywhere, Never),
    // `config.worktree` too.
    row(&[".git", "config*"], Anywhere, Never),
    row(&[".git", "info"], Anywhere, Never),
    // It names a folder whose configuration git reads instead.
    row(&[".git", "commondir"], Anywhere, Never),
    // Where a push without a configured remote goes.
    row(&[".git", "remotes"], Anywhere, Never),
    row(&[".git", "branches"], Anywhere, Never),
    // Other version control, with programs in its configuration. Not all of it: commits must work.
    Protected { path: &[".hg"], scope: Anywhere, tools: Never, mounted: false },
    row(&[".hg", "hgrc*"], Anywhere, Never),
    // It names a repository whose configuration is read instead.
    row(&[".hg", "sharedpath"], Anywhere, Never),
    Protected { path: &[".jj"], scope: Anywhere, tools: Never, mounted: false },
    row(&[".jj", "repo", "config*"], Anywhere, Never),
    row(&[".jj", "workspace-config*"], Anywhere, Never),
    row(&[".gitmodules"], Anywhere, Ask),
    // Ours, and what we remember.
    row(&[".drawloom"], Anywhere, Never),
    row(&[".openclaw_runtime"], Top, Ask),
    row(&["memory", "observations.jsonl"], Top, Never),
    row(&["memory"], Top, Ask),
    row(&["handoffs"], Top, Ask),
    row(&["reminders.json"], Top, Ask),
    // Instructions that every session reads.
    row(&["AGENTS.md"], Anywhere, Ask),
    row(&["CLAUDE.md"], Anywhere, Ask),
    row(&["AGENTS.override.md"], Anywhere, Ask),
    row(&["CLAUDE.local.md"], Anywhere, Ask),
    row(&["GEMINI.md"], Anywhere, Ask),
    row(&["SOUL.md"], Top, Ask),
    row(&["IDENTITY.md"], Top, Ask),
    row(&["USER.md"], Top, Ask),
    row(&["TOOLS.md"], Top, Ask),
    row(&["HEARTBEAT.md"], Top, Ask),
    row(&["BOOT.md"], Top, Ask),
    row(&["BOOTSTRAP.md"], Top, Ask),
    row(&["MEMORY.md"], Top, Ask),
    row(&["HANDOFF.md"], Top, Ask),
    // What the agent can be made to do.
    row(&["skills"], Top, Ask),
    row(&[".agents"], Anywhere, Ask),
    row(&["commands"], Top, Ask),
    row(&["hooks"], Top, Ask),
    row(&["docs", "capabilities"], Top, Ask),
    // What the owner's other programs run by themselves.
    row(&[".envrc"], Anywhere, Ask),
    row(&[".vscode"], Anywhere, Ask),
    row(&[".idea"], Anywhere, Ask),
    row(&[".cargo", "config*"], Anywhere, Ask),
    row(&[".npmrc"], Anywhere, Ask),
    row(&[".husky"], Anywhere, Ask),
    row(&[".pre-commit-config.yaml"], Anywhere, Ask),
    row(&[".github", "workflows"], Anywhere, Ask),
    row(&[".mcp.json"], Anywhere, Ask),
    row(&[".claude"], Anywhere, Ask),
    row(&[".cursor"], Anywhere, Ask),
    row(&[".codex"], Anywhere, Ask),
    // Other agents' instructions, servers and hooks.
    row(&[".aider.conf*"], Anywhere, Ask),
    row(&[".amazonq"], Anywhere, Ask),
    row(&[".clinerules*"], Anywhere, Ask),
    row(&[".continue"], Anywhere, Ask),
    row(&[".continuerules"], Anywhere, Ask),
    row(&[".cursorrules"], Anywhere, Ask),
    row(&[".gemini"], Anywhere, Ask),
    row(&[".github", "agents"], Anywhere, Ask),
    row(&[".github", "chatmodes"], Anywhere, Ask),
    row(&[".github", "copilot-instructions.md"], Anywhere, Ask),
    row(&[".github", "hooks"], Anywhere, Ask),
    row(&[".github", "instructions"], Anywhere, Ask),
    row(&[".github", "prompts"], Anywhere, Ask),
    row(&[".goosehints"], Anywhere, Ask),
    row(&[".junie"], Anywhere, Ask),
    row(&[".kiro"], Anywhere, Ask),
    row(&[".opencode"], Anywhere, Ask),
    row(&["opencode.json*"], Anywhere, Ask),
    row(&[".roo"], Anywhere, Ask),
    row(&[".roorules*"], Anywhere, Ask),
    row(&[".windsurf"], Anywhere, Ask),
    row(&[".windsurfrules"], Anywhere, Ask),
    // Editors that run what stands in a folder once it is opened.
    row(&[".devcontainer"], Anywhere, Ask),
    row(&[".devcontainer.json"], Anywhere, Ask),
    row(&[".dir-locals*"], Anywhere, Ask),
    row(&["*.code-workspace"], Anywhere, Ask),
    row(&[".exrc"], Anywhere, Ask),
    row(&[".fleet"], Anywhere, Ask),
    row(&[".gvimrc"], Anywhere, Ask),
    row(&[".helix"], Anywhere, Ask),
    row(&[".lvimrc"], Anywhere, Ask),
    row(&[".nvim.lua"], Anywhere, Ask),
    row(&[".nvimrc"], Anywhere, Ask),
    row(&[".vimrc"], Anywhere, Ask),
    row(&[".zed"], Anywhere, Ask),
    // Package managers, hooks of git and servers that build.
    row(&[".circleci"], Anywhere, Ask),
    row(&[".forgejo", "workflows"], Anywhere, Ask),
    row(&[".gitea", "workflows"], Anywhere, Ask),
    row(&[".gitlab-ci.yml"], Anywhere, Ask),
    row(&["lefthook.*"], Anywhere, Ask),
    row(&["lefthook-local.*"], Anywhere, Ask),
    row(&[".lefthook*"], Anywhere, Ask),
    row(&[".pnpmfile*"], Anywhere, Ask),
    row(&[".Rprofile"], Anywhere, Ask),
    // Its `path` is a folder of programs that `cargo` runs.
    row(&["rust-toolchain"], Anywhere, Ask),
    row(&["rust-toolchain.toml"], Anywhere, Ask),
    row(&[".tool-versions"], Anywhere, Ask),
    row(&[".yarnrc*"], Anywhere, Ask),
];

/// Relation of a path to the protected set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtectionMatch {
    Nothing,
    /// The path is protected itself, or lies below a protected one.
    Protected(Protection),
    /// A folder on the way to a protected path: moving or removing it would move what it holds.
    OnTheWay(Protection),
}

/// Folders below which names that are protected anywhere are ordinary: packages bring them along, and nothing is loaded
/// from there. Git folders are not: git goes into each that its index names.
pub const DEPENDENCY_FOLDERS: [&str; 6] =
    ["node_modules", "target", ".venv", "venv", "vendor", "site-packages"];

/// Whether a name is the last one of a path that the sandbox mounts read-only somewhere.
pub fn ends_mounted(name: &str) -> bool {
    mounted_rows(&folded(name)).next().is_some()
}

/// Rows that the sandbox mounts read-only and whose last name is a folded one.
fn mounted_rows(name: &str) -> impl Iterator<Item = &'static Protected> {
    let rows = name.bytes().next().map_or(&[][..], |first| &MOUNTED[usize::from(first)]);
    rows.iter().copied().filter(move |row| row.path.last().is_some_and(|last| matches(name, last)))
}

/// Rows that the sandbox mounts read-only, by the first byte of the folded names that their last name may match: a look at
/// a workspace asks of each file, and most names begin as no row does.
static MOUNTED: LazyLock<Vec<Vec<&'static Protected>>> = LazyLock::new(|| {
    let may_begin = |row: &Protected, first: u8| {
        let last = row.path.last().and_then(|last| last.bytes().next());
        last.is_some_and(|last| last == b'*' || last.eq_ignore_ascii_case(&first))
    };
    let begun = |first| PROTECTED.iter().filter(|row| row.mounted && may_begin(row, first)).collect();
    (0..=u8::MAX).map(begun).collect()
});

/// Whether a path below a root is one that the sandbox mounts read-only: the path itself, not what lies below it.
pub fn is_mounted(path: &Path) -> bool {
    let Some(last) = path.file_name() else { return false };
    let last = folded(&last.to_string_lossy());
    mounted_rows(&last).any(|row| {
        let depth = path.components().count();
        if row.path.len() > depth || (row.scope == Top && row.path.len() < depth) {
            return false;
        }
        let names = path.components().skip(depth - row.path.len());
        let names = names.map(|name| folded(&name.as_os_str().to_string_lossy()));
        names.zip(row.path).all(|(name, pattern)| matches(&name, pattern))
    })
}

/// Whether the walls of commands hold a path below a root by its names: the sandbox mounts it read-only, or what it lies in.
/// No command changes it, and what one made there the walls take away.
pub fn is_held(path: &Path) -> bool {
    path.ancestors().any(is_mounted)
}

/// Whether a path below a root ends on the way to one that the sandbox mounts read-only: `docs`, `sub/.cargo`.
pub fn is_on_the_way(path: &Path) -> bool {
    let names: Vec<String> =
        path.components().map(|name| folded(&name.as_os_str().to_string_lossy())).collect();
    PROTECTED.iter().filter(|row| row.mounted).any(|row| {
        let starts = if row.scope == Top { 0..1 } else { 0..names.len() };
        starts.into_iter().any(|start| matches!(compare(&names[start..], row.path), Match::Above))
    })
}

/// Whether a name is that of a git folder, or of the file that stands for one in a linked worktree.
pub fn is_git_folder(name: &str) -> bool {
    matches(&folded(name), ".git")
}

/// Whether a name directly in a git folder is one that runs programs, or makes git read another configuration: those of
/// `.git` in the table, for bare folders and submodules too.
pub fn runs_in_git_folder(name: &str) -> bool {
    let name = folded(name);
    let rows = PROTECTED.iter().filter(|row| row.mounted && row.path.first() == Some(&".git"));
    rows.filter_map(|row| row.path.get(1)).any(|pattern| matches(&name, pattern))
}

/// Judges a path below a root.
pub fn touches(path: &RelativePath) -> ProtectionMatch {
    touches_from(path, false)
}

/// Why no person can let a command write a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTouchable {
    /// The walls leave it open anyhow, or it is a folder on the way to a protected path.
    #[error("is not protected itself: name in touches the protected path, or nothing")]
    NotProtected,
    #[error("is written by no command, whoever allows it")]
    Never,
    /// With the folder it would be open, too.
    #[error("holds what no command may write: name in touches the paths in it")]
    HoldsNever,
    #[error("is not there, and no command may make what it lies in: the tool write makes it")]
    OnlyByTools,
    #[error("lies outside of the folders of the command")]
    Outside,
    /// Behind its mount nothing is made, and what comes with a folder is found by the name of that.
    #[error("is not there: name in touches what protects it, {}", .0.as_path().display())]
    NotThere(RelativePath),
}

/// Whether a person may let a command write, or make, a path below a root.
///
/// # Errors
/// Why not.
pub fn check_touch(path: &RelativePath, is_there: bool) -> Result<(), NotTouchable> {
    match relations(path, false) {
        (Some(Never), _) => Err(NotTouchable::Never),
        (None, _) => Err(NotTouchable::NotProtected),
        (Some(Ask), Some(Never)) => Err(NotTouchable::HoldsNever),
        (Some(Ask), _) => match holder(path) {
            Some(holder) if !is_there && holder != *path => Err(match check_touch(&holder, true) {
                Ok(()) => NotTouchable::NotThere(holder),
                Err(_) => NotTouchable::OnlyByTools,
            }),
            _ => Ok(()),
        },
    }
}

/// The protected path that a path below a root is, or lies below.
pub fn holder(path: &RelativePath) -> Option<RelativePath> {
    let mut so_far = RelativePath::root();
    for name in path.as_path() {
        so_far = so_far.join(name).ok()?;
        if matches!(touches(&so_far), ProtectionMatch::Protected(_)) {
            return Some(so_far);
        }
    }
    None
}

/// Folders of the machine, whose files run or steer its programs.
const OF_THE_MACHINE: [&str; 9] = ["bin", "boot", "etc", "lib*", "opt", "run", "sbin", "usr", "var"];

/// Names in a home whose files run or steer its owner's programs, or open them.
const OF_A_HOME: [&str; 24] = [
    ".aws",
    ".bash*",
    ".cargo",
    ".config",
    ".cshrc",
    ".docker",
    ".emacs*",
    ".gitconfig",
    ".gnupg",
    ".inputrc",
    ".kube",
    ".local",
    ".login",
    ".netrc",
    ".pam_environment",
    ".profile",
    ".pypirc",
    ".ssh",
    ".tcshrc",
    ".tmux.conf",
    ".vim",
    ".xinitrc",
    ".xprofile",
    ".z*",
];

/// Whether what stands at a path below `/` steers programs of the machine or of a home, where each hidden file may.
pub fn steers_programs(path: &RelativePath) -> bool {
    let names: Vec<String> = path.as_path().iter().map(|name| folded(&name.to_string_lossy())).collect();
    let in_home = match names.first().map(String::as_str) {
        Some("root") => names.get(1),
        Some("home" | "users") => names.get(2),
        _ => None,
    };
    let is_hidden = in_home.is_some_and(|name| name.starts_with('.'));
    let is_of = |name: &str, patterns: &[&str]| patterns.iter().any(|pattern| matches(name, pattern));
    is_hidden
        || names.first().is_some_and(|first| is_of(first, &OF_THE_MACHINE))
        || names.iter().any(|name| is_of(name, &OF_A_HOME))
}

/// Judges a path below `/`, where each folder on the way may be the top of a workspace.
pub fn touches_anywhere(path: &RelativePath) -> ProtectionMatch {
    touches_from(path, true)
}

fn touches_from(path: &RelativePath, all_are_tops: bool) -> ProtectionMatch {
    match relations(path, all_are_tops) {
        (Some(protection), _) => ProtectionMatch::Protected(protection),
        (None, Some(protection)) => ProtectionMatch::OnTheWay(protection),
        (None, None) => ProtectionMatch::Nothing,
    }
}

/// The strictest row that a path is, or lies below, and the strictest of those that lie below it.
fn relations(path: &RelativePath, all_are_tops: bool) -> (Option<Protection>, Option<Protection>) {
    let names: Vec<String> = path.as_path().iter().map(|name| folded(&name.to_string_lossy())).collect();
    let mut below = None;
    let mut above = None;
    for row in PROTECTED {
        let starts = match row.scope {
            Top if !all_are_tops => 0..1,
            Top | Anywhere => 0..names.len().max(1),
        };
        for start in starts {
            match compare(&names[start.min(names.len())..], row.path) {
                Match::Below => below = below.max(Some(row.tools)),
                Match::Above => above = above.max(Some(row.tools)),
                Match::No => {}
            }
        }
    }
    (below, above)
}

enum Match {
    /// All of the row's path matches: the path is it, or below it.
    Below,
    /// The path ends in the middle of the row's path.
    Above,
    No,
}

fn compare(names: &[String], row: &[&str]) -> Match {
    if names.is_empty() {
        return Match::No;
    }
    if !names.iter().zip(row).all(|(name, pattern)| matches(name, pattern)) {
        Match::No
    } else if names.len() >= row.len() {
        Match::Below
    } else {
        Match::Above
    }
}

/// Whether a folded name is that of a pattern, whose letters are ASCII.
fn matches(name: &str, pattern: &str) -> bool {
    match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
        (Some(start), _) => name.get(..start.len()).is_some_and(|name| name.eq_ignore_ascii_case(start)),
        (None, Some(end)) => name
            .len()
            .checked_sub(end.len())
            .and_then(|length| name.get(length..))
            .is_some_and(|name| name.eq_ignore_ascii_case(end)),
        (None, None) => name.eq_ignore_ascii_case(pattern) || (pattern == ".git" && name == "git~1"),
    }
}

/// A name as the most forgiving file system compares it.
pub(crate) fn folded(name: &str) -> String {
    if name.is_ascii() {
        return name.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    }
    let kept: String = name.chars().filter(|c| !is_ignored(*c)).collect();
    kept.trim_end_matches(['.', ' ']).to_lowercase()
}

/// Characters that HFS+ leaves out when it compares names.
fn is_ignored(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests;

//! Completion by a shell: besides commands and flags the titles of trees, short ids, sessions and models.
//!
//! The script of `completions SHELL` asks this program at every Tab, with [`ASKED`] set. What is in the home it asks
//! of its own commands; no home is made, and no connection is opened.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use clap::{Arg, CommandFactory as _};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use commands::CommandError;
use serde_json::Value;

use crate::cli::Cli;
use crate::config::Layers;
use crate::embedded;
use crate::model_names;
use crate::paths::InvocationPaths;

/// The variable that names the shell that asks.
const ASKED: &str = "DRAWLOOM_COMPLETE";
/// The shell that asks.
static SHELL: OnceLock<OsString> = OnceLock::new();
/// Characters of a passage beside its short id.
const GLIMPSE: usize = 50;
/// Trees whose nodes are offered where no tree is named.
const NEWEST: usize = 5;
/// Nodes of a tree that are offered.
const MOST_NODES: &str = "1000";

/// Answers a shell that asks, and ends the process; returns if none does.
pub(crate) fn answer() {
    // The variable is gone where candidates are made.
    if let Some(shell) = env::var_os(ASKED) {
        SHELL.get_or_init(|| shell);
    }
    CompleteEnv::with_factory(|| completed(Cli::command(), "")).var(ASKED).complete();
}

fn is_asked_by(shell: &str) -> bool {
    SHELL.get().is_some_and(|asks| asks == shell)
}

/// The script by which a shell asks.
///
/// # Errors
/// When there is none for that shell.
pub(crate) fn script(shell: Shell) -> Result<Vec<u8>, CommandError> {
    let name = shell.to_string();
    let mut script = Vec::new();
    let written = Shells::builtins()
        .completer(&name)
        .map(|shell| shell.write_registration(ASKED, "drawloom", "drawloom", "drawloom", &mut script));
    match written {
        Some(Ok(())) => Ok(script),
        _ => Err(CommandError::usage(format!("there are no completions for {name}"), "name another shell")),
    }
}

/// `command` with what its arguments may be. `family` is the command it is one of.
fn completed(command: clap::Command, family: &str) -> clap::Command {
    let own = command.get_name().to_owned();
    let command = command.mut_args(|arg| with_candidates(arg, family, &own));
    command.mut_subcommands(|sub| completed(sub, &own))
}

/// `own` is the command's name, `family` that of the one around it.
fn with_candidates(arg: Arg, family: &str, own: &str) -> Arg {
    let value = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let id = arg.get_id().to_string();
    let completer: fn(&OsStr) -> Vec<CompletionCandidate> = match (value.as_deref(), id.as_str()) {
        (Some("TREE"), _) | (_, "tree") if own == "undelete" => archived_trees,
        (Some("TREE"), _) | (_, "tree") => trees,
        (_, "node" | "a" | "b") if family == "context" => nodes_and_trees,
        (_, "from") if family == "tree" => nodes_of_named_tree,
        (Some("NODE"), _) | (_, "node") => nodes,
        (_, "a" | "b") if family == "tree" => nodes,
        (_, "session") => sessions,
        (_, "name") if family == "sessions" && own == "restore" => archived_sessions,
        (_, "name") if family == "sessions" => sessions,
        (Some("MODEL"), _) => models,
        (_, "name") if family == "model" && own == "pull" => weights,
        (_, "name") if family == "model" => models,
        _ => return arg,
    };
    arg.add(ArgValueCompleter::new(completer))
}

fn trees(typed: &OsStr) -> Vec<CompletionCandidate> {
    trees_of(typed, &["tree", "list"])
}

fn archived_trees(typed: &OsStr) -> Vec<CompletionCandidate> {
    trees_of(typed, &["tree", "list", "--archived"])
}

fn trees_of(typed: &OsStr, list: &[&str]) -> Vec<CompletionCandidate> {
    let found = asked(list);
    let mut candidates = Vec::new();
    for tree in listed(&found, "trees") {
        let (title, id) = (text(tree, "title"), text(tree, "short_id"));
        candidates.push((title.to_owned(), id.to_owned()));
        candidates.push((id.to_owned(), title.to_owned()));
    }
    beginning(typed, candidates)
}

/// Nodes of the tree that is named; where a command takes a node of any tree, those of the newest trees.
fn nodes(typed: &OsStr) -> Vec<CompletionCandidate> {
    let trees = named_tree().map_or_else(newest_trees, |tree| vec![tree]);
    beginning(typed, trees.iter().flat_map(|tree| nodes_of(tree)).collect())
}

fn nodes_of_named_tree(typed: &OsStr) -> Vec<CompletionCandidate> {
    beginning(typed, named_tree().iter().flat_map(|tree| nodes_of(tree)).collect())
}

/// The tree of `tree COMMAND TREE`.
fn named_tree() -> Option<String> {
    let mut words = plain_words().into_iter();
    words.next().filter(|family| family == "tree")?;
    words.nth(1)
}

/// What is a node or a whole tree.
fn nodes_and_trees(typed: &OsStr) -> Vec<CompletionCandidate> {
    nodes(typed).into_iter().chain(trees(typed)).collect()
}

/// Short ids of the trees whose nodes are offered where none is named.
fn newest_trees() -> Vec<String> {
    let found = asked(&["tree", "list"]);
    let short = |tree: &Value| text(tree, "short_id").to_owned();
    listed(&found, "trees").take(NEWEST).map(short).collect()
}

/// The nodes of a tree by short id, those beside the path too, with their first words.
fn nodes_of(tree: &str) -> Vec<(String, String)> {
    let found = asked(&["tree", "show", tree, "--all", "--limit", MOST_NODES]);
    let node = |node: &Value| {
        let words: Vec<&str> = text(node, "text").split_whitespace().collect();
        (text(node, "short_id").to_owned(), words.join(" ").chars().take(GLIMPSE).collect())
    };
    // The beginning of a tree holds nothing.
    listed(&found, "nodes").filter(|node| !node["parent"].is_null()).map(node).collect()
}

fn sessions(typed: &OsStr) -> Vec<CompletionCandidate> {
    sessions_of(typed, &["sessions", "list"])
}

fn archived_sessions(typed: &OsStr) -> Vec<CompletionCandidate> {
    sessions_of(typed, &["sessions", "list", "--archived"])
}

fn sessions_of(typed: &OsStr, list: &[&str]) -> Vec<CompletionCandidate> {
    let found = asked(list);
    let named = |session: &Value| (text(session, "name").to_owned(), text(session, "title").to_owned());
    beginning(typed, listed(&found, "sessions").map(named).collect())
}

/// What the embedded engine runs.
fn weights(typed: &OsStr) -> Vec<CompletionCandidate> {
    beginning(typed, embedded::names().into_iter().map(|name| (name, String::new())).collect())
}

fn models(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Ok(paths) = InvocationPaths::of(home(), None) else { return Vec::new() };
    let layers = Layers::read(&paths.home, env::vars_os(), &[]);
    let Ok(config) = layers.config() else { return Vec::new() };
    let own = config.model.default.iter().chain(config.models.keys()).cloned();
    let known = model_names::catalogue(&config).map(|(name, _)| name);
    let mut names: Vec<String> = own.chain(embedded::names()).chain(known).collect();
    names.sort();
    names.dedup();
    beginning(typed, names.into_iter().map(|name| (name, String::new())).collect())
}

/// Candidates that begin as what was typed, with what is said beside them. A word with blanks is offered only to a
/// shell that quotes it, and one that a terminal might act on to none.
fn beginning(typed: &OsStr, candidates: Vec<(String, String)>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy().replace('\\', "");
    // These take over what is offered as it is.
    let quotes = !is_asked_by("bash") && !is_asked_by("powershell");
    let is_plain = |value: &str| value.chars().all(|c| c.is_alphanumeric() || "-_./:".contains(c));
    let fits = |value: &str| {
        !value.is_empty()
            && value.starts_with(&typed)
            && text::terminal::one_line(value) == value
            && (quotes || is_plain(value))
    };
    let candidates = candidates.into_iter().filter(|(value, _)| fits(value));
    let shown = |about: String| text::terminal::one_line(&about).into_owned();
    candidates
        .map(|(value, about)| {
            CompletionCandidate::new(value).help((!about.is_empty()).then(|| shown(about).into()))
        })
        .collect()
}

/// What a command of this program answers in JSON; nothing where it fails or there is no store.
fn asked(words: &[&str]) -> Value {
    let read = || {
        let paths = InvocationPaths::of(home(), None).ok()?;
        if !paths.home.join(store::home::DATABASE).exists() {
            return None;
        }
        let mut command = Command::new(env::current_exe().ok()?);
        command.args(["--json", "--quiet"]).arg("--home").arg(&paths.home).args(words);
        command.env_remove(ASKED).stdin(Stdio::null()).stderr(Stdio::null());
        serde_json::from_slice(&command.output().ok()?.stdout).ok()
    };
    read().unwrap_or_default()
}

fn listed<'a>(found: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    found[key].as_array().into_iter().flatten()
}

fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    of[key].as_str().unwrap_or_default()
}

/// The words of the line that is completed.
fn line() -> Vec<OsString> {
    env::args_os().skip_while(|word| word != "--").skip(2).collect()
}

/// The home the line names.
fn home() -> Option<PathBuf> {
    let words = line();
    let at = words.iter().position(|word| word == "--home");
    let apart = at.and_then(|at| words.get(at + 1).map(PathBuf::from));
    let joined = || words.iter().find_map(|word| word.to_str()?.strip_prefix("--home=").map(PathBuf::from));
    apart.or_else(joined)
}

/// The words of the line that are neither flags nor their values.
fn plain_words() -> Vec<String> {
    let (mut plain, program) = (Vec::new(), Cli::command());
    let mut words = line().into_iter().map(|word| unquoted(&word.to_string_lossy()));
    while let Some(word) = words.next() {
        if takes_value(&program, &word) {
            words.next();
        } else if !word.starts_with('-') {
            plain.push(word);
        }
    }
    plain
}

/// A word without what quotes it in the shell that asks. fish takes that away itself, and a title may hold it.
fn unquoted(word: &str) -> String {
    match shlex::split(word).as_deref() {
        Some([one]) if !is_asked_by("fish") => one.clone(),
        _ => word.to_owned(),
    }
}

/// Whether a word is a flag whose value is the next word, in any command.
fn takes_value(command: &clap::Command, word: &str) -> bool {
    let is_it = |arg: &&Arg| {
        let long = arg.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long));
        long || arg
            .get_short()
            .is_some_and(|short| word.strip_prefix('-').is_some_and(|it| it == short.to_string()))
    };
    command.get_arguments().find(is_it).is_some_and(|arg| arg.get_action().takes_values())
        || command.get_subcommands().any(|sub| takes_value(sub, word))
}

//! What a person and an agent do in a workspace, in any order.

use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;

#[derive(Debug, Clone)]
pub(super) enum Act {
    Write(String, String),
    Mkdir(String),
    Delete(String),
    Relocate { copy: bool, from: String, to: String, overwrite: bool },
    Run(Vec<Step>),
    Killed(Box<Act>, u8),
    PersonWrites(String, String),
    PersonDeletes(String),
    PersonChangesMode(String, u32),
}

/// What a command does in one step; where it cannot, it goes on.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Write(String, String),
    Append(String, String),
    Delete(String),
    DeleteFolder(String),
    Rename(String, String),
    Mode(String, u32),
    Link(String, String),
    /// A folder goes to another name, and a link to it comes in its place, or a link that is there.
    Swap(String, String),
}

impl Step {
    fn line(&self) -> String {
        let above = |path: &str| {
            path.rsplit_once('/').map_or_else(|| ":".to_owned(), |(above, _)| format!("mkdir -p '{above}'"))
        };
        match self {
            Self::Write(path, text) => format!("{} && printf %s '{text}' > '{path}'", above(path)),
            Self::Append(path, text) => format!("printf %s '{text}' >> '{path}'"),
            Self::Delete(path) => format!("rm -f '{path}'"),
            Self::DeleteFolder(path) => format!("[ -L '{path}' ] || rm -rf '{path}'"),
            Self::Rename(from, to) => format!("{}; mv -fT '{from}' '{to}'", above(to)),
            Self::Mode(path, mode) => format!("[ -L '{path}' ] || chmod {mode:o} '{path}'"),
            Self::Swap(path, link) => format!(
                "if [ -L '{link}' ]; then mv -T '{path}' t && mv -T '{link}' '{path}' && mv -T t '{link}'; \
                 else mv -T '{path}' '{link}' && ln -sT '{link}' '{path}'; fi"
            ),
            Self::Link(target, path) => format!("ln -sT '{target}' '{path}'"),
        }
    }
}

/// Runs the steps of a command, in a shell.
pub(super) fn run(steps: &[Step], folder: &Path) {
    let lines: Vec<String> = steps.iter().map(Step::line).collect();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &lines.join("\n")]).current_dir(folder);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
}

/// A step of a command, also one that closes a path to its owner, or puts a link where a folder was, and that folder where
/// the link was.
pub(super) fn any_step() -> impl Strategy<Value = Step> {
    let mode = || prop::sample::select(vec![0, 0o200, 0o500, 0o700, 0o711, 0o1777]);
    prop_oneof![
        6 => step(),
        2 => (folder(), mode()).prop_map(|(path, mode)| Step::Mode(path, mode)),
        1 => (file(), mode()).prop_map(|(path, mode)| Step::Mode(path, mode)),
        2 => (folder(), prop::sample::select(vec!["l0", "l1"])).prop_map(|(path, link)| Step::Swap(path, link.to_owned())),
    ]
    .prop_filter("it is not recorded", |step| {
        let (Step::Write(path, _) | Step::Delete(path)) = step else { return true };
        !super::PASSED_OVER.contains(&path.as_str())
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (file(), text()).prop_map(|(path, text)| Step::Write(path, text)),
        2 => (file(), text()).prop_map(|(path, text)| Step::Append(path, text)),
        2 => file().prop_map(Step::Delete),
        1 => folder().prop_map(Step::DeleteFolder),
        2 => (file(), file()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => (folder(), folder()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => (file(), prop::sample::select(vec![0o600, 0o755, 0o644])).prop_map(|(path, mode)| Step::Mode(path, mode)),
        1 => (file(), file()).prop_map(|(target, path)| Step::Link(target, path)),
        1 => (passed_over(), text()).prop_map(|(path, text)| Step::Write(path, text)),
        1 => passed_over().prop_map(Step::Delete),
    ]
}

/// A path that no checkpoint holds: ignored by git, or in a folder of dependencies.
fn passed_over() -> impl Strategy<Value = String> {
    prop::sample::select(super::PASSED_OVER.to_vec()).prop_map(str::to_owned)
}

fn folder() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["d0", "d1", "d0/d1", "d0/d2", "d1/d2", "d0/d2/d1"]).prop_map(str::to_owned)
}

/// A path that is never a folder's.
fn file() -> impl Strategy<Value = String> {
    let folder = prop_oneof![1 => Just(String::new()), 3 => folder().prop_map(|folder| folder + "/")];
    (folder, prop::sample::select(vec!["f0", "f1", "f2", "f3", "l0"]))
        .prop_map(|(folder, name)| folder + name)
}

fn text() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "one", "two", "three\n", "\u{feff}four\r\n"]).prop_map(str::to_owned)
}

fn agents() -> impl Strategy<Value = Act> {
    let relocate = |from: BoxedStrategy<String>, to: BoxedStrategy<String>| {
        (any::<bool>(), from, to, any::<bool>()).prop_map(|(copy, from, to, overwrite)| Act::Relocate {
            copy,
            from,
            to,
            overwrite,
        })
    };
    prop_oneof![
        3 => (file(), text()).prop_map(|(path, text)| Act::Write(path, text)),
        1 => folder().prop_map(Act::Mkdir),
        2 => file().prop_map(Act::Delete),
        1 => folder().prop_map(Act::Delete),
        3 => relocate(file().boxed(), file().boxed()),
        3 => relocate(folder().boxed(), folder().boxed()),
    ]
}

pub(super) fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => agents(),
        4 => prop::collection::vec(step(), 1..6).prop_map(Act::Run),
        1 => (agents(), any::<u8>()).prop_map(|(act, undone)| Act::Killed(Box::new(act), undone)),
        2 => (file(), text()).prop_map(|(path, text)| Act::PersonWrites(path, text)),
        1 => (passed_over(), text()).prop_map(|(path, text)| Act::PersonWrites(path, text)),
        1 => file().prop_map(Act::PersonDeletes),
        1 => (file(), prop::sample::select(vec![0o600, 0o640, 0o750])).prop_map(|(path, mode)| Act::PersonChangesMode(path, mode)),
    ]
}

//! What a person and an agent do in a workspace, in any order.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

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
    PersonChangesMode(String),
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
}

impl Step {
    pub(super) fn run(&self, folder: &Path) {
        let at = |path: &String| folder.join(path);
        let above = |path: &String| drop(fs::create_dir_all(at(path).parent().unwrap()));
        match self {
            Self::Write(path, text) => {
                above(path);
                drop(fs::write(at(path), text));
            }
            Self::Append(path, text) => {
                let old = fs::read(at(path)).unwrap_or_default();
                drop(fs::write(at(path), [&old, text.as_bytes()].concat()));
            }
            Self::Delete(path) => drop(fs::remove_file(at(path))),
            Self::DeleteFolder(path) => drop(fs::remove_dir_all(at(path))),
            Self::Rename(from, to) => {
                above(to);
                drop(fs::rename(at(from), at(to)));
            }
            Self::Mode(path, mode) if !at(path).is_symlink() => {
                drop(fs::set_permissions(at(path), fs::Permissions::from_mode(*mode)));
            }
            Self::Mode(..) => {}
            Self::Link(target, path) => drop(symlink(target, at(path))),
        }
    }
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
    ]
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
        1 => file().prop_map(Act::PersonDeletes),
        1 => file().prop_map(Act::PersonChangesMode),
    ]
}

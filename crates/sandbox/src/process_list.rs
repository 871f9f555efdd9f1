//! Processes of a command, as `/proc` shows them.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// Process that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    pub(crate) id: i32,
    pub(crate) parent: i32,
    pub(crate) name: String,
    /// Memory that it holds, in pages.
    pub(crate) pages: u64,
}

/// Which processes are those of the command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProcessScope {
    /// All processes of the namespace but its first.
    Namespace,
    /// Processes that descend from a process, without it.
    DescendantsOf(i32),
    /// Processes that carry a mark, wherever they are in the tree; see [`mark`].
    Marked(u64),
}

/// Mark of the processes of one run: a limit of the kernel's that limits nothing any more (locks of files, since Linux
/// 2.4.25) and that every child inherits. A process may only lower it, and seccomp keeps a command from that. The number
/// is another one for each run of each process.
pub(crate) fn mark() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let run = NEXT.fetch_add(1, Ordering::Relaxed) & 0xff_ffff;
    1 << 62 | u64::from(std::process::id()) << 24 | run
}

/// Processes of a command that have not ended.
pub(crate) fn processes(scope: ProcessScope) -> Vec<ProcessEntry> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let all: Vec<ProcessEntry> = all.filter_map(entry_of).collect();
    match scope {
        ProcessScope::Namespace => all.into_iter().filter(|process| process.id != 1).collect(),
        ProcessScope::DescendantsOf(ancestor) => descendants(all, ancestor),
        ProcessScope::Marked(mark) => all.into_iter().filter(|process| has_mark(process.id, mark)).collect(),
    }
}

pub(crate) fn has_mark(process: i32, mark: u64) -> bool {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap_or_default();
    let mark = mark.to_string();
    limits
        .lines()
        .any(|line| line.starts_with("Max file locks") && line.split_whitespace().any(|word| word == mark))
}

fn descendants(mut rest: Vec<ProcessEntry>, ancestor: i32) -> Vec<ProcessEntry> {
    let mut known = BTreeSet::from([ancestor]);
    let mut found = Vec::new();
    loop {
        let (next, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|process| known.contains(&process.parent));
        if next.is_empty() {
            return found;
        }
        known.extend(next.iter().map(|process| process.id));
        found.extend(next);
        rest = others;
    }
}

/// What `stat` says of a process; nothing for one that has ended, or is gone. One whose first thread has ended lives on
/// in the others: what the first held is said by one of them then.
fn entry_of(id: i32) -> Option<ProcessEntry> {
    let read = |path: String| Some(String::from_utf8_lossy(&fs::read(path).ok()?).into_owned());
    let stat = parse(&read(format!("/proc/{id}/stat"))?)?;
    if !stat.has_ended {
        return Some(stat.entry(id));
    }
    let threads = fs::read_dir(format!("/proc/{id}/task")).ok()?.flatten();
    let mut threads =
        threads.filter_map(|thread| parse(&read(thread.path().join("stat").to_str()?.to_owned())?));
    threads.find(|thread| !thread.has_ended).map(|thread| thread.entry(id))
}

struct Stat {
    has_ended: bool,
    name: String,
    parent: i32,
    pages: u64,
}

impl Stat {
    fn entry(self, id: i32) -> ProcessEntry {
        ProcessEntry { id, parent: self.parent, name: self.name, pages: self.pages }
    }
}

/// The name stands in parentheses and may hold some, and spaces.
fn parse(stat: &str) -> Option<Stat> {
    let (before, after) = stat.rsplit_once(") ")?;
    let (_, name) = before.split_once('(')?;
    let fields: Vec<&str> = after.split(' ').collect();
    let has_ended = matches!(*fields.first()?, "Z" | "X");
    let (parent, pages) = (fields.get(1)?.parse().ok()?, fields.get(21)?.parse().ok()?);
    Some(Stat { has_ended, name: name.to_owned(), parent, pages })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_rest_of_its_line() {
        let stat = "7 (a) R 1 (b) S 3 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 100 4096000 42 1844 0";
        let entry = parse(stat).unwrap();
        assert_eq!((entry.name.as_str(), entry.parent, entry.pages), ("a) R 1 (b", 3, 42));
        assert!(!entry.has_ended && parse(&stat.replace(") S", ") Z")).unwrap().has_ended);
    }

    #[test]
    fn descendants_are_found_in_any_order() {
        let entry = |id, parent| ProcessEntry { id, parent, name: String::new(), pages: 0 };
        let all = vec![entry(9, 8), entry(8, 5), entry(5, 1), entry(6, 1)];
        let mut found: Vec<i32> = descendants(all, 5).into_iter().map(|process| process.id).collect();
        found.sort_unstable();
        assert_eq!(found, [8, 9]);
    }
}

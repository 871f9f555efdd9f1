//! Processes of a command, as `/proc` shows them.

use std::collections::BTreeSet;
use std::fs;

/// Process that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProcessEntry {
    pub(super) id: i32,
    pub(super) parent: i32,
    pub(super) name: String,
    /// Memory that it holds, in pages.
    pub(super) pages: u64,
}

/// Which processes are those of the command.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProcessScope {
    /// All of the namespace but its first.
    Namespace,
    /// Those that descend from a process, without it.
    DescendantsOf(i32),
}

/// Processes of a command that have not ended.
pub(super) fn processes(scope: ProcessScope) -> Vec<ProcessEntry> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let all: Vec<ProcessEntry> = all.filter_map(entry_of).collect();
    match scope {
        ProcessScope::Namespace => all.into_iter().filter(|process| process.id != 1).collect(),
        ProcessScope::DescendantsOf(ancestor) => descendants(all, ancestor),
    }
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

/// What `stat` says of a process; nothing for one that has ended, or is gone.
fn entry_of(id: i32) -> Option<ProcessEntry> {
    parse(id, &String::from_utf8_lossy(&fs::read(format!("/proc/{id}/stat")).ok()?))
}

/// The name stands in parentheses and may hold some, and spaces.
fn parse(id: i32, stat: &str) -> Option<ProcessEntry> {
    let (before, after) = stat.rsplit_once(") ")?;
    let (_, name) = before.split_once('(')?;
    let fields: Vec<&str> = after.split(' ').collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    let (parent, pages) = (fields.get(1)?.parse().ok()?, fields.get(21)?.parse().ok()?);
    Some(ProcessEntry { id, parent, name: name.to_owned(), pages })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_rest_of_its_line() {
        let stat = "7 (a) R 1 (b) S 3 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 100 4096000 42 1844 0";
        let entry = parse(7, stat).unwrap();
        assert_eq!((entry.name.as_str(), entry.parent, entry.pages), ("a) R 1 (b", 3, 42));
        assert_eq!(parse(7, &stat.replace(") S", ") Z")), None);
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

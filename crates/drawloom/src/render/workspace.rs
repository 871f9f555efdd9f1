//! Workspaces: each on a line, with what it would load below.

use std::fmt::Write as _;
use std::path::Path;

use commands::results::workspace::{TrustState, WorkspaceShown, Workspaces};
use text::bytes::size;
use text::terminal::one_line;
use workspace::trust::{Inventory, InventoryChange, InventoryItem, Unread};

use super::OutputStyle;
use super::columns::{columns, word};

/// Lines of a list that are shown; a workspace may hold thousands of notes.
const SHOWN: usize = 40;

pub(super) fn workspaces(found: &Workspaces, to: OutputStyle) -> String {
    found.workspaces.iter().map(|shown| workspace(shown, to)).collect()
}

fn workspace(found: &WorkspaceShown, to: OutputStyle) -> String {
    let state = match found.state {
        TrustState::Trusted => "trusted",
        TrustState::Untrusted => "not loaded",
        TrustState::NothingToLoad => "nothing to load",
        TrustState::Missing => "missing",
    };
    let here = if found.current { " (here)" } else { "" };
    let why = match found.state {
        TrustState::NothingToLoad => String::new(),
        _ => format!(": {}", found.why),
    };
    let mut out = format!("{}{here}  {state}{why}\n", to.line(&found.path));
    let WorkspaceShown { items, unread, incomplete, changes, .. } = found;
    for line in (Brought { items, unread, incomplete: *incomplete, changes }).lines() {
        let _ = writeln!(out, "  {line}");
    }
    out
}

/// What a workspace brings, a line each, for a person to decide by.
pub(crate) fn inventory(found: &Inventory, changes: &[InventoryChange]) -> Vec<String> {
    let Inventory { items, unread, incomplete } = found;
    Brought { items, unread, incomplete: *incomplete, changes }.lines()
}

struct Brought<'a> {
    items: &'a [InventoryItem],
    unread: &'a [Unread],
    incomplete: bool,
    changes: &'a [InventoryChange],
}

impl Brought<'_> {
    /// The lines, free of what a terminal might obey.
    fn lines(&self) -> Vec<String> {
        let name = |path: &Path| one_line(&path.to_string_lossy()).into_owned();
        let item = |item: &InventoryItem| {
            vec![name(&item.path), word(&item.kind), size(item.bytes), self.mark(&item.path).to_owned()]
        };
        let unread = |unread: &Unread| {
            let why = one_line(&unread.why).into_owned();
            vec![name(&unread.path), "not read".to_owned(), String::new(), why]
        };
        let all = self.items.iter().map(item).chain(self.unread.iter().map(unread));
        let rows: Vec<_> = all.take(SHOWN).collect();
        let mut lines: Vec<String> = columns(&rows).lines().map(str::to_owned).collect();
        if self.items.len() + self.unread.len() > SHOWN || self.incomplete {
            lines.push("… and more: `drawloom workspace list --json` has it".to_owned());
        }
        let gone = self.changes.iter().filter_map(|change| match change {
            InventoryChange::Removed(path) => Some(format!("{}  gone", name(path))),
            _ => None,
        });
        lines.extend(gone.take(SHOWN));
        lines
    }

    fn mark(&self, path: &Path) -> &'static str {
        let mark = self.changes.iter().find_map(|change| match change {
            InventoryChange::Added(added) => (added == path).then_some("new"),
            InventoryChange::Changed(changed) => (changed == path).then_some("changed"),
            InventoryChange::Removed(_) => None,
        });
        mark.unwrap_or_default()
    }
}

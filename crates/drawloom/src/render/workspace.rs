//! Workspaces: each on a line, with what it would load below.

use std::fmt::Write as _;
use std::path::Path;

use commands::results::workspace::{FileAccepted, FilesAccepted, TrustState, WorkspaceShown, Workspaces};
use text::bytes::size;
use text::terminal::one_line;
use unicode_width::UnicodeWidthStr as _;
use workspace::trust::{Inventory, InventoryChange, InventoryItem, Unread};

use super::OutputStyle;
use super::columns::{word, wrapped};
use super::table;

/// Lines of a list that are shown; a workspace may hold thousands of notes.
const SHOWN: usize = 40;

pub(super) fn workspaces(found: &Workspaces, to: OutputStyle) -> String {
    found.workspaces.iter().map(|shown| workspace(shown, to)).collect()
}

pub(super) fn accepted(done: &FilesAccepted, to: OutputStyle) -> String {
    let line = |file: &FileAccepted| {
        let did = if file.was_outside { "accepted" } else { "was not from outside" };
        format!("{}: {did}\n", to.line(&file.path))
    };
    done.files.iter().map(line).collect()
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
    let (path, state) = (to.line(&found.path), format!("{state}{why}"));
    let line = format!("{path}{here}  {state}");
    let mut out = match to.columns {
        // A path begins a line, so that it is copied whole.
        Some(columns) if line.width() > columns => format!("{path}{here}\n{}", wrapped(&state, "  ", to)),
        _ => line + "\n",
    };
    let WorkspaceShown { items, unread, incomplete, changes, .. } = found;
    for line in (Brought { items, unread, incomplete: *incomplete, changes }).lines(to.columns) {
        let _ = writeln!(out, "  {line}");
    }
    out
}

/// What a workspace brings, for a person at a terminal of so many columns to decide by; the lines are indented by 2.
pub(crate) fn inventory(found: &Inventory, changes: &[InventoryChange], columns: usize) -> Vec<String> {
    let Inventory { items, unread, incomplete, .. } = found;
    Brought { items, unread, incomplete: *incomplete, changes }.lines(Some(columns))
}

struct Brought<'a> {
    items: &'a [InventoryItem],
    unread: &'a [Unread],
    incomplete: bool,
    changes: &'a [InventoryChange],
}

impl Brought<'_> {
    /// The lines, free of what a terminal might obey, for a place that is indented by 2.
    fn lines(&self, columns: Option<usize>) -> Vec<String> {
        let columns = columns.map(|columns| columns.saturating_sub(2));
        let to = OutputStyle { columns, ..OutputStyle::default() };
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
        let mut lines: Vec<String> = table::columns(&rows, &[], to).lines().map(str::to_owned).collect();
        if self.items.len() + self.unread.len() > SHOWN || self.incomplete {
            let more = "… and more: `drawloom workspace list --json` has it";
            lines.extend(wrapped(more, "", to).lines().map(str::to_owned));
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

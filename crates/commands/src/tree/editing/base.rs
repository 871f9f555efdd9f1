//! What the file of an editor was made of. It lies beside the file, so that a text that is taken in later changes what it
//! would have changed then, whatever became of its marks.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loom::{Digest, NodeId, NodeRow, RowError, TreeId, TreeReader, ViewName};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;
use workspace::{Accept, FileArgument};

use super::folder::{Removal, base_path, edits_in, is_text, name_of, note_not_removed, remove};
use super::{OpenPassage, OpenText, look, marks};
use crate::app::{App, NamedNode};
use crate::error::CommandError;
use crate::rights::Asker;
use crate::shell::quoted;
use crate::tree::telling::{shown_at, view_option};

/// Bytes that what a file was made of has at most.
const LONGEST: u64 = 64 << 20;

/// The versions a file was made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EditBase {
    pub(super) tree: TreeId,
    pub(super) view: ViewName,
    /// Whether the file is the text of one passage, without marks.
    pub(super) is_one: bool,
    /// Whether the last of the versions was at the tip.
    pub(super) is_to_the_end: bool,
    /// In order, each with the id that its mark names.
    pub(super) versions: Vec<(String, NodeId)>,
    /// What stands behind the id in each mark.
    #[serde(default)]
    pub(super) mark_end: String,
    /// Digest of the file as it was made; none once a part of it is in.
    #[serde(default)]
    pub(super) written: Option<Digest>,
    /// Whether its editor came back; where the command was killed it may live on.
    #[serde(default)]
    pub(super) is_closed: bool,
}

impl EditBase {
    pub(super) fn of_one(named: &NamedNode, short_id: &str, version: NodeId) -> Self {
        let (tree, view) = (named.tree, named.view.clone());
        let versions = vec![(short_id.to_owned(), version)];
        let mark_end = String::new();
        let (is_to_the_end, written, is_closed) = (false, None, false);
        Self { tree, view, is_one: true, is_to_the_end, versions, mark_end, written, is_closed }
    }

    /// Whether files of both are made of the same.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        let made_of = |base: &Self| Self { written: None, is_closed: false, ..base.clone() };
        made_of(self) == made_of(other)
    }

    /// Whether a file says what it said when it was made.
    pub(super) fn is_unchanged(&self, file: &Path) -> bool {
        let is_file = file.symlink_metadata().is_ok_and(|found| found.is_file());
        let is = |written| fs::read(file).is_ok_and(|there| Digest::of(&there) == written);
        is_file && self.written.is_some_and(is)
    }

    /// Reads that of a name.
    ///
    /// # Errors
    /// It cannot be read, or says nothing.
    pub(super) fn read(app: &App, name: &str) -> Result<Self, CommandError> {
        let file = base_path(&edits(app), name);
        let broken = |why: String| {
            let what = format!("{} does not say what the text was made of: {why}", file.display());
            let hint = "take the first line and the marks out of the text to bring it in as the whole text";
            CommandError::new("edit_base", 3, what, hint)
        };
        // No pipe is waited for.
        let opened = FileArgument::open(&file, &app.guard, Accept::Regular, Duration::ZERO);
        let opened = opened.map_err(|error| broken(error.to_string()))?;
        let held = opened.read_at_most(LONGEST).map_err(|problem| broken(problem.to_string()))?;
        let base: Self = serde_json::from_slice(&held).map_err(|error| broken(error.to_string()))?;
        let nodes: HashSet<NodeId> = base.versions.iter().map(|(_, node)| *node).collect();
        if nodes.len() < base.versions.len() {
            return Err(broken("it names a version twice".to_owned()));
        }
        Ok(base)
    }

    /// Writes it beside the file of this name.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn write(&self, folder: &Path, name: &str) -> io::Result<()> {
        let mut file = NamedTempFile::new_in(folder)?;
        serde_json::to_writer(&mut file, self)?;
        file.flush()?;
        file.as_file().sync_all()?;
        file.persist(base_path(folder, name))?;
        Ok(())
    }

    /// Refuses a file that holds something else than is named.
    pub(super) fn require(
        &self,
        (tree, view): (TreeId, &ViewName),
        is_one: bool,
        file: &Path,
    ) -> Result<(), CommandError> {
        let shown = quoted(&file.to_string_lossy());
        if self.tree != tree {
            return Err(CommandError::usage(
                format!("{shown} is a text of another document"),
                "name the document it was opened from",
            ));
        }
        if self.view != *view {
            return Err(CommandError::usage(
                format!("{shown} is a text of the view {}, not of {view}", self.view),
                format!("name that one: --view {}", quoted(self.view.as_str())),
            ));
        }
        let command = || self.command("TREE", file);
        match (self.is_one, is_one) {
            (true, false) => Err(CommandError::usage(
                format!("{shown} is the text of one passage"),
                format!("name it: `{}`", command()),
            )),
            (false, true) => Err(CommandError::usage(
                format!("{shown} is a text of several passages"),
                format!("name none: `{}`", command()),
            )),
            _ => Ok(()),
        }
    }

    /// The command that takes a file of it in; `tree` is the tree as a command takes it.
    pub(super) fn command(&self, tree: &str, file: &Path) -> String {
        let id = self.versions.first().filter(|_| self.is_one).map(|(id, _)| id);
        let (id, view) = (id.map(|id| format!(" {id}")).unwrap_or_default(), view_option(&self.view));
        format!("drawloom tree edit {tree}{id}{view} --file {}", quoted(&file.to_string_lossy()))
    }
}

/// What a file was made of, held so that one command at a time takes it in.
#[derive(Debug)]
pub(in crate::tree) struct HeldBase {
    pub(super) base: EditBase,
    pub(super) name: String,
    _lock: File,
}

impl HeldBase {
    /// That of a file; none of one that no editor got from here.
    ///
    /// # Errors
    /// It says that it has one, or lies where texts of editors do, and that is not there or cannot be read; another
    /// command takes it in.
    pub(super) fn of_file(app: &App, path: &Path, text: &str) -> Result<Option<Self>, CommandError> {
        let (beside, named) = (name_in_edits(app, path), marks::name_in(text));
        let folder = edits(app);
        // One that was saved under another name says in its first line which it was.
        let names = beside.as_deref().into_iter().chain(named);
        let found = names.map(str::to_owned).find(|name| base_path(&folder, name).symlink_metadata().is_ok());
        let gone = || {
            CommandError::new(
                "edit_base",
                3,
                format!(
                    "what {} was made of is not in this home any more: it may have been taken in",
                    path.display()
                ),
                // The text of one passage has no first line.
                match named {
                    Some(_) => {
                        "take a copy of it without its first line and the marks to bring it in as the whole text"
                    }
                    None => "copy it to another folder to bring it in from there",
                },
            )
        };
        let Some(name) = found else {
            return if named.is_some() || beside.is_some() { Err(gone()) } else { Ok(None) };
        };
        let file = base_path(&folder, &name);
        if !fs::metadata(&file).is_ok_and(|found| found.is_file()) {
            // A pipe is not waited for: it says why it is none.
            EditBase::read(app, &name)?;
            return Err(gone());
        }
        let lock = File::open(&file).map_err(|error| CommandError::file("cannot read", &file, &error))?;
        if lock.try_lock().is_err() {
            let what = format!("another command takes {} in", path.display());
            return Err(CommandError::new("busy", 6, what, "try again when it is done"));
        }
        // Whoever held it before may have taken it in.
        let is_it = lock.metadata().ok().zip(file.metadata().ok());
        if is_it.is_none_or(|(held, there)| held.ino() != there.ino()) {
            return Err(gone());
        }
        // Once it is locked: what was there before may have been taken in.
        Ok(Some(Self { base: EditBase::read(app, &name)?, name, _lock: lock }))
    }

    /// All of `taken` is in: it goes from where editors' files lie, and a copy of it is refused from now on. What stays
    /// there is made of `now`. The place of another text, where one was saved again.
    pub(super) fn end(self, app: &App, taken: &[u8], now: &EditBase) -> Option<PathBuf> {
        let folder = edits(app);
        let text = folder.join(format!("{}.md", self.name));
        let removal = remove(&text, taken);
        if matches!(removal, Removal::Removed) {
            return None;
        }
        if let Err(error) = now.write(&folder, &self.name) {
            tracing::warn!(%error, name = self.name, "what was taken in can be taken in again");
        }
        if let Removal::Failed { at, error } = removal {
            note_not_removed(app, &at, &error);
            return None;
        }
        Some(text)
    }
}

/// Where the files of editors lie.
fn edits(app: &App) -> PathBuf {
    edits_in(app.runtime.home.root())
}

/// The name of a file that lies where files of editors do.
fn name_in_edits(app: &App, path: &Path) -> Option<String> {
    let path = fs::canonicalize(path).ok()?;
    let edits = fs::canonicalize(edits(app)).ok()?;
    let is_there = path.parent() == Some(edits.as_path());
    (is_there && is_text(&path)).then(|| name_of(&path))
}

/// What the passage of a file said that an editor got from here, with what is held of it; none of another file.
///
/// # Errors
/// It is a text of something else, or of what was forgotten.
pub(in crate::tree) async fn text_before(
    app: &App,
    asker: &Asker,
    named: &NamedNode,
    (path, text): (&Path, &str),
) -> Result<Option<(String, HeldBase)>, CommandError> {
    let Some(held) = HeldBase::of_file(app, path, text)? else { return Ok(None) };
    let base = &held.base;
    base.require((named.tree, &named.view), true, path)?;
    let Some((id, version)) = base.versions.first().cloned() else { return Ok(None) };
    let (view, is_in) = (base.view.clone(), base.written.is_none());
    let row = app.read(asker, named.tree, move |rows| {
        let row = rows.node(version)?;
        row.map(|row| if is_in { taken_back(rows, &view, row) } else { Ok(row) }).transpose()
    });
    match row.await? {
        Some(row) if row.node.position != named.position => Err(CommandError::usage(
            format!("{} is a text of {id}, not of {}", quoted(&path.to_string_lossy()), named.short_id),
            format!("name {id} to take it in there"),
        )),
        Some(row) if !row.purged => Ok(Some((row.node.said().into_owned(), held))),
        _ => Err(CommandError::usage(
            format!("{id} was forgotten since"),
            "remove the file; nothing was changed",
        )),
    }
}

/// The older version that a view shows in the place of one that was taken back; else that one.
fn taken_back(rows: &dyn TreeReader, view: &ViewName, row: NodeRow) -> Result<NodeRow, RowError> {
    let now = shown_at(rows, view, row.node.position)?;
    Ok(if now.seq < row.seq && !row.purged && !now.purged { now } else { row })
}

impl OpenText {
    /// The text as it was when a file was made of it. Of a file of which a part is in, a passage that was taken back to an
    /// older version since is compared with that one: what the file says goes in again.
    pub(super) async fn of_base(app: &App, asker: &Asker, base: EditBase) -> Result<Self, CommandError> {
        let (tree, view) = (base.tree, base.view);
        let versions = base.versions;
        let (of, is_in) = (view.clone(), base.written.is_none());
        let (title, passages) = look(app, asker, tree, &view, move |rows, _| {
            let passages = versions.into_iter().map(|(short_id, node)| {
                let row = rows.node(node)?.ok_or_else(|| RowError::missing("node", node))?;
                let row = if is_in { taken_back(rows, &of, row)? } else { row };
                let (position, node, is_forgotten) = (row.node.position, row.node.id, row.purged);
                let text = if is_forgotten { String::new() } else { row.node.text().into_owned() };
                Ok(OpenPassage { position, node, short_id, text, is_forgotten })
            });
            let passages = passages.collect::<Result<Vec<_>, RowError>>()?;
            let title = rows.cell(&loom::CellKey::Title)?.value.as_text().unwrap_or_default().to_owned();
            Ok((title, passages))
        })
        .await?;
        let (is_to_the_end, mark_end) = (base.is_to_the_end, Some(base.mark_end));
        Ok(Self {
            tree,
            view,
            title,
            passages,
            is_to_the_end,
            has_drafts: false,
            typed: String::new(),
            mark_end,
            forgotten_ids: Vec::new(),
        })
    }

    pub(super) fn base(&self) -> EditBase {
        let versions = self.passages.iter().map(|passage| (passage.short_id.clone(), passage.node));
        EditBase {
            tree: self.tree,
            view: self.view.clone(),
            is_one: false,
            is_to_the_end: self.is_to_the_end,
            versions: versions.collect(),
            mark_end: self.marks().end().to_owned(),
            written: None,
            is_closed: false,
        }
    }
}

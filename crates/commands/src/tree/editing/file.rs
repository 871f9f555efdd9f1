//! The file an editor opens: written before it starts, there until what it holds was taken in.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::on_disk;
use loom::{Digest, Refusal};
use store::home::HomeDir;
use tempfile::Builder;
use text::bytes::size;
use workspace::{Accept, FileArgument, FileError, FileProblem};

use super::base::EditBase;
use super::folder::{
    NEW, Removal, base_path, edit_files, edits_in, is_text, name_of, note_not_removed, remove, shown, sweep,
};
use crate::app::App;
use crate::error::CommandError;
use crate::frontend::EditorError;
use crate::rights::Asker;

/// An editor that is back sooner, and changed nothing, may not have waited for its window.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Files that wait, named at most.
const NAMED: usize = 3;

/// File an editor opens. It stays, whatever becomes of the command, until [`Self::remove`].
pub(in crate::tree) struct EditFile {
    path: PathBuf,
    written: String,
    /// What the editor left; what was written, before it ends.
    saved: Vec<u8>,
    /// What it stands for.
    base: EditBase,
    /// Whether an editor that was back at once had it before: it may have it still.
    is_reopened: bool,
    /// The tree as a command takes it.
    tree: String,
    /// The file and its base, locked as long as the command runs.
    _held: [File; 2],
}

impl EditFile {
    /// Opens a file that was made of the same and not changed, and whose editor came back, else a new one; `render` is the
    /// text of a file of a name, and `tree` the tree as a command takes it. The others of the tree that wait are named.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) async fn make(
        app: &App,
        asker: &Asker,
        base: &EditBase,
        render: impl Fn(&str) -> String,
        tree: String,
    ) -> Result<Self, CommandError> {
        let short_id = app.runtime.store.tree(&asker.principal, base.tree).await?.short_id;
        let folder = app.runtime.home.dir(HomeDir::Edits);
        let folder = folder.map_err(|error| CommandError::new("home", 6, error.to_string(), error.hint()))?;
        sweep(&folder);
        let prefix = format!("edit-{short_id}-");
        let is_of_it = |file: &PathBuf| is_text(file) && name_of(file).starts_with(&prefix);
        let mut waiting: Vec<_> = edit_files(app.runtime.home.root()).into_iter().filter(is_of_it).collect();
        let same = waiting.iter().enumerate().find_map(|(at, path)| {
            let name = name_of(path);
            let held = EditBase::read(app, &name).ok().filter(|held| held.is_of(base) && held.is_closed);
            let text = held.map(|_| render(&name))?;
            Some((at, [unchanged(path, &text)?, opened_again(&folder, &name, base, &text).ok()?], text))
        });
        let same = same.map(|(at, held, text)| (held, waiting.swap_remove(at), text));
        let is_reopened = same.is_some();
        // One that nobody changed holds nothing.
        waiting.retain(|file| {
            let base = EditBase::read(app, &name_of(file)).ok();
            base.is_none_or(|base| !base.is_unchanged(file))
        });
        if !waiting.is_empty() {
            let mut files: Vec<_> = waiting.iter().take(NAMED).map(|file| shown(file)).collect();
            files.extend(
                waiting.len().checked_sub(NAMED).filter(|more| *more > 0).map(|more| format!("{more} more")),
            );
            app.frontend.note(&format!(
                "texts of this tree wait in {}: an editor has them open, or they were not taken in",
                files.join(", ")
            ));
        }
        let written = || {
            // It has its name once it is whole.
            let mut file = Builder::new().prefix(&prefix).suffix(NEW).tempfile_in(&folder)?;
            let name = name_of(file.path());
            let text = render(&name);
            // Nobody takes it for one that is left over.
            file.as_file().lock()?;
            // Before the text: a file without it would be taken in as if nobody else wrote.
            EditBase { written: Some(Digest::of(text.as_bytes())), ..base.clone() }.write(&folder, &name)?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            let base = locked_base(&folder, &name)?;
            let path = folder.join(format!("{name}.md"));
            let held = file.persist_noclobber(&path)?;
            Ok(([held, base], path, text))
        };
        let made = same.map_or_else(written, Ok);
        let (held, path, written) =
            made.map_err(|error: io::Error| CommandError::file("cannot write", &folder, &error))?;
        let saved = written.clone().into_bytes();
        Ok(Self { path, written, saved, base: base.clone(), is_reopened, tree, _held: held })
    }

    pub(super) fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// What the editor left in it; none where that is what was written.
    ///
    /// # Errors
    /// When there is no editor, it failed, or its file cannot be read; it says what became of the file.
    pub(super) async fn edit(&mut self, app: &App) -> Result<Option<Vec<u8>>, CommandError> {
        let (frontend, path) = (Arc::clone(&app.frontend), self.path.clone());
        let begin = Instant::now();
        let ended = on_disk(move || frontend.edit(&path)).await;
        ended.map_err(|error| self.kept(app, not_edited(&error)))?;
        let saved = self.read(app).map_err(|problem| match problem {
            FileProblem::TooLarge { .. } => self.kept(app, self.unread(problem)),
            problem => self.unread(problem),
        })?;
        if saved != self.written.as_bytes() {
            self.saved.clone_from(&saved);
            return Ok(Some(saved));
        }
        if begin.elapsed() >= AT_ONCE {
            self.discard(app);
            return Ok(None);
        }
        self.close();
        app.frontend.note(&format!(
            "the editor was back at once: one that opens a window is told to wait, as in \
             EDITOR='code --wait'; what is saved later is taken in by `{}`",
            self.command()
        ));
        Ok(None)
    }

    /// Removes what nobody changed, unless an editor may save it still.
    fn discard(&self, app: &App) {
        if self.is_reopened {
            self.close();
        } else {
            self.remove(app);
        }
    }

    /// Writes down that its editor came back, so that the file, which nobody changed, can be opened again.
    fn close(&self) {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let written = Some(Digest::of(self.written.as_bytes()));
        let base = EditBase { written, is_closed: true, ..self.base.clone() };
        if let Err(error) = base.write(folder, &name_of(&self.path)) {
            tracing::warn!(%error, "a file that nobody changed is not opened again");
        }
    }

    /// What stands in it: an editor may have put anything in its place.
    fn read(&self, app: &App) -> Result<Vec<u8>, FileProblem> {
        let opened = FileArgument::open(&self.path, &app.guard, Accept::Regular, Duration::ZERO);
        let limit = app.settings.limits.paste.saturating_add(self.written.len() as u64);
        opened.map_err(|error| error.problem)?.read_at_most(limit)
    }

    fn unread(&self, problem: FileProblem) -> CommandError {
        let name = shown(&self.path);
        match problem {
            FileProblem::NotFound => CommandError::new(
                "not_found",
                3,
                format!("the editor left no file: {name} is gone"),
                "nothing was changed; open the text again",
            ),
            FileProblem::TooLarge { limit } => CommandError::new(
                "too_large",
                2,
                format!("{name} is longer than {}", size(limit)),
                "take out what does not belong to the text, or raise limits.paste",
            ),
            problem => {
                let mut error = CommandError::file_argument(&FileError { path: self.path.clone(), problem });
                error.hint = "nothing was changed; open the text again".to_owned();
                error
            }
        }
    }

    /// The command that takes in what the file holds later.
    fn command(&self) -> String {
        self.base.command(&self.tree, &self.path)
    }

    /// An error that says where the edited text lies; where nothing was edited the file goes.
    pub(in crate::tree) fn kept(&self, app: &App, mut error: CommandError) -> CommandError {
        let name = shown(&self.path);
        let more = match self.read(app) {
            Ok(found) if found == self.written.as_bytes() => {
                self.discard(app);
                return error;
            }
            // As it is nothing takes it in.
            Ok(_) if error.code == "forgotten" || self.is_forgotten(&error) => {
                format!("the edited text lies in {name}")
            }
            // One passage is edited over the text that was opened.
            Ok(_) if self.is_overtaken(&error) => {
                format!(
                    "the edited text lies in {name}: edit the passage again with what it says, then delete it"
                )
            }
            Ok(_) | Err(FileProblem::TooLarge { .. }) => {
                format!("the edited text lies in {name}: `{}` takes it in", self.command())
            }
            Err(FileProblem::NotFound) => format!("{name} is gone"),
            Err(problem) => format!("{name} cannot be read: {problem}"),
        };
        let stop = if error.hint.is_empty() { "" } else { "; " };
        error.hint += &format!("{stop}{more}");
        error
    }

    /// Whether an error says that the one passage it holds was forgotten.
    fn is_forgotten(&self, error: &CommandError) -> bool {
        let version = self.base.versions.first().filter(|_| self.base.is_one);
        version.is_some_and(|(_, version)| error.hint == Refusal::Purged(*version).hint())
    }

    /// Whether an error says that the one passage it holds was changed since it was opened.
    fn is_overtaken(&self, error: &CommandError) -> bool {
        let version = self.base.versions.first().filter(|_| self.base.is_one);
        version
            .is_some_and(|(_, version)| error.hint == Refusal::ChangedMeanwhile(version.as_position()).hint())
    }

    /// Sets what it stands for after it, or a part of it, was taken in.
    pub(super) fn set_base(&mut self, base: EditBase) {
        self.base = base;
    }

    pub(super) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Writes down what it stands for, as a part of it stays.
    pub(super) fn keep_rest(&self, app: &App) {
        keep_rest(app, &name_of(&self.path), &self.base);
    }

    /// Removes it, unless it was saved again since it was read: then it is named, with the command that takes it in. Whether
    /// it is gone.
    pub(super) fn remove(&self, app: &App) -> bool {
        match remove(&self.path, &self.saved) {
            Removal::Removed => return true,
            Removal::SavedAgain => {
                self.keep_rest(app);
                note_saved_again(app, &self.path, &self.command());
            }
            Removal::Failed { at, error } => note_not_removed(app, &at, &error),
        }
        false
    }
}

/// Refuses where there is no editor to open a file with.
pub(super) async fn find_editor(app: &App) -> Result<(), CommandError> {
    let frontend = Arc::clone(&app.frontend);
    on_disk(move || frontend.find_editor()).await.map_err(|error| not_edited(&error))
}

fn not_edited(error: &EditorError) -> CommandError {
    match error {
        EditorError::Missing => CommandError::usage(
            "no text is given, and there is no editor",
            "give --text, --file or --replace OLD NEW, or set VISUAL or EDITOR",
        ),
        EditorError::Failed { .. } => {
            CommandError::new("editor", 2, error.to_string(), "check VISUAL and EDITOR")
        }
    }
}

/// Removes a file of an editor of which this was taken in; any other stays, and one that was saved again.
pub(in crate::tree) fn remove_applied(app: &App, path: &Path, taken: &[u8]) {
    if let Some(path) = in_edits(app, path)
        && let Removal::Failed { at, error } = remove(&path, taken)
    {
        note_not_removed(app, &at, &error);
    }
}

/// Writes down what the file of this name stands for after a part of it was taken in.
pub(super) fn keep_rest(app: &App, name: &str, base: &EditBase) {
    let folder = edits_in(app.runtime.home.root());
    if let Err(error) = base.write(&folder, name) {
        tracing::warn!(%error, name, "what was taken in of a file is not written down");
    }
}

/// Says that a file was saved again while it was taken in.
pub(super) fn note_saved_again(app: &App, path: &Path, command: &str) {
    app.frontend.note(&format!(
        "{} was saved again meanwhile, and stays: `{command}` takes in what it holds now",
        shown(path)
    ));
}

fn in_edits(app: &App, path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).ok()?;
    let is_it = |of: &PathBuf| fs::canonicalize(of).is_ok_and(|of| of == path);
    edit_files(app.runtime.home.root()).into_iter().filter(|file| is_text(file)).find(is_it)
}

/// The base of this name, locked: no other command takes its text in meanwhile.
fn locked_base(folder: &Path, name: &str) -> io::Result<File> {
    let base = File::open(base_path(folder, name))?;
    base.try_lock()?;
    Ok(base)
}

/// The base of a file that is opened again, locked: its editor may live on when the command is killed.
fn opened_again(folder: &Path, name: &str, base: &EditBase, text: &str) -> io::Result<File> {
    let _before = locked_base(folder, name)?;
    EditBase { written: Some(Digest::of(text.as_bytes())), is_closed: false, ..base.clone() }
        .write(folder, name)?;
    locked_base(folder, name)
}

/// A file that holds this text still, where no command has it open.
fn unchanged(path: &Path, text: &str) -> Option<File> {
    let is_as_long = |found: fs::Metadata| found.is_file() && found.len() == text.len() as u64;
    path.symlink_metadata().ok().filter(|found| is_as_long(found.clone()))?;
    let file = File::open(path).ok()?;
    file.try_lock().ok()?;
    (fs::read(path).ok()? == text.as_bytes()).then_some(file)
}

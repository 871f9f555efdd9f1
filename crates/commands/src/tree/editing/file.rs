//! The file an editor opens: written before it starts, there until what it holds was taken in.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::home::{Home, HomeDir};
use tempfile::Builder;

use crate::app::App;
use crate::error::CommandError;
use crate::frontend::EditorError;

/// An editor that is back sooner, and changed nothing, may not have waited for its window.
const AT_ONCE: Duration = Duration::from_secs(2);

/// It stays, whatever becomes of the command, until [`Self::remove`].
pub(in crate::tree) struct EditFile {
    path: PathBuf,
    written: String,
    /// The command that takes it in later.
    taking_in: String,
}

impl EditFile {
    /// # Errors
    /// When it cannot be written.
    pub(super) fn make(app: &App, text: &str, taking_in: &str) -> Result<Self, CommandError> {
        let folder = app.runtime.home.dir(HomeDir::Edits);
        let folder = folder.map_err(|error| CommandError::new("home", 6, error.to_string(), error.hint()))?;
        let written = || {
            let mut file = Builder::new().prefix("edit-").suffix(".md").tempfile_in(&folder)?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            Ok(file.into_temp_path().keep()?)
        };
        let path =
            written().map_err(|error: io::Error| CommandError::file("cannot write", &folder, &error))?;
        Ok(Self { path, written: text.to_owned(), taking_in: taking_in.to_owned() })
    }

    pub(super) fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// What the editor left in it; none where that is what was written.
    ///
    /// # Errors
    /// When there is no editor, it failed, or its file cannot be read.
    pub(super) async fn edit(&self, app: &App) -> Result<Option<Vec<u8>>, CommandError> {
        let (frontend, path) = (Arc::clone(&app.frontend), self.path.clone());
        let begin = Instant::now();
        let ended = tokio::task::spawn_blocking(move || frontend.edit(&path)).await;
        let ended = ended.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()));
        ended.map_err(|error| match error {
            EditorError::Missing => CommandError::usage(
                "no text is given, and there is no editor",
                "give --text, --file or --replace OLD NEW, or set VISUAL or EDITOR",
            ),
            EditorError::Failed { .. } => {
                CommandError::new("editor", 1, error.to_string(), "check VISUAL and EDITOR")
            }
        })?;
        let saved =
            fs::read(&self.path).map_err(|error| CommandError::file("cannot read", &self.path, &error))?;
        if saved != self.written.as_bytes() {
            return Ok(Some(saved));
        }
        if begin.elapsed() >= AT_ONCE {
            self.remove();
            return Ok(None);
        }
        app.frontend.note(&format!(
            "nothing was changed, and the editor was back at once: one that opens a window is told to wait, as in \
             EDITOR='code --wait'; what is saved later is taken in by `{}`",
            self.command()
        ));
        Ok(None)
    }

    /// The command that takes in what the file holds later.
    fn command(&self) -> String {
        format!("{} {}", self.taking_in, quoted(&self.name()))
    }

    /// An error that says where the edited text lies; where nothing was edited the file goes.
    pub(in crate::tree) fn kept(&self, mut error: CommandError) -> CommandError {
        if fs::read(&self.path).is_ok_and(|found| found == self.written.as_bytes()) {
            self.remove();
            return error;
        }
        let stop = if error.hint.is_empty() { "" } else { "; " };
        error.hint += &format!(
            "{stop}the edited text lies in {}: `{}` takes it in",
            self.path.display(),
            self.command()
        );
        error
    }

    pub(super) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// What it held was taken in.
    pub(in crate::tree) fn remove(&self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "the file of an editor was not removed");
        }
    }
}

/// Files that editors have open, and those that were not taken in.
pub(crate) fn edit_files(home: &Home) -> Vec<PathBuf> {
    let folder = fs::read_dir(home.root().join(HomeDir::Edits.name()));
    folder.into_iter().flatten().flatten().map(|file| file.path()).collect()
}

/// A word as a shell takes it.
pub(in crate::tree) fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), Cow::into_owned)
}

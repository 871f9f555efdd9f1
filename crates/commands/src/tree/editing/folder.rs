//! The folder of the files that editors have open: how they are named, and how they go.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use store::home::HomeDir;
use text::terminal::one_line;

use crate::app::App;

/// How the name of a file ends that is not whole yet.
pub(super) const NEW: &str = ".new";

/// How long what a file was made of is kept when the file is gone: it may lie elsewhere.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What became of a file that was to go.
#[derive(Debug)]
pub(super) enum Removal {
    Removed,
    /// Something else was saved there: it stays.
    SavedAgain,
    Failed {
        /// Where the text lies.
        at: PathBuf,
        error: io::Error,
    },
}

/// Where the files of editors lie in a home.
pub(super) fn edits_in(home: &Path) -> PathBuf {
    home.join(HomeDir::Edits.name())
}

/// Where it lies what a file of this name was made of; hidden, as it is no text.
pub(super) fn base_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!(".{name}.json"))
}

/// The name of a file without its ending.
pub(super) fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// A path as it is shown to a person.
pub(super) fn shown(path: &Path) -> String {
    one_line(&path.to_string_lossy()).into_owned()
}

/// Files that editors have open, those that were not taken in, and what editors left beside them.
pub fn edit_files(home: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(edits_in(home)).into_iter().flatten().flatten().map(|file| file.path());
    let mut files: Vec<PathBuf> = files.filter(|file| !is_base(file)).collect();
    files.sort();
    files
}

/// Whether it is the text of an editor, and not what editors leave beside theirs.
pub(super) fn is_text(path: &Path) -> bool {
    let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !is_hidden && path.extension().is_some_and(|ending| ending == "md")
}

/// Whether it is what a file was made of, or is being written as that.
fn is_base(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') && (name.ends_with(".json") || name.starts_with(".tmp"))
}

/// Removes a file that says this, with its base; one that says something else stays.
pub(super) fn remove(path: &Path, said: &[u8]) -> Removal {
    let (folder, name) = (path.parent().unwrap_or(Path::new(".")), name_of(path));
    let aside = aside(folder, &name);
    // Moved away before it is read: what is saved from now on is another file.
    match fs::rename(path, &aside) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::remove_file(base_path(folder, &name)).ok();
            return Removal::Removed;
        }
        Err(error) => return Removal::Failed { at: path.to_owned(), error },
    }
    // One that cannot be read may say anything; no pipe is waited for.
    let is_file = fs::metadata(&aside).is_ok_and(|found| found.is_file());
    if !(is_file && fs::read(&aside).is_ok_and(|there| there == said)) {
        return put_back(aside, path);
    }
    if let Err(error) = fs::remove_file(&aside) {
        return Removal::Failed { at: aside, error };
    }
    if path.symlink_metadata().is_ok() {
        return Removal::SavedAgain;
    }
    fs::remove_file(base_path(folder, &name)).ok();
    Removal::Removed
}

/// Gives a file its name back, unless something newer was saved there: then both stay.
fn put_back(aside: PathBuf, path: &Path) -> Removal {
    // Unlike a new name, a link takes the place of no other file.
    match fs::hard_link(&aside, path) {
        Ok(()) => {
            fs::remove_file(&aside).ok();
            Removal::SavedAgain
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            tracing::warn!(path = %aside.display(), "a text that was saved between two others lies aside");
            Removal::SavedAgain
        }
        Err(error) => Removal::Failed { at: aside, error },
    }
}

/// A free name, hidden, for a file that is looked at before it goes.
fn aside(folder: &Path, name: &str) -> PathBuf {
    let more = (2_u32..).map(|number| format!(".{name}.{number}.taken"));
    let names = std::iter::once(format!(".{name}.taken")).chain(more).map(|name| folder.join(name));
    let mut free = names.filter(|path| path.symlink_metadata().is_err());
    free.next().unwrap_or_else(|| folder.join(format!(".{name}.taken")))
}

/// Says that a file stays though it was to go.
pub(super) fn note_not_removed(app: &App, at: &Path, error: &io::Error) {
    app.frontend.note(&format!("{} could not be removed: {error}", shown(at)));
}

/// Removes what files were made of that are gone for long, and files that were never whole. Texts wait as long as it takes.
pub(super) fn sweep(folder: &Path) {
    for found in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (found.path(), found.file_name().to_string_lossy().into_owned());
        let is_old = || {
            let changed = found.metadata().ok().and_then(|found| found.modified().ok());
            changed.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > KEPT)
        };
        // Its process died before it was whole: no editor had it.
        let is_new = name.ends_with(NEW);
        let is_alone = || {
            let name = name.trim_start_matches('.').trim_end_matches(".json");
            is_base(&path) && !folder.join(format!("{name}.md")).exists()
        };
        if (is_new || is_alone()) && is_old() {
            fs::remove_file(&path).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    /// A file that an editor left in a folder, with its base.
    fn left(said: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("edit-x.md");
        fs::write(&path, said).unwrap();
        fs::write(base_path(folder.path(), "edit-x"), "{}").unwrap();
        (folder, path)
    }

    fn names(folder: &Path) -> Vec<String> {
        let found = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            found.map(|file| file.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_was_taken_in_goes_and_what_was_saved_again_stays() {
        let (folder, path) = left("taken");
        assert!(matches!(remove(&path, b"taken"), Removal::Removed));
        assert!(names(folder.path()).is_empty());
        let (folder, path) = left("again");
        assert!(matches!(remove(&path, b"taken"), Removal::SavedAgain));
        assert_eq!(names(folder.path()), [".edit-x.json", "edit-x.md"]);
        assert_eq!(fs::read(&path).unwrap(), b"again");
    }

    #[test]
    fn what_was_saved_while_a_text_lay_aside_is_not_written_over() {
        let (folder, path) = left("newest");
        let aside = aside(folder.path(), "edit-x");
        fs::write(&aside, "between").unwrap();
        assert!(matches!(put_back(aside.clone(), &path), Removal::SavedAgain));
        assert_eq!(
            (fs::read(&path).unwrap(), fs::read(&aside).unwrap()),
            (b"newest".into(), b"between".into())
        );
        // Nor is what lies aside since then.
        assert!(matches!(remove(&path, b"newest"), Removal::Removed));
        assert_eq!(names(folder.path()), [".edit-x.taken"]);
    }

    #[test]
    fn what_cannot_be_read_or_moved_stays_and_is_told() {
        let (folder, path) = left("");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let Removal::Failed { at, .. } = remove(&path, b"") else { panic!("it is no text") };
        assert!(at.is_dir() && base_path(folder.path(), "edit-x").exists());
        let (folder, path) = left("");
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(folder.path(), &path).unwrap();
        assert!(matches!(remove(&path, b""), Removal::SavedAgain), "it cannot be read");
        assert!(path.is_symlink());
    }

    #[test]
    fn texts_are_never_swept() {
        let (folder, path) = left("text");
        let old = SystemTime::now() - KEPT - Duration::from_secs(60);
        for name in [".edit-gone.json", ".tmpAbc", "edit-y.new", ".edit-x.taken", ".edit-gone.md.swp"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        for name in names(folder.path()) {
            fs::File::open(folder.path().join(name)).unwrap().set_modified(old).unwrap();
        }
        fs::write(folder.path().join(".edit-moved.json"), "{}").unwrap();
        sweep(folder.path());
        let left = [".edit-gone.md.swp", ".edit-moved.json", ".edit-x.json", ".edit-x.taken", "edit-x.md"];
        assert_eq!(names(folder.path()), left);
        assert!(path.exists());
    }
}

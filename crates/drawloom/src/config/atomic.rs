//! Replacing a file of settings: all of the new text or all of the old, whatever happens (spec: cli §5).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::FlockOperation;

/// Keeps other `config set`s of this home away until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn(#[expect(dead_code, reason = "the lock lasts as long as the descriptor")] File);

/// Waits for the turn to change settings of a home: two changes at once would lose one.
pub(crate) fn turn(home: &Path) -> io::Result<Turn> {
    let folder = File::open(home)?;
    rustix::fs::flock(&folder, FlockOperation::LockExclusive)?;
    Ok(Turn(folder))
}

/// Writes `text` in place of the file at `path`, mode 0600. A link is followed, so that a file kept elsewhere
/// stays there.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = match path.canonicalize() {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    let folder = target.parent().ok_or(io::ErrorKind::NotFound)?;
    let temporary = target.with_extension(format!("toml.{}.new", std::process::id()));
    let written = write_new(&temporary, text).and_then(|()| std::fs::rename(&temporary, &target));
    if written.is_err() {
        // Already gone when the rename was what worked; else it is ours to clear away.
        let _ = std::fs::remove_file(&temporary);
    }
    written?;
    File::open(folder)?.sync_all()
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    // One left by a process of the same number that died: nobody else writes it while we hold the turn.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn the_new_file_is_ours_alone_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, "old").unwrap();
        replace(&path, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o600);
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, real) = (folder.path().join("config.toml"), elsewhere.path().join("real.toml"));
        std::fs::write(&real, "old").unwrap();
        symlink(&real, &path).unwrap();
        replace(&path, "new").unwrap();
        assert!(path.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "new");
    }
}

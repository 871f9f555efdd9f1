//! Small files of the home: records, caches and locks. Nothing that stands in the place of one is waited for, read without
//! end, or followed elsewhere (spec: security §8).

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use tempfile::NamedTempFile;

/// Reads a file of at most `limit` bytes, as [`open_small_file`] opens it.
///
/// # Errors
/// [`ErrorKind::FileTooLarge`] for a longer one; as [`open_small_file`].
pub fn read_small_file(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_small_file(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(refused(path, ErrorKind::FileTooLarge, &format!("is longer than {limit} bytes")));
    }
    Ok(bytes)
}

/// Opens a plain file of whoever has its folder, to be read.
///
/// # Errors
/// [`ErrorKind::NotFound`] where there is none; [`ErrorKind::InvalidInput`] for a link, a pipe, a folder, a device or a file of
/// somebody else, which says what to do; what the system refuses. Each names the file.
pub fn open_small_file(path: &Path) -> io::Result<File> {
    opened(path, OFlags::RDONLY)
}

/// Opens a file to be locked, or makes it, readable to its owner alone.
///
/// # Errors
/// As [`open_small_file`], and where it cannot be made.
pub fn open_lock_file(path: &Path) -> io::Result<File> {
    opened(path, OFlags::RDWR | OFlags::CREATE)
}

fn opened(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(CWD, path, flags, Mode::RUSR | Mode::WUSR).map(File::from);
    let file = file.map_err(|errno| match errno {
        Errno::LOOP => refused(path, ErrorKind::InvalidInput, "is a link"),
        Errno::ISDIR | Errno::NXIO => refused(path, ErrorKind::InvalidInput, "is no plain file"),
        errno => {
            let error = io::Error::from(errno);
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        }
    })?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(refused(path, ErrorKind::InvalidInput, "is no plain file"));
    }
    let folder = path.parent().ok_or(ErrorKind::InvalidInput)?.metadata()?;
    if found.uid() != folder.uid() {
        let what = format!("belongs to uid {}, and its folder to uid {}", found.uid(), folder.uid());
        return Err(refused(path, ErrorKind::InvalidInput, &what));
    }
    Ok(file)
}

fn refused(path: &Path, kind: ErrorKind, what: &str) -> io::Error {
    io::Error::new(kind, format!("{} {what}: move it away", path.display()))
}

/// Replaces a small file by one of these bytes, or makes it, readable to its owner alone. Whoever reads it finds the old
/// bytes or the new ones, also when several threads or processes write it. Its folder must exist.
///
/// # Errors
/// When the folder cannot be written; the file is as it was then.
pub fn replace_small_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    written_beside(path, bytes)?.persist(path)?;
    Ok(())
}

/// [`replace_small_file`] for a file that must not be empty after a loss of power, once its name is there.
///
/// # Errors
/// As [`replace_small_file`].
pub fn replace_small_file_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = written_beside(path, bytes)?;
    file.as_file().sync_data()?;
    file.persist(path)?;
    Ok(())
}

fn written_beside(path: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let folder = path.parent().ok_or(ErrorKind::InvalidInput)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::thread;

    use super::*;

    #[test]
    fn what_stands_in_the_place_of_a_file_is_neither_waited_for_nor_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let says = |error: io::Error| {
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            error.to_string()
        };
        rustix::fs::mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        for refused in [read_small_file(&path, 9).unwrap_err(), open_lock_file(&path).unwrap_err()] {
            assert_eq!(says(refused), format!("{} is no plain file: move it away", path.display()));
        }
        fs::remove_file(&path).unwrap();
        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, "theirs").unwrap();
        for target in [Path::new("/dev/zero"), &elsewhere] {
            symlink(target, &path).unwrap();
            for refused in [read_small_file(&path, 9).unwrap_err(), open_lock_file(&path).unwrap_err()] {
                assert_eq!(says(refused), format!("{} is a link: move it away", path.display()));
            }
            fs::remove_file(&path).unwrap();
        }
        fs::create_dir(&path).unwrap();
        says(read_small_file(&path, 9).unwrap_err());
        says(open_lock_file(&path).unwrap_err());
        fs::remove_dir(&path).unwrap();
        assert_eq!(read_small_file(&path, 9).unwrap_err().kind(), ErrorKind::NotFound);
        fs::write(&path, "123456789").unwrap();
        assert_eq!(read_small_file(&path, 9).unwrap(), b"123456789");
        assert_eq!(read_small_file(&path, 8).unwrap_err().kind(), ErrorKind::FileTooLarge);
        fs::remove_file(&path).unwrap();
        open_lock_file(&path).unwrap().lock().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn of_many_threads_that_write_a_file_at_once_each_one_writes_it_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        thread::scope(|scope| {
            for text in [[b'a'; 4096], [b'b'; 4096], [b'c'; 4096], [b'd'; 4096]] {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..100 {
                        replace_small_file(path, &text).unwrap();
                        let read = fs::read(path).unwrap();
                        assert!(read.len() == text.len() && read.iter().all(|byte| *byte == read[0]));
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}

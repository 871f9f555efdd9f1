//! Small files of the home: records and caches.

use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

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
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use super::*;

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

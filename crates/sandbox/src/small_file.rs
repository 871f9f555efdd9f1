//! Small files of a workspace, whatever stands at their path.

use std::io;
use std::path::Path;

use workspace::{GIT_FILE_BYTES, read_beginning};

/// Text of a regular file, its beginning if it is longer. A pipe or a device is not waited for.
pub(crate) fn read_small(path: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&read_small_bytes(path)?).into_owned())
}

/// Bytes of a regular file, as [`read_small`].
pub(crate) fn read_small_bytes(path: &Path) -> io::Result<Vec<u8>> {
    read_beginning(path, GIT_FILE_BYTES)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_pipe_is_not_waited_for_and_a_device_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gitdir");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        assert!(read_small(&path).is_err());
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(read_small(&path).is_err());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "there\n").unwrap();
        assert_eq!(read_small(&path).unwrap(), "there\n");
    }
}

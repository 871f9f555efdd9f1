//! Every rule of opening, for files that are read from a listed folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, Mode, mkfifoat};

use super::tests::{field, path};
use super::*;

/// Reads an entry of a listed folder.
fn read_entry(folder: &OpenFolder, name: &str) -> Result<Vec<u8>, FileProblem> {
    let at = folder.listing().entries.iter().position(|entry| entry.name == name).unwrap();
    let mut reader = FileReader::new().unwrap();
    reader.read(folder, at, 100).map(<[u8]>::to_vec).map_err(|error| error.problem)
}

#[test]
fn files_3_what_takes_the_place_of_a_listed_file_is_judged_anew() {
    let field = field();
    for root in &field.roots {
        let docs = field.inside.join("docs");
        for name in ["plain", "fifo", "link", "large", "grown", "gone"] {
            let _ = fs::remove_file(docs.join(name));
            fs::write(docs.join(name), "listed").unwrap();
        }
        let folder = root.open_folder(&path("docs"), 10).unwrap();
        for name in ["fifo", "link", "gone"] {
            assert_eq!(read_entry(&folder, name).unwrap(), b"listed", "the control");
            fs::remove_file(docs.join(name)).unwrap();
        }
        mkfifoat(CWD, docs.join("fifo"), Mode::from_raw_mode(0o600)).unwrap();
        symlink(field.outside.join("secret.txt"), docs.join("link")).unwrap();
        fs::write(docs.join("large"), "x".repeat(101)).unwrap();
        fs::write(docs.join("grown"), "x".repeat(100)).unwrap();
        assert_eq!(read_entry(&folder, "plain").unwrap(), b"listed");
        assert_eq!(read_entry(&folder, "grown").unwrap().len(), 100);
        assert!(matches!(read_entry(&folder, "fifo"), Err(FileProblem::NotRegular(FileKind::Fifo))));
        assert!(matches!(read_entry(&folder, "link"), Err(FileProblem::Symlink)));
        assert!(matches!(read_entry(&folder, "large"), Err(FileProblem::TooLarge { limit: 100 })));
        assert!(matches!(read_entry(&folder, "gone"), Err(FileProblem::NotFound)));
    }
    let system = Root::open(Path::new("/"), &field.guard).unwrap();
    let kernel = system.open_folder(&path("proc/sys/kernel"), 1_000).unwrap();
    assert_eq!(read_entry(&kernel, "ostype").unwrap(), b"Linux\n", "a file whose size is not known");
}

#[test]
fn s8_a_file_of_the_store_that_is_newer_than_the_look_at_a_folder_is_not_opened() {
    for is_guarded in [true, false] {
        let field = field();
        fs::write(field.inside.join("loom.db"), "database").unwrap();
        fs::write(field.inside.join("loom.db-journal"), "journal").unwrap();
        if is_guarded {
            field.guard.protect(&field.inside.join("loom.db")).unwrap();
        }
        for root in &field.roots {
            fs::write(field.inside.join("docs/innocent"), "listed").unwrap();
            let (top, docs) =
                (root.open_folder(&path("."), 10).unwrap(), root.open_folder(&path("docs"), 10).unwrap());
            // SQLite makes it anew, and someone gives it a name that was listed.
            let log = field.inside.join("loom.db-wal");
            let _ = fs::remove_file(&log);
            fs::write(&log, "log").unwrap();
            fs::hard_link(&log, field.inside.join("planted")).unwrap();
            fs::rename(field.inside.join("planted"), field.inside.join("docs/innocent")).unwrap();
            let read = [
                read_entry(&docs, "innocent"),
                read_entry(&top, "loom.db"),
                read_entry(&top, "loom.db-journal"),
            ];
            for read in read {
                assert_eq!(matches!(read, Err(FileProblem::StoreFile)), is_guarded, "the control: {read:?}");
            }
            assert_eq!(read_entry(&top, "allowed.txt").unwrap(), b"content");
            fs::remove_file(field.inside.join("docs/innocent")).unwrap();
        }
    }
}

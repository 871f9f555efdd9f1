//! Servers that answered nothing in time when they were asked to count: for some minutes no process asks them again,
//! so that not every command waits for the same silence.
//!
//! One small file a server and kind of question in the home's cache, whose time is all that it says. It fails open: a file that
//! cannot be read or written is no silence, and the server is asked.

use std::io;
use std::path::PathBuf;

use loom::{Digest, Millis};
use model::ModelInfo;
use serde::{Deserialize, Serialize};
use store::home::{Home, HomeDir};

/// How long a silent server is not asked to count, in ms.
const TEN_MINUTES: i64 = 10 * 60 * 1_000;
/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 16 * 1024;

/// What a server is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedWhat {
    Texts,
    /// Whole requests, which it writes in the template of its model.
    Requests,
}

/// Silence of a model's server, as a home remembers it.
pub(crate) struct CounterSilence {
    /// Host of the model, else its provider, and what is asked.
    server: String,
    /// None where the home has no room for it.
    file: Option<PathBuf>,
    now: Millis,
}

#[derive(Serialize, Deserialize)]
struct SilenceFile {
    server: String,
    /// When it was silent, ms since 1970.
    at: i64,
}

impl CounterSilence {
    pub(crate) fn of(home: &Home, info: &ModelInfo, what: CountedWhat, now: Millis) -> Self {
        let server = format!("{}\n{what:?}", info.host.as_ref().unwrap_or(&info.provider));
        let digest = Digest::of(server.as_bytes()).to_string();
        let folder = home.dir(HomeDir::Cache).ok().map(|cache| cache.join("silent-counters"));
        let file = folder.map(|folder| folder.join(format!("{}.json", &digest[..16])));
        Self { server, file, now }
    }

    /// Whether the server was silent within the last minutes.
    pub(crate) fn lasts(&self) -> bool {
        let kept = || {
            let bytes = workspace::read_regular(self.file.as_ref()?, MAX_FILE).ok()?;
            serde_json::from_slice::<SilenceFile>(&bytes).ok()
        };
        kept().is_some_and(|kept| {
            kept.server == self.server && (0..TEN_MINUTES).contains(&self.now.0.saturating_sub(kept.at))
        })
    }

    /// The server was silent now.
    pub(crate) fn keep(&self) {
        if let Err(error) = self.write() {
            tracing::debug!(%error, "that a server does not count in time could not be kept");
        }
    }

    fn write(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        file.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        let kept = SilenceFile { server: self.server.clone(), at: self.now.0 };
        workspace::replace_small_file(file, &serde_json::to_vec(&kept)?)
    }
}

#[cfg(test)]
mod tests {
    use store::home::HomeOptions;

    use super::*;

    #[test]
    fn a_silence_lasts_ten_minutes_and_is_that_of_one_server() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("home"), HomeOptions::default()).unwrap();
        let at_host = |name: &str, host: &str| ModelInfo {
            host: Some(host.to_owned()),
            ..ModelInfo::local("box", name, 8_192, 1_024)
        };
        let model = at_host("m", "127.0.0.1:9");
        let of = |info: &ModelInfo, what, at| CounterSilence::of(&home, info, what, Millis(at));
        let lasts = |info: &ModelInfo, at| of(info, CountedWhat::Texts, at).lasts();
        assert!(!lasts(&model, 1_000));
        let silence = of(&model, CountedWhat::Texts, 1_000);
        silence.keep();
        assert!(lasts(&model, 1_000) && lasts(&model, 999 + TEN_MINUTES));
        assert!(lasts(&at_host("other", "127.0.0.1:9"), 1_000), "it is the same server");
        assert!(!of(&model, CountedWhat::Requests, 1_000).lasts());
        assert!(!lasts(&model, 1_000 + TEN_MINUTES), "it may be faster by now");
        assert!(!lasts(&model, 999), "a clock that went back");
        assert!(!lasts(&at_host("m", "127.0.0.1:8"), 1_000));
        std::fs::write(silence.file.unwrap(), "no").unwrap();
        assert!(!lasts(&model, 1_000), "what cannot be read is nothing");
    }
}

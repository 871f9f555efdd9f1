//! Servers that answered nothing in time when they were asked to count: for some minutes no process asks them again,
//! so that not every command waits for the same silence.
//!
//! One small file a server and model in the home's cache, whose time is all that it says. It fails open: a file that
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

/// Silence of a model's server, as a home remembers it.
pub(crate) struct CounterSilence {
    /// Provider, name and host of the model.
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
    pub(crate) fn of(home: &Home, info: &ModelInfo, now: Millis) -> Self {
        let server = format!("{}\n{}", info.full_name(), info.host.as_deref().unwrap_or_default());
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
        let new = file.with_extension(format!("{}.new", std::process::id()));
        std::fs::write(&new, serde_json::to_vec(&kept)?)?;
        std::fs::rename(&new, file)
    }
}

#[cfg(test)]
mod tests {
    use store::home::HomeOptions;

    use super::*;

    #[test]
    fn a_silence_lasts_ten_minutes_and_is_that_of_one_server_and_model() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("home"), HomeOptions::default()).unwrap();
        let model = |name: &str| ModelInfo::local("box", name, 8_192, 1_024);
        let lasts = |info: &ModelInfo, at| CounterSilence::of(&home, info, Millis(at)).lasts();
        assert!(!lasts(&model("m"), 1_000));
        let silence = CounterSilence::of(&home, &model("m"), Millis(1_000));
        silence.keep();
        assert!(lasts(&model("m"), 1_000) && lasts(&model("m"), 999 + TEN_MINUTES));
        assert!(!lasts(&model("m"), 1_000 + TEN_MINUTES), "it may be faster by now");
        assert!(!lasts(&model("m"), 999), "a clock that went back");
        assert!(!lasts(&model("other"), 1_000));
        let elsewhere = ModelInfo { host: Some("127.0.0.1:9".to_owned()), ..model("m") };
        assert!(!lasts(&elsewhere, 1_000));
        std::fs::write(silence.file.unwrap(), "no").unwrap();
        assert!(!lasts(&model("m"), 1_000), "what cannot be read is nothing");
    }
}

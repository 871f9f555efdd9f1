//! The window a local server has given a model, which may be less than the model was made for: asked once, when a
//! process first needs the model, and kept in the home for a day (spec: agent §2).
//!
//! It fails open: a server that is not there, or does not say, leaves what is known without it; the request itself
//! says what is wrong. Nobody but the server the text is about to go to is asked.

use std::io;
use std::path::PathBuf;

use commands::CommandError;
use loom::Digest;
use model::Clock;
use serde::{Deserialize, Serialize};
use store::home::{Home, HomeDir};

use crate::detect;
use crate::provider::ResolvedProvider;

/// How long what a server said is believed, in ms.
const A_DAY: i64 = 24 * 60 * 60 * 1_000;
/// How long one that did not say is not asked again, in ms: it may say more once the model is loaded.
const SILENCE: i64 = 5 * 60 * 1_000;
/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 16 * 1024;

/// What servers have said, in a home.
pub(crate) struct ContextWindows {
    folder: PathBuf,
    clock: Clock,
}

#[derive(Serialize, Deserialize)]
struct CachedWindow {
    server: String,
    model: String,
    /// None, if it did not say.
    window: Option<u32>,
    /// When it was said, ms since 1970.
    at: i64,
}

impl ContextWindows {
    /// Windows kept in a home; none where it has no room for them.
    pub(crate) fn of_home(home: &Home, clock: Clock) -> Option<Self> {
        let folder = home.dir(HomeDir::Cache).ok()?.join("windows");
        std::fs::create_dir_all(&folder).ok()?;
        Some(Self { folder, clock })
    }

    /// The window of a model on a local server, as it says, or said within a day.
    ///
    /// # Errors
    /// When it was not waited for: that says nothing about the server.
    pub(crate) fn told(
        &self,
        reached: &ResolvedProvider<'_>,
        model: &str,
    ) -> Result<Option<u32>, CommandError> {
        let Some(server) = reached.base_url() else { return Ok(None) };
        if let Some(kept) = self.kept(server, model) {
            return Ok(kept);
        }
        let window = asked(reached, model)?;
        if let Err(error) = self.keep(server, model, window) {
            tracing::debug!(%error, "the window of a model could not be kept");
        }
        Ok(window)
    }

    /// What was said lately, or that nothing was.
    fn kept(&self, server: &str, model: &str) -> Option<Option<u32>> {
        let file = self.file(server, model);
        let kept: CachedWindow =
            serde_json::from_slice(&workspace::read_regular(&file, MAX_FILE).ok()?).ok()?;
        let age = self.clock.now().saturating_sub(kept.at);
        let lasts = if kept.window.is_some() { A_DAY } else { SILENCE };
        let holds = kept.server == server && kept.model == model && (0..lasts).contains(&age);
        (holds && kept.window != Some(0)).then_some(kept.window)
    }

    fn keep(&self, server: &str, model: &str, window: Option<u32>) -> io::Result<()> {
        let (file, at) = (self.file(server, model), self.clock.now());
        let kept = CachedWindow { server: server.to_owned(), model: model.to_owned(), window, at };
        workspace::replace_small_file(&file, &serde_json::to_vec(&kept)?)
    }

    fn file(&self, server: &str, model: &str) -> PathBuf {
        let digest = Digest::of(format!("{server}\n{model}").as_bytes()).to_string();
        self.folder.join(format!("{}.json", &digest[..16]))
    }
}

/// Asks the server, on a thread of its own: whoever waits may be at work in a runtime.
fn asked(reached: &ResolvedProvider<'_>, model: &str) -> Result<Option<u32>, CommandError> {
    let asked = std::thread::scope(|scope| scope.spawn(|| detect::window(reached, model)).join());
    asked.unwrap_or(Ok(None))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use store::home::HomeOptions;

    use super::*;

    #[test]
    fn what_was_said_holds_for_a_day_and_for_this_server_and_model_alone() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("home"), HomeOptions::default()).unwrap();
        let now = Arc::new(AtomicI64::new(1_000));
        let clock = Arc::clone(&now);
        let windows =
            ContextWindows::of_home(&home, Clock::new(move || clock.load(Ordering::SeqCst))).unwrap();
        windows.keep("http://127.0.0.1:9", "m", Some(3_000)).unwrap();
        assert_eq!(windows.kept("http://127.0.0.1:9", "m"), Some(Some(3_000)));
        assert_eq!(windows.kept("http://127.0.0.1:9", "other"), None);
        assert_eq!(windows.kept("http://127.0.0.1:8", "m"), None);
        now.store(1_000 + A_DAY - 1, Ordering::SeqCst);
        assert_eq!(windows.kept("http://127.0.0.1:9", "m"), Some(Some(3_000)));
        now.store(1_000 + A_DAY, Ordering::SeqCst);
        assert_eq!(windows.kept("http://127.0.0.1:9", "m"), None, "a day has passed");
        windows.keep("http://127.0.0.1:9", "m", None).unwrap();
        assert_eq!(windows.kept("http://127.0.0.1:9", "m"), Some(None), "it is not asked again at once");
        now.fetch_add(SILENCE, Ordering::SeqCst);
        assert_eq!(windows.kept("http://127.0.0.1:9", "m"), None, "it may say more by now");
        std::fs::write(windows.file("http://127.0.0.1:9", "m"), "no").unwrap();
        assert_eq!(windows.kept("http://127.0.0.1:9", "m"), None, "what cannot be read is nothing");
    }
}

//! `/reload`: what stands above a conversation is read anew at its next request (spec: context §2 *Activation*).

use context::Source;

use super::Conversation;
use crate::app::App;
use crate::error::CommandError;
use crate::results::slash::Reloaded;
use crate::rights::Asker;

impl Conversation {
    /// Has the next request read everything anew, and says beforehand what that costs the cache: what of the request
    /// could be reused without it, and with it.
    ///
    /// # Errors
    /// When the request cannot be prepared.
    pub(crate) async fn reload(&mut self, app: &App, asker: &Asker) -> Result<Reloaded, CommandError> {
        self.reload = false;
        self.read_files(app).await;
        let none = Reloaded { changed: Vec::new(), tokens: None, reusable: None, reusable_anew: None };
        let Some(entered) = self.entered(app, asker).await? else { return Ok(none) };
        let (runtime, who) = (&app.runtime, &asker.principal);
        let stays = self.request(app, &entered).await?.prepare(runtime, who).await?.manifest;
        self.reload = true;
        self.read_files(app).await;
        let anew = self.request(app, &entered).await?.prepare(runtime, who).await?.manifest;
        let files = |manifest: &context::Manifest| -> Vec<(String, loom::Digest)> {
            let sources = manifest.segments.iter().filter(|segment| segment.bytes.is_some());
            let files = sources.filter_map(|segment| match &segment.source {
                Source::File { path, digest } => Some((path.clone(), *digest)),
                _ => None,
            });
            files.collect()
        };
        let (before, after) = (files(&stays), files(&anew));
        let differ = |a: &[(String, loom::Digest)], b: &[(String, loom::Digest)]| -> Vec<String> {
            a.iter().filter(|file| !b.contains(file)).map(|(name, _)| name.clone()).collect()
        };
        let mut changed = [differ(&after, &before), differ(&before, &after)].concat();
        changed.sort();
        changed.dedup();
        Ok(Reloaded {
            changed,
            tokens: Some(anew.tokens),
            reusable: stays.reused_tokens,
            reusable_anew: anew.reused_tokens,
        })
    }
}

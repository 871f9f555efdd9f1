//! When what stands above the cache boundary is read anew (spec: context §2 *Activation*).
//!
//! A provider keeps the beginning of a request; whoever changes a byte of it pays for everything behind. So it is
//! read anew only where the cache is lost anyhow: at a move of the window's start (a trim, `/compact`), with
//! another model, after a pause longer than caches live, or when the owner asks. A file that changes in between is
//! told of at the end of the request, where it costs what it is long.

use loom::{Digest, Millis};
use serde::{Deserialize, Serialize};

use crate::injection::Offer;
use crate::manifest::{CallCut, ModelRef};
use crate::prefix::{FrozenText, Prefix};
use crate::segment::{Kind, Source};
use crate::target::TargetModel;

/// How long after a request providers still have its beginning, at the most, in ms.
pub const CACHE_LIVES: i64 = 60 * 60 * 1_000;
/// Most characters of a difference that is sent.
const MOST_DIFF: usize = 4_000;

/// What becomes of a file above the boundary that changes in mid-session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangedFiles {
    /// The difference is sent at the end.
    #[default]
    Inject,
    /// The next session has it.
    NextSession,
    /// Everything is read anew at once, whatever it costs.
    Activate,
}

/// What is known of the request before, on the way to the place that is asked from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Previous {
    /// What stood above its boundary; none where there was none, or where it is gone.
    pub prefix: Option<Prefix>,
    /// Whether caches have lost it, or it went to another model.
    pub cold: bool,
    /// The calls that were cut in it.
    pub calls: Vec<CallCut>,
    /// Tokens of it and its answer, reported where they were; none where there was none.
    pub used: Option<u64>,
    /// Files whose change the owner was told of, with their digests.
    pub told: Vec<(String, Digest)>,
}

/// Whether caches have lost a request that was answered at `at`.
pub fn is_cold(last: &ModelRef, at: Millis, target: &TargetModel, now: Millis) -> bool {
    let other =
        (&last.provider, &last.name, last.dialect) != (&target.provider, &target.model, target.dialect);
    other || now.0.saturating_sub(at.0) > CACHE_LIVES
}

/// A file that is not any more as it stands above the boundary.
#[derive(Debug, PartialEq)]
pub(crate) struct FileChange<'a> {
    pub(crate) name: &'a str,
    /// As it stands above; none for a new one.
    pub(crate) before: Option<&'a FrozenText>,
    /// As it is now; none if it is gone.
    pub(crate) after: Option<&'a FrozenText>,
}

/// The files that differ between what is sent and what would be.
pub(crate) fn changes<'a>(sent: &'a Prefix, now: &'a Prefix) -> Vec<FileChange<'a>> {
    let mut changes = Vec::new();
    for (name, digest, before) in files(sent) {
        match files(now).find(|(other, ..)| *other == name) {
            Some((_, other, _)) if other == digest => {}
            after => {
                let after = after.map(|(_, _, text)| text);
                changes.push(FileChange { name, before: Some(before), after });
            }
        }
    }
    let new = files(now).filter(|(name, ..)| files(sent).all(|(other, ..)| other != *name));
    changes.extend(new.map(|(name, _, after)| FileChange { name, before: None, after: Some(after) }));
    changes
}

fn files(prefix: &Prefix) -> impl Iterator<Item = (&str, Digest, &FrozenText)> {
    prefix.texts.iter().filter_map(|text| match &text.source {
        Source::File { path, digest } if text.kind == Kind::File => Some((path.as_str(), *digest, text)),
        _ => None,
    })
}

impl FileChange<'_> {
    /// The digest it has now; that of nothing, if it is gone.
    pub(crate) fn digest(&self) -> Digest {
        match self.after.map(|after| &after.source) {
            Some(Source::File { digest, .. }) => *digest,
            _ => Digest::of(b""),
        }
    }

    /// Whether a text is the one that stands above.
    pub(crate) fn is(&self, text: &FrozenText) -> bool {
        self.before.is_some_and(|before| std::ptr::eq(before, text))
    }

    /// What is told of it: the difference to what stands above.
    pub(crate) fn offer(&self) -> Offer {
        let before = self.before.map_or("", |text| text.text.as_str());
        let after = self.after.map_or("", |text| text.text.as_str());
        let diff = similar::TextDiff::from_lines(before, after).unified_diff().context_radius(1).to_string();
        let mut cut = diff.char_indices().map(|(at, _)| at).skip(MOST_DIFF);
        let (diff, more) = match cut.next() {
            Some(at) => (&diff[..at], "\n[the rest of the difference is left out: read the file]"),
            None => (diff.as_str(), ""),
        };
        let how = match (self.before, self.after) {
            (_, None) => "is gone; what stands of it above holds no more",
            (None, _) => "is new",
            _ => "has changed since it was read; the difference to what stands above",
        };
        let fence = text::frame::fence(diff);
        let shown =
            if self.after.is_some() { format!(":\n{fence}diff\n{diff}{more}\n{fence}") } else { ".".into() };
        let trust = self.after.or(self.before).map_or(loom::Trust::Workspace, |text| text.trust);
        Offer {
            topic: topic(self.name),
            version: self.digest().to_string(),
            trust,
            text: format!("[{} {how}]{shown}", self.name),
        }
    }
}

/// What topics of files begin with.
const OF_FILE: &str = "file:";

/// The topic of what is told of a file.
pub(crate) fn topic(file: &str) -> String {
    format!("{OF_FILE}{file}")
}

/// Path of the file that an injection of this source tells of; none of one that tells of something else.
pub(crate) fn file_of(source: &str) -> Option<&str> {
    let (path, _version) = source.strip_prefix(OF_FILE)?.rsplit_once('#')?;
    Some(path)
}

/// What is told of a file that is again as it stands above.
pub(crate) fn reverted(file: &str, digest: Digest, trust: loom::Trust) -> Offer {
    let text = format!("[{file} is again as it stands above.]");
    Offer { topic: topic(file), version: digest.to_string(), trust, text }
}

/// The files that stand above, with their digests.
pub(crate) fn standing(sent: &Prefix) -> impl Iterator<Item = (&str, Digest, loom::Trust)> {
    files(sent).map(|(name, digest, text)| (name, digest, text.trust))
}

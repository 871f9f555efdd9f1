//! Files that wait in a session: each is sent along once, whoever says something next.
//!
//! A message is made before its turn has the session. The files that wait are looked up again under the lease, and are
//! taken off the settings before it is given back.

use std::path::PathBuf;

use loom::Digest;
use loom::plan::NewText;

use super::turn::{Turn, shown_by};
use super::{SessionSettings, TurnInput, WaitingFile};
use crate::error::AgentError;
use crate::event::SessionEvent;

impl Turn<'_> {
    /// Leaves out the files that do not wait in the session any more. Returns the paths of those that do, and of those
    /// that are left out.
    pub(super) async fn leave_out_gone(&self, input: &mut TurnInput) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let TurnInput::New { texts, media, waiting } = input else { return Default::default() };
        if waiting.is_empty() {
            return Default::default();
        }
        let waits = self.settings().await;
        // What cannot be read says nothing against them.
        let waits =
            |file: &WaitingFile| waits.as_ref().map_or(true, |(_, now)| now.files.contains(&file.path));
        let (sent, gone): (Vec<_>, Vec<_>) = std::mem::take(waiting).into_iter().partition(waits);
        if !gone.is_empty() {
            let all = std::mem::take(texts);
            let said = all.len().saturating_sub(1);
            let is_gone = |index: usize| index < said && gone.iter().any(|file| file.text == index);
            let (left_out, stay): (Vec<_>, Vec<_>) =
                all.into_iter().enumerate().partition(|(index, _)| is_gone(*index));
            let texts_of = |texts: Vec<(usize, NewText)>| texts.into_iter().map(|(_, text)| text).collect();
            *texts = texts_of(stay);
            let left_out: Vec<NewText> = texts_of(left_out);
            let shown = shown_by(texts);
            media.retain(|bytes| shown.contains(&Digest::of(bytes)));
            // Another process keeps its pictures and sounds in the home before it hands its message over.
            let mut unsaid = shown_by(&left_out);
            unsaid.retain(|blob| !shown.contains(blob));
            self.remove_unsaid(&unsaid).await;
        }
        let paths = |files: Vec<WaitingFile>| files.into_iter().map(|file| file.path).collect();
        (paths(sent), paths(gone))
    }

    /// Takes files that were sent off the session's settings.
    pub(super) async fn remove_sent(&self, sent: &[PathBuf]) -> Result<(), AgentError> {
        if sent.is_empty() {
            return Ok(());
        }
        self.change_settings(|settings| settings.files.retain(|path| !sent.contains(path))).await
    }

    /// Changes the settings of the session, whatever is written of them meanwhile.
    pub(super) async fn change_settings(
        &self,
        change: impl Fn(&mut SessionSettings),
    ) -> Result<(), AgentError> {
        self.runtime.change_settings_of(self.settings_session(), change).await
    }

    /// The settings of the session, or of the one whose subagent it is, as they are written and as they are read.
    pub(super) async fn settings(&self) -> Result<(String, SessionSettings), AgentError> {
        self.runtime.settings_of(self.settings_session()).await
    }

    pub(super) fn tell_of_files(&self, gone: &[PathBuf], kept: Result<(), AgentError>) {
        for path in gone {
            let name = path.to_string_lossy();
            let name = text::terminal::one_line(&name);
            self.log.push(SessionEvent::notice(format!(
                "{name} was sent with another message, or taken back: it is left out"
            )));
        }
        if let Err(error) = kept {
            self.log.push(SessionEvent::notice(format!("files that were sent still wait: {error}")));
        }
    }
}

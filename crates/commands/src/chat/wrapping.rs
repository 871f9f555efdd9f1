//! Wrap of a conversation: it hands over when it is told to, and before it begins anew (spec: continuity §4).

use agent::AgentError;
use agent::wrap::{UndoneFile, UndoneWrap, WrapPlace, Wrapped};
use loom::ViewName;
use store::SessionKind;
use text::bytes::size;
use workspace::trust::Accepted;

use super::Conversation;
use crate::app::App;
use crate::error::CommandError;
use crate::results::Told;
use crate::results::handoff::{HandoffFile, WrapShown, WrapUndone};
use crate::rights::Asker;
use crate::workspaces;

/// Code of the error where nothing was said since the last wrap.
const NOTHING: &str = "nothing_to_wrap";

impl Conversation {
    /// Hands the session over.
    ///
    /// # Errors
    /// `no_handoff` for a session that hands nothing over, `nothing_to_wrap` where nothing was said or noted since the last
    /// one, and whatever keeps its files from being written.
    pub(crate) async fn wrap(&mut self, app: &App, asker: &Asker) -> Result<Told<WrapShown>, CommandError> {
        self.require_handoff(app).await?;
        let nothing = || {
            let message = "nothing was said or noted here since the last handoff";
            CommandError::new(NOTHING, 3, message, "say something first, or /note it")
        };
        let wrapped = if self.anew { None } else { self.try_wrap(app, asker).await? };
        Ok(self.told(wrapped.ok_or_else(nothing)?))
    }

    /// Hands the session over before something new is begun in it, if it hands anything over. Whether it did.
    ///
    /// # Errors
    /// A turn of it runs, or as the store says.
    pub(super) async fn wrap_before_new(&mut self, app: &App, asker: &Asker) -> Result<bool, CommandError> {
        if self.require_handoff(app).await.is_err() {
            return Ok(false);
        }
        match self.try_wrap(app, asker).await {
            Ok(Some(wrapped)) => {
                let told = self.told(wrapped);
                app.frontend.note(&told.sentence);
                self.anew = false;
                Ok(true)
            }
            Ok(None) => Ok(false),
            // What cannot be handed over is kept as a tree.
            Err(AgentError::Wrap(why)) => {
                app.frontend.note(&format!("it begins without a handoff, which could not be written: {why}"));
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Finishes a wrap of the session that a process left unfinished.
    pub(super) async fn finish_wrap(&mut self, app: &App, asker: &Asker) {
        if self.require_handoff(app).await.is_err() {
            return;
        }
        let (Some(root), Some(seen)) = (&app.workspace.root, &self.seen) else { return };
        let place = WrapPlace { root: root.path(), guard: &app.guard, session: &seen.id, view: &self.view };
        match app.runtime.resume_wrap(&asker.principal, &place).await {
            Ok(None) | Err(AgentError::Answers { .. }) => {}
            Ok(Some(wrapped)) => {
                let told = self.told(wrapped);
                app.frontend.note(&format!("what was cut off is finished: {}", told.sentence));
            }
            Err(error) => app.frontend.note(&error.to_string()),
        }
    }

    /// Goes on where the session was before its last wrap, with the handoff before.
    ///
    /// # Errors
    /// `not_found` where none led here, and as of [`Self::wrap`].
    pub(crate) async fn undo_wrap(
        &mut self,
        app: &App,
        asker: &Asker,
    ) -> Result<Told<WrapUndone>, CommandError> {
        self.require_handoff(app).await?;
        let (Some(root), Some(seen)) = (&app.workspace.root, &self.seen) else {
            return Err(AgentError::NoWrap.into());
        };
        let place = WrapPlace { root: root.path(), guard: &app.guard, session: &seen.id, view: &self.view };
        let UndoneWrap { wrap, to, from, path, file } =
            app.runtime.undo_wrap(&asker.principal, &place).await?;
        self.stand_in(to);
        let (file, difference, told) = match file {
            UndoneFile::Restored => (HandoffFile::Restored, None, "holds the text before again".to_owned()),
            UndoneFile::Removed => (HandoffFile::Removed, None, "is not there, as before".to_owned()),
            UndoneFile::Left { difference } => {
                (HandoffFile::Left, Some(difference), "was changed since, and stays".to_owned())
            }
        };
        let sentence = format!("the wrap is undone: {} {told}", path.display());
        let (session, tree) = (self.name(), to);
        Ok(Told { result: WrapUndone { wrap, session, tree, from, path, file, difference }, sentence })
    }

    async fn try_wrap(&mut self, app: &App, asker: &Asker) -> Result<Option<Wrapped>, AgentError> {
        let (Some(root), Some(seen)) = (&app.workspace.root, &self.seen) else { return Ok(None) };
        let place = WrapPlace { root: root.path(), guard: &app.guard, session: &seen.id, view: &self.view };
        app.runtime.wrap(&asker.principal, &place).await
    }

    /// Refuses a session that hands nothing over.
    async fn require_handoff(&self, app: &App) -> Result<(), CommandError> {
        let why = match self.chosen.kind {
            SessionKind::Temporary => "it is temporary",
            SessionKind::Isolated => "it is one of a subagent or a single request",
            SessionKind::Main if workspaces::accepted(app).await == Accepted::default() => {
                "nothing of a workspace is loaded here"
            }
            SessionKind::Main => return Ok(()),
        };
        Err(AgentError::NoHandoff(why).into())
    }

    /// Has the conversation go on in another tree of its session.
    fn stand_in(&mut self, tree: loom::TreeId) {
        (self.view, self.anew) = (ViewName::default(), false);
        if let Some(seen) = &mut self.seen {
            seen.tree = Some(tree);
        }
    }

    /// What a wrap did; the conversation goes on behind it.
    fn told(&mut self, wrapped: Wrapped) -> Told<WrapShown> {
        let Wrapped { wrap, path, bytes, from, to, files } = wrapped;
        self.stand_in(to);
        let mut sentence = format!("wrapped · {} · {}", size(bytes as u64), path.display());
        if let Some(overflow) = &files.overflow {
            sentence += &format!(" · {} more in {}", files.overflowed, overflow.display());
        }
        let (unmerged, difference) =
            files.unmerged.map(|unmerged| (unmerged.path, unmerged.difference)).unzip();
        match &unmerged {
            Some(kept) => {
                sentence += &format!(
                    " · somebody changed that file, which stays: the handoff is in {}",
                    kept.display()
                );
            }
            None => sentence += " · /wrap undo takes it back",
        }
        let result = WrapShown {
            wrap,
            session: self.name(),
            tree: to,
            from,
            path,
            bytes,
            archived: files.archived,
            unmerged,
            difference,
            overflow: files.overflow,
            overflowed: files.overflowed,
        };
        Told { result, sentence }
    }
}

//! Settings of a session: they are the session's, whichever process goes on with it (spec: gateway §1).
//!
//! What is said in a conversation with `/model`, `/think` and `/file` is written with the session; what a call is given
//! with flags holds for that call alone.

use std::path::{Path, PathBuf};

use model::Thinking;
use serde::{Deserialize, Serialize};
use text::terminal::one_line;
use workspace::Accept;

use super::Conversation;
use super::attached::Attached;
use crate::app::App;
use crate::error::CommandError;
use crate::rights::Asker;

/// Settings of a session, as the store has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SessionSettings {
    /// The model, as it was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinking: Option<Thinking>,
    /// Files that go along with the next thing said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<PathBuf>,
}

impl Conversation {
    /// Reads the settings of the session. What cannot be had any more is named, and left out.
    pub(super) async fn restore(&mut self, app: &App, asker: &Asker) -> Result<(), CommandError> {
        let session = app.runtime.session(&asker.principal, &self.chosen).await?;
        let text = session.map(|session| session.settings).unwrap_or_default();
        let settings: SessionSettings = if text.is_empty() {
            SessionSettings::default()
        } else {
            serde_json::from_str(&text).unwrap_or_else(|error| {
                app.frontend.note(&format!("the settings of this session cannot be read: {error}"));
                SessionSettings::default()
            })
        };
        self.kept_thinking = settings.thinking;
        self.think = self.think.or(settings.thinking);
        self.kept_model = settings.model;
        for path in &settings.files {
            self.attach_again(app, path);
        }
        Ok(())
    }

    fn attach_again(&mut self, app: &App, path: &Path) {
        let name = path.to_string_lossy();
        let name = one_line(&name);
        match Attached::read(app, path, Accept::Regular) {
            Ok(file) => {
                app.frontend
                    .note(&format!("{name} was attached before and will be sent with your next message"));
                self.attached.push(Attached { waits_as: Some(path.to_owned()), ..file });
            }
            Err(error) => {
                app.frontend.note(&format!("{name} waited from before and is left out: {}", error.message));
            }
        }
    }

    /// Writes the settings with the session; before it has begun they wait until it does.
    pub(crate) async fn keep_settings(&self, app: &App, asker: &Asker) -> Result<(), CommandError> {
        let Some(session) = app.runtime.session(&asker.principal, &self.chosen).await? else { return Ok(()) };
        let settings = SessionSettings {
            model: self.kept_model.clone(),
            thinking: self.kept_thinking,
            files: self.attached.iter().filter_map(|file| file.waits_as.clone()).collect(),
        };
        let text = if settings == SessionSettings::default() {
            String::new()
        } else {
            serde_json::to_string(&settings)
                .map_err(|error| CommandError::new("json", 6, error.to_string(), "please report this"))?
        };
        if text != session.settings {
            app.runtime.store.set_session_settings(&asker.principal, &session.id, &text).await?;
        }
        Ok(())
    }
}

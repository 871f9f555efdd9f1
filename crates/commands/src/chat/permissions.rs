//! Calls of tools that a person allowed for the rest of a session (spec: agent §4).

use policy::Permission;

use super::Conversation;
use crate::app::App;
use crate::error::CommandError;
use crate::rights::Asker;

impl Conversation {
    /// Calls that a person allowed for the rest of the session.
    pub(crate) fn allowed(&self) -> &[Permission] {
        &self.allowed
    }

    /// Takes back what was allowed for the rest of the session: it is asked about again.
    ///
    /// # Errors
    /// The settings of the session are damaged, or cannot be written.
    pub(crate) async fn take_back_permissions(
        &mut self,
        app: &App,
        asker: &Asker,
    ) -> Result<(), CommandError> {
        self.require_settings()?;
        self.allowed.clear();
        self.keep_settings(app, asker).await
    }
}

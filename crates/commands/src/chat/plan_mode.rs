//! What calls of tools may do in a session beside the rules: plan mode (`/plan` and `chat --plan`), and calls that a
//! person allowed for the rest of it (spec: agent §4).

use super::Conversation;
use policy::Permission;

use crate::app::App;
use crate::error::CommandError;
use crate::results::slash::PlanShown;
use crate::rights::Asker;

impl Conversation {
    /// Whether calls that change something are refused.
    pub fn is_planning(&self) -> bool {
        self.plan || self.plan_flag
    }

    /// Turns plan mode on or off for the session, whatever a flag of this call says; shows it, if nothing is said.
    ///
    /// # Errors
    /// The settings of the session are damaged, or cannot be written.
    pub(crate) async fn set_plan(
        &mut self,
        app: &App,
        asker: &Asker,
        plan: Option<bool>,
    ) -> Result<PlanShown, CommandError> {
        if let Some(plan) = plan {
            self.require_settings()?;
            (self.plan, self.plan_flag) = (plan, false);
            if let Some(config) = &mut self.config {
                config.plan = plan;
            }
            self.keep_settings(app, asker).await?;
        }
        Ok(PlanShown { plan: self.is_planning(), set: plan.is_some() })
    }

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

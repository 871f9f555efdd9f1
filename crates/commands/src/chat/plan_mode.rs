//! Plan mode: calls that change something are refused (`/plan` and `chat --plan`; spec: agent §4).

use super::Conversation;
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
}

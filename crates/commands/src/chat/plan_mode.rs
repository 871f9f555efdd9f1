//! Plan mode, in which calls that change something are refused, and the plan that the model keeps (`/plan` and
//! `chat --plan`; spec: agent §3, §4).

use agent::OpenedSession;
use context::plan::{PlanStep, standing};
use loom::path::ViewOverrides;
use loom::render::tip;

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
            self.hold_plan(plan);
            self.keep_settings(app, asker).await?;
        }
        let steps = if plan.is_none() { self.steps(app, asker).await? } else { Vec::new() };
        Ok(PlanShown { plan: self.is_planning(), steps, set: plan.is_some() })
    }

    /// Has plan mode be on or off here.
    pub(super) const fn hold_plan(&mut self, plan: bool) {
        (self.plan, self.plan_flag) = (plan, false);
        if let Some(config) = &mut self.config {
            config.plan = plan;
        }
    }

    /// The steps of the plan that holds here.
    async fn steps(&self, app: &App, asker: &Asker) -> Result<Vec<PlanStep>, CommandError> {
        let Some(OpenedSession { tree, view, .. }) = self.entered(app, asker).await? else {
            return Ok(Vec::new());
        };
        let standing = app.runtime.read(&asker.principal, tree, move |rows| {
            let path = ViewOverrides::read(rows, &view, tip(rows, &view)?)?;
            standing(rows, &view, &path, 0..=path.tip.depth)
        });
        Ok(standing.await?.map(|standing| standing.plan.steps).unwrap_or_default())
    }
}

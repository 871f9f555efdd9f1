//! What a conversation would send next: prepared, and not sent.

use std::sync::Arc;

use agent::{PreparedRequest, Runtime};
use loom::{Op, Role, ViewName};
use store::{AttachedWrites, Store};

use super::Conversation;
use crate::app::App;
use crate::contexts::unsaid;
use crate::error::CommandError;
use crate::rights::Asker;

impl Conversation {
    /// Looks at another view of the session's tree.
    pub(crate) fn look_at(&mut self, view: ViewName) {
        self.view = view;
    }

    /// The request that would be sent next, with a text as the newest thing said, if one is given. Nothing is
    /// written: a session in which nothing was said yet is begun in a store of its own, which is dropped.
    ///
    /// # Errors
    /// When nothing was said yet and nothing is given to say, or no request can be made.
    pub(crate) async fn prepared(
        &mut self,
        app: &App,
        asker: &Asker,
        said: Option<String>,
    ) -> Result<PreparedRequest, CommandError> {
        let who = &asker.principal;
        if let Some(entered) = self.entered(app, asker).await? {
            let mut ask = self.request(app, &entered).await?;
            if let Some(text) = said {
                let said = unsaid(app, asker, entered.tree, &entered.view, text).await?;
                if let Some(path) = ask.source.path_mut() {
                    path.variant.said = Some(said);
                }
            }
            return Ok(ask.prepare(&app.runtime, who).await?);
        }
        let text = said.ok_or_else(|| {
            let hint = "say something first, or give -m TEXT";
            CommandError::not_found("conversation of the session", &self.name(), hint)
        })?;
        let scratch = Runtime { store: Arc::new(Store::in_memory()?), ..app.runtime.clone() };
        let entered = scratch.enter(who, &self.chosen, &text).await?;
        let op = Op::Append(asker.text(text, Some(Role::User)));
        scratch.change(who, entered.tree, &entered.view, op, AttachedWrites::nothing()).await?;
        Ok(self.request(app, &entered).await?.prepare(&scratch, who).await?)
    }
}

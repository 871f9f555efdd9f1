//! What a conversation would send next: prepared, and not sent.

use std::sync::Arc;

use agent::{AgentError, GenerationRequest, PreparedRequest, Runtime};
use context::ContextError;
use loom::render::Passage;
use loom::{Ascent, Mode, NodeRow, Op, Role, TreeId, ViewName};
use store::{AttachedWrites, Store};

use super::Conversation;
use crate::app::App;
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
        self.require_fork(app, asker).await?;
        if let Some(entered) = self.entered(app, asker).await? {
            let mut ask = self.request(app, &entered).await?;
            if let Some(text) = said {
                let said = unsaid(app, asker, entered.tree, &entered.view, text).await?;
                if let Some(path) = ask.source.path_mut() {
                    path.variant.said = Some(said);
                }
            }
            return prepare(app, asker, ask).await;
        }
        let text = said.ok_or_else(|| {
            let hint = "say something first, or give -m TEXT";
            CommandError::not_found("conversation of the session", &self.name(), hint)
        })?;
        let store = Arc::new(Store::in_memory()?);
        let scratch = Runtime { store, unreleased: Arc::default(), ..app.runtime.clone() };
        let entered = scratch.enter(who, &self.chosen, &text).await?;
        let op = Op::Append(asker.text(text, Some(Role::User)));
        scratch.change(who, entered.tree, &entered.view, op, AttachedWrites::nothing()).await?;
        Ok(app.prepare_counted(&scratch, asker, &self.request(app, &entered).await?).await?)
    }
}

/// Prepares a request that is not sent. Where the messages that got no answer are too long for it, they are left out, as
/// they are of the next one.
///
/// # Errors
/// When no request can be made.
pub(crate) async fn prepare(
    app: &App,
    asker: &Asker,
    mut ask: GenerationRequest,
) -> Result<PreparedRequest, CommandError> {
    let tree = ask.tree;
    let error = match app.prepare_counted(&app.runtime, asker, &ask).await {
        Err(error @ AgentError::Context(ContextError::TooLong { .. })) => error,
        prepared => return Ok(prepared?),
    };
    let Some(path) = ask.source.path_mut().filter(|path| path.from.is_none()) else {
        return Err(error.into());
    };
    let view = path.view.clone();
    let last = app.read(asker, tree, move |rows| {
        let tip = loom::render::tip(rows, &view)?;
        let mut above =
            Ascent::new(rows, tip).filter(|at| !at.as_ref().is_ok_and(|at| at.role == Some(Role::User)));
        Ok(above.next().transpose()?.map(|at| at.id).filter(|at| *at != tip))
    });
    path.from = Some(last.await?.ok_or(error)?);
    let prepared = app.prepare_counted(&app.runtime, asker, &ask).await?;
    app.frontend.note("what was said last got no answer and is too long: the next request leaves it out");
    Ok(prepared)
}

/// A text as it would stand behind the tip of a conversation, once it were said.
///
/// # Errors
/// In a document, which nobody speaks to; as the store says.
pub(crate) async fn unsaid(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    view: &ViewName,
    text: String,
) -> Result<Passage, CommandError> {
    if app.runtime.store.tree(&asker.principal, tree).await?.mode == Mode::Buffer {
        return Err(CommandError::usage(
            "a document takes no message: its text is continued",
            "leave out -m: drafts are part of what is shown; `drawloom tree draft` sets one",
        ));
    }
    let op = Op::Append(asker.text(text.clone(), Some(Role::User)));
    let writer = (&asker.principal, &asker.author, asker.trust);
    let planned = app.runtime.plan_as(writer, tree, view, op).await?;
    let (Some(position), Some(node)) = (planned.positions.last(), planned.nodes.last()) else {
        return Err(loom::Refusal::Empty.into());
    };
    let row =
        NodeRow { seq: loom::Seq(0), place: 0, short_id: String::new(), purged: false, node: node.clone() };
    Ok(Passage { position: position.clone(), row, text, pending: false, excluded: false })
}

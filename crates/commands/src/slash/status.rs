//! `/status`: where a conversation stands.

use crate::app::App;
use crate::chat::Conversation;
use crate::chat::position::view_position;
use crate::error::CommandError;
use crate::results::slash::SessionStatus;
use crate::rights::Asker;
use crate::{cost, tree};

/// Session, model, window, and what taints.
pub(super) async fn status(
    app: &App,
    asker: &Asker,
    conversation: &Conversation,
) -> Result<SessionStatus, CommandError> {
    let entered = conversation.entered(app, asker).await?;
    let mut status = SessionStatus {
        session: conversation.name(),
        temporary: conversation.is_temporary(),
        tree: None,
        tree_short: None,
        title: String::new(),
        tip: None,
        model: conversation.model_shown(),
        named: conversation.model_named(app),
        thinking: conversation.thinks(app)?,
        plan: conversation.is_planning(),
        used: None,
        share: None,
        measured: None,
        zone: None,
        tainted_by: None,
        tainting: Vec::new(),
        cost: None,
        workspace: app.workspace.key.clone(),
        folders: conversation.folders().to_vec(),
        loaded: app.workspace.root.is_some(),
        exists: app.workspace.folder.as_ref().is_some_and(|folder| folder.is_dir()),
    };
    if let Some(entered) = entered {
        let view = entered.view;
        let of = view.clone();
        let position = app.read(asker, entered.tree, move |rows| view_position(rows, &of)).await?;
        status.tree = Some(entered.tree);
        status.cost = Some(cost::of_session(&app.runtime.store, &asker.principal, entered.tree).await?);
        let entry = app.runtime.store.tree(&asker.principal, entered.tree).await?;
        (status.title, status.tree_short) = (entry.title, Some(entry.short_id));
        status.tip = Some(position.short_id);
        if let Some(last) = position.last {
            (status.used, status.share, status.zone) =
                (Some(last.used()), Some(last.share()), Some(last.zone()));
            status.measured = Some(last.is_measured());
            if last.manifest.tainted_by.is_some() {
                let taints = app.read(asker, entered.tree, move |rows| tree::tainting(rows, &view)).await?;
                status.tainted_by = taints.first().map(|first| first.node);
                status.tainting = taints.into_iter().map(|taint| taint.short_id).collect();
            }
        }
    }
    Ok(status)
}

//! `context show --next`: the request that would be sent next, or once a text were said. It is prepared as a real one
//! is, with the text as a planned node behind the tip; nothing is written, and nobody is asked but a server on this machine
//! that counts its tokens.

use agent::{PathRequest, RequestVariant};

use super::shown;
use crate::app::App;
use crate::args::chat::{ChatArgs, SessionArg};
use crate::args::context::ShowContext;
use crate::args::tree::Sampling;
use crate::chat::{Conversation, prepare, unsaid};
use crate::error::CommandError;
use crate::model_selection;
use crate::results::CommandOutcome;
use crate::results::context::ContextShown;
use crate::rights::Asker;

/// Runs it: for a tree, else for a session.
pub(super) async fn next(
    app: &App,
    asker: &Asker,
    tree: &str,
    args: &ShowContext,
) -> Result<CommandOutcome, CommandError> {
    let said = args.message.as_deref().map(|text| app.text(text)).transpose()?;
    if said.as_deref().is_some_and(|text| text.trim().is_empty()) {
        return Err(CommandError::usage("the message is empty", "give a text"));
    }
    let prepared = if tree.is_empty() {
        let session = SessionArg { session: args.session.clone() };
        let mut conversation =
            Conversation::open(app, asker, &ChatArgs { session, ..ChatArgs::default() }).await?;
        if args.view.view.is_some() {
            conversation.look_at(args.view.name()?);
        }
        conversation.prepared(app, asker, said).await?
    } else {
        let (tree, view) = (app.tree_named(asker, tree).await?, args.view.name()?);
        let said = match said {
            Some(text) => Some(unsaid(app, asker, tree, &view, text).await?),
            None => None,
        };
        let variant = RequestVariant { said, ..RequestVariant::default() };
        let path = PathRequest { view, drafts: true, variant, ..PathRequest::default() };
        // Without flags one model is asked.
        let shares = model_selection::shares(app, asker, tree, &Sampling::default()).await?;
        let nobody = || CommandError::usage("no model is asked there", "name one with --model");
        let share = shares.first().ok_or_else(nobody)?;
        prepare(app, asker, share.request(app, tree, path)).await?
    };
    let body = Some(prepared.encoded.body().as_ref()).filter(|_| args.text);
    let shown = shown(app, asker, &prepared.manifest, body).await?;
    Ok(CommandOutcome::Context(ContextShown { map: args.map, ..shown }))
}

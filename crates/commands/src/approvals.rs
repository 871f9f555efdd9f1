//! Questions of running work, answered from another process (spec: cli §2, agent §1).

use std::collections::HashMap;

use agent::questions::Decision;
use store::{QuestionId, StoreError};

use crate::app::App;
use crate::args::approvals::{Approve, Deny};
use crate::error::CommandError;
use crate::results::approvals::{Approval, Approvals};
use crate::results::{CommandOutcome, Done};
use crate::rights::Asker;

/// `approvals list`.
pub(crate) async fn list(app: &App, asker: &Asker) -> Result<CommandOutcome, CommandError> {
    let open = app.runtime.open_questions(&asker.principal).await?;
    let mut names = HashMap::new();
    for id in open.iter().filter_map(|question| question.session.as_ref()) {
        if !names.contains_key(id)
            && let Some(session) = app.runtime.store.session(&asker.principal, id).await?
        {
            names.insert(id.clone(), session.name);
        }
    }
    let approvals = open.into_iter().map(|question| Approval {
        id: question.id,
        short_id: question.id.short(),
        kind: question.kind,
        session: question.session.and_then(|id| names.get(&id).cloned()),
        tree: question.tree,
        asker: question.asker,
        text: question.payload,
        answers: question.answers,
        asked: question.created,
        expires: question.expires,
    });
    Ok(CommandOutcome::Approvals(Approvals { approvals: approvals.collect() }))
}

/// `approve`.
pub(crate) async fn approve(app: &App, asker: &Asker, args: Approve) -> Result<CommandOutcome, CommandError> {
    let id = named(app, asker, &args.id).await?;
    let answer = (args.answer, None);
    app.runtime.answer_question(&asker.principal, id, Decision::Approved, answer).await?;
    Ok(Done::outcome())
}

/// `deny`.
pub(crate) async fn deny(app: &App, asker: &Asker, args: Deny) -> Result<CommandOutcome, CommandError> {
    let id = named(app, asker, &args.id).await?;
    let answer = (None, args.reason.map(|reason| app.masked(&reason)));
    app.runtime.answer_question(&asker.principal, id, Decision::Denied, answer).await?;
    Ok(Done::outcome())
}

async fn named(app: &App, asker: &Asker, name: &str) -> Result<QuestionId, CommandError> {
    app.runtime.store.resolve_question(&asker.principal, name).await.map_err(|error| match error {
        StoreError::NotFound(_) => {
            CommandError::not_found("question", name, "`drawloom approvals list` shows those that wait")
        }
        other => other.into(),
    })
}

//! Questions of running work, answered from another process (spec: cli §2, agent §1).

use std::collections::HashMap;

use agent::questions::{ALWAYS, AnswerText, Decision, FROM_OUTSIDE, parts};
use agent::session::SessionSettings;
use futures_util::future::BoxFuture;
use store::{Principal, QuestionId, SessionId, Store, StoreError};

use crate::app::App;
use crate::args::approvals::{Approve, Deny};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::approvals::{Approval, Approvals, Decided};
use crate::rights::{Asker, Right};

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
    let mut trees = HashMap::new();
    for question in &open {
        let entry = app.runtime.store.tree(&asker.principal, question.tree).await?;
        trees.insert(question.tree, (entry.title, entry.short_id));
    }
    let approval = |question: store::Question| {
        let (asks, about) = parts(&question.payload);
        let outside =
            about.iter().flat_map(|about| about.lines()).map_while(|line| line.strip_prefix(FROM_OUTSIDE));
        let tainted_by = outside.map(str::to_owned).collect();
        let (text, about) = (asks.to_owned(), about.map(str::to_owned));
        let (title, tree_short) = trees.get(&question.tree).cloned().unwrap_or_default();
        Approval {
            id: question.id,
            short_id: question.id.short(),
            kind: question.kind,
            session: question.session.and_then(|id| names.get(&id).cloned()),
            title,
            tree: question.tree,
            tree_short,
            asker: question.asker,
            text,
            about,
            tainted_by,
            answers: question.answers,
            form: question.form,
            asked: question.created,
            expires: question.expires,
        }
    };
    let approvals = open.into_iter().map(approval).collect();
    Ok(CommandOutcome::Approvals(Approvals { approvals }))
}

/// `approve`.
pub(crate) async fn approve(app: &App, asker: &Asker, args: Approve) -> Result<CommandOutcome, CommandError> {
    let word = args.holds.map(|holds| holds.word().to_owned()).or(args.answer);
    // It changes the rules of the configuration.
    if word.as_deref() == Some(ALWAYS) {
        App::require(asker, "approve --for always", Right::Admin)?;
    }
    let said = AnswerText { word, fields: args.fields, ..AnswerText::default() };
    answered(app, asker, &args.id, Decision::Approved, said).await
}

/// `deny`.
pub(crate) async fn deny(app: &App, asker: &Asker, args: Deny) -> Result<CommandOutcome, CommandError> {
    let reason = args.reason.map(|reason| app.masked(&reason));
    let said = AnswerText { reason, ..AnswerText::default() };
    answered(app, asker, &args.id, Decision::Denied, said).await
}

async fn answered(
    app: &App,
    asker: &Asker,
    name: &str,
    decision: Decision,
    said: AnswerText,
) -> Result<CommandOutcome, CommandError> {
    let id = named(app, asker, name).await?;
    let question = app.runtime.store.question(&asker.principal, id).await?;
    app.runtime.answer_question(&asker.principal, id, decision, said).await?;
    let text = parts(&question.payload).0.to_owned();
    Ok(CommandOutcome::Decided(Decided { ok: true, decision, asker: question.asker, text }))
}

/// The question that stands in a session, if it is one alone.
///
/// # Errors
/// `not_found`; `ambiguous`, naming those that stand.
pub(crate) fn only_one<'a>(
    app: &'a App,
    asker: &'a Asker,
    session: Option<&'a SessionId>,
) -> BoxFuture<'a, Result<String, CommandError>> {
    Box::pin(async move {
        let mut open = Vec::new();
        for question in app.runtime.open_questions(&asker.principal).await? {
            if let (Some(session), Some(of)) = (session, &question.session)
                && is_asked_in(app, asker, of, session).await?
            {
                open.push(question);
            }
        }
        match &open[..] {
            [one] => Ok(one.id.to_string()),
            [] => {
                let hint = "`drawloom approvals list` shows those of other sessions; name one of them";
                Err(CommandError::not_found("question", "of this session", hint))
            }
            several => Err(StoreError::Ambiguous(several.iter().map(|one| one.id.short()).collect()).into()),
        }
    })
}

/// Whether what a session asks is asked in another one: in itself, or in the one whose subagent it is.
async fn is_asked_in(
    app: &App,
    asker: &Asker,
    of: &SessionId,
    session: &SessionId,
) -> Result<bool, StoreError> {
    let mut of = of.clone();
    loop {
        if of == *session {
            return Ok(true);
        }
        let found = app.runtime.store.session(&asker.principal, &of).await?;
        let settings = found.and_then(|found| SessionSettings::read(&found.settings).ok());
        match settings.and_then(|settings| settings.subagent) {
            Some(record) => of = record.parent,
            None => return Ok(false),
        }
    }
}

/// Whether a word names a question.
pub(crate) async fn is_named(store: &Store, who: &Principal, word: &str) -> Result<bool, StoreError> {
    match store.resolve_question(who, word).await {
        Ok(_) | Err(StoreError::Ambiguous(_)) => Ok(true),
        Err(StoreError::NotFound(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The fewest characters of an id that name a question.
const SHORTEST_NAME: usize = 4;

/// Whether a word is written as an id is, and not as a word of a reason: letters and digits, with a digit among them.
pub fn looks_like_id(word: &str) -> bool {
    word.len() >= SHORTEST_NAME
        && word.chars().all(|c| c.is_ascii_alphanumeric())
        && word.chars().any(|c| c.is_ascii_digit())
}

async fn named(app: &App, asker: &Asker, name: &str) -> Result<QuestionId, CommandError> {
    app.runtime.store.resolve_question(&asker.principal, name).await.map_err(|error| match error {
        StoreError::NotFound(_) if name.chars().count() < SHORTEST_NAME => {
            CommandError::not_found("question", name, "give at least four characters of its id")
        }
        StoreError::NotFound(_) => {
            CommandError::not_found("question", name, "`drawloom approvals list` shows the open ones")
        }
        other => other.into(),
    })
}

//! The last exchanges of conversations: what was said, and what was answered.

use agent::SessionChoice;
use loom::{NodeId, Role, RowError, TreeId, TreeReader, ViewName, render, resolve};
use store::SessionKind;

use super::Conversation;
use super::conversation::place;
use super::position::asked_model;
use super::sessions::{elsewhere, listed, no_session};
use crate::app::App;
use crate::args::chat::LogArgs;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::chat::{ExchangeShown, Exchanges};
use crate::rights::Asker;

/// Positions that are read at a time.
const PAGE: usize = 64;

/// `log`: the last exchanges of a session, or of all of the workspace.
pub(crate) async fn log(app: &App, asker: &Asker, args: LogArgs) -> Result<CommandOutcome, CommandError> {
    let mut exchanges = Vec::new();
    if let Some(named) = &args.session {
        let (name, view) = place(app, named)?;
        let chosen = SessionChoice { workspace: app.workspace.key.clone(), name, kind: SessionKind::Main };
        let found = app.runtime.session(&asker.principal, &chosen).await?;
        let Some(tree) = found.and_then(|session| session.tree()) else {
            return Err(no_session(app, asker, chosen.name.as_str(), false).await?);
        };
        exchanges = last_of(app, asker, (named.clone(), tree, view), args.number).await?;
    } else {
        let mut sessions = listed(app, asker, Some(app.workspace.key.clone()), false).await?;
        sessions.sort_by_key(|session| std::cmp::Reverse(session.updated_at()));
        let mut times = Vec::new();
        for session in sessions {
            let Some(tree) = session.tree() else { continue };
            // Nothing was said in the others after what they were changed by last.
            if args
                .number
                .checked_sub(1)
                .and_then(|last| times.get(last))
                .is_some_and(|at| *at > session.updated_at().0)
            {
                break;
            }
            let line = (session.name, tree, ViewName::default());
            exchanges.extend(last_of(app, asker, line, args.number).await?);
            times = exchanges.iter().map(|exchange: &ExchangeShown| exchange.at).collect();
            times.sort_unstable_by_key(|at| std::cmp::Reverse(*at));
        }
        exchanges.sort_by_key(|exchange| exchange.at);
        exchanges.drain(..exchanges.len().saturating_sub(args.number));
    }
    let is_alone = exchanges.is_empty() && args.session.is_none();
    let elsewhere = if is_alone { elsewhere(app, asker, false).await? } else { Vec::new() };
    Ok(CommandOutcome::Exchanges(Exchanges { exchanges, elsewhere }))
}

impl Conversation {
    /// The last exchanges of the conversation, the oldest first; none before anything was said.
    ///
    /// # Errors
    /// As the store says.
    pub async fn exchanges(
        &self,
        app: &App,
        asker: &Asker,
        most: usize,
    ) -> Result<Vec<ExchangeShown>, CommandError> {
        match self.entered(app, asker).await? {
            Some(entered) => last_of(app, asker, (self.name(), entered.tree, entered.view), most).await,
            None => Ok(Vec::new()),
        }
    }
}

/// The last exchanges of a view of a session's tree, the oldest first.
async fn last_of(
    app: &App,
    asker: &Asker,
    (session, tree, view): (String, TreeId, ViewName),
    most: usize,
) -> Result<Vec<ExchangeShown>, CommandError> {
    let found = app.read(asker, tree, move |rows| exchanges(rows, &view, most)).await?;
    let shown = |exchange: Exchange| ExchangeShown {
        session: session.clone(),
        tree,
        node: exchange.node,
        short_id: exchange.short_id,
        at: exchange.at,
        question: exchange.question,
        answer: (!exchange.answer.is_empty()).then_some(exchange.answer),
        model: exchange.model,
    };
    Ok(found.into_iter().rev().map(shown).collect())
}

/// What was said, with what answered it.
struct Exchange {
    node: NodeId,
    short_id: String,
    /// Milliseconds since 1970.
    at: i64,
    question: String,
    answer: String,
    model: Option<String>,
}

/// The last exchanges on the path of a view, the newest first. What stands before a message without being an answer
/// goes with it unseen: a file that was attached.
fn exchanges(rows: &dyn TreeReader, view: &ViewName, most: usize) -> Result<Vec<Exchange>, RowError> {
    let (mut found, mut answer, mut model) = (Vec::<Exchange>::new(), String::new(), None);
    let mut was_said = false;
    let mut next = Some(render::tip(rows, view)?);
    while let Some(from) = next {
        let path = rows.upwards(from, PAGE)?;
        next = path.last().and_then(|last| last.parent);
        for position in path {
            let is_said = position.role == Some(Role::User);
            if is_said && !was_said {
                if found.len() == most {
                    return Ok(found);
                }
                let shown = resolve::shown(rows, view, position.id)?;
                let row = rows.node(shown)?.ok_or_else(|| RowError::missing("node", shown))?;
                found.push(Exchange {
                    node: shown,
                    short_id: row.short_id.clone(),
                    at: row.node.created_at.0,
                    question: row.node.text().into_owned(),
                    answer: std::mem::take(&mut answer),
                    model: model.take(),
                });
            } else if position.role == Some(Role::Assistant) && found.len() < most {
                let shown = resolve::shown(rows, view, position.id)?;
                let text = rows.node(shown)?.map(|row| row.node.text().into_owned()).unwrap_or_default();
                if model.is_none() {
                    model = asked_model(rows, position.id)?;
                }
                let gap = if answer.is_empty() { "" } else { "\n\n" };
                answer = text + gap + &answer;
            }
            was_said = is_said;
        }
    }
    Ok(found)
}

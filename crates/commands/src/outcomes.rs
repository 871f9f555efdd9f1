//! Session ledger: what the owner and the model note for the session after this one (spec: continuity §3).

use agent::Runtime;
use continuity::ledger::entry_text;
use loom::{NodeId, TreeId, Trust};
use store::{
    Fence, Guard, LIST_PAGE, NewOutcome, Outcome, OutcomeId, OutcomeKind, Principal, SessionId, SessionKind,
    all_pages,
};

use crate::error::CommandError;
use crate::results::Told;
use crate::results::outcomes::{OutcomeNoted, OutcomeShown, OutcomesShown};

/// What is to be noted.
pub(crate) struct Note {
    pub(crate) kind: OutcomeKind,
    pub(crate) trust: Trust,
    pub(crate) text: String,
    pub(crate) corrects: Option<OutcomeId>,
}

/// Where something is noted.
pub(crate) struct NotePlace {
    pub(crate) tree: TreeId,
    /// Node it is said in.
    pub(crate) node: Option<NodeId>,
    /// Number of the session's lease that must still be held.
    pub(crate) fence: Option<u64>,
}

/// Appends an entry to the ledger of the session of a tree. It is durable when this returns.
///
/// # Errors
/// The tree is of no session that hands over, or the store refuses the entry.
pub(crate) async fn append(
    runtime: &Runtime,
    who: &Principal,
    place: &NotePlace,
    note: Note,
) -> Result<Told<OutcomeNoted>, CommandError> {
    let session = session_of(runtime, who, place.tree).await?;
    let fence = place.fence.map(|fence| Guard { lease: session.lease(), fence: Fence(fence) });
    let Note { kind, trust, corrects, .. } = note;
    // What is not seen is gone by now: it may have parted a secret.
    let text = runtime.masker.mask(&entry_text(&note.text)).text.into_owned();
    let new = NewOutcome {
        session,
        tree: place.tree,
        node: place.node,
        kind,
        trust,
        text: text.clone(),
        corrects,
        guards: fence.into_iter().collect(),
    };
    let id = runtime.store.note_outcome(who, new).await?;
    let struck = corrects.map(|corrected| format!("; {corrected} is struck")).unwrap_or_default();
    let sentence = format!("{} {id} is noted{struck}", kind.word());
    Ok(Told { result: OutcomeNoted { id, kind, trust, text, corrects }, sentence })
}

/// The session of a tree, if it is one that hands over to a next one.
async fn session_of(runtime: &Runtime, who: &Principal, tree: TreeId) -> Result<SessionId, CommandError> {
    let without = |why: &str| {
        let hint = "sessions of `drawloom chat` do, but temporary ones and those of subagents";
        Err(CommandError::refused("no_ledger", format!("{why}, and notes nothing for a next one"), hint))
    };
    let Some(id) = runtime.store.tree(who, tree).await?.session.map(SessionId) else {
        return without("this tree is of no session");
    };
    match runtime.store.session(who, &id).await?.map(|session| session.kind) {
        Some(SessionKind::Main) => Ok(id),
        Some(SessionKind::Temporary) => without("this session is temporary"),
        Some(SessionKind::Isolated) => without("this session is one of a subagent or a single request"),
        None => without("this tree is of no session"),
    }
}

/// Ledger of a session, in the order of commits.
pub(crate) async fn ledger(
    runtime: &Runtime,
    who: &Principal,
    session: &SessionId,
) -> Result<OutcomesShown, CommandError> {
    let page = |after| runtime.store.outcomes(who, session, after, LIST_PAGE);
    let all = all_pages(|outcome: &Outcome| outcome.id, page).await?;
    let shown = |outcome: Outcome| {
        let Outcome { id, tree, node, kind, trust, text, corrects, at, is_struck } = outcome;
        OutcomeShown { id, kind, trust, text, corrects, struck: is_struck, tree, node, at }
    };
    Ok(OutcomesShown { outcomes: all.into_iter().map(shown).collect() })
}

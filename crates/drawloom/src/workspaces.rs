//! Which workspace a call is in, and whether what it brings is loaded (spec: security §4, cli §1).
//!
//! A folder that was discovered is loaded once the owner said so, as it was then. At a terminal that is one
//! question; elsewhere the answer is no, and a notice says what would change it.

use commands::CommandError;
use commands::app::Workspace;
use commands::settings::size;
use commands::workspaces::{Looked, answered, keep};
use loom::Millis;
use store::home::Home;
use store::{Principal, Store};
use text::terminal::one_line;
use workspace::trust::{Accepted, Answer, Arrival, Change, Reason, TrustDecision, TrustRecord, decide};

use crate::paths::{ChosenWorkspace, InvocationPaths};
use crate::render::inventory;
use crate::talk::Person;

/// The workspace of a call that loads nothing of it.
///
/// # Errors
/// When the folder that was written out is none.
pub(crate) fn locate(paths: &InvocationPaths) -> Result<Workspace, CommandError> {
    Ok(at(paths, &paths.workspace()?))
}

fn at(paths: &InvocationPaths, chosen: &ChosenWorkspace) -> Workspace {
    Workspace {
        key: chosen.folder.to_string_lossy().into_owned(),
        folder: Some(chosen.folder.clone()),
        arrival: Some(paths.arrival(chosen)),
        root: None,
        accepted: Accepted::default(),
        surroundings: Some(paths.surroundings()),
    }
}

/// The workspace of a call, loaded if it may be. Whoever is at the terminal is asked where nothing was said yet.
///
/// # Errors
/// When the folder that was written out cannot be a workspace, or the store fails.
pub(crate) async fn load(
    paths: &InvocationPaths,
    home: &Home,
    store: &dyn Store,
    now: Millis,
    person: &Person,
) -> Result<Workspace, CommandError> {
    let chosen = paths.workspace()?;
    let arrival = paths.arrival(&chosen);
    if arrival == Arrival::Named
        && let Some(refused) = paths.refused_as_root(&chosen)
    {
        return Err(CommandError::refused(
            "bad_workspace",
            format!("{} cannot be a workspace: {refused}", shown(&chosen)),
            "name a folder of its own with --workspace",
        ));
    }
    let workspace = at(paths, &chosen);
    if arrival == Arrival::HomesOwn && chosen.passed_over {
        person.notice(&format!("no workspace is loaded from here: {}", one_line(&chosen.why)));
    }
    let looked = match Looked::at(&chosen.folder, &home.database()) {
        Ok(looked) => looked,
        // The home's own workspace is made when something is put there.
        Err(_) if arrival == Arrival::HomesOwn => return Ok(workspace),
        Err(error) => {
            let hint = "check the folder, or name another one with --workspace";
            return Err(CommandError::new("workspace", 2, error.to_string(), hint));
        }
    };
    let record = answered(store, &Principal::Owner, &looked.id).await?;
    let prompt = TrustPrompt { chosen: &chosen, looked: &looked, person };
    let said = match decide(&looked.id, &looked.inventory, arrival, record.as_ref()) {
        TrustDecision::Untrusted(Reason::Distrusted) => TrustAnswer::Before(false),
        TrustDecision::Untrusted(reason) => prompt.first(reason),
        TrustDecision::Trusted if arrival == Arrival::Discovered => prompt.again(record.as_ref()),
        TrustDecision::Trusted | TrustDecision::NothingToLoad | TrustDecision::NamedForThisCall => {
            TrustAnswer::Before(true)
        }
    };
    if let TrustAnswer::Now(answer) = said
        && let Err(error) = keep(store, &Principal::Owner, &looked, answer, now).await
    {
        person.notice(&format!("the answer holds for this call; it could not be kept: {error}"));
    }
    match said {
        TrustAnswer::Now(Answer::Trust) => {
            let accepted = Accepted::Seen(looked.inventory);
            Ok(Workspace { root: Some(looked.root), accepted, ..workspace })
        }
        TrustAnswer::Before(true) => {
            let accepted = Accepted::of(&looked.id, arrival, record.as_ref());
            Ok(Workspace { root: Some(looked.root), accepted, ..workspace })
        }
        TrustAnswer::Now(Answer::Distrust) | TrustAnswer::Before(false) => Ok(workspace),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrustAnswer {
    /// Just now: to be kept.
    Now(Answer),
    /// Before, or nothing that is kept: whether it is loaded.
    Before(bool),
}

struct TrustPrompt<'a> {
    chosen: &'a ChosenWorkspace,
    looked: &'a Looked,
    person: &'a Person,
}

impl TrustPrompt<'_> {
    /// About a folder nothing was said of.
    fn first(&self, reason: Reason) -> TrustAnswer {
        let mut lines = vec![format!("{} is a workspace. It would load:", shown(self.chosen))];
        lines.extend(inventory(&self.looked.inventory, &[]).into_iter().map(|line| format!("  {line}")));
        if reason != Reason::NeverAsked {
            lines.push(format!("You are asked because {reason}."));
        }
        lines.push("The answer is kept; `drawloom workspace trust` and `untrust` change it.".to_owned());
        match self.person.answer(&lines, "Load it?") {
            Some(true) => TrustAnswer::Now(Answer::Trust),
            Some(false) => TrustAnswer::Now(Answer::Distrust),
            None => {
                self.person.notice(&format!(
                    "what {} brings is not loaded: {reason}: name it with --workspace to load it for this call, or \
                     allow it with `drawloom workspace trust`",
                    shown(self.chosen)
                ));
                TrustAnswer::Before(false)
            }
        }
    }

    /// About instructions that came or changed since. Those that are not accepted are left out; the rest is loaded.
    fn again(&self, record: Option<&TrustRecord>) -> TrustAnswer {
        let Some(record) = record else { return TrustAnswer::Before(true) };
        let unseen = self.looked.inventory.unseen_instructions(&record.inventory);
        if unseen.is_empty() {
            return TrustAnswer::Before(true);
        }
        let changes = self.looked.inventory.changes_since(&record.inventory);
        let mut lines = vec![format!("{} changed since you trusted it:", shown(self.chosen))];
        lines.extend(changes.iter().map(|change| format!("  {}", self.difference(record, change))));
        match self.person.answer(&lines, "Load it as it is now?") {
            Some(true) => TrustAnswer::Now(Answer::Trust),
            Some(false) | None => TrustAnswer::Before(true),
        }
    }

    /// A change in a line, with the sizes before and after.
    fn difference(&self, record: &TrustRecord, change: &Change) -> String {
        let (word, path) = match change {
            Change::Added(path) => ("new", path),
            Change::Changed(path) => ("changed", path),
            Change::Removed(path) => ("gone", path),
        };
        let bytes = |items: &[workspace::trust::Item]| {
            items.iter().find(|item| item.path == *path).map(|item| size(item.bytes))
        };
        let (before, now) = (bytes(&record.inventory.items), bytes(&self.looked.inventory.items));
        let sizes = match (before, now) {
            (Some(before), Some(now)) => format!(", {before} before, {now} now"),
            (None, Some(only)) | (Some(only), None) => format!(", {only}"),
            (None, None) => String::new(),
        };
        format!("{}  {word}{sizes}", one_line(&path.to_string_lossy()))
    }
}

fn shown(chosen: &ChosenWorkspace) -> String {
    one_line(&chosen.folder.to_string_lossy()).into_owned()
}

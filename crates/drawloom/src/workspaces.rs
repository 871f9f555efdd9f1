//! Which workspace a conversation is in, and whether what it brings is loaded (spec: security §4, cli §1).

use commands::CommandError;
use commands::app::Workspace;
use store::home::Home;
use text::terminal::one_line;
use workspace::trust::{Arrival, Inventory, TrustDecision, TrustRecord, WorkspaceId, decide};
use workspace::{Root, StoreGuard};

use crate::places::{Chosen, Places};

/// The workspace of this invocation. `record` is what the owner said of it before; notices say what is not loaded.
///
/// # Errors
/// When the folder that was written out cannot be a workspace.
pub(crate) fn open(
    places: &Places,
    home: &Home,
    record: Option<&TrustRecord>,
    notice: &dyn Fn(&str),
) -> Result<Workspace, CommandError> {
    let chosen = places.workspace()?;
    let arrival = places.arrival(&chosen);
    if arrival == Arrival::Named
        && let Some(refused) = places.refused_as_root(&chosen)
    {
        return Err(CommandError::refused(
            "bad_workspace",
            format!("{} cannot be a workspace: {refused}", shown(&chosen)),
            "name a folder of its own with --workspace",
        ));
    }
    let key = chosen.folder.to_string_lossy().into_owned();
    let guard = StoreGuard::new();
    guard
        .protect(&home.database())
        .map_err(|error| CommandError::file("cannot guard", home.root(), &error))?;
    let root = match Root::open(&chosen.folder, &guard) {
        Ok(root) => root,
        // The home's own workspace is made when something is put there.
        Err(_) if arrival == Arrival::HomesOwn => return Ok(Workspace { key, root: None }),
        Err(error) => {
            let hint = "check the folder, or name another one with --workspace";
            return Err(CommandError::new("workspace", 2, error.to_string(), hint));
        }
    };
    let inventory = Inventory::take(&root);
    let decision = decide(&WorkspaceId::of(&root), &inventory, arrival, record);
    if let TrustDecision::Untrusted(why) = decision {
        notice(&format!(
            "what {} brings is not loaded: {why}: name it with --workspace to load it for this call",
            shown(&chosen)
        ));
    }
    Ok(Workspace { key, root: decision.loads().then_some(root) })
}

fn shown(chosen: &Chosen) -> String {
    one_line(&chosen.folder.to_string_lossy()).into_owned()
}

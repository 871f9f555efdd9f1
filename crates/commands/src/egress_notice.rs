//! That text leaves this machine: said once, before the first request that takes it there (spec: security §10).

use std::collections::BTreeSet;

use agent::stored;
use loom::TreeId;
use model::{ModelInfo, ModelPlace};
use store::{Generation, GenerationFilter, LIST_PAGE, all_pages};

use crate::app::App;
use crate::error::CommandError;
use crate::rights::Asker;

/// That the text of something goes to another machine.
pub(crate) fn notice(what: &str, info: &ModelInfo) -> String {
    let host = info.host.as_deref().unwrap_or("another machine");
    format!("text of this {what} leaves this machine: it goes to {host} ({})", info.provider)
}

/// Says, before the first request of a document to a provider elsewhere, that its text goes there. What was asked
/// before is read off the tree: it is said once, whichever process asks.
///
/// # Errors
/// As the store says.
pub(crate) async fn tell<'a>(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    models: impl Iterator<Item = &'a ModelInfo>,
) -> Result<(), CommandError> {
    let mut told = BTreeSet::new();
    for info in models.filter(|info| info.place == ModelPlace::Remote) {
        if told.insert(info.provider.clone()) && !was_asked(app, asker, tree, &info.provider).await? {
            app.frontend.note(&notice("document", info));
        }
    }
    Ok(())
}

/// Whether a request of this tree went to this provider elsewhere, the newest looked at first.
async fn was_asked(app: &App, asker: &Asker, tree: TreeId, provider: &str) -> Result<bool, CommandError> {
    let filter = GenerationFilter { tree: Some(tree), state: None };
    let store = &app.runtime.store;
    let page = |after| store.generations(&asker.principal, filter.clone(), after, LIST_PAGE);
    let all = all_pages(|generation: &Generation| generation.row.id, page).await?;
    let manifests: Vec<_> = all.into_iter().rev().map(|generation| generation.row.manifest).collect();
    let provider = provider.to_owned();
    app.read(asker, tree, move |rows| {
        for digest in manifests {
            let model = stored::manifest(rows, digest)?.map(|manifest| manifest.model);
            if model.is_some_and(|model| model.place == ModelPlace::Remote && model.provider == provider) {
                return Ok(true);
            }
        }
        Ok(false)
    })
    .await
}

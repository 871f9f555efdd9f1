//! `tree trust`: the authors of what was imported are believed as their kind is at home.

use std::collections::BTreeMap;

use context::Manifest;
use loom::{AuthorKind, Digest, NodeId, NodeRow, RowError, TreeReader, Trust};
use store::Import;

use crate::app::App;
use crate::args::tree::TrustArgs;
use crate::error::CommandError;
use crate::results::tree::TreeNamed;
use crate::results::{CommandOutcome, Told};
use crate::rights::Asker;

/// Rows read at a time.
const PAGE: usize = 256;

/// Raises what people and models wrote in the imported part of a tree. What tools said stays `outside`, and so does
/// what was made of it: a text is believed no further than what was sent for it, what it quotes or what it edits.
pub(crate) async fn trust(app: &App, asker: &Asker, args: TrustArgs) -> Result<CommandOutcome, CommandError> {
    let tree = app.tree_named(asker, &args.tree.tree).await?;
    let imports = app.runtime.store.imports(&asker.principal, tree).await?;
    if imports.is_empty() {
        return Err(CommandError::refused(
            "not_imported",
            "no import brought this tree in",
            "only an imported tree can be trusted as a whole: name a NODE",
        ));
    }
    let found = app.read(asker, tree, move |rows| raised(rows, &imports)).await?;
    if found.kept > 0 {
        app.frontend.note(&format!(
            "{} texts keep the trust `outside`: tools wrote them, or text from outside may have been sent for them",
            found.kept
        ));
    }
    app.runtime.store.set_trust(&asker.principal, tree, found.raised.into_iter().collect()).await?;
    let entry = app.runtime.store.tree(&asker.principal, tree).await?;
    let named = crate::tree::tree_named(&entry.short_id, &entry.title);
    let sentence = format!("the authors of {named} are trusted now");
    Ok(CommandOutcome::TreeNamed(Told { result: TreeNamed { tree, short_id: entry.short_id }, sentence }))
}

#[derive(Default)]
struct Found {
    raised: BTreeMap<NodeId, Trust>,
    kept: u64,
}

impl Found {
    /// How far what a node was made of is believed: the text it quotes, the version it edits.
    fn basis(&self, rows: &dyn TreeReader, row: &NodeRow) -> Result<Trust, RowError> {
        let quoted = row.node.quote.as_ref().map(|quote| quote.node);
        let mut least = Trust::Owner;
        for basis in quoted.into_iter().chain(row.node.edited_from) {
            let trust = match self.raised.get(&basis) {
                Some(trust) => *trust,
                None => rows.node(basis)?.map_or(Trust::Outside, |basis| basis.node.trust),
            };
            least = least.min(trust);
        }
        Ok(least)
    }
}

fn raised(rows: &dyn TreeReader, imports: &[Import]) -> Result<Found, RowError> {
    let mut found = Found::default();
    // Siblings and their parents mostly share a manifest with the node before.
    let mut last: Option<(Digest, Trust)> = None;
    let mut after = None;
    loop {
        let page = rows.nodes_in_order(after, PAGE)?;
        let full = page.len() == PAGE;
        after = page.last().map(|row| (row.seq, row.place));
        let imported = |row: &NodeRow| imports.iter().any(|import| import.covers(row.seq));
        for row in page.into_iter().filter(|row| row.node.trust == Trust::Outside && imported(row)) {
            let own = of(rows, &row, &mut last)?;
            match own.min(found.basis(rows, &row)?) {
                Trust::Outside => found.kept += 1,
                trust => drop(found.raised.insert(row.node.id, trust)),
            }
        }
        if !full {
            return Ok(found);
        }
    }
}

/// How far the author of a node is believed.
fn of(rows: &dyn TreeReader, row: &NodeRow, last: &mut Option<(Digest, Trust)>) -> Result<Trust, RowError> {
    match (row.node.author.kind, &row.node.source) {
        (AuthorKind::Human, _) => Ok(Trust::Owner),
        (AuthorKind::Tool, _) => Ok(Trust::Outside),
        (AuthorKind::Model, None) => Ok(Trust::Agent),
        (AuthorKind::Model, Some(source)) => {
            let digest = source.manifest;
            let known = last.filter(|(of, _)| *of == digest).map(|(_, trust)| trust);
            let trust = match known {
                Some(trust) => trust,
                None => lowest_sent(rows.manifest(digest)?),
            };
            *last = Some((digest, trust));
            Ok(trust)
        }
    }
}

/// The least that was sent, at most `agent`; `outside` where it is not known.
fn lowest_sent(manifest: Option<Vec<u8>>) -> Trust {
    let manifest = manifest.and_then(|bytes| Manifest::from_bytes(&bytes).ok());
    manifest.map_or(Trust::Outside, |manifest| {
        let sent = manifest.segments.iter().filter_map(|segment| segment.trust);
        sent.min().unwrap_or(Trust::Agent).min(Trust::Agent)
    })
}

//! Verify and seal.

use std::collections::BTreeMap;

use loom::seal::{first_head, next_head, sign};
use loom::verify::Report;
use loom::{Digest, NodeId, Seq, TreeId};
use store::{Principal, Store};

use crate::app::App;
use crate::args::WholeTreeArg;
use crate::args::tree::Verify;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::tree::{Sealed, Verified};
use crate::rights::Asker;
use agent::stored::StoreEvidence;

/// `tree verify`.
pub(crate) async fn verify(app: &App, asker: &Asker, args: Verify) -> Result<CommandOutcome, CommandError> {
    if let Some(file) = &args.file {
        return crate::transfer::verify_file(app, file)
            .map(|report| CommandOutcome::Verified(verified(report, BTreeMap::new())));
    }
    let tree = app.tree_named(asker, args.tree.as_deref().unwrap_or_default()).await?;
    let node = match &args.node {
        None => None,
        Some(name) => Some(app.node_named(asker, Some(tree), name).await?.0),
    };
    let mut report = report(app.runtime.store.as_ref(), &asker.principal, tree).await?;
    if let Some(node) = node {
        report.problems.retain(|problem| problem.node == Some(node));
        report.status = loom::verify::status(&report.problems);
    }
    let nodes: Vec<NodeId> = report.problems.iter().filter_map(|problem| problem.node).collect();
    let short_ids = app.read(asker, tree, move |rows| {
        // A node that cannot be read is one of the problems.
        let row = |node: NodeId| Some((node, rows.node(node).ok()??.short_id));
        Ok(nodes.into_iter().take(NAMED).filter_map(row).collect())
    });
    Ok(CommandOutcome::Verified(verified(report, short_ids.await?)))
}

/// Nodes with a problem whose short ids are looked up.
const NAMED: usize = 16;

/// Verifies a tree of a store, however large, as of one moment.
pub(crate) async fn report(store: &Store, who: &Principal, tree: TreeId) -> Result<Report, CommandError> {
    Ok(store.read_whole(who, tree, |rows| loom::verify::verify(rows, &StoreEvidence::new(rows))).await?)
}

fn verified(report: Report, short_ids: BTreeMap<NodeId, String>) -> Verified {
    Verified {
        status: report.status,
        assurance: report.assurance,
        nodes: report.nodes,
        unattested: report.unattested,
        problems: report.problems,
        head: report.head,
        short_ids,
    }
}

/// `tree seal`: signs the head with this home's key, which is made the first time.
pub(crate) async fn seal(
    app: &App,
    asker: &Asker,
    args: WholeTreeArg,
) -> Result<CommandOutcome, CommandError> {
    let tree = app.tree_named(asker, &args.tree).await?;
    let (seq, head) = app
        .read(asker, tree, move |rows| {
            // From the last seal on: what it covers need not be read again.
            let last = rows.seals()?.pop();
            let (mut seq, mut head) = last.map_or((Seq(0), first_head(tree)), |seal| (seal.seq, seal.head));
            loop {
                let page = rows.operations(seq, 512)?;
                let Some(newest) = page.last() else { return Ok((seq, head)) };
                seq = newest.seq;
                head = page.iter().fold(head, |head: Digest, record| next_head(head, record.hash));
            }
        })
        .await?;
    let secret = secret(app)?;
    let seal = sign(&secret, tree, seq, head, app.now());
    let key = seal.key.clone();
    app.runtime.store.add_seal(&asker.principal, tree, seal).await?;
    Ok(CommandOutcome::Sealed(Sealed { seq, head, key }))
}

/// The 32 bytes of `<home>/seal.key`.
fn secret(app: &App) -> Result<[u8; 32], CommandError> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let path = app.runtime.home.seal_key();
    let failed = |error: std::io::Error| CommandError::file("cannot use", &path, &error);
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    match made {
        Ok(mut file) => {
            let mut secret = [0; 32];
            getrandom::fill(&mut secret).map_err(|error| failed(error.into()))?;
            file.write_all(&secret).and_then(|()| file.sync_all()).map_err(failed)?;
            app.frontend.note(&format!(
                "a seal key was made: {}; keep a copy of it apart from the store",
                path.display()
            ));
            Ok(secret)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let kept = workspace::read_regular(&path, 4096).map_err(failed)?;
            kept.first_chunk().copied().ok_or_else(|| failed(std::io::ErrorKind::UnexpectedEof.into()))
        }
        Err(error) => Err(failed(error)),
    }
}

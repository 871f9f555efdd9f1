//! Forget and purge: the only exceptions to "append, never overwrite". Asked twice, never undone.

use std::collections::BTreeMap;

use agent::RemovalOutcome;
use store::{Forget, ForgottenPlace, QuotedAs};

use super::leftovers;
use crate::app::App;
use crate::args::maintenance::ForgetArgs;
use crate::args::tree::Purge;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::maintenance::{PlaceShown, Removed};
use crate::rights::Asker;

/// What no home can reach.
const UNREACHABLE: [&str; 4] = [
    "backups and exports made before",
    "git repositories and other programs' copies",
    "what model providers were sent",
    "snapshots of the file system",
];

/// Nodes of a kind that are named before it is asked.
const NAMED: usize = 8;

/// `forget`.
pub(crate) async fn forget(
    app: &App,
    asker: &Asker,
    args: ForgetArgs,
) -> Result<CommandOutcome, CommandError> {
    let what = match (&args.text, &args.node) {
        (Some(text), _) if text.trim().is_empty() => {
            return Err(CommandError::usage("an empty text is everywhere", "name the text to be forgotten"));
        }
        (Some(text), _) => Forget::Text(text.clone()),
        (None, node) => {
            let named = app.node_anywhere(asker, None, node.as_deref().unwrap_or_default()).await?;
            Forget::Node { tree: named.tree, node: named.node }
        }
    };
    let places = app.runtime.forget_preview(&asker.principal, &what).await?;
    if places.iter().all(ForgottenPlace::stays) {
        let hint = match names(&places).next() {
            Some(name) => format!("nothing was removed; it stands in a name that stays: {name}"),
            None => "nothing was removed".to_owned(),
        };
        return Err(CommandError::not_found("place", "with that text", hint));
    }
    if args.dry_run {
        return Ok(CommandOutcome::Removed(removed(app, &places, true)));
    }
    asked_twice(app, args.yes, &places, "forget")?;
    let forgotten = app.runtime.forget(&asker.principal, &what).await?;
    Ok(finish(app, forgotten))
}

/// `tree purge`.
pub(crate) async fn purge(app: &App, asker: &Asker, args: Purge) -> Result<CommandOutcome, CommandError> {
    let tree = app.tree_named(asker, &args.tree).await?;
    let entry = app.runtime.store.tree(&asker.principal, tree).await?;
    if args.dry_run {
        let nodes = PlaceShown {
            place: "nodes of the tree, and what cites them".to_owned(),
            count: entry.nodes,
            nodes: Vec::new(),
        };
        return Ok(CommandOutcome::Removed(Removed {
            removed: vec![nodes],
            unreachable: unreachable(app, &[]),
            dry_run: true,
        }));
    }
    let title = text::terminal::one_line(&entry.title).into_owned();
    app.frontend
        .note(&format!("the tree \"{title}\" has {} nodes; purging removes them for good", entry.nodes));
    confirm(app, args.yes, "purge")?;
    let forgotten = app.runtime.purge(&asker.principal, tree).await?;
    Ok(finish(app, forgotten))
}

fn asked_twice(app: &App, yes: u8, places: &[ForgottenPlace], what: &str) -> Result<(), CommandError> {
    for place in removed(app, places, true).removed {
        let shown = place.nodes.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = if place.nodes.len() > NAMED { ", …" } else { "" };
        let named = if shown.is_empty() { String::new() } else { format!(": {shown}{more}") };
        app.frontend.note(&format!("{what}: {} × {}{named}", place.count, place.place));
    }
    confirm(app, yes, what)
}

fn confirm(app: &App, yes: u8, what: &str) -> Result<(), CommandError> {
    let questions = [format!("{what} this for good?"), format!("really {what}? This cannot be undone.")];
    for question in questions.iter().skip(usize::from(yes)) {
        if !app.frontend.confirm(question) {
            return Err(CommandError::refused(
                "not_confirmed",
                format!("{what} was not confirmed; nothing was removed"),
                "answer yes twice at a terminal, or give --yes --yes",
            ));
        }
    }
    Ok(())
}

/// Removes copies of the store that were left behind, and says what was done.
fn finish(app: &App, done: RemovalOutcome) -> CommandOutcome {
    if let Err(error) = leftovers::sweep(&app.runtime.home) {
        app.frontend.note(&format!("a copy of the store that was left behind could not be removed: {error}"));
    }
    let mut outcome = removed(app, &done.places, false);
    if done.blobs > 0 {
        outcome.removed.push(PlaceShown {
            place: "blob files".to_owned(),
            count: done.blobs,
            nodes: Vec::new(),
        });
    }
    for why in done.unfinished {
        let left = format!("what is not taken out of a file yet, until a next command does it: {why}");
        app.frontend.note(&left);
        outcome.unreachable.push(left);
    }
    CommandOutcome::Removed(outcome)
}

fn removed(app: &App, places: &[ForgottenPlace], dry_run: bool) -> Removed {
    let mut found: BTreeMap<&'static str, (u64, Vec<String>)> = BTreeMap::new();
    for place in places.iter().filter(|place| !place.stays()) {
        let (count, nodes) = found.entry(name(place)).or_default();
        *count += 1;
        if let ForgottenPlace::Node { node, .. } | ForgottenPlace::Quote { node, .. } = place {
            nodes.push(node.to_string());
        }
    }
    let removed = found.into_iter();
    let removed =
        removed.map(|(place, (count, nodes))| PlaceShown { place: place.to_owned(), count, nodes }).collect();
    Removed { removed, unreachable: unreachable(app, places), dry_run }
}

const fn name(place: &ForgottenPlace) -> &'static str {
    match place {
        ForgottenPlace::Node { .. } => "nodes",
        ForgottenPlace::Quote { how: QuotedAs::Version, .. } => "versions that were edited from it",
        ForgottenPlace::Quote { how: QuotedAs::Branch, .. } => "branches with its beginning",
        ForgottenPlace::Quote { how: QuotedAs::Copy, .. } => "nodes that hold its text",
        ForgottenPlace::Draft { .. } => "drafts",
        ForgottenPlace::Shown { .. } => "notices shown with nodes",
        ForgottenPlace::Label { .. } => "titles, bookmarks and tags",
        ForgottenPlace::Operation { .. } => "operation records",
        ForgottenPlace::Response { .. } => "responses",
        ForgottenPlace::Manifest { .. } => "manifests",
        ForgottenPlace::Body { .. } => "request bodies",
        ForgottenPlace::Running { .. } => "answers under way, which are stopped and dropped",
        ForgottenPlace::Job { .. } => "jobs",
        ForgottenPlace::Question { .. } => "questions",
        ForgottenPlace::Session { .. } => "names and settings of sessions",
        ForgottenPlace::Name { .. } => "names that stay",
    }
}

/// Names that hold it and stay, as they are shown.
fn names(places: &[ForgottenPlace]) -> impl Iterator<Item = String> + '_ {
    places.iter().filter_map(|place| match place {
        ForgottenPlace::Name { name } => Some(text::terminal::one_line(name).into_owned()),
        _ => None,
    })
}

/// What may still hold it: names that stay, copies of the store in the home, and what no home can reach.
fn unreachable(app: &App, places: &[ForgottenPlace]) -> Vec<String> {
    let names = names(places).map(|name| format!("the name of a view, author, model or workspace: {name}"));
    let copies = match leftovers::found(&app.runtime.home) {
        Ok(copies) => copies.iter().map(|copy| format!("a copy of the store: {}", copy.display())).collect(),
        Err(error) => vec![format!("copies of the store in the home, which cannot be read: {error}")],
    };
    let server = app.runtime.store.beyond_reach().map(str::to_owned);
    names.chain(copies).chain(server).chain(UNREACHABLE.map(str::to_owned)).collect()
}

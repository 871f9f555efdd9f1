//! Forget and purge: the only exceptions to "append, never overwrite". Asked twice, never undone.

use std::collections::BTreeMap;
use std::io;

use agent::{RemovalOutcome, on_disk};
use loom::content::plain_text;
use loom::{NodeId, TreeId};
use store::home::HomeDir;
use store::{Forget, ForgottenPlace, QuotedAs, SHORTEST_TEXT};

use super::input_history::{self, Sought};
use super::leftovers;
use crate::app::{App, NamedNode};
use crate::args::maintenance::ForgetArgs;
use crate::args::tree::Purge;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::maintenance::{PlaceShown, Removed};
use crate::rights::Asker;
use crate::tree::edit_files;

/// What no home can reach.
const UNREACHABLE: [&str; 4] = [
    "earlier backups and exports",
    "git repositories and other programs' copies",
    "what was sent to model providers",
    "snapshots of the file system",
];

/// Nodes of a kind that are listed by name.
const LISTED: usize = 100;
/// Characters of a listed node's text.
const FIRST_WORDS: usize = 48;

/// `forget`.
pub(crate) async fn forget(
    app: &App,
    asker: &Asker,
    args: ForgetArgs,
) -> Result<CommandOutcome, CommandError> {
    let what = match (&args.text, &args.node) {
        (Some(text), _) if text.trim().is_empty() => {
            return Err(CommandError::usage("the text is empty", "name the text to forget"));
        }
        (Some(text), _) => Forget::Text(text.clone()),
        (None, node) => {
            let named = node_to_forget(app, asker, node.as_deref().unwrap_or_default()).await?;
            Forget::Node { tree: named.tree, node: named.node }
        }
    };
    let sought = match &what {
        Forget::Text(text) => Sought::text(text),
        Forget::Node { tree, node } => {
            let node = *node;
            let row = app.read(asker, *tree, move |rows| rows.node(node)).await?;
            if let Some(row) = row.as_ref().filter(|row| row.purged) {
                let message = format!("the node {} is already forgotten", row.short_id);
                return Err(CommandError::new("not_found", 3, message, "nothing was removed"));
            }
            Sought::of_node(&row.map(|row| plain_text(&row.node.content).into_owned()).unwrap_or_default())
        }
    };
    let typed = input_history::count(&app.runtime.home, &sought).unwrap_or_default();
    let recorded = match &what {
        Forget::Text(text) => recorded(app, text.clone()).await?,
        // What only a workspace holds is no node.
        Forget::Node { .. } => 0,
    };
    let places = app.runtime.forget_preview(&asker.principal, &what).await?;
    if typed == 0 && recorded == 0 && places.iter().all(ForgottenPlace::stays) {
        let hint = match names(&places).next() {
            Some(name) => format!("nothing was removed; it stands in a name that stays: {name}"),
            None if places.is_empty() => "nothing was removed".to_owned(),
            None => {
                "nothing was removed; `drawloom store check` names records that cannot be read".to_owned()
            }
        };
        return Err(CommandError::not_found("place", "with that text", hint));
    }
    if let Forget::Node { tree, node } = what {
        tell_short(app, asker, tree, node).await?;
    }
    let mut preview = listed(app, asker, removed(app, &places, true), &places).await?;
    preview.unreachable.extend(kept_files(app, asker).await?);
    preview.removed.extend(typed_lines(typed));
    preview.removed.extend(counted("records of what stood in workspaces before commands", recorded));
    let nodes: usize = preview.removed.iter().map(|place| place.nodes.len()).sum();
    let is_whole = args.text.is_some() && nodes > 0;
    if is_whole {
        app.frontend.note("the whole text of these nodes goes, not only the words that were found");
    }
    if args.dry_run {
        return Ok(CommandOutcome::Removed(preview));
    }
    for place in &preview.removed {
        app.frontend.note(&format!("forget: {}: {}", place.place, place.count));
        place.listed.iter().for_each(|line| app.frontend.quote(&format!("  {line}")));
    }
    let what_goes = match nodes {
        1 if is_whole => "the whole text of 1 node".to_owned(),
        _ if is_whole => format!("the whole text of {nodes} nodes"),
        _ => "this".to_owned(),
    };
    confirm(app, args.yes, "forget", &what_goes)?;
    let forgotten = app.runtime.forget(&asker.principal, &what).await?;
    let typed = input_history::remove(&app.runtime.home, &sought).unwrap_or_else(|error| {
        app.frontend.note(&format!("the input history could not be cleaned: {error}"));
        0
    });
    finish(app, asker, forgotten, typed).await
}

/// Input lines that hold it, as a place; none if there are none.
fn typed_lines(count: u64) -> Option<PlaceShown> {
    counted("lines of the input history", count)
}

/// A place of which nothing is listed; none if it holds nothing.
fn counted(place: &str, count: u64) -> Option<PlaceShown> {
    let place = place.to_owned();
    (count > 0).then_some(PlaceShown { place, count, nodes: Vec::new(), listed: Vec::new() })
}

/// Workspaces whose records hold a text.
async fn recorded(app: &App, text: String) -> Result<u64, CommandError> {
    let at_home = |error: io::Error| {
        let hint = "check the folder cache/checkpoints of the home; nothing was removed";
        CommandError::new(
            "io",
            6,
            format!("what is recorded of workspaces could not be searched: {error}"),
            hint,
        )
    };
    let records =
        app.runtime.home.dir(HomeDir::CheckpointCache).map_err(io::Error::other).map_err(at_home)?;
    on_disk(move || tools::records_with(&records, &text)).await.map_err(at_home)
}

/// `tree purge`.
pub(crate) async fn purge(app: &App, asker: &Asker, args: Purge) -> Result<CommandOutcome, CommandError> {
    let tree = app.tree_named(asker, &args.tree).await?;
    let entry = app.runtime.store.tree(&asker.principal, tree).await?;
    if entry.purged {
        let message = format!("the tree {} is already purged", entry.short_id);
        return Err(CommandError::new("not_found", 3, message, "`drawloom tree list` shows the trees"));
    }
    if args.dry_run {
        let nodes = PlaceShown {
            place: "nodes of the tree, those without text among them, and what quotes them".to_owned(),
            count: entry.nodes,
            nodes: Vec::new(),
            listed: Vec::new(),
        };
        let mut unreachable = unreachable(app, &[]);
        unreachable.extend(kept_files(app, asker).await?);
        return Ok(CommandOutcome::Removed(Removed { removed: vec![nodes], unreachable, dry_run: true }));
    }
    let title = text::terminal::one_line(&entry.title).into_owned();
    app.frontend
        .note(&format!("the tree \"{title}\" has {} nodes; purging removes them for good", entry.nodes));
    confirm(app, args.yes, "purge", "this")?;
    let forgotten = app.runtime.purge(&asker.principal, tree).await?;
    finish(app, asker, forgotten, 0).await
}

/// The node that is named. Of a tree the command for a whole tree is named.
async fn node_to_forget(app: &App, asker: &Asker, name: &str) -> Result<NamedNode, CommandError> {
    match app.node_anywhere(asker, None, name).await {
        Err(mut error) if error.exit == 3 && app.tree_named(asker, name).await.is_ok() => {
            error.hint = format!("this is a whole tree: `drawloom tree purge {name}`");
            Err(error)
        }
        other => other,
    }
}

/// Says that places which quote a short text are not looked for.
async fn tell_short(app: &App, asker: &Asker, tree: TreeId, node: NodeId) -> Result<(), CommandError> {
    let row = app.read(asker, tree, move |rows| rows.node(node)).await?;
    let bytes = row.map_or(0, |row| plain_text(&row.node.content).len());
    if (1..SHORTEST_TEXT).contains(&bytes) {
        app.frontend.note(&format!(
            "the text is shorter than {SHORTEST_TEXT} bytes: other places that hold it were not looked for; \
             `drawloom forget --text` finds them"
        ));
    }
    Ok(())
}

/// `found` with a line for each node: `TREE:SHORT "first words…", N characters`.
async fn listed(
    app: &App,
    asker: &Asker,
    mut found: Removed,
    places: &[ForgottenPlace],
) -> Result<Removed, CommandError> {
    for kind in &mut found.removed {
        let nodes = places.iter().filter_map(|place| match place {
            ForgottenPlace::Node { tree, node } | ForgottenPlace::Quote { tree, node, .. } => {
                (name(place) == kind.place).then_some((*tree, *node))
            }
            _ => None,
        });
        let mut by_tree: BTreeMap<TreeId, Vec<NodeId>> = BTreeMap::new();
        nodes.take(LISTED).for_each(|(tree, node)| by_tree.entry(tree).or_default().push(node));
        for (tree, nodes) in by_tree {
            let short = app.runtime.store.tree(&asker.principal, tree).await?.short_id;
            let rows = app.read(asker, tree, move |rows| rows.nodes(&nodes)).await?;
            kind.listed.extend(rows.into_iter().map(|row| {
                let text = row.node.said();
                let (words, chars) = (first_words(&text), text::grapheme::count(&text));
                let unit = if chars == 1 { "character" } else { "characters" };
                format!("{short}:{} \"{words}\", {chars} {unit}", row.short_id)
            }));
        }
        let more = kind.nodes.len().saturating_sub(kind.listed.len());
        if more > 0 {
            kind.listed.push(format!("… and {more} more (--json lists their ids)"));
        }
    }
    Ok(found)
}

fn first_words(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().take(FIRST_WORDS).collect();
    if cut.len() == line.len() { line } else { cut + "…" }
}

fn confirm(app: &App, yes: u8, what: &str, object: &str) -> Result<(), CommandError> {
    let questions = [format!("{what} {object} for good?"), format!("really {what}? This cannot be undone")];
    for question in questions.iter().skip(usize::from(yes)) {
        let message = format!("{what} was not confirmed; nothing was removed");
        let hint = "answer yes twice at a terminal, or give --yes --yes";
        app.frontend.confirm(question).require("not_confirmed", message, hint)?;
    }
    Ok(())
}

/// Removes copies of the store that were left behind, and says what was done.
async fn finish(
    app: &App,
    asker: &Asker,
    done: RemovalOutcome,
    typed: u64,
) -> Result<CommandOutcome, CommandError> {
    if let Err(error) = leftovers::sweep(&app.runtime.home) {
        app.frontend.note(&format!("an old copy of the store could not be removed: {error}"));
    }
    let mut outcome = removed(app, &done.places, false);
    outcome.unreachable.extend(kept_files(app, asker).await?);
    // What stood in workspaces is recorded anew before the next command.
    let records = app.runtime.home.dir(HomeDir::CheckpointCache).map_err(io::Error::other);
    if let Err(error) = records.and_then(|records| tools::remove_records(&records)) {
        let left = format!("what is recorded of workspaces could not be removed: {error}");
        app.frontend.note(&left);
        outcome.unreachable.push(left);
    }
    outcome.removed.extend(typed_lines(typed));
    if done.blobs > 0 {
        outcome.removed.extend(counted("picture and sound files", done.blobs));
    }
    for why in done.unfinished {
        let left = format!("what is not taken out of a file yet, until a next command does it: {why}");
        app.frontend.note(&left);
        outcome.unreachable.push(left);
    }
    Ok(CommandOutcome::Removed(outcome))
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
    let removed = removed.map(|(place, (count, nodes))| PlaceShown {
        place: place.to_owned(),
        count,
        nodes,
        listed: Vec::new(),
    });
    let removed = removed.collect();
    Removed { removed, unreachable: unreachable(app, places), dry_run }
}

const fn name(place: &ForgottenPlace) -> &'static str {
    match place {
        ForgottenPlace::Node { .. } => "nodes",
        ForgottenPlace::Quote { how: QuotedAs::Version, .. } => "versions edited from it",
        ForgottenPlace::Quote { how: QuotedAs::Branch, .. } => "branches that begin with its text",
        ForgottenPlace::Quote { how: QuotedAs::Copy, .. } => "nodes that hold its text",
        ForgottenPlace::Draft { .. } => "drafts",
        ForgottenPlace::Shown { .. } => "notices shown with nodes",
        ForgottenPlace::Label { .. } => "titles, bookmarks and tags",
        ForgottenPlace::Operation { .. } => "operation records",
        ForgottenPlace::Response { .. } => "responses",
        ForgottenPlace::Manifest { .. } => "manifests",
        ForgottenPlace::Body { .. } => "request bodies",
        ForgottenPlace::Running { .. } => "answers under way (they are stopped and dropped)",
        ForgottenPlace::Job { .. } => "jobs",
        ForgottenPlace::Question { .. } => "questions",
        ForgottenPlace::Session { .. } => "names and settings of sessions",
        ForgottenPlace::Outcome { .. } => "notes of sessions",
        ForgottenPlace::Name { .. } => "names that stay",
        ForgottenPlace::Damaged { .. } => "damaged rows",
    }
}

/// Names that hold it and stay, as they are shown.
fn names(places: &[ForgottenPlace]) -> impl Iterator<Item = String> + '_ {
    places.iter().filter_map(|place| match place {
        ForgottenPlace::Name { name } => Some(text::terminal::one_line(name).into_owned()),
        _ => None,
    })
}

/// Bytes of files that answers changed, where some are kept: they go with their answers, and nothing is looked for in them.
async fn kept_files(app: &App, asker: &Asker) -> Result<Option<String>, CommandError> {
    let is_kept = !app.runtime.store.kept_files(&asker.principal).await?.files.is_empty();
    let told = "bytes of files that other answers changed, which /undo --files gives back: forget these answers, or see \
                limits.kept_days";
    Ok(is_kept.then(|| told.to_owned()))
}

/// What may still hold it: names that stay, records that cannot be read, copies of the store in the home, and what no
/// home can reach.
fn unreachable(app: &App, places: &[ForgottenPlace]) -> Vec<String> {
    let names = names(places).map(|name| format!("the name of a view, author, model or workspace: {name}"));
    let damaged = places.iter().filter_map(|place| match place {
        ForgottenPlace::Damaged { tree, row } => {
            Some(format!("{row} of the tree {tree}: it is damaged and could not be searched"))
        }
        _ => None,
    });
    let copies = match leftovers::found(&app.runtime.home) {
        Ok(copies) => copies.iter().map(|copy| format!("a copy of the store: {}", copy.display())).collect(),
        Err(error) => vec![format!("copies of the store in the home (the folder cannot be read: {error})")],
    };
    let edits = edit_files(app.runtime.home.root());
    let edits = edits.into_iter().map(|file| format!("a text that an editor had open: {}", file.display()));
    let kept = leftovers::of_commands(&app.runtime.home);
    let server = app.runtime.store.beyond_reach().map(str::to_owned);
    names
        .chain(damaged)
        .chain(copies)
        .chain(edits)
        .chain(kept)
        .chain(server)
        .chain(UNREACHABLE.map(str::to_owned))
        .collect()
}

//! Files of cards: which are opened, and why others are refused (spec: capabilities §2).
//!
//! A file is opened once, beneath its root and through no link, and everything that is judged is judged of that
//! descriptor: an exchange between a look and a read changes nothing.

use std::path::PathBuf;

use loom::Digest;
use serde::Serialize;
use text::finding::Finding;
use workspace::{
    Content, DirEntry, FileError, FileKind, FileProblem, LinkPolicy, Metadata, ReadRules, RelativePath, Root,
};

use crate::card_file::CardFile;

/// Folder of the cards of a repository.
pub const CARD_FOLDER: &str = "docs/capabilities";

/// Largest file, in bytes.
pub const MAX_BYTES: u64 = 50 * 1024;

/// Most cards of one folder, and most names that are looked at there.
const MAX_CARDS: usize = 1_000;
const MAX_ENTRIES: usize = 10_000;

/// Kind of a folder of cards; of two cards with one id the first in this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CardSource {
    /// `docs/capabilities/` of the repository.
    Repo,
    /// Another folder of the workspace, which the owner named.
    Workspace,
    /// `capabilities/` of Drawloom's home.
    User,
}

/// A folder of cards.
#[derive(Debug)]
pub struct CardFolder<'a> {
    pub source: CardSource,
    pub root: &'a Root,
    /// The folder below the root.
    pub folder: RelativePath,
}

/// A text that may become that of a card.
#[derive(Clone, Copy, Debug)]
pub struct CardText<'a> {
    pub source: CardSource,
    pub root: &'a Root,
    /// The file below the root of its folder.
    pub below_root: &'a RelativePath,
    pub digest: Digest,
}

/// What decides about cards beside the rules of this crate.
pub struct LoadingRules<'a> {
    /// Why a text is not taken; none where it is.
    pub refuses: &'a dyn Fn(CardText<'_>) -> Option<String>,
}

/// A place that was not looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RefusedPlace {
    pub path: PathBuf,
    pub why: String,
}

/// A file of a folder of cards, and what was read of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FoundCard {
    /// As it is shown.
    pub path: PathBuf,
    pub file: CardFile,
}

/// Files of cards in a folder by their names, without reading any.
///
/// # Errors
/// The folder cannot be listed; one that is not there has none.
pub fn card_files(folder: &CardFolder<'_>) -> Result<(Vec<RelativePath>, Vec<RefusedPlace>), RefusedPlace> {
    let CardFolder { root, folder, .. } = folder;
    let refused = |path: &RelativePath, why: String| RefusedPlace { path: root.shown(path), why };
    let listing = match root.list(folder, MAX_ENTRIES) {
        Ok(listing) => listing,
        Err(FileError { problem: FileProblem::NotFound, .. }) => return Ok((Vec::new(), Vec::new())),
        Err(error) => return Err(refused(folder, error.problem.to_string())),
    };
    let mut places = Vec::new();
    if listing.incomplete {
        places
            .push(refused(folder, format!("it has more than {MAX_ENTRIES} entries: some are not looked at")));
    }
    let is_card = |entry: &&DirEntry| {
        let name = entry.name.to_string_lossy().to_ascii_lowercase();
        name.ends_with(".md") && name != "readme.md"
    };
    let mut files = Vec::new();
    for entry in listing.entries.iter().filter(is_card) {
        match folder.join(&entry.name) {
            Ok(path) if files.len() < MAX_CARDS => files.push(path),
            Ok(path) => {
                places.push(refused(
                    &path,
                    format!("there are more than {MAX_CARDS} cards: it and what follows is not read"),
                ));
                break;
            }
            Err(problem) => places.push(refused(folder, problem.to_string())),
        }
    }
    Ok((files, places))
}

/// Cards of a folder, and places that were not looked at.
pub(crate) fn read_folder(
    folder: &CardFolder<'_>,
    rules: &LoadingRules<'_>,
) -> (Vec<FoundCard>, Vec<RefusedPlace>) {
    let (files, places) = match card_files(folder) {
        Ok(found) => found,
        Err(refused) => return (Vec::new(), vec![refused]),
    };
    let stands_in = folder.root.stat(&folder.folder, LinkPolicy::Refuse).ok();
    let owner = folder.root.stat(&RelativePath::root(), LinkPolicy::Refuse).ok().map(|root| root.owner);
    let around =
        Surroundings { owner, is_open_to_all: stands_in.is_some_and(|found| found.world_writable()) };
    let read = |path: &RelativePath| {
        let file = match folder.root.read(path, &ReadRules::at_most(MAX_BYTES)) {
            Ok(content) => read_file(folder, path, &content, (&around, rules)),
            Err(error) => unread(error.problem.to_string()),
        };
        let path = folder.root.shown(path);
        let mut found = FoundCard { path: path.clone(), file };
        if let Some(card) = &mut found.file.card {
            card.path = path;
        }
        found
    };
    (files.iter().map(read).collect(), places)
}

/// What of the folders around a file decides about it.
struct Surroundings {
    /// User id of whoever has the root.
    owner: Option<u32>,
    is_open_to_all: bool,
}

fn read_file(
    folder: &CardFolder<'_>,
    path: &RelativePath,
    content: &Content,
    (around, rules): (&Surroundings, &LoadingRules<'_>),
) -> CardFile {
    let mut file = CardFile::read(&content.bytes, folder.source);
    let text =
        CardText { source: folder.source, root: folder.root, below_root: path, digest: content.digest() };
    file.findings.extend(suspicious(&content.metadata, around));
    file.findings.extend((rules.refuses)(text).map(|why| Finding::error("not_accepted", why)));
    if file.refusal().is_some() {
        file.card = None;
    }
    file
}

fn unread(why: String) -> CardFile {
    CardFile { card: None, id: String::new(), findings: vec![Finding::error("unreadable", why)] }
}

/// What of a file lets somebody else change its text.
fn suspicious(metadata: &Metadata, around: &Surroundings) -> Vec<Finding> {
    let mut found = Vec::new();
    if metadata.kind == FileKind::Regular && metadata.links > 1 {
        let why = format!("it has {} hard links: its text may be that of another file", metadata.links);
        found.push(Finding::error("hard_links", why));
    }
    if around.owner.is_some_and(|owner| owner != metadata.owner) {
        let why = format!("it belongs to uid {}, and the folder of its root to another", metadata.owner);
        found.push(Finding::error("foreign_owner", why));
    }
    if metadata.world_writable() || around.is_open_to_all {
        let what = if metadata.world_writable() { "it" } else { "its folder" };
        found.push(Finding::error("world_writable", format!("anybody may write {what}")));
    }
    found
}

//! What `move` and `copy` share: where something goes, what goes along, and what it may go over.

use model::Cancel;
use policy::{PathAccess, PathPlace, PathUse};
use schemars::JsonSchema;
use serde::Deserialize;
use workspace::protected::{ProtectionMatch, touches};
use workspace::{FileKind, FileProblem, LinkPolicy, RootedPath};

use super::place;
use crate::changes::{EntryKind, FileEdit, FoundFile, Subtree, SubtreeChange, apply, difference, found};
use crate::changes::{path_at, paths_below};
use crate::path_uses::path_use;
use crate::tool::{CallScope, ToolScope};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// File or folder in the workspace.
    from: String,
    /// New path, name included.
    to: String,
    /// Replace a file that is there.
    #[serde(default)]
    overwrite: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RelocationKind {
    Move,
    Copy,
}

impl RelocationKind {
    const fn did(self) -> &'static str {
        match self {
            Self::Move => "moved",
            Self::Copy => "copied",
        }
    }
}

/// A file, link or folder that gets another place.
struct Relocation<'s> {
    kind: RelocationKind,
    from: RootedPath<'s>,
    to: RootedPath<'s>,
    subtree: Subtree<'s>,
    /// The file in whose place it comes.
    over: Option<FoundFile>,
}

/// The paths of a folder that a decision on the call needs: all where there are rules or hooks on calls, else those
/// that are protected where they are or where they go.
pub(super) fn paths_used(
    scope: &ToolScope,
    from: &str,
    to: Option<&str>,
    accesses: &[PathAccess],
) -> Vec<PathUse> {
    let Ok(from) = place(scope, from) else { return Vec::new() };
    let to = to.and_then(|to| place(scope, to).ok());
    let has_rules = scope.has_call_hooks() || !scope.policy.is_empty();
    let counts = |used: &PathUse| {
        has_rules
            || used.place != PathPlace::WritableRoot
            || used.steers_programs()
            || touches(&used.path) != ProtectionMatch::Nothing
    };
    // What cannot be listed is not changed either.
    let below = paths_below(&from).unwrap_or_default();
    let first = below.first().map_or(FileKind::Regular, |(_, kind)| *kind);
    let mut paths = Vec::new();
    let mut of_the_call = 0;
    for (path, kind) in std::iter::once((from.path.clone(), first)).chain(below.into_iter().skip(1)) {
        let comes = if kind == FileKind::Symlink { PathAccess::Link } else { PathAccess::Write };
        paths.extend(accesses.iter().map(|access| path_use(from.root, path.clone(), *access)));
        if let Some(to) = &to
            && let Ok(there) = path_at(&path, from.path.as_path(), &to.path)
        {
            paths.push(path_use(to.root, there, comes));
        }
        if path == from.path {
            of_the_call = paths.len();
        }
    }
    if !has_rules && first == FileKind::Folder {
        scope.judge_places(&mut paths);
        let (named, below) = paths.split_at(of_the_call);
        paths = named.iter().chain(below.iter().filter(|path| counts(path))).cloned().collect();
    }
    paths
}

pub(super) fn paths(scope: &ToolScope, asked: &Arguments, kind: RelocationKind) -> Vec<PathUse> {
    let accesses: &[PathAccess] = match kind {
        RelocationKind::Move => &[PathAccess::Read, PathAccess::Remove],
        RelocationKind::Copy => &[PathAccess::Read],
    };
    paths_used(scope, &asked.from, Some(&asked.to), accesses)
}

/// Refuses files that were changed since the session read them.
pub(super) fn require_seen(scope: &ToolScope, subtree: &Subtree<'_>) -> Result<(), String> {
    for entry in &subtree.entries {
        let EntryKind::File { digest, .. } = entry.kind else { continue };
        if scope.seen.digest(subtree.root, &entry.path).is_some_and(|seen| seen != digest) {
            return Err(format!("{} was changed since it was read: read it again", entry.path));
        }
    }
    Ok(())
}

impl<'s> Relocation<'s> {
    fn plan(
        scope: &'s ToolScope,
        asked: &Arguments,
        kind: RelocationKind,
        cancel: &Cancel,
    ) -> Result<Self, String> {
        let (from, to) = (place(scope, &asked.from)?, place(scope, &asked.to)?);
        if from.path.is_root() || to.path.is_root() {
            return Err("the top of a root stays where it is: name something in it".to_owned());
        }
        let at = |place: &RootedPath<'_>| place.root.path().join(place.path.as_path());
        if at(&to).starts_with(at(&from)) {
            return Err(format!("{} is, or lies in, {}", asked.to, asked.from));
        }
        let id =
            |place: &RootedPath<'_>| place.root.stat(&place.path, LinkPolicy::Refuse).map(|found| found.id);
        if let (Ok(one), Ok(other)) = (id(&from), id(&to))
            && one == other
        {
            // In a folder that does not tell letters by their case, or by a second name.
            return Err(format!("{} and {} are one file: it stays as it is", asked.from, asked.to));
        }
        let over = Self::over(scope, asked, &to)?;
        let subtree = Subtree::read(&from, cancel)?;
        if over.is_some() && !matches!(subtree.top(), EntryKind::File { .. }) {
            return Err(format!(
                "{} is no file, and comes in the place of none: delete {} first",
                asked.from, asked.to
            ));
        }
        for entry in &subtree.entries {
            if matches!(entry.kind, EntryKind::File { .. }) {
                scope.require_read(from.root, &entry.path)?;
            }
        }
        require_seen(scope, &subtree)?;
        Ok(Self { kind, from, to, subtree, over })
    }

    /// The file at the place it goes to, if it may come in its place; none where there is nothing.
    fn over(scope: &ToolScope, asked: &Arguments, to: &RootedPath<'_>) -> Result<Option<FoundFile>, String> {
        match to.root.stat(&to.path, LinkPolicy::Refuse) {
            Err(error) if matches!(error.problem, FileProblem::NotFound) => return Ok(None),
            Err(error) => return Err(error.to_string()),
            Ok(there) if there.kind == FileKind::Folder => {
                return Err(format!("{} is a folder: name the new path in it", asked.to));
            }
            Ok(_) if !asked.overwrite => {
                return Err(format!("{} is there already: overwrite replaces it", asked.to));
            }
            Ok(_) => {}
        }
        let over = found(to.root, &to.path)?;
        let seen = scope.seen.digest(to.root, &to.path);
        match &over {
            Some(over) if seen.is_some_and(|seen| seen != over.digest) => {
                Err(format!("{} was changed since it was read: read it again", asked.to))
            }
            _ => Ok(over),
        }
    }

    fn change(&self) -> SubtreeChange<'_, 's> {
        match self.kind {
            RelocationKind::Move => SubtreeChange::Move(&self.to),
            RelocationKind::Copy => SubtreeChange::Copy(&self.to),
        }
    }

    /// Edits of the relocation where it comes in the place of a file.
    fn edits(self, over: FoundFile) -> Result<Vec<FileEdit<'s>>, String> {
        let (from, to) = (self.from, self.to);
        let before = found(from.root, &from.path)?.ok_or_else(|| format!("{} is not there", from.path))?;
        let (after, mode) = (Some(before.bytes.clone()), Some(before.mode));
        let mut edits = vec![FileEdit { root: to.root, path: to.path, before: Some(over), after, mode }];
        if self.kind == RelocationKind::Move {
            let before = Some(before);
            edits.push(FileEdit { root: from.root, path: from.path, before, after: None, mode: None });
        }
        Ok(edits)
    }
}

pub(super) fn preview(scope: &ToolScope, asked: &Arguments, kind: RelocationKind) -> Result<String, String> {
    let mut plan = Relocation::plan(scope, asked, kind, &Cancel::never())?;
    match plan.over.take() {
        Some(over) => Ok(difference(scope, &plan.edits(over)?)),
        None => plan.change().difference(&plan.subtree),
    }
}

pub(super) fn run(call: &CallScope<'_>, asked: &Arguments, kind: RelocationKind) -> Result<String, String> {
    let mut plan = Relocation::plan(call.scope, asked, kind, call.cancel)?;
    let named = |place: &RootedPath<'_>| place.root.shown(&place.path).display().to_string();
    let (from, to) = (named(&plan.from), named(&plan.to));
    let did = kind.did();
    if let Some(over) = plan.over.take() {
        let edits = plan.edits(over)?;
        apply(call, &edits)?;
        return Ok(format!("{did} {from} to {to}, in the place of the file that was there"));
    }
    plan.change().apply(call, &plan.subtree)?;
    let files = match plan.subtree.top() {
        EntryKind::Folder { .. } => format!(" (files: {})", plan.subtree.files()),
        _ => String::new(),
    };
    Ok(format!("{did} {from} to {to}{files}"))
}

//! All skills within reach: which goes before which, and which are offered (spec: agent §6, security §25).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use loom::Digest;
use text::terminal::is_unsafe;
use workspace::StoreGuard;

use crate::discovery::{Discovery, FoundFile, RefusedPlace, SkillSource, SkillSourceKind};
use crate::file::SkillFile;
use crate::metadata::Machine;
use crate::own;

/// A text that may become that of a skill.
#[derive(Clone, Copy, Debug)]
pub struct SkillText<'a> {
    /// Whether it is the workspace that brings it.
    pub is_of_workspace: bool,
    /// The file as it is named to a model: below a workspace its path there, else the whole one.
    pub path: &'a Path,
    pub digest: Digest,
}

/// A text that its owner accepted, in the place of one that stands in the workspace by now.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceptedText {
    /// The file that has it.
    pub path: PathBuf,
    pub text: String,
}

/// What decides about the skills of some sources.
pub struct CatalogRules<'a, M> {
    pub machine: &'a M,
    /// Names that the owner switched off.
    pub disabled: &'a [String],
    /// Folders that links may lead to.
    pub link_targets: &'a [PathBuf],
    /// Files that nothing opens.
    pub guard: &'a StoreGuard,
    /// Why a text is not taken; none where it is.
    pub refuses: &'a dyn Fn(SkillText<'_>) -> Option<String>,
    /// The accepted text in place of one that is not taken.
    pub accepted: &'a dyn Fn(SkillText<'_>) -> Option<AcceptedText>,
}

/// A skill that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    pub file: SkillFile,
    pub source: SkillSourceKind,
    /// The file, as it is named to a model: below a workspace its path there, else the whole one.
    pub path: PathBuf,
    /// The folder of the skill, by its whole path.
    pub folder: PathBuf,
    /// Whether the owner switched it off.
    pub is_disabled: bool,
    /// Why it is not taken in.
    pub refusal: Option<String>,
    /// The file of the workspace that has another text by now, in whose place it stands.
    pub stands_in_for: Option<PathBuf>,
    /// What it needs and the machine does not have.
    pub missing: Vec<String>,
    /// The file of the skill of its name that goes before it.
    pub shadowed_by: Option<PathBuf>,
}

impl Skill {
    /// Whether it is offered.
    pub fn is_eligible(&self) -> bool {
        !self.is_disabled && self.refusal.is_none() && self.missing.is_empty() && self.shadowed_by.is_none()
    }

    /// Whether those of its name behind it are not offered. A workspace hides none of the owner's from a model.
    fn takes_place(&self) -> bool {
        self.is_eligible() && (self.file.for_model || !self.source.is_of_workspace())
    }
}

/// Skills in the order of their sources, and what was not looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    pub skills: Vec<Skill>,
    pub refused: Vec<RefusedPlace>,
}

impl Catalog {
    /// Looks through sources, of which the first go before the later ones.
    pub fn read(sources: &[SkillSource<'_>], rules: &CatalogRules<'_, impl Machine>) -> Self {
        let mut found = Discovery::default();
        let mut skills = Vec::new();
        for source in sources {
            let files = found.look(*source, rules.link_targets, rules.guard);
            skills.extend(files.into_iter().map(|file| skill(source, file, rules)));
        }
        // The built-in ones stand among those of the home.
        skills.sort_by_key(|skill: &Skill| skill.source);
        let mut first: HashMap<String, PathBuf> = HashMap::new();
        // One that is not offered takes the place of no other.
        for skill in
            skills.iter_mut().filter(|skill: &&mut Skill| !skill.is_disabled && skill.refusal.is_none())
        {
            let key = skill.file.name.to_lowercase();
            match first.get(&key) {
                Some(path) => skill.shadowed_by = Some(path.clone()),
                None if skill.takes_place() => {
                    first.insert(key, skill.path.clone());
                }
                None => {}
            }
        }
        Self { skills, refused: found.refused }
    }
}

fn skill(source: &SkillSource<'_>, found: FoundFile, rules: &CatalogRules<'_, impl Machine>) -> Skill {
    let FoundFile { folder, path, is_linked, content } = found;
    let named = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let source = match source.kind {
        SkillSourceKind::Home if !is_linked && is_place_of_built_in(source.root.path(), &folder) => {
            SkillSourceKind::BuiltIn
        }
        kind => kind,
    };
    let (file, digest) = match content {
        Ok(content) if source == SkillSourceKind::BuiltIn => {
            (SkillFile::read_built_in(&content.bytes, &named), Some(content.digest()))
        }
        Ok(content) => (SkillFile::read(&content.bytes, &named), Some(content.digest())),
        Err(error) => (SkillFile::unread(&named, error.problem.to_string()), None),
    };
    // What lies in a folder that the owner named is theirs, whatever led there.
    let is_of_workspace = source.is_of_workspace() && !is_linked;
    let text = |path| digest.map(|digest| SkillText { is_of_workspace, path, digest });
    let refusal = refusal(&file, &path).or_else(|| (rules.refuses)(text(&path)?));
    let accepted = refusal.as_ref().and_then(|_| (rules.accepted)(text(&path)?));
    let stand_in =
        accepted.map(|AcceptedText { path, text }| (SkillFile::read(text.as_bytes(), &named), path));
    let stand_in = stand_in.filter(|(file, path)| self::refusal(file, path).is_none());
    let (file, path, folder, refusal, stands_in_for) = match stand_in {
        Some((file, accepted)) => {
            let folder = accepted.parent().unwrap_or(&folder).to_owned();
            (file, accepted, folder, None, Some(path))
        }
        None => (file, path, folder, refusal, None),
    };
    let is_off = |disabled: &String| disabled.to_lowercase() == file.name.to_lowercase();
    let is_disabled = rules.disabled.iter().any(is_off);
    let missing = if refusal.is_none() { file.requirements.missing(rules.machine) } else { Vec::new() };
    let shadowed_by = None;
    Skill { file, source, path, folder, is_disabled, refusal, stands_in_for, missing, shadowed_by }
}

/// Why a text is not taken in, whoever wrote it.
fn refusal(file: &SkillFile, path: &Path) -> Option<String> {
    if let Some(finding) = file.refusal() {
        Some(finding.why.clone())
    } else if file.is_own_copy {
        Some("it is a copy of a skill of Drawloom's own, for other programs".to_owned())
    } else if !is_writable_out(path) {
        Some("its path has characters that a model cannot write".to_owned())
    } else {
        None
    }
}

/// Whether a folder below a home is that in which a built-in skill stands.
fn is_place_of_built_in(home: &Path, folder: &Path) -> bool {
    let name = folder.strip_prefix(home.join("skills")).ok().and_then(Path::to_str);
    name.is_some_and(own::is_built_in)
}

/// Whether a path is one line of plain text.
fn is_writable_out(path: &Path) -> bool {
    path.to_str().is_some_and(|path| !path.chars().any(|c| is_unsafe(c) || matches!(c, '\n' | '\t')))
}

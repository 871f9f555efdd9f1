//! `skills new` and `skills add`: skills of the owner's, in the home.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use loom::Digest;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use skills::{PLACEHOLDER, PLACEHOLDER_TEXT, SkillFile, own, strict};
use store::home::HomeDir;
use text::bytes::size;
use text::finding::Finding;
use text::terminal::{explicit, one_line};
use workspace::{FileError, FileKind, ReadRules, RelativePath, Root, canonical};

use super::built_in::{is_as_written, is_written};
use super::{FILE, FOLDER, as_judged_now, masked, of_name, skill_shown};
use crate::app::App;
use crate::args::skills::{AddSkillArgs, NewSkillArgs};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::rights::Asker;

/// Most files of a skill that is added, and the bytes of all.
const MAX_FILES: usize = 1_000;
const MAX_BYTES: u64 = 20 << 20;

/// Deepest level of a file.
const DEPTH: usize = 6;

/// Files that are named to the owner before they are added.
const NAMED: usize = 40;

/// A file of a skill.
pub(super) struct AddedFile {
    pub(super) path: RelativePath,
    pub(super) bytes: Vec<u8>,
    is_executable: bool,
}

/// `skills new`.
///
/// # Errors
/// It is no name of a skill, or there is one of that name.
pub(super) async fn new(
    app: &App,
    asker: &Asker,
    args: &NewSkillArgs,
) -> Result<CommandOutcome, CommandError> {
    let NewSkillArgs { name, description } = args;
    let description = one_line(description.as_deref().unwrap_or(PLACEHOLDER));
    let description = description.replace('\\', "\\\\").replace('"', "\\\"");
    let text = format!("---\nname: {name}\ndescription: \"{description}\"\n---\n\n{PLACEHOLDER_TEXT}\n");
    let wrong = strict::check(text.as_bytes(), name);
    if let Some(wrong) = wrong.iter().find(|finding| finding.is_error()) {
        return Err(CommandError::usage(
            format!("no skill {} can be written: {}", explicit(name), wrong.why),
            "nothing was written: choose another one",
        ));
    }
    let skill = SkillFile::read(text.as_bytes(), name);
    require_folder_name(name, skill.findings.iter().find(|finding| finding.code == "reserved"))?;
    let path = RelativePath::parse(FILE).map_err(|problem| CommandError::usage(problem.to_string(), ""))?;
    let file = AddedFile { path, bytes: text.into_bytes(), is_executable: false };
    install(app, name, (&[file], false))?;
    added(app, asker, name).await
}

/// `skills add`: shows what a skill brings, and copies it.
///
/// # Errors
/// It is no folder of a skill that would be offered, there is one of its name, or the owner said no.
pub(super) async fn add(
    app: &App,
    asker: &Asker,
    args: &AddSkillArgs,
) -> Result<CommandOutcome, CommandError> {
    let AddSkillArgs { path, yes } = args;
    if path.to_str().is_some_and(|path| path.contains("://") || path.starts_with("git@")) && !path.exists() {
        return Err(CommandError::usage(
            format!("{} is an address: skills add takes a folder", one_line(&path.to_string_lossy())),
            "`git clone ADDRESS`, look at what came, then `drawloom skills add FOLDER`",
        ));
    }
    let whole = canonical(path);
    let folder = match whole.file_name() {
        Some(name) if name.eq_ignore_ascii_case(FILE) => whole.parent().unwrap_or(&whole),
        _ => &whole,
    };
    let root = Root::open(folder, &app.guard).map_err(|error| CommandError::file_argument(&error))?;
    let files = match FolderContents::of(&root) {
        Ok(FolderContents { others, .. }) if !others.is_empty() => {
            let why = "it is a link, or no file: a skill that is added has files alone";
            return Err(not_added(&others[0], why));
        }
        Ok(found) => found.files,
        Err(Uncollected::File(error)) => return Err(CommandError::file_argument(&error)),
        Err(Uncollected::TooMuch(path, why)) => return Err(not_added(&path, &why)),
    };
    let shown = path.to_string_lossy();
    let is_text =
        |file: &&AddedFile| file.path.as_path().to_str().is_some_and(|path| path.eq_ignore_ascii_case(FILE));
    let text = files.iter().find(is_text).ok_or_else(|| {
        CommandError::not_found("skill in", &shown, "name the folder of one skill, with a SKILL.md")
    })?;
    let named = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let skill = SkillFile::read_built_in(&text.bytes, &named);
    if let Some(wrong) = skill.refusal() {
        let message = format!("{} would not be offered: {}", one_line(&shown), masked(app, &wrong.why));
        return Err(CommandError::refused(
            "bad_skill",
            message,
            "`drawloom skills check PATH` says what is wrong",
        ));
    }
    let name = skill.name.clone();
    require_folder_name(&name, None)?;
    let replaces = own::is_built_in(&name) && is_as_written(app.runtime.home.root(), &name);
    let lines = lines_of(app, &files, text);
    let question = match replaces {
        true => format!("Put this skill {name} in the place of Drawloom's own?"),
        false => format!("Add the skill {name} to yours, as it is here?"),
    };
    if !yes {
        let confirmed = app.frontend.confirm_shown(&lines, &question);
        let hint = "say y where it asks at a terminal, or give --yes";
        confirmed.require("not_accepted", format!("{name} was not added"), hint)?;
    }
    install(app, &name, (&files, replaces))?;
    // The owner was shown it, wherever it came from.
    let digests: Vec<Digest> = files.iter().map(|file| Digest::of(&file.bytes)).collect();
    app.runtime.store.accept_files(&asker.principal, digests).await?;
    added(app, asker, &name).await
}

/// Refuses a name that a finding is about, or that cannot be that of a folder.
fn require_folder_name(name: &str, wrong: Option<&Finding>) -> Result<(), CommandError> {
    let is_one = RelativePath::parse(name).is_ok_and(|path| path.as_path().components().count() == 1);
    if is_one && !name.starts_with('.') && wrong.is_none() {
        return Ok(());
    }
    let why = match wrong {
        Some(_) => "that is the name of a skill of Drawloom's",
        None => "it is no name of a folder",
    };
    Err(CommandError::usage(format!("{} cannot be added: {why}", explicit(name)), "give it another name"))
}

fn not_added(path: &RelativePath, why: &str) -> CommandError {
    CommandError::refused("bad_skill", format!("{}: {why}", path_in_skill(path)), "nothing was added")
}

/// Path of what stands in a skill, as its owner reads it.
pub(super) fn path_in_skill(path: &RelativePath) -> String {
    match path.as_path().to_str() {
        Some("") => "its folder".to_owned(),
        _ => explicit(&path.as_path().to_string_lossy()).into_owned(),
    }
}

/// What stands in the folder of a skill, but for `.git`.
#[derive(Default)]
pub(super) struct FolderContents {
    pub(super) files: Vec<AddedFile>,
    /// Links, pipes and the like, which are not opened.
    pub(super) others: Vec<RelativePath>,
    bytes: u64,
}

/// Why the contents of a folder are not known.
pub(super) enum Uncollected {
    File(FileError),
    /// A place in it, and what there is too much of.
    TooMuch(RelativePath, String),
}

impl FolderContents {
    pub(super) fn of(root: &Root) -> Result<Self, Uncollected> {
        let mut found = Self::default();
        found.collect(root, &RelativePath::root())?;
        Ok(found)
    }

    fn collect(&mut self, root: &Root, folder: &RelativePath) -> Result<(), Uncollected> {
        let too_much = |path: &RelativePath, why: &str| Uncollected::TooMuch(path.clone(), why.to_owned());
        let listing = root.list(folder, MAX_FILES + 1).map_err(Uncollected::File)?;
        for entry in listing.entries {
            let path = folder.join(&entry.name).map_err(|problem| too_much(folder, &problem.to_string()))?;
            match entry.kind {
                FileKind::Folder if entry.name == ".git" => {}
                FileKind::Folder if path.as_path().components().count() < DEPTH => {
                    self.collect(root, &path)?;
                }
                FileKind::Folder => return Err(too_much(&path, "its folders are too deep")),
                FileKind::Regular => {
                    let read = root.read(&path, &ReadRules::at_most(MAX_BYTES));
                    let content = read.map_err(Uncollected::File)?;
                    self.bytes += content.bytes.len() as u64;
                    let is_executable = content.metadata.mode & 0o111 != 0;
                    self.files.push(AddedFile { path, bytes: content.bytes, is_executable });
                }
                _ => self.others.push(path),
            }
            if self.files.len() + self.others.len() > MAX_FILES || self.bytes > MAX_BYTES {
                let why = format!("it has more than {MAX_FILES} files, or more than {}", size(MAX_BYTES));
                return Err(too_much(folder, &why));
            }
        }
        if listing.incomplete {
            return Err(too_much(folder, "it could not be read whole"));
        }
        Ok(())
    }
}

/// What the owner reads before a skill is added: its files, and its text whole.
fn lines_of(app: &App, files: &[AddedFile], text: &AddedFile) -> Vec<String> {
    let text = app.runtime.masker.mask_entering(&String::from_utf8_lossy(&text.bytes)).text.into_owned();
    let body = text.lines().map(|line| explicit(line).into_owned()).collect::<Vec<_>>();
    file_lines(files).into_iter().chain([String::new()]).chain(body).collect()
}

/// Files of a skill, as its owner reads them.
pub(super) fn file_lines(files: &[AddedFile]) -> Vec<String> {
    let line = |file: &AddedFile| {
        let path = path_in_skill(&file.path);
        let program = if file.is_executable { ", may be run" } else { "" };
        format!("{path}  {}{program}", size(file.bytes.len() as u64))
    };
    let more = files.len().saturating_sub(NAMED);
    let bytes = files.iter().map(|file| file.bytes.len() as u64).sum();
    let more = (more > 0).then(|| format!("and {more} more files, {} in all", size(bytes)));
    files.iter().take(NAMED).map(line).chain(more).collect()
}

/// Writes files as those of a skill of the home: all of them, or none; where it `replaces` one, that one goes.
fn install(app: &App, name: &str, (files, replaces): (&[AddedFile], bool)) -> Result<(), CommandError> {
    let home = &app.runtime.home;
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error: std::io::Error| CommandError::file("cannot write", &path, &error)
    };
    let staging = home.dir(HomeDir::Cache);
    let staging = staging.map_err(|error| CommandError::new("home", 6, error.to_string(), error.hint()))?;
    let staged = tempfile::Builder::new().prefix("skill-").tempdir_in(&staging).map_err(failed(&staging))?;
    for file in files {
        write(&staged.path().join(file.path.as_path()), file).map_err(failed(file.path.as_path()))?;
    }
    fs::File::open(staged.path()).and_then(|folder| folder.sync_all()).map_err(failed(staged.path()))?;
    let skills = home.root().join(FOLDER);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&skills).map_err(failed(&skills))?;
    let place: PathBuf = skills.join(name);
    let how = if replaces && place.exists() { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
    match renameat_with(CWD, staged.path(), CWD, &place, how) {
        // What stood there is cleared away with the staging folder, unless its owner changed it meanwhile.
        Ok(()) if how == RenameFlags::EXCHANGE && is_written(&skills, name, staged.path()) => {
            return synced(&skills);
        }
        Ok(()) if how == RenameFlags::EXCHANGE => {
            let back = renameat_with(CWD, staged.path(), CWD, &place, how);
            if let Err(error) = back {
                let kept = staged.keep();
                return Err(failed(&kept)(error.into()));
            }
            return Err(CommandError::refused(
                "exists",
                format!("the skill {name} was changed while it was asked about: nothing was added"),
                "what you change there is yours; remove its folder, or give the new one another name",
            ));
        }
        Ok(()) => {}
        Err(rustix::io::Errno::EXIST) => {
            return Err(CommandError::refused(
                "exists",
                format!("there is a skill {name} in {} already", one_line(&skills.to_string_lossy())),
                format!("`drawloom skills remove {name}` takes it out; or give the new one another name"),
            ));
        }
        Err(error) => return Err(failed(&place)(error.into())),
    }
    // It stands at its place: nothing is to be cleared away.
    let _ = staged.keep();
    synced(&skills)
}

pub(super) fn synced(folder: &Path) -> Result<(), CommandError> {
    let synced = fs::File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| CommandError::file("cannot write", folder, &error))
}

fn write(path: &Path, file: &AddedFile) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mode = if file.is_executable { 0o700 } else { 0o600 };
    let mut written = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    written.write_all(&file.bytes)?;
    written.sync_all()
}

/// A skill that was added, as it is listed.
async fn added(app: &App, asker: &Asker, name: &str) -> Result<CommandOutcome, CommandError> {
    let found = as_judged_now(app, asker).await?.skills;
    let in_home = app.runtime.home.root().join(FOLDER).join(name);
    let of_home: Vec<_> = found.into_iter().filter(|skill| skill.folder == in_home).collect();
    let skill = of_name(app, &of_home, name)?;
    Ok(CommandOutcome::Skill(skill_shown(app, skill)))
}

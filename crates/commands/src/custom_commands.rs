//! Commands of one's own: texts in files that a person says by a name, with arguments (spec: agent §7).
//!
//! What comes of one is said to the model, and never read as a command.

mod template;

use std::path::{Path, PathBuf};

use loom::{Digest, Trust};
use skills::{RefusedPlace, SkillText};
use workspace::frontmatter::{self, Map};
use workspace::trust::Accepted;
use workspace::{Content, FileError, FileKind, FileProblem, ReadRules, RelativePath, Root};

use crate::app::App;
use crate::error::CommandError;
use crate::skills::{outside_texts, path_shown, refusal, why_outside};
use crate::slash::{Input, TABLE, nearest};
use crate::workspaces;
use text::terminal::one_line;

/// Folder below a workspace and below the home.
const FOLDER: &str = "commands";

/// Ending of their files.
const ENDING: &str = ".md";

/// Largest file, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// Most entries of a folder.
const MAX_ENTRIES: usize = 1_000;

/// Characters of the longest name.
const LONGEST_NAME: usize = 64;

/// A text with a name.
#[derive(Debug)]
pub(crate) struct CustomCommand {
    pub(crate) name: String,
    /// What it takes, as its file says it; empty where it says nothing.
    pub(crate) arguments: String,
    /// What it is for, in one line; the beginning of its text where the file does not say so.
    pub(crate) description: String,
    template: String,
    trust: Trust,
    /// File, as of [`FoundFile`].
    path: PathBuf,
}

/// All within reach; of two of one name only the first counts.
#[derive(Debug, Default)]
pub(crate) struct CustomCommands {
    pub(crate) commands: Vec<CustomCommand>,
    /// Files that are not taken.
    pub(crate) refused: Vec<RefusedPlace>,
}

/// What is said in place of a command.
#[derive(Debug)]
pub(crate) struct Expansion {
    pub(crate) text: String,
    /// How far the text is believed that the command brings.
    pub(crate) trust: Trust,
}

/// A file of a folder of commands, with its name.
struct FoundFile {
    is_of_workspace: bool,
    name: String,
    /// Below a workspace its path there, else the whole one.
    path: PathBuf,
    content: Content,
}

impl CustomCommands {
    /// Reads those of the workspace, where its texts count, and those of the home.
    pub(crate) async fn read(app: &App) -> Self {
        let accepted = workspaces::accepted(app).await;
        let workspace = app.workspace.root.as_ref();
        let home = Root::open(app.runtime.home.root(), &app.guard).ok();
        let mut found = Self::default();
        let mut files = Vec::new();
        for (root, is_of_workspace) in [(workspace, true), (home.as_ref(), false)] {
            if let Some(root) = root {
                files.extend(found.look(app, root, is_of_workspace));
            }
        }
        found.judge(app, workspace, &accepted, files).await;
        found
    }

    /// The one of a name.
    ///
    /// # Errors
    /// There is none, or its file is not taken.
    pub(crate) fn require(&self, name: &str) -> Result<&CustomCommand, CommandError> {
        if let Some(command) = self.named(name) {
            return Ok(command);
        }
        let is_its = |place: &&RefusedPlace| place.path.file_stem().is_some_and(|stem| stem == name);
        match self.refused.iter().find(is_its) {
            Some(RefusedPlace { path, why }) => {
                let path = path.to_string_lossy();
                let message = format!("/{name} is left out, with {}: {why}", one_line(&path));
                Err(CommandError::refused("command_left_out", message, "nothing was sent"))
            }
            None => {
                let custom = self.commands.iter().map(|command| &*command.name);
                Err(Input::refused(name, nearest(custom, name)))
            }
        }
    }

    /// That a command of the home is said in the place of one of the workspace, which is not taken.
    pub(crate) fn stands_in(&self, command: &CustomCommand) -> Option<String> {
        let of_workspace = Path::new(FOLDER).join(format!("{}{ENDING}", command.name));
        let place = self.refused.iter().find(|place| place.path == of_workspace)?;
        let path = of_workspace.to_string_lossy();
        Some(format!("{path} is left out: {}; /{} of your home is said", place.why, command.name))
    }

    fn named(&self, name: &str) -> Option<&CustomCommand> {
        self.commands.iter().find(|command| command.name == name)
    }

    /// Files of a folder that may be commands.
    fn look(&mut self, app: &App, root: &Root, is_of_workspace: bool) -> Vec<FoundFile> {
        let shown = |path: &RelativePath| {
            if is_of_workspace { path.as_path().to_owned() } else { root.path().join(path.as_path()) }
        };
        let Ok(folder) = RelativePath::parse(FOLDER) else { return Vec::new() };
        let listing = match root.list(&folder, MAX_ENTRIES) {
            Ok(listing) => listing,
            Err(FileError { problem: FileProblem::NotFound, .. }) => return Vec::new(),
            Err(error) => {
                self.refuse(app, &shown(&folder), error.problem.to_string());
                return Vec::new();
            }
        };
        if listing.incomplete {
            self.refuse(app, &shown(&folder), format!("it has more than {MAX_ENTRIES} entries"));
        }
        let mut files = Vec::new();
        for entry in &listing.entries {
            let Ok(path) = folder.join(&entry.name) else { continue };
            if entry.kind == FileKind::Folder {
                self.refuse(app, &shown(&path), "files in folders of commands/ are no commands".to_owned());
                continue;
            }
            let Some(name) = entry.name.to_str().and_then(|name| name.strip_suffix(ENDING)) else { continue };
            let content = match name_problem(name) {
                Some(why) => Err(why),
                None => root
                    .read(&path, &ReadRules::at_most(MAX_BYTES))
                    .map_err(|error| error.problem.to_string()),
            };
            let (name, path) = (name.to_owned(), shown(&path));
            match content {
                Ok(content) => files.push(FoundFile { is_of_workspace, name, path, content }),
                Err(why) => self.refuse(app, &path, why),
            }
        }
        files
    }

    /// Takes in files whose texts count.
    async fn judge(
        &mut self,
        app: &App,
        workspace: Option<&Root>,
        accepted: &Accepted,
        files: Vec<FoundFile>,
    ) {
        let digests: Vec<Digest> = files.iter().map(|file| file.content.digest()).collect();
        let texts: Vec<SkillText<'_>> =
            files.iter().zip(&digests).map(|(file, digest)| file.text(*digest)).collect();
        let outside = outside_texts(app, accepted, &texts).await;
        let home = app.runtime.home.root();
        let refusals: Vec<Option<String>> = texts
            .iter()
            .map(|text| {
                let is_outside = outside.contains(&text.digest);
                is_outside.then(|| why_outside(*text)).or_else(|| refusal(home, workspace, accepted, *text))
            })
            .collect();
        for (file, refused) in files.into_iter().zip(refusals) {
            let first = self.named(&file.name).map(|first| path_shown(app, &first.path));
            let read = match refused {
                Some(why) => Err(why),
                None => match first {
                    Some(first) => Err(format!("{first} goes before it")),
                    None => command(app, &file),
                },
            };
            match read {
                Ok(command) => self.commands.push(command),
                Err(why) => self.refuse(app, &file.path, why),
            }
        }
        self.commands.sort_by(|one, other| one.name.cmp(&other.name));
    }

    fn refuse(&mut self, app: &App, path: &Path, why: String) {
        let path = path_shown(app, path).into();
        self.refused.push(RefusedPlace { path, why });
    }
}

impl CustomCommand {
    /// Text that is said for it with these arguments, as they were typed.
    ///
    /// # Errors
    /// It takes more of them, or fewer.
    pub(crate) fn expand(&self, arguments: &str) -> Result<Expansion, CommandError> {
        let text = template::expand(&self.template, arguments).map_err(|wanted| {
            let words = if wanted == 1 { "argument" } else { "arguments" };
            let usage = if self.arguments.is_empty() {
                (1..=wanted).map(|number| format!("ARGUMENT{number}")).collect::<Vec<_>>().join(" ")
            } else {
                self.arguments.clone()
            };
            CommandError::usage(
                format!("/{}: it takes {wanted} {words}", self.name),
                format!(
                    "type /{} {usage}; an argument of several words stands in quotes. Nothing was sent",
                    self.name
                ),
            )
        })?;
        Ok(Expansion { text, trust: self.trust })
    }
}

impl FoundFile {
    fn text(&self, digest: Digest) -> SkillText<'_> {
        SkillText { is_of_workspace: self.is_of_workspace, path: &self.path, digest }
    }
}

/// Why no command has a name.
fn name_problem(name: &str) -> Option<String> {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_letter) {
        return Some(format!(
            "the name of a command has at most {LONGEST_NAME} characters: a to z, 0 to 9, - and _"
        ));
    }
    let is_taken = TABLE.iter().any(|row| row.name == name);
    is_taken.then(|| format!("/{name} is a command of Drawloom: give the file another name"))
}

/// The command that a file says.
fn command(app: &App, file: &FoundFile) -> Result<CustomCommand, String> {
    let page = frontmatter::read(&file.content.bytes).map_err(|error| error.to_string())?;
    let masker = &app.runtime.masker;
    let template = masker.mask_entering(page.body.trim()).text.into_owned();
    if template.is_empty() {
        return Err("it says nothing".to_owned());
    }
    let fields = page.fields.unwrap_or_default();
    let line = |key: &str| masker.mask_entering(&in_one_line(&fields, key)).text.into_owned();
    let described = line("description");
    let description = if described.is_empty() { text::title::title(&template) } else { described };
    Ok(CustomCommand {
        name: file.name.clone(),
        arguments: line("argument-hint"),
        description,
        template,
        trust: if file.is_of_workspace { Trust::Workspace } else { Trust::Owner },
        path: file.path.clone(),
    })
}

/// A field in one line; empty where the file does not have it as a text.
fn in_one_line(fields: &Map, key: &str) -> String {
    let field = fields.text(key).ok().flatten().unwrap_or_default();
    one_line(&field.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

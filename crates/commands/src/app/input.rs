//! Text and file arguments: limits, kinds that are refused, secrets that are masked.

use std::borrow::Cow;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use loom::plan::MAX_NODE_BYTES;
use store::home::HomeDir;
use workspace::{Accept, FileArgument, FileProblem, check_output};

use super::App;
use crate::error::CommandError;
use text::bytes::size;

impl App {
    /// A text argument: itself, or standard input for `-`; known secrets masked.
    ///
    /// # Errors
    /// When standard input is no UTF-8 or too long.
    pub fn text(&self, argument: &str) -> Result<String, CommandError> {
        if argument == "-" {
            return self.file_text(Path::new(argument));
        }
        self.fits_paste("the text", argument.len() as u64)?;
        Ok(self.masked(argument))
    }

    /// The text of a file, or of standard input for `-`; known secrets masked.
    ///
    /// # Errors
    /// When it cannot be read, is no UTF-8 or too long.
    pub(crate) fn file_text(&self, path: &Path) -> Result<String, CommandError> {
        self.text_of(&argument_name(path), self.file_bytes(path, Accept::RegularOrPipe)?)
    }

    /// The bytes of a file, or of standard input for `-`.
    ///
    /// # Errors
    /// When it cannot be read or is too long.
    pub(crate) fn file_bytes(&self, path: &Path, accept: Accept) -> Result<Vec<u8>, CommandError> {
        self.read_paste(path, self.open_file(path, accept)?)
    }

    /// The bytes of what was handed over at standard input with the call; none where nothing was.
    ///
    /// # Errors
    /// As [`Self::file_bytes`].
    pub(crate) fn piped_bytes(&self) -> Result<Option<Vec<u8>>, CommandError> {
        let opened = self.frontend.piped_input(&self.guard, self.settings.limits.input_wait);
        let Some(source) = opened.map_err(|error| CommandError::file_argument(&error))? else {
            return Ok(None);
        };
        let bytes = self.read_paste(Path::new("-"), source)?;
        Ok((!bytes.is_empty()).then_some(bytes))
    }

    /// The text of what was handed over at standard input with the call; none where nothing was. Known secrets masked.
    ///
    /// # Errors
    /// As [`Self::file_text`].
    pub(crate) fn piped_text(&self) -> Result<Option<String>, CommandError> {
        let bytes = self.piped_bytes()?;
        bytes.map(|bytes| self.text_of("standard input", bytes)).transpose()
    }

    fn read_paste(&self, path: &Path, source: Box<dyn Read + Send>) -> Result<Vec<u8>, CommandError> {
        let mut bytes = Vec::new();
        let limit = self.settings.limits.paste;
        let read = source.take(limit.saturating_add(1)).read_to_end(&mut bytes);
        let name = argument_name(path);
        read.map_err(|error| CommandError::file("cannot read", Path::new(&*name), &error))?;
        self.fits_paste(&text::terminal::one_line(&name), bytes.len() as u64)?;
        Ok(bytes)
    }

    /// Opens a file argument; where pipes are accepted, `-` is standard input.
    ///
    /// # Errors
    /// What is of another kind or the store's is refused before it is opened.
    pub(crate) fn open_file(
        &self,
        path: &Path,
        accept: Accept,
    ) -> Result<Box<dyn Read + Send>, CommandError> {
        let timeout = self.settings.limits.input_wait;
        let opened = if path == Path::new("-") && accept == Accept::RegularOrPipe {
            self.frontend.input(&self.guard, timeout)
        } else {
            let opened = FileArgument::open(path, &self.guard, accept, timeout);
            opened.map(|file| Box::new(file) as Box<dyn Read + Send>)
        };
        opened.map_err(|error| CommandError::file_argument(&error))
    }

    /// Refuses a file that would be written into the home, but for its folder `workspace`, which need not be there:
    /// [`App::make_workspace`].
    ///
    /// # Errors
    /// `in_home`, or what keeps its folder from being entered.
    pub(crate) fn check_output(&self, path: &Path) -> Result<(), CommandError> {
        if self.is_for_new_workspace(path) {
            return Ok(());
        }
        check_output(path, self.runtime.home.root()).map_err(|error| match error.problem {
            FileProblem::InHome => CommandError::refused(
                "in_home",
                format!("{} would be in the home", text::terminal::one_line(&path.to_string_lossy())),
                "name a file outside the home, or in its folder workspace",
            ),
            problem => CommandError::file("cannot write", path, &problem.into()),
        })
    }

    /// Makes the folder `workspace` of the home if a file is to be written there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn make_workspace(&self, path: &Path) -> Result<(), CommandError> {
        if self.is_for_new_workspace(path) {
            let made = self.runtime.home.dir(HomeDir::DefaultWorkspace);
            made.map_err(|error| CommandError::file("cannot write", path, &std::io::Error::other(error)))?;
        }
        Ok(())
    }

    fn is_for_new_workspace(&self, path: &Path) -> bool {
        let within = path.parent().and_then(|folder| within_new_workspace(folder, self.runtime.home.root()));
        within.is_some_and(|within| within.as_os_str().is_empty())
    }

    /// What is called `name` as text; known secrets masked.
    ///
    /// # Errors
    /// As [`Self::utf8_of`].
    pub(crate) fn text_of(&self, name: &str, bytes: Vec<u8>) -> Result<String, CommandError> {
        Ok(self.masked(&Self::utf8_of(name, bytes)?))
    }

    /// What is called `name` as text, byte for byte.
    ///
    /// # Errors
    /// `invalid_utf8`.
    pub(crate) fn utf8_of(name: &str, bytes: Vec<u8>) -> Result<String, CommandError> {
        let name = text::terminal::one_line(name);
        String::from_utf8(bytes).map_err(|error| {
            CommandError::new(
                "invalid_utf8",
                2,
                format!("{name} is not UTF-8 text from byte {} on", error.utf8_error().valid_up_to() + 1),
                "convert it to UTF-8, for example with iconv",
            )
        })
    }

    /// Refuses a text that is longer than one paste (spec: scale §4 *draft paste*).
    fn fits_paste(&self, name: &str, bytes: u64) -> Result<(), CommandError> {
        let limit = self.settings.limits.paste;
        if bytes <= limit {
            return Ok(());
        }
        Err(CommandError::new(
            "too_large",
            2,
            format!("{name} is longer than {}", size(limit)),
            "split it and add it piece by piece, or raise limits.paste",
        ))
    }

    /// Refuses what is called `name` if it is too long for one node (spec: scale §4 `node`). A text that `divides`
    /// becomes several nodes, as long as the limit is that of every home: where the owner lowered it, they are asked
    /// to divide it.
    pub(crate) fn fits_node(&self, name: &str, text: &str, divides: bool) -> Result<(), CommandError> {
        let limit = self.settings.limits.node;
        if text.len() as u64 <= limit || (divides && limit == MAX_NODE_BYTES) {
            return Ok(());
        }
        Err(CommandError::new(
            "too_large",
            2,
            format!("{name} is longer than one node holds ({}, limits.node)", size(limit)),
            "divide it, and add it piece by piece",
        ))
    }

    /// Refuses a text that becomes longer than one node holds.
    ///
    /// # Errors
    /// `too_large`.
    pub(crate) fn fits_node_bytes(&self, name: &str, len: u64) -> Result<(), CommandError> {
        let limit = self.settings.limits.node;
        if len <= limit {
            return Ok(());
        }
        let message = format!("{name} is longer than one node holds ({}, limits.node)", size(limit));
        Err(CommandError::new("too_large", 2, message, "leave them apart"))
    }

    /// What a person says to a model, with known secrets masked. What else looks like a secret they are asked about at a
    /// terminal; where nobody is asked it is sent, and that is said (spec: security §11).
    ///
    /// # Errors
    /// When they send neither the text nor marks in its place.
    pub(crate) fn typed(&self, text: &str) -> Result<String, CommandError> {
        let text = self.masked(text);
        let guessed = self.runtime.masker.mask_entering(&text);
        if guessed.spans.is_empty() {
            return Ok(text);
        }
        let names: Vec<&str> = guessed.spans.iter().map(|span| span.name.as_str()).collect();
        let names = names.join(", ");
        if !self.frontend.is_attended() {
            let told =
                format!("the text holds what looks like a secret ({names}): it is sent as it was typed");
            self.frontend.note(&told);
            return Ok(text);
        }
        let question =
            format!("The text holds what looks like a secret ({names}). Send a mark in its place?");
        if self.frontend.confirm(&question).is_yes() {
            return Ok(guessed.text.into_owned());
        }
        if self.frontend.confirm("Send it as it was typed?").is_yes() {
            return Ok(text);
        }
        let hint = "leave the secret out, or answer yes to one of the questions";
        Err(CommandError::refused("not_sent", "the text was not sent", hint))
    }

    /// A text with known secrets masked, whatever it says: `-` is a dash here.
    pub(crate) fn masked(&self, text: &str) -> String {
        let masked = self.runtime.masker.mask(text);
        if !masked.spans.is_empty() {
            self.frontend.note("a known secret was masked in the text");
        }
        masked.text.into_owned()
    }
}

/// A file argument as it is named to a person.
pub(crate) fn argument_name(path: &Path) -> Cow<'_, str> {
    if path == Path::new("-") { "standard input".into() } else { path.to_string_lossy() }
}

/// The path below the folder `workspace` of a home of a folder in it, when neither is there: empty for `workspace`.
pub(crate) fn within_new_workspace(folder: &Path, home: &Path) -> Option<PathBuf> {
    let folder = std::path::absolute(folder).ok()?;
    let there = folder.ancestors().find(|above| above.is_dir())?;
    let within = folder.strip_prefix(there).ok()?.strip_prefix(HomeDir::DefaultWorkspace.name()).ok()?;
    let is_plain = within.components().all(|part| matches!(part, Component::Normal(_)));
    (is_plain && there.canonicalize().ok()? == home.canonicalize().ok()?).then(|| within.to_owned())
}

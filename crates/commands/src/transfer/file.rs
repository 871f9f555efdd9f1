//! Reading a file that arrives: bounded, told by its content, checked record by record.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;

use interop::detect::{ENOUGH, Format, detect};
use interop::own::{Imported, Limits, Materials, ReadError, Reparse, Response, read};
use loom::verify::{Gap, Report, Reread};
use loom::{Block, ModelSource};

use crate::app::App;
use crate::error::CommandError;
use agent::stored;

/// The largest file that is read, in bytes: its tree is held in memory while it is checked.
const MAX_FILE_BYTES: u64 = 1024 * 1024 * 1024;

/// What a file is read from.
pub(super) enum Input {
    /// A plain file.
    File(File),
    /// Standard input.
    Standard(Box<dyn Read + Send>),
}

impl Input {
    /// Opens a plain file, or standard input for `-`.
    pub(super) fn open(app: &App, path: &Path) -> Result<Self, CommandError> {
        if path == Path::new("-") {
            return Ok(Self::Standard(app.frontend.input()));
        }
        let failed = |error: std::io::Error| CommandError::file("cannot read", path, &error);
        // Before it is opened: opening a pipe waits for its writer.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(CommandError::usage(
                format!("{} is not a plain file", shown(path)),
                "name a file, or `-` for standard input",
            ));
        }
        File::open(path).map(Self::File).map_err(failed)
    }

    fn reader(self) -> Box<dyn Read + Send> {
        match self {
            Self::File(file) => Box::new(file),
            Self::Standard(input) => input,
        }
    }
}

fn shown(path: &Path) -> String {
    text::terminal::one_line(&path.to_string_lossy()).into_owned()
}

/// The format a person names.
pub(super) fn named(name: &str) -> Result<Format, CommandError> {
    Format::named(name).ok_or_else(|| {
        let known = Format::ALL.map(Format::name).join(", ");
        CommandError::usage(
            format!("no format {}", text::terminal::one_line(name)),
            format!("the formats that can be read are: {known}"),
        )
    })
}

/// Reads a file. What is wrong within it is in the result; what is no such file is refused.
pub(super) fn read_file(input: Input, path: &Path, format: Option<Format>) -> Result<Imported, CommandError> {
    let failed = |error: std::io::Error| CommandError::file("cannot read", path, &error);
    let mut bounded = input.reader().take(MAX_FILE_BYTES + 1);
    let mut beginning = Vec::new();
    bounded.by_ref().take(ENOUGH as u64).read_to_end(&mut beginning).map_err(failed)?;
    let format = match format {
        Some(format) => format,
        None => detect(&beginning).map_err(|error| {
            CommandError::new(
                "unknown_format",
                2,
                format!("{}: {error}", shown(path)),
                "only drawloom exports can be read so far",
            )
        })?,
    };
    let mut rest = BufReader::with_capacity(1 << 16, bounded);
    let file = {
        let mut whole = Cursor::new(beginning).chain(&mut rest);
        match format {
            Format::Own => own(&mut whole, path)?,
            other => {
                return Err(CommandError::usage(
                    format!("{other} cannot be read here"),
                    "name another format with --as",
                ));
            }
        }
    };
    if rest.get_ref().limit() == 0 {
        return Err(CommandError::new(
            "too_large",
            2,
            format!("{} is larger than {} MiB", shown(path), MAX_FILE_BYTES / 1024 / 1024),
            "restore a backup instead: it has no such bound",
        ));
    }
    Ok(file)
}

fn own(input: &mut dyn BufRead, path: &Path) -> Result<Imported, CommandError> {
    read(input, Limits::default()).map_err(|error| match error {
        ReadError::Io(error) => CommandError::file("cannot read", path, &error),
        ReadError::NotOurs => CommandError::new(
            "unknown_format",
            2,
            format!("{} is no drawloom export: its first line is no header", shown(path)),
            "check that it is the whole file",
        ),
        ReadError::Version(version) => CommandError::new(
            "too_new",
            2,
            format!("{} is of version {version}, which this drawloom does not read", shown(path)),
            "update drawloom",
        ),
    })
}

/// `tree verify --file`: the file by itself; nothing of the store is asked.
pub(crate) fn verify_file(app: &App, path: &Path) -> Result<Report, CommandError> {
    let file = read_file(Input::open(app, path)?, path, None)?;
    Ok(file.verify(&Parser(&file.materials))?)
}

/// Reads responses of a file again, as the store does: with the white space its manifest held back.
pub(super) struct Parser<'a>(pub(super) &'a Materials);

impl Reparse for Parser<'_> {
    fn blocks(&self, source: &ModelSource, response: &Response) -> Result<Vec<Block>, Gap> {
        let manifest = self.0.manifests.get(&source.manifest);
        let manifest = manifest.and_then(|bytes| context::Manifest::from_bytes(bytes).ok());
        let held = manifest.map(|manifest| manifest.held).unwrap_or_default();
        match stored::reread(&response.bytes, &response.metadata, source.choice, &held) {
            Reread::Blocks { blocks, .. } => Ok(blocks),
            Reread::Gap { gap, .. } => Err(gap),
        }
    }
}

//! Reading a file that arrives: bounded, told by its content, checked record by record.

use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;

use interop::detect::{ENOUGH, Format, detect};
use interop::own::{ArchivedResponse, ImportedFile, Materials, ReadError, ReadLimits, ResponseParser, read};
use loom::verify::{Gap, Report, Reread};
use loom::{Block, ModelSource};
use workspace::Accept;

use crate::app::App;
use crate::error::CommandError;
use agent::stored::RereadResponse;

/// The largest file that is read, in bytes: its tree is held in memory while it is checked.
const MAX_FILE_BYTES: u64 = 1024 * 1024 * 1024;

/// What some editors put in front of a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What to do with a text.
const TEXT: &str = "`drawloom tree new --file FILE` makes a tree of a text";

fn shown(path: &Path) -> String {
    text::terminal::one_line(&path.to_string_lossy()).into_owned()
}

/// The format a person names.
pub(super) fn named(name: &str) -> Result<Format, CommandError> {
    Format::named(name).ok_or_else(|| {
        CommandError::usage(
            format!("no format {} can be imported", text::terminal::one_line(name)),
            format!("a Drawloom export is `--as jsonl` (or drawloom); {TEXT}"),
        )
    })
}

/// Reads a file. What is wrong within it is in the result; what is no such file is refused.
pub(super) fn read_file(
    input: impl Read,
    path: &Path,
    format: Option<Format>,
) -> Result<ImportedFile, CommandError> {
    let failed = |error: std::io::Error| CommandError::file("cannot read", path, &error);
    let mut bounded = input.take(MAX_FILE_BYTES + 1);
    let mut beginning = Vec::new();
    bounded.by_ref().take(ENOUGH as u64).read_to_end(&mut beginning).map_err(failed)?;
    if beginning.starts_with(BYTE_ORDER_MARK) {
        beginning.drain(..BYTE_ORDER_MARK.len());
    }
    let format = match format {
        Some(format) => format,
        None => detect(&beginning).map_err(|error| {
            CommandError::new(
                "unknown_format",
                2,
                format!("{}: {error}", shown(path)),
                format!("only Drawloom exports (JSON Lines) can be imported; {TEXT}"),
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
            "restore a backup instead: it has no such limit",
        ));
    }
    Ok(file)
}

fn own(input: &mut dyn BufRead, path: &Path) -> Result<ImportedFile, CommandError> {
    read(input, ReadLimits::default()).map_err(|error| match error {
        ReadError::Io(error) => CommandError::file("cannot read", path, &error),
        ReadError::NotOurs => CommandError::new(
            "unknown_format",
            2,
            format!("{} is not a Drawloom export: its first line is no header", shown(path)),
            "check that it is the whole file",
        ),
        ReadError::Version(version) => CommandError::new(
            "too_new",
            2,
            format!("{} has version {version}, which this Drawloom cannot read", shown(path)),
            "update Drawloom",
        ),
    })
}

/// `tree verify --file`: the file by itself; nothing of the store is asked.
pub(crate) fn verify_file(app: &App, path: &Path) -> Result<Report, CommandError> {
    let file = read_file(app.open_file(path, Accept::RegularOrPipe)?, path, None)?;
    Ok(file.verify(&Parser(&file.materials))?)
}

/// Reads responses of a file again, as the store does: with the white space its manifest held back.
pub(super) struct Parser<'a>(pub(super) &'a Materials);

impl ResponseParser for Parser<'_> {
    fn blocks(&self, source: &ModelSource, response: &ArchivedResponse) -> Result<Vec<Block>, Gap> {
        let manifest = self.0.manifests.get(&source.manifest);
        let manifest = manifest.and_then(|bytes| context::Manifest::from_bytes(bytes).ok());
        let held = manifest.map(|manifest| manifest.held).unwrap_or_default();
        match RereadResponse::of(&response.bytes, &response.metadata, held).choice(source.choice) {
            Reread::Blocks { blocks, .. } => Ok(blocks),
            Reread::Gap { gap, .. } => Err(gap),
        }
    }
}

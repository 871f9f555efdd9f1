//! `skills export`: skills of Drawloom's own as folders for other programs.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use skills::own::OWN;
use text::terminal::one_line;
use workspace::replace_small_file;

use super::{FILE, path_shown};
use crate::app::App;
use crate::args::skills::ExportSkillsArgs;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::skills::SkillsExported;

/// What is there of a file that is to be written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    Same,
    Other,
}

/// `skills export`: all of them, or none where one differs and is not to be replaced.
///
/// # Errors
/// The folder is one of Drawloom's home, a file in it differs (unless `--force`), or one cannot be written.
pub(super) fn export(app: &App, args: &ExportSkillsArgs) -> Result<CommandOutcome, CommandError> {
    let ExportSkillsArgs { folder, force } = args;
    let place = |path: &Path| path.symlink_metadata().is_ok();
    let there = folder.ancestors().find(|above| place(above)).unwrap_or(Path::new("."));
    app.check_output(&there.join(FILE))?;
    let mut files = Vec::new();
    for own in OWN {
        let path = folder.join(own.name).join(FILE);
        if folder.join(own.name).is_symlink() {
            return Err(CommandError::new(
                "exists",
                2,
                format!("{} is a link", one_line(&folder.join(own.name).to_string_lossy())),
                "nothing was written; name another folder",
            ));
        }
        let found = found(&path, own.text.as_bytes()).map_err(failed(&path))?;
        if found == Found::Other && !force {
            return Err(CommandError::new(
                "exists",
                2,
                format!("{} is there with another text", one_line(&path.to_string_lossy())),
                "nothing was written; name another folder, or --force replaces it",
            ));
        }
        files.push((path, own.text, found));
    }
    let mut exported = SkillsExported { folder: path_shown(app, folder), ..SkillsExported::default() };
    for (path, text, found) in files {
        let shown = path_shown(app, &path);
        if found == Found::Same {
            exported.unchanged.push(shown);
            continue;
        }
        write(&path, text).map_err(failed(&path))?;
        exported.written.push(shown);
    }
    Ok(CommandOutcome::SkillsExported(exported))
}

fn found(path: &PathBuf, text: &[u8]) -> io::Result<Found> {
    match path.symlink_metadata() {
        Ok(there) if !there.is_file() || there.len() != text.len() as u64 => Ok(Found::Other),
        Ok(_) => Ok(if fs::read(path)? == text { Found::Same } else { Found::Other }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Nothing),
        Err(error) => Err(error),
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    replace_small_file(path, text.as_bytes())
}

fn failed(path: &Path) -> impl Fn(io::Error) -> CommandError + use<'_> {
    move |error| CommandError::file("cannot write", path, &error)
}

//! Backup of a home.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use store::home::HomeDir;

use super::archive::{self, Contents};
use super::backups::{BackupMade, remember};
use super::leftovers::{Copying, backup_copy};
use super::missing_blobs;
use crate::app::App;
use crate::args::maintenance::BackupArgs;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::maintenance::BackedUp;
use crate::rights::Asker;

/// `backup`: the store by SQLite's backup interface, blobs and configuration; never keys.
pub(crate) async fn backup(
    app: &App,
    asker: &Asker,
    args: BackupArgs,
) -> Result<CommandOutcome, CommandError> {
    if args.every.is_some() || args.keep.is_some() {
        return Err(CommandError::new(
            "needs_service",
            2,
            "a repeated backup needs a program that keeps running, and this version has none",
            "let cron or a systemd timer call `drawloom backup -o FILE`",
        ));
    }
    let now = app.now();
    let target = args.output.unwrap_or_else(|| PathBuf::from(format!("drawloom-{}.backup", date(now.0))));
    app.check_output(&target)?;
    let failed = |error: std::io::Error| CommandError::file("cannot write", &target, &error);
    // The copy of the store is made inside the home, where there is a place of the right mode for it.
    let _copying = Copying::begin(&app.runtime.home).map_err(failed)?;
    let copy = backup_copy(&app.runtime.home, now.0);
    let made = app.runtime.store.backup(&asker.principal, &copy).await;
    let shown = super::shown_blobs(&app.runtime.store, &asker.principal).await;
    let result = (|| {
        let made = made?;
        let mut files = vec![("loom.db".to_owned(), copy.clone())];
        let config = app.runtime.home.config();
        if config.is_file() {
            files.push(("config.toml".to_owned(), config));
        }
        let problems = missing_blobs(&app.runtime.home.root().join(HomeDir::Blobs.name()), &shown?);
        let blobs =
            app.runtime.home.dir(HomeDir::Blobs).map_err(|error| failed(std::io::Error::other(error)))?;
        collect(&blobs, Path::new("blobs"), &mut files).map_err(failed)?;
        let mut contents = Contents {
            format: "drawloom-backup".to_owned(),
            version: archive::VERSION,
            store: made.identity.store.to_string(),
            seq: made.identity.cursor.0,
            at: now.0,
            files: Default::default(),
        };
        for (name, path) in &files {
            contents.files.insert(name.clone(), archive::digest(path).map_err(failed)?);
        }
        let mut options = File::options();
        let out = options.write(true).create_new(true).mode(0o600).open(&target);
        let out = out.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                CommandError::usage(format!("{} exists", target.display()), "name another file with -o")
            }
            _ => failed(error),
        })?;
        let written = archive::write(out, &contents, &files)
            .and_then(|()| archive::keep_name(&target))
            .and_then(|()| std::fs::metadata(&target));
        let bytes = match written {
            Ok(written) => written.len(),
            Err(error) => {
                // Half a backup is none, and its name is wanted for the next.
                let _ = std::fs::remove_file(&target);
                return Err(failed(error));
            }
        };
        Ok(BackedUp { file: target.to_string_lossy().into_owned(), bytes, seq: contents.seq, problems })
    })();
    // The copy goes in every case; a backup that failed leaves none either.
    if let Err(error) = std::fs::remove_file(&copy)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        app.frontend.note(&format!("{} could not be removed: {error}", copy.display()));
    }
    let made = result?;
    let file = std::path::absolute(&target).unwrap_or(target);
    let remembered = remember(app.runtime.home.root(), BackupMade::new(now.0, file, made.bytes, made.seq));
    if let Err(error) = remembered {
        app.frontend.note(&format!("the backup is complete, but the home could not note it: {error}"));
    }
    Ok(CommandOutcome::BackedUp(made))
}

/// A moment as part of a file's name, by UTC.
fn date(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms)
        .map_or_else(|_| ms.to_string(), |at| at.strftime("%Y-%m-%d-%H%M%S").to_string())
}

/// The plain files below a folder, by their names in the home.
fn collect(dir: &Path, name: &Path, files: &mut Vec<(String, PathBuf)>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let inside = name.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), &inside, files)?;
        } else if kind.is_file() {
            files.push((inside.to_string_lossy().into_owned(), entry.path()));
        }
    }
    Ok(())
}

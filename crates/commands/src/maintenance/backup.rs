//! Backup of a home.

use std::path::{Path, PathBuf};

use store::StoreError;
use store::home::{CONFIG, DATABASE, Home, HomeDir, Scratch, UnfinishedFile, store_log};

use super::archive::{self, Contents};
use super::backups::{BackupMade, remember};
use super::leftovers::Copying;
use super::missing_blobs;
use crate::app::App;
use crate::args::maintenance::BackupArgs;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::maintenance::BackedUp;
use crate::rights::Asker;
use crate::transfer::TemporaryFile;

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
    if target == Path::new("-") {
        return Err(CommandError::usage("a backup is not written to standard output", "name a file with -o"));
    }
    let failed = |error: std::io::Error| CommandError::file("cannot write", &target, &error);
    let part = TemporaryFile::open(app, &target, |_| false)?;
    let home = &app.runtime.home;
    // The copy of the store is made inside the home, where there is a place of the right mode for it, if it can be.
    let private = Scratch::default();
    let place = home.place_of_copies(size_of_store(home), &private)?;
    // Nobody sweeps private folders that are in use.
    let is_in_home = place == home.root();
    let _copying = is_in_home.then(|| Copying::begin(home)).transpose().map_err(failed)?;
    let copy = StoreCopy(place.join(UnfinishedFile::BackupCopy.new_name()?));
    let made = app.runtime.store.backup(&asker.principal, &copy.0).await?;
    let shown = super::shown_blobs(&app.runtime.store, &asker.principal).await?;
    let problems = missing_blobs(home.root().join(HomeDir::Blobs.name()), shown).await?;
    let mut contents = Contents {
        format: "drawloom-backup".to_owned(),
        version: archive::VERSION,
        store: made.identity.store.to_string(),
        seq: made.identity.cursor.0,
        at: now.0,
        files: Default::default(),
    };
    let seq = contents.seq;
    let blobs = home.dir(HomeDir::Blobs).map_err(|error| failed(std::io::Error::other(error)))?;
    let (store, config) = (copy.0.clone(), home.config());
    let out = part.descriptor().map_err(failed)?;
    // On a thread of its own: Ctrl-C drops what waits here, and with it go the part and the copy.
    let packed = tokio::task::spawn_blocking(move || {
        let mut files = vec![(DATABASE.to_owned(), store)];
        if config.is_file() {
            files.push((CONFIG.to_owned(), config));
        }
        collect(&blobs, Path::new("blobs"), &mut files)?;
        for (name, path) in &files {
            contents.files.insert(name.clone(), archive::digest(path)?);
        }
        let size = out.try_clone()?;
        archive::write(out, &contents, &files)?;
        Ok(size.metadata()?.len())
    });
    let bytes = packed.await.map_err(|_| StoreError::Closed)?.map_err(failed)?;
    part.finish().await?;
    let file = target.to_string_lossy().into_owned();
    let absolute = std::path::absolute(&target).unwrap_or(target);
    if home.scratch().is_some() {
        // Nobody could bring them into the store.
        app.frontend.note(&match home.unstored_answers() {
            0 => "the backup is complete, but a home that is only read does not note it".to_owned(),
            lacking => {
                let spool = HomeDir::Spool.name();
                format!("the backup lacks answers that are under way or were cut off: {lacking} in {spool}")
            }
        });
    } else if let Err(error) = remember(home, BackupMade::new(now.0, absolute, bytes, seq)) {
        app.frontend.note(&format!("the backup is complete, but the home could not note it: {error}"));
    }
    Ok(CommandOutcome::BackedUp(BackedUp { file, bytes, seq, problems }))
}

/// Size of the store with its log, of which a copy has both; in bytes.
fn size_of_store(home: &Home) -> u64 {
    let database = home.database();
    let size = |path: &Path| path.metadata().map_or(0, |found| found.len());
    size(&database) + size(&store_log(&database))
}

/// The copy of the store that a backup is made of; removed when dropped.
struct StoreCopy(PathBuf);

impl Drop for StoreCopy {
    fn drop(&mut self) {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(file = %self.0.display(), %error, "the copy of the store could not be removed");
            }
            _ => {}
        }
    }
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

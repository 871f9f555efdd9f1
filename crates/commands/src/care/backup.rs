//! Backup and restore of a home.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::home::{Home, HomeDir, HomeOptions};
use store::{SqliteStore, Store, TreeFilter};

use super::archive::{self, ArchiveError, Contents};
use crate::app::App;
use crate::args::care::{Backup, Restore};
use crate::error::CommandError;
use crate::results::Outcome;
use crate::results::care::{BackedUp, Restored};
use crate::rights::Asker;

/// `backup`: the store by SQLite's backup interface, blobs and configuration; never keys.
pub(crate) async fn backup(app: &App, asker: &Asker, args: Backup) -> Result<Outcome, CommandError> {
    let now = app.now();
    let target = args.output.unwrap_or_else(|| PathBuf::from(format!("drawloom-{}.backup", now.0)));
    let failed = |error: std::io::Error| CommandError::file("cannot write", &target, &error);
    // The copy of the store is made inside the home, where there is a place of the right mode for it.
    let copy = app.home.root().join(format!(".backup-{}.db", now.0));
    let made = app.store.backup(&asker.principal, &copy).await;
    let result = (|| {
        let made = made?;
        let mut files = vec![("loom.db".to_owned(), copy.clone())];
        let config = app.home.config();
        if config.is_file() {
            files.push(("config.toml".to_owned(), config));
        }
        let blobs = app.home.dir(HomeDir::Blobs).map_err(|error| failed(std::io::Error::other(error)))?;
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
        archive::write(out, &contents, &files).and_then(|()| archive::keep_name(&target)).map_err(failed)?;
        let bytes = std::fs::metadata(&target).map_err(failed)?.len();
        Ok(BackedUp { file: target.to_string_lossy().into_owned(), bytes, seq: contents.seq })
    })();
    // The copy goes in every case; a backup that failed leaves none either.
    if let Err(error) = std::fs::remove_file(&copy)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        app.talk.note(&format!("{} could not be removed: {error}", copy.display()));
    }
    result.map(Outcome::BackedUp)
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

/// `restore`: into an empty home, verified, with a store id of its own.
pub(crate) async fn restore(app: &App, asker: &Asker, args: Restore) -> Result<Outcome, CommandError> {
    let Some(to) = args.to else {
        return Err(CommandError::usage(
            "a backup is restored into a home of its own",
            "name an empty folder with --to DIR, then use it with --home DIR",
        ));
    };
    let file =
        File::open(&args.file).map_err(|error| CommandError::file("cannot read", &args.file, &error))?;
    let empty = match std::fs::read_dir(&to) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if !empty {
        return Err(CommandError::usage(
            format!("{} is not empty", to.display()),
            "restore into an empty or missing folder",
        ));
    }
    let opened = |error: &dyn std::fmt::Display| {
        CommandError::new(
            "restore",
            6,
            format!("the restored home cannot be opened: {error}"),
            "use another backup",
        )
    };
    // Made like any home, so that the names that lead to it are kept.
    Home::open(&to, HomeOptions::default()).map_err(|error| opened(&error))?;
    archive::unpack(file, &to).map_err(|error| {
        let exit = if matches!(error, ArchiveError::Damaged(_)) { 6 } else { 2 };
        let name = args.file.display();
        CommandError::new("backup", exit, format!("{name} was not restored: {error}"), "use another backup")
    })?;
    let home = Home::open(&to, HomeOptions::default()).map_err(|error| opened(&error))?;
    let store = SqliteStore::open(&home.database()).map_err(|error| opened(&error))?;
    let store: Arc<dyn Store> = Arc::new(store);
    // What was running when the backup was made is fenced: this is another store from now on.
    store.renew_identity(&asker.principal).await?;
    let mut problems = store.check(&asker.principal).await?;
    let trees = store.trees(&asker.principal, TreeFilter::All).await?;
    for tree in &trees {
        let report = crate::verify::report(store.as_ref(), &asker.principal, tree.id).await?;
        for problem in report.problems.iter().filter(|problem| problem.gap.is_none()) {
            problems.push(format!("tree {}: {}", tree.short_id, problem.why));
        }
    }
    app.talk.note(&format!("trees restored: {}; use them with --home {}", trees.len(), to.display()));
    Ok(Outcome::Restored(Restored {
        home: to.to_string_lossy().into_owned(),
        verified: problems.is_empty(),
        trees: trees.len() as u64,
        problems,
    }))
}

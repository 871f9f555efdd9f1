//! The last `config.toml` in which nothing was wrong: it holds for commands that read while the file is broken (spec: cli
//! §5). It is in `cache`, as it can be missed.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::file::{self, CONFIG, ParsedFile, SecretRule};

fn place(home: &Path) -> PathBuf {
    home.join("cache").join(CONFIG)
}

/// The settings that held last; none where none were kept.
pub(super) fn read(home: &Path) -> Option<ParsedFile> {
    let text = file::text_of(&place(home), SecretRule::Refused).ok().flatten()?;
    let kept = file::parse(CONFIG, &text, SecretRule::Refused);
    (!kept.is_broken).then_some(kept)
}

/// Keeps the file as it stands, if nothing is wrong in it. What cannot be kept is missed only once the file is broken.
pub(crate) fn keep(home: &Path) {
    let Ok(Some(text)) = file::text_of(&home.join(CONFIG), SecretRule::Refused) else { return };
    let place = place(home);
    let is_kept = file::text_of(&place, SecretRule::Refused).is_ok_and(|kept| kept.as_ref() == Some(&text));
    if is_kept || !file::parse(CONFIG, &text, SecretRule::Refused).problems.is_empty() {
        return;
    }
    let write = || -> std::io::Result<()> {
        let folder = place.parent().unwrap_or(home);
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.persist(&place)?;
        Ok(())
    };
    if let Err(error) = write() {
        tracing::debug!(%error, "the settings were not kept");
    }
}

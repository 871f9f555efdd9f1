//! The last `config.toml` in which nothing was wrong: it holds for commands that read while the file is broken, and for a
//! key whose value does not fit (spec: cli §5). It is in `cache`, as it can be missed.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::file::{self, CONFIG, ParsedFile, SecretRule};
use super::policy::holds_rules;

fn place(home: &Path) -> PathBuf {
    home.join("cache").join(CONFIG)
}

/// Puts the settings that held last in the place of those that are refused: of all of a broken file, else of each key
/// whose value does not fit, but for rules, of which some are no half of all.
pub(super) fn fill(home: &Path, config: &mut ParsedFile) {
    let Some(mut kept) = read(home) else { return };
    let is_broken = config.is_broken;
    for problem in &mut config.problems {
        let key = problem.key.as_deref().filter(|key| !holds_rules(key)).unwrap_or_default();
        // A table may stand in the place of a value.
        let is_it = |known: &str| {
            key.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let before = kept.values.iter().position(|(known, _)| is_it(known));
        if let Some(before) = before {
            config.values.push(kept.values.swap_remove(before));
        }
        if is_broken || before.is_some() {
            problem.what += "; what it said before holds for commands that read";
        }
    }
    if is_broken {
        config.values = kept.values;
    }
}

/// The settings that held last; none where none were kept.
fn read(home: &Path) -> Option<ParsedFile> {
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
        // The first command of a home finds none.
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        workspace::replace_small_file(&place, text.as_bytes())
    };
    if let Err(error) = write() {
        tracing::debug!(%error, "the settings were not kept");
    }
}

//! `cards check`: files of cards by all rules, whoever trusts them.

use std::path::Path;

use capabilities::{CardFile, CardFolder, CardSource, LoadingRules, MAX_BYTES, Registry};
use text::finding::Finding;
use workspace::{Accept, RelativePath, Root, RootAccess};

use super::within_reach::CardFolders;
use crate::app::App;
use crate::args::cards::CardsCheckArgs;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::cards::CardsChecked;
use crate::results::checks::TextProblem;
use crate::rights::Asker;
use crate::skills::path_shown;

/// `cards check`.
///
/// # Errors
/// What was named cannot be read, or holds no card.
pub(super) async fn check(
    app: &App,
    asker: &Asker,
    args: &CardsCheckArgs,
) -> Result<CommandOutcome, CommandError> {
    let mut checked = CardsChecked { ok: true, cards: 0, problems: Vec::new() };
    match &args.path {
        Some(path) if !path.is_dir() => checked.file(app, path)?,
        Some(path) => checked.folder(app, path)?,
        None => checked.all(app, asker).await?,
    }
    checked.ok = !checked.problems.iter().any(TextProblem::is_error);
    Ok(CommandOutcome::CardsChecked(checked))
}

impl CardsChecked {
    fn file(&mut self, app: &App, path: &Path) -> Result<(), CommandError> {
        let bytes = app.file_bytes(path, Accept::Regular)?;
        let mut findings = CardFile::read(&bytes, CardSource::Repo).findings;
        if bytes.len() as u64 > MAX_BYTES {
            findings.push(Finding::error("too_large", format!("it is larger than {MAX_BYTES} bytes")));
        }
        self.cards += 1;
        self.add(app, path, &findings);
        Ok(())
    }

    fn folder(&mut self, app: &App, path: &Path) -> Result<(), CommandError> {
        let root = Root::open(path, &app.guard).map_err(|error| CommandError::file_argument(&error))?;
        let root = root.as_further(RootAccess::ReadOnly);
        let folder = CardFolder { source: CardSource::Repo, root: &root, folder: RelativePath::root() };
        self.take(app, &Registry::read(&[folder], &LoadingRules { refuses: &|_| None }));
        if self.cards == 0 && self.problems.is_empty() {
            let name = path.to_string_lossy();
            return Err(CommandError::not_found(
                "card in",
                &name,
                "name a folder with cards, as docs/capabilities",
            ));
        }
        Ok(())
    }

    async fn all(&mut self, app: &App, asker: &Asker) -> Result<(), CommandError> {
        let CardFolders { folders, unopened } = CardFolders::of(app, asker).await?;
        for folder in &folders {
            self.take(app, &folder.checked());
            let number = folder.files().0.len();
            if let Some(why) = folder.why_not.as_ref().filter(|_| number > 0) {
                let cards = if number == 1 { "1 card".to_owned() } else { format!("{number} cards") };
                let path = path_shown(app, &folder.path());
                app.frontend.note(&format!("{cards} in {path} not read outside of this check: {why}"));
            }
        }
        for place in unopened {
            self.add(app, &place.path, &[Finding::warning("not_looked_at", place.why)]);
        }
        Ok(())
    }

    fn take(&mut self, app: &App, registry: &Registry) {
        self.cards += registry.checked.len();
        for card in &registry.checked {
            self.add(app, &card.path, &card.findings);
        }
        for place in &registry.places {
            self.add(app, &place.path, &[Finding::error("not_looked_at", place.why.clone())]);
        }
    }

    fn add(&mut self, app: &App, path: &Path, findings: &[Finding]) {
        let (file, masker) = (path_shown(app, path), &app.runtime.masker);
        self.problems.extend(findings.iter().map(|finding| TextProblem::new(&file, finding, masker)));
    }
}

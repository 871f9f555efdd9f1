//! Cards as strangers write them: what is read of each, which files are opened, what is selected and in which text.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "capabilities/files.rs"]
mod files;
#[path = "capabilities/laws.rs"]
mod laws;
#[path = "capabilities/reading.rs"]
mod reading;
#[path = "capabilities/routing.rs"]
mod routing;
#[path = "capabilities/selecting.rs"]
mod selecting;
#[path = "capabilities/texts.rs"]
mod texts;

use drawloom_capabilities::{Card, CardFile, CardSource};

/// A body of a length that is advised.
const BODY: &str = "The tool `deploy_preview` builds the site of a branch and gives back its address. It takes the name of the \
    branch; without one it takes the current branch. A preview lives for a week. It is not for releases: those are made \
    by the owner alone, as RELEASING.md says.";

/// A file with this frontmatter and body.
fn text(frontmatter: &str, body: &str) -> String {
    format!("---\n{frontmatter}\n---\n\n{body}\n")
}

/// A file of this id and keyword with [`BODY`].
fn file(id: &str, keyword: &str) -> String {
    text(&format!("capability_id: {id}\ntriggers:\n  keywords: [\"{keyword}\"]"), BODY)
}

fn read(text: &str) -> CardFile {
    CardFile::read(text.as_bytes(), CardSource::Repo)
}

fn card(text: &str) -> Card {
    let file = read(text);
    file.card.unwrap_or_else(|| panic!("{:?}", file.findings))
}

/// Line, code and whether it is an error, of each finding.
fn found(text: &str) -> Vec<(Option<usize>, &'static str, bool)> {
    read(text).findings.iter().map(|found| (found.line, found.code, found.is_error())).collect()
}

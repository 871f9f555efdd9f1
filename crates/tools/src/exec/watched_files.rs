//! The files that a line of a shell names: those that a question is about as much as the line.

use std::path::Path;

use loom::Digest;
use policy::CommandFacts;
use workspace::{ReadRules, RelativePath, Root};

/// Bytes of a file that is looked at.
const MAX_BYTES: u64 = 10 << 20;
/// Names of a line that are looked at.
const MAX_NAMES: usize = 256;

/// A digest over the files beneath a root that a line names: another one means that the line would do something else.
/// It blocks.
pub(crate) fn watched(root: &Root, command: &CommandFacts) -> Digest {
    let separates = |c: char| c.is_whitespace() || "|&;<>()$`\"'\\=".contains(c);
    let mut known = String::new();
    for name in command.line.split(separates).filter(|name| !name.is_empty()).take(MAX_NAMES) {
        let Some(path) = below(root, command.directory.as_path(), name) else { continue };
        let said = match root.read(&path, &ReadRules::at_most(MAX_BYTES).follow_links()) {
            Ok(content) => content.digest().to_string(),
            Err(_) => "nothing".to_owned(),
        };
        known += &format!("{path}\0{said}\n");
    }
    Digest::of(known.as_bytes())
}

/// A name as a path below the root, where it may be one.
fn below(root: &Root, directory: &Path, name: &str) -> Option<RelativePath> {
    let whole = root.path().join(directory).join(name);
    root.relative(&whole).ok().filter(|path| !path.is_root())
}

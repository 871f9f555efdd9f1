//! Input lines of conversations, kept in `cache/history` of the home: what is forgotten goes from them too.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use store::home::Home;
use text::mask::TextFinder;

/// How a line break within an input is written in the file.
const LINE_BREAK: &str = "<\\n>";

/// What is looked for in input lines.
pub(super) enum Sought {
    /// A text, in any form.
    Text(Box<TextFinder>),
    /// A text that is the whole input: it is too short to be looked for within others.
    Whole(String),
}

impl Sought {
    /// A text of a node.
    pub(super) fn of_node(text: &str) -> Self {
        if text.len() < store::SHORTEST_TEXT { Self::Whole(text.to_owned()) } else { Self::text(text) }
    }

    pub(super) fn text(text: &str) -> Self {
        let mut finder = TextFinder::default();
        finder.add(text);
        Self::Text(Box::new(finder))
    }

    fn is_in(&self, input: &str) -> bool {
        match self {
            Self::Text(finder) => finder.occurs_in(input.as_bytes()),
            Self::Whole(text) => input == text && !text.is_empty(),
        }
    }
}

/// Number of inputs that hold it.
pub(super) fn count(home: &Home, sought: &Sought) -> io::Result<u64> {
    let Some((_, lines)) = read(home)? else { return Ok(0) };
    Ok(lines.iter().filter(|line| sought.is_in(&line.replace(LINE_BREAK, "\n"))).count() as u64)
}

/// Removes the inputs that hold it. Returns how many there were.
///
/// # Errors
/// When the file cannot be written; it is as it was, or whole without them.
pub(super) fn remove(home: &Home, sought: &Sought) -> io::Result<u64> {
    let Some((path, lines)) = read(home)? else { return Ok(0) };
    let stays = |line: &&String| !sought.is_in(&line.replace(LINE_BREAK, "\n"));
    let left: Vec<&String> = lines.iter().filter(stays).collect();
    let gone = (lines.len() - left.len()) as u64;
    if gone > 0 {
        let old = fs::OpenOptions::new().write(true).open(&path)?;
        let new = path.with_extension("new");
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        for line in left {
            writeln!(file, "{line}")?;
        }
        file.sync_all()?;
        fs::rename(&new, &path)?;
        overwrite(old)?;
    }
    Ok(gone)
}

/// Overwrites a file that has no name any more.
fn overwrite(mut file: fs::File) -> io::Result<()> {
    let length = usize::try_from(file.metadata()?.len()).unwrap_or_default();
    file.write_all(&vec![0; length])?;
    file.sync_all()
}

/// The file with its lines; none where there is no plain file.
fn read(home: &Home) -> io::Result<Option<(PathBuf, Vec<String>)>> {
    let path = home.root().join(Path::new("cache/history"));
    if !path.symlink_metadata().is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
    Ok(Some((path, text.lines().map(str::to_owned).collect())))
}

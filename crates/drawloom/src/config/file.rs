//! Reading one file of settings into keys and values, with everything that is wrong in it.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use commands::CommandError;
pub(crate) use store::home::{CONFIG, KEYS};
use text::terminal::one_line;
use toml::{Table, Value};

use super::{fitting, keys};

/// A longer file is not read, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Whether a value is an empty text, which is no value, of whatever kind its key is.
pub(crate) fn is_absent(value: &Value) -> bool {
    value.as_str() == Some("")
}

/// Something that is wrong in a file or the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Where: a file or a variable.
    pub(crate) place: String,
    /// Key whose value it is about, if it is about one.
    pub(crate) key: Option<String>,
    pub(crate) what: String,
    pub(crate) hint: String,
    /// Whether a command that writes or asks a model is refused; what blocks none is refused itself.
    pub(crate) blocks: bool,
}

impl Problem {
    /// As the error of a command that cannot go on.
    pub(crate) fn error(&self) -> CommandError {
        CommandError::new("config", 2, one_line(&format!("{}: {}", self.place, self.what)), &*self.hint)
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.what)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, ": {}", self.hint) }
    }
}

/// Which of the two files: each holds only its own kind of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretRule {
    Refused,
    Only,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ParsedFile {
    /// Known keys with values that fit.
    pub(crate) values: Vec<(String, Value)>,
    /// Secrets that others may have read: they are masked, and never used.
    pub(crate) loose: Vec<(String, Value)>,
    pub(crate) problems: Vec<Problem>,
    /// Whether the file could not be read at all.
    pub(crate) is_broken: bool,
}

/// Reads a file; one that is not there holds nothing.
pub(crate) fn read(path: &Path, secrets: SecretRule) -> ParsedFile {
    let place = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let refused = |(what, hint): Refused, blocks| Problem {
        place: place.clone(),
        key: None,
        what,
        hint: hint.to_owned(),
        blocks,
    };
    match opened(path) {
        Ok(None) => ParsedFile::default(),
        Ok(Some((file, mode))) => {
            let parsed = text(file).map(|text| parse(&place, &text, secrets));
            let parsed = parsed.unwrap_or_else(|why| ParsedFile::broken(refused(why, true)));
            match loose(mode).filter(|_| secrets == SecretRule::Only) {
                None => parsed,
                Some(why) => {
                    let problems = std::iter::once(refused(why, false)).chain(parsed.problems).collect();
                    ParsedFile { values: Vec::new(), loose: parsed.values, problems, is_broken: true }
                }
            }
        }
        Err(why) => ParsedFile::broken(refused(why, true)),
    }
}

impl ParsedFile {
    fn broken(problem: Problem) -> Self {
        Self { problems: vec![problem], is_broken: true, ..Self::default() }
    }
}

type Refused = (String, &'static str);

/// The text of a file of settings, if it is there.
pub(crate) fn text_of(path: &Path, secrets: SecretRule) -> Result<Option<String>, Refused> {
    let Some((file, mode)) = opened(path)? else { return Ok(None) };
    match loose(mode).filter(|_| secrets == SecretRule::Only) {
        None => text(file).map(Some),
        Some(why) => Err(why),
    }
}

/// Why keys in a file of this mode are not used, if they are not.
fn loose(mode: u32) -> Option<Refused> {
    let what = || format!("others may read it (mode {:04o}), so that no key in it is used", mode & 0o7777);
    (mode & 0o077 != 0).then(|| (what(), "run `chmod 600` on it, and consider new keys"))
}

/// A file of settings with its mode, if it is there.
fn opened(path: &Path) -> Result<Option<(File, u32)>, Refused> {
    let unreadable = |error: std::io::Error| (format!("it cannot be read: {error}"), "check its permissions");
    // Without blocking, so that a pipe in its place does not stop every command.
    let file = OpenOptions::new().read(true).custom_flags(nonblocking()).open(path);
    let file = match file {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return match path.symlink_metadata() {
                Ok(_) => Err(("it is a link that leads nowhere".to_owned(), "mend it or move it away")),
                Err(_) => Ok(None),
            };
        }
        Err(error) => return Err(unreadable(error)),
    };
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "it is a folder" } else { "it is not a plain file" };
        return Err((what.to_owned(), "move it away"));
    }
    Ok(Some((file, metadata.mode())))
}

fn nonblocking() -> i32 {
    i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0)
}

fn text(file: File) -> Result<String, Refused> {
    let mut bytes = Vec::new();
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| (format!("it cannot be read: {error}"), "check the disk"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(("it is longer than 1 MiB".to_owned(), "a file of settings is shorter"));
    }
    String::from_utf8(bytes).map_err(|_| ("it is not UTF-8 text".to_owned(), "save it as UTF-8"))
}

/// Reads the text of a file.
pub(crate) fn parse(place: &str, text: &str, secrets: SecretRule) -> ParsedFile {
    let problem =
        |key, what: String, hint: String| Problem { place: place.to_owned(), key, what, hint, blocks: true };
    let mut held = ParsedFile::default();
    let table: Table = match text.parse() {
        Ok(table) => table,
        Err(error) => {
            let hint = "correct it; nothing was written to it".to_owned();
            held.problems.push(problem(None, broken(text, &error), hint));
            held.is_broken = true;
            return held;
        }
    };
    let mut leaves = Vec::new();
    flatten("", table, &mut leaves);
    for (path, value) in leaves {
        match judge(&path, &value, secrets) {
            Ok(()) => held.values.push((path, value)),
            // A section has one problem, and not one a key.
            Err((what, _)) if held.problems.iter().any(|other| other.what == what) => {}
            Err((what, hint)) => held.problems.push(problem(Some(path), what, hint)),
        }
    }
    held
}

fn broken(text: &str, error: &toml::de::Error) -> String {
    let line =
        error.span().and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count() + 1);
    let message = one_line(error.message()).into_owned();
    line.map_or_else(|| message.clone(), |line| format!("line {line}: {message}"))
}

fn flatten(prefix: &str, table: Table, leaves: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        let key = super::path::join(&[key]);
        let path = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
        match value {
            Value::Table(inner) => flatten(&path, inner, leaves),
            value => leaves.push((path, value)),
        }
    }
}

fn judge(path: &str, value: &Value, secrets: SecretRule) -> Result<(), (String, String)> {
    let shown = one_line(path);
    let Some(key) = keys::find(path) else {
        return Err((format!("unknown key {shown}"), keys::hint_for_unknown(&shown)));
    };
    match (key.secret, secrets) {
        (true, SecretRule::Refused) => {
            return Err((format!("{shown} is a secret"), format!("move it to {KEYS}")));
        }
        (false, SecretRule::Only) => {
            return Err((format!("{shown} is not a secret"), format!("move it to {CONFIG}")));
        }
        _ => {}
    }
    if is_absent(value) {
        return Ok(());
    }
    fitting::check(path, key, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        parse(CONFIG, text, SecretRule::Refused).problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn known_keys_are_read_and_others_named() {
        let text = "[model]\ndefault = \"a/b\"\ndefualt = \"c\"\n[log]\nlevel = \"loud\"\n";
        let held = parse(CONFIG, text, SecretRule::Refused);
        assert_eq!(held.values, [("model.default".to_owned(), Value::String("a/b".into()))]);
        assert_eq!(
            problems(text),
            [
                "config.toml: log.level does not fit: it takes one of error, warn, info, debug, trace",
                "config.toml: unknown key model.defualt: did you mean model.default?",
            ]
        );
    }

    #[test]
    fn a_broken_file_is_named_with_its_line() {
        let found = problems("[model]\ndefault = \n");
        assert!(found[0].starts_with("config.toml: line 2: "), "{found:?}");
    }

    #[test]
    fn a_secret_has_one_place_and_is_never_repeated() {
        let text = "[providers.x]\nkey = \"canary-canary\"\n";
        assert!(!problems(text)[0].contains("canary"));
        assert!(problems(text)[0].ends_with("move it to keys.toml"));
        assert_eq!(parse(KEYS, text, SecretRule::Only).problems, []);
        assert_eq!(parse(KEYS, "[log]\nlevel = \"warn\"", SecretRule::Only).problems.len(), 1);
    }

    #[test]
    fn a_key_cannot_write_to_the_terminal() {
        let found = problems("\"a\\u001b[2J\" = 1");
        assert!(found[0].contains(r#""a\u001B[2J""#) && !found[0].contains(char::is_control), "{found:?}");
    }
}

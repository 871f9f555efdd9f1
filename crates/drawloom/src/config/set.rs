//! `config set` and `config unset`: one key changes, comments and order stay, and a file that is broken is never touched.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use commands::CommandError;
use store::home::{RANDOM_CHARS, UNFINISHED_CONFIG};
use text::terminal::one_line;
use toml_edit::{DocumentMut, Item, RawString, Table, Value};

use super::file::{self, CONFIG, KEYS, SecretRule};
use super::fitting;
use super::keys::{self, Key};
use super::path::{normal, segments};

/// Sets a key to what was written on the command line, and returns what is wrong in the rest of the file.
///
/// # Errors
/// An unknown key, a value that does not fit, a file that is broken or cannot be written. Nothing was written.
pub(crate) fn set(home: &Path, path: &str, written: &str) -> Result<Vec<file::Problem>, CommandError> {
    let path = &*normal(path);
    let key = keys::find(path).ok_or_else(|| unknown(path))?;
    let value = fitting::read(path, key, written).map_err(|(what, hint)| CommandError::usage(what, hint))?;
    change(home, (path, key), Some(&value))
}

/// Whether there is a section that has a name of its own, with whatever stands in it, and the names of its secrets. Nothing is
/// written.
///
/// # Errors
/// As [`set`], where one of both files cannot be changed.
pub(crate) fn section(home: &Path, section: &str) -> Result<(bool, Vec<String>), CommandError> {
    let secrets = rewrite(home, (KEYS, SecretRule::Only), |old| {
        is_in(KEYS, old, section)?;
        Ok((old.to_owned(), below(section, KEYS, old, SecretRule::Only)))
    })?;
    let is_there = rewrite(home, (CONFIG, SecretRule::Refused), |old| {
        Ok((old.to_owned(), is_in(CONFIG, old, section)?))
    })?;
    Ok((is_there, secrets))
}

/// Keys of a section in a text, without its name.
fn below(section: &str, name: &str, text: &str, secrets: SecretRule) -> Vec<String> {
    let own = |(key, _): (String, _)| Some(key.strip_prefix(section)?.strip_prefix('.')?.to_owned());
    file::parse(name, text, secrets).values.into_iter().filter_map(own).collect()
}

fn is_in(name: &str, text: &str, section: &str) -> Result<bool, CommandError> {
    Ok(without(name, text, section)? != document(name, text)?.to_string())
}

/// Adds a section that has a name of its own, with these keys and values.
///
/// # Errors
/// It is there already; as [`set`]. Nothing was written.
pub(crate) fn add_section(
    home: &Path,
    section: &str,
    settings: &[(String, String)],
    if_there: &str,
) -> Result<(), CommandError> {
    rewrite(home, (CONFIG, SecretRule::Refused), |old| {
        if is_in(CONFIG, old, section)? {
            return Err(CommandError::refused("exists", format!("[{section}] is there already"), if_there));
        }
        let mut new = old.to_owned();
        for (path, written) in settings {
            let key = keys::find(path).ok_or_else(|| unknown(path))?;
            let value = fitting::read(path, key, written);
            let value = value.map_err(|(what, hint)| CommandError::usage(what, hint))?;
            new = changed(CONFIG, &new, path, &value)?;
        }
        Ok((new, ()))
    })
}

/// Takes a key out of the file, and returns what is wrong in the rest of it. One that is not there is no error.
///
/// # Errors
/// As [`set`].
pub(crate) fn unset(home: &Path, path: &str) -> Result<Vec<file::Problem>, CommandError> {
    let path = &*normal(path);
    let key = keys::find(path).ok_or_else(|| unknown(path))?;
    change(home, (path, key), None)
}

/// Takes a key that there is not out of `config.toml`, where it keeps every command from writing. Returns what is wrong in
/// the rest of the file.
///
/// # Errors
/// The key is not there either; as [`set`].
pub(crate) fn unset_unknown(home: &Path, path: &str) -> Result<Vec<file::Problem>, CommandError> {
    let path = &*normal(path);
    rewrite(home, (CONFIG, SecretRule::Refused), |old| {
        let is_it = |problem: &file::Problem| problem.key.as_deref() == Some(path);
        if !file::parse(CONFIG, old, SecretRule::Refused).problems.iter().any(is_it) {
            // A broken file has no keys.
            return document(CONFIG, old).and_then(|_| Err(unknown(path)));
        }
        let new = without(CONFIG, old, path)?;
        let problems = file::parse(CONFIG, &new, SecretRule::Refused).problems;
        Ok((new, problems))
    })
}

/// What became of a section that was taken out.
#[derive(Debug, Default)]
pub(crate) struct UnsetSection {
    /// Whether it was in either file.
    pub(crate) was_there: bool,
    /// Secrets that went with it, by their keys below it.
    pub(crate) secrets: Vec<String>,
    /// What is wrong in the rest of the files.
    pub(crate) problems: Vec<file::Problem>,
}

/// Takes a section that has a name of its own out of both files, with all that stands in it.
///
/// # Errors
/// As [`set`].
pub(crate) fn unset_section(home: &Path, path: &str) -> Result<UnsetSection, CommandError> {
    let mut unset = UnsetSection::default();
    for (name, secrets) in [(CONFIG, SecretRule::Refused), (KEYS, SecretRule::Only)] {
        let (changed, gone, found) = rewrite(home, (name, secrets), |old| {
            let new = without(name, old, path)?;
            let changed = new != old;
            let gone = below(path, name, old, secrets);
            let problems = file::parse(name, &new, secrets).problems;
            Ok((new, (changed, gone, problems)))
        })?;
        unset.was_there |= changed;
        unset.secrets.extend(gone.into_iter().filter(|_| name == KEYS));
        unset.problems.extend(found);
    }
    Ok(unset)
}

fn change(
    home: &Path,
    (path, key): (&str, &Key),
    value: Option<&toml::Value>,
) -> Result<Vec<file::Problem>, CommandError> {
    let (name, secrets) = if key.secret { (KEYS, SecretRule::Only) } else { (CONFIG, SecretRule::Refused) };
    rewrite(home, (name, secrets), |old| {
        let new = match value {
            Some(value) => changed(name, old, path, value)?,
            None => without(name, old, path)?,
        };
        let held = file::parse(name, &new, secrets);
        if held.values.iter().find(|(held, _)| held == path).map(|(_, now)| now) != value {
            return Err(CommandError::usage(
                format!("{name} would not say that of {path} afterwards"),
                "something else in the file takes its place; look there",
            ));
        }
        Ok((new, held.problems))
    })
}

/// Rewrites a file of settings by what `edit` makes of its text: all of it or nothing. Returns what `edit` does beside.
///
/// # Errors
/// As `edit`; the file is broken, is not a plain one, or cannot be written. Nothing was written.
pub(super) fn rewrite<T>(
    home: &Path,
    (name, secrets): (&str, SecretRule),
    edit: impl FnOnce(&str) -> Result<(String, T), CommandError>,
) -> Result<T, CommandError> {
    let target = home.join(name);
    let failed = |error: io::Error| CommandError::file("cannot write", &target, &error);
    // Until it is dropped: two changes at once would lose one.
    let folder = File::open(home).and_then(|folder| folder.lock().map(|()| folder)).map_err(failed)?;
    refuse_other_names(&target)?;
    let old = file::text_of(&target, secrets)
        .map_err(|(what, hint)| CommandError::new("config", 2, format!("{name}: {what}"), hint))?
        .unwrap_or_default();
    let (new, done) = edit(&old)?;
    if new != old {
        replace(&target, &folder, &new).map_err(failed)?;
    }
    Ok(done)
}

/// Refuses what is no plain file, is a link, or has a second name: what is kept under the other name would not be what is
/// read here.
fn refuse_other_names(target: &Path) -> Result<(), CommandError> {
    let shown = one_line(&target.to_string_lossy()).into_owned();
    let what = match target.symlink_metadata() {
        Ok(found) if found.is_symlink() => {
            let to = target.read_link().unwrap_or_default();
            format!("{shown} is a link to {}", one_line(&to.to_string_lossy()))
        }
        Ok(found) if !found.is_file() => {
            return Err(CommandError::refused(
                "not_a_file",
                format!("{shown} is not a file"),
                "move it away, and try again; nothing was written",
            ));
        }
        Ok(found) if found.nlink() > 1 => format!("{shown} has {} names (hard links)", found.nlink()),
        _ => return Ok(()),
    };
    let hint =
        "change that file in an editor, or put a plain file in the place of the link; nothing was written";
    Err(CommandError::refused("link", what, hint))
}

/// Writes `text` (mode 0600) in place of a file: all of it or nothing, whatever happens.
fn replace(target: &Path, folder: &File, text: &str) -> io::Result<()> {
    let beside = target.parent().ok_or(io::ErrorKind::NotFound)?;
    let mut named = tempfile::Builder::new();
    let mut new = named.prefix(UNFINISHED_CONFIG).rand_bytes(RANDOM_CHARS).tempfile_in(beside)?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(target)?;
    folder.sync_all()
}

/// The error of a key that is not there.
pub(crate) fn unknown(path: &str) -> CommandError {
    let shown = one_line(path);
    CommandError::new("unknown_key", 2, format!("unknown key {shown}"), keys::hint_for_unknown(&shown))
}

pub(super) fn document(name: &str, old: &str) -> Result<DocumentMut, CommandError> {
    old.parse().map_err(|_| {
        let problems = file::parse(name, old, SecretRule::Refused).problems;
        let mut error = problems.first().map_or_else(
            || CommandError::new("config", 2, format!("{name} is no TOML"), ""),
            file::Problem::error,
        );
        "correct it first; it was not changed".clone_into(&mut error.hint);
        error
    })
}

/// The text of a file without a key, and without the section that it leaves with nothing in it and no comment.
pub(super) fn without(name: &str, old: &str, path: &str) -> Result<String, CommandError> {
    let mut document = document(name, old)?;
    remove(document.as_table_mut(), &segments(path));
    Ok(document.to_string())
}

fn remove(table: &mut dyn toml_edit::TableLike, path: &[String]) {
    let Some((first, rest)) = path.split_first() else { return };
    let goes = rest.is_empty()
        || table.get_mut(first).is_some_and(|item| {
            let decor = item.as_table().map(|section| section.decor().clone()).unwrap_or_default();
            let is_remark = |text: Option<&RawString>| {
                text.and_then(RawString::as_str).is_some_and(|it| it.contains('#'))
            };
            let has_remark = is_remark(decor.prefix()) || is_remark(decor.suffix());
            item.as_table_like_mut().is_some_and(|section| {
                remove(section, rest);
                section.is_empty() && !has_remark
            })
        });
    if goes {
        table.remove(first);
    }
}

fn changed(name: &str, old: &str, path: &str, value: &toml::Value) -> Result<String, CommandError> {
    let mut document = document(name, old)?;
    let only_comments = document.as_table().is_empty();
    let value: Value = value.to_string().parse().map_err(|_| {
        CommandError::usage(format!("the value of {path} cannot be written"), "write it in another way")
    })?;
    let mut parts = segments(path);
    let last = parts.pop().unwrap_or_default();
    let mut table: &mut dyn toml_edit::TableLike = document.as_table_mut();
    for part in parts {
        let item = table.entry(&part).or_insert_with(|| {
            let mut fresh = Table::new();
            // `[providers.box]` alone, without an empty `[providers]` before it.
            fresh.set_implicit(true);
            Item::Table(fresh)
        });
        table = item.as_table_like_mut().ok_or_else(|| {
            CommandError::usage(format!("{name}: {part} is not a section"), "correct it first")
        })?;
    }
    match table.get_mut(&last) {
        Some(Item::Value(old)) => {
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        }
        _ => drop(table.insert(&last, Item::Value(value))),
    }
    Ok(below_remarks(old, only_comments, document.to_string()))
}

/// The new text of a file that held nothing but comments: they would come to stand below what is new.
pub(super) fn below_remarks(old: &str, only_comments: bool, text: String) -> String {
    if only_comments { format!("{old}{}", text.strip_suffix(old).unwrap_or(&text)) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &str, written: &str, old: &str) -> String {
        let value = keys::find(path).unwrap().kind.read(written).unwrap();
        changed(CONFIG, old, path, &value).unwrap()
    }

    #[test]
    fn comments_and_order_stay() {
        let old = "# mine\n[log] # loud?\nlevel = \"info\" # for now\n\n[model]\n# the good one\ndefault = \"a/b\"\n";
        let new = text("log.level", "debug", old);
        assert_eq!(new, old.replace("\"info\"", "\"debug\""));
    }

    #[test]
    fn a_key_goes_with_the_section_that_it_leaves_empty() {
        let old = "# mine\n[log]\nlevel = \"info\"\n\n[model]\n# the good one\ndefault = \"a/b\"\n";
        let new = old.replace("level = \"info\"\n", "");
        assert_eq!(without(CONFIG, old, "log.level").unwrap(), new, "a comment stays");
        let new = "# mine\n[log]\nlevel = \"info\"\n";
        assert_eq!(without(CONFIG, old, "model.default").unwrap(), new);
        let two = "[providers.box]\nwindow = 9 # small\ntools = true # all\n";
        assert_eq!(
            without(CONFIG, two, "providers.box.window").unwrap(),
            "[providers.box]\ntools = true # all\n"
        );
        for absent in ["log.format", "store.url"] {
            assert_eq!(without(CONFIG, two, absent).unwrap(), two);
        }
    }

    #[test]
    fn a_model_has_a_section_under_its_whole_name() {
        let new = text("models.\"openai/gpt-5.1\".window", "4096", "");
        assert_eq!(new, "[models.\"openai/gpt-5.1\"]\nwindow = 4096\n");
    }

    #[test]
    fn new_sections_are_made_whole() {
        assert_eq!(text("log.level", "info", ""), "[log]\nlevel = \"info\"\n");
        let commented = text("providers.box.window", "4096", "# mine\n");
        assert_eq!(commented, "# mine\n[providers.box]\nwindow = 4096\n");
        let inline = text("providers.box.window", "9", "providers = { box = { tools = true } }\n");
        assert_eq!(
            inline.parse::<toml::Table>().unwrap()["providers"]["box"]["window"].as_integer(),
            Some(9)
        );
    }
}

//! Built-in skills in the home: written there by the version that brings them, and left alone once their owner changed them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use loom::Digest;
use skills::own::{self, OwnSkill};
use workspace::replace_small_file_durably;

use super::{FILE, FOLDER};

/// Record of the texts that were written, by the names of their skills.
const RECORD: &str = "built_in.json";

/// Largest file that is compared, in bytes.
const MOST: u64 = skills::MAX_BYTES;

type Written = BTreeMap<String, Digest>;

/// What stands in the place of a built-in skill.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// Nothing.
    Empty,
    /// The text of this version.
    Current,
    /// The text of another one, as it was written.
    Earlier,
    /// Something of the owner's.
    Owners,
}

/// Writes the built-in skills of this version to `skills/` of the home at a path, where nothing or the text of another version
/// stands. What cannot be written is said, and does not exist then. A folder of skills that is a link is its owner's.
pub fn write_below(home: &Path, note: &dyn Fn(&str)) {
    let folder = home.join(FOLDER);
    if folder.is_symlink() {
        return;
    }
    let mut written = record(&folder);
    let before = written.clone();
    for own in own::built_in() {
        if let Err(error) = write_one(&folder, own, &mut written, note) {
            tracing::warn!(skill = own.name, %error, "a built-in skill could not be written");
            note(&format!("the built-in skill {} could not be written: {error}", own.name));
        }
    }
    if written != before
        && let Err(error) = save(&folder, &written)
    {
        tracing::warn!(%error, "which built-in skills were written is not recorded");
    }
}

/// Whether nothing of the owner's stands in the folder of a built-in skill: no text, and no further file.
pub(super) fn is_as_written(home: &Path, name: &str) -> bool {
    let folder = home.join(FOLDER);
    is_written(&folder, name, &folder.join(name))
}

/// Whether nothing of the owner's stands in a folder, as of [`is_as_written`], which is the folder of that built-in skill or
/// was it.
pub(super) fn is_written(skills: &Path, name: &str, folder: &Path) -> bool {
    let Some(own) = own::built_in().find(|own| own.name == name) else { return false };
    let is_alone = match fs::read_dir(folder) {
        Ok(mut entries) => entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == FILE)),
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    is_alone && place(folder, own, &record(skills)).is_ok_and(|place| place != Place::Owners)
}

fn write_one(folder: &Path, own: &OwnSkill, written: &mut Written, note: &dyn Fn(&str)) -> io::Result<()> {
    let text = Digest::of(own.text.as_bytes());
    match place(&folder.join(own.name), own, written)? {
        Place::Current => {}
        Place::Empty | Place::Earlier => {
            let place = folder.join(own.name);
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&place)?;
            replace_small_file_durably(&place.join(FILE), own.text.as_bytes())?;
        }
        Place::Owners if written.get(own.name) == Some(&text) => return Ok(()),
        Place::Owners => note(&format!(
            "the built-in skill {} has another text in this version; yours stays in {}, and without that folder the new one is \
             written",
            own.name,
            folder.join(own.name).display()
        )),
    }
    written.insert(own.name.to_owned(), text);
    Ok(())
}

fn place(place: &Path, own: &OwnSkill, written: &Written) -> io::Result<Place> {
    let file = place.join(FILE);
    if place.is_symlink() || file.is_symlink() {
        return Ok(Place::Owners);
    }
    match file.metadata() {
        Ok(found) if !found.is_file() || found.len() > MOST => return Ok(Place::Owners),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Place::Empty),
        Err(error) => return Err(error),
    }
    let found = Digest::of(&fs::read(&file)?);
    Ok(match written.get(own.name) {
        _ if found == Digest::of(own.text.as_bytes()) => Place::Current,
        Some(written) if *written == found => Place::Earlier,
        _ => Place::Owners,
    })
}

/// What was written before. Of a record that cannot be read nothing counts as written: what stands there stays.
fn record(folder: &Path) -> Written {
    let file = folder.join(RECORD);
    // A pipe would be waited for.
    if !file.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() <= MOST) {
        return Written::new();
    }
    let Ok(bytes) = fs::read(file) else { return Written::new() };
    serde_json::from_slice(&bytes).unwrap_or_else(|error| {
        tracing::warn!(%error, "the record of built-in skills cannot be read");
        Written::new()
    })
}

fn save(folder: &Path, written: &Written) -> io::Result<()> {
    replace_small_file_durably(&folder.join(RECORD), &serde_json::to_vec(written)?)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn written_to(home: &Path) -> Vec<String> {
        let notes = RefCell::new(Vec::new());
        write_below(home, &|line| notes.borrow_mut().push(line.to_owned()));
        notes.into_inner()
    }

    #[test]
    fn a_new_version_brings_its_text_and_replaces_none_of_the_owners() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let [creator, summarize] = ["skill-creator", "summarize"].map(|name| home.join(FOLDER).join(name));
        assert_eq!(written_to(home), Vec::<String>::new());
        let text = fs::read(summarize.join(FILE)).unwrap();
        assert!(is_as_written(home, "summarize") && !is_as_written(home, "loom"));
        // As an earlier version left them: one untouched, one changed by its owner.
        let earlier = b"earlier";
        for folder in [&creator, &summarize] {
            fs::write(folder.join(FILE), earlier).unwrap();
        }
        let record = ["skill-creator", "summarize"].map(|name| (name.to_owned(), Digest::of(earlier)));
        save(&home.join(FOLDER), &Written::from(record)).unwrap();
        fs::write(creator.join(FILE), "mine").unwrap();
        let notes = written_to(home);
        assert!(notes.len() == 1 && notes[0].contains("skill-creator has another text"), "{notes:?}");
        assert_eq!(fs::read(summarize.join(FILE)).unwrap(), text);
        assert_eq!(fs::read(creator.join(FILE)).unwrap(), b"mine");
        assert!(!is_as_written(home, "skill-creator"));
        // It is said once; without the folder the text comes back.
        assert_eq!(written_to(home), Vec::<String>::new());
        fs::remove_dir_all(&creator).unwrap();
        assert_eq!(written_to(home), Vec::<String>::new());
        assert!(is_as_written(home, "skill-creator"));
        // Without a record nothing that differs is replaced.
        fs::write(summarize.join(FILE), earlier).unwrap();
        fs::remove_file(home.join(FOLDER).join(RECORD)).unwrap();
        written_to(home);
        assert_eq!(fs::read(summarize.join(FILE)).unwrap(), earlier);
    }

    /// A pipe in the place of a record, or of a text, would be waited for.
    #[test]
    fn no_pipe_is_read() {
        use rustix::fs::{CWD, Mode, mkfifoat};
        let home = tempfile::tempdir().unwrap();
        let skills = home.path().join(FOLDER);
        fs::create_dir_all(skills.join("summarize")).unwrap();
        for pipe in [skills.join(RECORD), skills.join("summarize").join(FILE)] {
            mkfifoat(CWD, pipe, Mode::RWXU).unwrap();
        }
        written_to(home.path());
        assert!(
            skills.join("skill-creator").join(FILE).is_file() && !is_as_written(home.path(), "summarize")
        );
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join(FOLDER)).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), home.path().join(FOLDER).join("summarize")).unwrap();
        written_to(home.path());
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
        assert!(home.path().join(FOLDER).join("skill-creator").join(FILE).is_file());
    }
}

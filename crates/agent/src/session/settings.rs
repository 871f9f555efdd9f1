//! Settings of a session: they are the session's, whichever process goes on with it (spec: gateway §1).

use std::path::PathBuf;

use model::{ModelPlace, Thinking};
use serde::{Deserialize, Serialize};

/// Settings of a session, as the store has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionSettings {
    #[serde(flatten)]
    pub model: Option<ChosenModel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// Files that go along with the next thing said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PathBuf>,
}

/// A model that was chosen in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenModel {
    /// As it was named.
    #[serde(rename = "model")]
    pub name: String,
    /// Where it was then. None counts as this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<ModelPlace>,
}

impl SessionSettings {
    /// The settings in their text; an empty one is of a session without any.
    ///
    /// # Errors
    /// When the text is none of settings.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        if text.is_empty() { Ok(Self::default()) } else { serde_json::from_str(text) }
    }

    /// The settings as they are written.
    ///
    /// # Errors
    /// When a path is not UTF-8.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        if *self == Self::default() { Ok(String::new()) } else { serde_json::to_string(self) }
    }

    /// The settings of another process with what was changed here since both had the same.
    #[must_use]
    pub fn merged(self, before: &Self, theirs: Self) -> Self {
        let mut files = theirs.files;
        files.retain(|path| !before.files.contains(path) || self.files.contains(path));
        for path in self.files {
            if !before.files.contains(&path) && !files.contains(&path) {
                files.push(path);
            }
        }
        Self {
            model: if self.model == before.model { theirs.model } else { self.model },
            thinking: if self.thinking == before.thinking { theirs.thinking } else { self.thinking },
            files,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(model: &str, thinking: Option<Thinking>, files: &[&str]) -> SessionSettings {
        SessionSettings {
            model: Some(ChosenModel { name: model.to_owned(), place: None }),
            thinking,
            files: files.iter().map(PathBuf::from).collect(),
        }
    }

    #[test]
    fn what_was_changed_here_goes_before_what_was_changed_elsewhere() {
        let before = settings("a/m", None, &["sent", "kept"]);
        let theirs = settings("b/m", Some(Thinking::High), &["sent", "kept", "theirs"]);
        let merged = |mine: SessionSettings| mine.merged(&before, theirs.clone());
        assert_eq!(merged(before.clone()), theirs);
        let mine = settings("c/m", None, &["kept", "mine"]);
        assert_eq!(merged(mine), settings("c/m", Some(Thinking::High), &["kept", "theirs", "mine"]));
    }

    #[test]
    fn settings_are_read_as_they_were_written() {
        let mut all = settings("a/m", Some(Thinking::High), &["file"]);
        let bare = all.text().unwrap();
        assert_eq!(bare, r#"{"model":"a/m","thinking":"high","files":["file"]}"#);
        assert_eq!(SessionSettings::read(&bare).unwrap(), all);
        all.model = all.model.map(|model| ChosenModel { place: Some(ModelPlace::Local), ..model });
        assert_eq!(SessionSettings::read(&all.text().unwrap()).unwrap(), all);
        for none in ["", "{}"] {
            assert_eq!(SessionSettings::read(none).unwrap(), SessionSettings::default());
        }
    }
}

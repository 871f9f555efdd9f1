//! Paths in messages: as text, and as bytes where they are none.
//!
//! A name of a file need not be text, and one in a workspace that is none must not keep all commands from running.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Form of a path in a message.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum PathForm {
    Text(String),
    Other(OsString),
}

/// A path, or several, with a form that can be a message.
pub(crate) trait Paths: Clone {
    type Form: Serialize + DeserializeOwned;
    fn into_form(self) -> Self::Form;
    fn from_form(form: Self::Form) -> Self;
}

impl Paths for PathBuf {
    type Form = PathForm;

    fn into_form(self) -> PathForm {
        self.into_os_string().into_string().map_or_else(PathForm::Other, PathForm::Text)
    }

    fn from_form(form: PathForm) -> Self {
        match form {
            PathForm::Text(text) => text.into(),
            PathForm::Other(bytes) => bytes.into(),
        }
    }
}

impl Paths for Vec<PathBuf> {
    type Form = Vec<PathForm>;

    fn into_form(self) -> Vec<PathForm> {
        self.into_iter().map(Paths::into_form).collect()
    }

    fn from_form(form: Vec<PathForm>) -> Self {
        form.into_iter().map(Paths::from_form).collect()
    }
}

impl Paths for Option<PathBuf> {
    type Form = Option<PathForm>;

    fn into_form(self) -> Option<PathForm> {
        self.map(Paths::into_form)
    }

    fn from_form(form: Option<PathForm>) -> Self {
        form.map(Paths::from_form)
    }
}

impl<E: Clone + Serialize + DeserializeOwned> Paths for Result<Vec<PathBuf>, E> {
    type Form = Result<Vec<PathForm>, E>;

    fn into_form(self) -> Result<Vec<PathForm>, E> {
        self.map(Paths::into_form)
    }

    fn from_form(form: Result<Vec<PathForm>, E>) -> Self {
        form.map(Paths::from_form)
    }
}

pub(crate) fn serialize<P: Paths, S: Serializer>(paths: &P, serializer: S) -> Result<S::Ok, S::Error> {
    paths.clone().into_form().serialize(serializer)
}

pub(crate) fn deserialize<'de, P: Paths, D: Deserializer<'de>>(deserializer: D) -> Result<P, D::Error> {
    P::Form::deserialize(deserializer).map(P::from_form)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Message {
        #[serde(with = "super")]
        one: PathBuf,
        #[serde(with = "super")]
        many: Vec<PathBuf>,
        #[serde(with = "super")]
        perhaps: Option<PathBuf>,
        #[serde(with = "super")]
        known: Result<Vec<PathBuf>, String>,
    }

    #[test]
    fn a_path_that_is_no_text_comes_through_as_it_is() {
        let odd = PathBuf::from(OsString::from_vec(b"o\xff/.vscode".to_vec()));
        let message = Message {
            one: odd.clone(),
            many: vec!["text".into(), odd.clone()],
            perhaps: Some(odd.clone()),
            known: Ok(vec![odd]),
        };
        let text = serde_json::to_string(&message).unwrap();
        assert!(text.contains("\"text\""), "{text}");
        assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message);
    }
}

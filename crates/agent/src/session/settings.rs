//! Settings of a session: they are the session's, whichever process goes on with it (spec: gateway §1).

use std::path::PathBuf;

use model::{ModelPlace, Thinking};
use policy::Permission;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use store::{LIST_PAGE, Principal, Session, SessionFilter, SessionId, all_pages};
use workspace::FurtherRoot;

use super::SubagentRecord;
use crate::error::AgentError;
use crate::runtime::Runtime;

/// Settings of a session, as the store has them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WrittenSettings", into = "WrittenSettings")]
pub struct SessionSettings {
    /// The agent that answers; the default one without it.
    pub agent: Option<String>,
    pub model: Option<ChosenModel>,
    pub thinking: Option<Thinking>,
    /// System prompt in place of the built-in one.
    pub system: Option<String>,
    pub sampling: SessionSampling,
    /// Whether plan mode is on.
    pub plan: bool,
    /// Calls of tools that a person allowed for the rest of the session.
    pub allowed: Vec<Permission>,
    /// Files that go along with the next thing said.
    pub files: Vec<PathBuf>,
    /// Folders that tools reached beside the workspace when something was said last. None of them is open by that: each
    /// call names its own.
    pub folders: Vec<FurtherRoot>,
    /// Of whom the session is the subagent.
    pub subagent: Option<SubagentRecord>,
    /// Subagents of it whose results were not told yet.
    pub awaited: Vec<SessionId>,
}

/// Sampling that was chosen in a session. What is none is as preset and configuration say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionSampling {
    pub temperature: Option<f64>,
    /// Length limit of an answer, in tokens.
    pub max_tokens: Option<u32>,
    pub seed: Option<i64>,
    /// A preset of the configuration, by its name.
    pub preset: Option<String>,
}

impl SessionSampling {
    /// This, and where it has none what another says.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            temperature: self.temperature.or(other.temperature),
            max_tokens: self.max_tokens.or(other.max_tokens),
            seed: self.seed.or(other.seed),
            preset: self.preset.or(other.preset),
        }
    }
}

/// A model that was chosen in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenModel {
    /// As it was named.
    pub name: String,
    /// Where it was then. None counts as this machine.
    pub place: Option<ModelPlace>,
}

/// The keys of [`SessionSettings`] as they are written. Each is read by itself: a value that is none of its key, null
/// included, is an error, and never a setting that is not there. So is a key that is none of these: a later version
/// may say with it where text must not go.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenSettings {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "not_null")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "not_null")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "not_null")]
    place: Option<ModelPlace>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "not_null")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "not_null")]
    system: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "not_null")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "not_null")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "not_null")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "not_null")]
    preset: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    plan: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allowed: Vec<Permission>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    folders: Vec<FurtherRoot>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "not_null")]
    subagent: Option<SubagentRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    awaited: Vec<SessionId>,
}

fn not_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(value: D) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

impl TryFrom<WrittenSettings> for SessionSettings {
    type Error = &'static str;

    fn try_from(written: WrittenSettings) -> Result<Self, Self::Error> {
        let WrittenSettings {
            agent,
            model,
            place,
            thinking,
            system,
            temperature,
            max_tokens,
            seed,
            preset,
            plan,
            allowed,
            files,
            folders,
            subagent,
            awaited,
        } = written;
        if model.is_none() && place.is_some() {
            return Err("the place of a model, and no model");
        }
        let sampling = SessionSampling { temperature, max_tokens, seed, preset };
        let model = model.map(|name| ChosenModel { name, place });
        Ok(Self {
            agent,
            model,
            thinking,
            system,
            sampling,
            plan,
            allowed,
            files,
            folders,
            subagent,
            awaited,
        })
    }
}

impl From<SessionSettings> for WrittenSettings {
    fn from(settings: SessionSettings) -> Self {
        let SessionSettings {
            agent,
            model,
            thinking,
            system,
            sampling,
            plan,
            allowed,
            files,
            folders,
            subagent,
            awaited,
        } = settings;
        let place = model.as_ref().and_then(|model| model.place);
        let SessionSampling { temperature, max_tokens, seed, preset } = sampling;
        Self {
            agent,
            model: model.map(|model| model.name),
            place,
            thinking,
            system,
            temperature,
            max_tokens,
            seed,
            preset,
            plan,
            allowed,
            files,
            folders,
            subagent,
            awaited,
        }
    }
}

impl SessionSettings {
    /// The settings in their text; an empty one is of a session without any.
    ///
    /// # Errors
    /// When the text is none of settings.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        // An array would be read as values in the order of the keys.
        if !text.starts_with('{') {
            return Err(serde_json::Error::custom("settings are no map"));
        }
        serde_json::from_str(text)
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
        let (mine, was, now) = (self.sampling, &before.sampling, theirs.sampling);
        let mut files = theirs.files;
        files.retain(|path| !before.files.contains(path) || self.files.contains(path));
        for path in self.files {
            if !before.files.contains(&path) && !files.contains(&path) {
                files.push(path);
            }
        }
        Self {
            agent: changed(self.agent, &before.agent, theirs.agent),
            model: changed(self.model, &before.model, theirs.model),
            thinking: changed(self.thinking, &before.thinking, theirs.thinking),
            system: changed(self.system, &before.system, theirs.system),
            sampling: SessionSampling {
                temperature: changed(mine.temperature, &was.temperature, now.temperature),
                max_tokens: changed(mine.max_tokens, &was.max_tokens, now.max_tokens),
                seed: changed(mine.seed, &was.seed, now.seed),
                preset: changed(mine.preset, &was.preset, now.preset),
            },
            plan: changed(self.plan, &before.plan, theirs.plan),
            allowed: changed(self.allowed, &before.allowed, theirs.allowed),
            files,
            folders: changed(self.folders, &before.folders, theirs.folders),
            subagent: theirs.subagent,
            awaited: theirs.awaited,
        }
    }
}

impl Runtime {
    /// The settings of a session, as they are written and as they are read.
    pub(super) async fn settings_of(
        &self,
        session: &SessionId,
    ) -> Result<(String, SessionSettings), AgentError> {
        let session = self.store.session(&Principal::Owner, session).await?;
        let text = session.map(|session| session.settings).unwrap_or_default();
        let settings = SessionSettings::read(&text)?;
        Ok((text, settings))
    }

    /// Forgets what was allowed for the rest of sessions of calls of a server's tools: another program may have its name by now.
    ///
    /// # Errors
    /// As the store says.
    pub async fn forget_permissions(&self, server: &str) -> Result<(), AgentError> {
        let filter = SessionFilter { workspace: None, name: None, archived: true };
        let page = |after| self.store.sessions(&Principal::Owner, filter.clone(), after, LIST_PAGE);
        let is_of = |given: &Permission| given.patterns().iter().any(|pattern| pattern.is_of_server(server));
        for session in all_pages(Session::place, page).await? {
            let settings = SessionSettings::read(&session.settings)?;
            if settings.allowed.iter().any(is_of) {
                let forget = |settings: &mut SessionSettings| settings.allowed.retain(|given| !is_of(given));
                self.change_settings_of(&session.id, forget).await?;
            }
        }
        Ok(())
    }

    /// Changes the settings of a session, whatever is written of them meanwhile.
    pub(super) async fn change_settings_of(
        &self,
        session: &SessionId,
        change: impl Fn(&mut SessionSettings),
    ) -> Result<(), AgentError> {
        loop {
            let (before, mut settings) = self.settings_of(session).await?;
            change(&mut settings);
            let (who, text) = (&Principal::Owner, settings.text()?);
            if self.store.set_session_settings(who, session, &before, &text).await?.is_none() {
                return Ok(());
            }
        }
    }
}

/// What was changed here, else what stands there.
fn changed<T: PartialEq>(mine: T, before: &T, theirs: T) -> T {
    if mine == *before { theirs } else { mine }
}

#[cfg(test)]
mod tests {
    use workspace::RootAccess;

    use super::*;

    fn settings(model: &str, thinking: Option<Thinking>, files: &[&str]) -> SessionSettings {
        SessionSettings {
            model: Some(ChosenModel { name: model.to_owned(), place: None }),
            thinking,
            files: files.iter().map(PathBuf::from).collect(),
            ..SessionSettings::default()
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
        all.agent = Some("poet".to_owned());
        all.system = Some("Speak plainly.".to_owned());
        all.plan = true;
        all.folders = vec![FurtherRoot { path: "/data".into(), access: RootAccess::ReadOnly }];
        all.allowed = vec![serde_json::from_str(r#"["write path=docs/a.md"]"#).unwrap()];
        let preset = Some("cold".to_owned());
        all.sampling =
            SessionSampling { temperature: Some(0.5), max_tokens: Some(9), seed: Some(-1), preset };
        assert_eq!(SessionSettings::read(&all.text().unwrap()).unwrap(), all);
        for none in ["", "{}"] {
            assert_eq!(SessionSettings::read(none).unwrap(), SessionSettings::default());
        }
    }

    #[test]
    fn damaged_settings_are_an_error_and_not_settings_without_a_model() {
        for damaged in [
            r#"{"model":"box/m","place":"lan"}"#,
            r#"{"model":["box/m"]}"#,
            r#"{"place":"local"}"#,
            r#"{"model":"box/m","thinking":"much"}"#,
            "box/m",
            "[]",
            r#"["box/m","local"]"#,
            "null",
            r#"{"modell":"box/m"}"#,
            r#"{"model":"box/m","region":"here"}"#,
            r#"{"model":null,"place":null}"#,
            r#"{"model":null}"#,
            r#"{"model":"box/m","place":null}"#,
            r#"{"model":"box/m","thinking":null}"#,
            r#"{"model":"box/m","files":null}"#,
            r#"{"model":"box/m","allowed":[["wirte path="]]}"#,
            r#"{"model":"box/m","allowed":["write"]}"#,
            r#"{"model":"box/m","model":"far/m"}"#,
        ] {
            assert!(SessionSettings::read(damaged).is_err(), "{damaged}");
        }
        let model = Some(ChosenModel { name: "box/m".to_owned(), place: Some(ModelPlace::Local) });
        let whole = SessionSettings { model, ..SessionSettings::default() };
        let control = r#"{"model":"box/m","place":"local"}"#;
        assert_eq!(SessionSettings::read(control).unwrap(), whole);
        assert_eq!(whole.text().unwrap(), control);
    }
}

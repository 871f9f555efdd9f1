//! `.drawloom/workspace.toml`: the few things a workspace may say about itself.
//!
//! The file comes with the folder, so it may come from a stranger. It never sets policy,
//! providers, addresses, keys, servers, hooks or sandbox options (spec: security §4): such keys
//! are left out and named, as are keys nobody knows. A broken key costs that key, never a session.

use std::collections::BTreeMap;

use toml::Value;

use crate::error::{FileError, FileProblem};
use crate::path::RelativePath;
use crate::root::{ReadRules, Root};

/// Path of the file below the workspace.
pub const SETTINGS_PATH: &str = ".drawloom/workspace.toml";

/// Longest file in bytes.
const MAX_BYTES: u64 = 16 * 1024;

/// Longest title in characters.
const MAX_TITLE: usize = 200;

/// First parts of keys that belong to the owner's `config.toml` alone.
const FORBIDDEN: &[&str] = &[
    "policy",
    "provider",
    "providers",
    "model",
    "models",
    "base_url",
    "url",
    "urls",
    "key",
    "keys",
    "api_key",
    "token",
    "tokens",
    "secret",
    "secrets",
    "server",
    "servers",
    "mcp",
    "mcpServers",
    "mcp_servers",
    "hook",
    "hooks",
    "webhook",
    "webhooks",
    "sandbox",
    "exec",
    "tools",
    "agents",
    "skills",
    "gateway",
    "notify",
    "store",
    "log",
    "budget",
    "env",
    "allow",
    "roots",
    "commands",
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceSettings {
    pub title: Option<String>,
    /// An IANA name such as `Europe/Oslo`; checked for its shape, not against the time zone data.
    pub time_zone: Option<String>,
    /// Caps by name, in the unit of each cap's owner (characters for boot files).
    pub caps: BTreeMap<String, u64>,
    /// What may be observed, by name; `observe = true` at the top is the name `""`.
    pub observe: BTreeMap<String, bool>,
}

/// A key that was left out, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredKey {
    /// The key as written, dotted.
    pub key: String,
    /// Reason why the key is ignored.
    pub why: IgnoredBecause,
}

/// Reason why a key of a workspace is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IgnoredBecause {
    /// Reserved: the owner decides it.
    #[error("a workspace may not set this: write it to the home's config.toml")]
    Forbidden,
    #[error("unknown key: a workspace may set title, time_zone, caps and observe")]
    Unknown,
    /// The wrong kind of value, or out of range.
    #[error("the value does not fit: {0} is wanted")]
    Unfit(&'static str),
}

/// Error of reading a workspace's settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file could not be opened as a plain file.
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{SETTINGS_PATH}: {0}")]
    Toml(String),
}

/// Reads the file of a workspace; a workspace without one has chosen nothing.
///
/// # Errors
/// [`SettingsError`] for a file that is no plain file, too large, or no TOML.
pub fn read(workspace: &Root) -> Result<(WorkspaceSettings, Vec<IgnoredKey>), SettingsError> {
    let path =
        RelativePath::parse(SETTINGS_PATH).map_err(|problem| FileError::new(SETTINGS_PATH, problem))?;
    match workspace.read_text(&path, &ReadRules::at_most(MAX_BYTES)) {
        Ok(text) => parse(&text),
        Err(FileError { problem: FileProblem::NotFound, .. }) => Ok(Default::default()),
        Err(other) => Err(other.into()),
    }
}

/// Reads the text of such a file.
///
/// # Errors
/// [`SettingsError::Toml`].
pub fn parse(text: &str) -> Result<(WorkspaceSettings, Vec<IgnoredKey>), SettingsError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| SettingsError::Toml(error.message().to_owned()))?;
    let mut settings = WorkspaceSettings::default();
    let mut ignored = Vec::new();
    for (key, value) in &table {
        let taken = match (key.as_str(), value) {
            ("title", Value::String(title)) if fits_title(title) => {
                settings.title = Some(title.clone());
                Ok(())
            }
            ("title", _) => Err(IgnoredBecause::Unfit("a line of at most 200 characters")),
            ("time_zone", Value::String(zone)) if fits_zone(zone) => {
                settings.time_zone = Some(zone.clone());
                Ok(())
            }
            ("time_zone", _) => Err(IgnoredBecause::Unfit("a name such as Europe/Oslo")),
            ("caps", Value::Table(caps)) => {
                collect(caps, "caps", &mut settings.caps, &mut ignored, cap, "a positive whole number");
                Ok(())
            }
            ("caps", _) => Err(IgnoredBecause::Unfit("a table of whole numbers")),
            ("observe", Value::Boolean(all)) => {
                settings.observe.insert(String::new(), *all);
                Ok(())
            }
            ("observe", Value::Table(flags)) => {
                collect(
                    flags,
                    "observe",
                    &mut settings.observe,
                    &mut ignored,
                    Value::as_bool,
                    "true or false",
                );
                Ok(())
            }
            ("observe", _) => Err(IgnoredBecause::Unfit("true, false or a table of them")),
            (forbidden, _) if is_forbidden(forbidden) => Err(IgnoredBecause::Forbidden),
            _ => Err(IgnoredBecause::Unknown),
        };
        if let Err(why) = taken {
            ignored.push(IgnoredKey { key: key.clone(), why });
        }
    }
    Ok((settings, ignored))
}

fn collect<T>(
    from: &toml::Table,
    name: &str,
    into: &mut BTreeMap<String, T>,
    ignored: &mut Vec<IgnoredKey>,
    read: impl Fn(&Value) -> Option<T>,
    wanted: &'static str,
) {
    for (key, value) in from {
        match read(value) {
            Some(value) => drop(into.insert(key.clone(), value)),
            None => {
                let why = IgnoredBecause::Unfit(wanted);
                ignored.push(IgnoredKey { key: format!("{name}.{key}"), why });
            }
        }
    }
}

fn cap(value: &Value) -> Option<u64> {
    value.as_integer().and_then(|number| u64::try_from(number).ok()).filter(|number| *number > 0)
}

fn fits_title(title: &str) -> bool {
    !title.trim().is_empty() && title.chars().count() <= MAX_TITLE && !title.contains(char::is_control)
}

fn fits_zone(zone: &str) -> bool {
    let name =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "_+-".contains(c));
    zone.len() <= 64 && zone.split('/').all(name)
}

fn is_forbidden(key: &str) -> bool {
    FORBIDDEN.iter().any(|word| key.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_workspace_may_choose_is_read() {
        let text = "title = \"Garden\"\ntime_zone = \"Europe/Oslo\"\n[caps]\nfile_chars = 12000\n\
                    [observe]\nmain = true\nstory = false\n";
        let (settings, ignored) = parse(text).unwrap();
        assert_eq!(settings.title.as_deref(), Some("Garden"));
        assert_eq!(settings.time_zone.as_deref(), Some("Europe/Oslo"));
        assert_eq!(settings.caps["file_chars"], 12_000);
        assert!(settings.observe["main"] && !settings.observe["story"]);
        assert_eq!(ignored, []);
    }

    #[test]
    fn s4_what_the_owner_decides_is_ignored_and_named() {
        for key in FORBIDDEN {
            for text in [format!("{key} = \"x\""), format!("[{key}]\na = 1"), format!("[[{key}]]\na = 1")] {
                let (settings, ignored) = parse(&text).unwrap();
                assert_eq!(settings, WorkspaceSettings::default(), "{text}");
                assert_eq!(ignored, [IgnoredKey { key: (*key).into(), why: IgnoredBecause::Forbidden }]);
            }
        }
    }

    #[test]
    fn unknown_and_unfit_keys_cost_only_themselves() {
        let text = "titel = 1\ntitle = 3\ntime_zone = \"../x\"\ncaps = { a = -1, b = 5, c = \"x\" }\n\
                    observe = { d = \"yes\", e = true }\n";
        let (settings, ignored) = parse(text).unwrap();
        let keys: Vec<_> = ignored.iter().map(|ignored| ignored.key.as_str()).collect();
        assert_eq!(keys.len(), 6);
        for key in ["titel", "title", "time_zone", "caps.a", "caps.c", "observe.d"] {
            assert!(keys.contains(&key), "{key}");
        }
        assert_eq!(settings.caps, BTreeMap::from([("b".to_owned(), 5)]));
        assert_eq!(settings.observe, BTreeMap::from([("e".to_owned(), true)]));
    }

    #[test]
    fn what_is_no_toml_is_refused_without_a_crash() {
        let deep = format!("a = {}1{}", "[".repeat(5000), "]".repeat(5000));
        for text in ["title = ", "a = 1\na = 2", deep.as_str(), "\u{0}"] {
            assert!(matches!(parse(text), Err(SettingsError::Toml(_))));
        }
        assert!(parse("\u{feff}title = \"x\"\r\n").unwrap().0.title.is_some());
    }
}

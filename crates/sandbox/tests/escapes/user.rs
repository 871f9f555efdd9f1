//! Users that run attempts.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

/// Who runs an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// Whoever runs the tests: in CI the administrator.
    Own,
    Nobody,
}

impl User {
    /// Users that these tests can be: another one only if they are run by the administrator.
    pub(crate) fn all() -> Vec<Self> {
        let own = fs::metadata("/proc/self").unwrap();
        match std::os::unix::fs::MetadataExt::uid(&own) {
            0 => vec![Self::Own, Self::Nobody],
            _ => vec![Self::Own],
        }
    }

    pub(crate) fn is_administrator(self) -> bool {
        self == Self::Own && Self::all().len() > 1
    }

    pub(crate) fn sleeping_process(self) -> Child {
        let mut command = Command::new("/bin/sleep");
        self.apply(command.arg("60"));
        command.spawn().unwrap()
    }

    pub(crate) fn apply(self, command: &mut Command) {
        if self == Self::Nobody {
            command.uid(65534).gid(65534);
        }
    }
}

//! What a server runs as: a program of this machine, or a session at an address.

use crate::connection::RunOfServer;
use crate::http_session::{Failure, HttpSession};

pub(crate) enum Life {
    Program(RunOfServer),
    Address(HttpSession),
}

impl Life {
    /// Whether it is over.
    pub(crate) fn has_ended(&self) -> bool {
        match self {
            Self::Program(run) => run.has_ended(),
            Self::Address(session) => session.is_expired(),
        }
    }

    /// Whether a login is what it lacks.
    pub(crate) fn wants_login(&self) -> bool {
        matches!(self, Self::Address(session) if session.wants_login())
    }

    /// Why it says nothing any more.
    pub(crate) async fn why_silent(&self) -> String {
        match self {
            Self::Program(run) => run.why_silent().await,
            Self::Address(session) => session.why_silent(),
        }
    }

    /// Why something was not sent.
    pub(crate) async fn why_unsent(
        &self,
        error: &(dyn std::error::Error + Send + Sync + 'static),
    ) -> Failure {
        match self {
            Self::Program(run) => Failure::told(run.why_silent().await),
            Self::Address(session) => session.told(error),
        }
    }
}

//! What left: host, bytes, and why (spec: security §10).

use std::fmt;

use crate::transfer_file::record;

/// Why a connection is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Model,
    /// A question that carries no text: which models a server has, and their windows.
    ServerLook,
    Weights,
    Fetch,
    Search,
    /// A server of tools (MCP) at an address.
    Server,
    /// Whoever lets in at such a server.
    Login,
    Command,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "a request to a model",
            Self::ServerLook => "a look whether a server is there",
            Self::Weights => "a download of weights",
            Self::Fetch => "a fetch of a page",
            Self::Search => "a search",
            Self::Server => "a request to a server of tools",
            Self::Login => "a login at a server of tools",
            Self::Command => "a command with network",
        })
    }
}

/// One request that was let go, or all connections of a command to one host, with what came of it. It is written down and logged (at level `info`) when it is
/// dropped; an address without its path, which may hold anything.
#[derive(Debug, PartialEq, Eq)]
pub struct Transfer {
    pub host: String,
    pub purpose: Purpose,
    /// Bytes of the body that was sent, or all of a connection; nothing where their count is not known.
    pub sent: Option<u64>,
    /// Bytes of the body that was received, or all of a connection.
    pub received: u64,
}

impl Drop for Transfer {
    fn drop(&mut self) {
        let Self { host, purpose, sent, received } = &*self;
        record(self);
        tracing::info!(%host, why = %purpose, sent, received, "left this machine");
    }
}

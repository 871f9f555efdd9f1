//! Networks of commands that reach out through a proxy: one for each, and nothing in it but its loopback.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;

use super::Sandbox;
use crate::descriptors::SessionNamespaces;
use crate::outcome::SandboxError;
use crate::request::{HelperRequest, HelperTask};

impl Sandbox {
    /// Makes a network in the user namespace of a session, and a socket that listens on its loopback at
    /// [`PROXY_PORT`](crate::PROXY_PORT). Blocks for some 10 ms.
    pub(crate) fn make_network(
        &self,
        session: &SessionNamespaces,
    ) -> Result<(OwnedFd, TcpListener), SandboxError> {
        let given = session.in_order();
        let request = HelperRequest::without_a_command(HelperTask::Network, given.len());
        self.ask_helper(&request, &given, |_, made| {
            let made = <[OwnedFd; 2]>::try_from(made);
            let [network, listener] = made.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            Ok((network, listener.into()))
        })
    }
}

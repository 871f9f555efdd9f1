//! Networks of commands that reach out: one for each that has a proxy, with nothing but its loopback, or the machine's.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::Sandbox;
use crate::descriptors::SessionNamespaces;
use crate::outcome::SandboxError;
use crate::request::{HelperRequest, HelperTask};
use crate::walls::Walls;

/// File that says which servers look names up. It may be a link to one that a service keeps.
const NAME_SERVERS: &str = "/etc/resolv.conf";

/// Shows a command which servers look names up.
pub(super) fn show_name_servers(walls: &mut Walls) {
    let Ok(file) = Path::new(NAME_SERVERS).canonicalize() else { return };
    if !walls.readable.iter().any(|folder| file.starts_with(folder)) {
        walls.readable.push(file);
    }
}

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

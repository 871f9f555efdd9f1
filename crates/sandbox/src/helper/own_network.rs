//! Network of a command that reaches out through a proxy, made before anything of the command runs.

use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;

use rustix::thread::UnshareFlags;

use super::{Failure, Step, loopback, namespaces, session};
use crate::PROXY_PORT;
use crate::descriptors::SessionNamespaces;

/// Makes a network in a session's user namespace with nothing but its loopback. Returns it with the socket on which the
/// proxy of the command is served, by whoever holds it: no other network has a way to it.
pub(super) fn make(session: &SessionNamespaces) -> Result<(OwnedFd, TcpListener), Failure> {
    session::enter(session, false)?;
    namespaces::unshare(UnshareFlags::NEWNET)?;
    loopback::bring_up()?;
    let network = session::namespace("net")?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT)).step("socket of the proxy")?;
    Ok((network, listener))
}

//! Sockets of a session's network, for a supervisor that cannot enter it: several threads of it run.

use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::{Failure, Step, capabilities, session};
use crate::descriptors::{SessionNamespaces, send_descriptors};

/// Enters the network of a session and sends a TCP socket of it for each byte that the supervisor sends, until that is
/// gone. It connects none of them, and runs nothing foreign.
pub(super) fn hand_out(mut control: &UnixStream, session: &SessionNamespaces) -> Result<(), Failure> {
    session::enter(session, true)?;
    capabilities::drop_all()?;
    capabilities::refuse_new()?;
    loop {
        match control.read_exact(&mut [0]) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error).step("sockets of the session"),
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None);
        let socket = socket.step("sockets of the session")?;
        send_descriptors(control, &[socket.as_fd()]).step("sockets of the session")?;
    }
}

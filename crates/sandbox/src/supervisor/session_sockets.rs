//! Sockets of a session's network, from a helper that entered it.

use std::io::{self, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Mutex, PoisonError};

use crate::descriptors::{SessionNamespaces, receive_descriptors, send_descriptors};
use crate::outcome::SandboxError;
use crate::request::{HelperReport, HelperRequest, HelperTask, receive, send};
use crate::supervisor::{MAKING, Sandbox};

/// Helper that makes sockets. It ends when this is dropped, or this process is gone.
#[derive(Debug)]
pub(crate) struct SessionSockets {
    child: Child,
    control: Mutex<UnixStream>,
}

impl Sandbox {
    /// Starts a helper in the network of a session. Blocks for some 10 ms.
    pub(crate) fn session_sockets(
        &self,
        namespaces: &SessionNamespaces,
    ) -> Result<SessionSockets, SandboxError> {
        let (control, theirs) = UnixStream::pair().map_err(SandboxError::Start)?;
        let child = self.helper(theirs.into()).map_err(SandboxError::Start)?;
        let descriptors = namespaces.in_order();
        let request = HelperRequest::without_a_command(HelperTask::Sockets, descriptors.len());
        let begun = control.set_read_timeout(Some(MAKING)).and_then(|()| {
            send(&request, &control)?;
            send_descriptors(&control, &descriptors)
        });
        let sockets = SessionSockets { child, control: Mutex::new(control) };
        begun.map_err(SandboxError::Start)?;
        // The first one shows that it stands in the session's network.
        match sockets.answer().map_err(SandboxError::Start)? {
            Ok(_) => Ok(sockets),
            Err(HelperReport::Failed { step, problem }) => Err(SandboxError::Walls { step, problem }),
            Err(_) => Err(SandboxError::Vanished),
        }
    }
}

impl SessionSockets {
    /// A TCP socket of the session's network, not connected and not blocking.
    ///
    /// # Errors
    /// If the helper is gone.
    pub(crate) fn make(&self) -> io::Result<TcpStream> {
        self.answer()?.map_err(|report| io::Error::other(format!("{report:?}")))
    }

    fn answer(&self) -> io::Result<Result<TcpStream, HelperReport>> {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        // A helper that failed has said why, and takes nothing any more.
        let asked = control.write_all(&[0]);
        let (byte, descriptors) = receive_descriptors(&*control)?;
        if let Some(socket) = descriptors.into_iter().next() {
            return Ok(Ok(socket.into()));
        }
        let report = receive(io::Read::chain(byte.as_slice(), &*control))?;
        asked?;
        report.map(Err).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

impl Drop for SessionSockets {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

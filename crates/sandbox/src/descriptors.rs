//! Descriptors that go between the supervisor and the helper over their socket, with one byte.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Descriptors of one message at most: three of a session and an input.
const MOST: usize = 4;

/// Namespaces of a session. They last while a descriptor of them is open, or a process is in them.
#[derive(Debug)]
pub(crate) struct SessionNamespaces {
    pub(crate) user: OwnedFd,
    pub(crate) network: OwnedFd,
    /// Mounts that hold the session's `/tmp` and package caches, and nothing else.
    pub(crate) mounts: OwnedFd,
}

/// What a helper is handed beside its request.
#[derive(Debug, Default)]
pub(crate) struct PassedDescriptors {
    pub(crate) session: Option<SessionNamespaces>,
    /// Standard input of the command.
    pub(crate) input: Option<OwnedFd>,
}

impl PassedDescriptors {
    /// Descriptors of a message, of a session if there are three or more.
    pub(crate) fn of(descriptors: Vec<OwnedFd>) -> Self {
        let mut rest = descriptors.into_iter();
        let session = match rest.len() >= 3 {
            true => session(&mut rest),
            false => None,
        };
        Self { session, input: rest.next() }
    }
}

fn session(descriptors: &mut impl Iterator<Item = OwnedFd>) -> Option<SessionNamespaces> {
    Some(SessionNamespaces {
        user: descriptors.next()?,
        network: descriptors.next()?,
        mounts: descriptors.next()?,
    })
}

impl SessionNamespaces {
    pub(crate) fn in_order(&self) -> [BorrowedFd<'_>; 3] {
        [self.user.as_fd(), self.network.as_fd(), self.mounts.as_fd()]
    }
}

/// Sends descriptors.
pub(crate) fn send_descriptors(to: impl AsFd, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(to, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives descriptors, and the byte they came with; none at the end of the socket.
pub(crate) fn receive_descriptors(from: impl AsFd) -> io::Result<(Option<u8>, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received = recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let rights = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    Ok(((received.bytes > 0).then_some(byte[0]), rights.flatten().collect()))
}

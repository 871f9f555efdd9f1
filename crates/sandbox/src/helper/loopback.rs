//! The loopback of a new network namespace.

use rustix::io::{read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::{Failure, Step};

/// Brings the loopback up: a request `RTM_NEWLINK` for the first interface with the flag `IFF_UP`.
pub(super) fn bring_up() -> Result<(), Failure> {
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ACK: u16 = 5;
    const UP: u32 = 1;
    let mut message = Vec::with_capacity(32);
    message.extend(32_u32.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_AND_ACK.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([0; 4]);
    message.extend(1_i32.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None);
    let socket = socket.step("loopback")?;
    write(&socket, &message).step("loopback")?;
    let mut answer = [0; 128];
    let length = read(&socket, &mut answer).step("loopback")?;
    // After the header stands the error, 0 for none.
    match answer.get(16..20).filter(|_| length >= 20) {
        Some([0, 0, 0, 0]) => Ok(()),
        _ => Err(Failure::new("loopback", &"the kernel refused to bring it up")),
    }
}

//! Ports of this machine that lead to a server in the network of a session (spec: security §1).
//!
//! This is the one place that listens on the network: at 127.0.0.1 alone, and on the ports that were asked for. A connection
//! is carried to the same port of the session's loopback, by a socket of that network, which a helper that entered it hands
//! out. So nothing but that port is reached, and no command ever holds a socket of the machine. A thread of its own does it,
//! until the [`PublishedPorts`] are dropped: with the end of the command they belong to, or of this process.

use std::collections::BTreeSet;
use std::io;
use std::net::{self, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::descriptors::SessionNamespaces;
use crate::outcome::SandboxError;
use crate::supervisor::{Sandbox, SessionSockets};

/// Lowest port that may be published: those below belong to services of the machine.
const LOWEST: u16 = 1024;
/// Ports of one command.
const MOST: usize = 4;
/// Connections of one command at one time; further ones wait to be accepted.
const CONNECTIONS: usize = 64;
/// How long a server of the session may take to accept a connection.
const ACCEPTING: Duration = Duration::from_secs(10);
/// Pause after a connection could not be accepted, as the process has too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Listeners with their ports.
type Listeners<T> = Vec<(u16, T)>;

/// Ports that are published. Dropping them closes them, with all connections.
#[derive(Debug)]
pub struct PublishedPorts {
    addresses: Vec<SocketAddr>,
    /// Hung up to close them.
    close: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What connections are carried by.
struct Carrier {
    sockets: SessionSockets,
    /// Set once there was a connection.
    reached: Arc<AtomicBool>,
}

impl PublishedPorts {
    /// Addresses of this machine at which they are reached.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Listens. Blocks for some 10 ms.
    pub(crate) fn open(
        sandbox: &Sandbox,
        namespaces: &SessionNamespaces,
        ports: &[u16],
        reached: Arc<AtomicBool>,
    ) -> Result<Self, SandboxError> {
        check_ports(ports)?;
        let carrier = Carrier { sockets: sandbox.session_sockets(namespaces)?, reached };
        let listeners = ports.iter().map(|port| Ok((*port, listen(*port)?)));
        let listeners = listeners.collect::<Result<Vec<_>, SandboxError>>()?;
        let addresses = ports.iter().map(|port| (Ipv4Addr::LOCALHOST, *port).into()).collect();
        let (close, closed) = oneshot::channel();
        let (begin, begun) = sync_channel(1);
        let work = move || match begin_listening(listeners) {
            Ok((runtime, listeners)) => {
                let _ = begin.send(Ok(()));
                runtime.block_on(serve(listeners, carrier, closed));
            }
            Err(error) => _ = begin.send(Err(error)),
        };
        let thread = thread::Builder::new().name("sandbox-ports".into()).spawn(work);
        let thread = thread.map_err(SandboxError::Start)?;
        let ports = Self { addresses, close: Some(close), thread: Some(thread) };
        let begun = begun.recv().unwrap_or_else(|error| Err(io::Error::other(error)));
        begun.map(|()| ports).map_err(SandboxError::Start)
    }
}

impl Drop for PublishedPorts {
    fn drop(&mut self) {
        self.close = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of published ports panicked");
        }
    }
}

/// Whether such ports may be published, whoever listens on them.
///
/// # Errors
/// The first reason against it.
pub fn check_ports(ports: &[u16]) -> Result<(), SandboxError> {
    let refused = |port: u16, problem: &str| Err(SandboxError::Port { port, problem: problem.to_owned() });
    let mut seen = BTreeSet::new();
    for &port in ports {
        if port < LOWEST {
            return refused(port, "it is below 1024, where services of the machine are");
        }
        if !seen.insert(port) {
            return refused(port, "it is named twice");
        }
        if seen.len() > MOST {
            return refused(port, &format!("a command publishes {MOST} ports at most"));
        }
    }
    Ok(())
}

fn listen(port: u16) -> Result<net::TcpListener, SandboxError> {
    let listening = net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listening.map_err(|error| SandboxError::Port {
        port,
        problem: match error.kind() {
            io::ErrorKind::AddrInUse => {
                "another program of this machine listens on it: choose another one, for the server too"
                    .to_owned()
            }
            _ => error.to_string(),
        },
    })
}

/// What carries connections, on the thread that does. A runtime may be dropped there, and not where others run.
fn begin_listening(listeners: Listeners<net::TcpListener>) -> io::Result<(Runtime, Listeners<TcpListener>)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    let registered =
        listeners.into_iter().map(|(port, listener)| Ok((port, TcpListener::from_std(listener)?)));
    let registered = registered.collect::<io::Result<_>>()?;
    drop(entered);
    Ok((runtime, registered))
}

/// Carries connections until it is told to close, or whoever tells is gone.
async fn serve(listeners: Listeners<TcpListener>, carrier: Carrier, closed: oneshot::Receiver<()>) {
    let (carrier, slots) = (Arc::new(carrier), Arc::new(Semaphore::new(CONNECTIONS)));
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(accept(listener, Arc::clone(&carrier), Arc::clone(&slots)));
    }
    let _ = closed.await;
}

/// Accepts the connections of one port, which end with it.
async fn accept((port, listener): (u16, TcpListener), carrier: Arc<Carrier>, slots: Arc<Semaphore>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((outside, _)) => {
                let carrier = Arc::clone(&carrier);
                connections.spawn(async move {
                    let _slot = slot;
                    if let Err(error) = carrier.carry(outside, port).await {
                        tracing::debug!(port, %error, "a connection to a published port ended");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(port, %error, "cannot accept a connection to a published port");
                sleep(PAUSE).await;
            }
        }
    }
}

impl Carrier {
    /// Carries one connection both ways; the end of one way is told, while the other goes on.
    async fn carry(&self, mut outside: TcpStream, port: u16) -> io::Result<()> {
        self.reached.store(true, Ordering::SeqCst);
        let socket = TcpSocket::from_std_stream(self.sockets.make()?);
        let mut inside = timeout(ACCEPTING, socket.connect((Ipv4Addr::LOCALHOST, port).into())).await??;
        outside.set_nodelay(true)?;
        inside.set_nodelay(true)?;
        copy_bidirectional(&mut outside, &mut inside).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_services_too_many_and_those_named_twice_are_refused_with_the_reason() {
        assert!(check_ports(&[1024, 3000, 8000, 65535]).is_ok());
        for (ports, why) in [
            (&[80][..], "port 80 cannot be published: it is below 1024"),
            (&[0], "port 0 cannot"),
            (&[8000, 8000], "named twice"),
            (
                &[8000, 8001, 8002, 8003, 8004],
                "port 8004 cannot be published: a command publishes 4 ports at most",
            ),
        ] {
            let refused = check_ports(ports).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn a_port_is_listened_on_at_one_address_alone_and_one_that_is_taken_is_named() {
        let listener = (40_000..).find_map(|port| listen(port).ok()).unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(address.ip(), Ipv4Addr::LOCALHOST);
        // Every address of 127.0.0.0/8 is of this machine: whoever listened on all would hear it.
        let elsewhere = net::TcpStream::connect((Ipv4Addr::new(127, 0, 0, 2), address.port()));
        assert_eq!(elsewhere.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let refused = listen(address.port()).unwrap_err().to_string();
        assert!(refused.contains("another program of this machine listens on it"), "{refused}");
    }
}

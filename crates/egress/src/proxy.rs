//! Proxy of a command: it connects to the hosts that the call named, and to no other (spec: security §10).
//!
//! The command has a network of its own with nothing but a loopback, where a socket listens that is served here. The order
//! is that of the gate: the name is judged by the list of the call, then by the rule of the purpose; it is looked up; each
//! of its addresses is judged; the connection goes to these. What the command says about names before that is not looked
//! at.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::gate::{Gate, Reach, Refusal, Rule};
use crate::name::HostPort;
use crate::named_host::NamedHost;
use crate::proxy_log::ProxyLog;
use crate::proxy_request::{self, Answer, ProxyRequest, Target};
use crate::record::Purpose;

/// Connections of a command at one time; further ones wait.
const MOST: usize = 128;
/// How long a command may take for the head of a request, and a host to be connected to.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it is waited where no connection can be taken.
const PAUSE: Duration = Duration::from_millis(50);

/// Proxy of one command. Clones are one proxy.
#[derive(Clone, Debug)]
pub struct Proxy(Arc<ProxyState>);

#[derive(Debug)]
struct ProxyState {
    gate: Gate,
    rule: Rule,
    hosts: Vec<NamedHost>,
    log: ProxyLog,
}

impl Gate {
    /// A proxy to the hosts that a call names. Of this machine and its network they may be only those that the owner named.
    pub fn proxy(&self, hosts: Vec<NamedHost>, private: Vec<HostPort>) -> Proxy {
        let rule = Rule { purpose: Purpose::Command, reach: Reach::Public { named: private } };
        Proxy(Arc::new(ProxyState { gate: self.clone(), rule, hosts, log: ProxyLog::default() }))
    }
}

impl Proxy {
    /// Serves the connections of a socket until it is dropped; with it all of them end.
    ///
    /// # Errors
    /// The socket cannot be served.
    pub async fn serve(&self, listener: std::net::TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept(), if connections.len() < MOST => match accepted {
                    Ok((client, _)) => {
                        connections.spawn(self.clone().serve_one(client));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a command could not reach its proxy");
                        sleep(PAUSE).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }

    /// What went through it so far, and what was refused, in lines. Names in it are the command's.
    pub fn lines(&self) -> Vec<String> {
        self.0.log.lines()
    }

    async fn serve_one(self, mut client: TcpStream) {
        let request = match timeout(PATIENCE, proxy_request::read(&mut client)).await {
            Ok(Ok(Some(request))) => request,
            Ok(Ok(None)) | Err(_) => return,
            Ok(Err(answer)) => return say(client, answer).await,
        };
        match self.connect(&request.target).await {
            Ok((host, place)) => self.pass(client, host, (place.to_string(), request)).await,
            Err(answer) => {
                self.0.log.refused(answer.1.clone());
                say(client, answer).await;
            }
        }
    }

    /// Connects to what is asked for, once that is judged.
    async fn connect(&self, target: &Target) -> Result<(TcpStream, HostPort), Answer> {
        let refused = |refusal: Refusal| match refusal {
            Refusal::NotFound { .. } => ("502 Bad Gateway", refusal.to_string()),
            _ => ("403 Forbidden", refusal.to_string()),
        };
        let late = |place: &HostPort| ("504 Gateway Timeout", format!("{place} was not found in time"));
        let place = self.judged(target).map_err(refused)?;
        let found = timeout(PATIENCE, self.0.gate.addresses(&self.0.rule, &place)).await;
        let mut why = "it has no address".to_owned();
        for address in found.map_err(|_| late(&place))?.map_err(refused)? {
            match timeout(PATIENCE, TcpStream::connect(address)).await {
                Ok(Ok(host)) => return Ok((host, place)),
                Ok(Err(error)) => why = error.to_string(),
                Err(_) => why = "it did not answer in time".to_owned(),
            }
        }
        Err(("502 Bad Gateway", format!("{place} could not be connected to: {why}")))
    }

    /// The place that is asked for, if it is one of those that were named.
    fn judged(&self, target: &Target) -> Result<HostPort, Refusal> {
        let state = &self.0;
        let place = match target {
            Target::Tunnel(place) => place.clone(),
            Target::Address(url) => HostPort::of(url).ok_or(Refusal::NoHost)?,
        };
        if !state.hosts.iter().any(|host| host.admits(&place)) {
            return Err(Refusal::NotNamed { host: place.to_string() });
        }
        match target {
            Target::Tunnel(_) => Ok(place),
            Target::Address(url) => state.gate.judge(&state.rule, url),
        }
    }

    /// Passes bytes on between a command and a host, and counts them.
    async fn pass(&self, client: TcpStream, host: TcpStream, (name, request): (String, ProxyRequest)) {
        let counted = self.0.log.connected(name);
        let (from_client, mut to_client) = client.into_split();
        let (from_host, mut to_host) = host.into_split();
        let is_tunnel = matches!(request.target, Target::Tunnel(_));
        if is_tunnel && to_client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.is_err() {
            return;
        }
        counted.sent(request.first.len());
        if to_host.write_all(&request.first).await.is_err() {
            return;
        }
        let sending = pump(from_client, to_host, |bytes| counted.sent(bytes));
        let receiving = pump(from_host, to_client, |bytes| counted.received(bytes));
        if is_tunnel {
            tokio::join!(sending, receiving);
            return;
        }
        // The answer to the one request ends it, whatever the command goes on to send.
        let sending = async {
            sending.await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = sending => {}
            () = receiving => {}
        }
    }
}

/// Passes on what is read until its end, and says so then.
async fn pump(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, counted: impl Fn(usize)) {
    let mut bytes = vec![0; 16 << 10];
    loop {
        match from.read(&mut bytes).await {
            Ok(0) | Err(_) => break,
            Ok(length) => {
                counted(length);
                if to.write_all(&bytes[..length]).await.is_err() {
                    break;
                }
            }
        }
    }
    let _ = to.shutdown().await;
}

/// An answer of the proxy itself, with the reason.
async fn say(mut client: TcpStream, (status, why): Answer) {
    let length = why.len() + 1;
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{why}\n"
    );
    // One that hangs up does not hear it.
    let _ = timeout(PATIENCE, client.write_all(answer.as_bytes())).await;
    let _ = client.shutdown().await;
}

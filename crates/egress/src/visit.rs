//! A visit of the owner's browser at this machine's loopback: what a login comes back with. Nobody else reaches it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use httparse::Request;
use reqwest::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Bytes of the head of a visit, its headers, and how long it may take.
const HEAD: usize = 16 << 10;
const HEADERS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(10);
/// Visits at one time.
const MOST: usize = 16;

/// Whether an address is the one that is waited for.
pub type IsAwaited = dyn Fn(&Url) -> bool + Send + Sync;

/// A place of this machine that a browser is sent back to.
#[derive(Debug)]
pub struct Visited {
    listener: TcpListener,
    address: SocketAddr,
}

impl Visited {
    /// Listens at a port; at 0 any that is free.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn open(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Address of it, with this path.
    pub fn address(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits for the visit that is awaited, tells its browser that it has come, and returns its address. Others are answered
    /// that nothing is there.
    ///
    /// # Errors
    /// Nothing more is heard.
    pub async fn awaited(&self, is_awaited: Arc<IsAwaited>) -> io::Result<Url> {
        let mut visits = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if visits.len() < MOST => {
                    let (stream, _) = accepted?;
                    let (here, is_awaited) = (self.address(""), Arc::clone(&is_awaited));
                    visits.spawn(async move {
                        timeout(PATIENCE, visit(stream, &here, &*is_awaited)).await.ok().flatten()
                    });
                }
                Some(visit) = visits.join_next() => if let Ok(Some(url)) = visit {
                    return Ok(url);
                }
            }
        }
    }
}

/// Reads a request, answers it, and returns its address if it is the awaited one.
async fn visit(mut stream: TcpStream, here: &str, is_awaited: &IsAwaited) -> Option<Url> {
    let mut head = Vec::new();
    let asked = loop {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = Request::new(&mut headers);
        if request.parse(&head).ok()?.is_complete() {
            let is_get = request.method == Some("GET");
            break request.path.filter(|path| is_get && path.starts_with('/')).map(str::to_owned);
        }
        if head.len() >= HEAD || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    };
    let asked = asked.and_then(|path| Url::parse(&format!("{here}{path}")).ok());
    let asked = asked.filter(|url| is_awaited(url));
    let (status, said) = match &asked {
        Some(_) => ("200 OK", "You can close this page. Drawloom says how the login ended."),
        None => ("404 Not Found", "Nothing is here."),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nreferrer-policy: no-referrer\r\ncache-control: no-store\r\nconnection: \
         close\r\n\r\n{said}",
        said.len()
    );
    // It counts, whether or not the browser waits for the answer.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    asked
}

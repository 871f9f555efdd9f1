//! The head of a request to a proxy: `CONNECT HOST:PORT`, or an `http://` address in full.

use httparse::{Request, Status};
use reqwest::Url;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::name::HostPort;

/// Bytes of a head, and its headers.
const HEAD: usize = 64 << 10;
const HEADERS: usize = 128;
/// Headers that are about the connection to the proxy alone (RFC 9110, section 7.6.1), and the host, which is that of the
/// address.
const NOT_FORWARDED: [&str; 8] = [
    "host",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "te",
    "upgrade",
];

/// What is asked of the proxy.
#[derive(Debug)]
pub(crate) struct ProxyRequest {
    pub(crate) target: Target,
    /// What the host is sent first.
    pub(crate) first: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A tunnel to a place.
    Tunnel(HostPort),
    /// One request to an address.
    Address(Url),
}

/// An answer of the proxy itself: a status and why.
pub(crate) type Answer = (&'static str, String);

const BAD_REQUEST: &str = "400 Bad Request";

/// Reads a request; none where the other side hung up.
pub(crate) async fn read(from: &mut (impl AsyncRead + Unpin)) -> Result<Option<ProxyRequest>, Answer> {
    let mut bytes = Vec::new();
    loop {
        if let Some(request) = parse(&bytes)? {
            return Ok(Some(request));
        }
        if bytes.len() >= HEAD {
            return Err((
                "431 Request Header Fields Too Large",
                "the head of the request is too long".into(),
            ));
        }
        match from.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => return Ok(None),
            Ok(_) => {}
        }
    }
}

/// The request that some bytes begin with; none while its head is not whole.
fn parse(bytes: &[u8]) -> Result<Option<ProxyRequest>, Answer> {
    let bad = |why: String| (BAD_REQUEST, why);
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(error) => {
            return Err(bad(format!("this is a proxy of the web, and that is no request: {error}")));
        }
    };
    let (Some(method), Some(address), Some(version)) = (request.method, request.path, request.version) else {
        return Ok(None);
    };
    let rest = &bytes[length..];
    if method == "CONNECT" {
        let target = Target::Tunnel(address.parse().map_err(bad)?);
        return Ok(Some(ProxyRequest { target, first: rest.to_vec() }));
    }
    let url = Url::parse(address).ok().filter(|url| url.scheme() == "http").ok_or_else(|| {
        bad("this is a proxy: it takes CONNECT HOST:PORT, and addresses of http in full".to_owned())
    })?;
    let host = HostPort::of(&url).ok_or_else(|| bad("the address names no host".to_owned()))?;
    let query = url.query().map_or_else(String::new, |query| format!("?{query}"));
    let mut first =
        format!("{method} {}{query} HTTP/1.{version}\r\nHost: {host}\r\n", url.path()).into_bytes();
    for header in request.headers.iter() {
        if !NOT_FORWARDED.iter().any(|name| name.eq_ignore_ascii_case(header.name)) {
            first.extend([header.name.as_bytes(), b": ", header.value, b"\r\n"].concat());
        }
    }
    // Whatever follows on the connection goes to the same host.
    first.extend(b"Connection: close\r\n\r\n");
    first.extend(rest);
    Ok(Some(ProxyRequest { target: Target::Address(url), first }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_tunnel_or_an_address_in_full_and_nothing_else() {
        let tunnel = parse(b"CONNECT Example.org:443 HTTP/1.1\r\nHost: x\r\n\r\nhello").unwrap().unwrap();
        assert_eq!(tunnel.target, Target::Tunnel("example.org:443".parse().unwrap()));
        assert_eq!(tunnel.first, b"hello");
        let address = b"POST http://a.org:8080/x?y=1 HTTP/1.1\r\nHost: evil.test\r\nA: b\r\nProxy-Connection: keep-alive\r\n\
            connection: keep-alive\r\nProxy-Authorization: x\r\nContent-Length: 2\r\n\r\nhi";
        let address = parse(address).unwrap().unwrap();
        assert_eq!(address.target, Target::Address(Url::parse("http://a.org:8080/x?y=1").unwrap()));
        let first = "POST /x?y=1 HTTP/1.1\r\nHost: a.org:8080\r\nA: b\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
        assert_eq!(String::from_utf8(address.first).unwrap(), first);
        for wrong in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET https://a.org/ HTTP/1.1\r\n\r\n",
            "GET ftp://a.org/ HTTP/1.1\r\n\r\n",
            "CONNECT a.org HTTP/1.1\r\n\r\n",
            "CONNECT me@a.org:443 HTTP/1.1\r\n\r\n",
            "\u{16}\u{3}\u{1}",
        ] {
            assert_eq!(parse(wrong.as_bytes()).unwrap_err().0, BAD_REQUEST, "{wrong:?}");
        }
        assert!(parse(b"CONNECT a.org:443 HTTP/1.1\r\n").unwrap().is_none());
    }
}

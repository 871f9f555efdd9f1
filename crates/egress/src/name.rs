//! Hosts as names, judged before anything is looked up.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use reqwest::Url;

/// Endings of names that only this machine or its network knows (RFC 6761, 6762, 8375, the one ICANN reserved, and that of
/// many routers).
const LOCAL: [&str; 6] = ["localhost", "local", "internal", "home.arpa", "onion", "lan"];

/// A host's name as names are compared: in lower case, without a final dot, an IPv6 address without brackets.
pub(crate) fn normal(host: &str) -> String {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).map_or(host.clone(), str::to_owned)
}

/// Why a name cannot be one of the public network; none of one that may.
pub(crate) fn not_public(host: &str) -> Option<&'static str> {
    let ends =
        |end: &&str| host.strip_suffix(*end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if LOCAL.iter().any(ends) {
        return Some("only this machine and its network know such names");
    }
    (!host.contains('.')).then_some("it has no domain, so only this network knows it")
}

/// A host with its port, as the owner names one that lies on this machine or in its network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl HostPort {
    /// The host and port of an address; none of one that has none.
    pub fn of(url: &Url) -> Option<Self> {
        Some(Self { host: normal(url.host_str()?), port: url.port_or_known_default()? })
    }
}

impl FromStr for HostPort {
    type Err = String;

    /// Reads `HOST:PORT`, an IPv6 address in brackets.
    fn from_str(text: &str) -> Result<Self, String> {
        match written(text) {
            Some((place, true)) => Ok(place),
            _ => Err(format!("{text:?} is no HOST:PORT")),
        }
    }
}

/// Reads `HOST` or `HOST:PORT`, and whether it has a port: one without has that of `http`.
pub(crate) fn written(text: &str) -> Option<(HostPort, bool)> {
    // As an address of the web is read, so that each spelling of a number is one host.
    let url = Url::parse(&format!("http://{text}/")).ok()?;
    let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let has_user = !url.username().is_empty() || url.password().is_some();
    let is_bare = url.path() == "/" && !has_user && url.query().is_none() && url.fragment().is_none();
    // No server listens at port 0.
    let place = HostPort::of(&url).filter(|place| is_bare && place.port != 0)?;
    // An address may have characters that no name has, as `*`.
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    // Who reads addresses passes over line ends and tabs.
    let is_plain = place.host.chars().all(is_host) && !text.contains(char::is_control);
    is_plain.then_some((place, has_port))
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.parse::<Ipv6Addr>() {
            Ok(address) => write!(f, "[{address}]:{}", self.port),
            Err(_) => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// The address that a host is, where it is no name.
pub(crate) fn literal(host: &str) -> Option<IpAddr> {
    host.parse().ok()
}

//! Hosts that a call names for its command.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use crate::name::{self, HostPort};

/// Ports of a host that is named without one.
const PORTS: [u16; 2] = [443, 80];

/// A host that a command may reach, by its exact name: at one port, or at those of https and http.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedHost {
    host: String,
    port: Option<u16>,
}

impl NamedHost {
    /// Name of the host, without a port.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn admits(&self, place: &HostPort) -> bool {
        self.host == place.host && self.port.map_or(PORTS.contains(&place.port), |port| port == place.port)
    }
}

impl FromStr for NamedHost {
    type Err = String;

    /// Reads `HOST` or `HOST:PORT`, an IPv6 address in brackets.
    fn from_str(text: &str) -> Result<Self, String> {
        let no_host = || format!("{text:?} is no HOST or HOST:PORT, with a port of 1 to 65535");
        if text.contains('*') {
            return Err(format!("{}: each host is named by itself, without `*`", no_host()));
        }
        let (HostPort { host, port }, has_port) = name::written(text).ok_or_else(no_host)?;
        Ok(Self { host, port: has_port.then_some(port) })
    }
}

impl fmt::Display for NamedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.host.parse::<Ipv6Addr>().is_ok() { ("[", "]") } else { ("", "") };
        write!(f, "{open}{}{close}", self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_host_is_exact_and_has_the_ports_of_the_web_or_its_own() {
        let admits =
            |named: &str, place: &str| named.parse::<NamedHost>().unwrap().admits(&place.parse().unwrap());
        for (named, place) in [
            ("example.org", "example.org:443"),
            ("example.org", "EXAMPLE.org.:80"),
            ("example.org:8443", "example.org:8443"),
            ("example.org:80", "example.org:80"),
            ("[::1]", "[::1]:443"),
            ("0x7f.1:8080", "127.0.0.1:8080"),
        ] {
            assert!(admits(named, place), "{named} {place}");
        }
        for (named, place) in [
            ("example.org", "example.org:8443"),
            ("example.org", "www.example.org:443"),
            ("www.example.org", "example.org:443"),
            ("example.org:8443", "example.org:443"),
            ("example.org:80", "example.org:443"),
            ("example.org", "example.org.evil.test:443"),
        ] {
            assert!(!admits(named, place), "{named} {place}");
        }
        for wrong in [
            "",
            "*.example.org",
            "*",
            "https://example.org",
            "a b",
            "me@a.org",
            ":x@a.org",
            "a.org/x",
            "a.org:x",
            "a.org:0",
            "[::1]:0",
        ] {
            assert!(wrong.parse::<NamedHost>().is_err(), "{wrong}");
        }
        assert_eq!("[::1]:80".parse::<NamedHost>().unwrap().to_string(), "[::1]:80");
    }
}

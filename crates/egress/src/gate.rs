//! Rules of a purpose, and the judgement of names and addresses by them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;

use crate::address;
use crate::name::{self, HostPort};
use crate::record::Purpose;
use crate::resolve::{Resolve, System};

/// How far a connection may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Anywhere: the owner chose the host, which may lie on this machine or in its network.
    Anywhere,
    /// The public network; what the owner named may lie elsewhere.
    Public { named: Vec<HostPort> },
}

/// Rule of one purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub purpose: Purpose,
    pub reach: Reach,
}

/// What opens a place that is not public (spec: security §10).
const HINT: &str = "its owner can name it, with its port, in web.private_hosts";

/// Why a connection is not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("only http and https are spoken, not {0}")]
    Scheme(String),
    #[error("the address holds a user name or a password: it is sent nowhere")]
    Credentials,
    #[error("the address names no host")]
    NoHost,
    #[error("{host} is not reached: {why}; {HINT}")]
    Name { host: String, why: &'static str },
    #[error("{host} is not reached: it is at {address}, and {why}; {HINT}")]
    Address { host: String, address: IpAddr, why: &'static str },
    #[error("{host} is not reached: only {named} is opened for this")]
    Port { host: String, named: HostPort },
    /// A command asked for a host that its call does not name.
    #[error("{host} is not reached: it is none of the hosts that were named")]
    NotNamed { host: String },
    #[error("{host} was not found: {why}")]
    NotFound { host: String, why: String },
}

/// The gate. Clones are one gate.
#[derive(Clone)]
pub struct Gate {
    resolver: Arc<dyn Resolve>,
    /// Addresses that a test has as public ones.
    #[cfg(test)]
    pub(crate) public: Vec<IpAddr>,
}

impl Default for Gate {
    fn default() -> Self {
        Self::resolving(Arc::new(System))
    }
}

impl Gate {
    /// A gate whose names are looked up so.
    pub fn resolving(resolver: Arc<dyn Resolve>) -> Self {
        Self {
            resolver,
            #[cfg(test)]
            public: Vec::new(),
        }
    }

    /// Judges the form and the host of an address, a numeric one included. Nothing is looked up.
    ///
    /// # Errors
    /// Why nothing goes there.
    pub fn judge(&self, rule: &Rule, url: &Url) -> Result<HostPort, Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal::Scheme(url.scheme().to_owned()));
        }
        let place = HostPort::of(url).ok_or(Refusal::NoHost)?;
        if rule.reach != Reach::Anywhere && !(url.username().is_empty() && url.password().is_none()) {
            return Err(Refusal::Credentials);
        }
        self.judge_host(rule, &place)?;
        Ok(place)
    }

    fn judge_host(&self, rule: &Rule, place: &HostPort) -> Result<(), Refusal> {
        let Reach::Public { named } = &rule.reach else { return Ok(()) };
        if named.contains(place) {
            return Ok(());
        }
        let host = &place.host;
        if let Some(other) = named.iter().find(|other| other.host == *host) {
            return Err(Refusal::Port { host: place.to_string(), named: other.clone() });
        }
        match name::literal(host) {
            Some(address) => self.judge_address(rule, host, address),
            None => {
                name::not_public(host).map_or(Ok(()), |why| Err(Refusal::Name { host: host.clone(), why }))
            }
        }
    }

    fn judge_address(&self, rule: &Rule, host: &str, address: IpAddr) -> Result<(), Refusal> {
        let Reach::Public { named } = &rule.reach else { return Ok(()) };
        if named.iter().any(|place| place.host == host) {
            return Ok(());
        }
        #[cfg(test)]
        if self.public.contains(&address) {
            return Ok(());
        }
        let own = || address::is_own(address).then_some("that address is this machine's");
        match address::not_public(address).or_else(own) {
            Some(why) => Err(Refusal::Address { host: host.to_owned(), address, why }),
            None => Ok(()),
        }
    }

    /// The addresses of a host that a connection may go to: each was judged, and there is no other lookup before it. One
    /// that is not allowed refuses them all.
    ///
    /// # Errors
    /// Why nothing goes there.
    pub async fn addresses(&self, rule: &Rule, place: &HostPort) -> Result<Vec<SocketAddr>, Refusal> {
        self.judge_host(rule, place)?;
        let found = match name::literal(&place.host) {
            Some(address) => vec![address],
            None => self.look_up(rule, &place.host).await?,
        };
        Ok(found.into_iter().map(|address| SocketAddr::new(address, place.port)).collect())
    }

    /// The judged addresses of a name that was judged.
    pub(crate) async fn look_up(&self, rule: &Rule, host: &str) -> Result<Vec<IpAddr>, Refusal> {
        let not_found = |why: String| Refusal::NotFound { host: host.to_owned(), why };
        let found = self.resolver.resolve(host).await.map_err(|error| not_found(error.to_string()))?;
        let normal = name::normal(host);
        for address in &found {
            self.judge_address(rule, &normal, *address)?;
        }
        if found.is_empty() { Err(not_found("it has no address".to_owned())) } else { Ok(found) }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

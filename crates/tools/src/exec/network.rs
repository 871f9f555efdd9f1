//! Network of a command: none, the hosts that its call names, or any (spec: security §10).
//!
//! With named hosts a command has a network of its own in which there is nothing but its proxy, which is the gate of all
//! that leaves; what a program does without the proxy reaches nobody. What comes is from outside, and so is what the
//! command makes of it.

use std::fmt;

use egress::{Gate, HostPort, NamedHost, Proxy};
use policy::NetworkWish;
use sandbox::{Level, Network, Notice, Outcome, PROXY_PORT, Session, Walls};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::changes::line_name;

/// Hosts that a call names at most: whoever is asked reads all of them.
const MOST: usize = 16;
/// Names of this machine, which is the command's own network here.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Settings by which package managers that find no network say so at once, and not after a minute.
const WITHOUT_RETRIES: [(&str, &str); 2] = [("npm_config_fetch_retries", "0"), ("PIP_RETRIES", "0")];

/// What commands with network go through.
#[derive(Clone, Debug, Default)]
pub struct CommandEgress {
    pub gate: Gate,
    /// Hosts of this machine or its network that a call may name.
    pub private_hosts: Vec<HostPort>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum NetArgument {
    Word(NetWord),
    Hosts(Vec<String>),
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NetWord {
    Off,
    Open,
}

impl Default for NetArgument {
    fn default() -> Self {
        Self::Word(NetWord::Off)
    }
}

/// Network that a command asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkRequest {
    Off,
    Hosts(Vec<NamedHost>),
    /// Any host, this machine and its network included.
    Open,
}

impl NetArgument {
    /// What is asked for.
    ///
    /// # Errors
    /// A host is none, or there are too many or none at all.
    pub(crate) fn request(&self) -> Result<NetworkRequest, String> {
        match self {
            Self::Word(NetWord::Off) => Ok(NetworkRequest::Off),
            Self::Word(NetWord::Open) => Ok(NetworkRequest::Open),
            Self::Hosts(hosts) => NetworkRequest::to(hosts),
        }
    }

    /// What policy is told.
    pub(crate) fn wish(&self) -> NetworkWish {
        match (self.request(), self) {
            (Ok(request), _) => request.wish(),
            // The call itself is refused.
            (Err(_), Self::Hosts(hosts)) => NetworkWish::Hosts(hosts.clone()),
            (Err(_), Self::Word(_)) => NetworkWish::Open,
        }
    }
}

impl NetworkRequest {
    /// A network with these hosts.
    ///
    /// # Errors
    /// A host is none, or there are too many or none at all.
    pub fn to(hosts: &[String]) -> Result<Self, String> {
        if hosts.is_empty() || hosts.len() > MOST {
            return Err(format!("net names {} hosts: it takes 1 to {MOST}, or `off`", hosts.len()));
        }
        if let Some(word) = hosts.iter().find(|host| ["off", "open"].contains(&host.as_str())) {
            return Err(format!("net names {word} among hosts: it stands alone"));
        }
        let hosts = hosts.iter().map(|host| host.parse().map_err(|why| format!("net: {why}")));
        hosts.collect::<Result<_, String>>().map(Self::Hosts)
    }

    /// What policy is told: of hosts their names, as rules have them.
    pub(crate) fn wish(&self) -> NetworkWish {
        match self {
            Self::Off => NetworkWish::Off,
            Self::Hosts(hosts) => {
                NetworkWish::Hosts(hosts.iter().map(|host| host.host().to_owned()).collect())
            }
            Self::Open => NetworkWish::Open,
        }
    }

    pub fn is_on(&self) -> bool {
        *self != Self::Off
    }

    /// Whether a machine at a level of the sandbox has such a network.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check(&self, level: Level) -> Result<(), String> {
        match self {
            Self::Hosts(_) if level < Level::Full => Err(format!(
                "named hosts need the sandbox at level full, where a command has a network of its own; here it is {level}"
            )),
            Self::Off | Self::Hosts(_) | Self::Open => Ok(()),
        }
    }

    /// Makes it for one command, and says in the walls how programs find it. It blocks, and needs a runtime of this thread
    /// to serve the proxy.
    ///
    /// # Errors
    /// It cannot be had here.
    pub fn open(
        &self,
        session: &Session,
        egress: &CommandEgress,
        walls: &mut Walls,
    ) -> Result<CommandNetwork, String> {
        self.check(session.level())?;
        let hosts = match self {
            Self::Hosts(hosts) => hosts,
            Self::Open => {
                walls.network = Network::Open;
                return Ok(CommandNetwork { session: session.clone(), proxy: None });
            }
            Self::Off => {
                walls.network = Network::Off;
                for (name, value) in WITHOUT_RETRIES {
                    walls.environment.entry(name.to_owned()).or_insert_with(|| value.to_owned());
                }
                return Ok(CommandNetwork { session: session.clone(), proxy: None });
            }
        };
        let runtime = Handle::try_current().map_err(|error| error.to_string())?;
        let (session, listener) = session.with_own_network().map_err(|error| error.to_string())?;
        walls.environment.extend(variables(hosts));
        let proxy = egress.gate.proxy(hosts.clone(), egress.private_hosts.clone());
        let serving = proxy.clone();
        let task = runtime.spawn(async move {
            if let Err(error) = serving.serve(listener).await {
                tracing::warn!(%error, "the proxy of a command is not served");
            }
        });
        Ok(CommandNetwork { session, proxy: Some(ServedProxy { proxy, task: task.abort_handle() }) })
    }
}

impl fmt::Display for NetworkRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("no network"),
            Self::Hosts(hosts) => {
                let hosts: Vec<String> = hosts.iter().map(NamedHost::to_string).collect();
                f.write_str(&hosts.join(", "))
            }
            Self::Open => f.write_str("any host, the local network and this machine included"),
        }
    }
}

/// Network of one command. With it go the proxy and its connections.
#[derive(Debug)]
pub struct CommandNetwork {
    /// The session that the command runs in.
    pub session: Session,
    proxy: Option<ServedProxy>,
}

#[derive(Debug)]
struct ServedProxy {
    proxy: Proxy,
    task: AbortHandle,
}

impl Drop for ServedProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl CommandNetwork {
    /// The notices about a command without those that are not true of one that had this network.
    pub fn correct(&self, outcome: &mut Outcome) {
        if self.proxy.is_some() {
            outcome.notices.retain(|notice| *notice != Notice::NetworkSeemsMissing);
        }
    }

    /// What it reached so far and what it was refused, in lines.
    pub fn lines(&self) -> Vec<String> {
        lines(self.proxy.as_ref().map(|served| &served.proxy))
    }

    /// What says [`Self::lines`] also once this is gone; none where no hosts were named.
    pub fn teller(&self) -> Option<impl Fn() -> Vec<String> + Send + Sync + 'static> {
        let proxy = self.proxy.as_ref()?.proxy.clone();
        Some(move || lines(Some(&proxy)))
    }

    /// [`Self::lines`] as a part of a result; none where there is nothing to tell.
    pub(crate) fn told(&self) -> Option<String> {
        told(self.proxy.as_ref().map(|served| &served.proxy))
    }

    /// The session that the command runs in, what tells of its proxy, and what serves that until it is dropped.
    pub(super) fn into_parts(self) -> (Session, Option<Proxy>, impl Send + 'static) {
        let proxy = self.proxy.as_ref().map(|served| served.proxy.clone());
        (self.session, proxy, self.proxy)
    }
}

/// What was reached by a proxy and what was refused, in lines.
fn lines(proxy: Option<&Proxy>) -> Vec<String> {
    let lines = proxy.into_iter().flat_map(Proxy::lines);
    lines.map(|line| line_name(&line)).collect()
}

/// [`lines`] as a part of a result; none where there is nothing to tell.
pub(super) fn told(proxy: Option<&Proxy>) -> Option<String> {
    let lines = lines(proxy);
    (!lines.is_empty()).then(|| format!("[network]\n{}", lines.join("\n")))
}

/// Settings by which programs use the proxy: those that curl, wget, pip, cargo and most others read, and those of npm,
/// node and git, of which the last else prefers what its configuration says.
fn variables(hosts: &[NamedHost]) -> Vec<(String, String)> {
    let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
    let direct: Vec<&str> =
        LOOPBACK.into_iter().filter(|own| hosts.iter().all(|host| host.host() != *own)).collect();
    let direct = direct.join(",");
    let either_case = |name: &str, value: &str| {
        [name.to_owned(), name.to_ascii_uppercase()].map(|name| (name, value.to_owned()))
    };
    let mut variables: Vec<(String, String)> = ["http_proxy", "https_proxy", "all_proxy"]
        .iter()
        .flat_map(|name| either_case(name, &proxy))
        .chain(either_case("no_proxy", &direct))
        .collect();
    let own = [
        ("npm_config_proxy", proxy.as_str()),
        ("npm_config_https_proxy", &proxy),
        ("npm_config_noproxy", &direct),
        ("NODE_USE_ENV_PROXY", "1"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "http.proxy"),
        ("GIT_CONFIG_VALUE_0", &proxy),
    ];
    variables.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
    variables
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn wish(net: Value) -> NetworkWish {
        serde_json::from_value::<NetArgument>(net).unwrap().wish()
    }

    #[test]
    fn policy_is_told_names_as_rules_have_them_and_of_what_is_no_host_no_less() {
        let hosts = |names: &[&str]| NetworkWish::Hosts(names.iter().map(|&name| name.to_owned()).collect());
        assert_eq!(
            wish(json!(["EXAMPLE.org.:8443", "0x7f.1", "[::1]:80"])),
            hosts(&["example.org", "127.0.0.1", "::1"])
        );
        assert_eq!(
            wish(json!(["example.org", "https://evil.test/"])),
            hosts(&["example.org", "https://evil.test/"])
        );
        assert_eq!(wish(json!([])), hosts(&[]));
        assert_eq!((wish(json!("off")), wish(json!("open"))), (NetworkWish::Off, NetworkWish::Open));
        assert_eq!(NetArgument::default().wish(), NetworkWish::Off);
    }

    #[test]
    fn named_hosts_are_only_where_a_command_has_a_network_of_its_own() {
        let hosts = NetworkRequest::to(&["example.org".to_owned()]).unwrap();
        assert!(hosts.check(Level::Full).is_ok());
        for level in [Level::Partial, Level::None] {
            assert!(hosts.check(level).unwrap_err().contains("need the sandbox at level full"), "{level}");
            assert!(NetworkRequest::Open.check(level).is_ok() && NetworkRequest::Off.check(level).is_ok());
        }
    }

    #[test]
    fn programs_find_the_proxy_and_reach_only_the_loopback_that_is_not_named_without_it() {
        let set = |hosts: &[&str]| {
            let hosts: Vec<NamedHost> = hosts.iter().map(|host| host.parse().unwrap()).collect();
            variables(&hosts).into_iter().collect::<std::collections::BTreeMap<_, _>>()
        };
        let usual = set(&["example.org"]);
        for name in ["HTTP_PROXY", "https_proxy", "ALL_PROXY", "npm_config_https_proxy", "GIT_CONFIG_VALUE_0"]
        {
            assert_eq!(usual[name], "http://127.0.0.1:3128", "{name}");
        }
        assert_eq!(usual["no_proxy"], "localhost,127.0.0.1,::1");
        assert_eq!(set(&["127.0.0.1:8080", "localhost"])["NO_PROXY"], "::1");
    }
}

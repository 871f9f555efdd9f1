//! Ports of this machine that a call asks for, for the server it starts (spec: security §1).

use sandbox::{Level, PROXY_PORT, PublishedPorts, SandboxError, Session, check_ports};

use super::{Arguments, NetworkRequest};
use crate::tool::ToolScope;

/// Whether the ports of a call may be published, as far as that is known before anybody is asked.
///
/// # Errors
/// Why none of them is.
pub(super) fn check(scope: &ToolScope, arguments: &Arguments) -> Result<(), String> {
    if arguments.publish.is_empty() {
        return Ok(());
    }
    if !arguments.background {
        return Err("publish is for a server that runs in the background: say so with background".to_owned());
    }
    let names_hosts = matches!(arguments.net.request(), Ok(NetworkRequest::Hosts(_)));
    if names_hosts && arguments.publish.contains(&PROXY_PORT) {
        return Err(format!(
            "port {PROXY_PORT} cannot be published where net names hosts: the proxy to them listens there"
        ));
    }
    let level = scope.commands.as_ref().map_or(Level::Full, |commands| commands.session.level());
    let possible = match level {
        Level::Full => check_ports(&arguments.publish),
        lower => Err(SandboxError::NoNetwork(lower)),
    };
    possible.map_err(|error| error.to_string())
}

/// What a question shows of them.
pub(super) fn shown(arguments: &Arguments) -> impl Iterator<Item = String> + '_ {
    arguments.publish.iter().map(|port| format!("opens 127.0.0.1:{port} of this machine to its port {port}"))
}

/// Listens; nothing where no port is asked for.
pub(super) fn publish(session: &Session, ports: &[u16]) -> Result<Option<PublishedPorts>, String> {
    if ports.is_empty() {
        return Ok(None);
    }
    session.publish(ports).map(Some).map_err(|error| error.to_string())
}

/// Addresses at which a command is reached; none of one without.
pub(super) fn addresses(published: Option<&PublishedPorts>) -> Option<String> {
    let addresses = published?.addresses().iter().map(ToString::to_string);
    Some(addresses.collect::<Vec<_>>().join(", "))
}

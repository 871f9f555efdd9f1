//! Where a server is and how the way to it is protected, out of `store.url`.
//!
//! `sslmode` is `disable`, `require` or `verify-full`. A certificate is always checked, also under `require`: what is
//! encrypted to nobody in particular is not protected. Without the parameter, a socket or a loopback address is used
//! as it is, every other host as under `verify-full`. `sslrootcert` names a file of certificates to believe besides
//! those of the system.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{ServerError, StoreError};
use crate::server::{ServerOptions, check_showable};

/// How long connecting to one host takes at most.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a server may leave bytes unacknowledged.
const SILENT: Duration = Duration::from_secs(30);

/// A way to a server.
pub(super) struct Route {
    pub(super) config: Config,
    /// None: unprotected.
    pub(super) tls: Option<MakeRustlsConnect>,
    /// The server, as errors name it.
    pub(super) server: String,
}

impl Route {
    pub(super) fn new(options: &ServerOptions) -> Result<Self, StoreError> {
        let (mut config, protected, roots) = parse(&options.url)?;
        if let Some(password) = &options.password {
            config.password(password);
        }
        config.connect_timeout(CONNECT).tcp_user_timeout(SILENT).application_name("drawloom");
        config.ssl_mode(if protected { SslMode::Require } else { SslMode::Disable });
        let tls = if protected { Some(connector(roots.as_deref())?) } else { None };
        let server = name(&config);
        Ok(Self { config, tls, server })
    }
}

/// Reads a URL: the server, whether the way to it is protected, and the file of certificates. Nothing is opened.
fn parse(url: &str) -> Result<(Config, bool, Option<String>), ServerError> {
    check_showable(url)?;
    let (url, mode, roots) = split(url);
    let config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
        let why = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        ServerError::Url(format!("{error}: {why}"))
    })?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(ServerError::Url("it names no host".to_owned()));
    }
    let protected = match mode.as_deref() {
        Some("disable") => false,
        Some("require" | "verify-full") => true,
        Some(other) => {
            let why = format!("sslmode is disable, require or verify-full, not {other}");
            return Err(ServerError::Url(why));
        }
        None => !config.get_hosts().iter().all(is_here),
    };
    Ok((config, protected, roots))
}

/// As [`ServerOptions::check_url`].
pub(crate) fn check_url(url: &str) -> Result<(), ServerError> {
    parse(url).map(drop)
}

/// Takes `sslmode` and `sslrootcert` out of a URL.
fn split(url: &str) -> (String, Option<String>, Option<String>) {
    let Some((address, query)) = url.split_once('?') else { return (url.to_owned(), None, None) };
    let (mut mode, mut roots, mut kept) = (None, None, Vec::new());
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", value)) => mode = Some(value.to_owned()),
            Some(("sslrootcert", value)) => roots = Some(value.replace("%2F", "/")),
            _ => kept.push(pair),
        }
    }
    let url = if kept.is_empty() { address.to_owned() } else { format!("{address}?{}", kept.join("&")) };
    (url, mode, roots)
}

/// Whether a host is this machine.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

fn name(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => config.get_hostaddrs().first().map(ToString::to_string).unwrap_or_default(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().or(config.get_user()).unwrap_or("postgres");
    format!("{database} on {host}:{port}")
}

fn connector(file: Option<&str>) -> Result<MakeRustlsConnect, StoreError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // The connector of the system's certificates takes the process's provider; another part may have set it.
    rustls::crypto::ring::default_provider().install_default().ok();
    let Some(file) = file else {
        let (connector, errors) = MakeRustlsConnect::with_native_certs().map_err(|errors| {
            let why = errors.first().map(ToString::to_string).unwrap_or_default();
            ServerError::Url(format!("the system has no certificates to check the server's by: {why}"))
        })?;
        errors.iter().for_each(|error| tracing::warn!(%error, "a certificate of the system cannot be read"));
        return Ok(connector);
    };
    let unreadable = |why: String| ServerError::Url(format!("sslrootcert {file}: {why}"));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unreadable(error.to_string()))? {
        let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
    }
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unreadable(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::StoreId;

    fn route(url: &str) -> Result<Route, StoreError> {
        Route::new(&ServerOptions::new(url, StoreId([0; 16])))
    }

    #[test]
    fn only_this_machine_is_reached_unprotected_unless_it_is_said() {
        for (url, protected) in [
            ("postgres://u@localhost/d", false),
            ("postgres://u@127.0.0.1:5433/d", false),
            ("postgres://u@%2Frun%2Fpostgresql/d", false),
            ("postgres://u@10.0.0.7/d?sslmode=disable", false),
            ("postgres://u@db.example/d", true),
            ("postgres://u@localhost/d?sslmode=verify-full", true),
            ("postgres://u@localhost/d?connect_timeout=3&sslmode=require", true),
        ] {
            match route(url) {
                Ok(route) => assert_eq!(route.tls.is_some(), protected, "{url}"),
                // A machine without certificates.
                Err(error) => assert!(protected && error.to_string().contains("certificates"), "{error}"),
            }
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_by_name() {
        for (url, named) in [
            ("postgres://u:secret@localhost/d", "password"),
            ("postgres://u@localhost/d?sslmode=prefer", "sslmode"),
            ("postgres://u@localhost/d?sslmode=require&sslrootcert=/nowhere/ca.pem", "/nowhere/ca.pem"),
            ("mysql://u@localhost/d", "postgres://"),
            ("postgres://u@localhost:port/d", "store.url"),
        ] {
            let refused = route(url).err().unwrap().to_string();
            assert!(refused.contains(named) && !refused.contains("secret"), "{refused}");
        }
    }

    #[test]
    fn a_server_is_named_by_database_host_and_port() {
        assert_eq!(route("postgres://u@localhost/d").unwrap().server, "d on localhost:5432");
        assert_eq!(route("postgres://u@%2Frun%2Fpg:5433/d").unwrap().server, "d on /run/pg:5433");
    }
}

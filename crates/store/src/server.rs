//! How a store on a database server is reached.

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::error::{ServerError, StoreError};
use crate::home::{STORE_ID, UnfinishedFile, rename_new};
use crate::identity::StoreId;
use crate::limits::StoreLimits;

/// Where a store on PostgreSQL is, and who asks.
#[derive(Clone)]
pub struct ServerOptions {
    /// `postgres://user@host/database?sslmode=verify-full`, as libpq reads it; without a password.
    pub url: String,
    /// The user's password, if the server wants one.
    pub password: Option<String>,
    /// The id the home has for its store. A database without tables takes it; one with another id is refused.
    pub store: StoreId,
    /// Whether the tables are made where there are none.
    pub makes_tables: bool,
    /// Connections at most, each with a thread: `pg_pool`.
    pub pool: usize,
    /// What is refused, cut short or reported.
    pub limits: StoreLimits,
}

/// Connections of a process at most, where nothing else is said.
const POOL: usize = 16;

impl ServerOptions {
    /// A database with default limits.
    pub fn new(url: impl Into<String>, store: StoreId) -> Self {
        let limits = StoreLimits::default();
        Self { url: url.into(), password: None, store, makes_tables: true, pool: POOL, limits }
    }

    /// Checks a URL without asking the server. A program without the engine connects to none: it checks whose scheme
    /// it has and that it can be shown.
    ///
    /// # Errors
    /// [`ServerError::Url`].
    pub fn check_url(url: &str) -> Result<(), ServerError> {
        check_showable(url)?;
        #[cfg(feature = "postgres")]
        crate::postgres::check_url(url)?;
        Ok(())
    }
}

/// Refuses a URL that is none of PostgreSQL, or contains a password wherever libpq or a reader may find one: a URL is
/// shown in settings, checks and errors.
pub(crate) fn check_showable(url: &str) -> Result<(), ServerError> {
    let address = ["postgres://", "postgresql://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    let refused = |why: &str| Err(ServerError::Url(why.to_owned()));
    let Some(address) = address else { return refused("it must begin with postgres://") };
    let (place, query) = address.split_once('?').unwrap_or((address, ""));
    // A password may hold any sign unescaped: the user ends at the first @ before a slash, or at the last one before
    // the query. Where neither is there, what is no port may be the beginning of one, and its end in the query.
    let authority = address.split_once('/').map_or(address, |(authority, _)| authority);
    let users = [authority.split_once('@'), place.rsplit_once('@')];
    let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
    let hosts = hosts.split_once('?').map_or(hosts, |(hosts, _)| hosts);
    let mut ports = hosts.split(',').filter_map(|host| {
        host.rsplit_once(']').map_or(host, |(_, port)| port).split_once(':').map(|(_, port)| port)
    });
    let keys = || query.split('&').map(|pair| pair.split_once('=').map_or(pair, |(key, _)| key));
    if users.into_iter().flatten().any(|(user, _)| user.contains(':'))
        || keys().any(|key| key.contains('@') || key.to_ascii_lowercase().contains("password"))
    {
        return refused("it contains a password: put it into DRAWLOOM_STORE_PASSWORD or keys.toml");
    }
    if ports.any(|port| !port.bytes().all(|byte| byte.is_ascii_digit())) {
        return refused(
            "a port in it is no number: a password, if this is one, goes into DRAWLOOM_STORE_PASSWORD or keys.toml",
        );
    }
    if !query.is_empty() && keys().any(|key| !PARAMETERS.contains(&key)) {
        return refused("a parameter in it is none that libpq knows, or is not written plainly");
    }
    Ok(())
}

/// Parameters of libpq that are no passwords: after any other name, the end of a password may stand in a query.
const PARAMETERS: [&str; 42] = [
    "application_name",
    "channel_binding",
    "client_encoding",
    "connect_timeout",
    "dbname",
    "fallback_application_name",
    "gssdelegation",
    "gssencmode",
    "gsslib",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "krbsrvname",
    "load_balance_hosts",
    "max_protocol_version",
    "min_protocol_version",
    "options",
    "passfile",
    "port",
    "replication",
    "require_auth",
    "requirepeer",
    "requiressl",
    "service",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcert",
    "sslcertmode",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslkey",
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "sslsni",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

impl StoreId {
    /// The id that a home has for its store on a server, made at the first call: 32 hexadecimal digits in `store.id`.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the file cannot be read or made; [`StoreError::Foreign`] when it holds something else.
    pub fn of_home(home: &Path) -> Result<Self, StoreError> {
        Self::of_home_with(home, rename_new)
    }

    fn of_home_with(
        home: &Path,
        mut rename_new: impl FnMut(&Path, &Path) -> io::Result<bool>,
    ) -> Result<Self, StoreError> {
        let path = home.join(STORE_ID);
        let failed = |error| StoreError::io(format!("open {}", path.display()), error);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let id = data_encoding::HEXLOWER.decode(text.trim().as_bytes()).ok();
                let id = id.and_then(|id| id.try_into().ok()).map(Self);
                return id.ok_or_else(|| StoreError::Foreign(path.display().to_string()));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        // Named when it is whole; the name of another process that was faster stays.
        let id = Self::random()?;
        let new = home.join(UnfinishedFile::StoreId.new_name()?);
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new).map_err(failed)?;
        file.write_all(id.to_string().as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        let named = rename_new(&new, &path);
        if !matches!(named, Ok(true)) {
            std::fs::remove_file(&new).ok();
        }
        match named {
            // Another process was first, and may have swept this one's; or it has its store in a file.
            _ if path.exists() => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Self::of_home_with(home, rename_new),
            named => drop(named.map_err(failed)?),
        }
        File::open(home).and_then(|home| home.sync_all()).map_err(failed)?;
        Self::of_home_with(home, rename_new)
    }
}

impl std::fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerOptions").field("url", &self.url).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::{Home, HomeOptions};

    #[test]
    fn a_home_keeps_the_id_of_its_store() {
        let home = tempfile::tempdir().unwrap();
        let id = StoreId::of_home(home.path()).unwrap();
        assert_eq!(StoreId::of_home(home.path()).unwrap(), id);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
        std::fs::write(home.path().join(STORE_ID), "something else").unwrap();
        assert!(matches!(StoreId::of_home(home.path()), Err(StoreError::Foreign(_))));
    }

    /// A process that has its store in a file sweeps what is not finished.
    #[test]
    fn an_id_that_is_swept_before_it_has_its_name_is_made_again() {
        let home = tempfile::tempdir().unwrap();
        let mut times = 0;
        let swept_once = |from: &Path, to: &Path| {
            times += 1;
            if times == 1 {
                std::fs::remove_file(from)?;
            }
            rename_new(from, to)
        };
        let id = StoreId::of_home_with(home.path(), swept_once).unwrap();
        assert_eq!((times, StoreId::of_home(home.path()).unwrap()), (2, id));
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_id_that_is_being_made_is_part_of_a_home() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(UnfinishedFile::StoreId.new_name().unwrap()), "").unwrap();
        Home::open(folder.path(), HomeOptions::default()).unwrap();
        std::fs::write(folder.path().join("store.id.old"), "").unwrap();
        assert!(Home::open(folder.path(), HomeOptions::default()).is_err(), "the control: it is somebody's");
    }

    #[test]
    fn no_url_with_a_password_can_be_shown() {
        for url in [
            "postgres://u:canary@h/d",
            "postgresql://u:canary@h/d",
            "postgres://:canary@h/d",
            "postgres://u:ca/nary@h/d",
            "postgres://u:ca?nary@h/d",
            "postgres://u:ca@nary@h/d",
            "postgres://u@x:canary@h/d",
            "postgres://u:12?n=canary@h/d",
            "postgres://u:12/n?canary@h/d",
            "postgres://u:12/n?x=canary@h/d",
            "postgres://u:ca/n?a=canary@h/d",
            "postgres://u:ca/n?ary@h/canary",
            "postgres://h/d?password=canary",
            "postgres://h/d?connect_timeout=3&password=canary",
            "postgres://h/d?pass%77ord=canary",
            "postgres://h/d?sslPassword=canary",
            "mysql://u@h/canary",
            "host=h password=canary",
        ] {
            let refused = check_showable(url).unwrap_err().to_string();
            assert!(!refused.contains("canary"), "{refused}");
            assert!(ServerOptions::check_url(url).is_err(), "{url}");
        }
        for url in [
            "postgres://u@h:5432/d?options=-csearch_path%3Da&application_name=b@c",
            "postgres://h:5432/d",
            "postgres://h/d?sslmode=verify-full&connect_timeout=3&target_session_attrs=read-write",
            "postgres://h:5432/d?application_name=b@c",
            "postgres://u@h1:5432,[::1]:5433,h2/d?application_name=b@c",
            "postgres://h",
            "postgres://u@h:/d",
            "postgres://u@%2Frun%2Fpostgresql:5433/d",
            "postgres://u@[::1]:5432/d",
        ] {
            assert_eq!(check_showable(url), Ok(()), "{url}");
        }
    }

    #[cfg(not(feature = "postgres"))]
    #[test]
    fn a_program_without_the_engine_says_so() {
        let refused =
            crate::Store::connect(&ServerOptions::new("postgres://u@localhost/d", StoreId([0; 16])));
        assert!(matches!(refused, Err(StoreError::Server(crate::ServerError::NotBuilt))));
    }
}

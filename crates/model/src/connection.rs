//! How to reach a server: its address, the key, and how long to wait for what.

use std::fmt;

use crate::capture::Clock;
use crate::endpoint::{Endpoint, EndpointError};
use crate::model::ModelPlace;
use crate::retry::RetryPolicy;

pub use crate::receive::Timeouts;

/// A key for a provider. It is shown nowhere, not even in debug output.
#[derive(Clone)]
pub struct ApiKey(pub(crate) String);

impl ApiKey {
    /// A key as it stands in the configuration.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// How to reach a server.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Base URL, with or without `/v1`.
    pub base_url: String,
    /// The key, where the server wants one.
    pub key: Option<ApiKey>,
    /// Allows plain `http` to a public host.
    pub insecure_http: bool,
    /// A proxy to go through; the environment's proxies are never used.
    pub proxy: Option<String>,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// How to repeat failed requests.
    pub retry: RetryPolicy,
    pub clock: Clock,
}

impl Connection {
    /// A connection with the usual limits.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            key: None,
            insecure_http: false,
            proxy: None,
            timeouts: Timeouts::default(),
            retry: RetryPolicy::patient(),
            clock: Clock::system(),
        }
    }
}

/// Why a server cannot even be addressed.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A base URL that must not be used.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The key cannot stand in a header.
    #[error("the API key holds characters that no header may hold")]
    Key,
    /// The HTTP client cannot be made.
    #[error("no HTTP client: {0}")]
    Client(#[source] egress::Error),
}

impl SetupError {
    /// A stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Endpoint(error) => error.code(),
            Self::Key => "bad_key",
            Self::Client(_) => "no_http_client",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Endpoint(error) => error.hint(),
            Self::Key => "enter the key again, without line ends",
            Self::Client(_) => "check the proxy setting and the system's certificates",
        }
    }
}

/// Where text sent to a base URL goes, if the owner has said nothing of it.
///
/// # Errors
/// When the base URL cannot be used.
pub fn place_of(base_url: &str) -> Result<ModelPlace, EndpointError> {
    // Whether plain http is allowed there is not the question here.
    Ok(Endpoint::parse(base_url, true)?.place())
}

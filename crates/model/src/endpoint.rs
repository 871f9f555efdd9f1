//! The address of a server, checked before a single byte goes there.
//!
//! A key sent in plain over someone's network is lost for good, so `http` is for this machine and
//! for private addresses; anything else needs `insecure_http = true`, written out by the owner.

use std::net::{IpAddr, Ipv6Addr};

use egress::Url;

use crate::model::ModelPlace;

/// A base URL that must not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// A text that is no URL with a host.
    #[error("`{url}` is no base URL: {why}")]
    Malformed {
        /// The URL without user name and password.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// A URL that would send text in plain over a network.
    #[error("`{host}` would get your text and key unencrypted")]
    InsecureHttp { host: String },
}

impl EndpointError {
    /// A stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "bad_base_url",
            Self::InsecureHttp { .. } => "insecure_http",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "write it like https://host/v1, without user, query and fragment",
            Self::InsecureHttp { .. } => "use https, or set `insecure_http = true` for this provider",
        }
    }
}

/// The root of an API and where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    root: Url,
    loopback: bool,
}

impl Endpoint {
    /// Checks a base URL, given with or without its version: `http://localhost:8080` and
    /// `http://localhost:8080/v1` are the same.
    ///
    /// # Errors
    /// When it is no http or https URL, carries credentials, or is plain `http` to a public host
    /// without `insecure_http`.
    pub fn parse(base: &str, insecure_http: bool) -> Result<Self, EndpointError> {
        let mut root = Url::parse(base.trim()).map_err(|error| malformed("?", &error.to_string()))?;
        let shown = root.host_str().unwrap_or("?").to_owned();
        if !matches!(root.scheme(), "http" | "https") {
            return Err(malformed(&shown, "it begins with neither http nor https"));
        }
        if !root.username().is_empty() || root.password().is_some() {
            return Err(malformed(&shown, "it holds a user name or a password"));
        }
        if root.query().is_some() || root.fragment().is_some() {
            return Err(malformed(&shown, "it holds a query or a fragment"));
        }
        let reach = Reach::of(&root);
        if root.scheme() == "http" && reach == Reach::Public && !insecure_http {
            return Err(EndpointError::InsecureHttp { host: shown });
        }
        let path = root.path().trim_end_matches('/').to_owned();
        // The address of a request, as other programs want it, holds that of the API.
        let path = REQUESTS.iter().find_map(|end| path.strip_suffix(end)).unwrap_or(&path).to_owned();
        let path = if path.split('/').any(is_version) { path } else { format!("{path}/v1") };
        root.set_path(&path);
        Ok(Self { root, loopback: reach == Reach::Loopback })
    }

    /// The URL of a path below the version root; what stands behind a `?` is its query. `None` for a path that
    /// would lead elsewhere: names of models stand in paths, and a name is a stranger's text.
    pub fn join(&self, path: &str) -> Option<Url> {
        self.below(self.root.path(), path)
    }

    /// The URL of a path beside the version root, where servers keep what is no part of the API. `None` as for
    /// [`Endpoint::join`].
    pub fn beside(&self, path: &str) -> Option<Url> {
        let segments = self.root.path().split('/').take_while(|segment| !is_version(segment));
        self.below(&segments.collect::<Vec<_>>().join("/"), path)
    }

    fn below(&self, base: &str, path: &str) -> Option<Url> {
        let base = base.trim_end_matches('/');
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let mut url = self.root.clone();
        url.set_path(&format!("{base}/{path}"));
        url.set_query(query);
        // Steps upwards, in whatever writing, are gone from the parsed path, and with them segments.
        let segments = |path: &str| path.split('/').count();
        let stays = url.path().starts_with(&format!("{base}/"))
            && segments(url.path()) == segments(base) + segments(path);
        stays.then_some(url)
    }

    /// Host and port, for messages.
    pub fn host(&self) -> String {
        let host = self.root.host_str().unwrap_or("?");
        self.root.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Local on a loopback address, remote elsewhere; the owner may declare otherwise.
    pub fn place(&self) -> ModelPlace {
        if self.loopback { ModelPlace::Local } else { ModelPlace::Remote }
    }
}

/// How the paths of requests to models end.
const REQUESTS: [&str; 4] = ["/chat/completions", "/completions", "/responses", "/messages"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Loopback,
    Private,
    Public,
}

impl Reach {
    fn of(url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(address) => Self::of_address(address.to_canonical()),
            Err(_) => {
                let name = host.trim_end_matches('.').to_ascii_lowercase();
                if name == "localhost" || name.ends_with(".localhost") {
                    Self::Loopback
                } else {
                    Self::Public
                }
            }
        }
    }

    fn of_address(address: IpAddr) -> Self {
        let private = match address {
            IpAddr::V4(v4) => v4.is_private(),
            IpAddr::V6(v6) => is_unique_local(v6),
        };
        match (address.is_loopback(), private) {
            (true, _) => Self::Loopback,
            (false, true) => Self::Private,
            (false, false) => Self::Public,
        }
    }
}

fn is_unique_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xfe00 == 0xfc00
}

fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn malformed(url: &str, why: &str) -> EndpointError {
    EndpointError::Malformed { url: url.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(base: &str) -> String {
        Endpoint::parse(base, false).unwrap().join("chat/completions").unwrap().to_string()
    }

    #[test]
    fn a_base_url_may_name_its_version_or_not() {
        assert_eq!(chat("http://localhost:8080"), "http://localhost:8080/v1/chat/completions");
        assert_eq!(chat("http://localhost:8080/v1/"), "http://localhost:8080/v1/chat/completions");
        assert_eq!(chat("https://openrouter.ai/api"), "https://openrouter.ai/api/v1/chat/completions");
        assert_eq!(chat("https://x.test/v1/chat/completions/"), "https://x.test/v1/chat/completions");
        assert_eq!(chat("https://x.test/v1beta/openai/"), "https://x.test/v1beta/openai/chat/completions");
    }

    #[test]
    fn a_path_may_have_a_query() {
        let gemini = Endpoint::parse("https://g.test/v1beta", false).unwrap();
        let url = |path| gemini.join(path).map(String::from);
        assert_eq!(
            url("models/x:streamGenerateContent?alt=sse").as_deref(),
            Some("https://g.test/v1beta/models/x:streamGenerateContent?alt=sse")
        );
        assert_eq!(
            url("models/a b#c?q=1#2").as_deref(),
            Some("https://g.test/v1beta/models/a%20b%23c?q=1%232")
        );
        assert_eq!(url("models/a%2Fb").as_deref(), Some("https://g.test/v1beta/models/a%2Fb"));
    }

    #[test]
    fn no_path_leads_out_of_the_base() {
        let base = Endpoint::parse("https://g.test/api/v1", false).unwrap();
        for path in [
            "../x",
            "models/../../x",
            "models/%2e%2E/x",
            "models/./x",
            "models/..",
            "a\\..\\..\\x",
            ".\t./x",
            "..?a=b",
        ] {
            assert_eq!(base.join(path), None, "{path:?}");
        }
        assert_eq!(base.join("//evil.test/x").unwrap().host_str(), Some("g.test"));
        assert_eq!(base.join("models/a..b/...").unwrap().path(), "/api/v1/models/a..b/...");
    }

    #[test]
    fn what_is_no_part_of_the_api_stands_beside_its_version() {
        let beside = |base| Endpoint::parse(base, false).unwrap().beside("api/ps").unwrap().to_string();
        assert_eq!(beside("http://localhost:1"), "http://localhost:1/api/ps");
        assert_eq!(beside("http://localhost:1/v1"), "http://localhost:1/api/ps");
        assert_eq!(beside("http://localhost:1/llama/v1"), "http://localhost:1/llama/api/ps");
    }

    #[test]
    fn plain_http_is_for_this_machine_and_private_addresses() {
        for base in [
            "http://127.0.0.1:1",
            "http://[::1]:1",
            "http://localhost",
            "http://192.168.1.5",
            "http://[fd00::1]",
        ] {
            assert!(Endpoint::parse(base, false).is_ok(), "{base}");
        }
        for base in [
            "http://example.com",
            "http://8.8.8.8",
            "http://169.254.169.254",
            "http://[::ffff:8.8.8.8]",
            "http://localhost.evil.test",
        ] {
            assert_eq!(Endpoint::parse(base, false).unwrap_err().code(), "insecure_http", "{base}");
            assert!(Endpoint::parse(base, true).is_ok(), "{base}");
        }
    }

    #[test]
    fn only_loopback_is_local_unasked() {
        let place = |base| Endpoint::parse(base, false).unwrap().place();
        assert_eq!(place("http://localhost:11434"), ModelPlace::Local);
        assert_eq!(place("http://127.9.9.9"), ModelPlace::Local);
        assert_eq!(place("http://192.168.1.5"), ModelPlace::Remote);
        assert_eq!(place("https://api.openai.com/v1"), ModelPlace::Remote);
    }

    #[test]
    fn credentials_in_a_url_are_refused_and_not_repeated() {
        let error = Endpoint::parse("https://me:canary@host/v1", false).unwrap_err();
        assert_eq!(error.code(), "bad_base_url");
        assert!(!error.to_string().contains("canary"));
        for base in ["ftp://host", "host:8080", "https://host/v1?key=canary", "nonsense"] {
            assert_eq!(Endpoint::parse(base, false).unwrap_err().code(), "bad_base_url", "{base}");
        }
    }
}

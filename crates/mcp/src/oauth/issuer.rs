//! Who lets in at a server: found out by what the server and its issuer say of themselves, and spoken with through the gate.
//! Both are strangers, so that only the public network and what the owner named is asked.

use std::time::Duration;

use egress::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use egress::{
    Client, ClientOptions, FetchError, Gate, HostPort, Purpose, Reach, Redirects, Refusal, RequestBuilder,
    Rule, StatusCode, Url,
};
use serde_json::{Value, json};
use text::terminal::one_line;
use tokio::time::timeout;

use super::client::{FORM, RegisteredClient, TokenEndpointAuthMethod};
use crate::http_body::bounded;

/// How long one answer may take, and how much it may say.
const PATIENCE: Duration = Duration::from_secs(30);
const LONGEST: usize = 256 << 10;

/// Speaks with issuers.
#[derive(Debug, Clone)]
pub(crate) struct Issuers {
    http: Client,
    gate: Gate,
}

/// An issuer, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Issuer {
    pub(crate) name: String,
    pub(crate) authorize: Url,
    pub(crate) token: Url,
    pub(crate) register: Option<Url>,
    /// Whether it names itself with each answer (RFC 9207).
    pub(crate) iss_parameter_supported: bool,
    /// How clients with a secret authenticate.
    pub(crate) auth_method: TokenEndpointAuthMethod,
    /// Whether it takes clients without one.
    pub(crate) public_clients: bool,
}

impl Issuers {
    /// Reaches the public network, and these hosts.
    pub(crate) fn new(gate: &Gate, named: Vec<HostPort>) -> Result<Self, String> {
        let rule = Rule { purpose: Purpose::Login, reach: Reach::Public { named } };
        let options = ClientOptions {
            redirects: Redirects::No,
            connect_timeout: PATIENCE,
            read_timeout: Some(PATIENCE),
            proxy: None,
        };
        let http = gate.client(rule, &options).map_err(|error| error.to_string())?;
        Ok(Self { http, gate: gate.clone() })
    }

    async fn ask(&self, request: RequestBuilder) -> Result<(StatusCode, Value), String> {
        let asking = async {
            let request = request.header(ACCEPT, "application/json");
            let response =
                self.http.send(request).await.map_err(|error| FetchError::from(error).to_string())?;
            let status = response.status();
            let body = bounded(response, LONGEST).await?;
            Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
        };
        timeout(PATIENCE, asking).await.unwrap_or_else(|_| Err("it did not answer in time".to_owned()))
    }

    /// What is told at an address; none where nothing is.
    async fn told(&self, url: Url) -> Result<Option<Value>, String> {
        self.require_safe(&url)?;
        let host = shown(url.host_str().unwrap_or_default());
        let (status, told) = self
            .ask(self.http.get(url))
            .await
            .map_err(|why| format!("{host} was asked who lets in: {why}"))?;
        Ok(Some(told).filter(|told| status == StatusCode::OK && told.is_object()))
    }

    /// Sends something, and what is answered.
    pub(crate) async fn post(&self, url: &Url, asked: &Value) -> Result<(StatusCode, Value), String> {
        self.require_safe(url)?;
        let request = self.http.post(url.clone()).header(CONTENT_TYPE, "application/json");
        self.ask(request.body(asked.to_string())).await
    }

    /// Asks for an access, as a client.
    pub(crate) async fn token(
        &self,
        url: &Url,
        client: &RegisteredClient,
        fields: &[(&str, &str)],
    ) -> Result<(StatusCode, Value), String> {
        self.require_safe(url)?;
        let (form, proof) = client.asks(fields);
        let mut request = self.http.post(url.clone()).header(CONTENT_TYPE, FORM).body(form);
        if let Some(proof) = proof {
            request = request.header(AUTHORIZATION, proof);
        }
        self.ask(request).await
    }

    /// Refuses what would send a secret unencrypted over the public network.
    pub(crate) fn require_safe(&self, url: &Url) -> Result<(), String> {
        let public = Rule { purpose: Purpose::Login, reach: Reach::Public { named: Vec::new() } };
        match url.scheme() {
            "https" => Ok(()),
            "http" if self.gate.judge(&public, url).is_err_and(|refusal| is_private(&refusal)) => Ok(()),
            _ => Err(format!("{} is not encrypted (https)", shown(url.as_str()))),
        }
    }

    /// Who lets in at a server that answered with this challenge, and the scopes that are asked for.
    ///
    /// # Errors
    /// Nobody is found, or one that cannot be trusted with a login.
    pub(crate) async fn find(
        &self,
        server: &Url,
        challenge: Option<&str>,
    ) -> Result<(Issuer, Vec<String>), String> {
        let mut places = Vec::new();
        if let Some(named) = challenge.and_then(|challenge| parameter(challenge, "resource_metadata")) {
            places.push(server.join(&named).map_err(|_| "the server names no address of who lets in")?);
        }
        places.extend(well_known(server, "oauth-protected-resource"));
        let mut resource = None;
        for place in places {
            resource = self.told(place).await?;
            if resource.is_some() {
                break;
            }
        }
        let (issuer, scopes) = match &resource {
            None => (server.join("/").map_err(|error| error.to_string())?, Vec::new()),
            Some(resource) => {
                let named = resource["resource"].as_str().and_then(|named| Url::parse(named).ok());
                if !named.is_some_and(|named| is_above(&named, server)) {
                    return Err(
                        "the server describes itself as another one: nobody is logged in there".to_owned()
                    );
                }
                let issuer = resource["authorization_servers"][0].as_str();
                let issuer = issuer.and_then(|issuer| Url::parse(issuer).ok());
                (issuer.ok_or("the server does not say who lets in")?, texts(&resource["scopes_supported"]))
            }
        };
        let asked = challenge.and_then(|challenge| parameter(challenge, "scope"));
        let scopes = asked.map_or(scopes, |asked| asked.split(' ').map(str::to_owned).collect());
        Ok((self.described(&issuer).await?, scopes))
    }

    /// The issuer as it describes itself.
    async fn described(&self, issuer: &Url) -> Result<Issuer, String> {
        // Of an issuer with a path what stands without it is another one's.
        let of = |what| well_known(issuer, what).into_iter().next();
        let mut places: Vec<Url> =
            ["oauth-authorization-server", "openid-configuration"].into_iter().filter_map(of).collect();
        let mut below = issuer.clone();
        below.set_path(&format!("{}/.well-known/openid-configuration", issuer.path().trim_end_matches('/')));
        places.push(below);
        places.dedup();
        for place in places {
            if let Some(told) = self.told(place).await? {
                return self.issuer(issuer, &told);
            }
        }
        Err(format!("{} does not say how it lets in", shown(issuer.as_str())))
    }

    fn issuer(&self, issuer: &Url, told: &Value) -> Result<Issuer, String> {
        let who = shown(issuer.as_str());
        let name = told["issuer"].as_str().unwrap_or_default();
        if name.trim_end_matches('/') != issuer.as_str().trim_end_matches('/') {
            return Err(format!("{who} describes itself as another one: nobody is logged in there"));
        }
        if !texts(&told["code_challenge_methods_supported"]).iter().any(|method| method == "S256") {
            return Err(format!("{who} does not protect logins (PKCE, S256)"));
        }
        let endpoint = |key: &str| {
            let Some(url) = told[key].as_str().and_then(|url| Url::parse(url).ok()) else { return Ok(None) };
            self.require_safe(&url).map(|()| Some(url))
        };
        let missing = || format!("{who} does not say where it lets in");
        let authorize = endpoint("authorization_endpoint")?.ok_or_else(missing)?;
        // Whoever opens it believes the host that it names, and what comes back is told to this issuer.
        if authorize.origin() != issuer.origin() {
            return Err(format!("{who} lets in at another host, {}", shown(authorize.as_str())));
        }
        Ok(Issuer {
            name: name.to_owned(),
            authorize,
            token: endpoint("token_endpoint")?.ok_or_else(missing)?,
            register: endpoint("registration_endpoint")?,
            iss_parameter_supported: told["authorization_response_iss_parameter_supported"] == true,
            auth_method: TokenEndpointAuthMethod::of(told),
            public_clients: told["token_endpoint_auth_methods_supported"]
                .as_array()
                .is_none_or(|taken| taken.contains(&json!(TokenEndpointAuthMethod::None))),
        })
    }
}

/// Whether an address is refused for lying in a network of one's own.
fn is_private(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Name { .. } | Refusal::Address { .. } | Refusal::Port { .. })
}

/// What an address is told by, with its path and without.
fn well_known(of: &Url, what: &str) -> Vec<Url> {
    let path = of.path().trim_end_matches('/');
    let paths = [format!("/.well-known/{what}{path}"), format!("/.well-known/{what}")];
    let mut found: Vec<Url> = paths.iter().filter_map(|path| of.join(path).ok()).collect();
    found.dedup();
    found
}

/// Whether a resource is this server, or holds it.
fn is_above(resource: &Url, server: &Url) -> bool {
    let (above, path) = (resource.path().trim_end_matches('/'), server.path());
    let rest = path.strip_prefix(above);
    resource.origin() == server.origin() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A stranger's word, short and on one line.
pub(crate) fn shown(said: &str) -> String {
    one_line(said).chars().take(100).collect()
}

/// A parameter of a challenge (RFC 9110, section 11.6.1).
pub(crate) fn parameter(challenge: &str, name: &str) -> Option<String> {
    let lower = challenge.to_ascii_lowercase();
    let begin = lower.match_indices(&format!("{name}=")).find(|(at, _)| {
        let before = lower[..*at].chars().next_back();
        before.is_none_or(|c| c == ' ' || c == ',')
    });
    let rest = &challenge[begin?.0 + name.len() + 1..];
    let value = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split([',', ' ']).next(),
    };
    value.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(url: &str) -> Url {
        Url::parse(url).unwrap()
    }

    #[test]
    fn parameters_of_a_challenge_are_read_quoted_and_bare() {
        let challenge =
            r#"Bearer realm="x_scope=no", Scope="a b",resource_metadata="https://a.example/x?y=1""#;
        assert_eq!(parameter(challenge, "scope").as_deref(), Some("a b"));
        assert_eq!(parameter(challenge, "resource_metadata").as_deref(), Some("https://a.example/x?y=1"));
        assert_eq!(parameter("Bearer scope=a, error=x", "scope").as_deref(), Some("a"));
        assert_eq!(parameter("Bearer", "scope"), None);
    }

    #[test]
    fn a_server_is_within_its_own_resource_alone() {
        let server = url("https://mcp.example.com/team/mcp");
        for above in
            ["https://mcp.example.com", "https://mcp.example.com/team", "https://mcp.example.com/team/mcp/"]
        {
            assert!(is_above(&url(above), &server), "{above}");
        }
        for other in [
            "https://mcp.example.com/te",
            "https://example.com/",
            "http://mcp.example.com/",
            "https://mcp.example.com:8443/",
            "https://mcp.example.com/team/mcp/more",
        ] {
            assert!(!is_above(&url(other), &server), "{other}");
        }
    }

    #[test]
    fn an_issuer_that_is_another_one_or_unprotected_or_unencrypted_lets_nobody_in() {
        let issuers = Issuers::new(&Gate::default(), Vec::new()).unwrap();
        let good = json!({
            "issuer": "https://id.example.com",
            "authorization_endpoint": "https://id.example.com/authorize",
            "token_endpoint": "https://id.example.com/token",
            "code_challenge_methods_supported": ["plain", "S256"],
        });
        let described = |change: &dyn Fn(&mut Value)| {
            let mut told = good.clone();
            change(&mut told);
            issuers.issuer(&url("https://id.example.com/"), &told)
        };
        assert_eq!(described(&|_| {}).unwrap().register, None);
        let changes: [&dyn Fn(&mut Value); 7] = [
            &|told| told["authorization_endpoint"] = "http://a:b@id.example.com/authorize".into(),
            &|told| told["issuer"] = "https://evil.example".into(),
            // What is said yes to there would be told here.
            &|told| told["authorization_endpoint"] = "https://good.example/authorize".into(),
            &|told| told["code_challenge_methods_supported"] = json!(["plain"]),
            &|told| drop(told.as_object_mut().unwrap().remove("code_challenge_methods_supported")),
            &|told| told["token_endpoint"] = "http://id.example.com/token".into(),
            &|told| told["authorization_endpoint"] = "file:///etc/passwd".into(),
        ];
        for change in changes {
            assert!(described(change).is_err());
        }
    }
}

//! A login: the owner says yes in a browser, which comes back to this machine with a code, and the code becomes an access.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use egress::header::{HeaderValue, WWW_AUTHENTICATE};
use egress::{FetchError, Gate, HostPort, StatusCode, Url, Visited};
use loom::Digest;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::bearer::{Granted, error_told};
use super::client::{RegisteredClient, TokenEndpointAuthMethod};
use super::issuer::{Issuer, Issuers, shown};
use super::saved::{Login, SavedLogin};
use crate::address::ServerAddress;
use crate::handler::GREETED_BY;
use crate::http_session::SESSION;

/// How long a person may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// Path that the browser comes back to.
const PATH: &str = "/callback";

/// What is needed for a login.
pub struct LoginRequest {
    /// The server's address, and what the owner wrote into its headers.
    pub address: ServerAddress,
    /// Hosts besides the public network that may be asked.
    pub named: Vec<HostPort>,
    /// The client as which the owner registered Drawloom; without it Drawloom registers itself.
    pub client: Option<(String, Option<String>)>,
    /// Scopes that the owner wants; without any those that the server asks for.
    pub scopes: Vec<String>,
    /// Port of the loopback that the browser comes back to; 0 is any.
    pub port: u16,
    pub saved: SavedLogin,
}

impl fmt::Debug for LoginRequest {
    /// Without the secret of the client.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginRequest").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Logs in; `show` tells the owner which address to open. It ends when they did, or it took too long.
///
/// # Errors
/// Nobody lets in, or not as it is safe, or the owner did not say yes.
pub async fn login(
    gate: &Gate,
    request: LoginRequest,
    show: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), String> {
    let LoginRequest { address, named, client, scopes, port, saved } = request;
    let server = address.url().clone();
    let issuers = Issuers::new(gate, named)?;
    let (issuer, wanted) = issuers.find(&server, challenge(&address).await?.as_deref()).await?;
    let visited = Visited::open(port).await;
    let visited =
        visited.map_err(|error| format!("nothing can be heard at port {port} of this machine: {error}"))?;
    let back = visited.address(PATH);
    let client = match client {
        Some((id, secret)) => RegisteredClient { id, secret, auth_method: issuer.auth_method },
        None => registered(&issuers, &issuer, &back).await?,
    };
    let (verifier, state) = (random()?, random()?);
    let challenge = BASE64URL_NOPAD.encode(&Digest::of(verifier.as_bytes()).0);
    let scopes = if scopes.is_empty() { wanted } else { scopes }.join(" ");
    let mut open = issuer.authorize.clone();
    open.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &client.id)
        .append_pair("redirect_uri", &back)
        .append_pair("state", &state)
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256")
        .append_pair("resource", server.as_str());
    if !scopes.is_empty() {
        open.query_pairs_mut().append_pair("scope", &scopes);
    }
    show(open.as_str());

    let awaited = state.clone();
    let is_awaited =
        move |url: &Url| url.path() == PATH && value(url, "state").is_some_and(|state| state == awaited);
    let back_with = timeout(PATIENCE, visited.awaited(Arc::new(is_awaited))).await;
    let back_with =
        back_with.map_err(|_| format!("nobody came back within {} min", PATIENCE.as_secs() / 60))?;
    let back_with = back_with.map_err(|error| error.to_string())?;
    // None may stand twice (RFC 6749, 3.1), as it would depend on the reader which of them counts.
    if let Some(twice) =
        ["code", "state", "iss", "error"].into_iter().find(|name| values(&back_with, name).count() > 1)
    {
        return Err(format!("it came back with `{twice}` twice: nobody is logged in"));
    }
    // One that says that it always names itself was not there where nobody is named (RFC 9207).
    let iss = value(&back_with, "iss");
    if iss.is_none() && issuer.iss_parameter_supported || iss.is_some_and(|iss| iss != issuer.name) {
        return Err("another one than was asked answered: nobody is logged in".to_owned());
    }
    let Some(code) = value(&back_with, "code").filter(|code| !code.is_empty()) else {
        let why = value(&back_with, "error").unwrap_or_else(|| "it gave no code".to_owned());
        return Err(format!("it was not let in: {}", shown(&why)));
    };
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", &*code),
        ("redirect_uri", &*back),
        ("code_verifier", &*verifier),
        ("resource", server.as_str()),
    ];
    let (status, told) = issuers.token(&issuer.token, &client, &fields).await?;
    let granted = Granted::of(&told).filter(|_| status.is_success());
    let Some(granted) = granted else {
        // It may repeat what it was told, and what it told itself.
        let secrets = [Some(&*code), Some(&*verifier), client.secret.as_deref()];
        let secrets: Vec<&str> = secrets.into_iter().flatten().filter(|secret| !secret.is_empty()).collect();
        return Err(format!("it was not let in (HTTP {}) {}", status.as_u16(), error_told(&told, &secrets)));
    };
    let login = Login {
        resource: server.into(),
        token_endpoint: issuer.token.into(),
        client,
        access_token: granted.access,
        refresh_token: granted.refresh,
        renew_at: granted.renew_at,
    };
    let _lock = saved.lock().await?;
    saved.write(&login)
}

/// The challenge of a server that wants to know who asks: when it is greeted, or when it is asked for its tools.
async fn challenge(address: &ServerAddress) -> Result<Option<String>, String> {
    let asked = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": GREETED_BY,
        "capabilities": {},
        "clientInfo": {"name": "drawloom", "version": env!("CARGO_PKG_VERSION")},
    }});
    let ask = async |message: Value, session: Option<HeaderValue>| {
        let asked = timeout(Duration::from_secs(30), address.ask(&message, session)).await;
        let answered = asked.map_err(|_| "it did not answer in time".to_owned())?;
        answered.map_err(|error| format!("it was not reached: {}", FetchError::from(error)))
    };
    let mut answered = ask(asked, None).await?;
    if answered.status().is_success() {
        let session = answered.headers().get(SESSION).cloned();
        answered = ask(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), session).await?;
    }
    if answered.status().is_success() {
        return Err("it lets in whoever asks as you do: there is nothing to log in to".to_owned());
    }
    let challenge = answered.headers().get(WWW_AUTHENTICATE).and_then(|challenge| challenge.to_str().ok());
    Ok(challenge.filter(|_| answered.status() == StatusCode::UNAUTHORIZED).map(str::to_owned))
}

/// Registers Drawloom (RFC 7591).
async fn registered(issuers: &Issuers, issuer: &Issuer, back: &str) -> Result<RegisteredClient, String> {
    let Some(register) = &issuer.register else {
        return Err(format!(
            "{} takes no clients that register themselves: register Drawloom there, and set `client_id` and `callback_port`",
            shown(&issuer.name)
        ));
    };
    let asked = json!({
        "client_name": "Drawloom",
        "redirect_uris": [back],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": if issuer.public_clients { TokenEndpointAuthMethod::None } else { issuer.auth_method },
    });
    let (status, told) = issuers.post(register, &asked).await?;
    match told["client_id"].as_str().filter(|_| status.is_success()) {
        Some(client) => Ok(RegisteredClient {
            id: client.to_owned(),
            secret: told["client_secret"].as_str().map(str::to_owned),
            auth_method: TokenEndpointAuthMethod::named(&told["token_endpoint_auth_method"])
                .unwrap_or(issuer.auth_method),
        }),
        None => {
            Err(format!("Drawloom was not registered (HTTP {}) {}", status.as_u16(), error_told(&told, &[])))
        }
    }
}

fn value(url: &Url, name: &str) -> Option<String> {
    values(url, name).next()
}

fn values(url: &Url, name: &str) -> impl Iterator<Item = String> {
    url.query_pairs().filter(move |(key, _)| key == name).map(|(_, value)| value.into_owned())
}

fn random() -> Result<String, String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    Ok(BASE64URL_NOPAD.encode(&bytes))
}

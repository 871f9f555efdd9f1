//! The client of servers at an address, as the conformance suite of MCP starts it: with the address of a server as its last
//! argument. It lists the tools of the server, accepts all and calls each of them once; it logs in
//! where it is asked to, also for more scopes, once each.
//! `tests/conformance.rs` has the suite run it.

use std::env;
use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use context::elicitation::{
    Elicit, Elicitation, ElicitationCaller, ElicitationMode, ElicitationReply, QuestionEnd,
};
use drawloom_mcp::{LoginRequest, SavedLogin, SavedTools, Server, ServerAddress, ServerPlace, login};
use egress::header::HeaderMap;
use egress::{Gate, HostPort, Url};
use model::Cancel;
use serde_json::{Map, Value, json};

const NAME: &str = "suite";
/// How long a call may take.
const WITHIN: Duration = Duration::from_secs(20);

/// A server of the suite, with what is kept of it.
struct Suite {
    url: Url,
    gate: Gate,
    saved: SavedTools,
    login: SavedLogin,
}

impl Suite {
    fn new(url: Url, folder: &Path) -> Self {
        let saved = SavedTools::of(folder.join("tools"), NAME);
        let login = SavedLogin::of(folder.join("logins"), NAME);
        Self { url, gate: Gate::default(), saved, login }
    }

    fn address(&self) -> Result<ServerAddress, String> {
        let address = ServerAddress::new(&self.gate, self.url.clone(), HeaderMap::new())?;
        address.with_login(&self.gate, NAME, (this_machine(), self.login.clone()))
    }

    /// Logs in as `drawloom mcp login` does, with a person who says yes at once.
    async fn log_in(&self, context: &Value, scopes: Vec<String>) -> Result<(), String> {
        let text = |key: &str| context[key].as_str().map(str::to_owned);
        let request = LoginRequest {
            address: self.address()?,
            named: this_machine(),
            client: text("client_id").map(|client| (client, text("client_secret"))),
            scopes,
            port: 0,
            saved: self.login.clone(),
        };
        let says_yes = |address: &str| {
            let address = address.to_owned();
            std::thread::spawn(move || visit(&address));
        };
        login(&self.gate, request, &says_yes).await
    }
}

/// Every port of this machine: the suite's issuers listen at any, and the owner names them (`web.private_hosts`).
fn this_machine() -> Vec<HostPort> {
    (1..=u16::MAX).filter_map(|port| format!("localhost:{port}").parse().ok()).collect()
}

/// Opens an address as a browser does, and follows where it leads.
fn visit(address: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut next = Some(Url::parse(address)?);
    while let Some(url) = next {
        let (host, port) = (url.host_str().ok_or("no host")?, url.port_or_known_default().ok_or("no port")?);
        let mut stream = TcpStream::connect((host, port))?;
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let path = url.path();
        write!(stream, "GET {path}{query} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let to = answer
            .lines()
            .find_map(|line| line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("location")));
        next = to.map(|(_, to)| url.join(to.trim())).transpose()?;
    }
    Ok(())
}

/// The scopes that a server wants besides, as its owner reads them and writes them into its entry.
fn wanted(why: &str) -> Option<Vec<String>> {
    let (scopes, _) = why.split_once("write the scopes `")?.1.split_once('`')?;
    Some(scopes.split(' ').map(str::to_owned).collect())
}

fn arguments(tool: &str) -> Map<String, Value> {
    let arguments = if tool == "add_numbers" { json!({"a": 5, "b": 3}) } else { json!({}) };
    arguments.as_object().cloned().unwrap_or_default()
}

/// Person who accepts the defaults of a form.
#[derive(Debug)]
struct AcceptsDefaults;

impl Elicit for AcceptsDefaults {
    fn caller(&self) -> ElicitationCaller {
        ElicitationCaller { label: None, tool: "conformance".to_owned() }
    }

    fn elicit(
        &self,
        asked: Elicitation,
        _: QuestionEnd,
    ) -> Pin<Box<dyn Future<Output = ElicitationReply> + Send + '_>> {
        Box::pin(async move {
            let ElicitationMode::Form(schema) = asked.mode else { return ElicitationReply::Declined };
            let fields = schema["properties"].as_object().into_iter().flatten();
            let defaults =
                fields.filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone())));
            ElicitationReply::Accepted(defaults.collect())
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().next_back().ok_or("the address of a server is missing")?;
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let context = env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".to_owned());
    let context: Value = serde_json::from_str(&context)?;
    let folder = tempfile::tempdir()?;
    let suite = Suite::new(Url::parse(&url)?, folder.path());
    let place = ServerPlace::Address(Arc::new(suite.address()?));
    let server = Server::new(NAME, (WITHIN, Vec::new()), suite.saved.clone(), place);
    let offer = match server.offer().await {
        Err(_) if scenario.starts_with("auth/") => {
            suite.log_in(&context, Vec::new()).await?;
            server.offer().await?
        }
        offer => offer?,
    };
    suite.saved.accept(&offer.about, &offer.tools, &[])?;
    for tool in &offer.tools {
        let call = async || {
            server
                .call(&tool.name, arguments(&tool.name), (&Cancel::never(), Some(Arc::new(AcceptsDefaults))))
                .await
                .answer
        };
        if let Err(why) = call().await {
            suite.log_in(&context, wanted(&why).ok_or(why)?).await?;
            call().await?;
        }
    }
    Ok(())
}
